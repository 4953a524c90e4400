"""Copies on a GPU. Where there is none, ``tests/support/gpu/check.sh tests`` runs them on a stand-in."""

from __future__ import annotations

import numpy as np
import pytest

from tfray.framework.dtypes import as_dtype
from tfray.ops.kernels.gpu.device_copies import copy, write_transposed
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


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int8", "bool", "complex128"])
@pytest.mark.parametrize(
    "part", [np.s_[:, 1:-1, :16], np.s_[1:, ::2, 16:], np.s_[..., 3:11], np.s_[..., ::2], np.s_[:]]
)
def test_a_part_of_an_array_is_copied_to_a_part_of_another(dtype, part):
    xp = cupy()
    values = np.random.default_rng(0).integers(0, 2, (3, 7, 32)).astype(as_dtype(dtype).as_numpy_dtype)
    source, target = xp.asarray(values), xp.zeros((3, 7, 32), values.dtype)
    copy(target[part], source[part])
    expected = np.zeros_like(values)
    expected[part] = values[part]
    np.testing.assert_array_equal(target.get(), expected)


def test_a_copy_may_change_the_dtype_and_broadcast():
    xp = cupy()
    target = xp.zeros((4, 8), np.float32)
    copy(target, xp.arange(8))
    np.testing.assert_array_equal(target.get(), np.broadcast_to(np.arange(8), (4, 8)))
