"""Layers as functions with defaults for deep networks: those of ``tf.contrib.layers`` and ``tf.contrib.slim``.

Their variables are named ``weights`` and ``biases``, and also go to ``GraphKeys.MODEL_VARIABLES``. All take a `scope`,
the name of their variable scope, and `reuse`. Outputs are also added to the collection `outputs_collections`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import Activation, CollectionNames, Sizes, TensorLike
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.base_layer import Layer
from tfray.library.layers.convolution_layers import (
    ChannelwiseConv2D,
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    SeparableConv2D,
)
from tfray.library.layers.core_layers import Dense
from tfray.library.layers.model_variables import model_variable
from tfray.library.layers.normalization_layers import BatchNormalization
from tfray.library.layers.slim_utils import collect_named_outputs, get_variable_collections
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import ScopeLike, VariableScope, get_variable_scope, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.nn import activation_ops, nn_ops
from tfray.ops.nn.moments_ops import weighted_moments

_NAMES = {
    "kernel": "weights",
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}
"""Names of variables here, by those in ``tf.layers``."""

_COLLECTED = {
    **dict.fromkeys(("kernel", "depthwise_kernel", "pointwise_kernel"), "weights"),
    "bias": "biases",
    **{name: name for name in ("beta", "gamma", "moving_mean", "moving_variance")},
}
"""By what names collections are given for what a layer has."""

GLOROT = initializers.GlorotUniform()


def _renaming_getter(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    scope, slash, last = name.rpartition("/")
    collections = kwargs.pop("collections", None) or [GraphKeys.GLOBAL_VARIABLES]
    kwargs["collections"] = list(dict.fromkeys([*collections, GraphKeys.MODEL_VARIABLES]))
    return getter(f"{scope}{slash}{_NAMES.get(last, last)}", *args, **kwargs)


@contextmanager
def layer_scope(scope: ScopeLike | None, default: str, reuse: Reuse | None) -> Iterator[VariableScope]:
    """The variable scope of a layer, in which variables get the names of this module."""
    with variable_scope(scope, default, reuse=reuse, custom_getter=_renaming_getter) as opened:
        yield opened


def collect(collections: CollectionNames | None, outputs: Tensor) -> Tensor:
    """Add the outputs of a layer to collections, under the name of its scope; see `slim_utils`."""
    name, scope = get_default_graph().get_name_scope(), get_variable_scope()
    # Where a variable scope has just been opened, its name is that of the layer: the same in every use of the layer.
    return collect_named_outputs(
        collections, scope.name if scope.original_name_scope == f"{name}/" else name or outputs.op.name, outputs
    )


def _collect_variable(variables_collections: VariablesCollections | None, name: str, variable: Any) -> None:
    graph = get_default_graph()
    collections = get_variable_collections(variables_collections, name) or ()
    for collection in [collections] if isinstance(collections, str) else collections:
        known = graph.get_collection_ref(collection)
        for each in variable if isinstance(variable, PartitionedVariable) else [variable]:
            if all(other is not each for other in known):
                known.append(each)


def _collect_variables(variables_collections: VariablesCollections | None, layer: Layer) -> None:
    """Add what a layer uses as its variables to collections: a list for all, or by the names in `_COLLECTED`."""
    for attribute, name in _COLLECTED.items():
        if variables_collections and (variable := getattr(layer, attribute, None)) is not None:
            _collect_variable(variables_collections, name, variable)


Normalizer = Callable[..., Tensor]
"""What a layer does to its outputs in place of adding biases: ``function(outputs, **normalizer_params)``."""

VariablesCollections = CollectionNames | dict[str, CollectionNames]
"""Collections for all variables of a layer, or for each by its name."""


def _run(layer: Layer, inputs: TensorLike, collections: VariablesCollections | None) -> Any:
    outputs = layer(inputs)
    _collect_variables(collections, layer)
    return outputs


def _finish(
    outputs: Tensor,
    normalizer_fn: Normalizer | None,
    normalizer_params: dict[str, Any] | None,
    activation_fn: Activation | None,
    collections: CollectionNames | None,
) -> Tensor:
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect(collections, outputs)


@add_arg_scope
def fully_connected(
    inputs: TensorLike,
    num_outputs: int,
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
    """A dense layer, along the last dimension.

    Args:
        inputs: Shape ``[..., size]``.
        num_outputs: Size of the outputs' last dimension.
        activation_fn: `tf.nn.relu` by default; None for none.
        normalizer_fn: Function such as `batch_norm`, to use in place of biases.
        normalizer_params: Its arguments.
        weights_initializer: Initializer of the weights.
        weights_regularizer: Regularizer of the weights.
        biases_initializer: Initializer of the biases; None for no biases.
        biases_regularizer: Regularizer of the biases.
        reuse: Use the variables of an earlier layer of that scope.
        variables_collections: Collections for the variables: a list, or lists by ``weights`` and ``biases``.
        outputs_collections: Collections for the outputs.
        trainable: Whether optimizers are to change the variables.
        scope: Name of the variable scope, or the scope.

    Returns:
        Shape ``[..., num_outputs]``.

    Examples:
        >>> tf.contrib.slim.fully_connected(tf.ones([2, 5]), 3).shape.as_list()
        [2, 3]
    """
    return connect(Dense, **locals())


def connect(
    kind: Callable[..., Layer],
    *,
    inputs: TensorLike,
    num_outputs: int,
    activation_fn: Activation | None,
    normalizer_fn: Normalizer | None,
    normalizer_params: dict[str, Any] | None,
    weights_initializer: InitializerLike | None,
    weights_regularizer: RegularizerFunction | None,
    biases_initializer: InitializerLike | None,
    biases_regularizer: RegularizerFunction | None,
    reuse: Reuse | None,
    variables_collections: VariablesCollections | None,
    outputs_collections: CollectionNames | None,
    trainable: bool,
    scope: ScopeLike | None,
) -> Tensor:
    """Make and run a dense layer; arguments as for `fully_connected`."""
    with layer_scope(scope, "fully_connected", reuse) as opened:
        inputs = convert_to_tensor(inputs)
        layer = kind(
            num_outputs,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            dtype=inputs.dtype,
            _scope=opened,
            _reuse=reuse,
        )
        outputs = _run(layer, inputs, variables_collections)
        return _finish(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


def convolve(
    kind: Callable[..., Layer],
    default: str,
    *,
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: Sizes,
    stride: Sizes,
    padding: str,
    data_format: str | None,
    rate: Sizes | None = None,
    activation_fn: Activation | None,
    normalizer_fn: Normalizer | None,
    normalizer_params: dict[str, Any] | None,
    weights_initializer: InitializerLike | None,
    weights_regularizer: RegularizerFunction | None,
    biases_initializer: InitializerLike | None,
    biases_regularizer: RegularizerFunction | None,
    reuse: Reuse | None,
    variables_collections: VariablesCollections | None,
    outputs_collections: CollectionNames | None,
    trainable: bool,
    scope: ScopeLike | None,
) -> Tensor:
    """Make and run a convolution; arguments as for `convolution2d`. A `kind` without dilation has no `rate`.

    Raises:
        InvalidArgumentError: There is no such `data_format`.
    """
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise InvalidArgumentError(f"Invalid data_format: {data_format!r}: data_format has to be either NCHW or NHWC.")
    with layer_scope(scope, default, reuse) as opened:
        inputs = convert_to_tensor(inputs)
        layer = kind(
            num_outputs,
            kernel_size,
            stride,
            padding,
            "channels_first" if (data_format or "NHWC").startswith("NC") else "channels_last",
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            dtype=inputs.dtype,
            _scope=opened,
            _reuse=reuse,
            **({} if rate is None else {"dilation_rate": rate}),
        )
        outputs = _run(layer, inputs, variables_collections)
        return _finish(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


@add_arg_scope
def convolution2d(
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
    """Convolve images.

    Args:
        inputs: Shape ``[batch, height, width, channels]``, in the order of `data_format`.
        num_outputs: Number of filters.
        kernel_size: Size of the window, one integer or two.
        stride: Distance between windows, likewise.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NHWC"`` (when None) or ``"NCHW"``.
        rate: Distance between the elements of a window, one integer or two.
        activation_fn: As for `fully_connected`, like the arguments that follow.
        normalizer_fn: Function to use in place of biases.
        normalizer_params: Its arguments.
        weights_initializer: Initializer of the filters.
        weights_regularizer: Regularizer of the filters.
        biases_initializer: Initializer of the biases; None for no biases.
        biases_regularizer: Regularizer of the biases.
        reuse: Use the variables of an earlier layer of that scope.
        variables_collections: Collections for the variables.
        outputs_collections: Collections for the outputs.
        trainable: Whether optimizers are to change the variables.
        scope: Name of the variable scope, or the scope.

    Returns:
        Shape ``[batch, new height, new width, num_outputs]``.

    Examples:
        >>> tf.contrib.slim.conv2d(tf.ones([1, 8, 8, 3]), 16, [3, 3]).shape.as_list()
        [1, 8, 8, 16]
    """
    return convolve(Conv2D, "Conv", **locals())


conv2d = convolution2d


@add_arg_scope
def convolution1d(
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
    """Convolve sequences ``[batch, width, channels]``; arguments as for `convolution2d`."""
    return convolve(Conv1D, "Conv", **locals())


conv1d = convolution1d


@add_arg_scope
def convolution2d_transpose(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
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
    """Enlarge images by the transpose of a convolution; arguments as for `convolution2d`.

    `inputs` has the shape ``[batch, height, width, channels]``, the result ``[batch, new height, new width,
    num_outputs]``.
    """
    return convolve(Conv2DTranspose, "Conv2d_transpose", **locals())


conv2d_transpose = convolution2d_transpose


@add_arg_scope
def separable_convolution2d(
    inputs: TensorLike,
    num_outputs: int | None,
    kernel_size: Sizes,
    depth_multiplier: int = 1,
    stride: Sizes = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Sizes = 1,
    activation_fn: Activation | None = activation_ops.relu,
    normalizer_fn: Normalizer | None = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: InitializerLike | None = GLOROT,
    pointwise_initializer: InitializerLike | None = None,
    weights_regularizer: RegularizerFunction | None = None,
    biases_initializer: InitializerLike | None = initializers.Zeros,
    biases_regularizer: RegularizerFunction | None = None,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
) -> Tensor:
    """Convolve every channel by itself, then mix the channels.

    `inputs` has the shape ``[batch, height, width, channels]``. The arguments are those of `convolution2d`, besides

    Args:
        inputs: Shape ``[batch, height, width, channels]``, in the order of `data_format`.
        num_outputs: Number of channels of the result. With None channels are not mixed.
        kernel_size: Size of the window, one integer or two.
        depth_multiplier: Number of filters for each channel.
        stride: Distance between windows, likewise.
        rate: Distance between the elements of a window, likewise.
        pointwise_initializer: Initializer of the mixing weights; `weights_initializer` when None.

    Returns:
        Shape ``[batch, new height, new width, num_outputs]``, or ``channels * depth_multiplier`` in place of the last.
    """
    given = locals() | {"num_outputs": num_outputs or 1}
    del given["depth_multiplier"], given["pointwise_initializer"]
    kind = ChannelwiseConv2D if num_outputs is None else SeparableConv2D

    def separable(*args: Any, **kwargs: Any) -> Layer:
        kernel, regularizer = kwargs.pop("kernel_initializer"), kwargs.pop("kernel_regularizer")
        kwargs |= {
            "depth_multiplier": depth_multiplier,
            "depthwise_initializer": kernel,
            "pointwise_initializer": pointwise_initializer or kernel,
            "depthwise_regularizer": regularizer,
            "pointwise_regularizer": regularizer,
        }
        return kind(*args, **kwargs)

    return convolve(separable, "SeparableConv2d", **given)


separable_conv2d = separable_convolution2d


@add_arg_scope
def batch_norm(
    inputs: TensorLike,
    decay: TensorLike = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Activation | None = None,
    param_initializers: dict[str, Any] | None = None,
    param_regularizers: dict[str, Any] | None = None,
    updates_collections: CollectionNames | None = GraphKeys.UPDATE_OPS,
    is_training: TensorLike = True,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    batch_weights: TensorLike | None = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: ScopeLike | None = None,
    renorm: bool = False,
    renorm_clipping: Mapping[str, TensorLike] | None = None,
    renorm_decay: TensorLike = 0.99,
    adjustment: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None,
) -> Tensor:
    """Batch normalization; see `tf.layers.batch_normalization`.

    Args:
        inputs: Shape ``[batch, ..., channels]``.
        decay: What remains of the averages in a step, a number.
        center: Shift, by a variable ``beta``.
        scale: Scale, by a variable ``gamma``; not needed before a linear layer or `tf.nn.relu`.
        epsilon: Added to the variance.
        activation_fn: A function; None for none.
        param_initializers: Initializers by name of the variable: ``beta``, ``gamma``, ``moving_mean``, ...
        param_regularizers: Regularizers of ``beta`` and ``gamma`` by name.
        updates_collections: Where the updates of the averages go, to be run with each training step. None: they
            are run whenever the outputs are.
        is_training: Use the statistics of the batch: a Python value or scalar tensor.
        reuse: Use the variables of an earlier layer of that scope.
        variables_collections: Collections for the variables: a list, or lists by name.
        outputs_collections: Collections for the outputs.
        trainable: Whether optimizers are to change ``beta`` and ``gamma``.
        batch_weights: Shape ``[batch]``: how often each example counts in the statistics of the batch.
        fused: Use one operation for images and rows; by default where that is possible. Its average variance is the
            unbiased one.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        zero_debias_moving_mean: The average of means starts at 0: correct for that. Two more variables, ``biased`` and
            ``local_step``, are kept under its name.
        scope: Name of the variable scope, or the scope.
        renorm: As for `tf.layers.batch_normalization`.
        renorm_clipping: Likewise.
        renorm_decay: Its ``renorm_momentum``, a number or a scalar.
        adjustment: Likewise.

    Returns:
        Same shape and dtype as `inputs`.

    Raises:
        InvalidArgumentError: `renorm` with `batch_weights` or `zero_debias_moving_mean`, or what is asked for cannot be
            fused.
    """
    if renorm and (batch_weights is not None or zero_debias_moving_mean):
        raise InvalidArgumentError("renorm is not supported with batch_weights or zero_debias_moving_mean")
    made, regularizers = param_initializers or {}, param_regularizers or {}
    with layer_scope(scope, "BatchNorm", reuse) as opened:
        inputs = convert_to_tensor(inputs)
        if data_format not in ("NCHW", "NHWC"):
            raise InvalidArgumentError(f"data_format has to be either NCHW or NHWC, not {data_format!r}")
        is_first = data_format == "NCHW"
        given = inputs
        fused = fused if batch_weights is None else False
        if inputs.shape.rank == 2 and fused is not False and not renorm and adjustment is None:
            channels = inputs.shape.as_list()[1] or -1
            given = array_ops.reshape(inputs, [-1, channels, 1, 1] if is_first else [-1, 1, 1, channels])
        layer = _Normalization(
            1 if is_first else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_initializer=made.get("beta", initializers.Zeros),
            gamma_initializer=made.get("gamma", initializers.Ones),
            moving_mean_initializer=made.get("moving_mean", initializers.Zeros),
            moving_variance_initializer=made.get("moving_variance", initializers.Ones),
            beta_regularizer=regularizers.get("beta"),
            gamma_regularizer=regularizers.get("gamma"),
            trainable=trainable,
            fused=fused,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            name=opened.name,
            dtype=inputs.dtype,
            _scope=opened,
            _reuse=reuse,
        )
        layer.batch_weights = None if batch_weights is None else _of_examples(batch_weights, inputs)
        layer.debiased_in = is_training if zero_debias_moving_mean else None
        outputs = layer(given, training=is_training)
        if given is not inputs:
            outputs = array_ops.reshape(outputs, array_ops.shape(inputs))
            outputs.set_shape(inputs.shape)
        _collect_variables(variables_collections, layer)
        if layer.pending and updates_collections is None:
            with get_default_graph().control_dependencies(layer.pending):
                outputs = array_ops.identity(outputs)
        elif updates_collections is not None:
            for update in layer.pending:
                get_default_graph().add_to_collections(updates_collections, update)
        return _finish(outputs, None, None, activation_fn, outputs_collections)


def _of_examples(weights: TensorLike, inputs: Tensor) -> Tensor:
    """A weight for each example, in a shape that broadcasts to the inputs."""
    weights = convert_to_tensor(weights)
    if inputs.shape.rank is None:
        raise InvalidArgumentError(f"batch_norm: inputs has undefined rank: {inputs!r}")
    inputs.shape[:1].assert_is_compatible_with(weights.shape)
    return array_ops.reshape(weights, [-1, *[1] * (inputs.shape.rank - 1)])


class _Normalization(BatchNormalization):
    """Batch normalization that adds its updates to no collection: the caller decides where they go."""

    batch_weights: Tensor | None = None
    """How often each example counts."""
    debiased_in: TensorLike | None = None
    """Whether there is training, where the average of means is corrected for its start at 0; None where it is not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pending: list[Any] = []

    def _moments(self, inputs: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
        if self.batch_weights is None:
            return super()._moments(inputs, axes)
        return weighted_moments(inputs, axes, array_ops.cast(self.batch_weights, inputs.dtype))

    def _update(self, average: Any, value: Tensor, momentum: Tensor) -> None:
        if self.debiased_in is None or average is not self.moving_mean:
            super()._update(average, value, momentum)
            return
        # Not by a momentum of 1 outside of training: the number of updates must stay as well.
        self.add_update(
            smart_cond(
                self.debiased_in,
                lambda: convert_to_tensor(assign_moving_average(average, value, self.momentum)),
                lambda: array_ops.identity(average.value()),
            )
        )

    def add_update(self, updates: object, inputs: TensorLike | None = None) -> None:
        self.pending.append(updates)


@add_arg_scope
def bias_add(
    inputs: TensorLike,
    activation_fn: Activation | None = None,
    initializer: InitializerLike | None = initializers.Zeros,
    regularizer: RegularizerFunction | None = None,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: ScopeLike | None = None,
) -> Tensor:
    """Add a bias to every channel; arguments as for `fully_connected`, the same shape for inputs and outputs."""
    with variable_scope(scope, "BiasAdd", reuse=reuse):
        inputs = convert_to_tensor(inputs)
        if data_format == "NCHW" and inputs.shape.rank != 4:
            raise ValueError(f"Data format NCHW only supports 4D Tensor, not {inputs!r}")
        size = inputs.shape[1 if data_format == "NCHW" else -1]
        biases = model_variable(
            "biases", [size], inputs.dtype, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        _collect_variable(variables_collections, "biases", biases)
        outputs = nn_ops.bias_add(inputs, biases, data_format)
        return _finish(outputs, None, None, activation_fn, outputs_collections)
