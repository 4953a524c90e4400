"""Results and gradients against those that TensorFlow gave for the same calls; `scripts/golden.py` recorded them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.cases.empty_cases import EMPTY_CASES
from tests.support.cases.golden_cases import CASES

RECORDED = ["values.npz", "empty.npz"]


@pytest.fixture(scope="module")
def recorded():
    values = {}
    for name in RECORDED:
        with np.load(GOLDEN / name, allow_pickle=False) as file:
            values.update(file)
    return values


def evaluate(case):
    """As `scripts/golden.py` does."""
    arrays = case.arrays()
    tensors = [tf.placeholder(array.dtype, array.shape) for array in arrays]
    results = case.call(tf, *tensors)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    fetches = list(results)
    sources = [tensor for tensor in tensors if tensor.dtype.is_floating]
    targets = [tensor for tensor in results if tensor.dtype.is_floating]
    if case.gradient and sources and targets:
        weighted = [tf.reduce_sum(tf.cos(tf.cast(target, tf.float64))) for target in targets]
        for source, gradient in zip(sources, tf.gradients(weighted, sources), strict=True):
            fetches.append(tf.zeros_like(source) if gradient is None else tf.convert_to_tensor(gradient))
    with tf.Session() as session:
        return session.run(fetches, dict(zip(tensors, arrays, strict=True)))


@pytest.mark.parametrize("case", [*CASES, *EMPTY_CASES], ids=lambda case: case.name)
def test_as_tensorflow(case, recorded):
    found = evaluate(case)
    expected = [recorded[f"{case.name}/{index}"] for index in range(len(found))]
    assert f"{case.name}/{len(found)}" not in recorded
    for value, golden in zip(found, expected, strict=True):
        assert np.asarray(value).dtype == golden.dtype
        assert np.shape(value) == golden.shape
        np.testing.assert_allclose(value, golden, rtol=case.rtol, atol=case.rtol)


def test_names_are_unique():
    assert max(Counter(case.name for case in [*CASES, *EMPTY_CASES]).values()) == 1
