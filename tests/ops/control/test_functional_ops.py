"""map_fn, foldl, foldr and scan."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.region_runs import run
from tfray.errors import InvalidArgumentError
from tfray.ops.control.functional_ops import foldl, foldr, map_fn, scan

X = np.random.default_rng(0).normal(size=(4, 2))


# -- map_fn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 2), (None, 2), (None, None), None])
def test_map_fn(shape):
    x = tf.placeholder(tf.float64, shape)
    y = map_fn(lambda row: row * 2 + tf.reduce_sum(row), x)
    if shape is not None:
        assert y.shape.as_list() == list(shape)
    np.testing.assert_allclose(run(y, {x: X}), X * 2 + X.sum(1, keepdims=True))
    if shape is None or shape[0] is None:
        assert run(tf.shape(y), {x: X[:0]})[0] == 0


def test_map_fn_of_structures_to_structures():
    i = tf.range(4)
    pairs = map_fn(lambda e: (e[0] * tf.cast(e[1], tf.float64), e[1] + 1), (tf.constant(X), i))
    np.testing.assert_allclose(run(pairs)[0], X * np.arange(4)[:, None])
    assert run(pairs)[1].tolist() == [1, 2, 3, 4]
    total = map_fn(lambda e: tf.reduce_sum(e["x"]) * 2, {"x": tf.constant(X), "i": i}, dtype=tf.float64)
    np.testing.assert_allclose(run(total), X.sum(1) * 2)
    split = map_fn(lambda e: {"low": e - 1, "high": [e + 1]}, i, dtype={"low": tf.int32, "high": [tf.int32]})
    got = run(split)
    assert got["low"].tolist() == [-1, 0, 1, 2] and got["high"][0].tolist() == [1, 2, 3, 4]


def test_map_fn_of_plain_values_and_other_dtypes():
    assert run(map_fn(lambda e: e * e, np.array([1, 2, 3]))).tolist() == [1, 4, 9]
    assert run(map_fn(lambda e: tf.cast(e, tf.float32) / 2, np.int32([1, 2]), tf.float32)).tolist() == [
        0.5,
        1.0,
    ]
    words = map_fn(lambda e: e, tf.constant(["a", "b"]))
    assert run(words).tolist() == [b"a", b"b"]


def test_map_fn_makes_variables_once():
    y = map_fn(lambda e: e * tf.get_variable("scale", [], initializer=tf.constant_initializer(3.0)), tf.ones([5]))
    assert run(y).tolist() == [3.0] * 5 and [v.name for v in tf.global_variables()] == ["scale:0"]


def test_results_of_different_shapes_need_infer_shape_false():
    with pytest.raises(InvalidArgumentError, match="only elements of one shape"):
        run(map_fn(lambda i: tf.zeros(tf.stack([i])), tf.range(3), dtype=tf.float32, infer_shape=False))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: map_fn(3, [1]), TypeError, "must be callable"),
        (lambda: map_fn(lambda e: e, tf.constant(1)), InvalidArgumentError, "a 1. dimensional Tensor, not a scalar"),
        (lambda: map_fn(lambda e: e, (tf.zeros([2]), tf.zeros([3]))), InvalidArgumentError, "2 and 3 elements"),
        (lambda: map_fn(lambda e: tf.cast(e, tf.int32), tf.zeros([2])), TypeError, "expected is float32"),
        (lambda: map_fn(lambda e: (e, e), tf.zeros([2])), TypeError, "another structure"),
        (lambda: map_fn(lambda e: e, []), ValueError, "no tensors"),
    ],
)
def test_map_fn_refuses(make, error, match):
    with pytest.raises(error, match=match):
        make()


# -- folds and scans -----------------------------------------------------------------------------------


@pytest.mark.parametrize("static", [True, False])
def test_folds(static):
    x = tf.placeholder(tf.float64, (4, 2) if static else None)
    ys = [
        foldl(lambda a, e: a * 2 + e, x),
        foldr(lambda a, e: a * 2 + e, x),
        foldl(lambda a, e: a + tf.reduce_sum(e), x, initializer=tf.constant(10.0, tf.float64)),
        foldr(lambda a, e: (a[0] * 2 + tf.reduce_sum(e), a[1] + 1), x, initializer=(np.float64(1), 0)),
    ]
    left, right, total, pair = run(ys, {x: X})
    weights = np.array([8, 4, 2, 1])[:, None]
    np.testing.assert_allclose(left, (X * weights).sum(0))
    np.testing.assert_allclose(right, (X * weights[::-1]).sum(0))
    np.testing.assert_allclose(total, 10 + X.sum())
    np.testing.assert_allclose(pair[0], 16 + (X * [[1], [2], [4], [8]]).sum())
    assert pair[1] == 4


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("static", [True, False])
def test_scan(static, reverse):
    x = tf.placeholder(tf.float64, (4, 2) if static else (None, 2))
    sums = scan(lambda a, e: a + e, x, reverse=reverse)
    begun = scan(lambda a, e: a + e, x, initializer=np.float64([10, 20]), reverse=reverse)
    assert sums.shape.as_list() == ([4, 2] if static else [None, 2])
    expected = X[::-1].cumsum(0)[::-1] if reverse else X.cumsum(0)
    got = run([sums, begun], {x: X})
    np.testing.assert_allclose(got[0], expected)
    np.testing.assert_allclose(got[1], expected + np.float64([10, 20]))


def test_scan_of_structures():
    fibonacci = scan(lambda a, _: (a[1], a[0] + a[1]), tf.range(6), initializer=(0, 1))
    assert [values.tolist() for values in run(fibonacci)] == [[1, 1, 2, 3, 5, 8], [1, 2, 3, 5, 8, 13]]
    total = scan(lambda a, e: a + e[0] * e[1], (tf.constant([1, 2, 3]), tf.constant([4, 5, 6])), initializer=0)
    assert run(total).tolist() == [4, 14, 32]


def test_fold_without_elements():
    x = tf.placeholder(tf.float32, [None])
    assert run(foldl(lambda a, e: a + e, x, initializer=5.0), {x: []}) == 5.0
    assert run(scan(lambda a, e: a + e, x, initializer=5.0), {x: []}).shape == (0,)
    with pytest.raises(InvalidArgumentError, match="no initializer"):
        foldl(lambda a, e: a + e, tf.zeros([0]))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: foldl(3, [1.0]), "must be callable"),
        (lambda: scan(lambda a, e: (a, e), tf.zeros([3])), "another structure"),
        (lambda: foldr(lambda a, e: tf.cast(a, tf.int32), tf.zeros([3])), "expected is float32"),
    ],
)
def test_folds_refuse(make, match):
    with pytest.raises(TypeError, match=match):
        make()


@pytest.mark.parametrize(
    "build",
    [
        lambda x: map_fn(lambda e: tf.sin(e) * e[0], x),
        lambda x: map_fn(lambda e: map_fn(lambda f: f * tf.reduce_sum(e * e), e), x),
        lambda x: foldl(lambda a, e: tf.sin(a) * e, x),
        lambda x: foldr(lambda a, e: tf.sin(a) + e * e, x, initializer=x[0]),
        lambda x: scan(lambda a, e: tf.sin(a) * e, x),
        lambda x: scan(lambda a, e: tf.sin(a) + e * e, x, initializer=x[1], reverse=True),
        lambda x: list(scan(lambda a, e: (a[1] * e, tf.sin(a[0])), x, initializer=(x[0], x[1]))),
    ],
)
def test_gradients_equal_differences(build):
    check_gradients(build, [X])


def test_gradients_by_what_is_captured():
    check_gradients(
        lambda x, w: map_fn(lambda e: tf.matmul([e], w)[0], x), [X, np.random.default_rng(1).normal(size=(2, 2))]
    )
    check_gradients(
        lambda x, w: scan(lambda a, e: tf.tanh(tf.matmul([a + e], w))[0], x, initializer=tf.zeros([2], tf.float64)),
        [X, np.random.default_rng(1).normal(size=(2, 2))],
    )


def test_back_prop_false():
    x = tf.constant(X)
    assert tf.gradients(map_fn(lambda e: e * 2, x, back_prop=False), x) == [None]


# -- sparse elements and results -------------------------------------------------------------------------

DENSE = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]], np.float32)
ROWS_SPARSE = tf.SparseTensorSpec([None], tf.float32)


def _sparse(dense=DENSE):
    positions = np.argwhere(dense)
    return tf.SparseTensor(positions, dense[tuple(positions.T)], dense.shape)


def _evaluated(result):
    with tf.Session() as session:
        return session.run(result)


@pytest.mark.parametrize("dense", [DENSE, np.stack([DENSE, 2 * DENSE]), np.zeros([2, 3], np.float32)], ids=np.shape)
def test_elements_may_be_sparse(dense):
    rows = tf.map_fn(lambda row: tf.sparse.to_dense(row) + 1, _sparse(dense), dtype=tf.float32)
    assert rows.shape.as_list() == list(dense.shape)
    np.testing.assert_array_equal(_evaluated(rows), dense + 1)


def test_sparse_elements_stand_beside_dense_ones():
    sums = tf.map_fn(
        lambda pair: tf.sparse.reduce_sum(pair["row"]) * pair["factor"],
        {"row": _sparse(), "factor": tf.constant([1.0, 2.0, 3.0])},
        dtype=tf.float32,
    )
    np.testing.assert_array_equal(_evaluated(sums), [3, 0, 9])


@pytest.mark.parametrize("argument", ["dtype", "fn_output_signature"])
def test_results_may_be_sparse(argument):
    doubled, plain = tf.map_fn(
        lambda row: (tf.sparse.from_dense(row * 2), row),
        tf.constant(DENSE),
        **{argument: (ROWS_SPARSE, tf.TensorSpec([4], tf.float32))},
    )
    assert doubled.shape.rank == 2
    np.testing.assert_array_equal(_evaluated(tf.sparse.to_dense(doubled)), DENSE * 2)
    np.testing.assert_array_equal(_evaluated(plain), DENSE)


def test_sparse_elements_give_sparse_results_without_a_signature():
    same = _evaluated(tf.map_fn(lambda row: row, _sparse()))
    np.testing.assert_array_equal(same.indices, np.argwhere(DENSE))
    np.testing.assert_array_equal(same.dense_shape, DENSE.shape)


def test_sparse_results_of_several_sizes_have_the_largest():
    def up_to(n):
        return tf.SparseTensor([[n - 1]], [1.0], [n])

    result = _evaluated(tf.map_fn(up_to, tf.constant([1, 3, 2], tf.int64), ROWS_SPARSE))
    np.testing.assert_array_equal(result.indices, [[0, 0], [1, 2], [2, 1]])
    np.testing.assert_array_equal(result.dense_shape, [3, 3])


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(None, TypeError), (tf.float32, TypeError), (tf.SparseTensorSpec([None], tf.int32), ValueError)],
)
def test_sparse_results_that_are_not_expected_are_refused(dtype, kind):
    with pytest.raises(kind, match="map_fn: fn returns"):
        tf.map_fn(tf.sparse.from_dense, tf.constant(DENSE), dtype)
