"""``tensorflow.python.kernel_tests.random.util``: how far samples are from a distribution, for tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["anderson_darling", "chi_squared", "normal_cdf", "test_moment_matching", "test_truncated_normal"]


def test_moment_matching(samples: NDArray[Any], number_moments: int, dist: Any, stride: int = 0) -> list[Any]:
    """How many standard deviations each moment of samples is from that of their distribution.

    Args:
        samples: Samples, any shape, a float dtype.
        number_moments: How many moments, from the first on.
        dist: What has ``moment(order)``, such as a distribution of SciPy's.
        stride: The moment of order `i` takes every ``(i - 1) * stride + 1``-th sample, so that neighbours that depend
            on each other show.

    Returns:
        A number of at least 0 for each moment.
    """
    limits = np.finfo(samples.dtype)
    scores = []
    for order in range(1, number_moments + 1):
        taken = samples.ravel()[:: (order - 1) * stride + 1]
        expected = dist.moment(order)
        spread = (dist.moment(2 * order) - expected**2) / len(taken)
        # A power of a number is off by its rounding error times the exponent.
        variance = max(spread + order * limits.eps, limits.tiny)
        scores.append(abs((np.mean(taken**order) - expected) / np.sqrt(variance)))
    return scores


def chi_squared(x: ArrayLike, bins: int) -> Any:
    """Pearson's statistic of how evenly numbers between 0 and 1 fall into `bins` equal intervals."""
    counts, _ = np.histogram(np.ravel(x), bins=bins, range=(0, 1))
    expected = np.size(x) / bins
    return np.sum((counts - expected) ** 2 / expected)


def normal_cdf(x: ArrayLike) -> Any:
    """The cumulative distribution function of the standard normal distribution, element by element."""
    return np.vectorize(NormalDist().cdf)(x)


def anderson_darling(x: ArrayLike) -> Any:
    """The statistic of Anderson and Darling of how far samples are from the standard normal distribution."""
    below = normal_cdf(np.sort(np.ravel(x)))
    count = below.size
    odd = 2 * np.arange(1, count + 1) - 1
    return -count - np.sum(odd * (np.log(below) + np.log1p(-below[::-1]))) / count


def test_truncated_normal(
    assert_equal: Callable[..., None],
    assert_all_close: Callable[..., None],
    n: int,
    y: NDArray[Any],
    mean_atol: float = 5e-4,
    median_atol: float = 8e-4,
    variance_rtol: float = 1e-3,
) -> None:
    """Compare samples with the standard normal distribution that is cut off at -2 and 2.

    Args:
        assert_equal: Compares two numbers.
        assert_all_close: Compares two numbers, with ``atol`` or ``rtol``.
        n: How many samples there are.
        y: The samples.
        mean_atol: How far their mean may be from 0.
        median_atol: How far their median may be from 0.
        variance_rtol: How far their variance may be from the distribution's, as a share of that.
    """
    assert_equal(np.count_nonzero(y >= -2), n)
    assert_equal(np.count_nonzero(y <= 2), n)
    samples = y.astype(float)
    assert_all_close(np.mean(samples), 0.0, atol=mean_atol)
    assert_all_close(np.median(samples), 0.0, atol=median_atol)
    normal = NormalDist()
    mass = normal.cdf(2) - normal.cdf(-2)
    variance = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / mass
    assert_all_close(np.var(samples), variance, rtol=variance_rtol)


test_moment_matching.__test__ = False  # type: ignore[attr-defined]
test_truncated_normal.__test__ = False  # type: ignore[attr-defined]
