"""Sparse tensors as strings, and back."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.ops.sparse.sparse_transport_ops import deserialize_sparse


def test_rows_become_strings_and_a_batch_again():
    sparse = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], ["a", "b", "c"], [3, 4])
    serialized = tf.serialize_many_sparse(sparse)
    back = tf.deserialize_many_sparse(serialized, tf.string, rank=1)
    assert serialized.shape.as_list() == [None, 3] and back.indices.shape.as_list() == [None, 2]
    with tf.Session() as session:
        before, after = session.run([sparse, back])
    for mine, theirs in zip(before, after, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_sizes_of_a_batch_are_the_largest():
    rows = [
        tf.SparseTensor(np.zeros((0, 2)), np.zeros(0, np.float32), [5, 1]),
        tf.SparseTensor([[1, 2]], [7.0], [2, 3]),
    ]
    batch = tf.deserialize_many_sparse(tf.stack([tf.serialize_sparse(row) for row in rows]), tf.float32)
    with tf.Session() as session:
        value = session.run(batch)
    assert value.indices.tolist() == [[1, 1, 2]] and value.values.tolist() == [7.0]
    assert value.dense_shape.tolist() == [2, 5, 3]


def test_what_does_not_fit_together_is_refused():
    one = tf.serialize_sparse(tf.SparseTensor([[0]], [1.0], [2]))
    two = tf.serialize_sparse(tf.SparseTensor([[0, 0]], [1.0], [2, 2]))
    unordered = tf.SparseTensor([[1, 0], [0, 0]], [1.0, 2.0], [2, 2])
    with tf.Session() as session:
        with pytest.raises(InvalidArgumentError, match="rank prior to"):
            session.run(tf.deserialize_many_sparse(tf.stack([one, two]), tf.float32))
        with pytest.raises(InvalidArgumentError, match="rank 1, expected 2"):
            session.run(tf.deserialize_many_sparse([one], tf.float32, rank=2))
        with pytest.raises(InvalidArgumentError, match="float32, expected int32"):
            session.run(tf.deserialize_many_sparse([one], tf.int32))
        with pytest.raises(InvalidArgumentError, match="order"):
            session.run(tf.serialize_many_sparse(unordered))


def test_sparse_tensors_travel_as_variants():
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1.5, 2.5], [2, 3])
    one, many = tf.serialize_sparse(sparse, out_type=tf.variant), tf.serialize_many_sparse(sparse, out_type=tf.variant)
    assert one.dtype == many.dtype == tf.variant and one.shape.as_list() == [3] and many.shape.as_list() == [None, 3]
    with tf.Session() as session:
        for back in (deserialize_sparse(one, tf.float32), tf.deserialize_many_sparse(many, tf.float32)):
            found = session.run(back)
            assert found.values.tolist() == [1.5, 2.5] and found.dense_shape.tolist() == [2, 3]
        vector = tf.SparseTensor([[0]], [1], [1])
        with pytest.raises(tf.errors.InvalidArgumentError, match="rank 1, expected at least 2"):
            session.run(tf.serialize_many_sparse(vector))
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a serialised tensor"):
            session.run(tf.deserialize_many_sparse([["a", "b", "c"]], tf.int64))
