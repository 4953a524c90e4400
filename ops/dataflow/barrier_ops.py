"""Barriers: components that come at different times are joined by their keys. `Barrier` is built on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation
from tfray.framework.op_def import Array, KernelContext, on_cpu
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.dataflow.resource_operations import register_handle, register_use
from tfray.ops.resources.barrier_resource import Barrier
from tfray.ops.resources.handles import named_resource, require_same


def _barrier_kernel(ctx: KernelContext) -> Array:
    types, shapes = ctx.attr("component_types"), ctx.attr("shapes")
    found = named_resource(ctx, lambda name: Barrier(name, types, shapes))
    require_same(found, ctx, Barrier, dtypes=types, shapes=shapes)
    return found


BARRIER = register_handle("Barrier", on_cpu(_barrier_kernel), ("component_types", "shapes", "container", "shared_name"))


def _barrier_insert_many_kernel(ctx: KernelContext, there: Barrier, keys: Array, values: Array) -> None:
    there.insert(ctx.attr("component_index"), keys, values)


BARRIER_INSERT_MANY = register_use(
    "BarrierInsertMany",
    on_cpu(_barrier_insert_many_kernel),
    inputs=("keys: string", "values: any"),
    attrs=("component_index",),
)


def _barrier_take_many_kernel(ctx: KernelContext, there: Barrier, num_elements: Array) -> Any:
    return ctx.step.complete(ctx.op_name, there.take, int(num_elements), ctx.attr("allow_small_batch"))


def _taken_shapes(op: Operation) -> list[TensorShape]:
    count = None if op.attrs["allow_small_batch"] else constant_value(op.inputs[1])
    first = TensorShape([None if count is None or count < 0 else int(count)])
    return [first, first, *(first.concatenate(shape) for shape in op.attrs["shapes"])]


BARRIER_TAKE_MANY = register_use(
    "BarrierTakeMany",
    on_cpu(_barrier_take_many_kernel),
    inputs=("num_elements: int32",),
    outputs=("indices: int64", "keys: string", "values: component_types*"),
    shape=_taken_shapes,
    attrs=("component_types", "shapes", "allow_small_batch"),
    waits=True,
)


def _barrier_close_kernel(ctx: KernelContext, there: Barrier) -> None:
    there.close(ctx.attr("cancel_pending_enqueues"))


BARRIER_CLOSE = register_use("BarrierClose", on_cpu(_barrier_close_kernel), attrs=("cancel_pending_enqueues",))


def _barrier_ready_size_kernel(ctx: KernelContext, there: Barrier) -> np.int32:
    return np.int32(there.ready_size)


BARRIER_READY_SIZE = register_use("BarrierReadySize", on_cpu(_barrier_ready_size_kernel), outputs=("size: int32",))


def _barrier_incomplete_size_kernel(ctx: KernelContext, there: Barrier) -> np.int32:
    return np.int32(there.incomplete_size)


BARRIER_INCOMPLETE_SIZE = register_use(
    "BarrierIncompleteSize", on_cpu(_barrier_incomplete_size_kernel), outputs=("size: int32",)
)
