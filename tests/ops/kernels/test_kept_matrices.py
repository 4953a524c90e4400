"""Products with one right matrix, which is packed by the first of them."""

from __future__ import annotations

import numpy as np
import pytest

from tfray.ops.kernels import fast_products, products
from tfray.ops.kernels.compiling import can_compile
from tfray.ops.kernels.fast_products import KeptMatrix
from tfray.ops.kernels.native import onednn
from tfray.ops.kernels.products import matrix_product

SIZES = [(1, 320, 1024), (32, 320, 1024), (20, 130, 70), (200, 64, 3), (256, 17, 300), (257, 64, 64), (32, 300, 1)]

needs_onednn = pytest.mark.skipif(not can_compile() or onednn.library() is None, reason="without oneDNN")


@pytest.fixture
def small(monkeypatch):
    """Products of any size are the library's, in several parts."""
    monkeypatch.setattr(products, "_THREADED_ELEMENTS", 1)
    monkeypatch.setattr(fast_products, "_LEAST_WORK", 1)
    monkeypatch.setattr(fast_products, "_PART_WORK", 1e5)
    for cached in (fast_products._product, fast_products._packed_product):
        cached.cache_clear()
    yield
    for cached in (fast_products._product, fast_products._packed_product):
        cached.cache_clear()


def whole(seed, *shape):
    """Whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_equal_numpys(small, sizes, turned):
    m, k, n = sizes
    b = whole(1, n, k).T if turned else whole(1, k, n)
    kept = KeptMatrix(b)
    for seed in range(3):
        a = whole(seed, m, k)
        np.testing.assert_array_equal(matrix_product(np, a, kept), a @ b)
        out = np.full((m, n), 77, np.float32)
        assert matrix_product(np, a, kept, out) is out
        np.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (whole(0, 320, 32).T, whole(1, 320, 1024)),
        (whole(0, 32, 640)[:, ::2], whole(1, 320, 1024)),
        (whole(0, 32, 320), whole(1, 320, 2048)[:, 512:1536]),
        (whole(0, 32, 320), whole(1, 1100, 320)[76:].T),
        (whole(0, 32, 320), whole(1, 320, 2048)[:, ::2]),
        (whole(0, 32, 320).astype(np.float64), whole(1, 320, 1024).astype(np.float64)),
        (whole(0, 5, 32, 320), whole(1, 320, 1024)),
        (whole(0, 0, 320), whole(1, 320, 1024)),
        (whole(0, 32, 320), np.broadcast_to(whole(1, 320, 1), (320, 1024))),
    ],
    ids=["turned", "strided", "columns", "rows", "spread", "float64", "batch", "empty", "repeated"],
)
def test_any_two_matrices(left, right):
    kept = KeptMatrix(right)
    for _ in range(2):
        np.testing.assert_array_equal(matrix_product(np, left, kept), left @ right)


def test_matrices_of_other_heights_share_the_kept_one():
    b = whole(1, 320, 1024)
    kept = KeptMatrix(b)
    for rows in (32, 1, 32, 300, 64, 1):
        a = whole(rows, rows, 320)
        np.testing.assert_array_equal(matrix_product(np, a, kept), a @ b)


@needs_onednn
def test_the_matrix_is_packed_once():
    kept, a = KeptMatrix(whole(1, 1024, 320).T), whole(0, 32, 320)
    form = fast_products._packed_product(a.shape, (320, 1), kept.matrix.shape, (1, 320), None)
    if form is None:
        pytest.skip("here the library takes the matrix as it is")
    before = matrix_product(np, a, kept)
    kept.matrix[:] = 0  # what is packed stays as it was
    np.testing.assert_array_equal(matrix_product(np, a, kept), before)
