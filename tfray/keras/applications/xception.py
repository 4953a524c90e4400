"""``tf.keras.applications.xception``: separable convolutions with shortcuts."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import application, convolved, files_of_weights, normalized, rectified
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.layers import Add, MaxPooling2D, SeparableConv2D
from tfray.keras.models import Model

__all__ = ["Xception", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")


def _separated(x: Tensor, filters: int, name: str) -> Any:
    return normalized(SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x), f"{name}_bn")


def _reducing(x: Tensor, block: int, widths: tuple[int, int]) -> Any:
    """Two separable convolutions, after which images have half the rows and columns, beside a shortcut."""
    shortcut = normalized(convolved(x, widths[1], 1, strides=2, padding="same"))
    for number, filters in enumerate(widths, 1):
        if block > 2 or number > 1:
            x = rectified(x, f"block{block}_sepconv{number}_act")
        x = _separated(x, filters, f"block{block}_sepconv{number}")
    return Add()([MaxPooling2D(3, 2, "same", name=f"block{block}_pool")(x), shortcut])


def _body(x: Tensor) -> Any:
    for number, (filters, strides) in enumerate(((32, 2), (64, 1)), 1):
        name = f"block1_conv{number}"
        x = rectified(normalized(convolved(x, filters, 3, name, strides=strides), f"{name}_bn"), f"{name}_act")
    for block, filters in ((2, 128), (3, 256), (4, 728)):
        x = _reducing(x, block, (filters, filters))
    for block in range(5, 13):
        shortcut = x
        for number in range(1, 4):
            name = f"block{block}_sepconv{number}"
            x = _separated(rectified(x, f"{name}_act"), 728, name)
        x = Add()([x, shortcut])
    x = _reducing(x, 13, (728, 1024))
    for number, filters in enumerate((1536, 2048), 1):
        name = f"block14_sepconv{number}"
        x = rectified(_separated(x, filters, name), f"{name}_act")
    return x


def Xception(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network Xception; arguments as for `tf.keras.applications.VGG16`."""
    return application("xception", _body, dict(locals()), 299, 71, files_of_weights("xception"))
