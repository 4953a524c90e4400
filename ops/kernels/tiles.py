"""How kernels over images divide their work: ranges of images and rows, small enough for a CPU core's cache."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDTypeLike
from tfray.ops.kernels.cpu_threads import one_blas_thread, parallel_for, scratch
from tfray.ops.kernels.windows import as_nhwc, image_shape

CPU_TILE_BYTES: Final = 5 << 19
"""Bytes of working memory of a tile on a CPU. Less would fit the second-level cache better; more needs fewer calls."""

GPU_TILE_BYTES: Final = 1 << 28
"""Bytes of working memory of a tile on a GPU. It bounds the memory that a kernel takes; speed does not depend on it."""

LARGE_ELEMENTS: Final = 1 << 20
"""Elements from which a second thread makes a simple pass over memory faster."""

_SHARES: Final = 8
"""Equal shares in which the tiles of large work can be dealt out to threads.

It is a number of its own, so that the number of threads decides no cut: BLAS may round the sums of a tile of another
size in another way.
"""


class Tile(NamedTuple):
    """A range of images, and of the output rows in each."""

    images: slice
    rows: slice

    @property
    def batch(self) -> int:
        """Number of images."""
        return self.images.stop - self.images.start

    @property
    def height(self) -> int:
        """Number of rows in each."""
        return self.rows.stop - self.rows.start

    def of(self, images: Array) -> Array:
        """This part of an NHWC view."""
        return images[self.images, self.rows]


def cut(size: int, parts: int) -> list[slice]:
    """``range(size)`` as `parts` slices of about equal length; none for 0 parts."""
    bounds = [size * part // max(parts, 1) for part in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(bounds)]


def even(count: int) -> int:
    """So many parts, or fewer, that two threads, or four, end together: a power of two, 1 at least."""
    return 1 << max(count, 1).bit_length() - 1


def cut_tiles(batch: int, rows: int, row_bytes: int, tile_bytes: float, shares: int) -> list[Tile]:
    """The rows of a batch of images as tiles of about equal size, in order; none for an empty batch.

    Args:
        batch: Number of images.
        rows: Rows in each image.
        row_bytes: Working memory for one row.
        tile_bytes: Working memory that a tile should not exceed.
        shares: The number of tiles is a multiple of it, or as many as there are rows.
    """
    if batch == 0 or rows == 0:
        return []
    wanted = max(shares, -(-batch * rows * row_bytes // int(tile_bytes)))
    wanted = -(-wanted // shares) * shares
    if wanted <= batch:
        return [Tile(images, slice(0, rows)) for images in cut(batch, wanted)]
    blocks = cut(rows, min(rows, -(-wanted // batch)))
    return [Tile(slice(image, image + 1), block) for image in range(batch) for block in blocks]


def tile_bytes(xp: ArrayModule) -> int:
    """Working memory of a tile on the device of this array module."""
    return CPU_TILE_BYTES if xp is np else GPU_TILE_BYTES


def shares_for(xp: ArrayModule, is_large: bool) -> int:
    """In how many shares to cut work: more than one only for large work on a CPU."""
    return _SHARES if is_large and xp is np else 1


def run_tiles(work: Callable[[int], None], count: int, is_large: bool) -> None:
    """Run ``work(0)`` to ``work(count - 1)``, on the shared threads if the work is large, else on this one."""
    if is_large:
        parallel_for(work, count)
        return
    with one_blas_thread():
        for index in range(count):
            work(index)


FEW_ELEMENTS: Final = 1 << 12
"""Elements up to which NumPy takes no longer than what a kernel does before it begins. BLAS takes one thread."""

FLAT_TILE: Final = 1 << 16
"""Elements of a tile of an elementwise kernel that passes over its data several times: the passes stay in the cache.

Tiles below 16,000 elements lose to the cost of calls and of the interpreter's lock.
"""


def map_flat(xp: ArrayModule, function: Callable[..., None], out: Array, *arrays: Array) -> Array:
    """Fill `out` by ``function(out_part, *parts)``, on a CPU part by part of the flattened arrays.

    Args:
        xp: The array module.
        function: Fills its first argument from the others, arrays of the same shape. At most `FLAT_TILE` elements
            at a time on a CPU, several threads at once where that pays.
        out: Where to write; may be one of `arrays` if `function` allows that.
        *arrays: Arrays of the shape of `out`.
    """
    if xp is not np or out.size <= FLAT_TILE or not all(array.flags.c_contiguous for array in (out, *arrays)):
        function(out, *arrays)
        return out
    flat_out, *flat = (array.reshape(-1) for array in (out, *arrays))
    parts = cut(out.size, -(-out.size // FLAT_TILE))

    def work(index: int) -> None:
        part = parts[index]
        function(flat_out[part], *(array[part] for array in flat))

    run_tiles(work, len(parts), out.size >= LARGE_ELEMENTS)
    return out


def for_each_rows(
    xp: ArrayModule, work: Callable[[slice], None], matrix: Array, large_elements: int = LARGE_ELEMENTS
) -> None:
    """Call `work` on ranges of the rows of a matrix. On a CPU a range fits the cache; on a GPU it is all rows.

    Args:
        xp: The array module.
        work: Called once per range, from several threads at once when the matrix is large.
        matrix: The rows; three more arrays of the same size should fit the cache.
        large_elements: Number of elements from which several threads are used.
    """
    rows = len(matrix)
    if xp is not np or matrix.size <= FEW_ELEMENTS:
        work(slice(0, rows))
        return
    is_large = matrix.size >= large_elements
    parts = cut(rows, min(rows, max(shares_for(xp, is_large), -(-matrix.nbytes // (CPU_TILE_BYTES // 8)))))
    run_tiles(lambda index: work(parts[index]), len(parts), is_large)


def buffer(xp: ArrayModule, slot: str, shape: tuple[int, ...], dtype: NumpyDTypeLike) -> Array:
    """Working memory within a kernel. On a CPU it belongs to the thread, whose next request for `slot` reuses it."""
    return scratch(slot, shape, dtype) if xp is np else xp.empty(shape, dtype)


def image_buffer(
    xp: ArrayModule, slot: str, sizes: tuple[int, int, int, int], layout: str, dtype: NumpyDTypeLike
) -> Array:
    """A `buffer` of images in `layout`, of (batch, height, width, channels), seen as NHWC."""
    return as_nhwc(buffer(xp, slot, image_shape(*sizes, layout), dtype), layout)
