"""Residual networks (He et al., arXiv:1603.05027) whose units are normalised and activated before convolutions."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import CollectionNames
from tfray.library.layers import slim_utils
from tfray.library.layers.arg_scope import add_arg_scope, arg_scope
from tfray.library.layers.slim_layers import batch_norm, conv2d
from tfray.library.networks import resnet_utils
from tfray.library.networks.resnet_utils import (
    block_maker,
    conv2d_same,
    of_blocks,
    of_depth,
    resnet_arg_scope,
    subsample,
)
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.nn.activation_ops import relu

# fmt: off
__all__ = [
    "bottleneck",
    "resnet_arg_scope",
    "resnet_utils",
    "resnet_v2",
    "resnet_v2_50",
    "resnet_v2_101",
    "resnet_v2_152",
    "resnet_v2_200",
    "resnet_v2_block",
]
# fmt: on


@add_arg_scope
def bottleneck(
    inputs: Tensor,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: CollectionNames | None = None,
    scope: str | None = None,
) -> Tensor:
    """A unit of three convolutions beside a shortcut.

    Args:
        inputs: Shape ``[batch, height, width, channels]``.
        depth: Channels of the result.
        depth_bottleneck: Channels of the first two convolutions.
        stride: Stride.
        rate: Dilation.
        outputs_collections: The result is added to these.
        scope: Name of its variable scope.
    """
    with variable_scope(scope, "bottleneck_v2", [inputs]) as opened:
        preact = batch_norm(inputs, activation_fn=relu, scope="preact")
        plain: dict[str, Any] = {"normalizer_fn": None, "activation_fn": None}
        if depth == slim_utils.last_dimension(inputs.shape, min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(preact, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        residual = conv2d(preact, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        output = shortcut + conv2d(residual, depth, [1, 1], stride=1, scope="conv3", **plain)
        return slim_utils.collect_named_outputs(outputs_collections, opened.name, output)


resnet_v2_block = block_maker("resnet_v2_block", bottleneck)
resnet_v2 = of_blocks(
    "resnet_v2",
    bottleneck,
    lambda: arg_scope([conv2d], activation_fn=None, normalizer_fn=None),
    lambda net: batch_norm(net, activation_fn=relu, scope="postnorm"),
)
resnet_v2_50 = of_depth(50, resnet_v2, bottleneck)
resnet_v2_101 = of_depth(101, resnet_v2, bottleneck)
resnet_v2_152 = of_depth(152, resnet_v2, bottleneck)
resnet_v2_200 = of_depth(200, resnet_v2, bottleneck)
