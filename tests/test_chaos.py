"""Training while actors and nodes are killed at random: every step counts once, learns as much, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time

import numpy as np
import pytest
from leftovers import Holdings, actor_processes, own_temporary_folder  # noqa: F401 (a fixture)
from processes import Barrier, wait_for
from test_elastic import paced
from waiting import Task

import tfray as tf
from tfray.formats.checkpoint_folder import stray_files

pytestmark = pytest.mark.ray

EXAMPLES, INPUTS, BATCH, LATE = 240, 8, 24, 240
SEEDS = range(8)


def noisy_data():
    """Numbers that depend on others, but not by these alone: a model of them never comes to rest."""
    rng = np.random.default_rng(11)
    features = rng.normal(size=(EXAMPLES, INPUTS)).astype(np.float32)
    labels = features @ rng.normal(size=INPUTS) + 0.5 * rng.normal(size=EXAMPLES)
    return features, labels.astype(np.float32)


def linear_model(features, labels):
    weights = tf.Variable(np.zeros((INPUTS, 1), np.float32), name="weights")
    predicted = tf.squeeze(tf.matmul(features, weights), [1])
    loss = tf.reduce_mean(tf.square(predicted - labels))
    optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
    return tf.train.ModelSpec(loss, optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step()))


def final_loss(result):
    """The loss over as many late steps as see every example many times, where it is known."""
    return np.nanmean([record.metrics["loss"] for record in result.history[-LATE:]])


def undisturbed_losses(steps):
    """The final losses of runs in one process that differ in the order of their examples only."""
    runs = [
        tf.train.Trainer(
            linear_model,
            tf.train.array_input(*noisy_data(), batch_size=BATCH, shuffle_seed=100 + seed),
            run=tf.train.RunConfig(steps=steps, local=True, logdir=None),
        )
        for seed in SEEDS
    ]
    return [final_loss(run.fit()) for run in runs]


class Chaos:
    """Kills workers, parameter servers and whole nodes. What it kills, and when, is random.

    Args:
        cluster: Whose head has the parameter servers, and whose other nodes have room for one worker each.
        seed: Of what it does.
    """

    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.random = random.Random(seed)
        self.struck = {"worker": 0, "parameter server": 0, "node": 0}

    def rage(self, duration_s, victim):
        """Kill something every few seconds, for so long or until the victim has ended."""
        ends, next_ones = time.monotonic() + duration_s, []
        while time.monotonic() < ends and not victim.done:
            victim.thread.join(self.random.uniform(1.0, 4.0))
            if not next_ones:
                next_ones = ["worker", "worker", "parameter server", "node"]
                self.random.shuffle(next_ones)
            what = next_ones.pop()
            self.struck[what] += self.strike(what)

    def strike(self, what):
        """Returns whether there was one to kill."""
        if what == "node":
            node = self.random.choice(sorted(self.cluster.worker_nodes, key=lambda node: node.node_id))
            self.cluster.remove_node(node, allow_graceful=False)
            add_worker_node(self.cluster)
            return True
        nodes = [self.cluster.head_node] if what == "parameter server" else self.cluster.worker_nodes
        raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
        found = sorted(pid for raylet in raylets for pid in actor_processes(raylet))
        if not found:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(found), signal.SIGKILL)
        return True


def add_worker_node(cluster):
    cluster.add_node(num_cpus=1, resources={"worker": 1})


ELASTIC = {"workers": (1, 3)}


def trained(steps, barrier, folder, size=ELASTIC, **options):
    return tf.train.Trainer(
        linear_model,
        paced(tf.train.array_input(*noisy_data(), batch_size=BATCH, shuffle_seed=7), barrier),
        tf.train.ScalingConfig(
            **size,
            parameter_servers=2,
            cpus_per_worker=1,
            cpus_per_parameter_server=0.1,
            worker_resources={"worker": 1},
            parameter_server_resources={"ps": 1},
            start_timeout_s=120,
        ),
        tf.train.RunConfig(
            steps=steps,
            logdir=None,
            checkpoint_dir=folder,
            max_recoveries=1000,
            max_worker_restarts=1000,
            **options,
        ),
    ).fit()


def nodes_for_training(cluster):
    """A head for two parameter servers, and three nodes for a worker each. Connects to them."""
    import ray

    cluster.add_node(num_cpus=1, resources={"ps": 2})
    for _ in range(3):
        add_worker_node(cluster)
    ray.init(address=cluster.address, logging_level="warning")
    return ray


def trained_in_chaos(cluster, folder, steps, duration_s, seed, size):
    """Train, the beginning of it in chaos. Returns the result."""
    barrier, seen, chaos = Barrier(folder), [], Chaos(cluster, seed)
    options = {"save_every_s": 1.0, "on_step": lambda record: seen.append(record.step)}
    training = Task(lambda: trained(steps, barrier, folder / "run", size, **options))
    wait_for(lambda: seen or training.done)
    chaos.rage(duration_s, training)
    barrier.reach("fast")
    result = training.result(400)
    print(f"killed {chaos.struck}; {len(seen) - steps} of {steps} steps were lost and done again")
    assert all(chaos.struck.values())
    return result


@pytest.mark.slow
@pytest.mark.usefixtures("own_temporary_folder")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("duration_s", "seed"), [(30, 1), (180, 2)])
def test_training_outlives_whatever_is_killed(ray_nodes, tmp_path, duration_s, seed):
    ray = nodes_for_training(ray_nodes)
    first, steps = Barrier(tmp_path / "temporary"), 60 * duration_s
    first.reach("fast")
    trained(20, first, tmp_path / "first")
    first.withdraw("fast")
    wait_for(lambda: not actor_processes())
    before = Holdings(ray)

    result = trained_in_chaos(ray_nodes, tmp_path, steps, duration_s, seed, ELASTIC)
    assert [record.step for record in result.history] == list(range(1, steps + 1))
    assert result.variables["global_step"] == steps
    assert tf.train.load_variable(tf.train.latest_checkpoint(tmp_path / "run"), "global_step") == steps

    losses = undisturbed_losses(steps)
    margin = max(losses) - min(losses)
    print(f"final loss {final_loss(result):.6f}; undisturbed {min(losses):.6f} to {max(losses):.6f}")
    assert min(losses) - margin <= final_loss(result) <= max(losses) + margin

    before.assert_returned()
    assert not stray_files(f"{tmp_path}/run/model.ckpt-", series=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("size", "seed"),
    [
        ({"workers": 3}, 3),
        ({"workers": 3, "backup_workers": 1}, 4),
        ({"workers": 3, "mode": "async"}, 5),
        ({"workers": (1, 3), "mode": "async", "staleness": 2}, 6),
    ],
    ids=str,
)
def test_training_in_other_modes_outlives_it_too(ray_nodes, tmp_path, size, seed):
    """What some shards have applied of a step when its only member dies, the others apply too, and these not again."""
    nodes_for_training(ray_nodes)
    steps = 1200
    result = trained_in_chaos(ray_nodes, tmp_path, steps, 20, seed, size)
    assert [record.step for record in result.history] == list(range(1, steps + 1))
    assert result.variables["global_step"] == steps
    assert final_loss(result) < 1.5 * max(undisturbed_losses(steps))
