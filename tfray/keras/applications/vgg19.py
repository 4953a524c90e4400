"""``tf.keras.applications.vgg19``: 19 layers with weights."""

from __future__ import annotations

from typing import Any

from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.applications.vgg import COUNTS, vgg
from tfray.keras.models import Model

__all__ = ["VGG19", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("caffe")


def VGG19(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network of the Visual Geometry Group with 19 layers; arguments as for `tf.keras.applications.VGG16`."""
    return vgg("vgg19", COUNTS["vgg19"], dict(locals()))
