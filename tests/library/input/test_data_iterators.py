"""Iterators of datasets: threads that read at once, threads behind them, what ends waits, and places in checkpoints."""

from __future__ import annotations

import contextlib
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.processes import PATIENCE_S, wait_for
from tfray.ops.resources import dataset_batches, dataset_sources, dataset_threads, dataset_transformations
from tfray.ops.resources.dataset_values import DatasetValue, IteratorResource, Walk

Dataset = tf.data.Dataset


def outcome(session, following):
    try:
        return session.run(following)
    except tf.errors.OutOfRangeError:
        return "end"
    except tf.errors.OpError as error:
        return type(error).__name__


def prefetching():
    return [thread for thread in threading.enumerate() if thread.name == "tfray-prefetch"]


# -- several readers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "prefetch", "parallel"])
def test_threads_that_read_at_once_share_the_elements(kind):
    count = 400
    dataset = Dataset.range(count).map(
        lambda x: tf.check_numerics(tf.cast(x, tf.float64) / tf.cast(x % 10, tf.float64), "bad") * 0 + tf.to_double(x),
        num_parallel_calls=3 if kind == "parallel" else None,
    )
    following = (dataset.prefetch(5) if kind == "prefetch" else dataset).make_one_shot_iterator().get_next()
    found = [[] for _ in range(6)]
    with tf.Session() as session:

        def read(mine):
            while not mine or mine[-1] != "end":
                mine.append(outcome(session, following))

        threads = [threading.Thread(target=read, args=(mine,)) for mine in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    everything = [each for mine in found for each in mine]
    assert everything.count("end") == 6
    assert everything.count("InvalidArgumentError") == count / 10
    assert sorted(each for each in everything if isinstance(each, float)) == [x for x in range(count) if x % 10]


# -- ends ----------------------------------------------------------------------------------------------


class Gate:
    """A generator that stands still before its third element until it is told to go on."""

    def __init__(self):
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self):
        for i in range(4):
            if i == 2:
                self.reached.set()
                assert self.open.wait(PATIENCE_S)
            yield i


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


def note_and(gate, function):
    """A function that tells the test that it was reached."""

    def noted(i):
        gate.reached.set()
        return function(i)

    return lambda x: tf.py_func(noted, [x], tf.int64)


def standing_still(gate):
    def function(i):
        if i == 2:
            gate.reached.set()
            gate.open.wait(PATIENCE_S)
        return i

    return Dataset.range(4).map(lambda x: tf.py_func(function, [x], tf.int64), num_parallel_calls=2)


def without_an_end():
    """0 and 1; and zeros for ever."""
    zeros = Dataset.from_tensors(np.int64(0)).repeat()
    return Dataset.range(2), zeros


def never_true(gate):
    first, zeros = without_an_end()
    return first.concatenate(zeros.map(note_and(gate, int)).filter(lambda x: x > 0))


def never_sound(gate):
    first, zeros = without_an_end()
    failing = zeros.map(note_and(gate, lambda i: 1 // int(i)))
    return first.concatenate(failing.apply(tf.data.experimental.ignore_errors()))


WAITS = {
    "prefetch": lambda gate: Dataset.from_generator(gate, tf.int64, []).prefetch(1),
    "prefetch twice": lambda gate: Dataset.from_generator(gate, tf.int64, []).prefetch(1).prefetch(1),
    "parallel": standing_still,
    "filter": never_true,
    "ignore_errors": never_sound,
}


@pytest.mark.fault(
    "Steps",
    "A session is closed while other threads run its steps.",
    happens="These steps raise `tf.errors.CancelledError`, which says that the session was closed.",
    promise="None of them waits on, whatever it computes or waits for.",
)
@pytest.mark.parametrize("kind", WAITS)
def test_closing_a_session_ends_who_waits_for_an_element(kind, gate):
    before = len(prefetching())
    following = WAITS[kind](gate).make_one_shot_iterator().get_next()
    session = tf.Session()
    assert [session.run(following) for _ in range(2)] == [0, 1]
    results = []
    thread = threading.Thread(target=lambda: results.append(outcome(session, following)))
    thread.start()
    assert gate.reached.wait(PATIENCE_S)
    session.close()
    thread.join(PATIENCE_S)
    assert results == ["CancelledError"]
    gate.open.set()
    wait_for(lambda: len(prefetching()) == before)


@pytest.mark.parametrize("kind", ["tfray-prefetch", "tfray-map"])
def test_threads_end_with_the_session_and_with_a_new_beginning(kind):
    def running():
        return [thread for thread in threading.enumerate() if thread.name.startswith(kind)]

    before = len(running())
    numbers = Dataset.range(1000).repeat()
    dataset = numbers.prefetch(3) if kind == "tfray-prefetch" else numbers.map(lambda x: x, num_parallel_calls=2)
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    session = tf.Session()
    for _ in range(5):
        session.run(iterator.initializer)
        assert session.run(following) == 0
    wait_for(lambda: before < len(running()) <= before + 2)
    session.close()
    wait_for(lambda: len(running()) == before)


@pytest.mark.fault(
    "Input",
    "A generator exits (`sys.exit`).",
    happens="`tf.errors.UnknownError` in its place, and then the end.",
    promise="Nobody waits for elements that will not come.",
)
def test_a_thread_that_exits_is_an_error_at_its_place():
    def numbers():
        yield 1
        raise SystemExit(3)

    following = Dataset.from_generator(numbers, tf.int64, []).prefetch(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [outcome(session, following) for _ in range(4)] == [1, "UnknownError", "end", "end"]


class Held(DatasetValue):
    """Numbers, the second of which waits for the test."""

    def __init__(self):
        self.open_gate = threading.Event()

    def open(self, walk):
        def number(i):
            assert i != 1 or self.open_gate.wait(PATIENCE_S)
            return (np.int64(i),)

        return map(number, range(4))


@pytest.mark.parametrize("batches", [False, True])
def test_who_gives_up_at_a_deadline_leaves_the_element_to_the_next(batches):
    held = Held()
    ahead = dataset_threads.Prefetched(held, 1)
    resource = IteratorResource("iterator")
    resource.restart(dataset_batches.Batched(ahead, 2, False) if batches else ahead)
    if not batches:
        assert resource.next() == (0,)
    for _ in range(2):
        with pytest.raises(tf.errors.DeadlineExceededError):
            resource.next(time.monotonic() + 0.01)
    held.open_gate.set()
    if batches:
        assert [resource.next()[0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    else:
        assert [resource.next() for _ in range(3)] == [(1,), (2,), (3,)]
    assert resource.next() is None


# -- places in checkpoints -----------------------------------------------------------------------------


def damaged(count, bad):
    """Numbers with errors in place of `bad`, shuffled, repeated and prefetched."""

    def number(i):
        if i in bad:
            raise tf.errors.DataLossError(f"{i} is damaged")
        return (np.int64(i),)

    class Numbers(DatasetValue):
        def open(self, walk):
            return map(number, range(count))

    shuffled = dataset_transformations.Shuffled(Numbers(), 3, (1, 2), True)
    return dataset_threads.Prefetched(dataset_transformations.Repeated(shuffled, 3), 2)


def all_outcomes(resource, limit=200):
    found = []
    while len(found) < limit:
        try:
            element = resource.next()
        except tf.errors.DataLossError as error:
            found.append(str(error))
            continue
        if element is None:
            return found
        found.append(int(element[0]))
    raise AssertionError("there is no end")


@pytest.mark.fault(
    "Input",
    "A pipeline is restored behind an element that failed.",
    happens="It goes on at the same place.",
    promise="No element comes twice, and none is left out.",
)
@given(count=st.integers(1, 12), bad=st.sets(st.integers(0, 11)), taken=st.integers(0, 40))
@settings(deadline=None, max_examples=40)
def test_a_place_behind_errors_is_found_again(count, bad, taken):
    first, second = IteratorResource("first"), IteratorResource("second")
    first.restart(damaged(count, bad))
    everything = all_outcomes(first)
    first.restart(damaged(count, bad))
    for _ in range(min(taken, len(everything))):
        with contextlib.suppress(tf.errors.DataLossError):
            first.next()
    state = first.state()
    rest = everything[min(taken, len(everything)) :]
    second.restart(damaged(count, bad))
    second.restore_state(state)
    first.restore_state(state)
    assert all_outcomes(first) == all_outcomes(second) == rest
    assert first.next() is None and second.next() is None


@given(count=st.integers(0, 700), size=st.integers(1, 300), seed=st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_the_order_of_a_shuffle_is_that_of_numbers_drawn_one_by_one(count, size, seed):
    generator = np.random.default_rng([seed, 0, 0])
    numbers = list(range(count))
    buffer, expected = numbers[:size], []
    for number in numbers[size:]:
        chosen = int(generator.integers(size))
        expected.append(buffer[chosen])
        buffer[chosen] = number
    generator.shuffle(buffer)
    shuffled = dataset_transformations.Shuffled(dataset_sources.Range(0, count, 1), size, (seed, 0), True)
    assert [int(value) for (value,) in shuffled.open(Walk())] == expected + buffer


def test_random_numbers_of_a_place_come_back(tmp_path):
    def build():
        dataset = Dataset.range(8).map(
            lambda x: tf.check_numerics(tf.random_uniform([], seed=4) / tf.cast(tf.not_equal(x, 2), tf.float32), "bad")
        )
        iterator = dataset.repeat(2).make_one_shot_iterator()
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        return iterator.get_next(), tf.train.Saver([saveable])

    following, saver = build()
    path = str(tmp_path / "model")
    with tf.Session() as session:
        assert [isinstance(outcome(session, following), str) for _ in range(5)] == [False, False, True, False, False]
        saver.save(session, path)
        expected = [outcome(session, following) for _ in range(12)]
        saver.restore(session, path)
        assert [outcome(session, following) for _ in range(12)] == expected
    with tf.Graph().as_default(), tf.Session() as session:
        following, saver = build()
        saver.restore(session, path)
        assert [outcome(session, following) for _ in range(12)] == expected


def test_iterators_of_functions_of_tf_data():
    """Programs of TensorFlow 1.13 and later make iterators by functions."""
    numbers = tf.data.Dataset.range(3)
    once = tf.data.make_one_shot_iterator(numbers).get_next()
    anew = tf.data.make_initializable_iterator(numbers)
    again = anew.get_next()
    with tf.Session() as session:
        session.run(anew.initializer)
        assert [session.run([once, again]) for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]


def test_an_iterator_is_found_again_by_the_name_of_its_handle():
    dataset = Dataset.range(3)
    iterator = dataset.make_initializable_iterator()
    name = iterator._iterator_resource.name
    again = tf.data.Iterator(tf.get_default_graph().get_tensor_by_name(name), None, tf.int64)
    with tf.Session() as session:
        session.run(again.make_initializer(dataset))
        assert [session.run(each.get_next()) for each in (iterator, again, iterator)] == [0, 1, 2]
