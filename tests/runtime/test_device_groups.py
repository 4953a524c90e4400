"""What a GPU computes in one launch: found from the graph alone, so that no GPU is needed to see it.

The values of the kernels are compared in `tests/devices/test_one_gpu.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tests.support.random_graphs import programs
from tfray.framework.effects import access_of, accessed_handles
from tfray.framework.traversal import reachable_backward, topological_order
from tfray.ops.kernels.element_loops import Assignment
from tfray.ops.kernels.gpu.device_loops import MAX_PARAMETER_BYTES, DeviceLoop, Load, Section, Unknown, array_bytes
from tfray.runtime.device_groups import arranged, update_loops
from tfray.runtime.host_values import HostValues
from tfray.runtime.segment_body import generic_body


def kernel_of(op):
    return op.op_def.kernel_for("GPU")


def groups_of(targets):
    """The types of the operations of each group of elementwise operations, and the groups of updates."""
    ops = topological_order(reachable_backward([getattr(target, "op", target) for target in targets]))
    body = generic_body(
        [op for op in ops if op.type != "Placeholder"],
        [op.outputs[0] for op in ops if op.type == "Placeholder"],
        [target for target in targets if hasattr(target, "op")],
    )
    made, elementwise, updates = arranged(body, kernel_of, HostValues(body))
    for group in (*elementwise, *updates):
        assert made.ops[group.first : group.last + 1] == group.ops
    return made, [sorted(op.type for op in group.ops) for group in elementwise], updates


def x(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape)


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (lambda: [tf.nn.relu(x(4, 3) * x(3) + 1.0)], [["Add", "Mul", "Relu"]]),
        (lambda: [tf.exp(x(4, 3) - x(4, 1)) / 2.0], [["Exp", "RealDiv", "Sub"]]),
        (lambda: [tf.nn.relu(tf.exp(x(4, dtype=tf.float16) * 2))], [["Exp", "Mul", "Relu"]]),
        (
            lambda: [tf.cast(tf.cast(x(4), tf.bfloat16) * x(1, dtype=tf.bfloat16), tf.float32) / x(4)],
            [["Cast", "Cast", "Mul", "RealDiv"]],
        ),
        # one launch already
        (lambda: [x(4) + x(4)], []),
        # a sum stands between, so that its group comes after it, and the other one before
        (lambda: [(lambda y: tf.exp(y - tf.reduce_max(y)) * 2.0)(x(5) * x(5))], [["Exp", "Mul", "Sub"]]),
        # neither needs the other: together while they are small
        (lambda: [tf.exp(x(4)), tf.sqrt(x(4))], [["Exp", "Sqrt"]]),
        (lambda: [tf.exp(x(1 << 17)), tf.sqrt(x(1 << 17))], []),
        # not known here: sizes, dtypes, functions
        (lambda: [tf.exp(x(None) * x(None))], []),
        (lambda: [x(4, dtype=tf.int16) * 2 + 1], []),
        (lambda: [tf.lgamma(x(4) * 2.0) + 1.0], []),
        (lambda: [tf.where(x(4) > 0, tf.cast(x(4, dtype=tf.bool), tf.float32), x(4))], [["Cast", "Greater", "Select"]]),
    ],
)  # fmt: skip
def test_elementwise_operations_that_one_kernel_computes(build, wanted):
    with tf.Graph().as_default():
        assert groups_of(build())[1] == wanted


@given(program=programs(), data=st.data())
def test_the_order_keeps_what_every_operation_sees(program, data):
    with program.graph.as_default():
        targets = program.fetches
        made, _, _ = groups_of(targets)
    before = topological_order(reachable_backward([tensor.op for tensor in targets]))
    place = {op: index for index, op in enumerate(made.ops)}
    assert sorted(place, key=id) == sorted((op for op in before if op.type != "Placeholder"), key=id)
    for op in place:
        earlier = [tensor.op for tensor in op.inputs] + op.control_inputs
        assert all(place[other] < place[op] for other in earlier if other in place)
    accesses = [op for op in before if op in place and access_of(op)]
    for i, op in enumerate(accesses):
        for later in accesses[i + 1 :]:
            if set(accessed_handles(op)) & set(accessed_handles(later)) and "update" in (
                access_of(op),
                access_of(later),
            ):
                assert place[op] < place[later]


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.01),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_the_updates_of_all_variables_are_one_kernel(optimizer, dtype):
    with tf.Graph().as_default():
        variables = [tf.Variable(np.zeros(shape, dtype.as_numpy_dtype)) for shape in ((3, 4), (4,), (4, 2))]
        step = OPTIMIZERS[optimizer]().minimize(tf.add_n([tf.reduce_sum(v * v) for v in variables]))
        _, _, (group,) = groups_of([step])
        (loop,) = update_loops(group, kernel_of, ())
    assert len(group.ops) == 3
    assert len(loop.loop.outputs) == 3 * len({name.split(".")[1] for name in loop.loop.outputs})


def test_more_updates_than_a_kernel_has_parameters_for_are_several_kernels():
    with tf.Graph().as_default():
        variables = [tf.Variable(np.zeros(i + 1, np.float32)) for i in range(50)]
        step = tf.train.AdamOptimizer().minimize(tf.add_n([tf.reduce_sum(v * v) for v in variables]))
        _, _, (group,) = groups_of([step])
        loops = update_loops(group, kernel_of, ())
    assert len(loops) == 2  # an update takes 136 of 4,000 bytes
    assert [op for loop in loops for op in loop.ops] == group.ops


def test_the_source_of_a_kernel():
    float32 = np.dtype(np.float32)
    assignment = Assignment("c", "where({0} == 0, 0, -{0} / {1})", ("a", "b"), float32)
    loads = (Load("a", float32), Load("b", float32, "row", 3))
    loop = DeviceLoop([Section(6, loads, (assignment,), (("c", "d"),)), Section(2, loads[:1], (), (("a", "e"),))])
    assert (loop.inputs, loop.outputs) == (["a", "b"], ["d", "e"])
    assert loop.source.splitlines() == [
        "int j = i;",
        "if (j < n0) {",
        "  const float32 x0 = in0[j];",
        "  const float32 x1 = in1[j % w0];",
        "  const float32 y0 = where(x0 == float32(0.0), float32(0.0), negative(x0) / x1);",
        "  out0[j] = y0;",
        "} else if ((j -= n0) < n1) {",
        "  const float32 x0 = in0[j];",
        "  out1[j] = x0;",
        "}",
    ]


def test_halves_are_computed_as_float32_and_stored_as_halves():
    half, float32 = np.dtype(np.float16), np.dtype(np.float32)
    assignments = (
        Assignment("c", "{0} * 3 + {1}", ("a", "b"), half),
        Assignment("d", "convert({0})", ("c",), float32),
        Assignment("e", "convert({0})", ("d",), half),
        Assignment("f", "{0} == {1}", ("c", "e"), np.dtype(bool)),
    )
    loads = (Load("a", half), Load("b", half, "number"))
    loop = DeviceLoop([Section(6, loads, assignments, (("c", "c"), ("f", "f")))])
    assert loop.source.splitlines() == [
        "int j = i;",
        "if (j < n0) {",
        "  const float32 x0 = float32(in0[j]);",
        "  const float32 y0 = x0 * float32(3.0) + in1;",
        "  const float32 y1 = float32(y0);",
        "  const float32 y2 = float32(float16(float32(y1)));",
        "  const bool_ y3 = y0 == y2;",
        "  out0[j] = float16(y0);",
        "  out1[j] = y3;",
        "}",
    ]


@pytest.mark.parametrize(("element", "dtype"), [("lgamma({0})", "float32"), ("exp({0})", "int32"), ("{0}", "int16")])
def test_what_a_kernel_does_not_know_is_refused(element, dtype):
    a = Load("a", np.dtype(dtype))
    with pytest.raises(Unknown):
        DeviceLoop([Section(2, (a,), (Assignment("b", element, ("a",), a.dtype),), (("b", "b"),))])


def test_a_group_has_no_more_arrays_than_a_kernel_has_parameters_for():
    with tf.Graph().as_default():
        total = x(2, 2, 2, 2)
        for _ in range(100):
            total = total * x(2, 2, 2, 2)
        made, _, _ = groups_of([total])
        groups = arranged(made, kernel_of, HostValues(made))[1]
    assert len(groups) > 2
    for group in groups:
        arrays = [*group.forms, *(tensor for tensor in group.results if tensor not in group.internal)]
        assert len(arrays) * array_bytes(4) <= MAX_PARAMETER_BYTES
