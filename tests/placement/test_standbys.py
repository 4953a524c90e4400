"""Standbys of shards: what they run, and what they are sent."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.framework.region import ops_within
from tfray.framework.traversal import reachable_backward
from tfray.ops.state import state_ops
from tfray.placement.replicate import REPLICA_DEVICE as REPLICA
from tfray.placement.replicate import compile_replica_step
from tfray.runtime.edge_key import EdgeKey
from tfray.training.trainer.model import combine_over_replicas

SHARDS = [f"/job:ps/task:{i}/device:CPU:0" for i in range(2)]
STANDBYS = [f"/job:ps/task:{i}/device:CPU:0" for i in (2, 3)]
BOTH = dict(zip(SHARDS, STANDBYS, strict=True))


def compiled(fetched, targets, fed, standbys=BOTH):
    return compile_replica_step(fetched, targets, fed, SHARDS, REPLICA, standbys=standbys)


def variable(shard, shape=(4,), name=None):
    with tf.device(SHARDS[shard]):
        return tf.Variable(np.ones(shape, np.float32), name=name)


def minimize(loss):
    tf.get_default_graph().extra("replica_aggregation", list).append(combine_over_replicas)
    return tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def ops_of(part, *op_types):
    found = [op for outer in part.graph.get_operations() for op in ops_within(outer)]
    return [op for op in found if op.type in op_types] if op_types else found


def ends(part, op_type):
    """What enters or leaves a partition: what it carries, from where, to where."""
    edges = [EdgeKey.parse(op.attr("key")) for op in ops_of(part, op_type)]
    return {(edge.label, edge.source, edge.destination) for edge in edges}


def updates(part):
    return sorted(op.type for op in ops_of(part) if op.type.startswith(("Apply", "Assign")))


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [None, 4], name="x")


@pytest.fixture
def dense(x):
    v, w = variable(0, name="v"), variable(1, name="w")
    loss = tf.reduce_mean(tf.square(x * v * w))
    return compiled([loss], [minimize(loss)], [x])


def test_a_standby_makes_the_updates_of_its_shard(dense):
    for part in dense.shards:
        standby = dense.standbys[part.device]
        assert standby.device == BOTH[part.device]
        assert {op.device for op in ops_of(standby)} == {standby.device}
        assert updates(standby) == updates(part) != []


def test_it_is_sent_what_its_shard_is_sent_and_sends_replicas_nothing(dense):
    sent = ends(dense.replica, "Send")
    for part in dense.shards:
        shard, standby = part.device, dense.standbys[part.device]
        assert REPLICA in {destination for *_, destination in ends(part, "Send")}
        assert REPLICA not in {destination for *_, destination in ends(standby, "Send")}
        of_shard = {name for name, _, destination in sent if destination == shard}
        of_standby = {name for name, _, destination in sent if destination == BOTH[shard]}
        taken = {name for name, source, _ in ends(standby, "Recv") if source == REPLICA}
        assert of_shard == of_standby == taken != set()


def test_what_workers_of_a_node_combine_they_combine_for_the_standby_too(dense):
    by_shard = {key: kind for key, kind in dense.replica.reductions.items() if EdgeKey.parse(key).destination in BOTH}
    others = {key: kind for key, kind in dense.replica.reductions.items() if key not in by_shard}
    twins = {
        str(edge._replace(destination=BOTH[edge.destination])): kind
        for key, kind in by_shard.items()
        for edge in [EdgeKey.parse(key)]
    }
    assert others == twins != {}


def two_shards_of_which_one_waits_for_the_other(x):
    v, w = variable(0, name="v"), variable(1, name="w")
    return state_ops.assign(v, state_ops.assign_add(w, tf.reduce_sum(x, 0)) * 2).op


@pytest.mark.parametrize("standbys", [BOTH, {SHARDS[0]: STANDBYS[0]}, {SHARDS[1]: STANDBYS[1]}])
def test_what_a_shard_sends_to_another_comes_from_its_standby_too_by_the_same_keys(x, standbys):
    train = two_shards_of_which_one_waits_for_the_other(x)
    step = compiled([tf.reduce_sum(x)], [train], [x], standbys)
    without = compiled([tf.reduce_sum(x)], [train], [x], {})
    between = {edge for part in without.shards for edge in ends(part, "Send") if edge[2] in SHARDS}
    assert between != set()
    for part in step.shards:
        standby = step.standbys.get(part.device)
        own = {edge for edge in between if edge[1] == part.device}
        expected = own | {(*edge[:2], standbys[edge[2]]) for edge in own if edge[2] in standbys}
        sent = {edge for edge in ends(part, "Send") if edge[2] in {*SHARDS, *STANDBYS}}
        assert sent == expected
        assert standby is None or ends(standby, "Send") == expected
        assert part.also_from == standbys and (standby is None or standby.also_from == standbys)


def effects_before_contributions(part):
    """Operations that change something and wait for nothing that replicas send."""
    changing = [op for op in ops_of(part) if op.type.startswith(("Apply", "Assign"))]
    return [op.name for op in changing if not any(each.type == "Recv" for each in reachable_backward([op]))]


def test_nothing_takes_effect_before_all_replicas_have_sent_what_they_send(x):
    v, count = variable(0, name="v"), variable(0, name="count")
    train = tf.group(state_ops.assign_add(v, tf.reduce_sum(x, 0)), state_ops.assign_add(count, tf.ones(4)))
    without = compiled([tf.reduce_sum(x)], [train], [x], {})
    assert effects_before_contributions(without.shards[0]) != []
    step = compiled([tf.reduce_sum(x)], [train], [x])
    (part,) = step.shards
    assert effects_before_contributions(part) == effects_before_contributions(step.standbys[part.device]) == []
    assert not any(op.type == "Recv" for send in ops_of(part, "Send") for op in reachable_backward([send]))


def test_both_draw_the_same_random_numbers(x):
    v = variable(0, name="v")
    with tf.device(SHARDS[0]):
        drawn = tf.cond(tf.reduce_sum(v) > 0, lambda: tf.random_uniform([4]), lambda: tf.zeros([4]))
        noise, seeded = tf.random_normal([4], name="noise"), tf.random_normal([4], seed=3, name="seeded")
    train = state_ops.assign_add(v, tf.reduce_sum(x, 0) + noise + seeded + drawn).op
    step = compiled([tf.reduce_sum(x)], [train], [x])
    (part,) = step.shards
    standby = step.standbys[part.device]

    def seeds(part):
        return [(op.attr("seed"), op.attr("seed2")) for op in ops_of(part) if op.type.startswith("Random")]

    assert seeds(part) == seeds(standby)
    assert len(seeds(part)) == 3 and (0, 0) not in seeds(part)
    assert len(set(seeds(part))) == 3


def test_without_standbys_nothing_is_doubled(x):
    v = variable(0, name="v")
    loss = tf.reduce_mean(tf.square(x * v))
    step = compiled([loss], [minimize(loss)], [x], {})
    assert step.standbys == {}
    assert {destination for *_, destination in ends(step.replica, "Send")} == {SHARDS[0]}
