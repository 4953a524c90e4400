"""``tf.keras.applications.inception_v3``: branches of convolutions side by side."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import application, channel_axis, files_of_weights
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.applications.inception_blocks import chain, mixed, reducing, unit
from tfray.keras.layers import AveragePooling2D, Concatenate, MaxPooling2D
from tfray.keras.models import Model

__all__ = ["InceptionV3", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")


def _widened(x: Tensor, name: str | None) -> Any:
    """Two convolutions of the same, side by side."""
    return Concatenate(axis=channel_axis(), name=name)([unit(x, 384, (1, 3)), unit(x, 384, (3, 1))])


def _body(x: Tensor) -> Any:
    x = unit(x, 32, 3, 2, "valid")
    x = unit(unit(x, 32, 3, 1, "valid"), 64, 3)
    x = unit(MaxPooling2D(3, 2)(x), 80, 1, 1, "valid")
    x = MaxPooling2D(3, 2)(unit(x, 192, 3, 1, "valid"))
    for number, pooled in enumerate((32, 64, 64)):
        branches = [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]]
        x = mixed(x, f"mixed{number}", branches, pooled)
    x = reducing(x, "mixed3", [[(384, 3)], [(64, 1), (96, 3), (96, 3)]])
    for number, n in enumerate((128, 160, 160, 192), 4):
        single = [(n, 1), (n, (1, 7)), (192, (7, 1))]
        double = [(n, 1), (n, (7, 1)), (n, (1, 7)), (n, (7, 1)), (192, (1, 7))]
        x = mixed(x, f"mixed{number}", [[(192, 1)], single, double], 192)
    x = reducing(x, "mixed8", [[(192, 1), (320, 3)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)]])
    for number in range(2):
        first = unit(x, 320, 1)
        wide = _widened(unit(x, 384, 1), f"mixed9_{number}")
        deep = _widened(chain(x, (448, 1), (384, 3)), None)
        mean = unit(AveragePooling2D(3, 1, "same")(x), 192, 1)
        x = Concatenate(axis=channel_axis(), name=f"mixed{9 + number}")([first, wide, deep, mean])
    return x


def InceptionV3(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network Inception, the third; arguments as for `tf.keras.applications.VGG16`."""
    return application("inception_v3", _body, dict(locals()), 299, 75, files_of_weights("inception_v3"))
