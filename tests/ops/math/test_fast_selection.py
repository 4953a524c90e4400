"""The greatest numbers of rows by a compiled kernel: the same as by sorting, equal numbers and NaN included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tfray.ops.kernels import compiled_rows, compiling

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")


def top_k(x, k):
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, x.shape)
        return session.run(tf.nn.top_k(fed, k), {fed: x})


def check(x, k):
    """NaN is the greatest; of equal numbers the first comes first."""
    keys = np.where(np.isnan(x), np.inf, x.astype(np.float64))
    rows = keys.reshape(-1, x.shape[-1])
    is_number = ~np.isnan(x).reshape(rows.shape)
    order = np.stack([np.lexsort((-row, numbers)) for row, numbers in zip(rows, is_number, strict=True)])
    values, indices = top_k(x, k)
    np.testing.assert_array_equal(indices, order[:, :k].reshape(*x.shape[:-1], k))
    np.testing.assert_array_equal(values, np.take_along_axis(x, indices, -1))
    assert indices.dtype == np.int32


@pytest.mark.parametrize("shape", [(1, 20_000), (3, 5, 1777), (200, 96), (1000, 17)], ids=str)
@pytest.mark.parametrize("k", [2, 10, 200])
def test_equals_sorting(shape, k):
    if k < shape[-1]:
        random = np.random.default_rng(k)
        check(random.normal(size=shape).astype(np.float32), k)
        check(random.integers(-3, 4, shape).astype(np.float32), k)
        check(np.sort(random.normal(size=shape).astype(np.float32)), k)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_special_numbers(data):
    columns, k = data.draw(st.integers(90, 300)), data.draw(st.integers(2, 11))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(16_384 // columns + 1, columns))
    special = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38])
    for row in range(4):
        for column in data.draw(st.lists(st.integers(0, columns - 1), max_size=20)):
            x[row, column] = data.draw(special)
    x[4], x[5], x[6], x[7, k:] = np.nan, -np.inf, np.inf, -np.inf
    check(x.astype(np.float32), k)


def test_equals_the_kernel_of_numpy_where_many_are_nan(monkeypatch):
    x = np.random.default_rng(0).integers(-50, 50, (64, 3000)).astype(np.float32)
    x[::3, ::97] = np.nan
    compiled = top_k(x, 30)
    monkeypatch.setattr(compiled_rows, "can_compile", lambda: False)
    for one, other in zip(compiled, top_k(x, 30), strict=True):
        np.testing.assert_array_equal(one, other)
