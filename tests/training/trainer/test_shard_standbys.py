"""Parameter servers with standbys: when one dies, the run computes what it computes when none does."""

from __future__ import annotations

import time

import pytest

import tfray as tf
from tests.support.processes import Barrier, kill_actor
from tests.support.shard_runs import assert_each_step_once, assert_same, trainer, unchanged
from tests.support.training_models import scaling


def device(task):
    return f"/job:ps/task:{task}/device:CPU:0"


class Killing(tf.train.Callback):
    """Ends the processes of parameter servers one after the other, each when every shard has a standby.

    Args:
        ray: Ray.
        clusters: The last one is that of the run.
        barrier: It is reached when all have been killed, and every shard has a standby again.
        victims: Each tells whom to kill: of the shards and of their standbys, the position in the order of shards.

    Attributes:
        longest_s: The longest time from one step to the next after a death, in seconds.
    """

    def __init__(self, ray, clusters, barrier, *victims):
        self.ray, self.clusters, self.barrier, self.victims = ray, clusters, barrier, list(victims)
        self.since, self.ended_at, self.longest_s = 0, None, 0.0

    def on_start(self, start):
        self.shards = start.scale.__self__._shards

    def on_step(self, record):
        if self.ended_at is not None:
            self.longest_s = max(self.longest_s, time.monotonic() - self.ended_at)
            self.ended_at = None
        if record.step < self.since + 4 or len(self.shards.standbys) < len(self.shards.devices):
            return
        self.since = record.step
        if not self.victims:
            self.barrier.reach("fast")
            return
        kind, position = self.victims.pop(0)
        shard = self.shards.devices[position]
        kill_actor(self.ray, self.clusters[-1], shard if kind == "shard" else self.shards.standbys[shard])
        self.ended_at = time.monotonic()


def told(result):
    assert {event.kind for event in result.events} <= {"standby"}
    return [event.message.partition(": ")[2] for event in result.events]


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server with a standby dies.",
    happens="The standby takes its place. Another process is asked for, and becomes the standby.",
    promise="No step is lost, and the result is the same. Random numbers of the step may be others.",
)
@pytest.mark.ray
@pytest.mark.parametrize("model", ["dense", "embedding"])
def test_a_run_whose_shards_die_equals_one_whose_shards_live(ray_local, clusters, tmp_path, model):
    killing = Killing(ray_local, clusters, Barrier(tmp_path), ("shard", 0), ("shard", 0), ("standby", 1), ("shard", 1))
    result = trainer(model, killing.barrier, [killing], scaling(2, 2, replicated_shards=True)).fit()
    assert_each_step_once(result)
    assert_same(result, unchanged(model, tmp_path))
    said = told(result)
    assert sum(" is gone: " in what for what in said) == 4
    assert sum("takes its place" in what for what in said) >= 3
    assert sum("is the standby of" in what for what in said) >= 4
    assert killing.longest_s < 5
