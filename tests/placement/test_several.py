"""Queue runners take several elements at a time where nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.processes import PATIENCE_S
from tests.support.waiting import Task, resource, until_waiting
from tfray.errors import CancelledError, ClosedError, DataLossError, InvalidArgumentError, OutOfRangeError
from tfray.ops.resources import reader_resource
from tfray.ops.resources.queue_resource import Queue
from tfray.placement.several import several_at_once

ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)
ENQUEUE, DEQUEUE = 0, 1


def source(capacity=32, kind=tf.FIFOQueue):
    least = {"min_after_dequeue": 0} if kind is tf.RandomShuffleQueue else {}
    return kind(capacity=capacity, dtypes=[tf.int32], shapes=[()], name="source", **least)


def pipeline(compute, queue=None, capacity=50):
    """A queue, and the operation that adds to another one what `compute` makes of its elements."""
    queue = queue or source()
    made = compute(queue.dequeue())
    made = made if isinstance(made, list) else [made]
    target = tf.FIFOQueue(capacity, [t.dtype for t in made], shapes=[t.shape for t in made], name="target")
    return queue, target, target.enqueue(made)


def _with_control(index):
    with tf.control_dependencies([tf.no_op()]):
        return tf.identity(index)


def _counted(index):
    return [index, tf.Variable(0, name="counter").assign_add(1)]


def _drawn(index):
    return [index, tf.random_uniform([])]


def _called(index):
    return tf.reshape(tf.py_func(lambda i: i + 1, [index], tf.int32), [])


COMPUTED = {
    "element": lambda index: index,
    "arithmetic": lambda index: [index * 2 + 1, tf.cast(index, tf.float32) / 4],
    "rows": lambda index: [tf.gather(tf.constant(ROWS), index), index],
    "text": lambda index: tf.as_string(index),
    "variable": lambda index: index + tf.Variable(7, name="added"),
}
ONE_BY_ONE = {
    "random numbers": _drawn,
    "counter": _counted,
    "Python": _called,
    "control edges": _with_control,
    "no element": lambda index: [index, tf.constant(1)],
    "branch": lambda index: tf.cond(index > 2, lambda: index, lambda: -index),
    "two elements": lambda index: index + source(capacity=3).dequeue(),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_several_steps_at_once_do_what_they_do_one_by_one(session, name):
    queue, target, enqueue = pipeline(COMPUTED[name])
    session.run(tf.global_variables_initializer())
    session.run(queue.enqueue_many([np.arange(17, dtype=np.int32)]))
    several = session.make_several(enqueue)
    for _ in range(5):
        session.run(enqueue)
    several()
    found = session.run(target.dequeue_many(17))
    session.run(queue.enqueue_many([np.arange(17, dtype=np.int32)]))
    for _ in range(17):
        session.run(enqueue)
    assert session.run([queue.size(), target.size()]) == [0, 17]
    tf.contrib.framework.nest.map_structure(np.testing.assert_array_equal, found, session.run(target.dequeue_many(17)))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_differs_from_step_to_step_is_done_one_by_one(session, name):
    _, _, enqueue = pipeline(ONE_BY_ONE[name])
    assert several_at_once(enqueue) is None and session.make_several(enqueue) is None


@pytest.mark.parametrize(
    "queue",
    [
        lambda: tf.FIFOQueue(9, tf.int32, name="without_shapes"),
        lambda: tf.PaddingFIFOQueue(9, tf.int32, shapes=[[None]]),
    ],
)
def test_elements_of_unknown_shape_are_taken_one_by_one(queue):
    made = queue()
    target = tf.FIFOQueue(9, tf.int32)
    assert several_at_once(target.enqueue(made.dequeue())) is None


def test_other_operations_have_no_such_form(session):
    queue, target, enqueue = pipeline(lambda index: index)
    for other in (tf.no_op(), queue.size(), queue.enqueue(1), target.enqueue_many([[1, 2]]), queue.close()):
        assert several_at_once(other) is None
    limited = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=60_000))
    assert limited.make_several(enqueue) is None


@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.sampled_from([tf.FIFOQueue, tf.RandomShuffleQueue]),
    st.lists(st.sampled_from(["several", "one", "take"]), max_size=25),
)
@settings(max_examples=20, deadline=None)
def test_no_more_is_taken_than_there_is_room_for(there, capacity, kind, steps):
    with tf.Graph().as_default(), tf.Session() as session:
        queue, target, enqueue = pipeline(lambda index: index * 3, source(40, kind), capacity)
        session.run(queue.enqueue_many([np.arange(there, dtype=np.int32)]))
        several, single, taken = session.make_several(enqueue), session.make_callable(enqueue), []
        for step in steps:
            left, added = session.run([queue.size(), target.size()])
            if step == "take" and added:
                taken.append(session.run(target.dequeue()))
            elif step != "take" and left and added < capacity:
                (several if step == "several" else single)()
                moved = min(left, capacity - added) if step == "several" else 1
                assert session.run([queue.size(), target.size()]) == [left - moved, added + moved]
        rest = session.run([target.dequeue() for _ in range(session.run(target.size()))])
        rest += [3 * index for index in session.run([queue.dequeue() for _ in range(session.run(queue.size()))])]
        found = np.array([*taken, *rest])
        np.testing.assert_array_equal(np.sort(found), 3 * np.arange(there))
        if kind is tf.FIFOQueue:
            assert found.tolist() == sorted(found)


def test_one_element_waits_where_there_is_no_room(session):
    queue, target, enqueue = pipeline(lambda index: index, capacity=2)
    session.run(queue.enqueue_many([[1, 2, 3, 4, 5]]))
    several = session.make_several(enqueue)
    several()
    task = Task(several)
    until_waiting(session, "target", ENQUEUE)
    assert session.run([queue.size(), target.size()]) == [2, 2]
    assert session.run(target.dequeue_many(2)).tolist() == [1, 2]
    task.result()
    assert session.run(target.dequeue()) == 3


def looked_up(index):
    """The number of a row; on a CPU, which refuses an index that is out of range."""
    with tf.device("/cpu:0"):
        return tf.gather(tf.constant(ROWS[:, 0]), index)


def test_a_step_that_fails_gives_back_what_it_has_taken(session):
    queue, target, enqueue = pipeline(looked_up)
    session.run(queue.enqueue_many([[1, 2, 99, 3]]))
    with pytest.raises(InvalidArgumentError):
        session.make_several(enqueue)()
    assert session.run([queue.size(), target.size()]) == [4, 0]
    assert session.run(queue.dequeue_many(4)).tolist() == [1, 2, 99, 3]


def test_what_finds_no_room_before_a_queue_is_closed_goes_back(session):
    """Of three elements one is added, and two are back: another step has taken the room."""
    queue, target, enqueue = pipeline(lambda index: index, capacity=2)
    session.run(queue.enqueue_many([[1, 2, 3]]))
    several = session.make_several(enqueue)
    whole = Queue.enqueue_some

    def late(self, *arguments):
        self._push([(7,)])
        return whole(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Queue, "enqueue_some", late)
        task = Task(several)
        until_waiting(session, "target", ENQUEUE)
        session.run(target.close(cancel_pending_enqueues=True))
        with pytest.raises(CancelledError):
            task.result()
    assert session.run([queue.size(), target.size()]) == [2, 2]
    assert session.run(target.dequeue_many(2)).tolist() == [7, 1]
    assert session.run(queue.dequeue_many(2)).tolist() == [2, 3]


def test_a_step_that_is_cancelled_while_it_waits_takes_nothing(session):
    queue, _, enqueue = pipeline(lambda index: index)
    task = Task(session.make_several(enqueue))
    until_waiting(session, "source", DEQUEUE)
    session.run(queue.close())
    with pytest.raises(OutOfRangeError, match=r"requested 1, current size 0"):
        task.result()


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_runner_tells_of_the_element_that_fails(session, monkeypatch, one_by_one):
    """The elements before it are there, and those behind it are left."""
    if one_by_one:
        monkeypatch.setattr(tf.Session, "make_several", lambda self, operation: None)
    queue, target, enqueue = pipeline(looked_up)
    runner = tf.train.QueueRunner(target, [enqueue])
    session.run(queue.enqueue_many([[1, 2, 99, 3]]))
    coordinator = tf.train.Coordinator()
    for thread in runner.create_threads(session, coordinator, start=True):
        thread.join(PATIENCE_S)
    with pytest.raises(InvalidArgumentError, match=r"indices = 99 is not in \[0, 20\)") as caught:
        coordinator.join()
    assert caught.value.op_name.startswith("GatherV2")
    assert session.run([queue.size(), target.size()]) == [1, 2]


# -- records of readers --------------------------------------------------------------------------------


def records(folder, counts, width=2, broken=()):
    """Files of examples of the numbers 0, 1, 2, ...; the numbers in `broken` are no examples."""
    number, paths = 0, []
    for index, count in enumerate(counts):
        paths.append(str(folder / f"{index}.tfrecord"))
        with tf.python_io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(count):
                value = tf.train.Feature(float_list=tf.train.FloatList(value=[number] * width))
                example = tf.train.Example(features=tf.train.Features(feature={"x": value}))
                writer.write(b"\xff" if number in broken else example.SerializeToString())
                number += 1
    return paths


def reading(paths, capacity=50):
    """A reader of files, the queue of their names, another queue, and the operation that adds what it reads to it."""
    names = tf.FIFOQueue(32, tf.string, shapes=[()], name="source")
    reader = tf.TFRecordReader()
    key, record = reader.read(names)
    features = tf.parse_single_example(record, {"x": tf.FixedLenFeature([2], tf.float32)})
    target = tf.FIFOQueue(capacity, [tf.string, tf.float32], shapes=[(), (2,)], name="target")
    return reader, names, target, target.enqueue([key, features["x"]])


def numbers(session, target):
    count = session.run(target.size())
    return session.run(target.dequeue_many(count))[1][:, 0].astype(int).tolist()


def test_records_are_read_several_at_once_as_they_are_one_by_one(session, tmp_path):
    paths = records(tmp_path, [3, 0, 1, 9])
    reader, names, target, enqueue = reading(paths)
    several, counts = session.make_several(enqueue), [reader.num_records_produced(), reader.num_work_units_completed()]
    session.run(names.enqueue_many([paths]))
    for read, completed in ((3, 0), (4, 2), (13, 3)):  # the end of a file is met by the read that comes behind it
        several()
        assert session.run(counts) == [read, completed]
    found = session.run(target.dequeue_many(13))
    session.run(names.enqueue_many([paths]))
    for _ in range(13):
        session.run(enqueue)
    for at_once, one_by_one in zip(found, session.run(target.dequeue_many(13)), strict=True):
        np.testing.assert_array_equal(at_once, one_by_one)
    assert session.run(counts) == [26, 7]


def test_no_more_records_are_read_than_there_is_room_for(session, tmp_path):
    paths = records(tmp_path, [5])
    reader, names, target, enqueue = reading(paths, capacity=2)
    several, read = session.make_several(enqueue), reader.num_records_produced()
    session.run(names.enqueue_many([paths]))
    several()
    assert session.run([target.size(), read]) == [2, 2]
    task = Task(several)
    until_waiting(session, "target", ENQUEUE)
    assert session.run(read) == 3
    session.run(target.close(cancel_pending_enqueues=True))
    with pytest.raises(CancelledError):
        task.result()
    assert numbers(session, target) == [0, 1]
    assert session.run(read) == 2
    assert session.run(reader.read(names))[0].endswith(b":74")  # where the third record begins: it is back


@pytest.mark.parametrize("limit", ["_AT_ONCE_S", "_AT_ONCE_BYTES"])
def test_large_records_and_those_of_slow_files_do_not_wait_for_one_another(session, monkeypatch, tmp_path, limit):
    paths = records(tmp_path, [5])
    _, names, target, enqueue = reading(paths)
    session.run(names.enqueue_many([paths]))
    several = session.make_several(enqueue)
    monkeypatch.setattr(reader_resource, limit, 0)
    for count in (1, 2):
        several()
        assert session.run(target.size()) == count
    monkeypatch.undo()
    several()
    assert numbers(session, target) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_runner_tells_of_the_record_that_is_no_example(session, monkeypatch, tmp_path, one_by_one):
    if one_by_one:
        monkeypatch.setattr(tf.Session, "make_several", lambda self, operation: None)
    paths = records(tmp_path, [2, 4], broken=[3])
    reader, names, target, enqueue = reading(paths)
    runner = tf.train.QueueRunner(target, [enqueue])
    session.run(names.enqueue_many([paths]))
    session.run(names.close())
    coordinator = tf.train.Coordinator()
    for thread in runner.create_threads(session, coordinator, start=True):
        thread.join(PATIENCE_S)
    with pytest.raises(InvalidArgumentError, match="malformed") as caught:
        coordinator.join()
    assert caught.value.op_name.startswith("ParseSingleExample")
    assert numbers(session, target) == [0, 1, 2]
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [4, 1]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_records_before_one_that_cannot_be_read_are_there(session, monkeypatch, tmp_path, one_by_one):
    """The error ends the runner, and the next read goes on with the next file."""
    if one_by_one:
        monkeypatch.setattr(tf.Session, "make_several", lambda self, operation: None)
    paths = records(tmp_path, [4, 2])
    whole = (tmp_path / "0.tfrecord").read_bytes()
    (tmp_path / "0.tfrecord").write_bytes(whole[:-3])
    _, names, target, enqueue = reading(paths)
    session.run(names.enqueue_many([paths]))
    session.run(names.close())
    coordinator = tf.train.Coordinator()
    for thread in tf.train.QueueRunner(target, [enqueue]).create_threads(session, coordinator, start=True):
        thread.join(PATIENCE_S)
    with pytest.raises(DataLossError) as caught:
        coordinator.join()
    assert caught.value.op_name.startswith("ReaderRead") and "test_several.py" in caught.value.site
    assert numbers(session, target) == [0, 1, 2]


def test_records_that_go_back_after_their_file_has_ended_come_first(session, tmp_path):
    paths = records(tmp_path, [3, 3])
    reader, names, target, _ = reading(paths)
    key, _ = reader.read(names)
    session.run([names.enqueue_many([paths]), target.size(), reader.num_records_produced()])
    real, work, room = (resource(session, name) for name in (reader.reader_ref.op.name, "source", "target"))
    taken = real.read_some(work, room, 10).result()
    assert len(taken.elements) == 3
    assert session.run(key) == f"{paths[1]}:0".encode()
    taken.release()
    assert session.run(reader.num_records_produced()) == 1
    starts = [session.run(key).rpartition(b":")[2] for _ in range(5)]
    assert starts == [b"0", b"37", b"74", b"37", b"74"]
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [6, 1]


def test_a_reader_that_reads_from_the_queue_to_which_it_adds_reads_one_by_one(session):
    names = tf.FIFOQueue(9, tf.string, shapes=[()], name="source")
    _, record = tf.IdentityReader().read(names)
    assert several_at_once(names.enqueue(record)) is None


@pytest.mark.parametrize("threads", [1, 4])
def test_runners_read_every_record_once(session, tmp_path, threads):
    paths = records(tmp_path, [7, 0, 40, 1, 90], width=2)
    _, names, target, enqueue = reading(paths, capacity=11)
    session.run(names.enqueue_many([paths]))
    session.run(names.close())
    runner = tf.train.QueueRunner(target, [enqueue] * threads)
    dequeue, found = target.dequeue(), []
    started = runner.create_threads(session, start=True)
    with pytest.raises(OutOfRangeError):
        while True:
            found.append(int(session.run(dequeue)[1][0]))
    for thread in started:
        thread.join(PATIENCE_S)
    assert sorted(found) == list(range(138))
    if threads == 1:
        assert found == sorted(found)


def test_closing_the_session_ends_a_runner_that_waits():
    _, target, enqueue = pipeline(lambda index: index)
    session = tf.Session()
    runner = tf.train.QueueRunner(target, [enqueue])
    (thread,) = runner.create_threads(session, start=True)
    until_waiting(session, "source", DEQUEUE)
    session.close()
    thread.join(PATIENCE_S)
    assert [isinstance(error, (CancelledError, ClosedError)) for error in runner.exceptions_raised] == [True]
