"""What queues refuse, in TensorFlow's words, and what they are called."""

from __future__ import annotations

import pytest

import tfray as tf


@pytest.mark.parametrize(
    ("build", "given", "message"),
    [
        (
            lambda fed: tf.FIFOQueue(3, tf.float32, [(3,)]).enqueue(fed),
            [1.0],
            r"component 0\. Expected \[3\], got \[1\]",
        ),
        (
            lambda fed: tf.PaddingFIFOQueue(3, tf.float32, [(None, 3)]).enqueue_many(fed),
            [[[1.0]], [[2.0]]],
            r"component 0\. Expected \[2,\?,3\], got \[2,1,1\]",
        ),
        (lambda fed: tf.FIFOQueue(3, tf.float32).dequeue_many(2), None, "to have specified shapes"),
        (
            lambda fed: tf.FIFOQueue.from_list(2, [tf.FIFOQueue(3, tf.float32)] * 2).dequeue(),
            None,
            r"range \[0, 2\) but 2 is not in it",
        ),
    ],
)
def test_refusals_of_kernels(build, given, message):
    fed = tf.placeholder(tf.float32)
    operation = build([fed])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(operation, {} if given is None else {fed: given})


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"capacity": 3}, {"capacity": 4}, "has capacity 3 but requested capacity were 4"),
        ({"dtypes": tf.float32}, {"dtypes": tf.int32}, "component types"),
        ({"shapes": [()]}, {}, "component shapes"),
        ({"seed": 1}, {"seed": 2}, "random seeds"),
        ({"min_after_dequeue": 1}, {}, "min_after_dequeue"),
    ],
)
def test_queues_of_one_shared_name_are_alike(first, second, message):
    usual = {"capacity": 3, "min_after_dequeue": 0, "dtypes": tf.float32, "shared_name": "one"}
    sizes = [tf.RandomShuffleQueue(**{**usual, **more}).size() for more in (first, second)]
    with tf.Session() as session:
        session.run(sizes[0])
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(sizes[1])


def test_dictionaries_and_names():
    named, plain = tf.FIFOQueue(3, tf.float32, names="only"), tf.FIFOQueue(3, tf.float32)
    with pytest.raises(ValueError, match="must have names"):
        plain.enqueue({"only": 1.0})
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        named.enqueue(1.0)
    with pytest.raises(ValueError, match="do not match names of Queue"):
        named.enqueue({"other": 1.0})


def test_no_strings_end_the_queue_that_is_to_give_them():
    queue = tf.train.string_input_producer(tf.constant([], tf.string))
    following = queue.dequeue()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.OutOfRangeError, match=r"insufficient elements \(requested 1, current size 0\)"):
            session.run(following)
        coordinator.request_stop()
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.FIFOQueue(3, tf.float32, [[]], name=None),
        lambda: tf.PaddingFIFOQueue(3, tf.float32, [[]], name=None),
        lambda: tf.RandomShuffleQueue(3, 0, tf.float32, [[]], name=None),
    ],
)
def test_queues_without_a_name(make):
    first, second = make(), make()
    assert first.name != second.name
    with tf.Session() as session:
        session.run([first.enqueue(1.0), second.enqueue(2.0)])
        assert session.run([first.dequeue(), second.dequeue()]) == [1, 2]
    with pytest.raises(TypeError, match="name must be"):
        tf.FIFOQueue(3, tf.float32, name=3)


@pytest.mark.parametrize(("capacity", "least"), [(4, 8), (4, 4)])
def test_more_elements_must_fit_than_must_stay(capacity, least):
    queue = tf.RandomShuffleQueue(capacity, least, tf.int32, [()])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=f"{least} must be .* < capacity"):
        session.run(queue.size())


def test_a_queue_without_bounds_may_keep_elements():
    with tf.Session() as session:
        assert session.run(tf.RandomShuffleQueue(-1, 8, tf.int32, [()]).size()) == 0
