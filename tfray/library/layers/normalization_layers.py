"""Batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.base_layer import Layer
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_store import Reuse
from tfray.library.variables.variables import Constraint
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.nn import normalization_ops


class BatchNormalization(Layer):
    """Normalizes every channel to mean 0 and variance 1, then scales and shifts it.

    In training it uses the mean and variance of the batch, and updates moving averages of them. Otherwise it uses the
    moving averages. The updates go to ``GraphKeys.UPDATE_OPS`` and must be run with each training step:

        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss)

    Args:
        axis: The dimension of the channels, or a list with it.
        momentum: What remains of the averages in a step.
        epsilon: Added to the variance.
        center: Shift, by a variable ``beta``.
        scale: Scale, by a variable ``gamma``.
        beta_initializer: Initializer of ``beta``.
        gamma_initializer: Initializer of ``gamma``.
        moving_mean_initializer: Initializer of the average mean.
        moving_variance_initializer: Initializer of the average variance.
        beta_regularizer: Regularizer of ``beta``.
        gamma_regularizer: Regularizer of ``gamma``.
        beta_constraint: Function from ``beta`` after an update to what to keep.
        gamma_constraint: Likewise for ``gamma``.
        trainable: Whether optimizers are to change ``beta`` and ``gamma``.
        fused: Use one operation for images; by default wherever that is possible. Its average variance is the
            unbiased one.
        name: Name of the layer.
        **kwargs: As for `Layer`.

    References:
        Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
        Shift", 2015.
    """

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        momentum: TensorLike = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike | None = initializers.Zeros,
        gamma_initializer: InitializerLike | None = initializers.Ones,
        moving_mean_initializer: InitializerLike | None = initializers.Zeros,
        moving_variance_initializer: InitializerLike | None = initializers.Ones,
        beta_regularizer: RegularizerFunction | None = None,
        gamma_regularizer: RegularizerFunction | None = None,
        beta_constraint: Constraint | None = None,
        gamma_constraint: Constraint | None = None,
        trainable: bool = True,
        fused: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, **kwargs)
        axes = [axis] if isinstance(axis, int) else list(axis)
        if len(axes) != 1:
            raise InvalidArgumentError(f"batch normalization: axis is {axis!r}, expected one dimension")
        self.axis = axes[0]
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.fused = fused
        self._beta = (beta_initializer, beta_regularizer, beta_constraint)
        self._gamma = (gamma_initializer, gamma_regularizer, gamma_constraint)
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta: Any = None
        self.gamma: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        shape = TensorShape(input_shape)
        rank = shape.rank
        if rank is None or not -rank <= self.axis < rank:
            raise InvalidArgumentError(f"{self.name}: the input has shape {shape}, which has no axis {self.axis}")
        self.axis %= rank
        channels = shape.as_list()[self.axis]
        if channels is None:
            raise InvalidArgumentError(
                f"{self.name}: the input has shape {shape}, its size along {self.axis} is unknown"
            )
        can_fuse = rank == 4 and self.axis in (1, 3)
        if self.fused and not can_fuse:
            raise InvalidArgumentError(f"{self.name}: only images with axis 1 or 3 can be fused, not {shape}")
        self.fused = can_fuse if self.fused is None else self.fused
        if self.scale:
            self.gamma = self._add_parameter("gamma", channels, self._gamma)
        if self.center:
            self.beta = self._add_parameter("beta", channels, self._beta)
        self.moving_mean = self._add_average("moving_mean", channels, self.moving_mean_initializer)
        self.moving_variance = self._add_average("moving_variance", channels, self.moving_variance_initializer)
        super().build(input_shape)

    @property
    def _parameter_dtype(self) -> dtypes.DType:
        return dtypes.float32 if self.dtype.size == 2 else self.dtype

    def _add_parameter(self, name: str, channels: int, settings: tuple[Any, Any, Any]) -> Any:
        initializer, regularizer, constraint = settings
        return self.add_weight(
            name,
            [channels],
            self._parameter_dtype,
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
        )

    def _add_average(self, name: str, channels: int, initializer: InitializerLike | None) -> Any:
        return self.add_weight(name, [channels], self._parameter_dtype, initializer=initializer, trainable=False)

    def call(self, inputs: Tensor, training: TensorLike = False, **kwargs: Any) -> Any:
        """The normalized inputs; `training` is a Python value or a scalar tensor."""
        normalize = self._fused if self.fused else self._by_moments
        outputs, mean, variance = smart_cond(
            training, lambda: normalize(inputs, True), lambda: normalize(inputs, False)
        )
        outputs.set_shape(inputs.shape)
        if not _is_surely_false(training):
            momentum = smart_cond(training, lambda: _number(self.momentum), lambda: _number(1.0))
            for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                self.add_update(assign_moving_average(average, value, momentum, zero_debias=False))
        return outputs

    def _fused(self, inputs: Tensor, training: bool) -> list[Any]:
        gamma = array_ops.ones_like(self.moving_variance) if self.gamma is None else self.gamma
        beta = array_ops.zeros_like(self.moving_mean) if self.beta is None else self.beta
        given = [None, None] if training else [self.moving_mean.value(), self.moving_variance.value()]
        outputs, mean, variance = normalization_ops.fused_batch_norm(
            inputs,
            gamma,
            beta,
            mean=given[0],
            variance=given[1],
            epsilon=self.epsilon,
            data_format="NHWC" if self.axis == 3 else "NCHW",
            is_training=training,
        )
        return [outputs, mean, variance] if training else [outputs, *given]

    def _by_moments(self, inputs: Tensor, training: bool) -> list[Tensor]:
        rank = inputs.shape.rank
        assert rank is not None
        shape = [-1 if axis == self.axis else 1 for axis in range(rank)]

        def along_channels(value: TensorLike) -> Any:
            return value if value is None or self.axis == rank - 1 else array_ops.reshape(value, shape)

        if training:
            wide = array_ops.cast(inputs, self._parameter_dtype)
            mean, variance = normalization_ops.moments(wide, [axis for axis in range(rank) if axis != self.axis])
        else:
            mean, variance = self.moving_mean.value(), self.moving_variance.value()
        outputs = normalization_ops.batch_normalization(
            array_ops.cast(inputs, self._parameter_dtype),
            along_channels(mean),
            along_channels(variance),
            along_channels(self.beta),
            along_channels(self.gamma),
            self.epsilon,
        )
        return [array_ops.cast(outputs, inputs.dtype), mean, variance]


def _is_surely_false(condition: TensorLike) -> bool:
    """Whether a Python value, or a tensor that is constant, is false."""
    value = constant_value(condition) if isinstance(condition, Tensor) else condition
    return value is not None and not hasattr(value, "handle") and not bool(value)


def _number(value: TensorLike) -> Tensor:
    return convert_to_tensor(value, dtypes.float32)


def batch_normalization(
    inputs: TensorLike,
    axis: int | Sequence[int] = -1,
    momentum: TensorLike = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: InitializerLike | None = initializers.Zeros,
    gamma_initializer: InitializerLike | None = initializers.Ones,
    moving_mean_initializer: InitializerLike | None = initializers.Zeros,
    moving_variance_initializer: InitializerLike | None = initializers.Ones,
    beta_regularizer: RegularizerFunction | None = None,
    gamma_regularizer: RegularizerFunction | None = None,
    beta_constraint: Constraint | None = None,
    gamma_constraint: Constraint | None = None,
    training: TensorLike = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Reuse | None = None,
    fused: bool | None = None,
) -> Tensor:
    """Normalize every channel, then scale and shift it. Training must also run updates: see `BatchNormalization`.

    Args:
        inputs: Shape ``[batch, ..., channels]``, a floating dtype.
        axis: As for `BatchNormalization`, like all arguments that are not named here.
        momentum: What remains of the averages in a step, a number.
        epsilon: Added to the variance.
        center: Shift.
        scale: Scale.
        beta_initializer: Initializer of the shift.
        gamma_initializer: Initializer of the scale.
        moving_mean_initializer: Initializer of the average mean.
        moving_variance_initializer: Initializer of the average variance.
        beta_regularizer: Regularizer of the shift.
        gamma_regularizer: Regularizer of the scale.
        beta_constraint: Function from the shift after an update to what to keep.
        gamma_constraint: Likewise for the scale.
        training: Use the statistics of the batch, and move the averages: a Python value or scalar tensor.
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer, and of the variable scope.
        reuse: Use the variables of an earlier layer of that name.
        fused: Use one operation for images.

    Returns:
        Same shape and dtype as `inputs`.

    Raises:
        InvalidArgumentError: The axis does not exist, or its size is not known.

    Examples:
        >>> tf.layers.batch_normalization(tf.ones([16, 8, 8, 3]), training=True).shape
        TensorShape([16, 8, 8, 3])
        >>> len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))  # to be run with each step of training
        2
    """
    inputs = convert_to_tensor(inputs)
    layer = BatchNormalization(
        axis,
        momentum=momentum,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=beta_initializer,
        gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer,
        gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint,
        gamma_constraint=gamma_constraint,
        trainable=trainable,
        fused=fused,
        name=name,
        dtype=inputs.dtype,
        _scope=name,
        _reuse=reuse,
    )
    return layer(inputs, training=training)
