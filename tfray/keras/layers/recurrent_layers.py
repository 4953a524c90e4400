"""Recurrent layers of Keras models: cells, and what runs them over sequences, with masks and with states that stay."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tfray.framework import nest
from tfray.framework.tensor_shape import TensorShape
from tfray.keras import activations, backend, constraints, initializers, regularizers
from tfray.keras.backend import learning_phase
from tfray.keras.layers.recurrent_cells import (
    DropoutMasks,
    TakesStates,
    build_cell,
    first_of,
    first_states,
    output_size,
    run_cell,
    size_shape,
)
from tfray.keras.step_loop import rnn
from tfray.library.layers.descriptions import told
from tfray.library.layers.input_spec import InputSpec
from tfray.library.layers.keras_layer import Layer
from tfray.library.rnn.rnn_cell_base import zeros_of
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.state import state_ops


class _RecurrentCell(DropoutMasks, Layer):
    """One step of a recurrent layer. `RNN` and `tf.nn.dynamic_rnn` run it over sequences.

    Args:
        units: Size of the output.
        activation: Activation of the output.
        recurrent_activation: That of the gates.
        use_bias: Have a bias.
        kernel_initializer: Initializer of the weights of inputs.
        recurrent_initializer: That of the weights of the state.
        bias_initializer: That of the bias.
        kernel_regularizer: Regularizer of the weights of inputs.
        recurrent_regularizer: That of the weights of the state.
        bias_regularizer: That of the bias.
        kernel_constraint: Constraint of the weights of inputs.
        recurrent_constraint: That of the weights of the state.
        bias_constraint: That of the bias.
        dropout: Part of the inputs that a layer drops in training, the same at each step of a sequence.
        recurrent_dropout: Likewise of the state, where it is multiplied with weights.
        implementation: 1: each gate drops another part; 2: all drop the same.
        **kwargs: As for `Layer`.
    """

    _fixed: ClassVar[tuple[str, ...]] = ()  # arguments that a derived class gives itself
    _gates = 1

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        return {name: each for name, each in super()._parameters().items() if name not in cls._fixed}

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.implementation, self.use_bias = units, implementation, use_bias
        self.dropout, self.recurrent_dropout = (min(1.0, max(0.0, rate)) for rate in (dropout, recurrent_dropout))
        self._masks: tuple[Any, Any] = (None, None)
        self.activation = activations.get(activation)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = regularizers.get(recurrent_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.recurrent_constraint = constraints.get(recurrent_constraint)
        self.bias_constraint = constraints.get(bias_constraint)

    @property
    def state_size(self) -> Any:
        """Size of the state, or a list of sizes."""
        return self.units

    @property
    def output_size(self) -> int:
        """Size of the output."""
        return self.units

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros, ``[batch, units]``, or a list of them."""
        return zeros_of(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """The same, for the batch and the dtype of `inputs`."""
        if inputs is not None:
            batch_size, dtype = array_ops.shape(inputs)[0], inputs.dtype
        return self.zero_state(batch_size, dtype)

    def build(self, input_shape: Any) -> None:
        count, size = self.units * self._gates, TensorShape(input_shape).as_list()[-1]
        self.kernel = self._weights_of("kernel", [size, count], self.kernel_initializer)
        self.recurrent_kernel = self._weights_of(
            "recurrent_kernel", [self.units, count], self.recurrent_initializer, "recurrent"
        )
        self.bias = self._weights_of("bias", self._bias_shape(), self._bias_start()) if self.use_bias else None
        self.built = True

    def _weights_of(self, name: str, shape: list[Any], initializer: Any, kind: str | None = None) -> Any:
        settings = {key: getattr(self, f"{kind or name}_{key}") for key in ("regularizer", "constraint")}
        return self.add_weight(name, shape, initializer=initializer, **settings)

    def _bias_shape(self) -> list[int]:
        return [self.units * self._gates]

    def _bias_start(self) -> Any:
        return self.bias_initializer

    def begin(self, inputs: Any, training: Any = None) -> None:
        """Draw what is dropped in the sequences that follow, given what a step of them takes."""
        self.reset_dropout_mask()
        self.reset_recurrent_dropout_mask()
        self._draw(inputs, nest.flatten(self.get_initial_state(inputs))[0], training)

    def _draw(self, inputs: Any, state: Any, training: Any) -> None:
        count = self._gates if self.implementation == 1 else 1
        masks = (
            self.get_dropout_mask_for_cell(inputs, training, count),
            self.get_recurrent_dropout_mask_for_cell(state, training, count),
        )
        first, second = (mask if mask is None or isinstance(mask, list) else [mask] for mask in masks)
        self._masks = first, second

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:  # type: ignore[override]
        """The output and the new state, which is a list if `states` is one."""
        given = list(states) if isinstance(states, (list, tuple)) else [states]
        self._draw(inputs, given[0], training)
        output, after = self._step(inputs, given)
        return output, after if isinstance(states, (list, tuple)) else after[0]

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        raise NotImplementedError

    def _of_inputs(self, inputs: Any) -> Any:
        product = self._product(inputs, self.kernel, self._masks[0])
        return product if self.bias is None else product + self.bias

    def _of_state(self, state: Any) -> Any:
        return self._product(state, self.recurrent_kernel, self._masks[1])

    def _product(
        self, values: Any, weights: Any, masks: Any, times: Callable[..., Any] = math_ops.matmul, axis: int = 1
    ) -> Any:
        """`values` times the weights of all gates, which are beside each other; each gate drops its own part."""
        if masks is None or len(masks) == 1:
            return times(values if masks is None else values * masks[0], weights)
        parts = array_ops.split(weights, len(masks), axis=-1)
        return array_ops.concat([times(values * mask, part) for mask, part in zip(masks, parts, strict=True)], axis)


class SimpleRNNCell(_RecurrentCell):
    """The cell of `SimpleRNN`: the activation of inputs and state, each times weights. Arguments: `units`,
    `activation`, `use_bias`, `kernel_initializer`, `recurrent_initializer`, `bias_initializer`.
    """

    _fixed = ("recurrent_activation",)

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, None, use_bias, *args, **kwargs)

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        output = self.activation(self._of_inputs(inputs) + self._of_state(states[0]))
        return output, [output]


class GRUCell(_RecurrentCell):
    __doc__ = f"""The cell of `GRU`. {_RecurrentCell.__doc__}
    `reset_after`, False by default, lets the reset gate act on the product of state and weights, which has a bias of
    its own, in place of the state.
    """

    _gates = 3

    def __init__(self, units: int, *args: Any, reset_after: bool = False, **kwargs: Any) -> None:
        super().__init__(units, *args, **kwargs)
        self.reset_after = reset_after

    def _bias_shape(self) -> list[int]:
        return [2, 3 * self.units] if self.reset_after else super()._bias_shape()

    def _biases(self) -> Any:
        bias: Any = self.bias
        return array_ops.unstack(bias)

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        (before,) = states
        masks = self._masks[1] or [None]
        kept = [before if mask is None else before * mask for mask in (masks if len(masks) == 3 else masks * 3)]
        product = self._product(inputs, self.kernel, self._masks[0])
        bias: Any = () if self.bias is None else self._biases() if self.reset_after else (self.bias,)
        own = array_ops.split(product + bias[0] if bias else product, 3, axis=1)
        if self.reset_after:
            product = self._of_state(before)
            other = array_ops.split(product + bias[1] if bias else product, 3, axis=1)
        else:
            recurrent = array_ops.split(self.recurrent_kernel, 3, axis=1)
            other = [math_ops.matmul(kept[gate], recurrent[gate]) for gate in range(2)]
        update = self.recurrent_activation(own[0] + other[0])
        reset = self.recurrent_activation(own[1] + other[1])
        from_state = reset * other[2] if self.reset_after else math_ops.matmul(reset * kept[2], recurrent[2])
        candidate = self.activation(own[2] + from_state)
        output = update * (before if self.implementation == 1 else kept[0]) + (1 - update) * candidate
        return output, [output]


class LSTMCell(_RecurrentCell):
    __doc__ = f"""The cell of `LSTM`, whose state is ``[output, memory]``. {_RecurrentCell.__doc__}
    `unit_forget_bias`, True by default, lets the bias of the forget gate begin with ones.
    """

    _gates = 4

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        initializers_ = kernel_initializer, recurrent_initializer, bias_initializer
        super().__init__(units, activation, recurrent_activation, use_bias, *initializers_, *args, **kwargs)
        self.unit_forget_bias = unit_forget_bias

    @property
    def state_size(self) -> Any:
        """Sizes of output and memory."""
        return [self.units, self.units]

    def _bias_start(self) -> Any:
        start = self.bias_initializer
        if not self.unit_forget_bias:
            return start

        def with_ones(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            parts = [start([self.units], dtype), array_ops.ones([self.units], dtype), start([2 * self.units], dtype)]
            return array_ops.concat(parts, 0)

        return with_ones

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        before, memory = states
        product = self._of_inputs(inputs) + self._of_state(before)
        enter, forget, new, leave = self._gates_of(product)
        kept = self.recurrent_activation(forget) * memory
        memory = kept + self.recurrent_activation(enter) * self.activation(new)
        output = self.recurrent_activation(leave) * self.activation(memory)
        return output, [output, memory]

    def _gates_of(self, product: Any) -> list[Any]:
        made: list[Any] = array_ops.split(product, 4, axis=1)
        return made


class AbstractRNNCell(Layer):
    """A base of a program's own cells: they define ``call(inputs, states)``, `state_size` and `output_size`."""

    def call(self, inputs: Any, states: Any) -> Any:  # type: ignore[override]
        """The output of one step and the new states."""
        raise NotImplementedError("Abstract method")

    @property
    def state_size(self) -> Any:
        """Size of the state, or a list of sizes."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """Size of the output."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros."""
        if inputs is not None:
            batch_size, dtype = array_ops.shape(inputs)[0], inputs.dtype
        return zeros_of(self.state_size, batch_size, dtype)


class StackedRNNCells(Layer):
    """Cells one above the other, each of which takes what the one below gives. `RNN` makes it of a list of cells."""

    def __init__(self, cells: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            _check_cell(cell)
        self.cells = list(cells)
        self.state_size = [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """Size of the output, that of the last cell."""
        return output_size(self.cells[-1])

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """The first states of all cells."""
        if inputs is not None:
            batch_size, dtype = array_ops.shape(inputs)[0], inputs.dtype
        states = [state for cell in self.cells for state in first_states(cell, batch_size, dtype)]
        return nest.pack_sequence_as(self.state_size, states)

    def build(self, input_shape: Any) -> None:
        step, *constants = input_shape if isinstance(input_shape, list) else [input_shape]
        for cell in self.cells:
            build_cell(self, cell, step, constants)
            step = (step[0], *size_shape(output_size(cell)).as_list())
        self.built = True

    def begin(self, inputs: Any, training: Any = None) -> None:
        """Draw what is dropped in the sequences that follow."""
        for cell in self.cells:
            if hasattr(cell, "begin"):
                cell.begin(inputs, training)
            inputs = zeros_of(output_size(cell), array_ops.shape(inputs)[0], inputs.dtype)

    def call(self, inputs: Any, states: Any, constants: Any = None, training: Any = None) -> Any:  # type: ignore[override]
        """The output of the last cell, and a list of the states of all."""
        flat, after = nest.flatten(states), []
        for cell in self.cells:
            count = len(nest.flatten(cell.state_size))
            inputs, new = run_cell(cell, inputs, flat[:count], constants or (), training)
            after.append(new)
            flat = flat[count:]
        return inputs, after


def _check_cell(cell: Any) -> None:
    if not hasattr(cell, "call"):
        raise ValueError(f"`cell` should have a `call` method. The RNN was passed: {cell}")
    if not hasattr(cell, "state_size"):
        raise ValueError(
            "The RNN cell should have an attribute `state_size` (tuple of integers, one integer per RNN state)."
        )


class RNN(TakesStates):
    """A cell over sequences, ``[batch, time, ...]``, or over a tuple or dictionary of such tensors.

    Where the mask of the inputs is False, states and outputs stay what they were in the step before. With
    `return_sequences`, the outputs have the same mask.

    Args:
        cell: A cell of this module, a layer with ``state_size`` and ``call(inputs, states)`` that gives the output and
            a list of states, a list of these, or another cell with ``state_size``, ``output_size`` and ``zero_state``.
            Sizes are numbers, shapes, or lists of them. A cell whose ``call`` takes ``constants`` is given those of the
            layer's call, a list of tensors; one with ``get_initial_state`` says what comes before the first step.
        return_sequences: Give the outputs of all steps, ``[batch, time, units]``, not the last, ``[batch, units]``.
        return_state: Give a list of that, and of the parts of the last state.
        go_backwards: Read the sequences from their ends.
        stateful: Begin each batch with the states in which the one before ended. The batch needs a known size.
        unroll: Make operations for each step, in place of a loop.
        time_major: Inputs and outputs are ``[time, batch, ...]``.
        zero_output_for_mask: Outputs of masked steps are zeros.
        **kwargs: As for `Layer`.

    A call takes ``initial_state``, a list of tensors, ``constants`` and ``mask``; the first two may also stand behind
    the inputs in a list.

    Raises:
        ValueError: The cell has no ``call`` or no ``state_size``.
    """

    supports_masking = True

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        if "input_dim" in kwargs or "input_length" in kwargs:
            shape = (kwargs.pop("input_length", None), kwargs.pop("input_dim", None))
            kwargs.setdefault("input_shape", shape)
        super().__init__(**kwargs)
        cell = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else cell
        _check_cell(cell)
        self.cell = cell
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards
        self.stateful, self.unroll, self.time_major = stateful, unroll, time_major
        self.zero_output_for_mask = zero_output_for_mask
        self._kept_states: list[Variable] = []
        self._batch_size: int | None = None
        self.state_spec: list[InputSpec] | None = None

    @property
    def states(self) -> list[Any]:
        """The variables that keep the states of a stateful layer."""
        return self._kept_states or [None] * len(nest.flatten(self.cell.state_size))

    def build(self, input_shape: Any) -> None:
        input_shape = first_of(input_shape)
        first = _first_shape(input_shape).as_list()
        self._batch_size = first[1 if self.time_major else 0]
        build_cell(self, self.cell, _map_shapes(self._step_shape, input_shape), self._constant_shapes)
        sizes = [TensorShape(size).as_list() for size in nest.flatten(self.cell.state_size)]
        self.state_spec = [InputSpec(shape=[None, *size]) for size in sizes]
        if self.stateful:
            self.reset_states()
        self.built = True

    def _step_shape(self, shape: TensorShape) -> tuple[Any, ...]:
        batch, time, *rest = shape.as_list()
        return (time if self.time_major else batch, *rest)

    def get_initial_state(self, inputs: Any) -> list[Any]:
        """What comes before the first step of `inputs`: zeros, unless the cell says otherwise."""
        first = nest.flatten(inputs)[0]
        batch = array_ops.shape(first)[1 if self.time_major else 0]
        known = first.shape.as_list()[1 if self.time_major else 0]
        return first_states(self.cell, batch if known is None else known, first.dtype)

    def call(  # type: ignore[override]
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None, constants: Any = None
    ) -> Any:
        mask = None if mask is None else nest.flatten(mask)[0]
        inputs, initial_state, constants = self._parted(inputs, initial_state, constants)
        training = learning_phase() if training is None else training
        if initial_state is None:
            initial_state = self._kept_states if self.stateful else self.get_initial_state(inputs)
        states = nest.flatten(initial_state)
        count = len(nest.flatten(self.cell.state_size))
        if len(states) != count:
            raise ValueError(f"Layer has {count} states but was passed {len(states)} initial states.")
        sizes = map(size_shape, nest.flatten(self.cell.state_size))
        if not all(size.is_compatible_with(state.shape[1:]) for size, state in zip(sizes, states, strict=True)):
            shown = [state.shape for state in states]
            raise ValueError(
                "An `initial_state` was passed that is not compatible with `cell.state_size`. Received states of "
                f"shapes {shown}; however `cell.state_size` is {self.cell.state_size}"
            )
        if hasattr(self.cell, "begin"):
            first = (lambda tensor: tensor[0]) if self.time_major else (lambda tensor: tensor[:, 0])
            self.cell.begin(nest.map_structure(first, inputs), training)

        def step(current: Any, given: list[Any]) -> tuple[Any, Any]:
            return run_cell(self.cell, current, given[:count], given[count:], training)

        last, outputs, after = rnn(
            step,
            inputs,
            states,
            go_backwards=self.go_backwards,
            mask=mask,
            constants=constants,
            unroll=self.unroll,
            time_major=self.time_major,
            zero_output_for_mask=self.zero_output_for_mask,
        )
        if self.stateful:
            for variable, state in zip(self._kept_states, after, strict=True):
                self.add_update(state_ops.assign(variable, state))
        result = outputs if self.return_sequences else last
        return [*nest.flatten(result), *after] if self.return_state else result

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """That of the inputs for sequences, None for the last outputs and the states."""
        mask = None if mask is None else nest.flatten(mask)[0]
        own = mask if self.return_sequences else None
        return [own, *[None] * len(self.states)] if self.return_state else own

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Static shape of the outputs, or a list of it and those of the states."""
        shape = _first_shape(input_shape)
        before = shape[:2] if self.return_sequences else shape[1 if self.time_major else 0 :][:1]
        batch = shape[1 if self.time_major else 0 :][:1]
        outputs = nest.map_structure(lambda size: before.concatenate(size_shape(size)), output_size(self.cell))
        states = [batch.concatenate(size_shape(size)) for size in nest.flatten(self.cell.state_size)]
        return [outputs, *states] if self.return_state else outputs

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, and how many constants it was called with, if any."""
        own = super().get_config()
        of_cell = {key: value for key, value in vars(self.cell).items() if key not in vars(self)}
        of_cell["cell"] = self.cell  # one, where there was a list of them
        return {key: told(key, of_cell[key]) if key in of_cell else value for key, value in own.items()}

    def reset_states(self, states: Any = None) -> None:
        """Set the states of a stateful layer: to zeros, or to arrays, one for each part.

        Raises:
            AttributeError: The layer is not stateful.
            ValueError: The size of the batch is not known, or the arrays do not fit.
        """
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        if self._batch_size is None:
            raise ValueError(
                "If a RNN is stateful, it needs to know its batch size. Specify the batch size of your input tensors: "
                "If using a Sequential model, specify the batch size by passing a `batch_input_shape` argument to your "
                "first layer. If using the functional API, specify the batch size by passing a `batch_shape` argument "
                "to your Input layer."
            )
        shapes: list[Any] = [
            (self._batch_size, *size_shape(size).as_list()) for size in nest.flatten(self.cell.state_size)
        ]
        values = [np.zeros(shape, np.float32) for shape in shapes]
        if states is not None:
            values = [np.asarray(value, np.float32) for value in nest.flatten(states)]
            if [value.shape for value in values] != shapes:
                shown = [value.shape for value in values]
                raise ValueError(f"Layer {self.name} expects states of shapes {shapes}, but it received {shown}")
        if not self._kept_states:
            vars(self)["_kept_states"] = [Variable(value, trainable=False, name="state") for value in values]
        else:
            backend.batch_set_value(zip(self._kept_states, values, strict=True))


def _map_shapes(function: Any, shape: Any) -> Any:
    """A function of each shape in a structure of them, or of one that is given as numbers."""
    if isinstance(shape, dict):
        return {name: _map_shapes(function, each) for name, each in shape.items()}
    if isinstance(shape, (list, tuple)) and any(isinstance(each, (list, tuple, dict, TensorShape)) for each in shape):
        mapped = [_map_shapes(function, each) for each in shape]
        return type(shape)(*mapped) if hasattr(shape, "_fields") else type(shape)(mapped)
    return function(TensorShape(shape))


def _first_shape(shape: Any) -> TensorShape:
    found: list[TensorShape] = []
    _map_shapes(found.append, shape)
    return found[0]


class RecurrentLayer(RNN):
    """A recurrent layer with a cell of its own; arguments are those of the cell, and those of `RNN` by name."""

    _cell: type[_RecurrentCell]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = [name for name, each in self._parameters().items() if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(args) > len(names) or kwargs.keys() & set(names[: len(args)]):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)} by place or by name, each once")
        given = dict(zip(names, args, strict=False)) | kwargs
        of_cells = {name: given.pop(name) for name in tuple(given) if name in self._of_cells()}
        super().__init__(self._cell(**of_cells), **given)

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """Those of the cell, with the regularizer of outputs behind the others, and by name those of `RNN`."""
        of_layers = {
            name: each.replace(kind=each.KEYWORD_ONLY)
            for name, each in RNN._parameters().items()
            if name not in ("cell", *cls._cell._fixed)
        }
        found: dict[str, inspect.Parameter] = {}
        for name, each in cls._cell._parameters().items():
            found[name] = each
            if name == "bias_regularizer":
                found["activity_regularizer"] = each.replace(name="activity_regularizer")
        return {**{name: each for name, each in found.items() if name not in of_layers}, **of_layers}

    @classmethod
    def _of_cells(cls) -> frozenset[str]:
        """Attributes of the layer that are those of its cell."""
        return frozenset(cls._cell._parameters())

    if not TYPE_CHECKING:  # to type checkers, an attribute that is not defined does not exist

        def __getattr__(self, name: str) -> Any:
            if "cell" in vars(self) and name in (*self._of_cells(), "kernel", "recurrent_kernel", "bias"):
                return getattr(self.cell, name)
            return super().__getattr__(name)


class SimpleRNN(RecurrentLayer):
    """`SimpleRNNCell` over sequences; arguments are those of the cell, and by name those of `RNN`."""

    _cell = SimpleRNNCell


class GRU(RecurrentLayer):
    """`GRUCell` over sequences; arguments are those of the cell, and by name those of `RNN`."""

    _cell = GRUCell


class LSTM(RecurrentLayer):
    """`LSTMCell` over sequences; arguments are those of the cell, and by name those of `RNN`."""

    _cell = LSTMCell
