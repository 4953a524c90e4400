"""Local response normalization by compiled kernels: against NumPy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.kernels import compiling

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")


def computed(x, radius=5, beta=0.75, dtype=np.float32):
    """The normalized images, and the gradient of the images."""
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        images, d_y = tf.placeholder(dtype, x.shape), tf.placeholder(dtype, x.shape)
        y = tf.nn.lrn(images, radius, 1.5, 0.1, beta)
        d_value = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
        return session.run([y, tf.gradients(y, images, d_y)[0]], {images: x, d_y: d_value})


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("beta", [0.75, 0.5, 1, 0, 0.6, -0.3])
@pytest.mark.parametrize(("channels", "radius"), [(64, 5), (3, 5), (17, 1), (100, 0), (1, 2), (48, 20)])
def test_equals_double_precision(channels, radius, beta):
    x = np.random.default_rng(0).normal(size=(2, 81, 101, channels)).astype(np.float32)
    exact = computed(x, radius, beta, np.float64)
    for found, wanted in zip(computed(x, radius, beta), exact, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=3e-6)


def test_what_is_not_finite_reaches_its_neighbours_only():
    x = np.random.default_rng(0).normal(size=(1, 20, 20, 50)).astype(np.float32)
    plain = computed(x, 2)
    x[0, 3, 4, 20], x[0, 5, 5, 20] = np.nan, np.inf
    y, d_x = computed(x, 2)
    assert np.isnan(y[0, 3, 4, 18:23]).all()
    assert np.isnan(y[0, 5, 5, 20])
    np.testing.assert_array_equal(y[0, 5, 5, [18, 19, 21, 22]], 0)
    for found, reach, before in ((y, 2, plain[0]), (d_x, 4, plain[1])):
        is_far = np.ones(x.shape, bool)
        is_far[0, [3, 5], [4, 5], 20 - reach : 21 + reach] = False
        np.testing.assert_array_equal(found[is_far], before[is_far])


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    x = np.random.default_rng(0).normal(size=(4, 40, 40, 50)).astype(np.float32)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(compiling, "free_helpers", lambda threads=threads: threads - 1 or None)
        results.append(computed(x))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
