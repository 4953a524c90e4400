"""Barriers: components that come at different times are joined by their keys. `Barrier` is built on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, on_cpu
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.queue_ops import require_same, shared_resource
from tfray.ops.dataflow.resource_definitions import register_handle, register_use
from tfray.ops.resources.barrier_resource import Barrier
from tfray.ops.state.state_ops import colocated_with


def barrier(
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape] = (),
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a barrier.

    Args:
        component_types: Dtypes of the components of an element.
        shapes: Their shapes; empty when they are not known.
        container: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        shared_name: As for `tfray.ops.dataflow.queue_ops.fifo_queue`.
        name: Name of the operation.
    """
    attrs = {"component_types": list(component_types), "shapes": list(shapes)}
    return add_op(BARRIER, name=name, container=container, shared_name=shared_name, **attrs)


def _barrier_kernel(ctx: KernelContext) -> Array:
    types, shapes = ctx.attr("component_types"), ctx.attr("shapes")
    found = shared_resource(ctx, lambda name: Barrier(name, types, shapes))
    require_same(found, ctx, Barrier, dtypes=types, shapes=shapes)
    return found


BARRIER = register_handle("Barrier", on_cpu(_barrier_kernel), ("component_types", "shapes", "container", "shared_name"))


def barrier_insert_many(
    handle: Tensor, component_index: int, keys: TensorLike, values: TensorLike, name: str | None = None
) -> Operation:
    """Give one component of several elements.

    Args:
        handle: The barrier.
        component_index: Which component.
        keys: String vector: the elements' keys.
        values: The component of each, shape ``[n, ...]``.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: one has been given already.
        CancelledError: While running: the barrier is closed, and a key is new.
    """
    with colocated_with(handle):
        return add_op(BARRIER_INSERT_MANY, handle, keys, values, name=name, component_index=int(component_index))


def _barrier_insert_many_kernel(ctx: KernelContext, there: Barrier, keys: Array, values: Array) -> None:
    there.insert(ctx.attr("component_index"), keys, values)


BARRIER_INSERT_MANY = register_use(
    "BarrierInsertMany",
    on_cpu(_barrier_insert_many_kernel),
    inputs=("keys: string", "values: any"),
    attrs=("component_index",),
)


def barrier_take_many(
    handle: Tensor,
    num_elements: TensorLike,
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape],
    allow_small_batch: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Take complete elements, waiting until there are enough.

    Args:
        handle: The barrier.
        num_elements: int32 scalar.
        component_types: Dtypes of the components.
        shapes: Shapes of the components, as far as they are known.
        allow_small_batch: Of a closed barrier take what is left, if that is anything.
        name: Name of the operation.

    Returns:
        Indices that tell in which order the keys came, the keys, both ``[n]``, and the components, each ``[n, ...]``.

    Raises:
        OutOfRangeError: While running: the barrier is closed, and there will not be enough.
    """
    attrs = {
        "component_types": list(component_types),
        "shapes": list(shapes) or [UNKNOWN] * len(component_types),
        "allow_small_batch": bool(allow_small_batch),
    }
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(BARRIER_TAKE_MANY, handle, num_elements, name=name, **attrs)
        return tensors


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


def barrier_close(handle: Tensor, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
    """Refuse new keys.

    Args:
        handle: The barrier.
        cancel_pending_enqueues: Forget incomplete elements, and refuse what would complete them.
        name: Name of the operation.

    Raises:
        CancelledError: While running: it is closed already.
    """
    with colocated_with(handle):
        return add_op(BARRIER_CLOSE, handle, name=name, cancel_pending_enqueues=bool(cancel_pending_enqueues))


def _barrier_close_kernel(ctx: KernelContext, there: Barrier) -> None:
    there.close(ctx.attr("cancel_pending_enqueues"))


BARRIER_CLOSE = register_use("BarrierClose", on_cpu(_barrier_close_kernel), attrs=("cancel_pending_enqueues",))


def barrier_ready_size(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of complete elements: an int32 scalar.

    Args:
        handle: The barrier.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(BARRIER_READY_SIZE, handle, name=name)


def _barrier_ready_size_kernel(ctx: KernelContext, there: Barrier) -> np.int32:
    return np.int32(there.ready_size)


BARRIER_READY_SIZE = register_use("BarrierReadySize", on_cpu(_barrier_ready_size_kernel), outputs=("size: int32",))


def barrier_incomplete_size(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of elements of which components are missing: an int32 scalar.

    Args:
        handle: The barrier.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(BARRIER_INCOMPLETE_SIZE, handle, name=name)


def _barrier_incomplete_size_kernel(ctx: KernelContext, there: Barrier) -> np.int32:
    return np.int32(there.incomplete_size)


BARRIER_INCOMPLETE_SIZE = register_use(
    "BarrierIncompleteSize", on_cpu(_barrier_incomplete_size_kernel), outputs=("size: int32",)
)
