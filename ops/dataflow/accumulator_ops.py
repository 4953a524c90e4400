"""Conditional accumulators, which add gradients up until enough have come: those of `tf.ConditionalAccumulator`.

They make synchronous steps out of workers that compute at their own pace. The gradient of a late worker belongs to an
old time step and is dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import (
    Array,
    KernelContext,
    on_cpu,
    on_every_device,
)
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.queue_ops import require_same, shared_resource
from tfray.ops.dataflow.resource_definitions import register_handle, register_use
from tfray.ops.resources.accumulator_resource import REDUCTIONS, Accumulator, SparseAccumulator
from tfray.ops.state.state_ops import colocated_with

_ATTRS = ("shape", "reduction_type", "container", "shared_name")


def _attrs(dtype: DType, shape: ShapeLike, reduction_type: str, container: str, shared_name: str) -> dict[str, Any]:
    if reduction_type not in REDUCTIONS:
        raise InvalidArgumentError(f"reduction_type is {reduction_type!r}, expected 'MEAN' or 'SUM'")
    return {
        "dtype": dtype,
        "shape": TensorShape(shape),
        "reduction_type": reduction_type,
        "container": container,
        "shared_name": shared_name,
    }


def _accumulator(ctx: KernelContext, kind: type[Accumulator]) -> Array:
    dtype, shape, reduction = ctx.attr("dtype"), ctx.attr("shape"), ctx.attr("reduction_type")
    found = shared_resource(ctx, lambda name: kind(name, dtype, shape, reduction))
    require_same(found, ctx, kind, dtype=dtype, shape=shape, reduction=reduction)
    return found


# -- dense ---------------------------------------------------------------------------------------------


def conditional_accumulator(
    dtype: DType,
    shape: ShapeLike = None,
    reduction_type: str = "MEAN",
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of an accumulator of dense gradients.

    Args:
        dtype: Dtype of the gradients.
        shape: Their shape, as far as it is known.
        reduction_type: ``"MEAN"`` or ``"SUM"``.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    attrs = _attrs(dtype, shape, reduction_type, container, shared_name)
    return add_op(CONDITIONAL_ACCUMULATOR, name=name, **attrs)


def _conditional_accumulator_kernel(ctx: KernelContext) -> Array:
    return _accumulator(ctx, Accumulator)


CONDITIONAL_ACCUMULATOR = register_handle(
    "ConditionalAccumulator", on_every_device(_conditional_accumulator_kernel), _ATTRS, types={"dtype": dtypes.FLOATS}
)


def accumulator_apply_gradient(
    handle: Tensor, local_step: TensorLike, gradient: TensorLike, name: str | None = None
) -> Operation:
    """Add a gradient, unless `local_step` lies before the accumulator's time step.

    Args:
        handle: The accumulator.
        local_step: int64 scalar: the time step of the values from which the gradient was computed.
        gradient: The gradient, of the accumulator's shape.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: it has another shape.
    """
    with colocated_with(handle):
        return add_op(ACCUMULATOR_APPLY_GRADIENT, handle, local_step, gradient, name=name)


def _accumulator_apply_gradient_kernel(
    ctx: KernelContext, accumulator: Accumulator, local_step: Array, gradient: Array
) -> None:
    accumulator.apply(int(local_step), gradient)


ACCUMULATOR_APPLY_GRADIENT = register_use(
    "AccumulatorApplyGradient",
    on_every_device(_accumulator_apply_gradient_kernel),
    inputs=("local_step: int64", "gradient: dtype"),
    types={"dtype": dtypes.FLOATS},
)


def accumulator_take_gradient(
    handle: Tensor, num_required: TensorLike, dtype: DType, shape: ShapeLike, name: str | None = None
) -> Tensor:
    """Wait until enough gradients have come, take the mean or sum of all there are, and begin a new time step.

    Args:
        handle: The accumulator.
        num_required: int32 scalar: how many are enough.
        dtype: Dtype of the gradients.
        shape: Their shape, as far as it is known.
        name: Name of the operation.

    Returns:
        The mean or sum, of the shape of the gradients.

    Raises:
        InvalidArgumentError: While running: `num_required` is less than 1.
    """
    attrs = {"dtype": dtype, "shape": TensorShape(shape)}
    with colocated_with(handle):
        return add_op(ACCUMULATOR_TAKE_GRADIENT, handle, num_required, name=name, **attrs)


def _accumulator_take_gradient_kernel(ctx: KernelContext, accumulator: Accumulator, num_required: Array) -> Array:
    return ctx.step.complete(ctx.op_name, accumulator.take, int(num_required))


def _gradient_shape(op: Operation) -> list[TensorShape]:
    return [op.attrs["shape"]]


ACCUMULATOR_TAKE_GRADIENT = register_use(
    "AccumulatorTakeGradient",
    on_every_device(_accumulator_take_gradient_kernel),
    inputs=("num_required: int32",),
    outputs=("gradient: dtype",),
    shape=_gradient_shape,
    attrs=("shape",),
    types={"dtype": dtypes.FLOATS},
    waits=True,
)


# -- sparse --------------------------------------------------------------------------------------------


def sparse_conditional_accumulator(
    dtype: DType,
    shape: ShapeLike = None,
    reduction_type: str = "MEAN",
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of an accumulator of gradients of which only some rows are given.

    Args:
        dtype: Dtype of the gradients.
        shape: Their shape, all rows counted, as far as it is known.
        reduction_type: ``"MEAN"``, in which a row counts as often as it is given, or ``"SUM"``.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    attrs = _attrs(dtype, shape, reduction_type, container, shared_name)
    return add_op(SPARSE_CONDITIONAL_ACCUMULATOR, name=name, **attrs)


def _sparse_conditional_accumulator_kernel(ctx: KernelContext) -> Array:
    return _accumulator(ctx, SparseAccumulator)


SPARSE_CONDITIONAL_ACCUMULATOR = register_handle(
    "SparseConditionalAccumulator",
    on_cpu(_sparse_conditional_accumulator_kernel),
    _ATTRS,
    types={"dtype": dtypes.FLOATS},
)


def sparse_accumulator_apply_gradient(
    handle: Tensor,
    local_step: TensorLike,
    indices: TensorLike,
    values: TensorLike,
    dense_shape: TensorLike | None = None,
    name: str | None = None,
) -> Operation:
    """Add the rows of a gradient, unless `local_step` lies before the accumulator's time step.

    Args:
        handle: The accumulator.
        local_step: As for `accumulator_apply_gradient`, an int64 scalar.
        indices: int64 vector: which rows.
        values: The rows, shape ``[n, ...]``.
        dense_shape: int64 vector: the shape of the gradient, all rows counted; None when it is not known.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: an index or a shape does not fit.
    """
    shapes = [] if dense_shape is None else [dense_shape]
    with colocated_with(handle):
        return add_op(SPARSE_ACCUMULATOR_APPLY_GRADIENT, handle, local_step, indices, values, shapes, name=name)


def _sparse_accumulator_apply_gradient_kernel(
    ctx: KernelContext, accumulator: SparseAccumulator, local_step: Array, *gradient: Array
) -> None:
    accumulator.apply(int(local_step), *gradient)


SPARSE_ACCUMULATOR_APPLY_GRADIENT = register_use(
    "SparseAccumulatorApplyGradient",
    on_cpu(_sparse_accumulator_apply_gradient_kernel),
    inputs=("local_step: int64", "indices: int64", "values: dtype", "dense_shape: int64*"),
    types={"dtype": dtypes.FLOATS},
)


def sparse_accumulator_take_gradient(
    handle: Tensor, num_required: TensorLike, dtype: DType, shape: ShapeLike, name: str | None = None
) -> list[Tensor]:
    """As `accumulator_take_gradient`, of a sparse accumulator.

    Args:
        handle: As for `accumulator_take_gradient`.
        num_required: As for `accumulator_take_gradient`, an int32 scalar.
        dtype: As for `accumulator_take_gradient`.
        shape: As for `accumulator_take_gradient`.
        name: As for `accumulator_take_gradient`.

    Returns:
        Indices of the rows in ascending order, ``[n]``; the rows, ``[n, ...]``; and the shape of the gradient, all rows
        counted: -1 for their number where it is not known.
    """
    attrs = {"dtype": dtype, "shape": TensorShape(shape)}
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(SPARSE_ACCUMULATOR_TAKE_GRADIENT, handle, num_required, name=name, **attrs)
        return tensors


def _sparse_accumulator_take_gradient_kernel(
    ctx: KernelContext, accumulator: SparseAccumulator, num_required: Array
) -> Any:
    return ctx.step.complete(ctx.op_name, accumulator.take, int(num_required))


def _sparse_gradient_shapes(op: Operation) -> list[TensorShape]:
    shape: TensorShape = op.attrs["shape"]
    rows = TensorShape(None) if shape.rank is None else TensorShape([None, *shape.sizes[1:]])
    return [TensorShape([None]), rows, TensorShape([shape.rank])]


SPARSE_ACCUMULATOR_TAKE_GRADIENT = register_use(
    "SparseAccumulatorTakeGradient",
    on_cpu(_sparse_accumulator_take_gradient_kernel),
    inputs=("num_required: int32",),
    outputs=("indices: int64", "values: dtype", "dense_shape: int64"),
    shape=_sparse_gradient_shapes,
    attrs=("shape",),
    types={"dtype": dtypes.FLOATS},
    waits=True,
)


# -- both ----------------------------------------------------------------------------------------------


def accumulator_num_accumulated(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of gradients that have come since the last ones were taken: an int32 scalar.

    Args:
        handle: The accumulator, dense or sparse.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(ACCUMULATOR_NUM_ACCUMULATED, handle, name=name)


def _accumulator_num_accumulated_kernel(ctx: KernelContext, accumulator: Accumulator) -> Array:
    return ctx.asarray(np.int32(accumulator.count))


ACCUMULATOR_NUM_ACCUMULATED = register_use(
    "AccumulatorNumAccumulated",
    on_every_device(_accumulator_num_accumulated_kernel),
    outputs=("num_accumulated: int32",),
)


def accumulator_set_global_step(handle: Tensor, new_global_step: TensorLike, name: str | None = None) -> Operation:
    """Set the time step of an accumulator.

    Args:
        handle: The accumulator, dense or sparse.
        new_global_step: int64 scalar.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(ACCUMULATOR_SET_GLOBAL_STEP, handle, new_global_step, name=name)


def _accumulator_set_global_step_kernel(ctx: KernelContext, accumulator: Accumulator, new_global_step: Array) -> None:
    with accumulator.lock:
        accumulator.global_step = int(new_global_step)


ACCUMULATOR_SET_GLOBAL_STEP = register_use(
    "AccumulatorSetGlobalStep", on_every_device(_accumulator_set_global_step_kernel), inputs=("new_global_step: int64",)
)
