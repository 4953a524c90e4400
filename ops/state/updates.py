"""How optimizer updates run: one pass over the memory of a variable and its slots.

An update is written once, as a formula of in-place array operations. Where the formula is compiled, it is one loop over
the variable's memory, or over the rows that a sparse gradient names. Otherwise the dense form runs the formula on tiles
that stay in the cache, on several threads; the sparse form copies the rows, runs the formula on the copies, and writes
them back. Nothing as large as the variable is allocated. Half-precision values are computed in float32, tile by tile.
On a GPU the whole array is one tile.

An update holds the locks of all variables that it changes, so that concurrent steps never interleave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    Kernel,
    KernelContext,
    KernelFunction,
    OpDef,
    ShapeFunction,
    StoredVariable,
    Update,
    on_every_device,
    register,
)
from tfray.framework.tensor_shape import SCALAR, TensorShape
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, STEP_ELEMENTS
from tfray.ops.kernels.cpu_threads import parallel_for, scratch, thread_count
from tfray.ops.kernels.element_loops import formula_loop
from tfray.ops.kernels.fast_rows import group, run_groups
from tfray.ops.kernels.gpu.device_scatter import combine_at
from tfray.ops.kernels.row_sums import group_equal, sum_groups
from tfray.ops.kernels.updated_arrays import check_shapes, locked, own_array
from tfray.ops.state.sparse_state_ops import check_rows
from tfray.ops.state.state_ops import add_access, handle_of

TILE_BYTES: Final = 1 << 20
"""Bytes of each array in a tile: large enough that passing the interpreter's lock between threads costs little."""

Formula = Callable[..., None]
"""``formula(xp, (t, u), gradient, variable, *slots, *scalars)``: updates `variable` and `slots` in place.

``t`` and ``u`` are uninitialised arrays of the same shape. Arrays and scalars (of rank 0) have one dtype."""


def dense_kernel(update: Callable[..., Update]) -> Kernel:
    """The kernel that carries out what `update` (see `Kernel.update`) says."""

    def kernel(ctx: KernelContext, *inputs: Any) -> None:
        formula, resources, gradient, scalars = update(ctx, *inputs)
        apply_dense(ctx, formula, resources, gradient, *scalars)

    return Kernel(kernel, update=update)


# -- running ---------------------------------------------------------------------------------------------


def as_numbers(ctx: KernelContext, values: Sequence[Array]) -> list[Any]:
    """Scalar inputs to compute with: Python numbers on a CPU; on a GPU arrays, because reading one would wait."""
    if ctx.xp is np:
        return [value.item() for value in values]
    return [value.astype(_working_dtype(ctx.xp, value)) for value in values]


def _working_dtype(xp: ArrayModule, array: Array) -> Any:
    """The dtype in which updates of `array` are computed."""
    return array.dtype if array.dtype.itemsize > 2 else xp.float32


def as_operands(xp: ArrayModule, scalars: Sequence[Array], gradient: Array) -> list[Array]:
    """The scalars of a formula as it takes them: arrays of rank 0 in the working dtype."""
    # NumPy is slower when a Python number meets an array.
    return [xp.asarray(scalar, _working_dtype(xp, gradient)) for scalar in scalars]


def apply_dense(
    ctx: KernelContext, formula: Formula, resources: Sequence[StoredVariable], gradient: Array, *scalars: Array
) -> None:
    """Update a variable and its slots by a gradient of their shape.

    Args:
        ctx: The kernel's context.
        formula: The update.
        resources: The variable and its slots.
        gradient: The gradient.
        *scalars: The formula's scalars, see `as_numbers`.
    """
    operands = as_operands(ctx.xp, scalars, gradient)

    def work() -> None:
        arrays = [own_array(ctx.xp, resource) for resource in resources]
        check_shapes(resources, arrays, gradient)
        flat = ctx.xp.asarray(gradient).reshape(-1)
        if any(ctx.xp.may_share_memory(flat, array) for array in arrays):
            flat = flat.copy()  # the gradient shares memory with the variable, which is about to change
        _run_tiles(ctx.xp, formula, [flat, *(array.reshape(-1) for array in arrays)], operands)

    locked(resources, work)


def _run_tiles(xp: ArrayModule, formula: Formula, flats: Sequence[Array], scalars: Sequence[Array]) -> None:
    size = flats[0].size
    if xp is np and size >= LEAST_ELEMENTS:
        compiled = formula_loop(formula, flats[0].dtype, len(flats), len(scalars))
        if compiled is not None:
            loop, written = compiled
            is_large = size * len(flats) >= LARGE_ELEMENTS
            arrays = [np.ascontiguousarray(flats[0]), *flats[1:]]
            loop.run(size, STEP_ELEMENTS, *arrays, *scalars, *(arrays[index] for index in written), is_large=is_large)
            return
    count = _tile_count(flats[0].nbytes) if xp is np else 1
    if count == 1:
        run_tile(xp, formula, flats, scalars)
        return

    def tile(index: int) -> None:
        part = slice(index * size // count, (index + 1) * size // count)
        run_tile(xp, formula, [flat[part] for flat in flats], scalars)

    parallel_for(tile, count)


def _tile_count(size_bytes: int) -> int:
    """Number of tiles for an array: a multiple of the number of threads, so that each gets the same share."""
    if size_bytes <= TILE_BYTES:
        return 1
    threads = thread_count()
    return -(-size_bytes // (TILE_BYTES * threads)) * threads


def run_tile(xp: ArrayModule, formula: Formula, arrays: Sequence[Array], scalars: Sequence[Array]) -> None:
    """Run `formula` on a gradient and the arrays to update."""
    gradient, *updated = arrays
    if gradient.dtype.itemsize > 2:
        formula(xp, _temporaries(xp, gradient), *arrays, *scalars)
        return
    wide = [array.astype(xp.float32) for array in arrays]
    formula(xp, _temporaries(xp, wide[0]), *wide, *scalars)
    for array, new in zip(updated, wide[1:], strict=True):
        array[...] = new


def _temporaries(xp: ArrayModule, like: Array) -> tuple[Array, Array]:
    if xp is np:
        return scratch("update_t", like.shape, like.dtype), scratch("update_u", like.shape, like.dtype)
    return xp.empty_like(like), xp.empty_like(like)


def apply_sparse(
    ctx: KernelContext,
    formula: Formula,
    resources: Sequence[StoredVariable],
    gradient: Array,
    indices: Array,
    *scalars: Array,
) -> None:
    """Update rows of a variable and its slots.

    Args:
        ctx: The kernel's context.
        formula: The update.
        resources: The variable and its slots.
        gradient: Shape ``[n, ...]``, the gradients of the rows.
        indices: Shape ``[n]``, the rows; the gradients of equal ones add up.
        *scalars: The formula's scalars, see `as_numbers`.
    """
    operands = as_operands(ctx.xp, scalars, gradient)

    def work() -> None:
        arrays = [own_array(ctx.xp, resource) for resource in resources]
        check_sparse(ctx, resources, arrays, gradient, indices)
        if _update_groups(ctx.xp, formula, arrays, gradient, indices, operands):
            return
        rows, summed = summed_rows(ctx, gradient, indices, len(arrays[0]))

        def tile(part: slice) -> None:
            copies = [array.take(rows[part], axis=0) for array in arrays]
            run_tile(ctx.xp, formula, [summed[part], *copies], operands)
            for array, copy in zip(arrays, copies, strict=True):
                array[rows[part]] = copy

        run_row_tiles(ctx.xp, tile, summed)

    locked(resources, work)


def _update_groups(
    xp: ArrayModule,
    formula: Formula,
    arrays: Sequence[Array],
    gradient: Array,
    indices: Array,
    scalars: Sequence[Array],
) -> bool:
    """Update rows in place by a compiled loop; False where there is none."""
    if xp is not np or (gradient.size < LEAST_ELEMENTS and indices.size < _MANY_ROWS):
        return False
    compiled = formula_loop(formula, gradient.dtype, 1 + len(arrays), len(scalars), of_groups=True)
    if compiled is None:
        return False
    if any(np.may_share_memory(gradient, array) for array in arrays):
        gradient = gradient.copy()
    loop, written = compiled
    operands = [np.ascontiguousarray(gradient), *arrays]
    results = [operands[index] for index in written]
    run_groups(loop, group(indices), prod(gradient.shape[1:]), *operands, *scalars, *results)
    return True


_MANY_ROWS: Final = 128
"""Rows that NumPy takes longer to sort into groups than the compiled loop takes for all, however short they are."""


def run_row_tiles(xp: ArrayModule, tile: Callable[[slice], None], rows: Array) -> None:
    """Call `tile` with slices that together cover the first dimension of `rows`."""
    size = rows.shape[0]
    count = min(size, _tile_count(rows.nbytes)) if xp is np else 1
    if count <= 1:
        tile(slice(0, size))
    else:
        parallel_for(lambda index: tile(slice(index * size // count, (index + 1) * size // count)), count)


def check_sparse(
    ctx: KernelContext, resources: Sequence[StoredVariable], arrays: Sequence[Array], gradient: Array, indices: Array
) -> None:
    """Raise `InvalidArgumentError` unless a sparse gradient fits the variable and its slots."""
    for resource, array in zip(resources, arrays, strict=True):
        if gradient.shape != indices.shape + array.shape[1:] or array.shape != arrays[0].shape:
            raise InvalidArgumentError(
                f"variable {resource.name!r} has shape {array.shape}, the sparse gradient {gradient.shape} "
                f"for {indices.shape[0]} rows"
            )
    check_rows(ctx, indices, arrays[0].shape[0], resources[0].name)


def summed_rows(ctx: KernelContext, gradient: Array, indices: Array, count: int) -> tuple[Array, Array]:
    """The rows, of so many, that a sparse gradient names, and the sum of the gradients of each.

    Each row comes once, in ascending order. On a GPU the host would have to wait to learn how many there are: there the
    rows are those named, in their order, and one that is named again has the whole sum again.
    """
    xp = ctx.xp
    if xp is not np:
        places = xp.empty(count, np.int32)
        places[indices] = xp.arange(len(indices), dtype=np.int32)  # of several places any will do
        place = places.take(indices)
        summed = xp.zeros_like(gradient)
        combine_at(xp, "add", summed, place, gradient)
        return indices, summed.take(place, axis=0)
    rows, order, starts = group_equal(indices)
    return rows, sum_groups(gradient, order, starts)


# -- building --------------------------------------------------------------------------------------------

Chooser = Callable[[KernelContext, list[Any]], tuple[Formula, list[Any]]]
"""``chooser(ctx, scalars)``: the formula, and the scalars that it takes, from those of the operation as numbers."""


def register_updates(
    name: str,
    slots: Sequence[str],
    scalars: Sequence[str],
    choose: Chooser,
    dtype: Sequence[DType] = dtypes.FLOATS,
    after: Sequence[str] = (),
    attrs: Sequence[str] = (),
) -> tuple[OpDef, OpDef]:
    """Register ``Apply<name>`` and ``SparseApply<name>``: one formula, on all rows or on some.

    Args:
        name: Name of the formula.
        slots: Names of the inputs for slots, which follow ``var``.
        scalars: Names of the scalar inputs, which follow the slots; then come ``grad`` and ``indices``.
        choose: Function that picks the formula, and computes its scalars from the operation's.
        dtype: Dtypes of the variable.
        after: Names of further scalar inputs, which come last.
        attrs: Names of attributes.
    """
    count, place = 1 + len(slots), 1 + len(slots) + len(scalars)

    def chosen(ctx: KernelContext, values: Sequence[Any]) -> tuple[Formula, list[Any]]:
        return choose(ctx, as_numbers(ctx, values))

    def update(ctx: KernelContext, *inputs: Any) -> Update:
        formula, numbers = chosen(ctx, [*inputs[count:place], *inputs[place + 1 :]])
        return Update(formula, inputs[:count], inputs[place], numbers)

    def sparse_kernel(ctx: KernelContext, *inputs: Any) -> None:
        formula, numbers = chosen(ctx, [*inputs[count:place], *inputs[place + 2 :]])
        apply_sparse(ctx, formula, inputs[:count], inputs[place], inputs[place + 1], *numbers)

    def definition(prefix: str, indices: Sequence[str], kernel: KernelFunction | Kernel, shape: ShapeFunction) -> OpDef:
        types = {"dtype": tuple(dtype), "Tscalar": tuple(dtype)}
        return register(
            OpDef(
                name=prefix + name,
                inputs=(
                    "var: resource",
                    *(f"{slot}: resource" for slot in slots),
                    *(f"{scalar}: Tscalar" for scalar in scalars),
                    "grad: dtype",
                    *indices,
                    *(f"{scalar}: Tscalar" for scalar in after),
                ),
                outputs=(),
                attrs=("shape", *attrs),
                types=types | {"Tindices": dtypes.INDICES} if indices else types,
                shape=shape,
                kernels=on_every_device(kernel),
                stateful=True,
                access="update",
            )
        )

    return (
        definition("Apply", (), dense_kernel(update), dense_shape),
        definition("SparseApply", ("indices: Tindices",), sparse_kernel, sparse_shape),
    )


def add_either(
    definitions: tuple[OpDef, OpDef],
    var: VariableOrHandle,
    slots: Sequence[VariableOrHandle],
    scalars: Sequence[TensorLike],
    grad: TensorLike,
    indices: TensorLike | None,
    name: str | None = None,
    after: Sequence[TensorLike] = (),
    **attrs: Any,
) -> Any:
    """Add one of the two operations of `register_updates`: the sparse one when `indices` is given, else the dense one.

    Args:
        definitions: What `register_updates` returned.
        var: The variable, of any shape.
        slots: Its slots, of the same shape.
        scalars: The scalars.
        grad: The gradient, of the variable's shape; with `indices` the gradient of these rows.
        indices: Rows to update, shape ``[n]``; the gradients of equal ones add up. None for all.
        name: Name of the operation.
        after: The scalars that come last.
        **attrs: The attributes, plain values of no shape.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: A slot or the gradient does not fit; while running: a row that the variable does not have.
    """
    dense, sparse = definitions
    if indices is None:
        return add_update(dense, var, slots, *scalars, grad, *after, name=name, **attrs)
    return add_update(sparse, var, slots, *scalars, grad, indices, *after, name=name, **attrs)


def add_update(
    definition: OpDef,
    var: VariableOrHandle,
    slots: Sequence[VariableOrHandle],
    *inputs: TensorLike,
    name: str | None,
    **attrs: Any,
) -> Any:
    """Add an update of `var` and its `slots` to the graph.

    The slots have the shape of the variable; the result is the operation.

    Raises:
        InvalidArgumentError: A slot has another shape or dtype than the variable, or as `Graph.add_operation`.
    """
    handle, dtype, shape = handle_of(var)
    handles = []
    for slot in slots:
        slot_handle, slot_dtype, slot_shape = handle_of(slot)
        if slot_dtype is not dtype or not slot_shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"{definition.name}: slot {slot_handle.op.name!r} is {slot_dtype.name} {slot_shape}, "
                f"expected {dtype.name} {shape} as the variable {handle.op.name!r}"
            )
        handles.append(slot_handle)
    return add_access(definition, var, *handles, *inputs, name=name, **attrs)


def dense_shape(op: Operation) -> list[TensorShape]:
    """Shape function: the input ``grad`` is like the variable, all other inputs are scalars."""
    for argument, tensor in zip(op.op_def.input_arguments, op.inputs, strict=True):
        try:
            tensor.shape.merge_with(op.attrs["shape"] if argument.name == "grad" else SCALAR)
        except ValueError as error:
            raise ValueError(f"{argument.name}: {error}") from error
    return []


def sparse_shape(op: Operation) -> list[TensorShape]:
    """Shape function: the inputs ``grad`` and ``indices`` are rows of the variable, all others are scalars."""
    shape: TensorShape = op.attrs["shape"]
    by_name = {
        argument.name: tensor.shape for argument, tensor in zip(op.op_def.input_arguments, op.inputs, strict=True)
    }
    rows = by_name.pop("indices").merge_with(TensorShape([None]))
    if shape.rank == 0:
        raise ValueError("a scalar variable has no rows")
    gradient = by_name.pop("grad")
    if shape.rank is not None:
        gradient.merge_with(rows.concatenate(shape[1:]))
    for name, value in by_name.items():
        if not value.is_compatible_with(SCALAR):
            raise ValueError(f"{name} has shape {value}, expected a scalar")
    return []
