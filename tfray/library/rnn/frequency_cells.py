"""LSTM cells that also run over the parts of each input, such as the frequencies of a sound (``tf.contrib.rnn``)."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.platform import logging
from tfray.library.rnn.rnn_cell_base import RNNCell, batch_size_of
from tfray.library.variables.initializers import InitializerLike, Zeros
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn import nn_ops

Memory = tuple[Tensor, Tensor]
"""What a cell remembers, and its output."""


class _FrequencyCell(RNNCell):
    """A cell that runs over the parts of its inputs."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool,
        cell_clip: float | None,
        num_unit_shards: int,
        forget_bias: float,
        feature_size: int | None,
        frequency_skip: int | None,
        reuse: Reuse | None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_unit_shards != 1:
            raise InvalidArgumentError(f"{type(self).__name__}: num_unit_shards is {num_unit_shards}, must be 1")
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._forget_bias = forget_bias
        self._feature_size = feature_size
        self._frequency_skip = frequency_skip

    def _parts(self, inputs: Tensor, start: int, end: int, offset: int = 0) -> list[Tensor]:
        """The parts from one place to another."""
        size, skip = self._feature_size, self._frequency_skip
        if size is None or skip is None:
            raise ValueError(f"{type(self).__name__} needs feature_size and frequency_skip")
        count = int((end - start - size) / skip) + 1
        first = start + offset
        return [array_ops.slice(inputs, [0, first + i * skip], [-1, size]) for i in range(count)]

    def _input_size(self, inputs: Tensor) -> int:
        size = inputs.shape.with_rank(2).as_list()[1]
        if size is None:
            raise ValueError("Cannot infer input_size from static shape inference.")
        return int(size)

    def _clipped(self, memory: Tensor) -> Tensor:
        return memory if self._cell_clip is None else clip_by_value(memory, -self._cell_clip, self._cell_clip)

    def _old(self, state: Tensor, index: int) -> Memory:
        """One of the memories that are joined in a state."""
        units = self._num_units
        first, second = (array_ops.slice(state, [0, (2 * index + i) * units], [-1, units]) for i in range(2))
        return first, second


class TimeFreqLSTMCell(_FrequencyCell):
    """LSTM with peepholes that runs over the parts of each input, with the same weights (Sainath and Li, 2016).

    The output has those of all parts. So has the state, the memory and the output of each; but `state_size` is that of
    one part, as in TensorFlow: the first state must be given.

    Args:
        num_units: Size of the memory of each part.
        use_peepholes: Let gates see the memory.
        cell_clip: Bound of the memory.
        initializer: Not used: weights are initialized as the variable scope says.
        num_unit_shards: Only 1: the weights are one variable.
        forget_bias: Added to the forget gate.
        feature_size: Size of each part.
        frequency_skip: Distance between the beginnings of parts.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int = 1,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, num_unit_shards, forget_bias, feature_size, frequency_skip, reuse
        )

    @property
    def state_size(self) -> int:
        return 2 * self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        inputs, units = convert_to_tensor(inputs), self._num_units
        parts = self._parts(inputs, 0, self._input_size(inputs))
        size, dtype = int(parts[0].shape[1]), inputs.dtype
        kernel = get_variable("W_0", [size + 2 * units, 4 * units], dtype)
        bias = get_variable("B", [4 * units], dtype, Zeros())
        peepholes: list[Any] = [0.0] * 3
        if self._use_peepholes:
            peepholes = [get_variable(f"W_{gate}_diag", [units], dtype) for gate in "FIO"]
        made: list[Tensor] = []
        output = array_ops.zeros([batch_size_of(inputs), units], dtype)
        for index, part in enumerate(parts):
            memory, before = self._old(state, index)
            seen = array_ops.concat([part, before, output], 1)
            i, j, f, o = array_ops.split(nn_ops.bias_add(linalg_ops.matmul(seen, kernel), bias), 4, 1)
            forget = sigmoid(f + self._forget_bias + peepholes[0] * memory)
            memory = self._clipped(forget * memory + sigmoid(i + peepholes[1] * memory) * tanh(j))
            output = sigmoid(o + peepholes[2] * memory) * tanh(memory)
            made += [memory, output]
        return array_ops.concat(made[1::2], 1), array_ops.concat(made, 1)


class _Weights(NamedTuple):
    """Weights of one way through the grid; what gates see of the memories, by gate."""

    kernel: Any
    bias: Any
    peepholes: Mapping[str, tuple[Any, Any]]


class GridLSTMCell(_FrequencyCell):
    """LSTM that runs over time and over the parts of each input, with memories of both (arXiv:1507.01526).

    Args:
        num_units: Size of each memory.
        use_peepholes: Let gates see the memories.
        share_time_frequency_weights: Use the same weights both ways.
        cell_clip: Bound of the memories.
        initializer: Not used: weights are initialized as the variable scope says.
        num_unit_shards: Only 1: the weights are one variable.
        forget_bias: Added to the forget gate.
        feature_size: Size of each part.
        frequency_skip: Distance between the beginnings of parts.
        num_frequency_blocks: How many parts each block of the input has.
        start_freqindex_list: Where each block begins; one block, of the whole input, when None.
        end_freqindex_list: Where it ends.
        couple_input_forget_gates: Take what the input gate leaves for the forget gate.
        state_is_tuple: States are tuples with a memory and an output for each part; otherwise they are joined, and all
            blocks read the states of the first.
        reuse: Use variables that exist.

    Raises:
        ValueError: The number of blocks, or of their parts, is none or another one than the input has.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, num_unit_shards, forget_bias, feature_size, frequency_skip, reuse
        )
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        if not state_is_tuple:
            logging.warning("%s: a joined state is slower: use state_is_tuple=True", self)
        self._blocks = [int(count) for count in num_frequency_blocks]
        self._bounds = start_freqindex_list, end_freqindex_list
        self._ways = ("freq",) if share_time_frequency_weights else ("freq", "time")
        self._is_coupled = couple_input_forget_gates
        self._make_state: Any = _state_type("GridLSTMStateTuple", ["state"], self._blocks) if state_is_tuple else None

    @property
    def state_tuple_type(self) -> Any:
        """The class of the states; None where they are joined."""
        return self._make_state

    @property
    def state_size(self) -> Any:
        if self._make_state is None:
            return 2 * self._num_units * sum(self._blocks)
        return self._make_state(*[self._num_units] * len(self._make_state._fields))

    @property
    def output_size(self) -> int:
        return 2 * self._num_units * sum(self._blocks)

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        blocks = self._cut(convert_to_tensor(inputs))
        outputs, states = self._run(blocks, state, "state")
        new: Any = array_ops.concat(states, 1) if self._make_state is None else self._make_state(*states)
        return array_ops.concat(outputs, 1), new

    def _cut(self, inputs: Tensor, offset: int = 0) -> list[list[Tensor]]:
        """The parts of each block, moved by an offset."""
        size, (starts, ends) = self._input_size(inputs), self._bounds
        if not starts:
            starts, ends = [0], [size]
        if len(starts) != len(ends or ()):
            raise ValueError(f"Length of start and end freqindex_list does not match: {starts}, {ends}")
        if len(self._blocks) != len(starts):
            raise ValueError(f"Length of num_frequency_blocks is not {len(starts)}, but instead is {len(self._blocks)}")
        if offset:
            inputs = array_ops.pad(inputs, [[0, 0], [max(0, -offset), max(0, offset)]])
        blocks = [
            self._parts(inputs, start, end, max(0, offset)) for start, end in zip(starts, ends or (), strict=True)
        ]
        for parts, count in zip(blocks, self._blocks, strict=True):
            if len(parts) != count:
                raise ValueError(
                    f"Invalid num_frequency_blocks, requires {len(parts)} but gets {count}, please check the input "
                    "size and filter config are correct."
                )
        return blocks

    def _run(self, blocks: Sequence[Sequence[Tensor]], state: Any, prefix: str) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs and the new states of all parts."""
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for block, parts in enumerate(blocks):
            weights = self._weights(block, int(parts[0].shape[1]), parts[0].dtype)
            nothing = array_ops.zeros([batch_size_of(parts[0]), self._num_units], parts[0].dtype)
            frequency: Memory = nothing, nothing
            for index, part in enumerate(parts):
                if self._make_state is None:
                    time = self._old(state, index)
                else:
                    name = f"{prefix}_f{index:02d}_b{block:02d}"
                    time = getattr(state, f"{name}_c"), getattr(state, f"{name}_m")
                frequency, time = self._step(part, frequency, time, weights)
                outputs += [time[1], frequency[1]]
                states += time
        return outputs, states

    def _weights(self, block: int, size: int, dtype: DType) -> list[_Weights]:
        units, gates = self._num_units, "IO" if self._is_coupled else "FIO"
        width = (len(gates) + 1) * units
        kernels = [
            (
                get_variable(f"W_{way[0]}_{block}_0", [size + 2 * units, width], dtype),
                get_variable(f"B_{way[0]}_{block}", [width], dtype, Zeros()),
            )
            for way in self._ways
        ]
        seen = [
            {
                gate: tuple(get_variable(f"W_{gate}_diag_{way}{each}_{block}", [units], dtype) for each in "ft")
                for gate in (gates if self._use_peepholes else "")
            }
            for way in self._ways
        ]
        return [_Weights(*both, each) for both, each in zip(kernels, seen, strict=True)]

    def _step(
        self, part: Tensor, frequency: Memory, time: Memory, weights: Sequence[_Weights]
    ) -> tuple[Memory, Memory]:
        inputs = array_ops.concat([part, time[1], frequency[1]], 1)
        made = [nn_ops.bias_add(linalg_ops.matmul(inputs, each.kernel), each.bias) for each in weights]
        gates = [array_ops.split(each, 3 if self._is_coupled else 4, 1) for each in made]
        pairs = list(zip(weights, gates, strict=True)) * (1 if len(weights) == 2 else 2)  # shared ones serve both ways
        old = frequency[0], time[0]
        new = [
            self._clipped(self._memory(each, own, memory, old)) for (each, own), memory in zip(pairs, old, strict=True)
        ]
        (new_frequency, new_time) = (
            (memory, sigmoid(own[-1] + _seen(each, "O", new)) * tanh(memory))
            for (each, own), memory in zip(pairs, new, strict=True)
        )
        return new_frequency, new_time

    def _memory(self, weights: _Weights, gates: Sequence[Tensor], memory: Tensor, old: Sequence[Tensor]) -> Tensor:
        """The new memory of one way."""
        taken = sigmoid(gates[0] + _seen(weights, "I", old))
        kept = 1 - taken if self._is_coupled else sigmoid(gates[2] + self._forget_bias + _seen(weights, "F", old))
        return kept * memory + taken * tanh(gates[1])


def _seen(weights: _Weights, gate: str, memories: Sequence[Tensor]) -> Any:
    """What a gate sees of the memories, of frequencies and of time."""
    return sum((each * memory for each, memory in zip(weights.peepholes.get(gate, ()), memories, strict=False)), 0.0)


def _state_type(name: str, prefixes: Sequence[str], blocks: Sequence[int]) -> Any:
    places = [f"f{i:02d}_b{block:02d}" for block, count in enumerate(blocks) for i in range(count)]
    # The names say where each state is from; only tuples of this class have them.
    return collections.namedtuple(
        name, [f"{prefix}_{place}_{what}" for prefix in prefixes for place in places for what in "cm"]
    )


class BidirectionalGridLSTMCell(GridLSTMCell):
    """`GridLSTMCell` that runs over the parts of each input forward, and backward with other weights.

    Args:
        num_units: Size of each memory.
        use_peepholes: See there, as for the others.
        share_time_frequency_weights: See there.
        cell_clip: See there.
        initializer: See there.
        num_unit_shards: See there.
        forget_bias: See there.
        feature_size: See there.
        frequency_skip: See there.
        num_frequency_blocks: See there.
        start_freqindex_list: See there.
        end_freqindex_list: See there.
        couple_input_forget_gates: See there.
        backward_slice_offset: By how much the parts are further to the right in the way backward.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes,
            share_time_frequency_weights,
            cell_clip,
            initializer,
            num_unit_shards,
            forget_bias,
            feature_size,
            frequency_skip,
            num_frequency_blocks,
            start_freqindex_list,
            end_freqindex_list,
            couple_input_forget_gates,
            reuse=reuse,
        )
        self._offset = int(backward_slice_offset)
        prefixes = ["fwd_state", "bwd_state"]
        self._make_state = _state_type("BidirectionalGridLSTMStateTuple", prefixes, self._blocks)

    @property
    def output_size(self) -> int:
        return 2 * super().output_size

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        inputs = convert_to_tensor(inputs)
        with variable_scope("fwd"):
            outputs, states = self._run(self._cut(inputs), state, "fwd_state")
        with variable_scope("bwd"):
            back = [parts[::-1] for parts in self._cut(inputs, self._offset)]
            more_outputs, more_states = self._run(back, state, "bwd_state")
        return array_ops.concat([*outputs, *more_outputs], 1), self._make_state(*states, *more_states)
