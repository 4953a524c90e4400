"""With a seed, random numbers are the same in one process and on a cluster, and from run to run."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.local_ray import start_local_ray


@pytest.fixture(scope="module")
def cluster(_ray_of_the_session):
    start_local_ray(_ray_of_the_session)
    with tf.Cluster({"ps": tf.JobSpec(1, num_cpus=0.1), "worker": tf.JobSpec(2, num_cpus=0.1)}) as cluster:
        yield cluster


def build(devices):
    """Everything that draws numbers, spread over three devices if there are that many."""
    tf.set_random_seed(11)
    fetches = {}
    with tf.device(devices[0]):
        fetches["normal"] = tf.random_normal([5])
        fetches["large"] = tf.reduce_sum(tf.random_uniform([400, 1000]), 1)
        weights = tf.get_variable("weights", [4, 3])
        scaled = tf.get_variable("scaled", [6, 3], initializer=tf.variance_scaling_initializer(seed=5))
        fetches["weights"], fetches["scaled"] = weights.value(), scaled.value()
    with tf.device(devices[1]):
        fetches["truncated"] = tf.truncated_normal([7], seed=3)
        fetches["shuffled"] = tf.random_shuffle(tf.range(20))
        fetches["dropped"] = tf.nn.dropout(tf.ones([12]), rate=0.5)
        fetches["multinomial"] = tf.multinomial(tf.zeros([2, 4]), 6)
        fetches["gamma"] = tf.random_gamma([4], 2.0)
        fetches["poisson"] = tf.random_poisson(3.0, [4])
    with tf.device(devices[2]):
        fetches["loop"] = tf.while_loop(
            lambda i, x: i < 4, lambda i, x: (i + 1, x + tf.random_normal([2])), [0, tf.zeros(2)]
        )[1]
        fetches["crop"] = tf.random_crop(tf.reshape(tf.range(3000), [50, 60]), [2, 3])
        dataset = (
            tf.data.Dataset.range(50).shuffle(50).map(lambda x: x + tf.random_uniform([], 0, 5, tf.int64)).batch(8)
        )
        fetches["dataset"] = dataset.make_one_shot_iterator().get_next()
    return fetches


def three_steps(target, devices):
    with tf.Graph().as_default(), tf.Session(target) as session:
        fetches = build(devices)
        session.run(tf.global_variables_initializer())
        return [session.run(fetches) for _ in range(3)]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        for name in b:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_seed_fixes_every_number_from_run_to_run():
    first = three_steps("", [None] * 3)
    assert_equal(three_steps("", [None] * 3), first)
    steps_differ = {name for name in first[0] if not np.array_equal(first[0][name], first[2][name])}
    assert steps_differ == set(first[0]) - {"weights", "scaled"}


@pytest.mark.ray
def test_a_cluster_draws_the_numbers_of_one_process(cluster):
    expected = three_steps("", [None] * 3)
    assert_equal(three_steps(cluster, ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]), expected)
