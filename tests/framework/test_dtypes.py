"""Element types, and static shapes."""

from __future__ import annotations

import operator
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tfray.framework import dtypes
from tfray.framework.tensor_shape import broadcast_shapes

# -- dtypes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_each_type_is_found_by_its_own_names(dtype):
    assert tf.as_dtype(dtype) is dtype
    assert tf.as_dtype(dtype.name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert dtype.base_dtype is dtype
    assert tf.as_dtype(dtype.as_datatype_enum) is dtype
    assert tf.as_dtype(f"{dtype.name}_ref") is dtype
    assert (repr(dtype), str(dtype)) == (f"tf.{dtype.name}", f"<dtype: '{dtype.name}'>")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.float32, tf.float32),
        (np.dtype("int64"), tf.int64),
        (">f4", None),
        (float, tf.float32),
        (int, tf.int32),
        (bool, tf.bool),
        (complex, tf.complex128),
        (str, tf.string),
        (bytes, tf.string),
        ("double", tf.float64),
        ("half", tf.float16),
        (ml_dtypes.bfloat16, tf.bfloat16),
        ("U3", tf.string),
        (np.object_, tf.string),
        ("datetime64[s]", None),
        ("nonsense", None),
        (3, tf.int32),
        (101, tf.float32),
        (1000, None),
        (None, None),
        (np.dtype([("qint8", np.int8)]), tf.qint8),
        (np.array(3.0), tf.float64),
    ],
    ids=repr,
)
def test_what_names_a_type(value, dtype):
    if dtype is None:
        with pytest.raises(TypeError):
            tf.as_dtype(value)
    else:
        assert tf.as_dtype(value) is dtype


def test_types_compare_with_what_names_them():
    assert tf.float32 == np.float32
    assert tf.float32 == "float32"
    assert tf.float32 != np.float64
    assert tf.float32 != "nonsense"
    assert tf.int32.is_compatible_with(np.int32)
    assert len({tf.float32, tf.as_dtype("float")}) == 1


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_limits(dtype):
    limits = np.iinfo(dtype.numpy) if dtype.is_integer else ml_dtypes.finfo(dtype.numpy)
    assert (dtype.min, dtype.max) == (limits.min, limits.max)
    assert dtype.size == dtype.numpy.itemsize


@pytest.mark.parametrize("dtype", [tf.bool, tf.string, tf.complex64, tf.resource], ids=lambda dtype: dtype.name)
def test_types_without_limits(dtype):
    with pytest.raises(TypeError, match=dtype.name):
        dtype.min  # noqa: B018


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_kinds_exclude_each_other(dtype):
    kinds = [dtype.is_floating, dtype.is_integer, dtype.is_bool, dtype.is_complex]
    without = (tf.string, tf.resource, tf.variant, *tf.QUANTIZED_DTYPES)
    assert sum(kinds) == (0 if dtype in without else 1)
    assert dtype.is_differentiable == (dtype.is_floating or dtype.is_complex)


@pytest.mark.parametrize(("dtype", "limits"), [(tf.uint8, (0, 255)), (tf.int16, (0, 32767)), (tf.float32, (0, 1))])
def test_limits_of_images(dtype, limits):
    assert dtype.limits == limits
    with pytest.raises(ValueError, match="complex64"):
        tf.complex64.limits  # noqa: B018


@pytest.mark.parametrize("dtype", sorted(tf.QUANTIZED_DTYPES, key=int), ids=lambda dtype: dtype.name)
def test_quantized_tensors_are_stored_as_integers(dtype):
    assert dtype.is_quantized and dtype.is_numpy_compatible and not dtype.is_integer
    array = np.array([1, 2], dtype.as_numpy_dtype)
    fed = tf.placeholder(dtype, [2])
    constant = tf.constant(array)
    assert constant.dtype is dtype
    with tf.Session() as session:
        whole, column = session.run([constant, tf.reshape(fed, [2, 1])], {fed: array})
    assert whole.dtype == column.dtype == dtype.numpy
    assert (whole.tolist(), column.tolist()) == ([1, 2], [[1], [2]])


# -- shapes --------------------------------------------------------------------------------------------

sizes = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=4)
shapes = st.one_of(st.none(), sizes).map(tf.TensorShape)


def concrete(shape, fill):
    """A concrete shape that fits `shape`."""
    return tuple(fill if size is None else size for size in shape.sizes)


@given(shapes, shapes)
def test_merging_keeps_all_that_is_known(a, b):
    if not a.is_compatible_with(b):
        with pytest.raises(ValueError, match="incompatible"):
            a.merge_with(b)
        return
    merged = a.merge_with(b)
    assert merged == b.merge_with(a)
    assert merged.merge_with(a) == merged == merged.merge_with(b)
    if merged.rank is not None:
        for i, size in enumerate(merged.sizes):
            known = [s.sizes[i] for s in (a, b) if s.rank is not None and s.sizes[i] is not None]
            assert size == (known[0] if known else None)


@given(sizes.map(tf.TensorShape), sizes.map(tf.TensorShape))
def test_broadcasting_follows_numpy(a, b):
    """Whatever is claimed of partial shapes holds for every concrete shape for which NumPy broadcasts."""
    outcomes = []
    for fill_a in (1, 2, 3):
        for fill_b in (1, 2, 3):
            try:
                outcomes.append(np.broadcast_shapes(concrete(a, fill_a), concrete(b, fill_b)))
            except ValueError:
                continue
    try:
        static = broadcast_shapes(a, b)
    except ValueError:
        assert not outcomes
        return
    for outcome in outcomes:
        assert static.is_compatible_with(outcome), (static, outcome)


@given(shapes, shapes)
def test_concatenation(a, b):
    joined = a.concatenate(b)
    if a.rank is None or b.rank is None:
        assert joined.rank is None
    else:
        assert joined.as_list() == a.as_list() + b.as_list()


@given(shapes)
def test_shapes_are_values(shape):
    again = tf.TensorShape(None if shape.rank is None else shape.as_list())
    assert shape == again
    assert hash(shape) == hash(again)
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert bool(shape) == (shape.rank is not None)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ([], []),
        (3, [3]),
        ([2, None], [2, None]),
        ([2, -1], [2, None]),
        ((np.int64(2), tf.Dimension(3), tf.Dimension(None)), [2, 3, None]),
        (tf.TensorShape([1, 2]), [1, 2]),
        (4.0, [4]),
        ([4.0, None], [4, None]),
        (np.array([4, 5]), [4, 5]),
        (tf.Dimension(7), [7]),
    ],
    ids=repr,
)
def test_what_makes_a_shape(dims, expected):
    assert tf.TensorShape(dims).as_list() == expected


@pytest.mark.parametrize("dims", [[-2], ["x"], [2.5], "ab"], ids=repr)
def test_what_makes_no_shape(dims):
    with pytest.raises((ValueError, TypeError)):
        tf.TensorShape(dims)


def test_shapes_read_like_sequences_of_dimensions():
    shape = tf.TensorShape([2, None, 5])
    assert shape[0].value == 2
    assert shape[1].value is None
    assert shape[-1] == 5
    assert shape[1:] == [None, 5]
    assert len(shape) == shape.ndims == 3
    assert [d.value for d in shape] == [2, None, 5]
    assert shape.num_elements() is None
    assert tf.TensorShape([2, 3]).num_elements() == 6
    assert tf.TensorShape([]).num_elements() == 1
    assert str(shape) == "(2, ?, 5)"
    assert str(tf.TensorShape(None)) == "<unknown>"
    assert str(tf.TensorShape([4])) == "(4,)"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [  # as in TensorFlow 1.15
        (tf.TensorShape([1, 2]), [3, None], [1, 2, 3, None]),
        (tf.TensorShape([1, 2]), (3,), [1, 2, 3]),
        ([2], tf.TensorShape([1]), [2, 1]),
        ((2,), tf.TensorShape([1]), [2, 1]),
        (tf.TensorShape([1]), tf.TensorShape([None]), [1, None]),
        (tf.TensorShape([1]), tf.Dimension(3), [1, 3]),
    ],
    ids=repr,
)
def test_shapes_are_joined_with_lists(first, second, expected):
    joined = first + second
    assert isinstance(joined, tf.TensorShape) and joined.as_list() == expected


def test_nothing_is_known_of_a_shape_that_is_joined_with_an_unknown_one():
    assert (tf.TensorShape([1]) + tf.TensorShape(None)).ndims is None


def test_an_unknown_rank_says_so():
    unknown = tf.TensorShape(None)
    assert unknown.dims is None
    for use in (unknown.as_list, lambda: len(unknown), lambda: list(unknown)):
        with pytest.raises(ValueError, match="rank"):
            use()


def test_ranks_are_asserted():
    tf.TensorShape([1, None]).assert_has_rank(2)
    tf.TensorShape(None).assert_has_rank(2)
    assert tf.TensorShape(None).with_rank(2) == [None, None]
    with pytest.raises(ValueError, match="rank 3"):
        tf.TensorShape([1, None]).assert_has_rank(3)
    with pytest.raises(ValueError, match="incompatible"):
        tf.TensorShape([1, None]).with_rank(3)


def test_dimensions_count():
    known, unknown = tf.Dimension(6), tf.Dimension(None)
    assert (known + 2, 2 + known, known - 1, known * 2, known // 4, known % 4) == (8, 8, 5, 12, 1, 2)
    assert (8 - known, 2 * known, 13 // known, 13 % known) == (2, 12, 2, 1)
    for result in (known + unknown, 1 - unknown, unknown // 2, 3 % unknown, unknown * None):
        assert isinstance(result, tf.Dimension) and result.value is None
    assert known > 5 and known >= 6 and known < 7 and known <= 6
    assert range(10)[known] == 6
    with pytest.raises(TypeError, match=r"tf\.shape"):
        int(unknown)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_comparing_with_an_unknown_dimension_gives_none(compare):
    unknown = tf.Dimension(None)
    assert compare(unknown, 3) is compare(3, unknown) is compare(unknown, None) is compare(unknown, unknown) is None


def test_what_is_no_dimension():
    assert tf.Dimension(6) != "x" and tf.Dimension(6) != -1
    with pytest.raises(ValueError, match="-1"):
        tf.Dimension(-1)
    for value in ("x", 2.5, -1):
        with pytest.raises(TypeError):
            tf.Dimension(6) + value
    for call in (lambda: 6 / tf.Dimension(2), lambda: tf.Dimension(6) / 2):
        with pytest.raises(TypeError, match="//"):
            call()


def test_dimensions_merge():
    known, unknown = tf.Dimension(6), tf.Dimension(None)
    assert known.merge_with(None) == unknown.merge_with(6) == known.merge_with(known) == 6
    assert unknown.merge_with(None).value is None
    assert known.is_compatible_with(6) and unknown.is_compatible_with(7) and not known.is_compatible_with(7)
    with pytest.raises(ValueError, match="not compatible"):
        known.merge_with(7)
    assert (repr(known), str(known), repr(unknown), str(unknown)) == ("Dimension(6)", "6", "Dimension(None)", "?")
    assert (tf.dimension_value(known), tf.dimension_value(unknown), tf.dimension_value(3)) == (6, None, 3)
    shape = tf.TensorShape([1, 2])
    assert (tf.dimension_at_index(shape, 1), tf.dimension_at_index(tf.TensorShape(None), 1).value) == (2, None)


def test_shapes_are_joined_like_lists():
    shape = tf.TensorShape([2, None])
    sizes = [3]
    assert shape + sizes == [2, None, 3] and sizes + shape == [3, 2, None] and shape + shape == [2, None, 2, None]
    assert (shape + None).rank is None


def test_what_two_shapes_have_in_common():
    shape = tf.TensorShape([2, 3])
    assert shape.most_specific_compatible_shape([2, 4]) == [2, None]
    assert shape.most_specific_compatible_shape([2]).rank is None
    assert shape.with_rank_at_least(2) is shape.with_rank_at_most(2) is shape
    for call in (
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_same_rank([2]),
        tf.TensorShape([2, None]).assert_is_fully_defined,
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("dims", [None, [], [2, None]], ids=repr)
def test_shapes_become_messages_and_come_back(dims):
    proto = tf.TensorShape(dims).as_proto()
    assert tf.TensorShape(proto) == tf.TensorShape(dims)
    assert proto.unknown_rank == (dims is None)


@pytest.mark.parametrize(
    ("key", "rank"), [(slice(None, 2), 2), (slice(1, 3), 2), (slice(1, None), None), (slice(None, -1), None)], ids=str
)
def test_slices_of_a_shape_of_unknown_rank(key, rank):
    assert tf.TensorShape(None)[key].rank == rank


def test_types_are_made_from_their_numbers():
    assert tf.DType(1) is tf.float32 and tf.dtypes.DType(19) is tf.half
    for number in (0, -1, 24, None):
        with pytest.raises(TypeError):
            tf.DType(number)
