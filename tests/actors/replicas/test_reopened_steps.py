"""A step whose only member dies when some shards have applied it and others have not: each applies it exactly once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import wait_for
from tests.support.training_models import scaling
from tfray.framework.region import ops_within
from tfray.ops.state import state_ops
from tfray.ops.system.script_ops import py_func
from tfray.placement.parameters import parameter_partitions
from tfray.placement.replicate import REPLICA_DEVICE, compile_replica_step, serving_device
from tfray.training.trainer.model import combine_over_replicas

STEPS, WIDTH, ROWS, BATCH = 24, 4, 10, 8
SHARDS = [f"/job:ps/task:{i}/device:CPU:0" for i in range(2)]


# -- what shards send by itself -------------------------------------------------------------------------


def ops_of(partition):
    return [inner for op in partition.graph.get_operations() for inner in ops_within(op)]


def ends(partition, op_type):
    return {op.attrs["key"]: op.attrs["destination" if op_type == "Send" else "source"]
            for op in ops_of(partition) if op.type == op_type}  # fmt: skip


def compiled(loss, fed):
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return compile_replica_step([loss], [train], fed, SHARDS, REPLICA_DEVICE)


def test_what_shards_send_unasked_needs_nothing_of_replicas_and_changes_nothing():
    x = tf.placeholder(tf.float32, [None, WIDTH], name="x")
    variables = []
    for device in SHARDS:
        with tf.device(device):
            variables.append(tf.Variable(np.ones(WIDTH, np.float32)))
    step = compiled(tf.reduce_mean(tf.square(x * variables[0] - variables[1])), [x])
    parts = parameter_partitions(step.shards, REPLICA_DEVICE)
    assert sorted(parts) == SHARDS
    sent = {key: REPLICA_DEVICE for part in parts.values() for key in ends(part, "Send")}
    assert ends(step.replica, "Recv").keys() == sent.keys()
    for part in parts.values():
        assert {op.type for op in ops_of(part)} <= {"Variable", "ReadVariableOp", "Send"}


def test_shards_that_send_nothing_unasked_have_no_part_in_it():
    ids = tf.placeholder(tf.int32, [None], name="ids")
    with tf.device(SHARDS[1]):
        table = tf.Variable(np.ones((ROWS, WIDTH), np.float32))
    step = compiled(tf.reduce_sum(tf.gather(table, ids)), [ids])
    assert parameter_partitions(step.shards, REPLICA_DEVICE) == {}


def test_what_a_shard_needs_of_another_for_it_is_sent_as_when_serving():
    x = tf.placeholder(tf.float32, [None, WIDTH], name="x")
    with tf.device(SHARDS[0]):
        scale = tf.Variable(np.float32(2), trainable=False)
    with tf.device(SHARDS[1]):
        v = tf.Variable(np.ones(WIDTH, np.float32))
        scaled = state_ops.read_variable(v) * state_ops.read_variable(scale)
    step = compiled(tf.reduce_sum(x * scaled), [x])
    parts = parameter_partitions(step.shards, REPLICA_DEVICE)
    (crossing,) = ends(parts[SHARDS[1]], "Recv")
    assert ends(parts[SHARDS[0]], "Send")[crossing] == serving_device(SHARDS[1])
    assert ends({part.device: part for part in step.shards}[SHARDS[0]], "Send")[crossing] == SHARDS[1]
    assert set(ends(parts[SHARDS[1]], "Send").values()) == {REPLICA_DEVICE}


# -- the only member dies -------------------------------------------------------------------------------


class Journal:
    """Files in which the processes of a run note what they have done."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def applied(self, step):
        """The second shard has applied a step."""
        with open(self.folder / "applied", "a") as file:
            file.write(f"{step}\n")

    def steps_applied(self):
        path = self.folder / "applied"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def strike(self, moment):
        """Whether this is the moment for which a blow has been prepared."""
        try:
            os.rename(self.folder / moment, self.folder / f"{moment} was")
        except FileNotFoundError:
            return False
        return True


def torn_model(journal):
    """A model of two shards, each of which counts its updates.

    What a worker contributes to the second leaves before it computes what it contributes to the first: at that moment
    it dies, once the second has applied the step; or, at another, when that applies it.
    """

    def die(values, first, sent_early, done):
        if journal.strike("worker"):
            with contextlib.suppress(AssertionError):  # in a step that is reopened all wait for the driver
                wait_for(lambda: int(done) + 1 in journal.steps_applied(), 2.0)
            os.kill(os.getpid(), signal.SIGKILL)
        return values

    def note(before):
        journal.applied(int(before) + 1)
        if journal.strike("shard"):
            os.kill(int((journal.folder / "pid").read_text()), signal.SIGKILL)
        return np.int32(0)

    def model_fn(features, ids):
        with tf.device("/job:ps/task:0"):
            first = tf.Variable(np.zeros(WIDTH, np.float32), name="first")
            first_count = tf.Variable(0, trainable=False, name="first_count")
            global_step = tf.train.get_or_create_global_step()
            done = state_ops.read_variable(first_count)
        with tf.device("/job:ps/task:1"):
            second = tf.Variable(np.zeros(WIDTH, np.float32), name="second")
            table = tf.Variable(np.zeros((ROWS, WIDTH), np.float32), name="table")
            second_count = tf.Variable(0, trainable=False, name="second_count")
            before = state_ops.read_variable(second_count)
        sent_early = tf.reduce_mean(tf.square(tf.gather(table, ids) + second - features))
        late = tf.stop_gradient(py_func(die, [features, first, sent_early, done], tf.float32))
        sent_late = tf.reduce_mean(tf.square(first - tf.reshape(late, [-1, WIDTH])))
        optimizer = tf.train.GradientDescentOptimizer(0.05)
        gradients = {v: g for g, v in optimizer.compute_gradients(sent_early + sent_late)}
        of_second = optimizer.apply_gradients([(gradients[v], v) for v in (second, table)])
        of_first = optimizer.apply_gradients([(gradients[first], first)])
        with tf.device("/job:ps/task:1"), tf.control_dependencies([of_second]):
            counted = second_count.assign_add(1)
            with tf.control_dependencies([counted]):
                noted = py_func(note, [before], tf.int32)
        with tf.device("/job:ps/task:0"), tf.control_dependencies([of_first]):
            of_both = [first_count.assign_add(1), global_step.assign_add(1), counted, noted]
        return tf.train.ModelSpec(sent_early + sent_late, tf.group(*of_both))

    return model_fn


def noted_input(journal, late_s=0.0):
    """Random numbers. Whoever opens it notes its process; who comes later takes some time over that."""

    def input_fn(context):
        if context.first_step > 1:
            time.sleep(late_s)
        (journal.folder / "pid").write_text(str(os.getpid()))
        return batches(context.first_step)

    return input_fn


def batches(seed):
    rng = np.random.default_rng(seed)
    while True:
        features = rng.normal(loc=1.0, size=(BATCH, WIDTH)).astype(np.float32)
        yield features, rng.integers(0, ROWS, BATCH).astype(np.int32)


def assert_exact(folder, size, moment, struck_steps, late_s=0.0, **options):
    """Train, strike in those steps, and look at how often each shard has applied something."""
    journal = Journal(folder)

    def on_step(record):
        if record.step in struck_steps:
            (folder / moment).touch()

    result = tf.train.Trainer(
        torn_model(journal),
        noted_input(journal, late_s),
        scaling(parameter_servers=2, **size),
        tf.train.RunConfig(steps=STEPS, on_step=on_step, logdir=None, **options),
    ).fit()
    assert (folder / f"{moment} was").exists() and not (folder / moment).exists()
    assert [record.step for record in result.history] == list(range(1, STEPS + 1))
    counts = {name: int(result.variables[name]) for name in ("first_count", "second_count", "global_step")}
    assert counts == dict.fromkeys(counts, STEPS)
    assert len(journal.steps_applied()) == STEPS
    assert result.metrics["loss"] < result.history[0].metrics["loss"]


slow = pytest.mark.slow


@pytest.mark.ray
@pytest.mark.parametrize(
    ("size", "moment", "struck_steps"),
    [
        ({"workers": 1}, "worker", [6]),
        pytest.param({"workers": 1, "mode": "async"}, "worker", [6, 15], marks=slow),
        pytest.param({"workers": 1}, "shard", [6, 15], marks=slow),
        pytest.param({"workers": 1, "mode": "async"}, "shard", [6, 15], marks=slow),
        pytest.param({"workers": 2, "mode": "async"}, "worker", [6, 7, 15], marks=slow),
        pytest.param({"workers": (1, 2)}, "worker", [6, 7, 15], marks=slow),
        pytest.param({"workers": (1, 2), "mode": "async", "staleness": 1}, "worker", [6, 7, 15], marks=slow),
        pytest.param({"workers": 2, "backup_workers": 1}, "worker", [6, 7, 15], marks=slow),
    ],
    ids=str,
)
def test_every_shard_applies_every_step_once(ray_local, tmp_path, size, moment, struck_steps):
    assert_exact(tmp_path, size, moment, struck_steps)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_step_that_waits_for_a_replacement_does_not_run_into_its_timeout(ray_local, tmp_path, mode):
    assert_exact(tmp_path, {"workers": 1, "mode": mode}, "worker", [6, 15], late_s=5.0, step_timeout_s=4.0)
