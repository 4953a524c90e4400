"""``tf.keras.datasets.fashion_mnist``: pictures of clothes, from files of one's own."""

from __future__ import annotations

import os

from tfray.formats.files import failures_of
from tfray.keras.datasets.local_files import ORIGIN, Pair
from tfray.keras.utils import get_file
from tfray.programs.mnist_input import FILES, extract_images, extract_labels

__all__ = ["load_data"]


def load_data() -> tuple[Pair, Pair]:
    """As of `mnist`, of four files in ``~/.keras/datasets/fashion-mnist``, in the form of MNIST's.

    Raises:
        NotFoundError: One is not there.
    """
    arrays = []
    for name in FILES:
        path = get_file(name, ORIGIN + name, cache_subdir=os.path.join("datasets", "fashion-mnist"))
        with failures_of(path), open(path, "rb") as file:
            arrays.append(extract_labels(file) if "labels" in name else extract_images(file)[..., 0])
    return (arrays[0], arrays[1]), (arrays[2], arrays[3])
