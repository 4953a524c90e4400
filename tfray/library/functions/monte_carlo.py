"""Expectations from samples.

Public as ``tf.contrib.bayesflow.monte_carlo``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import stop_gradient
from tfray.ops.math.arithmetic_ops import exp, log
from tfray.ops.math.reduction_ops import reduce_max, reduce_mean
from tfray.ops.nn.activation_ops import relu

__all__ = ["expectation", "expectation_importance_sampler", "expectation_importance_sampler_logspace"]

Function = Callable[[Tensor], Tensor]


def expectation(
    f: Function,
    samples: TensorLike,
    log_prob: Function | None = None,
    use_reparametrization: bool = True,
    axis: int | list[int] = 0,
    keep_dims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Take the mean of a function over samples.

    Args:
        f: Function of the samples.
        samples: Samples of the distribution.
        log_prob: Log of the probability of a sample. Needed without `use_reparametrization`.
        use_reparametrization: Let gradients flow through the samples. Otherwise they take the samples as given, and
            flow through their probabilities: the score function.
        axis: What counts the samples.
        keep_dims: Keep the axes, of length 1.
        name: Name of the operations.

    Returns:
        The mean of ``f(samples)`` over `axis`.

    Raises:
        ValueError: `f` is no function, or `log_prob` is needed and none.
    """
    with get_default_graph().name_scope(name or "expectation"):
        if not callable(f):
            raise ValueError("`f` must be a callable function.")
        if use_reparametrization:
            return reduce_mean(f(convert_to_tensor(samples)), axis, keep_dims)
        if not callable(log_prob):
            raise ValueError("`log_prob` must be a callable function.")
        given = stop_gradient(samples)
        values, chances = f(given), log_prob(given)
        # 1 as a value, with the gradient of log_prob.
        return reduce_mean(values * exp(chances - stop_gradient(chances)), axis, keep_dims)


def expectation_importance_sampler(
    f: Function,
    log_p: Function,
    sampling_dist_q: Any,
    z: TensorLike | None = None,
    n: TensorLike | None = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler",
) -> Tensor:
    """Estimate the expectation of ``f`` under ``p`` by samples of another distribution ``q``.

    Args:
        f: Function of samples; its values broadcast with the batch shape of ``q``.
        log_p: Log of the density ``p`` at samples.
        sampling_dist_q: ``q``, a distribution.
        z: Samples of ``q``, the first axis counts them.
        n: How many samples to draw, instead of `z`.
        seed: Seed of the samples.
        name: Name of the operations.

    Returns:
        The mean of ``f(z) p(z) / q(z)``, of the batch shape of ``q``.

    Raises:
        ValueError: Both of `z` and `n` are given, or none.
    """
    with get_default_graph().name_scope(name):
        samples = _get_samples(sampling_dist_q, z, n, seed)
        values, ratios = f(samples), log_p(samples) - sampling_dist_q.log_prob(samples)
        # Logs of what is positive and of what is negative; the 1 added to both keeps them finite, and cancels.
        above, below = (exp(_log_mean(log(relu(each) + 1) + ratios)) for each in (values, -values))
        return above - below


def expectation_importance_sampler_logspace(
    log_f: Function,
    log_p: Function,
    sampling_dist_q: Any,
    z: TensorLike | None = None,
    n: TensorLike | None = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler_logspace",
) -> Tensor:
    """Estimate the log of the expectation of a positive function, as `expectation_importance_sampler` does.

    Args:
        log_f: Log of the function of samples.
        log_p: Log of the density ``p`` at samples.
        sampling_dist_q: ``q``, a distribution.
        z: Samples of ``q``, the first axis counts them.
        n: How many samples to draw, instead of `z`.
        seed: Seed of the samples.
        name: Name of the operations.

    Returns:
        The log of the mean of ``f(z) p(z) / q(z)``, of the batch shape of ``q``.

    Raises:
        ValueError: Both of `z` and `n` are given, or none.
    """
    with get_default_graph().name_scope(name):
        samples = _get_samples(sampling_dist_q, z, n, seed)
        return _log_mean(log_f(samples) + log_p(samples) - sampling_dist_q.log_prob(samples))


def _log_mean(logs: Tensor) -> Tensor:
    largest = stop_gradient(reduce_max(logs, 0))
    return log(reduce_mean(exp(logs - largest), 0)) + largest


def _get_samples(dist: Any, z: TensorLike | None, n: TensorLike | None, seed: int | None) -> Tensor:
    if (n is None) == (z is None):
        raise ValueError(f"Must specify exactly one of arguments 'n' and 'z'. Found: n = {n}, z = {z}")
    if n is not None:
        samples: Tensor = dist.sample(n, seed=seed)
        return samples
    return convert_to_tensor(z)
