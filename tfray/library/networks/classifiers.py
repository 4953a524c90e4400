"""What networks with three fully connected layers at their end share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.layers import slim_utils
from tfray.library.layers.arg_scope import arg_scope
from tfray.library.layers.slim_functions import dropout, max_pool2d
from tfray.library.layers.slim_layers import conv2d, fully_connected
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.regularizers import l2_regularizer
from tfray.library.variables.variable_scope import VariableScope
from tfray.ops.arrays import array_ops
from tfray.ops.nn.activation_ops import relu


@contextmanager
def layer_defaults(weight_decay: float, biases_initializer: InitializerLike) -> Iterator[Any]:
    """The defaults of layers that are activated and whose weights decay."""
    with arg_scope(
        [conv2d, fully_connected],
        activation_fn=relu,
        weights_regularizer=l2_regularizer(weight_decay),
        biases_initializer=biases_initializer,
    ) as scope:
        yield scope


@contextmanager
def end_points_of(scope: VariableScope) -> Iterator[str]:
    """The collection to which layers within a scope add their results."""
    collection = f"{scope.original_name_scope}_end_points"
    with arg_scope([conv2d, fully_connected, max_pool2d], outputs_collections=collection):
        yield collection


def classifier(
    net: Tensor,
    num_classes: int,
    is_training: bool,
    dropout_keep_prob: float,
    spatial_squeeze: bool,
    scope: VariableScope,
    collection: str,
    **logits: Any,
) -> tuple[Tensor, dict[str, Any]]:
    """The logits after the first of the three layers, and the results of all layers by their names.

    Args:
        net: What the first of them returns, ``[batch, height, width, channels]``.
        num_classes: Number of classes.
        is_training: Drop out.
        dropout_keep_prob: Share that is kept.
        spatial_squeeze: Leave out height and width of the result, which are 1.
        scope: The network's variable scope.
        collection: Where results are collected.
        logits: Further arguments of the last layer.
    """
    net = dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
    net = conv2d(net, 4096, [1, 1], scope="fc7")
    net = dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
    net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8", **logits)
    end_points = slim_utils.convert_collection_to_dict(collection)
    if spatial_squeeze:
        net = array_ops.squeeze(net, [1, 2], name="fc8/squeezed")
        end_points[f"{scope.name}/fc8"] = net
    return net, end_points
