"""Sessions on a cluster: devices are Ray actors, tensors cross between them, and what dies is noticed."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tfray as tf
from tests.support.local_ray import start_local_ray
from tests.support.processes import PATIENCE_S, Barrier, is_alive, wait_for
from tests.support.random_graphs import programs
from tfray.actors.clusters import gcs_probe
from tfray.actors.links.messages import AbortStep, PlanId, StepKey, StepRequest
from tfray.actors.links.object_rendezvous import ObjectRendezvous
from tfray.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    UnknownError,
)
from tfray.framework.region import ops_within
from tfray.ops.state import state_ops
from tfray.ops.system.script_ops import py_func
from tfray.placement.replicate import REPLICA_DEVICE

pytestmark = pytest.mark.ray

PS, WORKER, OTHER = (f"/job:{job}/task:{task}/device:CPU:0" for job, task in (("ps", 0), ("worker", 0), ("worker", 1)))
SMALL = tf.JobSpec(1, num_cpus=0.1)


@pytest.fixture(scope="module")
def clusters():
    """What `shared` has started; the last one may still be of use."""
    started = []
    yield started
    for cluster in started:
        cluster.close()


@pytest.fixture
def shared(ray_local, clusters):
    """A cluster for all tests that leave it alive."""
    if not clusters or not clusters[-1].connected:
        clusters.append(tf.Cluster({"ps": SMALL, "worker": tf.JobSpec(2, num_cpus=0.1)}))
    return clusters[-1]


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


def node_of(cluster, device):
    import ray

    return ray.get(cluster.actor(device).ready.remote())[0]


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
        for op in (inner for outer in program.graph.get_operations() for inner in ops_within(outer)):
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


def test_float32_may_cross_in_16_bits(shared):
    value, third = np.linspace(0, 1, 1000, dtype=np.float32), np.float32(1 / 3)
    with tf.device(PS):
        v, scalar = tf.Variable(value), tf.Variable(third)

    with tf.device(WORKER):
        received, exact = v + 0, scalar + 0

    def turn(i, a):
        with tf.device(OTHER):
            there = a + 0
        with tf.device(WORKER):
            return i + 1, there + 0

    looped = tf.while_loop(lambda i, _: i < 2, turn, [0, received])[1]
    options = tf.GraphOptions(enable_bfloat16_sendrecv=True)
    rounded = value.astype(ml_dtypes.bfloat16).astype(np.float32)
    with tf.Session(shared, config=tf.ConfigProto(graph_options=options)) as session:
        session.run([v.initializer, scalar.initializer])
        for _ in range(3):
            fetched = session.run([v, received, looped, exact])
            for actual, expected in zip(fetched, [value, rounded, rounded, third], strict=True):
                assert actual.dtype == np.float32
                np.testing.assert_array_equal(actual, expected)


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
    with pytest.raises(FailedPreconditionError, match="uninitialized value v_forgotten") as caught:
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


@pytest.mark.fault(
    "Steps",
    "A function of the program raises.",
    happens="An error with the operation, the device and the lines of the function, on Ray as in one process.",
    promise="No other step is touched.",
)
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
        slow = py_func(lambda: (barrier.wait("go"), barrier.reach("over"), np.float32(1))[2], [], tf.float32)
    with tf.device(PS):
        y = tf.identity(slow, name="waits") + 1
    with pytest.raises(DeadlineExceededError, match=r"[Tt]imed out"):
        session.run(y, options=tf.RunOptions(timeout_in_ms=300))
    assert not barrier.reached("over"), "the step has not waited for the function"
    barrier.reach("go")
    wait_for(lambda: status(shared, WORKER)["steps"] == status(shared, PS)["steps"] == 0)
    assert session.run(y) == 2


@pytest.mark.fault(
    "Steps",
    "A session is closed while other threads run its steps.",
    happens="These steps raise `tf.errors.CancelledError`, which says that the session was closed.",
    promise="None of them waits on, whatever it computes or waits for.",
)
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
            running.result(timeout=PATIENCE_S)
    wait_for(lambda: status(shared, PS)["steps"] == 0)  # who waited for the other device gave up
    barrier.reach("go")
    wait_for(lambda: status(shared, WORKER)["steps"] == 0)
    with pytest.raises(CancelledError, match="closed"):
        session.run(y)


# -- death ---------------------------------------------------------------------------------------------


@pytest.mark.fault(
    "Workers and parameter servers",
    "A device dies while a session uses it.",
    happens="`tf.errors.UnavailableError` with its name. A `MonitoredTrainingSession` replaces it and goes on.",
    promise="Nobody waits for it, and the other devices keep their state.",
)
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
            running.result(timeout=PATIENCE_S)
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


def objects_in_store():
    """Bytes that objects occupy in Ray's store."""
    import ray

    kind = "object_store_memory"
    return ray.cluster_resources().get(kind, 0) - ray.available_resources().get(kind, 0)


def test_closing_leaves_nothing_behind(ray_local):
    import ray

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
        gc.collect()  # other tests may have left datasets of Ray, whose objects refer to one another
        wait_for(lambda: objects_in_store() == 0)
        assert all(map(is_alive, pids))
    wait_for(lambda: not any(map(is_alive, pids)))
    wait_for(lambda: ray.available_resources().get("CPU", 0) >= 8 - 0.3)  # `shared` may hold the rest
    assert ray.is_initialized()  # it was there before
    with pytest.raises(CancelledError, match="closed"):
        tf.Session(cluster)
    cluster.close()


def test_closing_after_a_death_leaves_nothing_behind(ray_local, tmp_path):
    """A step that runs, one that waits for the dead, and large tensors."""
    import ray

    barrier = Barrier(tmp_path)
    with tf.device(WORKER):
        slow = py_func(
            lambda: (barrier.reach("running"), barrier.wait("never"), np.zeros(1_000_000))[2], [], tf.float64
        )
    with tf.device(PS):
        y = slow + 1
    with tf.device(OTHER):
        z = y + tf.ones([1_000_000], tf.float64)
    cluster = tf.Cluster({"ps": SMALL, "worker": tf.JobSpec(2, num_cpus=0.1)})
    pids = [pid_of(cluster, device) for device in cluster.devices]
    with tf.Session(cluster) as session, ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, z)
        barrier.wait("running")
        os.kill(pid_of(cluster, WORKER), signal.SIGKILL)
        with pytest.raises(UnavailableError, match="task:0"):
            running.result(timeout=PATIENCE_S)
    cluster.close()
    wait_for(lambda: not any(map(is_alive, pids)))
    wait_for(lambda: objects_in_store() == 0)
    wait_for(lambda: ray.available_resources().get("CPU", 0) >= 8 - 0.3)


def test_a_step_that_comes_after_its_plan_has_gone_leaves_nothing(shared):
    """As when a device has failed at once, and the session has gone on before this one began."""
    import ray

    actor = shared.actor(PS)
    key = StepKey("somebody", 1)
    ray.get(actor.tell.remote(AbortStep(key, "another device failed")))
    assert status(shared, PS)["steps"] == 1
    outcome, error = ray.get(actor.run_step.remote(PlanId("somebody", "no such plan"), StepRequest(key, 1)))
    assert outcome == "error" and isinstance(error, AbortedError)
    ray.get(actor.tell.remote(AbortStep(key, "late")))
    assert status(shared, PS)["steps"] == 0


def test_who_replaces_a_replica_gets_everything_once():
    """What is queued for the dead as well as what has been sent."""
    posts = []

    class Peer:
        def deliver(self, step, replica, items, wants_receipt, call, passages):
            posts.append([key for key, _ in items])
            return []

    request = StepRequest(StepKey("driver", 1), 1, receivers=(WORKER,))
    rendezvous = ObjectRendezvous(request, {WORKER: Peer()}, np.asarray)
    rendezvous.send("a", REPLICA_DEVICE, np.float32(1))
    rendezvous.flush()
    rendezvous.send("b", REPLICA_DEVICE, np.float32(2))
    rendezvous.join(WORKER)
    rendezvous.send("c", REPLICA_DEVICE, np.float32(3))
    rendezvous.flush()
    assert posts == [["a"], ["a", "b"], ["c"]]


def test_sessions_leave_no_plans_behind(shared):
    plans = [status(shared, device)["plans"] for device in shared.devices]
    for _ in range(3):
        with tf.Session(shared) as session, tf.device(PS):
            session.run(tf.constant(1.0) + tf.placeholder_with_default(1.0, []))
    for device, count in zip(shared.devices, plans, strict=True):
        wait_for(lambda device=device, count=count: status(shared, device)["plans"] <= count)


def test_a_session_on_some_jobs_only(shared):
    with tf.Session(shared.only("ps")) as session:
        assert session.list_devices() == [PS]
        assert session.run(tf.constant(1.0) + 1) == 2
        with tf.device(WORKER):
            y = tf.constant(1.0) * 2
        with pytest.raises(InvalidArgumentError, match=r"/job:worker.*/job:ps"):
            session.run(y)
    with pytest.raises(InvalidArgumentError, match=r"no job chief.*'worker'"):
        shared.only("ps", "chief")


# -- requests that cannot be met -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("/job:chief", r"/job:chief.*/job:worker/task:0"),
        ("/job:worker/task:7", "task:7"),
        ("/job:ps/task:0/device:GPU:0", "GPU:0"),
    ],
)
def test_a_device_that_is_not_there_is_named_with_those_that_are(session, device, message):
    one = tf.constant(1.0)
    with tf.device(device):
        y = tf.negative(one, name="homeless")
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        session.run(y)
    assert caught.value.op_name == "homeless" and __file__ in caught.value.site


def test_a_missing_feed_is_named(session):
    x = tf.placeholder(tf.float32, [2], name="forgotten")
    with tf.device(PS):
        y = x + 1
    with pytest.raises(InvalidArgumentError, match="'forgotten'") as caught:
        session.run(y)
    assert caught.value.op_name == "forgotten" and __file__ in caught.value.site


@pytest.mark.parametrize(
    ("value", "message"), [(np.ones(3), r"\(3,\).*forgotten:0.*\(2,\)"), (["a", "b"], "forgotten:0.*float32")]
)
def test_a_feed_that_does_not_fit_is_named(session, value, message):
    x = tf.placeholder(tf.float32, [2], name="forgotten")
    with pytest.raises(InvalidArgumentError, match=message):
        session.run(x + 1, {x: value})


def test_a_fetch_from_another_graph_is_refused(session):
    tf.constant(1.0)
    with tf.Graph().as_default():
        elsewhere = tf.constant(1.0, name="elsewhere")
    with pytest.raises(InvalidArgumentError, match=r"elsewhere.*graph"):
        session.run(elsewhere)


def test_a_function_that_cannot_be_sent_is_named(session):
    lock = threading.Lock()

    def guarded(x):
        with lock:
            return x

    with tf.device(WORKER):
        y = py_func(guarded, [tf.constant(1.0)], tf.float32, name="culprit")
    with pytest.raises(InvalidArgumentError, match=r"'culprit' needs cannot be sent to .*cannot pickle '_thread.lock'"):
        session.run(y)


@pytest.fixture
def deaf_port():
    """A port at which something listens that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("127.0.0.1:1", UnavailableError, "no Ray cluster answers at 127.0.0.1:1"),
        ("127.0.0.1:{deaf_port}", UnavailableError, "is not a Ray cluster"),
        ("no-such-host.invalid:6379", UnavailableError, "no Ray cluster answers at no-such-host.invalid:6379"),
        ("127.0.0.1:99999999", UnavailableError, "no Ray cluster answers"),
        ("ray://127.0.0.1:10001", InvalidArgumentError, "ray job submit"),
        ("nowhere", InvalidArgumentError, "'nowhere' is not a cluster address"),
        (6379, InvalidArgumentError, "address must be a string or None, got 6379"),
    ],
    ids=str,
)
def test_an_address_without_a_cluster(ray_stopped, deaf_port, monkeypatch, address, error, message):
    monkeypatch.setattr(gcs_probe, "CONNECT_TIMEOUT_S", 0.5)
    address = address.format(deaf_port=deaf_port) if isinstance(address, str) else address
    with pytest.raises(error, match=message):
        tf.Cluster({"worker": SMALL}, address)


def test_a_ray_that_cannot_be_started(ray_stopped, tmp_path):
    """Sockets cannot have such a long path."""
    with pytest.raises(UnavailableError, match="Ray could not be started on this machine"):
        tf.Cluster({"worker": SMALL}, "local", init_options={"_temp_dir": str(tmp_path / ("x" * 120))})
    assert not ray_stopped.is_initialized()


@pytest.mark.slow
def test_a_cluster_of_a_ray_that_was_shut_down(ray_stopped):
    start_local_ray(ray_stopped)
    cluster = tf.Cluster({"worker": SMALL})
    session = tf.Session(cluster)
    ray_stopped.shutdown()
    start_local_ray(ray_stopped)
    with pytest.raises(UnavailableError, match="Ray was shut down"):
        session.run(tf.constant(1.0) + 1)
    session.close()
    cluster.close()


def test_an_address_other_than_that_of_this_process(ray_local):
    here = ray_local.get_runtime_context().gcs_address
    with tf.Cluster({"worker": SMALL}, here):
        pass
    with pytest.raises(InvalidArgumentError, match=rf"connected to Ray at {here}, not 192.0.2.1:6379"):
        tf.Cluster({"worker": SMALL}, "192.0.2.1:6379")


@pytest.mark.slow
def test_tasks_go_where_their_job_says(ray_nodes):
    """By custom resources, spread over nodes, and into a placement group."""
    import ray
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    home, _, _ = [ray_nodes.add_node(num_cpus=2, resources=kinds) for kinds in ({"disk": 2}, {}, {})]
    ray.init(address=ray_nodes.address, logging_level="warning")

    def nodes_of(cluster, job):
        return [node_of(cluster, device) for device in cluster.devices if device.startswith(f"/job:{job}/")]

    jobs = {
        "ps": tf.JobSpec(2, num_cpus=0.25, resources={"disk": 1}),
        "worker": tf.JobSpec(3, num_cpus=0.5, scheduling_strategy="SPREAD"),
    }
    with tf.Cluster(jobs) as cluster:
        assert set(nodes_of(cluster, "ps")) == {home.node_id}
        assert len(set(nodes_of(cluster, "worker"))) >= 2
        wait_for(lambda: ray.available_resources().get("CPU") == 6 - 2 * 0.25 - 3 * 0.5)
        assert "disk" not in ray.available_resources()
    group = placement_group([{"CPU": 1}, {"CPU": 1}], strategy="STRICT_SPREAD")
    reserved = tf.JobSpec(2, scheduling_strategy=PlacementGroupSchedulingStrategy(group))
    with tf.Cluster({"worker": reserved}) as cluster, tf.Session(cluster) as session, tf.device(OTHER):
        assert len(set(nodes_of(cluster, "worker"))) == 2
        assert session.run(tf.constant(1.0) + 1) == 2


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ({}, "at least one job"),
        ({"worker": 0}, "an integer of at least 1"),
        ({"worker": tf.JobSpec(1)} | {"ps": -1}, "an integer of at least 1"),
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


def test_relative_paths_mean_the_drivers_folder(ray_local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the processes of Ray have another working directory
    (tmp_path / "lines.txt").write_text("first\n")
    with tf.Cluster({"ps": SMALL}) as cluster, tf.device(PS):
        written = tf.write_file("folder/written.txt", "text")
        read = tf.read_file("lines.txt")
        lines = tf.train.string_input_producer(["lines.txt"], num_epochs=1, shuffle=False)
        _, line = tf.TextLineReader().read(lines)
        element = tf.data.make_one_shot_iterator(tf.data.TextLineDataset("lines.txt")).get_next()
        v = tf.Variable([1.0])
        saver = tf.train.Saver([v])
        with tf.Session(cluster) as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            session.run(written)
            assert session.run([read, element]) == [b"first\n", b"first"]
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            assert session.run(line) == b"first"
            coordinator.request_stop()
            coordinator.join(threads)
            assert os.path.exists(saver.save(session, "checkpoints/model") + ".index")
            saver.restore(session, "checkpoints/model")
    assert (tmp_path / "folder" / "written.txt").read_text() == "text"


@pytest.mark.skipif(sys.version_info[:3] == (3, 13, 0), reason="getattr of Python 3.13.0 fails where no folder is")
def test_an_actor_where_the_drivers_folder_is_not_there_starts(ray_local, tmp_path, monkeypatch):
    folder = tmp_path / "removed"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with tf.Cluster({"ps": SMALL}) as cluster, tf.Session(cluster) as session, tf.device(PS):
        assert session.run(tf.constant(1.0) + 1) == 2.0
