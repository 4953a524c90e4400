"""Devices that only wait for others: these wake them, and whatever goes wrong, nobody waits for who was never woken."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, Barrier, kill_actor, wait_for
from tfray.actors.clusters import remote_runner
from tfray.errors import DeadlineExceededError, InvalidArgumentError, UnavailableError
from tfray.ops.system.script_ops import py_func
from tfray.placement.pipeline import compile_step
from tfray.runtime.plan import with_wakers

PS, WORKER, OTHER = (f"/job:{job}/task:{task}/device:CPU:0" for job, task in (("ps", 0), ("worker", 0), ("worker", 1)))
SMALL = tf.JobSpec(1, num_cpus=0.1)


@pytest.fixture(autouse=True)
def endless_grace(monkeypatch):
    """A step that waits for a device which does not answer hangs, so that it is seen, however busy the machine is."""
    monkeypatch.setattr(remote_runner, "ABORT_GRACE_S", 10 * PATIENCE_S)


# -- who is woken --------------------------------------------------------------------------------------


def woken(fetches=(), targets=(), fed=()):
    """For each device by which it may be woken; those that are always asked have no entry."""
    step = compile_step(list(fetches), [target.op for target in targets], list(fed), [WORKER, OTHER, PS])
    partitions = with_wakers(step.partitions)
    wakers = {p.device: sorted(w.device for w in partitions if p.device in w.wakes) for p in partitions if p.is_woken}
    assert all(wakers.values())
    return wakers


def test_a_worker_that_needs_parameters_first_is_woken_by_their_shard():
    with tf.device(PS):
        v = tf.Variable([1.0, 2.0])
    with tf.device(WORKER):
        update = v * 0.5  # the constant is no work
    with tf.device(PS):
        step = tf.assign_add(v, update)
    assert woken(targets=[step]) == {WORKER: [PS]}


def test_a_shard_that_is_asked_for_rows_is_woken_by_whoever_asks():
    with tf.device(PS):
        table = tf.Variable(tf.zeros([8, 2]))
    rows = []
    for worker in (WORKER, OTHER):
        with tf.device(worker):
            ids = tf.random_uniform([3], maxval=8, dtype=tf.int32)
        rows.append(tf.gather(table, ids))
    assert woken(rows) == {PS: [WORKER, OTHER]}


def test_one_wakes_the_next():
    with tf.device(WORKER):
        a = tf.random_uniform([])
    with tf.device(OTHER):
        b = tf.sqrt(a)
    with tf.device(PS):
        c = tf.exp(b)
    assert woken([c]) == {OTHER: [WORKER], PS: [OTHER]}


def test_who_has_something_to_do_first_is_asked():
    with tf.device(PS):
        v = tf.Variable([1.0, 2.0])
    with tf.device(WORKER):
        y = v * 2
        z = tf.constant(3.0)
        own = tf.random_uniform([]) + tf.reduce_sum(v)
    with tf.device(OTHER):
        fed = tf.placeholder(tf.float32, [2]) + v
    assert woken([y]) == {WORKER: [PS]}
    assert woken([y, z]) == {}
    assert woken([own]) == {}
    assert woken([fed], fed=[fed.op.inputs[0]]) == {}


# -- steps ---------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(ray_local, cluster_of_module):
    return cluster_of_module({"ps": SMALL, "worker": tf.JobSpec(2, num_cpus=0.1)})


def steps_left(cluster):
    import ray

    return sum(ray.get(cluster.actor(device).status.remote())["steps"] for device in cluster.devices)


class Lookups:
    """A graph in which a worker that is fed asks a shard for rows, and wakes it; `sums` is fetched from another."""

    def __init__(self):
        with tf.device(PS):
            self.table = tf.Variable(np.arange(10, dtype=np.float32), name="table")
        with tf.device(WORKER):
            self.ids = tf.placeholder(tf.int32, [None], name="ids")
            checked = tf.check_numerics(tf.log(tf.cast(self.ids, tf.float32)), "the logarithm of no id", name="check")
            with tf.control_dependencies([checked]):
                ids = tf.identity(self.ids)
        self.rows = tf.gather(self.table, ids, name="lookup")
        with tf.device(OTHER):
            self.sums = tf.reduce_sum(self.rows) + 1

    def warm(self, session):
        """Run until devices are woken: the first step asks all of them."""
        session.run(self.table.initializer)
        for _ in range(3):
            assert session.run(self.sums, {self.ids: [2, 3]}) == 6


@pytest.mark.ray
def test_woken_devices_do_their_part_in_every_step(cluster):
    with tf.device(PS):
        v = tf.Variable([0.0, 0.0])
    with tf.device(WORKER):
        update = v * 0 + 1.0
    with tf.device(PS):
        step = tf.assign_add(v, update)
    with tf.Session(cluster) as session:
        session.run(v.initializer)
        for _ in range(50):
            session.run(step.op)
        assert session.run(v).tolist() == [50, 50]
    wait_for(lambda: steps_left(cluster) == 0)


@pytest.mark.ray
def test_large_tensors_wake_as_small_ones_do(cluster):
    with tf.device(PS):
        v = tf.Variable(np.ones(300_000, np.float32))
    with tf.device(WORKER):
        total = tf.reduce_sum(v * 2)
    with tf.Session(cluster) as session:
        session.run(v.initializer)
        assert [session.run(total) for _ in range(5)] == [600_000] * 5


@pytest.mark.ray
def test_concurrent_steps_wake_their_own(cluster):
    lookups = Lookups()
    with tf.Session(cluster) as session, ThreadPoolExecutor(8) as pool:
        lookups.warm(session)
        fed = [[1 + i % 9, 1 + i % 7] for i in range(200)]
        results = list(pool.map(lambda ids: session.run(lookups.sums, {lookups.ids: ids}), fed))
    assert results == [sum(ids) + 1 for ids in fed]
    wait_for(lambda: steps_left(cluster) == 0)


@pytest.mark.ray
@pytest.mark.parametrize(
    ("ids", "op_name", "device"), [([1, 70], "lookup", PS), ([1, 0], "check", WORKER)], ids=["woken", "waker"]
)
def test_an_error_ends_the_step_at_once(cluster, ids, op_name, device):
    """In a device that was woken, or in one that wakes nobody any more."""
    lookups = Lookups()
    with tf.Session(cluster) as session:
        lookups.warm(session)
        for _ in range(2):
            with pytest.raises(InvalidArgumentError) as caught:
                session.run(lookups.sums, {lookups.ids: ids})
            assert (caught.value.op_name, caught.value.device) == (op_name, device)
            assert session.run(lookups.sums, {lookups.ids: [4, 5]}) == 10
    wait_for(lambda: steps_left(cluster) == 0)


@pytest.mark.ray
def test_a_step_times_out_before_its_waker_has_sent(cluster, tmp_path):
    barrier = Barrier(tmp_path)
    barrier.reach("go")
    with tf.device(WORKER):
        slow = py_func(lambda: (barrier.wait("go"), barrier.reach("over"), np.float32(1))[2], [], tf.float32)
    with tf.device(PS):
        y = slow + 1
    with tf.Session(cluster) as session:
        assert [session.run(y) for _ in range(3)] == [2, 2, 2]
        barrier.withdraw("go")
        barrier.withdraw("over")
        with pytest.raises(DeadlineExceededError):
            session.run(y, options=tf.RunOptions(timeout_in_ms=300))
        assert not barrier.reached("over"), "the step has not waited for the function"
        barrier.reach("go")
        wait_for(lambda: steps_left(cluster) == 0)
        assert session.run(y) == 2


@pytest.mark.ray
@pytest.mark.parametrize("victim", [WORKER, pytest.param(OTHER, marks=pytest.mark.slow), PS])
def test_a_death_ends_the_step_at_once(cluster, victim):
    """Of who wakes others, and of who is woken."""
    import ray

    lookups = Lookups()
    with tf.Session(cluster) as session:
        lookups.warm(session)
        kill_actor(ray, cluster, victim)
        with pytest.raises(UnavailableError, match=victim):
            session.run(lookups.sums, {lookups.ids: [1, 2]})
        with tf.device(WORKER if victim != WORKER else OTHER):
            assert session.run(tf.constant(1.0) + 1) == 2
