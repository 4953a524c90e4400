"""What the host of a GPU computes itself: found from the graph alone, so that no GPU is needed to see it."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.framework.op_def import OpDef, on_every_device, register
from tfray.framework.tensor_shape import SCALAR
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.runtime.host_values import HostValues, host_values
from tfray.runtime.segment_body import generic_body


def values_of(build, *shapes, on_host=()) -> tuple[HostValues, list]:
    """The values of a graph that `build` makes of placeholders, and these; those `on_host` are integers."""
    with tf.Graph().as_default():
        fed = [
            tf.placeholder(tf.int32 if index in on_host else tf.float32, shape, name=f"x{index}")
            for index, shape in enumerate(shapes)
        ]
        result = build(*fed)
        ops = [op for op in topological_order(reachable_backward([result.op])) if op.type != "Placeholder"]
        return host_values(generic_body(ops, fed, [result]), [fed[index] for index in on_host]), fed


def types(ops) -> list[str]:
    return sorted(op.type for op in ops)


@pytest.mark.parametrize(
    ("build", "shapes", "on_host", "wanted"),
    [
        (lambda x: tf.reshape(x, tf.shape(x)[1:] * 2), [[1, None]], (), ["Mul", "Shape", "StridedSlice"]),
        (lambda x: tf.zeros([tf.size(x) + 1]), [[None]], (), ["Add", "Pack", "Size"]),
        (lambda x, n: tf.reshape(x, [n // 2, -1]), [[None], []], (1,), ["FloorDiv", "Pack"]),
        (lambda x: tf.reduce_sum(x, tf.range(tf.rank(x) - 1)), [None], (), ["Range", "Rank", "Sub"]),
        # what the device computes has to be waited for, and what nothing reads on the host stays on the device
        (lambda x: tf.reshape(x, [tf.cast(tf.reduce_max(x), tf.int32), -1]), [[None]], (), []),
        (lambda x, n: x + tf.cast(n + 1, tf.float32), [[None], []], (1,), []),
        (lambda x: tf.cast(tf.shape(x), tf.float32), [[None]], (), []),
    ],
)
def test_what_is_read_on_the_host_is_computed_there(build, shapes, on_host, wanted):
    values, _ = values_of(build, *shapes, on_host=on_host)
    assert types(values.ops) == wanted


def loop(begin, step):
    """A loop of 5 turns at most over a counter that begins with `begin` and goes on by `step`, and a sum."""

    def build(x, n):
        return tf.while_loop(lambda i, s: i < 5, lambda i, s: (step(i, s), s * 2), [begin(x, n), x])[1]

    return build


@pytest.mark.parametrize(
    ("begin", "step", "carried"),
    [
        (lambda x, n: tf.constant(0), lambda i, s: i + 1, {0}),
        (lambda x, n: n, lambda i, s: i + tf.size(s), {0}),
        (lambda x, n: tf.cast(tf.reduce_sum(x), tf.int32), lambda i, s: i + 1, set()),
        (lambda x, n: n, lambda i, s: i + tf.cast(tf.reduce_max(s), tf.int32), set()),
    ],
)
def test_a_loop_carries_its_counter_on_the_host_if_it_can(begin, step, carried):
    values, _ = values_of(loop(begin, step), [None], [], on_host=(1,))
    ((_, found),) = values.carried.items()
    assert found == carried


def test_a_variable_of_a_loop_that_only_the_device_reads_stays_there():
    def build(x, n):
        body = lambda i, k, s: (i + 1, k + 1, s * tf.cast(k, tf.float32))  # noqa: E731
        return tf.while_loop(lambda i, k, s: i < 5, body, [0, n, x])[2]

    values, (_, n) = values_of(build, [None], [], on_host=(1,))
    assert list(values.carried.values()) == [{0}]
    assert n in values.read_on_device
    assert n not in values.read_on_host


def test_what_a_loop_reads_on_the_host_is_known_before_it():
    def build(x, n):
        size = tf.shape(x)[0]
        return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, tf.reshape(s, [size])), [0, x])[1]

    values, (_, n) = values_of(build, [None], [], on_host=(1,))
    assert {"Shape", "StridedSlice"} <= set(types(values.ops))
    assert n in values.read_on_host


def test_an_operation_reads_no_input_on_the_host_that_it_does_not_have():
    definition = OpDef(
        name="ReadsNothing",
        inputs=("x: float32",),
        outputs=("y: float32",),
        host_inputs=("axis",),
        shape=lambda op: [SCALAR],
        kernels=on_every_device(lambda ctx, x: np.float32(0)),
    )
    with pytest.raises(ValueError, match="'ReadsNothing' has no input axis"):
        register(definition)
