"""The functions of ``tf.contrib.layers`` that have few variables or none.

They are pooling, dropout, normalization, embedding, initializers, and `repeat` and `stack`, which chain layers.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype, float32
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import name_scope
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import Activation, CollectionNames, Sizes, TensorLike
from tfray.gradients import custom_gradient
from tfray.gradients import recompute_grad as computed_again
from tfray.library.layers import core_layers
from tfray.library.layers.arg_scope import add_arg_scope, arg_scope, current_arg_scope
from tfray.library.layers.convolution_layers import per_axis
from tfray.library.layers.model_variables import model_variable, variable
from tfray.library.layers.slim_layers import GLOROT, VariablesCollections, collect, fully_connected
from tfray.library.layers.slim_utils import get_variable_collections
from tfray.library.variables import initializers
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import ScopeLike, get_variable_scope, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.nn import activation_ops, cross_entropy_ops, embedding_ops, nn_ops, normalization_ops, pooling_ops
from tfray.ops.nn.embedding_bag_ops import safe_embedding_lookup_sparse
from tfray.ops.sparse.sparse_ops import sparse_from_dense


def pool(
    function: Callable[..., Tensor],
    default_scope: str,
    axes: int = 2,
    *,
    inputs: TensorLike,
    kernel_size: Sizes,
    stride: Sizes,
    padding: str,
    data_format: str,
    outputs_collections: CollectionNames | None,
    scope: str | None,
) -> Tensor:
    """Pool along `axes` by `function`, in the name scope `scope`, or `default_scope` if it is None."""
    with name_scope(scope, default_scope, [inputs]):
        sizes, strides = per_axis(kernel_size, axes, "kernel_size"), per_axis(stride, axes, "stride")
        return collect(outputs_collections, function(convert_to_tensor(inputs), sizes, strides, padding, data_format))


@add_arg_scope
def max_pool2d(
    inputs: TensorLike,
    kernel_size: Sizes,
    stride: Sizes = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """The largest value of each window of images.

    Args:
        inputs: Shape ``[batch, height, width, channels]``, in the order of `data_format`.
        kernel_size: Size of the window: one integer, or two for height and width.
        stride: Distance between windows, likewise.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Returns:
        Shape ``[batch, new height, new width, channels]``, in the order of `data_format`.
    """
    return pool(pooling_ops.max_pool, "MaxPool2D", **locals())


@add_arg_scope
def avg_pool2d(
    inputs: TensorLike,
    kernel_size: Sizes,
    stride: Sizes = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """The mean of each window of images; arguments and shapes as for `max_pool2d`."""
    return pool(pooling_ops.avg_pool, "AvgPool2D", **locals())


@add_arg_scope
def dropout(
    inputs: TensorLike,
    keep_prob: TensorLike = 0.5,
    noise_shape: TensorLike | None = None,
    is_training: TensorLike = True,
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Tensor:
    """In training, set random elements to 0 and multiply the others by ``1 / keep_prob``.

    Args:
        inputs: A floating tensor of any shape.
        keep_prob: Probability that an element is kept, a number or scalar tensor.
        noise_shape: Shape of the random choices, which broadcast to the inputs: along a dimension of size 1,
            elements are kept or dropped together. By default each element has a choice of its own.
        is_training: Whether this is training: a Python value or scalar tensor. If not, the inputs are returned as
            they are.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.
        seed: Seed of the operation.

    Returns:
        Same shape and dtype as `inputs`.
    """
    with name_scope(scope, "Dropout", [inputs]):
        inputs = convert_to_tensor(inputs)
        outputs = smart_cond(
            is_training,
            lambda: nn_ops.dropout(inputs, keep_prob, noise_shape, seed),
            lambda: array_ops.identity(inputs),
        )
        outputs.set_shape(inputs.shape)
        return collect(outputs_collections, outputs)


@add_arg_scope
def flatten(inputs: TensorLike, outputs_collections: CollectionNames | None = None, scope: str | None = None) -> Tensor:
    """Join all dimensions but the first.

    Args:
        inputs: Shape ``[batch, ...]``.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Returns:
        Shape ``[batch, size]``.

    Examples:
        >>> tf.contrib.slim.flatten(tf.ones([2, 4, 4, 3])).shape.as_list()
        [2, 48]
    """
    with variable_scope(scope, "Flatten") as opened:
        return collect(outputs_collections, core_layers.Flatten(_scope=opened)(inputs))


@add_arg_scope
def softmax(logits: TensorLike, scope: str | None = None) -> Tensor:
    """Softmax along the last dimension of a tensor of any rank; see `tf.nn.softmax`."""
    with name_scope(scope, "softmax", [logits]):
        return cross_entropy_ops.softmax(logits)


@add_arg_scope
def one_hot_encoding(
    labels: TensorLike,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """Turn class numbers into one-hot vectors: see `tf.one_hot`.

    Args:
        labels: Shape ``[batch]``, the class numbers, counted from 0.
        num_classes: Number of classes.
        on_value: Value at the index of the class.
        off_value: Value at all other indices.
        outputs_collections: Collections for the outputs.
        scope: Name scope of the operations.

    Returns:
        Shape ``[batch, num_classes]``, float32.
    """
    with name_scope(scope, "OneHotEncoding", [labels]):
        outputs = array_ops.one_hot(array_ops.to_int64(labels), num_classes, on_value, off_value)
        return collect(outputs_collections, outputs)


@add_arg_scope
def unit_norm(inputs: TensorLike, dim: int, epsilon: float = 1e-7, scope: str | None = None) -> Tensor:
    """Divide `inputs` by their l2 norms along dimension `dim`. `epsilon` is added to each sum of squares.

    The result has the shape and dtype of `inputs`.
    """
    with name_scope(scope, "UnitNorm", [inputs]):
        inputs = convert_to_tensor(inputs)
        squares = math_ops.reduce_sum(math_ops.square(inputs), dim, keepdims=True)
        return math_ops.divide(inputs, math_ops.sqrt(squares + epsilon))


@add_arg_scope
def layer_norm(
    inputs: TensorLike,
    center: bool = True,
    scale: bool = True,
    activation_fn: Activation | None = None,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: ScopeLike | None = None,
) -> Tensor:
    """Normalize each example to mean 0 and variance 1, then scale and shift each channel.

    Args:
        inputs: Shape ``[batch, ..., channels]``.
        center: Shift, by a variable ``beta``.
        scale: Scale, by a variable ``gamma``.
        activation_fn: Function that is applied to the outputs, or None.
        reuse: Use the variables of an earlier layer of that scope.
        variables_collections: Collections for the variables: a list, or lists by ``beta`` and ``gamma``.
        outputs_collections: Collections for the outputs.
        trainable: Whether optimizers are to change the variables.
        begin_norm_axis: First dimension to normalize: mean and variance are taken over it and all after it.
        begin_params_axis: First dimension of ``beta`` and ``gamma``: their shape is that of the inputs from it on.
        scope: Name of the variable scope, or the scope.

    Returns:
        Same shape and dtype as `inputs`.

    References:
        Ba, Kiros and Hinton, "Layer Normalization", 2016.
    """
    with variable_scope(scope, "LayerNorm", reuse=reuse):
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None:
            raise InvalidArgumentError("layer_norm: the input has undefined rank, its channels must be known")
        for name, axis in (("begin_norm_axis", begin_norm_axis), ("begin_params_axis", begin_params_axis)):
            if axis >= rank:
                raise InvalidArgumentError(f"layer_norm: {name} ({axis}) must be < rank(inputs) ({rank})")
        if not inputs.shape[begin_params_axis % rank :].is_fully_defined():
            raise InvalidArgumentError(
                f"layer_norm: shape(inputs)[{begin_params_axis}:] is not fully defined: {inputs.shape}"
            )
        shape = inputs.shape.as_list()[begin_params_axis % rank :]

        def parameter(name: str, initializer: InitializerLike) -> Any:
            collections = get_variable_collections(variables_collections, name)
            return model_variable(
                name, shape, inputs.dtype, initializer=initializer, trainable=trainable, collections=collections
            )

        beta = parameter("beta", initializers.Zeros()) if center else None
        gamma = parameter("gamma", initializers.Ones()) if scale else None
        mean, variance = normalization_ops.moments(inputs, list(range(begin_norm_axis % rank, rank)), keep_dims=True)
        # TensorFlow 1's values. In float16, 1e-12 would be 0.
        epsilon = 1e-3 if inputs.dtype.size == 2 else 1e-12
        outputs = normalization_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.shape)
        return collect(outputs_collections, outputs if activation_fn is None else activation_fn(outputs))


@add_arg_scope
def instance_norm(
    inputs: TensorLike,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Activation | None = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Reuse | None = None,
    variables_collections: VariablesCollections | None = None,
    outputs_collections: CollectionNames | None = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: ScopeLike | None = None,
) -> Tensor:
    """Normalize each channel of each example to mean 0 and variance 1, then scale and shift it.

    Args:
        inputs: Shape ``[batch, ..., channels]``, in the order of `data_format`.
        center: Shift, by a variable ``beta``.
        scale: Scale, by a variable ``gamma``.
        epsilon: Added to the variance.
        activation_fn: Function that is applied to the outputs, or None.
        param_initializers: Initializers by name, ``beta`` and ``gamma``; by default 0 and 1.
        reuse: Use the variables of an earlier layer of that scope.
        variables_collections: Collections for the variables: a list, or lists by ``beta`` and ``gamma``.
        outputs_collections: Collections for the outputs.
        trainable: Whether optimizers are to change the variables.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        scope: Name of the variable scope, or the scope.

    Returns:
        Same shape and dtype as `inputs`.

    References:
        Ulyanov, Vedaldi and Lempitsky, "Instance Normalization: The Missing Ingredient for Fast Stylization", 2016.
    """
    given = param_initializers or {}
    with variable_scope(scope, "InstanceNorm", reuse=reuse):
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None:
            raise InvalidArgumentError(f"instance_norm: inputs has undefined rank: {inputs!r}")
        if data_format not in ("NCHW", "NHWC"):
            raise InvalidArgumentError(f"data_format has to be either NCHW or NHWC., not {data_format!r}")
        axis = 1 if data_format == "NCHW" else -1
        channels = inputs.shape.as_list()[axis]
        if channels is None:
            raise InvalidArgumentError(f"instance_norm: inputs has undefined channels dimension: {inputs.shape}")

        def parameter(name: str, default: Any) -> Tensor:
            """The variable `name`, in a shape that broadcasts to the inputs."""
            value = model_variable(
                name,
                [channels],
                inputs.dtype,
                initializer=given.get(name, default),
                trainable=trainable,
                collections=get_variable_collections(variables_collections, name),
            )
            shape = [channels if index == axis % rank else 1 for index in range(rank)]
            return array_ops.reshape(value, shape)

        beta = parameter("beta", initializers.Zeros()) if center else None
        gamma = parameter("gamma", initializers.Ones()) if scale else None
        spatial_axes = [index for index in range(1, rank) if index != axis % rank]
        mean, variance = normalization_ops.moments(inputs, spatial_axes, keep_dims=True)
        outputs = normalization_ops.batch_normalization(
            inputs, mean, variance, beta, gamma, epsilon, name="instancenorm"
        )
        return collect(outputs_collections, outputs if activation_fn is None else activation_fn(outputs))


def embedding_lookup_unique(
    params: Any, ids: TensorLike, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """`tf.nn.embedding_lookup` that looks each row up once, however often it is asked for.

    Args:
        params: The table, shape ``[rows, ...]``, or a list of shards of it.
        ids: Integers of any shape.
        partition_strategy: How rows are spread over shards.
        name: Name scope of the operations.

    Returns:
        Shape ``ids.shape + [...]``.
    """
    with name_scope(name or "EmbeddingLookupUnique"):
        ids = convert_to_tensor(ids)
        unique, places = array_ops.unique(array_ops.reshape(ids, [-1]))
        rows = embedding_ops.embedding_lookup(params, unique, partition_strategy)
        shape = array_ops.concat([array_ops.shape(ids), array_ops.shape(rows)[1:]], 0)
        found = array_ops.reshape(array_ops.gather(rows, places), shape)
        found.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return found


@add_arg_scope
def embed_sequence(
    ids: TensorLike,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """Look up sequences of ids in a matrix, the variable ``embeddings``.

    Args:
        ids: Shape ``[batch, length]``, integers.
        vocab_size: Number of rows of the matrix.
        embed_dim: Size of a row.
        unique: Accepted for TensorFlow 1's sake: it does not change the result.
        initializer: Initializer of the matrix.
        regularizer: Regularizer of the matrix.
        trainable: Whether optimizers are to change the matrix.
        scope: Name of the variable scope, or the scope.
        reuse: Use the matrix of an earlier call.

    Returns:
        Shape ``[batch, length, embed_dim]``.

    Raises:
        InvalidArgumentError: A size is missing, and `reuse` is not set.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise InvalidArgumentError("embed_sequence needs vocab_size and embed_dim, or reuse=True")
    with variable_scope(scope, "EmbedSequence", reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        embeddings = model_variable(
            "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        return embedding_ops.embedding_lookup(embeddings, ids)


def bow_encoder(
    ids: TensorLike | SparseTensor,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerFunction | None = None,
    trainable: bool = True,
    scope: ScopeLike | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """The mean of the rows of each sequence of ids, in a matrix, the variable ``embeddings``.

    Args:
        ids: Shape ``[batch, length]``, integers; or a `SparseTensor` of them.
        vocab_size: Number of rows of the matrix.
        embed_dim: Size of a row.
        sparse_lookup: Leave out ids that are 0; a sequence with nothing else has the row 0.
        initializer: Initializer of the matrix.
        regularizer: Regularizer of the matrix.
        trainable: Whether optimizers are to change the matrix.
        scope: Name of the variable scope, or the scope.
        reuse: Use the matrix of an earlier call.

    Returns:
        Shape ``[batch, embed_dim]``.

    Raises:
        ValueError: A size is missing.
        TypeError: `ids` are sparse, and `sparse_lookup` is not set.
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension: bow_encoder has a matrix of this shape")
    with variable_scope(scope, "bow_encoder", reuse=reuse):
        shape = [vocab_size, embed_dim]
        embeddings = model_variable(
            "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        if sparse_lookup:
            present = ids if isinstance(ids, SparseTensor) else sparse_from_dense(ids)
            return safe_embedding_lookup_sparse([embeddings], present, combiner="mean", default_id=0)
        if isinstance(ids, SparseTensor):
            raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
        return math_ops.reduce_mean(embedding_ops.embedding_lookup(embeddings, ids), 1)


def recompute_grad(
    fn: Callable[..., Any] | None = None, use_data_dep: bool = False, tupleize_grads: bool = False
) -> Callable[..., Any]:
    """Decorator for a function that is computed again in the backward pass; see `tf.recompute_grad`.

    Args:
        fn: A function of tensors, which may make variables by `tf.get_variable`, or by layers that have names. If it
            has the argument ``is_recomputing``, that says in which pass it is.
        use_data_dep: Accepted for TensorFlow 1's sake: it does not change the result.
        tupleize_grads: Likewise.

    Returns:
        A function of the same arguments, whose results have the shapes of those of `fn`; without `fn`, a decorator.
    """
    if fn is None:
        return recompute_grad
    function = fn
    takes = "is_recomputing" in inspect.signature(function).parameters

    @functools.wraps(function)
    def wrapped(*inputs: Any) -> Any:
        scope, defaults = get_variable_scope(), current_arg_scope()
        passes = itertools.count()

        def body(*tensors: Any) -> Any:
            if next(passes) == 0:
                return function(*tensors, **({"is_recomputing": False} if takes else {}))
            with arg_scope(defaults), variable_scope(scope, reuse=True, auxiliary_name_scope=False):
                return function(*tensors, **({"is_recomputing": True} if takes else {}))

        return computed_again(body)(*inputs)

    return wrapped


def repeat(inputs: TensorLike, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply one kind of layer several times, each time to the outputs of the time before.

    ``repeat(x, 3, conv2d, 64, [3, 3], scope="conv1")`` makes ``conv1/conv1_1`` to ``conv1/conv1_3``.

    Args:
        inputs: Input of the first layer, of the shape that it takes.
        repetitions: Number of layers.
        layer: Function that makes a layer.
        *args: Arguments of `layer` after the inputs.
        **kwargs: Keyword arguments of `layer`; but ``scope`` is the variable scope around all layers.

    Returns:
        The outputs of the last layer, of the shape that it gives.
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        outputs = convert_to_tensor(inputs)
        name = scope or getattr(layer, "__name__", "repeat")
        for index in range(repetitions):
            outputs = layer(outputs, *args, scope=f"{name}_{index + 1}", **kwargs)
        return outputs


def stack(inputs: TensorLike, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """Apply one kind of layer several times, each time with other arguments and to the outputs of the time before.

    ``stack(x, fully_connected, [32, 64, 128], scope="fc")`` makes ``fc/fc_1`` to ``fc/fc_3``.

    Args:
        inputs: Input of the first layer, of the shape that it takes.
        layer: Function that makes a layer.
        stack_args: An item for each layer: the list of its arguments after the inputs, or its only such argument.
            Items are not used as tensors.
        **kwargs: Keyword arguments of all layers; but ``scope`` is the variable scope around them.

    Returns:
        The outputs of the last layer, of the shape that it gives.
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Stack", [inputs]):
        outputs = convert_to_tensor(inputs)
        name = scope or getattr(layer, "__name__", "stack")
        for index, arguments in enumerate(stack_args):
            listed = arguments if isinstance(arguments, (list, tuple)) else [arguments]
            outputs = layer(outputs, *listed, scope=f"{name}_{index + 1}", **kwargs)
        return outputs


def linear(inputs: TensorLike, num_outputs: int, **kwargs: Any) -> Tensor:
    """`fully_connected` without activation, with the same shapes.

    Examples:
        >>> tf.contrib.layers.linear(tf.ones([2, 5]), 3).shape.as_list()
        [2, 3]
    """
    return fully_connected(inputs, num_outputs, **{"activation_fn": None, **kwargs})


def relu(inputs: TensorLike, num_outputs: int, **kwargs: Any) -> Tensor:
    """`fully_connected` with `tf.nn.relu`, with the same shapes."""
    return fully_connected(inputs, num_outputs, **{"activation_fn": activation_ops.relu, **kwargs})


def elu(inputs: TensorLike, num_outputs: int, **kwargs: Any) -> Tensor:
    """`fully_connected` with `tf.nn.elu`, with the same shapes."""
    return fully_connected(inputs, num_outputs, **{"activation_fn": activation_ops.elu, **kwargs})


def maxout(inputs: TensorLike, num_units: int, axis: int = -1, scope: str | None = None) -> Tensor:
    """The largest of each group of channels (Goodfellow et al., arXiv:1302.4389).

    Args:
        inputs: Shape ``[..., channels]``.
        num_units: Number of groups, each of channels beside each other.
        axis: Axis of the channels.
        scope: Name scope.

    Returns:
        Shape ``[..., num_units]``, the same dtype.

    Raises:
        ValueError: `num_units` does not divide the channels.
    """
    with name_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        sizes = inputs.shape.as_list()
        axis = axis % len(sizes)
        channels = sizes[axis]
        if channels is None or channels % num_units:
            raise ValueError(f"number of features({channels}) is not a multiple of num_units({num_units})")
        known = [array_ops.shape(inputs)[index] if size is None else size for index, size in enumerate(sizes)]
        split = [*known[:axis], num_units, channels // num_units, *known[axis + 1 :]]
        largest = math_ops.reduce_max(array_ops.reshape(inputs, array_ops.stack(split)), axis=axis + 1)
        largest.set_shape([*sizes[:axis], num_units, *sizes[axis + 1 :]])
        return largest


def relu6(inputs: TensorLike, num_outputs: int, **kwargs: Any) -> Tensor:
    """`fully_connected` with `tf.nn.relu6`, with the same shapes."""
    return fully_connected(inputs, num_outputs, **{"activation_fn": activation_ops.relu6, **kwargs})


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: DTypeLike = float32
) -> initializers.VarianceScaling:
    """Initializer of random numbers of variance ``2 / (n_in + n_out)``, for a layer of n_in inputs and n_out outputs.

    Args:
        uniform: Uniform rather than truncated normal.
        seed: Seed of the operation.
        dtype: Dtype of the values.

    Examples:
        >>> weights = tf.get_variable("weights", [20, 30], initializer=tf.contrib.layers.xavier_initializer())
        >>> weights.shape.as_list()
        [20, 30]
    """
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: DTypeLike = float32,
) -> initializers.VarianceScaling:
    """Initializer of random numbers of variance ``factor / n``.

    Args:
        factor: The default suits layers with `tf.nn.relu`.
        mode: What n is: ``"FAN_IN"``, the number of a layer's inputs; ``"FAN_OUT"``, that of its outputs; or
            ``"FAN_AVG"``, the mean of both.
        uniform: Uniform rather than truncated normal.
        seed: Seed of the operation.
        dtype: Dtype of the values.

    Raises:
        TypeError: `dtype` is not floating, or `mode` is another.
    """
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")
    distribution: Any = "uniform" if uniform else "truncated_normal"
    fan: Any = mode.lower()
    return _VarianceScaling(factor, fan, distribution, seed, _floating(dtype))


class _VarianceScaling(initializers.VarianceScaling):
    """`tf.variance_scaling_initializer` that gives floating numbers only."""

    def values(self, shape: list[int], dtype: DType, *more: Any) -> Tensor:
        return super().values(shape, _floating(dtype), *more)


def _floating(dtype: DTypeLike) -> DType:
    if not as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    return as_dtype(dtype)


def legacy_fully_connected(
    x: TensorLike,
    num_output_units: int,
    activation_fn: Activation | None = None,
    weight_init: InitializerLike | None = GLOROT,
    bias_init: InitializerLike | None = initializers.Zeros,
    name: ScopeLike | None = None,
    weight_collections: CollectionNames | None = (GraphKeys.WEIGHTS,),
    bias_collections: CollectionNames | None = (GraphKeys.BIASES,),
    output_collections: CollectionNames | None = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: RegularizerFunction | None = None,
    bias_regularizer: RegularizerFunction | None = None,
) -> Tensor:
    """A dense layer along the last dimension, with the arguments and names of the first `tf.contrib.layers`.

    Args:
        x: Shape ``[..., size]``.
        num_output_units: Size of the outputs' last dimension.
        activation_fn: A function; None for none.
        weight_init: Initializer of the variable ``weights``, shape ``[size, num_output_units]``.
        bias_init: Initializer of the variable ``bias``, shape ``[num_output_units]``; None for none.
        name: Name of the variable scope, or the scope.
        weight_collections: Collections for the weights, beside ``GraphKeys.GLOBAL_VARIABLES``.
        bias_collections: Likewise for the bias.
        output_collections: Collections for the outputs.
        trainable: Whether optimizers are to change the variables.
        weight_regularizer: Regularizer of the weights.
        bias_regularizer: Regularizer of the bias.

    Returns:
        Shape ``[..., num_output_units]``.
    """
    with variable_scope(name, "fully_connected"):
        x = convert_to_tensor(x)
        size = x.shape[-1]

        def parameter(name: str, shape: Sequence[Any], init: Any, regularizer: Any, collections: Any) -> Any:
            where = [*([collections] if isinstance(collections, str) else collections or ())]
            return variable(name, shape, x.dtype, init, regularizer, trainable, [*where, GraphKeys.GLOBAL_VARIABLES])

        weights = parameter("weights", [size, num_output_units], weight_init, weight_regularizer, weight_collections)
        outputs = linalg_ops.tensordot(x, weights, [[len(x.shape) - 1], [0]])
        if bias_init is not None:
            bias = parameter("bias", [num_output_units], bias_init, bias_regularizer, bias_collections)
            outputs = nn_ops.bias_add(outputs, bias)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        get_default_graph().add_to_collections(output_collections or (), outputs)
        return outputs


legacy_linear = legacy_fully_connected
legacy_relu = functools.partial(legacy_fully_connected, activation_fn=activation_ops.relu)


@custom_gradient
def scale_gradient(inputs: Tensor, gradient_multiplier: Tensor) -> Any:
    """`inputs`, whose gradient is scaled by `gradient_multiplier`, a scalar without a gradient.

    Returns:
        The same values, shape and dtype.
    """
    return array_ops.identity(inputs), lambda d_outputs: (d_outputs * gradient_multiplier, None)
