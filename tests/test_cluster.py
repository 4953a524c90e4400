"""Sessions on a cluster: devices are Ray actors, tensors cross between them, and what dies is noticed."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from conftest import start_local_ray
from hypothesis import HealthCheck, given, settings
from processes import Barrier, is_alive, wait_for
from random_graphs import programs

import tfray as tf
from tfray.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
    UnknownError,
)
from tfray.ops import state_ops
from tfray.ops.script_ops import py_func

pytestmark = pytest.mark.ray

PS, WORKER, OTHER = (f"/job:{job}/task:{task}/device:CPU:0" for job, task in (("ps", 0), ("worker", 0), ("worker", 1)))
SMALL = tf.JobSpec(1, num_cpus=0.1)


@pytest.fixture(scope="module")
def shared(_ray_of_the_session):
    """A cluster for all tests that leave it alive."""
    start_local_ray(_ray_of_the_session)
    with tf.Cluster({"ps": SMALL, "worker": tf.JobSpec(2, num_cpus=0.1)}) as cluster:
        yield cluster


@pytest.fixture
def cluster(ray_local):
    """A cluster of one's own."""
    with tf.Cluster({"ps": SMALL, "worker": SMALL}) as cluster:
        yield cluster


@pytest.fixture
def session(shared):
    with tf.Session(shared) as session:
        yield session


def status(cluster, device):
    import ray

    return ray.get(cluster.actor(device).status.remote())


def pid_of(cluster, device):
    import ray

    return ray.get(cluster.actor(device).ready.remote())[1]


# -- the same results ----------------------------------------------------------------------------------


def test_devices_are_listed_workers_first(shared, session):
    assert session.list_devices() == shared.devices == [WORKER, OTHER, PS]
    assert {name: spec.count for name, spec in shared.jobs.items()} == {"ps": 1, "worker": 2}


def test_a_graph_over_three_devices(session):
    with tf.device(PS):
        w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="w_three")
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.device(WORKER):
        y = tf.matmul(x, w)
    with tf.device(OTHER):
        z = tf.reduce_sum(y * 2, 0) + tf.reduce_sum(w)
    with tf.control_dependencies([z]):
        step = state_ops.assign_add(w, tf.ones_like(w))
    session.run(w.initializer)
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    for n in (1, 2, 5):
        fed = np.ones((n, 3), np.float32)
        fetched, updated, _ = session.run([z, step, tf.no_op()], {x: fed})
        np.testing.assert_allclose(fetched, (fed @ value * 2).sum(0) + value.sum())
        value = value + 1
        np.testing.assert_allclose(updated, value)


REMOTE = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@REMOTE
@given(program=programs(devices=3, stateful=True, max_operations=15))
def test_random_programs_give_the_same_as_in_this_process(shared, program):
    with program.graph.as_default():
        for op in program.graph.get_operations():
            index = op.device.rpartition(":")[2]
            op._device = (WORKER, OTHER, PS)[int(index)] if op.device else ""
    with tf.Session(shared, graph=program.graph) as session:
        values = program.initial_values()
        for state, value in zip(program.states, values, strict=True):
            session.run(state.variable.initializer, {state.variable.initializer.inputs[1]: value})
        for n in (2, 3):
            feeds = program.feeds(n, n)
            expected, values = program.expected(feeds, values)
            for actual, wanted in zip(session.run(program.fetches, feeds), expected, strict=True):
                assert np.shape(actual) == np.shape(wanted)
                np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("elements", [0, 1, 1000, 40_000, 3_000_000])
def test_feeds_edges_and_fetches_of_every_size(session, elements):
    x = tf.placeholder(tf.float32, [None])
    with tf.device(PS):
        y = x + 1
    with tf.device(WORKER):
        z = tf.concat([y, x], 0)
    with tf.device(OTHER):
        back = tf.identity(y) - 1
    fed = np.arange(elements, dtype=np.float32)
    for _ in range(2):
        joined, again = session.run([z, back], {x: fed})
        assert np.array_equal(joined, np.concatenate([fed + 1, fed]))
        assert np.array_equal(again, fed)
        joined += 1  # what is fetched can be written to
        again += 1
    assert np.array_equal(fed, np.arange(elements))


@pytest.mark.parametrize("size", [2, 100_000])
@pytest.mark.parametrize(
    "value",
    [
        np.array([0, 1.5], ml_dtypes.bfloat16),
        np.array([0, 1], bool),
        np.array([0, 1], np.float16),
        np.array([1, -1], np.int64),
        np.array([1j, 2], np.complex64),
        np.array([b"a\x00", b""], object),
        np.array([b"\xff", "ä".encode()], object),
    ],
    ids=lambda value: str(value.dtype),
)
def test_every_dtype_crosses(session, value, size):
    value = np.resize(value, size)
    dtype = tf.as_dtype(value.dtype)
    x = tf.placeholder(dtype, [None])
    with tf.device(PS):
        y = tf.identity(x)
    with tf.device(WORKER):
        z = tf.identity(y)
    with tf.device(OTHER):
        first = z[0]
    fetched, scalar = session.run([z, first], {x: value})
    assert fetched.dtype == value.dtype and np.array_equal(fetched, value)
    assert scalar == value[0]


def test_scalars_and_empty_shapes_cross(session):
    with tf.device(PS):
        a, b, c = tf.constant(2.5) * 2, tf.zeros([0, 3]), tf.constant("text")
        d = tf.identity(c)
    with tf.device(WORKER):
        fetched = session.run([tf.identity(a), tf.identity(b), tf.identity(d), a])
    assert fetched[0] == fetched[3] == 5
    assert fetched[1].shape == (0, 3)
    assert fetched[2] == b"text"


def test_control_edges_order_across_devices(session):
    with tf.device(PS):
        v = tf.Variable(1.0, name="v_control")
        update = state_ops.assign_add(v, 1.0).op
    with tf.device(WORKER), tf.control_dependencies([update]):
        relay = tf.no_op()
    with tf.device(PS), tf.control_dependencies([relay]):
        after = state_ops.read_variable(v) * 1
    session.run(v.initializer)
    assert session.run(after) == 2


def test_many_steps_in_a_row(session):
    with tf.device(PS):
        v = tf.Variable(0.0, name="v_many")
        with tf.device(WORKER):
            delta = tf.identity(v) * 0 + 1
        step = state_ops.assign_add(v, delta)
    session.run(v.initializer)
    for expected in range(1, 51):
        assert session.run(step) == expected


def test_python_functions_travel(session):
    offset = 10
    with tf.device(WORKER):
        here = py_func(lambda: os.getpid(), [], tf.int64)
        value = py_func(lambda x: x + offset, [tf.constant(1.0)], tf.float32)
    pid, result = session.run([here, value])
    assert pid != os.getpid() and result == 11


# -- variables -----------------------------------------------------------------------------------------


def test_variables_live_on_the_devices(shared):
    with tf.device(PS):
        v = tf.Variable(1.0, name="v_shared")
    update = state_ops.assign_add(v, 1.0)
    with tf.Session(shared) as first:
        first.run(v.initializer)
        with tf.Session(shared) as second:
            assert second.run(update) == 2
        assert first.run(v) == 2
    other = tf.Graph()
    with other.as_default(), tf.device(PS):
        same = tf.Variable(0.0, name="v_shared")
    with tf.Session(shared, graph=other) as third:
        assert third.run(same) == 2


def test_an_uninitialised_variable_is_named(session):
    with tf.device(PS):
        v = tf.Variable(1.0, name="v_forgotten")
    with tf.device(WORKER):
        y = v * 2
    with pytest.raises(FailedPreconditionError, match="'v_forgotten' is not initialised") as caught:
        session.run(y)
    assert caught.value.device == PS and __file__ in caught.value.site
    assert caught.value.op_name == "v_forgotten/read"


# -- concurrency ---------------------------------------------------------------------------------------


def test_concurrent_steps_of_one_session(session):
    x = tf.placeholder(tf.float32, [None])
    with tf.device(PS):
        y = x * 2
    with tf.device(WORKER):
        z = tf.reduce_sum(y)

    def work(i):
        return session.run(z, {x: np.full(i % 7 + 1, i)}) == 2 * i * (i % 7 + 1)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))


def test_the_graph_may_grow_while_steps_run(session):
    x = tf.placeholder(tf.float32, [])
    with tf.device(PS):
        y = x * 2
    with tf.device(WORKER):
        z = y + 1
    call = session.make_callable(z, [x])
    stop = threading.Event()

    def work():
        count = 0
        while not stop.is_set():
            assert session.run(z, {x: 1}) == 3
            assert call(2) == 5
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(work) for _ in range(2)]
        try:
            for i in range(10):
                grown = z + float(i)
                assert session.run(grown, {x: 0}) == 1 + i
        finally:
            stop.set()
        assert all(run.result() > 0 for run in runs)
    assert call(3) == 7


# -- errors and timeouts -------------------------------------------------------------------------------


def test_an_error_names_the_operation_its_device_and_line(session):
    x = tf.placeholder(tf.int32, [None])
    with tf.device(PS):
        params = tf.Variable([1.0, 2.0], name="v_params")
        table = tf.identity(params)
    with tf.device(WORKER):
        picked = tf.gather(table, x, name="pick")
    with tf.device(OTHER):
        total = tf.reduce_sum(picked)
    session.run(params.initializer)
    with pytest.raises(InvalidArgumentError, match="7") as caught:
        session.run(total, {x: [0, 7]})
    assert (caught.value.op_name, caught.value.device) == ("pick", WORKER)
    assert __file__ in caught.value.site
    assert session.run(total, {x: [0, 1]}) == 3  # and the cluster goes on


def test_a_function_that_raises_is_named(session):
    def explode(x):
        raise ZeroDivisionError("nothing to divide by")

    with tf.device(WORKER):
        y = py_func(explode, [tf.constant(1.0)], tf.float32, name="culprit")
    with tf.device(PS):
        z = y + 1
    with pytest.raises(UnknownError, match=r"explode.*ZeroDivisionError: nothing to divide by") as caught:
        session.run(z)
    assert (caught.value.op_name, caught.value.device) == ("culprit", WORKER)


def test_shapes_that_do_not_meet_at_run_time(session):
    x = tf.placeholder(tf.float32)
    with tf.device(PS):
        y = tf.square(x)
    with tf.device(WORKER):
        z = tf.matmul(y, y, name="product")
    with pytest.raises(InvalidArgumentError, match=r"\(2, 3\)") as caught:
        session.run(z, {x: np.ones((2, 3))})
    assert (caught.value.op_name, caught.value.device) == ("product", WORKER)


def test_a_step_times_out_and_the_cluster_goes_on(shared, session, tmp_path):
    barrier = Barrier(tmp_path)
    with tf.device(WORKER):
        slow = py_func(lambda: (barrier.wait("go"), np.float32(1))[1], [], tf.float32)
    with tf.device(PS):
        y = tf.identity(slow, name="waits") + 1
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=r"timed out|timeout"):
        session.run(y, options=tf.RunOptions(timeout_in_ms=300))
    assert time.monotonic() - started < 4
    barrier.reach("go")
    wait_for(lambda: status(shared, WORKER)["steps"] == status(shared, PS)["steps"] == 0)
    assert session.run(y) == 2


def test_closing_from_another_thread_cancels(shared, tmp_path):
    barrier = Barrier(tmp_path)
    with tf.device(WORKER):
        slow = py_func(lambda: (barrier.reach("running"), barrier.wait("go"), np.float32(1))[2], [], tf.float32)
    with tf.device(PS):
        y = slow + 1
    session = tf.Session(shared)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, y)
        barrier.wait("running")
        session.close()
        with pytest.raises(CancelledError, match="closed"):
            running.result(timeout=30)
    wait_for(lambda: status(shared, PS)["steps"] == 0)  # who waited for the other device gave up
    barrier.reach("go")
    wait_for(lambda: status(shared, WORKER)["steps"] == 0)
    with pytest.raises(CancelledError, match="closed"):
        session.run(y)


# -- death ---------------------------------------------------------------------------------------------


def test_a_killed_actor_is_named_and_nobody_hangs(cluster, tmp_path):
    import ray

    barrier = Barrier(tmp_path)
    with tf.device(WORKER):
        slow = py_func(lambda: (barrier.reach("running"), barrier.wait("never"), np.float32(1))[2], [], tf.float32)
    with tf.device(PS):
        y = slow + 1
    with tf.Session(cluster) as session, ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, y)
        barrier.wait("running")
        ray.kill(cluster.actor(WORKER))
        with pytest.raises(UnavailableError, match="/job:worker/task:0/device:CPU:0 died") as caught:
            running.result(timeout=60)
        assert caught.value.device == WORKER
        wait_for(lambda: status(cluster, PS)["steps"] == 0)
        with pytest.raises(UnavailableError, match="worker"):
            session.run(y)
        with tf.device(PS):
            assert session.run(tf.constant(1.0) + 1) == 2  # the other device is as it was
        wait_for(lambda: status(cluster, PS)["steps"] == 0)


def test_a_process_that_dies_by_itself_is_named(cluster):
    with tf.device(WORKER):
        dies = py_func(lambda: os.kill(os.getpid(), signal.SIGKILL), [], tf.float32)
    with tf.device(PS):
        y = dies + 1
    with tf.Session(cluster) as session, pytest.raises(UnavailableError, match="worker"):
        session.run(y)


def test_closing_leaves_nothing_behind(ray_local):
    import ray

    def objects():
        return ray.cluster_resources().get("object_store_memory", 0) - ray.available_resources().get(
            "object_store_memory", 0
        )

    with tf.Cluster({"ps": SMALL, "worker": tf.JobSpec(2, num_cpus=0.5)}) as cluster:
        pids = [pid_of(cluster, device) for device in cluster.devices]
        x = tf.placeholder(tf.float32, [None])
        with tf.device(PS):
            y = x + 1
        with tf.device(WORKER):
            z = tf.identity(y) * 2
        with tf.Session(cluster) as session:
            for _ in range(3):
                session.run([y, z], {x: np.zeros(1_000_000)})
        for device in cluster.devices:
            wait_for(lambda device=device: status(cluster, device)["plans"] == 0)
        wait_for(lambda: objects() == 0)
        assert all(map(is_alive, pids))
    wait_for(lambda: not any(map(is_alive, pids)))
    wait_for(lambda: ray.available_resources().get("CPU", 0) >= 8 - 0.3)  # `shared` may hold the rest
    assert ray.is_initialized()  # it was there before
    with pytest.raises(CancelledError, match="closed"):
        tf.Session(cluster)
    cluster.close()


def test_sessions_leave_no_plans_behind(shared):
    plans = [status(shared, device)["plans"] for device in shared.devices]
    for _ in range(3):
        with tf.Session(shared) as session, tf.device(PS):
            session.run(tf.constant(1.0) + tf.placeholder_with_default(1.0, []))
    for device, count in zip(shared.devices, plans, strict=True):
        wait_for(lambda device=device, count=count: status(shared, device)["plans"] <= count)


# -- room ----------------------------------------------------------------------------------------------


def test_too_little_room_is_announced_and_then_an_error(ray_local, capfd):
    with pytest.raises(ResourceExhaustedError, match=r"worker/task:.*CPU asked, 8 there.*fewer") as caught:
        tf.Cluster({"ps": SMALL, "worker": tf.JobSpec(3, num_cpus=6)}, start_timeout_s=7)
    assert "/job:worker/task:" in caught.value.device
    message = capfd.readouterr().err
    assert "waiting for room for 2 of 4 actors" in message and "giving up after 7 s" in message
    import ray

    wait_for(lambda: ray.available_resources().get("CPU", 0) >= 7)


def test_custom_resources_are_asked_for(ray_local):
    with pytest.raises(ResourceExhaustedError, match="1 unicorn asked, 0 there"):
        tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1, resources={"unicorn": 1})}, start_timeout_s=1)


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ({}, "at least one job"),
        ({"worker": 0}, "at least one task"),
        ({"worker": tf.JobSpec(1)} | {"ps": -1}, "at least one task"),
        ({"1x": 1}, "1x"),
        ({"worker": "two"}, "two"),
        ({"worker": tf.JobSpec(2)} | {"a b": 1}, "'a b'"),
    ],
    ids=str,
)
def test_descriptions_that_make_no_cluster(jobs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.Cluster(jobs)


def test_an_actor_that_cannot_start_is_named(ray_local):
    with pytest.raises(OpError, match="no_such_module") as caught:
        tf.Cluster({"worker": SMALL}, op_modules=["no_such_module"])
    assert caught.value.device == WORKER
