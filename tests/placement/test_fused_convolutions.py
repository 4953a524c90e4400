"""A convolution, its bias and its relu run as one operation, which computes what they compute one after another."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import default_device, interpret
from tests.support.interpreter import run_with_types as run


def array(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def convolved(layout="NHWC", size=None):
    images = tf.placeholder(tf.float32, [size, 9, 9, 4] if layout == "NHWC" else [size, 4, 9, 9])
    return images, tf.nn.conv2d(images, array(1, 3, 3, 4, 16), 1, "SAME", data_format=layout)


def assert_close(found, wanted):
    """Equal but for rounding: on some CPUs the sum of a convolution begins with the bias, on others it ends with it."""
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("activation", [tf.nn.relu, tf.identity, tf.tanh], ids=["relu", "none", "tanh"])
@pytest.mark.parametrize(
    ("add", "layout"),
    [
        (lambda x, bias: tf.nn.bias_add(x, bias), "NHWC"),
        (lambda x, bias: x + bias, "NHWC"),
        (lambda x, bias: tf.nn.bias_add(x, bias, "NCHW"), "NCHW"),
    ],
    ids=["bias_add", "sum", "NCHW"],
)
def test_one_operation_computes_the_same(add, layout, activation):
    images, features = convolved(layout)
    result = activation(add(features, array(2, 16)))
    fed = {images: array(3, *(5 if size is None else size for size in images.shape.as_list()))}
    value, types = run(result, fed)
    assert_close(value, interpret(result, fed, default_device()))
    assert "_FusedConv2D" in types
    assert not {"Conv2D", "BiasAdd", "Add", "Relu"} & set(types)


def test_gradients_are_those_of_the_single_operations():
    images, features = convolved()
    bias = tf.constant(array(2, 16))
    result = tf.nn.relu(tf.nn.bias_add(features, bias))
    gradients = tf.gradients(tf.square(result), [images, bias])
    fed = {images: array(3, 5, 9, 9, 4)}
    values, types = run(gradients, fed)
    assert "_FusedConv2D" in types
    for found, wanted in zip(values, interpret(gradients, fed, default_device()), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("used", ["convolution", "sum"])
def test_what_others_need_too_is_computed_on_its_own(used):
    images, features = convolved()
    biased = tf.nn.bias_add(features, array(2, 16))
    other = {"convolution": features, "sum": biased}[used]
    fetches = [tf.nn.relu(biased), tf.reduce_max(other, 3)]
    fed = {images: array(3, 5, 9, 9, 4)}
    values, types = run(fetches, fed)
    assert {"convolution": "Conv2D", "sum": "Relu"}[used] in types
    for found, wanted in zip(values, interpret(fetches, fed, default_device()), strict=True):
        assert_close(found, wanted)


def test_a_bias_that_is_no_row_is_added_on_its_own():
    images, features = convolved()
    value, types = run(features + array(2, 9, 1, 1), {images: array(3, 5, 9, 9, 4)})
    assert value.shape == (5, 9, 9, 16)
    assert "_FusedConv2D" not in types


def test_what_is_no_number_stays_none():
    """NaN tells that something went wrong: relu does not hide it."""
    images, features = convolved(size=3)
    fed = array(3, 3, 9, 9, 4)
    fed[1, 4, 4, 0] = np.nan
    value, _ = run(tf.nn.relu(tf.nn.bias_add(features, array(2, 16))), {images: fed})
    assert np.isnan(value[1, 3:6, 3:6]).all()
    assert not np.isnan(value[[0, 2]]).any()
