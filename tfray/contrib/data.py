"""The names of ``tf.contrib.data``: datasets, and transformations of them for `tf.data.Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfray.framework import nest
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.data_experimental import (
    AUTOTUNE,
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
from tfray.ops.checks.check_ops import ensure_shape
from tfray.training.input_checkpoints import CheckpointInputPipelineHook


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """`Dataset.batch` without a last batch that is not full, for `Dataset.apply`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """`Dataset.padded_batch` without a last batch that is not full, for `Dataset.apply`."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: int, block_length: int = 1) -> Transformation:
    """`parallel_interleave`, whose order is always the same here."""
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def sliding_window_batch(
    window_size: TensorLike,
    stride: TensorLike | None = None,
    window_shift: TensorLike | None = None,
    window_stride: int = 1,
) -> Transformation:
    """Batches of neighbouring elements, for `Dataset.apply`: windows that are not full are left out.

    Args:
        window_size: Elements in a window.
        stride: Another spelling of `window_shift`.
        window_shift: Elements from the beginning of a window to that of the next; 1 when None.
        window_stride: Distance between neighbouring elements of a window.

    Raises:
        ValueError: Both `stride` and `window_shift` are given.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = window_shift if stride is None else stride

    def batches(window: Any, *others: Any) -> Dataset:
        parts = nest.map_structure(lambda part: part.batch(window_size), (window, *others) if others else window)
        return Dataset.zip(parts) if nest.is_nested(parts) else parts

    return lambda dataset: dataset.window(
        window_size, 1 if shift is None else shift, window_stride, drop_remainder=True
    ).flat_map(batches)


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """Elements whose components must have certain shapes, for `Dataset.apply`.

    Args:
        expected_shapes: A `tf.TensorShape` for each component, in the structure of an element. Sizes that are not
            known are not looked at.

    Raises:
        ValueError: When it is applied: the dataset's static shapes are others.
        InvalidArgumentError: In a step: a component has another shape.
    """

    def checked(*element: Any) -> Any:
        parts = zip(nest.flatten(element), nest.flatten(expected_shapes), strict=True)
        same = [part if shape.rank is None else ensure_shape(part, shape) for part, shape in parts]
        found = nest.pack_sequence_as(element, same)
        return found if len(found) > 1 else found[0]

    return lambda dataset: dataset.map(checked)


def reduce_dataset(dataset: Dataset, reducer: Reducer) -> Any:
    """`Dataset.reduce` by the functions of a `Reducer`: its last state, without what it makes of that.

    Args:
        dataset: The dataset.
        reducer: Its first function gets the key 0.

    Raises:
        TypeError: `dataset` is none.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
    return dataset.reduce(reducer.init_func(np.int64(0)), reducer.reduce_func)


def read_batch_features(
    file_pattern: Any,
    batch_size: TensorLike,
    features: Any,
    reader: Any = TFRecordDataset,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> dict[str, Any]:
    """Batches of features, parsed from the examples in files.

    Args:
        file_pattern: As for `tf.data.experimental.make_batched_features_dataset`, like the arguments not named here.
        batch_size: As there.
        features: As there.
        reader: As there.
        reader_args: As there.
        randomize_input: Shuffle the files and the examples.
        num_epochs: As there.
        capacity: Examples among which one is drawn.

    Returns:
        Tensors and sparse tensors by name: each step has the next batch.
    """
    dataset = make_batched_features_dataset(
        file_pattern,
        batch_size,
        features,
        reader=reader,
        reader_args=reader_args,
        shuffle=randomize_input,
        num_epochs=num_epochs,
        shuffle_buffer_size=capacity,
    )
    return dataset.make_one_shot_iterator().get_next()


# fmt: off
__all__ = [
    "AUTOTUNE", "CheckpointInputPipelineHook", "Counter", "CsvDataset", "Dataset", "FixedLengthRecordDataset",
    "Iterator", "Optional", "RandomDataset", "Reducer", "SqlDataset", "TFRecordDataset", "TFRecordWriter",
    "TextLineDataset", "assert_element_shape", "batch_and_drop_remainder", "bucket_by_sequence_length",
    "choose_from_datasets", "copy_to_device", "dense_to_sparse_batch", "enumerate_dataset", "get_next_as_optional",
    "get_single_element", "group_by_reducer", "group_by_window", "ignore_errors", "make_batched_features_dataset",
    "make_csv_dataset", "make_saveable_from_iterator", "map_and_batch", "padded_batch_and_drop_remainder",
    "parallel_interleave", "parse_example_dataset", "prefetch_to_device", "read_batch_features", "reduce_dataset",
    "rejection_resample", "sample_from_datasets", "scan", "shuffle_and_repeat", "sliding_window_batch",
    "sloppy_interleave", "unbatch", "unique",
]
# fmt: on
