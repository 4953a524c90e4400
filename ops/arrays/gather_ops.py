"""Elements by index: gather, gather_nd, their transposes, and boolean masks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import whole_part
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph, register_operator
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import (
    Array,
    KernelContext,
    OpDef,
    on_every_device,
    out_kernel,
    register,
    register_late,
)
from tfray.framework.shape_functions import normalize_axis
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype, broadcast_to, where
from tfray.ops.arrays.join_ops import concat, late_index
from tfray.ops.arrays.shape_ops import cast, host_ints, index_tensor, reshape, sizes_from_input, squeeze
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.shape_ops import size as size_of
from tfray.ops.arrays.slice_ops import getitem
from tfray.ops.kernels import fast_rows
from tfray.ops.kernels.batch_rules import Value, by_row
from tfray.ops.kernels.gpu.device_scatter import combine_at

# -- what the kernels share ----------------------------------------------------------------------------


def check_indices(ctx: KernelContext, indices: Array, size: int, what: str = "indices") -> None:
    """Raise `InvalidArgumentError` if an index is outside ``[0, size)``. On a GPU nothing is checked.

    There the check would make the host wait for the device in every step.
    """
    if ctx.xp is not np or indices.size == 0:
        return
    wrong = first_outside(indices, size, what)
    if wrong is not None:
        raise InvalidArgumentError(wrong)


def first_outside(indices: Array, size: int, what: str = "indices") -> str | None:
    """What is wrong with the first of some indices, in host memory, that is not in ``[0, size)``; None if none is."""
    if indices.ndim == 1 and 0 < indices.size <= _FEW:
        few = indices.tolist()
        if min(few) >= 0 and max(few) < size:
            return None
    # Read as unsigned, a negative index is larger than any size: one comparison finds both kinds of error.
    if not indices.size or np.maximum.reduce(indices.view(_UNSIGNED[indices.dtype.itemsize]), axis=None) < size:
        return None
    place = tuple(np.argwhere((indices < 0) | (indices >= size))[0].tolist())
    where = f"[{','.join(map(str, place))}]" if place else ""
    return f"{what}{where} = {indices[place]} is not in [0, {size})"


_FEW: Final = 64
"""Up to this many indices, checking them as Python integers is faster than by NumPy."""

_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def take_rows(ctx: KernelContext, params: Array, indices: Array, axis: int, out: Array | None = None) -> Array:
    """Slices of `params` along `axis` at `indices`, which are checked."""
    check_indices(ctx, indices, params.shape[axis])
    if ctx.xp is not np:
        return params.take(indices, axis, out)
    if axis % params.ndim == 0 and fast_rows.can_copy(params, indices.size * prod(params.shape[1:])):
        return fast_rows.gather(params, indices, out)
    # Not mode="raise": it would check the indices again, and buffer `out`.
    result = params.take(indices, axis, out, "clip")
    return np.array(result, dtype=object) if isinstance(result, bytes) else result


def sum_rows(ctx: KernelContext, rows: Array, indices: Array, count: int) -> Array:
    """Sum rows with equal indices: shape ``[count, width]`` from ``[n, width]`` and ``[n]``.

    Args:
        ctx: Context of the kernel.
        rows: The rows.
        indices: Where each is added, each in ``[0, count)``.
        count: Number of rows of the result.
    """
    xp, wide = ctx.xp, accumulator_dtype(rows.dtype)
    width = rows.shape[1]
    if xp is np and fast_rows.can_sum(wider := rows.astype(wide, copy=False)):
        return fast_rows.sum_rows(wider, indices, count).astype(rows.dtype, copy=False)
    if xp is not np:
        total = xp.zeros((count, width), wide)
        combine_at(xp, "add", total, indices, rows.astype(wide, copy=False))
        return total.astype(rows.dtype, copy=False)
    if rows.size < _SPARSE_ELEMENTS:
        places = indices if width == 1 else (indices[:, None].astype(np.intp) * width + np.arange(width)).reshape(-1)
        total = np.zeros(count * width, wide)
        np.add.at(total, places, rows.reshape(-1).astype(wide, copy=False))
        return total.reshape(count, width).astype(rows.dtype, copy=False)
    # A sparse matrix of ones times the rows is five to ten times as fast as add.at.
    ones = np.ones(len(indices), wide)
    matrix = _sparse().coo_array((ones, (indices, np.arange(len(indices)))), shape=(count, len(indices)))
    return (matrix @ rows.astype(wide, copy=False)).astype(rows.dtype, copy=False)


_SPARSE_ELEMENTS: Final = 32768
"""Elements from which rows are summed by a product with a sparse matrix. Fewer are added by ``add.at``."""


@lru_cache(maxsize=1)
def _sparse() -> Any:
    import scipy.sparse

    return scipy.sparse


# -- gather --------------------------------------------------------------------------------------------


def position_tensor(value: TensorLike, name: str | None = None) -> Tensor:
    """Positions or sizes, of any shape, as `index_tensor` makes them, of what TensorFlow does not cast to integers.

    NumPy's fractions keep dtype and shape, and the operation that takes them refuses the dtype.
    """
    kind = value.dtype.kind if isinstance(value, (np.ndarray, np.generic)) and value.size else "i"
    return convert_to_tensor(value, name=name) if kind in "fc" else index_tensor(value, name)


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: TensorLike | None = None,
    batch_dims: int = 0,
) -> Tensor:
    """Take slices of `params` along `axis` at `indices`.

    Args:
        params: Shape ``[..., n, ...]``, any dtype.
        indices: int32 or int64 of any shape, entries in ``[0, n)``.
        validate_indices: Not used: on the CPU indices are always checked, on a GPU never.
        name: Name of the operation.
        axis: The dimension of size ``n``, an integer scalar; `batch_dims` when None. The gradient of `params` is dense
            where it is known only when a step runs.
        batch_dims: Number of leading dimensions that `params` and `indices` share: one gather for each.

    Returns:
        Shape ``params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]``.
        The gradient of `params` is an `IndexedSlices` when `axis` is 0.

    Examples:
        >>> session.run(tf.gather([10, 20, 30], [2, 0]))
        array([30, 10], dtype=int32)
        >>> session.run(tf.gather([[1, 2, 3], [4, 5, 6]], [2, 0], axis=1))
        array([[3, 1],
               [6, 4]], dtype=int32)
    """
    indices = position_tensor(indices)
    if axis is None and batch_dims is None:
        raise ArgumentError("gather: axis and batch_dims are None, and one of them is needed")
    batch_dims = 0 if batch_dims is None else whole_part(batch_dims)
    axis = batch_dims if axis is None else axis
    if batch_dims < 0:
        batch_dims = normalize_axis(batch_dims, len(indices.shape))
    axis = late_index(axis, 0, "gather: axis")
    if axis == 0 and batch_dims == 0 and hasattr(params, "sparse_read"):
        return params.sparse_read(indices, name)  # a variable: no other rows are read
    return add_op(GATHER, params, indices, name=name, axis=axis, batch_dims=int(batch_dims))


def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """`gather` along the last dimension of `indices`, with one gather for each of the leading ones.

    `params` has the shape ``[..., n, rest]``, `indices` ``[..., k]``, and the result ``[..., k, rest]``.
    """
    indices = position_tensor(indices)
    return gather(params, indices, name=name, batch_dims=len(indices.shape.sizes) - 1)


def _gather_kernel(ctx: KernelContext, params: Array, indices: Array, out: Array | None = None) -> Array:
    axis, batch_dims = ctx.attr("axis"), ctx.attr("batch_dims")
    if batch_dims:
        result = _gather_in_batches(ctx, params, indices, normalize_axis(axis, params.ndim), batch_dims)
        if out is None:
            return result
        out[...] = result
        return out
    if params.ndim == 0:
        raise InvalidArgumentError("gather: params must have at least one dimension")
    return take_rows(ctx, params, indices, normalize_axis(axis, params.ndim), out)


def _gather_in_batches(ctx: KernelContext, params: Array, indices: Array, axis: int, batch_dims: int) -> Array:
    check_indices(ctx, indices, params.shape[axis])
    grid = ctx.xp.ogrid[tuple(slice(n) for n in indices.shape[:batch_dims])]
    grid = [g.reshape(g.shape + (1,) * (indices.ndim - batch_dims)) for g in _as_list(grid)]
    found = ctx.xp.moveaxis(params, axis, batch_dims)[(*grid, indices)]
    inner = indices.ndim - batch_dims
    return ctx.xp.moveaxis(found, tuple(range(batch_dims, indices.ndim)), tuple(range(axis, axis + inner)))


def _as_list(grid: Any) -> list[Array]:
    return list(grid) if isinstance(grid, (list, tuple)) else [grid]


def _gather_shape(op: Operation) -> list[TensorShape]:
    params, indices = (tensor.shape for tensor in op.inputs)
    if params.rank is None or indices.rank is None:
        return [UNKNOWN]
    axis, batch_dims = normalize_axis(op.attr("axis"), params.rank), op.attr("batch_dims")
    if not batch_dims <= axis or batch_dims > indices.rank:
        raise ValueError(f"gather: {batch_dims} batch dimensions do not fit axis {axis} and indices {indices}")
    batch = params[:batch_dims].merge_with(indices[:batch_dims])
    return [
        batch.concatenate(params[batch_dims:axis]).concatenate(indices[batch_dims:]).concatenate(params[axis + 1 :])
    ]


def _gather_gradient(op: Operation, d_output: Tensor) -> list[Any]:
    params, indices = op.inputs
    axis, batch_dims = op.attr("axis"), op.attr("batch_dims")
    if axis == 0 and batch_dims == 0:
        return [IndexedSlices(_as_rows(d_output, params, indices), reshape(indices, [-1]), shape_of(params)), None]
    d_params = add_op(GATHER_GRAD, d_output, indices, shape_of(params), axis=axis, batch_dims=batch_dims)
    d_params.set_shape(params.shape)
    return [d_params, None]


def _as_rows(d_output: Tensor, params: Tensor, indices: Tensor) -> Tensor:
    """`d_output` with one row of `params` per index."""
    if indices.shape.rank == 1:
        return d_output
    inner = params.shape[1:]
    if inner.is_fully_defined() and 0 not in inner.sizes:
        return reshape(d_output, [-1, *map(int, inner)])
    count, row = reshape(size_of(indices), [1]), getitem(shape_of(params), slice(1, None))
    return reshape(d_output, concat([count, row], 0))


def _gather_over_batch(op: Operation, inputs: Sequence[Value], count: Tensor) -> Sequence[Value] | None:
    is_of_rows = op.attr("axis") == 0 and op.attr("batch_dims") == 0
    return by_row(1)(op, inputs, count) if is_of_rows else None


GATHER = register_late(
    OpDef(
        name="GatherV2",
        inputs=("params: T", "indices: Tindices"),
        outputs=("output: T",),
        types={"T": (*dtypes.VALUES, dtypes.variant), "Tindices": dtypes.INDICES},
        attrs=("axis", "batch_dims"),
        late="axis",
        shape=_gather_shape,
        kernels=on_every_device(out_kernel(_gather_kernel)),
        gradient=_gather_gradient,
        over_batch=_gather_over_batch,
    )
)


def _gather_grad_kernel(ctx: KernelContext, dy: Array, indices: Array, shape: Array) -> Array:
    sizes = host_ints(ctx, shape)
    axis, batch_dims = ctx.attr("axis") % len(sizes), ctx.attr("batch_dims")
    inner = indices.ndim - batch_dims
    rows = ctx.xp.moveaxis(dy, tuple(range(axis, axis + inner)), tuple(range(batch_dims, indices.ndim)))
    batches = prod(sizes[:batch_dims])
    check_indices(ctx, indices, sizes[axis])
    first = ctx.xp.arange(batches).reshape(-1, 1) * sizes[axis]
    places = (indices.reshape(batches, prod(indices.shape[batch_dims:])) + first).reshape(-1)
    rest = [size for i, size in enumerate(sizes) if i >= batch_dims and i != axis]
    total = sum_rows(ctx, rows.reshape(places.size, prod(rest)), places, batches * sizes[axis])
    return ctx.xp.moveaxis(total.reshape(*sizes[:batch_dims], sizes[axis], *rest), batch_dims, axis)


def _gather_grad_shape(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 2)]


def _gather_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    attrs = {"axis": op.attr("axis"), "batch_dims": op.attr("batch_dims")}
    return [add_op(GATHER, d_output, op.inputs[1], **attrs), None, None]


GATHER_GRAD = register_late(
    OpDef(
        name="GatherGrad",
        inputs=("dy: T", "indices: Tindices", "shape: Tshape"),
        outputs=("output: T",),
        host_inputs=("shape",),
        types={"T": dtypes.NUMERIC, "Tindices": dtypes.INDICES, "Tshape": dtypes.INDICES},
        attrs=("axis", "batch_dims"),
        late="axis",
        shape=_gather_grad_shape,
        kernels=on_every_device(_gather_grad_kernel),
        gradient=_gather_grad_gradient,
    )
)


# -- gather_nd and scatter_nd --------------------------------------------------------------------------


def gather_nd(params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """Take slices of `params` at coordinates.

    Args:
        params: Shape ``[n_0, ..., n_k, ...]``, any dtype.
        indices: int32 or int64 of shape ``[..., k]``: each row holds coordinates in the first ``k`` dimensions, or in
            those behind `batch_dims`.
        name: Name of the operation.
        batch_dims: How many leading dimensions `params` and `indices` share: one gather for each.

    Returns:
        Shape ``indices.shape[:-1] + params.shape[batch_dims + k:]``. The gradient of `params` is an `IndexedSlices`
        where indices have shape ``[n, 1]``.

    Examples:
        >>> session.run(tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]))
        array([2, 3], dtype=int32)
    """
    indices, batch_dims = position_tensor(indices), whole_part(batch_dims)
    if batch_dims:
        if indices.shape.rank is not None and not 0 <= batch_dims < indices.shape.rank:
            raise InvalidArgumentError(f"gather_nd: batch_dims is {batch_dims}, indices have shape {indices.shape}")
        params = convert_to_tensor(params)
        if not params.shape[:batch_dims].is_compatible_with(indices.shape[:batch_dims]):
            raise InvalidArgumentError(
                f"gather_nd: params {params.shape} and indices {indices.shape} differ in the first {batch_dims} sizes"
            )
        rest = getitem(shape_of(indices), slice(batch_dims, -1))
        leading = concat([getitem(shape_of(params, out_type=rest.dtype), slice(None, batch_dims)), rest], 0)
        # A running count along each batch dimension, in front of the coordinates.
        places = where(broadcast_to(np.array(True), leading))
        places = cast(getitem(places, (Ellipsis, slice(None, batch_dims))), indices.dtype)
        indices = concat([reshape(places, concat([leading, [batch_dims]], 0)), indices], -1)
    return add_op(GATHER_ND, params, indices, name=name)


def check_places(
    ctx: KernelContext, indices: Array, shape: Sequence[int], kind: str = "shape", owner: str = ""
) -> None:
    """Raise `InvalidArgumentError` unless the coordinates ``indices[..., :]`` lie in the first axes of an array.

    `kind` is what the error calls the array's shape, and `owner` says of what it is.

    On a GPU nothing is checked, because the host would have to wait for the device in every step.
    """
    if ctx.xp is not np or not indices.size:
        return
    sizes = shape[: indices.shape[-1]]
    if any(first_outside(indices[..., i], size) is not None for i, size in enumerate(sizes)):
        place = np.argwhere(((indices < 0) | (indices >= np.array(sizes))).any(-1))[0].tolist()
        where, found = ",".join(map(str, place)), indices[tuple(place)].tolist()
        axis = next(axis for axis, size in enumerate(sizes) if not 0 <= found[axis] < size)
        raise InvalidArgumentError(
            f"indices[{where}] = {found} does not index into {kind} [{','.join(map(str, shape))}]{owner}: "
            f"invalid index on dimension {axis}"
        )


def _linear_indices(ctx: KernelContext, indices: Array, shape: Sequence[int], kind: str) -> Array:
    """Row-major positions of the coordinates ``indices[..., :]`` in the first axes of a tensor."""
    check_places(ctx, indices, shape, kind)
    places = ctx.xp.zeros(indices.shape[:-1], np.int64)
    for i, size in enumerate(shape[: indices.shape[-1]]):
        places = places * size + indices[..., i]
    return places


def _gather_nd_kernel(ctx: KernelContext, params: Array, indices: Array) -> Array:
    depth = indices.shape[-1]
    if indices.size and not params.size:
        raise InvalidArgumentError(
            f"Requested more than 0 entries, but params is empty.  Params shape: [{','.join(map(str, params.shape))}]"
        )
    places = _linear_indices(ctx, indices, params.shape, "param shape")
    rows = params.reshape(prod(params.shape[:depth]), *params.shape[depth:])
    return take_rows(ctx, rows, places, 0)


def _gather_nd_shape(op: Operation) -> list[TensorShape]:
    params, indices = (tensor.shape for tensor in op.inputs)
    if indices.rank == 0:
        raise ValueError("indices of gather_nd must have at least one dimension: that of the coordinates")
    depth = None if indices.rank is None else indices.sizes[-1]
    if depth is None or params.rank is None:
        return [UNKNOWN]
    if depth > params.rank:
        raise ValueError(
            f"index innermost dimension length must be <= params rank; {depth} coordinates do not fit params of shape "
            f"{params}"
        )
    return [indices[:-1].concatenate(params[depth:])]


def _gather_nd_gradient(op: Operation, d_output: Tensor) -> list[Any]:
    params, indices = op.inputs
    if indices.shape.rank == 2 and indices.shape.sizes[-1] == 1:  # rows: optimizers update no others
        return [IndexedSlices(d_output, reshape(indices, [-1]), shape_of(params)), None]
    d_params = scatter_nd(indices, d_output, shape_of(params, out_type=indices.dtype))
    d_params.set_shape(params.shape)
    return [d_params, None]


GATHER_ND = register(
    OpDef(
        name="GatherNd",
        inputs=("params: T", "indices: Tindices"),
        outputs=("output: T",),
        types={"T": dtypes.VALUES, "Tindices": dtypes.INDICES},
        shape=_gather_nd_shape,
        kernels=on_every_device(_gather_nd_kernel),
        gradient=_gather_nd_gradient,
    )
)


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Put `updates` at coordinates into zeros; equal coordinates add up.

    Args:
        indices: int32 or int64 of shape ``[..., k]``.
        updates: Shape ``indices.shape[:-1] + shape[k:]``, any dtype. Of bools any holds, strings are joined.
        shape: Integer vector: shape of the result.
        name: Name of the operation.

    Returns:
        Shape `shape`, the dtype of `updates`.

    Examples:
        >>> session.run(tf.scatter_nd([[1], [3]], [10, 30], [5]))
        array([ 0, 10,  0, 30,  0], dtype=int32)
    """
    return add_op(SCATTER_ND, position_tensor(indices), updates, index_tensor(shape), name=name)


def _scatter_nd_kernel(ctx: KernelContext, indices: Array, updates: Array, shape: Array) -> Array:
    sizes, depth = host_ints(ctx, shape), indices.shape[-1]
    if updates.shape != (*indices.shape[:-1], *sizes[depth:]):
        raise InvalidArgumentError(
            f"scatter_nd: updates of shape {updates.shape} do not fit indices {indices.shape} and shape {sizes}"
        )
    if not prod(sizes) and indices.size:
        raise InvalidArgumentError(
            f"scatter_nd: Indices and updates specified for empty output: shape {sizes} holds nothing, but there are "
            f"indices {indices.shape}"
        )
    places = _linear_indices(ctx, indices, sizes, "shape").reshape(-1)
    rows = updates.reshape(places.size, prod(sizes[depth:]))
    if updates.dtype.kind in "bO":
        # There is no sum of these: bools are joined by "or", strings one after the other.
        total = np.full((prod(sizes[:depth]), rows.shape[1]), b"", object) if updates.dtype == object else None
        if total is None:
            return (sum_rows(ctx, rows.astype(np.int32), places, prod(sizes[:depth])) > 0).reshape(sizes)
        for place, row in zip(places, rows, strict=True):
            total[place] = total[place] + row
        return total.reshape(sizes)
    return sum_rows(ctx, rows, places, prod(sizes[:depth])).reshape(sizes)


def _scatter_nd_shape(op: Operation) -> list[TensorShape]:
    result = sizes_from_input(op, 2)
    check_updates(op.inputs[0].shape, op.inputs[1].shape, result)
    return [result]


def check_updates(indices: TensorShape, updates: TensorShape, target: TensorShape) -> None:
    """Raise `ValueError` if the shape of `updates` at coordinates of the shape `indices` does not fit `target`."""
    if indices.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0: indices need a dimension for the coordinates")
    if target.num_elements() == 0 and (indices.num_elements() or updates.num_elements()):
        raise ValueError(
            f"Indices and updates specified for empty output: shape {target} holds nothing, but there are indices "
            f"{indices} and updates {updates}"
        )
    depth = indices.sizes[-1] if indices.rank else None
    if depth is None or indices.rank is None or target.rank is None:
        return
    if depth > target.rank:
        raise ValueError(f"{depth} coordinates do not fit: such an index does not fit shape {target}")
    fitting = indices[:-1].concatenate(target[depth:])
    if updates.is_compatible_with(fitting):
        return
    outer, inner = indices.rank - 1, target.rank - depth
    if not updates[:outer].is_compatible_with(indices[:-1]):
        raise ValueError(
            f"The outer {outer} dimensions of indices.shape={indices} must match the outer {outer} dimensions of "
            f"updates.shape={updates}: Shapes {updates} and {fitting} are incompatible"
        )
    raise ValueError(
        f"The inner {inner} dimensions of output.shape={target} must match the inner {inner} dimensions of "
        f"updates.shape={updates}: Shapes {updates} and {fitting} are incompatible"
    )


def _scatter_nd_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [None, gather_nd(d_output, op.inputs[0]), None]


SCATTER_ND = register(
    OpDef(
        name="ScatterNd",
        inputs=("indices: Tindices", "updates: T", "shape: Tshape"),
        outputs=("output: T",),
        host_inputs=("shape",),
        types={"T": dtypes.VALUES, "Tindices": dtypes.INDICES, "Tshape": dtypes.INDICES},
        shape=_scatter_nd_shape,
        kernels=on_every_device(_scatter_nd_kernel),
        gradient=_scatter_nd_gradient,
    )
)


# -- masks ---------------------------------------------------------------------------------------------


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, name: str | None = "boolean_mask", axis: TensorLike | None = None
) -> Tensor:
    """Keep the elements, or whole slices, where `mask` holds.

    Args:
        tensor: Shape ``[..., m_0, ..., m_k, ...]``, any dtype.
        mask: bool (or numbers, of which 0 is False) of shape ``[m_0, ..., m_k]``, of known rank, at least 1.
        name: Name scope of the operations.
        axis: The dimension of `tensor` at which the mask begins, an integer scalar; 0 when None.

    Returns:
        Shape ``[..., kept, ...]``: one dimension, that counts the elements kept, in place of the masked ones.

    Examples:
        >>> session.run(tf.boolean_mask([1, 2, 3], [True, False, True]))
        array([1, 3], dtype=int32)
    """
    with get_default_graph().name_scope(name):
        tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
        first, rank = late_index(0 if axis is None else axis, 0, "boolean_mask: axis"), mask.shape.rank
        if rank is None:
            raise InvalidArgumentError(
                f"boolean_mask: Number of mask dimensions must be specified, even if some sizes are None: {mask!r}"
            )
        if rank == 0:
            raise InvalidArgumentError(f"boolean_mask: mask cannot be scalar: {mask!r}")
        is_late = isinstance(first, Tensor)
        if not is_late and first < 0:
            first = normalize_axis(first, len(tensor.shape.sizes))
        if not is_late and tensor.shape.rank is not None:
            tensor.shape[first : first + rank].assert_is_compatible_with(mask.shape)
        kept = squeeze(where(reshape(mask, [-1])), [1])
        if rank > 1:
            sizes = shape_of(tensor)
            count = reshape(size_of(mask), [1])
            tensor = reshape(tensor, concat([sizes[:first], count, sizes[first + rank :]], 0))
        return gather(tensor, kept, axis=first)


register_operator("mask", boolean_mask)
