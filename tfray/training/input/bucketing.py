"""Batches of examples that belong together: ``tf.contrib.training.bucket``, mostly for sequences of like lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.errors import CancelledError, OutOfRangeError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import int32
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.queues import FIFOQueue, PaddingFIFOQueue
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import case, cond
from tfray.ops.math import math_ops
from tfray.ops.sparse.sparse_transport_ops import serialize_sparse
from tfray.training.input.batching import restored_sparse
from tfray.training.threads.queue_runner import QueueRunner, add_queue_runner


def bucket(
    tensors: Any,
    which_bucket: TensorLike,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Put examples into buckets, each of which gives batches as soon as it has enough.

    Args:
        tensors: The parts of an example: a list, or a dictionary; each a tensor, or a sparse one.
        which_bucket: Index of its bucket, an int32 scalar.
        batch_size: Size of the batches, or one for each bucket.
        num_buckets: How many buckets.
        num_threads: Threads that fill the buckets.
        capacity: How many batches wait, and how many examples in each bucket.
        bucket_capacities: How many examples wait in each bucket.
        shapes: Shapes of the parts; those of `tensors` when None.
        dynamic_pad: Pad the parts of a batch to one size with zeros.
        allow_smaller_final_batch: Give what is left in the end as well.
        keep_input: Take this example.
        shared_name: Name under which other sessions find the queue.
        name: Name of the operations.

    Returns:
        The index of a bucket, and a batch of it in the form of `tensors`.

    Raises:
        ValueError: There are no tensors, or the numbers of buckets, sizes and capacities do not agree.
    """
    names = sorted(tensors) if isinstance(tensors, Mapping) else None
    given = [tensors[each] for each in names] if names is not None else list(tensors)
    if not given:
        raise ValueError("Expected at least one tensor")
    sizes = list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size] * num_buckets
    capacities = list(bucket_capacities) if bucket_capacities is not None else [capacity] * num_buckets
    if len(sizes) != num_buckets or len(capacities) != num_buckets:
        raise ValueError(
            f"batch_size and bucket_capacities must have exactly num_buckets elements, which is {num_buckets}"
        )
    with get_default_graph().name_scope(name or "bucket"):
        sparse = [each if isinstance(each, SparseTensor) else None for each in given]
        parts = [
            convert_to_tensor(each) if of is None else serialize_sparse(of)
            for each, of in zip(given, sparse, strict=True)
        ]
        known = [TensorShape(each) for each in shapes] if shapes is not None else [part.shape for part in parts]
        make = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        dtypes = [part.dtype for part in parts]
        queues = [make(room, dtypes, known, name=f"bucket_queue_{index}") for index, room in enumerate(capacities)]
        batches = FIFOQueue(capacity, [int32, *dtypes], shared_name=shared_name, name="top_queue")
        _fill(queues, parts, convert_to_tensor(which_bucket, int32), keep_input, num_threads)
        _pass_on(queues, batches, sizes, allow_smaller_final_batch)
        index, *values = batches.dequeue(name="dequeue_top")
        size = sizes[0] if len(set(map(str, sizes))) == 1 and not allow_smaller_final_batch else None
        index.set_shape([])
        for value, shape in zip(values, known, strict=True):
            value.set_shape(TensorShape([size if isinstance(size, int) else None]).concatenate(shape))
        results = [
            value if of is None else restored_sparse(value, of) for value, of in zip(values, sparse, strict=True)
        ]
        return index, dict(zip(names, results, strict=True)) if names is not None else results


def _fill(
    queues: Sequence[Any], parts: Sequence[Tensor], which: Tensor, keep_input: TensorLike, num_threads: int
) -> None:
    def into(queue: Any) -> Callable[[], Operation]:
        return lambda: group(queue.enqueue(parts))

    choices = [(math_ops.equal(which, index), into(queue)) for index, queue in enumerate(queues[:-1])]

    def taken() -> Any:
        return case(choices, default=into(queues[-1])) if choices else into(queues[-1])()

    take = taken() if keep_input is True else cond(convert_to_tensor(keep_input), taken, no_op)
    close = group(*(queue.close() for queue in queues))
    cancel = group(*(queue.close(cancel_pending_enqueues=True) for queue in queues))
    add_queue_runner(QueueRunner(queues[0], [group(take)] * num_threads, close, cancel))


def _pass_on(queues: Sequence[Any], batches: Any, sizes: Sequence[Any], allow_smaller_final_batch: bool) -> None:
    steps = []
    for index, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        found = (queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many)(size)
        values = list(found) if isinstance(found, (list, tuple)) else [found]
        steps.append(batches.enqueue([convert_to_tensor(index, int32), *values]))
    runner = QueueRunner(
        batches,
        steps,
        batches.close(),
        batches.close(cancel_pending_enqueues=True),
        queue_closed_exception_types=(OutOfRangeError, CancelledError),
    )
    add_queue_runner(runner)


def bucket_by_sequence_length(
    input_length: TensorLike,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """`bucket` by lengths.

    Args:
        input_length: Length of the example, an int32 scalar.
        tensors: As for `bucket`.
        batch_size: Likewise; there is one bucket more than there are boundaries.
        bucket_boundaries: Increasing lengths: the second bucket begins with the first of them.
        num_threads: As for `bucket`.
        capacity: Likewise.
        bucket_capacities: Likewise.
        shapes: Likewise.
        dynamic_pad: Likewise.
        allow_smaller_final_batch: Likewise.
        keep_input: Likewise.
        shared_name: Likewise.
        name: Likewise.

    Returns:
        The lengths of the examples of a batch, and the batch in the form of `tensors`.

    Raises:
        ValueError: There are no boundaries, or they do not increase.
    """
    boundaries = list(bucket_boundaries)
    if not boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    if any(before >= after for before, after in itertools.pairwise(boundaries)):
        raise ValueError(f"Buckets must be in increasing order: {boundaries}")
    with get_default_graph().name_scope(name or "bucket_by_sequence_length"):
        length = convert_to_tensor(input_length, int32)
        which = math_ops.reduce_sum(array_ops.cast(math_ops.greater_equal(length, boundaries), int32))
        names = sorted(tensors) if isinstance(tensors, Mapping) else None
        given = [tensors[each] for each in names] if names is not None else list(tensors)
        _, (lengths, *values) = bucket(
            [length, *given],
            which,
            batch_size,
            len(boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            [[], *shapes] if shapes is not None else None,
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        return lengths, dict(zip(names, values, strict=True)) if names is not None else values
