"""The resampling of images, against the sums that define it."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfray.ops.kernels import resampling


@example("bilinear", (13, 14), (97, 113), 3, (False, False), True)
@example("bilinear", (13, 14), (97, 113), 14, (False, False), True)
@example("area", (1, 1), (1, 2), 1, (True, False), False)
@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["bilinear", "bicubic", "area"]),
    sizes=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    counts=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    channels=st.sampled_from([1, 3, 6, 14]),
    form=st.sampled_from([(False, False), (True, False), (False, True)]),
    is_transposed=st.booleans(),
)
def test_resampling_adds_up_the_taps_of_each_pixel(method, sizes, counts, channels, form, is_transposed):
    rows, columns = (
        resampling.AxisMap(method, *axis, *form, is_transposed) for axis in zip(sizes, counts, strict=True)
    )
    images = np.random.default_rng(0).normal(size=(2, rows.inputs, columns.inputs, channels)).astype(np.float32)
    found = resampling.resample(np, images, rows, columns, np.dtype(np.float32))
    matrices = [np.zeros((axis.outputs, axis.inputs)) for axis in (rows, columns)]
    for matrix, axis in zip(matrices, (rows, columns), strict=True):
        taps = axis.taps()
        for indices, weights in zip(taps.indices, taps.weights, strict=True):
            np.add.at(matrix, (np.arange(axis.outputs), indices), weights)
    expected = np.einsum("rh,cw,bhwk->brck", *matrices, images, optimize=True)
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(1, rows.inputs // 8))
