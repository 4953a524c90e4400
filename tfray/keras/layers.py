"""Layers of Keras models: those of ``tf.layers``, which also record the tensors that they were called with.

`Model` uses these records to find the layers between its inputs and outputs. Layers that behave differently in training
read `tf.keras.backend.learning_phase`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.keras import activations, initializers
from tfray.keras.backend import get_uid, learning_phase
from tfray.keras.recurrent_cells import Steps, build_cell, drop_mask, output_size, run_cell
from tfray.keras.remembered_layers import Layer, Remembering, history
from tfray.keras.tensor_functions import batch_dot
from tfray.library.layers import base_layer, convolution_layers, core_layers, normalization_layers, pooling_layers
from tfray.library.layers.convolution_layers import per_axis
from tfray.library.layers.feature_column import DenseFeatures
from tfray.library.rnn.rnn import dynamic_rnn
from tfray.library.rnn.rnn_cell_base import zeros_of
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import math_ops
from tfray.ops.nn import activation_ops, embedding_ops, normalization_ops
from tfray.ops.random import random_ops

# fmt: off
__all__ = [
    "GRU", "LSTM", "RNN", "Activation", "Add", "Average", "AveragePooling1D", "AveragePooling2D", "AvgPool2D",
    "BatchNormalization", "Concatenate", "Conv1D", "Conv2D", "Conv2DTranspose", "Convolution2D", "Cropping2D", "Dense",
    "DenseFeatures", "Dot", "Dropout", "Embedding", "Flatten", "GRUCell", "GaussianNoise", "GlobalAveragePooling1D",
    "GlobalAveragePooling2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "Input", "InputLayer", "LSTMCell", "Lambda",
    "Layer", "LeakyReLU", "MaxPool2D", "MaxPooling1D", "MaxPooling2D", "Maximum", "Minimum", "Multiply", "Permute",
    "ReLU", "RepeatVector", "Reshape", "SeparableConv2D", "SimpleRNN", "SimpleRNNCell", "Softmax", "StackedRNNCells",
    "Subtract",
    "UpSampling2D", "ZeroPadding2D", "add", "average", "concatenate", "dot",
    "maximum", "minimum", "multiply", "subtract",
]
# fmt: on


class InputLayer(Layer):
    """Where a model takes its inputs."""


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: DTypeLike | None = None,
    batch_shape: Sequence[int | None] | None = None,
) -> Tensor:
    """An input of a model: a placeholder.

    Args:
        shape: Shape of one example.
        batch_size: Number of examples; any when None.
        name: Name of the input and of its placeholder; ``input_1``, ``input_2`` and so on without one.
        dtype: Dtype; float32 when None.
        batch_shape: Shape with the batch in front, in place of `shape`.
    """
    if batch_shape is None:
        if shape is None:
            raise InvalidArgumentError("Input needs a shape, without the batch")
        batch_shape = (batch_size, *shape)
    name = name or f"input_{get_uid('input')}"
    tensor = placeholder(dtype or dtypes.float32, list(batch_shape), name=name)
    history()[tensor] = (InputLayer(name=name), None, {})
    return tensor


# -- layers with weights -----------------------------------------------------------------------------------


class Dense(Remembering, core_layers.Dense):
    """A dense layer; arguments as for `tf.layers.Dense`."""

    def __init__(self, units: int, activation: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, *args, **kwargs)


class Conv1D(Remembering, convolution_layers.Conv1D):
    """A convolution of sequences; arguments as for `tf.layers.Conv1D`."""


class Conv2D(Remembering, convolution_layers.Conv2D):
    """A convolution of images; arguments as for `tf.layers.Conv2D`."""


class Conv2DTranspose(Remembering, convolution_layers.Conv2DTranspose):
    """A transposed convolution of images; arguments as for `tf.layers.Conv2DTranspose`."""


class SeparableConv2D(Remembering, convolution_layers.SeparableConv2D):
    """A separable convolution of images; arguments as for `tf.layers.SeparableConv2D`."""


class BatchNormalization(Remembering, normalization_layers.BatchNormalization):
    """Batch normalization; arguments as for `tf.layers.BatchNormalization`. A model runs its updates itself."""

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return super().call(inputs, learning_phase() if training is None else training, **kwargs)


class Embedding(Layer):
    """Rows of a matrix for integers.

    Args:
        input_dim: Number of rows.
        output_dim: Their size.
        embeddings_initializer: Initializer of the matrix.
        embeddings_regularizer: Regularizer of the matrix.
        input_length: Length of the sequences, for the first layer of a `Sequential` model.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        input_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        if input_length is not None:
            kwargs.setdefault("input_shape", (input_length,))
        super().__init__(**kwargs)
        self.rows = input_dim
        self.output_dim = output_dim
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = embeddings_regularizer

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            "embeddings",
            [self.rows, self.output_dim],
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
        )
        super().build(input_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return embedding_ops.embedding_lookup(self.embeddings, array_ops.to_int64(inputs))


# -- pooling -----------------------------------------------------------------------------------------------


class _Pooling(Remembering):
    def __init__(self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", **kwargs: Any) -> None:
        super().__init__(pool_size, strides, padding, **kwargs)


class MaxPooling1D(_Pooling, pooling_layers.MaxPooling1D):
    """Maxima of windows of sequences; arguments as for `tf.layers.MaxPooling1D`."""


class MaxPooling2D(_Pooling, pooling_layers.MaxPooling2D):
    """Maxima of windows of images; arguments as for `tf.layers.MaxPooling2D`."""


class AveragePooling1D(_Pooling, pooling_layers.AveragePooling1D):
    """Means of windows of sequences; arguments as for `tf.layers.AveragePooling1D`."""


class AveragePooling2D(_Pooling, pooling_layers.AveragePooling2D):
    """Means of windows of images; arguments as for `tf.layers.AveragePooling2D`."""


class GlobalAveragePooling1D(Layer):
    """The mean of each channel of a sequence."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return math_ops.reduce_mean(inputs, 1)


class GlobalAveragePooling2D(Layer):
    """The mean of each channel of an image."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return math_ops.reduce_mean(inputs, [1, 2])


class GlobalMaxPooling1D(Layer):
    """The maximum of each channel of a sequence."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return math_ops.reduce_max(inputs, 1)


class GlobalMaxPooling2D(Layer):
    """The maximum of each channel of an image."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return math_ops.reduce_max(inputs, [1, 2])


# -- without weights ---------------------------------------------------------------------------------------


class Dropout(Remembering, core_layers.Dropout):
    """Dropout in training; arguments as for `tf.layers.Dropout`."""

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return super().call(inputs, learning_phase() if training is None else training, **kwargs)


class GaussianNoise(Layer):
    """Adds normal numbers of standard deviation `stddev` in training."""

    def __init__(self, stddev: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        def noisy() -> Tensor:
            return inputs + random_ops.random_normal(array_ops.shape(inputs), 0.0, self.stddev, inputs.dtype)

        condition = learning_phase() if training is None else training
        return smart_cond(condition, noisy, lambda: array_ops.identity(inputs))


class Flatten(Remembering, core_layers.Flatten):
    """Joins all dimensions but the first."""


class Activation(Layer):
    """Applies an activation, a function or the name of one."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return self.activation(inputs)


class ReLU(Layer):
    """`tf.nn.relu`."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return activation_ops.relu(inputs)


class LeakyReLU(Layer):
    """`tf.nn.leaky_relu` with slope `alpha` below 0."""

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return activation_ops.leaky_relu(inputs, self.alpha)


class Softmax(Layer):
    """`tf.nn.softmax` along the last dimension."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return activations.softmax(inputs)


class Reshape(Layer):
    """Gives each example another shape, in which one size may be -1."""

    def __init__(self, target_shape: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = list(target_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        rest = [int(size) for size in self.target_shape]
        known = inputs.shape[1:].num_elements()
        if -1 in rest and known is not None:
            others = -math.prod(rest)
            rest[rest.index(-1)] = known // others if others else 0
        outputs = array_ops.reshape(inputs, array_ops.concat([array_ops.shape(inputs)[:1], rest], 0))
        outputs.set_shape(TensorShape([inputs.shape.as_list()[0], *(None if size < 0 else size for size in rest)]))
        return outputs


class Permute(Layer):
    """Reorders the dimensions of each example, which count from 1."""

    def __init__(self, dims: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = list(dims)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return array_ops.transpose(inputs, [0, *self.dims])


class RepeatVector(Layer):
    """Makes sequences of `n` times the same vector."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = n

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return array_ops.tile(array_ops.expand_dims(inputs, 1), [1, self.n, 1])


class Lambda(Layer):
    """Applies a Python function to the inputs."""

    def __init__(self, function: Callable[..., Any], arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.arguments = arguments or {}

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return self.function(inputs, **self.arguments)


class ZeroPadding2D(Layer):
    """Puts zeros around images: `padding` is one size, a size for rows and one for columns, or pairs of these."""

    def __init__(self, padding: Any = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.padding = _pairs(padding)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return array_ops.pad(inputs, [[0, 0], *self.padding, [0, 0]])


class Cropping2D(Layer):
    """Cuts rows and columns off images; `cropping` as the padding of `ZeroPadding2D`."""

    def __init__(self, cropping: Any = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cropping = _pairs(cropping)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        (top, bottom), (left, right) = self.cropping
        return inputs[:, top : -bottom or None, left : -right or None]


class UpSampling2D(Layer):
    """Repeats rows and columns of images `size` times."""

    def __init__(self, size: Any = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = per_axis(size, 2, "size")

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        _, height, width, channels = inputs.shape.as_list()
        if None in (height, width, channels):
            raise InvalidArgumentError(f"UpSampling2D: the images have shape {inputs.shape}, whose sizes must be known")
        rows, columns = self.size
        apart = array_ops.reshape(inputs, [-1, height, 1, width, 1, channels])
        repeated = array_ops.tile(apart, [1, 1, rows, 1, columns, 1])
        return array_ops.reshape(repeated, [-1, height * rows, width * columns, channels])


def _pairs(sizes: Any) -> list[list[int]]:
    return [per_axis(size, 2, "padding") for size in (sizes if isinstance(sizes, Sequence) else [sizes, sizes])]


# -- of several inputs -------------------------------------------------------------------------------------


class _Merge(Layer):
    """A layer that makes one tensor of a list of at least two."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise InvalidArgumentError(f"a merge layer should be called on a list of at least 2 inputs, got {inputs}")
        return self._merged(list(inputs))

    def _merged(self, inputs: list[Any]) -> Any:
        raise NotImplementedError


class Add(_Merge):
    """The sum of the inputs, whose shapes may be broadcast."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.add, inputs)


class Subtract(_Merge):
    """The first of two inputs minus the second."""

    def _merged(self, inputs: list[Any]) -> Any:
        first, second = inputs
        return math_ops.subtract(first, second)


class Multiply(_Merge):
    """The product of the inputs."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.multiply, inputs)


class Average(_Merge):
    """The mean of the inputs."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.add, inputs) / len(inputs)


class Maximum(_Merge):
    """The largest of the inputs, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.maximum, inputs)


class Minimum(_Merge):
    """The smallest of the inputs, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(math_ops.minimum, inputs)


class Concatenate(_Merge):
    """The inputs joined along `axis`; their other sizes are equal."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def _merged(self, inputs: list[Any]) -> Any:
        sizes = [value.shape.as_list() for value in inputs]
        for other in sizes:
            del other[self.axis]
        if any(not TensorShape(sizes[0]).is_compatible_with(other) for other in sizes):
            shown = [value.shape.as_list() for value in inputs]
            raise InvalidArgumentError(f"a `Concatenate` layer requires inputs with matching shapes, got {shown}")
        return array_ops.concat(inputs, self.axis)


class Dot(_Merge):
    """Products of two inputs, ``[batch, ...]``, example by example.

    Args:
        axes: The axis of each over which products are summed, or one for both.
        normalize: Divide the inputs by their norms along these axes first: what is given is the cosine.
        **kwargs: As for `Layer`.
    """

    def __init__(self, axes: int | Sequence[int] = -1, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes = axes
        self.normalize = normalize

    def _merged(self, inputs: list[Any]) -> Any:
        if len(inputs) != 2:
            raise InvalidArgumentError(f"a `Dot` layer should be called on exactly 2 inputs, got {len(inputs)}")
        first, second = inputs
        axes = (self.axes, self.axes) if isinstance(self.axes, int) else tuple(self.axes)
        one, other = (axis % value.shape.rank for axis, value in zip(axes, inputs, strict=True))
        if not first.shape[one : one + 1].is_compatible_with(second.shape[other : other + 1]):
            raise InvalidArgumentError(f"`Dot` over axes {axes}: shapes {first.shape} and {second.shape} do not match")
        if self.normalize:
            first, second = normalization_ops.l2_normalize(first, one), normalization_ops.l2_normalize(second, other)
        return batch_dot(first, second, (one, other))


# -- recurrent layers ---------------------------------------------------------------------------------------


class _RecurrentCell(Layer):
    """One step of a recurrent layer. `RNN` and `tf.nn.dynamic_rnn` run it over sequences.

    Args:
        units: Size of the output.
        activation: Activation of the output.
        recurrent_activation: That of the gates.
        use_bias: Have a bias.
        kernel_initializer: Initializer of the weights of inputs.
        recurrent_initializer: That of the weights of the state.
        bias_initializer: That of the bias.
        dropout: Part of the inputs that a layer drops in training, the same at each step of a sequence and for all
            gates.
        recurrent_dropout: Likewise of the state, where it is multiplied with weights.
        **kwargs: As for `Layer`.
    """

    _gates = 1

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        *,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout
        self._masks: tuple[Any, Any] = (None, None)
        self.activation = activations.get(activation)
        self.recurrent_activation = activations.get(recurrent_activation)
        self._use_bias = use_bias
        self._starts = kernel_initializer, recurrent_initializer, bias_initializer

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
        count = self.units * self._gates
        kernel, recurrent, bias = self._starts
        self.kernel = self.add_weight("kernel", [TensorShape(input_shape).as_list()[-1], count], initializer=kernel)
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.units, count], initializer=recurrent)
        self.bias = self.add_weight("bias", [count], initializer=self._bias(bias)) if self._use_bias else None

    def _bias(self, initializer: Any) -> Any:
        return initializer

    def begin(self, inputs: Any, training: Any = None) -> None:
        """Draw what is dropped in the sequences that follow, given what a step of them takes."""
        state = array_ops.zeros(array_ops.stack([array_ops.shape(inputs)[0], self.units]))
        training = learning_phase() if training is None else training
        self._masks = drop_mask(inputs, self.dropout, training), drop_mask(state, self.recurrent_dropout, training)

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:  # type: ignore[override]
        """The output and the new state, which is a list if `states` is one."""
        if self._masks[0] is not None:
            inputs = inputs * self._masks[0]
        if not isinstance(states, (list, tuple)):
            output, (state,) = self._step(inputs, [states])
            return output, state
        return self._step(inputs, list(states))

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        raise NotImplementedError

    def _of_inputs(self, inputs: Any) -> Any:
        product = math_ops.matmul(inputs, self.kernel)
        return product if self.bias is None else product + self.bias

    def _kept(self, state: Any) -> Any:
        return state if self._masks[1] is None else state * self._masks[1]


class SimpleRNNCell(_RecurrentCell):
    """The cell of `SimpleRNN`: the activation of inputs and state, each times weights. Arguments: `units`,
    `activation`, `use_bias`, `kernel_initializer`, `recurrent_initializer`, `bias_initializer`.
    """

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, None, use_bias, *args, **kwargs)

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        output = self.activation(
            self._of_inputs(inputs) + math_ops.matmul(self._kept(states[0]), self.recurrent_kernel)
        )
        return output, [output]


class GRUCell(_RecurrentCell):
    __doc__ = f"The cell of `GRU`, whose reset gate acts on the state. {_RecurrentCell.__doc__}"

    _gates = 3

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        (before,) = states
        kept = self._kept(before)
        own = array_ops.split(self._of_inputs(inputs), 3, axis=1)
        recurrent = array_ops.split(self.recurrent_kernel, 3, axis=1)
        update = self.recurrent_activation(own[0] + math_ops.matmul(kept, recurrent[0]))
        reset = self.recurrent_activation(own[1] + math_ops.matmul(kept, recurrent[1]))
        candidate = self.activation(own[2] + math_ops.matmul(reset * kept, recurrent[2]))
        output = update * before + (1 - update) * candidate
        return output, [output]


class LSTMCell(_RecurrentCell):
    __doc__ = f"""The cell of `LSTM`, whose state is ``[output, memory]``. {_RecurrentCell.__doc__}
    `unit_forget_bias`, True by default, lets the bias of the forget gate begin with ones.
    """

    _gates = 4

    def __init__(self, units: int, *args: Any, unit_forget_bias: bool = True, **kwargs: Any) -> None:
        super().__init__(units, *args, **kwargs)
        self._unit_forget_bias = unit_forget_bias

    @property
    def state_size(self) -> Any:
        """Sizes of output and memory."""
        return [self.units, self.units]

    def _bias(self, initializer: Any) -> Any:
        if not self._unit_forget_bias:
            return initializer
        start = initializers.get(initializer)

        def with_ones(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            parts = [start([self.units], dtype), array_ops.ones([self.units], dtype), start([2 * self.units], dtype)]
            return array_ops.concat(parts, 0)

        return with_ones

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        before, memory = states
        product = self._of_inputs(inputs) + math_ops.matmul(self._kept(before), self.recurrent_kernel)
        enter, forget, new, leave = array_ops.split(product, 4, axis=1)
        kept = self.recurrent_activation(forget) * memory
        memory = kept + self.recurrent_activation(enter) * self.activation(new)
        output = self.recurrent_activation(leave) * self.activation(memory)
        return output, [output, memory]


class StackedRNNCells(Layer):
    """Cells one above the other, each of which takes what the one below gives. `RNN` makes it of a list of cells."""

    def __init__(self, cells: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = list(cells)
        self.state_size = [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """Size of the output, that of the last cell."""
        return output_size(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        step, *constants = input_shape if isinstance(input_shape, list) else [input_shape]
        for index, cell in enumerate(self.cells):
            with variable_scope(f"cell_{index}"):
                build_cell(self, cell, step, constants)
            step = TensorShape(step[:1]).concatenate(output_size(cell))

    def begin(self, inputs: Any, training: Any = None) -> None:
        """Draw what is dropped in the sequences that follow."""
        for cell in self.cells:
            if hasattr(cell, "begin"):
                cell.begin(inputs, training)
            inputs = zeros_of(output_size(cell), array_ops.shape(inputs)[0], inputs.dtype)

    def call(self, inputs: Any, states: Any, constants: Any = None) -> Any:  # type: ignore[override]
        """The output of the last cell, and a list of the states of all."""
        after = []
        for cell, state in zip(self.cells, states, strict=True):
            inputs, state = run_cell(cell, inputs, state, constants)
            after.append(state)
        return inputs, after


class RNN(Layer):
    """A cell over sequences, ``[batch, time, size]``.

    Args:
        cell: A cell of this module, a layer with ``state_size`` and ``call(inputs, states)`` that gives the output and
            a list of states, a list of these, or another cell with ``state_size``, ``output_size`` and ``zero_state``.
            A cell whose ``call`` takes ``constants`` is given those of the layer's call, a list of tensors.
        return_sequences: Give the outputs of all steps, ``[batch, time, units]``, not the last, ``[batch, units]``.
        return_state: Give a list of that, and of the parts of the last state.
        go_backwards: Read the sequences from their ends.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cell = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else cell
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards

    def call(  # type: ignore[override]
        self, inputs: Any, initial_state: Any = None, constants: Any = None, training: Any = None
    ) -> Any:
        constants = [constants] if isinstance(constants, Tensor) else constants
        step = TensorShape(inputs.shape[:1]).concatenate(inputs.shape[2:])
        build_cell(self, self.cell, step, [constant.shape for constant in constants or ()])
        if self.go_backwards:
            inputs = array_ops.reverse(inputs, [1])
        if hasattr(self.cell, "begin"):
            self.cell.begin(inputs[:, 0], training)
        if isinstance(initial_state, (list, tuple)):
            initial_state = nest.pack_sequence_as(self.cell.state_size, nest.flatten(initial_state))
        cell: Any = Steps(self.cell, constants) if isinstance(self.cell, base_layer.Layer) else self.cell
        outputs, state = dynamic_rnn(cell, inputs, initial_state=initial_state, dtype=inputs.dtype)
        states = nest.flatten(state)
        # Without lengths of the sequences, all end together.
        result = outputs if self.return_sequences else outputs[:, -1]
        return [result, *states] if self.return_state else result


class _OwnCell(RNN):
    """A recurrent layer with a cell of its own; arguments are those of the cell, and those of `RNN` by name."""

    _cell: type[_RecurrentCell]

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        own = ("return_sequences", "return_state", "go_backwards", "input_shape", "batch_input_shape", "input_dim")
        settings = {name: kwargs.pop(name) for name in (*own, "name", "dtype", "trainable") if name in kwargs}
        super().__init__(self._cell(units, *args, **kwargs), **settings)


class SimpleRNN(_OwnCell):
    """`SimpleRNNCell` over sequences; arguments are those of the cell, and by name those of `RNN`."""

    _cell = SimpleRNNCell


class GRU(_OwnCell):
    """`GRUCell` over sequences; arguments are those of the cell, and by name those of `RNN`."""

    _cell = GRUCell


class LSTM(_OwnCell):
    """`LSTMCell` over sequences; arguments are those of the cell, and by name those of `RNN`."""

    _cell = LSTMCell


def add(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The sum of the inputs."""
    return Add(**kwargs)(inputs)


def multiply(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The product of the inputs."""
    return Multiply(**kwargs)(inputs)


def subtract(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The first of two inputs minus the second."""
    return Subtract(**kwargs)(inputs)


def maximum(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The largest of the inputs, element by element."""
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The smallest of the inputs, element by element."""
    return Minimum(**kwargs)(inputs)


def dot(inputs: Sequence[Any], axes: int | Sequence[int], normalize: bool = False, **kwargs: Any) -> Any:
    """Products of two inputs, example by example; see `Dot`."""
    return Dot(axes, normalize, **kwargs)(inputs)


def average(inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The mean of the inputs."""
    return Average(**kwargs)(inputs)


def concatenate(inputs: Sequence[Any], axis: int = -1, **kwargs: Any) -> Any:
    """The inputs joined along `axis`."""
    return Concatenate(axis, **kwargs)(inputs)


Convolution2D, MaxPool2D, AvgPool2D = Conv2D, MaxPooling2D, AveragePooling2D
