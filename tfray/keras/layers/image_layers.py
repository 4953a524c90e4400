"""Layers of Keras models for sequences, images and volumes: convolutions, pooling, padding, cropping, enlarging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tfray.keras.convolution_functions import resize_images
from tfray.keras.layers.keras_variants import InKeras
from tfray.keras.settings import image_data_format, normalize_data_format
from tfray.library.layers import convolution_layers, pooling_layers
from tfray.library.layers.convolution_layers import per_axis
from tfray.library.layers.input_spec import InputSpec
from tfray.library.layers.keras_layer import Layer
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.sorting_ops import repeat as repeated


class Conv1D(InKeras, convolution_layers.Conv1D):
    """A convolution of sequences; arguments as for `tf.layers.Conv1D`."""


class Conv2D(InKeras, convolution_layers.Conv2D):
    """A convolution of images; arguments as for `tf.layers.Conv2D`."""

    _takes_images = True


class Conv2DTranspose(InKeras, convolution_layers.Conv2DTranspose):
    """A transposed convolution of images; arguments as for `tf.layers.Conv2DTranspose`, and two more.

    `output_padding` says how much larger outputs are than the smallest that the inputs may come from. `dilation_rate`
    is the distance of the elements of a window.
    """

    _takes_images = True

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        activation: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        data_format = data_format or image_data_format()
        more = {"output_padding": output_padding, "dilation_rate": dilation_rate}
        super().__init__(filters, kernel_size, strides, padding, data_format, activation, *args, **more, **kwargs)


class SeparableConv2D(InKeras, convolution_layers.SeparableConv2D):
    """A separable convolution of images; arguments as for `tf.layers.SeparableConv2D`."""

    _takes_images = True


class Conv3D(InKeras, convolution_layers.Conv3D):
    """A convolution of volumes; arguments as for `tf.layers.Conv3D`."""

    _takes_images = True


class Conv3DTranspose(InKeras, convolution_layers.Conv3DTranspose):
    """A transposed convolution of volumes; arguments as for `Conv2DTranspose`, without dilation."""

    _takes_images = True
    _unsaid = ("dilation_rate",)

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        activation: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        data_format, more = data_format or image_data_format(), {"output_padding": output_padding}
        super().__init__(filters, kernel_size, strides, padding, data_format, activation, *args, **more, **kwargs)


class SeparableConv1D(InKeras, convolution_layers.SeparableConv1D):
    """A separable convolution of sequences; arguments as for `tf.layers.SeparableConv1D`."""


class _Pooling(InKeras):
    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        data_format = data_format or (image_data_format() if self._takes_images else "channels_last")
        super().__init__(pool_size, strides or pool_size, padding, data_format=data_format, **kwargs)


class MaxPooling1D(_Pooling, pooling_layers.MaxPooling1D):
    """Maxima of windows of sequences; arguments as for `tf.layers.MaxPooling1D`."""


class MaxPooling2D(_Pooling, pooling_layers.MaxPooling2D):
    """Maxima of windows of images; arguments as for `tf.layers.MaxPooling2D`."""

    _takes_images = True


class AveragePooling1D(_Pooling, pooling_layers.AveragePooling1D):
    """Means of windows of sequences; arguments as for `tf.layers.AveragePooling1D`."""


class AveragePooling2D(_Pooling, pooling_layers.AveragePooling2D):
    """Means of windows of images; arguments as for `tf.layers.AveragePooling2D`."""

    _takes_images = True


class MaxPooling3D(_Pooling, pooling_layers.MaxPooling3D):
    """Maxima of windows of volumes; arguments as for `tf.layers.MaxPooling3D`."""

    _takes_images = True


class AveragePooling3D(_Pooling, pooling_layers.AveragePooling3D):
    """Means of windows of volumes; arguments as for `tf.layers.AveragePooling3D`."""

    _takes_images = True


class _Spatial(Layer):
    """A layer of sequences, images or volumes: `_dimensions` is the number of their axes but batch and channels."""

    _dimensions: ClassVar[int]

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = normalize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self._dimensions + 2)

    def _axes(self) -> range:
        first = 2 if self.data_format == "channels_first" else 1
        return range(first, first + self._dimensions)


class _GlobalMean(_Spatial):
    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return math_ops.reduce_mean(inputs, [*self._axes()])


class _GlobalMax(_Spatial):
    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return math_ops.reduce_max(inputs, [*self._axes()])


class GlobalAveragePooling1D(_Spatial):
    """The mean of each channel of a sequence, of the steps that are not masked."""

    supports_masking = True
    _dimensions = 1

    def call(self, inputs: Any, mask: Any = None) -> Any:  # type: ignore[override]
        (steps,) = self._axes()
        if mask is None:
            return math_ops.reduce_mean(inputs, steps)
        shown = array_ops.expand_dims(array_ops.cast(mask, inputs.dtype), 3 - steps)
        return math_ops.reduce_sum(inputs * shown, steps) / math_ops.reduce_sum(shown, steps)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: the means have none."""


class GlobalAveragePooling2D(_GlobalMean):
    """The mean of each channel of an image."""

    _dimensions = 2


class GlobalAveragePooling3D(_GlobalMean):
    """The mean of each channel of a volume."""

    _dimensions = 3


class GlobalMaxPooling1D(_GlobalMax):
    """The maximum of each channel of a sequence."""

    _dimensions = 1


class GlobalMaxPooling2D(_GlobalMax):
    """The maximum of each channel of an image."""

    _dimensions = 2


class GlobalMaxPooling3D(_GlobalMax):
    """The maximum of each channel of a volume."""

    _dimensions = 3


class _Sized(_Spatial):
    """A layer that changes the sizes of sequences, images or volumes."""

    def _pairs(self, sizes: Any, what: str) -> list[tuple[int, ...]]:
        if sizes is None:
            raise ValueError(f"`{what}` should be a number, or {self._dimensions} of them, or of pairs. Found: None")
        if self._dimensions == 1 and isinstance(sizes, Sequence):
            sizes = [sizes]
        every = sizes if isinstance(sizes, Sequence) else [sizes] * self._dimensions
        if len(every) != self._dimensions:
            raise ValueError(f"`{what}` should have {self._dimensions} elements. Found: {sizes}")
        return [per_axis(size, 2, what) for size in every]

    def _checked(self, sizes: Any, what: str) -> tuple[Any, ...]:
        """A pair for each dimension; the pair itself for one."""
        pairs = self._pairs(sizes, what)
        return pairs[0] if self._dimensions == 1 else tuple(pairs)


class _ZeroPadding(_Sized):
    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.padding = self._checked(padding, "padding")

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        around: list[tuple[int, ...]] = [(0, 0)] * (self._dimensions + 2)
        around[self._axes().start : self._axes().stop] = self._pairs(self.padding, "padding")
        return array_ops.pad(inputs, around)


class ZeroPadding1D(_ZeroPadding):
    """Puts zeros before and after sequences: `padding` is one size, or a pair."""

    _dimensions = 1
    _unsaid = ("data_format",)


class ZeroPadding2D(_ZeroPadding):
    """Puts zeros around images: `padding` is one size, a size for rows and one for columns, or pairs of these."""

    _dimensions = 2


class ZeroPadding3D(_ZeroPadding):
    """Puts zeros around volumes: `padding` is one size, one for each dimension, or pairs of these."""

    _dimensions = 3


class _Cropping(_Sized):
    def __init__(self, cropping: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.cropping = self._checked(cropping, "cropping")

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        whole: list[slice] = [slice(None)] * self._axes().start
        pairs = self._pairs(self.cropping, "cropping")
        return inputs[(*whole, *(slice(before, -after or None) for before, after in pairs))]


class Cropping1D(_Cropping):
    """Cuts steps off sequences; `cropping` as the padding of `ZeroPadding1D`."""

    _dimensions = 1
    _unsaid = ("data_format",)


class Cropping2D(_Cropping):
    """Cuts rows and columns off images; `cropping` as the padding of `ZeroPadding2D`."""

    _dimensions = 2

    def __init__(self, cropping: Any = 0, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


class Cropping3D(_Cropping):
    """Cuts the outside off volumes; `cropping` as the padding of `ZeroPadding3D`."""

    _dimensions = 3


class _UpSampling(_Sized):
    def __init__(self, size: Any = 2, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        sizes = per_axis(size, self._dimensions, "size")
        self.size: Any = sizes[0] if self._dimensions == 1 else sizes

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        for axis, size in enumerate(per_axis(self.size, self._dimensions, "size"), self._axes().start):
            inputs = repeated(inputs, size, axis)
        return inputs


class UpSampling1D(_UpSampling):
    """Repeats steps of sequences `size` times."""

    _dimensions = 1
    _unsaid = ("data_format",)


class UpSampling2D(_UpSampling):
    """Repeats rows and columns of images.

    Args:
        size: How often, one number or two.
        data_format: ``channels_last`` or ``channels_first``.
        interpolation: ``nearest``, or ``bilinear`` for values between.
        **kwargs: As for `Layer`.
    """

    _dimensions = 2

    def __init__(
        self, size: Any = 2, data_format: str | None = None, interpolation: str = "nearest", **kwargs: Any
    ) -> None:
        super().__init__(size, data_format, **kwargs)
        if interpolation not in ("nearest", "bilinear"):
            raise ValueError('`interpolation` argument should be one of `"nearest"` or `"bilinear"`.')
        self.interpolation = interpolation

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        if self.interpolation == "nearest":
            return super().call(inputs)
        return resize_images(inputs, self.size[0], self.size[1], self.data_format, self.interpolation)


class UpSampling3D(_UpSampling):
    """Repeats elements of volumes `size` times along each dimension."""

    _dimensions = 3
