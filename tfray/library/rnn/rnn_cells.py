"""Recurrent cells: basic, gated (GRU), long short-term memory (LSTM) in its forms."""

from __future__ import annotations

import collections
from typing import Any, ClassVar

from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.rnn.rnn_cell_base import LayerRNNCell, activation_named, input_size
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.partitioned_variables import fixed_size_partitioner
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn import nn_ops, normalization_ops
from tfray.ops.nn.recurrent_ops import lstm_gates


class BasicRNNCell(LayerRNNCell):
    """``output = new_state = tanh(W [input, state] + b)``.

    Args:
        num_units: Size of the state.
        activation: Function in place of `tanh`, or its name.
        reuse: Use variables that exist.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._activation = activation_named(activation, tanh)

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: ShapeLike) -> None:
        self._kernel = self.add_weight("kernel", [input_size(self, inputs_shape) + self._num_units, self._num_units])
        self._bias = self.add_weight("bias", [self._num_units], initializer=initializers.Zeros())
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        output = self._activation(_affine([inputs, state], self._kernel, self._bias))
        return output, output


def _affine(parts: list[Any], kernel: TensorLike, bias: TensorLike) -> Tensor:
    return nn_ops.bias_add(linalg_ops.matmul(array_ops.concat(parts, 1), kernel), bias)


class GRUCell(LayerRNNCell):
    """Gated recurrent unit (Cho et al., arXiv:1406.1078).

    With gates ``r`` and ``u`` and ``c = tanh(W [input, r * state] + b)``, output and new state are
    ``u * state + (1 - u) * c``.

    Args:
        num_units: Size of the state.
        activation: Function in place of `tanh`, or its name.
        reuse: Use variables that exist.
        kernel_initializer: Initializer of the weights.
        bias_initializer: Initializer of the biases; ones for the gates and zeros for the candidate when None.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
        **kwargs: As for `Layer`.
    """

    _NAMES: ClassVar = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        kernel_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._activation = activation_named(activation, tanh)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: ShapeLike) -> None:
        units = self._num_units
        size = input_size(self, inputs_shape) + units
        gates, candidate = self._bias_initializer, self._bias_initializer
        if self._bias_initializer is None:
            gates, candidate = initializers.Constant(1.0), initializers.Zeros()
        kernel = self._kernel_initializer
        names = self._NAMES
        self._gate_kernel = self.add_weight(names[0], [size, 2 * units], initializer=kernel)
        self._gate_bias = self.add_weight(names[1], [2 * units], initializer=gates)
        self._candidate_kernel = self.add_weight(names[2], [size, units], initializer=kernel)
        self._candidate_bias = self.add_weight(names[3], [units], initializer=candidate)
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        gates = sigmoid(_affine([inputs, state], self._gate_kernel, self._gate_bias))
        reset, update = array_ops.split(gates, 2, 1)
        candidate = self._activation(_affine([inputs, reset * state], self._candidate_kernel, self._candidate_bias))
        output = candidate + update * (state - candidate)
        return output, output


class LSTMStateTuple(collections.namedtuple("LSTMStateTuple", ["c", "h"])):
    """The state of an LSTM: ``c``, its memory, and ``h``, its last output."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        """Dtype of both."""
        if self.c.dtype is not self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype.name} vs {self.h.dtype.name}")
        return self.c.dtype


def _unpacked(state: Any, state_is_tuple: bool, sizes: list[int]) -> Any:
    return state if state_is_tuple else array_ops.split(state, sizes, 1)


def _packed(c: Tensor, h: Tensor, state_is_tuple: bool) -> Any:
    return LSTMStateTuple(c, h) if state_is_tuple else array_ops.concat([c, h], 1)


class BasicLSTMCell(LayerRNNCell):
    """Long short-term memory without peepholes, clipping or projection.

    Args:
        num_units: Size of the memory and of the output.
        forget_bias: Added to the forget gate, so that a new cell remembers. Cells whose weights come from
            CudnnLSTM need 0.
        state_is_tuple: Have states of type `LSTMStateTuple`; otherwise both parts are one tensor.
        activation: Function in place of `tanh`, or its name.
        reuse: Use variables that exist.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_named(activation, tanh)

    @property
    def state_size(self) -> Any:
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: ShapeLike) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel", [input_size(self, inputs_shape) + units, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=initializers.Zeros())
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        c, h = _unpacked(state, self._state_is_tuple, [self._num_units] * 2)
        projected = linalg_ops.matmul(array_ops.concat([inputs, h], 1), self._kernel)
        new_c, new_h = _gated(projected, self._bias, c, self._forget_bias, self._activation)
        return new_h, _packed(new_c, new_h, self._state_is_tuple)


def _gated(
    projected: Tensor, bias: TensorLike, c: Tensor, forget_bias: float, activation: Activation
) -> tuple[Tensor, Tensor]:
    if activation is tanh:
        return lstm_gates(projected, bias, c, forget_bias)
    i, j, f, o = array_ops.split(nn_ops.bias_add(projected, bias), 4, 1)
    new_c = c * sigmoid(f + forget_bias) + sigmoid(i) * activation(j)
    return new_c, activation(new_c) * sigmoid(o)


class LSTMCell(LayerRNNCell):
    """Long short-term memory with peepholes, clipping and a projection of the output, as wanted.

    Args:
        num_units: Size of the memory.
        use_peepholes: Let the gates see the memory, through diagonal weights (Gers and Schmidhuber).
        cell_clip: Bound of the memory's absolute values.
        initializer: Initializer of the weights.
        num_proj: Size of the output, by a linear projection (Sak et al.); that of the memory when None.
        proj_clip: Bound of the projected output's absolute values.
        num_unit_shards: Number of parts of the weights; deprecated in TensorFlow 1.
        num_proj_shards: Number of parts of the projection.
        forget_bias: Added to the forget gate.
        state_is_tuple: Have states of type `LSTMStateTuple`; otherwise both parts are one tensor.
        activation: Function in place of `tanh`, or its name.
        reuse: Use variables that exist.
        name: Name of the layer.
        dtype: Dtype of the variables; that of the first inputs when None.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | None = None,
        reuse: Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
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

    def build(self, inputs_shape: ShapeLike) -> None:
        units, weights = self._num_units, self._initializer
        self._kernel = self.add_weight(
            "kernel",
            [input_size(self, inputs_shape) + self.output_size, 4 * units],
            initializer=weights,
            partitioner=_parts(self._num_unit_shards),
        )
        self._bias = self.add_weight("bias", [4 * units], initializer=initializers.Zeros())
        if self._use_peepholes:
            self._w_f = self.add_weight("w_f_diag", [units], initializer=weights)
            self._w_i = self.add_weight("w_i_diag", [units], initializer=weights)
            self._w_o = self.add_weight("w_o_diag", [units], initializer=weights)
        if self._num_proj is not None:
            self._projection = self.add_weight(
                "projection/kernel",
                [units, self._num_proj],
                initializer=weights,
                partitioner=_parts(self._num_proj_shards),
            )
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        c, h = _unpacked(state, self._state_is_tuple, [self._num_units, self.output_size])
        projected = linalg_ops.matmul(array_ops.concat([inputs, h], 1), self._kernel)
        if self._use_peepholes or self._cell_clip is not None:
            new_c, new_h = self._peephole_gates(nn_ops.bias_add(projected, self._bias), c)
        else:
            new_c, new_h = _gated(projected, self._bias, c, self._forget_bias, self._activation)
        if self._num_proj is not None:
            new_h = _clipped(linalg_ops.matmul(new_h, self._projection), self._proj_clip)
        return new_h, _packed(new_c, new_h, self._state_is_tuple)

    def _peephole_gates(self, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, j, f, o = array_ops.split(gates, 4, 1)
        if self._use_peepholes:
            i, f = i + self._w_i * c, f + self._w_f * c
        new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(j)
        new_c = _clipped(new_c, self._cell_clip)
        if self._use_peepholes:
            o = o + self._w_o * new_c
        return new_c, sigmoid(o) * self._activation(new_c)


class LSTMBlockCell(LSTMCell):
    """`LSTMCell` under the arguments of TensorFlow's fused cell; here every LSTM without peepholes is fused.

    Args:
        num_units: Size of the memory and of the output.
        forget_bias: Added to the forget gate.
        cell_clip: Bound of the memory's absolute values; -1 or None for none.
        use_peephole: Let the gates see the memory.
        dtype: Dtype of the variables; that of the first inputs when None.
        reuse: Use variables that exist.
        name: Name of the layer.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: DTypeLike | None = None,
        reuse: Reuse | None = None,
        name: str | None = "lstm_cell",
    ) -> None:
        bound = cell_clip if cell_clip is not None and cell_clip > 0 else None
        super().__init__(num_units, use_peephole, bound, forget_bias=forget_bias, dtype=dtype, reuse=reuse, name=name)


class GRUBlockCellV2(GRUCell):
    """`GRUCell` under the arguments of TensorFlow's fused cell.

    Args:
        num_units: Size of the state; also called `cell_size`.
        cell_size: The same.
        reuse: Use variables that exist.
        name: Name of the layer.
    """

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: Reuse | None = None,
        name: str | None = "gru_cell",
    ) -> None:
        size = num_units if cell_size is None else cell_size
        if size is None:
            raise ValueError("GRUBlockCell needs num_units")
        super().__init__(size, reuse=reuse, name=name)


class GRUBlockCell(GRUBlockCellV2):
    """`GRUBlockCellV2` with the names that its variables had before.

    Args:
        num_units: Size of the state; also called `cell_size`.
        cell_size: The same.
        reuse: Use variables that exist.
        name: Name of the layer.
    """

    _NAMES = ("w_ru", "b_ru", "w_c", "b_c")


def _parts(count: int | None) -> Any:
    return None if count is None else fixed_size_partitioner(count)


def _clipped(values: Tensor, bound: float | None) -> Tensor:
    return values if bound is None else clip_by_value(values, -bound, bound)


def normalized(values: Tensor, gamma: Any, beta: Any) -> Tensor:
    """Each row of a matrix with mean 0 and variance 1, then times `gamma`, plus `beta` (Ba et al., 2016)."""
    mean, variance = normalization_ops.moments(values, [1], keep_dims=True)
    return normalization_ops.batch_normalization(values, mean, variance, beta, gamma, 1e-12)


class LayerNormBasicLSTMCell(LayerRNNCell):
    """LSTM with layer normalisation (Ba et al., arXiv:1607.06450) and recurrent dropout (Semeniuta et al.).

    Args:
        num_units: Size of the memory and of the output.
        forget_bias: Added to the forget gate.
        input_size: Not used; kept for the position of arguments.
        activation: Function in place of `tanh`, or its name.
        layer_norm: Whether to normalise; with False only the dropout is left.
        norm_gain: Initial gain of the normalisation.
        norm_shift: Initial shift of the normalisation.
        dropout_keep_prob: Probability that an element of the candidate memory is kept.
        dropout_prob_seed: Seed of the dropout.
        reuse: Use variables that exist.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: None = None,
        activation: Activation | None = None,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: TensorLike = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Reuse | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation_named(activation, tanh)
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: ShapeLike) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel", [input_size(self, inputs_shape) + units, 4 * units])
        if not self._layer_norm:
            self._bias = self.add_weight("bias", [4 * units], initializer=initializers.Zeros())
        else:
            self._norms = {
                scope: self._add_norm(scope) for scope in ("input", "transform", "forget", "output", "state")
            }
        self.built = True

    def _add_norm(self, scope: str) -> tuple[Any, Any]:
        gain, shift = initializers.Constant(self._norm_gain), initializers.Constant(self._norm_shift)
        gamma = self.add_weight(f"{scope}/gamma", [self._num_units], initializer=gain)
        return gamma, self.add_weight(f"{scope}/beta", [self._num_units], initializer=shift)

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        projected = linalg_ops.matmul(array_ops.concat([inputs, h], 1), self._kernel)
        if not self._layer_norm:
            projected = nn_ops.bias_add(projected, self._bias)
        i, j, f, o = array_ops.split(projected, 4, 1)
        i, j, f, o = (
            self._normalized(part, scope)
            for part, scope in ((i, "input"), (j, "transform"), (f, "forget"), (o, "output"))
        )
        candidate = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            candidate = nn_ops.dropout(candidate, self._keep_prob, seed=self._seed)
        new_c = self._normalized(c * sigmoid(f + self._forget_bias) + sigmoid(i) * candidate, "state")
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)

    def _normalized(self, values: Tensor, scope: str) -> Tensor:
        if not self._layer_norm:
            return values
        return normalized(values, *self._norms[scope])
