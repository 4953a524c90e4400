"""Cells with a memory that only ``tf.contrib.rnn`` has: gates that open by time, a found architecture, groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.rnn.rnn_cell_base import LayerRNNCell, RNNCell, input_size
from tfray.library.rnn.rnn_cell_wrappers import linear
from tfray.library.rnn.rnn_cells import LSTMStateTuple
from tfray.library.variables.initializers import Constant, InitializerLike, Zeros
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn import nn_ops
from tfray.ops.nn.activation_ops import relu
from tfray.ops.random.random_ops import random_uniform

_NAS_PARTS: Final = 8


class _Remembering(RNNCell):
    """A cell whose state is an `LSTMStateTuple`."""

    _num_units: int
    _num_proj: int | None = None

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units


class PhasedLSTMCell(_Remembering):
    """LSTM whose units are updated in a part of a period of their own (Neil et al., arXiv:1610.09513).

    Its inputs are a pair: times, float32 or float64 ``[batch, 1]``, and features ``[batch, size]``.

    Args:
        num_units: Size of the memory and of the output.
        use_peepholes: Let gates see the memory.
        leak: How much is updated in the rest of the period.
        ratio_on: The part of a period in which a unit is updated.
        trainable_ratio_on: Whether that is trained.
        period_init_min: Shortest period in the beginning.
        period_init_max: Longest. The logarithms of periods are evenly distributed.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on, self._trainable_ratio_on = ratio_on, trainable_ratio_on
        self._periods = period_init_min, period_init_max

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        time, x = inputs
        c, h = state
        with variable_scope("mask_gates"):
            seen = [x, h, c] if self._use_peepholes else [x, h]
            entering, forget = array_ops.split(sigmoid(linear(seen, 2 * self._num_units, True)), 2, 1)
        with variable_scope("new_input"):
            made = tanh(linear([x, h], self._num_units, True))
        new_c = c * forget + entering * made
        with variable_scope("output_gate"):
            seen = [x, h, new_c] if self._use_peepholes else [x, h]
            new_h = tanh(new_c) * sigmoid(linear(seen, self._num_units, True))
        openness = array_ops.cast(self._openness(time), new_c.dtype)
        new_c, new_h = openness * new_c + (1 - openness) * c, openness * new_h + (1 - openness) * h
        return new_h, LSTMStateTuple(new_c, new_h)

    def _openness(self, time: Tensor) -> Tensor:
        """How far each unit is updated, float32 ``[batch, num_units]``."""
        units = [self._num_units]
        period = get_variable("period", units, initializer=_log_uniform(*self._periods))
        phase = get_variable("phase", units, initializer=lambda *_, **__: random_uniform(units) * period.initial_value)
        ratio_on = get_variable("ratio_on", units, None, Constant(self._ratio_on), trainable=self._trainable_ratio_on)
        shifted, length = time - array_ops.cast(phase, time.dtype), array_ops.cast(period, time.dtype)
        # The place in the period has the slope of the time, though it jumps.
        place = array_ops.stop_gradient(math_ops.floormod(shifted, length) - shifted) + shifted
        share = array_ops.cast(place / length, dtypes.float32)
        rising = 2 * share / ratio_on
        closing = where_v2(share < ratio_on, 2 - rising, self._leak * share)
        return where_v2(share < 0.5 * ratio_on, rising, closing)


def _log_uniform(low: float, high: float) -> Callable[..., Tensor]:
    """An initializer of numbers whose logarithms are evenly distributed."""

    def initial(shape: TensorLike, dtype: DTypeLike = dtypes.float32, partition_info: object = None) -> Tensor:
        return math_ops.exp(random_uniform(shape, math.log(low), math.log(high), dtype))

    return initial


class NASCell(LayerRNNCell, _Remembering):
    """The cell that a search among architectures has found (Zoph and Le, arXiv:1611.01578).

    Args:
        num_units: Size of the memory.
        num_proj: Size of a projection of the output; None for none.
        use_bias: Have a bias.
        reuse: Use variables that exist.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: Reuse | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units, self._num_proj = num_units, num_proj
        self._use_bias = use_bias

    def build(self, inputs_shape: ShapeLike) -> None:
        width = _NAS_PARTS * self._num_units
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, width])
        self.kernel = self.add_weight("kernel", [input_size(self, inputs_shape), width])
        if self._use_bias:
            self.bias = self.add_weight("bias", [width], initializer=Zeros())
        if self._num_proj is not None:
            self.projection_weights = self.add_weight("projection_weights", [self._num_units, self._num_proj])
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:  # type: ignore[override]
        c, m = state
        of_state = linalg_ops.matmul(m, self.recurrent_kernel)
        if self._use_bias:
            of_state = nn_ops.bias_add(of_state, self.bias)
        x = array_ops.split(linalg_ops.matmul(inputs, self.kernel), _NAS_PARTS, 1)
        h = array_ops.split(of_state, _NAS_PARTS, 1)
        first = tanh(sigmoid(x[0] + h[0]) * relu(x[1] + h[1]))
        second = tanh(sigmoid(x[2] + h[2]) + relu(x[3] * h[3]))
        third = tanh(tanh(x[4] + h[4]) * sigmoid(x[5] + h[5]))
        fourth = sigmoid(tanh(x[6] + h[6]) + sigmoid(x[7] + h[7]))
        new_c = tanh(first + c) * second
        new_m = tanh(new_c * tanh(third + fourth))
        if self._num_proj is not None:
            new_m = linalg_ops.matmul(new_m, self.projection_weights)
        return new_m, LSTMStateTuple(new_c, new_m)


class GLSTMCell(_Remembering):
    """LSTM whose units are in groups that see their own parts of inputs and outputs (arXiv:1703.10722).

    Args:
        num_units: Size of the memory.
        initializer: Initializer of the weights.
        num_proj: Size of a projection of the output; None for none.
        number_of_groups: Number of groups.
        forget_bias: Added to the forget gate.
        activation: Of the memory in the output.
        reuse: Use variables that exist.

    Raises:
        ValueError: A size is no multiple of `number_of_groups`.
    """

    def __init__(
        self,
        num_units: int,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Activation = tanh,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        for name, size in (("num_units", num_units), ("num_proj", num_proj)):
            if size and size % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups")
        self._num_units, self._num_proj = num_units, num_proj
        self._initializer = initializer
        self._groups = number_of_groups
        self._forget_bias, self._activation = forget_bias, activation

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, m = state
        gates: list[list[Tensor]] = []
        for group, seen in enumerate(
            zip(*(array_ops.split(each, self._groups, 1) for each in (inputs, m)), strict=True)
        ):
            with variable_scope(f"group{group}"):
                width = 4 * self._num_units // self._groups
                made = linear(list(seen), width, False, kernel_initializer=self._initializer)
                gates.append(array_ops.split(made, 4, 1))
        entering, made, forget, leaving = (
            nn_ops.bias_add(
                array_ops.concat(list(parts), 1),
                get_variable(f"bias_{name}", [self._num_units], inputs.dtype, Zeros()),
            )
            for name, parts in zip("ijfo", zip(*gates, strict=True), strict=True)
        )
        new_c = sigmoid(forget + self._forget_bias) * c + sigmoid(entering) * tanh(made)
        new_m = sigmoid(leaving) * self._activation(new_c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                new_m = linear(new_m, self._num_proj, False, kernel_initializer=self._initializer)
        return new_m, LSTMStateTuple(new_c, new_m)


class IntersectionRNNCell(RNNCell):
    """Recurrent network with gates through time and through depth (Collins et al., arXiv:1611.09913).

    Args:
        num_units: Size of the state and of the output.
        num_in_proj: Of the first of several such layers `num_units`: inputs of another size are projected to it.
        initializer: Initializer of the weights.
        forget_bias: Added to both gates.
        y_activation: Makes what is passed through depth.
        reuse: Use variables that exist.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: InitializerLike | None = None,
        forget_bias: float = 1.0,
        y_activation: Activation = relu,
        reuse: Reuse | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._projects = num_units, num_in_proj
        self._initializer = initializer
        self._forget_bias, self._y_activation = forget_bias, y_activation

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        """One step. Raises `ValueError` for inputs of another size that are not to be projected."""
        units = self._num_units
        if input_size(self, inputs.shape) != units:
            if not self._projects:
                raise ValueError(
                    "Must have input size == output size for Intersection RNN. To fix, num_in_proj should be set to "
                    "num_units at cell init."
                )
            with variable_scope("in_projection"):
                inputs = linear(inputs, units, True, kernel_initializer=self._initializer)
        made = linear([inputs, state], 4 * units, True, kernel_initializer=self._initializer)
        time_gate, h, depth_gate, y = array_ops.split(made, 4, 1)
        time_gate, depth_gate = sigmoid(time_gate + self._forget_bias), sigmoid(depth_gate + self._forget_bias)
        output = depth_gate * inputs + (1 - depth_gate) * self._y_activation(y)
        return output, time_gate * state + (1 - time_gate) * tanh(h)
