"""Queues: their handles, and the operations that add and take elements. `tf.FIFOQueue` and the other queues use them.

A queue lives on a device, under its shared name, and outlives steps and sessions. An enqueue waits while the queue is
full, and a dequeue while it has too few elements. `tfray.ops.resources.attempts` tells in which order they are served.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.resource_definitions import register_handle, register_use
from tfray.ops.resources.queue_resource import PaddingQueue, PriorityQueue, Queue, ShuffleQueue
from tfray.ops.state.state_ops import colocated_with

_QUEUE_ATTRS = ("capacity", "component_types", "shapes", "container", "shared_name")


def shared_resource(ctx: KernelContext, factory: Callable[[str], Any]) -> Any:
    """The resource that the attributes ``container`` and ``shared_name`` of the running operation name on its device.

    Args:
        ctx: Context of the operation; its own name stands for an empty ``shared_name``.
        factory: Makes the resource from its name.
    """
    name = ctx.attr("shared_name") or ctx.op_name
    key = ("shared", ctx.attr("container"), name)
    return ctx.resources.lookup_or_create(key, lambda: factory(name))


def require_same(found: Any, ctx: KernelContext, kind: type[Any], **expected: Any) -> None:
    """Check that a resource found under a shared name is what the running operation would have made.

    Raises:
        InvalidArgumentError: It is of another kind, or was made with other attributes.
    """
    if type(found) is not kind:
        raise InvalidArgumentError(
            f"{ctx.attr('shared_name') or ctx.op_name!r} is the shared name of a {type(found).__name__} already, "
            f"not of a {kind.__name__}"
        )
    for name, value in expected.items():
        there = getattr(found, name)
        if there is not value and there != value:
            raise InvalidArgumentError(
                f"{found.describe()} was made with {name} {_shown(there)} and is asked for with {_shown(value)}: "
                "give both the same, or different shared names"
            )


def _shown(value: TensorLike) -> str:
    return str([getattr(item, "name", str(item)) for item in value]) if isinstance(value, list) else str(value)


def _queue(ctx: KernelContext, kind: type[Queue], **more: Any) -> Queue:
    capacity, types, shapes = ctx.attr("capacity"), ctx.attr("component_types"), ctx.attr("shapes")
    found = shared_resource(ctx, lambda name: kind(name, capacity, types, shapes, **more))
    if type(found) is kind and found.dtypes is types and found.shapes is shapes and found.capacity == capacity:
        return found  # the common case: this operation made it in an earlier step
    require_same(found, ctx, kind, capacity=capacity, dtypes=types, shapes=shapes)
    return found


# -- handles -------------------------------------------------------------------------------------------


def fifo_queue(
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape] = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue that gives its elements in the order in which they came.

    Args:
        component_types: Dtypes of the components of an element.
        shapes: Shape of each component; empty to let elements differ, which then cannot be taken together.
        capacity: Largest number of elements; negative for no limit.
        container: Part of the queue's name on the device.
        shared_name: The other part; that of the operation when empty. Steps of all sessions that use the device share
            one queue under equal names.
        name: Name of the operation.
    """
    attrs = _queue_attrs(component_types, shapes, capacity, container, shared_name)
    return add_op(FIFO_QUEUE, name=name, **attrs)


def _queue_attrs(
    component_types: Sequence[DType], shapes: Sequence[TensorShape], capacity: int, container: str, shared_name: str
) -> dict[str, Any]:
    return {
        "component_types": list(component_types),
        "shapes": list(shapes),
        "capacity": int(capacity),
        "container": container,
        "shared_name": shared_name,
    }


def _fifo_queue_kernel(ctx: KernelContext) -> Queue:
    return _queue(ctx, Queue)


FIFO_QUEUE = register_handle("FIFOQueue", on_cpu(_fifo_queue_kernel), _QUEUE_ATTRS)


def padding_fifo_queue(
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape],
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a first-in-first-out queue that pads elements with zeros when several are taken together.

    Args:
        component_types: As for `fifo_queue`.
        shapes: Shape of each component, with None for sizes that may differ between elements.
        capacity: As for `fifo_queue`.
        container: As for `fifo_queue`.
        shared_name: As for `fifo_queue`.
        name: Name of the operation.
    """
    attrs = _queue_attrs(component_types, shapes, capacity, container, shared_name)
    return add_op(PADDING_FIFO_QUEUE, name=name, **attrs)


def _padding_fifo_queue_kernel(ctx: KernelContext) -> Queue:
    return _queue(ctx, PaddingQueue)


PADDING_FIFO_QUEUE = register_handle("PaddingFIFOQueue", on_cpu(_padding_fifo_queue_kernel), _QUEUE_ATTRS)


def priority_queue(
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape] = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue that gives the element with the smallest first component, an int64 scalar.

    Args:
        component_types: As for `fifo_queue`, that of the first component included.
        shapes: As for `fifo_queue`, likewise.
        capacity: As for `fifo_queue`.
        container: As for `fifo_queue`.
        shared_name: As for `fifo_queue`.
        name: Name of the operation.
    """
    attrs = _queue_attrs(component_types, shapes, capacity, container, shared_name)
    return add_op(PRIORITY_QUEUE, name=name, **attrs)


def _priority_queue_kernel(ctx: KernelContext) -> Queue:
    return _queue(ctx, PriorityQueue)


PRIORITY_QUEUE = register_handle("PriorityQueue", on_cpu(_priority_queue_kernel), _QUEUE_ATTRS)


def random_shuffle_queue(
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape] = (),
    capacity: int = -1,
    min_after_dequeue: int = 0,
    seeds: tuple[int, int] = (0, 0),
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue that gives its elements in random order.

    Args:
        component_types: As for `fifo_queue`.
        shapes: As for `fifo_queue`.
        capacity: As for `fifo_queue`.
        min_after_dequeue: Number of elements that stay in the queue until it is closed.
        seeds: The graph's seed and the operation's; both 0 for another order in every process.
        container: As for `fifo_queue`.
        shared_name: As for `fifo_queue`.
        name: Name of the operation.
    """
    attrs = _queue_attrs(component_types, shapes, capacity, container, shared_name)
    more = {"min_after_dequeue": int(min_after_dequeue), "seed": seeds[0], "seed2": seeds[1]}
    return add_op(RANDOM_SHUFFLE_QUEUE, name=name, **attrs, **more)


def _random_shuffle_queue_kernel(ctx: KernelContext) -> Queue:
    least = ctx.attr("min_after_dequeue")
    found = _queue(ctx, ShuffleQueue, min_after_dequeue=least, seeds=(ctx.attr("seed"), ctx.attr("seed2")))
    require_same(found, ctx, ShuffleQueue, min_after_dequeue=least)
    return found


RANDOM_SHUFFLE_QUEUE = register_handle(
    "RandomShuffleQueue", on_cpu(_random_shuffle_queue_kernel), (*_QUEUE_ATTRS, "min_after_dequeue", "seed", "seed2")
)


def select_queue(index: TensorLike, handles: Sequence[Tensor], name: str | None = None) -> Tensor:
    """The handle of one of several queues, chosen when it runs.

    Args:
        index: int32 scalar.
        handles: The queues, which must be on one device.
        name: Name of the operation.
    """
    return add_op(SELECT_QUEUE, index, list(handles), name=name)


def _select_queue_kernel(ctx: KernelContext, index: Array, *queues: Queue) -> Queue:
    if not 0 <= index < len(queues):
        raise InvalidArgumentError(f"the index is {int(index)}, expected one of {len(queues)} queues")
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


def queue_enqueue(handle: Tensor, components: Sequence[TensorLike], name: str | None = None) -> Operation:
    """Add one element to a queue, waiting while it is full.

    Args:
        handle: The queue.
        components: The element's components, of the queue's dtypes and shapes.
        name: Name of the operation.

    Raises:
        CancelledError: While running: the queue is closed, or is closed cancelling what waits.
    """
    with colocated_with(handle):
        return add_op(QUEUE_ENQUEUE, handle, list(components), name=name)


def _queue_enqueue_kernel(ctx: KernelContext, queue: Queue, *components: Array) -> None:
    ctx.step.complete(ctx.op_name, queue.enqueue, components)


QUEUE_ENQUEUE = register_use("QueueEnqueue", on_cpu(_queue_enqueue_kernel), inputs=("components: any*",), waits=True)


def queue_enqueue_many(handle: Tensor, components: Sequence[TensorLike], name: str | None = None) -> Operation:
    """Add to a queue the elements that are the rows of `components`, waiting for room.

    Args:
        handle: The queue.
        components: For each component, the values of all elements: shape ``[n, ...]``.
        name: Name of the operation.

    Raises:
        CancelledError: While running: the queue is closed, or is closed cancelling what waits.
    """
    with colocated_with(handle):
        return add_op(QUEUE_ENQUEUE_MANY, handle, list(components), name=name)


def _queue_enqueue_many_kernel(ctx: KernelContext, queue: Queue, *components: Array) -> None:
    ctx.step.complete(ctx.op_name, queue.enqueue_many, components)


QUEUE_ENQUEUE_MANY = register_use(
    "QueueEnqueueMany", on_cpu(_queue_enqueue_many_kernel), inputs=("components: any*",), waits=True
)


# -- taking elements -----------------------------------------------------------------------------------


def queue_dequeue(
    handle: Tensor, component_types: Sequence[DType], shapes: Sequence[TensorShape], name: str | None = None
) -> list[Tensor]:
    """Take one element from a queue, waiting while it is empty.

    Args:
        handle: The queue.
        component_types: Dtypes of its components.
        shapes: What is known of their shapes; empty for nothing.
        name: Name of the operation.

    Returns:
        The components, of the shapes in `shapes`.

    Raises:
        OutOfRangeError: While running: the queue is closed and empty.
    """
    with colocated_with(handle):
        tensors: list[Tensor] = add_op(QUEUE_DEQUEUE, handle, name=name, **_components(component_types, shapes))
        return tensors


def _components(component_types: Sequence[DType], shapes: Sequence[TensorShape]) -> dict[str, Any]:
    return {"component_types": list(component_types), "shapes": list(shapes) or [UNKNOWN] * len(component_types)}


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


def queue_dequeue_many(
    handle: Tensor,
    n: TensorLike,
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape],
    name: str | None = None,
) -> list[Tensor]:
    """Take `n` elements from a queue at once, waiting until it has given so many.

    Args:
        handle: The queue, made with shapes.
        n: int32 scalar.
        component_types: Dtypes of its components.
        shapes: Shapes of the components, as far as they are known.
        name: Name of the operation.

    Returns:
        The components, those of all elements along a new first axis: shape ``[n, ...]``.

    Raises:
        OutOfRangeError: While running: the queue is closed and holds fewer elements, which it keeps.
    """
    with colocated_with(handle):
        attrs = _components(component_types, shapes)
        tensors: list[Tensor] = add_op(QUEUE_DEQUEUE_MANY, handle, n, name=name, **attrs)
        return tensors


def _queue_dequeue_many_kernel(ctx: KernelContext, queue: Queue, n: Array) -> Any:
    return ctx.step.complete(ctx.op_name, queue.dequeue_many, int(n))


def _stacked_shapes(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(0)
    count = constant_value(op.inputs[1])
    first = TensorShape([None if count is None or count < 0 else int(count)])
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


def queue_dequeue_up_to(
    handle: Tensor,
    n: TensorLike,
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape],
    name: str | None = None,
) -> list[Tensor]:
    """As `queue_dequeue_many`, but take what there is when the queue is closed and holds from 1 to `n` elements.

    Args:
        handle: As for `queue_dequeue_many`.
        n: As for `queue_dequeue_many`, an int32 scalar.
        component_types: As for `queue_dequeue_many`.
        shapes: As for `queue_dequeue_many`.
        name: Name of the operation.

    Returns:
        The components, those of all elements along a new first axis: shape ``[taken, ...]``.

    Raises:
        OutOfRangeError: While running: the queue is closed and empty.
    """
    with colocated_with(handle):
        attrs = _components(component_types, shapes)
        tensors: list[Tensor] = add_op(QUEUE_DEQUEUE_UP_TO, handle, n, name=name, **attrs)
        return tensors


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


# -- the rest ------------------------------------------------------------------------------------------


def queue_close(handle: Tensor, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
    """Close a queue: no element can be added any more, and those that are left can be taken.

    Args:
        handle: The queue.
        cancel_pending_enqueues: Fail enqueues that wait for room. Otherwise they are completed first, and closing
            waits for them.
        name: Name of the operation.

    Raises:
        CancelledError: While running: the queue is closed already, unless `cancel_pending_enqueues`.
    """
    with colocated_with(handle):
        return add_op(QUEUE_CLOSE, handle, name=name, cancel_pending_enqueues=bool(cancel_pending_enqueues))


def _queue_close_kernel(ctx: KernelContext, queue: Queue) -> None:
    ctx.step.complete(ctx.op_name, queue.close, ctx.attr("cancel_pending_enqueues"))


QUEUE_CLOSE = register_use("QueueClose", on_cpu(_queue_close_kernel), attrs=("cancel_pending_enqueues",), waits=True)


def queue_size(handle: Tensor, name: str | None = None) -> Tensor:
    """Number of elements in a queue: an int32 scalar.

    Args:
        handle: The queue.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(QUEUE_SIZE, handle, name=name)


def _queue_size_kernel(ctx: KernelContext, queue: Queue) -> np.int32:
    return np.int32(queue.size)


QUEUE_SIZE = register_use("QueueSize", on_cpu(_queue_size_kernel), outputs=("size: int32",))


def queue_is_closed(handle: Tensor, name: str | None = None) -> Tensor:
    """Whether a queue is closed: a bool scalar.

    Args:
        handle: The queue.
        name: Name of the operation.
    """
    with colocated_with(handle):
        return add_op(QUEUE_IS_CLOSED, handle, name=name)


def _queue_is_closed_kernel(ctx: KernelContext, queue: Queue) -> np.bool_:
    return np.bool_(queue.closed)


QUEUE_IS_CLOSED = register_use("QueueIsClosed", on_cpu(_queue_is_closed_kernel), outputs=("is_closed: bool",))
