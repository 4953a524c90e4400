"""Threads of steps: one for each at once, none that nobody needs."""

from __future__ import annotations

import os
import threading

import pytest
import ray

import tfray as tf
from tests.support.processes import PATIENCE_S, wait_for
from tfray.actors.devices import step_threads
from tfray.actors.devices.step_threads import StepThreads

MOST_IDLE_THREADS = 40
"""Of a device actor that has nothing to do. Ray itself has about 28."""


def named(name):
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_tasks_that_wait_for_one_another_all_run():
    """A limit would let those that came first wait for those that never begin."""
    threads, count = StepThreads("all-run"), 300
    barrier, through = threading.Barrier(count + 1), []
    for index in range(count):
        threads.submit(lambda index=index: (barrier.wait(PATIENCE_S), through.append(index)))
    barrier.wait(PATIENCE_S)
    wait_for(lambda: len(through) == count)


@pytest.mark.fault(
    "Steps",
    "Many steps wait at once on one device.",
    happens="Each has a thread, which ends when it has nothing to do.",
    promise="An idle device has at most 40 threads.",
)
def test_a_free_thread_is_used_again_and_ends_when_it_rests(monkeypatch):
    monkeypatch.setattr(step_threads, "REST_S", 0.5)
    threads, seen = StepThreads("used-again"), []
    for _ in range(5):
        ran = threading.Event()
        threads.submit(lambda ran=ran: (seen.append(threading.get_ident()), ran.set()))
        assert ran.wait(PATIENCE_S)
        wait_for(lambda: threads._free == 1)
    assert len(set(seen)) == 1
    wait_for(lambda: not named("used-again"))
    ran = threading.Event()
    threads.submit(ran.set)
    assert ran.wait(PATIENCE_S)


def test_what_the_system_refuses_is_told_and_forgotten(monkeypatch):
    threads = StepThreads("refused")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threads.submit(lambda: None)
    ran = []
    threads.submit(lambda: ran.append(1))
    wait_for(lambda: ran)
    assert ran == [1]


def refuse(thread):
    raise RuntimeError("can't start new thread")


@pytest.mark.fault(
    "Steps",
    "Many steps wait at once on one device.",
    happens="Each has a thread, which ends when it has nothing to do.",
    promise="An idle device has at most 40 threads.",
)
@pytest.mark.ray
def test_an_idle_actor_has_few_threads(ray_local):
    job = tf.JobSpec(1, num_cpus=0.1)
    with tf.device("/job:worker"):
        x = tf.random_uniform([3])
    with tf.device("/job:ps"):
        y = x * 2
    with tf.Cluster({"ps": job, "worker": job}) as cluster, tf.Session(cluster) as session:
        for _ in range(5):
            session.run(y)
        for device in cluster.devices:
            pid = ray.get(cluster.actor(device).ready.remote()).pid
            wait_for(lambda pid=pid: len(os.listdir(f"/proc/{pid}/task")) <= MOST_IDLE_THREADS)
            assert len(os.listdir(f"/proc/{pid}/task")) <= MOST_IDLE_THREADS
