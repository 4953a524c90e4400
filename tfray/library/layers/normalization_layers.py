"""Batch normalization."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.base_layer import Layer, apply_layer
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.library.variables.variables import Constraint
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import math_ops
from tfray.ops.nn import batch_norm_ops, normalization_ops


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
        renorm: Correct the statistics of the batch, in training, towards their averages ``renorm_mean`` and
            ``renorm_stddev``. The average variance is then that of an average deviation, ``moving_stddev``.
        renorm_clipping: Bounds of the corrections: a dictionary with ``rmin`` and ``rmax`` of the factor, and ``dmax``
            of the offset.
        renorm_momentum: What remains of the averages of `renorm` in a step.
        fused: Use one operation for images, unless this is False: wherever that is possible, which it is with axis 1
            or 3 and without `renorm`, `virtual_batch_size` and `adjustment`. Its average variance is the unbiased one.
        trainable: Whether optimizers are to change ``beta`` and ``gamma``.
        virtual_batch_size: Normalize parts of the batch, of so many examples, each by itself.
        adjustment: Function from the shape of the inputs, an integer vector, to a scale and an offset that are applied
            to the normalized inputs in training.
        name: Name of the layer.
        **kwargs: As for `Layer`.

    References:
        Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
        Shift", 2015. Ioffe, "Batch Renormalization", 2017.
    """

    supports_masking = True

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
        renorm: bool = False,
        renorm_clipping: Mapping[str, TensorLike] | None = None,
        renorm_momentum: TensorLike = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None,
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
        self.renorm = renorm
        self.renorm_clipping = dict(renorm_clipping or {})
        if not self.renorm_clipping.keys() <= {"rmax", "rmin", "dmax"}:
            raise InvalidArgumentError(
                f"batch normalization: renorm_clipping has keys {sorted(self.renorm_clipping)}, "
                "expected rmax, rmin and dmax"
            )
        self.renorm_momentum = renorm_momentum
        self.virtual_batch_size = virtual_batch_size
        self.adjustment = adjustment
        if virtual_batch_size is not None and (virtual_batch_size < 1 or adjustment is not None or self.axis == 0):
            raise InvalidArgumentError(
                f"batch normalization: virtual_batch_size is {virtual_batch_size}: it must be positive, the batch "
                "comes first, and there can be no adjustment"
            )
        self._is_plain = not renorm and virtual_batch_size is None and adjustment is None
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
            which = "undefined rank" if rank is None else f"no axis {self.axis}"
            raise InvalidArgumentError(f"{self.name}: the input has shape {shape}, which has {which}")
        self.axis %= rank
        channels = shape.as_list()[self.axis]
        if channels is None:
            raise InvalidArgumentError(
                f"{self.name}: the input has shape {shape}, its size along {self.axis} is undefined"
            )
        self.fused = self.fused is not False and rank == 4 and self.axis in (1, 3) and self._is_plain
        if self.scale:
            self.gamma = self._add_parameter("gamma", channels, self._gamma)
        if self.center:
            self.beta = self._add_parameter("beta", channels, self._beta)
        self.moving_mean = self._add_average("moving_mean", channels, self.moving_mean_initializer)
        self.moving_variance = self._add_average("moving_variance", channels, self.moving_variance_initializer)
        if self.renorm:
            self.moving_stddev = self._add_average("moving_stddev", channels, self._initial_deviation)
            self.renorm_mean = self._add_average("renorm_mean", channels, self.moving_mean_initializer)
            self.renorm_stddev = self._add_average("renorm_stddev", channels, self._initial_deviation)
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
            experimental_autocast=False,
        )

    def _add_average(self, name: str, channels: int, initializer: InitializerLike | None) -> Any:
        # The averages stay whole where a partitioner cuts beta and gamma: they are assigned to as one.
        with variable_scope(get_variable_scope(), auxiliary_name_scope=False) as scope:
            scope.set_partitioner(None)
            return self.add_weight(
                name,
                [channels],
                self._parameter_dtype,
                initializer=initializer,
                trainable=False,
                experimental_autocast=False,
            )

    def _initial_deviation(self, shape: ShapeLike, dtype: Any = None, **unused: Any) -> Tensor:
        initial: Any = self.moving_variance_initializer
        initial = initial() if isinstance(initial, type) else initial
        return math_ops.sqrt(initial(shape, dtype=dtype))

    def call(self, inputs: Tensor, training: TensorLike | None = False, **kwargs: Any) -> Any:
        """The normalized inputs; `training` is a Python value or a scalar tensor, and None is no training."""
        training = False if training is None else training
        if not self._is_plain:
            return self._corrected(inputs, training)
        normalize = self._fused if self.fused else self._by_moments
        outputs, mean, variance = smart_cond(
            training, lambda: normalize(inputs, True), lambda: normalize(inputs, False)
        )
        outputs.set_shape(inputs.shape)
        if not _is_surely_false(training):
            momentum = smart_cond(training, lambda: _number(self.momentum), lambda: _number(1.0))
            for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                self._update(average, value, momentum)
        return outputs

    def _fused(self, inputs: Tensor, training: bool) -> list[Any]:
        gamma = array_ops.ones_like(self.moving_variance) if self.gamma is None else self.gamma
        beta = array_ops.zeros_like(self.moving_mean) if self.beta is None else self.beta
        given = [None, None] if training else [self.moving_mean.value(), self.moving_variance.value()]
        outputs, mean, variance = batch_norm_ops.fused_batch_norm(
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
            mean, variance = self._moments(wide, [axis for axis in range(rank) if axis != self.axis])
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

    def _moments(self, inputs: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
        return normalization_ops.moments(inputs, axes)

    def _corrected(self, inputs: Tensor, training: TensorLike) -> Tensor:
        """The normalized inputs where parts of the batch, a function or averages have a say in training."""
        shape, axis = inputs.shape, self.axis
        parts = array_ops.cast(inputs, self._parameter_dtype)
        if self.virtual_batch_size is not None:
            sizes = array_ops.shape(inputs)
            parts = array_ops.reshape(parts, array_ops.concat([[self.virtual_batch_size, -1], sizes[1:]], 0))
            axis += 1
        rank = len(parts.shape)
        form = [-1 if each == axis else 1 for each in range(rank)]
        # Parts of the batch, along dimension 1, have statistics of their own.
        kept = (axis,) if self.virtual_batch_size is None else (1, axis)

        def along_channels(value: Any) -> Any:
            return None if value is None else array_ops.reshape(value, form)

        mean, variance = normalization_ops.moments(parts, [i for i in range(rank) if i not in kept], keepdims=True)
        mean, variance = smart_cond(
            training,
            lambda: (mean, variance),
            lambda: tuple(
                array_ops.zeros_like(of) + along_channels(average.value())
                for of, average in ((mean, self.moving_mean), (variance, self.moving_variance))
            ),
        )
        scale, offset = along_channels(self.gamma), along_channels(self.beta)
        if not _is_surely_false(training):
            if self.adjustment is not None:
                factor, shift = _in_training(training, *self.adjustment(array_ops.shape(inputs)))
                scale, offset = _composed(factor, shift, scale, offset)
            updates: list[Any] = []
            if self.renorm:
                factor, shift, updates = self._renormed(mean, variance, along_channels, training)
                scale, offset = _composed(factor, shift, scale, offset)
            self._update_averages(mean, variance, updates, training)
        outputs = normalization_ops.batch_normalization(parts, mean, variance, offset, scale, self.epsilon)
        outputs = array_ops.cast(array_ops.reshape(outputs, array_ops.shape(inputs)), inputs.dtype)
        outputs.set_shape(shape)
        return outputs

    def _renormed(
        self, mean: Tensor, variance: Tensor, along_channels: Callable[[Any], Any], training: TensorLike
    ) -> tuple[Tensor, Tensor, list[Any]]:
        """The corrections, a factor and an offset; and the updates of the averages that they are made of."""
        deviation = math_ops.sqrt(variance + self.epsilon)
        least = math.sqrt(self.epsilon)
        average = math_ops.maximum(along_channels(self.renorm_stddev.value()), least)
        factor, shift = deviation / average, (mean - along_channels(self.renorm_mean.value())) / average
        bounds = self.renorm_clipping
        if "rmin" in bounds:
            factor = math_ops.maximum(factor, bounds["rmin"])
        if "rmax" in bounds:
            factor = math_ops.minimum(factor, bounds["rmax"])
        if "dmax" in bounds:
            shift = math_ops.minimum(math_ops.maximum(shift, math_ops.negative(bounds["dmax"])), bounds["dmax"])
        factor, shift = map(array_ops.stop_gradient, _in_training(training, factor, shift))
        momentum = smart_cond(training, lambda: _number(self.renorm_momentum), lambda: _number(1.0))
        with get_default_graph().control_dependencies([factor, shift]):  # which are of the averages before
            updates = [
                assign_moving_average(kept, self._of_whole_batch(value), momentum, zero_debias=False)
                for kept, value in ((self.renorm_mean, mean), (self.renorm_stddev, deviation))
            ]
        return factor, shift, updates

    def _of_whole_batch(self, statistic: Tensor) -> Tensor:
        if self.virtual_batch_size is not None:
            statistic = math_ops.reduce_mean(statistic, 1)
        return array_ops.reshape(statistic, [-1])

    def _update_averages(self, mean: Tensor, variance: Tensor, after: list[Any], training: TensorLike) -> None:
        momentum = smart_cond(training, lambda: _number(self.momentum), lambda: _number(1.0))
        with get_default_graph().control_dependencies([getattr(each, "op", each) for each in after]):
            self._update(self.moving_mean, self._of_whole_batch(mean), momentum)
            if not self.renorm:
                self._update(self.moving_variance, self._of_whole_batch(variance), momentum)
                return
            # As in the paper, what is averaged is the standard deviation; the variance follows from it.
            deviation = self._of_whole_batch(math_ops.sqrt(variance + self.epsilon))
            average = assign_moving_average(self.moving_stddev, deviation, momentum, zero_debias=False)
            average = convert_to_tensor(average)
            self.add_update(self.moving_variance.assign(math_ops.maximum(average * average - self.epsilon, 0)))

    def _update(self, average: Any, value: Tensor, momentum: Tensor) -> None:
        self.add_update(assign_moving_average(average, value, momentum, zero_debias=False))


def _in_training(training: TensorLike, scale: Tensor, offset: Tensor) -> Any:
    """A scale and an offset in training, 1 and 0 elsewhere."""
    neutral = array_ops.ones_like(scale), array_ops.zeros_like(offset)
    return smart_cond(training, lambda: (array_ops.identity(scale), array_ops.identity(offset)), lambda: neutral)


def _composed(scale: Any, offset: Any, then_scale: Any, then_offset: Any) -> tuple[Any, Any]:
    """The scale and offset that two after each other come to; those that come second may be None."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    return scale, offset if then_offset is None else offset + then_offset


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
    training: TensorLike | None = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Reuse | None = None,
    renorm: bool = False,
    renorm_clipping: Mapping[str, TensorLike] | None = None,
    renorm_momentum: TensorLike = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None,
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
        renorm: Correct the statistics of a batch towards their averages.
        renorm_clipping: Bounds of the corrections.
        renorm_momentum: Scalar: what remains of these averages in a step.
        fused: Use one operation for images.
        virtual_batch_size: Normalize parts of the batch, of so many examples, each by itself.
        adjustment: Function from the shape of the inputs to a scale and an offset for training.

    Returns:
        Same shape and dtype as `inputs`.

    Raises:
        InvalidArgumentError: The axis does not exist, or its size is not known.

    Examples:
        >>> tf.layers.batch_normalization(tf.ones([16, 8, 8, 3]), training=True).shape.as_list()
        [16, 8, 8, 3]
        >>> len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))  # to be run with each step of training
        2
    """
    return apply_layer(BatchNormalization, **locals())
