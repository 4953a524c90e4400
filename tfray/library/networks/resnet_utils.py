"""What residual networks share: blocks of units, and convolutions that keep sizes whatever the stride."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import CollectionNames
from tfray.library.layers import slim_utils
from tfray.library.layers.arg_scope import add_arg_scope, arg_scope
from tfray.library.layers.slim_functions import max_pool2d, softmax, variance_scaling_initializer
from tfray.library.layers.slim_layers import batch_norm, conv2d
from tfray.library.variables.regularizers import l2_regularizer
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.math.reduction_ops import reduce_mean
from tfray.ops.nn.activation_ops import relu

__all__ = ["Block", "conv2d_same", "resnet_arg_scope", "stack_blocks_dense", "subsample"]


MakeUnit = Callable[..., Tensor]
"""Makes a unit from its input; see `Block.unit_fn`."""


class Block(collections.namedtuple("Block", ["scope", "unit_fn", "args"])):
    """A block of a residual network.

    Attributes:
        scope: Name of its variable scope.
        unit_fn: Makes a unit from its input, with the arguments ``depth``, ``depth_bottleneck``, ``stride`` and
            ``rate``.
        args: The first three of these for each unit, by name or as a tuple.
    """

    __slots__ = ()


def subsample(inputs: Tensor, factor: int, scope: str | None = None) -> Tensor:
    """Every `factor`-th row and column of images ``[batch, height, width, channels]``."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Tensor, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Tensor:
    """A convolution padded by the kernel's size alone, so that a stride takes every `stride`-th of its results.

    Args:
        inputs: Shape ``[batch, height, width, channels]``.
        num_outputs: Number of filters.
        kernel_size: Height and width of the kernel.
        stride: Stride.
        rate: Dilation.
        scope: Name of its variable scope.
    """
    if stride == 1:
        return conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = (kernel_size - 1) * rate
    around = [total // 2, total - total // 2]
    padded = array_ops.pad(inputs, [[0, 0], around, around, [0, 0]])
    return conv2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: Tensor,
    blocks: Iterable[Block],
    output_stride: int | None = None,
    outputs_collections: CollectionNames | None = None,
) -> Tensor:
    """One block after the other.

    Args:
        net: Shape ``[batch, height, width, channels]``.
        blocks: The blocks.
        output_stride: By how much the blocks reduce height and width in all: once they have, further strides become
            dilations. None for as much as the units say.
        outputs_collections: The outputs of the blocks are added to these.

    Raises:
        ValueError: The strides do not multiply to `output_stride`.
    """
    current_stride, rate = 1, 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as scope:
            for index, given in enumerate(block.args):
                unit = _unit(given)
                stride = unit.get("stride", 1)
                if output_stride is not None and current_stride > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with variable_scope(f"unit_{index + 1}", values=[net]):
                    if output_stride is not None and current_stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= stride
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        current_stride *= stride
            net = slim_utils.collect_named_outputs(outputs_collections, scope.name, net)
    if output_stride is not None and current_stride != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def _unit(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    return dict(zip(("depth", "depth_bottleneck", "stride"), given, strict=True))


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """The defaults of layers in residual networks, for `arg_scope`.

    Args:
        weight_decay: Of the weights of convolutions.
        batch_norm_decay: Decay of the moving averages.
        batch_norm_epsilon: Added to variances.
        batch_norm_scale: Have scales.
    """
    params = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with (
        arg_scope(
            [conv2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=relu,
            normalizer_fn=batch_norm,
            normalizer_params=params,
        ),
        arg_scope([batch_norm], **params),
        arg_scope([max_pool2d], padding="SAME") as scope,
    ):
        return scope


def units(base_depth: int, count: int, stride: int) -> list[dict[str, int]]:
    """The arguments of a block's units, of which the last has the stride."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return [unit] * (count - 1) + [{**unit, "stride": stride}]


DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
"""Units of the four blocks, by the number of layers of a network."""


def blocks_of(layers: int, unit_fn: MakeUnit) -> list[Block]:
    """The blocks of the network with so many layers."""
    shapes = zip((64, 128, 256, 512), DEPTHS[layers], (2, 2, 2, 1), strict=True)
    return [Block(f"block{index}", unit_fn, units(*shape)) for index, shape in enumerate(shapes, 1)]


def root_stride(output_stride: int | None) -> int | None:
    """What is left of an output stride after the layers before the first block. Raises `ValueError` unless by 4."""
    if output_stride is None:
        return None
    if output_stride % 4:
        raise ValueError("The output_stride needs to be a multiple of 4.")
    return output_stride // 4


Network = Callable[..., tuple[Tensor, dict[str, Any]]]


def block_maker(name: str, unit_fn: MakeUnit) -> Callable[[str, int, int, int], Block]:
    """`resnet_v1_block` or `resnet_v2_block`, which is its name; `unit_fn` makes the units."""

    def make_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
        """A block of units.

        Args:
            scope: Name of its variable scope.
            base_depth: Channels of the bottlenecks, a quarter of those of the results.
            num_units: How many units.
            stride: Stride of the last one.
        """
        return Block(scope, unit_fn, units(base_depth, num_units, stride))

    make_block.__name__ = make_block.__qualname__ = name
    return make_block


def of_blocks(
    name: str,
    unit_fn: MakeUnit,
    of_root: Callable[[], AbstractContextManager[Any]],
    ended: Callable[[Tensor], Tensor],
) -> Network:
    """`resnet_v1` or `resnet_v2`.

    Args:
        name: Its name, and that of its variable scope, if it is given none.
        unit_fn: Makes its units.
        of_root: Gives the defaults of the first convolution.
        ended: What is done to the result of the blocks.
    """

    def network(
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
        with variable_scope(scope, name, [inputs], reuse=reuse) as opened:
            collection = f"{opened.original_name_scope}_end_points"
            training = nullcontext() if is_training is None else arg_scope([batch_norm], is_training=is_training)
            with training, arg_scope([conv2d, unit_fn, stack_blocks_dense], outputs_collections=collection):
                net = inputs
                if include_root_block:
                    output_stride = root_stride(output_stride)
                    with of_root():
                        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                    net = max_pool2d(net, [3, 3], stride=2, scope="pool1")
                net = ended(stack_blocks_dense(net, blocks, output_stride))
                if global_pool:
                    net = reduce_mean(net, [1, 2], keepdims=True, name="pool5")
                if num_classes is not None:
                    net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
                end_points = slim_utils.convert_collection_to_dict(collection)
                if num_classes is not None:
                    end_points["predictions"] = softmax(net, scope="predictions")
                return net, end_points

    network.__name__ = network.__qualname__ = name
    network.default_image_size = 224  # type: ignore[attr-defined]  # programs read it
    return network


def of_depth(layers: int, version: Network, unit_fn: MakeUnit) -> Network:
    """The network of 50, 101, 152 or 200 layers.

    Args:
        layers: How many.
        version: `resnet_v1` or `resnet_v2`.
        unit_fn: Makes its units.
    """
    name = f"{version.__name__}_{layers}"

    def network(
        inputs: Tensor,
        num_classes: int | None = None,
        is_training: bool | None = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Reuse | None = None,
        scope: str = name,
    ) -> tuple[Tensor, dict[str, Any]]:
        """The network of the number of layers in its name. The arguments are those of `resnet_v1`."""
        blocks = blocks_of(layers, unit_fn)
        return version(inputs, blocks, num_classes, is_training, global_pool, output_stride, True, reuse, scope)

    network.__name__ = network.__qualname__ = name
    network.default_image_size = 224  # type: ignore[attr-defined]  # programs read it
    return network
