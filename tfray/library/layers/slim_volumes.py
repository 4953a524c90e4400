"""The functions of ``tf.contrib.layers`` for volumes, or for inputs of any rank, and `group_norm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import Activation, CollectionNames, Sizes, TensorLike
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.convolution_layers import Conv1D, Conv2D, Conv3D, Conv3DTranspose
from tfray.library.layers.model_variables import model_variable
from tfray.library.layers.slim_functions import pool
from tfray.library.layers.slim_layers import GLOROT, Normalizer, VariablesCollections, collect, convolve
from tfray.library.layers.slim_utils import get_variable_collections
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.nn import activation_ops, any_rank_conv_ops, normalization_ops


@add_arg_scope
def convolution3d(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Sizes = 1,
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
    """Convolve volumes.

    Args:
        inputs: Shape ``[batch, depth, height, width, channels]``, in the order of `data_format`.
        num_outputs: Number of filters.
        kernel_size: Size of the window, one integer or three.
        stride: Distance between windows, likewise.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NDHWC"`` (when None) or ``"NCDHW"``.
        rate: Distance between the elements of a window, one integer or three.
        activation_fn: As for `convolution2d`, like the arguments that follow.
        normalizer_fn: Likewise.
        normalizer_params: Likewise.
        weights_initializer: Likewise.
        weights_regularizer: Likewise.
        biases_initializer: Likewise.
        biases_regularizer: Likewise.
        reuse: Likewise.
        variables_collections: Likewise.
        outputs_collections: Likewise.
        trainable: Likewise.
        scope: Likewise.

    Returns:
        Shape ``[batch, new depth, new height, new width, num_outputs]``.
    """
    return convolve(Conv3D, "Conv", **locals())


conv3d = convolution3d


_BY_RANK: Final = {3: Conv1D, 4: Conv2D, 5: Conv3D}


@add_arg_scope
def convolution(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Sizes = 1,
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
    conv_dims: int | None = None,
) -> Tensor:
    """Convolve sequences, images or volumes, whatever the rank of `inputs` says; arguments as for `convolution3d`.

    `inputs` has the shape ``[batch, ..., channels]`` with one to three axes between, the result ``[batch, ...,
    num_outputs]``. A ValueError is raised for another rank, for one that `conv_dims` does not allow, which is the
    number of axes between, and for a `data_format` that does not exist.
    """
    given = locals()
    del given["conv_dims"]
    rank = convert_to_tensor(inputs).shape.rank
    if conv_dims is not None and conv_dims + 2 != rank:
        raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
    if rank not in _BY_RANK:
        raise ValueError(f"Convolution not supported for input with rank {rank}")
    return convolve(_BY_RANK[rank], "Conv", **given)


@add_arg_scope
def convolution3d_transpose(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: str = "SAME",
    data_format: str = "NDHWC",
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
    """Enlarge volumes by the transpose of a convolution; arguments as for `convolution3d`.

    `inputs` has the shape ``[batch, depth, height, width, channels]``, in the order of `data_format`, ``"NDHWC"`` or
    ``"NCDHW"``; the result ``[batch, new depth, new height, new width, num_outputs]``.
    """
    if data_format not in ("NDHWC", "NCDHW"):
        raise ValueError(f"data_format has to be either NCDHW or NDHWC, not {data_format!r}")
    return convolve(Conv3DTranspose, "Conv3d_transpose", **locals())


conv3d_transpose = convolution3d_transpose


@add_arg_scope
def max_pool3d(
    inputs: TensorLike,
    kernel_size: Sizes,
    stride: Sizes = 2,
    padding: str = "VALID",
    data_format: str = "NDHWC",
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """The largest value of each window of volumes.

    Args:
        inputs: Shape ``[batch, depth, height, width, channels]``, in the order of `data_format`.
        kernel_size: Size of the window: one integer, or three.
        stride: Distance between windows, likewise.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NDHWC"`` or ``"NCDHW"``.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Returns:
        Shape ``[batch, new depth, new height, new width, channels]``, in the order of `data_format`.
    """
    return pool(any_rank_conv_ops.max_pool3d, "MaxPool3D", 3, **locals())


@add_arg_scope
def avg_pool3d(
    inputs: TensorLike,
    kernel_size: Sizes,
    stride: Sizes = 2,
    padding: str = "VALID",
    data_format: str = "NDHWC",
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """The mean of each window of volumes; arguments and shapes as for `max_pool3d`."""
    return pool(any_rank_conv_ops.avg_pool3d, "AvgPool3D", 3, **locals())


def _axes_of_groups(inputs: Tensor, channels_axis: int, reduction_axes: Sequence[int]) -> tuple[int, list[int]]:
    """The axis of channels and those of the mean and the variance, all from 0."""
    if inputs.shape.rank is None:
        raise ValueError(f"group_norm: inputs has undefined rank: {inputs!r}")
    rank = inputs.shape.rank
    channel, *reduced = [axis + rank if axis < 0 else axis for axis in (channels_axis, *reduction_axes)]
    if not {channel, *reduced} <= set(range(rank)):
        raise ValueError(f"Axis is out of bounds. {channels_axis} and {reduction_axes} of {rank} dimensions")
    if channel in reduced or len(set(reduced)) < len(reduced):
        raise ValueError(
            f"reduction_axes {reduction_axes} and channels_axis {channels_axis} must be mutually exclusive"
        )
    return channel, reduced


def _channels_in_groups(inputs: Tensor, channel: int, groups: int) -> int:
    """How many channels there are: known, and a multiple of the groups."""
    channels = inputs.shape.as_list()[channel]
    if channels is None:
        raise ValueError(f"group_norm: inputs has undefined channel dimension: {inputs.shape}")
    if not 1 <= groups <= channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    return int(channels)


@add_arg_scope
def group_norm(
    inputs: TensorLike,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: tuple[int, ...] = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Activation | None = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
    mean_close_to_zero: bool = False,
) -> Tensor:
    """Normalize groups of channels of each example to mean 0 and variance 1, then scale and shift the channels.

    Args:
        inputs: Any shape of known rank, with a known number of channels.
        groups: How many groups.
        channels_axis: Which axis has the channels.
        reduction_axes: The axes over which, besides the channels of a group, the mean and the variance are.
        center: Shift, by a variable ``beta``.
        scale: Scale, by a variable ``gamma``.
        epsilon: Added to the variance.
        activation_fn: Function that is applied to the outputs, or None.
        param_initializers: Initializers by name, ``beta`` and ``gamma``; by default 0 and 1.
        reuse: Use the variables of an earlier layer of that scope.
        variables_collections: Collections for the variables: a list, or lists by ``beta`` and ``gamma``.
        outputs_collections: Collections for the outputs.
        trainable: Whether optimizers are to change the variables.
        scope: Name of the variable scope, or the scope.
        mean_close_to_zero: Accepted for TensorFlow 1's sake: how the variance is computed.

    Returns:
        Same shape and dtype as `inputs`.

    Raises:
        ValueError: The number of channels is unknown, or no multiple of `groups`; or axes do not exist or meet twice.

    References:
        Wu and He, "Group Normalization", 2018.
    """
    given = param_initializers or {}
    with variable_scope(scope, "GroupNorm", reuse=reuse):
        inputs = convert_to_tensor(inputs)
        channel, reduced = _axes_of_groups(inputs, channels_axis, reduction_axes)
        rank, channels = len(inputs.shape.as_list()), _channels_in_groups(inputs, channel, groups)

        def parameter(name: str, default: Any) -> Tensor:
            """The variable `name`, with a dimension for groups, in a shape that broadcasts to the inputs."""
            value = model_variable(
                name,
                [channels],
                inputs.dtype,
                initializer=given.get(name, default),
                trainable=trainable,
                collections=get_variable_collections(variables_collections, name),
            )
            return array_ops.reshape(value, [1] * channel + [groups, channels // groups] + [1] * (rank - channel - 1))

        beta = parameter("beta", initializers.Zeros()) if center else None
        gamma = parameter("gamma", initializers.Ones()) if scale else None
        shape = array_ops.shape(inputs)
        split = array_ops.concat([shape[:channel], [groups, channels // groups], shape[channel + 1 :]], 0)
        grouped = array_ops.reshape(inputs, split)
        along = [channel + 1, *(axis + (axis > channel) for axis in reduced)]
        mean, variance = normalization_ops.moments(grouped, along, keep_dims=True)
        outputs = array_ops.reshape(
            normalization_ops.batch_normalization(grouped, mean, variance, beta, gamma, epsilon), shape
        )
        outputs.set_shape(inputs.shape)
        return collect(outputs_collections, outputs if activation_fn is None else activation_fn(outputs))
