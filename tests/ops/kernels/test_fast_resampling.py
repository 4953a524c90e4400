"""Images are resized by compiled kernels as by NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfray.ops.kernels import compiling, fast_rows, resampling
from tfray.ops.kernels.resampling import AxisMap, pick, resample, taps_of

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")

FLOAT = np.dtype(np.float32)


@st.composite
def resizings(draw):
    """How two axes are resized, and images for it."""
    method = draw(st.sampled_from(["bilinear", "bicubic", "area", "nearest"]))
    sizes = [draw(st.sampled_from([1, 2, 9, 40, 64])) for _ in range(4)]
    rules = [(False, False)] if method == "area" else [(False, False), (True, False), (False, True)]
    rule, is_transposed = draw(st.sampled_from(rules)), draw(st.booleans())
    axes = [AxisMap(method, *pair, *rule, is_transposed) for pair in (sizes[:2], sizes[2:])]
    shape = draw(st.integers(1, 3)), axes[0].inputs, axes[1].inputs, draw(st.sampled_from([1, 3, 5, 16, 33]))
    dtype = draw(st.sampled_from([np.float32, np.uint8]))
    return (np.random.default_rng(0).random(shape) * 9).astype(dtype), *axes


@pytest.mark.usefixtures("threads")
@given(resizings())
@settings(max_examples=60, deadline=None)
def test_images_are_resized_as_by_numpy(case):
    images, rows, columns = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "LEAST_ELEMENTS", 0)
        compiled = resample(np, images, rows, columns, FLOAT)
        patch.setattr(resampling, "can_compile", lambda: False)
        expected = resample(np, images, rows, columns, FLOAT)
    np.testing.assert_allclose(compiled, expected, rtol=1e-5, atol=1e-5)


def test_an_infinite_pixel_changes_no_more_than_what_it_is_part_of():
    images = np.zeros((1, 64, 64, 8), np.float32)
    images[0, 5, 5, 0] = np.inf
    axis = AxisMap("bilinear", 64, 128, False, False)
    resized = resample(np, images, axis, axis, FLOAT)
    assert np.argwhere(resized != 0).tolist() == [[0, y, x, 0] for y in (9, 10, 11) for x in (9, 10, 11)]


@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64])
@pytest.mark.usefixtures("threads")
def test_nearest_pixels_are_those_of_numpy(channels, dtype, monkeypatch):
    images = (np.random.default_rng(0).random((2, 70, 90, channels)) * 255).astype(dtype)
    rows, columns = taps_of("nearest", 70, 150, False, False), taps_of("nearest", 90, 100, True, False)
    picked = pick(np, images, rows, columns)
    monkeypatch.setattr(fast_rows, "can_copy", lambda *arguments: False)
    np.testing.assert_array_equal(picked, pick(np, images, rows, columns))
    np.testing.assert_array_equal(picked, images[:, rows.indices[0]][:, :, columns.indices[0]])
