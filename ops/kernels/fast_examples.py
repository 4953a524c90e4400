"""Reading features out of a batch of serialised examples by compiled kernels: without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, NumpyDTypeLike
from tfray.ops.kernels.compiling import LARGE_ELEMENTS, LEAST_ELEMENTS, can_compile, kernel

LEAST_BYTES: Final = LEAST_ELEMENTS
"""Bytes of examples from which the compiled kernels are worth loading."""

_STEP_EXAMPLES: Final = 64
"""Examples that a thread takes at a time."""


class _Names(NamedTuple):
    """The names of columns, one behind the other, where each ends, and the numbers of their lists."""

    octets: Array
    ends: Array
    kinds: Array


@lru_cache(maxsize=64)
def _names(columns: tuple[tuple[bytes, int], ...]) -> _Names:
    keys, kinds = zip(*columns, strict=True)
    octets = np.frombuffer(b"".join(keys) + b"\0", np.uint8)
    return _Names(octets, np.cumsum([len(key) for key in keys]), np.array(kinds))


def can_read(serialized: Sequence[bytes]) -> bool:
    """Whether compiled kernels read these examples."""
    return sum(map(len, serialized)) >= LEAST_BYTES and can_compile()


class CompiledBatch:
    """Where the columns of examples are.

    Args:
        serialized: The examples.
        columns: The name of each column, and the number of the list that must hold it.

    Attributes:
        is_usual: Whether all examples have a layout that this can read: if not, `read` must not be called.
    """

    def __init__(self, serialized: Sequence[bytes], columns: tuple[tuple[bytes, int], ...]) -> None:
        self._count, self._columns = len(serialized), len(columns)
        self._data = b"".join(serialized)
        self._octets = np.frombuffer(self._data, np.uint8)
        self._is_large = len(self._data) >= LARGE_ELEMENTS
        names = _names(columns)
        ends = np.fromiter(map(len, serialized), np.int64, self._count).cumsum()
        self._starts = np.empty((self._count, self._columns), np.int64)
        self._stops = np.empty_like(self._starts)
        self._counts = np.empty_like(self._starts)
        unusual = np.zeros(1, np.int64)
        found = self._starts, self._stops, self._counts, unusual
        self._run("find", self._columns, self._octets, ends, names.octets, names.ends, names.kinds, *found)
        self.is_usual = not unusual[0]

    def _run(self, name: str, *arguments: object) -> None:
        kernel("examples", name).run(self._count, _STEP_EXAMPLES, *arguments, is_large=self._is_large)

    def lengths(self, column: int) -> Array:
        """How many values each example has: int64, -1 where the feature is missing."""
        return self._counts[:, column].copy()

    def _read(self, name: str, column: int, dtype: NumpyDTypeLike, each: int) -> Array:
        places = np.zeros(self._count + 1, np.int64)
        np.maximum(self._counts[:, column], 0).cumsum(out=places[1:])
        out = np.empty(each * int(places[-1]), dtype)
        self._run(name, column, self._columns, self._octets, self._starts, self._stops, places, out)
        return out

    def floats(self, column: int) -> Array:
        """The values of a column of lists of float32, in a row."""
        return self._read("copy_floats", column, np.float32, 1)

    def longs(self, column: int) -> Array:
        """The values of a column of lists of int64, in a row."""
        return self._read("read_longs", column, np.int64, 1)

    def strings(self, column: int) -> list[bytes]:
        """The values of a column of lists of bytes, in a row."""
        places = self._read("find_strings", column, np.int64, 2).tolist()
        data = self._data
        return [data[start:stop] for start, stop in zip(places[::2], places[1::2], strict=True)]
