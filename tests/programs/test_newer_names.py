"""Names of TensorFlow 1.15's modules that end in ``_v2``."""

from __future__ import annotations

import inspect
from functools import reduce

import numpy as np
import pytest

import tfray as tf
from tfray.programs import newer_names as newer

ROWS, IMAGE = [[1.0, 2.0, 2.0]], np.ones([1, 4, 4, 1], np.float32)


@pytest.mark.parametrize("name", newer.ARGUMENTS)
def test_the_function_behind_has_each_argument(name):
    path, arguments = newer.ARGUMENTS[name]
    known = inspect.signature(reduce(getattr, path.split("."), tf)).parameters
    assert {text.partition("=")[0].rpartition("/")[2] for text in arguments.split(", ")} <= known.keys()


@pytest.mark.parametrize(
    ("call", "expected"),
    [  # TensorFlow 2.21's results
        (lambda: newer.log_softmax_v2([0.0, 0.0], 0), np.log([0.5, 0.5])),
        (lambda: newer.dropout_v2(ROWS, 0.0), ROWS),
        (lambda: newer.argmax_v2([[1, 5], [7, 2]]), [1, 0]),
        (lambda: newer.argmin_v2([[1, 5], [7, 2]], 1, tf.int32), [0, 1]),
        (lambda: newer.conv2d_v2(IMAGE, np.ones([2, 2, 1, 1], np.float32), 2, "VALID", "NHWC", 1), [[[[4]] * 2] * 2]),
        (lambda: newer.pool_v2(IMAGE, [4, 4], "AVG"), [[[[1]]]]),
        (lambda: newer.moments_v2(ROWS, [1], None, True)[0], [[5 / 3]]),
        (lambda: newer.count_nonzero_v2([[1, 0], [2, 3]], 0, True), [[2, 1]]),
        (lambda: newer.reduce_join_v2([["a", "b"]], 1, True, "-"), [[b"a-b"]]),
        (lambda: newer.zeros_like_v2(input=ROWS, dtype=tf.int32), [[0, 0, 0]]),
        (lambda: newer.gather_v2(ROWS, [2, 0], None, 1), [[2, 1]]),
        (lambda: newer.substr_v2("tensor", 1, 3, "BYTE"), b"ens"),
        (lambda: newer.convert_to_tensor_v2([1], dtype_hint=tf.float32), [1.0]),
        (lambda: newer.while_loop_v2(lambda i: i < 3, lambda i: [i + 1], [0])[0], 3),
    ],
)
def test_arguments_stand_as_in_2_0(call, expected):
    with tf.Session() as session:
        found = session.run(call())
    if isinstance(found, bytes) or found.dtype == object:
        assert np.array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (newer.pad_v2, "(tensor, paddings, mode='CONSTANT', constant_values=0, name=None)"),
        (newer.reduce_mean_v2, "(input_tensor, axis=None, keepdims=False, name=None)"),
        (newer.zeros_like_v2, "(input, dtype=None, name=None)"),
    ],
)
def test_signatures_can_be_looked_at(function, expected):
    found = inspect.signature(function)
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    assert str(found.replace(parameters=plain)) == expected


def test_checks_have_their_message_first():
    with pytest.raises(tf.errors.InvalidArgumentError, match="not so"):
        newer.assert_equal_v2(1, 2, "not so")


@pytest.mark.parametrize(
    "call",
    [
        lambda: newer.dropout_v2(ROWS, x=ROWS),
        lambda: newer.softmax_v2(ROWS, dim=0),
        lambda: newer.size_v2(1, tf.int32, "n", 4),
    ],
)
def test_other_arguments_are_refused(call):
    with pytest.raises(TypeError, match="takes the arguments"):
        call()


@pytest.mark.parametrize(
    ("pool", "ratio", "shape"),
    [
        (newer.fractional_avg_pool_v2, [1.0, 1.5, 2.0, 1.0], (1, 4, 4, 1)),
        (newer.fractional_max_pool_v2, [1.0, 1.5, 2.0, 1.0], (1, 4, 4, 1)),
        (newer.fractional_max_pool_v2, [1.5, 2.0], (1, 4, 4, 1)),
        (newer.fractional_max_pool_v2, 2.0, (1, 3, 4, 1)),
    ],
)
def test_fractional_pooling_with_a_seed_is_the_same_in_every_step(pool, ratio, shape):
    pooled = pool(np.arange(48.0).reshape(1, 6, 8, 1), ratio, seed=7)
    with tf.Session() as session:
        first, second = session.run(pooled), session.run(pooled)
    assert first.output.shape == shape
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fields_of_the_newer_device_spec_stay_what_they_are():
    spec = newer.DeviceSpecV2.from_string("/job:a/task:1/cpu:0")
    assert isinstance(spec, tf.DeviceSpec) and spec.to_string() == "/job:a/task:1/device:CPU:0"
    others = spec.replace(job="b"), spec.make_merged_spec(tf.DeviceSpec(job="z")), spec.parse_from_string("/gpu:1")
    assert [each.to_string() for each in others] == [
        "/job:b/task:1/device:CPU:0",
        "/job:z/task:1/device:CPU:0",
        "/device:GPU:1",
    ]
    assert {type(each) for each in others} == {newer.DeviceSpecV2} and spec.job == "a"
    assert spec == newer.DeviceSpecV2.from_string(str(spec)) != tf.DeviceSpec.from_string(str(spec))
    assert tf.DeviceSpec(job="a").parse_from_string("/gpu:1") == tf.DeviceSpec(device_type="GPU", device_index=1)
    with pytest.raises(AttributeError, match="can't set attribute 'job'"):
        spec.job = "b"
    with pytest.raises(AttributeError, match="no attribute 'merge_from'"):
        spec.merge_from(tf.DeviceSpec(job="z"))
