"""The gradient of relu is computed with that of the bias before it."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import run_with_types as run

BOUNDS = {tf.nn.relu: np.inf, tf.nn.relu6: 6}
SINGLE = {"ReluGrad", "Relu6Grad", "BiasAddGrad"}


def array(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape, scale=4).astype(np.float32)


def gated(d, images, bias, bound):
    """The gradients of images and bias, in double precision."""
    sums = images.astype(np.float64) + bias
    through = d * ((sums > 0) & (sums < bound))
    return through, through.sum(axis=tuple(range(through.ndim - 1)))


def pooled_gradients(x, activation):
    """The gradients of pooled outputs: what comes before relu's is not computed element by element."""
    shape = x.shape.as_list()
    bias = tf.constant(array(1, shape[-1]))
    outputs = activation(tf.nn.bias_add(x, bias))
    pooled = tf.nn.max_pool(outputs, [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    return tf.gradients(pooled, [x, bias], array(2, *shape))


@pytest.mark.parametrize("activation", list(BOUNDS))
@pytest.mark.parametrize("shape", [(2, 3, 3, 4), (16, 8, 8, 16), (8, 9, 9, 70), (4, 7, 7, 256), (2, 5, 5, 1050)])
def test_one_operation_computes_what_two_do(shape, activation):
    x = tf.placeholder(tf.float32, shape)
    fed = array(3, *shape)
    values, types = run(pooled_gradients(x, activation), {x: fed})
    assert "_GatedBiasAddGrad" in types and not SINGLE & set(types)
    through, total = gated(array(2, *shape), fed, array(1, shape[-1]), BOUNDS[activation])
    np.testing.assert_array_equal(values[0], through.astype(np.float32))
    np.testing.assert_allclose(values[1], total, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("channels", [3, 16, 48, 96])
def test_gradients_that_are_part_of_others(channels):
    """Those of a branch that is joined with others: what goes in is a slice of the joined gradient."""
    shape = (8, 14, 14, channels)
    x, bias, d = tf.placeholder(tf.float32, shape), array(1, channels), array(2, *shape[:3], channels + 40)
    fed, biases = array(3, *shape), tf.constant(bias)
    branch = tf.nn.relu(tf.nn.bias_add(x, biases))
    joined = tf.concat([tf.zeros([*shape[:3], 24]), branch, tf.zeros([*shape[:3], 16])], 3)
    values, types = run(tf.gradients(joined, [x, biases], d), {x: fed})
    assert "_GatedBiasAddGrad" in types
    through, total = gated(d[..., 24:-16], fed, bias, np.inf)
    np.testing.assert_array_equal(values[0], through.astype(np.float32))
    np.testing.assert_allclose(values[1], total, rtol=1e-5, atol=1e-4)


def test_sums_have_the_same_bits_wherever_the_gradients_lie():
    shape = (8, 14, 14, 48)
    d, y = array(1, *shape), array(2, *shape)
    wide = np.zeros((8, 14, 14, 100), np.float32)
    wide[..., 30:78] = d
    taken, joined = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, wide.shape)
    part = tf.split(joined, [30, 48, 22], 3)[1]
    x, bias = tf.constant(y), tf.zeros([48])
    outputs = tf.nn.relu(tf.nn.bias_add(x, bias))
    found = [run(tf.gradients(outputs, [bias], each), {taken: d, joined: wide})[0] for each in (taken, part)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("case", ["elementwise before", "float64", "NCHW", "fetched"])
def test_other_cases(case):
    """What is computed element by element with what comes before it stays so, and other layouts have no such form."""
    dtype = np.float64 if case == "float64" else np.float32
    layout = "NCHW" if case == "NCHW" else "NHWC"
    x, bias = tf.placeholder(dtype, [8, 4, 16, 16]), tf.constant(array(1, 4 if layout == "NCHW" else 16), dtype)
    outputs = tf.nn.relu(tf.nn.bias_add(x, bias, layout))
    result = outputs * 3.0 if case == "elementwise before" else tf.transpose(outputs, [1, 0, 2, 3])
    d = array(2, *result.shape.as_list()).astype(dtype)
    fetches = tf.gradients(result, [x, bias], d)
    fed = array(3, 8, 4, 16, 16).astype(dtype)
    values, types = run(fetches, {x: fed})
    assert ("_GatedBiasAddGrad" in types) == (case == "fetched")
    back = 3 * d if case == "elementwise before" else d.transpose(1, 0, 2, 3)
    per_channel = array(1, 4)[:, None, None] if layout == "NCHW" else array(1, 16)
    through = back * (fed + per_channel > 0)
    np.testing.assert_allclose(values[0], through, rtol=1e-6)
    axes = (0, 2, 3) if layout == "NCHW" else (0, 1, 2)
    np.testing.assert_allclose(values[1], through.sum(axes), rtol=1e-4, atol=1e-4)
