"""From Python values to tensors, and what of a tensor's value is known while the graph is built."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework import convert
from tfray.framework.constant_value import constant_shape, constant_value


def value_of(tensor):
    with tf.Session() as session:
        return session.run(tensor)


def test_lists_with_tensors_are_cast_to_the_dtype_asked_for():
    wide = tf.constant([1.5, 2.0], tf.float64)
    for value in ([wide], [[0.0, 1.0], wide], [[wide]]):
        made = tf.convert_to_tensor(value, tf.float32)
        assert made.dtype is tf.float32 and value_of(made).ravel()[-2:].tolist() == [1.5, 2]
    with pytest.raises(TypeError, match=r"use tf\.cast"):
        tf.convert_to_tensor(wide, tf.float32)
    with pytest.raises(TypeError, match=r"use tf\.cast"):
        tf.convert_to_tensor([tf.constant([1.0, 2.0]), wide], tf.float32)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1, tf.int32, []),
        (1.5, tf.float32, []),
        (2**40, tf.int64, []),
        (True, tf.bool, []),
        (1j, tf.complex128, []),
        ("text", tf.string, []),
        (b"\x00\xff", tf.string, []),
        ([], tf.float32, [0]),
        ([[]], tf.float32, [1, 0]),
        ([1, 2.5], tf.float32, [2]),
        ([[1], [2]], tf.int32, [2, 1]),
        (["a", b"b"], tf.string, [2]),
        (["a", b"\xff\x00"], tf.string, [2]),
        (np.float64(1), tf.float64, []),
        ([np.float64(1), 2], tf.float32, [2]),  # as in TensorFlow 2.21: a list is Python's, whatever it holds
        ([np.int64(1)], tf.int32, [1]),
        (np.arange(3), tf.int64, [3]),
        (np.zeros((2, 0), np.uint8), tf.uint8, [2, 0]),
        (np.array(["a", "bc"]), tf.string, [2]),
        (np.ones(2, ml_dtypes.bfloat16), tf.bfloat16, [2]),
        (tf.TensorShape([2, 3]), tf.int32, [2]),
        (tf.TensorShape([]), tf.int32, [0]),
        (tf.Dimension(4), tf.int32, []),
        (range(3), tf.int32, [3]),
        ((1, 2), tf.int32, [2]),
    ],
    ids=repr,
)
def test_natural_dtypes(value, dtype, shape):
    tensor = tf.convert_to_tensor(value)
    assert (tensor.dtype, tensor.shape) == (dtype, shape)
    result = value_of(tensor)
    assert dtype is tf.string or result.dtype == dtype.numpy
    if dtype is tf.string:
        encode = np.vectorize(lambda s: s.encode() if isinstance(s, str) else s, otypes=[object])
        assert np.array_equal(np.asarray(result, object), encode(np.asarray(value, object)))
    elif not isinstance(value, (tf.TensorShape, tf.Dimension)):
        assert np.array_equal(result, np.asarray(value))


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (1.5, tf.int32, "expected int32"),
        ("a", tf.float32, "expected float32"),
        (1, tf.string, "not a string"),
        (300, tf.uint8, "does not fit uint8"),
        (-1, tf.uint16, "does not fit uint16"),
        (2**70, None, "cannot make a tensor"),
        (1j, tf.float32, "expected float32"),
        (1, tf.bool, "expected bool"),
        ([[1, 2], [3]], None, "cannot make a tensor"),
        (["a", 1], None, "mixed"),
        (np.array(["a", 1], object), None, "cannot make a tensor"),
        (None, None, "cannot make a tensor"),
        (object(), None, "cannot make a tensor"),
        ({"a": 1}, None, "cannot make a tensor"),
        (np.array(["2020-01-01"], "datetime64[D]"), None, "datetime64"),
        (tf.TensorShape([None]), None, "unknown"),
        (tf.TensorShape([2]), tf.float32, "Cannot convert a TensorShape to dtype"),
    ],
    ids=lambda value: re.sub(" at 0x.*", "", repr(value)),
)
def test_what_does_not_convert(value, dtype, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.convert_to_tensor(value, dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, tf.int32),
        ("a", tf.float32),
        (1, tf.string),
        (1j, tf.float64),
        (1, tf.bool),
        ([1.5], tf.int64),
        ([1, [2]], None),
        (2**70, None),
    ],
)
def test_a_value_of_another_kind_is_a_type_error(value, dtype):
    with pytest.raises(TypeError):
        tf.convert_to_tensor(value, dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (np.float64(2.5), tf.int32, 2),
        (np.array([1.7, -2.7]), tf.int64, [1, -2]),
        (np.int64(300), tf.uint8, 44),
        (np.array([1 + 2j]), tf.float32, [1]),
        (np.array([1, 2.5], object), tf.float32, [1, 2.5]),
        (True, tf.int32, 1),
        ([True, False], tf.complex64, [1, 0]),
        (2**64, tf.float64, 2.0**64),
    ],
)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_numpy_values_are_cast_as_tensorflow_2_21_casts_them(value, dtype, expected):
    tensor = tf.convert_to_tensor(value, dtype)
    assert tensor.dtype is dtype and np.array_equal(value_of(tensor), expected)


NUMPY = (
    np.float64(2),
    np.float32(2),
    np.int64(2),
    np.array([2.0, 4.0]),
    np.array([2, 4]),
    np.array(2.0),
    np.bool_(True),
)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64, tf.int32, tf.int64, tf.complex64])
@pytest.mark.parametrize("value", NUMPY, ids=repr)
def test_numpy_values_beside_tensors_take_their_dtype(value, dtype):
    x = tf.constant([4, 2], dtype)
    number = np.asarray(value).astype(dtype.numpy)
    own = np.array([4, 2], dtype.numpy)
    results = [
        (x + value, own + number),
        (value - x, number - own),
        (x / value, own / number),
        (value / x, number / own),
        (tf.div(x, value), own // number if dtype.is_integer else own / number),
        (tf.multiply(x, value), own * number),
        (tf.where([True, False], x, number + 0 * own), np.where([True, False], own, number)),
        (tf.stack([x, value + 0 * own]), np.stack([own, (value + 0 * own).astype(dtype.numpy)])),
    ]
    for result, expected in results:
        assert tf.as_dtype(expected.dtype) is result.dtype
        np.testing.assert_allclose(value_of(result), expected, rtol=1e-2)


def test_an_array_on_the_left_makes_one_operation():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    before = len(x.graph.get_operations())
    for result in (np.eye(2) * x, np.eye(2) / x, np.eye(2) @ x, np.eye(2) ** x, np.float64(2) - x):
        assert result.dtype is tf.float32 and result.shape == [2, 2]
    assert (np.eye(2) < x).dtype is tf.bool
    assert len(x.graph.get_operations()) - before == 12  # a constant and the operation each
    for result in (tf.matmul(x, np.eye(2)), tf.tensordot(x, np.eye(2), 1), tf.maximum(x, np.float64(2))):
        assert result.dtype is tf.float32
    assert tf.clip_by_value(x, np.float64(2), np.float64(3)).dtype is tf.float32


@pytest.mark.parametrize("function", [tf.add, tf.maximum, tf.div, tf.matmul, tf.truediv])
def test_a_fraction_before_integers_is_a_type_error(function):
    with pytest.raises(TypeError, match="int32"):
        function(np.full((2, 2), 1.5), tf.ones([2, 2], tf.int32))
    with pytest.raises(TypeError, match="int32"):
        function(tf.ones([2, 2], tf.int32), 1.5)


def test_numbers_of_several_kinds_are_stacked_as_floats():
    assert value_of(tf.stack([1, 2.5])).tolist() == [1, 2.5]
    with pytest.raises(TypeError):
        tf.convert_to_tensor([tf.constant(1), tf.constant(1.0)])


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint64, tf.complex64])
def test_an_asked_dtype(dtype):
    tensor = tf.convert_to_tensor([1, 2, 3], dtype)
    assert tensor.dtype is dtype
    assert np.array_equal(value_of(tensor), np.array([1, 2, 3], dtype.numpy))


def test_a_preferred_dtype_yields():
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float64).dtype is tf.float64
    assert tf.convert_to_tensor(1, dtype_hint=tf.float64).dtype is tf.float64
    assert tf.convert_to_tensor(1.5, preferred_dtype=tf.int32).dtype is tf.float32


def test_tensors_pass_and_their_dtype_is_checked():
    x = tf.constant(1.0, name="culprit")
    assert tf.convert_to_tensor(x) is x
    with pytest.raises(InvalidArgumentError, match=r"culprit.*float32.*expected int32.*tf\.cast"):
        tf.convert_to_tensor(x, tf.int32)


def test_each_tensor_of_a_list_is_cast_to_the_dtype_asked_for():
    single, whole = tf.constant([0.5, 1.5]), tf.constant([2, 3])
    packed = tf.convert_to_tensor([single, whole, [4.25, 5]], tf.float64)
    assert packed.dtype is tf.float64 and value_of(packed).tolist() == [[0.5, 1.5], [2, 3], [4.25, 5]]
    assert value_of(tf.convert_to_tensor([whole, single], tf.float32)).tolist() == [[2, 3], [0.5, 1.5]]
    assert value_of(tf.convert_to_tensor([tf.constant(2), 2.5], tf.float32)).tolist() == [2, 2.5]
    for wanted in (None, tf.float32):  # the dtype of the first: nothing is cast
        with pytest.raises(TypeError, match="cannot be packed"):
            tf.convert_to_tensor([single, whole], wanted)


def test_lists_with_tensors_are_packed():
    x = tf.placeholder(tf.float32, [])
    packed = tf.convert_to_tensor([[x, 2.0], [3, x]])
    assert packed.shape == [2, 2] and packed.dtype is tf.float32
    with tf.Session() as session:
        assert session.run(packed, {x: 5}).tolist() == [[5, 2], [3, 5]]


@pytest.mark.parametrize("shape", [[None], [2, None], tf.TensorShape(None)])
def test_a_constant_has_known_sizes(shape):
    with pytest.raises(TypeError, match="known sizes"):
        tf.constant(1, shape=shape)


def test_a_constant_keeps_its_value():
    array = np.ones(3)
    tensor = tf.constant(array)
    array[:] = 7
    assert value_of(tensor).tolist() == [1, 1, 1]
    result = value_of(tensor)
    result[:] = 9  # what a session returns belongs to the caller
    assert value_of(tensor).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [(1, [2, 2], [[1, 1], [1, 1]]), ([1, 2], [4], [1, 2, 2, 2]), ([1, 2, 3, 4], [2, 2], [[1, 2], [3, 4]])],
)
def test_constants_are_continued_to_their_shape(value, shape, expected):
    assert value_of(tf.constant(value, shape=shape)).tolist() == expected


@pytest.mark.parametrize(("value", "shape", "verify"), [([1, 2, 3], [2], False), ([1, 2], [4], True), ([], [2], True)])
def test_constants_that_do_not_fit_their_shape(value, shape, verify):
    with pytest.raises(InvalidArgumentError, match="shape"):
        tf.constant(value, tf.float32, shape, verify_shape=verify)


def test_numbers_follow_the_tensor_they_meet():
    x = tf.constant([1, 2], tf.float64)
    assert (x + 1).dtype is tf.float64
    assert (2.5 * x).dtype is tf.float64
    assert (np.float32(1) + tf.constant(1.0)).dtype is tf.float32
    with pytest.raises(InvalidArgumentError, match="expected int32"):
        tf.constant([1]) + 1.5


def test_numpy_leaves_operators_to_the_tensor():
    x = tf.placeholder(tf.float32, [2])
    left = np.ones(2, np.float32) + x
    assert isinstance(left, tf.Tensor)
    with tf.Session() as session:
        assert session.run(left, {x: [1, 2]}).tolist() == [2, 3]


def test_conversion_functions_run_by_priority_and_may_decline(monkeypatch):
    monkeypatch.setattr(convert, "_CONVERSIONS", list(convert._CONVERSIONS))

    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    calls = []

    def declines(value, dtype=None, name=None, as_ref=False):
        calls.append("declines")

    def converts(value, dtype=None, name=None, as_ref=False):
        calls.append("converts")
        return tf.constant(value.degrees, dtype, name=name)

    tf.register_tensor_conversion_function(Celsius, converts)
    tf.register_tensor_conversion_function(Celsius, declines, priority=10)
    assert value_of(tf.add(Celsius(20.0), 1)) == 21
    assert calls == ["declines", "converts"]
    assert value_of(tf.convert_to_tensor([Celsius(1.0), 2.0])).tolist() == [1, 2]


# -- what is known while building ----------------------------------------------------------------------


def test_values_computed_from_shapes_and_constants_are_known():
    x = tf.placeholder(tf.float32, [2, None, 4])
    y = tf.placeholder(tf.float32, [2, 3])
    assert constant_value(tf.constant([1, 2]) * 3).tolist() == [3, 6]
    assert constant_value(tf.shape(y)).tolist() == [2, 3]
    assert constant_value(tf.reduce_prod(tf.shape(y))) == 6
    assert constant_value(tf.shape(x)) is None
    assert constant_value(x) is None
    assert constant_value(tf.random_uniform([2])) is None
    assert constant_value(tf.zeros([100, 100])) is None  # too large to evaluate


def test_shapes_computed_by_the_graph_are_inferred():
    x = tf.placeholder(tf.float32, [2, None, 4])
    assert constant_shape(tf.shape(x)) == [2, None, 4]
    assert constant_shape(tf.placeholder(tf.int32, [3])) == [None, None, None]
    assert constant_shape(tf.placeholder(tf.int32)).rank is None
    assert tf.reshape(x, [tf.shape(x)[0], -1]).shape.rank == 2
    assert tf.zeros(tf.shape(x)).shape == [2, None, 4]


def test_a_computation_that_fails_is_left_to_run_time():
    bad = tf.floordiv(tf.constant(1), tf.constant(0))
    assert constant_value(bad) is None or np.isscalar(constant_value(bad)[()])
    with tf.device("/cpu:0"):  # a GPU checks no indices
        index = tf.gather(tf.constant([1, 2]), tf.constant(5), name="culprit")
    assert constant_value(index) is None
    with tf.Session() as session, pytest.raises(InvalidArgumentError, match="5") as caught:
        session.run(index)
    assert caught.value.op_name == "culprit"


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=5))
def test_integers_get_the_type_that_holds_them(values):
    fits = all(-(2**31) <= value < 2**31 for value in values)
    with tf.Graph().as_default():
        tensor = tf.convert_to_tensor(values)
    assert tensor.dtype is (tf.int32 if fits else tf.int64)
    assert tensor.op.attrs["value"].tolist() == values


def test_strings_take_no_more_room_than_they_need():
    values = [b"", b"x" * 100_000] * 20_000  # 4 GB if each had the room of the longest
    array = convert.make_array(values)
    assert array.shape == (40_000,) and array[1] is values[1]


@pytest.mark.parametrize("dtype", [tf.qint8, tf.quint8, tf.qint32], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("value", [np.int32([1, 2]), np.uint8([1, 2]), np.float32([1.5, 2])])
def test_arrays_become_quantized_integers(dtype, value):
    tensor = tf.constant(value, dtype=dtype)
    assert tensor.dtype is dtype and tensor.op.attrs["value"].tolist() == [1, 2]
