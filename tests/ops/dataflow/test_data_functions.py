"""Functions of datasets do all that they say, for each element, and begin anew when an iterator does."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.ops.resources.dataset_threads import _Line
from tfray.ops.resources.dataset_values import Walk

Dataset = tf.data.Dataset
TAKES = {
    "map": lambda dataset, function: dataset.map(function),
    "map, parallel": lambda dataset, function: dataset.map(function, num_parallel_calls=2),
    "filter": lambda dataset, function: dataset.filter(lambda x: function(x) >= 0),
    "flat_map": lambda dataset, function: dataset.flat_map(lambda x: Dataset.from_tensors(function(x))),
    "flat_map, unused": lambda dataset, function: dataset.flat_map(lambda x: [function(x), Dataset.from_tensors(x)][1]),
    "interleave": lambda dataset, function: dataset.interleave(lambda x: Dataset.from_tensors(function(x)), 2),
    "scan": lambda dataset, function: dataset.apply(
        tf.data.experimental.scan(0, lambda state, x: (state + 1, function(x)))
    ),
    "take_while": lambda dataset, function: dataset.apply(tf.data.experimental.take_while(lambda x: function(x) >= 0)),
}


def counter(name="count", value=0):
    return tf.get_variable(name, [], tf.int64, initializer=tf.constant_initializer(value))


def taken(session, following, number=100):
    """Up to `number` elements, with the names of errors among them."""
    found = []
    for _ in range(number):
        try:
            found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            break
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.fault(
    "Input",
    "A function of a pipeline changes variables, or calls Python.",
    happens="It does so for each element, with the values that variables then have.",
    promise="No effect is dropped.",
)
@pytest.mark.parametrize("kind", TAKES)
def test_effects_happen_for_each_element(kind):
    count, seen = counter(), []

    def note(x):
        seen.append(int(x))

    def function(x):
        count.assign_add(1)
        tf.py_func(note, [x], [])
        return x

    iterator = TAKES[kind](Dataset.range(5), function).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run([count.initializer, iterator.initializer])
        assert taken(session, following) == [0, 1, 2, 3, 4]
        assert session.run(count) == 5 and sorted(seen) == [0, 1, 2, 3, 4]


def test_effects_of_a_reduction():
    count = counter()

    def add(total, x):
        count.assign_add(x)
        return total + 1

    result = Dataset.range(5).reduce(np.int64(0), add)
    with tf.Session() as session:
        session.run(count.initializer)
        assert session.run(result) == 5
        assert session.run(count) == 10


def test_effects_within_branches_and_loops():
    count, turns = counter(), counter("turns")

    def function(x):
        tf.cond(x > 1, lambda: tf.group(count.assign_add(1)), tf.no_op)

        def body(i):
            turns.assign_add(1)
            return i + 1

        tf.while_loop(lambda i: i < x, body, [np.int64(0)])
        return x

    iterator = Dataset.range(5).map(function).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), iterator.initializer])
        assert taken(session, following) == [0, 1, 2, 3, 4]
        assert session.run([count, turns]) == [3, 10]


def test_elements_go_into_a_queue_and_lines_to_standard_error(capfd):
    queue = tf.FIFOQueue(10, tf.int64, [])

    def function(x):
        queue.enqueue(x * 10)
        tf.print("element", x)
        return x

    following = Dataset.range(3).map(function).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert taken(session, following) == [0, 1, 2]
        assert [session.run(queue.dequeue()) for _ in range(3)] == [0, 10, 20]
    assert capfd.readouterr().err.splitlines() == ["element 0", "element 1", "element 2"]


def test_assertions_need_not_be_fetched():
    def function(x):
        tf.Assert(tf.not_equal(x, 2), ["two"])
        return x

    following = Dataset.range(5).map(function).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert taken(session, following) == [0, 1, "InvalidArgumentError", 3, 4]


def test_reads_and_updates_happen_in_the_order_of_the_program():
    count = counter()

    def function(x):
        before = count + 0
        count.assign_add(1)
        return before, count + 0, x

    following = Dataset.range(3).map(function).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(count.initializer)
        assert taken(session, following) == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]


@pytest.mark.parametrize("within", [False, True])
def test_variables_are_read_for_each_element(within):
    factor = counter("factor", 1)

    def function(x):
        return tf.cond(x >= 0, lambda: x * factor, lambda: x) if within else x * factor

    following = Dataset.range(4).map(function).make_one_shot_iterator().get_next()
    more = factor.assign_add(1)
    with tf.Session() as session:
        session.run(factor.initializer)
        found = []
        for _ in range(4):
            found.append(session.run(following))
            session.run(more)
    assert found == [0, 2, 6, 12]


def drawn(kind, seed):
    """A dataset of random numbers or of a random order."""
    if kind == "map":
        return Dataset.range(6).map(lambda x: tf.random_uniform([], seed=seed))
    if kind == "flat_map":
        return Dataset.range(2).flat_map(lambda x: Dataset.range(3).map(lambda y: tf.random_uniform([], seed=seed)))
    return Dataset.range(20).shuffle(20, seed, reshuffle_each_iteration=kind == "shuffle")


@pytest.mark.parametrize("kind", ["map", "flat_map", "shuffle", "shuffle once"])
@pytest.mark.parametrize(("graph_seed", "seed"), [(None, 5), (7, None), (7, 5), (None, None)])
def test_random_numbers_begin_anew_with_the_iterator(kind, graph_seed, seed):
    """As observed in TensorFlow 2.21, with initializable iterators and no parallel calls."""
    tf.set_random_seed(graph_seed)
    dataset = drawn(kind, seed)
    iterator, repeated = dataset.make_initializable_iterator(), dataset.repeat(2).make_initializable_iterator()
    following, both = iterator.get_next(), repeated.get_next()
    with tf.Session() as session:
        session.run([iterator.initializer])
        first = taken(session, following)
        session.run(iterator.initializer)
        partial = taken(session, following, 3)
        session.run(iterator.initializer)
        second = taken(session, following)
        session.run(repeated.initializer)
        passes = taken(session, both)
    with tf.Session() as session:
        session.run(iterator.initializer)
        elsewhere = taken(session, following)
    if graph_seed is None and seed is None:
        assert first != second and first != elsewhere
        return
    assert first == second == elsewhere == passes[: len(first)] and partial == first[:3]
    assert (passes[len(first) :] == first) == (kind == "shuffle once")


def test_iterators_over_one_dataset_do_not_take_numbers_from_each_other():
    dataset = Dataset.range(4).map(lambda x: tf.random_uniform([], seed=3))
    first, second = dataset.make_one_shot_iterator().get_next(), dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        pairs = [session.run([first, second]) for _ in range(4)]
    assert all(a == b for a, b in pairs) and len({a for a, _ in pairs}) == 4


class LateWalk(Walk):
    """A walk in which an element comes when somebody waits for it."""

    def __init__(self, line):
        super().__init__()
        self.line = line

    def remaining_s(self):
        self.line.make_ahead()
        return 0.0


@pytest.mark.parametrize(("largest", "room"), [(2, 2), (3, 3), (16, 4)])
def test_a_line_that_was_full_and_is_found_empty_gets_longer(largest, room):
    line = _Line(iter(range(100)), 2, largest)
    walk = LateWalk(line)
    for _ in range(2):
        assert line.make_ahead()
    assert [line.take(walk) for _ in range(3)] == [0, 1, 2]

    def fill():
        for _ in range(room):
            line.make_ahead()

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert [line.take(walk) for _ in range(room)] == list(range(3, 3 + room))


def test_prefetching_as_many_as_it_takes_changes_no_element():
    dataset = tf.data.Dataset.range(50).map(lambda i: i * 3, num_parallel_calls=tf.data.experimental.AUTOTUNE)
    assert list(dataset.prefetch(tf.data.experimental.AUTOTUNE)) == [3 * i for i in range(50)]


@pytest.mark.parametrize("threads", [None, 2])
def test_a_function_may_end_the_dataset(threads):
    def until_five(i):
        if i >= 5:
            raise StopIteration
        return i

    numbers = tf.data.Dataset.range(9).map(lambda i: tf.py_func(until_five, [i], tf.int64), threads)
    assert list(numbers) == [0, 1, 2, 3, 4]
    assert [batch.tolist() for batch in numbers.batch(3)] == [[0, 1, 2], [3, 4]]
