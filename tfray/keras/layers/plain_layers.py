"""Layers of Keras models that work on any vectors: dense ones, embeddings, dropout, masking, activations, shapes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import TensorShape
from tfray.keras import activations, constraints, initializers, regularizers, tensor_functions
from tfray.keras.backend import get_uid, learning_phase
from tfray.keras.layers.keras_variants import InKeras
from tfray.keras.settings import floatx, normalize_data_format
from tfray.library.layers import core_layers, feature_column, normalization_layers
from tfray.library.layers.descriptions import restored
from tfray.library.layers.input_spec import InputSpec
from tfray.library.layers.keras_layer import Layer
from tfray.library.layers.layer_history import history
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import math_ops
from tfray.ops.nn import activation_ops, embedding_ops, nn_ops, normalization_ops
from tfray.ops.random import random_ops
from tfray.ops.sparse.sparse_ops import sparse_placeholder

_NOT_RAGGED: Final = "there are no ragged inputs: give a dense tensor and the lengths, or a sparse one"


class InputLayer(Layer):
    """Where a model takes its inputs.

    Args:
        input_shape: Shape of one example.
        batch_size: Number of examples; any when None.
        dtype: Dtype; float32 when None.
        input_tensor: A tensor that is the input, in place of a placeholder.
        sparse: Whether the input is a `tf.SparseTensor`.
        name: Name of the layer.
        ragged: Has to be False.
        **kwargs: As for `Layer`.
    """

    supports_masking = True

    def __init__(
        self,
        input_shape: Sequence[int | None] | int | None = None,
        batch_size: int | None = None,
        dtype: DTypeLike | None = None,
        input_tensor: Tensor | SparseTensor | None = None,
        sparse: bool = False,
        name: str | None = None,
        ragged: bool = False,
        **kwargs: Any,
    ) -> None:
        if ragged:
            raise ValueError(_NOT_RAGGED)
        shape = (input_shape,) if isinstance(input_shape, int) else input_shape
        own = name or f"input_{get_uid('input')}"
        super().__init__(input_shape=shape, batch_size=batch_size, dtype=dtype or floatx(), name=own, **kwargs)
        self.input_dtype, self.given, self.sparse = dtype, input_tensor, sparse

    def _taken(self, tensor: Any) -> Any:
        """A tensor, whose layer this is from now on."""
        history()[tensor] = (self, None, {})
        self._recorded_calls.append((tensor, tensor))
        self.built = True
        return tensor

    def tensor(self) -> Any:
        """The input: the tensor that was given, or a placeholder, which is made when it is first asked for.

        Raises:
            ValueError: There is neither a tensor nor a shape.
        """
        if self._recorded_calls:
            return self._recorded_calls[0][0]
        if self.given is not None:
            return self._taken(self.given)
        if self.batch_input_shape is None:
            raise ValueError(f"InputLayer {self.name!r} needs a shape or a tensor")
        make = sparse_placeholder if self.sparse else placeholder
        return self._taken(make(self.dtype, list(self.batch_input_shape), name=self.name))

    def get_config(self) -> dict[str, Any]:
        """What makes an equal input."""
        shape, dtype = self.batch_input_shape, self.dtype.name
        if self.given is not None:
            shape, dtype = self.given.shape.as_list(), self.given.dtype.name
        of_tensors = {"dtype": dtype, "sparse": self.sparse, "ragged": False}
        return {"batch_input_shape": shape, "name": self.name, **of_tensors}


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    tensor: Tensor | SparseTensor | None = None,
    ragged: bool = False,
    batch_shape: Sequence[int | None] | None = None,
) -> Any:
    """An input of a model: a placeholder, unless there is a tensor.

    Args:
        shape: Shape of one example.
        batch_size: Number of examples; any when None.
        name: Name of the input and of its placeholder; ``input_1``, ``input_2`` and so on without one.
        dtype: Dtype; float32 when None.
        sparse: Make it a `tf.SparseTensor`.
        tensor: A tensor that is the input.
        ragged: Has to be False.
        batch_shape: Shape with the batch in front, in place of `shape`.

    Raises:
        ValueError: It would be ragged; tfray does without ragged tensors.
    """
    if ragged:
        raise ValueError(_NOT_RAGGED)
    if isinstance(tensor, SparseTensor):
        return InputLayer(name=name or tensor.op.name.replace("/", "_"), input_tensor=tensor, sparse=True)._taken(
            tensor
        )
    if tensor is not None:
        tensor = convert_to_tensor(tensor)
        return InputLayer(name=name or tensor.op.name.replace("/", "_"), input_tensor=tensor)._taken(tensor)
    if isinstance(shape, int):
        shape = (shape,)
    if batch_shape is None:
        if shape is None:
            raise InvalidArgumentError("Input needs a shape, without the batch")
        batch_shape = (batch_size, *shape)
    name = name or f"input_{get_uid('input')}"
    return InputLayer(name=name, batch_input_shape=tuple(batch_shape), dtype=dtype, sparse=sparse).tensor()


class Dense(InKeras, core_layers.Dense):
    """A dense layer; arguments as for `tf.layers.Dense`."""

    def __init__(self, units: int, activation: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, *args, **kwargs)


class BatchNormalization(InKeras, normalization_layers.BatchNormalization):
    """Batch normalization; arguments as for `tf.layers.BatchNormalization`. A model runs its updates itself."""

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return super().call(inputs, learning_phase() if training is None else training, **kwargs)


class DenseFeatures(InKeras, feature_column.DenseFeatures):
    """The numbers of feature columns, ``[batch, width]``, for a dictionary of features."""


class LayerNormalization(Layer):
    """Scales each example to mean 0 and variance 1 along axes, and then by weights.

    Args:
        axis: The axes, or one.
        epsilon: Added to the variance.
        center: Add a weight, ``beta``.
        scale: Multiply by a weight, ``gamma``.
        beta_initializer: Initializer of that weight.
        gamma_initializer: Likewise.
        beta_regularizer: Regularizer of the weight.
        gamma_regularizer: Likewise.
        beta_constraint: Constraint of the weight.
        gamma_constraint: Likewise.
        trainable: Whether optimizers change the weights.
        name: Name of the layer.
        **kwargs: As for `Layer`.

    Raises:
        TypeError: `axis` is no number, and no list of them.
        ValueError: There is no such axis.
    """

    supports_masking = True

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, **kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"Expected an int or a list/tuple of ints for the argument 'axis', but received {axis!r}")
        self.axis, self.epsilon = axis, epsilon
        self.weights_of = {}
        if center:
            self.weights_of["beta"] = (initializers.get(beta_initializer), beta_regularizer, beta_constraint)
        if scale:
            self.weights_of["gamma"] = (initializers.get(gamma_initializer), gamma_regularizer, gamma_constraint)
        self.beta: Any = None
        self.gamma: Any = None

    def _axes(self, rank: int) -> list[int]:
        return sorted(axis % rank for axis in ([self.axis] if isinstance(self.axis, int) else self.axis))

    def build(self, input_shape: Any) -> None:
        sizes = TensorShape(input_shape).as_list()
        for axis in [self.axis] if isinstance(self.axis, int) else self.axis:
            if not -len(sizes) <= axis < len(sizes):
                raise ValueError(f"Invalid axis: {axis}")
        shape = [sizes[axis] for axis in self._axes(len(sizes))]
        for name in ("gamma", "beta"):
            if name in self.weights_of:
                initializer, regularizer, constraint = self.weights_of[name]
                settings = {"regularizer": regularizer, "constraint": constraint}
                setattr(self, name, self.add_weight(name, shape, initializer=initializer, **settings))
        super().build(input_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        sizes = inputs.shape.as_list()
        axes = self._axes(len(sizes))
        mean, variance = normalization_ops.moments(inputs, axes, keep_dims=True)
        across = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
        beta, gamma = (None if each is None else array_ops.reshape(each, across) for each in (self.beta, self.gamma))
        outputs = normalization_ops.batch_normalization(inputs, mean, variance, beta, gamma, self.epsilon)
        outputs.set_shape(inputs.shape)
        return outputs


class Embedding(Layer):
    """Rows of a matrix for integers.

    Args:
        input_dim: Number of rows.
        output_dim: Their size.
        embeddings_initializer: Initializer of the matrix.
        embeddings_regularizer: Regularizer of the matrix.
        activity_regularizer: Regularizer of the outputs.
        mask_zero: Mask the outputs where the integers are 0.
        embeddings_constraint: Constraint of the matrix.
        input_length: Length of the sequences, for the first layer of a `Sequential` model; any length when None.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: Any = None,
        **kwargs: Any,
    ) -> None:
        if "batch_input_shape" not in kwargs:
            lengths = input_length if isinstance(input_length, (list, tuple)) else (input_length,)
            kwargs.setdefault("input_shape", tuple(lengths))
        super().__init__(activity_regularizer=activity_regularizer, **{"dtype": floatx(), **kwargs})
        self.input_dim = input_dim
        self.supports_masking = self.mask_zero = mask_zero
        self.input_length = input_length
        self.output_dim = output_dim
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            "embeddings",
            [self.input_dim, self.output_dim],
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
        )
        super().build(input_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return embedding_ops.embedding_lookup(self.embeddings, array_ops.to_int64(inputs))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """False where an integer is 0, if `mask_zero`."""
        return math_ops.not_equal(inputs, 0) if self.mask_zero else None


class Masking(Layer):
    """Masks the steps of sequences, ``[batch, time, size]``, in which all is `mask_value`; they become zeros."""

    supports_masking = True
    _masks_its_outputs = True

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """False for steps in which all elements are `mask_value`."""
        return math_ops.reduce_any(math_ops.not_equal(inputs, self.mask_value), -1)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        shown = math_ops.reduce_any(math_ops.not_equal(inputs, self.mask_value), -1, keepdims=True)
        outputs = inputs * array_ops.cast(shown, inputs.dtype)
        outputs._keras_mask = array_ops.squeeze(shown, [-1])
        return outputs


def _trains(training: Any) -> Any:
    return learning_phase() if training is None else training


class Dropout(InKeras, core_layers.Dropout):
    """Dropout in training; arguments as for `tf.layers.Dropout`. In `noise_shape`, None is the size of the inputs."""

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        shape = self._noise_shape(inputs)

        def dropped() -> Tensor:
            return nn_ops.dropout(inputs, noise_shape=shape, seed=self.seed, rate=self.rate)

        outputs = smart_cond(_trains(training), dropped, lambda: array_ops.identity(inputs))
        outputs.set_shape(inputs.shape)
        return outputs

    def _noise_shape(self, inputs: Tensor) -> Any:
        if not isinstance(self.noise_shape, (list, tuple)) or None not in self.noise_shape:
            return self.noise_shape
        sizes = array_ops.shape(inputs)
        return array_ops.stack([sizes[axis] if size is None else size for axis, size in enumerate(self.noise_shape)])


class _SpatialDropout(Dropout):
    _dimensions = 1

    def __init__(self, rate: float, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(rate, **kwargs)
        self.data_format = normalize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self._dimensions + 2)

    def _noise_shape(self, inputs: Tensor) -> Any:
        sizes, ones = array_ops.shape(inputs), [1] * self._dimensions
        if self.data_format == "channels_first":
            return array_ops.stack([sizes[0], sizes[1], *ones])
        return array_ops.stack([sizes[0], *ones, sizes[-1]])


class SpatialDropout1D(_SpatialDropout):
    """Dropout of whole channels of sequences."""

    _unsaid = ("data_format",)

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(rate, **kwargs)


class SpatialDropout2D(_SpatialDropout):
    """Dropout of whole channels of images."""

    _dimensions = 2


class SpatialDropout3D(_SpatialDropout):
    """Dropout of whole channels of volumes."""

    _dimensions = 3


class _Noise(Layer):
    supports_masking = True

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        outputs = smart_cond(_trains(training), lambda: self._noisy(inputs), lambda: array_ops.identity(inputs))
        outputs.set_shape(inputs.shape)
        return outputs

    def _noisy(self, inputs: Any) -> Any:
        raise NotImplementedError


class GaussianNoise(_Noise):
    """Adds normal numbers of standard deviation `stddev` in training."""

    def __init__(self, stddev: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev

    def _noisy(self, inputs: Any) -> Any:
        return inputs + random_ops.random_normal(array_ops.shape(inputs), 0.0, self.stddev, inputs.dtype)


class GaussianDropout(_Noise):
    """Multiplies by normal numbers of mean 1, and the variance of dropout with this rate, in training."""

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def _noisy(self, inputs: Any) -> Any:
        if not 0 < self.rate < 1:
            return array_ops.identity(inputs)
        deviation = math.sqrt(self.rate / (1 - self.rate))
        return inputs * random_ops.random_normal(array_ops.shape(inputs), 1.0, deviation, inputs.dtype)


class AlphaDropout(_Noise):
    """Dropout in training that keeps mean and variance, for `tf.nn.selu`.

    Args:
        rate: Probability that an element is dropped.
        noise_shape: Shape of the random choices.
        seed: Seed of the operation.
        **kwargs: As for `Layer`.
    """

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def _noisy(self, inputs: Any) -> Any:
        if not 0 < self.rate < 1:
            return array_ops.identity(inputs)
        lowest = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946
        shape = array_ops.shape(inputs) if self.noise_shape is None else self.noise_shape
        drawn = random_ops.random_uniform(shape, dtype=inputs.dtype, seed=self.seed)
        kept = array_ops.cast(math_ops.greater_equal(drawn, self.rate), inputs.dtype)
        scale = ((1 - self.rate) * (1 + self.rate * lowest**2)) ** -0.5
        return scale * (inputs * kept + lowest * (1 - kept)) - scale * lowest * self.rate


class ActivityRegularization(Layer):
    """Adds a loss of its inputs, ``l1 * sum(abs(x)) + l2 * sum(x ** 2)``, for each example."""

    supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)


class Flatten(InKeras, core_layers.Flatten):
    """Joins all dimensions but the first."""


class Activation(Layer):
    """Applies an activation, a function or the name of one."""

    supports_masking = True

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return self.activation(inputs)


class ReLU(Layer):
    """`tf.keras.backend.relu`.

    Args:
        max_value: The largest output; none when None.
        negative_slope: Slope below the threshold.
        threshold: Where the outputs begin.
        **kwargs: As for `Layer`.

    Raises:
        ValueError: `max_value` or `negative_slope` is negative.
    """

    supports_masking = True

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if max_value is not None and max_value < 0.0:
            raise ValueError(f"max_value of Relu layer cannot be negative value: {max_value}")
        if negative_slope < 0.0:
            raise ValueError(f"negative_slope of Relu layer cannot be negative value: {negative_slope}")
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return tensor_functions.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Layer):
    """`tf.nn.leaky_relu` with slope `alpha` below 0."""

    supports_masking = True

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return activation_ops.leaky_relu(inputs, self.alpha)


class PReLU(Layer):
    """``max(x, 0) + alpha * min(x, 0)``, where ``alpha`` is a weight.

    Args:
        alpha_initializer: Initializer of the weight.
        alpha_regularizer: Its regularizer.
        alpha_constraint: Its constraint.
        shared_axes: Axes along which elements share it.
        **kwargs: As for `Layer`.
    """

    supports_masking = True

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: int | Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.alpha_initializer = initializers.get(alpha_initializer)
        self.alpha_regularizer = regularizers.get(alpha_regularizer)
        self.alpha_constraint = constraints.get(alpha_constraint)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else shared_axes and list(shared_axes)

    def build(self, input_shape: Any) -> None:
        sizes = TensorShape(input_shape).as_list()
        shape = [1 if axis in (self.shared_axes or ()) else size for axis, size in enumerate(sizes) if axis]
        settings = {"regularizer": self.alpha_regularizer, "constraint": self.alpha_constraint}
        self.alpha = self.add_weight("alpha", shape, initializer=self.alpha_initializer, **settings)
        super().build(input_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return activation_ops.relu(inputs) - self.alpha * activation_ops.relu(-inputs)


class ELU(Layer):
    """``x`` above 0, and ``alpha * (exp(x) - 1)`` below."""

    supports_masking = True

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        outputs = activation_ops.elu(inputs)
        return outputs if self.alpha == 1 else array_ops.where(inputs > 0, outputs, self.alpha * outputs)


class ThresholdedReLU(Layer):
    """``x`` above `theta`, and 0 below."""

    supports_masking = True

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = theta

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return inputs * array_ops.cast(math_ops.greater(inputs, self.theta), inputs.dtype)


class Softmax(Layer):
    """`tf.keras.activations.softmax` along an axis."""

    supports_masking = True

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return activations.softmax(inputs, self.axis)


class Reshape(Layer):
    """Gives each example another shape, in which one size may be -1."""

    def __init__(self, target_shape: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

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
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                f"Invalid permutation `dims` for Permute Layer: {dims}. The set of indices in `dims` must be "
                "consecutive and start from 1."
            )

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
    """Applies a Python function to the inputs.

    Args:
        function: The function. One that has an argument ``mask`` or ``training`` is given it.
        output_shape: Shape of one example of the outputs, or a function from the shape of the inputs to that of the
            outputs, for `compute_output_shape`.
        mask: The mask of the outputs, or a function of the inputs and their mask.
        arguments: Further arguments of the function.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(function):
            raise InvalidArgumentError(f"{function!r} is no function")
        self.function = function
        self.arguments = arguments or {}
        self.mask = mask
        self.supports_masking = mask is not None
        self._output_shape = output_shape

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:  # type: ignore[override]
        more = dict(self.arguments)
        try:
            names: Any = inspect.signature(self.function).parameters
        except ValueError:  # a function of C
            names = ()
        if "mask" in names:
            more["mask"] = mask
        if "training" in names:
            more["training"] = training
        return self.function(inputs, **more)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """The layer that a configuration describes, such as Keras writes, whose functions are named.

        Raises:
            InvalidArgumentError: It has a function's code, not its name.
        """
        settings = {name: value for name, value in config.items() if name not in _OF_KERAS}
        for name in ("function", "output_shape", "mask"):
            is_code = config.get(f"{name}_type") == "lambda" or isinstance(config.get(name), dict)
            if is_code and not callable(config.get(name)):
                raise InvalidArgumentError(
                    f"Lambda layer {config.get('name')!r} has code of Python as its {name}, which is never executed "
                    "here: build the model by the program that made it, with functions that `def` names, and load the "
                    "weights of the file by load_weights"
                )
            if config.get(f"{name}_type") == "function" and isinstance(config.get(name), str):
                settings[name] = restored({"function": config[name]}, custom_objects)
        return super().from_config(settings, custom_objects)

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {*super()._known_arguments(), *_OF_KERAS}

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask that the layer was made with, or what its function gives."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Static shape of the outputs: as the layer was made, or found by a call."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return self._output_shape(input_shape)
        batch = TensorShape(input_shape)[:1] if not isinstance(input_shape, list) else TensorShape(input_shape[0])[:1]
        if isinstance(self._output_shape, list):
            return [batch.concatenate(TensorShape(shape)) for shape in self._output_shape]
        return batch.concatenate(TensorShape(self._output_shape))


_OF_KERAS: Final = ("function_type", "module", "output_shape_type", "output_shape_module", "mask_type", "mask_module")
"""What Keras writes of functions beside their names."""
