"""Batches of examples by way of a queue: `batch`, `shuffle_batch` and their like.

Each adds a queue to the graph, a `QueueRunner` whose threads compute one example after another, and the operation
that takes a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.arguments import Positive, PositiveCapacity, Remaining, checked
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.input.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.sparse import sparse_transport_ops
from tfray.training.input.input_producers import tell_fraction
from tfray.training.threads.queue_runner import QueueRunner, add_queue_runner

MakeQueue = Callable[..., QueueBase]


@checked
def batch(
    tensors: Any,
    batch_size: Positive | Tensor,
    num_threads: Positive = 1,
    capacity: PositiveCapacity = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of examples, in the order in which they are computed.

    Args:
        tensors: The parts of one example: a list or a dictionary of tensors of any shape.
        batch_size: Examples in a batch, an integer or integer scalar.
        num_threads: Threads that compute examples; with more than one their order may change.
        capacity: Largest number of examples in the queue.
        enqueue_many: Whether `tensors` hold several examples along their first axis.
        shapes: Shapes of the tensors of one example, if the graph does not know them.
        dynamic_pad: Whether examples may differ in size. They are padded with zeros to the largest of their batch.
        allow_smaller_final_batch: Whether the examples left at the end of the input make a last, smaller batch.
        shared_name: Shared name of the queue.
        name: Name of the operation that takes a batch.

    Returns:
        The same list or dictionary with tensors of shape ``[batch_size, ...]``; of a list with one tensor, that tensor.

    Raises:
        ValueError: A shape is not known, or there are no tensors.
        OutOfRangeError: While running: the input has ended.

    Examples:
        >>> tf.train.batch([tf.ones([8, 8, 3])], batch_size=16).shape.as_list()
        [16, 8, 8, 3]
    """
    make = _in_order(capacity, dynamic_pad, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "batch"
    return _batches(taken, [tensors], True, enqueue_many, shapes, make, num_threads)


@checked
def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Positive | Tensor,
    num_threads: Positive = 1,
    capacity: PositiveCapacity = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, of those examples for which `keep_input` holds.

    `keep_input` is a bool scalar, or with `enqueue_many` a vector with one bool for each example. The other arguments
    and the result, tensors of shape ``[batch_size, ...]``, are as of `batch`.
    """
    make = _in_order(capacity, dynamic_pad, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "maybe_batch"
    return _batches(taken, [tensors], keep_input, enqueue_many, shapes, make, num_threads)


@checked
def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Positive | Tensor,
    capacity: PositiveCapacity = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, of examples from several places, each with a thread of its own.

    `tensors_list` is a list of what `batch` takes as `tensors`. The other arguments and the result, tensors of shape
    ``[batch_size, ...]``, are as of `batch`.
    """
    make = _in_order(capacity, dynamic_pad, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "batch_join"
    return _batches(taken, tensors_list, True, enqueue_many, shapes, make)


@checked
def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Positive | Tensor,
    capacity: PositiveCapacity = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch_join`, of those examples for which `keep_input`, a bool scalar or vector as of `maybe_batch`, holds."""
    make = _in_order(capacity, dynamic_pad, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "maybe_batch_join"
    return _batches(taken, tensors_list, keep_input, enqueue_many, shapes, make)


@checked
def shuffle_batch(
    tensors: Any,
    batch_size: Positive | Tensor,
    capacity: PositiveCapacity,
    min_after_dequeue: Remaining,
    num_threads: Positive = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of examples in random order.

    Args:
        tensors: As of `batch`: tensors of any shape. So are the arguments that are not told here.
        batch_size: As of `batch`, an integer scalar.
        min_after_dequeue: Smallest number of examples that stay in the queue, from which the next batch is chosen.
        seed: Seed of the order; see `tf.set_random_seed`.
        shapes: Shapes, as of `batch`.

    Returns:
        As of `batch`: tensors of shape ``[batch_size, ...]``.

    Raises:
        ValueError: The queue never holds more than what is to stay in it.

    Examples:
        >>> tf.train.shuffle_batch([tf.ones([8, 8, 3])], 16, capacity=100, min_after_dequeue=50).shape.as_list()
        [16, 8, 8, 3]
    """
    make = _shuffled(capacity, min_after_dequeue, seed, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "shuffle_batch"
    return _batches(taken, [tensors], True, enqueue_many, shapes, make, num_threads)


@checked
def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Positive | Tensor,
    capacity: PositiveCapacity,
    min_after_dequeue: Remaining,
    keep_input: Any,
    num_threads: Positive = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch`, of those examples for which `keep_input` holds, a bool scalar or vector (`maybe_batch`)."""
    make = _shuffled(capacity, min_after_dequeue, seed, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "maybe_shuffle_batch"
    return _batches(taken, [tensors], keep_input, enqueue_many, shapes, make, num_threads)


@checked
def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Positive | Tensor,
    capacity: PositiveCapacity,
    min_after_dequeue: Remaining,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch`, of examples from several places, each with a thread of its own.

    `tensors_list` is a list of what `batch` takes as `tensors`. The other arguments and the result, tensors of shape
    ``[batch_size, ...]``, are as of `shuffle_batch`.
    """
    make = _shuffled(capacity, min_after_dequeue, seed, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "shuffle_batch_join"
    return _batches(taken, tensors_list, True, enqueue_many, shapes, make)


@checked
def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Positive | Tensor,
    capacity: PositiveCapacity,
    min_after_dequeue: Remaining,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch_join`, of those examples for which `keep_input` holds, a bool scalar or vector."""
    make = _shuffled(capacity, min_after_dequeue, seed, shared_name)
    taken = batch_size, allow_smaller_final_batch, name or "maybe_shuffle_batch_join"
    return _batches(taken, tensors_list, keep_input, enqueue_many, shapes, make)


# -- how -----------------------------------------------------------------------------------------------


def _in_order(capacity: int, dynamic_pad: bool, shared_name: str | None) -> MakeQueue:
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return lambda types, shapes: kind(capacity, types, shapes, shared_name=shared_name)


def _shuffled(capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None) -> MakeQueue:
    if capacity <= min_after_dequeue:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}")
    return lambda types, shapes: RandomShuffleQueue(
        capacity, min_after_dequeue, types, shapes, seed=seed, shared_name=shared_name
    )


def _batches(
    taken: tuple[Any, bool, str],
    examples: Sequence[Any],
    keep_input: Any,
    enqueue_many: bool,
    shapes: Any,
    make_queue: MakeQueue,
    num_threads: int = 1,
) -> Any:
    """Batches of a queue of their own; `taken` is the batch size, whether the last may be smaller, and their name."""
    batch_size, smaller, name = taken
    with get_default_graph().name_scope(name) as scope:
        batches = _Batches(examples, keep_input, enqueue_many, shapes, make_queue, num_threads)
        return batches.take(batch_size, smaller, scope)


class _Batches:
    """A queue, the runner that fills it, and batches from it.

    Args:
        examples: The tensors of one example, for each source of examples.
        keep_input: Whether to keep an example.
        enqueue_many: Whether the tensors hold several examples.
        shapes: Shapes of the tensors of one example, or None.
        make_queue: Makes the queue from dtypes and shapes.
        num_threads: Threads for each source.
    """

    def __init__(
        self,
        examples: Sequence[Any],
        keep_input: Any,
        enqueue_many: bool,
        shapes: Any,
        make_queue: MakeQueue,
        num_threads: int,
    ) -> None:
        if not examples:
            raise ValueError("there must be at least one list of tensors")
        self._many = enqueue_many
        self._original = examples[0]
        kinds = [sorted(each, key=str) if isinstance(each, Mapping) else None for each in examples]
        if any(kind != kinds[0] for kind in kinds):
            raise ValueError(f"the dictionaries of tensors must have the same keys, got {kinds}")
        columns = [self._columns(tensors) for tensors in examples]
        self._sparse = [value if isinstance(value, SparseTensor) else None for value in columns[0]]
        self._keep = self._checked_keep(keep_input)
        dense = [[self._dense(value) for value in values] for values in columns]
        types = [tensor.dtype for tensor in dense[0]]
        for other in dense[1:]:
            if len(other) != len(types):
                raise ValueError(f"the lists of tensors have {len(types)} and {len(other)} tensors, expected the same")
            if [tensor.dtype for tensor in other] != types:
                raise TypeError(f"the lists of tensors differ in dtypes: {types} and {[t.dtype for t in other]}")
        self._queue = make_queue(types, self._shapes_of(dense) if shapes is None else shapes)
        ops = [self._enqueue(values) for values in dense]
        add_queue_runner(QueueRunner(self._queue, ops * num_threads))

    def take(self, batch_size: Any, smaller: bool, name: str) -> Any:
        """Tensors of a batch, in the structure of the examples; `name` is that of the operation that takes it."""
        dequeue = self._queue.dequeue_up_to if smaller else self._queue.dequeue_many
        attrs = self._queue.queue_ref.op.attrs
        tell_fraction(self._queue, attrs["capacity"], attrs.get("min_after_dequeue", 0))
        taken = dequeue(batch_size, name=name)
        values = [taken] if isinstance(taken, Tensor) else taken
        results = [
            value if sparse is None else restored_sparse(value, sparse, self._many)
            for value, sparse in zip(values, self._sparse, strict=True)
        ]
        if isinstance(self._original, Mapping):
            return dict(zip(sorted(self._original, key=str), results, strict=True))
        return results[0] if len(results) == 1 else results

    @staticmethod
    def _columns(tensors: Any) -> list[Any]:
        if isinstance(tensors, Mapping):
            tensors = [tensors[key] for key in sorted(tensors, key=str)]
        elif not isinstance(tensors, (list, tuple)):
            tensors = [tensors]
        if not tensors:
            raise ValueError("there must be at least one tensor")
        return [value if isinstance(value, SparseTensor) else convert_to_tensor(value) for value in tensors]

    def _checked_keep(self, keep_input: Any) -> Tensor:
        keep = convert_to_tensor(keep_input, dtypes.bool_)
        if keep.shape.rank is None:
            raise ValueError("`keep_input` dimensions must be known at graph construction.")
        if keep.shape.rank == 1 and not self._many:
            raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
        if keep.shape.rank > 1:
            raise ValueError("`keep_input` must be 0 or 1 dimensions.")
        return keep

    def _dense(self, value: Any) -> Tensor:
        if not isinstance(value, SparseTensor):
            return value
        serialize = sparse_transport_ops.serialize_many_sparse if self._many else sparse_transport_ops.serialize_sparse
        return serialize(value)

    def _shapes_of(self, dense: list[list[Tensor]]) -> list[TensorShape]:
        for tensor in (tensor for values in dense for tensor in values if tensor.shape.rank is None):
            raise ValueError(f"Cannot infer Tensor's rank: {tensor!r}")
        return [_common([self._one(tensor.shape) for tensor in column]) for column in zip(*dense, strict=True)]

    def _one(self, shape: TensorShape) -> TensorShape:
        """The shape of one example."""
        return shape[1:] if self._many else shape

    def _enqueue(self, tensors: list[Tensor]) -> Operation:
        keep, add = self._keep, self._queue.enqueue_many if self._many else self._queue.enqueue
        if keep.shape.rank == 1:
            return add([array_ops.boolean_mask(tensor, keep) for tensor in tensors])
        known = constant_value(keep)
        if known is not None:
            return add(tensors) if known else no_op()
        done: Operation = cond(keep, lambda: add(tensors), no_op).op
        return done


def _common(shapes: Sequence[TensorShape]) -> TensorShape:
    """The shape with what is known of any of these."""
    merged = shapes[0]
    for shape in shapes[1:]:
        merged = merged.merge_with(shape)
    return merged


def restored_sparse(value: Tensor, sparse: SparseTensor, many: bool = False) -> SparseTensor:
    """A batch of `sparse`, from examples of it that were serialized; from batches of them if `many`."""
    rank = sparse.dense_shape.shape.num_elements()
    if rank is not None and many:
        rank -= 1
    return sparse_transport_ops.deserialize_many_sparse(value, sparse.values.dtype, rank)
