"""Where arrays lie in memory, for libraries that are called through `ctypes`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array

_HEADER_BYTES: Final = object.__basicsize__
"""What comes before the fields of an object in CPython. The first field of an array is the address of its elements:
that is part of NumPy's binary interface, which extension modules are compiled with."""

_word_at = ctypes.c_size_t.from_address


def _in_header(array: Array) -> int:
    address: int = _word_at(id(array) + _HEADER_BYTES).value
    return address


def _in_interface(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _quickest() -> Callable[[Array], int]:
    """The way that takes a tenth of a microsecond, where it gives the same as the one that takes a whole one."""
    if sys.implementation.name != "cpython":
        return _in_interface
    arrays: list[Array] = [
        np.empty(3),
        np.empty((2, 2), np.int8)[:, 1],
        np.empty(0, np.float32),
        np.broadcast_to(np.float32(0), 9),
    ]
    return _in_header if all(_in_header(array) == _in_interface(array) for array in arrays) else _in_interface


address_of: Final = _quickest()
"""``address_of(array)``: where the first element of an array lies. The caller keeps the array alive."""


def address_on_device(array: Any) -> int:
    """The address of a GPU's array in that GPU's memory."""
    return int(array.data.ptr)
