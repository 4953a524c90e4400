"""Servers: processes that share devices on Ray. Here several tasks live in one process, with graphs of their own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, wait_for
from tests.support.waiting import Task
from tfray.actors.clusters import ray_runtime
from tfray.actors.clusters import server as server_module
from tfray.actors.clusters.served_cluster import WAIT_VARIABLE
from tfray.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)

pytestmark = pytest.mark.ray

NUMBERS = itertools.count()


def addresses(**jobs):
    """A cluster with addresses that no other test uses."""
    number = next(NUMBERS)
    return {job: [f"{job}{index}-{number}:2222" for index in range(count)] for job, count in jobs.items()}


@pytest.fixture(scope="module")
def started():
    """Servers that end with the module."""
    servers = []
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def tasks(ray_local, started):
    """A cluster of one parameter server and two workers that all tests share, by job and index."""
    if not started or not started[0]._actors or not connected(ray_local, started[0]):
        started.clear()
        cluster = tf.train.ClusterSpec(addresses(ps=1, worker=2))
        started += [tf.train.Server(cluster, job, index) for job, index in (("ps", 0), ("worker", 0), ("worker", 1))]
    return dict(zip((("ps", 0), ("worker", 0), ("worker", 1)), started, strict=True))


def connected(ray, server):
    try:
        ray.get(server._actors[0].served.remote(), timeout=PATIENCE_S)
    except ray.exceptions.RayError:
        return False
    return True


def test_sessions_of_all_tasks_share_the_parameters(tasks):
    first, second = tasks["worker", 0], tasks["worker", 1]
    assert first.target == f"grpc://{first.server_def.cluster.job[1].tasks[0]}"
    graphs = []
    for index in range(2):
        with tf.Graph().as_default() as graph:
            cluster = tf.train.ClusterSpec(first.server_def.cluster)
            with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
                count = tf.Variable(10, name="shared_count")
                graphs.append((graph, count.initializer, count.assign_add(index + 1), count.value()))
    with tf.Session(first.target, graphs[0][0]) as one, tf.Session(second.target, graphs[1][0]) as two:
        with pytest.raises(FailedPreconditionError, match="shared_count"):
            two.run(graphs[1][3])
        one.run(graphs[0][1])
        assert two.run(graphs[1][2]) == 12 and one.run(graphs[0][2]) == 13
    with tf.Session(second.target.encode(), graphs[1][0]) as later:  # the variable outlives sessions
        assert later.run(graphs[1][3]) == 13


def test_what_is_left_open_goes_to_the_task_of_the_target(tasks):
    for index in range(2):
        with tf.Session(tasks["worker", index].target) as session:
            assert session.list_devices()[0] == f"/job:worker/task:{index}/device:CPU:0"
            assert session.list_devices()[-1] == "/job:ps/task:0/device:CPU:0"
            local = tf.Variable(float(index), name="own_value")
            session.run(local.initializer)
            with tf.device(f"/job:worker/task:{index}"):
                assert session.run(local * 2) == 2 * index


def test_device_filters_leave_devices_out(tasks):
    config = tf.ConfigProto(device_filters=["/job:ps"])
    with tf.Session(tasks["worker", 1].target, config=config) as session:
        devices = session.list_devices()
        assert devices == ["/job:worker/task:1/device:CPU:0", "/job:ps/task:0/device:CPU:0"]
        with tf.device("/job:worker/task:0"), pytest.raises(InvalidArgumentError, match="no such device"):
            session.run(tf.random_normal([2]))


def test_a_session_leaves_nothing_behind(tasks, ray_local):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(3, tf.int32, [()], shared_name="never filled")
    session = tf.Session(tasks["worker", 0].target)
    waiting = Task(session.run, queue.dequeue())
    actor = tasks["ps", 0]._actors[0]
    wait_for(lambda: ray_local.get(actor.status.remote())["steps"] == 1)
    session.close()
    with pytest.raises(tf.errors.CancelledError):
        waiting.result()
    wait_for(lambda: ray_local.get(actor.status.remote())["steps"] == 0)
    wait_for(lambda: ray_local.get(actor.status.remote())["plans"] == 0)


def test_the_place_of_a_dead_process_in_a_queue_is_free(tasks, ray_local):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(3, tf.int32, [()], shared_name="one element")
    taken, added = queue.dequeue(), queue.enqueue(7)
    dead, living = tf.Session(tasks["worker", 0].target), tf.Session(tasks["worker", 1].target)
    actor = tasks["ps", 0]._actors[0]
    with dead, living:
        waiting = Task(dead.run, taken)
        wait_for(lambda: ray_local.get(actor.status.remote())["steps"] == 1)
        dead._runner.peer("/job:ps/task:0/device:CPU:0").close()  # as the end of its process does
        wait_for(lambda: ray_local.get(actor.status.remote())["steps"] == 0)
        living.run(added)
        assert living.run(taken) == 7
        with pytest.raises(UnavailableError):
            waiting.result()


def test_a_missing_task_is_named(ray_local, monkeypatch):
    cluster = addresses(ps=1, worker=1)
    worker = tf.train.Server(cluster, "worker", 0)
    monkeypatch.setenv(WAIT_VARIABLE, "0.3")
    try:
        with tf.Session(worker.target) as session:
            assert session.run(tf.constant(2) + 1) == 3  # which needs no other task
            with tf.device("/job:ps/task:0"):
                there = tf.random_normal([])
            with pytest.raises(UnavailableError, match=rf"no server at {cluster['ps'][0]} for /job:ps/task:0"):
                session.run(there)
        with pytest.raises(UnavailableError, match="no server at nowhere:1"):
            tf.Session("grpc://nowhere:1")
        monkeypatch.setenv(WAIT_VARIABLE, "soon")
        with pytest.raises(InvalidArgumentError, match="expected a number of seconds"):
            tf.Session(worker.target)
    finally:
        worker.stop()


def test_an_address_is_taken_once(tasks, monkeypatch):
    monkeypatch.setattr(server_module, "PREDECESSOR_S", 0.3)
    with pytest.raises(AlreadyExistsError, match="there is a server at"):
        tf.train.Server(tasks["ps", 0].server_def)


def test_a_local_server_is_a_cluster_of_its_own(ray_local):
    server = tf.train.Server.create_local_server(start=False)
    server.start()
    try:
        with tf.Session(server.target) as session:
            assert session.list_devices() == ["/job:local/task:0/device:CPU:0"]
            assert session.run(tf.constant([1, 2]) * 2).tolist() == [2, 4]
    finally:
        server.stop()


def test_the_loss_of_a_task_ends_steps_and_join(ray_local):
    import ray

    cluster = addresses(ps=2, worker=1)
    servers = [tf.train.Server(cluster, job, index) for job, index in (("ps", 0), ("ps", 1), ("worker", 0))]
    try:
        with tf.device("/job:ps/task:1"):
            variable = tf.Variable(1.0)
        with tf.device("/job:ps/task:0"):
            tokens = tf.FIFOQueue(3, tf.float32, [()], shared_name="tokens")
        with tf.Session(servers[2].target) as session:
            session.run(variable.initializer)
            # The second server is through when it dies; the first still waits for a token.
            step = Task(session.run, [variable.value(), tokens.dequeue()])
            joined = Task(servers[1].join)
            wait_for(lambda: ray.get(servers[0]._actors[0].status.remote())["steps"] == 1)
            ray.kill(servers[1]._actors[0])
            with pytest.raises(UnavailableError, match="/job:ps/task:1"):
                step.result()
            with pytest.raises(UnavailableError, match="has died"):
                joined.result()
            wait_for(lambda: ray.get(servers[0]._actors[0].status.remote())["steps"] == 0)
    finally:
        for server in servers:
            server.stop()


def test_replicas_in_step(tasks):
    """Two workers, each a thread with a graph and a session of its own, as processes have them."""
    steps, seen = 12, {}
    cluster = tf.train.ClusterSpec(tasks["ps", 0].server_def.cluster)

    def work(index):
        with tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
                x = tf.get_variable("in_step/x", [2], initializer=tf.ones_initializer())
                table = tf.get_variable("in_step/table", [5, 2], initializer=tf.ones_initializer())
                step = tf.train.get_or_create_global_step()
                # Replica i pulls x towards i, and both the same rows of the table towards 0.
                loss = tf.reduce_sum((x - index) ** 2) + tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 3]) ** 2)
                optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.25), 2)
                train_op = optimizer.minimize(loss, global_step=step)
            # Without tokens to begin with, no replica is ahead of the other.
            hooks = [optimizer.make_session_run_hook(index == 0, 0), tf.train.StopAtStepHook(last_step=steps)]
            with tf.train.MonitoredTrainingSession(tasks["worker", index].target, index == 0, hooks=hooks) as session:
                while not session.should_stop():
                    session.run(train_op)
                seen[index] = session._tf_sess().run([step, x, table])

    threads = [Task(work, index) for index in range(2)]
    for thread in threads:
        thread.result()
    for step, x, table in seen.values():
        assert step == steps
        np.testing.assert_allclose(x, 0.5 + 0.5 * 0.5**steps)  # the mean of the two gradients, exactly
        np.testing.assert_allclose(table[[0, 2, 4]], 1)
        np.testing.assert_allclose(table[[1, 3]], 0.5**steps, rtol=1e-6)


def test_without_ray_servers_say_what_to_do(ray_stopped, monkeypatch):
    def no_ray(address):  # another one may run on this machine
        raise UnavailableError(f"there is none at {address}")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray_runtime, "connect", no_ray)
    with pytest.raises(UnavailableError, match="start them by `tfray launch`"):
        tf.train.Server(addresses(ps=1, worker=1), "worker", 0)


def test_a_reset_clears_containers_and_ends_sessions(tasks):
    target = tasks["worker", 0].target
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        plain = tf.Variable(1.0, name="held")
        held = [plain]
        for container in ("one", "other"):
            with tf.container(container):
                held.append(tf.Variable(2.0, name="held", use_resource=True))
        sessions = [tf.Session(target) for _ in range(2)]
        sessions[0].run(tf.global_variables_initializer())
        assert sessions[1].run(held) == [1, 2, 2]
        tf.Session.reset(target, ["one"])
        for session in sessions:
            with pytest.raises(AbortedError, match="reset"):
                session.run(held)
            with pytest.raises(AbortedError, match="reset"):
                session.run(plain + 1)
        with tf.Session(target) as session:
            with pytest.raises(FailedPreconditionError):
                session.run(held[1])
            assert session.run([held[0], held[2]]) == [1, 2]
            tf.Session.reset(target, ["ps"])
        with tf.Session(target) as session:
            with pytest.raises(FailedPreconditionError):
                session.run(held[0])
            assert session.run(held[2]) == 2
        tf.Session.reset(target)
        with tf.Session(target) as session, pytest.raises(FailedPreconditionError):
            session.run(held[2])
