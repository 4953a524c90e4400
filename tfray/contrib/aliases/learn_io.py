"""``tf.contrib.learn.io``: input functions over arrays and data frames, numbers of data frames, batches of records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tfray.estimator import inputs
from tfray.programs.learn.generators import generator_input_fn
from tfray.training.input.record_batches import (
    read_batch_examples,
    read_batch_features,
    read_batch_record_features,
    read_keyed_batch_examples,
    read_keyed_batch_examples_shared_queue,
    read_keyed_batch_features,
    read_keyed_batch_features_shared_queue,
)

__all__ = [
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
    "generator_input_fn",
    "numpy_input_fn",
    "pandas_input_fn",
    "read_batch_examples",
    "read_batch_features",
    "read_batch_record_features",
    "read_keyed_batch_examples",
    "read_keyed_batch_examples_shared_queue",
    "read_keyed_batch_features",
    "read_keyed_batch_features_shared_queue",
]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """`tf.estimator.inputs.numpy_input_fn`, which shuffles unless told otherwise."""
    return inputs.numpy_input_fn(x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int | None = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """`tf.estimator.inputs.pandas_input_fn`, which shuffles unless told otherwise."""
    return inputs.pandas_input_fn(x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads, target_column)


def extract_pandas_data(data: Any) -> Any:
    """The values of a data frame of numbers, as floats; anything else as it is.

    Raises:
        ValueError: A column has no numbers.
    """
    if not _is_frame(data):
        return data
    _check_numbers(data, "pandas data")
    return data.to_numpy().astype(float)


def extract_pandas_matrix(data: Any) -> Any:
    """The values of a data frame; anything else as it is."""
    return data.to_numpy() if _is_frame(data) else data


def extract_pandas_labels(labels: Any) -> Any:
    """The values of a data frame with one column of numbers, shape ``[rows, 1]``; anything else as it is.

    Raises:
        ValueError: There are several columns, or the column has no numbers.
    """
    if not _is_frame(labels):
        return labels
    if len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    _check_numbers(labels, "labels")
    return labels.to_numpy()


def _is_frame(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _check_numbers(data: Any, what: str) -> None:
    wrong = [f"{name!r} type={data[name].dtype.name!r}" for name in data if data[name].dtype.kind not in "iufb"]
    if wrong:
        raise ValueError(f"Data types for extracting {what} must be int, float, or bool. Found: {', '.join(wrong)}")
