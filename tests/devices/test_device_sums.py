"""Sums on a GPU that take two launches, against NumPy's in float64.

Where there is no GPU, ``tests/support/gpu/check.sh tests tests/devices/test_device_sums.py`` runs them on a stand-in.
"""

from __future__ import annotations

import numpy as np
import pytest

from tfray.framework.dtypes import as_dtype
from tfray.ops.kernels.gpu.device_sums import _cut, are_staged, staged_sum, staged_sums
from tfray.runtime.device import cupy, gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]

SHAPES = [(40_000, 7), (2, 100, 90, 12), (30_011, 3), (64, 1000), (5, 4), (1, 1, 1, 1), (100_000,), (0, 3), (3, 0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_over_all_but_the_last_dimension(shape):
    xp, axes = cupy(), tuple(range(max(len(shape) - 1, 1)))
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = staged_sum(xp, "{0}", [xp.asarray(values)], axes, 0.5).get()
    expected = 0.5 * values.astype(np.float64).sum(axis=axes, keepdims=True)
    assert found.shape == expected.shape and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(16, 6, 50, 40), (3, 2, 4, 5)])
def test_sums_over_all_but_the_second_dimension(shape):
    xp = cupy()
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    mean = np.float32([[[[0.5]], [[0.25]]]] * 1) if shape[1] == 2 else np.float32(0.5) * np.ones((6, 1, 1), np.float32)
    arrays = [xp.asarray(values), xp.asarray(mean)]
    found = staged_sum(xp, "({0} - {1}) * ({0} - {1})", arrays, (0, 2, 3)).get()
    expected = ((values.astype(np.float64) - mean) ** 2).sum(axis=(0, 2, 3), keepdims=True)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_arrays_of_one_row_and_numbers_take_part():
    xp = cupy()
    values = np.random.default_rng(0).normal(size=(8, 50, 60, 5)).astype(np.float32)
    mean, factor = values.mean(axis=(0, 1, 2)), np.float32([3])
    arrays = [xp.asarray(array) for array in (values, mean, factor)]
    found = staged_sum(xp, "({0} - {1}) * {2}", arrays, (0, 1, 2)).get()
    expected = ((values.astype(np.float64) - mean) * 3).sum(axis=(0, 1, 2), keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-2)


def test_arrays_that_are_not_contiguous_are_summed_in_one_launch():
    xp = cupy()
    values = np.random.default_rng(0).normal(size=(9, 40_000)).astype(np.float32)
    found = staged_sum(xp, "{0}", [xp.asarray(values).T], 0).get()
    np.testing.assert_allclose(found[0], values.sum(axis=1), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(40_000, 64), (9_000, 24), (3, 8), (70, 2048), (5_000, 33)])
def test_several_sums_take_one_pass(dtype, rows, columns):
    xp, wide = cupy(), np.float64 if dtype == "float64" else np.float32
    generator = np.random.default_rng(0)
    values = [generator.normal(size=(rows, columns)).astype(as_dtype(dtype).as_numpy_dtype) for _ in range(2)]
    mean = generator.normal(size=columns).astype(wide)
    arrays = [xp.asarray(array) for array in (*values, mean)]
    found = staged_sums(xp, ["{1}", "({0} - {2}) * {1}"], arrays, 0, 1 / rows)
    a, b = (array.astype(np.float64) for array in values)
    for total, expected in zip(found, [b, (a - mean) * b], strict=True):
        assert total.dtype == wide and total.shape == (1, columns)
        np.testing.assert_allclose(total.get()[0], expected.mean(axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("rows", "columns"), [(5, 40_000), (300, 512), (7, 1001), (2, 256), (3, 255)])
def test_sums_along_rows(dtype, rows, columns):
    xp = cupy()
    generator = np.random.default_rng(0)
    values = generator.normal(size=(rows, columns)).astype(as_dtype(dtype).as_numpy_dtype)
    greatest = values.max(axis=1, keepdims=True)
    weights = generator.normal(size=columns).astype(values.dtype)
    arrays = [xp.asarray(array) for array in (values, greatest, weights)]
    found = staged_sums(xp, ["exp({0} - {1})", "{0} * {2}"], arrays, 1, 0.5)
    wide = values.astype(np.float64)
    for total, expected in zip(found, [np.exp(wide - greatest), wide * weights.astype(np.float64)], strict=True):
        assert total.shape == (rows, 1)
        np.testing.assert_allclose(total.get(), 0.5 * expected.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-3)


def test_sums_may_be_rounded_at_the_end():
    xp = cupy()
    values = np.ones((30_000, 16), np.float16)
    found = staged_sum(xp, "{0}", [xp.asarray(values)], 0, 0.1, np.dtype(np.float16))
    assert found.dtype == np.float16 and (found.get() == np.float16(3000)).all()


@pytest.mark.parametrize(
    ("rows", "columns", "parts"), [(401_408, 8, 512), (21_632, 32, 338), (128, 512, 1), (7, 1, 1), (6_272, 256, 64)]
)
def test_how_rows_are_cut_depends_on_sizes_alone(rows, columns, parts):
    assert _cut(rows, columns).parts == parts
    assert are_staged(rows, columns) == (parts > 1)
