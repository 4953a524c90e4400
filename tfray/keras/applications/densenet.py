"""``tf.keras.applications.densenet``: densely connected networks."""

from __future__ import annotations

from typing import Any

from tfray.keras.applications.dense_blocks import dense_blocks
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.models import Model

__all__ = ["DenseNet121", "DenseNet169", "DenseNet201", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("torch")


def DenseNet121(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network DenseNet with 121 layers; arguments as for `tf.keras.applications.VGG16`."""
    return dense_blocks("121", dict(locals()))


def DenseNet169(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network DenseNet with 169 layers; arguments as for `tf.keras.applications.VGG16`."""
    return dense_blocks("169", dict(locals()))


def DenseNet201(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network DenseNet with 201 layers; arguments as for `tf.keras.applications.VGG16`."""
    return dense_blocks("201", dict(locals()))
