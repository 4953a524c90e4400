"""Recurrent networks that take a whole sequence, ``[time, batch, size]``, in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.rnn.rnn import dynamic_rnn, static_rnn
from tfray.library.rnn.rnn_cell_base import RNNCell
from tfray.library.rnn.rnn_cells import LSTMBlockCell, LSTMStateTuple
from tfray.library.variables.variable_scope import ScopeLike
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops


class FusedRNNCell(ABC):
    """What is called with a whole sequence, ``[steps, batch, size]``, as a cell is with one step."""

    @abstractmethod
    def __call__(
        self,
        inputs: Tensor | Sequence[TensorLike],
        initial_state: Structure = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: ScopeLike | None = None,
    ) -> tuple[Any, Any]:
        """Outputs and last state.

        Args:
            inputs: The steps, ``[steps, batch, size]``, or a list of them.
            initial_state: The first state; zeros when None.
            dtype: Dtype of the state and the outputs; needed without a first state.
            sequence_length: Lengths of the sequences, integers ``[batch]``; all steps count when None.
            scope: Variable scope.

        Returns:
            The outputs in the form of `inputs`, and the last state.
        """


class LSTMBlockFusedCell:
    """An LSTM over a whole sequence.

    Args:
        num_units: Size of the memory and of the output.
        forget_bias: Added to the forget gate.
        cell_clip: Bound of the memory's absolute values.
        use_peephole: Let the gates see the memory.
        reuse: Use variables that exist.
        dtype: Dtype of the variables; that of the first inputs when None.
        name: Name of the variable scope.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Reuse | None = None,
        dtype: DTypeLike | None = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        self._cell = LSTMBlockCell(num_units, forget_bias, cell_clip, use_peephole, dtype, reuse, name)

    @property
    def num_units(self) -> int:
        """Size of the memory and of the output."""
        return self._cell.output_size

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables."""
        return self._cell.trainable_variables

    def __call__(
        self,
        inputs: TensorLike,
        initial_state: Any = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: ScopeLike | None = None,
    ) -> tuple[Tensor, LSTMStateTuple]:
        """Run over a sequence; arguments and results as for `tf.nn.dynamic_rnn` with ``time_major=True``."""
        inputs = _stacked(inputs)
        outputs, state = dynamic_rnn(
            self._cell,
            inputs,
            sequence_length,
            None if initial_state is None else LSTMStateTuple(*initial_state),
            dtype or inputs.dtype,
            time_major=True,
            scope=self._cell.first_scope(scope),
        )
        return outputs, state


def _stacked(inputs: TensorLike) -> Tensor:
    return array_ops.stack(list(inputs)) if isinstance(inputs, (list, tuple)) else convert_to_tensor(inputs)


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell that is called with a whole sequence.

    Args:
        cell: The cell.
        use_dynamic_rnn: Run it in a loop; otherwise the graph holds it once for each step.
    """

    def __init__(self, cell: RNNCell, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._dynamic = use_dynamic_rnn

    def __call__(
        self,
        inputs: Tensor | Sequence[TensorLike],
        initial_state: Structure = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: ScopeLike | None = None,
    ) -> tuple[Any, Any]:
        """Outputs and last state. A list of inputs gives a list of outputs."""
        if self._dynamic:
            return dynamic_rnn(
                self._cell, _stacked(inputs), sequence_length, initial_state, dtype, time_major=True, scope=scope
            )
        as_list = isinstance(inputs, (list, tuple))
        steps = list(inputs) if isinstance(inputs, (list, tuple)) else array_ops.unstack(convert_to_tensor(inputs))
        outputs, state = static_rnn(self._cell, steps, initial_state, dtype, sequence_length, scope)
        return outputs if as_list else nest.map_structure(lambda *parts: array_ops.stack(list(parts)), *outputs), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Runs a network over sequences from their ends to their beginnings.

    Args:
        cell: What is called with a whole sequence.
    """

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: TensorLike,
        initial_state: Structure = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: ScopeLike | None = None,
    ) -> tuple[Tensor, Any]:
        """Outputs in the order of `inputs`, and the state after the first step."""
        reverse = _reversal(sequence_length)
        outputs, state = self._cell(reverse(_stacked(inputs)), initial_state, dtype, sequence_length, scope)
        return reverse(_stacked(outputs)), state


def _reversal(sequence_length: TensorLike | None) -> Any:
    if sequence_length is None:
        return lambda values: array_ops.reverse(values, [0])
    return lambda values: array_ops.reverse_sequence(values, sequence_length, seq_axis=0, batch_axis=1)
