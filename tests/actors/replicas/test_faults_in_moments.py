"""Deaths in the middle of a checkpoint, of an aggregation, and of a restore: training ends with the promised steps.

A function that watches for the moment runs in the processes of the first parameter server and of the second worker.
It strikes once, and goes on only when the victim is dead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.processes import PATIENCE_S, Barrier, descendants, is_alive, wait_for
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model
from tfray.formats.checkpoint_folder import stray_files
from tfray.ops.system import checkpoint_ops
from tfray.ops.system.script_ops import py_func

pytestmark = pytest.mark.ray

STEPS, SAVE_EVERY, STRUCK_STEP, BATCH = 30, 5, 13, 24


class Strike:
    """Kills somebody at a moment.

    Args:
        folder: Where processes note what they are, and what has happened.
        victim: ``"worker"``, ``"parameter server"``, ``"driver"`` or ``"node"``, which is the parameter server's.
        moment: ``"checkpoint"``, ``"aggregation"`` or ``"restore"``.
    """

    def __init__(self, folder, victim, moment):
        self.barrier = Barrier(folder)
        self.victim = victim
        self.moment = moment

    def note(self, who):
        """This process is somebody."""
        path = Path(self.barrier.path(f"{who}.part"))
        path.write_text(str(os.getpid()))
        path.rename(self.barrier.path(who))

    def pid(self, who):
        return int(Path(self.barrier.path(who)).read_text())

    def at(self, moment):
        """Strike, if this is the moment and it is the first one."""
        if moment != self.moment:
            return
        try:
            os.rename(self.barrier.path("armed"), self.barrier.path("struck"))
        except FileNotFoundError:
            return
        if self.victim == "node":
            kill_node_of(self.pid("parameter server"))
        else:
            pid = self.pid(self.victim)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not is_alive(pid))


def kill_node_of(pid):
    """End a node of Ray at once: its Raylet, and every process that this has started; this one comes last."""
    with open(f"/proc/{pid}/stat") as stat:
        raylet = int(stat.read().rpartition(")")[2].split()[1])
    for each in [raylet, *sorted(descendants(raylet), key=lambda each: each == os.getpid())]:
        os.kill(each, signal.SIGKILL)


class Watch:
    """A Python function of the graph that passes values on. The process that receives it watches its checkpoints."""

    def __init__(self, strike):
        self.strike = strike

    def __call__(self, values):
        return values

    def __setstate__(self, state):
        self.__dict__.update(state)
        strike = self.strike
        strike.note("parameter server")
        write, open_checkpoint = checkpoint_ops.write_data, checkpoint_ops.open_checkpoint

        def interrupted(pieces):
            for number, piece in enumerate(pieces):
                if number == 1:
                    strike.at("checkpoint")  # a part of the file is there
                yield piece

        def open_and_strike(path):
            checkpoint = open_checkpoint(path)
            strike.at("restore")
            return checkpoint

        checkpoint_ops.write_data = lambda path, pieces, *rest: write(path, interrupted(pieces), *rest)
        checkpoint_ops.open_checkpoint = open_and_strike


def watched_model(strike):
    """A model the first of whose parameter servers watches, from its initialisation on."""
    inner = dense_model(OPTIMIZERS["momentum"])

    def model_fn(features, labels):
        with tf.device("/job:ps/task:0"):
            watched = py_func(Watch(strike), [np.float32(0)], tf.float32)
            tf.Variable(tf.reshape(watched, []), trainable=False, name="watched")
        with tf.device("/job:ps/task:1"):
            where = py_func(os.getpid, [], tf.int64)
            pid = tf.Variable(np.int64(0), trainable=False, name="pid")
        spec = inner(features, labels)
        with tf.control_dependencies([pid.assign(where)]):
            step = tf.group(spec.train_op)
        return tf.train.ModelSpec(spec.loss, step, metrics={"other": tf.cast(pid.value(), tf.float64)})

    return model_fn


def watched_input(strike):
    """An input whose second replica waits, in the step of the blow, until the shards hold what the first has sent.

    The first then asks for its next batch.
    """
    input_fn = tf.train.array_input(*classification_data(), batch_size=BATCH, shuffle_seed=4)

    def open_input(context):
        if context.index == 1:
            strike.note("worker")
        for step, batch in enumerate(input_fn(context), context.first_step):
            if strike.moment == "aggregation" and step == STRUCK_STEP + (context.index == 0):
                if context.index == 0:
                    strike.barrier.reach("delivered")
                elif not strike.barrier.reached("struck"):
                    strike.barrier.wait("delivered")
                    strike.at("aggregation")
            yield batch

    return open_input


def train(folder, victim, moment, scaling, address=None):
    """Train on, to the end. Returns numbers of the steps of this run, and the final variables."""
    strike = Strike(folder, victim, moment)
    if victim == "driver":
        strike.note("driver")

    def on_step(record):
        if record.step == {"checkpoint": 8, "aggregation": 1, "restore": STRUCK_STEP}[moment]:
            if strike.barrier.reached("struck") or strike.barrier.reached("armed"):
                return
            strike.barrier.reach("armed")
            if moment == "restore":
                os.kill(int(record.metrics["other"]), signal.SIGKILL)

    run = tf.train.RunConfig(
        steps=STEPS,
        address=address,
        logdir=None,
        checkpoint_dir=f"{folder}/run",
        save_every_steps=SAVE_EVERY,
        on_step=on_step,
    )
    result = tf.train.Trainer(watched_model(strike), watched_input(strike), scaling, run).fit()
    return [record.step for record in result.history], result.variables


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from tests.actors.replicas import test_faults_in_moments as tests
steps, variables = tests.train({folder!r}, "driver", {moment!r}, tests.on_one_node(), {address!r})
print(tests.json.dumps([steps, {{name: value.tolist() for name, value in variables.items()}}]))
"""


def train_in_processes(folder, moment, address):
    """Train in processes of their own, one after the other, until one gets to the end."""
    settings = {"tests": str(ROOT), "folder": str(folder), "moment": moment, "address": address}
    command = [sys.executable, "-c", PROGRAM.format(**settings)]
    first = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert second.returncode == 0, second.stderr
    steps, variables = json.loads(second.stdout.splitlines()[-1])
    return steps, {name: np.array(value) for name, value in variables.items()}


def on_one_node(**options):
    return tf.train.ScalingConfig(2, 2, cpus_per_worker=0.1, cpus_per_parameter_server=0.1, **options)


def assert_trained(folder, steps, variables, exactly=True):
    """All steps were done, each counted once; where no worker was missed, they computed what one process computes."""
    assert (folder / "struck").exists()
    assert steps == list(range(steps[0], STEPS + 1)) and (steps[0] - 1) % SAVE_EVERY == 0
    assert variables["global_step"] == STEPS
    assert tf.train.load_variable(tf.train.latest_checkpoint(folder / "run"), "global_step") == STEPS
    alone = tf.train.Trainer(
        dense_model(OPTIMIZERS["momentum"]),
        tf.train.array_input(*classification_data(), batch_size=BATCH, shuffle_seed=4),
        run=tf.train.RunConfig(steps=STEPS, local=True, logdir=None),
    ).fit()
    for name, value in alone.variables.items():
        limits = {"rtol": 1e-4, "atol": 1e-5} if exactly else {"rtol": 0.2, "atol": 0.2}
        np.testing.assert_allclose(variables[name], value, err_msg=name, **limits)
    assert not stray_files(f"{folder}/run/model.ckpt-", series=True), "nothing is left of what was interrupted"


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        pytest.param("worker", "checkpoint", marks=slow),
        pytest.param("worker", "aggregation", marks=slow),
        pytest.param("worker", "restore", marks=slow),
        ("parameter server", "checkpoint"),
        pytest.param("parameter server", "aggregation", marks=slow),
        pytest.param("parameter server", "restore", marks=slow),
        pytest.param("driver", "checkpoint", marks=slow),
        pytest.param("driver", "aggregation", marks=slow),
        pytest.param("driver", "restore", marks=slow),
    ],
)
def test_a_process_dies(ray_local, tmp_path, victim, moment):
    if victim == "driver":
        steps, variables = train_in_processes(tmp_path, moment, ray_local.get_runtime_context().gcs_address)
    else:
        steps, variables = train(tmp_path, victim, moment, on_one_node())
        assert steps[0] == 1
    assert_trained(tmp_path, steps, variables, exactly=victim != "worker")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["checkpoint", "aggregation", "restore"])
def test_a_node_dies(ray_nodes, tmp_path, moment):
    """With it a parameter server, and mostly a worker; there is room for both on a third."""
    import ray

    ray_nodes.add_node(num_cpus=1)
    for _ in range(3):
        ray_nodes.add_node(num_cpus=1, resources={"ps": 1, "worker": 1})
    ray.init(address=ray_nodes.address, logging_level="warning")
    scaling = on_one_node(worker_resources={"worker": 1}, parameter_server_resources={"ps": 1})
    steps, variables = train(tmp_path, "node", moment, scaling)
    assert steps[0] == 1
    assert_trained(tmp_path, steps, variables)
