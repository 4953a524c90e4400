"""Parameter servers with standbys: when one dies, the run computes what it computes when none does."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import Barrier, freeze, is_alive, kill_actor, wait_for
from tests.support.shard_runs import STEPS, assert_each_step_once, assert_same, pids, trainer, unchanged
from tests.support.training_models import classification_data, scaling
from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.training.trainer import shard_standbys
from tfray.training.trainer.shard_placement import move_variables
from tfray.training.trainer.shard_standbys import _paired


class Killing(tf.train.Callback):
    """Ends parameter servers one after the other, each when every shard has a standby again.

    Args:
        ray: Ray.
        clusters: The last one is that of the run.
        barrier: It is reached when all have ended, and every shard has a standby again.
        victims: Each names whom to end together: of the shards and of their standbys, positions in the order of shards.
        end: Ends the process of a device of a cluster.

    Attributes:
        longest_s: The longest time from one step to the next after a death, in seconds.
    """

    def __init__(self, ray, clusters, barrier, *victims, end=kill_actor):
        self.ray, self.clusters, self.barrier, self.victims, self.end = ray, clusters, barrier, list(victims), end
        self.since, self.before, self.ended_at, self.longest_s = 0, None, None, 0.0

    def on_start(self, start):
        self.scale = start.scale
        self.shards = start.scale.__self__._shards

    def on_step(self, record):
        if self.ended_at is not None:
            self.longest_s = max(self.longest_s, time.monotonic() - self.ended_at)
            self.ended_at = None
        standbys = self.shards.standbys
        there = {device: self.clusters[-1].handle(device).address for pair in standbys.items() for device in pair}
        if record.step < self.since + 4 or len(standbys) < len(self.shards.devices) or there == self.before:
            return
        self.since, self.before = record.step, there
        if not self.victims:
            self.barrier.reach("fast")
            return
        names = {
            "shard": list(self.shards.devices),
            "standby": [self.shards.standbys[of] for of in self.shards.devices],
        }
        for kind, position in self.victims.pop(0):
            self.end(self.ray, self.clusters[-1], names[kind][position])
        self.ended_at = time.monotonic()


def one(kind, position):
    return [(kind, position)]


def run(killing, model="dense", **options):
    """The result of a run with two shards and their standbys."""
    return trainer(model, killing.barrier, [killing], scaling(2, 2, replicated_shards=True), **options).fit()


def assert_nothing_was_lost(result, killing, tmp_path):
    """All have died whom the test names, and the result is that of a run in which nobody dies."""
    assert not killing.victims
    assert_each_step_once(result)
    assert_same(result, unchanged("dense", tmp_path))


SEVERAL = [one("shard", 0), one("shard", 0), one("standby", 1), one("shard", 1)]


def told(result):
    """What was told of standbys, and how often the run went back to a checkpoint."""
    said = [event.message.partition(": ")[2] for event in result.events if event.kind == "standby"]
    return said, sum(event.kind == "rollback" for event in result.events)


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server with a standby dies.",
    happens="The standby takes its place. Another process is asked for, and becomes the standby.",
    promise="No step is lost, and the result is the same. Random numbers of the step may be others.",
)
@pytest.mark.ray
@pytest.mark.parametrize(
    ("model", "victims", "pause_s"),
    [
        ("dense", [one("shard", 0)], 30),  # on a busy machine too
        ("dense", SEVERAL, 5),
        ("embedding", SEVERAL, 5),
    ],
    ids=["one", "several", "several-embedding"],
)
@pytest.mark.slow
def test_a_run_whose_shards_die_equals_one_whose_shards_live(ray_local, clusters, tmp_path, model, victims, pause_s):
    killing = Killing(ray_local, clusters, Barrier(tmp_path), *victims)
    result = run(killing, model)
    assert_each_step_once(result)
    assert_same(result, unchanged(model, tmp_path))
    said, rollbacks = told(result)
    assert sum(" is gone: " in what for what in said) == len(victims) and rollbacks == 0
    assert sum("takes its place" in what for what in said) == sum(kind == "shard" for ((kind, _),) in victims)
    assert sum("is the standby of" in what for what in said) == len(victims)
    assert killing.longest_s < pause_s


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"workers": 3, "backup_workers": 1}, {"mode": "async"}, {"workers": (2, 3)}], ids=str
)
def test_each_step_is_applied_once_however_replicas_work_together(ray_local, clusters, tmp_path, options):
    killing = Killing(ray_local, clusters, Barrier(tmp_path), one("shard", 1), one("standby", 0))
    size = scaling(**{"workers": 2, "parameter_servers": 2, "replicated_shards": True} | options)
    result = trainer("embedding", killing.barrier, [killing], size).fit()
    assert not killing.victims and told(result)[1] == 0
    assert_each_step_once(result)
    losses = [record.metrics["loss"] for record in result.history]
    assert np.mean(losses[-20:]) < np.mean(losses[:20])


@pytest.mark.ray
@pytest.mark.slow
def test_two_shards_that_die_together_are_both_replaced_by_their_standbys(ray_local, clusters, tmp_path):
    killing = Killing(
        ray_local, clusters, Barrier(tmp_path), [("shard", 0), ("shard", 1)], [("shard", 0), ("standby", 1)]
    )
    result = run(killing)
    assert told(result)[1] == 0
    assert_nothing_was_lost(result, killing, tmp_path)


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server and its standby die together.",
    happens="The run goes back to its checkpoint, with new ones.",
    promise="Every step is applied once.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_shard_that_dies_with_its_standby(ray_local, clusters, tmp_path):
    killing = Killing(ray_local, clusters, Barrier(tmp_path), [("shard", 1), ("standby", 1)])
    result = run(killing, checkpoint_dir=tmp_path / "c", save_every_steps=10)
    said, rollbacks = told(result)
    assert rollbacks == 1 and said == []
    assert killing.barrier.reached("fast"), "after the rollback there are standbys again"
    assert_nothing_was_lost(result, killing, tmp_path)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shard", "standby"])
def test_one_that_dies_while_a_standby_is_given_its_values(ray_local, clusters, tmp_path, monkeypatch, kind):
    """The second copy is that for the replacement of the first victim."""
    copies = []

    def move(cluster, moves):
        copies.append(moves)
        if len(copies) == 2:
            kill_actor(ray_local, cluster, moves[0].source if kind == "shard" else moves[0].target)
        move_variables(cluster, moves)

    monkeypatch.setattr(shard_standbys, "move_variables", move)
    killing = Killing(ray_local, clusters, Barrier(tmp_path), one("standby", 0))
    result = run(killing, checkpoint_dir=tmp_path / "c", save_every_steps=10)
    assert told(result)[1] == (kind == "shard"), "it was alone"
    assert_nothing_was_lost(result, killing, tmp_path)


@pytest.mark.ray
@pytest.mark.slow
def test_shards_that_die_between_saves_and_in_them(ray_local, clusters, tmp_path):
    """With a save after every second step, most of the deaths come while one is due or under way."""
    victims = [one("shard", 0), one("standby", 0), one("shard", 1), one("standby", 1)]
    killing = Killing(ray_local, clusters, Barrier(tmp_path), *victims)
    result = run(killing, checkpoint_dir=tmp_path / "c", save_every_steps=2)
    assert told(result)[1] == 0
    assert_nothing_was_lost(result, killing, tmp_path)
    assert tf.train.latest_checkpoint(str(tmp_path / "c")).endswith(str(STEPS))


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server with a standby stands still: its process is frozen.",
    happens="When a step has taken `step_timeout_s`, the standby takes its place.",
    promise="No step is lost, and the result is the same.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_shard_that_is_frozen(ray_local, clusters, tmp_path):
    frozen = []

    def end(ray, cluster, device):
        frozen.append(pids(ray, cluster)[device])
        freeze(frozen[-1])

    killing = Killing(ray_local, clusters, Barrier(tmp_path), one("shard", 0), one("standby", 1), end=end)
    try:
        result = run(killing, step_timeout_s=10)
    finally:
        for pid in filter(is_alive, frozen):
            os.kill(pid, signal.SIGCONT)
    assert told(result)[1] == 0
    assert_nothing_was_lost(result, killing, tmp_path)
    assert killing.longest_s < 40
    wait_for(lambda: not any(is_alive(pid) for pid in frozen))


@pytest.mark.fault(
    "Machines and networks",
    "A machine dies that has parameter servers, and standbys of those on other machines.",
    happens="Standbys on other machines take the places of the parameter servers that are gone.",
    promise="No step is lost, and the result is the same.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_shard_and_its_standby_are_on_two_machines(ray_nodes, clusters, tmp_path):
    import ray

    ray_nodes.add_node(num_cpus=1, resources={"worker": 2})
    ray.init(address=ray_nodes.address, logging_level="warning")
    nodes = [ray_nodes.add_node(num_cpus=1, resources={"ps": 2}) for _ in range(2)]

    def end(ray, cluster, device):
        of_node = {shard_node.node_id: shard_node for shard_node in nodes}
        gone = of_node[cluster.handle(device).address.node]
        nodes.remove(gone)
        nodes.append(ray_nodes.add_node(num_cpus=1, resources={"ps": 2}))
        ray_nodes.remove_node(gone, allow_graceful=False)

    killing = Killing(ray, clusters, Barrier(tmp_path), one("shard", 0), end=end)
    size = scaling(2, 2, replicated_shards=True, parameter_server_resources={"ps": 1}, worker_resources={"worker": 1})
    result = trainer("dense", killing.barrier, [killing], size).fit()
    assert told(result)[1] == 0
    assert_nothing_was_lost(result, killing, tmp_path)


@pytest.mark.parametrize(
    ("nodes", "apart"),
    [("abab", 2), ("aabb", 2), ("abba", 2), ("aaab", 1), ("aaaa", 0), ("abcabc", 3), ("aabbcc", 3), ("aaabbb", 3)],
)
def test_as_many_pairs_as_possible_are_on_two_nodes(nodes, apart):
    count = len(nodes) // 2
    node_of = dict(enumerate(nodes))
    pairs = _paired(range(count), range(count, 2 * count), node_of)
    assert sorted(pairs) == list(range(count)) and sorted(pairs.values()) == list(range(count, 2 * count))
    assert sum(node_of[shard] != node_of[standby] for shard, standby in pairs.items()) == apart


# -- what is refused -----------------------------------------------------------------------------------


def test_the_number_is_fixed():
    with pytest.raises(InvalidArgumentError, match=r"replicated_shards needs a fixed number .* not \(1, 3\)"):
        tf.train.ScalingConfig(parameter_servers=(1, 3), replicated_shards=True)


class Scaling(tf.train.Callback):
    def on_start(self, start):
        with pytest.raises(FailedPreconditionError, match=r"scale\(4\): .*keeps its 2 parameter servers"):
            start.scale(4)


@pytest.mark.ray
def test_a_run_with_standbys_keeps_its_number(ray_local, tmp_path):
    barrier = Barrier(tmp_path)
    barrier.reach("fast")
    result = trainer("dense", barrier, [Scaling()], scaling(1, 2, replicated_shards=True), steps=3).fit()
    assert_each_step_once(result, 3)


@pytest.mark.slow
@pytest.mark.ray
def test_what_a_program_puts_on_a_parameter_server_is_refused(ray_local):
    def model_fn(features, labels):
        with tf.device("/job:ps/task:1"):
            fixed = tf.Variable(1.0, name="fixed")
        loss = tf.reduce_mean(features) * fixed
        return tf.train.ModelSpec(loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss))

    inputs = tf.train.array_input(*classification_data(), batch_size=24)
    run = tf.train.RunConfig(steps=3, logdir=None)
    with pytest.raises(InvalidArgumentError, match="fixed"):
        tf.train.Trainer(model_fn, inputs, scaling(1, 2, replicated_shards=True), run).fit()
