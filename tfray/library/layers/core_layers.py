"""Dense layers, dropout and flattening."""

from __future__ import annotations

import math
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.layers import named_activations
from tfray.library.layers.base_layer import Layer, apply_layer, checked_shape
from tfray.library.layers.convolution_layers import layout_of
from tfray.library.layers.input_spec import InputSpec
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_store import Reuse
from tfray.library.variables.variables import Constraint
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.nn import nn_ops
from tfray.ops.sparse.sparse_math_ops import sparse_tensor_dense_matmul


class Dense(Layer):
    """``activation(inputs @ kernel + bias)``, along the last dimension of the inputs.

    Args:
        units: Size of the outputs' last dimension.
        activation: A function such as `tf.nn.relu`, or the name of one; None for none.
        use_bias: Have a bias.
        kernel_initializer: Initializer of the weights; that of the variable scope when None.
        bias_initializer: Initializer of the bias.
        kernel_regularizer: Regularizer of the weights.
        bias_regularizer: Regularizer of the bias.
        activity_regularizer: Function from the outputs to a loss, which is divided by the size of the batch.
        kernel_constraint: Function from the weights after an update to those to keep.
        bias_constraint: Likewise for the bias.
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """

    supports_masking = True

    def __init__(
        self,
        units: int,
        activation: Activation | str | None = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = initializers.Zeros,
        kernel_regularizer: RegularizerFunction | None = None,
        bias_regularizer: RegularizerFunction | None = None,
        activity_regularizer: RegularizerFunction | None = None,
        kernel_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation = named_activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.bias: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        size = checked_shape(self, input_shape)
        dtype = as_dtype(self.dtype or dtypes.float32)
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(f"Unable to build `Dense` layer with non-floating point dtype {dtype!r}: cast its inputs")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel",
            [size, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Tensor | SparseTensor, **kwargs: Any) -> Any:
        if (inputs.shape.rank or 2) > 2:
            outputs = linalg_ops.tensordot(inputs, self.kernel, [[len(inputs.shape) - 1], [0]])
            outputs.set_shape(self.compute_output_shape(inputs.shape))
        else:
            given: Any = array_ops.cast(inputs, self.kernel.dtype)
            is_sparse = isinstance(given, SparseTensor)
            outputs = (sparse_tensor_dense_matmul if is_sparse else linalg_ops.matmul)(given, self.kernel)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        checked_shape(self, input_shape)
        return TensorShape(input_shape)[:-1].concatenate(self.units)


class Dropout(Layer):
    """In training sets random elements to 0 and scales the others up; see `tf.nn.dropout`.

    Args:
        rate: Probability that an element is dropped.
        noise_shape: Shape of the random choices, which broadcasts to that of the inputs.
        seed: Seed of the operation.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """

    supports_masking = True

    def __init__(
        self,
        rate: float | Tensor = 0.5,
        noise_shape: TensorLike | None = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Tensor, training: TensorLike | None = False, **kwargs: Any) -> Any:
        """The inputs; where `training`, a Python value or scalar tensor, is true (None is not), some are dropped."""
        training = False if training is None else training

        def dropped() -> Tensor:
            return nn_ops.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)

        outputs = smart_cond(training, dropped, lambda: array_ops.identity(inputs))
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        return TensorShape(input_shape)


class Flatten(Layer):
    """Joins all dimensions but the first.

    Args:
        data_format: ``channels_last``, or ``channels_first`` to move the channels last before joining.
        **kwargs: As for `Layer`.
    """

    def __init__(self, data_format: str = "channels_last", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        layout_of(data_format, 1)  # which checks it
        self.data_format = data_format

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        rank = inputs.shape.rank
        if rank == 0:
            raise InvalidArgumentError(
                f"Input 0 of layer {self.name} is incompatible with the layer: expected min_ndim=1, found ndim=0"
            )
        if self.data_format == "channels_first" and rank is not None and rank > 2:
            inputs = array_ops.transpose(inputs, [0, *range(2, rank), 1])
        outputs = array_ops.reshape(inputs, self._new_shape(inputs))
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def _new_shape(self, inputs: Tensor) -> Any:
        size = self.compute_output_shape(inputs.shape).as_list()[1]
        if size is not None:
            return [-1, size]
        # The batch may be empty, in which case -1 for the rest would be ambiguous.
        shape = array_ops.shape(inputs)
        return array_ops.stack([shape[0], math_ops.reduce_prod(shape[1:])])

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        shape = TensorShape(input_shape)
        if shape.rank is None:
            return TensorShape([None, None])
        sizes = shape.as_list()
        rest = sizes[1:]
        joined = None if None in rest else math.prod(size for size in rest if size is not None)
        return TensorShape([sizes[0], joined])


def dense(
    inputs: TensorLike,
    units: int,
    activation: Activation | str | None = None,
    use_bias: bool = True,
    kernel_initializer: InitializerLike | None = None,
    bias_initializer: InitializerLike | None = initializers.Zeros,
    kernel_regularizer: RegularizerFunction | None = None,
    bias_regularizer: RegularizerFunction | None = None,
    activity_regularizer: RegularizerFunction | None = None,
    kernel_constraint: Constraint | None = None,
    bias_constraint: Constraint | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """``activation(inputs @ kernel + bias)``, along the last dimension of the inputs.

    Args:
        inputs: Shape ``[..., size]``, a floating dtype.
        units: Size of the outputs' last dimension.
        activation: As for `Dense`, like the arguments that follow.
        use_bias: Have a bias.
        kernel_initializer: Initializer of the weights.
        bias_initializer: Initializer of the bias.
        kernel_regularizer: Regularizer of the weights.
        bias_regularizer: Regularizer of the bias.
        activity_regularizer: Function from the outputs to a loss, which is divided by the size of the batch.
        kernel_constraint: Function from the weights after an update to those to keep.
        bias_constraint: Likewise for the bias.
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer, and of the variable scope.
        reuse: Use the variables of an earlier layer of that name.

    Returns:
        Shape ``[..., units]``.

    Raises:
        InvalidArgumentError: The rank is below 2, or the last size is not known.

    Examples:
        >>> outputs = tf.layers.dense([[1.0, 2.0]], units=3, kernel_initializer=tf.ones_initializer())
        >>> session.run(tf.global_variables_initializer())
        >>> session.run(outputs)
        array([[3., 3., 3.]], dtype=float32)
    """
    return apply_layer(Dense, **locals())


def dropout(
    inputs: TensorLike,
    rate: float | Tensor = 0.5,
    noise_shape: TensorLike | None = None,
    seed: int | None = None,
    training: TensorLike | None = False,
    name: str | None = None,
) -> Tensor:
    """In training set random elements to 0 and scale the others up.

    Args:
        inputs: A floating tensor of any shape.
        rate: Probability that an element is dropped, a number or scalar tensor.
        noise_shape: Shape of the random choices, which broadcasts to that of the inputs.
        seed: Seed of the operation.
        training: Whether to drop anything: a Python value or scalar tensor.
        name: Name of the layer.

    Returns:
        Same shape and dtype as `inputs`.

    Examples:
        >>> session.run(tf.layers.dropout(tf.constant([1.0, 2.0]), rate=0.5, training=False))
        array([1., 2.], dtype=float32)
    """
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)


def flatten(inputs: TensorLike, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Join all dimensions but the first.

    Args:
        inputs: Shape ``[batch, ...]``.
        name: Name of the layer.
        data_format: ``channels_last``, or ``channels_first`` to move the channels last before joining.

    Returns:
        Shape ``[batch, n]``.

    Examples:
        >>> tf.layers.flatten(tf.ones([2, 4, 4, 3])).shape.as_list()
        [2, 48]
    """
    return Flatten(data_format, name=name)(inputs)
