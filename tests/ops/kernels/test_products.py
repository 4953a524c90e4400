"""Products of matrices in parts: against NumPy's own, for every way of cutting them."""

from __future__ import annotations

import numpy as np
import pytest

from tfray.ops.kernels import products
from tfray.ops.kernels.cpu_threads import thread_count
from tfray.ops.kernels.products import matrix_product

SHAPES = [
    ((3, 4), (4, 5)),
    ((0, 4), (4, 5)),
    ((4, 0), (0, 5)),
    ((200, 300), (300,)),
    ((200,), (200, 300)),
    ((130, 90), (90, 70)),
    ((70, 90), (90, 131)),
    ((7, 20, 30), (7, 30, 40)),
    ((7, 20, 30), (30, 40)),
    ((7, 20, 30), (1, 30, 40)),
    ((20, 30), (7, 30, 40)),
    ((2, 3, 60, 30), (3, 30, 200)),
    ((2, 1, 60, 30), (2, 3, 30, 200)),
]


@pytest.fixture
def small_parts(monkeypatch):
    """Cut products of any size."""
    monkeypatch.setattr(products, "_THREADED_ELEMENTS", 1)
    monkeypatch.setattr(products, "_PART_FLOPS", 1e4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_equals_numpys_product(small_parts, left, right, dtype):
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(dtype) for shape in (left, right))
    expected = a @ b
    assert matrix_product(np, a, b).dtype == expected.dtype
    np.testing.assert_array_equal(matrix_product(np, a, b), expected)
    out = np.full_like(expected, 77)
    assert matrix_product(np, a, b, out) is out
    np.testing.assert_array_equal(out, expected)


def test_reads_transposed_matrices_and_strided_results(small_parts):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(90, 150)), random.normal(size=(200, 90))
    out = np.zeros((150, 400))[:, ::2]
    matrix_product(np, a.T, b.T, out)
    np.testing.assert_allclose(out, a.T @ b.T, rtol=1e-12)


def test_says_that_shapes_do_not_meet(small_parts):
    with pytest.raises(ValueError, match="mismatch"):
        matrix_product(np, np.ones((200, 300)), np.ones((200, 300)))
    with pytest.raises(ValueError, match="broadcast"):
        matrix_product(np, np.ones((2, 20, 30)), np.ones((3, 30, 20)))


@pytest.mark.skipif(thread_count() < 2, reason="this process may use one core")
def test_large_products_are_cut(monkeypatch):
    counts = []
    cut = products.parallel_for
    monkeypatch.setattr(products, "parallel_for", lambda work, count: counts.append(count) or cut(work, count))
    a, b = np.ones((16, 2000), np.float32), np.ones((2000, 2000), np.float32)
    np.testing.assert_array_equal(matrix_product(np, a, b), np.full((16, 2000), 2000, np.float32))
    assert counts and counts[0] > 1
