"""Many threads step one session of a cluster: every step ends, and is done once, however messages are delayed."""

from __future__ import annotations

import math
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

import tfray as tf
from tests.support.links import delayed as delayed_links
from tests.support.waiting import Task

pytestmark = pytest.mark.ray

LONGEST_STEP_S = 120.0
"""A step of a millisecond that takes longer has been lost, on the slowest machine."""

LONGEST_MILLION_S = 7200
"""A million steps take an eighth of it, on a busy machine of two cores."""

SMALL = tf.JobSpec(2, num_cpus=0.1)


def on_cluster(stack):
    return stack.enter_context(tf.Cluster({"ps": SMALL, "worker": SMALL}))


def on_servers(stack):
    spec = tf.train.ClusterSpec({"ps": ["ps0-t:1", "ps1-t:1"], "worker": ["worker0-t:1", "worker1-t:1"]})
    servers = [tf.train.Server(spec, job, task) for job in ("ps", "worker") for task in range(2)]
    for server in servers:
        stack.callback(server.stop)
    return servers[2].target


TARGETS = [on_cluster, pytest.param(on_servers, marks=pytest.mark.slow)]


class Counting:
    """Steps in which workers fetch parameters of two shards and add to them, exactly once."""

    def __init__(self):
        ps = ["/job:ps/task:0", "/job:ps/task:1"]
        worker = ["/job:worker/task:0", "/job:worker/task:1"]
        self.counts, self.steps = [], []
        for shard in ps:
            with tf.device(shard):
                self.counts.append(tf.get_variable(f"count{len(self.counts)}", [3], initializer=tf.zeros_initializer()))
        for task in worker:
            with tf.device(task):
                ones = [1 + tf.stop_gradient(0 * count) for count in self.counts]
            added = [tf.assign_add(count, one, use_locking=True) for count, one in zip(self.counts, ones, strict=True)]
            with tf.device(task):
                self.steps += [[tf.add_n([tf.reduce_sum(one) for one in ones]), added[0].op, added[1].op]]
        # Neither the worker nor the other shard answers here, unless they fail.
        self.steps.append([tf.assign_add(self.counts[0], self.counts[1] * 0 + 1, use_locking=True).op])


def delay(session):
    """Let every device of a session delay its frames from now on."""

    calls = []
    for job in ("ps", "worker"):
        for task in range(2):
            with tf.device(f"/job:{job}/task:{task}"):
                calls.append(tf.py_func(delayed_links.begin, [], []))
    session.run(calls)
    delayed_links.begin()


def spin(stop):
    """Hold the interpreter's lock as ordinary programs do."""
    while not stop.is_set():
        sum(range(1000))


def step_on_threads(target, threads, busy, delayed, seconds, steps=math.inf):
    """Returns how many steps ended, in so many seconds or until there are so many. Raises when one did not end, or when
    one was not done once."""
    with tf.Graph().as_default(), tf.Session(target) as session, ExitStack() as stack:
        graph = Counting()
        session.run(tf.global_variables_initializer())
        if delayed:
            delay(session)
            stack.callback(delayed_links.restore)
        stop = threading.Event()
        spinning = [Task(spin, stop) for _ in range(busy)]
        ends = time.monotonic() + seconds
        begun = [time.monotonic()] * threads
        done = np.zeros((threads, 3), int)

        def steps_of(thread):
            while (time.monotonic() < ends and done.sum() < steps) or done[thread].sum() < 3:
                kind = int(done[thread].sum() + thread) % 3
                begun[thread] = time.monotonic()
                session.run(graph.steps[kind])
                done[thread, kind] += 1

        running = [Task(steps_of, thread) for thread in range(threads)]
        while not all(task.done for task in running):
            running[0].thread.join(0.5)
            late = [
                i for i, task in enumerate(running) if not task.done and time.monotonic() - begun[i] > LONGEST_STEP_S
            ]
            assert not late, f"threads {late} of {threads} wait for a step that was lost; done: {done.tolist()}"
            ends = min(ends, ends if not any(task.done for task in running) else time.monotonic())
        stop.set()
        for task in [*running, *spinning]:
            task.result()
        totals = done.sum(0)
        first, second = session.run(graph.counts)
        np.testing.assert_array_equal(first, np.full(3, totals.sum(), np.float32))
        np.testing.assert_array_equal(second, np.full(3, totals[0] + totals[1], np.float32))
        return int(totals.sum())


@pytest.mark.fault(
    "Steps",
    "Many threads run steps of one session, and messages arrive in any order.",
    happens="Every step ends.",
    promise="No answer is lost, and each step is counted once.",
)
@pytest.mark.parametrize("on_target", TARGETS)
def test_every_step_of_every_thread_ends(ray_local, on_target):
    with ExitStack() as stack:
        assert step_on_threads(on_target(stack), threads=6, busy=1, delayed=True, seconds=3.0) > 6


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("threads", [4, 8, 16])
@pytest.mark.parametrize("on_target", TARGETS)
def test_every_step_of_ten_minutes_ends(ray_local, on_target, threads):
    with ExitStack() as stack:
        target = on_target(stack)
        steps = [
            step_on_threads(target, threads, busy, delayed, seconds=150.0)
            for busy, delayed in [(0, False), (2, False), (0, True), (2, True)]
        ]
    print(f"steps alone, beside busy threads, delayed, and both: {steps}")
    assert sum(steps) > 10_000


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_MILLION_S + 600)
@pytest.mark.fault(
    "Steps",
    "Many threads run steps of one session, and messages arrive in any order.",
    happens="Every step ends.",
    promise="No answer is lost, and each step is counted once.",
)
@pytest.mark.parametrize("on_target", TARGETS)
def test_a_million_steps_are_each_done_once(ray_local, on_target):
    """Of a third each, by 4, 8 and 16 threads. At a thousand steps a second they take a quarter of an hour."""
    with ExitStack() as stack:
        target, wanted = on_target(stack), 333_334
        begun = time.monotonic()
        for threads in (4, 8, 16):
            seconds = LONGEST_MILLION_S - (time.monotonic() - begun)
            assert step_on_threads(target, threads, 0, False, seconds, wanted) >= wanted
