"""Filling with one value, zeros and ones, broadcasting and the sum that undoes it, and choosing elementwise."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, constant_tensor, convert_alike, convert_to_tensor, make_array
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.indexed_slices import Gradient
from tfray.framework.op_def import (
    Array,
    Kernel,
    KernelContext,
    NumpyDType,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import like_input
from tfray.framework.tensor_shape import UNKNOWN, ShapeLike, TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import SHAPE, host_ints, index_tensor, known_entries, reshape, sizes_from_input
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.kernels import copies, sums
from tfray.ops.kernels.gpu.device_loops import has_loop
from tfray.ops.kernels.gpu.device_sums import staged_sum
from tfray.ops.kernels.precision import choose
from tfray.ops.kernels.tiles import FEW_ELEMENTS, buffer, map_flat

MAX_CONSTANT_ELEMENTS: Final = 1000
"""`zeros` and its kin of at most this many elements become constants; larger ones are made when a step runs."""


# -- one value everywhere ------------------------------------------------------------------------------


def fill(dims: TensorLike, value: TensorLike, name: str | None = None) -> Tensor:
    """Make a tensor of shape `dims` whose elements are all the scalar `value`.

    Args:
        dims: Integer vector, no entry negative.
        value: Scalar of any dtype.
        name: Name of the operation.

    Examples:
        >>> session.run(tf.fill([2, 3], 9))
        array([[9, 9, 9],
               [9, 9, 9]], dtype=int32)
    """
    return add_op(FILL, index_tensor(dims), value, name=name)


def _fill_kernel(ctx: KernelContext, dims: Array, value: Array, out: Array | None = None) -> Array:
    if out is None:
        try:
            out = ctx.xp.empty(host_ints(ctx, dims), ctx.output_dtype())
        except ValueError as error:
            raise InvalidArgumentError(f"cannot make a tensor of shape {host_ints(ctx, dims)}: {error}") from error
    copies.fill(out, value)
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
        host_inputs=("dims",),
        types={"T": dtypes.VALUES, "Tdims": dtypes.INDICES},
        shape=_fill_shape,
        kernels=on_every_device(out_kernel(_fill_kernel)),
        gradient=_fill_gradient,
    )
)


def zeros(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Make a tensor of zeros (False for bool, empty for string).

    Args:
        shape: Integer vector, list of sizes or `TensorShape`.
        dtype: Dtype of the result.
        name: Name of the operation.

    Returns:
        Shape `shape`.

    Examples:
        >>> session.run(tf.zeros([2, 3]))
        array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    return _filled(shape, as_dtype(dtype), 0, name or "zeros")


def ones(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Make a tensor of ones (True for bool) of the shape `shape`; the arguments are those of `zeros`.

    Examples:
        >>> session.run(tf.ones([2, 3], tf.int32))
        array([[1, 1, 1],
               [1, 1, 1]], dtype=int32)
    """
    return _filled(shape, as_dtype(dtype), 1, name or "ones")


def _filled(shape: TensorLike, dtype: DType, value: int, name: str) -> Tensor:
    element = _element(dtype, value)
    sizes = _static_sizes(shape)
    if sizes is not None and math.prod(sizes) <= MAX_CONSTANT_ELEMENTS:
        return constant_tensor(np.full(sizes, element, dtype.numpy), name)
    dims = index_tensor(shape)
    return fill(reshape(dims, [-1]) if dims.shape.rank == 0 else dims, constant_tensor(element), name)


def _element(dtype: DType, value: int) -> np.ndarray[Any, Any]:
    if dtype is not dtypes.string:
        return np.array(value, dtype.numpy)
    if value:
        raise InvalidArgumentError("ones has no meaning for strings")
    return make_array(b"", dtype)


def _static_sizes(shape: Any) -> tuple[int, ...] | None:
    if isinstance(shape, Tensor):
        value = constant_value(shape)
        sizes = None if value is None else tuple(value.reshape(-1).tolist())
    else:
        try:
            static = TensorShape(shape)
        except (TypeError, ValueError):  # tensors among the sizes, or sizes that `fill` is to report
            return None
        sizes = tuple(int(size) for size in static) if static.is_fully_defined() else None
    return None if sizes is None or min(sizes, default=0) < 0 else sizes


def zeros_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Make a tensor of zeros in the shape of another.

    Args:
        tensor: Any shape and dtype.
        dtype: Dtype of the result; that of `tensor` when None, or False as some programs have it.
        name: Name of the operation.
        optimize: Use the static shape where it is fully known, so that `tensor` need not be computed.

    Returns:
        The shape of `tensor`.

    Examples:
        >>> session.run(tf.zeros_like([[1, 2], [3, 4]]))
        array([[0, 0],
               [0, 0]], dtype=int32)
    """
    return _filled_like(tensor, dtype or None, 0, name or "zeros_like", optimize)


def ones_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Make a tensor of ones in the shape of another; the arguments are those of `zeros_like`.

    Examples:
        >>> session.run(tf.ones_like([[1.5, 2.5]]))
        array([[1., 1.]], dtype=float32)
    """
    return _filled_like(tensor, dtype, 1, name or "ones_like", optimize)


def _filled_like(tensor: TensorLike, dtype: DTypeLike | None, value: int, name: str, optimize: bool) -> Tensor:
    tensor = convert_to_tensor(tensor)
    wanted = tensor.dtype if dtype is None else as_dtype(dtype)
    if optimize and tensor.shape.is_fully_defined():
        return _filled(tensor.shape, wanted, value, name)
    result = fill(add_op(SHAPE, tensor, out_type=dtypes.int32), constant_tensor(_element(wanted, value)), name)
    result.set_shape(tensor.shape)
    return result


# -- broadcasting --------------------------------------------------------------------------------------


def broadcast_to(input: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Repeat dimensions of size 1, and put new ones in front, to reach `shape`.

    Args:
        input: A shape that broadcasts to `shape`, any dtype.
        shape: Integer vector.
        name: Name of the operation.
    """
    return add_op(BROADCAST_TO, input, index_tensor(shape), name=name)


def _broadcast_to_kernel(ctx: KernelContext, input: Array, shape: Array, out: Array | None = None) -> Array:
    sizes = tuple(host_ints(ctx, shape))
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
    # An unknown target size stays unknown where the input's size is 1, as in `broadcast_shapes`.
    return [result.merge_with(target)]


def _broadcast_to_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [sum_to_shape_of(d_output, op.inputs[0]), None]


BROADCAST_TO = register(
    OpDef(
        name="BroadcastTo",
        inputs=("input: T", "shape: Tidx"),
        outputs=("output: T",),
        host_inputs=("shape",),
        types={"T": dtypes.VALUES, "Tidx": dtypes.INDICES},
        shape=_broadcast_to_shape,
        kernels=on_every_device(out_kernel(_broadcast_to_kernel)),
        gradient=_broadcast_to_gradient,
    )
)


def sum_to_shape(input: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Sum over the dimensions along which `shape` was broadcast to the shape of `input`.

    The transpose of `broadcast_to`: leading dimensions that `shape` lacks disappear, and dimensions of
    size 1 in `shape` are summed to size 1.

    Args:
        input: A shape to which `shape` broadcasts, any numeric dtype.
        shape: Integer vector.
        name: Name of the operation.
    """
    return add_op(SUM_TO_SHAPE, input, index_tensor(shape), name=name)


def sum_to_shape_of(d_output: Gradient, x: Tensor, *others: Tensor) -> Tensor:
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
        # The result can be larger here only if another input is: not if all others have size 1.
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
    axes = _summed_axes(input.shape, sizes)
    if ctx.xp is np and input.size and input.dtype.char in "fd" and axes == tuple(range(axes[0], axes[-1] + 1)):
        first, end = axes[0], axes[-1] + 1
        outer, count, inner = map(math.prod, (input.shape[:first], input.shape[first:end], input.shape[end:]))
        if count > sums.FEW_ROWS:
            return sums.over_middle(np.ascontiguousarray(input), outer, count, inner).reshape(sizes)
    is_of_rows = axes == tuple(range(len(axes))) and bool(axes)
    if is_of_rows and has_loop(ctx.xp, input.dtype, input.size):
        return staged_sum(ctx.xp, "{0}", [input], axes, dtype=input.dtype).reshape(sizes)
    total = input.sum(axes, accumulator_dtype(input.dtype))
    return total.reshape(sizes).astype(input.dtype, copy=False)


def _summed_axes(shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    extra = len(shape) - len(sizes)
    return tuple(i for i, size in enumerate(shape) if i < extra or (sizes[i - extra] == 1 and size != 1))


def accumulator_dtype(dtype: NumpyDType) -> np.dtype[Any]:
    """The dtype in which to sum many elements of `dtype`: float32 for the 16-bit floats."""
    half = dtype.itemsize == 2 and dtype.kind not in "iu"
    return np.dtype(np.float32) if half else dtype


def _sum_to_shape_shape(op: Operation) -> list[TensorShape]:
    target = sizes_from_input(op, 1)
    broadcast_shapes(op.inputs[0].shape, target)
    return [target]


def _sum_to_shape_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [broadcast_to(d_output, shape_of(op.inputs[0])), None]


def _inline_sum(op: Operation) -> str | None:
    shape, sizes = op.inputs[0].shape.whole(), op.outputs[0].shape.whole()
    if shape is None or sizes is None or op.inputs[0].dtype.numpy.char not in "fd":
        return None
    axes = _summed_axes(shape, sizes)
    is_small = math.prod(shape) <= FEW_ELEMENTS and math.prod(shape[axis] for axis in axes) <= sums.FEW_ROWS
    return f"{{np.add}}.reduce({{0}}, {axes}).reshape({sizes})" if is_small else None


SUM_TO_SHAPE = register(
    OpDef(
        name="SumToShape",
        inputs=("input: T", "shape: Tidx"),
        outputs=("output: T",),
        host_inputs=("shape",),
        types={"T": dtypes.NUMERIC, "Tidx": dtypes.INDICES},
        shape=_sum_to_shape_shape,
        kernels=on_every_device(Kernel(_sum_to_shape_kernel, inline=_inline_sum)),
        gradient=_sum_to_shape_gradient,
    )
)


def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> TensorShape:
    """The static shape of an elementwise operation on tensors of these two static shapes."""
    return broadcast_shapes(TensorShape(shape_x), TensorShape(shape_y))


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike, name: str | None = None) -> Tensor:
    """The shape of an elementwise operation on tensors whose shapes are these two integer vectors."""
    x = index_tensor(shape_x)
    y = index_tensor(shape_y) if isinstance(shape_y, Tensor) else convert_to_tensor(shape_y, x.dtype)
    return add_op(BROADCAST_ARGS, x, y, name=name)


def _broadcast_args_kernel(ctx: KernelContext, s0: Array, s1: Array) -> Array:
    first, second = host_ints(ctx, s0), host_ints(ctx, s1)
    try:
        return ctx.xp.array(np.broadcast_shapes(tuple(first), tuple(second)), s0.dtype)
    except ValueError as error:
        raise InvalidArgumentError(f"Incompatible shapes: {first} vs. {second}") from error


def _broadcast_args_shape(op: Operation) -> list[TensorShape]:
    for tensor in op.inputs:
        tensor.shape.assert_has_rank(1)
    entries = _broadcast_args_value(op)
    return [TensorShape([None if entries is None else len(entries)])]


def _broadcast_args_value(op: Operation) -> list[int | None] | None:
    first, second = (known_entries(tensor) for tensor in op.inputs)
    if first is None or second is None:
        return None
    return broadcast_shapes(TensorShape(first), TensorShape(second)).as_list()


BROADCAST_ARGS = register(
    OpDef(
        name="BroadcastArgs",
        inputs=("s0: T", "s1: T"),
        outputs=("r0: T",),
        host_inputs=("s0", "s1"),
        types={"T": dtypes.INDICES},
        shape=_broadcast_args_shape,
        kernels=on_every_device(_broadcast_args_kernel),
        shape_value=_broadcast_args_value,
    )
)


# -- choosing ------------------------------------------------------------------------------------------


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Choose elements of `x` or `y`; with neither, find where `condition` holds.

    Args:
        condition: bool. With `x` and `y`: their shape, or a scalar, or a vector that chooses whole rows.
        x: Values where `condition` holds, of any shape and dtype; None together with `y`.
        y: Values elsewhere: the shape and dtype of `x`.
        name: Name of the operation.

    Returns:
        With `x` and `y` their shape and dtype; otherwise the int64 coordinates of the true elements,
        shape ``[count, rank of condition]``, in row-major order.

    Examples:
        >>> session.run(tf.where([True, False], [1, 2], [10, 20]))
        array([ 1, 20], dtype=int32)
        >>> session.run(tf.where([False, True, True]))
        array([[1],
               [2]])
    """
    if (x is None) != (y is None):
        raise InvalidArgumentError("where takes both x and y, or neither")
    if x is None:
        return add_op(WHERE, condition, name=name)
    return add_op(SELECT, condition, x, y, name=name)


def where_v2(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Choose elements of `x` or `y` as `where` does; the shapes of `condition`, `x` and `y` broadcast.

    Args:
        condition: bool, any shape.
        x: Values where `condition` holds, any shape; None together with `y`.
        y: Values elsewhere, any shape, the dtype of `x`.
        name: Name of the operation.

    Returns:
        The broadcast shape; without `x` and `y` the coordinates that `where` finds.

    Examples:
        >>> session.run(tf.where_v2([[True], [False]], [1, 2], 0))
        array([[1, 2],
               [0, 0]], dtype=int32)
    """
    if x is None or y is None:
        return where(condition, x, y, name)
    condition = convert_to_tensor(condition, dtypes.bool_)
    x, y = convert_alike(x, y)
    known = broadcast_static_shape(condition.shape, broadcast_static_shape(x.shape, y.shape))
    sizes: Any = known.as_list() if known.is_fully_defined() else None
    if sizes is None:
        sizes = broadcast_dynamic_shape(shape_of(condition), broadcast_dynamic_shape(shape_of(x), shape_of(y)))

    def whole(part: Tensor) -> Tensor:
        return part if known.is_fully_defined() and part.shape == known else broadcast_to(part, sizes)

    chosen = where(whole(condition), whole(x), whole(y), name or "SelectV2")
    chosen.set_shape(known)
    return chosen


def _select_kernel(ctx: KernelContext, condition: Array, x: Array, y: Array, out: Array | None = None) -> Array:
    xp = ctx.xp
    is_vector = condition.ndim == 1 and x.ndim > 0 and len(condition) == len(x)
    if x.shape != y.shape or not (condition.shape == x.shape or is_vector or condition.ndim == 0):
        raise InvalidArgumentError(
            f"where: x has shape {x.shape} and y {y.shape}, which must agree; condition {condition.shape} "
            "must have that shape, or be a scalar, or a vector of one entry per row"
        )
    if is_vector:
        condition = condition.reshape(-1, *(1,) * (x.ndim - 1))
    if xp is np and x.size >= _MASK_ELEMENTS and condition.shape == x.shape and _maskable(x):
        chosen = np.empty(x.shape, x.dtype) if out is None else out
        parts = [np.ascontiguousarray(array) for array in (condition, x, y)]
        if x.size <= _LARGEST_MASK and chosen.flags.c_contiguous:
            _select_by_masks(chosen, *parts)
            return chosen
        return map_flat(xp, _select_by_masks, chosen, *parts)
    if out is None:
        return choose(xp, condition, x, y)
    xp.copyto(out, y)
    xp.copyto(out, x, where=condition)
    return out


def _is_by_element(op: Operation) -> bool:
    return op.inputs[0].shape == op.outputs[0].shape


def _maskable(x: Array) -> bool:
    return x.dtype.itemsize in MASK_TYPES and x.dtype != object


def _select_by_masks(out: Array, condition: Array, x: Array, y: Array) -> None:
    """Select without branches: ``y ^ ((x ^ y) & mask)``, five times as fast where the condition is irregular."""
    bits = MASK_TYPES[x.dtype.itemsize]
    y_bits = y.view(bits)
    mask = np.negative(condition.view(np.int8), out=buffer(np, "select mask", x.shape, bits))
    mask &= np.bitwise_xor(x.view(bits), y_bits, out=buffer(np, "select difference", x.shape, bits))
    np.bitwise_xor(mask, y_bits, out=out.view(bits))


MASK_TYPES: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
"""Integers by size: -1 is a mask of ones."""
_MASK_ELEMENTS: Final = 16384
"""Elements from which `where` selects by bit masks; for fewer it calls the array module's ``where``."""
_LARGEST_MASK: Final = 1 << 18
"""Elements up to which the masks are made for the whole array at once; a larger array is cut into tiles."""


def _select_shape(op: Operation) -> list[TensorShape]:
    condition, x, y = (tensor.shape for tensor in op.inputs)
    result = x.merge_with(y)
    if condition.rank is None or condition.rank == 0:
        return [result]
    if condition.rank > 1:
        return [result.merge_with(condition)]
    if result.rank == 0:
        raise ValueError(f"condition {condition} does not fit values of shape {result}")
    rows = None if result.rank is None else [condition[0], *[None] * (result.rank - 1)]
    return [result.merge_with(rows)]


def _select_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    condition = op.inputs[0]
    return [None, keep_where(condition, d_output), keep_where(condition, d_output, chosen=False)]


SELECT = register(
    OpDef(
        name="Select",
        inputs=("condition: bool", "t: T", "e: T"),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        shape=_select_shape,
        kernels=on_every_device(
            out_kernel(_select_kernel, may_overwrite=(2,), elementwise=_is_by_element, element="where({0}, {1}, {2})")
        ),
        gradient=_select_gradient,
    )
)


def keep_where(condition: TensorLike, x: TensorLike, chosen: bool = True, name: str | None = None) -> Tensor:
    """`x` where `condition` is `chosen`, and 0 elsewhere, whatever `x` holds there: the gradient of `where`.

    Args:
        condition: Bools, of the shape of `x`, or a scalar, or a vector of one entry per row of `x`.
        x: Shape ``[...]``.
        chosen: Which elements are kept.
        name: Name of the operation.

    Returns:
        The shape and dtype of `x`.
    """
    return add_op(KEEP_WHERE, condition, x, name=name, chosen=chosen)


def _keep_where_kernel(ctx: KernelContext, condition: Array, x: Array, out: Array | None = None) -> Array:
    xp, chosen = ctx.xp, ctx.attr("chosen")
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape(-1, *(1,) * (x.ndim - 1))
    if xp is np and condition.shape == x.shape and x.ndim and _maskable(x) and x.flags.c_contiguous:
        bits = MASK_TYPES[x.dtype.itemsize]
        kept = np.empty(x.shape, x.dtype) if out is None else out
        flags = condition.view(np.int8)
        mask = kept.view(bits)
        # As a mask, -1 is all ones: minus the condition, or the condition less 1.
        _ = np.negative(flags, out=mask) if chosen else np.subtract(flags, np.int8(1), out=mask)
        np.bitwise_and(mask, x.view(bits), out=mask)
        return kept
    zero = x.dtype.type(0)
    kept = choose(xp, condition, *((x, zero) if chosen else (zero, x)))
    if out is None:
        return kept
    xp.copyto(out, kept)
    return out


def _keep_where_element(op: Operation) -> str:
    return "where({0}, {1}, 0)" if op.attrs["chosen"] else "where({0}, 0, {1})"


def _keep_where_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [None, keep_where(op.inputs[0], d_output, op.attrs["chosen"])]


KEEP_WHERE = register(
    OpDef(
        name="KeepWhere",
        inputs=("condition: bool", "x: T"),
        outputs=("y: T",),
        attrs=("chosen",),
        types={"T": dtypes.NUMERIC},
        shape=like_input(1),
        kernels=on_every_device(
            out_kernel(_keep_where_kernel, elementwise=_is_by_element, element=_keep_where_element)
        ),
        gradient=_keep_where_gradient,
    )
)


def _where_kernel(ctx: KernelContext, condition: Array) -> Array:
    if condition.ndim == 0:
        raise InvalidArgumentError("where: a scalar has no coordinates; give a condition of rank 1 or more")
    if ctx.xp is not np:
        return ctx.xp.argwhere(condition)
    # Five times as fast as np.argwhere, which finds the coordinates one by one.
    rest = np.flatnonzero(condition)
    coordinates = np.empty((rest.size, condition.ndim), np.int64)
    for axis in range(condition.ndim - 1, 0, -1):
        rest, coordinates[:, axis] = np.divmod(rest, condition.shape[axis])
    coordinates[:, 0] = rest
    return coordinates


def _where_shape(op: Operation) -> list[TensorShape]:
    return [TensorShape([None, op.inputs[0].shape.rank])]


WHERE = register(
    OpDef(
        name="Where",
        inputs=("condition: T",),
        outputs=("index: int64",),
        types={"T": (*dtypes.NUMERIC, dtypes.bool_)},
        shape=_where_shape,
        kernels=on_every_device(_where_kernel),
    )
)
