"""Transposed copies on a GPU. Where there is none, ``tests/support/gpu/check.sh tests`` runs them on a stand-in."""

from __future__ import annotations

import numpy as np
import pytest

from tfray.framework.dtypes import as_dtype
from tfray.ops.kernels.gpu.device_transposes import write_transposed
from tfray.runtime.device import cupy, gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(1, 1), (33, 31), (64, 64), (3, 700), (1000, 2)])
def test_a_matrix_is_transposed(dtype, shape):
    xp = cupy()
    matrix = np.random.default_rng(0).integers(0, 100, shape).astype(as_dtype(dtype).as_numpy_dtype)
    out = xp.zeros(shape[::-1], matrix.dtype)
    assert write_transposed(xp, xp.asarray(matrix), out)
    np.testing.assert_array_equal(out.get(), matrix.T)


def test_other_arrays_are_left_to_the_caller():
    xp = cupy()
    square = xp.ones((8, 8), np.float32)
    assert not write_transposed(xp, square.T, xp.empty((8, 8), np.float32))
    assert not write_transposed(xp, square, xp.empty((8, 16), np.float32)[:, ::2])
    assert not write_transposed(xp, xp.ones((8, 8), np.complex128), xp.empty((8, 8), np.complex128))
    assert not write_transposed(xp, xp.ones((0, 8), np.float32), xp.empty((8, 0), np.float32))
