"""``tf.keras.applications.resnet_v2``: residual networks whose blocks begin with activations."""

from __future__ import annotations

from typing import Any

from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.applications.residual import residual
from tfray.keras.models import Model

__all__ = ["ResNet50V2", "ResNet101V2", "ResNet152V2", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")


def ResNet50V2(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network ResNet with 50 layers, the second; arguments as for `tf.keras.applications.VGG16`."""
    return residual("50", dict(locals()), 2)


def ResNet101V2(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network ResNet with 101 layers, the second; arguments as for `tf.keras.applications.VGG16`."""
    return residual("101", dict(locals()), 2)


def ResNet152V2(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network ResNet with 152 layers, the second; arguments as for `tf.keras.applications.VGG16`."""
    return residual("152", dict(locals()), 2)
