"""Queues on device actors: shared by sessions and devices, and what ends the waiting there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tfray as tf
from tests.support.local_ray import start_local_ray
from tests.support.processes import wait_for
from tests.support.waiting import Task, timed_out
from tfray.errors import CancelledError, OutOfRangeError, UnavailableError

pytestmark = pytest.mark.ray

PS, WORKER, OTHER = (f"/job:{job}/task:{task}/device:CPU:0" for job, task in (("ps", 0), ("worker", 0), ("worker", 1)))


@pytest.fixture(scope="module")
def cluster(_ray_of_the_session):
    start_local_ray(_ray_of_the_session)
    small = tf.JobSpec(1, num_cpus=0.1)
    with tf.Cluster({"ps": small, "worker": tf.JobSpec(2, num_cpus=0.1)}) as cluster:
        yield cluster


@pytest.fixture
def session(cluster, graph):
    with tf.Session(cluster) as session:
        yield session


def steps_on(cluster, device):
    import ray

    return ray.get(cluster.actor(device).status.remote())["steps"]


def queue_on(device, name, capacity=100, dtype=tf.int32, shape=()):
    with tf.device(device):
        return tf.FIFOQueue(capacity, dtype, [shape], shared_name=name)


def test_a_queue_is_filled_by_one_device_and_emptied_by_another(session):
    queue = queue_on(PS, "between", shape=(3,))
    with tf.device(WORKER):
        enqueue = queue.enqueue_many([tf.reshape(tf.range(30), [10, 3]) * 2])
    with tf.device(OTHER):
        total = tf.reduce_sum(queue.dequeue_many(10), axis=0)
    assert session.run([total, enqueue])[0].tolist() == [270, 290, 310]  # within one step


def test_queues_on_several_devices_in_one_step(session):
    queues = [queue_on(device, f"ring{i}", 1) for i, device in enumerate([PS, WORKER, OTHER, PS])]
    steps = [after.enqueue(before.dequeue() + 1) for before, after in pairwise(queues)]
    assert session.run([queues[-1].dequeue(), *steps, queues[0].enqueue(0)])[0] == 3


def test_sessions_share_a_queue(cluster, session):
    queue = queue_on(PS, "shared")
    waiter = Task(session.run, queue.dequeue())
    wait_for(lambda: steps_on(cluster, PS) == 1)
    with tf.Graph().as_default(), tf.Session(cluster) as other:
        other.run(queue_on(PS, "shared").enqueue(7))
    assert waiter.result() == 7


def test_fifty_steps_that_wait_leave_room_for_the_one_they_wait_for(cluster, session):
    queue = queue_on(PS, "crowded")
    with tf.device(WORKER):
        value = queue.dequeue() + 0
    waiters = [Task(session.run, value) for _ in range(50)]
    wait_for(lambda: steps_on(cluster, PS) == 50)
    session.run(queue.enqueue_many([np.arange(50, dtype=np.int32)]))
    assert sorted(waiter.result() for waiter in waiters) == list(range(50))


def test_a_step_times_out(cluster, session):
    queue = queue_on(PS, "never")
    with tf.device(WORKER):
        value = queue.dequeue(name="take") + 1
    timed_out(session, value, at="take")
    wait_for(lambda: steps_on(cluster, PS) == 0)
    session.run(queue.enqueue(3))
    assert session.run(value) == 4  # the step that timed out took nothing


def test_closing_a_session_ends_its_waiting_and_no_other(cluster, session):
    queue = queue_on(PS, "left")
    other = tf.Session(cluster)
    mine, theirs = Task(session.run, queue.dequeue()), Task(other.run, queue.dequeue())
    wait_for(lambda: steps_on(cluster, PS) == 2)
    other.close()
    with pytest.raises(CancelledError):
        theirs.result()
    wait_for(lambda: steps_on(cluster, PS) == 1)
    session.run(queue.enqueue(5))
    assert mine.result() == 5


def test_closing_a_queue_ends_waiting(cluster, session):
    queue = queue_on(PS, "closing")
    waiter = Task(session.run, queue.dequeue_many(3))
    wait_for(lambda: steps_on(cluster, PS) == 1)
    session.run(queue.close())
    with pytest.raises(OutOfRangeError, match="closed"):
        waiter.result()


def test_a_failing_device_ends_waiting_on_another(cluster, session):
    queue = queue_on(PS, "failing")
    gate = queue_on(WORKER, "gate", dtype=tf.float32)
    with tf.device(WORKER):
        wrong = tf.check_numerics(gate.dequeue(), "not a number")
    waiter = Task(session.run, [queue.dequeue(), wrong])
    wait_for(lambda: steps_on(cluster, PS) == 1 and steps_on(cluster, WORKER) == 1)
    session.run(gate.enqueue(np.float32(np.nan)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
        waiter.result()
    wait_for(lambda: steps_on(cluster, PS) == 0)
    session.run(queue.enqueue(1))
    assert session.run(queue.size()) == 1


def test_a_branch_on_an_actor_may_wait(cluster, session):
    queue = queue_on(PS, "branch")
    pred = tf.placeholder(tf.bool, [])
    with tf.device(PS):
        value = tf.cond(pred, lambda: queue.dequeue(), lambda: tf.constant(-1))
    assert session.run(value, {pred: False}) == -1
    waiter = Task(session.run, value, {pred: True})
    wait_for(lambda: steps_on(cluster, PS) == 1)
    session.run(queue.enqueue(2))
    assert waiter.result() == 2


def test_a_dead_device_ends_the_waiting_at_its_queue(ray_local):
    small = tf.JobSpec(1, num_cpus=0.1)
    with tf.Cluster({"ps": small, "worker": small}) as cluster, tf.Session(cluster) as session:
        queue = queue_on(PS, "gone")
        with tf.device(WORKER):
            value = queue.dequeue() + 1
        waiter = Task(session.run, value)
        wait_for(lambda: steps_on(cluster, PS) == 1)
        ray_local.kill(cluster.actor(PS))
        with pytest.raises(UnavailableError, match="ps"):
            waiter.result()


def test_workers_make_synchronous_steps_through_an_accumulator(cluster):
    """Each worker has a session of its own; the accumulator, the tokens and the weight live on the parameter server."""
    with tf.device(PS):
        weight = tf.Variable(10.0)
        accumulator = tf.ConditionalAccumulator(tf.float32, [], shared_name="gradients")
        tokens = tf.FIFOQueue(10, tf.int64, [()], shared_name="tokens")
        update = weight.assign_sub(0.25 * accumulator.take_grad(2))
        step = tf.placeholder(tf.int64, [])
        with tf.control_dependencies([update]):
            advance = tokens.enqueue_many([tf.fill([2], step)])
    token, applied = tf.placeholder(tf.int64, []), []
    for device in (WORKER, OTHER):
        with tf.device(device):
            gradient = 2.0 * weight
        applied.append(accumulator.apply_grad(gradient, token))
    next_token = tokens.dequeue()

    def work(apply):
        with tf.Session(cluster, graph=weight.graph) as session:
            session.run(apply, {token: 0})
            for _ in range(3):  # a token is taken only for a gradient to come: the other may wait for it
                session.run(apply, {token: session.run(next_token)})

    with tf.Session(cluster) as chief:
        chief.run(weight.initializer)
        workers = [Task(work, apply) for apply in applied]
        for i in range(1, 5):
            chief.run(advance, {step: i})
        for worker in workers:
            worker.result()
        assert chief.run(weight) == 10.0 * 0.5**4


def test_input_is_read_on_a_worker_and_used_on_another(cluster, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(5)))
    with tf.device(WORKER):
        names = tf.train.string_input_producer([str(tmp_path / "a"), str(tmp_path / "b")], 2, shuffle=False)
        line = tf.TextLineReader().read(names)[1]
        batch = tf.train.batch([line], 4, num_threads=2, allow_smaller_final_batch=True)
    with tf.device(OTHER):
        joined = tf.identity(batch)
    with tf.Session(cluster) as session:
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        lines = []
        with pytest.raises(OutOfRangeError):
            while True:
                lines += session.run(joined).tolist()
        coord.request_stop()
        coord.join(threads)
    assert sorted(lines) == sorted([f"{name}{i}".encode() for name in "ab" for i in range(5)] * 2)
