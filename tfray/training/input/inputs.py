"""Input for replicas: each opens its own shard of the data on its own worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import Count, Positive, checked
from tfray.framework.feed import Feed
from tfray.framework.graph import Graph
from tfray.library.input.datasets import Dataset
from tfray.training.input.dataset_shard import DatasetShard, columns_of

Batch = tuple[Any, Any]
"""(features, labels): each an array, or a dictionary of arrays. Input functions may give the features alone, as a
dictionary; the labels are then an empty one."""


@checked
@dataclass(frozen=True)
class InputContext:
    """The part of the input that a replica reads.

    Attributes:
        replicas: Number of replicas, backups included.
        index: Number of this replica, from 0.
        required: Number of replicas whose gradients count in a step; less than `replicas` when there are backups.
        first_step: Number of the first step that this replica computes; above 1 for a replacement. In asynchronous
            training every replica counts its own steps.
        sharing: Number of replicas that share a batch; `required` when None. If more replicas count, steps have more
            examples in proportion.
        even: Whether all shares must be equal; otherwise some have one example more.
        datasets: This replica's parts of the Ray datasets that were given to the `Trainer`, by name.
    """

    replicas: Positive = 1
    index: Count = 0
    required: Positive = 1
    first_step: int = 1
    sharing: Positive | None = None
    even: bool = True
    datasets: Mapping[str, DatasetShard] = field(default_factory=dict)

    def dataset_shard(self, name: str = "train") -> DatasetShard:
        """This replica's part of a Ray dataset. Raises `InvalidArgumentError` if none was given under that name."""
        if name not in self.datasets:
            given = ", ".join(map(repr, self.datasets)) or "none"
            raise InvalidArgumentError(
                f"there is no dataset {name!r}: give it to the Trainer, datasets={{{name!r}: ...}}; it has {given}"
            )
        return self.datasets[name]

    def share(self, batch_size: int) -> int:
        """Examples that this replica contributes to a step in which `batch_size` examples count.

        Raises:
            InvalidArgumentError: `batch_size` is not a multiple of the number of replicas that share it, or smaller.
        """
        return self._until(batch_size, self.index + 1) - self.offset(batch_size)

    def offset(self, batch_size: int) -> int:
        """Index of this replica's first example among those of a step."""
        return self._until(batch_size, self.index)

    def total(self, batch_size: int) -> int:
        """Examples that all replicas read for a step, those of backups included."""
        return self._until(batch_size, self.replicas)

    def _until(self, batch_size: int, index: int) -> int:
        """Examples that the first `index` replicas contribute."""
        sharing = self.sharing or self.required
        share, rest = divmod(batch_size, sharing)
        if (rest and self.even) or not share:
            raise InvalidArgumentError(
                f"a batch of {batch_size} examples cannot be shared evenly by {sharing} replicas; "
                f"use a multiple of {sharing}"
            )
        rounds, more = divmod(index, sharing)
        return index * share + rounds * rest + min(more, rest)


InputFunction = Callable[[InputContext], Any]
"""Called once on each worker; its iterable gives one `Batch`, or dictionary of features, per step. A
`ray.data.DataIterator` stands for its `iter_batches()`."""


@checked
def array_input(
    features: Any, labels: Any, batch_size: Positive, shuffle_seed: Count | None = None, epochs: Count | None = None
) -> InputFunction:
    """An input function over arrays in memory.

    All replicas go through the examples in the same order, and each takes its own part of every step's examples. The
    batches of n replicas together are those of a run on one replica. A replica that starts later begins at the current
    step.

    Args:
        features: An array, or a dictionary of arrays, with examples along the first axis.
        labels: The same for labels.
        batch_size: Examples that count in a step, over all replicas.
        shuffle_seed: Seed for shuffling anew in every epoch; None keeps the order.
        epochs: Number of passes over the data; None for no limit. A last batch that is not full is left out.

    Raises:
        InvalidArgumentError: The arrays differ in length, or are shorter than a batch.
    """
    arrays = [np.asarray(array) for part in (features, labels) for array in _leaves(part)]
    if not all(map(np.ndim, arrays)):
        raise InvalidArgumentError("array_input(): features and labels must be arrays of examples, not scalars or None")
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise InvalidArgumentError(f"features and labels differ in their number of examples: {sorted(lengths)}")
    (length,) = lengths

    def input_fn(context: InputContext) -> Iterator[Batch]:
        share, offset, per_step = context.share(batch_size), context.offset(batch_size), context.total(batch_size)
        if per_step > length:
            raise InvalidArgumentError(f"{length} examples do not fill one step of {per_step}")
        steps_per_epoch = length // per_step
        step = context.first_step - 1
        order, ordered_epoch = np.arange(length), -1
        while epochs is None or step < epochs * steps_per_epoch:
            epoch, position = divmod(step, steps_per_epoch)
            if shuffle_seed is not None and epoch != ordered_epoch:
                order, ordered_epoch = np.random.default_rng([shuffle_seed, epoch]).permutation(length), epoch
            begin = position * per_step + offset
            rows = order[begin : begin + share]
            yield _take(features, rows), _take(labels, rows)
            step += 1

    return input_fn


@checked
def dataset_input(make_dataset: Callable[[], Dataset], batch_size: Positive) -> InputFunction:
    """An input function over the examples of a dataset. Each replica opens the dataset itself, and reads its share.

    Replica `i` of `n` reads every n-th example, from the i-th on. If shares are not equal, it reads some consecutive
    examples of each step instead. The examples of all replicas together in a step are those of a step in one process.
    A replica that starts later skips the examples of earlier steps.

    Args:
        make_dataset: Called on each worker; returns a `tf.data.Dataset` of single examples, pairs (features, labels).
            Its order must be the same everywhere: shuffle with a seed.
        batch_size: Examples that count in a step, over all replicas. A last step that is not full is left out.

    Raises:
        InvalidArgumentError: On the workers: `make_dataset` returns no dataset of pairs.
    """

    def input_fn(context: InputContext) -> Iterator[Batch]:
        share, offset, per_step = context.share(batch_size), context.offset(batch_size), context.total(batch_size)
        with Graph().as_default():  # not while batches are made: each may be asked for on another thread
            dataset = make_dataset()
            if not isinstance(dataset, Dataset) or not isinstance(dataset.output_types, tuple):
                raise InvalidArgumentError(
                    f"dataset_input takes a dataset of pairs (features, labels), not {dataset!r}"
                )
            rest = dataset.skip((context.first_step - 1) * per_step)
            is_even = per_step == share * context.replicas
            if is_even:
                batches = rest.shard(context.replicas, context.index).batch(share, drop_remainder=True)
            else:
                batches = rest.batch(per_step, drop_remainder=True)
        rows = slice(None) if is_even else slice(offset, offset + share)
        for features, labels in batches:
            yield _take(features, rows), _take(labels, rows)

    return input_fn


@checked
def ray_input(
    features: str | Sequence[str],
    labels: str | Sequence[str] | None,
    batch_size: Positive,
    epochs: Count | None = None,
    dataset: str = "train",
) -> InputFunction:
    """An input function over a Ray dataset that is given to the `Trainer`, ``datasets={"train": ...}``.

    The replicas share the rows of each pass: every row goes to one of them, whichever asks first. So the order is not
    the same in every run. Shuffle with the dataset's own methods, such as ``randomize_block_order()``.

    Args:
        features: The column that is the features, or several, for a dictionary.
        labels: The same for labels; None if there are none.
        batch_size: Examples that count in a step, over all replicas.
        epochs: Number of passes over the dataset; None for no limit.
        dataset: The name of the dataset.

    Raises:
        InvalidArgumentError: There is no such dataset, or column.

    Example:
        >>> trainer = tf.train.Trainer(
        ...     model_fn, tf.train.ray_input("x", "y", batch_size=64), datasets={"train": ray.data.read_parquet(path)}
        ... )
    """

    def input_fn(context: InputContext) -> Iterator[Batch]:
        for batch in context.dataset_shard(dataset).batches(context.share(batch_size), epochs):
            yield columns_of(batch, features), {} if labels is None else columns_of(batch, labels)

    return input_fn


def _leaves(part: Any) -> Sequence[Any]:
    return list(part.values()) if isinstance(part, Mapping) else [part]


def _take(part: Any, rows: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: np.asarray(array)[rows] for name, array in part.items()}
    return np.asarray(part)[rows]


def flatten_batch(batch: Batch) -> list[tuple[str, Any]]:
    """The arrays of a batch in a fixed order, each with the name of its placeholder.

    Raises:
        InvalidArgumentError: The input function gave something that is not (features, labels).
    """
    if not isinstance(batch, tuple) or len(batch) != 2:
        raise InvalidArgumentError(
            f"an input function must yield a dictionary of features, or (features, labels), got a "
            f"{type(batch).__name__}; features and labels are arrays or dictionaries of arrays"
        )
    flat: list[tuple[str, Any]] = []
    for name, part in zip(("features", "labels"), batch, strict=True):
        if isinstance(part, Mapping):
            flat.extend((f"{name}/{key}", part[key]) for key in sorted(part))
        else:
            flat.append((name, part))
    return flat


@dataclass(frozen=True)
class BatchForm:
    """The structure of the batches for which a model was built. Workers check with it what they read.

    Attributes:
        names: Names of the arrays, in the order of `flatten_batch`.
        feeds: The dtype and shape that can be fed for each array.
    """

    names: tuple[str, ...]
    feeds: tuple[Feed, ...]

    def arrays(self, batch: Batch) -> list[Any]:
        """The arrays of a batch, cast as a session casts values that are fed.

        Raises:
            InvalidArgumentError: One is missing, or its dtype or shape does not fit; there are no examples.
        """
        found = flatten_batch(batch)
        names = tuple(name for name, _ in found)
        if names != self.names:
            raise InvalidArgumentError(f"the batch holds {', '.join(names)}, expected {', '.join(self.names)}")
        arrays = [feed.convert(array) for feed, (_, array) in zip(self.feeds, found, strict=True)]
        sizes = [len(array) for array in arrays if np.ndim(array)]
        if sizes and not any(sizes):
            raise InvalidArgumentError("the batch holds no examples: its loss would not be a number")
        return arrays


def open_input(input_fn: InputFunction, context: InputContext) -> Iterator[Batch]:
    """The batches of a replica. Raises `InvalidArgumentError` if the input function returns something else."""
    batches = input_fn(context)
    if hasattr(batches, "iter_batches"):  # a ray.data.DataIterator
        batches = batches.iter_batches()
    if not isinstance(batches, Iterable):
        name = getattr(input_fn, "__name__", type(input_fn).__name__)
        raise InvalidArgumentError(
            f"input function {name} returned {batches!r}, expected an iterable of (features, labels)"
        )
    return ((batch, {}) if isinstance(batch, Mapping) else batch for batch in batches)


def unflatten_like(batch: Batch, values: Iterable[Any]) -> Batch:
    """`values`, in the order of `flatten_batch`, in the structure of `batch`."""
    remaining = iter(values)
    parts = [
        {key: next(remaining) for key in sorted(part)} if isinstance(part, Mapping) else next(remaining)
        for part in batch
    ]
    return parts[0], parts[1]
