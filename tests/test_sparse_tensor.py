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


def test_misuse_is_refused():
    with pytest.raises(ValueError):
        tf.SparseTensor([[0, 1]], [1.0, 2.0], [2, 3])
    with pytest.raises(ValueError):
        tf.SparseTensor([[0, 1]], [1.0], [2, 3, 4])
    with pytest.raises(TypeError):
        tf.SparseTensor.from_value([1])
    with pytest.raises(TypeError):
        tf.convert_to_tensor_or_sparse_tensor(VALUE, tf.int32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="SparseTensorValue"):
        session.run(sparse := tf.SparseTensor.from_value(VALUE), {sparse: 3})
