"""Order: sorting, the n-th element, searching in sorted rows, histograms."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_size, constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, ArrayModule, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import late_index
from tfray.ops.arrays.shape_ops import (
    cast,
    expand_dims,
    host_int,
    host_ints,
    index_tensor,
    reshape,
    shape,
    transpose,
)
from tfray.ops.arrays.source_ops import constant
from tfray.ops.kernels.precision import sortable
from tfray.ops.math.arithmetic_ops import multiply, realdiv
from tfray.ops.math.axis_ops import from_front, last_axis_first
from tfray.ops.math.comparison_ops import equal
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.math.rounding_ops import clip_by_value, floor
from tfray.ops.math.scan_ops import cumsum
from tfray.ops.math.search_ops import BINCOUNT, put_along_last

# -- sorting -------------------------------------------------------------------------------------------


def sort(values: TensorLike, axis: TensorLike = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Sort along a dimension.

    Args:
        values: Shape ``[...]`` of rank 1 or more, a real dtype.
        axis: The dimension, an integer scalar.
        direction: ``"ASCENDING"`` or ``"DESCENDING"``.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype.
    """
    with get_default_graph().name_scope(name or "sort"):
        return _along_last(SORT, values, axis, direction)


def argsort(
    values: TensorLike,
    axis: TensorLike = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Find the order that sorts along a dimension.

    Args:
        values: Shape ``[...]`` of rank 1 or more, a real dtype.
        axis: The dimension, an integer scalar.
        direction: ``"ASCENDING"`` or ``"DESCENDING"``.
        stable: Equal elements keep their order (they always do).
        name: Name scope of the operations.

    Returns:
        Positions along the dimension, int32, the shape of `values`.
    """
    with get_default_graph().name_scope(name or "argsort"):
        return _along_last(ARG_SORT, values, axis, direction)


def _along_last(definition: OpDef, values: TensorLike, axis: Any, direction: str) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise InvalidArgumentError(f"{definition.name}: direction is {direction!r}, expected ASCENDING or DESCENDING")
    values = convert_to_tensor(values, name="values")
    along = late_index(axis, 0, f"{definition.name}: axis")
    if isinstance(along, Tensor):
        raise ArgumentError(f"{definition.name}: axis must be an integer that the graph determines, not {axis!r}")
    descending = direction == "DESCENDING"
    if values.shape.rank is None and along != -1:
        order: Any = last_axis_first(from_front(along, values), values)
    else:
        if values.shape.rank:
            along = normalize_axis(along, values.shape.rank) - values.shape.rank
        if along == -1 or values.shape.rank == 0:
            return add_op(definition, values, descending=descending)
        places = list(range(len(values.shape)))
        places[along], places[-1] = places[-1], places[along]
        order = constant(places, name="transposition")
    return transpose(add_op(definition, transpose(values, order), descending=descending), order)


def _check_vectors(values: Array) -> None:
    if values.ndim == 0:
        raise InvalidArgumentError("a scalar has no order: expected rank 1 or more")


def _vectors_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank_at_least(1)]


def _order(xp: ArrayModule, values: Array, descending: bool) -> Array:
    if xp is np and values.dtype in _KEYS and values.shape[-1] > 16:
        return _order_by_keys(values, descending)
    values = sortable(xp, values)
    if descending:
        # Sort the reversed line and reverse the result: equal elements then keep their order.
        return values.shape[-1] - 1 - xp.argsort(values[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return xp.argsort(values, axis=-1, kind="stable")


_KEYS: Final = (np.dtype(np.float32), np.dtype(np.int32))


def _order_by_keys(values: Array, descending: bool) -> Array:
    """The order by sorting integers, key and position in one: many times as fast as a stable sort of positions."""
    if values.dtype == np.float32:
        bits = (values + np.float32(0)).view(np.uint32)  # so that -0 is 0
        # As integers, positive floats are in order, and negative ones in the opposite one.
        keys = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    else:
        keys = values.view(np.uint32) ^ np.uint32(1 << 31)
    pairs = (~keys if descending else keys).astype(np.uint64)
    pairs <<= np.uint64(32)
    pairs |= np.arange(values.shape[-1], dtype=np.uint64)
    pairs.sort(axis=-1)
    return pairs & np.uint64(0xFFFFFFFF)


def _sort_kernel(ctx: KernelContext, values: Array) -> Array:
    _check_vectors(values)
    ascending = ctx.xp.sort(sortable(ctx.xp, values), axis=-1).astype(values.dtype, copy=False)
    return ctx.xp.ascontiguousarray(ascending[..., ::-1]) if ctx.attr("descending") else ascending


def _sort_gradient(op: Operation, d_sorted: Tensor) -> list[Tensor | None]:
    values = op.inputs[0]
    order = add_op(ARG_SORT, values, descending=op.attr("descending"))
    return [put_along_last(d_sorted, order, shape(values))]


SORT = register(
    OpDef(
        name="Sort",
        inputs=("values: T",),
        outputs=("sorted: T",),
        attrs=("descending",),
        types={"T": dtypes.REAL},
        shape=_vectors_shape,
        kernels=on_every_device(_sort_kernel),
        gradient=_sort_gradient,
    )
)


def _arg_sort_kernel(ctx: KernelContext, values: Array) -> Array:
    _check_vectors(values)
    return _order(ctx.xp, values, ctx.attr("descending")).astype(np.int32)


ARG_SORT = register(
    OpDef(
        name="ArgSort",
        inputs=("values: T",),
        outputs=("order: int32",),
        attrs=("descending",),
        types={"T": dtypes.REAL},
        shape=_vectors_shape,
        kernels=on_every_device(_arg_sort_kernel),
    )
)


def nth_element(input: TensorLike, n: TensorLike, reverse: bool = False, name: str | None = None) -> Tensor:
    """Find the element at place `n` of the sorted last dimension.

    Args:
        input: Shape ``[..., size]``, a real dtype.
        n: The place, an integer scalar from 0 to below the size.
        reverse: Count from the greatest.
        name: Name of the operation.

    Returns:
        Shape ``[...]``. The gradient is shared by all equal elements.
    """
    return add_op(NTH_ELEMENT, input, index_tensor(n), name=name, reverse=bool(reverse))


_SCALAR: Final = "Shape must be at least rank 1 but is rank 0: Input must be >= 1-D, got shape []"


def _nth_element_kernel(ctx: KernelContext, input: Array, n: Array) -> Array:
    place = host_int(ctx, n)
    if input.ndim == 0:
        raise InvalidArgumentError(_SCALAR)
    if place < 0:
        raise InvalidArgumentError(f"Need n >= 0, got {place}")
    if place >= input.shape[-1]:
        raise InvalidArgumentError(f"Input must have at least n+1 columns: n is {place}, the shape {input.shape}")
    place = input.shape[-1] - 1 - place if ctx.attr("reverse") else place
    return ctx.xp.partition(sortable(ctx.xp, input), place, axis=-1)[..., place].astype(input.dtype, copy=False)


def _nth_element_shape(op: Operation) -> list[TensorShape]:
    place = constant_size(op, 1)
    if op.inputs[0].shape.rank == 0:
        raise InvalidArgumentError(_SCALAR)
    shape = _vectors_shape(op)[0]
    size = None if shape.rank is None else shape.sizes[-1]
    if place is not None and size is not None and size <= place:
        raise InvalidArgumentError(f"Input must have last dimension > n = {place} but is {size}")
    return [shape[:-1]]


def _nth_element_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    values = op.inputs[0]
    is_it = cast(equal(expand_dims(op.outputs[0], -1), values), values.dtype)
    share = realdiv(is_it, reduce_sum(is_it, -1, keepdims=True))
    return [multiply(share, expand_dims(d_output, -1)), None]


NTH_ELEMENT = register(
    OpDef(
        name="NthElement",
        inputs=("input: T", "n: I"),
        outputs=("values: T",),
        host_inputs=("n",),
        attrs=("reverse",),
        types={"T": dtypes.REAL, "I": dtypes.INDICES},
        shape=_nth_element_shape,
        kernels=on_every_device(_nth_element_kernel),
        gradient=_nth_element_gradient,
    )
)


# -- searching -----------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike | None = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Find where values would go into sorted rows.

    Args:
        sorted_sequence: Shape ``[..., n]``, a real dtype, ascending along the last dimension.
        values: Shape ``[..., m]``, the same dtype, with as many rows as `sorted_sequence`.
        side: ``"left"``: before equal elements; ``"right"``: behind them.
        out_type: int32 or int64.
        name: Name of the operation.

    Returns:
        The shape of `values`: places from 0 to n.
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"searchsorted: side is {side!r}, expected 'left' or 'right'")
    out_type = dtypes.int32 if out_type is None else as_dtype(out_type)
    return add_op(SEARCH_SORTED, sorted_sequence, values, name=name, side=side, out_type=out_type)


def _search_sorted_kernel(ctx: KernelContext, rows: Array, values: Array) -> Array:
    xp, side = ctx.xp, ctx.attr("side")
    count = math.prod(rows.shape[:-1])
    if rows.ndim == 0 or values.ndim == 0 or count != math.prod(values.shape[:-1]):
        raise InvalidArgumentError(
            f"{ctx.op_name}: sequences of shape {rows.shape} and values of shape {values.shape}: there must be as many "
            "rows of either"
        )
    found = xp.empty(values.shape, ctx.output_dtype())
    flat = [array.reshape(count, array.shape[-1]) for array in (rows, values, found)]
    for row, wanted, places in zip(*flat, strict=True):
        places[...] = xp.searchsorted(row, wanted, side=side)
    return found


def _search_sorted_shape(op: Operation) -> list[TensorShape]:
    rows, values = (tensor.shape for tensor in op.inputs)
    if rows.rank is None or values.rank is None:
        return [values]
    counts = [shape[:-1].num_elements() for shape in (rows, values)]
    if rows.rank == 0 or values.rank == 0 or (None not in counts and counts[0] != counts[1]):
        raise ValueError(f"sequences {rows} and values {values}: there must be as many rows of either")
    return [values]


SEARCH_SORTED = register(
    OpDef(
        name="SearchSorted",
        inputs=("sorted_sequence: T", "values: T"),
        outputs=("places: out_type",),
        attrs=("side",),
        types={"T": dtypes.REAL, "out_type": dtypes.INDICES},
        shape=_search_sorted_shape,
        kernels=on_every_device(_search_sorted_kernel),
    )
)


# -- counting ------------------------------------------------------------------------------------------


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Find the bin of equal width that each value falls into.

    Args:
        values: Shape ``[...]``, a real dtype.
        value_range: Lower and upper bound, a vector of 2; values beyond go into the first and last bin.
        nbins: Number of bins, an integer scalar above 0.
        dtype: Accepted for TensorFlow's sake, which ignores it as well.
        name: Name scope of the operations.

    Returns:
        int32, the shape of `values`. What stands in the place of a NaN is not defined.
    """
    with get_default_graph().name_scope(name or "histogram_bins"):
        values = convert_to_tensor(values, name="values")
        bounds = convert_to_tensor(value_range, values.dtype)
        _check_bounds(bounds.shape)
        wide = dtypes.float64 if values.dtype.size > 4 or values.dtype.is_integer else dtypes.float32
        known = constant_value(bounds)
        if known is not None and known.shape == (2,) and known[0] >= known[1]:
            raise InvalidArgumentError(f"histogram_fixed_width: value_range is {known.tolist()}, expected low < high")
        low, high = cast(bounds[0], wide), cast(bounds[1], wide)
        share = realdiv(cast(values, wide) - low, high - low)
        count = cast(_positive_count(nbins), wide)
        return cast(clip_by_value(floor(multiply(share, count)), 0, count - 1), dtypes.int32)


def _check_bounds(shape: TensorShape) -> None:
    if shape.rank not in (None, 1):
        raise ArgumentError(
            f"Shape must be rank 1 but is rank {shape.rank}: value_range has shape {shape}, expected [2]"
        )
    if not shape.is_compatible_with([2]):
        raise ArgumentError(f"Dimension must be 2 but is {shape[0]}: value_range has shape {shape}, expected [2]")


def _positive_count(nbins: TensorLike) -> Tensor:
    """`nbins` as an int32 scalar, which is checked to be above 0 if the graph knows it."""
    count = convert_to_tensor(nbins, dtypes.int32)
    if count.shape.rank not in (None, 0):
        raise ArgumentError(f"Shape must be rank 0 but is rank {count.shape.rank}: nbins has shape {count.shape}")
    known = constant_value(count)
    if known is not None and known <= 0:
        raise InvalidArgumentError(f"Requires nbins > 0: it is {known}")
    return count


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike | None = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Count how many values fall into each of `nbins` bins of equal width (see `histogram_fixed_width_bins`).

    `values` may have any shape; `value_range` is a vector of two, the lower and the upper limit; `nbins` is an integer
    scalar above 0.

    Returns:
        Shape ``[nbins]``, of `dtype`, which is int32 or int64.

    Raises:
        InvalidArgumentError: `nbins` is not above 0. Or when run, a value is NaN.
    """
    with get_default_graph().name_scope(name or "histogram_fixed_width") as scope:
        values = convert_to_tensor(values, name="values")
        bounds = convert_to_tensor(value_range, values.dtype)
        _check_bounds(bounds.shape)
        exact = cast(bounds, dtypes.float64)
        count = _positive_count(nbins)
        bins = histogram_fixed_width_bins(cast(values, dtypes.float64), exact, count)
        counted = as_dtype(dtypes.int32 if dtype is None else dtype)
        return add_op(BINCOUNT, bins, count, np.zeros(0, counted.numpy), name=scope)


# -- places --------------------------------------------------------------------------------------------


def unravel_index(indices: TensorLike, dims: TensorLike, name: str | None = None) -> Tensor:
    """Turn places in a flattened array into coordinates.

    Args:
        indices: Shape ``[n]`` or scalar, int32 or int64.
        dims: Integer vector: the shape of the array, of the dtype of `indices`.
        name: Name of the operation.

    Returns:
        ``[rank, n]`` (``[rank]`` for a scalar): row by row the coordinates in each dimension.
    """
    indices = index_tensor(indices)
    return add_op(UNRAVEL_INDEX, indices, convert_to_tensor(dims, indices.dtype), name=name)


def _unravel_index_kernel(ctx: KernelContext, indices: Array, dims: Array) -> Array:
    sizes = host_ints(ctx, dims)
    count = int(np.prod(sizes))
    if indices.ndim > 1:
        raise InvalidArgumentError(f"{ctx.op_name}: the places have shape {indices.shape}, expected a scalar or vector")
    if indices.size and ctx.xp is np and not 0 <= indices.min() <= indices.max() < count:
        raise InvalidArgumentError(f"{ctx.op_name}: a place is not within the {count} elements of shape {sizes}")
    return ctx.xp.stack([c.astype(indices.dtype, copy=False) for c in _coordinates(ctx.xp, indices, sizes)])


def _coordinates(xp: ArrayModule, places: Array, sizes: list[int]) -> list[Array]:
    found = []
    for size in reversed(sizes):
        places, last = xp.divmod(places, places.dtype.type(max(size, 1)))
        found.append(last)
    return found[::-1]


def _unravel_index_shape(op: Operation) -> list[TensorShape]:
    indices, dims = op.inputs[0].shape.with_rank_at_most(1), op.inputs[1].shape.with_rank(1)
    return [TensorShape([dims.sizes[0]]).concatenate(indices)]


UNRAVEL_INDEX = register(
    OpDef(
        name="UnravelIndex",
        inputs=("indices: T", "dims: T"),
        outputs=("output: T",),
        host_inputs=("dims",),
        types={"T": dtypes.INDICES},
        shape=_unravel_index_shape,
        kernels=on_every_device(_unravel_index_kernel),
    )
)


def repeat(input: TensorLike, repeats: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeat elements, each right behind itself.

    Args:
        input: Shape ``[...]``, any dtype.
        repeats: How often: an integer scalar, or a vector with a number for each element along `axis`.
        axis: The dimension; None for the flattened input.
        name: Name scope of the operations.

    Returns:
        The dtype of `input`; its shape with the sum of the `repeats` along `axis`. A vector when `axis` is None.

    Raises:
        ArgumentError: `repeats` or `axis` is not of integers.
    """
    with get_default_graph().name_scope(name or "repeat"):
        input, repeats = convert_to_tensor(input), index_tensor(repeats)
        if not repeats.dtype.is_integer and repeats.dtype is not dtypes.bool_:
            raise ArgumentError(f"repeat: repeats are {repeats.dtype.name}, expected integers")
        repeats.shape.with_rank_at_most(1)
        known = constant_value(repeats)
        if known is not None and (known < 0).any():
            raise InvalidArgumentError(f"repeat: repeats are {known.tolist()}, expected at least 0")
        if axis is None or input.shape.rank == 0:
            input, axis = reshape(input, [-1]), axis or 0
        if not isinstance(axis, (int, np.integer)):
            raise ArgumentError(f"repeat: axis is {axis!r}, expected an integer")
        if input.shape.rank is None:
            raise InvalidArgumentError("repeat: the rank of the input is unknown; use set_shape")
        along = normalize_axis(int(axis), input.shape.rank)
        if repeats.shape.rank == 1 and repeats.shape != [1]:
            input.shape[along].assert_is_compatible_with(repeats.shape[0])
        size = shape(input)[along]
        counts = cast(repeats, dtypes.int32) + range_(size) * 0
        ends = cumsum(counts)
        total = reduce_sum(counts)
        repeated = gather(input, searchsorted(ends, range_(total), side="right"), axis=along)
        if input.shape.sizes[along] == 0 or (known is not None and not known.any()):
            repeated.set_shape([0 if place == along else None for place in range(input.shape.rank)])
        return repeated
