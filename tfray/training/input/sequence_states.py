"""Long sequences in segments, for truncated back-propagation: states go on from each segment to the next."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.barrier import Barrier
from tfray.library.input.queues import FIFOQueue
from tfray.library.namespaces import summary
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.source_ops import placeholder_with_default
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.math import math_ops
from tfray.ops.random.random_ops import random_uniform
from tfray.ops.strings.string_number_ops import as_string
from tfray.ops.strings.string_ops import string_join
from tfray.training.threads.queue_runner import QueueRunner, add_queue_runner


class SequenceQueueingStateSaver:
    """Cuts sequences into segments, and hands out batches of them.

    A segment is ready when the state before it is saved.

    Args:
        batch_size: How many segments a batch has.
        num_unroll: How many steps a segment has.
        input_length: The number of steps of the sequence that count, an integer scalar.
        input_key: Its key, a string scalar, unlike those of the others that are under way.
        input_sequences: By name, tensors whose first dimension is that of the steps: a multiple of `num_unroll`.
        input_context: By name, tensors that all segments have.
        initial_states: By name, the states before the first segment.
        capacity: How many sequences may be under way; any number when None.
        allow_small_batch: Whether the last batch may have fewer segments.
        name: Name scope of the operations.

    Raises:
        TypeError: A sequence is sparse.
        ValueError: The shape of a tensor is not known, but for the number of steps; or there is no state.
    """

    def __init__(
        self,
        batch_size: TensorLike,
        num_unroll: TensorLike,
        input_length: TensorLike,
        input_key: TensorLike,
        input_sequences: Mapping[str, TensorLike],
        input_context: Mapping[str, TensorLike],
        initial_states: Mapping[str, TensorLike],
        capacity: int | None = None,
        allow_small_batch: bool = False,
        name: str | None = None,
    ) -> None:
        if not initial_states:
            raise ValueError("SequenceQueueingStateSaver needs at least one initial state")
        if any(isinstance(value, SparseTensor) for value in input_sequences.values()):
            raise TypeError("SequenceQueueingStateSaver takes dense sequences only")
        if capacity is not None and isinstance(batch_size, int) and capacity < batch_size:
            raise ValueError(f"capacity {capacity} needs to be >= batch_size {batch_size}")
        with get_default_graph().name_scope(name or "SequenceQueueingStateSaver"):
            self._batch_size, self._small = convert_to_tensor(batch_size, dtypes.int32), allow_small_batch
            unroll = convert_to_tensor(num_unroll, dtypes.int32)
            length = array_ops.reshape(array_ops.cast(convert_to_tensor(input_length), dtypes.int32), [])
            key = array_ops.reshape(convert_to_tensor(input_key, dtypes.string), [])
            sequences = {each: convert_to_tensor(value) for each, value in input_sequences.items()}
            context = {each: convert_to_tensor(value) for each, value in input_context.items()}
            self._states = {each: convert_to_tensor(value) for each, value in initial_states.items()}
            steps = [array_ops.shape(value)[0] for value in sequences.values()]
            count = -(-(steps[0] if steps else length) // unroll)
            parts = {f"sequence/{each}": _segments(value, count, unroll) for each, value in sequences.items()}
            parts |= {f"context/{each}": _repeated(value, count) for each, value in context.items()}
            facts, self._keys = _facts_of(key, length, count, unroll)
            parts |= facts
            self._names = [*parts, *(f"state/{each}" for each in self._states)]
            values = [value[0] for value in parts.values()] + list(self._states.values())
            for each, value in zip(self._names, values, strict=True):
                if not value.shape.is_fully_defined():
                    raise ValueError(f"{each}: the shape must be known but for the number of steps, not {value.shape}")
            self._types, self._shapes = [v.dtype for v in values], [v.shape for v in values]
            self._barrier = Barrier(self._types, self._shapes, name="barrier")
            self._capacity = FIFOQueue(sys.maxsize if capacity is None else capacity, dtypes.int32, shapes=[[]])
            self._prefetch_op = self._insertion(parts)
            self._next: NextQueuedSequenceBatch | None = None

    def _insertion(self, parts: Mapping[str, Tensor]) -> Operation:
        """Adds all segments of one sequence, and the state before the first."""
        with get_default_graph().control_dependencies([self._capacity.enqueue(0)]):
            inserts = [self._barrier.insert_many(self.index_of(each), self._keys, parts[each]) for each in parts]
            first = self._keys[:1]
            inserts += [
                self._barrier.insert_many(self.index_of(f"state/{each}"), first, value[None])
                for each, value in self._states.items()
            ]
            return group(*inserts)

    def index_of(self, component: str) -> int:
        """The number of a component of the barrier's elements. Raises `KeyError` if there is none."""
        if component not in self._names:
            kind, _, name = component.partition("/")
            raise KeyError(f"{kind} was not declared: {name}; there are {', '.join(self._names)}")
        return self._names.index(component)

    @property
    def name(self) -> str:
        """Name of the operation that keeps the segments."""
        return self._barrier.name

    @property
    def barrier(self) -> Barrier:
        """What keeps the segments until they are complete."""
        return self._barrier

    @property
    def capacity_queue(self) -> FIFOQueue:
        """Has an element for each sequence that is under way."""
        return self._capacity

    @property
    def prefetch_op(self) -> Operation:
        """The operation that takes the next sequence in."""
        return self._prefetch_op

    @property
    def next_batch(self) -> NextQueuedSequenceBatch:
        """The next batch of segments: always the same object of the graph."""
        if self._next is None:
            self._next = NextQueuedSequenceBatch(self)
        return self._next

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation after which no sequence comes in any more; those under way go on, unless they are cancelled."""
        closing = [each.close(cancel_pending_enqueues) for each in (self._barrier, self._capacity)]
        return group(*closing, name=name)

    def taken(self) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """What a batch has: numbers that tell which segments came first, the keys, and the components by name."""
        indices, keys, values = self._barrier.take_many(self._batch_size, self._small)
        parts = dict(zip(self._names, values, strict=True))
        done = math_ops.equal(parts["sequence_idx"] + 1, parts["sequence_count"])
        ended = self._capacity.dequeue_many(math_ops.reduce_sum(array_ops.cast(done, dtypes.int32)))
        with get_default_graph().control_dependencies([ended]):
            return (
                array_ops.identity(indices),
                array_ops.identity(keys),
                {each: array_ops.identity(value) for each, value in parts.items()},
            )


class NextQueuedSequenceBatch:
    """A batch of segments.

    Args:
        state_saver: What hands it out.
    """

    def __init__(self, state_saver: SequenceQueueingStateSaver) -> None:
        self._saver = state_saver
        with get_default_graph().name_scope("NextQueuedSequenceBatch"):
            indices, self._key, self._parts = state_saver.taken()
            self._index = array_ops.identity(indices)

    def _named(self, kind: str) -> dict[str, Tensor]:
        found = {each.partition("/")[2]: value for each, value in self._parts.items() if each.startswith(f"{kind}/")}
        return dict(sorted(found.items()))

    @property
    def key(self) -> Tensor:
        """Keys of the segments: ``00000_of_00002:`` and the key of the sequence."""
        return self._key

    @property
    def next_key(self) -> Tensor:
        """Keys of the segments after them; ``STOP:`` and the key of the sequence after the last."""
        return self._parts["next_key"]

    @property
    def length(self) -> Tensor:
        """How many steps of each segment count, int32."""
        return self._parts["length"]

    @property
    def total_length(self) -> Tensor:
        """How many steps of each sequence count, int32."""
        return self._parts["total_length"]

    @property
    def sequence_idx(self) -> Tensor:
        """The number of each segment in its sequence, int32."""
        return self._parts["sequence_idx"]

    @property
    def sequence_count(self) -> Tensor:
        """How many segments its sequence has, int32."""
        return self._parts["sequence_count"]

    @property
    def insertion_index(self) -> Tensor:
        """Numbers that grow in the order in which segments came, int64."""
        return self._index

    @property
    def batch_size(self) -> Tensor:
        """How many segments there are, an int32 scalar."""
        return array_ops.shape(self._key)[0]

    @property
    def sequences(self) -> dict[str, Tensor]:
        """The steps of the segments by name, ``[batch_size, num_unroll, ...]``."""
        return self._named("sequence")

    @property
    def context(self) -> dict[str, Tensor]:
        """What belongs to whole sequences by name, ``[batch_size, ...]``."""
        return self._named("context")

    def state(self, state_name: str) -> Tensor:
        """The states before the segments. Raises `KeyError` if there is none of that name."""
        self._saver.index_of(f"state/{state_name}")
        return self._parts[f"state/{state_name}"]

    def save_state(self, state_name: str, value: TensorLike, name: str | None = None) -> Operation:
        """An operation that saves the states after the segments: those of the same sequences go on from them.

        Args:
            state_name: Which state.
            value: The states, ``[batch_size, ...]``.
            name: Name of the operation.

        Raises:
            KeyError: There is none of that name.
            ValueError: `value` has another number of dimensions than the states.
        """
        index = self._saver.index_of(f"state/{state_name}")
        state = self.state(state_name)
        value = convert_to_tensor(value, state.dtype)
        if None not in (value.shape.rank, state.shape.rank) and value.shape.rank != state.shape.rank:
            raise ValueError(f"Rank check failed for {state_name}: {value.shape} cannot follow {state.shape}")
        with get_default_graph().name_scope(name or f"save_state_{state_name}"):
            goes_on = math_ops.less(self.sequence_idx + 1, self.sequence_count)
            rows = array_ops.reshape(array_ops.where(goes_on), [-1])
            keys = array_ops.gather(self.next_key, rows)
            return self._saver.barrier.insert_many(index, keys, array_ops.gather(value, rows))


def _segments(value: Tensor, count: Tensor, unroll: Tensor) -> Tensor:
    sizes = array_ops.concat([array_ops.stack([count, unroll]), array_ops.shape(value)[1:]], 0)
    return array_ops.reshape(value, sizes)


def _repeated(value: Tensor, count: Tensor) -> Tensor:
    repeated = array_ops.broadcast_to(value, array_ops.concat([[count], array_ops.shape(value)], 0))
    repeated.set_shape(TensorShape([None]).concatenate(value.shape))
    return repeated


def _facts_of(key: Tensor, length: Tensor, count: Tensor, unroll: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What is known of the segments of a sequence, and their keys."""
    numbers = array_ops.range(count)
    total = as_string(count, width=5, fill="0")
    keys = string_join([as_string(numbers, width=5, fill="0"), "_of_", total, ":", key])
    facts = {
        "next_key": array_ops.concat([keys[1:], string_join(["STOP:", key])[None]], 0),
        "length": math_ops.maximum(0, math_ops.minimum(unroll, length - numbers * unroll)),
        "total_length": _repeated(length, count),
        "sequence_idx": numbers,
        "sequence_count": _repeated(count, count),
    }
    return facts, keys


def batch_sequences_with_states(
    input_key: TensorLike,
    input_sequences: Mapping[str, TensorLike],
    input_context: Mapping[str, TensorLike],
    input_length: TensorLike | None,
    initial_states: Mapping[str, TensorLike],
    num_unroll: int,
    batch_size: int,
    num_threads: int = 3,
    capacity: int = 1000,
    allow_small_batch: bool = True,
    pad: bool = True,
    make_keys_unique: bool = False,
    make_keys_unique_seed: int | None = None,
    name: str | None = None,
) -> NextQueuedSequenceBatch:
    """Batches of segments of long sequences, whose states go on from each segment to the next.

    A queue runner takes the sequences in.

    Args:
        input_key: The key of a sequence, a string scalar.
        input_sequences: See `SequenceQueueingStateSaver`.
        input_context: Likewise.
        input_length: How many steps count; all of the sequences' when None.
        initial_states: Likewise.
        num_unroll: Likewise.
        batch_size: Likewise.
        num_threads: How many threads take sequences in.
        capacity: How many may be under way.
        allow_small_batch: Likewise.
        pad: Fill sequences with zeros up to a multiple of `num_unroll`. Otherwise they must be that long.
        make_keys_unique: Put random numbers before keys, which may be equal then.
        make_keys_unique_seed: Seed of these numbers.
        name: Name scope of the operations.

    Returns:
        The next batch.

    Raises:
        ValueError: There is neither a length nor a sequence, or as `SequenceQueueingStateSaver` says.
        InvalidArgumentError: While running: a sequence is not a multiple of `num_unroll`, without `pad`.
    """
    with get_default_graph().name_scope(name or "batch_sequences_with_states"):
        sequences = {each: convert_to_tensor(value) for each, value in input_sequences.items()}
        if input_length is None:
            if not sequences:
                raise ValueError("batch_sequences_with_states needs input_length, or a sequence")
            input_length = array_ops.shape(next(iter(sequences.values())))[0]
        ready = _padded if pad else _multiples
        sequences = {each: ready(each, value, num_unroll) for each, value in sequences.items()}
        if make_keys_unique:
            seed = make_keys_unique_seed if make_keys_unique_seed is not None else random.randrange(2**31)
            number = random_uniform([], 0, 2**62, dtypes.int64, seed)
            input_key = string_join([as_string(number), convert_to_tensor(input_key)], ":")
        saver = SequenceQueueingStateSaver(
            batch_size,
            num_unroll,
            input_length,
            input_key,
            sequences,
            input_context,
            initial_states,
            capacity,
            allow_small_batch,
        )
        ready_size = array_ops.cast(saver.barrier.ready_size(), dtypes.float32)
        summary.scalar(f"queue/{saver.barrier.name}/ready_segment_batches_", ready_size)
        ops = [saver.prefetch_op] * num_threads
        add_queue_runner(QueueRunner(saver.capacity_queue, ops, saver.close(), saver.close(True)))
        return saver.next_batch


def _padded(name: str, value: Tensor, num_unroll: int) -> Tensor:
    missing = -array_ops.shape(value)[0] % num_unroll
    rest = TensorShape([None]).concatenate(value.shape[1:])
    zeros = array_ops.zeros(array_ops.concat([[missing], array_ops.shape(value)[1:]], 0), value.dtype)
    padded = array_ops.concat([value, zeros], 0)
    padded.set_shape(rest)
    return padded


def _multiples(name: str, value: Tensor, num_unroll: int) -> Tensor:
    steps = array_ops.shape(value)[0]
    wanted = f"Tensor {name} first dimension should be a multiple of: {num_unroll}, but saw value: "
    says = string_join([wanted, as_string(steps), ". Consider setting pad=True."])
    with get_default_graph().control_dependencies([Assert(math_ops.equal(steps % num_unroll, 0), [says])]):
        # With the number unknown, what is wrong with it is told while running, as everything of the input is.
        return placeholder_with_default(value, TensorShape([None]).concatenate(value.shape[1:]))
