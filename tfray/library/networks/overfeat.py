"""OverFeat (Sermanet et al., arXiv:1312.6229)."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.layers.arg_scope import arg_scope
from tfray.library.layers.slim_functions import max_pool2d
from tfray.library.layers.slim_layers import conv2d
from tfray.library.networks.classifiers import classifier, end_points_of, layer_defaults
from tfray.library.variables.initializers import Constant, TruncatedNormal, Zeros
from tfray.library.variables.variable_scope import variable_scope

__all__ = ["overfeat", "overfeat_arg_scope"]


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of layers in this network, for `arg_scope`.

    Args:
        weight_decay: Of all weights.
    """
    with (
        layer_defaults(weight_decay, Zeros()),
        arg_scope([conv2d], padding="SAME"),
        arg_scope([max_pool2d], padding="VALID") as scope,
    ):
        return scope


def overfeat(
    inputs: Tensor,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "overfeat",
) -> tuple[Tensor, dict[str, Any]]:
    """The network.

    Args:
        inputs: Images ``[batch, height, width, channels]``, 231 by 231 for one result each.
        num_classes: Number of classes.
        is_training: Drop out.
        dropout_keep_prob: Share that is kept.
        spatial_squeeze: Leave out height and width of the result, which are 1.
        scope: Name of the variable scope.

    Returns:
        Logits ``[batch, num_classes]``, and the results of all layers by their names.
    """
    with variable_scope(scope, "overfeat", [inputs]) as opened, end_points_of(opened) as end_points:
        net = conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
        net = max_pool2d(net, [2, 2], scope="pool1")
        net = conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
        net = max_pool2d(net, [2, 2], scope="pool2")
        net = conv2d(net, 512, [3, 3], scope="conv3")
        net = conv2d(net, 1024, [3, 3], scope="conv4")
        net = conv2d(net, 1024, [3, 3], scope="conv5")
        net = max_pool2d(net, [2, 2], scope="pool5")
        with arg_scope([conv2d], weights_initializer=TruncatedNormal(0.0, 0.005), biases_initializer=Constant(0.1)):
            net = conv2d(net, 3072, [6, 6], padding="VALID", scope="fc6")
            return classifier(
                net,
                num_classes,
                is_training,
                dropout_keep_prob,
                spatial_squeeze,
                opened,
                end_points,
                biases_initializer=Zeros(),
            )


overfeat.default_image_size = 231  # type: ignore[attr-defined]  # programs read it
