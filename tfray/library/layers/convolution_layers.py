"""Convolutional layers.

Their inputs are ``[batch, ..., channels]``, or with ``data_format="channels_first"`` ``[batch, channels, ...]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Activation, Sizes, TensorLike
from tfray.library.layers import named_activations
from tfray.library.layers.base_layer import Layer, apply_layer, checked_shape
from tfray.library.layers.descriptions import NAMED
from tfray.library.layers.input_spec import InputSpec
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_store import Reuse
from tfray.library.variables.variables import Constraint
from tfray.ops.arrays import array_ops
from tfray.ops.nn import conv3d_ops, conv_ops, depthwise_conv_ops, nn_ops


def per_axis(value: Sizes, rank: int, name: str) -> tuple[int, ...]:
    """A size given once or for each of `rank` spatial axes, as a tuple."""
    try:
        values = tuple(map(int, value)) if isinstance(value, Iterable) else (int(value),) * rank
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{name} is {value!r}, expected an integer or {rank} of them") from error
    if len(values) != rank:
        raise InvalidArgumentError(f"{name} is {value!r}, expected an integer or {rank} of them")
    return values


def layout_of(data_format: str | None, rank: int) -> str:
    """``NHWC`` and the like for ``channels_last`` and the like; None is ``channels_last``."""
    axes, data_format = "DHW"[3 - rank :], data_format or "channels_last"
    layouts = {"channels_last": f"N{axes}C", "channels_first": f"NC{axes}"}
    if data_format not in layouts:
        raise InvalidArgumentError(f"data_format is {data_format!r}, expected channels_last or channels_first")
    return layouts[data_format]


def padding_of(padding: str, known: tuple[str, ...] = ("same", "valid")) -> str:
    """One of those that are `known`, for it in any case. Operations have capitals, layers have not."""
    if not isinstance(padding, str) or padding.lower() not in known:
        expected = " or ".join([", ".join(map(repr, known[:-1])), repr(known[-1])])
        raise InvalidArgumentError(f"padding is {padding!r}, expected {expected}")
    return padding.lower()


def window_count(size: int | None, window: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """How many windows fit along an axis."""
    if size is None:
        return None
    covered = 1 if padding == "same" else (window - 1) * dilation + 1
    return -(-(size - covered + 1) // stride)


_CONVOLUTIONS: Final[dict[int, Callable[..., Tensor]]] = {
    1: conv_ops.conv1d,
    2: conv_ops.conv2d,
    3: conv3d_ops.conv3d,
}
"""Operations by number of spatial axes."""


class ConvolutionLayer(Layer):
    """What convolutional layers have in common; `Conv2D` documents the arguments."""

    rank: ClassVar[int]
    """Number of spatial axes."""
    _paddings: ClassVar[tuple[str, ...]] = ("same", "valid")

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Sizes = 1,
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
        self.filters = int(filters)
        self.kernel_size = per_axis(kernel_size, self.rank, "kernel_size")
        self.strides = per_axis(strides, self.rank, "strides")
        self.padding = padding_of(padding, self._paddings)
        self.data_format = data_format
        self.dilation_rate = per_axis(dilation_rate, self.rank, "dilation_rate")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise InvalidArgumentError(
                f"strides are {self.strides} and dilation_rate is {self.dilation_rate}: one of them must be 1"
            )
        self.activation = named_activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.bias: Any = None
        self._layout = layout_of(data_format, self.rank)

    def build(self, input_shape: ShapeLike) -> None:
        channels = self._channels(input_shape)
        axis = 1 if self._channel_axis == 1 else -1  # as programs find it in TensorFlow
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        self._add_kernel(self.kernel_shape(channels))
        self._add_bias()
        super().build(input_shape)

    def kernel_shape(self, channels: int) -> list[int]:
        """Shape of the filters, for inputs with that many channels."""
        return [*self.kernel_size, channels, self.filters]

    def _channels(self, input_shape: ShapeLike) -> int:
        return checked_shape(self, input_shape, self.rank + 2, self._channel_axis, "channel dimension")

    @property
    def _padding(self) -> str:
        """As operations have it. A layer that pads its inputs itself leaves them without."""
        return "SAME" if self.padding == "same" else "VALID"

    def _padded(self, inputs: Tensor) -> Tensor:
        """The inputs, with ``causal`` after as many zeros as a window reaches back."""
        if self.padding != "causal":
            return inputs
        around = [[0, 0] for _ in self._layout]
        around[self._spatial_axes[0]][0] = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        return array_ops.pad(inputs, around)

    @property
    def _channel_axis(self) -> int:
        return self._layout.index("C")

    @property
    def _spatial_axes(self) -> list[int]:
        return [axis for axis, letter in enumerate(self._layout) if letter not in "NC"]

    def _add_kernel(self, shape: list[int]) -> None:
        self.kernel = self.add_weight(
            "kernel",
            shape,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def _add_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        return self._finish(
            _CONVOLUTIONS[self.rank](
                self._padded(inputs),
                self.kernel,
                self.strides,
                self._padding,
                data_format=self._layout,
                dilations=self.dilation_rate,
            )
        )

    def _finish(self, outputs: Tensor) -> Any:
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, "NCHW" if self._layout[1] == "C" else "NHWC")
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes: list[Any] = TensorShape(input_shape).as_list()
        for index, axis in enumerate(self._spatial_axes):
            sizes[axis] = self._output_size(sizes[axis], index)
        sizes[self._channel_axis] = self.filters
        return TensorShape(sizes)

    def _output_size(self, size: Any, index: int) -> Any:
        padding = "valid" if self.padding == "valid" else "same"
        return window_count(size, self.kernel_size[index], padding, self.strides[index], self.dilation_rate[index])


class Conv1D(ConvolutionLayer):
    """Convolves sequences ``[batch, width, channels]``; arguments as for `Conv2D`.

    With ``padding="causal"`` no output depends on a later step.
    """

    rank = 1
    _paddings = ("same", "valid", "causal")


class Conv2D(ConvolutionLayer):
    """Convolves images ``[batch, height, width, channels]``.

    Args:
        filters: Number of filters: of channels of the outputs.
        kernel_size: Size of the window, one integer for all spatial axes or one for each.
        strides: Distance between windows, likewise.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        dilation_rate: Distance between the elements of a window, as `strides`. It or `strides` must be 1.
        activation: A function such as `tf.nn.relu`, or the name of one; None for none.
        use_bias: Have a bias.
        kernel_initializer: Initializer of the filters; that of the variable scope when None.
        bias_initializer: Initializer of the bias.
        kernel_regularizer: Regularizer of the filters.
        bias_regularizer: Regularizer of the bias.
        activity_regularizer: Function from the outputs to a loss, which is divided by the size of the batch.
        kernel_constraint: Function from the filters after an update to those to keep.
        bias_constraint: Likewise for the bias.
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """

    rank = 2


class Conv3D(ConvolutionLayer):
    """Convolves volumes ``[batch, depth, height, width, channels]``; arguments as for `Conv2D`."""

    rank = 3


class TransposedConvolutionLayer(ConvolutionLayer):
    """What transposed convolutions have in common; `Conv2DTranspose` documents the arguments."""

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
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
        *,
        output_padding: Sizes | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.output_padding = None if output_padding is None else per_axis(output_padding, self.rank, "output_padding")
        for padding_, stride in zip(self.output_padding or (), self.strides, strict=False):
            if padding_ >= stride:
                raise ValueError(f"Stride {self.strides} must be greater than output padding {self.output_padding}")

    def kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        static = self.compute_output_shape(inputs.shape)
        sizes: Any = static.as_list()
        if None in sizes:
            shape = array_ops.unstack(array_ops.shape(inputs), len(sizes))
            sizes[0] = shape[0] if sizes[0] is None else sizes[0]
            for index, axis in enumerate(self._spatial_axes):
                sizes[axis] = self._output_size(shape[axis], index) if sizes[axis] is None else sizes[axis]
            sizes = array_ops.stack(sizes)
        if max(self.dilation_rate) > 1:
            outputs = self._dilated(inputs, sizes)
        else:
            function = conv_ops.conv2d_transpose if self.rank == 2 else conv3d_ops.conv3d_transpose
            outputs = function(inputs, self.kernel, sizes, self.strides, self._padding, data_format=self._layout)
        outputs.set_shape(static)
        return self._finish(outputs)

    def _output_size(self, size: Any, index: int) -> Any:
        if size is None:
            return None
        window = (self.kernel_size[index] - 1) * self.dilation_rate[index] + 1
        if self.output_padding is not None:
            cut = 2 * (window // 2) if self.padding == "same" else 0
            return (size - 1) * self.strides[index] + window - cut + self.output_padding[index]
        beyond = 0 if self.padding == "same" else max(window - self.strides[index], 0)
        return size * self.strides[index] + beyond

    def _dilated(self, inputs: Tensor, sizes: Any) -> Any:
        if self.rank != 2 or self._layout != "NHWC" or len(set(self.dilation_rate)) > 1:
            raise InvalidArgumentError(
                f"{self.name}: a transposed convolution has a dilation_rate only for images, channels last, and the "
                f"same for rows and columns; it is {self.dilation_rate}"
            )
        return conv_ops.atrous_conv2d_transpose(inputs, self.kernel, sizes, self.dilation_rate[0], self._padding)


class Conv2DTranspose(TransposedConvolutionLayer):
    """The transpose of a convolution, which enlarges images; arguments as for `Conv2D`, without dilation."""

    rank = 2


class Conv3DTranspose(TransposedConvolutionLayer):
    """The same for volumes; arguments as for `Conv2D`, without dilation."""

    rank = 3


class SeparableConvolutionLayer(ConvolutionLayer):
    """What separable convolutions have in common; `SeparableConv2D` documents the arguments."""

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Sizes = 1,
        depth_multiplier: int = 1,
        activation: Activation | str | None = None,
        use_bias: bool = True,
        depthwise_initializer: InitializerLike | None = None,
        pointwise_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = initializers.Zeros,
        depthwise_regularizer: RegularizerFunction | None = None,
        pointwise_regularizer: RegularizerFunction | None = None,
        bias_regularizer: RegularizerFunction | None = None,
        activity_regularizer: RegularizerFunction | None = None,
        depthwise_constraint: Constraint | None = None,
        pointwise_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer, self.pointwise_initializer = depthwise_initializer, pointwise_initializer
        self.depthwise_regularizer, self.pointwise_regularizer = depthwise_regularizer, pointwise_regularizer
        self.depthwise_constraint, self.pointwise_constraint = depthwise_constraint, pointwise_constraint

    def build(self, input_shape: ShapeLike) -> None:
        channels = self._channels(input_shape)
        between = channels * self.depth_multiplier
        self.depthwise_kernel = self._add_part("depthwise", [*self.kernel_size, channels, self.depth_multiplier])
        self.pointwise_kernel = self._add_part("pointwise", [1] * self.rank + [between, self.filters])
        self._add_bias()
        self.built = True

    def _add_part(self, part: str, shape: list[int]) -> Any:
        settings: dict[str, Any] = {kind: getattr(self, f"{part}_{kind}") for kind in NAMED}
        return self.add_weight(f"{part}_kernel", shape, **settings)


class SeparableConv2D(SeparableConvolutionLayer):
    """Convolves every channel by itself, then mixes the channels at each position.

    Args:
        filters: Number of channels of the outputs.
        kernel_size: As for `Conv2D`, like the arguments that follow.
        strides: Distance between windows.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        dilation_rate: Distance between the elements of a window.
        depth_multiplier: Number of filters for each channel.
        activation: A function, or the name of one; None for none.
        use_bias: Have a bias.
        depthwise_initializer: Initializer of the filters of channels.
        pointwise_initializer: Initializer of the mixing weights.
        bias_initializer: Initializer of the bias.
        depthwise_regularizer: Regularizer of the filters of channels.
        pointwise_regularizer: Regularizer of the mixing weights.
        bias_regularizer: Regularizer of the bias.
        activity_regularizer: Function from the outputs to a loss, which is divided by the size of the batch.
        depthwise_constraint: Function from the filters after an update to those to keep.
        pointwise_constraint: Likewise for the mixing weights.
        bias_constraint: Likewise for the bias.
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer.
        **kwargs: As for `Layer`.
    """

    rank = 2

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        return self._finish(
            depthwise_conv_ops.separable_conv2d(
                inputs,
                self.depthwise_kernel,
                self.pointwise_kernel,
                _four(self.strides, self._layout),
                self._padding,
                self.dilation_rate,
                data_format=self._layout,
            )
        )


class ChannelwiseConv2D(SeparableConvolutionLayer):
    """Convolves every channel by itself; arguments as for `SeparableConv2D`, of which `filters` follows from others."""

    rank = 2

    def build(self, input_shape: ShapeLike) -> None:
        channels = self._channels(input_shape)
        self.filters = channels * self.depth_multiplier
        shape = [*self.kernel_size, channels, self.depth_multiplier]
        self.depthwise_kernel = self._add_part("depthwise", shape)
        self._add_bias()
        self.built = True

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        strides, padding = _four(self.strides, self._layout), self._padding
        return self._finish(
            depthwise_conv_ops.depthwise_conv2d(
                inputs, self.depthwise_kernel, strides, padding, self.dilation_rate, data_format=self._layout
            )
        )


class SeparableConv1D(SeparableConvolutionLayer):
    """The same for sequences; arguments as for `SeparableConv2D`. `padding` may be ``"causal"``, as for `Conv1D`."""

    rank = 1
    _paddings = Conv1D._paddings

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        # A sequence is an image of height 1.
        axis = self._spatial_axes[0]
        layout = layout_of(self.data_format, 2)
        outputs = depthwise_conv_ops.separable_conv2d(
            array_ops.expand_dims(self._padded(inputs), axis),
            array_ops.expand_dims(self.depthwise_kernel, 0),
            array_ops.expand_dims(self.pointwise_kernel, 0),
            _four(self.strides * 2, layout),
            self._padding,
            [1, *self.dilation_rate],
            data_format=layout,
        )
        return self._finish(array_ops.squeeze(outputs, [axis]))


def _four(strides: Sequence[int], layout: str) -> list[int]:
    rest = iter(strides)
    return [1 if letter in "NC" else next(rest) for letter in layout]


# -- as functions ----------------------------------------------------------------------------------------


def conv1d(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Sizes = 1,
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
    """Convolve sequences ``[batch, width, channels]``.

    Args:
        inputs: The sequences, shape ``[batch, width, channels]``, of a floating dtype.
        filters: As for `Conv2D`, like the arguments that are not listed here.
        kernel_size: Size of the window, one integer, or one for each of its dimensions.
        name: Name of the layer, and of the variable scope.
        reuse: Use the variables of an earlier layer of that name.

    Returns:
        Shape ``[batch, new width, filters]``.
    """
    return apply_layer(Conv1D, **locals())


def conv2d(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Sizes = (1, 1),
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
    """Convolve images ``[batch, height, width, channels]``.

    Args:
        inputs: The images, shape ``[batch, height, width, channels]``, of a floating dtype.
        filters: As for `Conv2D`, like the arguments that are not listed here.
        kernel_size: Size of the window, one integer, or one for each of its dimensions.
        name: Name of the layer, and of the variable scope.
        reuse: Use the variables of an earlier layer of that name.

    Returns:
        Shape ``[batch, new height, new width, filters]``.

    Examples:
        >>> images = tf.ones([1, 8, 8, 3])
        >>> tf.layers.conv2d(images, filters=16, kernel_size=3, padding="same").shape.as_list()
        [1, 8, 8, 16]
    """
    return apply_layer(Conv2D, **locals())


def conv3d(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = (1, 1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Sizes = (1, 1, 1),
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
    """Convolve volumes ``[batch, depth, height, width, channels]``; arguments as for `conv2d`."""
    return apply_layer(Conv3D, **locals())


def conv3d_transpose(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = (1, 1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
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
    """Enlarge volumes by the transpose of a convolution; arguments as for `conv2d_transpose`.

    `inputs` has the shape ``[batch, depth, height, width, channels]``, the result ``[batch, new depth, new height, new
    width, filters]``.
    """
    return apply_layer(Conv3DTranspose, **locals())


def conv2d_transpose(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
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
    """Enlarge images by the transpose of a convolution.

    Args:
        inputs: Shape ``[batch, height, width, channels]``, of a floating dtype.
        filters: As for `Conv2DTranspose`, like the arguments that are not listed here.
        kernel_size: Size of the window, one integer, or one for each of its dimensions.
        name: Name of the layer, and of the variable scope.
        reuse: Use the variables of an earlier layer of that name.

    Returns:
        Shape ``[batch, new height, new width, filters]``.

    Examples:
        >>> tf.layers.conv2d_transpose(tf.ones([1, 4, 4, 3]), filters=16, kernel_size=2, strides=2).shape.as_list()
        [1, 8, 8, 16]
    """
    return apply_layer(Conv2DTranspose, **locals())


def separable_conv1d(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Sizes = 1,
    depth_multiplier: int = 1,
    activation: Activation | str | None = None,
    use_bias: bool = True,
    depthwise_initializer: InitializerLike | None = None,
    pointwise_initializer: InitializerLike | None = None,
    bias_initializer: InitializerLike | None = initializers.Zeros,
    depthwise_regularizer: RegularizerFunction | None = None,
    pointwise_regularizer: RegularizerFunction | None = None,
    bias_regularizer: RegularizerFunction | None = None,
    activity_regularizer: RegularizerFunction | None = None,
    depthwise_constraint: Constraint | None = None,
    pointwise_constraint: Constraint | None = None,
    bias_constraint: Constraint | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """Convolve every channel of sequences by itself, then mix the channels; as `separable_conv2d`.

    `inputs` has the shape ``[batch, width, channels]``, the result ``[batch, new width, filters]``.
    """
    return apply_layer(SeparableConv1D, **locals())


def separable_conv2d(
    inputs: TensorLike,
    filters: int,
    kernel_size: Sizes,
    strides: Sizes = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Sizes = (1, 1),
    depth_multiplier: int = 1,
    activation: Activation | str | None = None,
    use_bias: bool = True,
    depthwise_initializer: InitializerLike | None = None,
    pointwise_initializer: InitializerLike | None = None,
    bias_initializer: InitializerLike | None = initializers.Zeros,
    depthwise_regularizer: RegularizerFunction | None = None,
    pointwise_regularizer: RegularizerFunction | None = None,
    bias_regularizer: RegularizerFunction | None = None,
    activity_regularizer: RegularizerFunction | None = None,
    depthwise_constraint: Constraint | None = None,
    pointwise_constraint: Constraint | None = None,
    bias_constraint: Constraint | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """Convolve every channel of images by itself, then mix the channels at each position.

    Args:
        inputs: Shape ``[batch, height, width, channels]``, of a floating dtype.
        filters: As for `SeparableConv2D`, like the arguments that are not listed here.
        kernel_size: Size of the window, one integer, or one for each of its dimensions.
        name: Name of the layer, and of the variable scope.
        reuse: Use the variables of an earlier layer of that name.

    Returns:
        Shape ``[batch, new height, new width, filters]``.
    """
    return apply_layer(SeparableConv2D, **locals())
