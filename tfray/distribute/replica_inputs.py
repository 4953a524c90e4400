"""Input of replicas: datasets whose batches are split, or of which each replica takes the next batch."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from tfray.distribute.values import regroup
from tfray.framework import nest
from tfray.framework.graph import Operation, Tensor
from tfray.framework.scopes import control_dependencies
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.input.dataset_iterators import Iterator
from tfray.library.input.datasets import Dataset
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.math import math_ops
from tfray.ops.sparse.sparse_layout_ops import sparse_slice


class InputReplicationMode(enum.Enum):
    """How often an input function is called: ``PER_WORKER``, once in each process that has input."""

    PER_WORKER = "PER_WORKER"


class InputContext:
    """Tells an input function which part of the data it is to make.

    Args:
        num_input_pipelines: How many input pipelines there are: processes that read data.
        input_pipeline_id: Number of this one.
        num_replicas_in_sync: How many replicas make a step together, in all processes.
    """

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas make a step together."""
        return self._num_replicas_in_sync

    @property
    def input_pipeline_id(self) -> int:
        """Number of this input pipeline."""
        return self._input_pipeline_id

    @property
    def num_input_pipelines(self) -> int:
        """How many input pipelines there are."""
        return self._num_input_pipelines

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """How many examples of a batch one replica gets.

        Args:
            global_batch_size: How many all get.

        Raises:
            ValueError: They cannot be divided evenly.
        """
        if global_batch_size % self._num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self._num_replicas_in_sync!r}"
            )
        return global_batch_size // self._num_replicas_in_sync

    def __repr__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self._input_pipeline_id}, total: "
            f"{self._num_input_pipelines})"
        )


class DistributedIterator:
    """Gives each replica its part of the data; see ``make_dataset_iterator``.

    Args:
        iterator: The iterator.
        replicas: How many there are.
        split: Each element is a tuple of all replicas' parts. Otherwise each replica takes an element.
    """

    def __init__(self, iterator: Iterator, replicas: int, split: bool) -> None:
        self._iterator, self._replicas, self._split = iterator, replicas, split

    def get_next(self, name: str | None = None) -> Any:
        """The next element: what `experimental_run_v2` gives to each replica its part of.

        Args:
            name: Name of the operation.

        Raises:
            OutOfRangeError: When the step runs: the data has ended, or does not suffice for all replicas.
        """
        if self._replicas == 1:
            return self._iterator.get_next(name)
        if self._split:
            return regroup(self._iterator.get_next(name))
        parts: list[Any] = []
        for _ in range(self._replicas):  # in this order, so that a step gives every replica the same part each time
            with control_dependencies([_first_tensor(parts[-1])] if parts else []):
                parts.append(self._iterator.get_next(name))
        return regroup(parts)

    def initialize(self) -> Operation:
        """The operation that begins with the first element."""
        return group(self._iterator.initializer)

    @property
    def initializer(self) -> Operation:
        """The operation that begins with the first element."""
        return self.initialize()

    @property
    def output_types(self) -> Any:
        """The dtypes of what one replica gets."""
        return self._of_one_replica(self._iterator.output_types)

    @property
    def output_shapes(self) -> Any:
        """The shapes of what one replica gets."""
        return self._of_one_replica(self._iterator.output_shapes)

    @property
    def output_classes(self) -> Any:
        """The classes of what one replica gets."""
        return self._of_one_replica(self._iterator.output_classes)

    def _of_one_replica(self, structure: Any) -> Any:
        return structure[0] if self._split and self._replicas > 1 else structure


class InputFunctionIterator:
    """Gives each replica what a function without arguments makes for it.

    Args:
        function: The function.
        replicas: How many there are.
    """

    def __init__(self, function: Callable[[], Any], replicas: int) -> None:
        self._function, self._replicas = function, replicas

    def get_next(self, name: str | None = None) -> Any:
        """What the function makes, for each replica. `name` is accepted for TensorFlow's sake."""
        return regroup([self._function() for _ in range(self._replicas)])

    def initialize(self) -> Operation:
        """An operation that does nothing."""
        return group()

    @property
    def initializer(self) -> Operation:
        """An operation that does nothing."""
        return self.initialize()


class DistributedDataset:
    """A dataset for the replicas of a strategy; see ``experimental_distribute_dataset``.

    Args:
        dataset: The dataset.
        replicas: How many replicas there are.
        split: Each batch is split among them. Otherwise each takes a batch.
    """

    def __init__(self, dataset: Dataset, replicas: int, split: bool) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"expected a tf.data.Dataset, not {dataset!r}")
        self._split = split and replicas > 1
        self._replicas = replicas
        self._dataset = split_batches(dataset, replicas) if self._split else dataset

    def make_initializable_iterator(self, shared_name: str | None = None) -> DistributedIterator:
        """An iterator that begins when its ``initializer`` runs.

        Args:
            shared_name: See `tf.data.Dataset.make_initializable_iterator`.
        """
        made = self._dataset.make_initializable_iterator(shared_name)
        return DistributedIterator(made, self._replicas, self._split)

    def make_one_shot_iterator(self) -> DistributedIterator:
        """An iterator that begins by itself."""
        return DistributedIterator(self._dataset.make_one_shot_iterator(), self._replicas, self._split)


class _Rows(NamedTuple):
    """Which rows of a batch a replica gets."""

    begin: Tensor
    number: Tensor


def split_batches(dataset: Dataset, replicas: int) -> Dataset:
    """A dataset of tuples, a part of each batch for every replica.

    The parts have as many rows each, but for the last: it has those that are left. A batch that leaves a replica
    without a row, as the last one of the data may, is left out.

    Raises:
        ValueError: The elements are no batches: something in them has no dimension to split.
    """
    for shape in nest.flatten(dataset.output_shapes):
        if shape.rank == 0:
            raise ValueError(
                f"a dataset whose elements have the shapes {dataset.output_shapes} cannot be split among {replicas} "
                "replicas: Please call Dataset.batch first, with the number of examples for all replicas"
            )

    def rows_of(element: Any) -> Tensor:
        first = nest.flatten(element)[0]
        sizes = array_ops.cast(first.dense_shape, "int32") if _is_sparse(first) else array_ops.shape(first)
        found: Tensor = sizes[0]
        return found

    several = isinstance(dataset.output_types, tuple)  # functions of elements get the parts of a tuple one by one

    def suffices(*element: Any) -> Tensor:
        rows = rows_of(element)
        return rows > -(-rows // replicas) * (replicas - 1)

    def parts(*element: Any) -> Any:
        structure = element if several else element[0]
        rows = rows_of(structure)
        most = -(-rows // replicas)
        return tuple(
            _of_replica(structure, _Rows(most * number, math_ops.minimum(most, rows - most * number)), replicas)
            for number in range(replicas)
        )

    return dataset.filter(suffices).map(parts)


def _of_replica(structure: Any, rows: _Rows, replicas: int) -> Any:
    return nest.map_structure(lambda part: _taken(part, rows, replicas), structure)


def _taken(part: Any, rows: _Rows, replicas: int) -> Any:
    if _is_sparse(part):
        start = array_ops.concat([[rows.begin], array_ops.zeros_like(part.dense_shape[1:], "int32")], 0)
        size = array_ops.concat([[rows.number], array_ops.cast(part.dense_shape[1:], "int32")], 0)
        return sparse_slice(part, array_ops.cast(start, "int64"), array_ops.cast(size, "int64"))
    taken = part[rows.begin : rows.begin + rows.number]
    whole = part.shape.dims[0].value if part.shape.dims else None
    if whole is not None and whole % replicas == 0:
        taken.set_shape([whole // replicas, *part.shape.dims[1:]])
    return taken


def _is_sparse(value: Any) -> bool:
    return isinstance(value, SparseTensor)


def _first_tensor(structure: Any) -> Tensor:
    leaf = nest.flatten(structure)[0]
    return leaf.values if _is_sparse(leaf) else leaf
