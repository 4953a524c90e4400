"""What the networks of ``tf.keras.applications`` share: inputs, common layers, classifiers, files of weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.keras.layers import (
    Activation,
    BatchNormalization,
    Conv2D,
    Dense,
    GlobalAveragePooling2D,
    GlobalMaxPooling2D,
    Input,
    ReLU,
)
from tfray.keras.models import Model
from tfray.keras.settings import image_data_format
from tfray.keras.utils import get_file, get_source_inputs
from tfray.library.layers.layer_history import history

Shape = Sequence[int | None]
_ORIGIN: Final = "https://storage.googleapis.com/tensorflow/keras-applications/"


def channel_axis() -> int:
    """The axis of channels."""
    return 1 if image_data_format() == "channels_first" else 3


def spatial(shape: Shape) -> tuple[int | None, int | None]:
    """Rows and columns of the shape of an image, without the batch."""
    rows, columns = shape[1:3] if image_data_format() == "channels_first" else shape[:2]
    return rows, columns


def channels(x: Tensor) -> int:
    """How many channels images have."""
    size: Any = x.shape.as_list()[channel_axis()]
    return int(size)


def convolved(x: Tensor, filters: int, size: Any, name: str | None = None, **settings: Any) -> Any:
    """A convolution without bias."""
    return Conv2D(filters, size, name=name, **{"use_bias": False, **settings})(x)


def normalized(x: Tensor, name: str | None = None, **settings: Any) -> Any:
    """Batch normalization."""
    return BatchNormalization(axis=channel_axis(), name=name, **settings)(x)


def rectified(x: Tensor, name: str | None = None, most: float | None = None) -> Any:
    """Zero for what is below zero; with `most`, that for what is above it."""
    layer: Any = Activation("relu", name=name) if most is None else ReLU(most, name=name)
    return layer(x)


def halving_pads(x: Tensor, size: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The zeros around images that make kernels of this size, two places apart, cover them as ``same`` does."""
    pads = [
        (size // 2 - (1 if length is None else 1 - length % 2), size // 2) for length in spatial(x.shape.as_list()[1:])
    ]
    return pads[0], pads[1]


def application(
    name: str,
    body: Callable[[Any], Any],
    arguments: dict[str, Any],
    size: int,
    least: int,
    files: Callable[[bool], str],
    dense: str = "predictions",
    average: str | None = "avg_pool",
    pools: tuple[str | None, str | None] = (None, None),
    top: Callable[[Any, int], Any] | None = None,
) -> Model:
    """A network for images.

    Args:
        name: Name of the model.
        body: What it computes before the classifier.
        arguments: What the program has given, with the names of the arguments of `tf.keras.applications.VGG16`.
        size: Rows and columns of images by default.
        least: The fewest of them.
        files: The file of weights, beneath Keras's address, with or without the classifier.
        dense: Name of the classifier's layer.
        average: Name of the layer before it.
        pools: Names of the layers for `pooling`.
        top: The classifier, if it is another one.
    """
    include_top, weights, classes = (arguments[key] for key in ("include_top", "weights", "classes"))
    if weights not in (None, "imagenet") and not any(map(os.path.exists, (weights, f"{weights}.index"))):
        raise ValueError(
            "The `weights` argument should be either `None` (random initialization), `imagenet` (pre-training on "
            f"ImageNet), or the path to the weights file to be loaded: there is no {weights}"
        )
    if weights == "imagenet" and include_top and classes != 1000:
        raise ValueError(f"with the weights of imagenet and include_top, classes has to be 1000, not {classes}")
    if weights == "imagenet":  # whether it is there is found before all is built
        origin = _ORIGIN + files(include_top)
        weights = get_file(origin.rpartition("/")[2], origin, cache_subdir="models")
        shape = _image_shape(arguments["input_shape"], size, least, include_top, of_imagenet=True)
    else:
        shape = _image_shape(arguments["input_shape"], size, least, include_top, of_imagenet=False)
    given = arguments["input_tensor"]
    x = Input(shape) if given is None else given if given in history() else Input(tensor=given, shape=shape)
    outputs = body(x)
    if include_top and top is not None:
        outputs = top(outputs, classes)
    elif include_top:
        outputs = Dense(classes, "softmax", name=dense)(GlobalAveragePooling2D(name=average)(outputs))
    elif arguments["pooling"] == "avg":
        outputs = GlobalAveragePooling2D(name=pools[0])(outputs)
    elif arguments["pooling"] == "max":
        outputs = GlobalMaxPooling2D(name=pools[1])(outputs)
    model = Model(x if given is None else get_source_inputs(given), outputs, name=name)
    if weights is not None:
        model.load_weights(weights)
    return model


def files_of_weights(name: str, folder: str | None = None) -> Callable[[bool], str]:
    """The files of a network's weights, with and without the classifier; in the folder of its name by default."""
    stem = f"{folder or name}/{name}_weights_tf_dim_ordering_tf_kernels"
    return lambda include_top: f"{stem}{'' if include_top else '_notop'}.h5"


def _image_shape(given: Shape | None, size: int, least: int, include_top: bool, of_imagenet: bool) -> Shape:
    """The shape of an image that a network is made for."""
    first = image_data_format() == "channels_first"
    depth = (3 if of_imagenet or given is None or len(given) != 3 else given[0 if first else -1]) or 3
    default = (depth, size, size) if first else (size, size, depth)
    if given is None:
        return default if include_top else (3, None, None) if first else (None, None, 3)
    if len(given) != 3:
        raise ValueError(f"`input_shape` must be a tuple of three integers, not {given}")
    if of_imagenet and include_top and tuple(given) != default:
        raise ValueError(f"with the weights of imagenet and include_top, input_shape should be {default}, not {given}")
    if of_imagenet and given[0 if first else -1] != 3:
        raise ValueError(f"The input must have 3 channels; got `input_shape={given}`")
    if any(length is not None and length < least for length in spatial(given)):
        raise ValueError(f"Input size must be at least {least}x{least}; got `input_shape={given}`")
    if include_top and None in given:
        raise ValueError(f"If `include_top` is True, you should specify a static `input_shape`. Got {given}")
    return tuple(given)


def square_size(given: Shape | None, include_top: bool, known: Sequence[int]) -> tuple[int, int | None]:
    """The size of images for which there are weights: that of `given`, if it is known; and the rows, for the name."""
    rows, columns = (None, None) if given is None or len(given) != 3 else spatial(given)
    size = rows if rows is not None and rows == columns and rows in known else 224
    return size, (size if include_top else None) if given is None else rows
