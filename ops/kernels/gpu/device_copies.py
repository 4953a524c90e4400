"""Copies on a GPU at the speed of its memory: in words of 16 bytes, or tile by tile where a matrix is transposed.

A kernel that transposes element by element reads or writes one element of each line of memory that it touches. Here a
block reads the rows of a tile, keeps it, and writes its columns as rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule
from tfray.ops.kernels.addresses import address_on_device

_SIDE: Final = 32
"""Rows and columns of a tile."""
_LINES: Final = 8
"""Rows of a tile that the threads of a block copy at once."""

_WORDS: Final = {1: ("uint8", "char"), 2: ("uint16", "short"), 4: ("uint32", "int"), 8: ("uint64", "long long")}
"""What stands for an element of so many bytes: the name of its dtype, and of its type in C++."""


_WIDE_WORDS: Final = ("complex128", "complex64")
"""Dtypes that stand for neighbouring elements, the widest first."""


def copy(target: Array, source: Array) -> None:
    """Copy to an array of the same shape; in words of 16 or 8 bytes where rows of both consist of such."""
    if source.dtype == target.dtype and source.shape == target.shape and source.size:
        for word in map(np.dtype, _WIDE_WORDS):
            if all(_is_of_words(array, word.itemsize) for array in (target, source)):
                target, source = target.view(word), source.view(word)
                break
    target[...] = source


def _is_of_words(array: Array, size: int) -> bool:
    """Whether the array's rows are of words of so many bytes, each of several elements."""
    item = array.dtype.itemsize
    if array.ndim == 0 or item >= size or array.strides[-1] != item:
        return False
    steps = [step for step, count in zip(array.strides[:-1], array.shape, strict=False) if count > 1]
    return all(number % size == 0 for number in (address_on_device(array), array.shape[-1] * item, *steps))


def write_transposed(xp: ArrayModule, matrix: Array, out: Array) -> bool:
    """Write the transpose of a matrix to an array of its size. Returns whether it was: both have to be contiguous."""
    word = _WORDS.get(matrix.dtype.itemsize)
    is_known = hasattr(xp, "ElementwiseKernel") and 0 < matrix.size < 1 << 31
    if word is None or not is_known or not (matrix.flags.c_contiguous and out.flags.c_contiguous):
        return False
    rows, columns = matrix.shape
    across = -(-columns // _SIDE)
    blocks = across * -(-rows // _SIDE)
    words, written = (array.view(np.dtype(word[0])) for array in (matrix, out))
    threads = _SIDE * _LINES
    _kernel(xp, *word)(words, rows, columns, across, written, size=blocks * threads, block_size=threads)
    return True


@cache
def _kernel(xp: Any, dtype: str, word: str) -> Any:
    lines = [
        f"__shared__ unsigned {word} tile[{_SIDE}][{_SIDE + 1}];",
        f"const int x = threadIdx.x % {_SIDE}, y = threadIdx.x / {_SIDE};",
        f"const int across_from = blockIdx.x % across * {_SIDE}, down_from = blockIdx.x / across * {_SIDE};",
        f"for (int line = y; line < {_SIDE}; line += {_LINES})",
        "  if (down_from + line < rows && across_from + x < columns)",
        "    tile[line][x] = in0[(down_from + line) * columns + across_from + x];",
        "__syncthreads();",
        f"for (int line = y; line < {_SIDE}; line += {_LINES})",
        "  if (across_from + line < columns && down_from + x < rows)",
        "    out[(across_from + line) * rows + down_from + x] = tile[x][line];",
    ]
    parameters = f"raw {dtype} in0, int32 rows, int32 columns, int32 across"
    return xp.ElementwiseKernel(parameters, f"raw {dtype} out", "\n".join(lines), "tfray_transposed", preamble="")
