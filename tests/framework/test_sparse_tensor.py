"""Sparse tensors as values: made, fetched and fed."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

VALUE = tf.SparseTensorValue(np.array([[0, 1], [1, 0]]), np.array([1.0, 2.0], np.float32), np.array([2, 3]))


def assert_same(found, expected):
    assert type(found) is tf.SparseTensorValue
    for part, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, wanted)


def test_what_it_is_made_of():
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
    assert sparse.dtype is tf.float32 and sparse.shape.as_list() == [2, 3] == sparse.get_shape().as_list()
    assert sparse.indices.dtype is tf.int64 and sparse.dense_shape.dtype is tf.int64
    assert sparse.graph is tf.get_default_graph() and sparse.op is sparse.values.op
    assert tf.SparseTensor.from_value(sparse) is sparse


def test_it_is_fetched_and_fed():
    fed = tf.SparseTensor(tf.placeholder(tf.int64), tf.placeholder(tf.float32), tf.placeholder(tf.int64))
    with tf.Session() as session:
        assert_same(tf.SparseTensor.from_value(VALUE).eval(), VALUE)
        found = session.run({"all": [fed, fed.values * 2.0]}, {fed: VALUE})
        assert_same(found["all"][0], VALUE)
        np.testing.assert_array_equal(found["all"][1], [2, 4])
        assert_same(session.run(fed, {fed: ([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])}), VALUE)
        assert_same(session.make_callable(fed, [fed])(VALUE), VALUE)


def test_branches_and_loops_pass_it_on():
    flag, sparse = tf.placeholder(tf.bool, []), tf.SparseTensor.from_value(VALUE)
    chosen = tf.cond(flag, lambda: sparse, lambda: tf.SparseTensor(sparse.indices, -sparse.values, sparse.dense_shape))
    _, doubled = tf.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (i + 1, tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)),
        (0, sparse),
    )
    with tf.Session() as session:
        assert_same(session.run(chosen, {flag: True}), VALUE)
        assert_same(session.run(chosen, {flag: False}), VALUE._replace(values=-VALUE.values))
        assert_same(session.run(doubled), VALUE._replace(values=8 * VALUE.values))


def test_misuse_is_refused():
    with pytest.raises(ValueError):
        tf.SparseTensor([[0, 1]], [1.0, 2.0], [2, 3])
    with pytest.raises(ValueError):
        tf.SparseTensor([[0, 1]], [1.0], [2, 3, 4])
    with pytest.raises(TypeError, match="cannot make a tensor of") as error:
        tf.SparseTensor([[0, 1]], [1.0], len)
    assert "dense_shape" in error.value.__notes__[0]
    with pytest.raises(TypeError):
        tf.SparseTensor.from_value([1])
    with pytest.raises(RuntimeError, match="expected int32"):
        tf.convert_to_tensor_or_sparse_tensor(VALUE, tf.int32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="SparseTensorValue"):
        session.run(sparse := tf.SparseTensor.from_value(VALUE), {sparse: 3})


def test_indexed_slices_are_fetched_and_fed():
    x = tf.placeholder(tf.float32, [4, 2])
    (slices,) = tf.gradients(tf.gather(x, [1, 1]), [x])
    with tf.Session() as session:
        found = session.run({"d": slices})["d"]
        assert type(found) is tf.IndexedSlicesValue and found.indices.tolist() == [1, 1]
        fed = tf.IndexedSlicesValue(np.eye(2), [3, 0], [4, 2])
        dense = session.run(tf.convert_to_tensor(slices), {slices: fed})
        assert dense.tolist() == [[0, 1], [0, 0], [0, 0], [1, 0]]
        alone = tf.IndexedSlices(slices.values, slices.indices)
        found = session.run([alone], {alone: tf.IndexedSlicesValue(np.eye(2), [3, 0], None)})[0]
        assert found.indices.tolist() == [3, 0] and found.dense_shape is None


@pytest.mark.parametrize("shape", [None, [None, 3], [2, 3]])
def test_placeholders(shape):
    fed = tf.sparse_placeholder(tf.float32, shape, name="fed")
    assert fed.values.name == "fed/values:0" and fed.indices.name == "fed/indices:0"
    assert fed.shape.rank == (None if shape is None else 2)
    assert shape is None or fed.shape.as_list() == shape
    dense = tf.sparse_tensor_to_dense(fed)
    with tf.Session() as session:
        assert session.run(dense, {fed: VALUE}).tolist() == [[0, 1, 0], [2, 0, 0]]
        assert fed.values.op in session.graph.get_operations() and dense.op in fed.consumers()


def test_dtype_and_rank():
    sparse = tf.cast(tf.SparseTensor.from_value(VALUE), tf.int32)
    assert isinstance(sparse, tf.SparseTensor) and sparse.dtype is tf.int32
    x = tf.placeholder(tf.float32, [4, 2])
    slices = tf.to_double(tf.gradients(tf.gather(x, [1, 1]), x)[0])
    assert isinstance(slices, tf.IndexedSlices) and slices.dtype is tf.float64
    with tf.Session() as session:
        assert session.run([sparse.values, tf.rank(sparse), tf.shape(sparse)])[1:] == [2, pytest.approx([2, 3])]


def test_one_hot_rows_as_programs_write_them():
    x = tf.placeholder(tf.float32, [None, 3])
    rows = tf.range(tf.shape(x)[0])
    places = tf.stack([rows, tf.constant([2, 0])], 1)
    with tf.Session() as session:
        hot = tf.sparse_to_dense(places, tf.stack([tf.shape(x)[0], 3]), 1.0, 0.0)
        other = tf.sparse_to_dense([[0, 1]], tf.shape(x), 5)
        values = session.run([hot, other], {x: np.zeros((2, 3))})
    assert values[0].tolist() == [[0, 0, 1], [1, 0, 0]] and values[1].tolist() == [[0, 5, 0], [0, 0, 0]]
