"""Batches for models that come one after the other: from generators, sequences of batches, datasets and tensors."""

from __future__ import annotations

import collections.abc
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import OutOfRangeError
from tfray.framework import nest
from tfray.framework.sparse_tensor import is_tensor
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


class DataTensors(NamedTuple):
    """Tensors of which each step takes new values. Arrays may stand beside them, which each step takes as they are.

    Attributes:
        inputs: Inputs: a tensor, a variable, an array, or a list or dictionary of these.
        targets: Targets likewise, or None.
        weights: What examples count, likewise.
    """

    inputs: Any
    targets: Any = None
    weights: Any = None


def with_tensors(x: Any, y: Any = None, weights: Any = None) -> Any:
    """`x` if it gives batches of its own; all three as `DataTensors` if there are tensors among them; else None."""
    if is_source(x):
        return x
    given = DataTensors(x, y, weights)
    return given if any(is_tensor(each) for each in nest.flatten(given)) else None


class BatchSource:
    """Batches that are not arrays.

    Args:
        source: A `Sequence`, a `tf.data.Dataset` or an iterator of one, a generator or another iterator of Python, or
            `DataTensors`.
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
        # Targets that are not arrays are broadcast as a loss has it.
        self.checks_targets = not isinstance(source, (Dataset, dataset_iterators.Iterator, DataTensors))
        if steps is None and isinstance(source, (DataTensors, dataset_iterators.Iterator)):
            what = "data tensors" if isinstance(source, DataTensors) else "iterators"
            raise ValueError(f"When using {what} as input to a model, you should specify the `{argument}` argument.")
        if steps is None and not (sizes or isinstance(source, Dataset)):
            raise ValueError(f"Please specify the number of steps via the `{argument}` argument.")
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
    return isinstance(x, (Sequence, Dataset, dataset_iterators.Iterator, collections.abc.Iterator))


def refuse_batch_size(x: Any, batch_size: int | None) -> None:
    """Raise `ValueError` for a size of batches below 1, or where `x` gives batches of its own."""
    if batch_size is not None and not (isinstance(batch_size, numbers.Real) and batch_size >= 1):
        raise ValueError(f"batch_size is {batch_size!r}, expected a whole number of at least 1")
    if batch_size is not None and is_source(x):
        raise ValueError(
            "The `batch_size` argument must not be specified for the given input type. Received input: "
            f"{x}, batch_size: {batch_size}"
        )


def refuse_beside_batches(x: Any, **given: Any) -> None:
    """Raise `ValueError` for targets, weights or a split of the examples beside what gives all of them.

    Args:
        x: A dataset, an iterator, a generator or a `Sequence`; anything else is let through.
        **given: The arguments, by name.
    """
    if not is_source(x):
        return
    is_dataset = isinstance(x, (Dataset, dataset_iterators.Iterator))
    kind = "input `x` is a dataset or a dataset iterator" if is_dataset else "data is a generator or Sequence instance"
    if is_dataset and given.get("y") is not None:
        raise ValueError(
            f"You passed a dataset or dataset iterator ({x}) as input `x` to your model. In that case, you should not "
            "specify a target (`y`) argument, since the dataset or dataset iterator generates both input data and "
            "target data."
        )
    for name, value in given.items():
        if value is None or (isinstance(value, float) and value == 0):
            continue
        if name == "validation_split" and not is_dataset:
            raise ValueError(
                "If your data is in the form of a Python generator, you cannot use `validation_split`: give "
                "`validation_data`."
            )
        part = {"y": "targets", "sample_weight": "weights"}.get(name)
        instead = f" Instead, let each element be (inputs, targets, weights), with the {part} in it." if part else ""
        raise ValueError(f"`{name}` argument is not supported when {kind}.{instead}")


def batch_of(x: Any, y: Any = None, weights: Any = None) -> Any:
    """The next batch of an iterator of a dataset, the first one of a dataset, or values of tensors.

    Anything else, with its targets and weights, is given as it is.
    """
    source = with_tensors(x, y, weights)
    if isinstance(source, (Dataset, dataset_iterators.Iterator, DataTensors)):
        return next(BatchSource(source, 1, False).epoch())
    return DataTensors(x, y, weights)


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


def given_to_generator_method(generator: Any) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights of what stands for a generator: of a tuple its parts, else only inputs."""
    return parts_of(generator) if isinstance(generator, tuple) else (generator, None, None)


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
    flat = nest.flatten(tensors)
    present = [each for each in flat if is_tensor(each)]
    while True:
        try:
            values = get_session().run(present)
        except OutOfRangeError:
            return
        found = iter(values)
        yield nest.pack_sequence_as(tensors, [next(found) if is_tensor(each) else each for each in flat])
