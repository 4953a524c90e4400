"""Pooling layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Sizes, TensorLike
from tfray.library.layers.base_layer import Layer
from tfray.library.layers.convolution_layers import layout_of, padding_of, per_axis, window_count
from tfray.ops.nn import any_rank_conv_ops, pooling_ops

_FUNCTIONS: Final[dict[tuple[str, int], Callable[..., Tensor]]] = {
    ("MAX", 1): pooling_ops.max_pool1d,
    ("MAX", 2): pooling_ops.max_pool,
    ("MAX", 3): any_rank_conv_ops.max_pool3d,
    ("AVG", 1): pooling_ops.avg_pool1d,
    ("AVG", 2): pooling_ops.avg_pool,
    ("AVG", 3): any_rank_conv_ops.avg_pool3d,
}
"""Operations by kind and number of spatial axes."""


class PoolingLayer(Layer):
    """What pooling layers have in common; `MaxPooling2D` documents the arguments."""

    rank = 2
    pooling_type = "MAX"

    def __init__(
        self,
        pool_size: Sizes,
        strides: Sizes,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = per_axis(pool_size, self.rank, "pool_size")
        self.strides = per_axis(strides, self.rank, "strides")
        self.padding = padding_of(padding)
        self.data_format = data_format
        self._layout = layout_of(data_format, self.rank)

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        function = _FUNCTIONS[self.pooling_type, self.rank]
        return function(inputs, self.pool_size, self.strides, self.padding.upper(), self._layout)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes: list[Any] = TensorShape(input_shape).as_list()
        axes = [axis for axis, letter in enumerate(self._layout) if letter not in "NC"]
        for axis, window, stride in zip(axes, self.pool_size, self.strides, strict=True):
            sizes[axis] = window_count(sizes[axis], window, self.padding, stride)
        return TensorShape(sizes)


class MaxPooling1D(PoolingLayer):
    """The largest value of each window of a sequence; arguments as for `MaxPooling2D`."""

    rank = 1


class MaxPooling2D(PoolingLayer):
    """The largest value of each window of an image.

    Args:
        pool_size: Size of the window, one integer for all spatial axes or one for each.
        strides: Distance between windows, likewise. In ``tf.keras.layers`` it is `pool_size` when None.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """


class AveragePooling1D(PoolingLayer):
    """The mean of each window of a sequence; arguments as for `MaxPooling2D`."""

    rank = 1
    pooling_type = "AVG"


class AveragePooling2D(PoolingLayer):
    """The mean of each window of an image; arguments as for `MaxPooling2D`."""

    pooling_type = "AVG"


class MaxPooling3D(PoolingLayer):
    """The largest value of each window of a volume; arguments as for `MaxPooling2D`."""

    rank = 3


class AveragePooling3D(PoolingLayer):
    """The mean of each window of a volume; arguments as for `MaxPooling2D`."""

    rank = 3
    pooling_type = "AVG"


def max_pooling1d(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of sequences; arguments as for `max_pooling2d`.

    `inputs` has the shape ``[batch, width, channels]``, the result ``[batch, new width, channels]``.
    """
    return MaxPooling1D(pool_size, strides, padding, data_format, name)(inputs)


def max_pooling2d(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of images.

    Args:
        inputs: Shape ``[batch, height, width, channels]``, in the order of `data_format`.
        pool_size: As for `MaxPooling2D`, like the arguments that follow: one integer, or two.
        strides: Distance between windows.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        name: Name of the layer.

    Returns:
        Shape ``[batch, new height, new width, channels]``.

    Examples:
        >>> tf.layers.max_pooling2d(tf.ones([1, 8, 8, 3]), pool_size=2, strides=2).shape.as_list()
        [1, 4, 4, 3]
    """
    return MaxPooling2D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling1d(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of sequences; arguments as for `max_pooling2d`.

    `inputs` has the shape ``[batch, width, channels]``, the result ``[batch, new width, channels]``.
    """
    return AveragePooling1D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling2d(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of images; arguments as for `max_pooling2d`.

    `inputs` has the shape ``[batch, height, width, channels]``, the result ``[batch, new height, new width,
    channels]``.
    """
    return AveragePooling2D(pool_size, strides, padding, data_format, name)(inputs)


def max_pooling3d(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window of volumes; arguments as for `max_pooling2d`.

    `inputs` has the shape ``[batch, depth, height, width, channels]``, the result ``[batch, new depth, new height, new
    width, channels]``.
    """
    return MaxPooling3D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling3d(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of volumes; arguments as for `max_pooling2d`.

    `inputs` has the shape ``[batch, depth, height, width, channels]``, the result ``[batch, new depth, new height, new
    width, channels]``.
    """
    return AveragePooling3D(pool_size, strides, padding, data_format, name)(inputs)
