"""Compiling a training step for replicas: contributions are combined, questions are answered one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.ops.state import state_ops
from tfray.placement.replicate import REPLICA_DEVICE as REPLICA
from tfray.placement.replicate import compile_replica_step, serving_device
from tfray.training.trainer.model import combine_over_replicas

SHARDS = [f"/job:ps/task:{i}/device:CPU:0" for i in range(2)]


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [None, 4], name="x")


@pytest.fixture
def v():
    with tf.device(SHARDS[0]):
        return tf.Variable(np.ones(4, np.float32), name="v")


def compiled(fetched, targets, fed):
    return compile_replica_step(fetched, [getattr(t, "op", t) for t in targets], fed, SHARDS, REPLICA)


def types(partition):
    return sorted(op.type for op in partition.graph.get_operations())


def edges(partition, op_type):
    """Edges that enter or leave a partition, by what they carry."""
    return sorted(op.attrs["key"].split(" ")[0] for op in partition.graph.get_operations() if op.type == op_type)


def by_device(step):
    return {part.device: part for part in step.shards}


def minimize(loss, **options):
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, **options)


def test_a_dense_model(x, v):
    loss = tf.reduce_mean(tf.square(x * v))
    step = compiled([loss], [minimize(loss)], [x])
    (shard,) = step.shards
    assert step.serving == {} and step.feeds == [0]
    assert edges(shard, "Send") == edges(step.replica, "Recv") == ["v/read:0"]
    assert len(edges(shard, "Recv")) == 1
    assert "ApplyGradientDescent" in types(shard) and "ReplicaReduce" in types(shard)
    assert "ReplicaReduce" not in types(step.replica) and "Variable" not in types(step.replica)
    assert step.replica.fetches == [loss.name]


def test_what_is_not_marked_is_averaged_or_taken_from_the_first(x, v):
    with tf.device(SHARDS[0]):
        count = tf.Variable(np.zeros(4, np.int32), name="count")
    targets = [
        state_ops.assign(v, tf.reduce_sum(x, 0)),
        state_ops.assign(count, tf.cast(tf.reduce_sum(x, 0), tf.int32)),
    ]
    shard = by_device(compiled([tf.reduce_sum(x)], targets, [x]))[SHARDS[0]]
    reductions = {
        op.outputs[0].dtype: op.attrs["reduction"] for op in shard.graph.get_operations() if op.type == "ReplicaReduce"
    }
    assert reductions == {tf.float32: "mean", tf.int32: "first"}


def test_rows_are_served_and_the_table_stays(x):
    ids = tf.placeholder(tf.int32, [None], name="ids")
    with tf.device(SHARDS[1]):
        table = tf.Variable(np.ones((1000, 4), np.float32), name="table")
    loss = tf.reduce_mean(tf.square(tf.gather(table, ids) - x))
    step = compiled([loss], [minimize(loss)], [x, ids])
    assert list(step.serving) == [SHARDS[1]]
    serving = step.serving[SHARDS[1]]
    assert serving.device == serving_device(SHARDS[1]) == "/job:ps/replica:0/task:1/device:CPU:0"
    assert types(serving) == ["Recv", "ResourceGather", "Send", "Variable"]
    (handle,) = [op for op in serving.graph.get_operations() if op.type == "Variable"]
    assert handle.attrs["shared_name"] == "table"
    assert serving.feeds == [] and all(part.feeds == [] for part in step.shards)
    received = [op for op in step.replica.graph.get_operations() if op.type == "Recv"]
    assert [op.attrs["shape"].as_list() for op in received] == [[None, 4]]
    assert not any(op.type == "ReadVariableOp" for part in step.shards for op in part.graph.get_operations())
    assert sorted(step.feeds) == [0, 1]


def test_what_is_fed_reaches_shards_by_way_of_the_replica(x, v):
    step = compiled(
        [tf.reduce_sum(x)], [state_ops.assign_add(v, tf.reduce_sum(x, 0)).op, state_ops.assign(v, x[0]).op], [x]
    )
    assert all(part.feeds == [] for part in step.shards)
    y = tf.placeholder(tf.float32, [4], name="y")
    step = compiled([tf.reduce_sum(y)], [state_ops.assign(v, y)], [y])
    assert step.replica.feeds == ["y"] and all(part.feeds == [] for part in step.shards)


def test_updates_that_gradients_wait_for_do_not_draw_the_gradients_to_the_shard(x, v):
    """As in batch normalisation: moving averages under UPDATE_OPS, and the optimizer after them."""
    with tf.device(SHARDS[1]):
        moving = tf.Variable(np.zeros(4, np.float32), trainable=False, name="moving")
    update = state_ops.assign_sub(moving, (moving - tf.reduce_mean(x, 0)) * 0.1, name="update_moving")
    loss = tf.reduce_mean(tf.square(x * v))
    with tf.control_dependencies([update]):
        train = minimize(loss)
    step = compiled([loss], [train], [x])
    shards = by_device(step)
    assert "AssignSub" in types(shards[SHARDS[1]])
    assert "ApplyGradientDescent" in types(shards[SHARDS[0]])
    assert not {"Mul", "Square", "Mean"} & set(types(shards[SHARDS[0]]))
    assert "Mean" in types(step.replica)
    # The replica waits for nothing that is combined.
    assert edges(step.replica, "Recv") == ["moving/read:0", "v/read:0"]


def test_a_group_of_updates_is_an_operation_of_the_shards(x, v):
    train = tf.group(state_ops.assign(v, tf.reduce_mean(x, 0)), state_ops.assign_add(v, tf.ones([4])))
    step = compiled([tf.reduce_sum(x)], [train], [x])
    assert "NoOp" not in types(step.replica)
    assert "NoOp" in types(by_device(step)[SHARDS[0]])
    assert step.replica.graph.get_operations()


def test_a_read_after_an_update_of_the_same_variable_waits_for_it(x, v):
    with tf.device(SHARDS[1]):
        average = tf.Variable(np.zeros(4, np.float32), trainable=False, name="average")
    loss = tf.reduce_mean(tf.square(x * v))
    train = minimize(loss)
    with tf.control_dependencies([train]):
        fresh = state_ops.read_variable(v, name="fresh")
        follow = state_ops.assign_add(average, (fresh - average) * 0.5)
    step = compiled([loss], [follow], [x])
    assert edges(step.replica, "Recv") == ["v/read:0"]
    first = by_device(step)[SHARDS[0]].graph
    assert first.get_operation_by_name("fresh").control_inputs
    with pytest.raises(InvalidArgumentError, match=r"fresh:0.*cannot be reported.*before the update"):
        compiled([fresh], [train], [x])


def test_large_constants_do_not_pass_for_contributions(v):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device(SHARDS[0]):
        big = tf.Variable(np.zeros(100_000, np.float32), name="big")
    step = compiled([x * 2], [state_ops.assign(big, tf.constant(np.ones(100_000, np.float32)))], [x])
    assert "ReplicaReduce" in types(by_device(step)[SHARDS[0]])


def test_a_state_change_that_a_replica_waits_for_is_refused(x, v):
    ids = tf.placeholder(tf.int32, [None], name="ids")
    bump = state_ops.assign_add(v, tf.ones([4]), name="bump")
    with tf.control_dependencies([bump]):
        rows = v.sparse_read(ids, name="rows")
    loss = tf.reduce_sum(rows)
    with pytest.raises(InvalidArgumentError, match=r"bump.*changes state.*waits for it"):
        compiled([loss], [minimize(loss)], [ids])


def test_a_table_over_two_shards_that_ask_each_other():
    """Rows of one table are indices into another: shard to shard while serving."""
    ids = tf.placeholder(tf.int32, [None], name="ids")
    with tf.device(SHARDS[0]):
        links = tf.Variable(np.arange(10, dtype=np.int32), trainable=False, name="links")
    with tf.device(SHARDS[1]):
        table = tf.Variable(np.ones((10, 4), np.float32), name="table")
    loss = tf.reduce_sum(tf.gather(table, tf.gather(links, ids)))
    step = compiled([loss], [minimize(loss)], [ids])
    assert set(step.serving) == set(SHARDS)
    assert edges(step.replica, "Recv") != []


def test_what_shards_compute_on_the_way_to_being_combined_they_compute_for_each_replica(x):
    labels = tf.placeholder(tf.int64, [None, 1], name="labels")
    weights, biases = [], []
    for device in SHARDS:
        with tf.device(device):
            weights.append(tf.Variable(np.ones((10, 4), np.float32)))
            biases.append(tf.Variable(np.ones(10, np.float32)))
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, labels, x, 5, 20, at_shards=True))
    step = compiled([loss], [minimize(loss)], [x, labels])
    assert set(step.serving) == set(SHARDS)
    assert all({"ShardProducts", "MatMul"} <= set(types(part)) for part in step.serving.values())
    reduced = [op for part in step.shards for op in part.graph.get_operations() if op.type == "ReplicaReduce"]
    assert {op.attrs["reduction"] for op in reduced} == {"concat", "concat_mean"}  # every one a gradient's
    assert not any("MatMul" in types(part) for part in step.shards)


def test_the_users_graph_is_not_touched(x, v):
    loss = tf.reduce_mean(tf.square(x * v))
    train = minimize(loss)
    version = x.graph.version
    compiled([loss], [train], [x])
    assert x.graph.version == version
