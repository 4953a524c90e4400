"""Inception networks: the third version (Szegedy et al., arXiv:1512.00567), and what the first shares with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.library.layers.arg_scope import arg_scope
from tfray.library.layers.slim_functions import (
    avg_pool2d,
    dropout,
    max_pool2d,
    softmax,
    variance_scaling_initializer,
)
from tfray.library.layers.slim_layers import batch_norm, conv2d, fully_connected
from tfray.library.variables.initializers import TruncatedNormal
from tfray.library.variables.regularizers import l2_regularizer
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops
from tfray.ops.nn.activation_ops import relu

__all__ = ["inception_v3", "inception_v3_arg_scope", "inception_v3_base"]

Step = tuple[Any, ...]
"""A layer of a branch: its scope, its filters (0: averages, -1: maxima), its kernel, and ``"S"`` for stride 2 without
padding. A list of steps in a place of one: all take the same input, and their results are joined."""

_FACTORED = {"1x7": (1, 7), "7x1": (7, 1), "1x3": (1, 3), "3x1": (3, 1), "1x1": (1, 1), "3x3": (3, 3), "5x5": (5, 5)}


def conv(name: str, filters: int, kernel: Any = None, stride: str = "") -> Step:
    """A convolution, whose name tells its kernel unless it is given."""
    return name, filters, kernel or _FACTORED[name.rpartition("_")[2]], stride


_AVERAGE = ("AvgPool_0a_3x3", 0, (3, 3), "")
_MAXIMA = ("MaxPool_1a_3x3", -1, (3, 3), "S")


def _grid(pooled: int, middle: str = "Conv2d_0a_1x1", last: str = "Conv2d_0b_5x5") -> list[list[Any]]:
    """The branches of a module on the grid of 35 by 35."""
    return [
        [conv("Conv2d_0a_1x1", 64)],
        [conv(middle, 48), conv(last, 64)],
        [conv("Conv2d_0a_1x1", 64), conv("Conv2d_0b_3x3", 96), conv("Conv2d_0c_3x3", 96)],
        [_AVERAGE, conv("Conv2d_0b_1x1", pooled)],
    ]


def _factored(size: int) -> list[list[Any]]:
    """The branches of a module on the grid of 17 by 17."""
    long = [conv(f"Conv2d_0{letter}_{shape}", size) for letter, shape in (("b", "7x1"), ("c", "1x7"), ("d", "7x1"))]
    return [
        [conv("Conv2d_0a_1x1", 192)],
        [conv("Conv2d_0a_1x1", size), conv("Conv2d_0b_1x7", size), conv("Conv2d_0c_7x1", 192)],
        [conv("Conv2d_0a_1x1", size), *long, conv("Conv2d_0e_1x7", 192)],
        [_AVERAGE, conv("Conv2d_0b_1x1", 192)],
    ]


def _wide(second: str) -> list[list[Any]]:
    """The branches of a module on the grid of 8 by 8."""
    last = [conv("Conv2d_0c_1x3", 384), conv("Conv2d_0d_3x1", 384)]
    return [
        [conv("Conv2d_0a_1x1", 320)],
        [conv("Conv2d_0a_1x1", 384), [conv("Conv2d_0b_1x3", 384), conv(second, 384)]],
        [conv("Conv2d_0a_1x1", 448), conv("Conv2d_0b_3x3", 384), last],
        [_AVERAGE, conv("Conv2d_0b_1x1", 192)],
    ]


_STEM = [  # scope, filters, kernel, stride, padding
    ("Conv2d_1a_3x3", 32, 3, 2, "VALID"),
    ("Conv2d_2a_3x3", 32, 3, 1, "VALID"),
    ("Conv2d_2b_3x3", 64, 3, 1, "SAME"),
    ("MaxPool_3a_3x3", -1, 3, 2, "VALID"),
    ("Conv2d_3b_1x1", 80, 1, 1, "VALID"),
    ("Conv2d_4a_3x3", 192, 3, 1, "VALID"),
    ("MaxPool_5a_3x3", -1, 3, 2, "VALID"),
]

_MODULES: dict[str, list[list[Any]]] = {
    "Mixed_5b": _grid(32),
    "Mixed_5c": _grid(64, "Conv2d_0b_1x1", "Conv_1_0c_5x5"),
    "Mixed_5d": _grid(64),
    "Mixed_6a": [
        [conv("Conv2d_1a_1x1", 384, (3, 3), "S")],
        [conv("Conv2d_0a_1x1", 64), conv("Conv2d_0b_3x3", 96), conv("Conv2d_1a_1x1", 96, (3, 3), "S")],
        [_MAXIMA],
    ],
    "Mixed_6b": _factored(128),
    "Mixed_6c": _factored(160),
    "Mixed_6d": _factored(160),
    "Mixed_6e": _factored(192),
    "Mixed_7a": [
        [conv("Conv2d_0a_1x1", 192), conv("Conv2d_1a_3x3", 320, None, "S")],
        [
            conv("Conv2d_0a_1x1", 192),
            conv("Conv2d_0b_1x7", 192),
            conv("Conv2d_0c_7x1", 192),
            conv("Conv2d_1a_3x3", 192, None, "S"),
        ],
        [_MAXIMA],
    ],
    "Mixed_7b": _wide("Conv2d_0b_3x1"),
    "Mixed_7c": _wide("Conv2d_0c_3x1"),
}


def add_layer(net: Tensor, step: Any, depth: Callable[[int], int]) -> Tensor:
    """One layer of a branch; see `Step`."""
    if isinstance(step, list):
        return array_ops.concat([add_layer(net, each, depth) for each in step], 3)
    name, filters, kernel, stride = step
    more: dict[str, Any] = {"stride": 2, "padding": "VALID"} if stride else {}
    if filters > 0:
        return conv2d(net, depth(filters), list(kernel), scope=name, **more)
    return (max_pool2d if filters else avg_pool2d)(net, list(kernel), scope=name, **more)


def add_module(net: Tensor, name: str, branches: Sequence[Sequence[Any]], depth: Callable[[int], int]) -> Tensor:
    """A module: branches that take the same input, and whose results are joined."""
    with variable_scope(name):
        ends = []
        for index, branch in enumerate(branches):
            with variable_scope(f"Branch_{index}"):
                end = net
                for step in branch:
                    end = add_layer(end, step, depth)
                ends.append(end)
        return array_ops.concat(ends, 3)


def depth_function(depth_multiplier: float, min_depth: int) -> Callable[[int], int]:
    """How many filters there are for a number in the tables. Raises `ValueError` for a multiplier of 0 or below."""
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda filters: max(int(filters * depth_multiplier), min_depth)


def inception_v3_base(
    inputs: Tensor,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: ScopeLike | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network up to one of its modules.

    Args:
        inputs: Images ``[batch, height, width, channels]``.
        final_endpoint: Name of the last layer or module.
        min_depth: Fewest filters of a convolution.
        depth_multiplier: Multiplies all numbers of filters.
        scope: Name of the variable scope.

    Returns:
        The result of `final_endpoint`, and the results of all layers and modules before it by their names.

    Raises:
        ValueError: There is no such layer, or the multiplier is not above 0.
    """
    depth = depth_function(depth_multiplier, min_depth)
    end_points: dict[str, Tensor] = {}
    with variable_scope(scope, "InceptionV3", [inputs]):
        net = inputs
        for name, filters, kernel, stride, padding in _STEM:
            if filters > 0:
                net = conv2d(net, depth(filters), [kernel, kernel], stride=stride, padding=padding, scope=name)
            else:
                net = max_pool2d(net, [kernel, kernel], stride=stride, padding=padding, scope=name)
            end_points[name] = net
            if name == final_endpoint:
                return net, end_points
        with arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"):
            for name, branches in _MODULES.items():
                net = end_points[name] = add_module(net, name, branches, depth)
                if name == final_endpoint:
                    return net, end_points
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def inception_v3(
    inputs: Tensor,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Callable[..., Tensor] = softmax,
    spatial_squeeze: bool = True,
    reuse: Reuse | None = None,
    scope: str = "InceptionV3",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network with its logits, and those of the classifier at its side (``AuxLogits`` of the results).

    Args:
        inputs: Images ``[batch, height, width, channels]``, 299 by 299 by default.
        num_classes: Number of classes.
        is_training: Drop out, and normalise by the batch.
        dropout_keep_prob: Share that is kept.
        min_depth: As for `inception_v3_base`.
        depth_multiplier: Likewise.
        prediction_fn: From logits to predictions.
        spatial_squeeze: Leave out height and width of the logits, which are 1.
        reuse: Use variables that exist.
        scope: Name of the variable scope.

    Returns:
        Logits ``[batch, num_classes]``, and the results of all layers and modules by their names.
    """
    with (
        variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v3_base(
            inputs,
            scope=opened,
            min_depth=min_depth,
            depth_multiplier=depth_multiplier,
        )
        depth = depth_function(depth_multiplier, min_depth)
        with arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"), variable_scope("AuxLogits"):
            aux = avg_pool2d(end_points["Mixed_6e"], [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
            aux = conv2d(aux, depth(128), [1, 1], scope="Conv2d_1b_1x1")
            kernel = reduced_kernel(aux, 5)
            wide: dict[str, Any] = {"weights_initializer": TruncatedNormal(0.0, 0.01), "padding": "VALID"}
            aux = conv2d(aux, depth(768), kernel, scope=f"Conv2d_2a_{kernel[0]}x{kernel[1]}", **wide)
            aux = _logits(aux, num_classes, "Conv2d_2b_1x1", weights_initializer=TruncatedNormal(0.0, 0.001))
            end_points["AuxLogits"] = _squeezed(aux, spatial_squeeze)
        with variable_scope("Logits"):
            kernel = reduced_kernel(net, 8)
            net = avg_pool2d(net, kernel, padding="VALID", scope=f"AvgPool_1a_{kernel[0]}x{kernel[1]}")
            net = end_points["PreLogits"] = dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            logits = _squeezed(_logits(net, num_classes, "Conv2d_1c_1x1"), spatial_squeeze)
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
        return logits, end_points


inception_v3.default_image_size = 299  # type: ignore[attr-defined]  # programs read it


def _logits(net: Tensor, num_classes: int, scope: str, **more: Any) -> Tensor:
    return conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scope, **more)


def _squeezed(logits: Tensor, squeeze: bool) -> Tensor:
    return array_ops.squeeze(logits, [1, 2], name="SpatialSqueeze") if squeeze else logits


def reduced_kernel(net: Tensor, size: int) -> list[int]:
    """A square kernel of that size, or of the image's where that is known and smaller."""
    return [size if known is None else min(known, size) for known in net.shape.as_list()[1:3]]


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: str = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Any:
    """The defaults of layers in these networks, for `arg_scope`.

    Args:
        weight_decay: Of all weights.
        batch_norm_var_collection: Collection of the moving averages.
        batch_norm_decay: Their decay.
        batch_norm_epsilon: Added to variances.
        updates_collections: Collection of their updates.
        use_fused_batchnorm: As for `batch_norm`.
    """
    params = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": updates_collections,
        "fused": use_fused_batchnorm,
        "variables_collections": {
            "beta": None,
            "gamma": None,
            "moving_mean": [batch_norm_var_collection],
            "moving_variance": [batch_norm_var_collection],
        },
    }
    with (
        arg_scope([conv2d, fully_connected], weights_regularizer=l2_regularizer(weight_decay)),
        arg_scope(
            [conv2d],
            weights_initializer=variance_scaling_initializer(),
            activation_fn=relu,
            normalizer_fn=batch_norm,
            normalizer_params=params,
        ) as scope,
    ):
        return scope
