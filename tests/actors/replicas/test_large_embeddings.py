"""Tables over several parameter servers: what they compute, what travels, and what a worker never holds."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.placement.cost import CostModel
from tfray.placement.pipeline import compile_step
from tfray.placement.step_time import instances_of, traffic_of

ROWS, DIM = 23, 4
STEPS = 6
SHARDS = 3
SERVERS = [f"/job:ps/task:{i}" for i in range(SHARDS)]
WORKER = "/job:worker/task:0"

OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.3, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.5),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "lazy adam": lambda: tf.contrib.opt.LazyAdamOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.01),
}


def initial():
    return np.random.default_rng(0).normal(size=(ROWS, DIM)).astype(np.float32)


def batches():
    random = np.random.default_rng(1)
    return [random.integers(0, ROWS, (3, 5)) for _ in range(STEPS)]


def cut(table, strategy):
    return np.array_split(table, SHARDS) if strategy == "div" else [table[i::SHARDS] for i in range(SHARDS)]


def joined(parts, strategy):
    if strategy == "div":
        return np.concatenate(parts)
    whole = np.empty((ROWS, DIM), np.float32)
    for number, part in enumerate(parts):
        whole[number::SHARDS] = part
    return whole


def training(shards, worker, strategy, optimizer):
    """Ids to feed, and the operation that trains the table on them."""
    with tf.device(worker):
        ids = tf.placeholder(tf.int64, [None, 5])
        rows = tf.nn.embedding_lookup(shards, ids, partition_strategy=strategy)
        target = tf.cast(tf.expand_dims(ids, -1), tf.float32) / ROWS
        loss = tf.reduce_sum(tf.square(rows - target))
    return ids, optimizer().minimize(loss)


def trained(target, servers, worker, strategy, optimizer, config=None):
    """The table after a few steps."""
    with tf.Graph().as_default():
        shards = []
        for number, (device, part) in enumerate(zip(servers, cut(initial(), strategy), strict=True)):
            with tf.device(device):
                shards.append(tf.Variable(part, name=f"table_{number}"))
        ids, step = training(shards, worker, strategy, optimizer)
        for variable in tf.global_variables():
            if "table" in variable.op.name:  # a slot lives with its variable, and so does its update
                assert any(
                    f"table_{number}" in variable.op.name and device in variable.device
                    for number, device in enumerate(servers)
                )
        with tf.Session(target, config=config) as session:
            session.run(tf.global_variables_initializer())
            for batch in batches():
                session.run(step, {ids: batch})
            return joined(session.run(shards), strategy)


def trained_whole(optimizer):
    """The same with the table in one piece, in one process."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(initial())
        ids, step = training(table, None, "mod", optimizer)
        session.run(tf.global_variables_initializer())
        for batch in batches():
            session.run(step, {ids: batch})
        return session.run(table)


def trained_densely(optimizer):
    """The same, with gradients of the whole table."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(initial())
        ids = tf.placeholder(tf.int64, [None, 5])
        rows = tf.tensordot(tf.one_hot(ids, ROWS), table, 1)
        target = tf.cast(tf.expand_dims(ids, -1), tf.float32) / ROWS
        step = optimizer().minimize(tf.reduce_sum(tf.square(rows - target)))
        session.run(tf.global_variables_initializer())
        for batch in batches():
            session.run(step, {ids: batch})
        return session.run(table)


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_shards_compute_what_one_table_computes(optimizer, strategy):
    config = tf.ConfigProto(device_count={"CPU": SHARDS + 1})
    servers = [f"/device:CPU:{i}" for i in range(SHARDS)]
    found = trained("", servers, f"/device:CPU:{SHARDS}", strategy, OPTIMIZERS[optimizer], config)
    np.testing.assert_allclose(found, trained_whole(OPTIMIZERS[optimizer]), rtol=2e-5, atol=1e-6)
    if optimizer in ("sgd", "adagrad", "adam"):  # the others do nothing to rows that a batch does not use
        np.testing.assert_allclose(found, trained_densely(OPTIMIZERS[optimizer]), rtol=2e-5, atol=1e-6)


@pytest.mark.ray
def test_shards_on_actors_compute_what_one_table_computes(ray_local):
    jobs = {"ps": tf.JobSpec(SHARDS, num_cpus=0.1), "worker": tf.JobSpec(1, num_cpus=0.1)}
    with tf.Cluster(jobs) as cluster:
        for number, (name, optimizer) in enumerate(OPTIMIZERS.items()):
            strategy = "mod" if number % 2 else "div"
            with tf.variable_scope(name.replace(" ", "_")):
                found = trained(cluster, SERVERS, WORKER, strategy, optimizer)
            np.testing.assert_allclose(found, trained_whole(optimizer), rtol=2e-5, atol=1e-6, err_msg=name)


# -- what travels --------------------------------------------------------------------------------------


def moved_bytes(fetched, targets, fed=()):
    """Bytes between devices in a step."""
    devices = [f"{device}/device:CPU:0" for device in (WORKER, *SERVERS)]
    partitions = compile_step(fetched, targets, list(fed), devices).partitions
    # What a shape leaves open is the share of a shard: at most all of the ids.
    traffic = traffic_of(instances_of(partitions), CostModel(unknown_size=64))
    return sum(entry.size_bytes for entry in traffic.values())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_only_rows_that_are_used_travel(optimizer):
    dim, ids = 16, tf.placeholder(tf.int64, [64])
    with tf.device(tf.train.replica_device_setter(SHARDS)):
        table = tf.get_variable("table", [3_000_000, dim], partitioner=tf.fixed_size_partitioner(SHARDS))
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids, partition_strategy="div")))
        step = OPTIMIZERS[optimizer]().minimize(loss)
    rows = SHARDS * 64 * dim * 4  # as if every shard had all of them
    ids_bytes = SHARDS * 64 * 16
    assert {part.device for part in table} == {f"/job:ps/task:{i}" for i in range(SHARDS)}
    assert moved_bytes([loss], [step], [ids]) < 2 * rows + ids_bytes + 1000
    # Tables and slots come into being where they live.
    assert moved_bytes([], [tf.global_variables_initializer()]) < 1000


@pytest.mark.parametrize("loss", [tf.nn.sampled_softmax_loss, tf.nn.nce_loss])
def test_shards_that_multiply_their_rows_send_logits(loss):
    classes, dim, batch, sampled = 100_000, 256, 8, 63

    def bytes_of(at_shards):
        with tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(SHARDS)):
                cutting = tf.fixed_size_partitioner(SHARDS)
                weights = tf.get_variable("weights", [classes, dim], partitioner=cutting)
                biases = tf.get_variable("biases", [classes], partitioner=cutting)
                inputs = tf.get_variable("inputs", [batch, dim])
                labels = tf.placeholder(tf.int64, [batch, 1])
                total = tf.reduce_mean(
                    loss(
                        weights, biases, labels, inputs, sampled, classes, partition_strategy="div", at_shards=at_shards
                    )
                )
                step = tf.train.AdagradOptimizer(0.1).minimize(total, var_list=list(weights) + list(biases))
            return moved_bytes([total], [step], [labels])

    rows, logits = bytes_of(False), bytes_of(True)
    assert rows > 2 * SHARDS * 64 * dim * 4
    assert logits < rows / 4


# -- what a worker never holds ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.ray
def test_a_worker_never_holds_the_table(ray_local):
    psutil = pytest.importorskip("psutil")
    rows, dim, count = 600_000, 256, 2  # 614 MB
    with tf.device(tf.train.replica_device_setter(count)):
        cutting = tf.fixed_size_partitioner(count)
        table = tf.get_variable("table", [rows, dim], partitioner=cutting, initializer=tf.ones_initializer())
        ids = tf.placeholder(tf.int64, [64])
        loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, ids, partition_strategy="div")))
        step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        initializer = tf.global_variables_initializer()
    jobs = {"ps": tf.JobSpec(count, num_cpus=0.1), "worker": tf.JobSpec(1, num_cpus=0.1)}
    with tf.Cluster(jobs) as cluster, tf.Session(cluster) as session:

        def resident(device):
            pid = ray_local.get(cluster.actor(f"{device}/device:CPU:0").ready.remote()).pid
            return psutil.Process(pid).memory_info().rss

        before = resident(WORKER)
        session.run(initializer)
        random = np.random.default_rng(0)
        losses = [session.run([loss, step], {ids: random.integers(0, rows, 64)})[0] for _ in range(20)]
        assert losses[0] == pytest.approx(1.0)
        assert resident(WORKER) - before < 60e6
        assert min(resident(server) for server in SERVERS[:count]) > 0.4 * rows * dim * 4
