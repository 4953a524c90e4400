"""Predicted steps of trainers and graphs, and what is decided by them: how many shards, and what to cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from click.testing import CliRunner

import tfray as tf
from tfray import cli
from tfray.cli import plan_report
from tfray.errors import InvalidArgumentError
from tfray.placement.calibration import measured_machine
from tfray.placement.cost import CostModel, Machine
from tfray.training.trainer.step_prediction import (
    Node,
    best_shard_count,
    machine_of,
    named_devices,
    nodes_of,
    plan_session,
    plan_training,
    shard_devices,
    to_any_shard,
    worker_devices,
)

WIDTH = 64


def linear(features, labels):
    """One large variable and a small one, zero to begin with."""
    with tf.variable_scope("linear", use_resource=True):
        weights = tf.get_variable("weights", [WIDTH, 1000], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [1000], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) + bias - labels))
    return tf.train.ModelSpec(loss, tf.train.AdagradOptimizer(0.5).minimize(loss))


def data():
    random = np.random.default_rng(0)
    return random.normal(size=(32, WIDTH)).astype(np.float32), random.normal(size=(32, 1)).astype(np.float32)


def trainer(scaling=None, **run):
    return tf.train.Trainer(linear, tf.train.array_input(*data(), batch_size=16), scaling, tf.train.RunConfig(**run))


SCRIPT = """
import numpy as np
import tfray as tf
from tests.training.trainer.test_step_prediction import linear, trainer

def build(workers=1):
    return trainer(tf.train.ScalingConfig(workers=workers, parameter_servers=2), steps=5), []

def graph():
    with tf.device("/job:ps"):
        v = tf.get_variable("v", [1000000])
        w = tf.get_variable("w", [1000000])
    with tf.device("/job:worker"):
        loss = tf.reduce_sum(v * w, name="loss")
        tf.train.GradientDescentOptimizer(0.1).minimize(loss)

def without_devices():
    v = tf.get_variable("v", [1000])
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v), name="step")

def fed():
    x = tf.placeholder(tf.float32, [3], name="x")
    tf.square(x, name="y")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return str(path)


def planned(*arguments):
    result = CliRunner().invoke(cli.main, ["plan", *arguments])
    return result.exit_code, " ".join(result.output.split())


# -- the command -----------------------------------------------------------------------------------------


def test_a_trainer_is_planned(script):
    code, text = planned(script, "workers=2")
    assert code == 0, text
    for device in ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0", "/job:worker/task:1"):
        assert device in text
    assert "linear/weights" in text and f"{2 * WIDTH * 1000 * 4:,}" in text  # with the slot
    assert "a step should take" in text and "it is bound by" in text and "otherwise: round robin" in text
    code, text = planned(f"{script}:build", "--workers", "1", "--ps", "auto", "--nodes", "3")
    assert code == 0 and "a step should take" in text


def test_a_graph_is_planned(script, monkeypatch):
    monkeypatch.setattr(plan_report, "measured_machine", Machine)  # two servers are worth it where copies are slow
    code, text = planned(f"{script}:graph", "--ps", "2", "--workers", "1")
    assert code == 0, text
    assert "/job:ps/task:0 /job:worker/task:0" in text and "/job:ps/task:1 /job:worker/task:0" in text
    code, text = planned(f"{script}:graph", "--ps", "2", "--workers", "1", "--placement", "default")
    assert code == 0 and "/job:ps/task:1" not in text


def test_predictions_are_compared_with_what_is_measured(script):
    code, text = planned(script, "--measure", "--local")
    assert code == 0, text
    assert "measured:" in text and "from recorded operations" in text
    code, text = planned(f"{script}:without_devices", "--fetch", "step", "--measure")
    assert code == 0, text
    assert "/job:localhost" in text and "measured:" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph", "--ps", "auto"], "--ps auto and MIN:MAX are for trainers"),
        (["graph", "--ps", "1:2"], "--ps auto and MIN:MAX are for trainers"),
        (["graph", "--ps", "many"], "expected a number, auto, or two as in 2:8"),
        (["fed"], "no training operation: name what to run"),
        (["fed", "--fetch", "z"], "the graph has no 'z'"),
        (["fed", "--fetch", "y", "--measure"], "cannot feed x"),
    ],
)
def test_what_cannot_be_planned_is_refused(script, arguments, message):
    code, text = planned(f"{script}:{arguments[0]}", *arguments[1:])
    assert code == 2 and message in text


# -- decisions -------------------------------------------------------------------------------------------


def test_small_models_stay_together_and_large_ones_are_spread_over_nodes():
    nodes = [Node(4, 1e10)] * 8
    machine = machine_of(nodes, workers=4)
    assert machine.node("/job:ps/task:1/device:CPU:0") == machine.node("/job:ps/task:9/device:CPU:0") == "5"
    model = trainer().build(to_any_shard)
    assert best_shard_count(model, 1, CostModel(machine)) == 1
    with tf.Graph().as_default():
        large = tf.train.Trainer(
            many_layers, tf.train.array_input(*data(), batch_size=16), run=tf.train.RunConfig(steps=1)
        ).build(to_any_shard)
    assert 4 <= best_shard_count(large, 4, CostModel(machine)) <= 16


def test_workers_with_gpus_compute_faster():
    model = trainer().build(to_any_shard)
    plans = [plan_training(model, 1, 2, CostModel(machine_of([Node(4, 1e10)] * 3, 2, gpus))) for gpus in (False, True)]
    busy = [[plan.time.busy_s[device] for device in (*worker_devices(2), *shard_devices(1))] for plan in plans]
    assert busy[1][0] < busy[0][0] and busy[1][1] < busy[0][1] and busy[1][2] == pytest.approx(busy[0][2])


def many_layers(features, labels):
    sizes = [WIDTH, *[1500] * 8, 1]
    for number, (inputs, units) in enumerate(itertools.pairwise(sizes)):
        features = tf.matmul(features, tf.get_variable(f"w{number}", [inputs, units]))
    loss = tf.reduce_mean(tf.square(features - labels))
    return tf.train.ModelSpec(loss, tf.train.AdamOptimizer(0.01).minimize(loss))


def test_memory_asks_for_shards():
    model = trainer().build(to_any_shard)
    total = 2 * (WIDTH + 1) * 1000 * 4
    assert best_shard_count(model, 1, limit=4, shard_memory_bytes=total / 3) >= 3
    with pytest.raises(InvalidArgumentError, match="there is room for 4"):
        best_shard_count(model, 1, limit=4, shard_memory_bytes=total / 10)


@pytest.mark.parametrize(
    ("shape", "shards", "parts"),
    [
        ([1000, 100], 4, [4, 1]),
        ([1000, 25], 4, [1, 1]),  # a fair share
        ([1000, 50], 4, [2, 1]),
        ([3, 100_000], 4, [3, 1]),
        ([], 4, []),
        ([1000, 100], 1, [1, 1]),
    ],
)
def test_variables_are_cut_to_the_fair_share(shape, shards, parts):
    partitioner = tf.balancing_partitioner(400_000, shards, min_slice_size=1000)
    assert partitioner(shape=shape, dtype=tf.float32) == parts
    assert tf.balancing_partitioner(10, 4)(shape=[10], dtype=tf.float32) == [1]  # not worth a message


def test_plans_say_what_travels():
    model = trainer().build(to_any_shard)
    plan = plan_training(model, 2, 3)
    size = (WIDTH + 1) * 1000 * 4
    assert plan.moved_bytes == pytest.approx(2 * 3 * size, rel=0.01)  # to every replica, and back
    assert sum(load.variable_bytes for load in plan.loads.values()) == 2 * size
    assert set(plan.loads) == {*shard_devices(2), *worker_devices(3)}
    assert plan.time.seconds > plan.time.busy_s[worker_devices(3)[0]]


def test_plans_know_that_standbys_are_sent_gradients_and_send_nothing():
    model = trainer().build(to_any_shard)
    plan, without = plan_training(model, 2, 3, has_standbys=True), plan_training(model, 2, 3)
    assert plan.moved_bytes == pytest.approx(1.5 * without.moved_bytes, rel=0.01)
    assert set(plan.loads) == {*shard_devices(4), *worker_devices(3)}
    held = {device: load.variable_bytes for device, load in plan.loads.items()}
    shards = shard_devices(4)
    assert [held[device] for device in shards[2:]] == [held[device] for device in shards[:2]]
    workers = set(worker_devices(3))
    assert {source for source, target in plan.traffic if target in workers} == set(shards[:2])
    assert {target for source, target in plan.traffic if source in workers} == set(shards)


@pytest.mark.parametrize("workers_per_node", [1, 3])
def test_parameters_and_gradients_cross_the_network_once_for_a_node(workers_per_node):
    model = trainer().build(to_any_shard)
    workers = worker_devices(2 * workers_per_node)
    nodes = {worker: "ab"[number % 2] for number, worker in enumerate(workers)} | {shard_devices(1)[0]: "s"}
    cost = CostModel(Machine(network_bytes_per_s=1e6, nodes=nodes))
    plan = plan_training(model, 1, len(workers), cost)
    what, seconds = plan.time.waits_for
    size = (WIDTH + 1) * 1000 * 4
    assert what in ("the network in of node s", "the network out of node s")
    assert seconds == pytest.approx(2 * size / 1e6, rel=0.01)


def test_devices_that_a_graph_names():
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", [2])
    with tf.device("/job:worker/task:0/device:GPU:0"):
        loss = tf.reduce_sum(v * 2)
    assert named_devices(tf.get_default_graph()) == [worker_devices(1)[0], shard_devices(2)[1]]
    with pytest.raises(InvalidArgumentError, match="name what to run"):
        plan_session(tf.get_default_graph(), [], worker_devices(1), CostModel())
    plan = plan_session(tf.get_default_graph(), [loss.op], [*worker_devices(1), *shard_devices(2)], CostModel())
    assert plan.moved_bytes == 8


def test_a_machine_is_measured_in_a_moment():
    machine = measured_machine({"a": "b"})
    assert machine.flops_per_s > 1e8 and machine.bytes_per_s > 1e8 and machine.node("a") == "b"
    assert isinstance(machine, Machine)


# -- trainers that decide for themselves -----------------------------------------------------------------


def test_words_other_than_auto_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"parameter_servers must be .* or 'auto'"):
        tf.train.ScalingConfig(parameter_servers="many")
    with pytest.raises(InvalidArgumentError, match="not decided"):
        _ = tf.train.ScalingConfig(parameter_servers="auto").shards


@pytest.mark.ray
def test_a_trainer_decides_and_results_name_whole_variables(ray_local):
    alone = trainer(steps=6, local=True).fit()
    cut = tf.train.ScalingConfig(1, 2, cpus_per_worker=0.1, cpus_per_parameter_server=0.1, partitioner="auto")
    training = trainer(cut, steps=6)
    together = training.fit()
    parts = [
        op.name
        for op in training.build_for_shards().graph.get_operations()
        if op.type == "Variable" and "weights/part" in op.name and "Adagrad" not in op.name
    ]
    assert parts == ["linear/weights/part_0", "linear/weights/part_1"]
    assert set(together.variables) == set(alone.variables)
    for name, value in alone.variables.items():
        np.testing.assert_allclose(together.variables[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert training.evaluate(together, [data()]) == pytest.approx(training.evaluate(alone, [data()]), rel=1e-4)
    assert len(nodes_of(None)) == 1
    decided = trainer(tf.train.ScalingConfig(parameter_servers="auto"), steps=1)
    decided.build_for_shards()
    assert decided.scaling.shards == 1
