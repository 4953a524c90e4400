"""What the data sets of ``tf.keras.datasets`` share: reading files where Keras keeps them. Nothing is downloaded."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy

from tfray.errors import DataLossError, NotFoundError
from tfray.formats.files import failures_of
from tfray.keras.files.integer_lists import integer_lists
from tfray.keras.settings import image_data_format
from tfray.keras.utils import get_file

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]

ORIGIN: Final = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


def arrays_of(path: str, names: tuple[str, ...]) -> list[Array]:
    """Arrays of a file in NumPy's format ``npz``; objects in it are not read."""
    with failures_of(path):
        try:
            with np.load(path, allow_pickle=False) as file:
                return [file[name] for name in names]
        except (ValueError, KeyError) as error:
            raise DataLossError(f"{path} has not the arrays {', '.join(names)}: {error}") from error


def cifar(folder: str, archive: str, files: Sequence[str], labels: int) -> tuple[Array, Array]:
    """Images and labels of the binary version of CIFAR: records of labels, and bytes of red, green and blue."""
    try:
        root = get_file(folder, f"https://www.cs.toronto.edu/~kriz/{archive}", untar=True)
    except NotFoundError as error:
        raise NotFoundError(
            f"{error.message}, and unpack it. That is the binary version of the data set: that for Python is pickled, "
            "and not read here"
        ) from error
    parts = []
    for name in files:
        path = os.path.join(root, name)
        with failures_of(path):
            records = np.fromfile(path, np.uint8)
        if not records.size or records.size % (labels + 3072):
            raise DataLossError(f"{path} has {records.size} bytes, which are no records of {labels + 3072}")
        parts.append(records.reshape(-1, labels + 3072))
    found = np.concatenate(parts)
    images = found[:, labels:].reshape(-1, 3, 32, 32)
    if image_data_format() == "channels_last":
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    return images, found[:, :labels]


def word_lists(path: str, names: Sequence[str]) -> list[list[list[int]]]:
    """Lists of integers of a file ``npz``. They are pickled in it, and read without executing what stands there."""
    with failures_of(path):
        try:
            found = []
            with zipfile.ZipFile(path) as archive:
                for name in names:
                    with archive.open(f"{name}.npy") as file:
                        version = npy.read_magic(file)
                        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                        if read(file)[2] != np.dtype(object):
                            raise DataLossError(f"{name} is no array of lists")
                        found.append(integer_lists(file.read()))
            return found
        except (ValueError, KeyError, zipfile.BadZipFile, DataLossError) as error:
            raise DataLossError(
                f"{path} has no lists of integers {', '.join(names)}, as Keras's file has them: {error}"
            ) from error


def renumbered(
    parts: Sequence[tuple[list[list[int]], Array]],
    num_words: int | None,
    skip_top: int,
    maxlen: int | None,
    start_char: int | None,
    oov_char: int | None,
    index_from: int,
) -> list[Pair]:
    """Texts and labels in parts, the words renumbered, without rare ones or long texts."""
    begin = [] if start_char is None else [start_char]
    kept: list[tuple[list[list[int]], Array]] = []
    for texts, labels in parts:
        texts = [[*begin, *(word + index_from for word in text)] for text in texts]
        short = [place for place, text in enumerate(texts) if not maxlen or len(text) < maxlen]
        kept.append(([texts[place] for place in short], labels[short]))
    if not all(texts for texts, _ in kept):
        raise ValueError(f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was kept")
    most = num_words or max(max(text) for texts, _ in kept for text in texts)
    found = []
    for texts, labels in kept:
        made = np.empty(len(texts), object)
        for place, text in enumerate(texts):
            if oov_char is None:
                made[place] = [word for word in text if skip_top <= word < most]
            else:
                made[place] = [word if skip_top <= word < most else oov_char for word in text]
        found.append((made, labels))
    return found


def word_index(path: str) -> dict[str, int]:
    """The numbers of words in a file of JSON."""
    path = get_file(path, ORIGIN + path)
    with failures_of(path), open(path, "rb") as file:
        try:
            return {str(word): int(number) for word, number in json.load(file).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataLossError(f"{path} has no numbers of words: {error}") from error
