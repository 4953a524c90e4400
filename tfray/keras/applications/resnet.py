"""``tf.keras.applications.resnet``: residual networks."""

from __future__ import annotations

from typing import Any

from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.applications.residual import residual
from tfray.keras.models import Model

__all__ = ["ResNet50", "ResNet101", "ResNet152", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("caffe")


def ResNet50(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network ResNet with 50 layers; arguments as for `tf.keras.applications.VGG16`."""
    return residual("50", dict(locals()))


def ResNet101(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network ResNet with 101 layers; arguments as for `tf.keras.applications.VGG16`."""
    return residual("101", dict(locals()))


def ResNet152(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network ResNet with 152 layers; arguments as for `tf.keras.applications.VGG16`."""
    return residual("152", dict(locals()))
