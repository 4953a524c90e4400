"""Networks of small convolutions (Simonyan and Zisserman, arXiv:1409.1556)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.layers.arg_scope import arg_scope
from tfray.library.layers.slim_functions import max_pool2d, repeat
from tfray.library.layers.slim_layers import conv2d
from tfray.library.networks.classifiers import classifier, end_points_of, layer_defaults
from tfray.library.variables.initializers import Zeros
from tfray.library.variables.variable_scope import variable_scope

__all__ = ["vgg_16", "vgg_19", "vgg_a", "vgg_arg_scope", "vgg_d", "vgg_e"]


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of layers in these networks, for `arg_scope`.

    Args:
        weight_decay: Of all weights.
    """
    with layer_defaults(weight_decay, Zeros()), arg_scope([conv2d], padding="SAME") as scope:
        return scope


def _vgg(
    repetitions: Sequence[int],
    inputs: Tensor,
    num_classes: int,
    is_training: bool,
    dropout_keep_prob: float,
    spatial_squeeze: bool,
    scope: str,
    default: str,
) -> tuple[Tensor, dict[str, Any]]:
    """Groups of convolutions with a pooling after each, then three layers that are fully connected."""
    with variable_scope(scope, default, [inputs]) as opened, end_points_of(opened) as end_points:
        net = inputs
        for group, (count, filters) in enumerate(zip(repetitions, (64, 128, 256, 512, 512), strict=True), 1):
            net = repeat(net, count, conv2d, filters, [3, 3], scope=f"conv{group}")
            net = max_pool2d(net, [2, 2], scope=f"pool{group}")
        net = conv2d(net, 4096, [7, 7], padding="VALID", scope="fc6")
        return classifier(net, num_classes, is_training, dropout_keep_prob, spatial_squeeze, opened, end_points)


def vgg_a(
    inputs: Tensor,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_a",
) -> tuple[Tensor, dict[str, Any]]:
    """The network of 11 layers.

    Args:
        inputs: Images ``[batch, height, width, channels]``, 224 by 224 for one result each.
        num_classes: Number of classes.
        is_training: Drop out.
        dropout_keep_prob: Share that is kept.
        spatial_squeeze: Leave out height and width of the result, which are 1.
        scope: Name of the variable scope.

    Returns:
        Logits ``[batch, num_classes]``, and the results of all layers by their names.
    """
    repetitions = (1, 1, 2, 2, 2)
    return _vgg(repetitions, inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_a")


def vgg_16(
    inputs: Tensor,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_16",
) -> tuple[Tensor, dict[str, Any]]:
    """The network of 16 layers.

    Args:
        inputs: Images ``[batch, height, width, channels]``, 224 by 224 for one result each.
        num_classes: Number of classes.
        is_training: Drop out.
        dropout_keep_prob: Share that is kept.
        spatial_squeeze: Leave out height and width of the result, which are 1.
        scope: Name of the variable scope.

    Returns:
        Logits ``[batch, num_classes]``, and the results of all layers by their names.
    """
    repetitions = (2, 2, 3, 3, 3)
    return _vgg(repetitions, inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_16")


def vgg_19(
    inputs: Tensor,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_19",
) -> tuple[Tensor, dict[str, Any]]:
    """The network of 19 layers.

    Args:
        inputs: Images ``[batch, height, width, channels]``, 224 by 224 for one result each.
        num_classes: Number of classes.
        is_training: Drop out.
        dropout_keep_prob: Share that is kept.
        spatial_squeeze: Leave out height and width of the result, which are 1.
        scope: Name of the variable scope.

    Returns:
        Logits ``[batch, num_classes]``, and the results of all layers by their names.
    """
    repetitions = (2, 2, 4, 4, 4)
    return _vgg(repetitions, inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_19")


for _network in (vgg_a, vgg_16, vgg_19):
    _network.default_image_size = 224  # type: ignore[attr-defined]  # programs read it

vgg_d = vgg_16
vgg_e = vgg_19
