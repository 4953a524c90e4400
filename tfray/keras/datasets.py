"""``tf.keras.datasets``: data sets from files of one's own, where Keras keeps them. Nothing is downloaded."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy

from tfray.errors import DataLossError, NotFoundError
from tfray.formats.files import failures_of
from tfray.keras.files.integer_lists import integer_lists
from tfray.keras.settings import image_data_format
from tfray.keras.utils import get_file
from tfray.programs.mnist_input import FILES, extract_images, extract_labels

__all__ = ["boston_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters"]

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]


def _arrays(path: str, names: tuple[str, ...]) -> list[Array]:
    """Arrays of a file in NumPy's format ``npz``; objects in it are not read."""
    with failures_of(path):
        try:
            with np.load(path, allow_pickle=False) as file:
                return [file[name] for name in names]
        except (ValueError, KeyError) as error:
            raise DataLossError(f"{path} has not the arrays {', '.join(names)}: {error}") from error


class mnist:
    """Handwritten digits."""

    @staticmethod
    def load_data(path: str = "mnist.npz") -> tuple[Pair, Pair]:
        """Images, uint8 ``[count, 28, 28]``, and labels, uint8 ``[count]``, to train and to test with.

        Args:
            path: The file, beneath ``~/.keras/datasets`` unless the path is absolute.

        Raises:
            NotFoundError: It is not there.
        """
        found = _arrays(get_file(path, _ORIGIN + "mnist.npz"), ("x_train", "y_train", "x_test", "y_test"))
        return (found[0], found[1]), (found[2], found[3])


class fashion_mnist:
    """Pictures of clothes."""

    @staticmethod
    def load_data() -> tuple[Pair, Pair]:
        """As of `mnist`, of four files in ``~/.keras/datasets/fashion-mnist``, in the form of MNIST's.

        Raises:
            NotFoundError: One is not there.
        """
        arrays = []
        for name in FILES:
            path = get_file(name, _ORIGIN + name, cache_subdir=os.path.join("datasets", "fashion-mnist"))
            with failures_of(path), open(path, "rb") as file:
                arrays.append(extract_labels(file) if "labels" in name else extract_images(file)[..., 0])
        return (arrays[0], arrays[1]), (arrays[2], arrays[3])


class boston_housing:
    """Prices of houses, by 13 numbers about their town."""

    @staticmethod
    def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> tuple[Pair, Pair]:
        """Features ``[count, 13]`` and prices ``[count]``, to train and to test with.

        Args:
            path: As for `mnist`; it has arrays ``x`` and ``y``.
            test_split: Share of the examples to test with.
            seed: Seed of the order.

        Raises:
            NotFoundError: It is not there.
        """
        x, y = _arrays(get_file(path, _ORIGIN + "boston_housing.npz"), ("x", "y"))
        order = np.arange(len(x))
        np.random.RandomState(seed).shuffle(order)
        x, y = x[order], y[order]
        count = int(len(x) * (1 - test_split))
        return (x[:count], y[:count]), (x[count:], y[count:])


def _cifar(folder: str, archive: str, files: Sequence[str], labels: int) -> tuple[Array, Array]:
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


class cifar10:
    """Small pictures of ten kinds of things."""

    @staticmethod
    def load_data() -> tuple[Pair, Pair]:
        """Images, uint8 ``[count, 32, 32, 3]``, and labels, uint8 ``[count, 1]``, to train and to test with.

        They are of the binary version, in ``~/.keras/datasets/cifar-10-batches-bin``.

        Raises:
            NotFoundError: It is not there.
        """
        place = "cifar-10-batches-bin", "cifar-10-binary.tar.gz"
        train = _cifar(*place, [f"data_batch_{number}.bin" for number in range(1, 6)], 1)
        return train, _cifar(*place, ["test_batch.bin"], 1)


class cifar100:
    """Small pictures of a hundred kinds of things, or of twenty."""

    @staticmethod
    def load_data(label_mode: str = "fine") -> tuple[Pair, Pair]:
        """Images, uint8 ``[count, 32, 32, 3]``, and labels, int64 ``[count, 1]``, to train and to test with.

        They are of the binary version, in ``~/.keras/datasets/cifar-100-binary``.

        Args:
            label_mode: ``fine`` for a hundred kinds, ``coarse`` for twenty.

        Raises:
            ValueError: There is no such mode.
            NotFoundError: The files are not there.
        """
        if label_mode not in ("fine", "coarse"):
            raise ValueError('`label_mode` must be one of `"fine"`, `"coarse"`.')
        place = "cifar-100-binary", "cifar-100-binary.tar.gz"
        column = slice(1, 2) if label_mode == "fine" else slice(0, 1)
        found = [_cifar(*place, [name], 2) for name in ("train.bin", "test.bin")]
        (x, y), (x_test, y_test) = found
        return (x, y[:, column].astype(np.int64)), (x_test, y_test[:, column].astype(np.int64))


def _word_lists(path: str, names: Sequence[str]) -> list[list[list[int]]]:
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


def _words(
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


def _word_index(path: str) -> dict[str, int]:
    path = get_file(path, _ORIGIN + path)
    with failures_of(path), open(path, "rb") as file:
        try:
            return {str(word): int(number) for word, number in json.load(file).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataLossError(f"{path} has no numbers of words: {error}") from error


class imdb:
    """Reviews of films, good or bad."""

    @staticmethod
    def load_data(
        path: str = "imdb.npz",
        num_words: int | None = None,
        skip_top: int = 0,
        maxlen: int | None = None,
        seed: int = 113,
        start_char: int | None = 1,
        oov_char: int | None = 2,
        index_from: int = 3,
        **kwargs: Any,
    ) -> tuple[Pair, Pair]:
        """Lists of the numbers of words, and labels 0 and 1, to train and to test with.

        Args:
            path: The file, beneath ``~/.keras/datasets`` unless the path is absolute.
            num_words: Words with this number and more become `oov_char`.
            skip_top: So do those with smaller numbers than this.
            maxlen: Only shorter texts are kept.
            seed: Seed of the order.
            start_char: What texts begin with; nothing when None.
            oov_char: What stands for words that are left out; nothing when None.
            index_from: What is added to the numbers of words.
            **kwargs: ``nb_words``, an older name of `num_words`.

        Raises:
            ValueError: No text is short enough.
            NotFoundError: The file is not there.
        """
        path = get_file(path, _ORIGIN + "imdb.npz")
        texts, labels = _word_lists(path, ("x_train", "x_test")), _arrays(path, ("y_train", "y_test"))
        random, parts = np.random.RandomState(seed), []
        for lists, kinds in zip(texts, labels, strict=True):
            order = np.arange(len(lists))
            random.shuffle(order)
            parts.append(([lists[place] for place in order], kinds[order]))
        most = kwargs.get("nb_words") or num_words
        train, test = _words(parts, most, skip_top, maxlen, start_char, oov_char, index_from)
        return train, test

    @staticmethod
    def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
        """The numbers of words, without what `load_data` adds. Raises `NotFoundError` where the file is not there."""
        return _word_index(path)


class reuters:
    """News in 46 topics."""

    @staticmethod
    def load_data(
        path: str = "reuters.npz",
        num_words: int | None = None,
        skip_top: int = 0,
        maxlen: int | None = None,
        test_split: float = 0.2,
        seed: int = 113,
        start_char: int | None = 1,
        oov_char: int | None = 2,
        index_from: int = 3,
        **kwargs: Any,
    ) -> tuple[Pair, Pair]:
        """Lists of the numbers of words, and topics, to train and to test with.

        Args:
            path: The file, beneath ``~/.keras/datasets`` unless the path is absolute.
            num_words: As for `imdb`, like the arguments that follow.
            skip_top: Likewise.
            maxlen: Likewise.
            test_split: Share of the texts to test with.
            seed: Seed of the order.
            start_char: What texts begin with; nothing when None.
            oov_char: What stands for words that are left out; nothing when None.
            index_from: What is added to the numbers of words.
            **kwargs: ``nb_words``, an older name of `num_words`.

        Raises:
            ValueError: No text is short enough.
            NotFoundError: The file is not there.
        """
        path = get_file(path, _ORIGIN + "reuters.npz")
        (texts,), (labels,) = _word_lists(path, ("x",)), _arrays(path, ("y",))
        order = np.arange(len(texts))
        np.random.RandomState(seed).shuffle(order)
        most = kwargs.get("nb_words") or num_words
        part = [texts[place] for place in order], labels[order]
        ((found, kinds),) = _words([part], most, skip_top, maxlen, start_char, oov_char, index_from)
        count = int(len(found) * (1 - test_split))
        return (found[:count], kinds[:count]), (found[count:], kinds[count:])

    @staticmethod
    def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
        """The numbers of words, without what `load_data` adds. Raises `NotFoundError` where the file is not there."""
        return _word_index(path)


_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
