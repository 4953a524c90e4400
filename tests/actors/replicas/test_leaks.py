"""Many sessions and trainers on one Ray, side by side and one after the other: whatever becomes of them, nothing stays.

Not an actor, object, process, thread, socket, descriptor or file. Ray keeps idle processes for whoever comes next.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.leftovers import Holdings, actor_processes, own_temporary_folder  # noqa: F401 (a fixture)
from tests.support.processes import PATIENCE_S, Barrier, wait_for
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model, scaling
from tests.support.waiting import Task
from tfray.errors import CancelledError
from tfray.ops.system.script_ops import py_func

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("clean_ray")]

JOBS = 20
TASK = tf.JobSpec(1, num_cpus=0.1)
LARGE = np.ones((1 << 19,), np.float32)
"""Travels as an object of Ray's store."""


@pytest.fixture
def clean_ray(ray_local, own_temporary_folder):  # noqa: F811 (it is that fixture)
    """Whatever is held before a test is held after it, and no more. The first session makes what Ray keeps."""
    run_session()
    run_trainer()
    wait_for(lambda: not actor_processes())
    before = Holdings(ray_local)
    yield ray_local
    before.assert_returned(60)
    wait_for(lambda: ray_local.available_resources().get("CPU") == ray_local.cluster_resources()["CPU"])


def training_graph():
    """A graph with a variable on one device, and what trains it with large tensors from another."""
    with tf.Graph().as_default() as graph:
        fed = tf.placeholder(tf.float32, LARGE.shape, name="fed")
        with tf.device("/job:ps"):
            weights = tf.Variable(np.zeros_like(LARGE), name="weights")
        with tf.device("/job:worker"):
            loss = tf.reduce_mean(tf.square(weights - fed), name="loss")
        tf.train.GradientDescentOptimizer(LARGE.size / 8).minimize(loss, name="train")
        tf.global_variables_initializer()
    return graph


def run_session(steps=10, progress=lambda step: None):
    """Train in a session on a cluster of its own."""
    graph = training_graph()
    with (
        tf.Cluster({"ps": TASK, "worker": TASK}, start_timeout_s=400) as cluster,
        tf.Session(cluster, graph) as session,
    ):
        session.run("init")
        for step in range(1, steps + 1):
            _, loss = session.run(["train", "loss:0"], {"fed:0": LARGE})
            progress(step)
    assert loss < 0.5


def run_trainer(steps=20, progress=lambda step: None):
    """Train by a trainer with its own actors."""
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["sgd"]),
        tf.train.array_input(*classification_data(), batch_size=24),
        scaling(1, start_timeout_s=400),
        tf.train.RunConfig(steps=steps, logdir=None, on_step=lambda record: progress(record.step)),
    ).fit()
    assert result.variables["global_step"] == steps


def job(number):
    """One of many: every other one is a trainer."""
    return run_trainer if number % 2 else run_session


def test_jobs_side_by_side():
    tasks = [Task(job(number)) for number in range(JOBS)]
    for task in tasks:
        task.result(600)


def test_jobs_one_after_the_other():
    for number in range(JOBS):
        job(number)()


@pytest.mark.parametrize("closed", ["session", "cluster"])
def test_sessions_that_are_closed_while_their_steps_run(tmp_path, closed):
    """A step of each waits for what never comes, in a function, or at a queue."""
    barrier = Barrier(tmp_path)

    def wait_in_function(number, values):
        barrier.reach(f"waits{number}")
        barrier.wait("go")
        return values

    def run(number, started):
        with tf.Graph().as_default() as graph, tf.device("/job:worker"):
            if number % 2:
                waits = tf.FIFOQueue(1, tf.float32, name="queue").dequeue()
                barrier.reach(f"waits{number}")
            else:
                waits = py_func(lambda values: wait_in_function(number, values), [np.float32(1)], tf.float32)
        with tf.Cluster({"ps": TASK, "worker": TASK}, start_timeout_s=400) as cluster:
            session = tf.Session(cluster, graph)
            started.append((session, cluster))
            with pytest.raises(CancelledError, match="closed"):
                session.run(waits)
            session.close()

    started = []
    tasks = [Task(run, number, started) for number in range(6)]
    wait_for(lambda: len(started) == 6 and all(barrier.reached(f"waits{number}") for number in range(6)), 400)
    for session, cluster in started:
        (session if closed == "session" else cluster).close()
    for task in tasks:
        task.result(60)
    barrier.reach("go")


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import ray
ray.init(address={address!r}, logging_level="warning")
from tests.actors.replicas import test_leaks as tests
from tests.support.waiting import Task
def progress(step):
    if step == 20:
        sys.stdout.write("trains\\n")
        sys.stdout.flush()
for task in [Task(tests.{job}, 10**9, progress) for _ in range(2)]:
    task.result(1000)
"""


@pytest.mark.parametrize("job", ["run_session", "run_trainer"])
def test_programs_that_are_killed(ray_local, job):
    address = ray_local.get_runtime_context().gcs_address
    program = PROGRAM.format(tests=str(ROOT), address=address, job=job)
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in running:
        assert [process.stdout.readline() for _ in range(2)] == ["trains\n"] * 2
    assert len(actor_processes()) == 8
    for process in running:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        process.stdout.close()
