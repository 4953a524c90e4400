"""The names of ``tf.contrib.data``: datasets, and transformations of them for `tf.data.Dataset.apply`."""

from __future__ import annotations

from typing import Any

from tfray.library.input.data_experimental import (
    Counter,
    CsvDataset,
    Optional,
    RandomDataset,
    Reducer,
    SqlDataset,
    TFRecordWriter,
    Transformation,
    bucket_by_sequence_length,
    choose_from_datasets,
    copy_to_device,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_next_as_optional,
    get_single_element,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    make_batched_features_dataset,
    make_csv_dataset,
    make_saveable_from_iterator,
    map_and_batch,
    parallel_interleave,
    parse_example_dataset,
    prefetch_to_device,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unbatch,
    unique,
)
from tfray.library.namespaces.data import Dataset, FixedLengthRecordDataset, Iterator, TextLineDataset, TFRecordDataset


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """`Dataset.batch` without a last batch that is not full, for `Dataset.apply`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """`Dataset.padded_batch` without a last batch that is not full, for `Dataset.apply`."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


# fmt: off
__all__ = [
    "Counter", "CsvDataset", "Dataset", "FixedLengthRecordDataset", "Iterator", "Optional", "RandomDataset",
    "Reducer", "SqlDataset", "TFRecordDataset", "TFRecordWriter", "TextLineDataset", "batch_and_drop_remainder",
    "bucket_by_sequence_length", "choose_from_datasets", "copy_to_device", "dense_to_sparse_batch",
    "enumerate_dataset", "get_next_as_optional", "get_single_element", "group_by_reducer", "group_by_window",
    "ignore_errors", "make_batched_features_dataset", "make_csv_dataset", "make_saveable_from_iterator",
    "map_and_batch", "padded_batch_and_drop_remainder",
    "parallel_interleave", "parse_example_dataset", "prefetch_to_device", "rejection_resample",
    "sample_from_datasets", "scan", "shuffle_and_repeat", "unbatch", "unique",
]
# fmt: on
