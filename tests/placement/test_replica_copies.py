"""Compiling a training step for replicas that hold copies of the variables: one partition, and what is reduced."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.ops.system.replica_ops import replica_reduce
from tfray.placement.contributions import ReplicaOptions
from tfray.placement.own_devices import over_own_devices
from tfray.placement.replicate import REPLICA_DEVICE as REPLICA
from tfray.placement.replicate import compile_replica_step
from tfray.runtime.plan import Partition
from tfray.runtime.ring_edge import RING_DEVICE
from tfray.training.trainer.model import combine_over_replicas

FIRST = "/job:worker/task:0/device:CPU:0"


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [None, 4], name="x")


@pytest.fixture
def v():
    with tf.device("/job:worker/task:0"):
        return tf.Variable(np.ones(4, np.float32), name="v")


def compiled(fetched, targets, fed, **options):
    ops = [getattr(target, "op", target) for target in targets]
    step = compile_replica_step(fetched, ops, fed, [FIRST], REPLICA, options=ReplicaOptions(has_copies=True, **options))
    assert step.shards == [] and step.serving == {} and step.standbys == {}
    return step.replica


def types(partition):
    return [op.type for op in partition.graph.get_operations()]


def minimize(loss, **options):
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, **options)


def reduced(partition):
    """What is reduced: name, reduction, dtypes and shape."""
    return [(edge.key.split(" ")[0], *edge[2:]) for edge in partition.ring]


def test_a_dense_model_is_one_partition(x, v):
    loss = tf.reduce_mean(tf.square(x * v))
    part = compiled([loss], [minimize(loss)], [x])
    assert {"Variable", "ReadVariableOp", "ApplyGradientDescent"} <= {*types(part)}
    assert types(part).count("Send") == types(part).count("Recv") == 1
    (edge,) = part.ring
    assert (edge.reduction, edge.dtype, edge.result_dtype, edge.shape) == ("mean", "float32", "float32", (4,))
    (send,) = [op for op in part.graph.get_operations() if op.type == "Send"]
    (recv,) = [op for op in part.graph.get_operations() if op.type == "Recv"]
    assert send.attr("key") == edge.key and send.attr("destination") == RING_DEVICE
    assert recv.attr("key") == edge.result and recv.attr("source") == RING_DEVICE
    assert part.fetches == [loss.name]
    assert Partition.from_plain(part.to_plain()).ring == part.ring


def test_rows_are_read_where_they_are_asked_for(v):
    ids = tf.placeholder(tf.int32, [None], name="ids")
    with tf.device("/job:worker/task:0"):
        table = tf.Variable(np.ones((10, 4), np.float32), name="table")
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
    part = compiled([loss], [minimize(loss, var_list=[table])], [ids])
    assert sorted(each[1:] for each in reduced(part)) == [
        ("concat", "int32", "int32", None),
        ("concat_mean", "float32", "float32", None),
    ]
    assert "ResourceGather" in types(part)


def test_what_is_the_same_on_all_replicas_is_not_sent(x, v):
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 10, 0.5)
    loss = tf.reduce_mean(tf.square(x * v)) + 0.1 * tf.nn.l2_loss(v)
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    assert [each[1:] for each in reduced(compiled([loss], [train], [x]))] == [("mean", "float32", "float32", (4,))]


def test_an_update_that_needs_no_gradient_waits_until_all_replicas_have_a_batch(x, v):
    with tf.device("/job:worker/task:0"):
        count = tf.Variable(0, name="count")
    update = tf.group(tf.assign(v, tf.reduce_sum(x, 0)), tf.assign_add(count, 1))
    part = compiled([tf.reduce_sum(x)], [update], [x])
    assert sorted(each[1] for each in reduced(part)) == ["first", "mean"]
    (add,) = [op for op in part.graph.get_operations() if op.type == "AssignAdd"]
    assert [op.type for op in add.control_inputs] == ["Identity"]
    assert add.control_inputs[0].inputs[0].op.type == "Recv"


def test_only_contributions_are_sent_in_fewer_bits(x, v):
    loss = tf.reduce_mean(tf.square(x * v))
    part = compiled([loss], [minimize(loss)], [x], wire_dtype="bfloat16")
    assert [each[1:] for each in reduced(part)] == [("mean", "bfloat16", "float32", (4,))]
    casts = [op.attr("DstT") for op in part.graph.get_operations() if op.type == "Cast"]
    assert casts.count(tf.bfloat16) == 1, "parameters stay as they are"


def test_the_verdict_on_bad_gradients_comes_before_all_updates(x, v):
    loss = tf.reduce_mean(tf.square(x * v))
    part = compiled([loss], [minimize(loss)], [x], bad_gradients="stop")
    assert sorted(each[1] for each in reduced(part)) == ["first", "mean"]
    (apply,) = [op for op in part.graph.get_operations() if op.type == "ApplyGradientDescent"]
    assert any(op.name.startswith("_ring/begun") for op in apply.control_inputs)


def test_updates_that_draw_random_numbers_are_refused(x, v):
    sum_of_all = replica_reduce(tf.reduce_sum(x, 0))
    noisy = tf.assign(v, sum_of_all + tf.random_normal(tf.cast(sum_of_all[:1] * 0 + 4, tf.int32)))
    with pytest.raises(InvalidArgumentError, match="draws random numbers for an update"):
        compiled([tf.reduce_sum(x)], [noisy], [x])


def test_gradients_leave_a_gpu_once_in_the_dtype_in_which_they_are_sent(x):
    with tf.device("/job:worker/task:0"):
        kernels = [tf.Variable(np.ones((4, 4), np.float32), name=name) for name in ("a", "b")]
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, kernels[0])), kernels[1])))
    part = compiled([loss], [minimize(loss)], [x], wire_dtype="bfloat16")
    cpu, gpu = over_own_devices(part, 1).partitions
    left = [op.inputs[0] for op in gpu.graph.get_operations() if op.type == "Send"]
    assert [(tensor.dtype.name, tensor.shape.rank) for tensor in left] == [("bfloat16", 2)] * 2
    assert {"Variable", "ApplyGradientDescent"} <= {*types(cpu)} and "ApplyGradientDescent" not in types(gpu)
    came = [op for op in gpu.graph.get_operations() if op.type == "Recv"]
    assert len(came) == 2, "each parameter comes once"
