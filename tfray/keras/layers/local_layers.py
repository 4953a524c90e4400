"""Convolutions of Keras models with kernels of their own for each place, or for each channel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tfray.framework.tensor_shape import TensorShape
from tfray.keras import activations, constraints, initializers, regularizers, tensor_functions
from tfray.keras.convolution_functions import depthwise_conv2d, local_conv1d, local_conv2d
from tfray.keras.settings import image_data_format
from tfray.library.layers.convolution_layers import padding_of, per_axis, window_count
from tfray.library.layers.keras_layer import Layer
from tfray.ops.arrays import array_ops
from tfray.ops.math import linalg_ops


class _Convolving(Layer):
    """What these layers share."""

    _kernel: ClassVar[str] = "kernel"
    _rank: ClassVar[int] = 2

    def __init__(
        self,
        kernel_size: Any,
        strides: Any,
        padding: str,
        data_format: str | None,
        activation: Any,
        use_bias: bool,
        **kwargs: Any,
    ) -> None:
        for name, module in (("initializer", initializers), ("regularizer", regularizers), ("constraint", constraints)):
            for part in (self._kernel, "bias"):
                setattr(self, f"{part}_{name}", module.get(kwargs.pop(f"{part}_{name}")))
        super().__init__(**kwargs)
        self.kernel_size = per_axis(kernel_size, self._rank, "kernel_size")
        self.strides = per_axis(strides, self._rank, "strides")
        self.padding = padding_of(padding)
        self.data_format = data_format or image_data_format()
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel: Any = None
        self.bias: Any = None

    def _weights_of(self, part: str, name: str, shape: Any) -> Any:
        return self.add_weight(
            name,
            shape,
            initializer=getattr(self, f"{part}_initializer"),
            regularizer=getattr(self, f"{part}_regularizer"),
            constraint=getattr(self, f"{part}_constraint"),
        )

    def _places(self, input_shape: Any) -> tuple[list[Any], int]:
        """The sizes of the spatial axes, and the number of channels."""
        shape = TensorShape(input_shape).as_list()
        sizes = shape[2:] if self.data_format == "channels_first" else shape[1:-1]
        channels = shape[1] if self.data_format == "channels_first" else shape[-1]
        if channels is None:
            raise ValueError(f"Axis of channels of input should be fully-defined. Found shape: {shape}")
        return sizes, int(channels)

    def _finished(self, outputs: Any) -> Any:
        if self.use_bias:
            outputs = tensor_functions.bias_add(outputs, self.bias, self.data_format)
        return self.activation(outputs)


class DepthwiseConv2D(_Convolving):
    """Convolves each channel of images with kernels of its own.

    Args:
        kernel_size: Height and width of kernels.
        strides: Distance of windows.
        padding: ``same`` or ``valid``.
        depth_multiplier: Number of kernels for each channel.
        data_format: ``channels_last`` or ``channels_first``.
        activation: Activation of the outputs.
        use_bias: Have a bias.
        depthwise_initializer: Initializer of the kernels, ``[height, width, size, depth_multiplier]``.
        bias_initializer: That of the bias.
        depthwise_regularizer: Regularizer of the kernels.
        bias_regularizer: That of the bias.
        activity_regularizer: That of the outputs.
        depthwise_constraint: Constraint of the kernels.
        bias_constraint: That of the bias.
        dilation_rate: Distance of the elements of a window.
        **kwargs: As for `Layer`.
    """

    _kernel = "depthwise"

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        dilation_rate: Any = (1, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__(
            kernel_size,
            strides,
            padding,
            data_format,
            activation,
            use_bias,
            depthwise_initializer=depthwise_initializer,
            bias_initializer=bias_initializer,
            depthwise_regularizer=depthwise_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            depthwise_constraint=depthwise_constraint,
            bias_constraint=bias_constraint,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self.dilation_rate = per_axis(dilation_rate, 2, "dilation_rate")

    def build(self, input_shape: Any) -> None:
        channels = self._places(input_shape)[1]
        shape = [*self.kernel_size, channels, self.depth_multiplier]
        self.depthwise_kernel = self._weights_of("depthwise", "depthwise_kernel", shape)
        if self.use_bias:
            self.bias = self._weights_of("bias", "bias", [channels * self.depth_multiplier])
        super().build(input_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        return self._finished(
            depthwise_conv2d(
                inputs, self.depthwise_kernel, self.strides, self.padding, self.data_format, self.dilation_rate
            )
        )


class _LocallyConnected(_Convolving):
    """A convolution with kernels of its own for each place.

    Args:
        filters: Number of filters.
        kernel_size: Sizes of windows.
        strides: Distances of windows.
        padding: ``valid``; ``same`` too with another `implementation` than 1.
        data_format: ``channels_last`` or ``channels_first``.
        activation: Activation of the outputs.
        use_bias: Have a bias, for each place.
        kernel_initializer: Initializer of the kernels.
        bias_initializer: That of the bias.
        kernel_regularizer: Regularizer of the kernels.
        bias_regularizer: That of the bias.
        activity_regularizer: That of the outputs.
        kernel_constraint: Constraint of the kernels.
        bias_constraint: That of the bias.
        implementation: How the kernels lie in their variable. 1: by places and the elements of windows. 2: from each
            element of the inputs to each of the outputs, also where they do not meet. 3: a vector of those that do.
        **kwargs: As for `Layer`.

    Raises:
        ValueError: `padding` does not go with `implementation`, or sizes of the inputs are not known.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            kernel_size,
            strides,
            padding,
            data_format,
            activation,
            use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            **kwargs,
        )
        if self.padding != "valid" and implementation == 1:
            raise ValueError(
                f'Invalid border mode for {type(self).__name__} (only "valid" is supported if implementation is 1): '
                f"{padding}"
            )
        if implementation not in (1, 2, 3):
            raise ValueError(f"Unrecognized implementation mode: {implementation}.")
        self.filters, self.implementation = filters, implementation

    def build(self, input_shape: Any) -> None:
        sizes, channels = self._places(input_shape)
        if None in sizes:
            raise ValueError(
                f"The spatial dimensions of the inputs to a {type(self).__name__} layer should be fully-defined, but "
                f"layer received the inputs shape {input_shape}"
            )
        self._sizes = [
            window_count(size, window, self.padding, stride) or 0
            for size, window, stride in zip(sizes, self.kernel_size, self.strides, strict=True)
        ]
        if self.implementation == 1:
            shape = [int(np.prod(self._sizes)), int(np.prod(self.kernel_size)) * channels, self.filters]
        else:
            self._met = self._meetings(sizes, channels)
            count = int(self._met.sum())
            first = self.data_format == "channels_first"
            inputs = [channels, *sizes] if first else [*sizes, channels]
            outputs = [self.filters, *self._sizes] if first else [*self._sizes, self.filters]
            shape = [*inputs, *outputs] if self.implementation == 2 else [count]
        self.kernel = self._weights_of("kernel", "kernel", shape)
        if self.use_bias:
            self.bias = self._weights_of("bias", "bias", [*self._sizes, self.filters])
        super().build(input_shape)

    def _meetings(self, sizes: list[int], channels: int) -> np.ndarray:
        """Which elements of the inputs each of the outputs is made of, ``[inputs, outputs]``, both flat."""
        met = np.ones([1, 1], bool)
        for size, count, window, stride in zip(sizes, self._sizes, self.kernel_size, self.strides, strict=True):
            before = max((count - 1) * stride + window - size, 0) // 2 if self.padding == "same" else 0
            starts = np.arange(count) * stride - before
            places = np.arange(size)[:, None]
            met = np.kron(met, (places >= starts) & (places < starts + window))
        all_channels = np.ones([channels, self.filters], bool)
        return np.kron(all_channels, met) if self.data_format == "channels_first" else np.kron(met, all_channels)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        if self.implementation == 1:
            return self._finished(self._convolved(inputs))
        count, made = self._met.shape
        if self.implementation == 2:
            kernel = array_ops.reshape(self.kernel, [count, made]) * self._met.astype(np.float32)
        else:  # in the order of outputs, and of inputs for each
            places = np.argwhere(self._met.T).astype(np.int32)
            kernel = array_ops.transpose(array_ops.scatter_nd(places, self.kernel, [made, count]))
        flat = linalg_ops.matmul(array_ops.reshape(inputs, [-1, count]), kernel)
        first = self.data_format == "channels_first"
        outputs = [self.filters, *self._sizes] if first else [*self._sizes, self.filters]
        return self._finished(array_ops.reshape(flat, [-1, *outputs]))

    def _convolved(self, inputs: Any) -> Any:
        if self._rank == 1:
            return local_conv1d(inputs, self.kernel, self.kernel_size, self.strides, self.data_format)
        return local_conv2d(inputs, self.kernel, self.kernel_size, self.strides, self._sizes, self.data_format)


class LocallyConnected1D(_LocallyConnected):
    __doc__ = f"""Of sequences. {_LocallyConnected.__doc__}"""

    _rank = 1


class LocallyConnected2D(_LocallyConnected):
    __doc__ = f"""Of images. {_LocallyConnected.__doc__}"""

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1), *args: Any, **kwargs: Any) -> None:
        super().__init__(filters, kernel_size, strides, *args, **kwargs)
