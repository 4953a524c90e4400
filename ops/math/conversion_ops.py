"""Conversions that `cast` does not do: saturating at the limits of a dtype, and the same bits as another dtype."""

from __future__ import annotations

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.math.rounding_ops import clip_by_value

# -- saturating ----------------------------------------------------------------------------------------


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Convert the elements to another dtype; what is beyond its limits becomes the limit.

    Args:
        value: Any shape, a real dtype.
        dtype: The new real dtype. NaN becomes 0 in an integer dtype.
        name: Name of the operation.

    Returns:
        Same shape, dtype `dtype`.
    """
    value, wanted = convert_to_tensor(value), as_dtype(dtype)
    if value.dtype is wanted:
        return value
    if not (value.dtype.is_floating and wanted.is_floating):
        return add_op(SATURATE_CAST, value, name=name, DstT=wanted)
    if value.dtype.max > wanted.max:
        least, greatest = (np.array(limit).astype(value.dtype.numpy) for limit in (wanted.min, wanted.max))
        value = clip_by_value(value, least, greatest)
    return cast(value, wanted, name)


def _saturate_cast_kernel(ctx: KernelContext, value: Array) -> Array:
    source, wanted = dtypes.as_dtype(value.dtype), dtypes.as_dtype(ctx.output_dtype())
    if source.is_floating and source.size == 2:
        value = value.astype(np.float32)
    # A limit as a number of the source's kind: Python's integers compare exactly with any integer dtype.
    number = int if source.is_integer else float
    result = value.astype(wanted.numpy)
    if source.is_floating and wanted.is_integer:
        result = ctx.xp.where(ctx.xp.isnan(value), wanted.numpy.type(0), result)
    infinite = source.is_floating  # whose infinities are beyond every integer
    if infinite or source.max > wanted.max:
        result = ctx.xp.where(value >= number(wanted.max), wanted.numpy.type(wanted.max), result)
    if infinite or source.min < wanted.min:
        result = ctx.xp.where(value <= number(wanted.min), wanted.numpy.type(wanted.min), result)
    return result


SATURATE_CAST = register(
    OpDef(
        name="SaturateCast",
        inputs=("value: SrcT",),
        outputs=("output: DstT",),
        types={"SrcT": dtypes.REAL, "DstT": dtypes.REAL},
        shape=like_input(0),
        kernels=on_every_device(_saturate_cast_kernel),
    )
)


# -- the same bits -------------------------------------------------------------------------------------


def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> Tensor:
    """Read the bytes of the elements as another dtype.

    Args:
        input: Shape ``[...]``, a number dtype.
        type: The other number dtype.
        name: Name of the operation.

    Returns:
        Shape ``[...]`` where both dtypes have the same size, ``[..., n]`` where an element has ``n`` times the bytes
        of the new ones; and where it has an ``n``-th of them, the last dimension, of size ``n``, disappears.
    """
    return add_op(BITCAST, input, name=name, type=as_dtype(type))


def _bitcast_kernel(ctx: KernelContext, input: Array) -> Array:
    dtype = ctx.output_dtype()
    if dtype.itemsize == input.dtype.itemsize:
        return input.view(dtype)
    elements = ctx.xp.ascontiguousarray(input).reshape(input.shape)
    if dtype.itemsize < input.dtype.itemsize:
        return elements.reshape(*input.shape, 1).view(dtype)
    if input.ndim == 0 or input.shape[-1] * input.dtype.itemsize != dtype.itemsize:
        raise InvalidArgumentError(
            f"Cannot bitcast due to shape: the last dimension of {input.shape} does not make one {dtype} element"
        )
    return elements.view(dtype)[..., 0]


def _bitcast_shape(op: Operation) -> list[TensorShape]:
    shape, old, new = op.inputs[0].shape, op.inputs[0].dtype.size, op.attr("type").size
    if new <= old:
        return [shape if new == old else shape.concatenate([old // new])]
    if shape.rank is None:
        return [shape]
    if shape.rank == 0 or shape.sizes[-1] not in (None, new // old):
        raise ValueError(f"Cannot bitcast due to shape: the last dimension of {shape} must be of size {new // old}")
    return [shape[:-1]]


BITCAST = register(
    OpDef(
        name="Bitcast",
        inputs=("input: T",),
        outputs=("output: type",),
        types={"T": (*dtypes.NUMERIC, *dtypes.QUANTIZED), "type": (*dtypes.NUMERIC, *dtypes.QUANTIZED)},
        shape=_bitcast_shape,
        kernels=on_every_device(_bitcast_kernel),
    )
)
