"""Conditional accumulators, which add gradients up until enough have come: those of `tf.ConditionalAccumulator`.

They make synchronous steps out of workers that compute at their own pace. The gradient of a late worker belongs to an
old time step and is dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.graph import Operation
from tfray.framework.op_def import (
    Array,
    KernelContext,
    on_cpu,
    on_every_device,
)
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.dataflow.resource_operations import register_handle, register_use
from tfray.ops.resources.accumulator_resource import Accumulator, SparseAccumulator
from tfray.ops.resources.handles import named_resource, require_same

_ATTRS = ("shape", "reduction_type", "container", "shared_name")


def _accumulator(ctx: KernelContext, kind: type[Accumulator]) -> Array:
    dtype, shape, reduction = ctx.attr("dtype"), ctx.attr("shape"), ctx.attr("reduction_type")
    found = named_resource(ctx, lambda name: kind(name, dtype, shape, reduction))
    require_same(found, ctx, kind, dtype=dtype, shape=shape, reduction=reduction)
    return found


# -- dense ---------------------------------------------------------------------------------------------


def _conditional_accumulator_kernel(ctx: KernelContext) -> Array:
    return _accumulator(ctx, Accumulator)


CONDITIONAL_ACCUMULATOR = register_handle(
    "ConditionalAccumulator", on_every_device(_conditional_accumulator_kernel), _ATTRS, types={"dtype": dtypes.FLOATS}
)


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


def _sparse_conditional_accumulator_kernel(ctx: KernelContext) -> Array:
    return _accumulator(ctx, SparseAccumulator)


SPARSE_CONDITIONAL_ACCUMULATOR = register_handle(
    "SparseConditionalAccumulator",
    on_cpu(_sparse_conditional_accumulator_kernel),
    _ATTRS,
    types={"dtype": dtypes.FLOATS},
)


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


def _accumulator_num_accumulated_kernel(ctx: KernelContext, accumulator: Accumulator) -> Array:
    return ctx.asarray(np.int32(accumulator.count))


ACCUMULATOR_NUM_ACCUMULATED = register_use(
    "AccumulatorNumAccumulated",
    on_every_device(_accumulator_num_accumulated_kernel),
    outputs=("num_accumulated: int32",),
)


def _accumulator_set_global_step_kernel(ctx: KernelContext, accumulator: Accumulator, new_global_step: Array) -> None:
    with accumulator.lock:
        accumulator.global_step = int(new_global_step)


ACCUMULATOR_SET_GLOBAL_STEP = register_use(
    "AccumulatorSetGlobalStep", on_every_device(_accumulator_set_global_step_kernel), inputs=("new_global_step: int64",)
)
