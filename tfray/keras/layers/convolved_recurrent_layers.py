"""Recurrent layers of Keras models over sequences of images, and those that are named after cuDNN."""

from __future__ import annotations

from typing import Any, Final

from tfray.framework.tensor_shape import TensorShape
from tfray.keras.convolution_functions import conv2d
from tfray.keras.layers.recurrent_layers import GRU, LSTM, GRUCell, LSTMCell, RecurrentLayer
from tfray.keras.settings import image_data_format
from tfray.keras.tensor_functions import bias_add
from tfray.library.layers.convolution_layers import padding_of, per_axis, window_count
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops


class ConvLSTM2DCell(LSTMCell):
    """The cell of `ConvLSTM2D`: as `LSTMCell`, with convolutions in place of products.

    Args:
        filters: Number of filters.
        kernel_size: Height and width of the kernels.
        strides: Distances of windows of the inputs; those of the state have none.
        padding: ``valid`` or ``same``, of the inputs; the state is padded to remain as large as it is.
        data_format: ``channels_last`` or ``channels_first``.
        dilation_rate: Distances of the elements of a window of the inputs.
        *args: ``activation``, ``recurrent_activation`` and the further arguments of `LSTMCell`.
        **kwargs: The same by name.
    """

    _fixed = ("units",)

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(filters, *args, **kwargs)
        self.filters = filters
        self.kernel_size = per_axis(kernel_size, 2, "kernel_size")
        self.strides = per_axis(strides, 2, "strides")
        self.padding = padding_of(padding)
        self.data_format = data_format or image_data_format()
        self.dilation_rate = per_axis(dilation_rate, 2, "dilation_rate")
        self._sizes: list[int | None] = [None, None]

    @property
    def state_size(self) -> Any:
        """Shapes of output and memory."""
        first = self.data_format == "channels_first"
        shape = TensorShape([self.filters, *self._sizes] if first else [*self._sizes, self.filters])
        return [shape, shape]

    @property
    def output_size(self) -> Any:
        """Shape of the output."""
        return self.state_size[0]

    def build(self, input_shape: Any) -> None:
        _, *shape = TensorShape(input_shape).as_list()
        channels, sizes = (shape[0], shape[1:]) if self.data_format == "channels_first" else (shape[-1], shape[:-1])
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        self._sizes = [
            window_count(size, window, self.padding, stride, dilation)
            for size, window, stride, dilation in zip(
                sizes, self.kernel_size, self.strides, self.dilation_rate, strict=True
            )
        ]
        self.kernel = self._weights_of(
            "kernel", [*self.kernel_size, channels, 4 * self.filters], self.kernel_initializer
        )
        self.recurrent_kernel = self._weights_of(
            "recurrent_kernel",
            [*self.kernel_size, self.filters, 4 * self.filters],
            self.recurrent_initializer,
            "recurrent",
        )
        self.bias = self._weights_of("bias", self._bias_shape(), self._bias_start()) if self.use_bias else None
        self.built = True

    def _of_inputs(self, inputs: Any) -> Any:
        def convolved(values: Any, weights: Any) -> Any:
            return conv2d(values, weights, self.strides, self.padding, self.data_format, self.dilation_rate)

        made = self._product(inputs, self.kernel, self._masks[0], convolved, self._gate_axis)
        return made if self.bias is None else bias_add(made, self.bias, self.data_format)

    def _of_state(self, state: Any) -> Any:
        def convolved(values: Any, weights: Any) -> Any:
            return conv2d(values, weights, (1, 1), "same", self.data_format)

        return self._product(state, self.recurrent_kernel, self._masks[1], convolved, self._gate_axis)

    @property
    def _gate_axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def _gates_of(self, product: Any) -> list[Any]:
        made: list[Any] = array_ops.split(product, 4, axis=self._gate_axis)
        return made


class ConvLSTM2D(RecurrentLayer):
    """`ConvLSTM2DCell` over sequences of images, ``[batch, time, height, width, size]``.

    Arguments are those of the cell, and by name those of `RNN`.
    """

    _cell = ConvLSTM2DCell


_FIXED: Final = (
    "activation", "recurrent_activation", "use_bias", "dropout", "recurrent_dropout", "implementation", "unroll",
)  # fmt: skip
"""What TensorFlow's layers do not take."""


class _CuDNNGRUCell(GRUCell):
    _fixed = (*_FIXED, "reset_after")

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, "tanh", "sigmoid", True, *args, reset_after=True, **kwargs)

    def _bias_shape(self) -> list[int]:
        return [6 * self.units]

    def _biases(self) -> Any:
        bias: Any = self.bias
        return array_ops.split(bias, 2)


class _CuDNNLSTMCell(LSTMCell):
    _fixed = _FIXED

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, "tanh", "sigmoid", True, *args, **kwargs)

    def _bias_shape(self) -> list[int]:
        return [8 * self.units]

    def _bias_start(self) -> Any:
        start, units = self.bias_initializer, self.units
        if not self.unit_forget_bias:
            return start

        def with_ones(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return array_ops.concat(
                [start([5 * units], dtype), array_ops.ones([units], dtype), start([2 * units], dtype)], 0
            )

        return with_ones

    def _of_inputs(self, inputs: Any) -> Any:
        bias: Any = self.bias
        first, second = array_ops.split(bias, 2)
        return math_ops.matmul(inputs, self.kernel) + (first + second)


class CuDNNGRU(GRU):
    """`GRU` with the weights of TensorFlow's layer that needs cuDNN; it runs on all devices here.

    Arguments are ``units``, the initializers, regularizers and constraints of `GRUCell`, and those of `RNN` by name.
    """

    _cell = _CuDNNGRUCell


class CuDNNLSTM(LSTM):
    """`LSTM` with the weights of TensorFlow's layer that needs cuDNN; it runs on all devices here.

    Arguments are ``units``, the initializers, regularizers and constraints of `LSTMCell`, and those of `RNN` by name.
    """

    _cell = _CuDNNLSTMCell
