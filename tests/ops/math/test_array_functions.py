"""Functions of arrays that are made of several operations, and rounding to few bits."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run

X = np.random.default_rng(0).normal(0, 4, (5, 3)).astype(np.float32)


# -- counting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [X, X.astype(np.int32), X.astype(np.float64)], ids=str)
def test_histogram(values):
    counts, edges = np.histogram(np.clip(values, -3.0, 2.999), 7, (-3, 3))
    np.testing.assert_array_equal(run(tf.histogram_fixed_width(values, [-3, 3], 7)), counts)
    bins = run(tf.histogram_fixed_width_bins(values, [-3, 3], 7))
    assert bins.shape == values.shape and bins.dtype == np.int32
    np.testing.assert_array_equal(bins, np.clip(np.digitize(values, edges) - 1, 0, 6))


def test_repeat():
    for repeats, axis in ((2, None), (3, 0), ([1, 0, 2], 1), ([2, 1, 0, 3, 1], 0), (0, 1)):
        np.testing.assert_array_equal(run(tf.repeat(X, repeats, axis)), np.repeat(X, repeats, axis))
    x = tf.constant(X)
    (d_x,) = tf.gradients(tf.repeat(x, [1, 0, 2], 1), x)
    np.testing.assert_array_equal(run(tf.convert_to_tensor(d_x)), np.broadcast_to([1, 0, 2], X.shape))


# -- rounding to few bits ------------------------------------------------------------------------------


def rounded(x, low, high, bits=8, narrow=False):
    first, last = int(narrow), 2**bits - 1
    step = (high - low) / (last - first)
    zero = min(max(np.floor(first - low / step + 0.5), first), last)
    low, high = (first - zero) * step, (last - zero) * step
    return np.floor((np.clip(x, low, high) - low) / step + 0.5) * step + low, low, high


@pytest.mark.parametrize(("low", "high"), [(-6, 6), (-1.3, 4.1), (0.5, 3), (-3, -1)])
@pytest.mark.parametrize(("bits", "narrow"), [(8, False), (4, True), (2, False)])
def test_fake_quantization(low, high, bits, narrow):
    expected, low_used, high_used = rounded(X, low, high, bits, narrow)
    is_inside = (low_used <= X) & (high_used >= X)
    x, weights = tf.constant(X), np.arange(15, dtype=np.float32).reshape(5, 3) - 7
    by_args = tf.fake_quant_with_min_max_args(x, low, high, bits, narrow)
    (d_x,) = tf.gradients(by_args, x, weights)
    np.testing.assert_allclose(run(by_args), expected, atol=1e-5)
    np.testing.assert_array_equal(run(d_x), weights * is_inside)
    bounds = tf.constant(float(low)), tf.constant(float(high))
    by_vars = tf.fake_quant_with_min_max_vars(x, *bounds, bits, narrow)
    found = run(tf.gradients(by_vars, [x, *bounds], weights))
    np.testing.assert_allclose(run(by_vars), expected, atol=1e-5)
    np.testing.assert_array_equal(found[0], weights * is_inside)
    np.testing.assert_allclose(found[1:], [(weights * (low_used > X)).sum(), (weights * (high_used < X)).sum()])
    again = tf.fake_quant_with_min_max_args_gradient(weights, x, low, high, bits, narrow)
    np.testing.assert_array_equal(run(again), weights * is_inside)


def test_fake_quantization_per_channel():
    lows, highs = np.array([-6, -2, -1], np.float32), np.array([6, 1, 3], np.float32)
    columns = [rounded(X[:, i], float(lows[i]), float(highs[i])) for i in range(3)]
    x, low, high = tf.constant(X), tf.constant(lows), tf.constant(highs)
    y = tf.fake_quant_with_min_max_vars_per_channel(x, low, high)
    np.testing.assert_allclose(run(y), np.stack([c[0] for c in columns], 1), atol=1e-5)
    d_x, d_low, d_high = run(tf.gradients(y, [x, low, high]))
    below, above = ([c[1] for c in columns] > X), ([c[2] for c in columns] < X)
    np.testing.assert_array_equal(d_x, ~(below | above))
    np.testing.assert_array_equal(d_low, below.sum(0))
    np.testing.assert_array_equal(d_high, above.sum(0))


def test_fake_quantization_checks_its_arguments():
    for arguments in ((1, 1), (-1, 1, 1), (-1, 1, 17)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
            tf.fake_quant_with_min_max_args(X, *arguments)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.fake_quant_with_min_max_vars(X, [1.0, 2.0], 3.0)


# -- moments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [None, 0.5])
@pytest.mark.parametrize("keep", [False, True])
def test_moments_from_sums(shift, keep):
    count, total, squares, used = tf.nn.sufficient_statistics(X, [0], shift, keep)
    mean, variance = tf.nn.normalize_moments(count, total, squares, used)
    np.testing.assert_allclose(run(mean), X.mean(0, keepdims=keep), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(run(variance), X.var(0, keepdims=keep), rtol=1e-4)
    assert run(count) == 5


def test_weighted_moments():
    weights = np.array([[1], [2], [0], [3], [1]], np.float32)
    repeated = np.repeat(X, weights[:, 0].astype(int), axis=0)
    mean, variance = run(tf.nn.weighted_moments(X, [0], weights))
    np.testing.assert_allclose(mean, repeated.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, repeated.var(0), rtol=1e-5)
    assert run(tf.nn.weighted_moments(X, [0, 1], weights, keep_dims=True))[0].shape == (1, 1)


def test_batch_norm_with_global_normalization():
    images = X.reshape(1, 5, 1, 3)
    mean, variance, beta, gamma = (np.array(v, np.float32) for v in ([1, 2, 3], [1, 4, 9], [0, 1, 2], [2, 3, 4]))
    for scaled in (False, True):
        expected = (images - mean) / np.sqrt(variance + 0.1) * (gamma if scaled else 1) + beta
        found = tf.nn.batch_norm_with_global_normalization(images, mean, variance, beta, gamma, 0.1, scaled)
        np.testing.assert_allclose(run(found), expected, rtol=1e-5, atol=1e-5)


def test_losses():
    targets = np.array([0.5, 2, 7], np.float32)
    logs = np.array([0.1, -1, 2], np.float32)
    plain = np.exp(logs) - logs * targets
    np.testing.assert_allclose(run(tf.nn.log_poisson_loss(targets, logs)), plain, rtol=1e-5)
    stirling = targets * np.log(targets) - targets + 0.5 * np.log(2 * np.pi * targets)
    full = run(tf.nn.log_poisson_loss(targets, logs, True))
    np.testing.assert_allclose(full, plain + np.where(targets > 1, stirling, 0), rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
        tf.nn.log_poisson_loss(targets, logs[:2])
    np.testing.assert_allclose(run(tf.log_sigmoid(X)), -np.log1p(np.exp(-X.astype(float))), rtol=1e-5)


def test_clipped_rows_stay_rows():
    rows = tf.IndexedSlices(tf.constant([[-3.0, 4.0], [0.0, -1.0]]), tf.constant([2, 6]), tf.constant([10, 2]))
    clipped = tf.clip_by_value(rows, 1.0, 2.0)
    assert isinstance(clipped, tf.IndexedSlices) and clipped.indices is rows.indices
    assert run(clipped.values).tolist() == [[1.0, 2.0], [1.0, 1.0]]
