"""Statistics of samples for `tf.contrib.distributions`: percentiles, weighted sums, and posterior distributions."""

from __future__ import annotations

import hashlib
from functools import reduce

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after
from tfray.library.distributions.continuous_distributions import Normal
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.arrays.matrix_ops import matrix_diag
from tfray.ops.checks.check_ops import assert_greater_equal, assert_less_equal
from tfray.ops.linalg.fft_ops import fft, ifft
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import exp, log, reduce_logsumexp, reduce_max, reduce_sum, sign, sqrt, square
from tfray.ops.math.sorting_ops import sort


def auto_correlation(
    x: TensorLike,
    axis: int = -1,
    max_lags: int | None = None,
    center: bool = True,
    normalize: bool = True,
    name: str = "auto_correlation",
) -> Tensor:
    """How far elements go with those that come later in the same row.

    Args:
        x: Floats or complex numbers.
        axis: The dimension of the rows, of a known size.
        max_lags: By how many places at most; as far as the row goes when None.
        center: Take the mean of each row away first.
        normalize: Divide by the value at 0 places.
        name: Name scope of the operations.

    Returns:
        The shape of `x`, with ``max_lags + 1`` elements along `axis`: the mean products of an element, conjugate, and
        the one so many places later.

    Raises:
        ValueError: The size of `axis` is not known, or `max_lags` is below 0.
    """
    with get_default_graph().name_scope(name):
        x = convert_to_tensor(x, name="x")
        rank = x.shape.rank
        size = None if rank is None else x.shape.as_list()[axis]
        if rank is None or size is None:
            raise ValueError(f"auto_correlation needs a known size of axis {axis}, not that of {x.shape}")
        if max_lags is not None and max_lags < 0:
            raise ValueError(f"max_lags must be 0 or more, not {max_lags}")
        order = list(range(rank))
        order.append(order.pop(axis % rank))
        rows = array_ops.transpose(x, order)
        lags = size if max_lags is None else min(max_lags + 1, size)
        if center:
            rows = rows - math_ops.reduce_mean(rows, -1, keepdims=True)
        is_double = x.dtype in (dtypes.float64, dtypes.complex128)
        waves = array_ops.cast(rows, dtypes.complex128 if is_double else dtypes.complex64)
        # With as many zeros behind a row, it does not meet its own beginning.
        waves = fft(array_ops.pad(waves, [[0, 0]] * (rank - 1) + [[0, size]]))
        products = ifft(waves * math_ops.conj(waves))[..., :lags]
        found = products if x.dtype.is_complex else array_ops.cast(math_ops.real(products), x.dtype)
        found = found / array_ops.cast(np.arange(size, size - lags, -1), x.dtype)
        if normalize:
            found = found / found[..., :1]
        return array_ops.transpose(found, np.argsort(order).tolist())


def percentile(
    x: TensorLike,
    q: TensorLike,
    axis: TensorLike | None = None,
    interpolation: str | None = None,
    keep_dims: bool = False,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """The `q`-th percentile: what is greater than `q` percent of the elements.

    Args:
        x: The elements.
        q: A number from 0 to 100.
        axis: Dimensions over which it is taken; all when None. `x` must have a known rank where it is given.
        interpolation: ``"nearest"`` for the element whose rank is nearest, or ``"lower"`` or ``"higher"``; nearest when
            None.
        keep_dims: Keep these dimensions, of size 1.
        validate_args: Check `q`.
        name: Name of the operations.

    Returns:
        Elements of `x`.

    Raises:
        ValueError: `interpolation` is none of these; `axis` is not known, or there is no such dimension.
    """
    if interpolation not in (None, "lower", "higher", "nearest"):
        raise ValueError(
            f"Argument 'interpolation' must be in {{'lower', 'higher', 'nearest'}}.  Found {interpolation}"
        )
    with get_default_graph().name_scope(name or "percentile"):
        x = convert_to_tensor(x, name="x")
        q = array_ops.cast(q, dtypes.float64)
        if q.shape.rank:
            raise ValueError(f"Expected argument 'q' to have ndims 0.  Found tensor {q}")
        if validate_args:
            q = after([assert_greater_equal(q, np.float64(0)), assert_less_equal(q, np.float64(100))], q)
        axes = None if axis is None else _known_axes(axis, x)
        if axes is None:
            elements = array_ops.reshape(x, [-1])
        else:
            rank = x.shape.rank or 0
            others = [each for each in range(rank) if each not in axes]
            moved = array_ops.transpose(x, others + axes)
            elements = array_ops.reshape(moved, array_ops.concat([array_ops.shape(moved)[: len(others)], [-1]], 0))
            elements.set_shape([x.shape.as_list()[each] for each in others] + [None])
        # TensorFlow counts from the greatest element downwards.
        count = array_ops.shape(elements)[-1]
        place = array_ops.cast(count - 1, dtypes.float64) * (1.0 - q / 100.0)
        rounded = {"lower": math_ops.ceil, "higher": math_ops.floor}.get(interpolation or "", math_ops.round)(place)
        found = sort(elements, direction="DESCENDING")[..., array_ops.cast(rounded, dtypes.int32)]
        if not keep_dims:
            return found
        if axes is None:
            return array_ops.reshape(found, array_ops.ones_like(array_ops.shape(x)))
        for each in sorted(axes):
            found = array_ops.expand_dims(found, each)
        return found


def _known_axes(axis: TensorLike, x: Tensor) -> list[int]:
    known = constant_value(convert_to_tensor(axis, name="axis"))
    if known is None:
        raise ValueError(f"Expected argument 'axis' to be statically available.  Found: {axis!r}")
    if known.ndim > 1 or known.dtype.kind not in "iu":
        raise ValueError(f"axis must be an integer, or a vector of integers, not {known}")
    rank = x.shape.rank
    if not rank:
        raise ValueError(f"Expected argument 'x' to have known ndims >= 1.  Found tensor {x}")
    for each in known.ravel():
        if not -rank <= each < rank:
            raise ValueError(f"dim {each} not in the interval [{-rank}, {rank - 1}].")
    return [int(each) % rank for each in known.ravel()]


def reduce_weighted_logsumexp(
    logx: TensorLike,
    w: TensorLike | None = None,
    axis: TensorLike | None = None,
    keep_dims: bool = False,
    return_sign: bool = False,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """``log(abs(reduce_sum(w * exp(logx))))``, without overflow.

    Args:
        logx: The logarithms.
        w: Weights of any sign, broadcast against `logx`; ones when None.
        axis: Dimensions to sum over; all when None.
        keep_dims: Keep them, of size 1.
        return_sign: Whether the sign of the sum is returned too.
        name: Name of the operations.

    Returns:
        The logarithm; with `return_sign`, a tuple of it and the sign.
    """
    with get_default_graph().name_scope(name or "reduce_weighted_logsumexp"):
        logx = convert_to_tensor(logx, name="logx")
        if w is None:
            total = reduce_logsumexp(logx, axis, keepdims=keep_dims)
            return (total, array_ops.ones_like(total)) if return_sign else total
        w = convert_to_tensor(w, logx.dtype, "w")
        logs = logx + log(math_ops.abs(w))
        most = reduce_max(logs, axis, keepdims=True)
        most = where_v2(math_ops.is_inf(most), array_ops.zeros_like(most), most)
        summed = reduce_sum(sign(w) * exp(logs - most), axis, keepdims=keep_dims)
        if not keep_dims:
            most = array_ops.reshape(most, array_ops.shape(summed))
        its_sign = sign(summed)
        total = most + log(its_sign * summed)
        return (total, its_sign) if return_sign else total


def tridiag(
    below: TensorLike | None = None,
    diag: TensorLike | None = None,
    above: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Matrices with a diagonal and those beside it.

    Args:
        below: Shape ``[..., d - 1]``: what is below the diagonal; nothing when None.
        diag: Shape ``[..., d]``: the diagonal; zeros when None.
        above: Shape ``[..., d - 1]``: what is above it; nothing when None.
        name: Name of the operations.

    Returns:
        Shape ``[..., d, d]``.

    Raises:
        ValueError: None is given.
    """
    with get_default_graph().name_scope(name or "tridiag"):
        if below is None and diag is None and above is None:
            raise ValueError("Must specify at least one of {below, diag, above}.")
        parts = [] if diag is None else [matrix_diag(convert_to_tensor(diag, name="diag"))]
        for beside, is_below in ((below, True), (above, False)):
            if beside is not None:
                vector = convert_to_tensor(beside)
                nothing = array_ops.zeros(array_ops.concat([array_ops.shape(vector)[:-1], [1]], 0), vector.dtype)
                wide = matrix_diag(array_ops.concat([nothing, vector, nothing], -1))
                parts.append(wide[..., :-1, 1:] if is_below else wide[..., 1:, :-1])
        return reduce(math_ops.add, parts)


# -- posterior distributions ---------------------------------------------------------------------------


def normal_conjugates_known_scale_posterior(prior: Normal, scale: TensorLike, s: TensorLike, n: TensorLike) -> Normal:
    """The distribution of the mean of normal numbers after some were seen.

    Args:
        prior: Its distribution before that.
        scale: The standard deviation of the numbers.
        s: The sum of those that were seen.
        n: How many they are.

    Raises:
        TypeError: `prior` is not a `Normal`; `s` has another dtype.
    """
    moved, variance, _ = _posterior(prior, scale, s, n)
    return Normal(moved, sqrt(variance))


def normal_conjugates_known_scale_predictive(prior: Normal, scale: TensorLike, s: TensorLike, n: TensorLike) -> Normal:
    """The distribution of the next of normal numbers after some were seen; see the posterior of their mean.

    Args:
        prior: The distribution of their mean before that.
        scale: The standard deviation of the numbers.
        s: The sum of those that were seen.
        n: How many they are.

    Raises:
        TypeError: `prior` is not a `Normal`; `s` has another dtype.
    """
    moved, variance, own = _posterior(prior, scale, s, n)
    return Normal(moved, sqrt(variance + own))


def _posterior(prior: Normal, scale: TensorLike, s: TensorLike, n: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    if not isinstance(prior, Normal):
        raise TypeError("Expected prior to be an instance of type Normal")
    s = convert_to_tensor(s)
    if s.dtype is not prior.dtype:
        raise TypeError(f"Observation sum s.dtype does not match prior dtype: {s.dtype} vs. {prior.dtype}")
    own, before = square(convert_to_tensor(scale, prior.dtype)), square(prior.scale)
    variance = 1.0 / (1.0 / before + array_ops.cast(n, prior.dtype) / own)
    return (prior.loc / before + s / own) * variance, variance, own


class SeedStream:
    """Seeds, one after the other, that depend on a first one and on who asks.

    Args:
        seed: The first: an integer, None, or another stream whose first it is.
        salt: Who asks.
    """

    def __init__(self, seed: int | str | SeedStream | None, salt: str) -> None:
        self.original_seed: int | str | None = seed.original_seed if isinstance(seed, SeedStream) else seed
        self.salt = salt
        self._count = 0

    def __call__(self) -> int | None:
        """The next seed; None if there is no first one."""
        self._count += 1
        if self.original_seed is None:
            return None
        text = str((self.original_seed, self._count, self.salt)).encode()
        return int(hashlib.sha512(text).hexdigest(), 16)
