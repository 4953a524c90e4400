"""Batches for models that come one after the other: from generators, sequences of batches, datasets and tensors."""

from __future__ import annotations

import collections.abc
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfray.errors import OutOfRangeError
from tfray.framework import nest
from tfray.framework.graph import Tensor
from tfray.keras.backend import get_session
from tfray.library.input import dataset_iterators
from tfray.library.input.data_experimental import INFINITE_CARDINALITY, cardinality
from tfray.library.input.datasets import Dataset


class Sequence(ABC):
    """``tf.keras.utils.Sequence``: batches by number, which a subclass makes by ``__getitem__`` and ``__len__``."""

    @abstractmethod
    def __getitem__(self, index: int) -> Any:
        """Batch `index`: inputs and targets, and possibly weights of the examples."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of batches."""

    def on_epoch_end(self) -> None:  # noqa: B027 (a subclass may have it)
        """Called when all batches have been made once."""

    def __iter__(self) -> Iterator[Any]:
        """All batches, in order."""
        for index in range(len(self)):
            yield self[index]


class BatchSource:
    """Batches that are not arrays.

    Args:
        source: A `Sequence`, a `tf.data.Dataset` or an iterator of one, a generator or another iterator of Python, or
            tensors: a pair of inputs and targets, of which each step takes new values.
        steps: Batches of an epoch, rounded up. All when None, of a sequence or of a dataset, which then begins anew.
        shuffle: Take the batches of a sequence in random order.
        argument: What the caller's argument `steps` is called.
        anew: Begin each epoch with the first batch, where the source can do that.

    Raises:
        ValueError: `steps` is None, and the source does not say where an epoch ends, or has no end.
    """

    def __init__(
        self, source: Any, steps: float | None, shuffle: bool, argument: str = "steps", anew: bool = False
    ) -> None:
        sizes = isinstance(source, Sequence)
        self.is_dataset = isinstance(source, (Dataset, dataset_iterators.Iterator))
        if steps is None and not (sizes or isinstance(source, Dataset)):
            raise ValueError(
                "a generator, an iterator or tensors have no end: say how many steps an epoch has, by the "
                f"`{argument}` argument"
            )
        if steps is None and isinstance(source, Dataset) and _is_endless(source):
            raise ValueError(
                f"When passing an infinitely repeating dataset, you must specify the `{argument}` argument."
            )
        self.steps = len(source) if sizes and steps is None else None if steps is None else math.ceil(steps)
        self._begin = _beginner(source, shuffle)
        self._anew = anew and isinstance(source, (Sequence, Dataset))
        self._going_on = None if self.steps is None or self._anew else self._begin()

    def epoch(self) -> Iterator[Any]:
        """The batches of an epoch: fewer than were asked for when there are no more."""
        batches = self._begin() if self._going_on is None else self._going_on
        if self.steps is None:
            yield from batches
            return
        for _, batch in zip(range(self.steps), batches, strict=False):
            yield batch


def is_source(x: Any) -> bool:
    """Whether `x` gives batches one after the other, and is not arrays."""
    if isinstance(x, (Sequence, Dataset, dataset_iterators.Iterator, collections.abc.Iterator)):
        return True
    return any(isinstance(each, Tensor) for each in nest.flatten(x))


def refuse_batch_size(x: Any, batch_size: int | None) -> None:
    """Raise `ValueError` for a size of batches where `x` gives batches of its own."""
    if batch_size is not None and is_source(x) and not any(isinstance(each, Tensor) for each in nest.flatten(x)):
        raise ValueError(
            "The `batch_size` argument must not be specified for the given input type. Received input: "
            f"{x}, batch_size: {batch_size}"
        )


def refuse_beside_dataset(x: Any, **given: Any) -> None:
    """Raise `ValueError` for targets, weights or a split of the examples beside a dataset, which has all of them."""
    if not isinstance(x, (Dataset, dataset_iterators.Iterator)):
        return
    if given.pop("y", None) is not None:
        raise ValueError(
            f"You passed a dataset or dataset iterator ({x}) as input `x` to your model. In that case, you should not "
            "specify a target (`y`) argument, since the dataset or dataset iterator generates both input data and "
            "target data."
        )
    for name, value in given.items():
        if value is not None and not (isinstance(value, float) and value == 0):
            instead = " Instead, let its elements be (inputs, targets, sample_weight)." if "weight" in name else ""
            raise ValueError(
                f"`{name}` argument is not supported when input `x` is a dataset or a dataset iterator.{instead}"
            )


def batch_of(x: Any) -> Any:
    """The next batch of an iterator of a dataset, the first one of a dataset; anything else as it is."""
    if not isinstance(x, (Dataset, dataset_iterators.Iterator)):
        return x
    return next(BatchSource(x, 1, False).epoch())


def _is_endless(dataset: Dataset) -> bool:
    return bool(get_session().run(cardinality(dataset)) == INFINITE_CARDINALITY)


def parts_of(batch: Any) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights of a batch; None for what it does not have."""
    if not isinstance(batch, (tuple, list)):
        return batch, None, None
    if len(batch) > 3:
        raise ValueError(
            "Output of generator should be a tuple of 1 or 2 or 3 elements: (input,) or (input, target) or (input, "
            f"target, sample_weights). Received {batch}"
        )
    x, y, weights = (*batch, None, None)[:3]
    return x, y, weights


def _beginner(source: Any, shuffle: bool) -> Callable[[], Iterator[Any]]:
    if isinstance(source, Sequence):
        return lambda: _by_number(source, shuffle)
    if isinstance(source, Dataset):
        iterator = source.make_initializable_iterator()
        following = iterator.get_next()

        def anew() -> Iterator[Any]:
            get_session().run(iterator.initializer)
            return _fetched(following)

        return anew
    if isinstance(source, dataset_iterators.Iterator):
        following = source.get_next()
        return lambda: _fetched(following)
    return (lambda: source) if isinstance(source, collections.abc.Iterator) else lambda: _fetched(source)


def _by_number(batches: Sequence, shuffle: bool) -> Iterator[Any]:
    while True:
        count = len(batches)
        for made, index in enumerate(np.random.permutation(count) if shuffle else range(count), 1):
            batch = batches[int(index)]
            if made == count:
                batches.on_epoch_end()
            yield batch


def _fetched(tensors: Any) -> Iterator[Any]:
    present = [each for each in nest.flatten(tensors) if each is not None]
    while True:
        try:
            values = get_session().run(present)
        except OutOfRangeError:
            return
        found = iter(values)
        yield nest.pack_sequence_as(tensors, [None if each is None else next(found) for each in nest.flatten(tensors)])
