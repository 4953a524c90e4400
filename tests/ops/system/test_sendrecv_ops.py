"""Tensors that cross from one device to another within a local session: Send and Recv."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf


def run_across(value, dtype):
    """`value`, computed on one device, as seen from another."""
    source = tf.placeholder(dtype, shape=None)
    with tf.device("/device:CPU:0"):
        here = tf.identity(source)
    with tf.device("/device:CPU:1"):
        there = tf.identity(here)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        return session.run(there, {source: value})


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.float64(2.5),
        np.zeros((0, 3), np.int32),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([b"a", b"bc"], object),
    ],
    ids=lambda value: str(np.asarray(value).dtype),
)
def test_value_arrives_unchanged(value):
    arrived = run_across(value, tf.as_dtype(np.asarray(value).dtype))
    assert np.asarray(arrived).dtype == np.asarray(value).dtype
    np.testing.assert_array_equal(arrived, value)


def test_gradient_flows_back_across_devices():
    with tf.device("/device:CPU:0"):
        x = tf.constant([1.0, 2.0])
        y = tf.square(x)
    with tf.device("/device:CPU:1"):
        z = tf.reduce_sum(y * y)
    (d_x,) = tf.gradients(z, x, colocate_gradients_with_ops=True)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run(d_x).tolist() == [4.0, 32.0]


def test_one_tensor_serves_every_consumer_there():
    with tf.device("/device:CPU:0"):
        x = tf.constant(3.0) + tf.constant(4.0)
    with tf.device("/device:CPU:1"):
        doubled, squared = x + x, x * x
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        for _ in range(3):
            assert session.run([doubled, squared]) == [14.0, 49.0]
