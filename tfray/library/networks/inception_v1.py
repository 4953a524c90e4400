"""The first Inception network, GoogLeNet (Szegedy et al., arXiv:1409.4842)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.framework.graph import Tensor
from tfray.library.layers.arg_scope import arg_scope
from tfray.library.layers.slim_functions import avg_pool2d, dropout, max_pool2d, softmax
from tfray.library.layers.slim_layers import batch_norm, conv2d, fully_connected
from tfray.library.networks.inception_v3 import add_module, conv
from tfray.library.networks.inception_v3 import inception_v3_arg_scope as inception_v1_arg_scope
from tfray.library.variables.initializers import TruncatedNormal
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variable_store import Reuse
from tfray.ops.arrays import array_ops

__all__ = ["inception_v1", "inception_v1_arg_scope", "inception_v1_base"]

_LAYERS: list[tuple[str, Any]] = [  # filters, kernel and stride; of a module, the filters of its branches
    ("Conv2d_1a_7x7", (64, 7, 2)),
    ("MaxPool_2a_3x3", (-1, 3, 2)),
    ("Conv2d_2b_1x1", (64, 1, 1)),
    ("Conv2d_2c_3x3", (192, 3, 1)),
    ("MaxPool_3a_3x3", (-1, 3, 2)),
    ("Mixed_3b", (64, (96, 128), (16, 32), 32)),
    ("Mixed_3c", (128, (128, 192), (32, 96), 64)),
    ("MaxPool_4a_3x3", (-1, 3, 2)),
    ("Mixed_4b", (192, (96, 208), (16, 48), 64)),
    ("Mixed_4c", (160, (112, 224), (24, 64), 64)),
    ("Mixed_4d", (128, (128, 256), (24, 64), 64)),
    ("Mixed_4e", (112, (144, 288), (32, 64), 64)),
    ("Mixed_4f", (256, (160, 320), (32, 128), 128)),
    ("MaxPool_5a_2x2", (-1, 2, 2)),
    ("Mixed_5b", (256, (160, 320), (32, 128), 128)),
    ("Mixed_5c", (384, (192, 384), (48, 128), 128)),
]


def _branches(name: str, first: int, second: tuple[int, int], third: tuple[int, int], pooled: int) -> list[list[Any]]:
    # The published checkpoint has this name in one module.
    last = "Conv2d_0a_3x3" if name == "Mixed_5b" else "Conv2d_0b_3x3"
    return [
        [conv("Conv2d_0a_1x1", first)],
        [conv("Conv2d_0a_1x1", second[0]), conv("Conv2d_0b_3x3", second[1])],
        [conv("Conv2d_0a_1x1", third[0]), conv(last, third[1])],
        [("MaxPool_0a_3x3", -1, (3, 3), ""), conv("Conv2d_0b_1x1", pooled)],
    ]


def inception_v1_base(
    inputs: Tensor, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network up to one of its modules.

    Args:
        inputs: Images ``[batch, height, width, channels]``.
        final_endpoint: Name of the last layer or module.
        scope: Name of the variable scope.

    Returns:
        The result of `final_endpoint`, and the results of all layers and modules before it by their names.

    Raises:
        ValueError: There is no such layer.
    """
    end_points: dict[str, Tensor] = {}
    with (
        variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope([conv2d, fully_connected], weights_initializer=TruncatedNormal(0.0, 0.01)),
        arg_scope([conv2d, max_pool2d], stride=1, padding="SAME"),
    ):
        net = inputs
        for name, sizes in _LAYERS:
            if name.startswith("Mixed"):
                net = add_module(net, name, _branches(name, *sizes), lambda filters: filters)
            else:
                filters, kernel, stride = sizes
                if filters > 0:
                    net = conv2d(net, filters, [kernel, kernel], stride=stride, scope=name)
                else:
                    net = max_pool2d(net, [kernel, kernel], stride=stride, scope=name)
            end_points[name] = net
            if name == final_endpoint:
                return net, end_points
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def inception_v1(
    inputs: Tensor,
    num_classes: int = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Callable[..., Tensor] = softmax,
    spatial_squeeze: bool = True,
    reuse: Reuse | None = None,
    scope: str = "InceptionV1",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The network with its logits.

    Args:
        inputs: Images ``[batch, 224, 224, channels]``.
        num_classes: Number of classes.
        is_training: Drop out, and normalise by the batch.
        dropout_keep_prob: Share that is kept.
        prediction_fn: From logits to predictions.
        spatial_squeeze: Leave out height and width of the logits, which are 1.
        reuse: Use variables that exist.
        scope: Name of the variable scope.

    Returns:
        Logits ``[batch, num_classes]``, and the results of all layers and modules by their names.
    """
    with (
        variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v1_base(inputs, scope=opened)
        with variable_scope("Logits"):
            net = avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_0c_1x1")
            if spatial_squeeze:
                logits = array_ops.squeeze(logits, [1, 2], name="SpatialSqueeze")
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
        return logits, end_points


inception_v1.default_image_size = 224  # type: ignore[attr-defined]  # programs read it
