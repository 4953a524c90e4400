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
from tfray.library.input.dataset_iterators import Iterator
from tfray.library.input.dataset_options import Options
from tfray.library.input.datasets import AUTOTUNE, Dataset, DatasetSpec


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator over the elements of `dataset`; see `Dataset.make_one_shot_iterator`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator over the elements of `dataset`; see `Dataset.make_initializable_iterator`."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Dtype of each component of a dataset's or iterator's elements, in their structure."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Static shape of each component of a dataset's or iterator's elements, in their structure."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Class of each component of a dataset's or iterator's elements, in their structure."""
    return dataset_or_iterator.output_classes


# fmt: off
__all__ = [
    "AUTOTUNE", "ArrowDataset", "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "Iterator", "Options",
    "ParquetDataset", "TFRecordDataset", "TextLineDataset", "get_output_classes", "get_output_shapes",
    "get_output_types", "make_initializable_iterator", "make_one_shot_iterator",
]
# fmt: on
