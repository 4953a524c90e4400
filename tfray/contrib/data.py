"""The names of ``tf.contrib.data``: datasets, and transformations of them for `tf.data.Dataset.apply`."""

from __future__ import annotations

from typing import Any

from tfray.library.input.data_experimental import (
    Transformation,
    choose_from_datasets,
    group_by_window,
    ignore_errors,
    map_and_batch,
    parallel_interleave,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unbatch,
)
from tfray.library.namespaces.data import Dataset, FixedLengthRecordDataset, Iterator, TextLineDataset, TFRecordDataset


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """`Dataset.batch` without a last batch that is not full, for `Dataset.apply`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


__all__ = [
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    "batch_and_drop_remainder",
    "choose_from_datasets",
    "group_by_window",
    "ignore_errors",
    "map_and_batch",
    "parallel_interleave",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "unbatch",
]
