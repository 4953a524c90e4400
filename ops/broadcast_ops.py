"""One value in many places: filling, zeros and ones, broadcasting and its transpose, choosing elementwise."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, constant_tensor, convert_to_tensor, make_array
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.ops.shape_ops import SHAPE, host_ints, index_tensor, sizes_from_input
from tfray.ops.shape_ops import shape as shape_of

MAX_CONSTANT_ELEMENTS: Final = 1000
"""`zeros` and its kin of at most this many elements become constants; larger ones are made when a step runs."""


# -- one value everywhere ------------------------------------------------------------------------------


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """Make a tensor of shape `dims` whose elements are all the scalar `value`.

    Args:
        dims: Integer vector, no entry negative.
        value: Scalar of any dtype.
        name: Name of the operation.
    """
    return add_op(FILL, index_tensor(dims), value, name=name)


def _fill_kernel(ctx: KernelContext, dims: Array, value: Array, out: Array | None = None) -> Array:
    if out is None:
        try:
            out = ctx.xp.empty(host_ints(ctx, dims), ctx.output_dtype())
        except ValueError as error:
            raise InvalidArgumentError(f"cannot make a tensor of shape {host_ints(ctx, dims)}: {error}") from error
    out[...] = value
    return out


def _fill_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    return [sizes_from_input(op, 0)]


def _fill_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [None, sum_to_shape(d_output, np.zeros(0, np.int32))]


FILL = register(
    OpDef(
        name="Fill",
        inputs=("dims: Tdims", "value: T"),
        outputs=("output: T",),
        types={"T": dtypes.VALUES, "Tdims": dtypes.INDICES},
        shape=_fill_shape,
        kernels=on_every_device(out_kernel(_fill_kernel)),
        gradient=_fill_gradient,
    )
)


def zeros(shape: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Make a tensor of zeros (False for bool, empty for string).

    Args:
        shape: Integer vector, list of sizes or `TensorShape`.
        dtype: Dtype of the result.
        name: Name of the operation.
    """
    return _filled(shape, as_dtype(dtype), 0, name or "zeros")


def ones(shape: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Make a tensor of ones (True for bool). See `zeros`."""
    return _filled(shape, as_dtype(dtype), 1, name or "ones")


def _filled(shape: Any, dtype: DType, value: int, name: str) -> Tensor:
    if dtype is dtypes.string and value:
        raise InvalidArgumentError("ones has no meaning for strings")
    element = np.array(value, dtype.numpy) if dtype is not dtypes.string else make_array(b"", dtype)
    sizes = _static_sizes(shape)
    if sizes is not None and math.prod(sizes) <= MAX_CONSTANT_ELEMENTS:
        return constant_tensor(np.full(sizes, element, dtype.numpy), name)
    return fill(shape, constant_tensor(element), name)


def _static_sizes(shape: Any) -> tuple[int, ...] | None:
    if isinstance(shape, Tensor):
        value = constant_value(shape)
        sizes = None if value is None else tuple(value.tolist())
    else:
        try:
            static = TensorShape(shape)
        except (TypeError, ValueError):  # tensors among the sizes, or sizes that `fill` is to report
            return None
        sizes = tuple(int(size) for size in static) if static.is_fully_defined() else None
    return None if sizes is None or min(sizes, default=0) < 0 else sizes


def zeros_like(tensor: Any, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Make a tensor of zeros in the shape of another.

    Args:
        tensor: Any shape and dtype.
        dtype: Dtype of the result; that of `tensor` when None.
        name: Name of the operation.
        optimize: Use the static shape where it is fully known, so that `tensor` need not be computed.
    """
    return _filled_like(tensor, dtype, 0, name or "zeros_like", optimize)


def ones_like(tensor: Any, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Make a tensor of ones in the shape of another. See `zeros_like`."""
    return _filled_like(tensor, dtype, 1, name or "ones_like", optimize)


def _filled_like(tensor: Any, dtype: DTypeLike | None, value: int, name: str, optimize: bool) -> Tensor:
    tensor = convert_to_tensor(tensor)
    wanted = tensor.dtype if dtype is None else as_dtype(dtype)
    if optimize and tensor.shape.is_fully_defined():
        return _filled(tensor.shape, wanted, value, name)
    result = _filled(add_op(SHAPE, tensor, out_type=dtypes.int32), wanted, value, name)
    result.set_shape(tensor.shape)
    return result


# -- broadcasting --------------------------------------------------------------------------------------


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Repeat dimensions of size 1, and put new ones in front, to reach `shape`.

    Args:
        input: A shape that broadcasts to `shape`, any dtype.
        shape: Integer vector.
        name: Name of the operation.
    """
    return add_op(BROADCAST_TO, input, index_tensor(shape), name=name)


def _broadcast_to_kernel(ctx: KernelContext, input: Array, shape: Array, out: Array | None = None) -> Array:
    sizes = tuple(host_ints(ctx, shape))
    if sizes == input.shape and out is None:
        return input
    if out is None:
        out = ctx.xp.empty(sizes, input.dtype)
    try:
        out[...] = input
    except ValueError as error:
        raise InvalidArgumentError(f"shape {input.shape} does not broadcast to {sizes}") from error
    return out


def _broadcast_to_shape(op: Operation) -> list[TensorShape]:
    source, target = op.inputs[0].shape, sizes_from_input(op, 1)
    if source.rank is None or target.rank is None:
        return [target]
    result = broadcast_shapes(source, target) if source.rank <= target.rank else UNKNOWN
    if not result.is_compatible_with(target) or result.rank is None:
        raise ValueError(f"shape {source} does not broadcast to {target}")
    # A target size that is unknown stays so where the input's is 1: broadcast_shapes says the same.
    return [result.merge_with(target)]


def _broadcast_to_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [sum_to_shape_of(d_output, op.inputs[0]), None]


BROADCAST_TO = register(
    OpDef(
        name="BroadcastTo",
        inputs=("input: T", "shape: Tidx"),
        outputs=("output: T",),
        types={"T": dtypes.VALUES, "Tidx": dtypes.INDICES},
        shape=_broadcast_to_shape,
        kernels=on_every_device(out_kernel(_broadcast_to_kernel)),
        gradient=_broadcast_to_gradient,
    )
)


def sum_to_shape(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Sum over the dimensions along which `shape` was broadcast to the shape of `input`.

    The transpose of `broadcast_to`: leading dimensions that `shape` lacks disappear, and dimensions of
    size 1 in `shape` are summed to size 1.

    Args:
        input: A shape to which `shape` broadcasts, any numeric dtype.
        shape: Integer vector.
        name: Name of the operation.
    """
    return add_op(SUM_TO_SHAPE, input, index_tensor(shape), name=name)


def sum_to_shape_of(d_output: Any, x: Tensor, *others: Tensor) -> Tensor:
    """The gradient of `x`, which was broadcast with `others` to the shape of `d_output`.

    Adds no operation where static shapes tell that nothing was repeated.
    """
    d_output = convert_to_tensor(d_output)
    if not _may_be_repeated(d_output.shape, x.shape, [other.shape for other in others]):
        return d_output
    result = sum_to_shape(d_output, shape_of(x))
    result.set_shape(x.shape)
    return result


def _may_be_repeated(result: TensorShape, source: TensorShape, others: list[TensorShape]) -> bool:
    """Whether broadcasting `source` with `others` to `result` may repeat elements of `source`."""
    if source.rank is None or (result.rank is None and any(other.rank is None for other in others)):
        return True
    if result.rank is None and (not others or any((other.rank or 0) > source.rank for other in others)):
        return True
    if result.rank is not None and result.rank > source.rank:
        return True
    for back in range(1, source.rank + 1):
        size = source.sizes[-back]
        if size is not None and size != 1:
            continue
        if size == 1 and result.rank is not None and result.sizes[-back] == 1:
            continue
        # Only another input can have made this dimension larger.
        if not others or not all(_is_one(other, back) for other in others):
            return True
    return False


def _is_one(shape: TensorShape, back: int) -> bool:
    """Whether the dimension `back` from the end is certainly missing or of size 1."""
    return shape.rank is not None and (back > shape.rank or shape.sizes[-back] == 1)


def _sum_to_shape_kernel(ctx: KernelContext, input: Array, shape: Array) -> Array:
    sizes = tuple(host_ints(ctx, shape))
    if sizes == input.shape:
        return input
    extra = input.ndim - len(sizes)
    if extra < 0 or any(n not in (1, m) for n, m in zip(sizes, input.shape[extra:], strict=True)):
        raise InvalidArgumentError(f"shape {sizes} does not broadcast to {input.shape}, so it cannot be summed to it")
    axes = tuple(i for i in range(input.ndim) if i < extra or (sizes[i - extra] == 1 and input.shape[i] != 1))
    half = input.dtype.itemsize == 2 and not np.issubdtype(input.dtype, np.integer)
    total = ctx.xp.sum(input, axis=axes, dtype=np.float32 if half else input.dtype)
    return total.reshape(sizes).astype(input.dtype, copy=False)


def _sum_to_shape_shape(op: Operation) -> list[TensorShape]:
    target = sizes_from_input(op, 1)
    broadcast_shapes(op.inputs[0].shape, target)
    return [target]


def _sum_to_shape_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [broadcast_to(d_output, shape_of(op.inputs[0])), None]


SUM_TO_SHAPE = register(
    OpDef(
        name="SumToShape",
        inputs=("input: T", "shape: Tidx"),
        outputs=("output: T",),
        types={"T": dtypes.NUMERIC, "Tidx": dtypes.INDICES},
        shape=_sum_to_shape_shape,
        kernels=on_every_device(_sum_to_shape_kernel),
        gradient=_sum_to_shape_gradient,
    )
)
