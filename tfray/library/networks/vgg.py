"""Networks of small convolutions (Simonyan and Zisserman, arXiv:1409.1556)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def _network(name: str, repetitions: Sequence[int]) -> Callable[..., tuple[Tensor, dict[str, Any]]]:
    """The network with so many convolutions in each of its groups."""

    def network(
        inputs: Tensor,
        num_classes: int = 1000,
        is_training: bool = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: str = name,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Groups of convolutions with a pooling after each, then three layers that are fully connected.

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
        with variable_scope(scope, name, [inputs]) as opened, end_points_of(opened) as end_points:
            net = inputs
            for group, (count, filters) in enumerate(zip(repetitions, (64, 128, 256, 512, 512), strict=True), 1):
                net = repeat(net, count, conv2d, filters, [3, 3], scope=f"conv{group}")
                net = max_pool2d(net, [2, 2], scope=f"pool{group}")
            net = conv2d(net, 4096, [7, 7], padding="VALID", scope="fc6")
            return classifier(net, num_classes, is_training, dropout_keep_prob, spatial_squeeze, opened, end_points)

    network.__name__ = network.__qualname__ = name
    network.default_image_size = 224  # type: ignore[attr-defined]  # programs read it
    return network


vgg_a = _network("vgg_a", (1, 1, 2, 2, 2))
vgg_16 = _network("vgg_16", (2, 2, 3, 3, 3))
vgg_19 = _network("vgg_19", (2, 2, 4, 4, 4))
vgg_d = vgg_16
vgg_e = vgg_19
