"""`tf.contrib.learn.datasets`: small data sets from files of one's own. Nothing is downloaded."""

from __future__ import annotations

import csv
import os
import sys
from importlib.resources import files as resources
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import NotFoundError
from tfray.formats import files
from tfray.formats.files import PathLike, given_path
from tfray.framework.arguments import abbreviated
from tfray.programs import mnist_input as mnist
from tfray.programs.mnist_input import Datasets

base = sys.modules[__name__]
"""This module, by the name that it has in programs."""

# fmt: off
__all__ = [
    "Dataset", "Datasets", "base", "load_csv_with_header", "load_csv_without_header", "load_dataset", "load_iris",
    "maybe_download", "mnist",
]
# fmt: on


class Dataset(NamedTuple):
    """``data``, an array with a row for each example, and ``target``, its labels."""

    data: Any
    target: Any


def load_csv_with_header(
    filename: PathLike, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Examples of a file of comma-separated values, whose first line has their number and the number of features.

    Args:
        filename: The file.
        target_dtype: NumPy's dtype of the labels.
        features_dtype: That of the features.
        target_column: The place of the label in a line.
    """
    return _loaded(filename, target_dtype, features_dtype, target_column, 1)


def load_csv_without_header(
    filename: PathLike, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """As `load_csv_with_header`, of a file that begins with the first example."""
    return _loaded(filename, target_dtype, features_dtype, target_column, 0)


def _loaded(filename: PathLike, target_dtype: Any, features_dtype: Any, target_column: int, skipped: int) -> Dataset:
    text = files.read_bytes(given_path(filename, "filename")).decode()
    return _of_text(text, target_dtype, features_dtype, target_column, skipped)


def _of_text(text: str, target_dtype: Any, features_dtype: Any, target_column: int, skipped: int) -> Dataset:
    rows = [row for row in csv.reader(text.splitlines()[skipped:]) if row]
    labels = [row.pop(target_column) for row in rows]
    return Dataset(np.asarray(rows, features_dtype), np.asarray(labels, target_dtype))


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file that lies in a folder.

    Raises:
        NotFoundError: It does not lie there. It is not downloaded.
    """
    path = os.path.join(work_directory, filename)
    if not os.path.isfile(path):
        raise NotFoundError(f"there is no {path}, and tfray downloads nothing: put {source_url} there")
    return path


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set of that name: ``iris``, or ``mnist``, from the folder ``MNIST-data``.

    Raises:
        ValueError: It is another one.
    """
    known = {"iris": load_iris, "mnist": mnist.load_mnist}
    if name not in known:
        raise ValueError(
            f"load_dataset has {', '.join(known)}, not {abbreviated(name)}: load_csv_with_header reads a file"
        )
    return known[name]()


def load_iris(data_path: PathLike | None = None) -> Dataset:
    """Fisher's irises: length and width of sepals and petals, float64 ``[150, 4]``, and the species, int64 ``[150]``.

    Args:
        data_path: Another file of that form: see `load_csv_with_header`.
    """
    if data_path is not None:
        return load_csv_with_header(data_path, np.int64, np.float64)
    return _of_text(resources("tfray.programs.learn").joinpath("iris.csv").read_text(), np.int64, np.float64, -1, 1)
