"""Operations on sparse tensors, against the same on dense ones; gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.op_samples import grid
from tfray.ops.sparse import sparse_cross_ops

SIZES = (3, 4, 2)
PLACES = np.array([[0, 0, 1], [0, 3, 0], [2, 0, 0], [2, 1, 1], [2, 3, 0]])
OTHERS = np.array([[0, 3, 0], [1, 1, 1], [2, 3, 1]])
FLAT, FLAT_OTHERS = (np.array([[0, 1], [2, 0], [2, 2], [2, 3]]), np.array([[0, 1], [1, 3]]))
X, Y = grid(5), grid(3, seed=1)


def sparse(values, places=PLACES, sizes=SIZES):
    return tf.SparseTensor(places, values, np.array(sizes))


def dense(values, places=PLACES, sizes=SIZES):
    array = np.zeros(sizes, np.asarray(values).dtype)
    array[tuple(places.T)] = values
    return array


def flat(values, places=FLAT):
    return sparse(values, places, (3, 4))


def flat_dense(values, places=FLAT):
    return dense(values, places, (3, 4))


def to_dense(result):
    if isinstance(result, (list, tuple)):
        return [to_dense(each) for each in result]
    return tf.sparse_tensor_to_dense(result) if isinstance(result, tf.SparseTensor) else result


def masked(reduce, axis, keepdims=False):
    """Reduce the elements that are there; 0 where there are none."""

    def reference(x):
        there = dense(np.ones(5), PLACES)
        worst = -np.inf if reduce is np.max else 0.0
        found = reduce(np.where(there > 0, dense(x), worst), axis=axis, keepdims=keepdims)
        return np.where(np.isinf(found), 0, found)

    return reference


def softmax(x):
    weights = np.where(dense(np.ones(5)) > 0, np.exp(dense(x)), 0)
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


TWO = [grid(4), grid(2, seed=1)]
MATRIX = grid(4, 5, seed=2)
CASES = [
    ("transpose", lambda x: tf.sparse_transpose(sparse(x)), [X], lambda x: dense(x).T),
    ("transpose_to", lambda x: tf.sparse_transpose(sparse(x), [1, 2, 0]), [X], lambda x: dense(x).transpose(1, 2, 0)),
    ("reshape", lambda x: tf.sparse_reshape(sparse(x), [6, -1]), [X], lambda x: dense(x).reshape(6, 4)),
    ("expand", lambda x: tf.sparse.expand_dims(sparse(x), 1), [X], lambda x: dense(x)[:, None]),
    ("expand_last", lambda x: tf.sparse.expand_dims(sparse(x)), [X], lambda x: dense(x)[..., None]),
    ("expand_tensor", lambda x: tf.sparse.expand_dims(sparse(x), tf.constant(-2)), [X], lambda x: dense(x)[:, :, None]),
    (
        "expand_unknown",
        lambda x: tf.sparse.expand_dims(sparse(x), tf.placeholder_with_default(-3, [])),
        [X],
        lambda x: dense(x)[:, None],
    ),
    ("slice", lambda x: tf.sparse_slice(sparse(x), [0, 1, 0], [3, 9, 1]), [X], lambda x: dense(x)[:, 1:, :1]),
    ("slice_outside", lambda x: tf.sparse_slice(sparse(x), [9, 1, 0], [3, 9, 1]), [X], lambda x: dense(x)[9:, 1:, :1]),
    (
        "retain",
        lambda x: tf.sparse_retain(sparse(x), [True, False, True, True, False]),
        [X],
        lambda x: dense(x * [1, 0, 1, 1, 0]),
    ),
    *[
        (
            f"split_{count}_{axis}",
            lambda x, count=count, axis=axis: tf.sparse_split(sp_input=sparse(x), num_split=count, axis=axis),
            [X],
            lambda x, count=count, axis=axis: np.array_split(dense(x), count, axis),
        )
        for count, axis in [(2, 0), (3, 1), (2, -1), (1, 0)]
    ],
    *[
        (
            f"concat_{axis}",
            lambda x, y, axis=axis: tf.sparse_concat(axis, [sparse(x), sparse(y, OTHERS)]),
            [X, Y],
            lambda x, y, axis=axis: np.concatenate([dense(x), dense(y, OTHERS)], axis),
        )
        for axis in (0, 1, -1)
    ],
    (
        "concat_expanded",
        lambda x, y: tf.sparse_concat(1, [flat(x), sparse(y, FLAT_OTHERS, (5, 4))], expand_nonconcat_dim=True),
        TWO,
        lambda x, y: np.concatenate([np.pad(flat_dense(x), [(0, 2), (0, 0)]), dense(y, FLAT_OTHERS, (5, 4))], 1),
    ),
    (
        "reset",
        lambda x: tf.sparse_reset_shape(flat(x), [4, 6]),
        TWO[:1],
        lambda x: np.pad(flat_dense(x), [(0, 1), (0, 2)]),
    ),
    ("reset_tight", lambda x: tf.sparse_reset_shape(sparse(x, FLAT, (7, 7))), TWO[:1], flat_dense),
    (
        "fill_rows",
        lambda x, d: tf.sparse_fill_empty_rows(flat(x), d)[0],
        [grid(4), np.float64(1.5)],
        lambda x, d: flat_dense([*x, d], np.concatenate([FLAT, [[1, 0]]])),
    ),
    ("add", lambda x, y: tf.sparse_add(sparse(x), sparse(y, OTHERS)), [X, Y], lambda x, y: dense(x) + dense(y, OTHERS)),
    ("add_dense", lambda x, y: tf.sparse_add(flat(x), y), [grid(4), grid(3, 4)], lambda x, y: flat_dense(x) + y),
    ("dense_add", lambda x, y: tf.sparse_add(y, flat(x)), [grid(4), grid(3, 4)], lambda x, y: flat_dense(x) + y),
    (
        "add_above",
        lambda x, y: tf.sparse_add(sparse(x), sparse(y, OTHERS), threshold=1.0),
        [X, Y],
        lambda x, y: np.where(abs(dense(x) + dense(y, OTHERS)) >= 1, dense(x) + dense(y, OTHERS), 0),
    ),
    *[
        (
            name,
            lambda x, y, function=function: function(sparse(x), sparse(y, OTHERS)),
            [X, Y],
            lambda x, y, reference=reference: reference(dense(x), dense(y, OTHERS)),
        )
        for name, function, reference in [
            ("maximum", tf.sparse_maximum, np.maximum),
            ("minimum", tf.sparse_minimum, np.minimum),
        ]
    ],
    ("times", lambda x, y: flat(x) * y, [grid(4), grid(3, 4)], lambda x, y: flat_dense(x) * y),
    ("times_row", lambda x, y: flat(x) * y, [grid(4), grid(4, seed=1)], lambda x, y: flat_dense(x) * y),
    ("times_column", lambda x, y: flat(x) * y, [grid(4), grid(3, 1)], lambda x, y: flat_dense(x) * y),
    ("times_number", lambda x, y: flat(x) * y, [grid(4), grid()], lambda x, y: flat_dense(x) * y),
    ("divided", lambda x, y: flat(x) / y, [grid(4), grid(3, 1)], lambda x, y: flat_dense(x) / y),
    ("softmax", lambda x: tf.sparse_softmax(sparse(x)), [X], softmax),
    *[
        (
            f"{name}_{axis}_{keepdims}",
            lambda x, function=function, axis=axis, keepdims=keepdims: function(sparse(x), axis, keepdims=keepdims),
            [X],
            masked(reduce, axis if axis is None or isinstance(axis, int) else tuple(axis), keepdims),
        )
        for name, reduce, functions in [
            ("sum", np.sum, (tf.sparse_reduce_sum, tf.sparse_reduce_sum_sparse)),
            ("max", np.max, (tf.sparse_reduce_max, tf.sparse_reduce_max_sparse)),
        ]
        for function in functions
        for axis in (None, 0, -1, [0, 2])
        for keepdims in (False, True)
    ],
    (
        "matmul",
        lambda x, y: tf.sparse_tensor_dense_matmul(flat(x), y),
        [grid(4), MATRIX],
        lambda x, y: flat_dense(x) @ y,
    ),
    (
        "eye",
        lambda x: tf.sparse_tensor_dense_matmul(tf.sparse.eye(4, 3, tf.float64), x),
        [grid(3, 2)],
        lambda x: np.eye(4, 3) @ x,
    ),
]


@pytest.mark.parametrize(
    ("build", "inputs", "reference"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
@pytest.mark.parametrize("is_known", [True, False])
def test_value(build, inputs, reference, is_known):
    tensors = [tf.placeholder(np.asarray(x).dtype, np.shape(x) if is_known else None) for x in inputs]
    with tf.Session() as session:
        found = session.run(to_dense(build(*tensors)), dict(zip(tensors, inputs, strict=True)))
    expected = reference(*inputs)
    for value, wanted in zip(
        *((each if isinstance(each, list) else [each]) for each in (found, expected)), strict=True
    ):
        assert np.shape(value) == np.shape(wanted)
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("build", "inputs"), [case[1:3] for case in CASES], ids=[case[0] for case in CASES])
def test_gradient(build, inputs):
    check_gradients(lambda *tensors: to_dense(build(*tensors)), inputs)


def test_the_gradient_of_a_slice_has_the_shape_of_all_values():
    values = tf.constant([1.0, 2.0, 3.0])
    part = tf.sparse_slice(tf.SparseTensor([[0], [2], [5]], values, [6]), [1], [4])
    gradient = tf.gradients(part.values * part.values, values)[0]
    assert isinstance(gradient, tf.Tensor)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(gradient), [0, 4, 0])


# -- fed sparse tensors of unknown shape ---------------------------------------------------------------


def test_fed_sparse_tensors():
    fed = tf.sparse_placeholder(tf.float32, [None, None, None])
    results = [
        tf.sparse_transpose(fed),
        tf.sparse_slice(fed, [0, 0, 0], [2, 4, 2]),
        tf.sparse_concat(1, [fed, fed]),
        *tf.sparse_split(sp_input=fed, num_split=2, axis=1),
        tf.sparse_softmax(fed),
        tf.sparse_fill_empty_rows(fed, 0.5)[0],
        fed * tf.constant([[2.0], [2], [2], [2]]),
    ]
    shapes = [(2, 4, 3), (2, 4, 2), (3, 8, 2), (3, 2, 2), (3, 2, 2), SIZES, SIZES, SIZES]
    with tf.Session() as session:
        values = session.run(results, {fed: (PLACES, X, SIZES)})
        assert [tuple(value.dense_shape) for value in values] == shapes
        (empty,) = session.run([tf.sparse_transpose(fed)], {fed: (PLACES[:0], X[:0], SIZES)})
        assert empty.indices.shape == (0, 3) and empty.dense_shape.tolist() == [2, 4, 3]


@pytest.mark.parametrize(
    "build",
    [
        tf.sparse_transpose,
        *[lambda x, axis=axis: tf.sparse_concat(axis, [x, x]) for axis in (1, -1)],
        lambda x: tf.sparse_concat(0, [x, x], expand_nonconcat_dim=True),
        *[lambda x, axis=axis: tf.sparse_split(sp_input=x, num_split=2, axis=axis)[0] for axis in (1, -1)],
        tf.sparse_softmax,
        tf.sparse_reduce_sum,
        *[lambda x, axis=axis: tf.sparse_reduce_sum(x, axis) for axis in (1, -1, [0, 2])],
        lambda x: tf.sparse_reduce_max(x, -1, keepdims=True),
        lambda x: tf.sparse_reduce_sum_sparse(x, [1, 2]),
        lambda x: tf.sparse_reduce_max_sparse(x, keepdims=True),
        lambda x: tf.nn.safe_embedding_lookup_sparse(tf.ones([9, 2]), tf.cast(x, tf.int64)),
    ],
)
def test_only_a_step_knows_the_rank(build):
    """As of `tf.sparse_placeholder` without a shape: results are those of a known one."""
    known, unknown = tf.sparse_placeholder(tf.float32, SIZES), tf.sparse_placeholder(tf.float32)
    with tf.Session() as session:
        fed = PLACES, X, SIZES
        expected, found = session.run([build(known), build(unknown)], {known: fed, unknown: fed})
    for one, other in zip(tf.nest.flatten(expected), tf.nest.flatten(found), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("axis", [3, -4])
def test_a_step_finds_that_there_is_no_such_dimension(axis):
    x = tf.sparse_placeholder(tf.float32)
    results = tf.sparse_concat(axis, [x, x]), tf.sparse_split(sp_input=x, num_split=2, axis=axis)
    with tf.Session() as session:
        for result in (*results, tf.sparse_reduce_sum(x, axis), tf.sparse_reduce_max_sparse(x, axis)):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(result, {x: (PLACES, X, SIZES)})


def test_rows_that_were_empty():
    filled, is_empty = tf.sparse_fill_empty_rows(flat([1, 2, 3, 4]), 9)
    with tf.Session() as session:
        value, flags = session.run([filled, is_empty])
    assert flags.tolist() == [False, True, False]
    assert value.indices.tolist() == [[0, 1], [1, 0], [2, 0], [2, 2], [2, 3]] and value.values.tolist() == [
        1,
        9,
        2,
        3,
        4,
    ]


def test_from_dense_and_back():
    for array in (grid(2, 3) * [1, 0, 1], np.array([[1, 0], [0, 2]]), np.array([["a", ""], ["", "b"]])):
        made = tf.sparse.from_dense(array)
        with tf.Session() as session:
            value, back = session.run([made, tf.sparse.to_dense(made)])
        assert len(value.values) == sum(bool(item) for item in array.flat)
        assert (back == (array if array.dtype.kind != "U" else np.char.encode(array).astype(object))).all()


def test_merged_ids_and_indicators():
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], np.array([3, 1, 0, 3]), [3, 2])
    values = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], [5.0, 6, 7, 8], [3, 2])
    more = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], np.array([0, 1, 0, 1]), [3, 2])
    with tf.Session() as session:
        merged, both, flags = session.run(
            [
                tf.sparse_merge(ids, values, 4),
                tf.sparse_merge([ids, more], values, [4, 2]),
                tf.sparse_to_indicator(ids, 4),
            ]
        )
    assert merged.indices.tolist() == [[0, 1], [0, 3], [1, 0], [2, 3]] and merged.values.tolist() == [6, 5, 7, 8]
    assert both.indices.tolist() == [[0, 1, 1], [0, 3, 0], [1, 0, 0], [2, 3, 1]]
    assert flags.tolist() == [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]]


def test_rows_left_out_of_slices():
    x = tf.constant(grid(4, 2))
    (slices,) = tf.gradients(tf.gather(x, [3, 1, 0]), [x])
    with tf.Session() as session:
        value = session.run(tf.sparse_mask(slices, [1]))
    assert value.indices.tolist() == [3, 0] and value.values.shape == (2, 2)


def test_dense_products_with_zeros():
    with tf.Session() as session:
        found = session.run(tf.sparse_matmul([[1.0, 0]], [[2.0, 3]], transpose_b=True, a_is_sparse=True))
    assert found.tolist() == [[2]] and found.dtype == np.float32


@pytest.mark.parametrize("flags", [{"a_is_sparse": True}, {"b_is_sparse": True}, {}])
def test_products_of_two_float_types_are_float32(flags):
    a, b = tf.constant([[1.5, 0.0]]), tf.cast(tf.Variable([[2.0], [3.0]]), tf.bfloat16)
    products = [tf.matmul(a, b, **flags), tf.matmul(b, a, True, True, **flags)]
    slopes = tf.gradients(products[0], [a, b])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([products, slopes])
    assert [product.tolist() for product in found[0]] == [[[3.0]], [[3.0]]]
    assert [slope.tolist() for slope in found[1]] == [[[2.0, 3.0]], [[1.5], [0.0]]]
    assert [tensor.dtype for tensor in [*products, *slopes]] == [tf.float32] * 3 + [tf.bfloat16]


def test_the_namespace_has_the_same_functions():
    for name in ("add", "concat", "maximum", "reorder", "reduce_sum", "reshape", "softmax", "split", "transpose"):
        assert getattr(tf.sparse, name) is getattr(tf, f"sparse_{name}")
    assert tf.sparse.to_dense is tf.sparse_tensor_to_dense and tf.sparse.SparseTensor is tf.SparseTensor


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: tf.sparse_reshape(sparse(X), [5, 5]), "cannot have shape"),
        (lambda: tf.sparse_reshape(sparse(X), [5, -1]), "cannot have shape"),
        (lambda: tf.sparse_reorder(sparse(X, PLACES + 2)), "is out of bounds: need 0 <= index <"),
        (lambda: tf.sparse_concat(0, [sparse(X), sparse(Y, OTHERS, (3, 5, 2))]), "Input shapes must match"),
        (lambda: tf.sparse_tensor_to_dense(sparse(X, PLACES[::-1])), "out of order"),
        (lambda: tf.sparse_tensor_to_dense(sparse(X, PLACES * 0)), "repeated"),
        (lambda: tf.sparse_tensor_dense_matmul(sparse(X[:3], OTHERS[:, :2], (3, 4)), np.ones((3, 2))), ""),
        (lambda: sparse(X) * np.ones((5, 5)), "broadcast"),
        (lambda: tf.sparse_split(sp_input=sparse(X), num_split=4, axis=0), "more parts"),
        (lambda: tf.sparse_fill_empty_rows(sparse(X, PLACES + 9), 0.0).sp_ordered_output, r"out of (range|bounds)"),
    ],
)
def test_refused(build, match):
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=match or None), tf.Session() as session:
        session.run(build())


def test_shapes_that_do_not_agree_are_found_when_tensorflow_finds_them():
    joined = tf.sparse_concat(0, [sparse(X), sparse(Y, OTHERS, (3, 5, 2))])
    with pytest.raises(tf.errors.InvalidArgumentError), tf.Session() as session:
        session.run(joined.dense_shape)
    for shape in ([-1, -1, 2], [5, -1], [4, 7]):
        with pytest.raises(ValueError, match="cannot have shape"):
            tf.sparse_reshape(sparse(X), shape)
    later = tf.sparse_reshape(sparse(X), tf.placeholder(tf.int64))
    assert (later.indices.shape.as_list(), later.dense_shape.shape.as_list()) == ([5, None], [None])


def test_the_rank_of_joined_tensors_is_that_of_any():
    unknown = [tf.SparseTensor(*[tf.placeholder(t) for t in ("int64", "float32", "int64")]) for _ in range(2)]
    joined = tf.sparse_concat(0, [*unknown, sparse(X.astype(np.float32))])
    assert (joined.indices.shape.as_list(), joined.dense_shape.shape.as_list()) == ([None, 3], [3])
    with tf.Session() as session:
        feeds = {each: tf.SparseTensorValue(OTHERS, Y, SIZES) for each in unknown}
        assert session.run(joined, feeds).dense_shape.tolist() == [9, 4, 2]


def test_filled_rows_keep_their_elements_in_order():
    given = tf.SparseTensor([[2, 3], [2, 2], [0, 1]], [1, 3, 2], [3, 5])
    filled, _ = tf.sparse_fill_empty_rows(given, -1)
    with tf.Session() as session:
        found = session.run(filled)
    assert found.indices.tolist() == [[0, 1], [1, 0], [2, 3], [2, 2]] and found.values.tolist() == [2, -1, 1, 3]


def test_sums_may_have_elements_beyond_the_dense_shape():
    beyond = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [1, 1])
    with tf.Session() as session:
        found = session.run(tf.sparse_add(beyond, beyond))
    assert found.indices.tolist() == [[0, 1], [1, 0]] and found.values.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("error", "build"),
    [
        (TypeError, lambda: tf.sparse_reorder([1.0])),
        (TypeError, lambda: tf.sparse_add(np.ones(2), np.ones(2))),
        (ValueError, lambda: tf.sparse_split(2, sparse(X), 2, 0)),
        (ValueError, lambda: tf.sparse_concat(0, [])),
        (ValueError, lambda: tf.sparse_reset_shape(sparse(X), [3, 4, 1])),
        (ValueError, lambda: tf.sparse_reset_shape(sparse(X), [3, 4])),
        (ValueError, lambda: tf.sparse_merge([sparse(X)], sparse(X), [1, 2])),
        (ValueError, lambda: tf.sparse_softmax(tf.SparseTensor([[1]], [1.0], [3]))),
    ],
)
def test_misuse(error, build):
    with pytest.raises(error):
        build()


# -- sets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [[[0, 1], [0, 0]], [[1, 0], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [0, 3]]])
def test_sets_whose_positions_are_not_in_order_are_refused_unless_that_is_not_asked_for(positions):
    sets, others = tf.SparseTensor(positions, [1, 2], [2, 2]), tf.SparseTensor([[0, 0]], [2], [2, 1])
    for function in (tf.sets.set_union, tf.sets.set_intersection, tf.sets.set_difference):
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(function(sets, others))
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.sets.set_size(sets))
        assert session.run(tf.sets.set_size(sets, validate_indices=False)).sum() == 2
        assert session.run(tf.sets.set_union(sets, others, validate_indices=False)).dense_shape[0] == 2


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        (tf.sets.set_size, ([[1, 2]],), TypeError),
        (tf.sets.set_union, ([1, 2], [2]), ValueError),
        (tf.sets.set_union, ([[1], [2]], [[2]]), ValueError),
        (tf.sets.set_union, (np.int32([[1]]), np.int64([[2]])), TypeError),
    ],
)
def test_sets_that_do_not_go_together_are_refused_while_the_graph_is_built(function, arguments, kind):
    with pytest.raises(kind):
        function(*map(tf.constant, arguments))


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (tf.abs, np.abs),
        (tf.square, np.square),
        (tf.negative, np.negative),
        (tf.sign, np.sign),
        (tf.tanh, np.tanh),
        (tf.identity, lambda x: x),
        (lambda x: tf.sqrt(tf.square(x)), np.abs),
        (lambda x: tf.cast(x, tf.int32), np.int32),
        (lambda x: tf.fill([2, 3], 2.0) * x, lambda x: 2 * x),
    ],
)
def test_functions_of_elements_take_sparse_tensors(function, reference):
    values = tf.constant([-4.0, 9.0])
    result = function(tf.SparseTensor([[0, 1], [1, 2]], values, [2, 3]))
    assert isinstance(result, tf.SparseTensor) and result.shape == [2, 3]
    with tf.Session() as session:
        got = session.run(result)
        np.testing.assert_allclose(got.values, reference(np.float32([-4, 9])), rtol=1e-6)
        assert got.indices.tolist() == [[0, 1], [1, 2]]
        assert session.run([tf.size(result), tf.rank(result)]) == [6, 2]


# -- crossed features; expected values are TensorFlow 2.21's -------------------------------------------


def cross_columns():
    first = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "c"], [2, 2])
    last = tf.SparseTensor([[0, 0], [1, 0]], ["f", "g"], [2, 1])
    return [first, tf.constant([["d"], ["e"]]), last]


def test_each_combination_of_a_row_is_crossed_sparse_columns_first():
    with tf.Session() as session:
        found = session.run(tf.sparse.cross(cross_columns()))
        assert found.values.tolist() == [b"a_X_f_X_d", b"b_X_g_X_e", b"c_X_g_X_e"]
        assert found.indices.tolist() == [[0, 0], [1, 0], [1, 1]] and found.dense_shape.tolist() == [2, 2]
        numbers = tf.sparse.cross([tf.constant([[1], [2]]), tf.constant([["d"], ["e"]])])
        assert session.run(numbers).values.tolist() == [b"1_X_d", b"2_X_e"]
        nothing = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, str), [2, 2])
        assert session.run(tf.sparse.cross([nothing, tf.constant([["d"], ["e"]])])).dense_shape.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("options", "hashes"),
    [
        ({}, [1584069791037555375, 2292520902626215647, 1746051686049959641, 1886436108687062583]),
        ({"num_buckets": 100}, [82, 54, 41, 90]),
        ({"num_buckets": 100, "hash_key": 7}, [10, 97, 88, 55]),
    ],
)
def test_combinations_are_hashed_as_tensorflow_does(options, hashes):
    columns = [tf.constant([["a", "b"], ["c", "d"]]), tf.constant([["d"], ["e"]])]
    with tf.Session() as session:
        assert session.run(tf.sparse.cross_hashed(columns, **options)).values.tolist() == hashes
        numbers = [tf.constant([[1, 2]], tf.int64), tf.constant([["d"]])]
        assert session.run(tf.sparse.cross_hashed(numbers, num_buckets=100)).values.tolist() == [77, 94]


@pytest.mark.parametrize(
    ("options", "value"),
    [  # TensorFlow 1.15's values
        ({}, b"batch1-FC1-F1_X_batch1-FC2-F1_X_batch1-FC3-F1"),
        ({"hashed_output": True}, 3735511728867393167),
        ({"hashed_output": True, "num_buckets": 100}, 74),
        ({"hashed_output": True, "hash_key": 0xDECAFCAFFE}, 1971693436396284976),
    ],
)
def test_combinations_are_hashed_as_tf_contrib_did(options, value):
    inputs = [tf.constant([[f"batch1-FC{number}-F1"]]) for number in (1, 2, 3)]
    with tf.Session() as session:
        assert session.run(sparse_cross_ops.sparse_feature_cross(inputs, **options)).values.tolist() == [value]


def test_what_cannot_be_crossed_is_refused():
    with pytest.raises(TypeError, match="must be tensors"):
        tf.sparse.cross([["a", "b"]])
    for columns in ([tf.constant([["a"]]), tf.constant([["a"], ["b"]])], [tf.constant(["a"])]):
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"rows|rank 2"):
            session.run(tf.sparse.cross(columns))


# -- sequences, and what is refused --------------------------------------------------------------------


@pytest.mark.parametrize("positions", [[[0, 0], [0, 1], [0, 5]], [[0, 7], [0, 8], [0, 3]]])
def test_elements_of_sequences_follow_each_other_whatever_their_last_index_is(positions):
    found = tf.SparseTensor(positions, ["a", "b", "c"], [1, 2])
    true = tf.SparseTensor([[0, 0], [0, 1]], ["a", "c"], [1, 2])
    with tf.Session() as session:
        assert session.run(tf.edit_distance(found, true)).tolist() == [0.5]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] = \[3\]"):
            session.run(tf.edit_distance(tf.SparseTensor([[3, 1]], ["a"], [1, 2]), true))
    with pytest.raises(ValueError, match="rank 1"):
        tf.edit_distance(tf.SparseTensor([[0]], ["a"], [2]), tf.SparseTensor([[0]], ["a"], [2]))


def test_sparse_tensors_that_do_not_fit_are_refused_while_the_graph_is_built():
    x, wide = tf.SparseTensor([[0, 0]], [1], [2, 3]), tf.SparseTensor([[0, 0]], [1], [2, 4])
    for function in (tf.sparse_add, tf.sparse_maximum, tf.sparse_minimum):
        with pytest.raises(ValueError, match="expected one shape"):
            function(x, wide)
    with pytest.raises(ValueError, match="incompatible"):
        tf.sparse_transpose(x, [0])
    with pytest.raises(ValueError, match="num_split is 0"):
        tf.sparse_split(sp_input=x, num_split=0, axis=0)


@pytest.mark.parametrize("axis", [0, -1, [0, 2], [1, -2], [], [2, 0, 1]], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    "reduce",
    [tf.sparse_reduce_sum, tf.sparse_reduce_sum_sparse, tf.sparse_reduce_max, tf.sparse_reduce_max_sparse],
    ids=lambda each: each.__name__,
)
def test_axes_that_only_a_step_knows(reduce, keepdims, axis):
    late = tf.placeholder_with_default(np.array(axis, np.int32), np.shape(axis))
    x = sparse(tf.constant(X))
    found, expected = (to_dense(reduce(x, each, keepdims=keepdims)) for each in (late, axis))
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([found, expected]), rtol=1e-12)


@pytest.mark.parametrize("axis", [3, -4])
def test_axes_that_only_a_step_knows_are_checked(axis):
    late = tf.placeholder_with_default(axis, [])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"not in|out of"):
        session.run(tf.sparse_reduce_sum(sparse(tf.constant(X)), late))


def test_the_shape_is_fed_only_where_it_is_not_known():
    known, unknown = tf.sparse_placeholder(tf.float32, [4, 2]), tf.sparse_placeholder(tf.float32)
    places, values = np.array([[3, 1]]), np.array([2.0])
    with tf.Session() as session:
        fed = session.run(known, {known: (places, values)})
        assert (fed.indices.tolist(), fed.values.tolist(), fed.dense_shape.tolist()) == ([[3, 1]], [2], [4, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="indices, values and shape"):
            session.run(unknown, {unknown: (places, values)})
