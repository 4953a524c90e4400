"""Input functions over generators: ``tf.contrib.learn.python.learn.learn_io.generator_io``."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from types import FunctionType, GeneratorType
from typing import Any, cast

import numpy as np

from tfray.estimator.inputs import grouped, shuffled
from tfray.framework.dtypes import as_dtype
from tfray.framework.random_seed import get_seed
from tfray.library.input.datasets import Dataset

__all__ = ["generator_input_fn"]


def generator_input_fn(
    x: Callable[[], Iterator[dict[str, Any]]],
    target_key: str | Container[str] | None = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function over what a generator yields.

    Args:
        x: A generator function, which yields a dictionary of arrays for each example.
        target_key: Name of what is the label, or names; None for no labels.
        batch_size: Examples of a batch; the last may have less.
        num_epochs: The input ends when the generator has begun anew so many times, and a last batch is full; None for
            no end.
        shuffle: Whether to shuffle.
        queue_capacity: How many examples are in the queue from which shuffled ones are drawn.
        num_threads: Accepted for TensorFlow 1's sake.

    Returns:
        A function without arguments: returns the features by name, or features and labels, as tensors.

    Raises:
        TypeError: `x` is no generator function, it yields no dictionaries, or `target_key` has no text.
        KeyError: When the function is called: there is no `target_key`.
    """
    if not isinstance(x, FunctionType):
        raise TypeError(f"x must be generator function; got {type(x).__name__}")
    if not isinstance(first := x(), GeneratorType):
        raise TypeError(f"x() must be generator; got {type(first).__name__}")
    if not isinstance(row := next(first), dict):
        raise TypeError(f"x() must yield dict; got {type(row).__name__}")
    keys = sorted(row)
    labels = _labels(target_key, keys)
    example = {key: np.asarray(row[key]) for key in keys}
    seeds = get_seed(None)

    def batches() -> Iterator[tuple[Any, ...]]:
        rows = _rows(x, keys, batch_size, num_epochs)
        if shuffle:
            rows = shuffled(rows, queue_capacity, np.random.default_rng([s for s in seeds if s is not None] or None))
        for chunk in grouped(rows, batch_size):
            yield tuple(np.stack([np.asarray(each[key]) for each in chunk]) for key in keys)

    def input_fn() -> Any:
        types = tuple(as_dtype(array.dtype) for array in example.values())
        shapes = tuple((None, *array.shape) for array in example.values())
        parts = Dataset.from_generator(batches, types, shapes).make_one_shot_iterator().get_next()
        features = dict(zip(keys, parts, strict=True))
        chosen = {key: features.pop(key) for key in labels}
        if not labels:
            return features
        return features, chosen if len(chosen) > 1 else chosen[labels[0]]

    return input_fn


def _labels(target_key: Any, keys: list[str]) -> list[str]:
    if target_key is None:
        return []
    wanted = [target_key] if isinstance(target_key, str) else target_key
    if not isinstance(wanted, Container) or not all(isinstance(key, str) for key in cast(Any, wanted)):
        raise TypeError(f"target_key must be str or Container of str; got {target_key!r}")
    if missing := [key for key in cast(Any, wanted) if key not in keys]:
        raise KeyError(f"target_key not in yielded dict. Expected {keys} keys; got {missing[0]}")
    return list(cast(Any, wanted))


def _rows(x: Any, keys: list[str], batch_size: int, num_epochs: int | None) -> Iterator[Any]:
    """Examples in groups of as many arrays as a batch has examples: an end comes only between groups, as in 1.15."""
    epoch, given = 0, x()
    while num_epochs is None or epoch < num_epochs:
        for _ in range(0, batch_size, len(keys)):
            row = next(given, None)
            if row is None:
                epoch, given = epoch + 1, x()
                row = next(given)
            if sorted(row) != keys:
                raise KeyError(f"key mismatch between dicts emitted by GenFun Expected {keys} keys; got {sorted(row)}")
            yield row
