"""Means and variances in two steps: first sums, which can be added up over batches; then the moments from the sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.shape_ops import cast, shape, squeeze, stop_gradient
from tfray.ops.math.arithmetic_ops import add, div_no_nan, multiply, reciprocal, square, squared_difference, subtract
from tfray.ops.math.reduction_ops import reduce_prod, reduce_sum
from tfray.ops.nn.normalization_ops import batch_normalization


def sufficient_statistics(
    x: TensorLike,
    axes: TensorLike,
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Sum what mean and variance are computed from (see `normalize_moments`).

    Args:
        x: Shape ``[...]``, a float dtype.
        axes: The dimensions to sum over: a list of integers or an integer vector.
        shift: What to subtract from `x` first, broadcast to its shape: near the mean it saves digits. None for nothing.
        keep_dims: Leave the dimensions in place, with size 1.
        name: Name scope of the operations.
        keepdims: Another spelling of `keep_dims`.

    Returns:
        The number of elements, a scalar; the sum of ``x - shift`` and the sum of its squares, of the shape of `x`
        without the dimensions; and `shift`.

    Raises:
        TypeError: `axes` is a single number.
    """
    if isinstance(axes, (int, np.integer)) or (isinstance(axes, np.ndarray) and not axes.ndim):
        raise TypeError(f"sufficient_statistics: axes must be a list of dimensions, not {axes!r}")
    keep = bool(by_either_name("moments", keepdims=keepdims, keep_dims=keep_dims))
    with get_default_graph().name_scope(name or "sufficient_statistics"):
        x = convert_to_tensor(x, name="x")
        count = cast(reduce_prod(gather(shape(x), axes)), x.dtype)
        if shift is None:
            values, squares = x, square(x)
        else:
            shift = convert_to_tensor(shift, x.dtype, name="shift")
            values, squares = subtract(x, shift), squared_difference(x, shift)
        total, total_squares = (reduce_sum(terms, axes, keepdims=keep) for terms in (values, squares))
        return count, total, total_squares, shift


def normalize_moments(
    counts: TensorLike, mean_ss: TensorLike, variance_ss: TensorLike, shift: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute mean and variance from sums.

    Args:
        counts: Number of elements, a scalar.
        mean_ss: Sum of the elements less `shift`, any shape.
        variance_ss: Sum of the squares of the elements less `shift`, the same shape.
        shift: What had been subtracted from each element, a scalar or of that shape; None for nothing.
        name: Name scope of the operations.

    Returns:
        Mean and variance, of the shape of the sums.
    """
    with get_default_graph().name_scope(name or "normalize"):
        share = reciprocal(counts)
        shifted = multiply(mean_ss, share)
        mean = shifted if shift is None else add(shifted, shift)
        return mean, subtract(multiply(variance_ss, share), square(shifted), "variance")


def weighted_moments(
    x: TensorLike,
    axes: Axes,
    frequency_weights: TensorLike,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the mean and variance of weighted elements.

    Args:
        x: Shape ``[...]``, a float dtype.
        axes: The dimensions to average over, an integer vector (a list).
        frequency_weights: How often each element counts; broadcasts to the shape of `x`.
        name: Name scope of the operations.
        keep_dims: Leave the dimensions in place, with size 1.
        keepdims: Another spelling of `keep_dims`.

    Returns:
        Mean and variance, of the shape of `x` without the dimensions, or with size 1 there.
    """
    keep = bool(by_either_name("moments", keepdims=keepdims, keep_dims=keep_dims))
    with get_default_graph().name_scope(name or "weighted_moments"):
        x = convert_to_tensor(x, name="x")
        dtype = dtypes.float32 if x.dtype is dtypes.float16 else x.dtype
        wide, weights = cast(x, dtype), cast(frequency_weights, dtype)
        weights = multiply(weights, ones_like(wide))
        total = reduce_sum(weights, axes, keepdims=True)
        mean = div_no_nan(reduce_sum(multiply(weights, wide), axes, keepdims=True), total)
        # The mean gets no gradient from here: the weighted deviations from it add up to 0.
        deviations = squared_difference(wide, stop_gradient(mean))
        variance = div_no_nan(reduce_sum(multiply(weights, deviations), axes, keepdims=True), total)
        if not keep:
            mean, variance = (squeeze(value, axes) for value in (mean, variance))
        return cast(mean, x.dtype), cast(variance, x.dtype)


def batch_norm_with_global_normalization(
    t: TensorLike | None = None,
    m: TensorLike | None = None,
    v: TensorLike | None = None,
    beta: TensorLike | None = None,
    gamma: TensorLike | None = None,
    variance_epsilon: TensorLike | None = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
) -> Tensor:
    """Normalize images by a mean and variance per channel (see `batch_normalization`).

    Args:
        t: ``[batch, height, width, channels]``.
        m: ``[channels]``: the mean.
        v: ``[channels]``: the variance.
        beta: ``[channels]``: added in the end.
        gamma: ``[channels]``: multiplied before, with `scale_after_normalization`.
        variance_epsilon: A small scalar added to the variance.
        scale_after_normalization: Whether to multiply by `gamma`.
        name: Name scope of the operations.
        input: Another spelling of `t`.
        mean: Another spelling of `m`.
        variance: Another spelling of `v`.

    Returns:
        The shape and dtype of `t`.
    """
    op = "batch_norm_with_global_normalization"
    images = by_either_name(op, input=input, t=t)
    center, spread = by_either_name(op, mean=mean, m=m), by_either_name(op, variance=variance, v=v)
    scale = gamma if scale_after_normalization else None
    given: tuple[Any, Any, Any, Any, Any, Any] = (images, center, spread, beta, scale, variance_epsilon)
    return batch_normalization(*given, name)
