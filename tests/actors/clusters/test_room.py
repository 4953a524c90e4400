"""Actors that wait for room on the cluster, or for anything else that keeps them from starting."""

from __future__ import annotations

import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, wait_for
from tests.support.waiting import raised_at_the_limit
from tfray.actors.clusters import cluster as cluster_module
from tfray.actors.clusters import room as room_module
from tfray.actors.clusters.room import KnownNodes, Room
from tfray.actors.launching.remote_task import RemoteTask
from tfray.errors import ResourceExhaustedError, UnavailableError

pytestmark = pytest.mark.ray

WORKER, OTHER = (f"/job:worker/task:{task}/device:CPU:0" for task in range(2))


@pytest.mark.fault(
    "Machines and networks",
    "The cluster has too little room.",
    happens="A line says what is waited for. At last, `tf.errors.ResourceExhaustedError` with what was asked.",
    promise="The wait ends after `start_timeout_s`, and room that comes in time is used.",
)
def test_too_little_room_is_announced_and_then_an_error(ray_local, printed_text):
    with pytest.raises(ResourceExhaustedError, match=r"worker/task:.*CPU asked, 8 there.*fewer") as caught:
        tf.Cluster({"worker": tf.JobSpec(3, num_cpus=6)}, start_timeout_s=7)
    assert "/job:worker/task:" in caught.value.device
    # One has room; on a busy machine it may not have started yet.
    assert re.search("waiting for room for [23] of 3 actors .*giving up after 7 s", printed_text.readouterr().err)
    import ray

    wait_for(lambda: ray.available_resources().get("CPU", 0) >= 7)


SLOW_MODULE = """
import os, time
while not os.path.exists({path!r}):
    time.sleep(0.02)
"""


DEADLY_MODULE = """
import os, signal
name = os.path.join({folder!r}, str(os.getpid()))
open(name, "w").close()
if len(os.listdir({folder!r})) <= {deaths}:
    os.kill(os.getpid(), signal.SIGKILL)
if {raises}:
    raise ValueError("broken")
"""


@pytest.mark.parametrize(("deaths", "raises"), [(1, False), pytest.param(99, False, marks=pytest.mark.slow), (0, True)])
def test_actors_that_die_while_they_start_are_started_again(ray_local, tmp_path, deaths, raises):
    """But not without end, nor where the next one would fail as the first did."""
    started = tmp_path / "started"
    started.mkdir()
    (tmp_path / "deadly.py").write_text(DEADLY_MODULE.format(folder=str(started), deaths=deaths, raises=raises))
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}}
    jobs = {"worker": tf.JobSpec(1, num_cpus=0.1, runtime_env=environment)}

    def start():
        cluster = tf.Cluster(jobs, op_modules=["deadly"], start_timeout_s=PATIENCE_S)
        with cluster, tf.Session(cluster) as session:
            return session.run(tf.constant(3) + tf.random_uniform([], 0, 1, tf.int32))

    if deaths == 1:
        assert start() == 3
    else:
        with pytest.raises(UnavailableError, match=r"(?s)worker/task:0.* did not start.*" + "broken" * raises):
            start()
    assert len(list(started.iterdir())) == {1: 2, 99: cluster_module.REPLACING_ATTEMPTS, 0: 1}[deaths]


def test_actors_have_longer_to_start_than_to_get_their_room(ray_local):
    there, missing = (Room(KnownNodes(), [{"num_cpus": cpus}]) for cpus in (0, 99))
    assert [there.limit_s(60), missing.limit_s(60)] == [300, 60]
    assert [there.is_late(elapsed_s, 60) for elapsed_s in (59, 61, 301)] == [False, False, True]
    assert [missing.is_late(elapsed_s, 60) for elapsed_s in (59, 61, 301)] == [False, True, True]


def test_what_others_have_given_back_is_not_counted_as_theirs(ray_local):
    """Actors of a cluster that was closed just before still end while those of the next one start."""

    def holding(cpus):
        actor = ray_local.remote(Holder).options(num_cpus=cpus).remote()
        ray_local.get(actor.hold.remote(), timeout=PATIENCE_S)
        return actor

    wait_for(lambda: ray_local.available_resources().get("CPU", 0) >= 8)
    others = holding(4)
    wait_for(lambda: ray_local.available_resources().get("CPU", 0) < 8)
    room, little = Room(KnownNodes(), [{"num_cpus": 8}]), Room(KnownNodes(), [{"num_cpus": 2}])
    assert room.is_missing() and not little.is_missing(), "what is free will be given"
    ray_local.kill(others)
    wait_for(lambda: ray_local.available_resources().get("CPU", 0) >= 8)
    room.look()
    own = holding(8)
    wait_for(lambda: ray_local.available_resources().get("CPU", 0) == 0)
    assert not room.is_missing()
    ray_local.kill(own)


class Holder:
    def hold(self):
        """Answers once it is there."""


@pytest.mark.slow
def test_actors_that_only_start_slowly_are_not_said_to_lack_room(ray_local, tmp_path, monkeypatch, printed_text):
    (tmp_path / "slow_to_import.py").write_text(SLOW_MODULE.format(path=str(tmp_path / "go")))
    monkeypatch.setattr(cluster_module, "NOTICE_AFTER_S", 1.0)
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}}
    jobs = {"worker": tf.JobSpec(2, num_cpus=0.5, runtime_env=environment)}

    free = ray_local.available_resources()["CPU"]

    def start(limit_s):
        # What the actors of the attempt before had comes back late: that must not be taken for what these get.
        wait_for(lambda: ray_local.available_resources()["CPU"] >= free)
        tf.Cluster(jobs, op_modules=["slow_to_import"], start_timeout_s=limit_s)

    monkeypatch.setattr(room_module, "STARTING_S", 0.0)
    # Ray itself may be slow to give them their room.
    error = raised_at_the_limit(start, [3, 30, PATIENCE_S], lambda error: isinstance(error, UnavailableError))
    assert isinstance(error, UnavailableError) and error.device == WORKER
    assert re.search(r"did not start within \d+ s, though there is room", error.message)
    message = printed_text.readouterr().err
    assert re.search(r"waiting for the start of 2 of 2 actors \(1 CPU asked, 8 there\); giving up after \d+ s", message)
    monkeypatch.undo()  # with their room, they have time to start, however soon there had to be room
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(tf.Cluster, jobs, op_modules=["slow_to_import"], start_timeout_s=60.0)
        wait_for(lambda: "giving up after 300 s" in printed_text.readouterr().err)
        (tmp_path / "go").touch()
        starting.result(PATIENCE_S).close()


@pytest.mark.fault(
    "Machines and networks",
    "The cluster has too little room.",
    happens="A line says what is waited for. At last, `tf.errors.ResourceExhaustedError` with what was asked.",
    promise="The wait ends after `start_timeout_s`, and room that comes in time is used.",
)
@pytest.mark.slow
def test_room_that_comes_late_is_waited_for(ray_nodes, printed_text, monkeypatch):
    import ray

    monkeypatch.setattr(cluster_module, "NOTICE_AFTER_S", 1.0)
    ray_nodes.add_node(num_cpus=1)
    ray.init(address=ray_nodes.address, logging_level="warning")
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(tf.Cluster, {"worker": 2}, start_timeout_s=PATIENCE_S)
        said = ""

        def announced():
            nonlocal said
            said += printed_text.readouterr().err
            # One has room; on a busy machine it may not have started yet.
            return re.search(r"waiting for room for [12] of 2 actors \(2 CPU asked, 1 there\); giving up after", said)

        wait_for(announced)
        ray_nodes.add_node(num_cpus=1)
        with started.result(timeout=PATIENCE_S) as cluster, tf.Session(cluster) as session, tf.device(OTHER):
            assert session.run(tf.constant(1.0) + 1) == 2


@pytest.mark.fault(
    "Machines and networks",
    "Ray is gone from a machine.",
    happens="The error says from how many nodes Ray is gone, and does not ask for fewer tasks.",
    promise="The advice fits the cause.",
)
@pytest.mark.slow
def test_a_node_whose_ray_was_killed_is_named_instead_of_a_lack_of_room(ray_nodes, printed_text, monkeypatch):
    import ray

    monkeypatch.setattr(cluster_module, "NOTICE_AFTER_S", 0.5)
    ray_nodes.add_node(num_cpus=1)
    lost = ray_nodes.add_node(num_cpus=1, resources={"disk": 1})
    ray.init(address=ray_nodes.address, logging_level="warning")
    wait_for(lambda: "disk" in ray.cluster_resources())
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.5, resources={"disk": 1})}) as cluster:
        ray_nodes.remove_node(lost, allow_graceful=False)
        wait_for(lambda: "disk" not in ray.cluster_resources())
        with pytest.raises(UnavailableError, match="Ray is gone from 1 of 2 nodes") as caught:
            cluster.replace_dead(timeout_s=2)
        assert "fewer" not in caught.value.message and "ray start" in caught.value.message
        assert "Ray is gone from 1 of 2 nodes" in printed_text.readouterr().err


def test_custom_resources_are_asked_for(ray_local):
    with pytest.raises(ResourceExhaustedError, match="1 unicorn asked, 0 there"):
        tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1, resources={"unicorn": 1})}, start_timeout_s=1)


def test_a_launched_task_waits_for_room_no_longer_than_it_may(ray_local, tmp_path):
    (tmp_path / "program.py").touch()
    ended = threading.Event()
    task = RemoteTask(
        Room(KnownNodes()), {"num_cpus": 99}, str(tmp_path / "program.py"), [], {}, print, lambda code: ended.set()
    )
    with pytest.raises(ResourceExhaustedError, match=r"no room for a task .*99 CPU asked, 8 there.*--start-timeout"):
        task.wait_until_started(time.monotonic() + 1)
    task.stop()
    assert ended.wait(PATIENCE_S)


def test_room_that_one_task_has_got_is_not_taken_for_the_next_one_s(ray_local, tmp_path):
    (tmp_path / "program.py").write_text("import signal; signal.pause()")
    wait_for(lambda: ray_local.available_resources().get("CPU", 0) >= 8)
    room, ended = Room(KnownNodes()), threading.Barrier(3)
    start = [{"num_cpus": 6}, str(tmp_path / "program.py"), [], {}, print, lambda code: ended.wait(PATIENCE_S)]
    tasks = [RemoteTask(room, *start) for _ in range(2)]
    with pytest.raises(ResourceExhaustedError, match=r"no room for a task .*12 CPU asked, 8 there"):
        for task in tasks:
            task.wait_until_started(time.monotonic() + 10)
    for task in tasks:
        task.kill()
    ended.wait(PATIENCE_S)
    assert not room.is_missing()  # they are asked for no more
