"""``tf.keras.applications.vgg16``: 16 layers with weights."""

from __future__ import annotations

from typing import Any

from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.applications.vgg import COUNTS, vgg
from tfray.keras.models import Model

__all__ = ["VGG16", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("caffe")


def VGG16(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network of the Visual Geometry Group with 16 layers.

    Args:
        include_top: Whether the classifier is at the end.
        weights: None for random ones; the path of a file of HDF5, or of a checkpoint; or ``imagenet`` for the file that
            Keras has downloaded to ``~/.keras/models``. Nothing is downloaded here.
        input_tensor: A tensor that is the input, or is made of it.
        input_shape: Shape of an image.
        pooling: Without the classifier: ``avg`` or ``max`` over all places; None for the images of the last layer.
        classes: Number of classes of the classifier.
        **kwargs: Accepted for Keras's sake.

    Raises:
        ValueError: There is no such file, the images are too small, or `classes` are not those of ``imagenet``.
        NotFoundError: The file of ``imagenet`` is not there.
    """
    return vgg("vgg16", COUNTS["vgg16"], dict(locals()))
