"""Runs whose number of parameter servers changes: they compute what runs compute that never change."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import tfray as tf
from tests.support.elastic_runs import paced
from tests.support.processes import Barrier, freeze, is_alive, kill_actor, wait_for
from tests.support.shard_runs import (
    LATE_S,
    MODELS,
    STEPS,
    assert_each_step_once,
    assert_same,
    held,
    pids,
    trainer,
    unchanged,
)
from tests.support.training_models import classification_data, late_input, scaling
from tfray.actors.replicas import driver
from tfray.errors import FailedPreconditionError, InvalidArgumentError, UnknownError
from tfray.training.trainer import shard_scaling
from tfray.training.trainer.shard_placement import ShardPlacement, move_variables

# -- places --------------------------------------------------------------------------------------------


def built(model, count):
    make_model, data = MODELS[model]
    inputs = tf.train.array_input(*data(), batch_size=24)
    return tf.train.Trainer(make_model(), inputs, scaling(1, count)).build_for_shards()


def devices(model):
    return {op.name: op.device for op in model.graph.get_operations()}


@pytest.mark.parametrize("model", MODELS)
def test_operations_go_where_they_would_be_had_the_model_been_built_so(model):
    changing = built(model, 1)
    placement = ShardPlacement(changing.graph, changing.on_shards)
    version = changing.graph.version
    for count in (4, 2, 3, 1):
        before = {name: device for name, device in devices(changing).items() if device}
        moves = placement.place(range(count))
        expected = built(model, count)
        variables = {op.name for op in expected.graph.get_operations() if op.type == "Variable"}
        now = devices(changing)
        assert {name: now[name] for name in variables} == {name: devices(expected)[name] for name in variables}
        assert {move.variable.name for move in moves} == {name for name in variables if before[name] != now[name]}
        assert all(move.target.startswith(move.variable.device) for move in moves)
        assert set(filter(None, now.values())) == {f"/job:ps/task:{task}" for task in range(count)}
    assert changing.graph.version > version, "steps are compiled anew"


def test_what_a_program_puts_on_a_parameter_server_stays():
    def model_fn(features, labels):
        with tf.device("/job:ps/task:1"):
            fixed = tf.Variable(1.0, name="fixed")
        free = tf.Variable(np.zeros([8, 3], np.float32), name="free")
        loss = tf.reduce_mean(tf.matmul(features, free)) * fixed
        return tf.train.ModelSpec(loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss))

    inputs = tf.train.array_input(*classification_data(), batch_size=24)
    model = tf.train.Trainer(model_fn, inputs, scaling(1, 2)).build_for_shards()
    placement = ShardPlacement(model.graph, model.on_shards)
    assert [op.name for op in model.on_shards] == ["free"]
    assert {move.variable.name for move in placement.place([1, 3])} == {"free", "free/Momentum"}
    assert model.graph.get_operation_by_name("fixed/Momentum").device == "/job:ps/task:1"
    with pytest.raises(InvalidArgumentError, match=r"'fixed.*' asks for /job:ps/task:1, and only .* 0, 3 would"):
        placement.place([0, 3])


def test_a_variable_stays_with_the_state_beside_it():
    with tf.Graph().as_default() as graph, graph.device("/job:ps/task:1"):
        both = [tf.Variable(np.zeros(4), name=name) for name in ("alone", "with_queue")]
        with graph.colocate_with(both[1].op):
            tf.FIFOQueue(3, tf.float32)
    placement = ShardPlacement(graph, [variable.op for variable in both])
    assert [move.variable.name for move in placement.place([0, 1])] == ["alone"]
    with pytest.raises(InvalidArgumentError, match="only the parameter servers 0 would be there"):
        placement.check([0])


# -- runs ----------------------------------------------------------------------------------------------


class Counts(tf.train.Callback):
    """Asks for one number of parameter servers after the other, each when the one before is there for some steps.

    Attributes:
        records: The steps.
        pids: By number of a change: the processes of the devices before it.
        held: The same for the number of variables and other resources that all parameter servers hold together.
    """

    def __init__(self, ray, clusters, barrier, *counts):
        self.ray, self.clusters, self.barrier, self.counts = ray, clusters, barrier, list(counts)
        self.records, self.pids, self.held, self.wished, self.since = [], [], [], None, 0

    def on_start(self, start):
        self.scale = start.scale

    def on_step(self, record):
        self.records.append(record)
        has = len(self.clusters[-1].tasks_of("ps"))
        if record.step < self.since + 3 or (self.wished is not None and has != self.wished):
            return
        if self.since == 0 or self.wished is not None:
            self.pids.append(pids(self.ray, self.clusters[-1]))
            self.held.append(held(self.ray, self.clusters[-1]))
        self.since, self.wished = record.step, None
        if self.counts:
            self.wished = self.counts.pop(0)
            self.scale(self.wished)
        else:
            self.barrier.reach("fast")


def scalings(result):
    return [event.message.partition("are on ")[2] for event in result.events if event.kind == "scaling"]


@pytest.mark.ray
@pytest.mark.parametrize("model", ["random", "embedding"])
@pytest.mark.slow
def test_a_run_whose_shards_change_equals_one_whose_do_not(ray_local, clusters, tmp_path, model):
    counts = Counts(ray_local, clusters, Barrier(tmp_path), 4, 2)
    result = trainer(model, counts.barrier, [counts]).fit()
    assert scalings(result) == [
        "4 parameter servers; they were on 1",
        "2 parameter servers; they were on 4",
    ]
    assert_each_step_once(result)
    first, second, third = counts.pids
    workers = [device for device in first if "worker" in device]
    assert len(workers) == 2 and all(first[device] == third[device] for device in workers)
    assert sorted(third.keys() - set(workers)) == [f"/job:ps/task:{task}/device:CPU:0" for task in range(2)]
    assert all(third[device] == second[device] for device in third)
    ended = second.keys() - third.keys()
    assert len(ended) == 2
    assert counts.held[0] == counts.held[1] == counts.held[2], "what has moved is not in memory twice"
    wait_for(lambda: not any(is_alive(second[device]) for device in ended))
    assert_same(result, unchanged(model, tmp_path))


@pytest.mark.ray
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"workers": 3, "backup_workers": 1}, marks=pytest.mark.slow),
        {"mode": "async"},
        pytest.param({"workers": (2, 3)}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_each_step_is_applied_once_however_replicas_work_together(ray_local, clusters, tmp_path, options):
    counts = Counts(ray_local, clusters, Barrier(tmp_path), 4, 2)
    size = scaling(**{"workers": 2} | options)
    result = trainer("embedding", counts.barrier, [counts], size).fit()
    assert len(scalings(result)) == 2
    assert_each_step_once(result)
    first, second, third = counts.pids
    assert all(first[device] == third[device] for device in first)
    wait_for(lambda: not any(is_alive(second[device]) for device in second.keys() - third.keys()))
    losses = [record.metrics["loss"] for record in result.history]
    assert np.mean(losses[-20:]) < np.mean(losses[:20])


@pytest.mark.ray
@pytest.mark.slow
def test_a_replica_that_is_late_gets_its_answers_from_the_shards_that_were_left(ray_local, clusters, tmp_path):
    """Replica 2 asks for the rows of its step 3 only when the variables have moved twice, and then again."""
    barrier, left = Barrier(tmp_path), []

    class Leaving(Counts):
        def on_step(self, record):
            super().on_step(record)
            left.append(len(self.clusters[-1].devices) - 3 - len(self.clusters[-1].tasks_of("ps")))

    counts = Leaving(ray_local, clusters, barrier, 3, 1)
    make_model, data = MODELS["embedding"]
    inputs = tf.train.array_input(*data(), batch_size=24)
    result = tf.train.Trainer(
        make_model(),
        late_input(paced(inputs, barrier, STEPS, LATE_S), barrier, replica=2, step=3, until="fast"),
        scaling(3, 2, backup_workers=1),
        tf.train.RunConfig(steps=STEPS, callbacks=[counts], logdir=None),
    ).fit()
    assert len(scalings(result)) == 2 and result.dropped >= 1
    assert_each_step_once(result)
    assert left[0] == 0 and max(left) == 2 and left[-1] == 0


class Interrupted(Exception):
    """Ends a run."""


@pytest.mark.ray
@pytest.mark.slow
def test_a_checkpoint_of_a_run_that_changed_restores_with_any_number(ray_local, clusters, tmp_path):
    class Interrupting(Counts):
        def on_step(self, record):
            super().on_step(record)
            if self.barrier.reached("fast") and record.step % 10 == 5:
                raise Interrupted

    counts = Interrupting(ray_local, clusters, Barrier(tmp_path), 3)
    options = {"checkpoint_dir": tmp_path / "checkpoints", "save_every_steps": 10}
    with pytest.raises(UnknownError, match="Interrupted"):
        trainer("random", counts.barrier, [counts], **options).fit()
    assert len(counts.pids) == 2
    resumed = trainer("random", counts.barrier, size=scaling(2, 2), **options).fit()
    begin = resumed.history[0].step
    assert begin % 10 == 1 and begin > 1
    expected = unchanged("random", tmp_path)
    for name, value in expected.variables.items():
        np.testing.assert_array_equal(resumed.variables[name], value, err_msg=name)
    assert [each.metrics for each in resumed.history] == [each.metrics for each in expected.history[begin - 1 :]]


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies after their number has changed.",
    happens="The run goes back to its checkpoint, with the number that there was.",
    promise="Every step is applied once.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_shard_that_dies_after_a_change(ray_local, clusters, tmp_path):
    class Killing(Counts):
        is_killed = False

        def on_step(self, record):
            super().on_step(record)
            if len(self.pids) == 2 and not self.is_killed:
                self.is_killed = True
                kill_actor(self.ray, self.clusters[-1], "/job:ps/task:2/device:CPU:0")

    counts = Killing(ray_local, clusters, Barrier(tmp_path), 3)
    result = trainer("random", counts.barrier, [counts], checkpoint_dir=tmp_path / "c", save_every_steps=10).fit()
    assert [event.kind for event in result.events] == ["scaling", "rollback"]
    assert_each_step_once(result)
    assert_same(result, unchanged("random", tmp_path))


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies while their number changes.",
    happens="The run goes back to its checkpoint, with the new number.",
    promise="Every step is applied once.",
)
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("task", [0, 1])
def test_a_shard_that_dies_in_the_middle_of_a_change(ray_local, clusters, tmp_path, monkeypatch, task):
    """Before the variables move, a process dies: the one that has them, or one that is to have them."""
    kills = iter([lambda cluster: kill_actor(ray_local, cluster, f"/job:ps/task:{task}/device:CPU:0")])

    def move(cluster, moves):
        next(kills, lambda cluster: None)(cluster)
        move_variables(cluster, moves)

    monkeypatch.setattr(shard_scaling, "move_variables", move)
    counts = Counts(ray_local, clusters, Barrier(tmp_path), 3)
    run = {"checkpoint_dir": tmp_path / "c", "save_every_steps": 2}
    result = trainer("random", counts.barrier, [counts], **run).fit()
    assert [event.kind for event in result.events] == ["rollback"]
    assert len(counts.pids[-1]) == 5 and next(kills, None) is None
    assert counts.held[-1] <= counts.held[0] + 3, "beside the variables, one snapshot on each"
    assert_each_step_once(result)
    assert_same(result, unchanged("random", tmp_path))


@pytest.mark.ray
@pytest.mark.slow
def test_a_backup_worker_that_is_frozen_joins_again(ray_local, clusters, tmp_path, monkeypatch):
    """The change does not wait for it. When it goes on, it takes its new plan, and computes again."""
    monkeypatch.setattr(driver, "HELD_UP_S", 1.0)
    frozen = "/job:worker/task:2/device:CPU:0"

    class Freezing(Counts):
        pid = None

        def on_step(self, record):
            # Steps that began with two replicas have these as members, and would wait for one that is frozen.
            if self.pid is None and [each.live for each in self.records[-4:]] == [3] * 4:
                self.pid = pids(self.ray, self.clusters[-1])[frozen]
                freeze(self.pid)
            if self.pid is not None and not self.counts and len(self.clusters[-1].tasks_of("ps")) == 2:
                os.kill(self.pid, signal.SIGCONT)
            self.records.append(record)
            if self.pid is not None and self.counts:
                self.scale(self.counts.pop(0))
            if record.live == 3 and any(each.live == 2 for each in self.records):
                self.barrier.reach("fast")

    counts = Freezing(ray_local, clusters, Barrier(tmp_path), 2)
    size = scaling(3, 1, backup_workers=1)
    try:
        result = trainer("random", counts.barrier, [counts], size).fit()
    finally:
        os.kill(counts.pid, signal.SIGCONT) if is_alive(counts.pid) else None
    assert len(scalings(result)) == 1 and counts.barrier.reached("fast")
    assert [event.kind for event in result.events] == ["scaling"], "nobody was replaced"
    assert_each_step_once(result)


# -- as Ray finds room ---------------------------------------------------------------------------------


@pytest.mark.ray
@pytest.mark.slow
def test_a_run_takes_the_shards_for_which_there_is_room(ray_local, clusters, tmp_path):
    barrier, sizes = Barrier(tmp_path), []

    def on_step(record):
        sizes.append(len(clusters[-1].tasks_of("ps")))
        if sizes[-1] == 3:
            barrier.reach("fast")

    size = scaling(2, (1, 3), partitioner="auto")
    result = trainer("random", barrier, size=size, on_step=on_step).fit()
    assert sizes[0] == 1 and sizes[-1] == 3 and sizes == sorted(sizes)
    assert_each_step_once(result)
    assert_same(result, unchanged("random", tmp_path))


@pytest.mark.fault(
    "Workers and parameter servers",
    "A parameter server dies in a run that takes as many as there is room for.",
    happens="The run goes back to its checkpoint with those that are left, and takes another when it comes.",
    promise="Every step is applied once.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_run_goes_on_with_the_shards_that_are_left(ray_local, clusters, tmp_path):
    barrier, stages = Barrier(tmp_path), [1, 3, 2, 3]

    def on_step(record):
        if len(clusters[-1].tasks_of("ps")) != stages[0]:
            return
        stages.pop(0)
        if stages == [2, 3]:
            kill_actor(ray_local, clusters[-1], "/job:ps/task:1/device:CPU:0")
        elif not stages:
            stages.append(0)
            barrier.reach("fast")

    run = {"checkpoint_dir": tmp_path / "c", "save_every_steps": 10, "on_step": on_step}
    result = trainer("random", barrier, size=scaling(2, (1, 3)), **run).fit()
    kinds = [event.kind for event in result.events]
    assert kinds.index("rollback") > 0 and kinds[-1] == "scaling"
    assert "2 parameter servers; they were on 3" in scalings(result)
    assert scalings(result)[-1].startswith("3 ")
    assert_each_step_once(result)
    assert_same(result, unchanged("random", tmp_path))


@pytest.mark.fault(
    "Machines and networks",
    "A machine with a parameter server dies in a run that takes as many as there is room for.",
    happens="The run goes back to its checkpoint with those that are left, and takes others on machines that come.",
    promise="Every step is applied once.",
)
@pytest.mark.ray
@pytest.mark.slow
def test_a_run_follows_the_room_for_shards(ray_nodes, clusters, tmp_path):
    import ray

    ray_nodes.add_node(num_cpus=1, resources={"ps": 1, "worker": 2})
    ray.init(address=ray_nodes.address, logging_level="warning")
    nodes, barrier = [], Barrier(tmp_path)
    for_one = {"num_cpus": 1, "resources": {"ps": 1}}
    stages = [
        (1, lambda: nodes.extend(ray_nodes.add_node(**for_one) for _ in range(2))),
        (3, lambda: ray_nodes.remove_node(nodes.pop(), allow_graceful=False)),
        (2, lambda: ray_nodes.add_node(**for_one)),
        (3, lambda: barrier.reach("fast")),
    ]

    def on_step(record):
        if stages and len(clusters[-1].tasks_of("ps")) == stages[0][0]:
            stages.pop(0)[1]()

    size = scaling(
        2,
        (1, 4),
        parameter_server_resources={"ps": 1},
        worker_resources={f"node:{ray_nodes.head_node.node_ip_address}": 0.01},
    )
    run = {"checkpoint_dir": tmp_path / "c", "save_every_steps": 10, "on_step": on_step}
    result = trainer("random", barrier, size=size, **run).fit()
    assert not stages
    assert_each_step_once(result)
    assert_same(result, unchanged("random", tmp_path))


# -- what is refused -----------------------------------------------------------------------------------


def test_a_number_that_cannot_be():
    with pytest.raises(InvalidArgumentError, match="the first number is the least, the second the most"):
        tf.train.ScalingConfig(parameter_servers=(3, 2))
    with pytest.raises(InvalidArgumentError, match="parameter_servers must be"):
        tf.train.ScalingConfig(parameter_servers=(0, 2))


def test_a_run_that_is_not_there_cannot_change(tmp_path):
    barrier = Barrier(tmp_path)
    barrier.reach("fast")
    local = trainer("random", barrier, steps=1, local=True)
    with pytest.raises(FailedPreconditionError, match="no run on a cluster is under way"):
        local.scale(2)
    with pytest.raises(InvalidArgumentError, match="parameter_servers must be"):
        local.scale(0)
