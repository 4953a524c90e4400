"""Batches of examples of like lengths, through queues."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

training = tf.contrib.training


def _batches(fetches):
    """The values of all batches until the input ends."""
    found = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(fetches))
        coordinator.request_stop()
        coordinator.join(threads)
    return found


def _number(count):
    return tf.train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()


@pytest.mark.parametrize("form", ["list", "dict"])
def test_sequences_of_like_lengths(form):
    number = _number(20)
    length = number % 5 + 1
    parts = {"ids": tf.range(length), "number": number}
    lengths, batch = training.bucket_by_sequence_length(
        length,
        parts if form == "dict" else [parts["ids"], parts["number"]],
        batch_size=2,
        bucket_boundaries=[3, 5],
        dynamic_pad=True,
        allow_smaller_final_batch=True,
    )
    ids, numbers = (batch["ids"], batch["number"]) if form == "dict" else batch
    assert ids.shape.as_list() == [None, None] and lengths.shape.as_list() == [None]
    seen = []
    for sizes, rows, kept in _batches([lengths, ids, numbers]):
        assert len({np.digitize(each, [3, 5]).item() for each in sizes}) == 1, "all of one bucket"
        assert rows.shape[1] == sizes.max() and (sizes == kept % 5 + 1).all()
        assert [row.max() for row in rows] == (sizes - 1).tolist(), "padded with zeros"
        seen += kept.tolist()
    assert sorted(seen) == list(range(20))


def test_buckets_of_ones_own_choice():
    number = _number(12)
    which, (values,) = training.bucket([number], number % 2, batch_size=[2, 3], num_buckets=2, capacity=20)
    assert which.shape.as_list() == [] and values.shape.as_list() == [None]
    found = _batches([which, values])
    assert {int(index): len(batch) for index, batch in found} == {0: 2, 1: 3}
    assert all((batch % 2 == index).all() for index, batch in found)


def test_what_is_left_out():
    number = _number(12)
    _, (values,) = training.bucket([number], 0, 2, num_buckets=1, keep_input=number >= 6)
    assert values.shape.as_list() == [2]
    assert [batch.tolist() for batch in _batches(values)] == [[6, 7], [8, 9], [10, 11]]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: training.bucket([], 0, 2, 1), "at least one tensor"),
        (lambda: training.bucket([1], 0, [2], 2), "exactly num_buckets elements"),
        (lambda: training.bucket_by_sequence_length(1, [1], 2, []), "must not be empty"),
        (lambda: training.bucket_by_sequence_length(1, [1], 2, [3, 3]), "increasing order"),
    ],
)
def test_what_are_no_buckets(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_sparse_parts_of_examples():
    number = _number(4)
    row = tf.SparseTensor(tf.reshape(tf.to_int64(number), [1, 1]), tf.reshape(number, [1]), [5])
    _, (numbers, rows) = training.bucket([number, row], number % 2, batch_size=2, num_buckets=2)
    assert isinstance(rows, tf.SparseTensor) and rows.shape.rank == 2
    for kept, found in _batches([numbers, rows]):
        np.testing.assert_array_equal(found.dense_shape, [2, 5])
        np.testing.assert_array_equal(found.indices, [[0, kept[0]], [1, kept[1]]])
        np.testing.assert_array_equal(found.values, kept)
