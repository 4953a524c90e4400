"""The names of ``tf.estimator.inputs``: input functions over arrays and data frames in memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tfray.estimator.spec import check_positive
from tfray.framework.convert import make_array
from tfray.framework.dtypes import as_dtype
from tfray.framework.random_seed import get_seed
from tfray.library.input.datasets import Dataset

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function over arrays.

    Args:
        x: An array, or a dictionary of arrays, with examples along the first axis.
        y: The labels likewise; None for no labels.
        batch_size: Examples of a batch; the last may have less.
        num_epochs: Number of passes over the data; None for no end.
        shuffle: Whether to shuffle; must be said.
        queue_capacity: How many examples are in the queue from which shuffled ones are drawn.
        num_threads: Accepted for TensorFlow 1's sake: the order never depends on threads.

    Returns:
        A function without arguments: returns the features, or features and labels, as tensors.

    Raises:
        ValueError: `shuffle` is not a bool, or `batch_size` not positive; when the function is called: an argument is
            empty, lengths differ, or a name stands for a feature and a label.
        TypeError: When the function is called: `x` is no array or dictionary.
    """
    _check_shuffle(shuffle)
    check_positive("numpy_input_fn", "batch_size", batch_size)

    def input_fn() -> Any:
        features, labels = _by_name(x, "x"), {} if y is None else _by_name(y, "y")
        if isinstance(x, dict) and isinstance(y, dict) and set(features) & set(labels):
            both = ", ".join(sorted(set(features) & set(labels)))
            raise ValueError(f"numpy_input_fn: {both} is both a feature and a label")
        arrays = {("x", name): array for name, array in features.items()}
        arrays |= {("y", name): array for name, array in labels.items()}
        if len({array.shape[0] for array in arrays.values()}) != 1:
            shapes = {name: array.shape for (_, name), array in arrays.items()}
            raise ValueError(
                "Length of tensors in x and y is mismatched. All elements in x and y must have the same length: "
                f"numpy_input_fn takes arrays of the same number of examples, not of shapes {shapes}"
            )
        tensors = _batches(arrays, batch_size, num_epochs, bool(shuffle), queue_capacity)
        return _like(x, "x", tensors) if y is None else (_like(x, "x", tensors), _like(y, "y", tensors))

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int | None = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function over a data frame of pandas.

    Args:
        x: A `DataFrame` of features.
        y: A `Series` of labels, or a `DataFrame`, with the index of `x`; None for no labels.
        batch_size: As of `numpy_input_fn`.
        num_epochs: As of `numpy_input_fn`.
        shuffle: As of `numpy_input_fn`.
        queue_capacity: As of `numpy_input_fn`; all examples when None.
        num_threads: Accepted for TensorFlow 1's sake.
        target_column: A name that no feature may have.

    Returns:
        A function without arguments: returns the features by name, or features and labels, as tensors.

    Raises:
        ValueError: `shuffle` is not a bool, a feature is called `target_column`, or the indices differ.
        TypeError: `target_column` is no text, or pandas is not installed.
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise TypeError("pandas_input_fn needs pandas: pip install pandas") from error
    _check_shuffle(shuffle)
    check_positive("pandas_input_fn", "batch_size", batch_size)
    if not isinstance(target_column, str):
        raise TypeError(f"pandas_input_fn: target_column is {target_column!r}, expected text")
    if y is not None and target_column in x:
        raise ValueError(f"pandas_input_fn: there is a feature {target_column!r}: choose another target_column")
    if y is not None and not np.array_equal(x.index, y.index):
        raise ValueError(f"pandas_input_fn: the index of x is {x.index}, that of y {y.index}: they must be the same")
    arrays = {("x", name): _column(x[name]) for name in x.columns}
    several = isinstance(y, pandas.DataFrame)
    if y is not None:
        arrays |= {("y", name): _column(y[name]) for name in y.columns} if several else {("y", ""): _column(y)}
    capacity = 4 * len(x) if queue_capacity is None else queue_capacity

    def input_fn() -> Any:
        tensors = _batches(arrays, batch_size, num_epochs, bool(shuffle), capacity)
        features = {name: tensors["x", name] for name in x.columns}
        if y is None:
            return features
        return features, {name: tensors["y", name] for name in y.columns} if several else tensors["y", ""]

    return input_fn


def _check_shuffle(shuffle: Any) -> None:
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle is {shuffle!r}: say True (to train) or False (to evaluate and predict)")


def _column(series: Any) -> Any:
    values = series.to_numpy()
    return np.array([str(value).encode() for value in values], object) if values.dtype.kind == "O" else values


def _by_name(given: Any, what: str) -> dict[str, Any]:
    if isinstance(given, Mapping):
        if not given:
            raise ValueError(f"numpy_input_fn: {what} is an empty dictionary")
        return {name: np.asarray(given[name]) for name in sorted(given)}
    if isinstance(given, np.ndarray):
        if given.size == 0:
            raise ValueError(f"numpy_input_fn: {what} is an empty array")
        return {"": given}
    raise TypeError(f"numpy_input_fn: {what} is a {type(given).__name__}, expected an array or a dictionary of arrays")


def _like(given: Any, what: str, tensors: Mapping[tuple[str, str], Any]) -> Any:
    if isinstance(given, Mapping):
        return {name: tensors[what, name] for name in sorted(given)}
    return tensors[what, ""]


def _batches(
    arrays: Mapping[tuple[str, str], Any], batch_size: int, num_epochs: int | None, shuffle: bool, capacity: int
) -> dict[tuple[str, str], Any]:
    """Tensors of batches of the arrays. The arrays do not become part of the graph."""
    plain = {name: make_array(array) for name, array in arrays.items()}
    length = len(next(iter(plain.values())))
    seeds = get_seed(None)

    def batches() -> Iterator[tuple[Any, ...]]:
        rng = np.random.default_rng([seed for seed in seeds if seed is not None] or None)
        order = _stream(length, num_epochs)
        if shuffle:
            order = shuffled(order, min(capacity, length if num_epochs is None else length * num_epochs), rng)
        for rows in grouped(order, batch_size):
            yield tuple(array[rows] for array in plain.values())

    types = tuple(as_dtype(array.dtype) for array in plain.values())
    size = batch_size if num_epochs is None else None
    shapes = tuple((size, *array.shape[1:]) for array in plain.values())
    parts = Dataset.from_generator(batches, types, shapes).make_one_shot_iterator().get_next()
    return dict(zip(plain, parts, strict=True))


def _stream(length: int, num_epochs: int | None) -> Iterator[Any]:
    """The numbers of the examples, epoch after epoch."""
    epoch = 0
    while num_epochs is None or epoch < num_epochs:
        yield from range(length)
        epoch += 1


def shuffled(order: Iterator[Any], capacity: int, rng: np.random.Generator) -> Iterator[Any]:
    """What a queue gives of which always a random element is taken, and another put in its place."""
    queue = [number for _, number in zip(range(max(1, capacity)), order, strict=False)]
    for number in order:
        place = int(rng.integers(len(queue)))
        taken, queue[place] = queue[place], number
        yield taken
    rng.shuffle(queue)
    yield from queue


def grouped(order: Iterator[Any], size: int) -> Iterator[Any]:
    """Lists of `size` elements; the last may have less."""
    while rows := [number for _, number in zip(range(size), order, strict=False)]:
        yield rows
