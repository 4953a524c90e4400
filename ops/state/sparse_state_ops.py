"""Reading and updating single rows of variables, in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    KernelFunction,
    OpDef,
    ShapeFunction,
    StoredVariable,
    not_differentiable,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import broadcast_static_shape
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import check_places, check_updates, first_outside
from tfray.ops.arrays.slice_ops import run_time_key, shape_of_part
from tfray.ops.kernels import fast_rows
from tfray.ops.kernels.gpu.device_scatter import combine_at
from tfray.ops.kernels.row_sums import add_rows
from tfray.ops.state.state_ops import VARIABLE_SHAPE, add_access, colocated_with


def check_rows(ctx: KernelContext, indices: Array, count: int, name: str) -> None:
    """Raise `InvalidArgumentError` unless all `indices` are rows of the variable `name`, which has `count`.

    On a GPU nothing is checked, because the host would have to wait for the device in every step.
    """
    if ctx.xp is not np or indices.size == 0:
        return
    wrong = first_outside(indices, count)
    if wrong is not None:
        raise InvalidArgumentError(f"{wrong}, the rows of variable {name!r}", op_name=ctx.op_name)


# -- gathering -----------------------------------------------------------------------------------------


def resource_gather(ref: VariableOrHandle, indices: TensorLike, name: str | None = None) -> Tensor:
    """Read rows of a variable, and no others.

    Args:
        ref: The variable, of rank 1 or more.
        indices: The rows, an integer tensor of any shape.
        name: Name of the operation.

    Returns:
        Shape ``indices.shape + variable.shape[1:]``. The gradient is `IndexedSlices` of as many rows.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.
    """
    return add_access(RESOURCE_GATHER, ref, convert_to_tensor(indices, preferred_dtype=dtypes.int32), name=name)


def _resource_gather_kernel(
    ctx: KernelContext, resource: StoredVariable, indices: Array, out: Array | None = None
) -> Array:
    array = resource.read()
    check_rows(ctx, indices, array.shape[0], resource.name)
    if ctx.xp is not np:
        return array.take(indices, axis=0, out=out)
    if fast_rows.can_copy(array, indices.size * prod(array.shape[1:])):
        return fast_rows.gather(array, indices, out)
    # The indices have been checked. With mode="clip" NumPy fills `out` without a copy of its own.
    rows = array.take(indices, axis=0, out=out, mode="clip")
    return np.array(rows, object) if isinstance(rows, bytes) else rows


def _resource_gather_shape(op: Operation) -> list[TensorShape]:
    shape: TensorShape = op.attrs["shape"]
    if shape.rank == 0:
        raise ValueError("a scalar variable has no rows")
    return [op.inputs[1].shape.concatenate(shape[1:])]


def _resource_gather_gradient(op: Operation, d_output: Tensor) -> list[Any]:
    handle, indices = op.inputs
    shape: TensorShape = op.attrs["shape"]
    if shape.is_fully_defined():
        dense_shape = convert_to_tensor(np.array(shape.as_list(), np.int32))
    else:
        with colocated_with(handle):
            dense_shape = add_op(VARIABLE_SHAPE, handle, shape=shape, out_type=dtypes.int32)
    if indices.shape.rank != 1:
        count = array_ops.reshape(array_ops.size(indices), [1])
        d_output = array_ops.reshape(d_output, array_ops.concat([count, dense_shape[1:]], 0))
        indices = array_ops.reshape(indices, [-1])
    return [IndexedSlices(d_output, indices, dense_shape), None]


RESOURCE_GATHER = register(
    OpDef(
        name="ResourceGather",
        inputs=("handle: resource", "indices: Tindices"),
        outputs=("output: dtype",),
        attrs=("shape",),
        types={"dtype": dtypes.VALUES, "Tindices": dtypes.INDICES},
        shape=_resource_gather_shape,
        kernels=on_every_device(out_kernel(_resource_gather_kernel)),
        gradient=_resource_gather_gradient,
        stateful=True,
        access="read",
    )
)


# -- updating ------------------------------------------------------------------------------------------


def _scatter_kernel(write: Callable[[Any, Array, Array, Array], None]) -> Callable[..., Array]:
    """The kernel that lets ``write(xp, array, indices, updates)`` change rows; `indices` is a vector."""

    def kernel(ctx: KernelContext, resource: StoredVariable, indices: Array, updates: Array) -> Array:
        with resource.lock:
            array = resource.read()
            row = array.shape[1:]
            if updates.shape not in ((), indices.shape + row):
                raise InvalidArgumentError(
                    f"variable {resource.name!r} has rows of shape {row}: updates of shape {updates.shape} "
                    f"do not fit indices of shape {indices.shape}"
                )
            check_rows(ctx, indices, array.shape[0], resource.name)
            if updates.shape == ():
                updates = ctx.xp.broadcast_to(updates, indices.shape + row)
            updates = _apart(ctx.xp, array, updates)
            write(ctx.xp, array, indices.reshape(-1), updates.reshape(-1, *row) if indices.ndim != 1 else updates)
            return array

    return kernel


def _apart(xp: ArrayModule, array: Array, updates: Array) -> Array:
    """`updates`, copied if they are rows of `array`: the threads of a GPU would read what others have changed."""
    return updates.copy() if xp is not np and xp.may_share_memory(array, updates) else updates


def _scatter_shape(op: Operation) -> list[TensorShape]:
    shape: TensorShape = op.attrs["shape"]
    indices, updates = op.inputs[1].shape, op.inputs[2].shape
    if shape.rank == 0:
        raise ValueError("a scalar variable has no rows")
    if updates.rank != 0:
        updates.assert_is_compatible_with(indices.concatenate(shape[1:]))
    return [shape]


def _scatter(name: str, write: Callable[[Any, Array, Array, Array], None], types: tuple[DType, ...]) -> OpDef:
    return _register_scatter(name, _scatter_kernel(write), _scatter_shape, types)


def _register_scatter(name: str, kernel: KernelFunction, shape: ShapeFunction, types: tuple[DType, ...]) -> OpDef:
    return register(
        OpDef(
            name=name,
            inputs=("handle: resource", "indices: Tindices", "updates: dtype"),
            outputs=("new_value: dtype",),
            attrs=("shape",),
            types={"dtype": types, "Tindices": dtypes.INDICES},
            shape=shape,
            kernels=on_every_device(kernel),
            gradient=not_differentiable,
            stateful=True,
            access="update",
        )
    )


def scatter_update(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Set rows of a variable, ``ref[indices[i]] = updates[i]``.

    Args:
        ref: The variable, of rank 1 or more.
        indices: The rows, an integer tensor of any shape. Where one occurs twice, the last update stays.
        updates: Shape ``indices.shape + ref.shape[1:]``, or a scalar for all.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The new value of the whole variable, in its shape.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.

    Examples:
        >>> v = tf.Variable([1, 2, 3])
        >>> session.run(v.initializer)
        >>> session.run(tf.scatter_update(v, [0, 2], [10, 30]))
        array([10,  2, 30], dtype=int32)
    """
    return add_access(SCATTER_UPDATE, ref, indices, updates, name=name)


def _write_update(xp: ArrayModule, array: Array, indices: Array, updates: Array) -> None:
    is_plain = xp is np and array.flags.c_contiguous and updates.dtype == array.dtype
    if is_plain and fast_rows.can_copy(array, updates.size) and not np.may_share_memory(array, updates):
        fast_rows.write_rows(array, indices, updates)
    else:
        array[indices] = updates


SCATTER_UPDATE = _scatter("ScatterUpdate", _write_update, dtypes.VALUES)


def scatter_add(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Add to rows of a variable, ``ref[indices[i]] += updates[i]``; equal indices add up.

    `updates` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar; the result is the whole variable, in its
    shape. Arguments are as for `scatter_update`.

    Examples:
        >>> v = tf.Variable([1, 2, 3])
        >>> session.run(v.initializer)
        >>> session.run(tf.scatter_add(v, [0, 2, 2], [10, 30, 30]))
        array([11,  2, 63], dtype=int32)
    """
    return add_access(SCATTER_ADD, ref, indices, updates, name=name)


def _write_add(xp: ArrayModule, array: Array, indices: Array, updates: Array) -> None:
    if xp is np:
        add_rows(array, indices, updates)
    else:
        combine_at(xp, "add", array, indices, updates)


SCATTER_ADD = _scatter("ScatterAdd", _write_add, dtypes.NUMERIC)


def scatter_sub(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Subtract from rows of a variable, ``ref[indices[i]] -= updates[i]``; equal indices add up.

    `updates` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar; the result is the whole variable, in its
    shape. Arguments are as for `scatter_update`.
    """
    return add_access(SCATTER_SUB, ref, indices, updates, name=name)


def _write_sub(xp: ArrayModule, array: Array, indices: Array, updates: Array) -> None:
    if xp is np:
        add_rows(array, indices, updates, subtract=True)
    else:
        combine_at(xp, "subtract", array, indices, updates)


SCATTER_SUB = _scatter("ScatterSub", _write_sub, dtypes.NUMERIC)


def scatter_mul(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Multiply rows of a variable, ``ref[indices[i]] *= updates[i]``. See `scatter_add`.

    `updates` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar; the result is the whole variable, in its
    shape. Arguments are as for `scatter_update`.
    """
    return add_access(SCATTER_MUL, ref, indices, updates, name=name)


def _write_mul(xp: ArrayModule, array: Array, indices: Array, updates: Array) -> None:
    _apply_at(xp, "multiply", array, indices, updates)


def _apply_at(xp: ArrayModule, ufunc: str, array: Array, indices: Array, updates: Array) -> None:
    """``ufunc.at``."""
    if xp is np:
        getattr(np, ufunc).at(array, indices, updates)
    else:
        combine_at(xp, ufunc, array, indices, updates)


SCATTER_MUL = _scatter("ScatterMul", _write_mul, dtypes.NUMERIC)


def scatter_div(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Divide rows of a variable, ``ref[indices[i]] /= updates[i]``, integers rounding down. See `scatter_add`.

    `updates` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar; the result is the whole variable, in its
    shape. Arguments are as for `scatter_update`.
    """
    return add_access(SCATTER_DIV, ref, indices, updates, name=name)


def _write_div(xp: ArrayModule, array: Any, indices: Any, updates: Any) -> None:
    if array.dtype.kind not in "iu":
        _apply_at(xp, "true_divide", array, indices, updates)
    elif xp is np:
        np.floor_divide.at(array, indices, updates)
    else:  # each quotient is rounded down before the next division: one after the other
        host = array.get()
        np.floor_divide.at(host, indices.get(), updates.get())
        array.set(host)


SCATTER_DIV = _scatter("ScatterDiv", _write_div, dtypes.NUMERIC)


def scatter_min(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Lower rows of a variable, ``ref[indices[i]] = min(ref[indices[i]], updates[i])``. See `scatter_add`.

    `updates` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar; the result is the whole variable, in its
    shape. Arguments are as for `scatter_update`.
    """
    return add_access(SCATTER_MIN, ref, indices, updates, name=name)


def _write_min(xp: ArrayModule, array: Array, indices: Array, updates: Array) -> None:
    _apply_at(xp, "minimum", array, indices, updates)


SCATTER_MIN = _scatter("ScatterMin", _write_min, dtypes.REAL)


def scatter_max(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Raise rows of a variable, ``ref[indices[i]] = max(ref[indices[i]], updates[i])``. See `scatter_add`.

    `updates` has the shape ``indices.shape + ref.shape[1:]``, or is a scalar; the result is the whole variable, in its
    shape. Arguments are as for `scatter_update`.
    """
    return add_access(SCATTER_MAX, ref, indices, updates, name=name)


def _write_max(xp: ArrayModule, array: Array, indices: Array, updates: Array) -> None:
    _apply_at(xp, "maximum", array, indices, updates)


SCATTER_MAX = _scatter("ScatterMax", _write_max, dtypes.REAL)


# -- updating elements by their full index -------------------------------------------------------------


def _scatter_nd_kernel(write: Callable[[Any, Array, tuple[Array, ...], Array], None]) -> Callable[..., Array]:
    """The kernel that lets ``write(xp, array, places, updates)`` change elements at a tuple of index arrays."""

    def kernel(ctx: KernelContext, resource: StoredVariable, indices: Array, updates: Array) -> Array:
        with resource.lock:
            array = resource.read()
            depth = indices.shape[-1]
            if depth > array.ndim or updates.shape != indices.shape[:-1] + array.shape[depth:]:
                raise InvalidArgumentError(
                    f"variable {resource.name!r} has shape {array.shape}: updates of shape {updates.shape} "
                    f"do not fit indices of shape {indices.shape}"
                )
            check_places(ctx, indices, array.shape, owner=f" of variable {resource.name!r}")
            places = tuple(indices[..., axis] for axis in range(depth))
            write(ctx.xp, array, places, _apart(ctx.xp, array, updates))
            return array

    return kernel


def _scatter_nd_shape(op: Operation) -> list[TensorShape]:
    shape: TensorShape = op.attrs["shape"]
    check_updates(op.inputs[1].shape, op.inputs[2].shape, shape)
    return [shape]


def _scatter_nd(
    name: str, write: Callable[[Any, Array, tuple[Array, ...], Array], None], types: tuple[DType, ...]
) -> OpDef:
    return _register_scatter(name, _scatter_nd_kernel(write), _scatter_nd_shape, types)


def scatter_nd_update(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Set elements or slices of a variable, ``ref[indices[i]] = updates[i]``.

    Args:
        ref: The variable, of rank 1 or more.
        indices: Shape ``[..., k]``: each vector along the last dimension indexes the first k dimensions.
        updates: Shape ``indices.shape[:-1] + ref.shape[k:]``.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The new value of the whole variable, in its shape.

    Raises:
        InvalidArgumentError: While running: an index that the variable does not have.
    """
    return add_access(SCATTER_ND_UPDATE, ref, indices, updates, name=name)


def _write_nd_update(xp: ArrayModule, array: Array, places: tuple[Array, ...], updates: Array) -> None:
    array[places] = updates


SCATTER_ND_UPDATE = _scatter_nd("ScatterNdUpdate", _write_nd_update, dtypes.VALUES)


def scatter_nd_add(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Add to elements or slices of a variable; equal indices add up. See `scatter_nd_update`.

    `indices` has the shape ``[..., k]`` and `updates` ``indices.shape[:-1] + ref.shape[k:]``; the result is the whole
    variable, in its shape. Arguments are as for `scatter_nd_update`.
    """
    return add_access(SCATTER_ND_ADD, ref, indices, updates, name=name)


def _write_nd_add(xp: ArrayModule, array: Array, places: tuple[Array, ...], updates: Array) -> None:
    _combine_slices(xp, "add", array, places, updates)


def _combine_slices(xp: ArrayModule, ufunc: str, array: Array, places: tuple[Array, ...], updates: Array) -> None:
    """``ufunc.at`` at coordinates."""
    if xp is np:
        getattr(np, ufunc).at(array, places, updates)
        return
    depth = len(places)
    numbers = xp.zeros(places[0].shape if places else updates.shape[: updates.ndim - array.ndim], np.int64)
    for coordinates, size in zip(places, array.shape, strict=False):
        numbers = numbers * size + coordinates
    rows = array.reshape(prod(array.shape[:depth]), *array.shape[depth:])
    combine_at(xp, ufunc, rows, numbers, updates)


SCATTER_ND_ADD = _scatter_nd("ScatterNdAdd", _write_nd_add, dtypes.NUMERIC)


def scatter_nd_sub(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Subtract from elements or slices of a variable; equal indices add up. See `scatter_nd_update`.

    `indices` has the shape ``[..., k]`` and `updates` ``indices.shape[:-1] + ref.shape[k:]``; the result is the whole
    variable, in its shape. Arguments are as for `scatter_nd_update`.
    """
    return add_access(SCATTER_ND_SUB, ref, indices, updates, name=name)


def _write_nd_sub(xp: ArrayModule, array: Array, places: tuple[Array, ...], updates: Array) -> None:
    _combine_slices(xp, "subtract", array, places, updates)


SCATTER_ND_SUB = _scatter_nd("ScatterNdSub", _write_nd_sub, dtypes.NUMERIC)


# -- parts ---------------------------------------------------------------------------------------------


def assign_part(
    ref: VariableOrHandle, key: str, bounds: Sequence[Tensor], value: TensorLike, name: str | None = None
) -> Tensor:
    """Set the part of a variable that an index takes; ``v[1:3].assign(value)`` calls this.

    Args:
        ref: The variable, of any shape.
        key: The index as `tfray.ops.arrays.slice_ops` writes it.
        bounds: The integer scalars that the key takes.
        value: Of the part's shape, or a shape that broadcasts to it, or of one element; the variable's dtype. Any shape
            fits a part without elements.
        name: Name of the operation.

    Returns:
        The new value of the whole variable, in its shape.

    Raises:
        InvalidArgumentError: `value` does not fit the part.
    """
    return add_access(STRIDED_SLICE_ASSIGN, ref, value, list(bounds), name=name, key=key)


def _assign_part_kernel(ctx: KernelContext, resource: StoredVariable, value: Array, *bounds: Array) -> Array:
    with resource.lock:
        array = resource.read()
        key = run_time_key(ctx, bounds)
        try:
            if getattr(array[key], "size", 1):  # as in TensorFlow, any value fits a part without elements
                array[key] = value.reshape(()) if value.size == 1 else value
        except (IndexError, ValueError) as error:
            raise InvalidArgumentError(
                f"no value of shape {value.shape} fits this part of variable {resource.name!r}, "
                f"whose shape is {array.shape}: {error}"
            ) from error
        return array


def _assign_part_shape(op: Operation) -> list[TensorShape]:
    shape: TensorShape = op.attrs["shape"]
    part, value = shape_of_part(shape, op.attr("key"), op.inputs[2:]), op.inputs[1].shape
    if part.rank is not None and value.rank is not None and part.num_elements() != 0 and value.num_elements() != 1:
        common = broadcast_static_shape(part, value)
        part.assert_is_compatible_with(common)
    return [shape]


STRIDED_SLICE_ASSIGN = register(
    OpDef(
        name="StridedSliceAssign",
        inputs=("handle: resource", "value: dtype", "bounds: Index*"),
        outputs=("new_value: dtype",),
        host_inputs=("bounds",),
        attrs=("shape", "key"),
        types={"dtype": dtypes.VALUES, "Index": dtypes.INDICES},
        shape=_assign_part_shape,
        kernels=on_every_device(_assign_part_kernel),
        gradient=not_differentiable,
        stateful=True,
        access="update",
    )
)


def batch_scatter_update(
    ref: VariableOrHandle, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Set rows of each matrix, or the like, of a batch: ``ref[i, indices[i, j]] = updates[i, j]``.

    Args:
        ref: The variable, of shape ``[batch..., rows, ...]``.
        indices: Shape ``[batch..., n]``, an integer dtype.
        updates: Shape ``[batch..., n, ...]``.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The new value of the whole variable, in its shape.

    Raises:
        InvalidArgumentError: The rank of `indices` is unknown; while running: a row that the variable does not have.
    """
    with get_default_graph().name_scope(name or "batch_scatter_update"):
        rows = convert_to_tensor(indices)
        if rows.shape.rank is None:
            raise InvalidArgumentError("batch_scatter_update: the rank of the indices must be known")
        sizes = array_ops.shape(rows, out_type=rows.dtype)
        places = [rows]
        for axis in range(rows.shape.rank - 1):
            numbers = range_(convert_to_tensor(0, rows.dtype), sizes[axis], convert_to_tensor(1, rows.dtype))
            shape = [-1 if other == axis else 1 for other in range(rows.shape.rank)]
            places.insert(axis, array_ops.broadcast_to(array_ops.reshape(numbers, shape), sizes))
        return scatter_nd_update(ref, array_ops.stack(places, -1), updates)
