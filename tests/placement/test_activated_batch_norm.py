"""Batch normalization and the relu after it run as one operation, and so do their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import default_device, interpret
from tests.support.interpreter import run_with_types as run

LARGE, SMALL = [8, 16, 16, 33], [2, 3, 3, 4]
"""Images for compiled kernels, with channels that fill no block of theirs; and for NumPy."""


def array(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def normalized(shape, layout="NHWC", is_training=True, dtype=tf.float32):
    """Images, what is trained beside them, and the normalized images, many of them above 6."""
    channels = shape[3] if layout == "NHWC" else shape[1]
    images = tf.placeholder(dtype, shape)
    scale, offset = tf.constant(5 * array(1, channels)), tf.constant(array(2, channels))
    statistics = {} if is_training else {"mean": array(3, channels), "variance": 1 + array(4, channels) ** 2}
    outputs = tf.nn.fused_batch_norm(images, scale, offset, data_format=layout, is_training=is_training, **statistics)
    return images, [images, scale, offset], outputs


def assert_close(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-4 * (1 + np.abs(theirs).max()))


FUSED = {"_FusedBatchNormEx", "_FusedBatchNormGradEx"}
SINGLE = {"FusedBatchNorm", "FusedBatchNormGrad", "Relu", "ReluGrad", "Relu6", "Relu6Grad"}


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.relu6])
@pytest.mark.parametrize(("shape", "layout"), [(LARGE, "NHWC"), (SMALL, "NHWC"), ([2, 4, 9, 9], "NCHW")])
def test_two_operations_compute_what_four_do(shape, layout, activation, is_training):
    images, trained, (y, mean, variance) = normalized(shape, layout, is_training)
    result = activation(y)
    fetches = [result, mean, variance, *tf.gradients(result * array(5, *shape), trained)]
    fed = {images: array(6, *shape)}
    values, types = run(fetches, fed)
    assert set(types) >= FUSED and not SINGLE & set(types)
    assert (values[0] == 0).any() and (values[0] == 6).any() == (activation is tf.nn.relu6)
    assert_close(values, interpret(fetches, fed, default_device()))


def test_the_gradients_of_sixteen_bit_images():
    images, trained, (y, _, _) = normalized(LARGE, dtype=tf.float16)
    result = tf.nn.relu(y)
    fetches = [result, *tf.gradients(result, trained)]
    fed = {images: array(6, *LARGE)}
    values, types = run(fetches, fed)
    assert set(types) >= FUSED
    for found, wanted in zip(values, interpret(fetches, fed, default_device()), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("used", ["normalized", "gradient", "both relus", "another mode", "control"])
def test_what_others_need_too_is_computed_on_its_own(used):
    images, trained, (y, _, _) = normalized(LARGE)
    result = tf.nn.relu(y)
    fetches = [result]
    if used == "normalized":
        fetches.append(tf.reduce_max(y, 3))
    elif used == "gradient":
        between = tf.gradients(result * array(5, *LARGE), y)[0]
        fetches += [tf.reduce_max(between, 3), *tf.gradients(result, trained)]
    elif used == "both relus":
        fetches.append(tf.nn.relu6(y))
    elif used == "another mode":  # an equal normalization, but for what follows
        fetches.append(tf.nn.relu6(tf.nn.fused_batch_norm(*trained)[0]))
    else:
        with tf.control_dependencies([y]):
            fetches.append(tf.nn.relu(images))
    fed = {images: array(6, *LARGE)}
    values, types = run(fetches, fed)
    assert ("FusedBatchNorm" in types) == (used not in ("gradient", "another mode"))
    assert_close(values, interpret(fetches, fed, default_device()))


def test_what_is_no_number_stays_none():
    """NaN tells that something went wrong: relu does not hide it."""
    images, _, (y, _, _) = normalized(LARGE)
    fed = array(6, *LARGE)
    fed[0, 0, 0, 5] = np.nan
    value, types = run(tf.nn.relu(y), {images: fed})
    assert "_FusedBatchNormEx" in types
    assert np.isnan(value[..., 5]).all() and not np.isnan(np.delete(value, 5, 3)).any()


def test_a_fed_result_is_not_computed():
    images, _, (y, mean, _) = normalized(LARGE)
    fed = {images: array(6, *LARGE), y: array(7, *LARGE)}
    values, _ = run([tf.nn.relu(y), mean], fed)
    np.testing.assert_array_equal(values[0], np.maximum(fed[y], 0))
    np.testing.assert_allclose(values[1], fed[images].mean((0, 1, 2)), atol=1e-5)


def test_a_network_learns_the_same():
    """With layers, moving averages and gradients on the devices of their operations, as programs write it."""

    def losses(**options):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            x = tf.layers.conv2d(tf.constant(array(1, 8, 12, 12, 3)), 16, 3, use_bias=False)
            for _ in range(2):
                x = tf.nn.relu(tf.layers.batch_normalization(tf.layers.conv2d(x, 16, 3, use_bias=False), training=True))
            loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.layers.flatten(x), 1) - 1))
            optimizer = tf.train.GradientDescentOptimizer(1e-4)
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
            config = tf.ConfigProto(graph_options=tf.GraphOptions(**options))
            with tf.Session(config=config) as session:
                session.run(tf.global_variables_initializer())
                return [session.run([loss, train])[0] for _ in range(5)], session.run(tf.moving_average_variables())

    found, averages = losses()
    plain, plain_averages = losses(optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0))
    np.testing.assert_allclose(found, plain, rtol=1e-4)
    assert found[-1] < found[0]
    assert_close(averages, plain_averages)
