"""`tensorflow.contrib.distributions.python.ops.test_util`: samples of distributions against what they are to be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.framework.graph import Tensor
from tfray.library.variables.variables import global_variables_initializer
from tfray.ops.arrays.shape_ops import identity

__all__ = ["DiscreteScalarDistributionTestHelpers", "VectorDistributionTestHelpers"]

Run = Callable[[Any], Any]
"""Gives the values of tensors, or of a list of them."""


class DiscreteScalarDistributionTestHelpers:
    """For test cases: checks of distributions of whole numbers."""

    assertAllClose: Callable[..., None]

    def run_test_sample_consistent_log_prob(
        self,
        sess_run_fn: Run,
        dist: Any,
        num_samples: int = 100000,
        num_threshold: int = 1000,
        seed: int | None = 42,
        batch_size: int | None = None,
        rtol: float = 1e-2,
        atol: float = 0.0,
    ) -> None:
        """Check that numbers which came `num_threshold` times or more came as often as their probabilities say."""
        samples = sess_run_fn(dist.sample(num_samples, seed=seed)).reshape(num_samples, -1)
        values = np.arange(samples.min(), samples.max() + 1)
        batch = dist.batch_shape.rank or 0
        chances = np.exp(sess_run_fn(dist.log_prob(values.reshape(-1, *[1] * batch).astype(samples.dtype))))
        chances = np.broadcast_to(chances.reshape(len(values), -1), [len(values), samples.shape[1]])
        for member, own in zip(samples.T, chances.T, strict=True):
            counts = np.array([(member == value).sum() for value in values])
            often = counts >= num_threshold
            self.assertAllClose(own[often], counts[often] / num_samples, rtol=rtol, atol=atol)

    def run_test_sample_consistent_mean_variance(
        self,
        sess_run_fn: Run,
        dist: Any,
        num_samples: int = 100000,
        seed: int | None = 24,
        rtol: float = 1e-2,
        atol: float = 0.0,
    ) -> None:
        """Check mean, variance and standard deviation against those of samples."""
        samples, *told = sess_run_fn([dist.sample(num_samples, seed=seed), dist.mean(), dist.variance(), dist.stddev()])
        for own, found in zip(told, (samples.mean(0), samples.var(0), samples.std(0)), strict=True):
            self.assertAllClose(found, own, rtol=rtol, atol=atol)


class VectorDistributionTestHelpers:
    """For test cases: checks of distributions of vectors."""

    assertAllClose: Callable[..., None]

    def run_test_sample_consistent_log_prob(
        self,
        sess_run_fn: Run,
        dist: Any,
        num_samples: int = 100000,
        radius: float = 1.0,
        center: Any = 0.0,
        seed: int | None = 42,
        rtol: float = 1e-2,
        atol: float = 0.0,
    ) -> None:
        """Check that the volume of a ball is the mean of ``1 / prob(x)`` over samples, 0 for those outside of it.

        Variables, which the distribution may make with its first sample, are initialized.
        """
        x: Tensor = identity(dist.sample(num_samples, seed=seed))  # not what a bijector remembers the inverse of
        log_prob = dist.log_prob(x)
        sess_run_fn(global_variables_initializer())
        samples, logs = sess_run_fn([x, log_prob])
        size = samples.shape[-1]
        volume = math.pi ** (size / 2) * radius**size / math.gamma(size / 2 + 1)
        inside = np.linalg.norm(samples - center, axis=-1) <= radius
        found = np.where(inside, np.exp(-logs), 0).mean(0)
        self.assertAllClose(np.broadcast_to(volume, found.shape), found, rtol=rtol, atol=atol)

    def run_test_sample_consistent_mean_covariance(
        self,
        sess_run_fn: Run,
        dist: Any,
        num_samples: int = 100000,
        seed: int | None = 24,
        rtol: float = 1e-2,
        atol: float = 0.1,
        cov_rtol: float | None = None,
        cov_atol: float | None = None,
    ) -> None:
        """Check mean, covariance, variance and standard deviation against those of samples."""
        samples, mean, covariance, variance, stddev = sess_run_fn(
            [dist.sample(num_samples, seed=seed), dist.mean(), dist.covariance(), dist.variance(), dist.stddev()]
        )
        centred = samples - samples.mean(0)
        own = np.einsum("n...i,n...j->...ij", centred, centred) / num_samples
        diagonal = np.diagonal(own, axis1=-2, axis2=-1)
        wide = {"rtol": cov_rtol or rtol, "atol": cov_atol or atol}
        self.assertAllClose(samples.mean(0), mean, rtol=rtol, atol=atol)
        self.assertAllClose(own, covariance, **wide)
        self.assertAllClose(diagonal, variance, **wide)
        self.assertAllClose(np.sqrt(diagonal), stddev, **wide)
