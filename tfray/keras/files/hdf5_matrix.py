"""Arrays that stay in files of HDF5: `tf.keras.utils.HDF5Matrix`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tfray.errors import NotFoundError
from tfray.formats.files import failures_of


class HDF5Matrix:
    """Rows of a dataset in a file of HDF5, which are read when they are asked for.

    Args:
        datapath: The file.
        dataset: Path of the dataset in it.
        start: The first row.
        end: The row after the last; all when None.
        normalizer: A function from what is read to what is given.

    Raises:
        NotFoundError: h5py is not installed, or there is no such file or dataset.
    """

    refs: ClassVar[Any] = defaultdict(int)

    def __init__(
        self,
        datapath: str,
        dataset: str,
        start: int = 0,
        end: int | None = None,
        normalizer: Callable[[Any], Any] | None = None,
    ) -> None:
        try:
            import h5py
        except ImportError as error:
            raise NotFoundError("HDF5Matrix needs h5py, which is not installed: pip install 'tfray[hdf5]'") from error
        if datapath not in self.refs:
            with failures_of(datapath):
                self.refs[datapath] = h5py.File(datapath, "r")
        if dataset not in self.refs[datapath]:
            raise NotFoundError(f"{datapath!r} has no dataset {dataset!r}")
        self.data = self.refs[datapath][dataset]
        self.start, self.normalizer = start, normalizer
        self.end = self.data.shape[0] if end is None else end

    def __len__(self) -> int:
        return int(self.end - self.start)

    def __getitem__(self, key: Any) -> Any:
        """Rows by number, slice, or a list or array of numbers, from `start` on. Raises `IndexError` beyond `end`."""
        if isinstance(key, slice):
            first, end = key.start or 0, len(self) if key.stop is None else key.stop
            rows: Any = slice(first + self.start, end + self.start)
            last = rows.stop - 1
        elif isinstance(key, (int, np.integer)):
            rows = last = int(key) + self.start
        else:
            rows = [int(each) + self.start for each in key]
            last = max(rows)
        if last >= self.end:
            raise IndexError(f"row {last - self.start} of {len(self)}")
        found = self.data[rows]
        return found if self.normalizer is None else self.normalizer(found)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and the shape of one."""
        return (len(self), *self.data.shape[1:])

    @property
    def dtype(self) -> Any:
        """The dtype in the file."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.data.ndim)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))
