"""``tf.keras.applications.imagenet_utils``: images as networks take them, and the names of the classes of ImageNet."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError
from tfray.formats.files import failures_of
from tfray.framework.convert import convert_to_tensor
from tfray.keras.settings import floatx, image_data_format
from tfray.keras.utils import get_file
from tfray.ops.arrays import array_ops

__all__ = ["decode_predictions", "preprocess_input"]

_MEANS: Final = {"caffe": (103.939, 116.779, 123.68), "torch": (0.485, 0.456, 0.406)}
_DEVIATIONS: Final = (0.229, 0.224, 0.225)
_INDEX: Final = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json"


def preprocess_input(x: Any, data_format: str | None = None, mode: str = "caffe") -> Any:
    """Images with the range that a network was trained for.

    Args:
        x: One image or several, an array or a tensor, from 0 to 255 with channels red, green and blue. An array of
            floating numbers is changed itself.
        data_format: ``channels_last`` or ``channels_first``; the setting of Keras when None.
        mode: ``tf`` for -1 to 1; ``torch`` for means 0 and deviations 1 over ImageNet; ``caffe`` for means 0, with the
            channels in the opposite order.

    Raises:
        ValueError: There is no such `mode` or `data_format`.
    """
    if mode not in ("caffe", "tf", "torch"):
        raise ValueError(f"Unknown mode {mode!r}: there are caffe, tf and torch")
    data_format = data_format or image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format {data_format!r}")
    is_array = isinstance(x, np.ndarray)
    if is_array and not np.issubdtype(x.dtype, np.floating):
        x = x.astype(floatx())
    elif not is_array:
        x = convert_to_tensor(x)
        x = x if x.dtype.is_floating else array_ops.cast(x, floatx())
    if mode == "tf":
        x /= 127.5
        x -= 1.0
        return x
    rank = x.ndim if is_array else x.shape.rank
    axis = rank - 3 if data_format == "channels_first" else rank - 1
    sizes = [3 if place == axis else 1 for place in range(rank)]
    if mode == "torch":
        x /= 255.0
    elif is_array:
        x = np.flip(x, axis)
    else:
        x = array_ops.reverse(x, [axis])
    dtype = x.dtype if is_array else x.dtype.as_numpy_dtype
    x -= np.reshape(_MEANS[mode], sizes).astype(dtype)
    if mode == "torch":
        x /= np.reshape(_DEVIATIONS, sizes).astype(dtype)
    return x


def preprocessing(mode: str) -> Callable[..., Any]:
    """The function ``preprocess_input`` of the module of a network."""

    def preprocess_input_of_network(x: Any, data_format: str | None = None) -> Any:
        """Images with the range that the network was trained for.

        Args:
            x: One image or several, an array or a tensor, from 0 to 255 with channels red, green and blue. An array of
                floating numbers is changed itself.
            data_format: ``channels_last`` or ``channels_first``; the setting of Keras when None.

        Raises:
            ValueError: There is no such `data_format`.
        """
        return preprocess_input(x, data_format, mode)

    preprocess_input_of_network.__name__ = "preprocess_input"
    return preprocess_input_of_network


def decode_predictions(preds: Any, top: int = 5) -> list[list[tuple[str, str, float]]]:
    """The names of the most probable classes of ImageNet.

    Args:
        preds: Probabilities, ``[images, 1000]``.
        top: How many classes to give for each image.

    Returns:
        For each image a list of tuples: the class's name in WordNet, its name, and its probability, the highest first.

    Raises:
        ValueError: They are not probabilities of 1000 classes.
        NotFoundError: The file with the names is not where Keras puts it, ``~/.keras/models``.
    """
    preds = np.asarray(preds)
    if preds.ndim != 2 or preds.shape[1] != 1000:
        raise ValueError(
            "`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape (samples, 1000)). Found "
            f"array with shape: {preds.shape}"
        )
    path = get_file("imagenet_class_index.json", _INDEX, cache_subdir="models")
    with failures_of(path), open(path, "rb") as file:
        try:
            names = json.load(file)
            known = [(str(names[str(number)][0]), str(names[str(number)][1])) for number in range(1000)]
        except (ValueError, LookupError, TypeError) as error:
            raise DataLossError(f"{path} does not have the names of 1000 classes: {error}") from error
    return [[(*known[place], row[place]) for place in np.argsort(row)[::-1][:top]] for row in preds]
