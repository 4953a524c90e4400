"""Residual networks (He et al., arXiv:1512.03385): convolutions are normalised and activated after each."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import CollectionNames
from tfray.library.layers import slim_utils
from tfray.library.layers.arg_scope import add_arg_scope
from tfray.library.layers.slim_layers import conv2d
from tfray.library.networks.resnet_utils import (
    Block,
    conv2d_same,
    of_depth,
    residual_network,
    resnet_arg_scope,
    subsample,
    units,
)
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.nn.activation_ops import relu

# fmt: off
__all__ = [
    "bottleneck",
    "resnet_arg_scope",
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


def resnet_v1_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """A block of units.

    Args:
        scope: Name of its variable scope.
        base_depth: Channels of the bottlenecks, a quarter of those of the results.
        num_units: How many units.
        stride: Stride of the last one.
    """
    return Block(scope, bottleneck, units(base_depth, num_units, stride))


def resnet_v1(
    inputs: Tensor,
    blocks: Iterable[Block],
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    reuse: Reuse | None = None,
    scope: str | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """A network of given blocks.

    Args:
        inputs: Images ``[batch, height, width, channels]``.
        blocks: The blocks.
        num_classes: Add logits for so many classes; None for none.
        is_training: Normalise by the batch; None to leave that to an `arg_scope`.
        global_pool: Average over height and width.
        output_stride: By how much height and width are reduced; None for as much as the blocks say.
        include_root_block: Begin with a convolution and a pooling.
        reuse: Use variables that exist.
        scope: Name of the variable scope.

    Returns:
        The result, ``[batch, height, width, channels]``, and the results of all layers by their names.

    Raises:
        ValueError: `output_stride` cannot be reached.
    """
    return residual_network(
        "resnet_v1",
        bottleneck,
        inputs,
        blocks,
        num_classes,
        is_training,
        global_pool,
        output_stride,
        include_root_block,
        reuse,
        scope,
        nullcontext(),
        lambda net: net,
    )


resnet_v1.default_image_size = 224  # type: ignore[attr-defined]  # programs read it


resnet_v1_50 = of_depth(50, resnet_v1, bottleneck)
resnet_v1_101 = of_depth(101, resnet_v1, bottleneck)
resnet_v1_152 = of_depth(152, resnet_v1, bottleneck)
resnet_v1_200 = of_depth(200, resnet_v1, bottleneck)
