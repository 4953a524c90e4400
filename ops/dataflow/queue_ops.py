"""Queues: their handles, and the operations that add and take elements. `tf.FIFOQueue` and the other queues use them.

A queue lives on a device, under its shared name, and outlives steps and sessions. An enqueue waits while the queue is
full, and a dequeue while it has too few elements. `tfray.ops.resources.attempts` tells in which order they are served.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.dataflow.resource_operations import register_handle, register_use
from tfray.ops.resources.handles import named_resource, require_same
from tfray.ops.resources.queue_resource import PaddingQueue, PriorityQueue, Queue, ShuffleQueue, Taken

_QUEUE_ATTRS = ("capacity", "component_types", "shapes", "container", "shared_name")


def _queue(ctx: KernelContext, kind: type[Queue], **more: Any) -> Queue:
    capacity, types, shapes = ctx.attr("capacity"), ctx.attr("component_types"), ctx.attr("shapes")
    found = named_resource(ctx, lambda name: kind(name, capacity, types, shapes, **more))
    if type(found) is kind and found.dtypes is types and found.shapes is shapes and found.capacity == capacity:
        return found  # the common case: this operation made it in an earlier step
    require_same(found, ctx, kind, capacity=capacity, dtypes=types, shapes=shapes)
    return found


# -- handles -------------------------------------------------------------------------------------------


def _fifo_queue_kernel(ctx: KernelContext) -> Queue:
    return _queue(ctx, Queue)


FIFO_QUEUE = register_handle("FIFOQueue", on_cpu(_fifo_queue_kernel), _QUEUE_ATTRS)


def _padding_fifo_queue_kernel(ctx: KernelContext) -> Queue:
    return _queue(ctx, PaddingQueue)


PADDING_FIFO_QUEUE = register_handle("PaddingFIFOQueue", on_cpu(_padding_fifo_queue_kernel), _QUEUE_ATTRS)


def _priority_queue_kernel(ctx: KernelContext) -> Queue:
    return _queue(ctx, PriorityQueue)


PRIORITY_QUEUE = register_handle("PriorityQueue", on_cpu(_priority_queue_kernel), _QUEUE_ATTRS)


def _random_shuffle_queue_kernel(ctx: KernelContext) -> Queue:
    least, seeds = ctx.attr("min_after_dequeue"), (ctx.attr("seed"), ctx.attr("seed2"))
    found = _queue(ctx, ShuffleQueue, min_after_dequeue=least, seeds=seeds)
    if seeds == (0, 0):
        require_same(found, ctx, ShuffleQueue, min_after_dequeue=least)
    else:
        require_same(found, ctx, ShuffleQueue, min_after_dequeue=least, seeds=seeds)
    return found


RANDOM_SHUFFLE_QUEUE = register_handle(
    "RandomShuffleQueue", on_cpu(_random_shuffle_queue_kernel), (*_QUEUE_ATTRS, "min_after_dequeue", "seed", "seed2")
)


def _select_queue_kernel(ctx: KernelContext, index: Array, *queues: Queue) -> Queue:
    if not 0 <= index < len(queues):
        raise InvalidArgumentError(f"Index must be in the range [0, {len(queues)}) but {int(index)} is not in it")
    return queues[int(index)]


SELECT_QUEUE = register(
    OpDef(
        name="SelectQueue",
        inputs=("index: int32", "handles: any*"),
        outputs=("handle: resource",),
        shape=scalar,
        kernels=on_cpu(_select_queue_kernel),
        stateful=True,
    )
)


# -- adding elements -----------------------------------------------------------------------------------


def _queue_enqueue_kernel(ctx: KernelContext, queue: Queue, *components: Array) -> None:
    ctx.step.complete(ctx.op_name, queue.enqueue, components)


QUEUE_ENQUEUE = register_use("QueueEnqueue", on_cpu(_queue_enqueue_kernel), inputs=("components: any*",), waits=True)


def _queue_enqueue_many_kernel(ctx: KernelContext, queue: Queue, *components: Array) -> None:
    ctx.step.complete(ctx.op_name, queue.enqueue_many, components)


QUEUE_ENQUEUE_MANY = register_use(
    "QueueEnqueueMany", on_cpu(_queue_enqueue_many_kernel), inputs=("components: any*",), waits=True
)


# -- taking elements -----------------------------------------------------------------------------------


def _queue_dequeue_kernel(ctx: KernelContext, queue: Queue) -> Any:
    return ctx.step.complete(ctx.op_name, queue.dequeue)


def _element_shapes(op: Operation) -> list[TensorShape]:
    shapes: list[TensorShape] = op.attrs["shapes"]
    return shapes


QUEUE_DEQUEUE = register_use(
    "QueueDequeue",
    on_cpu(_queue_dequeue_kernel),
    outputs=("components: component_types*",),
    shape=_element_shapes,
    attrs=("component_types", "shapes"),
    waits=True,
)


def _queue_dequeue_many_kernel(ctx: KernelContext, queue: Queue, n: Array) -> Any:
    return ctx.step.complete(ctx.op_name, queue.dequeue_many, int(n))


def _stacked_shapes(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    count = constant_value(op.inputs[1])
    if count is not None and count < 0:
        raise ValueError(f"{count} elements cannot be taken")
    first = TensorShape([None if count is None else int(count)])
    return [first.concatenate(shape) for shape in op.attrs["shapes"]]


QUEUE_DEQUEUE_MANY = register_use(
    "QueueDequeueMany",
    on_cpu(_queue_dequeue_many_kernel),
    inputs=("n: int32",),
    outputs=("components: component_types*",),
    shape=_stacked_shapes,
    attrs=("component_types", "shapes"),
    waits=True,
)


def _queue_dequeue_up_to_kernel(ctx: KernelContext, queue: Queue, n: Array) -> Any:
    return ctx.step.complete(ctx.op_name, queue.dequeue_many, int(n), True)


def _any_number_of(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    return [TensorShape([None]).concatenate(shape) for shape in op.attrs["shapes"]]


QUEUE_DEQUEUE_UP_TO = register_use(
    "QueueDequeueUpTo",
    on_cpu(_queue_dequeue_up_to_kernel),
    inputs=("n: int32",),
    outputs=("components: component_types*",),
    shape=_any_number_of,
    attrs=("component_types", "shapes"),
    waits=True,
)


# -- several elements from queue to queue --------------------------------------------------------------


def _queue_dequeue_some_kernel(ctx: KernelContext, queue: Queue, target: Queue) -> list[Any]:
    taken: Taken = ctx.step.complete(ctx.op_name, queue.dequeue_some, target, ctx.attr("most"))
    ctx.step.held.add(taken)
    return [taken, np.int64(len(taken.elements)), *queue.stacked(taken.elements)]


def _some_shapes(op: Operation) -> list[TensorShape]:
    scalars = [TensorShape([]), TensorShape([])]
    return scalars + [TensorShape([None]).concatenate(shape) for shape in op.attrs["shapes"]]


QUEUE_DEQUEUE_SOME = register_use(
    "QueueDequeueSome",
    on_cpu(_queue_dequeue_some_kernel),
    inputs=("target: resource",),
    outputs=("taken: variant", "count: int64", "components: component_types*"),
    shape=_some_shapes,
    attrs=("component_types", "shapes", "most"),
    waits=True,
)


def _queue_enqueue_some_kernel(ctx: KernelContext, queue: Queue, taken: Taken, *components: Array) -> None:
    ctx.step.complete(ctx.op_name, queue.enqueue_some, taken, components)
    ctx.step.held.discard(taken)


QUEUE_ENQUEUE_SOME = register_use(
    "QueueEnqueueSome", on_cpu(_queue_enqueue_some_kernel), inputs=("taken: variant", "components: any*"), waits=True
)


# -- the rest ------------------------------------------------------------------------------------------


def _queue_close_kernel(ctx: KernelContext, queue: Queue) -> None:
    ctx.step.complete(ctx.op_name, queue.close, ctx.attr("cancel_pending_enqueues"))


QUEUE_CLOSE = register_use("QueueClose", on_cpu(_queue_close_kernel), attrs=("cancel_pending_enqueues",), waits=True)


def _queue_size_kernel(ctx: KernelContext, queue: Queue) -> np.int32:
    return np.int32(queue.size)


QUEUE_SIZE = register_use("QueueSize", on_cpu(_queue_size_kernel), outputs=("size: int32",))


def _queue_is_closed_kernel(ctx: KernelContext, queue: Queue) -> np.bool_:
    return np.bool_(queue.closed)


QUEUE_IS_CLOSED = register_use("QueueIsClosed", on_cpu(_queue_is_closed_kernel), outputs=("is_closed: bool",))
