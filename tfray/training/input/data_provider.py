"""Data sets of `tf.contrib.slim`: described by a `Dataset`, read in parallel, and given out item by item."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tfray.errors import ArgumentError
from tfray.framework import dtypes as tf_dtypes
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.example_decoder import DataDecoder
from tfray.library.input.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from tfray.library.platform import gfile
from tfray.ops.math.arithmetic_ops import add_n
from tfray.training.input.input_producers import string_input_producer, tell_fraction
from tfray.training.threads.queue_runner import QueueRunner, add_queue_runner

# fmt: off
__all__ = [
    "DataProvider", "Dataset", "DatasetDataProvider", "ParallelReader", "get_data_files", "parallel_read",
    "prefetch_queue", "single_pass_read",
]
# fmt: on


class Dataset:
    """Where a data set lies, and how it is read.

    Args:
        data_sources: Paths of its files, or patterns.
        reader: Class of its readers, such as `tf.TFRecordReader`.
        decoder: Makes items from records, such as a `tfexample_decoder.TFExampleDecoder`.
        num_samples: The number of its examples.
        items_to_descriptions: What each item is, in words.
        **kwargs: Further attributes.
    """

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: DataDecoder,
        num_samples: int,
        items_to_descriptions: Mapping[str, str],
        **kwargs: Any,
    ) -> None:
        self.data_sources = data_sources
        self.reader = reader
        self.decoder = decoder
        self.num_samples = num_samples
        self.items_to_descriptions = items_to_descriptions
        self.__dict__.update(kwargs)


class DataProvider:
    """Gives out the tensors of a data set's next example.

    Args:
        items_to_tensors: The tensors, by name.
        num_samples: The number of examples.
    """

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int) -> None:
        self._items_to_tensors = dict(items_to_tensors)
        self._num_samples = num_samples

    def get(self, items: Sequence[str]) -> list[Any]:
        """The tensors of the named items. Raises `ValueError` for another name, or if `items` is no list or tuple."""
        if not isinstance(items, (list, tuple)):
            raise ValueError(f"items must be a list or tuple of names, not {items!r}")
        for item in items:
            if item not in self._items_to_tensors:
                raise ValueError(f"there is no item {item!r}; there are {', '.join(sorted(self._items_to_tensors))}")
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> Collection[str]:
        """The names of all items."""
        return self._items_to_tensors.keys()

    def num_samples(self) -> int:
        """The number of examples."""
        return self._num_samples


class DatasetDataProvider(DataProvider):
    """Reads a `Dataset` with several readers into one queue, and decodes what comes out of it.

    Args:
        dataset: The data set.
        num_readers: The number of readers.
        reader_kwargs: Arguments of the reader's class.
        shuffle: Shuffle the files, and the records in the queue.
        num_epochs: How often to read the files; None for ever. The count is a local variable.
        common_queue_capacity: Capacity of the queue.
        common_queue_min: How many records the queue keeps for shuffling.
        record_key: Name of the item that holds the records' keys.
        seed: Seed of the shuffling.
        scope: Name scope.

    Raises:
        ValueError: `record_key` is the name of an item, or there are no files.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_readers: int = 1,
        reader_kwargs: Mapping[str, Any] | None = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            dataset.reader,
            num_epochs,
            num_readers,
            reader_kwargs,
            shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        tensors = dict(zip(items, dataset.decoder.decode(data, items), strict=True))
        if record_key in tensors:
            raise ValueError(f"record_key is {record_key!r}, which is an item of the data set: choose another name")
        super().__init__({**tensors, record_key: key}, dataset.num_samples)


class ParallelReader:
    """Several readers that fill one queue, from which records come.

    Args:
        reader_class: Class of the readers.
        common_queue: A queue of two strings, key and value.
        num_readers: The number of readers.
        reader_kwargs: Arguments of the class.

    Raises:
        TypeError: The queue holds something else.
    """

    def __init__(
        self, reader_class: Any, common_queue: Any, num_readers: int = 4, reader_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        if list(common_queue.dtypes) != [tf_dtypes.string] * 2:
            raise TypeError(f"common_queue holds {common_queue.dtypes}, expected two strings: key and value")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        """The number of readers."""
        return len(self._readers)

    @property
    def common_queue(self) -> QueueBase:
        """The queue of records."""
        queue: QueueBase = self._common_queue
        return queue

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record: key and value, string scalars. Adds a queue runner that lets the readers read.

        Args:
            queue: The queue of the names of files.
            name: Name of the operation.
        """
        self._let_read(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: Any, num_records: TensorLike, name: str | None = None) -> Any:
        """The next records: keys and values, vectors of at most `num_records`. Otherwise as `read`."""
        self._let_read(queue)
        return self._common_queue.dequeue_up_to(num_records, name)

    def _let_read(self, queue: Any) -> None:
        enqueue = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        add_queue_runner(QueueRunner(self._common_queue, enqueue))

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records the readers have read, an int64 scalar."""
        return add_n([reader.num_records_produced() for reader in self._readers], name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files the readers have read to their end, an int64 scalar."""
        return add_n([reader.num_work_units_completed() for reader in self._readers], name)


def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Mapping[str, Any] | None = None,
    shuffle: bool = True,
    dtypes: Sequence[Any] | None = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> Any:
    """Read records of files with several readers.

    Args:
        data_sources: Paths or patterns.
        reader_class: Class of the readers, such as `tf.TFRecordReader`.
        num_epochs: How often to read the files; None for ever.
        num_readers: The number of readers.
        reader_kwargs: Arguments of the class.
        shuffle: Shuffle the files, and the records in the queue.
        dtypes: Dtypes of a record; two strings when None.
        capacity: Capacity of the queue.
        min_after_dequeue: How many records the queue keeps for shuffling.
        seed: Seed of the shuffling.
        scope: Name scope.

    Returns:
        Key and value of the next record, string scalars.
    """
    files = get_data_files(data_sources)
    with get_default_graph().name_scope(scope or "parallel_read"):
        names = string_input_producer(files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames")
        kinds = dtypes or [tf_dtypes.string, tf_dtypes.string]
        if shuffle:
            queue: Any = RandomShuffleQueue(capacity, min_after_dequeue, kinds, seed=seed, name="common_queue")
        else:
            queue = FIFOQueue(capacity, kinds, name="common_queue")
        tell_fraction(queue, capacity)
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


def single_pass_read(
    data_sources: Any, reader_class: Any, reader_kwargs: Mapping[str, Any] | None = None, scope: str | None = None
) -> Any:
    """Read records of files one after the other, once, with one reader. Arguments are as for `parallel_read`."""
    files = get_data_files(data_sources)
    with get_default_graph().name_scope(scope or "single_pass_read"):
        names = string_input_producer(files, num_epochs=1, shuffle=False, capacity=1, name="filenames")
        return reader_class(**(reader_kwargs or {})).read(names)


def get_data_files(data_sources: Any) -> list[str]:
    """The files that paths and patterns (with ``*``, ``?`` or ``[``) name.

    Raises:
        ValueError: There are none.
    """
    if isinstance(data_sources, (list, tuple)):
        found = [path for source in data_sources for path in get_data_files(source)]
    elif any(mark in data_sources for mark in "*?["):
        found = list(gfile.Glob(data_sources))
    else:
        found = [data_sources]
    if not found:
        raise ValueError(f"no files match {data_sources!r}")
    return found


def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """A queue that a queue runner fills with values of tensors, ahead of their use.

    Args:
        tensors: A list, or a dictionary.
        capacity: Capacity of the queue.
        num_threads: The number of threads that fill it.
        dynamic_pad: Admit shapes that are not known in full.
        shared_name: Name of the queue on its device.
        name: Name scope.

    Returns:
        The queue; its elements have the form of `tensors`.

    Raises:
        ArgumentError: There are no tensors.
    """
    if not tensors:
        raise ArgumentError("prefetch_queue: there are no tensors")
    names = sorted(tensors) if isinstance(tensors, dict) else None
    flat = list(tensors) if names is None else [tensors[each] for each in names]
    with get_default_graph().name_scope(name or "prefetch_queue"):
        make: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue = make(
            capacity,
            [tensor.dtype for tensor in flat],
            [tensor.shape for tensor in flat],
            names=names,
            shared_name=shared_name,
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue(tensors)] * num_threads))
        tell_fraction(queue, capacity)
    return queue
