"""Operations on quantized tensors: integers that stand for floats between the two ends of a range.

They are built of operations on plain numbers, and give the integers that TensorFlow's kernels give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import where
from tfray.ops.arrays.join_ops import concat, stack, unstack
from tfray.ops.arrays.shape_ops import cast, identity
from tfray.ops.math.arithmetic_ops import abs, maximum, minimum, sign
from tfray.ops.math.comparison_ops import equal, logical_and
from tfray.ops.math.reduction_ops import reduce_max, reduce_min
from tfray.ops.math.rounding_ops import clip_by_value, floor, rint
from tfray.ops.nn.conv_ops import conv2d
from tfray.ops.nn.pooling_ops import avg_pool, max_pool

_BYTES: Final = (dtypes.qint8, dtypes.quint8)

_LAST_BELOW_INT32: Final = 2147483520.0
"""The largest float32 that is an int32."""


class QuantizedResult(NamedTuple):
    """A quantized tensor, and the floats that its lowest and highest integer stand for, float32 scalars."""

    output: Tensor
    min_output: Tensor
    max_output: Tensor


class QuantizedConcat(NamedTuple):
    """As `QuantizedResult`, under the names of `quantized_concat`."""

    output: Tensor
    output_min: Tensor
    output_max: Tensor


class QuantizedReluX(NamedTuple):
    """As `QuantizedResult`, under the names of `quantized_relu_x`."""

    activations: Tensor
    min_activations: Tensor
    max_activations: Tensor


def quantized_max_pool(
    input: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> QuantizedResult:
    """The largest element of each window of quantized images.

    Args:
        input: The images, shape ``[batch, height, width, channels]``, qint8 or quint8.
        min_input: The float that the lowest integer stands for, a scalar.
        max_input: The float that the highest integer stands for, a scalar.
        ksize: Sizes of the window in the four dimensions.
        strides: Distances between windows, likewise.
        padding: ``"SAME"`` or ``"VALID"``.
        name: Name scope of the operations.

    Returns:
        The images, shape ``[batch, new height, new width, channels]``, of the same dtype, and their range.
    """
    return _pooled("QuantizedMaxPool", max_pool, input, min_input, max_input, ksize, strides, padding, name)


def quantized_avg_pool(
    input: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> QuantizedResult:
    """The mean of each window of quantized images, rounded, halves to even; arguments as for `quantized_max_pool`.

    `input` has the shape ``[batch, height, width, channels]``, the two bounds are scalars.
    """
    return _pooled("QuantizedAvgPool", avg_pool, input, min_input, max_input, ksize, strides, padding, name)


def _pooled(
    what: str,
    pool: Callable[..., Tensor],
    input: TensorLike,
    low: TensorLike,
    high: TensorLike,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None,
) -> QuantizedResult:
    with get_default_graph().name_scope(name or what):
        images = _quantized(what, input, _BYTES)
        pooled = pool(cast(images, dtypes.float32), ksize, strides, padding)
        return QuantizedResult(_integers(rint(pooled), images.dtype), *_bounds(low, high))


def quantized_relu_x(
    features: TensorLike,
    max_value: TensorLike,
    min_features: TensorLike,
    max_features: TensorLike,
    out_type: DTypeLike = dtypes.quint8,
    name: str | None = None,
) -> QuantizedReluX:
    """Quantized numbers, those that stand for floats below 0 or above `max_value` replaced by these bounds.

    Args:
        features: The numbers, any shape, qint8 or quint8.
        max_value: The upper bound, a float scalar.
        min_features: The float that the lowest integer stands for, a scalar.
        max_features: The float that the highest integer stands for, a scalar.
        out_type: The dtype of `features`, which is that of the result.
        name: Name scope of the operations.

    Returns:
        The numbers, same shape, and their range, which is that of `features`.
    """
    what = "QuantizedReluX"
    with get_default_graph().name_scope(name or what):
        numbers = _quantized(what, features, (as_dtype(out_type),))
        low, high = _bounds(min_features, max_features)
        first, last = (_clipped(_level(value, low, high, numbers.dtype), numbers.dtype) for value in (0.0, max_value))
        kept = minimum(maximum(cast(numbers, dtypes.float64), first), last)
        return QuantizedReluX(_integers(kept, numbers.dtype), low, high)


def quantized_conv2d(
    input: TensorLike,
    filter: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    min_filter: TensorLike,
    max_filter: TensorLike,
    strides: Sequence[int],
    padding: str,
    out_type: DTypeLike = dtypes.qint32,
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> QuantizedResult:
    """A convolution of quantized images.

    Args:
        input: The images, shape ``[batch, height, width, channels]``, quint8.
        filter: Filters, shape ``[height, width, channels, filters]``, quint8.
        min_input: The float that 0 in `input` stands for, a scalar.
        max_input: The float that 255 in `input` stands for, a scalar.
        min_filter: As `min_input`, for `filter`: a scalar.
        max_filter: As `max_input`, for `filter`: a scalar.
        strides: Distances between windows in the four dimensions.
        padding: ``"SAME"`` or ``"VALID"``. The rim stands for zeros.
        out_type: ``qint32``.
        dilations: Ones: there are no dilated quantized convolutions.
        name: Name scope of the operations.

    Returns:
        Shape ``[batch, new height, new width, filters]``, qint32, and the floats that the lowest and the highest int32
        stand for.

    Raises:
        InvalidArgumentError: `dilations` are not ones, `strides` differ, or `out_type` is another dtype.
    """
    what = "QuantizedConv2D"
    if any(rate != 1 for rate in dilations):
        raise InvalidArgumentError(f"{what}: dilations are {list(dilations)}, expected ones")
    if len(strides) != 4 or strides[1] != strides[2]:
        raise InvalidArgumentError(f"{what}: strides are {list(strides)}, expected four, equal for height and width")
    if as_dtype(out_type) is not dtypes.qint32:
        raise InvalidArgumentError(f"{what}: out_type is {as_dtype(out_type).name}, expected qint32")
    with get_default_graph().name_scope(name or what):
        images, image_step = _from_zero(what, input, min_input, max_input)
        filters, filter_step = _from_zero(what, filter, min_filter, max_filter)
        sums = conv2d(images, filters, strides, padding)
        step = image_step * filter_step
        first, last = _limits(dtypes.qint32)
        return QuantizedResult(_integers(sums, dtypes.qint32), step * first, step * last)


def quantized_concat(
    concat_dim: TensorLike,
    values: Sequence[TensorLike],
    input_mins: Sequence[TensorLike],
    input_maxes: Sequence[TensorLike],
    name: str | None = None,
) -> QuantizedConcat:
    """Join quantized tensors along a dimension. All of the result has one range, which holds those of the `values`.

    Args:
        concat_dim: The dimension, an int32 scalar.
        values: Two tensors or more, of shapes that agree in the other dimensions, all quint8 or all qint32.
        input_mins: For each, the float that its lowest integer stands for: scalars.
        input_maxes: For each, the float that its highest integer stands for: scalars.
        name: Name scope of the operations.

    Returns:
        The joined tensor, of rank and dtype of the `values`, and its range. That of quint8 begins at 0 or below, that
        of qint32 lies evenly around 0.

    Raises:
        InvalidArgumentError: There are fewer than two values, or not as many bounds.
    """
    what = "QuantizedConcat"
    if len(values) < 2 or not len(values) == len(input_mins) == len(input_maxes):
        counts = f"{len(values)} values, {len(input_mins)} lower and {len(input_maxes)} upper bounds"
        raise InvalidArgumentError(f"{what}: there are {counts}, expected two or more of each")
    with get_default_graph().name_scope(name or what):
        numbers = [_quantized(what, value, (dtypes.quint8, dtypes.qint32)) for value in values]
        dtype = numbers[0].dtype
        lows, highs = (
            stack([convert_to_tensor(one, dtypes.float32) for one in each]) for each in (input_mins, input_maxes)
        )
        low, high = minimum(reduce_min(lows), 0.0), reduce_max(highs)
        if dtype is dtypes.qint32:
            high = maximum(-low, high)
            low = -high
        parts = [
            _in_range(part, (part_low, part_high), (low, high))
            for part, part_low, part_high in zip(numbers, unstack(lows), unstack(highs), strict=True)
        ]
        return QuantizedConcat(concat(parts, concat_dim), low, high)


def _from_zero(what: str, value: TensorLike, low: TensorLike, high: TensorLike) -> tuple[Tensor, Tensor]:
    """Quantized numbers less the one that stands for 0, as float64, and the float that a step stands for."""
    numbers = _quantized(what, value, (dtypes.quint8,))
    low, high = _bounds(low, high)
    return cast(numbers, dtypes.float64) - _level(0.0, low, high, numbers.dtype), (high - low) / 255


def _in_range(numbers: Tensor, old: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor]) -> Tensor:
    """Numbers of one range as those of another that stand for the same floats."""
    # All in float32, as TensorFlow does: 32 bits are rounded.
    first, last = _limits(numbers.dtype)
    step, scale = cast(1 / _levels_per_unit(*old, numbers.dtype), dtypes.float32), _levels_per_unit(*new, numbers.dtype)
    plain, scale = cast(numbers, dtypes.float32), cast(scale, dtypes.float32)
    floats = (_rounded(old[0] / step) * step - first * step) + plain * step
    levels = _rounded(floats * scale) - (_rounded(new[0] * scale) - first)
    changed = _integers(clip_by_value(levels, first, min(last, _LAST_BELOW_INT32)), numbers.dtype)
    is_same = logical_and(equal(old[0], new[0]), equal(old[1], new[1]))
    chosen = where(is_same, cast(numbers, dtypes.int64), cast(changed, dtypes.int64))
    return cast(chosen, numbers.dtype)


# -- numbers and what they stand for ---------------------------------------------------------------------


def _quantized(what: str, value: TensorLike, allowed: Sequence[DType]) -> Tensor:
    tensor = convert_to_tensor(value)
    if tensor.dtype not in allowed:
        names = " or ".join(dtype.name for dtype in allowed)
        raise InvalidArgumentError(f"{what}: {tensor.name!r} is {tensor.dtype.name}, expected {names}")
    return tensor


def _bounds(low: TensorLike, high: TensorLike) -> tuple[Tensor, Tensor]:
    bounds = convert_to_tensor(low, dtypes.float32), convert_to_tensor(high, dtypes.float32)
    for bound in bounds:
        if bound.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"bounds must be rank 0, found {bound!r} of shape {bound.shape}")
    return identity(bounds[0]), identity(bounds[1])


def _limits(dtype: DType) -> tuple[float, float]:
    """The lowest and the highest integer of a quantized dtype."""
    bits = 8 * dtype.size
    first = 0 if dtype.name.startswith("qu") else -(1 << (bits - 1))
    return float(first), float(first + (1 << bits) - 1)


def _levels_per_unit(low: Tensor, high: Tensor, dtype: DType) -> Tensor:
    first, last = _limits(dtype)
    return (last - first) / (cast(high, dtypes.float64) - cast(low, dtypes.float64))


def _level(value: TensorLike, low: Tensor, high: Tensor, dtype: DType) -> Tensor:
    """The integer, as a float64, that stands for a float; it may lie outside of the dtype."""
    scale = _levels_per_unit(low, high, dtype)
    of_value, of_low = (_rounded(cast(each, dtypes.float64) * scale) for each in (value, low))
    return of_value - of_low + _limits(dtype)[0]


def _rounded(values: Tensor) -> Tensor:
    """Rounded half away from zero."""
    return sign(values) * floor(abs(values) + 0.5)


def _clipped(values: Tensor, dtype: DType) -> Tensor:
    return clip_by_value(values, *_limits(dtype))


def _integers(values: Tensor, dtype: DType) -> Tensor:
    """Floats that are whole numbers as the elements of a quantized dtype."""
    return cast(cast(values, dtypes.int64), dtype)
