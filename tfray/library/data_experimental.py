"""`tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from tfray.library.datasets import AUTOTUNE as AUTOTUNE
from tfray.library.datasets import Dataset, Options
from tfray.library.saveable_resource import SaveableResource

Transformation = Callable[[Dataset], Dataset]


class AutoShardPolicy(Enum):
    """How the input of several replicas is shared; accepted for TensorFlow's sake: see `Dataset.shard`."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2


def make_saveable_from_iterator(iterator: Any, external_state_policy: Any = None) -> SaveableResource:
    """The place of an iterator in its dataset, to be saved with the variables.

    Add it to the collection ``saveable_objects``, or to a Saver's ``var_list``. When it is restored, as many elements
    are passed over as had been taken; so the dataset must give them in the same order, from a fixed seed where it
    shuffles.

    Args:
        iterator: A `tf.data.Iterator`. One with an initializer has to be initialised before it is restored.
        external_state_policy: Accepted for TensorFlow's sake.
    """
    return SaveableResource(iterator._handle.op.name, iterator._handle)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """`Dataset.map`, then `Dataset.batch`, for `Dataset.apply`."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> Transformation:
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


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Sequence[float] | None = None, seed: int | None = None
) -> Dataset:
    """Elements of several datasets, each from one chosen at random, until the chosen one ends.

    Args:
        datasets: Datasets with elements of one kind.
        weights: Probability of each; equal when None.
        seed: Determines the choices; None for others in every pass.
    """
    probabilities = np.full(len(datasets), 1 / len(datasets)) if weights is None else np.asarray(weights, float)

    def choices() -> Any:
        generator = np.random.default_rng(seed)
        while True:
            yield int(generator.choice(len(datasets), p=probabilities / probabilities.sum()))

    return choose_from_datasets(datasets, Dataset.from_generator(choices, "int64", []))


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Elements of several datasets, the next from the one whose index `choice_dataset` gives, until that one ends."""
    return Dataset._chosen(list(datasets), choice_dataset)


__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "Options",
    "choose_from_datasets",
    "map_and_batch",
    "parallel_interleave",
    "sample_from_datasets",
    "shuffle_and_repeat",
    "unbatch",
]
