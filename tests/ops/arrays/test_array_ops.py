"""Array operations together: static shapes of computed shapes, indexing, broadcasting, values beyond the battery."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.interpreter import interpret
from tfray.errors import InvalidArgumentError, OperatorNotAllowedInGraphError, UnimplementedError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_shape, constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor
from tfray.framework.importer import import_graph_def
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.tensor_shape import TensorShape
from tfray.gradients import gradients
from tfray.ops.arrays import array_ops as tf
from tfray.ops.arrays import broadcast_ops
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.math import conversion_ops


def types_of(graph: Graph) -> list[str]:
    return [op.type for op in graph.get_operations()]


# -- static shapes of computed shapes ------------------------------------------------------------------


def x_of_partly_known_shape() -> Tensor:
    return placeholder("float32", [None, 4, 5])


VALUE = np.arange(40, dtype=np.float32).reshape(2, 4, 5)

COMPUTED_SHAPES = {
    "whole shape": (lambda x: tf.zeros(tf.shape(x)), (None, 4, 5)),
    "entry": (lambda x: tf.zeros([tf.shape(x)[0], 7]), (None, 7)),
    "known entry": (lambda x: tf.zeros([tf.shape(x)[1], 7]), (4, 7)),
    "negative entry": (lambda x: tf.zeros(tf.stack([tf.shape(x)[-1], 3])), (5, 3)),
    "stack": (lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], 20])), (None, 20)),
    "concat": (lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:2], [1, 5]], 0)), (None, 4, 1, 5)),
    "unstack": (lambda x: tf.fill(tf.unstack(tf.shape(x))[::-1], 1.0), (5, 4, None)),
    "split": (lambda x: tf.ones(tf.split(tf.shape(x), [1, 2], 0)[1]), (None, None)),
    "cast": (lambda x: tf.zeros(tf.cast(tf.shape(x, out_type="int64"), "int32")), (None, 4, 5)),
    "identity": (lambda x: tf.zeros(tf.identity(tf.shape(x))), (None, 4, 5)),
    "slice": (lambda x: tf.zeros(tf.slice(tf.shape(x), [1], [2])), (4, 5)),
    "rest of slice": (lambda x: tf.zeros(tf.slice(tf.shape(x), [1], [-1])), (4, 5)),
    "reversed": (lambda x: tf.zeros(tf.shape(x)[::-1]), (5, 4, None)),
    "expand_dims": (lambda x: tf.zeros(tf.concat([tf.expand_dims(tf.shape(x)[0], 0), [3]], 0)), (None, 3)),
    "reshape": (lambda x: tf.zeros(tf.reshape(tf.shape(x)[1], [1])), (4,)),
    "size": (lambda x: tf.reshape(x, [tf.size(x)]), (None,)),
    "rank": (lambda x: tf.zeros([tf.rank(x)]), (3,)),
    "minus one": (lambda x: tf.reshape(x, [-1, 20]), (None, 20)),
    "broadcast": (lambda x: tf.broadcast_to(x, tf.concat([[3], tf.shape(x)], 0)), (3, None, 4, 5)),
    "broadcast shapes": (lambda x: tf.zeros(tf.broadcast_dynamic_shape(tf.shape(x), [6, 1, 1, 1])), (6, None, 4, 5)),
    "tile": (lambda x: tf.tile(x, [2, 1, tf.shape(x)[1]]), (None, 4, 20)),
    "tile known": (lambda x: tf.tile([[1.0]], [tf.shape(x)[0], tf.shape(x)[1]]), (None, 4)),
    "pad": (lambda x: tf.pad(x, [[0, 0], [1, tf.shape(x)[0]], [2, tf.shape(x)[1]]]), (None, None, 11)),
    "range": (lambda x: tf.range(tf.shape(x)[2]), (5,)),
    "range of unknown": (lambda x: tf.range(tf.shape(x)[0]), (None,)),
    "one_hot": (lambda x: tf.one_hot([0, 1], tf.shape(x)[1]), (2, 4)),
    "sequence_mask": (lambda x: tf.sequence_mask([0, 1], tf.shape(x)[1]), (2, 4)),
    "linspace": (lambda x: tf.linspace(0.0, 1.0, tf.shape(x)[1]), (4,)),
    "eye": (lambda x: tf.eye(tf.shape(x)[1], batch_shape=tf.shape(x)[:1]), (None, 4, 4)),
    "strided_slice bounds": (lambda x: x[:, : tf.shape(x)[1] : 2, tf.shape(x)[0] :], (None, 2, None)),
    "slice sizes": (lambda x: tf.slice(x, [0, 1, 0], tf.stack([tf.shape(x)[0], 2, 5])), (None, 2, 5)),
    "scatter_nd": (lambda x: tf.scatter_nd([[0]], tf.zeros([1, 4]), [tf.shape(x)[0], 4]), (None, 4)),
    "meshgrid": (lambda x: tf.meshgrid(tf.range(tf.shape(x)[1]), tf.range(3))[0], (3, 4)),
    "space_to_batch": (lambda x: tf.space_to_batch_nd(x, [2], [[0, 0]]), (None, 2, 5)),
    "paddings unknown": (
        lambda x: tf.space_to_batch_nd(tf.transpose(x, [1, 0, 2]), [2], [[0, 0 * tf.shape(x)[0]]]),
        (8, None, 5),
    ),
    "boolean_mask": (lambda x: tf.boolean_mask(x, [True, False, True, True], axis=1), (None, None, 5)),
    "gather": (lambda x: tf.gather(x, [[0, 1]], axis=1), (None, 1, 2, 5)),
    "transpose": (lambda x: tf.transpose(x, [1, 2, 0]), (4, 5, None)),
    "zeros_like": (lambda x: tf.zeros_like(x, dtype="int32"), (None, 4, 5)),
    "split of x": (lambda x: tf.split(x, 2, 1)[0], (None, 2, 5)),
}


@pytest.mark.parametrize("name", COMPUTED_SHAPES)
def test_computed_shape(name):
    build, expected = COMPUTED_SHAPES[name]
    x = x_of_partly_known_shape()
    result = build(x)
    assert result.shape.sizes == expected
    assert result.shape.is_compatible_with(np.shape(interpret(result, {x: VALUE})))


def test_shapes_of_unknown_rank_stay_unknown():
    x = placeholder("float32")
    assert tf.zeros(tf.shape(x)).shape.rank is None
    assert tf.reshape(x, tf.shape(x)).shape.rank is None
    assert tf.shape(x).shape.sizes == (None,)
    assert tf.transpose(x).shape.rank is None
    assert x[0].shape.rank is None


def test_sizes_of_unknown_rank_are_scalars():
    x, n = placeholder("float32"), placeholder("int32")
    assert tf.reshape(x, [n, n, 5]).shape.sizes == (None, None, 5)
    assert tf.reshape(x, [n, n]).shape.sizes == (None, None)
    assert tf.reshape(x, tf.concat([[n], [20]], 0)).shape.sizes == (None, 20)


def test_shape_of_a_known_shape_is_a_constant(graph):
    x = placeholder("float32", [2, 3])
    assert constant_value(tf.shape(x)).tolist() == [2, 3]
    assert constant_value(tf.size(x)) == 6
    assert constant_value(tf.rank(placeholder("float32", [None]))) == 1
    assert [shape.dtype.name for shape in tf.shape_n([x, x], "int64")] == ["int64", "int64"]
    assert not {"Shape", "Size", "Rank"} & set(types_of(graph))


def test_known_part_of_a_shape_is_a_constant(graph):
    x = x_of_partly_known_shape()
    assert constant_value(tf.shape(x)[1]) == 4
    assert constant_value(tf.shape(x)[1:]).tolist() == [4, 5]
    batch, height, width = tf.unstack(tf.shape(x))
    assert constant_value(batch) is None
    assert (constant_value(height), constant_value(width)) == (4, 5)


def test_shape_of_indexed_slices():
    slices = IndexedSlices(constant([[1.0]]), constant([2]), constant([5, 1], dtype="int32"))
    assert constant_value(tf.shape(slices, out_type="int64")).tolist() == [5, 1]


def test_sizes_may_come_in_every_form():
    shapes = [
        (2, 3),
        np.array([2, 3]),
        TensorShape([2, 3]),
        TensorShape([2, 3]).dims,
        [np.int32(2), constant(3)],
        constant(np.int64([2, 3])),
    ]
    for shape in shapes:
        assert tf.zeros(shape).shape.sizes == (2, 3)
        assert tf.reshape(tf.range(6), shape).shape.sizes == (2, 3)
    assert tf.reshape([1], []).shape.sizes == ()
    assert tf.zeros([]).shape.sizes == ()
    assert tf.zeros(3).shape.sizes == (3,)


def test_large_sizes_are_int64():
    tensor = tf.index_tensor([2**40])
    assert tensor.dtype is dtypes.int64


# -- zeros and ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype.name not in ("resource", "string")])
def test_zeros_and_ones(dtype):
    for build, expected in [(tf.zeros, 0), (tf.ones, 1)]:
        for shape in [(2, 3), (40, 50)]:
            value = interpret(build(shape, dtype))
            assert value.dtype == dtype.numpy
            np.testing.assert_array_equal(value, np.full(shape, expected).astype(dtype.numpy))


def test_zeros_of_strings_are_empty():
    assert interpret(tf.zeros([2], "string")).tolist() == [b"", b""]
    assert interpret(tf.zeros_like(constant(["a", "b"]))).tolist() == [b"", b""]
    with pytest.raises(InvalidArgumentError, match="ones has no meaning for strings"):
        tf.ones([2], "string")


def test_few_zeros_are_a_constant_and_many_are_not(graph):
    assert tf.zeros([10, 10]).op.type == "Const"
    assert tf.zeros([1000, 1000]).op.type == "Fill"
    assert tf.zeros_like(placeholder("float32", [2, 3])).op.type == "Const"
    assert tf.zeros_like(placeholder("float32", [2, 3]), False).dtype is dtypes.float32
    assert tf.zeros_like(placeholder("float32", [2, 3]), optimize=False).op.type == "Fill"
    with pytest.raises(InvalidArgumentError, match="cannot be negative"):
        tf.zeros([2, -1])


def test_a_number_is_the_shape_of_a_vector(graph):
    known = tf.size(constant([1.0, 2.0, 3.0]))
    open_size = placeholder("int32", [])
    for made, size in ((tf.ones(known), 3), (tf.zeros(4), 4), (tf.ones(open_size), None)):
        assert made.shape.as_list() == [size]
    assert interpret(tf.ones(known) + tf.ones(open_size), {open_size: np.int32(3)}).tolist() == [2, 2, 2]


def test_a_number_of_tiles_may_be_open_until_it_runs(graph):
    tiled = tf.tile(placeholder("float32", [2, 3]), [-1, 2])
    assert tiled.shape.as_list() == [None, 6]
    with pytest.raises(InvalidArgumentError, match=r"Expected multiples\[0\] >= 0, but got -1"):
        interpret(tf.tile(constant([[1.0]]), [-1, 2]))
    with pytest.raises(InvalidArgumentError, match=r"Expected multiples\[0\] >= 0, but got -2"):
        tf.tile(constant([[1.0]]), [-2, 2])


# -- indexing ------------------------------------------------------------------------------------------

SHAPE = (3, 4, 5)


def items(size: int) -> st.SearchStrategy:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.integers(-3, 3).filter(bool)
    return st.integers(-size, size - 1) | st.builds(slice, bound, bound, step)


@st.composite
def keys(draw) -> tuple:
    front = draw(st.integers(0, 3))
    back = draw(st.integers(0, 3 - front))
    key = [draw(items(size)) for size in SHAPE[:front]]
    if back or draw(st.booleans()):
        key.append(Ellipsis)
    key += [draw(items(size)) for size in SHAPE[3 - back :]]
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@settings(max_examples=150, deadline=None)
@given(keys(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_indexing_as_numpy_does(key, as_tensor):
    x = np.arange(60.0).reshape(SHAPE)
    expected = x[key]
    with Graph().as_default():
        tensor = placeholder("float64", SHAPE)
        static = tensor[key]
        assert static.shape == expected.shape
        feeds = {tensor: x}
        dynamic = tensor[tuple(_with_tensors(item, iter(as_tensor), feeds) for item in key)]
        assert dynamic.shape.is_compatible_with(expected.shape)
        for value in interpret([static, dynamic], feeds):
            np.testing.assert_array_equal(value, expected)
        (gradient,) = gradients(dynamic, tensor)
        counted = np.zeros(SHAPE)
        counted[key] = 1
        np.testing.assert_array_equal(interpret(gradient, feeds), counted)


def _with_tensors(item, choices, feeds):
    """The item of a key with some of its numbers as placeholders."""

    def part(number):
        if number is None or not next(choices):
            return number
        tensor = placeholder("int32", [])
        feeds[tensor] = number
        return tensor

    if isinstance(item, slice):
        return slice(part(item.start), part(item.stop), part(item.step))
    return part(item) if isinstance(item, int) else item


def test_static_indexing_takes_no_inputs():
    x = placeholder("float32", [3, 4])
    y = x[1, ::2, None, ...]
    assert y.op.type == "StridedSlice"
    assert y.op.inputs == (x,)
    assert y.op.attr("key") == "1,::2,new,..."


def test_iteration():
    rows = list(placeholder("float32", [3, None]))
    assert [row.shape.sizes for row in rows] == [(None,)] * 3
    with pytest.raises(OperatorNotAllowedInGraphError, match=r"iterating over `tf\.Tensor` is not allowed") as raised:
        iter(placeholder("float32", [None]))
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize("key", [True, np.True_, (0, False)])
def test_bools_are_no_indices(key):
    with pytest.raises(TypeError, match="boolean_mask"):
        placeholder("float32", [3, 4])[key]


def test_numpy_integers_and_dimensions_are_indices():
    x = placeholder("float32", [3, 4])
    assert x[np.int64(1), : x.shape[0]].op.attr("key") == "1,:3"
    assert x[np.array(1)].op.attr("key") == "1"


def test_a_malformed_key_is_refused():
    definition = graph_with(lambda x: x[0, 1:2])
    node = next(node for node in definition.node if node.op == "StridedSlice")
    for key in ["__import__('os')", "0,", "1:2:3:4", "$", ""]:
        node.attr["key"] = key
        with Graph().as_default(), pytest.raises(InvalidArgumentError, match="key"):
            import_graph_def(definition)


def graph_with(build):
    with Graph().as_default() as graph:
        build(placeholder("float32", [3, 4]))
        return graph.as_plain()


def test_strided_slice_of_computed_bounds():
    x, begin = placeholder("float32", [5, 6]), placeholder("int32", [2])
    y = tf.strided_slice(x, begin, [4, 6], [1, 2], shrink_axis_mask=1)
    value = np.arange(30.0, dtype=np.float32).reshape(5, 6)
    np.testing.assert_array_equal(interpret(y, {x: value, begin: [2, 1]}), value[2, 1:6:2])
    with pytest.raises(InvalidArgumentError, match="known length"):
        tf.strided_slice(x, placeholder("int32", [None]), [4, 6])
    with pytest.raises(InvalidArgumentError, match="have 1, 2 and 2 entries"):
        tf.strided_slice(x, [0], [4, 6], [1, 1])


# -- joining and taking apart --------------------------------------------------------------------------


def test_concat_of_one_tensor_and_of_a_tensor():
    x = constant([1, 2])
    np.testing.assert_array_equal(interpret(tf.concat(x, 0)), [1, 2])
    np.testing.assert_array_equal(interpret(tf.concat([x], 0)), [1, 2])


def test_axes_may_be_constant_tensors():
    x = placeholder("float32", [2, 3])
    assert tf.concat([x, x], constant(1)).shape.sizes == (2, 6)
    assert [part.shape.sizes for part in tf.split(x, constant(3), constant(1))] == [(2, 1)] * 3
    assert tf.gather(x, [0], axis=constant(-1)).shape.sizes == (2, 1)


def test_no_cast_from_or_to_strings():
    for build in (lambda: tf.cast(constant([1.0]), "string"), lambda: tf.cast(constant(["1"]), "float32")):
        with pytest.raises(UnimplementedError, match=r"Cast .* is not supported"):
            build()


def test_unstack_needs_a_number():
    with pytest.raises(InvalidArgumentError, match="Cannot infer num from shape"):
        tf.unstack(placeholder("float32", [None, 3]))
    assert len(tf.unstack(placeholder("float32", [None, 3]), axis=-1)) == 3


def test_nested_lists_of_tensors_are_packed():
    x = placeholder("float32", [])
    tensor = convert_to_tensor([[x, 1.0], [2.0, x]])
    assert tensor.shape.sizes == (2, 2)
    np.testing.assert_array_equal(interpret(tensor, {x: 7}), [[7, 1], [2, 7]])


def test_gradients_of_unused_parts_are_zero():
    x = placeholder("float64", [4])
    first, _ = tf.split(x, [1, 3])
    (gradient,) = gradients(first, x)
    np.testing.assert_array_equal(interpret(gradient, {x: np.ones(4)}), [1, 0, 0, 0])
    third = tf.unstack(x)[2]
    (gradient,) = gradients(third, x)
    np.testing.assert_array_equal(interpret(gradient, {x: np.ones(4)}), [0, 0, 1, 0])


# -- broadcasting --------------------------------------------------------------------------------------

NO_SUM = [
    ([2, 3], [2, 3], [[2, 3]]),
    ([None, 3], [None, 3], [[3]]),
    ([None, 3], [None, 3], [[]]),
    ([None, 3], [None, 3], [[1, 1]]),
    ([None, 1], [None, 1], [[1]]),
    (None, [None, None], [[]]),
]
SUM = [
    ([2, 3], [3], [[2, 3]]),
    ([2, 3], [2, 1], [[2, 3]]),
    ([None, 3], [None, 3], [[None, 3]]),
    ([None, 3], None, [[3]]),
    ([2, 3], [1, 3], [[2, 1]]),
]


@pytest.mark.parametrize(("result", "source", "others"), NO_SUM)
def test_nothing_is_summed_where_nothing_was_repeated(result, source, others):
    d, x = placeholder("float32", result), placeholder("float32", source)
    assert tf.sum_to_shape_of(d, x, *(placeholder("float32", other) for other in others)) is d


@pytest.mark.parametrize(("result", "source", "others"), SUM)
def test_repeated_elements_are_summed(result, source, others):
    d, x = placeholder("float32", result), placeholder("float32", source)
    summed = tf.sum_to_shape_of(d, x, *(placeholder("float32", other) for other in others))
    assert summed.op.type == "SumToShape"
    assert summed.shape == x.shape


def test_static_broadcast():
    assert tf.broadcast_static_shape([2, 1], [3]) == [2, 3]


# -- choosing and gathering ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("contiguous", [True, False])
def test_where_on_many_elements(dtype, contiguous):
    rng = np.random.default_rng(0)
    condition, x, y = (rng.integers(0, high, (200, 150)) for high in (2, 100, 100))
    arrays = [condition.astype(bool), x.astype(dtype), y.astype(dtype)]
    if not contiguous:
        arrays = [array.T for array in arrays]
    tensors = [placeholder(array.dtype) for array in arrays]
    value = interpret(tf.where(*tensors), dict(zip(tensors, arrays, strict=True)))
    np.testing.assert_array_equal(value, np.where(*arrays))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.complex128, object])
@pytest.mark.parametrize("perm", [(1, 0, 2), (2, 0, 1), (2, 1, 0), (0, 2, 1)])
def test_reshape_of_many_transposed_elements(dtype, perm):
    value = np.arange(40 * 50 * 60).reshape(40, 50, 60) % 251
    value = value.astype(dtype) if dtype is not object else value.astype("S").astype(object)
    x = placeholder(value.dtype)
    flat = interpret(tf.reshape(tf.transpose(x, perm), [-1]), {x: value})
    assert flat.tolist() == value.transpose(perm).ravel().tolist()


def test_coordinates_in_three_dimensions():
    condition = np.random.default_rng(0).random((7, 1, 11)) > 0.5
    np.testing.assert_array_equal(interpret(tf.where(constant(condition))), np.argwhere(condition))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64, np.complex64, np.complex128])
def test_band_of_a_transposed_view(dtype):
    x = placeholder(dtype, [None, None])
    value = np.arange(20).reshape(4, 5).astype(dtype)
    band = interpret(tf.matrix_band_part(tf.transpose(x), 1, 0), {x: value})
    np.testing.assert_array_equal(band, np.tril(np.triu(value.T, -1)))


@pytest.mark.parametrize("spread", [1, 10**6])
def test_unique_of_many(spread):
    x = np.random.default_rng(0).integers(-1000, 1000, 20000) * spread
    found = interpret(list(tf.unique_with_counts(constant(x))))
    expected = list(dict.fromkeys(x.tolist()))
    assert found[0].tolist() == expected
    np.testing.assert_array_equal(found[0][found[1]], x)
    np.testing.assert_array_equal(found[2], [np.count_nonzero(x == value) for value in expected])


def test_where_keeps_nan_out():
    x, bad = constant([1.0, 2.0]), constant([np.nan, np.inf])
    np.testing.assert_array_equal(interpret(tf.where([True, True], x, bad)), [1, 2])


def test_where_takes_both_or_neither():
    with pytest.raises(InvalidArgumentError, match="both x and y"):
        tf.where([True], [1.0])


def test_gradient_of_gather_is_sparse():
    table, indices = placeholder("float64", [5, 2]), placeholder("int32", [2, 2])
    (gradient,) = gradients(tf.gather(table, indices), table)
    assert isinstance(gradient, IndexedSlices)
    assert gradient.values.shape.sizes[1:] == (2,)
    assert gradient.indices.shape.rank == 1
    feeds = {table: np.ones((5, 2)), indices: [[1, 4], [1, 0]]}
    np.testing.assert_array_equal(interpret(convert_to_tensor(gradient), feeds)[:, 0], [1, 2, 0, 0, 1])


def test_gradient_of_gather_nd_of_rows_is_sparse():
    """So momentum decays only where rows are taken, as in TensorFlow 1.15."""
    table, indices = placeholder("float64", [5, 2]), placeholder("int32", [None, 1])
    (gradient,) = gradients(tf.gather_nd(table, indices), table)
    assert isinstance(gradient, IndexedSlices)
    feeds = {table: np.ones((5, 2)), indices: [[1], [4], [1]]}
    np.testing.assert_array_equal(interpret(convert_to_tensor(gradient), feeds)[:, 0], [0, 2, 0, 0, 1])
    (gradient,) = gradients(tf.gather_nd(table, [[1, 0]]), table)
    assert not isinstance(gradient, IndexedSlices)


@pytest.mark.parametrize("shape", [[None, 2], [5, None], None])
@pytest.mark.parametrize("rank", [0, 1, 2, None])
def test_gradient_of_gather_with_unknown_shapes(shape, rank):
    table = placeholder("float64", shape)
    indices = placeholder("int32", None if rank is None else [None] * rank)
    (gradient,) = gradients(tf.gather(table, indices), table)
    value = np.array([1, 4, 1]).reshape(3) if rank in (1, None) else np.array(1).reshape([1] * rank)
    dense = interpret(convert_to_tensor(gradient), {table: np.ones((5, 2)), indices: value})
    np.testing.assert_array_equal(dense, np.bincount(value.ravel(), minlength=5)[:, None] * np.ones(2))


def test_gather_of_no_columns_keeps_its_rows():
    table, indices = placeholder("float32", [3, 0]), placeholder("int32", [None, None])
    (gradient,) = gradients(tf.gather(table, indices), table)
    values, places = interpret(
        [gradient.values, gradient.indices], {table: np.zeros((3, 0)), indices: np.zeros((2, 2))}
    )
    assert values.shape == (4, 0)
    assert places.shape == (4,)


def test_stitch_undoes_partition():
    x = placeholder("float32", [None, 2])
    places = constant([2, 0, 1, 0, 2])
    parts = tf.dynamic_partition(x, places, 3)
    where = tf.dynamic_partition(tf.range(5), places, 3)
    value = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(interpret(tf.dynamic_stitch(where, parts), {x: value}), value)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3)])
def test_each_part_has_its_slices_in_order(shape, count):
    rng = np.random.default_rng(5)
    data = rng.standard_normal((*shape, 2)).astype(np.float32)
    places = rng.integers(0, count, shape, np.int32)
    rows, flat = data.reshape(-1, 2), places.reshape(-1)
    parts = interpret(tf.dynamic_partition(constant(data), constant(places), count))
    for k, part in enumerate(parts):
        np.testing.assert_array_equal(
            part, np.array([row for row, place in zip(rows, flat, strict=True) if place == k]).reshape(-1, 2)
        )


@pytest.mark.parametrize("count", [1, 3])
def test_a_part_that_does_not_exist(count):
    with pytest.raises(InvalidArgumentError, match=rf"{count} is not in \[0, {count}\)"):
        interpret(tf.dynamic_partition(constant([1.0, 2.0]), constant([0, count]), count))


def test_unique_has_names():
    found = tf.unique_with_counts([5, 3, 5])
    assert [tensor.dtype.name for tensor in found] == ["int32"] * 3
    assert interpret([found.y, found.idx, found.count])[2].tolist() == [2, 1]
    assert tf.unique([5, 3, 5])._fields == ("y", "idx")


# -- dtypes --------------------------------------------------------------------------------------------


def test_cast_to_the_same_dtype_is_nothing():
    x = placeholder("float32", [2])
    assert tf.cast(x, "float32") is x
    assert tf.to_float(x) is x


def test_saturating_between_floats():
    x = placeholder("float64", [None])
    value = np.array([-1e300, -np.inf, -2.5, 0.25, 7e4, np.inf])
    y = conversion_ops.saturate_cast(x, "float16")
    assert y.dtype is dtypes.float16
    assert interpret(y, {x: value}).tolist() == [-65504, -65504, -2.5, 0.25, 65504, 65504]
    (gradient,) = gradients(conversion_ops.saturate_cast(x, "float32"), x)
    assert interpret(gradient, {x: value}).tolist() == [0, 0, 1, 1, 1, 0]
    wide = conversion_ops.saturate_cast(placeholder("float32", name="narrow"), "float64")
    assert interpret(wide, {wide.graph.get_tensor_by_name("narrow:0"): np.inf}) == np.inf
    assert conversion_ops.saturate_cast(x, "float64") is x


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_single(dtype):
    x = placeholder(dtype, [5000, 1])
    total = interpret(tf.sum_to_shape(x, [1]), {x: np.full((5000, 1), 1.0).astype(x.dtype.numpy)})
    assert float(total[0]) == float(np.array(5000.0).astype(x.dtype.numpy))


def test_gradient_stops_at_integers():
    x = placeholder("float32", [2])
    assert gradients(tf.cast(tf.cast(x, "int32"), "float32"), x) == [None]


def test_range_takes_the_widest_dtype():
    assert tf.range(3).dtype is dtypes.int32
    assert tf.range(np.int64(3)).dtype is dtypes.int64
    assert tf.range(0, 1, 0.5).dtype is dtypes.float32
    assert tf.range(constant(3, "int64"), 5).dtype is dtypes.int64
    assert tf.range(2**40, 2**40 + 2).dtype is dtypes.int64
    assert tf.range(3, dtype="float64").dtype is dtypes.float64


def test_floats_count_without_drift():
    value = interpret(tf.range(0.0, 1.0, 0.1))
    assert value.shape == (10,)
    np.testing.assert_allclose(value, np.arange(10) / 10, rtol=1e-6)


def test_strings_of_rank_0_stay_arrays():
    words = constant([["to", "be"], ["or", "not"]])
    word = words[1, 0]
    pieces = [
        word,
        tf.gather_nd(words, [1, 0]),
        tf.gather(words[1], 0),
        tf.unstack(words[1])[0],
        tf.squeeze(words[1:, :1]),
        tf.reshape(word, []),
        tf.identity(word),
    ]
    for value in interpret(pieces):
        assert isinstance(value, np.ndarray)
        assert value.item() == b"or"
    assert interpret(tf.stack([word, word])).tolist() == [b"or", b"or"]
    assert interpret(tf.where(True, word, words[0, 0])).item() == b"or"
    assert interpret(tf.one_hot(1, 3, on_value="x", off_value="")).tolist() == [b"", b"x", b""]


# -- helpers of other families -------------------------------------------------------------------------


def test_constant_shape_of_unstacked_shapes():
    x = x_of_partly_known_shape()
    assert constant_shape(tf.shape(x)) == [None, 4, 5]
    parts = tf.unstack(tf.shape(x))
    assert constant_shape(tf.stack(parts[::-1])) == [5, 4, None]


def test_known_entries():
    x = x_of_partly_known_shape()
    assert tf.known_entries(tf.shape(x)) == [None, 4, 5]
    assert tf.known_entries(tf.shape(x)[0]) == [None]
    assert tf.known_entries(placeholder("int32", [3])) == [None] * 3
    assert tf.known_entries(placeholder("int32")) is None
    assert tf.known_entries(tf.split(tf.shape(x), 3)[1]) == [None]


@pytest.mark.parametrize(
    ("condition", "x", "y"),
    [
        ([[True], [False]], [1.0, 2.0], 0.0),
        (True, [1.0, 2.0], [[3.0], [4.0]]),
        ([True, False], [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]),  # by column, unlike `where`
    ],
)
def test_where_v2_broadcasts_as_numpy(condition, x, y):
    condition, x, y = np.array(condition), np.float32(x), np.float32(y)
    expected = np.where(condition, x, y)
    fed = [placeholder(value.dtype, None) for value in (condition, x, y)]
    feeds = dict(zip(fed, (condition, x, y), strict=True))
    np.testing.assert_array_equal(interpret(broadcast_ops.where_v2(condition, x, y)), expected)
    np.testing.assert_array_equal(interpret(broadcast_ops.where_v2(*fed), feeds), expected)
    d_x, d_y = gradients(broadcast_ops.where_v2(*fed), fed[1:])
    mask = np.broadcast_to(condition, expected.shape)
    for d, value, chosen in ((d_x, x, mask), (d_y, y, ~mask)):
        assert np.shape(interpret(d, feeds)) == value.shape and np.sum(interpret(d, feeds)) == chosen.sum()


@pytest.mark.parametrize("mask", [[True, False, True], [[True, False], [False, False], [True, True]]])
@pytest.mark.parametrize("of", [np.array, constant])
def test_masks_are_indices(mask, of):
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(interpret(constant(x)[of(mask)]), x[np.array(mask)])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda x: x["name"], TypeError, "Only integers, slices"),
        (lambda x: x[[0.5]], TypeError, "Only integers, slices"),
        (lambda x: x[..., 0, ...], ValueError, "Multiple ellipses not allowed"),
        (lambda x: x[7], ValueError, "slice index 7 .* out of bounds"),
        (lambda x: x[constant(True)], ValueError, "mask cannot be scalar"),
        (lambda x: x[placeholder("bool")], ValueError, "Number of mask dimensions must be specified"),
        (lambda x: tf.reverse(x, [-30]), ValueError, "is out of valid range"),
        (lambda x: tf.reverse(x, [0, -2]), ValueError, "axis 0 specified more than once"),
        (lambda x: tf.stack([x, x], axis=4), ValueError, r"axis = 4 not in \[-3, 3\)"),
        (lambda x: tf.where([True, False], [1, 2, 3], [4, 5, 6]), ValueError, "must be equal, but are 3 and 2"),
        (lambda x: tf.expand_dims(x, axis=0, dim=0), ValueError, "Cannot specify both 'axis' and 'dim'"),
        (lambda x: tf.reshape(x, [4, -1]), ValueError, "must be evenly divisible by 4 but is 6"),
        (lambda x: tf.pad(x, [1, 2]), ValueError, "Shape must be rank 2 but is rank 1"),
        (lambda x: tf.gather_nd(x, [[0, 0, 0]]), ValueError, "index innermost dimension length must be <= params rank"),
    ],
)
def test_refusals_have_the_words_of_tensorflow(make, error, match):
    with pytest.raises(error, match=match):
        make(constant(np.zeros((3, 2))))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: tf.gather([[0, 1], [2, 3]], [[0, 7]]), r"indices\[0,1\] = 7 is not in \[0, 2\)"),
        (lambda: tf.gather([5, 6], -1), r"indices = -1 is not in \[0, 2\)"),
        (lambda: tf.gather_nd([0, 1, 2], [[0], [7]]), r"indices\[1\] = \[7\] does not index into param shape \[3\]"),
    ],
)
def test_wrong_indices_are_told_with_their_places(make, match):
    with pytest.raises(InvalidArgumentError, match=match):
        interpret(make())


def test_what_is_known_of_padded_shapes():
    some = placeholder(dtypes.int32)
    source = tf.zeros([4, 4])
    of_rank_2 = placeholder(dtypes.int32, [None, None])
    known = [
        (some, [[2, 2], [2, 2]], [None, None]),  # the paddings tell the rank
        (some, [[1, 2], some], [None, None]),
        (some, placeholder(dtypes.int32, [3, 2]), [None, None, None]),
        (of_rank_2, [[1, 2], some], [None, None]),
        (source, [[1, 2], some], [7, None]),
        (source, [[some, 0], [1, 2]], [None, 7]),
        (source, [constant(1, shape=[2]), [0, some]], [6, None]),
    ]
    assert [tf.pad(tensor, paddings).shape.as_list() for tensor, paddings, _ in known] == [each[2] for each in known]
    assert tf.pad(some, some).shape.rank is None
