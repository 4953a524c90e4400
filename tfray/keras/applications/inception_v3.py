"""``tf.keras.applications.inception_v3``: branches of convolutions side by side."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import (
    application,
    channel_axis,
    convolved,
    normalized,
    rectified,
)
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.layers import AveragePooling2D, Concatenate, MaxPooling2D
from tfray.keras.models import Model

__all__ = ["InceptionV3", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")

Step = tuple[int, int, int]
"""Filters, rows and columns of a convolution."""


def _unit(x: Tensor, filters: int, rows: int, columns: int, strides: int = 1, padding: str = "same") -> Any:
    x = convolved(x, filters, (rows, columns), strides=strides, padding=padding)
    return rectified(normalized(x, scale=False))


def _chain(x: Tensor, *steps: Step) -> Any:
    for step in steps:
        x = _unit(x, *step)
    return x


def _mixed(x: Tensor, name: str, branches: list[list[Step]], pooled: int) -> Any:
    """Branches, the last of which takes means of windows first."""
    made = [_chain(x, *branch) for branch in branches]
    made.append(_unit(AveragePooling2D(3, 1, "same")(x), pooled, 1, 1))
    return Concatenate(axis=channel_axis(), name=name)(made)


def _reducing(x: Tensor, name: str, branches: list[list[Step]]) -> Any:
    """Branches whose last convolution leaves half the rows and columns, beside the maxima of windows."""
    made = [_unit(_chain(x, *branch[:-1]), *branch[-1], 2, "valid") for branch in branches]
    return Concatenate(axis=channel_axis(), name=name)([*made, MaxPooling2D(3, 2)(x)])


def _widened(x: Tensor, name: str | None) -> Any:
    """Two convolutions of the same, side by side."""
    return Concatenate(axis=channel_axis(), name=name)([_unit(x, 384, 1, 3), _unit(x, 384, 3, 1)])


def _body(x: Tensor) -> Any:
    x = _unit(x, 32, 3, 3, 2, "valid")
    x = _unit(_unit(x, 32, 3, 3, 1, "valid"), 64, 3, 3)
    x = _unit(MaxPooling2D(3, 2)(x), 80, 1, 1, 1, "valid")
    x = MaxPooling2D(3, 2)(_unit(x, 192, 3, 3, 1, "valid"))
    for number, pooled in enumerate((32, 64, 64)):
        branches = [[(64, 1, 1)], [(48, 1, 1), (64, 5, 5)], [(64, 1, 1), (96, 3, 3), (96, 3, 3)]]
        x = _mixed(x, f"mixed{number}", branches, pooled)
    x = _reducing(x, "mixed3", [[(384, 3, 3)], [(64, 1, 1), (96, 3, 3), (96, 3, 3)]])
    for number, n in enumerate((128, 160, 160, 192), 4):
        single = [(n, 1, 1), (n, 1, 7), (192, 7, 1)]
        double = [(n, 1, 1), (n, 7, 1), (n, 1, 7), (n, 7, 1), (192, 1, 7)]
        x = _mixed(x, f"mixed{number}", [[(192, 1, 1)], single, double], 192)
    x = _reducing(x, "mixed8", [[(192, 1, 1), (320, 3, 3)], [(192, 1, 1), (192, 1, 7), (192, 7, 1), (192, 3, 3)]])
    for number in range(2):
        first = _unit(x, 320, 1, 1)
        wide = _widened(_unit(x, 384, 1, 1), f"mixed9_{number}")
        deep = _widened(_chain(x, (448, 1, 1), (384, 3, 3)), None)
        mean = _unit(AveragePooling2D(3, 1, "same")(x), 192, 1, 1)
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
    return application("inception_v3", _body, dict(locals()), 299, 75, _file)


def _file(include_top: bool) -> str:
    return f"inception_v3/inception_v3_weights_tf_dim_ordering_tf_kernels{'' if include_top else '_notop'}.h5"
