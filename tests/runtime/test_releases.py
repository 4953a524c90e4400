"""What a step of a parameter shard releases before it is over, and what contributions are needed together."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.system.replica_ops import replica_reduce
from tfray.placement.replicate import REPLICA_DEVICE, compile_replica_step
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.releases import find_releases
from tfray.training.trainer.model import combine_over_replicas

SHARD = "/job:ps/task:0/device:CPU:0"
WIDTH = 512
"""A square matrix of so many numbers a side has a mebibyte, and so is large."""


def network(make_optimizer, tied=False):
    """Three layers: two large ones, and a small one. Returns the releases of the shard."""
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    x = tf.placeholder(tf.float32, [None, WIDTH], name="x")
    with tf.device(SHARD):
        first = tf.Variable(np.zeros((WIDTH, WIDTH), np.float32), name="first")
        second = first if tied else tf.Variable(np.zeros((WIDTH, WIDTH), np.float32), name="second")
        small = tf.Variable(np.zeros((WIDTH, 1), np.float32), name="small")
        bias = tf.Variable(np.zeros(1, np.float32), name="bias")
        global_step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.tanh(x @ first) @ second @ small + bias)
    train = make_optimizer().minimize(loss, global_step)
    step = compile_replica_step([loss], [train], [x], [SHARD], REPLICA_DEVICE)
    (shard,) = step.shards
    return shard.graph, find_releases(shard.graph, SHARD, REPLICA_DEVICE)


OPTIMIZERS = [
    lambda: tf.train.GradientDescentOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    lambda: tf.train.AdamOptimizer(0.1),
    lambda: tf.train.FtrlOptimizer(0.1),
]


def labels(keys):
    return [EdgeKey.parse(key).op_name for key in keys]


@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_a_large_variable_is_released_with_its_slots_when_it_has_been_updated(make_optimizer):
    graph, releases = network(make_optimizer)
    assert len(releases.keys) == 3, "first, second, and the rest"
    assert len(releases.units) == 3
    assert sorted(map(len, releases.units)) == [1, 1, 2], "the gradients of small variables come together"
    for name in ("first", "second"):
        (read,) = releases.of_ops[graph.get_operation_by_name(f"{name}/read")]
        updates = [op for op in releases.of_ops if op.type.startswith("Apply") and op.inputs[0].op.name == name]
        assert [read in releases.of_ops[op] for op in updates] == [True]
    rest = releases.keys[-1]
    assert releases.of_ops[graph.get_operation_by_name("small/read")] == {rest}


def test_variables_whose_updates_take_the_same_contribution_are_released_together():
    x = tf.placeholder(tf.float32, [WIDTH, WIDTH], name="x")
    with tf.device(SHARD):
        first, second, third = (tf.Variable(np.zeros((WIDTH, WIDTH), np.float32), name=name) for name in "abc")
    one, two, three = (replica_reduce(x * number) for number in (1.0, 2.0, 3.0))
    updates = [tf.assign_add(first, one + two), tf.assign_add(second, two), tf.assign_add(third, three)]
    (shard,) = compile_replica_step([], [each.op for each in updates], [x], [SHARD], REPLICA_DEVICE).shards
    releases = find_releases(shard.graph, SHARD, REPLICA_DEVICE)
    assert labels(releases.keys) == ["a", "c", "*"] or labels(releases.keys) == ["b", "c", "*"]
    assert sorted(map(len, releases.units)) == [1, 2]


def test_a_variable_of_two_layers_is_released_once():
    _, releases = network(OPTIMIZERS[0], tied=True)
    assert len(releases.keys) == 2


def test_small_variables_wait_for_the_end_of_the_step():
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.device(SHARD):
        v = tf.Variable(np.zeros((4, 1), np.float32), name="v")
    loss = tf.reduce_mean(x @ v)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    (shard,) = compile_replica_step([loss], [train], [x], [SHARD], REPLICA_DEVICE).shards
    releases = find_releases(shard.graph, SHARD, REPLICA_DEVICE)
    assert releases.keys == releases.units == ()
