"""Datasets in files: elements that a first pass writes, and later ones read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from tfray.errors import DataLossError
from tfray.formats import files
from tfray.formats.tensor_proto import TensorProto, make_ndarray, make_tensor_proto
from tfray.formats.tfrecord import TFRecordWriter, tf_record_iterator
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
        return _Writing(self._parent.open(walk), self._path)

    def _read(self) -> Iterator[Element]:
        records = tf_record_iterator(self._path)
        while element := tuple(_array(record) for record in islice(records, self._components)):
            if len(element) < self._components:
                raise DataLossError(f"the cache {self._path} ends within an element: remove it")
            yield element


def _array(record: bytes) -> object:
    array = make_ndarray(TensorProto.FromString(record))
    return array if array.ndim or array.dtype == object else array[()]


class _Writing(Iterator[Element]):
    """Writes what it gives into a file beside the path, which takes its place at the end."""

    def __init__(self, parent: Iterator[Element], path: str) -> None:
        self._parent = parent
        self._path = path
        self._temporary = files.temporary_path(path)
        self._writer: TFRecordWriter | None = None
        self._is_done = False

    def __next__(self) -> Element:
        if self._writer is None and not self._is_done:
            self._writer = TFRecordWriter(self._temporary)
        try:
            element = next(self._parent)
        except StopIteration:
            if self._writer is not None:
                self._writer.close()
                self._writer, self._is_done = None, True
                files.rename(self._temporary, self._path, overwrite=True)
            raise
        if self._writer is not None:
            for component in element:
                self._writer.write(make_tensor_proto(np.asarray(component)).SerializeToString())
        return element

    def __del__(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is not None:  # an unfinished pass keeps nothing
            writer.close()
            files.remove(self._temporary)
