"""Reductions of rows by compiled kernels: against NumPy in double precision, for rows of every length."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.kernels import compiled_rows, compiling

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")

REDUCTIONS = {
    "sum": (tf.reduce_sum, np.sum),
    "mean": (tf.reduce_mean, np.mean),
    "max": (tf.reduce_max, np.max),
    "min": (tf.reduce_min, np.min),
}


def reduced(name, x, axis=-1, keepdims=False):
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, x.shape)
        return session.run(REDUCTIONS[name][0](fed, axis, keepdims), {fed: x})


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    "shape", [(1, 100_003), (3000, 7), (20_000, 1), (17, 1000), (5, 8, 511), (3, 257, 65)], ids=str
)
def test_rows_equal_double_precision(name, shape, monkeypatch):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32) + 1
    exact = REDUCTIONS[name][1](x.astype(np.float64), axis=-1)
    found = reduced(name, x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=2e-6, atol=2e-6 * shape[-1] ** 0.5)
    np.testing.assert_array_equal(reduced(name, x, [-1], keepdims=True), found[..., None])
    monkeypatch.setattr(compiled_rows, "can_compile", lambda: False)
    np.testing.assert_allclose(found, reduced(name, x), rtol=1e-5, atol=2e-6 * shape[-1] ** 0.5)


def test_long_rows_lose_no_precision():
    """A million numbers near 1: a plain sum in float32 would be off by about 1 in 10,000."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 1 << 20)).astype(np.float32)
    np.testing.assert_allclose(reduced("sum", x), x.sum(axis=1, dtype=np.float64), rtol=2e-7)


@pytest.mark.parametrize("columns", [5, 64, 300])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_what_is_not_finite_gives_what_numpy_gives(name, columns):
    x = np.random.default_rng(0).normal(size=(100_000 // columns, columns)).astype(np.float32)
    for row, column in enumerate((0, 3, columns - 1)):
        x[3 * row, column], x[3 * row + 1, column], x[3 * row + 2, column] = np.nan, np.inf, -np.inf
    x[10], x[11], x[12], x[13, :2] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    with np.errstate(invalid="ignore"):
        wanted = REDUCTIONS[name][1](x, axis=1)
    np.testing.assert_allclose(reduced(name, x), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_number_of_threads_changes_no_bit(name, monkeypatch):
    x = np.random.default_rng(0).normal(size=(600, 777)).astype(np.float32)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(compiling, "free_helpers", lambda threads=threads: threads - 1 or None)
        results.append(reduced(name, x))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("shape", [(3, 1 << 17), (1 << 17, 3), (2, 300, 1000), (1 << 19,), (1, 1 << 19)])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_running_sums_of_large_arrays(shape, exclusive, reverse):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    for axis in range(len(shape)):
        turned = np.flip(x, axis) if reverse else x
        sums = np.cumsum(turned, axis)
        expected = sums - turned if exclusive else sums
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(tf.cumsum(tf.constant(x), axis, exclusive, reverse))
        np.testing.assert_array_equal(found, np.flip(expected, axis) if reverse else expected)
