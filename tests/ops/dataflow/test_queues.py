"""Queues: what they hold and give, who waits for whom, and how waiting ends."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import Task, raised_at_the_limit, resource, timed_out, until_waiting, waiting
from tfray.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
)

ENQUEUE, DEQUEUE = 0, 1


def drained(session, queue):
    """Everything that is in a queue."""
    dequeue = queue.dequeue()
    return [session.run(dequeue) for _ in range(session.run(queue.size()))]


# -- what goes in comes out ----------------------------------------------------------------------------


def test_elements_come_in_the_order_in_which_they_went_in(session):
    queue = tf.FIFOQueue(10, tf.float32)
    value = tf.placeholder(tf.float32)
    enqueue = queue.enqueue((value,))
    for number in (10.0, 20.0, 30.0):
        session.run(enqueue, {value: number})
    assert session.run(queue.size()) == 3
    assert drained(session, queue) == [10.0, 20.0, 30.0]


def test_an_element_has_components(session):
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32, tf.string], shapes=[[], [2], []])
    session.run(queue.enqueue([5, [1.0, 2.0], "five"]))
    number, pair, text = queue.dequeue()
    assert (number.dtype, pair.shape.as_list(), text.dtype) == (tf.int32, [2], tf.string)
    got = session.run([number, pair, text])
    assert got[0] == 5 and got[1].tolist() == [1.0, 2.0] and got[2] == b"five"
    assert np.asarray(got[0]).dtype == np.int32


def test_elements_with_names_are_dictionaries(session):
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32], names=["i", "f"], shapes=[[], []])
    session.run(queue.enqueue({"i": 1, "f": 2.0}))
    session.run(queue.enqueue_many({"f": [3.0, 4.0], "i": [2, 3]}))
    assert session.run(queue.dequeue()) == {"i": 1, "f": 2.0}
    rest = session.run(queue.dequeue_many(2))
    assert rest["i"].tolist() == [2, 3] and rest["f"].tolist() == [3.0, 4.0]
    for wrong in ([1, 2.0], {"i": 1}, {"i": 1, "f": 2.0, "g": 3}):
        with pytest.raises(ValueError, match=r"enqueue a dictionary|names of Queue"):
            queue.enqueue(wrong)
    with pytest.raises(ValueError, match="names"):
        tf.FIFOQueue(10, tf.int32).enqueue({"i": 1})


@pytest.mark.parametrize(
    ("dtype", "rows"),
    [
        (tf.float32, np.arange(12, dtype=np.float32).reshape(4, 3)),
        (tf.int64, np.arange(4)),
        (tf.string, np.array([b"a", b"", b"ccc", b"d"], object)),
        (tf.string, np.array([[b"a", b"b"], [b"c", b"d"]], object)),
        (tf.bool, np.array([True, False])),
        (tf.complex64, np.array([[1j], [2]], np.complex64)),
        (tf.float32, np.zeros((3, 0, 2), np.float32)),
        (tf.float16, np.ones((2, 2, 2), np.float16)),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [tf.FIFOQueue, tf.PaddingFIFOQueue])
def test_rows_go_in_and_come_out_one_by_one_or_together(session, make, dtype, rows):
    queue = make(100, dtype, [rows.shape[1:]])
    fill = queue.enqueue_many([rows])
    session.run(fill)
    for row in rows:
        one = session.run(queue.dequeue())
        np.testing.assert_array_equal(one, row)
    session.run(fill)
    many = session.run(queue.dequeue_many(len(rows)))
    assert many.dtype == rows.dtype and many.shape == rows.shape
    np.testing.assert_array_equal(many, rows)


def test_any_combination_of_one_and_many_works(session):
    queue = tf.FIFOQueue(20, [tf.int32, tf.int32], shapes=[[], [2]])
    for i in range(3):
        session.run(queue.enqueue([i, [i, -i]]))
    session.run(queue.enqueue_many([[3, 4, 5], [[3, -3], [4, -4], [5, -5]]]))
    numbers, pairs = session.run(queue.dequeue_many(4))
    assert numbers.tolist() == [0, 1, 2, 3] and pairs.tolist() == [[0, 0], [1, -1], [2, -2], [3, -3]]
    assert session.run(queue.dequeue()[0]) == 4


def test_the_queue_owns_what_it_holds(session):
    queue = tf.FIFOQueue(10, tf.float32, [[2]])
    fed = tf.placeholder(tf.float32, [2])
    variable = tf.Variable([1.0, 2.0])
    session.run(variable.initializer)
    array = np.array([5.0, 6.0], np.float32)
    session.run([queue.enqueue(fed)], {fed: array})
    session.run(queue.enqueue(variable))
    array[:] = 0
    session.run(variable.assign([0.0, 0.0]))
    assert [value.tolist() for value in drained(session, queue)] == [[5.0, 6.0], [1.0, 2.0]]


def test_what_is_given_may_be_changed(session):
    queue = tf.FIFOQueue(10, tf.float32, [[2]])
    session.run(queue.enqueue_many([[[1.0, 2.0], [3.0, 4.0]]]))
    first = session.run(queue.dequeue())
    first[:] = 9
    assert session.run(queue.dequeue()).tolist() == [3.0, 4.0]


def test_elements_without_shapes_may_differ_and_come_one_by_one(session):
    queue = tf.FIFOQueue(10, tf.int32)
    session.run(queue.enqueue([[1, 2]]))
    session.run(queue.enqueue([[[3]]]))
    assert queue.dequeue().shape.rank is None
    assert [value.tolist() for value in drained(session, queue)] == [[1, 2], [[3]]]
    with pytest.raises(InvalidArgumentError, match="to have specified shapes"):
        session.run(queue.dequeue_many(1))


def test_static_shapes_follow_from_those_of_the_queue():
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32], [[], [3]])
    n = tf.placeholder(tf.int32, [])
    assert [t.shape.as_list() for t in queue.dequeue_many(4)] == [[4], [4, 3]]
    assert [t.shape.as_list() for t in queue.dequeue_many(n)] == [[None], [None, 3]]
    assert [t.shape.as_list() for t in queue.dequeue_up_to(4)] == [[None], [None, 3]]
    assert queue.dtypes == [tf.int32, tf.float32] and [s.as_list() for s in queue.shapes] == [[], [3]]


def test_names_of_operations_follow_from_that_of_the_queue():
    queue = tf.FIFOQueue(10, tf.int32, name="input")
    assert queue.name == "input" and queue.queue_ref.op.name == "input"
    assert queue.enqueue(1).name == "input_enqueue"
    assert queue.dequeue().op.name == "input_Dequeue"
    assert queue.dequeue(name="mine").op.name == "mine"
    assert queue.size().op.name == "input_Size"
    assert queue.close().name == "input_Close"


# -- what does not fit ---------------------------------------------------------------------------------


def test_what_cannot_fit_is_refused_when_the_graph_is_built():
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32], [[], [2]])
    with pytest.raises(ValueError, match="2 components"):
        queue.enqueue([1])
    with pytest.raises(ValueError, match=r"[Ss]hape"):
        queue.enqueue([1, [1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="int32"):
        queue.enqueue([1.5, [1.0, 2.0]])
    with pytest.raises(ValueError, match=r"[Ss]hape"):
        queue.enqueue_many([[1, 2], [[1.0, 2.0]]])
    with pytest.raises(ValueError, match=r"[Ss]hape"):
        queue.enqueue_many([1, [1.0, 2.0]])
    with pytest.raises(ValueError, match="PaddingFIFOQueue"):
        tf.FIFOQueue(10, tf.int32, [[None]])
    with pytest.raises(ValueError, match="one shape for each"):
        tf.FIFOQueue(10, [tf.int32, tf.int32], [[2]])
    with pytest.raises(ValueError, match="one name for each"):
        tf.FIFOQueue(10, [tf.int32, tf.int32], names=["a"])


def test_what_does_not_fit_is_refused_when_it_runs(session):
    queue = tf.FIFOQueue(10, [tf.int32, tf.int32], [[], [2]])
    number, pair = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    one, many = queue.enqueue([number, pair]), queue.enqueue_many([number, pair])
    with pytest.raises(InvalidArgumentError, match=r"component 1. Expected \[2\], got \[3\]"):
        session.run(one, {number: 1, pair: [1, 2, 3]})
    with pytest.raises(InvalidArgumentError, match="same number of rows"):
        session.run(many, {number: [1, 2], pair: [[1, 2]]})
    with pytest.raises(InvalidArgumentError, match="same number of rows"):
        session.run(many, {number: 1, pair: [1, 2]})
    with pytest.raises(InvalidArgumentError, match="-1"):
        session.run(queue.dequeue_many(-1))
    assert session.run(queue.size()) == 0


def test_nothing_is_added_and_taken_at_once(session):
    queue = tf.FIFOQueue(10, [tf.float32, tf.string], [[2], []])
    rows = np.zeros((0, 2), np.float32), np.zeros(0, object)
    session.run(queue.enqueue_many(rows))
    session.run(queue.close())
    session.run(queue.enqueue_many(rows))
    pair, text = session.run(queue.dequeue_many(0))
    assert pair.shape == (0, 2) and text.shape == (0,)


# -- other kinds ---------------------------------------------------------------------------------------


def test_padding_fills_up_with_zeros(session):
    queue = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], [[None, 2], [None]])
    number, text = tf.placeholder(tf.int32), tf.placeholder(tf.string)
    enqueue = queue.enqueue([number, text])
    session.run(enqueue, {number: [[1, 2]], text: [b"a", b"b", b"c"]})
    session.run(enqueue, {number: np.zeros((0, 2)), text: []})
    session.run(enqueue, {number: [[3, 4], [5, 6]], text: [b"d"]})
    numbers, texts = queue.dequeue_many(3)
    assert numbers.shape.as_list() == [3, None, 2] and texts.shape.as_list() == [3, None]
    numbers, texts = session.run([numbers, texts])
    assert numbers.tolist() == [[[1, 2], [0, 0]], [[0, 0], [0, 0]], [[3, 4], [5, 6]]]
    assert texts.tolist() == [[b"a", b"b", b"c"], [b"", b"", b""], [b"d", b"", b""]]
    with pytest.raises(InvalidArgumentError, match="component 0"):
        session.run(enqueue, {number: [[1, 2, 3]], text: []})
    with pytest.raises(ValueError, match="shapes"):
        tf.PaddingFIFOQueue(10, tf.int32, None)


def test_the_smallest_priority_comes_first_and_equal_ones_in_order(session):
    queue = tf.PriorityQueue(100, [tf.string], [()])
    session.run(queue.enqueue_many([[5, 1, 5, -2, 1], ["a", "b", "c", "d", "e"]]))
    session.run(queue.enqueue([0, "f"]))
    priorities, texts = session.run(queue.dequeue_many(6))
    assert priorities.tolist() == [-2, 0, 1, 1, 5, 5] and priorities.dtype == np.int64
    assert texts.tolist() == [b"d", b"f", b"b", b"e", b"a", b"c"]


def test_what_a_priority_queue_takes_back_comes_first_again(session):
    queue = tf.PriorityQueue(100, tf.int32, [()])
    session.run(queue.enqueue_many([[1, 1, 1], [10, 20, 30]]))
    for _ in range(3):
        timed_out(session, queue.dequeue_many(4), at="DequeueMany")
    assert session.run(queue.dequeue_many(3)[1]).tolist() == [10, 20, 30]


def shuffled(seed, graph_seed=None, count=60):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(graph_seed)
        queue = tf.RandomShuffleQueue(count, 0, tf.int32, [()], seed=seed)
        session.run(queue.enqueue_many([np.arange(count, dtype=np.int32)]))
        half = session.run(queue.dequeue_many(count // 2)).tolist()
        return half + drained(session, queue)


def test_a_shuffle_queue_gives_everything_once_in_an_order_that_follows_from_the_seed():
    assert sorted(shuffled(7)) == list(range(60)) != shuffled(7)
    assert shuffled(7) == shuffled(7) != shuffled(8)
    assert shuffled(None, 3) == shuffled(None, 3)
    assert shuffled(None) != shuffled(None)


def test_every_element_of_a_shuffle_queue_may_come_first():
    first = Counter(shuffled(seed, count=4)[0] for seed in range(160))
    assert set(first) == {0, 1, 2, 3} and min(first.values()) > 24


def test_a_shuffle_queue_keeps_some_back_until_it_is_closed(session):
    queue = tf.RandomShuffleQueue(10, 3, tf.int32, [()], name="q")
    session.run(queue.enqueue_many([np.arange(5, dtype=np.int32)]))
    dequeue = queue.dequeue()
    got = [session.run(dequeue), session.run(dequeue)]
    waiter = Task(session.run, dequeue)
    until_waiting(session, "q", DEQUEUE)
    assert session.run(queue.size()) == 3
    session.run(queue.close())
    got += [waiter.result(), *session.run(queue.dequeue_many(2))]
    assert sorted(got) == list(range(5))
    with pytest.raises(OutOfRangeError):
        session.run(dequeue)


def test_one_of_several_queues_is_chosen_when_it_runs(session):
    first, second = tf.FIFOQueue(10, tf.int32, [()]), tf.FIFOQueue(10, tf.int32, [()])
    index = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(index, [first, second])
    assert chosen.dtypes == [tf.int32] and chosen.shapes == [tf.TensorShape([])]
    enqueue, dequeue = chosen.enqueue(tf.constant(5) + index), chosen.dequeue_many(1)
    session.run(enqueue, {index: 0})
    session.run(enqueue, {index: 1})
    assert session.run(first.size()) == session.run(second.size()) == 1
    assert session.run(dequeue, {index: 1}).tolist() == [6]
    assert session.run(first.dequeue()) == 5
    with pytest.raises(InvalidArgumentError, match=r"\[0, 2\)"):
        session.run(dequeue, {index: 2})
    with pytest.raises(TypeError, match="dtypes"):
        tf.QueueBase.from_list(index, [first, tf.FIFOQueue(1, tf.float32)])
    with pytest.raises(TypeError, match="queues"):
        tf.QueueBase.from_list(index, [])


# -- sharing -------------------------------------------------------------------------------------------


def test_equal_shared_names_are_one_queue(session):
    first = tf.FIFOQueue(10, tf.int32, [()], shared_name="shared")
    second = tf.FIFOQueue(10, tf.int32, [()], shared_name="shared")
    session.run(first.enqueue(1))
    assert session.run(second.dequeue()) == 1


def test_queues_in_different_containers_differ(session):
    first = tf.FIFOQueue(10, tf.int32, [()], shared_name="shared")
    with tf.container("other"):
        second = tf.FIFOQueue(10, tf.int32, [()], shared_name="shared")
    session.run(first.enqueue(1))
    assert session.run([first.size(), second.size()]) == [1, 0]


@pytest.mark.parametrize(
    "other",
    [
        lambda: tf.FIFOQueue(11, tf.int32, [()], shared_name="shared"),
        lambda: tf.FIFOQueue(10, tf.int64, [()], shared_name="shared"),
        lambda: tf.FIFOQueue(10, tf.int32, [(1,)], shared_name="shared"),
        lambda: tf.FIFOQueue(10, tf.int32, shared_name="shared"),
        lambda: tf.PaddingFIFOQueue(10, tf.int32, [()], shared_name="shared"),
        lambda: tf.RandomShuffleQueue(10, 0, tf.int32, [()], shared_name="shared"),
    ],
)
def test_what_shares_a_name_must_be_alike(session, other):
    session.run(tf.FIFOQueue(10, tf.int32, [()], shared_name="shared").size())
    with pytest.raises(InvalidArgumentError, match="shared"):
        session.run(other().size())


def test_local_sessions_share_nothing(session, graph):
    queue = tf.FIFOQueue(10, tf.int32, [()], shared_name="shared")
    session.run(queue.enqueue(1))
    with tf.Session(graph=graph) as other:
        assert other.run(queue.size()) == 0


# -- waiting -------------------------------------------------------------------------------------------


def test_a_dequeue_waits_for_an_enqueue(session):
    queue = tf.FIFOQueue(10, tf.float32, [()], name="q")
    waiter = Task(session.run, queue.dequeue() * 2.0)
    until_waiting(session, "q", DEQUEUE)
    session.run(queue.enqueue(3.0))
    assert waiter.result() == 6.0


def test_an_enqueue_waits_for_room(session):
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    session.run(queue.enqueue(1))
    waiter = Task(session.run, queue.enqueue(2))
    until_waiting(session, "q", ENQUEUE)
    assert session.run(queue.size()) == 1
    assert session.run(queue.dequeue()) == 1
    waiter.result()
    assert session.run(queue.dequeue()) == 2


def test_more_than_the_capacity_goes_through_at_once(session):
    queue = tf.FIFOQueue(3, tf.int32, [()])
    producer = Task(session.run, queue.enqueue_many([np.arange(20, dtype=np.int32)]))
    consumer = Task(session.run, queue.dequeue_many(20))
    assert consumer.result().tolist() == list(range(20))
    producer.result()


def test_who_came_first_is_served_first_however_much_it_asks_for(session):
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    greedy = Task(session.run, queue.dequeue_many(3))
    until_waiting(session, "q", DEQUEUE)
    modest = Task(session.run, queue.dequeue())
    until_waiting(session, "q", DEQUEUE, 2)
    enqueue = queue.enqueue(tf.placeholder_with_default(0, []))
    for i in range(3):
        assert not greedy.done and waiting(session, "q")[DEQUEUE] == 2
        session.run(enqueue, {enqueue.inputs[1]: i})
    assert greedy.result().tolist() == [0, 1, 2]
    session.run(enqueue, {enqueue.inputs[1]: 3})
    assert modest.result() == 3


def test_rows_of_one_enqueue_stay_together(session):
    queue = tf.FIFOQueue(4, tf.int32, [()])
    rows = tf.placeholder(tf.int32, [None])
    enqueue, dequeue = queue.enqueue_many([rows]), queue.dequeue()
    tasks = [Task(session.run, enqueue, {rows: [i] * 25}) for i in range(4)]
    got = [session.run(dequeue) for _ in range(100)]
    for task in tasks:
        task.result()
    assert [len(set(got[i : i + 25])) for i in range(0, 100, 25)] == [1] * 4


def test_one_step_may_add_and_take(session):
    """The dequeue stands before the enqueue in the graph, and does not depend on it."""
    queue = tf.FIFOQueue(10, tf.int32, [()])
    taken = queue.dequeue() + 1
    assert session.run([taken, queue.enqueue(4)])[0] == 5


def test_a_chain_of_queues_within_one_step(session):
    queues = [tf.FIFOQueue(1, tf.int32, [()]) for _ in range(5)]
    steps = [after.enqueue(before.dequeue() + 1) for before, after in pairwise(queues)]
    last = queues[-1].dequeue()
    assert session.run([last, *steps[::-1], queues[0].enqueue(0)])[0] == 4


def test_what_does_not_depend_on_a_waiting_operation_runs(session):
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    variable = tf.Variable(0)
    session.run(variable.initializer)
    taken = queue.dequeue()
    waiter = Task(session.run, [taken, variable.assign_add(1)])
    until_waiting(session, "q", DEQUEUE)
    assert session.run(variable) == 1
    session.run(queue.enqueue(7))
    assert waiter.result() == [7, 1]


def test_devices_of_one_step_wait_for_one_another():
    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            first = tf.FIFOQueue(10, tf.float32, [()])
        with tf.device("/cpu:1"):
            second = tf.FIFOQueue(10, tf.float32, [()])
            taken = first.dequeue() + 1.0
            forward = second.enqueue(taken)
        with tf.device("/cpu:0"):
            result = second.dequeue() * 2.0
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            assert session.run([result, forward, first.enqueue(3.0)])[0] == 8.0


def test_a_branch_may_wait():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
        pred = tf.placeholder(tf.bool, [])
        value = tf.cond(pred, lambda: queue.dequeue(), lambda: tf.constant(-1))
        assert session.run(value, {pred: False}) == -1
        waiter = Task(session.run, value, {pred: True})
        until_waiting(session, "q", DEQUEUE)
        session.run(queue.enqueue(5))
        assert waiter.result() == 5
        # Within one step too, because a branch that may wait comes last.
        assert session.run([value, queue.enqueue(6)], {pred: True})[0] == 6
        timed_out(session, value, {pred: True}, at="Dequeue")
        assert graph is not None and waiting(session, "q") == [0, 0]


@pytest.mark.parametrize("between", ["/cpu:0", "/cpu:1"])
def test_while_a_branch_waits_the_rest_of_the_step_goes_on(between):
    """What the branch waits for comes from an operation that, when the branch began, itself waited for another step."""
    with tf.device("/cpu:0"):
        source, middle = (tf.FIFOQueue(10, tf.int32, [()], name=name) for name in ("source", "middle"))
    value = tf.cond(tf.placeholder_with_default(True, []), lambda: middle.dequeue() * 2, lambda: tf.constant(-1))
    taken = source.dequeue()
    with tf.device(between):
        passed = taken + 1
    forward = middle.enqueue(passed)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        waiter = Task(session.run, [value, forward])
        until_waiting(session, "source", DEQUEUE)
        until_waiting(session, "middle", DEQUEUE)
        session.run(source.enqueue(4))
        assert waiter.result()[0] == 10


def test_a_branch_that_only_adds_runs_when_it_is_fetched_or_waited_for(session):
    queue = tf.FIFOQueue(10, tf.int32, [()])
    added = tf.cond(tf.constant(True), lambda: queue.enqueue(1), tf.no_op)
    with tf.control_dependencies([added]):
        after = tf.constant(1) + 0
    for count, fetch in enumerate([added, added.op, after, tf.group(added), [added.op, after]], 1):
        session.run(fetch)
        assert session.run(queue.size()) == count


def test_a_loop_may_wait(session):
    queue = tf.FIFOQueue(2, tf.int32, [()])
    total = tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + queue.dequeue()), [0, 0])[1]
    producer = Task(session.run, queue.enqueue_many([np.arange(10, dtype=np.int32)]))
    assert session.run(total) == 45
    producer.result()


# -- closing -------------------------------------------------------------------------------------------


def test_a_closed_queue_gives_what_is_left(session):
    queue = tf.FIFOQueue(10, tf.int32, [()])
    session.run(queue.enqueue_many([[1, 2, 3]]))
    assert not session.run(queue.is_closed())
    session.run(queue.close())
    assert session.run(queue.is_closed())
    with pytest.raises(CancelledError, match="closed") as caught:
        session.run(queue.enqueue(4))
    assert caught.value.op_name == "fifo_queue_enqueue"
    assert session.run(queue.dequeue()) == 1
    with pytest.raises(OutOfRangeError, match=r"insufficient elements \(requested 3, current size 2\)"):
        session.run(queue.dequeue_many(3))
    assert session.run(queue.dequeue_up_to(3)).tolist() == [2, 3]
    for empty in (queue.dequeue(), queue.dequeue_up_to(1), queue.dequeue_many(1)):
        with pytest.raises(OutOfRangeError, match="closed"):
            session.run(empty)
    with pytest.raises(CancelledError, match="closed already"):
        session.run(queue.close())
    session.run(queue.close(cancel_pending_enqueues=True))


def test_dequeue_up_to_waits_for_all_while_the_queue_is_open(session):
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    session.run(queue.enqueue_many([[1, 2]]))
    waiter = Task(session.run, queue.dequeue_up_to(3))
    until_waiting(session, "q", DEQUEUE)
    session.run(queue.enqueue(3))
    assert waiter.result().tolist() == [1, 2, 3]


def test_closing_ends_who_waits_for_elements(session):
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    session.run(queue.enqueue_many([[1, 2]]))
    many = Task(session.run, queue.dequeue_many(3))
    until_waiting(session, "q", DEQUEUE)
    rest = Task(session.run, queue.dequeue_up_to(5))
    until_waiting(session, "q", DEQUEUE, 2)
    one = Task(session.run, queue.dequeue())
    until_waiting(session, "q", DEQUEUE, 3)
    session.run(queue.close())
    with pytest.raises(OutOfRangeError):
        many.result()
    assert rest.result().tolist() == [1, 2]  # in their order
    with pytest.raises(OutOfRangeError):
        one.result()


def test_closing_waits_for_enqueues_that_wait(session):
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    session.run(queue.enqueue(1))
    waiter = Task(session.run, queue.enqueue_many([[2, 3]]))
    until_waiting(session, "q", ENQUEUE)
    closer = Task(session.run, queue.close())
    until_waiting(session, "q", ENQUEUE, 2)
    late = Task(session.run, queue.enqueue(4))
    until_waiting(session, "q", ENQUEUE, 3)
    assert not session.run(queue.is_closed())
    assert [session.run(queue.dequeue()) for _ in range(3)] == [1, 2, 3]
    waiter.result()
    closer.result()
    with pytest.raises(CancelledError):
        late.result()


def test_closing_can_cancel_enqueues_that_wait(session):
    queue = tf.FIFOQueue(2, tf.int32, [()], name="q")
    session.run(queue.enqueue(1))
    waiter = Task(session.run, queue.enqueue_many([[2, 3]]))
    until_waiting(session, "q", ENQUEUE)
    session.run(queue.close(cancel_pending_enqueues=True))
    with pytest.raises(CancelledError, match="cancelled"):
        waiter.result()
    assert [session.run(queue.dequeue()) for _ in range(2)] == [1, 2]  # as many as there was room for


# -- the end of waiting --------------------------------------------------------------------------------


def test_what_was_taken_for_a_step_that_ended_is_given_back(session):
    """The element comes when the step has just given up, and its attempt is done."""
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    session.run(queue.size())
    real = resource(session, "q")
    one, many = real.dequeue(), real.dequeue_many(2)
    session.run(queue.enqueue_many([[1, 2, 3, 4]]))
    assert one.done and many.done
    many.cancel()
    one.cancel()
    one.cancel()
    assert drained(session, queue) == [1, 2, 3, 4]


def test_steps_that_time_out_lose_nothing(session):
    queue = tf.FIFOQueue(5, tf.int32, [()])
    value = tf.placeholder(tf.int32, [])
    enqueue = session.make_callable(queue.enqueue(value), [value])
    fetches = [queue.dequeue_many(3), queue.dequeue_many(1)]
    finished = threading.Event()

    def consume(fetch):
        got = []
        while not finished.is_set():
            try:
                got += session.run(fetch, options=tf.RunOptions(timeout_in_ms=1)).tolist()
            except DeadlineExceededError:
                continue
        return got

    consumers = [Task(consume, fetch) for fetch in fetches * 2]
    for i in range(300):
        enqueue(np.int32(i))
    finished.set()
    got = [item for consumer in consumers for item in consumer.result()]
    assert sorted(got + drained(session, queue)) == list(range(300))


def test_a_step_times_out_and_takes_nothing(session):
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    session.run(queue.enqueue_many([[1, 2]]))
    error = timed_out(session, queue.dequeue_many(3), at="q_DequeueMany")
    assert error.op_name == "q_DequeueMany" and "test_queues.py" in error.site
    assert waiting(session, "q") == [0, 0]
    assert drained(session, queue) == [1, 2]


def test_the_session_may_set_the_timeout(graph):
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    enqueue = queue.enqueue(1)

    def fill(limit_ms):
        with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=limit_ms)) as session:
            for _ in range(2):
                session.run(enqueue)

    assert "q_enqueue" in str(raised_at_the_limit(fill, [50, 5_000, 50_000], lambda error: "q_enqueue" in str(error)))


def test_closing_the_session_ends_who_waits(graph):
    queue, full = (tf.FIFOQueue(1, tf.int32, [()], name=name) for name in ("q", "full"))
    session = tf.Session()
    session.run(full.enqueue(1))
    waiters = [Task(session.run, queue.dequeue()) for _ in range(3)]
    until_waiting(session, "q", DEQUEUE, 3)
    refused = Task(session.run, full.enqueue(2))
    until_waiting(session, "full", ENQUEUE, 1)
    session.close()
    for waiter in waiters:
        with pytest.raises(CancelledError, match=r"Dequeue operation was cancelled.*closed"):
            waiter.result()
    with pytest.raises(CancelledError, match=r"Enqueue operation was cancelled.*closed"):
        refused.result()
    with pytest.raises(CancelledError):
        session.run(queue.size())


def test_an_error_elsewhere_in_the_step_ends_its_waiting(session):
    queue = tf.FIFOQueue(10, tf.int32, [()], name="q")
    session.run(queue.enqueue(1))
    number = tf.placeholder_with_default(np.float32(np.nan), [])
    other = tf.FIFOQueue(10, tf.int32, [()], name="other")
    with tf.control_dependencies([other.dequeue()]):
        late = tf.check_numerics(number, "wrong")
    waiter = Task(session.run, [queue.dequeue_many(2), late])
    until_waiting(session, "q", DEQUEUE)
    until_waiting(session, "other", DEQUEUE)
    session.run(other.enqueue(1))
    with pytest.raises(InvalidArgumentError, match="wrong"):
        waiter.result()
    assert waiting(session, "q") == [0, 0]
    assert session.run(queue.dequeue()) == 1


def test_a_failing_dequeue_names_operation_device_and_line(session):
    queue = tf.FIFOQueue(1, tf.int32, [()], name="q")
    session.run(queue.close())
    with pytest.raises(OutOfRangeError) as caught:
        session.run(queue.dequeue(name="here"))
    assert caught.value.op_name == "here" and caught.value.device.endswith("CPU:0")
    assert "test_queues.py" in caught.value.site


# -- many threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [1, 7, 1000])
@pytest.mark.parametrize("make", ["fifo", "shuffle"])
def test_nothing_is_lost_or_doubled_between_threads(session, make, capacity):
    if make == "fifo":
        queue = tf.FIFOQueue(capacity, tf.int32, [()])
    else:
        queue = tf.RandomShuffleQueue(capacity, 0, tf.int32, [()], seed=1)
    one, rows = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [None])
    add, add_many = (
        session.make_callable(queue.enqueue(one), [one]),
        session.make_callable(queue.enqueue_many([rows]), [rows]),
    )
    take, take_many = session.make_callable(queue.dequeue()), session.make_callable(queue.dequeue_up_to(9))
    start = threading.Barrier(8)

    def produce(base):
        start.wait()
        for i in range(0, 200, 20):
            add_many(np.arange(base + i, base + i + 19, dtype=np.int32))
            add(np.int32(base + i + 19))

    def consume(function):
        got = []
        start.wait()
        try:
            while True:
                got.extend(np.atleast_1d(function()).tolist())
        except OutOfRangeError:
            return got

    producers = [Task(produce, 1000 * i) for i in range(4)]
    consumers = [Task(consume, function) for function in (take, take, take_many, take_many)]
    for producer in producers:
        producer.result()
    session.run(queue.close())
    got = sorted(item for consumer in consumers for item in consumer.result())
    assert got == sorted(1000 * i + j for i in range(4) for j in range(200))
