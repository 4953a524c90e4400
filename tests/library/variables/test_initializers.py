"""Initial values: their distributions, their scale, and what partitioned variables get."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tests.support.interpreter import interpret
from tfray.framework import dtypes
from tfray.library.variables import initializers
from tfray.library.variables.initializers import compute_fans

ALPHA = 1e-3


def fits(samples, distribution):
    return stats.kstest(np.ravel(samples).astype(np.float64), distribution.cdf).pvalue > ALPHA


def uniform_of_variance(variance):
    limit = np.sqrt(3 * variance)
    return stats.uniform(-limit, 2 * limit)


def truncated_of_variance(variance):
    return stats.truncnorm(-2, 2, scale=np.sqrt(variance) / stats.truncnorm(-2, 2).std())


@pytest.mark.parametrize(
    ("initializer", "distribution"),
    [
        (initializers.random_uniform_initializer(-1, 3, seed=1), stats.uniform(-1, 4)),
        (initializers.random_uniform_initializer(seed=2), stats.uniform(0, 1)),
        (initializers.random_normal_initializer(1.0, 2.0, seed=3), stats.norm(1, 2)),
        (initializers.truncated_normal_initializer(1.0, 2.0, seed=4), stats.truncnorm(-2, 2, 1, 2)),
        (initializers.uniform_unit_scaling_initializer(2.0, seed=5), uniform_of_variance(4 / 100)),
        (initializers.variance_scaling_initializer(3.0, "fan_in", seed=6), truncated_of_variance(3 / 100)),
        (initializers.variance_scaling_initializer(3.0, "fan_out", "uniform", 7), uniform_of_variance(3 / 200)),
        (
            initializers.variance_scaling_initializer(3.0, "fan_avg", "untruncated_normal", 8),
            stats.norm(0, np.sqrt(3 / 150)),
        ),
        (initializers.glorot_uniform_initializer(seed=9), uniform_of_variance(1 / 150)),
        (initializers.glorot_normal_initializer(seed=10), truncated_of_variance(1 / 150)),
        (initializers.he_normal(seed=11), truncated_of_variance(2 / 100)),
        (initializers.he_uniform(seed=12), uniform_of_variance(2 / 100)),
        (initializers.lecun_normal(seed=13), truncated_of_variance(1 / 100)),
        (initializers.lecun_uniform(seed=14), uniform_of_variance(1 / 100)),
    ],
)
def test_distribution(initializer, distribution):
    assert fits(interpret(initializer([100, 200])), distribution)


@pytest.mark.parametrize(
    ("shape", "fans"),
    [([], (1, 1)), ([7], (7, 7)), ([3, 5], (3, 5)), ([2, 4, 3, 5], (24, 40)), ([9, 3, 5], (27, 45))],
)
def test_fans(shape, fans):
    assert compute_fans(shape) == fans


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        (initializers.zeros_initializer(), [[0, 0, 0], [0, 0, 0]]),
        (initializers.ones_initializer(), [[1, 1, 1], [1, 1, 1]]),
        (initializers.constant_initializer(7), [[7, 7, 7], [7, 7, 7]]),
        (initializers.constant_initializer([1, 2, 3]), [[1, 2, 3], [3, 3, 3]]),
        (initializers.constant_initializer([[1, 2, 3], [4, 5, 6]]), [[1, 2, 3], [4, 5, 6]]),
        (initializers.identity_initializer(2.0), [[2, 0, 0], [0, 2, 0]]),
    ],
)
def test_fixed_values(initializer, expected):
    for dtype in (None, dtypes.float64, dtypes.float16):
        value = interpret(initializer([2, 3], dtype))
        assert value.dtype == (dtype or dtypes.float32).numpy
        assert value.tolist() == expected


def test_constant_of_another_shape_is_refused_when_asked():
    with pytest.raises(ValueError, match="expected"):
        initializers.constant_initializer([1, 2, 3], verify_shape=True)([2, 3])
    with pytest.raises(TypeError, match="number, list or array"):
        initializers.constant_initializer(object())


@pytest.mark.parametrize("shape", [[4, 4], [6, 3], [3, 6], [2, 3, 5]])
def test_orthogonal(shape):
    value = interpret(initializers.orthogonal_initializer(2.0, seed=1)(shape)) / 2
    matrix = value.reshape(-1, shape[-1])
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)


def test_orthogonal_matrices_are_uniform():
    # The first entry of a random rotation of the plane is the cosine of a uniform angle.
    first = [interpret(initializers.orthogonal_initializer(seed=seed)([2, 2]))[0, 0] for seed in range(300)]
    assert stats.kstest(np.arccos(first) / np.pi, stats.uniform.cdf).pvalue > ALPHA


def test_random_initializers_need_a_float_dtype():
    with pytest.raises(ValueError, match="Expected floating point type"):
        initializers.random_normal_initializer(dtype=dtypes.int32)


@pytest.mark.parametrize("kwargs", [{"scale": 0}, {"mode": "fan"}, {"distribution": "cauchy"}])
def test_variance_scaling_checks_its_arguments(kwargs):
    with pytest.raises(ValueError, match="must be"):
        initializers.variance_scaling_initializer(**kwargs)


def test_parts_of_a_variable_are_scaled_as_the_whole():
    part = SimpleNamespace(full_shape=[1000, 10], var_offset=[500, 0])
    value = interpret(initializers.lecun_uniform(seed=1)([500, 10], partition_info=part))
    assert fits(value, uniform_of_variance(1 / 1000))
    value = interpret(initializers.uniform_unit_scaling_initializer(seed=1)([500, 10], partition_info=part))
    assert fits(value, uniform_of_variance(1 / 1000))


def test_identity_in_parts():
    identity = initializers.identity_initializer()
    parts = [
        interpret(identity([2, 3], partition_info=SimpleNamespace(full_shape=[4, 3], var_offset=[offset, 0])))
        for offset in (0, 2)
    ]
    assert (np.concatenate(parts) == np.eye(4, 3)).all()


def test_config_makes_an_equal_initializer():
    initializer = initializers.variance_scaling_initializer(2.0, "fan_out", "uniform", 5)
    again = type(initializer).from_config(initializer.get_config())
    assert again.get_config() == initializer.get_config()
    assert (interpret(again([3, 3])) == interpret(initializer([3, 3]))).all()
    assert initializers.GlorotNormal.from_config(initializers.GlorotNormal(3).get_config()).seed == 3
