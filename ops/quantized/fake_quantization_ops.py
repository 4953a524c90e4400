"""Floats stored in a few bits, or rounded as if they were, for training networks that will be quantized later."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    NumpyDType,
    OpDef,
    on_cpu,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import all_inputs_alike
from tfray.framework.tensor_shape import SCALAR, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.tiles import buffer, map_flat

_BITS: Final = ("num_bits", "narrow_range")


def _bits(op: str, num_bits: int, narrow_range: bool) -> dict[str, Any]:
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"{op}: num_bits is {num_bits}, expected 2 to 16")
    return {"num_bits": int(num_bits), "narrow_range": bool(narrow_range)}


class Range(NamedTuple):
    """The range that numbers are rounded to, shifted so that 0 is one of its steps. Scalars, or one per channel."""

    low: Any
    high: Any
    step: Any

    @classmethod
    def of(cls, ctx: KernelContext, low: Array, high: Array) -> Range:
        """The range for the bounds `low` and `high`, float32."""
        first = np.float32(1 if ctx.attr("narrow_range") else 0)
        last = np.float32((1 << ctx.attr("num_bits")) - 1)
        step = (high - low) / (last - first)
        from_low = first - low / step
        # Rounded half away from zero.
        zero = ctx.xp.clip(ctx.xp.floor(from_low + np.float32(0.5)), first, last)
        shifted = (first - zero) * step
        # Bounds in the wrong order leave one number.
        return cls(shifted, ctx.xp.maximum(shifted, (last - zero) * step), step)

    def apply(self, xp: ArrayModule, values: Array) -> Array:
        """The values, rounded."""
        steps = xp.floor((xp.clip(values, self.low, self.high) - self.low) * (1 / self.step) + np.float32(0.5))
        return steps * self.step + self.low


def _rounded(ctx: KernelContext, values: Array, low: Array, high: Array, out: Array | None) -> Array:
    xp, target = ctx.xp, Range.of(ctx, low, high)
    per_step = 1 / target.step
    out = xp.empty(values.shape, values.dtype) if out is None else out

    def work(part: Array, source: Array) -> None:
        xp.clip(source, target.low, target.high, out=part)
        xp.subtract(part, target.low, out=part)
        xp.multiply(part, per_step, out=part)
        xp.floor(xp.add(part, np.float32(0.5), out=part), out=part)
        xp.add(xp.multiply(part, target.step, out=part), target.low, out=part)

    return map_flat(xp, work, out, values)


# -- fixed bounds --------------------------------------------------------------------------------------


@none_is_default
def fake_quant_with_min_max_args(
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Round to the numbers that `num_bits` bits can hold between two bounds.

    Args:
        inputs: Shape ``[...]``, float32.
        min: Lower bound.
        max: Upper bound, greater than `min`. The bounds are shifted a little, so that 0 can be held.
        num_bits: From 2 to 16.
        narrow_range: Leave the least of the numbers unused.
        name: Name of the operation.

    Returns:
        Same shape and dtype. The gradient passes where the input lies between the bounds.
    """
    return add_op(FAKE_QUANT_ARGS, inputs, name=name, **_args_attrs(min, max, num_bits, narrow_range))


def _args_attrs(low: float, high: float, num_bits: int, narrow_range: bool) -> dict[str, Any]:
    if not low < high:
        raise InvalidArgumentError(f"fake_quant_with_min_max_args: bounds {low} and {high}, expected min < max")
    return {"min": float(low), "max": float(high), **_bits("fake_quant_with_min_max_args", num_bits, narrow_range)}


def _bounds(ctx: KernelContext) -> tuple[Any, Any]:
    return np.float32(ctx.attr("min")), np.float32(ctx.attr("max"))


def _args_kernel(ctx: KernelContext, inputs: Array, out: Array | None = None) -> Array:
    return _rounded(ctx, inputs, *_bounds(ctx), out)


def _same_args(op: Operation) -> dict[str, Any]:
    return {name: op.attr(name) for name in ("min", "max", *_BITS)}


def _args_gradient(op: Operation, d_outputs: Tensor) -> list[Tensor | None]:
    return [add_op(FAKE_QUANT_ARGS_GRADIENT, d_outputs, op.inputs[0], **_same_args(op))]


FAKE_QUANT_ARGS = register(
    OpDef(
        name="FakeQuantWithMinMaxArgs",
        inputs=("inputs: float32",),
        outputs=("outputs: float32",),
        attrs=("min", "max", *_BITS),
        shape=all_inputs_alike,
        kernels=on_every_device(out_kernel(_args_kernel, may_overwrite=(0,))),
        gradient=_args_gradient,
    )
)


def fake_quant_with_min_max_args_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `fake_quant_with_min_max_args`: `gradients` where `inputs` lie between the bounds.

    Args:
        gradients: Gradient of the rounded numbers, of their shape.
        inputs: Shape ``[...]``, float32.
        min: As for `fake_quant_with_min_max_args`.
        max: Likewise.
        num_bits: Likewise.
        narrow_range: Likewise.
        name: Name of the operation.

    Returns:
        Same shape and dtype.
    """
    attrs = _args_attrs(min, max, num_bits, narrow_range)
    return add_op(FAKE_QUANT_ARGS_GRADIENT, gradients, inputs, name=name, **attrs)


def _args_gradient_kernel(ctx: KernelContext, d_outputs: Array, inputs: Array, out: Array | None = None) -> Array:
    xp, target = ctx.xp, Range.of(ctx, *_bounds(ctx))
    out = xp.empty(inputs.shape, inputs.dtype) if out is None else out

    def work(part: Array, d_part: Array, source: Array) -> None:
        # A number is within the range if clipping does not change it.
        clipped = xp.clip(source, target.low, target.high, out=buffer(xp, "clipped", part.shape, part.dtype))
        is_inside = xp.equal(clipped, source, out=buffer(xp, "is_inside", part.shape, bool))
        xp.multiply(d_part, is_inside, out=part)

    return map_flat(xp, work, out, d_outputs, inputs)


def _args_gradient_gradient(op: Operation, d_inputs: Tensor) -> list[Tensor | None]:
    return [add_op(FAKE_QUANT_ARGS_GRADIENT, d_inputs, op.inputs[1], **_same_args(op)), None]


FAKE_QUANT_ARGS_GRADIENT = register(
    OpDef(
        name="FakeQuantWithMinMaxArgsGradient",
        inputs=("gradients: float32", "inputs: float32"),
        outputs=("backprops: float32",),
        attrs=("min", "max", *_BITS),
        shape=all_inputs_alike,
        kernels=on_every_device(out_kernel(_args_gradient_kernel)),
        gradient=_args_gradient_gradient,
    )
)


# -- bounds that are learnt ----------------------------------------------------------------------------


@none_is_default
def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """As `fake_quant_with_min_max_args`, with bounds that are tensors and get gradients.

    Args:
        inputs: Shape ``[...]``, float32.
        min: Lower bound, a scalar.
        max: Upper bound, a scalar.
        num_bits: From 2 to 16.
        narrow_range: Leave the least of the numbers unused.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `inputs`.
    """
    attrs = _bits("fake_quant_with_min_max_vars", num_bits, narrow_range)
    return add_op(FAKE_QUANT_VARS, inputs, min, max, name=name, **attrs)


@none_is_default
def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """As `fake_quant_with_min_max_vars`, with bounds for each channel.

    Args:
        inputs: Shape ``[..., channels]``, float32.
        min: Lower bounds, ``[channels]``.
        max: Upper bounds, ``[channels]``.
        num_bits: From 2 to 16.
        narrow_range: Leave the least of the numbers unused.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `inputs`.
    """
    attrs = _bits("fake_quant_with_min_max_vars_per_channel", num_bits, narrow_range)
    return add_op(FAKE_QUANT_VARS_PER_CHANNEL, inputs, min, max, name=name, **attrs)


def _vars_kernel(ctx: KernelContext, inputs: Array, low: Array, high: Array) -> Array:
    if low.ndim == 0:
        return _rounded(ctx, inputs, low, high, None)
    return Range.of(ctx, low, high).apply(ctx.xp, inputs)


def _vars_gradient_kernel(
    ctx: KernelContext, d_outputs: Array, inputs: Array, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    xp, target = ctx.xp, Range.of(ctx, low, high)
    below, above = inputs < target.low, inputs > target.high
    axes = tuple(range(inputs.ndim - low.ndim))
    zero = np.float32(0)
    d_inputs = xp.where(below | above, zero, d_outputs)
    d_low, d_high = (xp.where(beyond, d_outputs, zero).sum(axis=axes, dtype=np.float32) for beyond in (below, above))
    return d_inputs, d_low, d_high


def _check_bounds(inputs: TensorShape, bounds: list[Tensor], per_channel: bool) -> TensorShape:
    if not per_channel:
        for bound in bounds:
            bound.shape.assert_has_rank(0)
        return inputs
    inputs = inputs.with_rank_at_least(1)
    channels = TensorShape([inputs.sizes[-1] if inputs.rank else None])
    for bound in bounds:
        channels = channels.merge_with(bound.shape.with_rank(1))
    return inputs


def _vars_shape(op: Operation) -> list[TensorShape]:
    per_channel = op.type.endswith("PerChannel")
    return [_check_bounds(op.inputs[0].shape, list(op.inputs[1:]), per_channel)]


def _vars_gradient_shape(op: Operation) -> list[TensorShape]:
    per_channel = op.type.endswith("PerChannelGradient")
    inputs = op.inputs[0].shape.merge_with(op.inputs[1].shape)
    bounds = op.inputs[2].shape.merge_with(op.inputs[3].shape)
    return [_check_bounds(inputs, list(op.inputs[2:]), per_channel), bounds, bounds]


def _bits_of(op: Operation) -> dict[str, Any]:
    return {name: op.attr(name) for name in _BITS}


def _vars_gradient(op: Operation, d_outputs: Tensor) -> list[Tensor | None]:
    return add_op(FAKE_QUANT_VARS_GRADIENT, d_outputs, *op.inputs, **_bits_of(op))


def _per_channel_gradient(op: Operation, d_outputs: Tensor) -> list[Tensor | None]:
    return add_op(FAKE_QUANT_VARS_PER_CHANNEL_GRADIENT, d_outputs, *op.inputs, **_bits_of(op))


FAKE_QUANT_VARS = register(
    OpDef(
        name="FakeQuantWithMinMaxVars",
        inputs=("inputs: float32", "min: float32", "max: float32"),
        outputs=("outputs: float32",),
        attrs=_BITS,
        shape=_vars_shape,
        kernels=on_every_device(_vars_kernel),
        gradient=_vars_gradient,
    )
)
FAKE_QUANT_VARS_PER_CHANNEL = register(
    OpDef(
        name="FakeQuantWithMinMaxVarsPerChannel",
        inputs=("inputs: float32", "min: float32", "max: float32"),
        outputs=("outputs: float32",),
        attrs=_BITS,
        shape=_vars_shape,
        kernels=on_every_device(_vars_kernel),
        gradient=_per_channel_gradient,
    )
)


def fake_quant_with_min_max_vars_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Compute the gradients of `fake_quant_with_min_max_vars` by its inputs and both bounds.

    Args:
        gradients: Gradient of the rounded numbers, of their shape.
        inputs: Shape ``[...]``, float32.
        min: Lower bound, a scalar.
        max: Upper bound, a scalar.
        num_bits: As for `fake_quant_with_min_max_vars`.
        narrow_range: Likewise.
        name: Name of the operation.

    Returns:
        The gradients: one of the shape of `inputs`, and two scalars.
    """
    attrs = _bits("fake_quant_with_min_max_vars_gradient", num_bits, narrow_range)
    return add_op(FAKE_QUANT_VARS_GRADIENT, gradients, inputs, min, max, name=name, **attrs)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Compute the gradients of `fake_quant_with_min_max_vars_per_channel` (see the one without channels).

    `gradients` and `inputs` have the shape ``[..., channels]``, the bounds ``[channels]``, and so do their gradients.
    """
    attrs = _bits("fake_quant_with_min_max_vars_per_channel_gradient", num_bits, narrow_range)
    return add_op(FAKE_QUANT_VARS_PER_CHANNEL_GRADIENT, gradients, inputs, min, max, name=name, **attrs)


_GRADIENT_INPUTS: Final = ("gradients: float32", "inputs: float32", "min: float32", "max: float32")
_GRADIENT_OUTPUTS: Final = (
    "backprops_wrt_input: float32",
    "backprop_wrt_min: float32",
    "backprop_wrt_max: float32",
)
FAKE_QUANT_VARS_GRADIENT = register(
    OpDef(
        name="FakeQuantWithMinMaxVarsGradient",
        inputs=_GRADIENT_INPUTS,
        outputs=_GRADIENT_OUTPUTS,
        attrs=_BITS,
        shape=_vars_gradient_shape,
        kernels=on_every_device(_vars_gradient_kernel),
    )
)
FAKE_QUANT_VARS_PER_CHANNEL_GRADIENT = register(
    OpDef(
        name="FakeQuantWithMinMaxVarsPerChannelGradient",
        inputs=_GRADIENT_INPUTS,
        outputs=_GRADIENT_OUTPUTS,
        attrs=_BITS,
        shape=_vars_gradient_shape,
        kernels=on_every_device(_vars_gradient_kernel),
    )
)


# -- numbers of few bits -------------------------------------------------------------------------------


class Quantized(NamedTuple):
    """What `quantize` returns.

    Attributes:
        output: The quantized numbers.
        output_min: The float that the least of them stands for, a scalar.
        output_max: The float that the greatest of them stands for.
    """

    output: Tensor
    output_min: Tensor
    output_max: Tensor


@none_is_default
def quantize(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
) -> Quantized:
    """Quantize floats within a range to integers of few bits.

    Args:
        input: Shape ``[...]``, float32.
        min_range: The least float to represent, a scalar.
        max_range: The greatest float to represent, a scalar.
        T: The quantized dtype: ``tf.qint8``, ``tf.quint8``, ``tf.qint16``, ``tf.quint16`` or ``tf.qint32``.
        mode: ``"MIN_COMBINED"``, ``"MIN_FIRST"`` or ``"SCALED"``: whether integers are counted from the least float,
            from the least float rounded to a step, or from 0.
        round_mode: ``"HALF_AWAY_FROM_ZERO"``, or ``"HALF_TO_EVEN"`` in mode ``SCALED``.
        name: Name of the operation.

    Returns:
        The numbers, in the shape of `input`, and the range that they stand for.

    Raises:
        InvalidArgumentError: An unknown mode.
    """
    _check_mode("quantize", mode)
    if round_mode not in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN") or (round_mode == "HALF_TO_EVEN" and mode != "SCALED"):
        raise InvalidArgumentError(f"quantize: round_mode is {round_mode!r} in mode {mode}")
    attrs = {"T": as_dtype(T), "mode": mode, "round_mode": round_mode}
    return Quantized(*add_op(QUANTIZE, input, min_range, max_range, name=name, **attrs))


@none_is_default
def quantize_v2(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> Quantized:
    """`quantize`, its arguments in an older order: `input` of any shape gives the quantized numbers and their range."""
    return quantize(input, min_range, max_range, T, mode, round_mode, name)


def _check_mode(op: str, mode: str) -> None:
    if mode not in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        raise InvalidArgumentError(f"{op}: mode is {mode!r}, expected MIN_COMBINED, MIN_FIRST or SCALED")


def _limits(dtype: NumpyDType) -> tuple[float, float]:
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def _half_range(dtype: NumpyDType) -> float:
    least, most = _limits(dtype)
    return (most - least + 1) / 2 if least < 0 else 0.0


def _away_from_zero(numbers: Any) -> Any:
    return np.copysign(np.floor(np.abs(numbers) + 0.5), numbers)


def _quantize_kernel(ctx: KernelContext, input: Array, min_range: Array, max_range: Array) -> list[Array]:
    low, high = min_range.item(), max_range.item()
    if low > high:
        raise InvalidArgumentError(f"quantize: min_range {low} is above max_range {high}")
    # A range has 0 in it, and some width.
    least_width = max(1.0, abs(low), abs(high)) / 100
    low, high = min(0.0, low), max(0.0, high, min(0.0, low) + least_width)
    dtype, mode = ctx.output_dtype(), ctx.attr("mode")
    least, most = _limits(dtype)
    wide = input.astype(np.float64)
    if mode == "SCALED":
        step = max(low / least if least < 0 else 0.0, high / most)
        low, high = least * step, most * step
        rounded = np.rint if ctx.attr("round_mode") == "HALF_TO_EVEN" else _away_from_zero
        numbers = rounded(np.clip(wide, low, high) / step)
    elif mode == "MIN_COMBINED":
        numbers = (np.clip(wide, low, high) - low) * ((most - least) / (high - low)) - _half_range(dtype)
        numbers = _away_from_zero(numbers)
    else:
        scale = (most - least) / (high - low)
        if (least, most) == (0, 255):  # as in TensorFlow, the commonest dtype is rounded once
            numbers = _away_from_zero((np.clip(wide, low, high) - low) * scale)
        else:
            numbers = _away_from_zero(wide * scale) - _away_from_zero(np.float64(low * scale)) + least
    return [np.clip(numbers, least, most).astype(dtype), np.array(low, np.float32), np.array(high, np.float32)]


def _quantize_shape(op: Operation) -> list[TensorShape]:
    for bound in op.inputs[1:]:
        bound.shape.assert_has_rank(0)
    return [op.inputs[0].shape, SCALAR, SCALAR]


QUANTIZE = register(
    OpDef(
        name="QuantizeV2",
        inputs=("input: float32", "min_range: float32", "max_range: float32"),
        outputs=("output: T", "output_min: float32", "output_max: float32"),
        types={"T": dtypes.QUANTIZED},
        attrs=("mode", "round_mode"),
        shape=_quantize_shape,
        kernels=on_cpu(_quantize_kernel),
    )
)


def dequantize(
    input: TensorLike, min_range: TensorLike, max_range: TensorLike, mode: str = "MIN_COMBINED", name: str | None = None
) -> Tensor:
    """Turn what `quantize` made back into float32.

    Args:
        input: Shape ``[...]``, a quantized dtype.
        min_range: The float that the least number stands for, a scalar.
        max_range: The float that the greatest number stands for, a scalar.
        mode: As for `quantize`.
        name: Name of the operation.

    Returns:
        The shape of `input`.

    Raises:
        InvalidArgumentError: An unknown mode.
    """
    _check_mode("dequantize", mode)
    return add_op(DEQUANTIZE, input, min_range, max_range, name=name, mode=mode)


def _dequantize_kernel(ctx: KernelContext, input: Array, min_range: Array, max_range: Array) -> Array:
    return _floats(input, min_range.item(), max_range.item(), ctx.attr("mode")).astype(np.float32)


def _floats(numbers: Array, low: float, high: float, mode: str) -> Array:
    least, most = _limits(numbers.dtype)
    wide = numbers.astype(np.float64)
    if mode == "SCALED":
        return wide * max(low / least if least < 0 else 0.0, high / most)
    step = (high - low) / (most - least)
    if mode == "MIN_COMBINED":
        return (wide + _half_range(numbers.dtype)) * step + low
    # In single precision, as TensorFlow's: that decides which way halves go.
    start = np.float64(_away_from_zero(np.float32(low) / np.float32(step)))
    return start * step + (wide - least) * step


def _dequantize_shape(op: Operation) -> list[TensorShape]:
    return _quantize_shape(op)[:1]


DEQUANTIZE = register(
    OpDef(
        name="Dequantize",
        inputs=("input: T", "min_range: float32", "max_range: float32"),
        outputs=("output: float32",),
        types={"T": dtypes.QUANTIZED},
        attrs=("mode",),
        shape=_dequantize_shape,
        kernels=on_cpu(_dequantize_kernel),
    )
)


@none_is_default
def quantize_and_dequantize(
    input: TensorLike,
    input_min: TensorLike,
    input_max: TensorLike,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
) -> Tensor:
    """Round floats to those that integers of few bits can stand for. The gradient passes as it is.

    Args:
        input: Shape ``[...]``, float32 or float64.
        input_min: The least float to represent, a scalar.
        input_max: The greatest float to represent, a scalar.
        signed_input: Whether the integers have a sign.
        num_bits: How many bits they have.
        range_given: Use `input_min` and `input_max`; otherwise the range of `input`.
        round_mode: ``"HALF_TO_EVEN"`` or ``"HALF_UP"``.
        name: Name of the operation.
        narrow_range: Leave the least of the integers out, so that they are symmetric.

    Returns:
        Same shape and dtype.

    Raises:
        InvalidArgumentError: Malformed arguments.
    """
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP") or not 1 <= num_bits < 64:
        raise InvalidArgumentError(f"quantize_and_dequantize: num_bits {num_bits}, round_mode {round_mode!r}")
    attrs = {
        "signed_input": bool(signed_input),
        "num_bits": int(num_bits),
        "range_given": bool(range_given),
        "round_mode": round_mode,
        "narrow_range": bool(narrow_range),
    }
    return add_op(QUANTIZE_AND_DEQUANTIZE, input, input_min, input_max, name=name, **attrs)


def _between_bounds_shape(op: Operation) -> list[TensorShape]:
    for bound in op.inputs[1:]:
        bound.shape.assert_has_rank(0)
    return [op.inputs[0].shape]


def _quantize_and_dequantize_kernel(ctx: KernelContext, input: Array, input_min: Array, input_max: Array) -> Array:
    if ctx.attr("range_given"):
        low, high = input_min.item(), input_max.item()
        if low > high:
            raise InvalidArgumentError(f"quantize_and_dequantize: input_min {low} is above input_max {high}")
    else:
        low, high = (input.min().item(), input.max().item()) if input.size else (0.0, 0.0)
    bits, signed = ctx.attr("num_bits"), ctx.attr("signed_input")
    least = -(2.0 ** (bits - 1)) + ctx.attr("narrow_range") if signed else 0.0
    most = 2.0 ** (bits - 1) - 1 if signed else 2.0**bits - 1
    step = max(low / least if least * low > 0 else 0.0, high / most if most * high > 0 else 0.0)
    if step == 0:
        return np.zeros_like(input)
    steps = input.astype(np.float64) / step
    if ctx.attr("range_given"):
        steps = np.clip(steps, least, most)
    steps = np.rint(steps) if ctx.attr("round_mode") == "HALF_TO_EVEN" else np.floor(steps + 0.5)
    return (steps * step).astype(input.dtype)


def _quantize_and_dequantize_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [d_output, None, None]


QUANTIZE_AND_DEQUANTIZE = register(
    OpDef(
        name="QuantizeAndDequantizeV2",
        inputs=("input: T", "input_min: T", "input_max: T"),
        outputs=("output: T",),
        types={"T": (dtypes.float32, dtypes.float64)},
        attrs=("signed_input", "num_bits", "range_given", "round_mode", "narrow_range"),
        shape=_between_bounds_shape,
        kernels=on_cpu(_quantize_and_dequantize_kernel),
        gradient=_quantize_and_dequantize_gradient,
    )
)
