"""Recurrent networks under the names of TensorFlow's layers for cuDNN, made of cells: they run on every device."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.library.rnn.rnn import dynamic_rnn, stack_bidirectional_dynamic_rnn
from tfray.library.rnn.rnn_cell_base import RNNCell
from tfray.library.rnn.rnn_cell_wrappers import DropoutWrapper, MultiRNNCell, linear
from tfray.library.rnn.rnn_cells import BasicRNNCell, GRUCell, LSTMBlockCell, LSTMStateTuple
from tfray.library.variables import initializers
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.join_ops import split, stack, unstack
from tfray.ops.arrays.shape_ops import transpose
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn.activation_ops import relu

CUDNN_RNN_UNIDIRECTION: Final = "unidirectional"
CUDNN_RNN_BIDIRECTION: Final = "bidirectional"


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """The cell of `CudnnLSTM`: without peepholes, and nothing is added to the forget gate.

    Args:
        num_units: Size of the memory and of the output.
        reuse: Use variables that exist.
    """

    def __init__(self, num_units: int, reuse: Any = None) -> None:
        super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """The cell of `CudnnGRU`: the reset gate acts on the product of state and weights, not on the state.

    Args:
        num_units: Size of the state.
        reuse: Use variables that exist.
        kernel_initializer: Initializer of the weights.
    """

    def __init__(self, num_units: int, reuse: Any = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, inputs_shape: Any) -> None:
        self.built = True  # the variables are made where they are used

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        units, kernel = self._num_units, self._kernel_initializer
        with variable_scope("gates"):
            gates = sigmoid(linear([inputs, state], 2 * units, True, initializers.Constant(1.0), kernel))
            reset, update = split(gates, 2, axis=1)
        with variable_scope("candidate"):
            with variable_scope("input_projection"):
                from_input = linear([inputs], units, True, self._bias_initializer, kernel)
            with variable_scope("hidden_projection"):
                from_state = reset * linear([state], units, True, self._bias_initializer, kernel)
        candidate = tanh(from_input + from_state)
        new = (1 - update) * candidate + update * state
        return new, new


class _CudnnRNN:
    """Layers of recurrent cells over a sequence, time first.

    The variables are those of the cells, under the names that TensorFlow gives them in checkpoints.

    Args:
        num_layers: Layers.
        num_units: Units of each layer, in each direction.
        input_mode: ``linear_input`` or ``auto_select``: the first layer has weights for the inputs.
        direction: ``unidirectional`` or ``bidirectional``.
        dropout: Share of a layer's inputs, from the second layer on, that are dropped in training.
        seed: Seed of what is dropped.
        dtype: float16, float32 or float64.
        kernel_initializer: Initializer of the weights.
        bias_initializer: Initializer of the biases.
        name: Name of the layer, and its variable scope.

    Raises:
        InvalidArgumentError: `input_mode` or `direction` is unknown.
    """

    _name: ClassVar[str]

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = CUDNN_RNN_UNIDIRECTION,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        directions = {CUDNN_RNN_UNIDIRECTION: 1, CUDNN_RNN_BIDIRECTION: 2}
        if direction not in directions:
            raise InvalidArgumentError(f"direction={direction!r}: expected one of {', '.join(directions)}")
        if input_mode not in ("linear_input", "auto_select"):
            raise InvalidArgumentError(f"input_mode={input_mode!r}: expected linear_input or auto_select")
        self.num_layers, self.num_units, self.num_dirs = num_layers, num_units, directions[direction]
        self.input_mode, self.direction = input_mode, direction
        self.name = name or self._name
        self._dropout, self._seed, self._dtype = dropout, seed, as_dtype(dtype)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer
        self._variables: list[Variable] | None = None
        self._scope: Any = None

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables, once the layer has been called."""
        return list(self._variables or ())

    variables = trainable_weights = weights = trainable_variables

    def __call__(
        self,
        inputs: TensorLike,
        initial_state: Any = None,
        training: bool = True,
        sequence_lengths: TensorLike | None = None,
        time_major: bool = True,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run the layers.

        Args:
            inputs: ``[time, batch, size]``; ``[batch, time, size]`` unless `time_major`.
            initial_state: As what is returned; zeros when None.
            training: Whether to drop inputs of layers.
            sequence_lengths: int32 ``[batch]``; whole sequences when None.
            time_major: Whether time is the first dimension.

        Returns:
            Outputs ``[time, batch, num_units * directions]``, and a tuple of final states, each ``[num_layers *
            directions, batch, num_units]``.
        """
        inputs = convert_to_tensor(inputs, self._dtype)
        first = None if initial_state is None else self._by_cell(initial_state)
        settings: dict[str, Any] = {"dtype": self._dtype, "sequence_length": sequence_lengths}
        reuse = True if self._variables is not None else None
        with variable_scope(
            self._scope,
            self.name,
            reuse=reuse,
            initializer=self._kernel_initializer,
            custom_getter=self._variable,
            dtype=self._dtype,
        ) as scope:
            if self.num_dirs == 1:
                cell = MultiRNNCell(self._cells(training))
                states = None if first is None else tuple(first)
                outputs, states = dynamic_rnn(cell, inputs, initial_state=states, time_major=time_major, **settings)
                by_cell = list(states)
            else:
                if not time_major:
                    inputs = transpose(inputs, [1, 0, 2])
                outputs, forward, backward = stack_bidirectional_dynamic_rnn(
                    self._cells(training),
                    self._cells(training),
                    inputs,
                    initial_states_fw=None if first is None else first[::2],
                    initial_states_bw=None if first is None else first[1::2],
                    time_major=True,
                    **settings,
                )
                if not time_major:
                    outputs = transpose(outputs, [1, 0, 2])
                by_cell = [state for pair in zip(forward, backward, strict=True) for state in pair]
        self._scope = scope
        self._variables = scope.trainable_variables()
        return outputs, self._stacked(by_cell)

    call = __call__

    def _variable(self, getter: Any, name: str, *args: Any, **kwargs: Any) -> Variable:
        if self._bias_initializer is not None and name.endswith("/bias"):
            kwargs["initializer"] = self._bias_initializer
        return getter(name, *args, **kwargs)

    def _cells(self, training: bool) -> list[RNNCell]:
        cells = [self._cell() for _ in range(self.num_layers)]
        if not training or not self._dropout:
            return cells
        keep = 1.0 - self._dropout
        return [cells[0], *(DropoutWrapper(cell, input_keep_prob=keep, seed=self._seed) for cell in cells[1:])]

    def _cell(self) -> RNNCell:
        raise NotImplementedError

    def _by_cell(self, state: Any) -> list[Any]:
        """The state of each cell."""
        return list(unstack(state[0], self.num_layers * self.num_dirs))

    def _stacked(self, states: list[Any]) -> tuple[Tensor, ...]:
        return (stack(states),)


class CudnnLSTM(_CudnnRNN):
    __doc__ = f"{_CudnnRNN.__doc__}\n    Its state is the pair of outputs and memories."

    _name = "cudnn_lstm"

    def _cell(self) -> RNNCell:
        return CudnnCompatibleLSTMCell(self.num_units)

    def _by_cell(self, state: Any) -> list[Any]:
        count = self.num_layers * self.num_dirs
        return [LSTMStateTuple(c, h) for h, c in zip(unstack(state[0], count), unstack(state[1], count), strict=True)]

    def _stacked(self, states: list[Any]) -> tuple[Tensor, ...]:
        return stack([state.h for state in states]), stack([state.c for state in states])


class CudnnGRU(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__

    _name = "cudnn_gru"

    def _cell(self) -> RNNCell:
        return CudnnCompatibleGRUCell(self.num_units, kernel_initializer=self._kernel_initializer)


class CudnnRNNTanh(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__

    _name = "cudnn_rnn_tanh"

    def _cell(self) -> RNNCell:
        return BasicRNNCell(self.num_units, tanh)


class CudnnRNNRelu(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__

    _name = "cudnn_rnn_relu"

    def _cell(self) -> RNNCell:
        return BasicRNNCell(self.num_units, relu)
