"""Residual networks (He et al., arXiv:1512.03385): convolutions are normalised and activated after each."""

from __future__ import annotations

from contextlib import nullcontext

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import CollectionNames
from tfray.library.layers import slim_utils
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.slim_layers import conv2d
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
    "resnet_v1",
    "resnet_v1_50",
    "resnet_v1_101",
    "resnet_v1_152",
    "resnet_v1_200",
    "resnet_v1_block",
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
    with variable_scope(scope, "bottleneck_v1", [inputs]) as opened:
        if depth == slim_utils.last_dimension(inputs.shape, min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(inputs, depth, [1, 1], stride=stride, activation_fn=None, scope="shortcut")
        residual = conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = conv2d(residual, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        output = relu(shortcut + residual)
        return slim_utils.collect_named_outputs(outputs_collections, opened.name, output)


resnet_v1_block = block_maker("resnet_v1_block", bottleneck)
resnet_v1 = of_blocks("resnet_v1", bottleneck, nullcontext, lambda net: net)
resnet_v1_50 = of_depth(50, resnet_v1, bottleneck)
resnet_v1_101 = of_depth(101, resnet_v1, bottleneck)
resnet_v1_152 = of_depth(152, resnet_v1, bottleneck)
resnet_v1_200 = of_depth(200, resnet_v1, bottleneck)
