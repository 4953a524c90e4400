"""Batch normalization by compiled kernels: against NumPy's in double precision, for channels of every number."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.kernels import compiling, cpu_threads
from tfray.ops.nn import fast_normalization

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")

SHAPES = [
    (2, 64, 3, 64),
    (2, 57, 31, 12),
    (3, 37, 53, 3),
    (5, 1, 7, 577),
    (1, 1, 1, 20_000),
    (16, 16, 65, 1),
    (2, 9, 9, 144),
]


def normalized(x, dtype=np.float32, is_training=True):
    """Outputs, mean and variance, and the gradients of images, scale and offset."""
    random = np.random.default_rng(1)
    channels = x.shape[-1]
    scale, offset, mean, variance = (random.uniform(0.5, 2, channels).astype(np.float32) for _ in range(4))
    d_y = random.normal(size=x.shape).astype(np.float32)
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        feeds = {tf.placeholder(dtype, value.shape): value.astype(dtype) for value in (x, scale, offset, d_y)}
        *tensors, d_output = feeds
        statistics = {} if is_training else {"mean": mean.astype(dtype), "variance": variance.astype(dtype)}
        outputs = tf.nn.fused_batch_norm(*tensors, is_training=is_training, **statistics)
        return session.run([*outputs, *tf.gradients(outputs[0], tensors, d_output)], feeds)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_double_precision(shape, is_training):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32) * 3 + 5
    assert fast_normalization.can_normalize(np, "NHWC", x)
    pixels = x.size // shape[-1]
    for found, wanted in zip(
        normalized(x, is_training=is_training), normalized(x, np.float64, is_training), strict=True
    ):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-6 * max(pixels**0.5, 20))


def test_a_large_mean_leaves_the_variance_precise():
    x = np.random.default_rng(0).normal(size=(8, 32, 32, 20)) + 1e4
    x = x.astype(np.float32)
    _, mean, variance, *_ = normalized(x)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 1, 2), dtype=np.float64), rtol=3e-7)
    np.testing.assert_allclose(variance, x.var(axis=(0, 1, 2), dtype=np.float64) * 8192 / 8191, rtol=5e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_channel(value):
    x = np.random.default_rng(0).normal(size=(2, 32, 32, 20)).astype(np.float32)
    x[1, 3, 4, 17] = value
    y, mean, variance, d_x, d_scale, _ = normalized(x)
    assert mean[17] == pytest.approx(value, nan_ok=True)
    others = np.arange(20) != 17
    for array in (y, variance, d_x, d_scale):
        assert np.isnan(array[..., 17]).all()
        assert np.isfinite(array[..., others]).all()


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    x = np.random.default_rng(0).normal(size=(16, 40, 40, 48)).astype(np.float32)
    several = normalized(x)
    monkeypatch.setattr(cpu_threads, "thread_count", lambda: 1)
    monkeypatch.setattr(compiling, "free_helpers", lambda: None)
    for one, other in zip(several, normalized(x), strict=True):
        np.testing.assert_array_equal(one, other)
