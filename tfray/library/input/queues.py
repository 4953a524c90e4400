"""`tf.FIFOQueue` and the other queues, as programs use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tfray.framework import dtypes
from tfray.framework.arguments import Capacity, Remaining, checked
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import OpDef
from tfray.framework.random_seed import get_seed
from tfray.framework.tensor_shape import UNKNOWN, ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow import queue_ops
from tfray.ops.dataflow.resource_operations import make_resource, use_resource

Types = DTypeLike | Sequence[DTypeLike]
Names = Sequence[str] | str | None
Shapes = Sequence[ShapeLike] | ShapeLike | None


def as_type_list(types: Types) -> list[DType]:
    """Dtypes from one or several."""
    if isinstance(types, (list, tuple)):
        return [as_dtype(item) for item in types]
    return [as_dtype(cast("DTypeLike", types))]


def as_shape_list(shapes: Any, count: int, partial: bool = False) -> list[TensorShape]:
    """Shapes of `count` components, where there is one from that shape or a list of it; an empty list for None.

    Args:
        shapes: What the user gave.
        count: Number of components.
        partial: Whether sizes may be unknown.

    Raises:
        ValueError: Their number is another, or they are not known as far as they must be.
    """
    if shapes is None:
        return []
    shapes = list(shapes) if isinstance(shapes, (list, tuple)) else [shapes]
    if not any(isinstance(item, (list, tuple, TensorShape)) for item in shapes):
        shapes = [shapes]  # the sizes of one shape
    result = [TensorShape(shape) for shape in shapes]
    if len(result) != count:
        raise ValueError(f"there are {count} components and {len(result)} shapes; give one shape for each")
    for shape in result:
        if shape.rank is None or not (partial or shape.is_fully_defined()):
            hint = "" if partial else "; only PaddingFIFOQueue takes elements that differ in size"
            raise ValueError(f"shapes must be fully defined, got {shape}{hint}")
    return result


def as_name_list(names: Any, count: int) -> list[str] | None:
    """Names of `count` components, or None.

    Raises:
        ValueError: Their number is another.
    """
    if names is None:
        return None
    names = list(names) if isinstance(names, (list, tuple)) else [names]
    if len(names) != count:
        raise ValueError(f"there are {count} components and {len(names)} names; give one name for each")
    return names


class QueueBase:
    """Base of all queues. Use its subclasses; only `from_list` is called on this class itself.

    Args:
        dtypes: Dtypes of the components of an element.
        shapes: Shapes of the components; empty when elements may differ.
        names: Names of the components: elements are then dictionaries.
        queue_ref: Handle of the queue.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = as_type_list(dtypes)
        self._shapes = [TensorShape(shape) for shape in shapes or ()] or [UNKNOWN] * len(self._dtypes)
        self._names = as_name_list(names, len(self._dtypes))
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: TensorLike, queues: Sequence[QueueBase]) -> QueueBase:
        """One of several queues, chosen by a tensor when the step runs.

        Args:
            index: int32 scalar.
            queues: Queues on one device, with the same dtypes and names of components.

        Raises:
            TypeError: An element is not a queue, or the dtypes differ.
            ValueError: There are none, or the names differ.
        """
        if not queues or not isinstance(queues, (list, tuple)):
            raise TypeError("from_list: A list of queues expected")
        if not all(isinstance(queue, QueueBase) for queue in queues):
            raise TypeError(f"from_list: A list of queues expected, got {queues!r}")
        first = queues[0]
        if any(queue.dtypes != first.dtypes for queue in queues):
            raise TypeError(f"Queues do not have matching component dtypes: {[queue.dtypes for queue in queues]}")
        if any(queue.names != first.names for queue in queues):
            raise ValueError(f"the queues differ in names: {[queue.names for queue in queues]}")
        shapes = [_common(column) for column in zip(*(queue.shapes for queue in queues), strict=True)]
        handle = add_op(queue_ops.SELECT_QUEUE, index, [queue.queue_ref for queue in queues])
        return QueueBase(first.dtypes, shapes, first.names, handle)

    @property
    def queue_ref(self) -> Tensor:
        """The handle of the queue."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """Name of the queue's operation."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        """Dtypes of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """Shapes of the components, as far as they are known."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """Names of the components, or None."""
        return self._names

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {', '.join(dtype.name for dtype in self._dtypes)}>"

    # -- adding ------------------------------------------------------------------------------------

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that adds one element, waiting while the queue is full.

        Args:
            vals: The components: one value, a list, or a dictionary where components have names.
            name: Name of the operation.

        Raises:
            ValueError: Values do not fit the queue.
            CancelledError: While running: the queue is closed.
        """
        with get_default_graph().name_scope(name or f"{self._name}_enqueue") as scope:
            values = self._components(vals)
            for value, shape in zip(values, self._shapes, strict=True):
                value.shape.assert_is_compatible_with(shape)
            return use_resource(queue_ops.QUEUE_ENQUEUE, self._queue_ref, values, name=scope)

    def enqueue_many(self, vals: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds the elements that are the rows of `vals`, without others in between.

        Args:
            vals: As for `enqueue`, with a first axis over the elements.
            name: Name of the operation.

        Raises:
            ValueError: Values do not fit the queue.
            CancelledError: While running: the queue is closed.
        """
        with get_default_graph().name_scope(name or f"{self._name}_EnqueueMany") as scope:
            values = self._components(vals)
            rows = TensorShape([None])
            for value, shape in zip(values, self._shapes, strict=True):
                value.shape.assert_is_compatible_with(rows.concatenate(shape))
                rows = rows.merge_with(TensorShape(value.shape.sizes[:1] if value.shape.rank else [None]))
            return use_resource(queue_ops.QUEUE_ENQUEUE_MANY, self._queue_ref, values, name=scope)

    def _components(self, vals: Any) -> list[Tensor]:
        if isinstance(vals, Mapping):
            if self._names is None:
                raise ValueError(f"The queue must have names to enqueue a dictionary: {self!r} has none")
            if set(vals) != set(self._names):
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue. Dictionary: {sorted(vals)}, Queue: "
                    f"{sorted(self._names)}"
                )
            vals = [vals[name] for name in self._names]
        else:
            if self._names is not None:
                raise ValueError(f"You must enqueue a dictionary in a Queue with names: {self!r} has {self._names}")
            vals = vals if isinstance(vals, (list, tuple)) else [vals]
        if len(vals) != len(self._dtypes):
            # One component may be given as nested lists.
            vals = [vals] if len(self._dtypes) == 1 else vals
        if len(vals) != len(self._dtypes):
            raise ValueError(f"{self!r} has {len(self._dtypes)} components, got {len(vals)} values")
        pairs = enumerate(zip(vals, self._dtypes, strict=True))
        return [convert_to_tensor(value, dtype, f"component_{i}") for i, (value, dtype) in pairs]

    # -- taking ------------------------------------------------------------------------------------

    def dequeue(self, name: str | None = None) -> Any:
        """Take one element, waiting while the queue is empty.

        Args:
            name: Name of the operation.

        Returns:
            Its component, the list of its components, or a dictionary where they have names.

        Raises:
            OutOfRangeError: While running: the queue is closed and empty.
        """
        return self._taken(queue_ops.QUEUE_DEQUEUE, name=name or f"{self._name}_Dequeue")

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Any:
        """Take `n` elements at once, stacked along a new first axis, waiting until there are so many.

        Args:
            n: int32 scalar.
            name: Name of the operation.

        Returns:
            As of `dequeue`.

        Raises:
            ValueError: `n` is known to be negative.
            OutOfRangeError: While running: the queue is closed and holds fewer elements.
        """
        return self._taken(queue_ops.QUEUE_DEQUEUE_MANY, n, name=name or f"{self._name}_DequeueMany")

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Any:
        """As `dequeue_many`, but when the queue is closed and has fewer elements, take those, if there are any.

        Args:
            n: int32 scalar.
            name: Name of the operation.

        Returns:
            As of `dequeue`.

        Raises:
            OutOfRangeError: While running: the queue is closed and empty.
        """
        return self._taken(queue_ops.QUEUE_DEQUEUE_UP_TO, n, name=name or f"{self._name}_DequeueUpTo")

    def _taken(self, definition: OpDef, *inputs: TensorLike, name: str) -> Any:
        attrs = {"component_types": list(self._dtypes), "shapes": list(self._shapes)}
        tensors = use_resource(definition, self._queue_ref, *inputs, name=name, **attrs)
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors

    # -- the rest ----------------------------------------------------------------------------------

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation that closes the queue: what is in it can still be taken.

        Args:
            cancel_pending_enqueues: Fail enqueues that wait, instead of completing them first.
            name: Name of the operation.
        """
        attrs = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        return use_resource(queue_ops.QUEUE_CLOSE, self._queue_ref, name=name or f"{self._name}_Close", **attrs)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed: a bool scalar.

        Args:
            name: Name of the operation.
        """
        return use_resource(queue_ops.QUEUE_IS_CLOSED, self._queue_ref, name=name or f"{self._name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """Number of elements: an int32 scalar.

        Args:
            name: Name of the operation.
        """
        return use_resource(queue_ops.QUEUE_SIZE, self._queue_ref, name=name or f"{self._name}_Size")


def _common(shapes: Iterable[TensorShape]) -> TensorShape:
    """What several shapes have in common."""
    common, *others = shapes
    for shape in others:
        if common.rank is None or common.rank != shape.rank:
            return UNKNOWN
        common = TensorShape([a if a == b else None for a, b in zip(common.sizes, shape.sizes, strict=True)])
    return common


def _made(
    definition: OpDef,
    capacity: int,
    types: list[DType],
    shapes: list[TensorShape],
    shared_name: str | None,
    name: str | None,
    **more: int,
) -> Tensor:
    attrs = {"component_types": types, "shapes": shapes, "capacity": int(capacity), **more}
    return make_resource(definition, name, shared_name, **attrs)


class FIFOQueue(QueueBase):
    """A queue that gives its elements in the order in which they came.

    Args:
        capacity: Largest number of elements; negative for no limit.
        dtypes: Dtype of each component of an element, or one.
        shapes: Shape of each component. Without it elements may differ, and can only be taken one by one.
        names: Name of each component: elements are then dictionaries.
        shared_name: Queues of equal shared names on one device are one queue, across sessions.
        name: Name of the queue's operation.

    Raises:
        ValueError: A shape is not fully known, or the lists differ in length.
    """

    @checked
    def __init__(
        self,
        capacity: Capacity,
        dtypes: Any,
        shapes: Shapes = None,
        names: Names = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        types = as_type_list(dtypes)
        known = as_shape_list(shapes, len(types))
        handle = _made(queue_ops.FIFO_QUEUE, capacity, types, known, shared_name, name)
        super().__init__(types, known, names, handle)


class PaddingFIFOQueue(QueueBase):
    """A `FIFOQueue` whose elements may differ in size: taking several at once pads them with zeros.

    Args:
        capacity: Largest number of elements; negative for no limit.
        dtypes: Dtype of each component of an element, or one.
        shapes: Shape of each component, with None for sizes that may differ.
        names: Name of each component: elements are then dictionaries.
        shared_name: Queues of equal shared names on one device are one queue, across sessions.
        name: Name of the queue's operation.

    Raises:
        ValueError: A rank is not known, or the lists differ in length.
    """

    @checked
    def __init__(
        self,
        capacity: Capacity,
        dtypes: Any,
        shapes: Shapes,
        names: Names = None,
        shared_name: str | None = None,
        name: str | None = "padding_fifo_queue",
    ) -> None:
        types = as_type_list(dtypes)
        if shapes is None:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        known = as_shape_list(shapes, len(types), partial=True)
        handle = _made(queue_ops.PADDING_FIFO_QUEUE, capacity, types, known, shared_name, name)
        super().__init__(types, known, names, handle)


class PriorityQueue(QueueBase):
    """A queue that gives the element of the smallest priority first; of equal ones that which came first.

    An element's first component, in addition to those of `types`, is its priority, an int64 scalar.

    Args:
        capacity: Largest number of elements; negative for no limit.
        types: Dtype of each further component of an element, or one.
        shapes: Shape of each further component, as of `FIFOQueue`.
        names: Name of each component, the priority's first.
        shared_name: Queues of equal shared names on one device are one queue, across sessions.
        name: Name of the queue's operation.

    Raises:
        ValueError: A shape is not fully known, or the lists differ in length.
    """

    @checked
    def __init__(
        self,
        capacity: Capacity,
        types: Any,
        shapes: Shapes = None,
        names: Names = None,
        shared_name: str | None = None,
        name: str | None = "priority_queue",
    ) -> None:
        further = as_type_list(types)
        known = as_shape_list(shapes, len(further))
        known = [TensorShape([]), *known] if known or not further else []
        all_types = [dtypes.int64, *further]
        handle = _made(queue_ops.PRIORITY_QUEUE, capacity, all_types, known, shared_name, name)
        super().__init__(all_types, known or [TensorShape([]), *[UNKNOWN] * len(further)], names, handle)


class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in random order.

    Args:
        capacity: Largest number of elements; negative for no limit.
        min_after_dequeue: Number of elements that stay in the queue, so that there are some to choose from. Dequeues
            wait for more until the queue is closed.
        dtypes: Dtype of each component of an element, or one.
        shapes: Shape of each component. Without it elements may differ, and can only be taken one by one.
        names: Name of each component: elements are then dictionaries.
        seed: Seed of the order; see `tf.set_random_seed`.
        shared_name: Queues of equal shared names on one device are one queue, across sessions.
        name: Name of the queue's operation.

    Raises:
        ValueError: A shape is not fully known, or the lists differ in length.
    """

    @checked
    def __init__(
        self,
        capacity: Capacity,
        min_after_dequeue: Remaining,
        dtypes: Any,
        shapes: Shapes = None,
        names: Names = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str | None = "random_shuffle_queue",
    ) -> None:
        types = as_type_list(dtypes)
        known = as_shape_list(shapes, len(types))
        graph_seed, op_seed = get_seed(seed)
        more = {"min_after_dequeue": int(min_after_dequeue), "seed": graph_seed or 0, "seed2": op_seed or 0}
        handle = _made(queue_ops.RANDOM_SHUFFLE_QUEUE, capacity, types, known, shared_name, name, **more)
        super().__init__(types, known, names, handle)
