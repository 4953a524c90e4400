"""Processes that are frozen (SIGSTOP), and nodes that only Ray knows to be dead: whatever waits for them ends."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, freeze, is_alive, kill_actor, noted_pid, wait_for
from tests.support.training_models import (
    OPTIMIZERS,
    classification_data,
    dense_model,
    noting_input,
    scaling,
    together_input,
)
from tests.support.waiting import Task
from tfray.actors.links import peer_link
from tfray.actors.links.peer_link import MAX_UNSENT_BYTES, Link
from tfray.actors.replicas import driver, membership, random_states
from tfray.errors import UnavailableError
from tfray.training.trainer import cluster_training

pytestmark = pytest.mark.ray

SMALL = tf.JobSpec(1, num_cpus=0.1)


@pytest.fixture(name="freeze")
def freeze_until_the_end():
    """Freezes processes, and lets them go on when the test is over."""
    frozen = []

    def stop(pid):
        frozen.append(pid)
        freeze(pid)

    yield stop
    for pid in filter(is_alive, frozen):
        os.kill(pid, signal.SIGCONT)


def run_with_a_frozen_worker(folder, freeze, steps=40, frozen=2, restarts=8, at=10, step_timeout_s=None, **options):
    """A run of which a replica freezes for good after the step `at`, with a save at every tenth.

    Of an asynchronous run it has taken part by then: of a synchronous one it may be the one that never counts.
    """
    members, stopped = set(), []

    def on_step(record):
        members.update(record.members)
        if record.step >= at and not stopped and (frozen in members or "mode" not in options):
            stopped.append(record.step)
            freeze(noted_pid(folder, frozen))

    return tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(together_input(tf.train.array_input(*classification_data(), batch_size=24), folder, 3), folder),
        scaling(3, 2, **options),
        tf.train.RunConfig(
            steps=steps,
            on_step=on_step,
            checkpoint_dir=str(folder / "saved"),
            save_every_steps=10,
            keep_checkpoints=9,
            max_worker_restarts=restarts,
            step_timeout_s=step_timeout_s,
        ),
    ).fit()


@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker stands still: its process is frozen.",
    happens="Backup and asynchronous runs go on without it, as if it were slow. Where a step waits for it, it "
    "counts as dead after `step_timeout_s`, or 120 s without it, and is replaced.",
    promise="No save waits for it, and no step longer than that.",
)
def test_a_frozen_backup_worker_stops_no_save(ray_local, tmp_path, freeze):
    result = run_with_a_frozen_worker(tmp_path, freeze, backup_workers=1)
    assert [record.step for record in result.history] == list(range(1, 41))
    assert result.variables["global_step"] == 40
    assert len(tf.train.get_checkpoint_state(str(tmp_path / "saved")).all_model_checkpoint_paths) == 4


@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker stands still: its process is frozen.",
    happens="Backup and asynchronous runs go on without it, as if it were slow. Where a step waits for it, it "
    "counts as dead after `step_timeout_s`, or 120 s without it, and is replaced.",
    promise="No save waits for it, and no step longer than that.",
)
@pytest.mark.parametrize("frozen", [0, pytest.param(2)])
def test_a_frozen_worker_of_asynchronous_training_stops_no_save(
    ray_local, tmp_path, freeze, frozen, monkeypatch, printed_text
):
    """The step that it had is another's, which is not given up itself: every step is done once."""
    monkeypatch.setattr(driver, "HELD_UP_S", 4.0)  # longer than a busy machine makes others wait
    result = run_with_a_frozen_worker(tmp_path, freeze, steps=60, frozen=frozen, restarts=0, mode="async")
    assert (
        f"replica {frozen} (/job:worker/task:{frozen}/device:CPU:0) is given up: it has not ended"
        in printed_text.readouterr().err
    )
    assert {record.members for record in result.history[-20:]} == {(r,) for r in range(3) if r != frozen}
    assert [record.step for record in result.history] == list(range(1, 61))
    assert result.variables["global_step"] == 60
    assert len(tf.train.get_checkpoint_state(str(tmp_path / "saved")).all_model_checkpoint_paths) == 6


@pytest.mark.fault(
    "Workers and parameter servers",
    "A worker stands still: its process is frozen.",
    happens="Backup and asynchronous runs go on without it, as if it were slow. Where a step waits for it, it "
    "counts as dead after `step_timeout_s`, or 120 s without it, and is replaced.",
    promise="No save waits for it, and no step longer than that.",
)
@pytest.mark.parametrize(
    ("at", "limit_s"),
    [(13, None), pytest.param(13, 5.0, marks=pytest.mark.slow), pytest.param(10, None, marks=pytest.mark.slow)],
    ids=["a step", "a step with a limit", "a save"],
)
def test_a_frozen_worker_for_which_steps_wait_is_replaced(
    ray_local, tmp_path, freeze, monkeypatch, printed_text, at, limit_s
):
    """No step times out: the others take it up, and it is given time anew."""
    for module in (cluster_training, membership):
        monkeypatch.setattr(module, "SILENCE_S", 5.0)
    result = run_with_a_frozen_worker(tmp_path, freeze, frozen=1, at=at, step_timeout_s=limit_s)
    if at == 13:
        assert (
            "replica 1 (/job:worker/task:1/device:CPU:0) is given up: /job:worker/task:1"
            in printed_text.readouterr().err
        )
    assert [record.step for record in result.history] == list(range(1, 41))
    assert result.variables["global_step"] == 40
    assert [event.kind for event in result.events] == ["replacement"]
    assert len(tf.train.get_checkpoint_state(str(tmp_path / "saved")).all_model_checkpoint_paths) == 4


def killed(folder, replica):
    """End a worker's process, and wait until it is gone."""
    pid = noted_pid(folder, replica)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid))


@pytest.mark.slow
def test_a_frozen_backup_worker_keeps_no_other_out(ray_local, tmp_path, freeze):
    """Without the one that takes the place of the dead there would be too few: it need not know the frozen one."""

    def on_step(record):
        if record.step == 10:
            freeze(noted_pid(tmp_path, 2))
            killed(tmp_path, 1)

    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(
            together_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path, 3), tmp_path
        ),
        scaling(3, 2, backup_workers=1),
        tf.train.RunConfig(steps=40, on_step=on_step, step_timeout_s=30),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 41))
    assert result.history[-1].members == (0, 1)


@pytest.mark.slow
def test_a_shard_is_replaced_beside_a_frozen_backup_worker(ray_local, tmp_path, freeze, clusters):
    """The run goes back to its checkpoint, and begins with those that are needed."""
    waits, struck = [], []

    def on_step(record):
        if record.step == 25 and not struck:
            freeze(noted_pid(tmp_path, 2))
            kill_actor(ray_local, clusters[-1], "/job:ps/task:1/device:CPU:0")
            struck.append(time.monotonic())
        elif struck and not waits:
            waits.append(time.monotonic() - struck[0])

    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        noting_input(
            together_input(tf.train.array_input(*classification_data(), batch_size=24), tmp_path, 3), tmp_path
        ),
        scaling(3, 2, backup_workers=1, start_timeout_s=240),
        tf.train.RunConfig(steps=40, on_step=on_step, checkpoint_dir=str(tmp_path / "saved"), save_every_steps=10),
    ).fit()
    assert [record.step for record in result.history] == list(range(1, 41))
    assert result.variables["global_step"] == 40
    assert waits[0] < 200, "a worker that does not get ready is given up after 240 s"


def shard_of(ray_local, clusters):
    return ray_local.get(clusters[-1].actor("/job:ps/task:0/device:CPU:0").ready.remote()).pid


class Freezing(tf.train.Callback):
    """Freezes the parameter server at one moment of a run, once."""

    def __init__(self, moment, ray_local, clusters, freeze, monkeypatch):
        self.moment, self.struck_at = moment, None

        def strike():
            if self.struck_at is None:
                freeze(shard_of(ray_local, clusters))
                self.struck_at = time.monotonic()

        self.strike = strike
        at = {"start": (cluster_training, "initializer"), "read": (cluster_training, "variables_of")}.get(moment)
        if at is not None:  # what is asked for just before the session runs it
            ask = getattr(*at)
            monkeypatch.setattr(*at, lambda model: (strike(), ask(model))[1])

    def on_step(self, record):
        if (self.moment, record.step) in (("save", 10), ("step", 6)):
            self.strike()


def run_with_a_frozen_shard(callback, **options):
    input_fn = tf.train.array_input(*classification_data(), batch_size=24)
    run = tf.train.RunConfig(steps=20, callbacks=[callback], **options)
    return tf.train.Trainer(dense_model(OPTIMIZERS["sgd"]), input_fn, scaling(), run).fit()


MOMENTS = [
    pytest.param("start", r"step of \d+ operations \(\w+"),
    pytest.param("save", r"did not answer|step of \d+ operations", marks=pytest.mark.slow),
    pytest.param("read", r"step of \d+ operations \(\w+"),
    pytest.param("step", "its part of a step", marks=pytest.mark.slow),
]


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server stands still: its process is frozen.",
    happens="After `step_timeout_s`, or 120 s without it, it counts as dead: a run with checkpoints goes back to its "
    "newest, another raises `tf.errors.UnavailableError`.",
    promise="Nothing waits longer for it: no start of the variables, no step, no save, and no last read of the values.",
)
@pytest.mark.parametrize(("moment", "what"), MOMENTS)
def test_nothing_waits_for_a_frozen_parameter_server(ray_local, clusters, tmp_path, freeze, monkeypatch, moment, what):
    callback = Freezing(moment, ray_local, clusters, freeze, monkeypatch)
    for module in (cluster_training, membership):
        monkeypatch.setattr(module, "SILENCE_S", 5.0)
    saves = {"checkpoint_dir": str(tmp_path), "save_every_steps": 10, "max_recoveries": 0} if moment == "save" else {}
    with pytest.raises(UnavailableError, match=rf"/job:ps/task:0/device:CPU:0 .*({what})"):
        run_with_a_frozen_shard(callback, **saves)
    assert time.monotonic() - callback.struck_at < 60


@pytest.mark.slow
@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server stands still: its process is frozen.",
    happens="After `step_timeout_s`, or 120 s without it, it counts as dead: a run with checkpoints goes back to its "
    "newest, another raises `tf.errors.UnavailableError`.",
    promise="Nothing waits longer for it: no start of the variables, no step, no save, and no last read of the values.",
)
@pytest.mark.parametrize(("moment", "limit_s"), [("save", None), ("read", None), ("step", None), ("step", 5.0)])
def test_a_run_with_checkpoints_replaces_a_frozen_parameter_server(
    ray_local, clusters, tmp_path, freeze, monkeypatch, moment, limit_s
):
    callback = Freezing(moment, ray_local, clusters, freeze, monkeypatch)
    for module in (cluster_training, membership):
        monkeypatch.setattr(module, "SILENCE_S", 5.0)
    result = run_with_a_frozen_shard(callback, checkpoint_dir=str(tmp_path), save_every_steps=5, step_timeout_s=limit_s)
    assert [record.step for record in result.history][-1] == 20 or moment == "read"
    assert result.variables["global_step"] == 20
    (event,) = result.events
    assert event.kind == "rollback" and "/job:ps/task:0/device:CPU:0 has died, or answers no more" in event.message


@pytest.mark.slow
def test_dead_actors_are_replaced_beside_a_frozen_one(ray_local, freeze):
    import ray

    with tf.Cluster({"ps": SMALL, "worker": SMALL}) as cluster:
        worker, shard = cluster.devices
        freeze(ray.get(cluster.actor(worker).ready.remote()).pid)
        kill_actor(ray, cluster, shard)
        assert Task(cluster.replace_dead).result() == [shard]


def test_a_step_in_which_a_worker_was_frozen_is_soon_no_measure():
    """A worker that is slow in every step remains one, however many steps others take."""
    paces = driver.Paces()
    paces.took(0, 60.0)
    paces.took(1, 5.0)
    assert paces.longest([0, 1]) == 60 and paces.longest([1]) == 5 and paces.longest([2]) == 0
    for _ in range(30):
        paces.took(0, 0.1)
    assert paces.longest([0]) < 3 and paces.longest([0, 1]) == 5


@pytest.mark.slow
def test_random_states_of_a_frozen_worker_that_is_needed_are_waited_for_no_longer_than_said(ray_local, freeze):
    """From then on it counts as gone. A shard in its place is an error."""
    import ray

    with tf.Cluster({"ps": SMALL, "worker": tf.JobSpec(2, num_cpus=0.1)}) as cluster:
        shards, workers = [cluster.devices[-1]], cluster.devices[:2]
        freeze(ray.get(cluster.actor(workers[1]).ready.remote()).pid)
        assert random_states.collect(cluster, "a session", shards, workers, 1, None) == {}
        with pytest.raises(UnavailableError, match=r"worker/task:1.* did not answer within 0.5 s: its process is fr"):
            random_states.collect(cluster, "a session", [*shards, workers[1]], workers[:1], 1, 0.5)
        assert random_states.collect(cluster, "a session", shards, workers, 2, 0.5) == {}
        began_at = time.monotonic()
        assert random_states.collect(cluster, "a session", shards, workers, 2, PATIENCE_S) == {}
        assert time.monotonic() - began_at < PATIENCE_S / 2


def test_a_session_that_is_closed_waits_for_no_frozen_device(ray_local, freeze):
    """A device that is to compile a step does not answer: closing ends that wait."""
    import ray

    with tf.device("/job:worker"):
        y = tf.random_uniform([2]) + 1
    with tf.Cluster({"worker": SMALL}) as cluster:
        session = tf.Session(cluster)
        freeze(ray.get(cluster.actor(cluster.devices[0]).ready.remote()).pid)
        running = Task(session.run, y)
        wait_for(lambda: session._runner._plans)
        session.close()
        with pytest.raises(tf.errors.CancelledError):
            running.result()


@pytest.mark.fault(
    "Machines and networks",
    "A peer keeps its connection open and takes nothing.",
    happens="It is given up, with an error.",
    promise="Messages for it do not fill the memory, and other peers are served.",
)
def test_a_peer_that_takes_nothing_is_given_up(monkeypatch):
    """Its socket stays open, as that of a frozen process does."""
    monkeypatch.setattr(peer_link, "STALLED_S", 0.5)
    near, far = socket.socketpair()
    ended = threading.Event()
    link = Link(near, lambda *frame: None, lambda link: ended.set())
    peer_link._READER.add(link)
    with pytest.raises(OSError, match="taken nothing"):
        for _ in range(4 * MAX_UNSENT_BYTES >> 20):
            link.send({}, [np.zeros(1 << 20, np.uint8)])
    assert ended.wait(PATIENCE_S)
    far.close()
    # The thread that reads goes on for others.
    one, other = socket.socketpair()
    arrived = threading.Event()
    peer_link._READER.add(Link(one, lambda *frame: arrived.set(), lambda link: None))
    sender = Link(other, lambda *frame: None, lambda link: None)
    sender.send({"still": "there"})
    assert arrived.wait(PATIENCE_S)
    sender.close()
    other.close()


@pytest.mark.slow
@pytest.mark.fault(
    "Machines and networks",
    "A machine is cut off from the network.",
    happens="Once Ray has declared its node dead, what waits for it raises `tf.errors.UnavailableError`.",
    promise="Nothing waits as long as the cut lasts.",
)
def test_the_death_of_a_node_ends_what_waits_for_it(ray_nodes, freeze):
    """The worker is frozen and keeps its end of the link open, as a machine does that is cut off; so is its Raylet.

    That is not killed: the worker would be in a group of processes without a parent, which the kernel wakes up.
    """
    import ray

    ray_nodes.add_node(num_cpus=1, resources={"here": 1})
    ray_nodes.connect()
    there = ray_nodes.add_node(num_cpus=1, resources={"there": 1})
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
    with tf.device("/job:worker"):
        y = v + tf.random_uniform([])
    jobs = {
        "ps": tf.JobSpec(1, num_cpus=0.1, resources={"here": 0.1}),
        "worker": tf.JobSpec(1, num_cpus=0.1, resources={"there": 0.1}),
    }
    with tf.Cluster(jobs) as cluster, tf.Session(cluster) as session:
        session.run(v.initializer)
        for _ in range(3):
            session.run(y)
        worker = next(device for device in cluster.devices if "worker" in device)
        freeze(ray.get(cluster.actor(worker).ready.remote()).pid)
        running = Task(session.run, y)
        freeze(there.all_processes["raylet"][0].process.pid)
        with pytest.raises(UnavailableError, match=r"worker/task:0.* died"):
            running.result()
