"""Queues that give the elements of a tensor, again and again: file names, numbers, slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework import dtypes
from tfray.framework.arguments import Positive, PositiveCapacity, checked
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.library.input.queues import FIFOQueue, QueueBase
from tfray.library.inspect import summaries
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops, source_ops
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops
from tfray.training.threads.queue_runner import QueueRunner, add_queue_runner


@checked
def limit_epochs(tensor: Any, num_epochs: Positive | None = None, name: str | None = None) -> Tensor:
    """Copy of a tensor that can be computed `num_epochs` times, and then raises `OutOfRangeError`.

    A local variable counts, so run `tf.local_variables_initializer` first.

    Args:
        tensor: Any tensor.
        num_epochs: How often it can be computed; None for no limit.
        name: Name of the operation.

    Raises:
        ValueError: `num_epochs` is not positive.
        OutOfRangeError: While running: it has been computed that often.
    """
    tensor = convert_to_tensor(tensor)
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs is {num_epochs}, expected a positive number or None")
    graph = get_default_graph()
    with graph.name_scope(name or "limit_epochs") as scope:
        zero = source_ops.constant(0, dtypes.int64)
        epochs = Variable(zero, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], name="epochs")
        with graph.control_dependencies([epochs.count_up_to(num_epochs)]):
            return array_ops.identity(tensor, name=scope)


@checked
def input_producer(
    input_tensor: Any,
    element_shape: ShapeLike | None = None,
    num_epochs: Positive | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: PositiveCapacity = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of the rows of a tensor, filled by a `QueueRunner` that is added to the graph.

    Args:
        input_tensor: Its rows are the elements.
        element_shape: Shape of a row, where the graph does not tell.
        num_epochs: How often each row is produced; None for no limit. See `limit_epochs`.
        shuffle: Whether to shuffle the rows anew in each epoch.
        seed: Seed of that; see `tf.set_random_seed`.
        capacity: Capacity of the queue.
        shared_name: Shared name of the queue.
        summary_name: Name of a summary of how full the queue is; None for no summary.
        name: Name of the queue.
        cancel_op: Operation that the runner uses to cancel waiting enqueues.

    Raises:
        ValueError: The shape of the rows is not known.
    """
    with get_default_graph().name_scope(name or "input_producer"):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.shape[1:].merge_with(TensorShape(None) if element_shape is None else element_shape)
        if not shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape, or `element_shape` must be one; they make "
                f"{shape}"
            )
        if shuffle:
            rows = random_ops.random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype], [shape], shared_name=shared_name, name=name or "input_producer")
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            tell_fraction(queue, capacity, name=summary_name)
        return queue


def tell_fraction(queue: QueueBase, capacity: int, least: int = 0, name: str | None = None) -> None:
    """Add a summary of how full a queue is above the `least` number of elements that stay in it."""
    size: Any = queue.size()
    if least:
        size = math_ops.maximum(0, size - least)
        name = name or f"fraction_over_{least}_of_{capacity - least}_full"
    filled = array_ops.cast(size, dtypes.float32) * (1.0 / (capacity - least))
    summaries.scalar(name or f"fraction_of_{capacity}_full", filled)


@checked
def string_input_producer(
    string_tensor: Any,
    num_epochs: Positive | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: PositiveCapacity = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of strings, such as the names of files for a reader.

    Args:
        string_tensor: String vector. The other arguments are as of `input_producer`.

    Raises:
        ValueError: There are no strings.
        InvalidArgumentError: The same, while running.
    """
    nothing = "string_input_producer requires a non-null input tensor, this is empty: does the pattern match no files?"
    if isinstance(string_tensor, (list, tuple)) and not string_tensor:
        raise ValueError(nothing)
    graph = get_default_graph()
    with graph.name_scope(name or "input_producer") as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        if not strings.shape.num_elements():  # unknown, or none: then the queue ends when it is filled
            with graph.control_dependencies([Assert(array_ops.size(strings) > 0, [nothing])]):
                strings = array_ops.identity(strings)
        full = f"fraction_of_{capacity}_full"
        return input_producer(strings, [], num_epochs, shuffle, seed, capacity, shared_name, full, scope, cancel_op)


@checked
def range_input_producer(
    limit: Any,
    num_epochs: Positive | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: PositiveCapacity = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the integers from 0 to ``limit - 1``.

    Args:
        limit: int32 scalar. The other arguments are as of `input_producer`.
    """
    with get_default_graph().name_scope(name or "input_producer") as scope:
        numbers = array_ops.range(limit)
        full = f"fraction_of_{capacity}_full"
        return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, full, scope)


@checked
def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: Positive | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: PositiveCapacity = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """The rows of several tensors, one at a time, with the same row number in all of them.

    Args:
        tensor_list: Tensors with the same number of rows. The other arguments are as of `input_producer`.

    Returns:
        For each tensor its row.

    Raises:
        ValueError: The list is empty.
    """
    with get_default_graph().name_scope(name or "input_producer"):
        tensors = [convert_to_tensor(tensor) for tensor in tensor_list]
        if not tensors:
            raise ValueError("slice_input_producer got an empty list of tensors")
        count = constant_value(array_ops.shape(tensors[0]))
        limit = array_ops.shape(tensors[0])[0] if count is None else int(count[0])
        queue = range_input_producer(limit, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [array_ops.gather(tensor, index) for tensor in tensors]
