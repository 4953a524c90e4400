"""Reductions: sums, means, extremes and products over some dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    GradientFunction,
    KernelContext,
    KernelFunction,
    NumpyDType,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, where, zeros_like
from tfray.ops.arrays.shape_ops import (
    REVERSED_AXES,
    cast,
    index_tensor,
    invert_permutation,
    reshape,
    reshape_like,
    shape,
    size,
    sizes_from_input,
    stop_gradient,
    transpose,
)
from tfray.ops.kernels import sums
from tfray.ops.kernels.compiled_rows import can_compute, compute_rows
from tfray.ops.kernels.gpu.device_loops import has_loop
from tfray.ops.kernels.gpu.device_sums import are_staged, staged_sum
from tfray.ops.kernels.precision import assign, is_half
from tfray.ops.math.arithmetic_ops import (
    add,
    conj,
    exp,
    log,
    maximum,
    multiply,
    realdiv,
    sqrt,
    square,
    squared_difference,
    subtract,
)
from tfray.ops.math.axis_ops import from_front, grouped
from tfray.ops.math.comparison_ops import equal, is_finite, not_equal
from tfray.ops.math.rounding_ops import floordiv
from tfray.ops.math.scan_ops import cumprod

# -- what all reductions share -------------------------------------------------------------------------


def reduction(
    name: str, kernel: KernelFunction, types: Sequence[DType], gradient: GradientFunction | None = None
) -> OpDef:
    """Definition of a reduction of `input` over the dimensions in the vector or scalar `axis`."""
    return OpDef(
        name=name,
        inputs=("input: T", "axis: Tidx"),
        outputs=("output: T",),
        host_inputs=("axis",),
        types={"T": types, "Tidx": dtypes.INDICES},
        attrs=("keep_dims",),
        shape=reduced_shape,
        kernels=on_every_device(out_kernel(kernel)),
        gradient=gradient,
    )


def reduce_by(
    definition: OpDef,
    input_tensor: TensorLike,
    axis: TensorLike | None,
    keepdims: bool | None,
    name: str | None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Add a reduction, the old and the new spelling of its arguments resolved.

    The shapes are those of `reduce_sum`.
    """
    axis = by_either_name(definition.name, axis=axis, reduction_indices=reduction_indices)
    keep = bool(by_either_name(definition.name, keepdims=keepdims, keep_dims=keep_dims))
    # Lists of nothing, and NumPy's values, become truth values where these are needed.
    is_nothing = isinstance(input_tensor, (list, tuple)) and not input_tensor
    casts = is_nothing or isinstance(input_tensor, (np.ndarray, np.generic))
    only = dtypes.bool_ if casts and definition.types["T"] == (dtypes.bool_,) else None
    input_tensor = convert_to_tensor(input_tensor, only)
    axis = axes_tensor(input_tensor, axis)
    return add_op(definition, input_tensor, axis, name=name, keep_dims=keep)


def axes_tensor(tensor: Tensor, axis: TensorLike | None) -> Tensor:
    """`axis` as a tensor; None stands for every dimension."""
    if axis is not None:
        return index_tensor(list(axis) if isinstance(axis, tuple) else axis)
    if tensor.shape.rank is not None:
        return index_tensor(np.arange(tensor.shape.rank, dtype=np.int32))
    return add_op(REVERSED_AXES, tensor)


def reduced_shape(op: Operation) -> list[TensorShape]:
    """Shape function of an operation that reduces input 0 over the dimensions in input 1."""
    source, axis = op.inputs
    axis.shape.with_rank_at_most(1)
    if source.shape.rank is None:
        over_all = axis.op.type == REVERSED_AXES.name and axis.op.inputs[0] is source
        return [TensorShape([]) if over_all and not op.attr("keep_dims") else UNKNOWN]
    axes, keep = constant_value(axis), op.attr("keep_dims")
    if axes is not None:
        reduced = _normalized(tuple(np.ravel(axes).tolist()), source.shape.rank)
        return [TensorShape(_remaining(source.shape.sizes, reduced, keep))]
    if keep:
        return [TensorShape([None] * source.shape.rank)]
    count = axis.shape.num_elements()
    return [UNKNOWN if count is None else TensorShape([None] * max(source.shape.rank - count, 0))]


def _normalized(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {rank} dimensions")
    return tuple(sorted({axis % rank for axis in axes}))


def _remaining(sizes: Sequence[int | None], axes: tuple[int, ...], keep: bool) -> list[Any]:
    return [1 if i in axes else extent for i, extent in enumerate(sizes) if keep or i not in axes]


class Reduction(NamedTuple):
    """An array as a reduction treats it, with neighbouring dimensions merged.

    Attributes:
        axes: The reduced dimensions, ascending.
        result: Shape of the result.
        steps: One after another, each over the second of three dimensions of these sizes; none where all is reduced.
        reduced_size: How many elements are reduced to one element of the result.
    """

    axes: tuple[int, ...]
    result: tuple[int, ...]
    steps: tuple[tuple[int, int, int], ...]
    reduced_size: int


@lru_cache(maxsize=4096)
def _reduction(sizes: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> Reduction:
    reduced = _normalized(axes, len(sizes))
    blocks: list[tuple[int, bool]] = []
    for i, extent in enumerate(sizes):
        if blocks and blocks[-1][1] == (i in reduced):
            blocks[-1] = (blocks[-1][0] * extent, blocks[-1][1])
        else:
            blocks.append((extent, i in reduced))
    steps = []
    if len(blocks) > 1:
        for i in reversed(range(len(blocks))):  # what is summed last has the fewest elements to read
            if blocks[i][1]:
                outer, inner = (prod(extent for extent, _ in part) for part in (blocks[:i], blocks[i + 1 :]))
                steps.append((outer, blocks.pop(i)[0], inner))
    result = tuple(_remaining(sizes, reduced, keep))
    return Reduction(reduced, result, tuple(steps), prod(sizes[i] for i in reduced))


def reduction_of(ctx: KernelContext, array: Array, axis: Array) -> Reduction:
    """A reduction whose `keep_dims` is an attribute.

    Raises:
        InvalidArgumentError: `axis` is out of range.
    """
    axes = ctx.to_host(axis).tolist()
    try:
        return _reduction(array.shape, tuple(axes) if isinstance(axes, list) else (axes,), ctx.attr("keep_dims"))
    except ValueError as error:
        raise InvalidArgumentError(f"{error} (input shape {array.shape})") from error


# -- gradients of reductions ---------------------------------------------------------------------------


def expand_reduced(reduced: TensorLike, sizes: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Repeat what a reduction left along the dimensions that it reduced: the transpose of a sum.

    Args:
        reduced: What is left of a tensor of shape `sizes` after reducing `axis`, with or without the reduced
            dimensions (kept as size 1).
        sizes: Integer vector: the shape before the reduction.
        axis: The dimensions that were reduced, an integer vector.
        name: Name of the operation.

    Returns:
        Shape `sizes`, the dtype of `reduced`.
    """
    return add_op(EXPAND_REDUCED, reduced, index_tensor(sizes), index_tensor(axis), name=name)


def _expand_reduced_kernel(ctx: KernelContext, reduced: Array, sizes: Array, axis: Array) -> Array:
    full = tuple(ctx.to_host(sizes).tolist())
    axes = ctx.to_host(axis).tolist()
    kept = _reduction(full, tuple(axes) if isinstance(axes, list) else (axes,), True).result
    # A view that repeats without a copy: consumers read it like any array.
    return ctx.xp.broadcast_to(reduced.reshape(kept), full)


def _expand_reduced_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 1)]


def _expand_reduced_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [reshape_like(reduce_sum(d_output, op.inputs[2]), op.inputs[0]), None, None]


EXPAND_REDUCED = register(
    OpDef(
        name="ExpandReduced",
        inputs=("reduced: T", "sizes: Tshape", "axis: Tidx"),
        outputs=("output: T",),
        host_inputs=("sizes", "axis"),
        types={"T": (*dtypes.NUMERIC, dtypes.bool_), "Tshape": dtypes.INDICES, "Tidx": dtypes.INDICES},
        shape=_expand_reduced_shape,
        kernels=on_every_device(_expand_reduced_kernel),
        gradient=_expand_reduced_gradient,
    )
)


def _expand_like_input(op: Operation, tensor: Tensor) -> Tensor:
    result = expand_reduced(tensor, shape(op.inputs[0]), op.inputs[1])
    result.set_shape(op.inputs[0].shape)
    return result


# -- sum and mean --------------------------------------------------------------------------------------


def reduce_sum(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Add up elements over dimensions.

    Args:
        input_tensor: Shape ``[...]``, a number dtype.
        axis: The dimension to sum over, or a vector (a list) of them; negative ones count from the end; None for all.
        keepdims: Keep the reduced dimensions, with size 1.
        name: Name of the operation.
        reduction_indices: Old name of `axis`.
        keep_dims: Old name of `keepdims`.

    Returns:
        Same dtype; the shape of `input_tensor` without these dimensions, or with size 1 there (`keepdims`).

    Examples:
        >>> session.run(tf.reduce_sum([[1, 2], [3, 4]], axis=0))
        array([4, 6], dtype=int32)
        >>> session.run(tf.reduce_sum([[1, 2], [3, 4]], axis=1, keepdims=True))
        array([[3],
               [7]], dtype=int32)
    """
    return reduce_by(SUM, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _sum_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    return _sum(ctx, input, reduction_of(ctx, input, axis), out)


def _sum(ctx: KernelContext, input: Array, spec: Reduction, out: Array | None) -> Array:
    dtype = input.dtype
    if is_half(dtype):
        return assign(ctx.xp, _wide_sum(ctx, input, spec), dtype, out)
    if ctx.xp is np and dtype.char in "fd" and input.flags.c_contiguous and spec.axes and input.size:
        return _blas_sum(input, spec, out)
    if (total := _sum_of_rows(ctx.xp, input, spec)) is not None:
        return total if out is None else assign(ctx.xp, total, dtype, out)
    return ctx.xp.sum(input, axis=spec.axes, dtype=dtype, out=out, keepdims=ctx.attr("keep_dims"))


def _wide_sum(ctx: KernelContext, input: Array, spec: Reduction) -> Array:
    """The sum of halves, in float32."""
    if ctx.xp is np:
        return _sum(ctx, input.astype(np.float32), spec, None)
    if (total := _sum_of_rows(ctx.xp, input, spec)) is not None:
        return total
    return ctx.xp.sum(input, axis=spec.axes, dtype=np.float32, keepdims=ctx.attr("keep_dims"))


def _sum_of_rows(xp: ArrayModule, input: Array, spec: Reduction) -> Array | None:
    """The sum over the first dimensions by `staged_sum`, or None: CuPy's own sums of rows use too few threads."""
    if len(spec.steps) != 1 or not has_loop(xp, input.dtype, input.size) or not input.flags.c_contiguous:
        return None
    ((outer, count, inner),) = spec.steps
    if outer > 1 or inner == 1 or not are_staged(count, inner):
        return None
    return staged_sum(xp, "{0}", [input.reshape(count, inner)], 0).reshape(spec.result)


def _blas_sum(input: Array, spec: Reduction, out: Array | None) -> Array:
    """See `sums`: BLAS adds 2 to 15 times as fast as NumPy's reductions."""
    if not spec.steps:
        total = sums.of_vector(input.reshape(-1))
        if out is None:
            return total if not spec.result else total.reshape(spec.result)
        out[...] = total
        return out
    for outer, count, inner in spec.steps[:-1]:
        input = sums.over_middle(input, outer, count, inner)
    outer, count, inner = spec.steps[-1]
    last = None if out is None else out.reshape(outer * inner)
    input = sums.over_middle(input, outer, count, inner, last)
    return input.reshape(spec.result) if out is None else out


def _sum_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [_expand_like_input(op, d_output), None]


SUM = register(reduction("Sum", _sum_kernel, dtypes.NUMERIC, _sum_gradient))


def reduce_mean(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Average elements over dimensions (arguments as `reduce_sum`). Integers are rounded towards 0.

    `input_tensor` may have any shape. The result has its dtype and its shape without these dimensions, or with size 1
    there (`keepdims`).

    Examples:
        >>> session.run(tf.reduce_mean([[1.0, 2.0], [3.0, 4.0]], axis=0))
        array([2., 3.], dtype=float32)
    """
    return reduce_by(MEAN, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _mean_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    spec = reduction_of(ctx, input, axis)
    dtype = input.dtype
    if dtype.kind in "iu":
        return assign(ctx.xp, _whole_mean(ctx, input, spec), dtype, out)
    if is_half(dtype):
        mean = _wide_sum(ctx, input, spec) / np.float32(spec.reduced_size)
        return assign(ctx.xp, mean, dtype, out)
    total = _sum(ctx, input, spec, out)
    return ctx.xp.divide(total, dtype.type(spec.reduced_size), out=total if out is None and total.ndim else out)


def _whole_mean(ctx: KernelContext, input: Array, spec: Reduction) -> Array:
    wide = np.uint64 if input.dtype.kind == "u" else np.int64
    total = ctx.xp.sum(input, axis=spec.axes, dtype=wide, keepdims=ctx.attr("keep_dims"))
    quotient = ctx.xp.abs(total) // wide(max(spec.reduced_size, 1))
    return ctx.xp.sign(total) * quotient


def _mean_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    count, dtype = _reduced_count(op), op.inputs[0].dtype
    # Multiply by the reciprocal: a large count is beyond the range of float16.
    share = multiply(d_output, 1.0 / max(count, 1)) if isinstance(count, int) else realdiv(d_output, cast(count, dtype))
    return [_expand_like_input(op, share), None]


def _reduced_count(op: Operation) -> int | Tensor:
    """How many elements each element of the result is reduced from; a tensor where static shapes do not tell."""
    before, after = (tensor.shape.num_elements() for tensor in (op.inputs[0], op.outputs[0]))
    if before is not None and after:
        return before // after
    axis, sizes = constant_value(op.inputs[1]), op.inputs[0].shape
    if axis is not None and sizes.rank is not None:
        counts = [sizes.sizes[i] for i in np.ravel(axis)]
        if None not in counts:
            return prod(count for count in counts if count is not None)
    return floordiv(size(op.inputs[0]), maximum(size(op.outputs[0]), 1))


MEAN = register(reduction("Mean", _mean_kernel, dtypes.NUMERIC, _mean_gradient))


# -- extremes ------------------------------------------------------------------------------------------


def reduce_max(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Take the greatest element over dimensions (arguments as `reduce_sum`; integers and floats).

    Returns:
        The dtype of `input_tensor` and its shape without these dimensions, or with size 1 there (`keepdims`). Of no
        elements the least value of the dtype, ``-inf`` for floats. Equal maxima share the gradient.

    Examples:
        >>> session.run(tf.reduce_max([[1, 5], [3, 4]], axis=1))
        array([5, 4], dtype=int32)
    """
    return reduce_by(MAX, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _max_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    return _extreme(ctx, input, axis, out, "maximum", -1)


def _extreme(ctx: KernelContext, input: Array, axis: Array, out: Array | None, ufunc: str, sign: int) -> Array:
    spec = reduction_of(ctx, input, axis)
    if spec.reduced_size == 0:
        nothing = ctx.xp.full(spec.result, _bound(input.dtype, sign), input.dtype)
        return nothing if out is None else assign(ctx.xp, nothing, input.dtype, out)
    if ctx.xp is not np:
        function = ctx.xp.max if sign < 0 else ctx.xp.min
        return function(input, axis=spec.axes, out=out, keepdims=ctx.attr("keep_dims"))
    function = getattr(np, ufunc)
    outer, count, inner = spec.steps[0] if len(spec.steps) == 1 else (0, 0, 0)
    if outer == 1 and input.flags.c_contiguous:
        return _fold_rows(function, input.reshape(count, -1), spec.result, out)
    if inner == 1 and can_compute(np, input):
        out = np.empty(spec.result, input.dtype) if out is None else out
        compute_rows("reductions", "greatest" if sign < 0 else "least", outer, count, input, out)
        return out
    return function.reduce(input, axis=spec.axes, out=out, keepdims=ctx.attr("keep_dims"))


def _bound(dtype: NumpyDType, sign: int) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max
    return np.inf * sign


def _fold_rows(function: Any, rows: Array, result: tuple[int, ...], out: Array | None) -> Array:
    """Reduce over the first dimension. Narrow rows are folded in halves first: one long call per half."""
    while rows.shape[0] > 16 and rows.shape[1] < 256:
        half = rows.shape[0] // 2
        folded = function(rows[:half], rows[half : 2 * half])
        if rows.shape[0] % 2:
            function(folded[0], rows[-1], out=folded[0])
        rows = folded
    reduced = function.reduce(rows, axis=0, out=None if out is None else out.reshape(-1))
    return reduced.reshape(result) if out is None else out


def _extreme_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    input, extreme = op.inputs[0], op.outputs[0]
    chosen = cast(equal(input, _expand_like_input(op, extreme)), d_output.dtype)
    shared = realdiv(d_output, reshape_like(reduce_sum(chosen, op.inputs[1]), d_output))
    return [multiply(chosen, _expand_like_input(op, shared)), None]


MAX = register(reduction("Max", _max_kernel, dtypes.REAL, _extreme_gradient))


def reduce_min(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Take the least element over dimensions (arguments as `reduce_sum`; integers and floats).

    Returns:
        The dtype of `input_tensor` and its shape without these dimensions, or with size 1 there (`keepdims`). Of no
        elements the greatest value of the dtype, ``inf`` for floats. Equal minima share the gradient.

    Examples:
        >>> session.run(tf.reduce_min([[1, 5], [3, 4]], axis=1))
        array([1, 3], dtype=int32)
    """
    return reduce_by(MIN, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _min_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    return _extreme(ctx, input, axis, out, "minimum", 1)


MIN = register(reduction("Min", _min_kernel, dtypes.REAL, _extreme_gradient))


# -- products ------------------------------------------------------------------------------------------


def reduce_prod(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Multiply elements over dimensions (arguments as `reduce_sum`).

    `input_tensor` may have any shape. The result has its dtype and its shape without these dimensions, or with size 1
    there (`keepdims`).

    Examples:
        >>> session.run(tf.reduce_prod([[1, 2], [3, 4]], axis=1))
        array([ 2, 12], dtype=int32)
    """
    return reduce_by(PROD, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _prod_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    spec = reduction_of(ctx, input, axis)
    dtype = input.dtype
    if is_half(dtype):
        product = ctx.xp.prod(input.astype(np.float32), axis=spec.axes, keepdims=ctx.attr("keep_dims"))
        return assign(ctx.xp, product, dtype, out)
    return ctx.xp.prod(input, axis=spec.axes, dtype=dtype, out=out, keepdims=ctx.attr("keep_dims"))


def _prod_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    # Multiply the other elements, instead of dividing the product by each: that is right for zeros too.
    if op.inputs[1].op.op_def is REVERSED_AXES:
        others = reshape_like(_others(reshape(op.inputs[0], [-1]), [0]), op.inputs[0])
    elif (single := _single_axes(op)) is not None:
        others = _others(op.inputs[0], single)
    else:
        factors, axis = op.inputs
        axes = reshape(axis, [-1])  # where the rank is not known, it may be a scalar
        group = grouped(factors, from_front(axes, factors), chosen_first=True)
        others = transpose(reshape(_others(group.matrix, [0]), group.sizes), invert_permutation(group.order))
    return [multiply(_expand_like_input(op, d_output), conj(others)), None]


def _others(tensor: Tensor, axes: list[int]) -> Tensor:
    """For each element the product of the others over `axes`."""
    others = None
    for axis in axes:
        before = cumprod(tensor, axis, exclusive=True)
        after = cumprod(tensor, axis, exclusive=True, reverse=True)
        around = multiply(before, after)
        others = around if others is None else multiply(others, around)
        tensor = reduce_prod(tensor, axis, keepdims=True)
    return ones_like(tensor) if others is None else others


def _single_axes(op: Operation) -> list[Any] | None:
    """The axes of a reduction one by one; None where it is not known how many there are."""
    axis = op.inputs[1]
    value = constant_value(axis)
    if value is not None:
        return [int(i) for i in np.ravel(value)]
    if axis.shape.rank == 0 or axis.shape.num_elements() == 1:
        return [reshape(axis, [])]
    return None


PROD = register(reduction("Prod", _prod_kernel, dtypes.NUMERIC, _prod_gradient))


# -- logic ---------------------------------------------------------------------------------------------


def reduce_all(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Tell whether all elements over dimensions hold (arguments as `reduce_sum`; bool).

    `input_tensor` may have any shape. The result has its shape without these dimensions, or with 1 there (`keepdims`).

    Examples:
        >>> session.run(tf.reduce_all([[True, True], [True, False]], axis=1))
        array([ True, False])
    """
    return reduce_by(ALL, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _all_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    return ctx.xp.all(input, axis=reduction_of(ctx, input, axis).axes, out=out, keepdims=ctx.attr("keep_dims"))


ALL = register(reduction("All", _all_kernel, (dtypes.bool_,)))


def reduce_any(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Tell whether an element over dimensions holds (arguments as `reduce_sum`; bool).

    `input_tensor` may have any shape. The result has its shape without these dimensions, or with 1 there (`keepdims`).

    Examples:
        >>> session.run(tf.reduce_any([[False, False], [True, False]], axis=1))
        array([False,  True])
    """
    return reduce_by(ANY, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _any_kernel(ctx: KernelContext, input: Array, axis: Array, out: Array | None = None) -> Array:
    return ctx.xp.any(input, axis=reduction_of(ctx, input, axis).axes, out=out, keepdims=ctx.attr("keep_dims"))


ANY = register(reduction("Any", _any_kernel, (dtypes.bool_,)))


# -- built from the above ------------------------------------------------------------------------------


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Compute ``log(sum(exp(input_tensor)))`` over dimensions without overflow (arguments as `reduce_sum`).

    `input_tensor` may have any shape. The result has its dtype and its shape without these dimensions, or with size 1
    there (`keepdims`).

    Examples:
        >>> session.run(tf.reduce_logsumexp([[0.0, 0.0], [1.0, 1.0]], axis=1))
        array([0.6931472, 1.6931472], dtype=float32)
    """
    input_tensor = convert_to_tensor(input_tensor)
    axis = by_either_name("reduce_logsumexp", axis=axis, reduction_indices=reduction_indices)
    axis = axes_tensor(input_tensor, axis)
    greatest = reduce_max(input_tensor, axis, keepdims=True)
    # Do not subtract an infinite maximum: inf - inf would be NaN.
    pivot = stop_gradient(where(is_finite(greatest), greatest, zeros_like(greatest)))
    total = reduce_sum(exp(subtract(input_tensor, pivot)), axis, keepdims, keep_dims=keep_dims)
    return add(log(total), reshape(pivot, shape(total)), name or "ReduceLogSumExp")


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the square root of the sum of squares over dimensions (arguments as `reduce_sum`).

    `input_tensor` may have any shape. The result has its dtype and its shape without these dimensions, or with size 1
    there (`keepdims`). The norm of integers is cut off to an integer; as in TensorFlow, their squares may overflow.
    """
    input_tensor = convert_to_tensor(input_tensor)
    dtype, name = input_tensor.dtype, name or "EuclideanNorm"
    squares = multiply(input_tensor, conj(input_tensor)) if dtype.is_complex else square(input_tensor)
    total = reduce_sum(squares, axis, keepdims)
    return cast(sqrt(cast(total, dtypes.float64)), dtype, name) if dtype.is_integer else sqrt(total, name)


def reduce_variance(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the mean squared distance from the mean over dimensions (arguments as `reduce_sum`).

    `input_tensor` may have any shape. The result has its dtype and its shape without these dimensions, or with size 1
    there (`keepdims`). The variance of complex numbers is real.

    Raises:
        ArgumentError: `input_tensor` is of integers: cast it first. It is a TypeError.
    """
    input_tensor = convert_to_tensor(input_tensor)
    dtype = input_tensor.dtype
    if not dtype.is_floating and not dtype.is_complex:
        raise ArgumentError(f"reduce_variance: input_tensor is {dtype.name}, expected float or complex numbers")
    with get_default_graph().name_scope(name or "reduce_variance"):
        mean = reduce_mean(input_tensor, axis, keepdims=True)
        if not dtype.is_complex:
            return reduce_mean(squared_difference(input_tensor, mean), axis, keepdims)
        apart = subtract(input_tensor, mean)
        return reduce_mean(cast(multiply(apart, conj(apart)), dtype.real_dtype), axis, keepdims)


def reduce_std(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the square root of `reduce_variance`.

    `input_tensor` may have any shape. The result has its dtype and its shape without these dimensions, or with size 1
    there (`keepdims`).
    """
    with get_default_graph().name_scope(name or "reduce_std"):
        return sqrt(reduce_variance(input_tensor, axis, keepdims))


def count_nonzero(
    input_tensor: TensorLike | None = None,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Count the elements that are not 0 (not False, not empty) over dimensions (arguments as `reduce_sum`).

    The counts have the dtype `dtype` and the shape of `input_tensor` without these dimensions, or with size 1 there
    (`keepdims`). `input` is another spelling of `input_tensor`.

    Examples:
        >>> session.run(tf.count_nonzero([[0, 5], [3, 4]], axis=1))
        array([1, 2])
    """
    with get_default_graph().name_scope(name or "count_nonzero"):
        input_tensor = convert_to_tensor(by_either_name("count_nonzero", input=input, input_tensor=input_tensor))
        counted = cast(not_equal(input_tensor, zeros_like(input_tensor)), as_dtype(dtype))
        return reduce_sum(counted, axis, keepdims, None, reduction_indices, keep_dims)
