"""Sparse tensors that a device keeps under numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.sparse.sparse_map_ops import (
    add_many_sparse_to_tensors_map,
    add_sparse_to_tensors_map,
    take_many_sparse_from_tensors_map,
)

SMALL = tf.SparseTensorValue(np.array([[0, 0], [1, 2]]), np.array([1, 2], np.int32), np.array([2, 3]))
LARGE = tf.SparseTensorValue(np.array([[3, 1]]), np.array([7], np.int32), np.array([4, 2]))


def same(found, indices, values, shape):
    assert found.indices.tolist() == indices and found.values.tolist() == values
    assert found.dense_shape.tolist() == shape


def test_what_is_added_is_taken_as_rows():
    numbers = [add_sparse_to_tensors_map(each, shared_name="kept") for each in (SMALL, LARGE)]
    taken = take_many_sparse_from_tensors_map(numbers[0].op, tf.stack(numbers), rank=2)
    assert numbers[0].shape == [] and taken.shape.rank == 3
    with tf.Session() as session:
        same(session.run(taken), [[0, 0, 0], [0, 1, 2], [1, 3, 1]], [1, 2, 7], [2, 4, 3])
        same(session.run(taken), [[0, 0, 0], [0, 1, 2], [1, 3, 1]], [1, 2, 7], [2, 4, 3])


def test_rows_come_back():
    rows = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "c"], [4, 5])
    numbers = add_many_sparse_to_tensors_map(rows)
    with tf.Session() as session:
        same(
            session.run(take_many_sparse_from_tensors_map(numbers.op, numbers)),
            [[0, 0], [0, 1], [2, 0]],
            [b"a", b"b", b"c"],
            [4, 5],
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in order"):
            session.run(add_many_sparse_to_tensors_map(tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])))


def test_a_queue_may_hold_numbers():
    queue = tf.FIFOQueue(3, tf.int64, shapes=[])
    number = add_sparse_to_tensors_map(SMALL)
    added, taken = queue.enqueue(number), take_many_sparse_from_tensors_map(number.op, queue.dequeue_many(2))
    with tf.Session() as session:
        session.run(added)
        session.run(added)
        same(session.run(taken), [[0, 0, 0], [0, 1, 2], [1, 0, 0], [1, 1, 2]], [1, 2, 1, 2], [2, 2, 3])


def test_what_is_refused():
    number = add_sparse_to_tensors_map(SMALL, shared_name="refused")
    deeper = add_sparse_to_tensors_map(tf.SparseTensor([[0, 0, 0]], [1], [3, 4, 5]), shared_name="refused")
    given = tf.placeholder(tf.int64, [None])
    taken = take_many_sparse_from_tensors_map(number.op, given)
    with tf.Session() as session:
        first, second = session.run(number), session.run(deeper)
        for wrong in ([first, first], [first + 10]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to find SparseTensor: "):
                session.run(taken, {given: wrong})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"was: 3 but rank of .* is: 4"):
            session.run(taken, {given: [first, second]})
    for wrong in ("kept", tf.constant(1).op):
        with pytest.raises(TypeError, match="adds to a map"):
            take_many_sparse_from_tensors_map(wrong, [0])


def test_graphs_with_kept_tensors_go_over():
    numbers = add_many_sparse_to_tensors_map(tf.SparseTensor([[0, 1], [1, 0]], [5.0, 6.0], [2, 2]), name="added")
    taken = take_many_sparse_from_tensors_map(numbers.op, numbers, name="taken")
    definition = tf.get_default_graph().as_graph_def()
    assert {"AddManySparseToTensorsMap", "TakeManySparseFromTensorsMap"} <= {node.op for node in definition.node}
    del taken
    with tf.Graph().as_default():
        values = tf.import_graph_def(definition, return_elements=["taken:1"], name="")
        with tf.Session() as session:
            assert session.run(values)[0].tolist() == [5, 6]
