"""``tf.data``: datasets and their iterators. Use it to read, shuffle, batch and prefetch the input of a model."""

from __future__ import annotations

from typing import Any

from tfray.library.input.dataset_files import (
    ArrowDataset,
    FixedLengthRecordDataset,
    ParquetDataset,
    TextLineDataset,
    TFRecordDataset,
)
from tfray.library.input.datasets import AUTOTUNE, Dataset, Iterator, Options


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator over the elements of `dataset`; see `Dataset.make_one_shot_iterator`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator over the elements of `dataset`; see `Dataset.make_initializable_iterator`."""
    return dataset.make_initializable_iterator(shared_name)


def __getattr__(name: str) -> Any:
    """`tf.data.experimental`, imported late because it needs this module."""
    if name == "experimental":
        from tfray.library.input import data_experimental

        return data_experimental
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AUTOTUNE",
    "ArrowDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "ParquetDataset",
    "TFRecordDataset",
    "TextLineDataset",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]
