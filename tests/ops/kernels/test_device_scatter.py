"""What combines rows on a GPU gives what NumPy's ``ufunc.at`` gives; here on NumPy's own arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfray.ops.kernels.gpu.device_scatter import combine_at

DTYPES = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32,
          np.float64, np.complex64, np.complex128]  # fmt: skip


def values(random, shape, dtype):
    """Small whole numbers, of which halves represent all sums and products that arise."""
    numbers = random.integers(0 if np.dtype(dtype).kind == "u" else -3, 4, shape)
    return (numbers * (1 - 2j) if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", ["add", "subtract", "multiply", "maximum", "minimum"])
@given(
    seed=st.integers(0, 999),
    count=st.integers(0, 9),
    places=st.integers(1, 5),
    width=st.sampled_from([(), (3,), (2, 2)]),
)
@settings(max_examples=20, deadline=None)
def test_combined_like_numpy(dtype, ufunc, seed, count, places, width):
    if np.dtype(dtype).kind == "c" and ufunc in ("maximum", "minimum"):
        return  # no order
    random = np.random.default_rng(seed)
    target = values(random, (places, *width), dtype)
    indices = random.integers(0, places, count)
    updates = values(random, (count, *width), dtype)
    if ufunc == "multiply":
        updates = np.sign(updates.real).astype(dtype)  # products stay small
    expected = target.copy()
    getattr(np, ufunc).at(expected, indices, updates)
    combine_at(np, ufunc, target, indices, updates)
    np.testing.assert_array_equal(target, expected)


def test_division_scalars_and_coordinates_of_several_dimensions():
    target = np.array([[8.0, 16.0], [3.0, 5.0]])
    combine_at(np, "true_divide", target, np.array([[0, 0], [0, 1]]), np.float64(2))
    assert target.tolist() == [[1.0, 2.0], [1.5, 2.5]]


def test_sums_of_halves_are_rounded_once():
    for dtype, count in ((np.float16, 4000), (ml_dtypes.bfloat16, 512)):
        target = np.zeros(1, dtype)
        combine_at(np, "add", target, np.zeros(count, np.int64), np.ones(count, dtype))
        assert target.astype(float).tolist() == [count]


def test_nan_is_kept_and_negative_numbers_are_ordered():
    target = np.array([-1.0, 0.0, 5.0])
    combine_at(np, "maximum", target, np.array([0, 0, 1, 1]), np.array([-3.0, -0.5, np.nan, 2.0]))
    np.testing.assert_array_equal(target, [-0.5, np.nan, 5.0])
