"""Segments of long sequences, whose states go on from each to the next."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tfray as tf

T = tf.contrib.training


def examples(count):
    """A key and a number of steps that grow, until the input ends."""
    number = tf.train.range_input_producer(count, num_epochs=1, shuffle=False, capacity=1).dequeue()
    length = number + 2
    steps = tf.cast(tf.range(length), tf.float32) + 10.0 * tf.cast(number, tf.float32)
    return tf.string_join(["key_", tf.as_string(number)]), {"x": steps[:, None] * [1.0, -1.0]}, {"n": number}, length


def segments(batch, outputs, steps):
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        threads = tf.train.start_queue_runners(session, coord)
        got = []
        with pytest.raises(tf.errors.OutOfRangeError):
            for _ in range(steps):
                got.append(session.run(outputs))
        coord.request_stop()
        coord.join(threads)
    return got


@pytest.mark.parametrize("length_is_given", [True, False])
def test_states_go_on_to_the_next_segment(length_is_given):
    key, sequences, context, length = examples(3)  # of 2, 3 and 4 steps
    batch = T.batch_sequences_with_states(
        key,
        sequences,
        context,
        length if length_is_given else None,
        {"total": np.zeros(2, np.float32)},
        num_unroll=3,
        batch_size=1,
        num_threads=1,
        capacity=2,
    )
    total = batch.state("total") + tf.reduce_sum(batch.sequences["x"], 1)
    outputs = [batch.key, batch.next_key, batch.sequences["x"][..., 0], batch.context["n"], total, batch.length]
    outputs += [batch.total_length, batch.sequence_idx, batch.sequence_count, batch.save_state("total", total)]
    got = segments(batch, outputs, 9)
    assert [each[0].item() for each in got] == [
        b"00000_of_00001:key_0",
        b"00000_of_00001:key_1",
        b"00000_of_00002:key_2",
        b"00001_of_00002:key_2",
    ]
    assert [each[1].item() for each in got] == [b"STOP:key_0", b"STOP:key_1", b"00001_of_00002:key_2", b"STOP:key_2"]
    x = [[[0, 1, 0]], [[10, 11, 12]], [[20, 21, 22]], [[23, 0, 0]]]
    assert [each[2].tolist() for each in got] == x
    assert [each[3].tolist() for each in got] == [[0], [1], [2], [2]]
    assert [each[4].tolist() for each in got] == [[[1, -1]], [[33, -33]], [[63, -63]], [[86, -86]]]
    facts = [tuple(int(value[0]) for value in each[5:9]) for each in got]
    assert facts == [(2, 2, 0, 1), (3, 3, 0, 1), (3, 4, 0, 2), (1, 4, 1, 2)]
    assert batch.sequences["x"].shape.as_list() == [None, 3, 2]


def test_batches_of_several_and_a_smaller_last_one():
    key, sequences, context, length = examples(3)
    batch = T.batch_sequences_with_states(
        key, sequences, context, length, {"s": 0.0}, 4, 2, num_threads=1, make_keys_unique=True, make_keys_unique_seed=1
    )
    got = segments(batch, [batch.batch_size, batch.insertion_index, batch.save_state("s", batch.state("s"))], 9)
    assert [each[0] for each in got] == [2, 1]
    order = np.concatenate([each[1] for each in got])
    assert (np.diff(order) > 0).all()


def test_recurrent_networks_keep_their_states():
    steps = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    cell = tf.nn.rnn_cell.GRUCell(3)
    batch = T.batch_sequences_with_states(
        tf.constant("only"), {"x": steps}, {}, 6, {"h": np.zeros(3, np.float32)}, 2, 1, capacity=1, num_threads=1
    )
    outputs, _ = tf.nn.static_state_saving_rnn(cell, tf.unstack(batch.sequences["x"], axis=1), batch, "h")
    whole, _ = tf.nn.dynamic_rnn(cell, steps[None], dtype=tf.float32)
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = tf.train.start_queue_runners(session, coord)
        got = [session.run(tf.stack(outputs, 1)) for _ in range(3)]
        expected = session.run(whole)
        coord.request_stop()
        with contextlib.suppress(tf.errors.CancelledError):  # the runner has closed it already
            session.run(batch._saver.close(True))
        coord.join(threads)
    np.testing.assert_allclose(np.concatenate(got, 1), expected, rtol=1e-5)


def test_sequences_of_another_length_are_refused_while_running():
    batch = T.batch_sequences_with_states(
        tf.constant("k"), {"x": np.zeros((4, 2))}, {}, 3, {"s": np.zeros(3)}, 3, 2, capacity=2, pad=False
    )
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch.key)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"x .*multiple of: 3, but saw value: 4\. Consider"):
            coord.join(threads)


@pytest.mark.parametrize(
    ("sequences", "length", "states", "error", "match"),
    [
        ({}, None, {"s": 0.0}, ValueError, "input_length"),
        ({"x": np.zeros((4, 2))}, 4, {}, ValueError, "initial state"),
        ({"x": np.zeros((4, 2))}, 4, {"s": tf.TensorShape(None)}, ValueError, "must be known"),
    ],
)
def test_what_is_refused(sequences, length, states, error, match):
    states = {
        key: tf.placeholder(tf.float32, value) if isinstance(value, tf.TensorShape) else value
        for key, value in states.items()
    }
    with pytest.raises(error, match=match):
        T.batch_sequences_with_states(tf.constant("k"), sequences, {}, length, states, 2, 1)


def test_names_of_states_are_checked():
    batch = T.batch_sequences_with_states(tf.constant("k"), {}, {}, 4, {"s": 0.0}, 2, 1)
    for use in (batch.state, lambda name: batch.save_state(name, 0.0)):
        with pytest.raises(KeyError, match="'t'"):
            use("t")
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    with pytest.raises(TypeError, match="dense"):
        T.SequenceQueueingStateSaver(1, 2, 2, "k", {"x": sparse}, {}, {"s": 0.0})


def test_states_are_saved_in_their_own_type_and_shape():
    length, state = tf.placeholder(tf.int32), tf.placeholder(tf.float32, [2])
    saver = T.SequenceQueueingStateSaver(1, 2, length, "k", {"x": tf.zeros([4, 3])}, {}, {"s": state}, capacity=1)
    batch = saver.next_batch
    with pytest.raises(ValueError, match="Rank check failed for s"):
        batch.save_state("s", np.zeros([1, 1, 1]))
    update = batch.save_state("s", np.array([[5.0, 6.0]]))
    with tf.Session() as session:
        session.run(saver.prefetch_op, {length: 3, state: [1.0, 2.0]})
        found = [session.run([batch.length, batch.state("s"), update])[:2] for _ in range(2)]
    assert [(at.tolist(), states.tolist()) for at, states in found] == [([2], [[1, 2]]), ([1], [[5, 6]])]


def test_there_is_room_for_a_batch():
    with pytest.raises(ValueError, match="capacity 10 needs to be >= batch_size 32"):
        T.SequenceQueueingStateSaver(32, 2, 2, "k", {"x": tf.zeros([4, 3])}, {}, {"s": 0.0}, capacity=10)
