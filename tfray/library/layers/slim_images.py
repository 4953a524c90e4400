"""The functions of ``tf.contrib.layers`` for maps of features that few networks have: `spatial_softmax`, `gdn`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import Activation, CollectionNames, Sizes, TensorLike
from tfray.gradients import custom_gradient
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.base_layer import Layer, apply_layer
from tfray.library.layers.convolution_layers import ConvolutionLayer, layout_of
from tfray.library.layers.input_spec import InputSpec
from tfray.library.layers.model_variables import model_variable
from tfray.library.layers.slim_layers import GLOROT, Normalizer, VariablesCollections, collect, convolve
from tfray.library.layers.slim_utils import get_variable_collections
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops, broadcast_ops, construction_ops
from tfray.ops.math import math_ops
from tfray.ops.nn import activation_ops, any_rank_conv_ops, cross_entropy_ops, depthwise_conv_ops


class _InPlane(ConvolutionLayer):
    """One filter for every channel, each by itself."""

    rank = 2

    def kernel_shape(self, channels: int) -> list[int]:
        self.filters = channels
        return [*self.kernel_size, 1, 1]

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        kernel = array_ops.tile(self.kernel, [1, 1, self.filters, 1])
        strides = [1, *self.strides, 1]
        return self._finish(depthwise_conv_ops.depthwise_conv2d(inputs, kernel, strides, self._padding))


@add_arg_scope
def convolution2d_in_plane(
    inputs: TensorLike,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: str = "SAME",
    activation_fn: Activation | None = activation_ops.relu,
    normalizer_fn: Normalizer | None = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: InitializerLike | None = GLOROT,
    weights_regularizer: RegularizerFunction | None = None,
    biases_initializer: InitializerLike | None = initializers.Zeros,
    biases_regularizer: RegularizerFunction | None = None,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
) -> Tensor:
    """Convolve every channel of images ``[batch, height, width, channels]`` with the same filter.

    The arguments are those of `convolution2d`. The result has the shape ``[batch, new height, new width, channels]``.
    """
    return convolve(_InPlane, "ConvInPlane", num_outputs=1, data_format=None, **locals())


conv2d_in_plane = convolution2d_in_plane


@add_arg_scope
def spatial_softmax(
    features: TensorLike,
    temperature: float | None = None,
    name: str | None = None,
    variables_collections: VariablesCollections | None = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Tensor:
    """Where each channel is largest: the mean position under a softmax over all positions.

    Args:
        features: Shape ``[batch, height, width, channels]``, in the order of `data_format`.
        temperature: Initial value of the variable that divides the features, ``temperature``; 1 when None.
        name: Name of the variable scope.
        variables_collections: Collections for the variable, if it is trainable.
        trainable: Whether optimizers are to change the variable.
        data_format: ``"NHWC"`` or ``"NCHW"``.

    Returns:
        Shape ``[batch, 2 * channels]``: for each channel the row and the column, both from -1 to 1.

    Raises:
        ValueError: `data_format` is another one, or the number of channels is not known.

    References:
        Finn et al., "Deep Spatial Autoencoders for Visuomotor Learning", 2016.
    """
    with variable_scope(name, "spatial_softmax"):
        features = convert_to_tensor(features)
        if data_format not in ("NHWC", "NCHW"):
            raise ValueError(f"data_format has to be either NCHW or NHWC., not {data_format!r}")
        channels: Any = features.shape.as_list()[data_format.index("C")]
        if channels is None:
            raise ValueError("The num_channels dimension of the inputs to `spatial_softmax` should be defined.")
        value = model_variable(
            "temperature",
            [],
            initializer=initializers.Constant(1.0 if temperature is None else temperature),
            collections=get_variable_collections(variables_collections, "temperature") if trainable else None,
            trainable=trainable,
        )
        if data_format == "NHWC":
            features = array_ops.transpose(features, [0, 3, 1, 2])
        height, width = array_ops.unstack(array_ops.shape(features)[2:])
        axes = [construction_ops.linspace(-1.0, 1.0, size) for size in (height, width)]
        positions = array_ops.stack(construction_ops.meshgrid(*axes, indexing="ij"), axis=-1)
        weights = cross_entropy_ops.softmax(array_ops.reshape(features, [-1, height * width]) / value)
        means = math_ops.matmul(weights, array_ops.reshape(positions, [-1, 2]))
        found = array_ops.reshape(means, [-1, 2 * channels])
        found.set_shape([features.shape[0], 2 * channels])
        return found


@custom_gradient
def _at_least(values: Tensor, bound: Tensor) -> Any:
    """The larger ones. Values at the bound, or below it, only get gradients that would make them larger."""

    def gradient(d_result: Tensor) -> list[Any]:
        passes = math_ops.logical_or(math_ops.greater_equal(values, bound), math_ops.less(d_result, 0.0))
        return [array_ops.cast(passes, d_result.dtype) * d_result, None]

    return math_ops.maximum(values, bound), gradient


class GDN(Layer):
    """Divides each channel by a norm over all channels: ``x[i] / sqrt(beta[i] + sum_j gamma[j, i] * x[j] ** 2)``.

    Args:
        inverse: Multiply, which is about the inverse.
        beta_min: Lower bound of ``beta``.
        gamma_init: ``gamma`` begins as this number times the identity; ``beta`` as ones.
        reparam_offset: The variables are the roots of ``beta`` and ``gamma``, both plus the square of this number, so
            that there are gradients at 0.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        activity_regularizer: Function of the outputs whose value is a loss.
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer.
        **kwargs: As for `Layer`.

    References:
        Ballé, Laparra and Simoncelli, "Density Modeling of Images using a Generalized Normalization Transformation",
        2016.
    """

    def __init__(
        self,
        inverse: bool = False,
        beta_min: float = 1e-6,
        gamma_init: float = 0.1,
        reparam_offset: float = 2**-18,
        data_format: str = "channels_last",
        activity_regularizer: RegularizerFunction | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        if data_format not in ("channels_last", "channels_first"):
            raise ValueError(f"Unsupported `data_format` for GDN layer: {data_format}.")
        self.inverse = inverse
        self.data_format = data_format
        self._beta_min, self._gamma_init, self._offset = beta_min, gamma_init, reparam_offset
        self._axis = 1 if data_format == "channels_first" else -1
        self.input_spec = InputSpec(min_ndim=3, max_ndim=5)

    def build(self, input_shape: ShapeLike) -> None:
        shape = TensorShape(input_shape)
        channels = shape.as_list()[self._axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
        self.input_spec = InputSpec(ndim=shape.rank, axes={self._axis: channels})
        self.beta = self._squared("beta", [channels], 1.0, (self._beta_min + self._offset**2) ** 0.5)
        self.gamma = self._squared("gamma", [channels, channels], self._gamma_init, self._offset)
        super().build(input_shape)

    def _squared(self, name: str, shape: list[int], scale: float, bound: float) -> Tensor:
        """The square of a variable, which begins as `scale` times ones, or times the identity."""

        def initial(shape: Iterable[int], dtype: Any = None, partition_info: Any = None) -> Tensor:
            sizes = list(shape)
            base = broadcast_ops.ones(sizes, dtype) if len(sizes) == 1 else construction_ops.eye(sizes[0], dtype=dtype)
            return math_ops.sqrt(scale * base + self._offset**2)

        variable = self.add_weight(f"reparam_{name}", shape, initializer=initial)
        return math_ops.square(_at_least(variable, convert_to_tensor(bound, variable.dtype))) - self._offset**2

    def call(self, inputs: Tensor, **kwargs: Any) -> Any:
        spatial = (inputs.shape.rank or 0) - 2
        channels: Any = self.beta.shape.as_list()[0]
        kernel = array_ops.reshape(self.gamma, [*[1] * spatial, channels, channels])
        shift = array_ops.reshape(self.beta, [channels, *[1] * (spatial if self._axis == 1 else 0)])
        layout = layout_of(self.data_format, spatial)
        sums = any_rank_conv_ops.convolution(math_ops.square(inputs), kernel, "VALID", data_format=layout)
        norms = math_ops.sqrt(sums + shift)
        return inputs * norms if self.inverse else inputs / norms

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        shape = TensorShape(input_shape)
        if shape.rank not in (3, 4, 5):
            raise ValueError("`input_shape` must be of rank 3 to 5, inclusive.")
        return shape


def gdn(
    inputs: TensorLike,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: RegularizerFunction | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """Apply a new layer `GDN` to `inputs`, of rank 3 to 5; the result has their shape.

    The other arguments are those of `GDN`; with `reuse` the variables are those of an earlier layer of that name.
    """
    return apply_layer(GDN, **locals())


@add_arg_scope
def images_to_sequence(
    inputs: TensorLike,
    data_format: str = "NHWC",
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """The columns of images as the steps of sequences: each row of each image is one.

    Args:
        inputs: Shape ``[batch, height, width, channels]``, in the order of `data_format`; width and channels are known.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Returns:
        Shape ``[width, batch * height, channels]``.

    Raises:
        ValueError: `data_format` is neither.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with get_default_graph().name_scope(scope or "ImagesToSequence"):
        images = convert_to_tensor(inputs)
        if data_format == "NCHW":
            images = array_ops.transpose(images, [0, 2, 3, 1])
        sizes = array_ops.shape(images)
        width, depth = int(images.shape[2]), int(images.shape[3])
        columns = array_ops.transpose(images, [2, 0, 1, 3])
        return collect(outputs_collections, array_ops.reshape(columns, [width, sizes[0] * sizes[1], depth]))


@add_arg_scope
def sequence_to_images(
    inputs: TensorLike,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """What `images_to_sequence` does, undone.

    Args:
        inputs: Shape ``[width, batch * height, channels]``; width and channels are known.
        height: Height of the images.
        output_data_format: ``"channels_last"`` or ``"channels_first"``.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Returns:
        Shape ``[batch, height, width, channels]``, or ``[batch, channels, height, width]``.
    """
    with get_default_graph().name_scope(scope or "SequenceToImages"):
        steps = convert_to_tensor(inputs)
        width, rows, depth = int(steps.shape[0]), steps.shape.as_list()[1], int(steps.shape[2])
        apart = array_ops.reshape(steps, [width, -1 if rows is None else rows // height, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect(outputs_collections, array_ops.transpose(apart, order))
