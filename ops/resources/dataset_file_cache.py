"""Datasets in files: elements that a first pass writes, and later ones read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.tensor_proto import TensorProto, held_array, tensor_message
from tfray.formats.tfrecord import TFRecordWriter, records_of
from tfray.ops.resources.dataset_values import DatasetValue, Element, Walk


class CachedInFile(DatasetValue):
    """The elements, kept in a file of records, one for each component, once a pass has reached the end.

    Args:
        parent: The elements.
        path: Path of the file.
        components: How many components an element has.
    """

    def __init__(self, parent: DatasetValue, path: str, components: int) -> None:
        self._parent = parent
        self._path = path
        self._components = components

    def open(self, walk: Walk) -> Iterator[Element]:
        if files.exists(self._path):
            return self._read()
        return _Writing(walk, self._parent.open(walk), self._path)

    def _read(self) -> Iterator[Element]:
        records = records_of(self._path)
        while element := tuple(_array(record) for record in islice(records, self._components)):
            if len(element) < self._components:
                raise DataLossError(f"the cache {self._path} ends within an element: remove it")
            yield element


def _array(record: bytes) -> object:
    array = held_array(TensorProto.FromString(record))
    return array if array.ndim or array.dtype == object else array[()]


class _Writing(Iterator[Element]):
    """Writes what it gives into a file beside the path, which takes its place at the end.

    An unfinished pass keeps nothing: its file goes when the walk is closed, or when this object is dropped.
    """

    def __init__(self, walk: Walk, parent: Iterator[Element], path: str) -> None:
        self._parent = parent
        self._path = path
        self._temporary = files.temporary_path(path)
        self._writer: TFRecordWriter | None = None
        self._is_done = False
        self._lock = threading.Lock()  # a walk may be closed while a thread of its own makes an element
        walk.add_line(self)

    def __next__(self) -> Element:
        with self._lock:
            if self._writer is None and not self._is_done:
                self._writer = TFRecordWriter(self._temporary)
        try:
            element = next(self._parent)
        except StopIteration:
            with self._lock:
                if self._writer is not None:
                    self._writer.close()
                    self._writer, self._is_done = None, True
                    files.rename(self._temporary, self._path, overwrite=True)
            raise
        with self._lock:
            if self._writer is not None:
                for component in element:
                    self._writer.write(tensor_message(np.asarray(component)).SerializeToString())
        return element

    def close(self) -> None:
        """Remove what has been written, unless the end was reached."""
        with self._lock:
            writer, self._writer, self._is_done = self._writer, None, True
            if writer is not None:
                writer.close()
                files.remove(self._temporary)

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()
