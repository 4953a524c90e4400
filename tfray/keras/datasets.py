"""``tf.keras.datasets``: data sets from files of one's own, where Keras keeps them. Nothing is downloaded."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfray.errors import DataLossError
from tfray.formats.files import failures_of
from tfray.keras.utils import get_file
from tfray.programs.mnist_input import FILES, extract_images, extract_labels

__all__ = ["boston_housing", "fashion_mnist", "mnist"]

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


_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
