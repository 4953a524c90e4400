"""What a process may hold of its node's object store."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import wait_for
from tests.support.shard_runs import MODELS
from tests.support.training_models import scaling
from tfray.actors.links.store_quota import StoreQuota
from tfray.errors import ResourceExhaustedError


def test_what_is_held_counts_until_it_is_gone():
    quota = StoreQuota(100)
    first, second = quota.hold(60, "a:0"), quota.hold(40, "b:0")
    assert quota.held_bytes == 100
    with pytest.raises(
        ResourceExhaustedError, match=r"cannot send c:0 \(1 bytes\): .* holds 100 bytes .* may hold 100"
    ):
        quota.hold(1, "c:0")
    del first
    third = quota.hold(60, "c:0")
    assert quota.held_bytes == 100
    del second, third
    assert quota.held_bytes == 0


def test_what_others_send_counts_and_is_not_refused():
    quota = StoreQuota(100)
    received = quota.hold(500)
    assert quota.held_bytes == 500 and not quota.has_room_for(0)
    del received
    assert quota.has_room_for(100) and not quota.has_room_for(101)


@pytest.fixture
def cluster(ray_local):
    spec = tf.JobSpec(1, num_cpus=0.1, store_bytes=4_500_000)
    with tf.Cluster({"ps": spec, "worker": spec}) as cluster:
        yield cluster


def doubled(size):
    """A tensor of so many bytes that goes from the parameter server to the worker."""
    with tf.device("/job:ps"):
        sent = tf.fill([size // 4], tf.placeholder_with_default(tf.constant(1.0), []))
    with tf.device("/job:worker"):
        return tf.reduce_sum(sent * 2)


def fits(session, fetches):
    try:
        session.run(fetches)
    except ResourceExhaustedError:
        return False
    return True


@pytest.mark.ray
def test_a_tensor_that_does_not_fit_is_one_error_and_those_that_do_are_sent(cluster):
    large, small, others = doubled(5_000_000), doubled(2_000_000), [doubled(1_200_000), doubled(1_000_000)]
    with tf.Session(cluster) as session:
        assert session.run(small) == 1_000_000
        with pytest.raises(ResourceExhaustedError, match=r"cannot send Fill:0 \(5,000,000 bytes\).*may hold 4,500,000"):
            session.run(large)
        assert [session.run(small) for _ in range(20)] == [1_000_000] * 20
        with pytest.raises(ResourceExhaustedError, match="cannot send"):
            session.run([small, *others, doubled(1_500_000)])
        wait_for(lambda: fits(session, others))  # what was kept for the first makes room, when it has been returned
        assert session.run(others) == [600_000, 500_000]


@pytest.mark.ray
def test_a_run_whose_gradients_do_not_fit_ends_with_that_error(ray_local):
    _, data = MODELS["dense"]

    def model_fn(features, labels):
        wide = tf.get_variable("wide", [features.shape[1], 200_000])
        loss = tf.reduce_mean(tf.square(tf.matmul(features, wide)))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))

    inputs = tf.train.array_input(*data(), batch_size=8)
    run = tf.train.RunConfig(steps=3, logdir=None)
    with pytest.raises(ResourceExhaustedError, match=r"cannot send .*store_bytes of tf.JobSpec"):
        tf.train.Trainer(model_fn, inputs, scaling(1, 1, store_bytes=1_000_000), run).fit()
    result = tf.train.Trainer(model_fn, inputs, scaling(1, 1, store_bytes=100_000_000), run).fit()
    assert np.isfinite(result.history[-1].metrics["loss"])
