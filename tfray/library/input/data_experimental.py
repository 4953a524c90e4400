"""`tf.data.experimental`: transformations for `Dataset.apply`, and saving the position of an iterator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.input.dataset_options import Options
from tfray.library.input.datasets import AUTOTUNE as AUTOTUNE
from tfray.library.input.datasets import Dataset
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.ops.dataflow import dataset_ops

Transformation = Callable[[Dataset], Dataset]


class AutoShardPolicy(Enum):
    """How the input of several replicas is shared; accepted for TensorFlow's sake: see `Dataset.shard`."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2


def make_saveable_from_iterator(iterator: Any, external_state_policy: Any = None) -> SaveableResource:
    """The position of an iterator in its dataset, to be saved with the variables.

    Add it to the collection ``saveable_objects``, or to a Saver's ``var_list``. Only the number of elements taken is
    saved, counting errors. Restoring starts the dataset again and skips that many elements. So the dataset must give
    its elements in the same order: give a seed where it shuffles or draws. Its functions run again for the skipped
    elements, and so do their side effects on variables or queues. TensorFlow saves the buffers of a dataset instead.

    Args:
        iterator: A `tf.data.Iterator`. One with an initializer has to be initialised before it is restored.
        external_state_policy: Accepted for TensorFlow's sake.
    """
    return SaveableResource(iterator._handle.op.name, iterator._handle)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: TensorLike,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """`Dataset.map`, then `Dataset.batch`, for `Dataset.apply`."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(
    buffer_size: TensorLike, count: TensorLike | None = None, seed: int | None = None
) -> Transformation:
    """`Dataset.shuffle`, then `Dataset.repeat`, for `Dataset.apply`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """`Dataset.interleave` with a thread ahead, for `Dataset.apply`; the order is always the same."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length).prefetch(AUTOTUNE)


def unbatch() -> Transformation:
    """`Dataset.unbatch`, for `Dataset.apply`."""
    return lambda dataset: dataset.unbatch()


def ignore_errors(log_warning: bool = False) -> Transformation:
    """For `Dataset.apply`: leave out elements that raise an error.

    Args:
        log_warning: Log each error as a warning.
    """
    return lambda dataset: dataset._like(dataset_ops.IGNORE_ERRORS, log_warning=bool(log_warning))


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first for which `predicate` returns a false bool scalar, for `Dataset.apply`."""
    return lambda dataset: dataset._where(dataset_ops.TAKE_WHILE, predicate, "take_while")


def scan(initial_state: Structure, scan_func: Callable[..., Any]) -> Transformation:
    """For `Dataset.apply`: apply a function to each element and a state. The function also returns the next state.

    Args:
        initial_state: A tensor or a nested structure.
        scan_func: Function of a state and an element. It returns a pair: the next state, of the same structure, dtypes
            and shapes, and an element of the result.
    """
    return lambda dataset: dataset._scanned(initial_state, scan_func)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: TensorLike | None = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """For `Dataset.apply`: group elements by key, and turn each group into a dataset by a function.

    Args:
        key_func: Function of an element that returns an int64 scalar.
        reduce_func: Function of a key and a dataset of up to `window_size` elements with that key. It returns a
            dataset, whose elements are those of the result.
        window_size: int64 scalar: elements in a group. The last of a key may have fewer.
        window_size_func: Function of a key that returns the size, in place of `window_size`.

    Raises:
        ValueError: There are both sizes, or none.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("group_by_window takes one of window_size and window_size_func")
    size_func = window_size_func or (lambda _: window_size)
    return lambda dataset: dataset._grouped(key_func, reduce_func, size_func)


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Sequence[float] | None = None, seed: int | None = None
) -> Dataset:
    """Take each element from a dataset chosen at random. Datasets that have ended are left out.

    Args:
        datasets: Datasets with elements of one kind.
        weights: Probability of each; equal when None.
        seed: Determines the choices; None for others in every pass.
    """
    probabilities = np.full(len(datasets), 1 / len(datasets)) if weights is None else np.asarray(weights, float)
    # Leave out datasets of weight 0: they are never chosen, so the result would never end.
    datasets = [dataset for dataset, probability in zip(datasets, probabilities, strict=True) if probability]
    probabilities = probabilities[probabilities != 0]

    def choices() -> Any:
        generator = np.random.default_rng(seed)
        while True:
            yield int(generator.choice(len(datasets), p=probabilities / probabilities.sum()))

    return choose_from_datasets(datasets, Dataset.from_generator(choices, "int64", []))


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Take each element from the dataset whose index `choice_dataset` gives.

    The choice of a dataset that has ended is skipped.
    """
    return Dataset._chosen(list(datasets), choice_dataset)


__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "Options",
    "choose_from_datasets",
    "group_by_window",
    "ignore_errors",
    "make_saveable_from_iterator",
    "map_and_batch",
    "parallel_interleave",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
]
