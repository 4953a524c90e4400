"""Recurrent cells that only ``tf.contrib.rnn`` has: fewer gates, convolutions in place of products, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.rnn.rnn_cell_base import LayerRNNCell, RNNCell, activation_named, check_is_cell, input_size
from tfray.library.rnn.rnn_cell_wrappers import linear
from tfray.library.rnn.rnn_cells import LSTMStateTuple, normalized
from tfray.library.variables.initializers import Constant, InitializerLike, RandomUniform, Zeros
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn import nn_ops
from tfray.ops.nn.any_rank_conv_ops import convolution
from tfray.ops.nn.cross_entropy_ops import softmax


class _OneState(RNNCell):
    """A cell whose output is its state, or has its size."""

    _num_units: int

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class UGRNNCell(_OneState):
    """Update gate recurrent network (Collins et al., arXiv:1611.09913): ``g * state + (1 - g) * c``.

    Args:
        num_units: Size of the state.
        initializer: Initializer of the weights.
        forget_bias: Added to the gate.
        activation: Makes the candidate ``c``.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        num_units: int,
        initializer: InitializerLike | None = None,
        forget_bias: float = 1.0,
        activation: Activation = tanh,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation_named(activation, tanh)

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        gates = linear([inputs, state], 2 * self._num_units, True, kernel_initializer=self._initializer)
        gate, candidate = array_ops.split(gates, 2, 1)
        gate = sigmoid(gate + self._forget_bias)
        output = gate * state + (1 - gate) * self._activation(candidate)
        return output, output


class IndRNNCell(LayerRNNCell, _OneState):
    """Independently recurrent network (Li et al., arXiv:1803.04831): ``activation(W input + u * state + b)``.

    Args:
        num_units: Size of the state.
        activation: `tanh` when None.
        reuse: Use variables that exist.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._activation = activation_named(activation, tanh)

    def build(self, inputs_shape: ShapeLike) -> None:
        units = self._num_units
        self._kernel_w = self.add_weight("kernel_w", [input_size(self, inputs_shape), units])
        self._kernel_u = self.add_weight("kernel_u", [1, units], initializer=RandomUniform(-1.0, 1.0))
        self._bias = self.add_weight("bias", [units], initializer=Zeros())
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        output = self._activation(_independent(inputs, state, self._kernel_w, self._kernel_u, self._bias))
        return output, output


def _independent(inputs: TensorLike, state: Any, kernel_w: Any, kernel_u: Any, bias: Any) -> Tensor:
    """``W inputs + u * state + b``: every unit sees only its own state, repeated for each gate."""
    return nn_ops.bias_add(linalg_ops.matmul(inputs, kernel_w) + state * kernel_u, bias)


class IndyGRUCell(LayerRNNCell, _OneState):
    """`GRUCell` whose units see only their own state; arguments as there.

    Args:
        num_units: Size of the state.
        activation: `tanh` when None.
        reuse: Use variables that exist.
        kernel_initializer: Initializer of the weights of inputs.
        bias_initializer: Initializer of the biases; ones for the gates and zeros for the candidate when None.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        kernel_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._activation = activation_named(activation, tanh)
        self._initializers = kernel_initializer, bias_initializer

    def build(self, inputs_shape: ShapeLike) -> None:
        size, units = input_size(self, inputs_shape), self._num_units
        kernel, bias = self._initializers
        self._gates = (
            self.add_weight("gates/kernel_w", [size, 2 * units], initializer=kernel),
            self.add_weight("gates/kernel_u", [1, 2 * units], initializer=RandomUniform(-1.0, 1.0)),
            self.add_weight("gates/bias", [2 * units], initializer=bias or Constant(1.0)),
        )
        self._candidate = (
            self.add_weight("candidate/kernel", [size, units], initializer=kernel),
            self.add_weight("candidate/kernel_u", [1, units], initializer=RandomUniform(-1.0, 1.0)),
            self.add_weight("candidate/bias", [units], initializer=bias or Zeros()),
        )
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        gates = sigmoid(_independent(inputs, array_ops.tile(state, [1, 2]), *self._gates))
        reset, update = array_ops.split(gates, 2, 1)
        candidate = self._activation(_independent(inputs, reset * state, *self._candidate))
        output = update * state + (1 - update) * candidate
        return output, output


class IndyLSTMCell(LayerRNNCell):
    """`BasicLSTMCell` whose units see only their own state.

    Args:
        num_units: Size of the memory and of the output.
        forget_bias: Added to the forget gate.
        activation: `tanh` when None.
        reuse: Use variables that exist.
        kernel_initializer: Initializer of the weights of inputs.
        bias_initializer: Initializer of the biases; zeros when None.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        kernel_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation_named(activation, tanh)
        self._initializers = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: ShapeLike) -> None:
        width, (kernel, bias) = 4 * self._num_units, self._initializers
        self._gates = (
            self.add_weight("kernel_w", [input_size(self, inputs_shape), width], initializer=kernel),
            self.add_weight("kernel_u", [1, width], initializer=RandomUniform(-1.0, 1.0)),
            self.add_weight("bias", [width], initializer=bias or Zeros()),
        )
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        i, j, f, o = array_ops.split(_independent(inputs, array_ops.tile(h, [1, 4]), *self._gates), 4, 1)
        new_c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class SRUCell(LayerRNNCell, _OneState):
    """Simple recurrent unit (Lei and Zhang, arXiv:1709.02755): its gates do not depend on the state.

    Args:
        num_units: Size of the state and of the output.
        activation: Of the state in the output; `tanh` when None.
        reuse: Use variables that exist.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units = num_units
        self._activation = activation_named(activation, tanh)

    def build(self, inputs_shape: ShapeLike) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel", [input_size(self, inputs_shape), 4 * units])
        self._bias = self.add_weight("bias", [2 * units], initializer=Zeros())
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        made, forget, reset, skipped = array_ops.split(linalg_ops.matmul(inputs, self._kernel), 4, 1)
        gates = sigmoid(nn_ops.bias_add(array_ops.concat([forget, reset], 1), self._bias))
        forget, reset = array_ops.split(gates, 2, 1)
        following = forget * state + (1 - forget) * made
        return reset * self._activation(following) + (1 - reset) * skipped, following


class CoupledInputForgetGateLSTMCell(RNNCell):
    """LSTM whose input gate is what the forget gate leaves (Greff et al., arXiv:1503.04069).

    Args:
        num_units: Size of the memory.
        use_peepholes: Let gates see the memory.
        initializer: Initializer of the weights.
        num_proj: Size of a projection of the output; None for none.
        proj_clip: Bound of the projected output.
        num_unit_shards: Only 1: the weights are one variable.
        num_proj_shards: Likewise.
        forget_bias: Added to the forget gate.
        state_is_tuple: Take and return an `LSTMStateTuple`; otherwise both parts joined.
        activation: Of the candidate and of the memory in the output.
        reuse: Use variables that exist.
        layer_norm: Normalize the candidate, the gates and the memory; there is no bias then.
        norm_gain: What normalized values are multiplied by at first.
        norm_shift: What is added to them at first.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation = tanh,
        reuse: Reuse | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._layer_norm = layer_norm
        self._norm_starts = Constant(norm_gain), Constant(norm_shift)
        if num_unit_shards != 1 or num_proj_shards != 1:
            raise InvalidArgumentError("CoupledInputForgetGateLSTMCell: num_unit_shards and num_proj_shards must be 1")
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_named(activation, tanh)

    @property
    def state_size(self) -> Any:
        sizes = self._num_units, self.output_size
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        c, h = state if self._state_is_tuple else array_ops.split(state, [self._num_units, self.output_size], 1)
        inputs = convert_to_tensor(inputs)
        units, dtype, weights = self._num_units, inputs.dtype, self._initializer
        kernel = get_variable("W_0", [int(inputs.shape[1]) + self.output_size, 3 * units], dtype, weights)
        bias = get_variable("B", [3 * units], dtype, Zeros())
        gates = linalg_ops.matmul(array_ops.concat([inputs, h], 1), kernel)
        gates = gates if self._layer_norm else nn_ops.bias_add(gates, bias)
        parts = zip(array_ops.split(gates, 3, 1), ("transform", "forget", "output"), strict=True)
        candidate, forget, out = (self._normalized(part, scope) for part, scope in parts)
        seen = [get_variable(f"W_{gate}_diag", [units], dtype, weights) for gate in "FO" * self._use_peepholes]
        if self._use_peepholes:
            forget += seen[0] * c
        forget = sigmoid(forget + self._forget_bias)
        new_c = self._normalized(forget * c + (1 - forget) * self._activation(candidate), "state")
        if self._use_peepholes:
            out += seen[1] * new_c
        new_h = sigmoid(out) * self._activation(new_c)
        if self._num_proj is not None:
            new_h = linalg_ops.matmul(new_h, get_variable("W_P_0", [units, self._num_proj], dtype, weights))
            if self._proj_clip is not None:
                new_h = clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else array_ops.concat([new_c, new_h], 1)

    def _normalized(self, values: Tensor, scope: str) -> Tensor:
        if not self._layer_norm:
            return values
        with variable_scope(scope):
            names = zip(("gamma", "beta"), self._norm_starts, strict=True)
            return normalized(values, *(get_variable(name, [self._num_units], values.dtype, at) for name, at in names))


class ConvLSTMCell(RNNCell):
    """LSTM over images or the like, with convolutions in place of products (Shi et al., arXiv:1506.04214).

    Args:
        conv_ndims: Number of spatial dimensions: 1, 2 or 3.
        input_shape: Shape of an input without the batch: spatial sizes, then channels.
        output_channels: Channels of state and output.
        kernel_shape: Size of the kernel along the spatial dimensions.
        use_bias: Have a bias.
        skip_connection: Join the input to the output.
        forget_bias: Added to the forget gate.
        initializers: Initializer of the weights.
        name: Name of the layer.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: InitializerLike | None = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {list(input_shape)} for conv_ndims={conv_ndims}.")
        self._conv_ndims = conv_ndims
        self._input_shape = list(input_shape)
        self._output_channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._skip_connection = skip_connection
        self._forget_bias = forget_bias
        self._initializer = initializers

    def _shape(self, channels: int) -> TensorShape:
        return TensorShape([*self._input_shape[:-1], channels])

    @property
    def output_size(self) -> TensorShape:
        return self._shape(self._output_channels + self._skip_connection * self._input_shape[-1])

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._shape(self._output_channels), self._shape(self._output_channels))

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        memory, hidden = state
        both = array_ops.concat([inputs, hidden], -1)
        count = 4 * self._output_channels
        kernel = get_variable(
            "kernel", [*self._kernel_shape, int(both.shape[-1]), count], both.dtype, self._initializer
        )
        gates = convolution(both, kernel, "SAME")
        if self._use_bias:
            gates += get_variable("biases", [count], both.dtype, Zeros())
        into, made, forget, out = array_ops.split(gates, 4, self._conv_ndims + 1)
        new_memory = sigmoid(forget + self._forget_bias) * memory + sigmoid(into) * tanh(made)
        output = tanh(new_memory) * sigmoid(out)
        following = LSTMStateTuple(new_memory, output)
        return array_ops.concat([output, inputs], -1) if self._skip_connection else output, following


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over sequences."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its own last outputs (Rocktäschel et al., arXiv:1601.06733, Cheng et al.).

    Args:
        cell: The cell.
        attn_length: To how many outputs it attends.
        attn_size: Size of the output; the cell's when None.
        attn_vec_size: Size of the vectors that are compared; `attn_size` when None.
        input_size: Size of the cell's input; that of the wrapper's when None.
        state_is_tuple: The state is ``(state of the cell, attention, outputs)``; otherwise these joined.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        cell: RNNCell,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        check_is_cell(cell, "AttentionCellWrapper")
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(f"Cell returns tuple of states, but the flag state_is_tuple is not set. {cell.state_size}")
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell = cell
        self._attn_length = attn_length
        self._attn_size = attn_size or cell.output_size
        self._attn_vec_size = attn_vec_size or self._attn_size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._attn_size

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        inputs = convert_to_tensor(inputs)
        if not self._state_is_tuple:
            sizes = [self._cell.state_size, self._attn_size, self._attn_size * self._attn_length]
            state = array_ops.split(state, sizes, 1)
        cell_state, attention, outputs = state
        outputs = array_ops.reshape(outputs, [-1, self._attn_length, self._attn_size])
        joined = linear([inputs, attention], self._input_size or int(inputs.shape[1]), True)
        output, cell_state = self._cell(joined, cell_state)
        attention = self._attend(array_ops.concat(nest.flatten(cell_state), 1), outputs)
        with variable_scope("attn_output_projection"):
            output = linear([output, attention], self._attn_size, True)
        outputs = array_ops.concat([outputs[:, 1:], array_ops.expand_dims(output, 1)], 1)
        outputs = array_ops.reshape(outputs, [-1, self._attn_length * self._attn_size])
        following = (cell_state, attention, outputs)
        return output, following if self._state_is_tuple else array_ops.concat(following, 1)

    def _attend(self, query: Tensor, outputs: Tensor) -> Tensor:
        with variable_scope("attention"):
            size, vector = self._attn_size, self._attn_vec_size
            kernel = get_variable("attn_w", [1, 1, size, vector], query.dtype)
            weights = get_variable("attn_v", [vector], query.dtype)
            rows = array_ops.reshape(outputs, [-1, size])
            keys = linalg_ops.matmul(rows, array_ops.reshape(kernel, [size, vector]))
            keys = array_ops.reshape(keys, [-1, self._attn_length, vector])
            compared = tanh(keys + array_ops.expand_dims(linear(query, vector, True), 1))
            shares = softmax(math_ops.reduce_sum(weights * compared, [2]))
            return math_ops.reduce_sum(array_ops.expand_dims(shares, 2) * outputs, [1])
