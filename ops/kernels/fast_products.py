"""Products of float32 matrices by oneDNN: of matrices with few rows in half of OpenBLAS's time.

How a product is cut into parts, which threads compute side by side, depends on its sizes alone. Every element is summed
within one part, so that the number of threads changes no bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from math import gcd, prod
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array
from tfray.ops.kernels.addresses import address_of
from tfray.ops.kernels.compiling import can_compile
from tfray.ops.kernels.native.onednn import Handle, Library, Primitive, Unsupported, library, reorder
from tfray.ops.kernels.native.primitive_batches import SCRATCH, Call, Place, PrimitiveBatch
from tfray.ops.kernels.tiles import even

_LEAST_WORK: Final = 4e6
"""Below so many operations, some tens of microseconds, calling the library takes longer than it saves."""

_PART_WORK: Final = 3e7
"""Least work of a part, in floating-point operations: about a third of a millisecond on one core."""

_TWO_PARTS_WORK: Final = 1e7
"""From so much work, a tenth of a millisecond on one core, there are two parts at least."""

_FLOPS_PER_BYTE: Final = 10
"""Floating-point operations that a core does while it reads a byte: matrices with few rows take as long as reading."""

_FEW_PARTS, _MOST_PARTS = 8, 16
"""The library packs what a part reads: with 16 parts a product of two matrices of 1024 rows takes a tenth longer than
with 8. Above 8, parts have `_LARGE_PART_WORK`."""

_LARGE_PART_WORK: Final = 2.5e8
"""About two and a half milliseconds on one core."""

_ALIASED: Final = 1024
"""Elements in 4096 bytes. A cache of the first level keeps what lies so far apart in one set, of 8 to 12 lines. Rows of
the right matrix that do push each other out: without wide vectors the library reads them where they lie, and takes two
to three times as long as OpenBLAS, which packs them first."""

_GRAIN: Final = 64
"""Parts begin at multiples of so many rows or columns."""

_FEW_ROWS: Final = range(8, 65)
"""Rows of a product that is summed slab by slab: fewer take one pass; for more the library packs the right matrix."""

_CACHED_BYTES, _CACHE_WAY_BYTES, _MOST_DEPTH = 1 << 20, 1 << 17, 256
"""What a slab's rows depend on: half of a core's cache of 2 MB, one of its 16 ways (rows that lie as far apart share
one set), and the most rows, above which it pays no more."""

_SHALLOW: Final = range(45, 105)
"""Depths of a product that is computed in tiles, where rows of the right matrix share few sets of the cache: gradients
of weights from so many examples. Otherwise it takes up to twice as long. Fewer rows stay in the cache; with more terms
the library packs the right matrix."""

_TILE_ROWS, _TILE_COLUMNS = 256, 512
"""Sizes of such a tile. The library packs a right matrix of so few columns; a wider one it reads where it lies."""

_PACKED_ROWS: Final = 256
"""Most rows of the left matrix for which a kept right one is packed: with more, packing is soon made up for anyway."""

_LINE: Final = 64
"""Bytes of a line of the cache, at which packed matrices begin."""

_ONLY_FLOAT: Final = {np.dtype(np.float32)}

_WEIGHTS: Final = 131
"""The query for the layout of the right matrix that the library has chosen."""

Shape = tuple[int, ...]
_Layout = tuple[Shape, Shape]
"""Sizes and strides."""
_Part = tuple[tuple[slice, ...], tuple[slice, ...], tuple[slice, ...]]
"""The slices of the left and the right matrix and of the result."""


class KeptMatrix:
    """A right matrix of several products, which stays as it is: the first of them packs it for the library.

    Packing takes about as long as a product with 32 rows, of which it spares a fifth to two fifths.

    Args:
        matrix: Shape ``[k, n]``.

    Attributes:
        matrix: The same.
    """

    __slots__ = ("_packed", "matrix")

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self._packed: dict[_PackedProduct, Array] = {}

    def product(self, a: Array, out: Array | None) -> Array | None:
        """The product of `a`, shape ``[m, k]``, and the matrix; None where it is none for the library."""
        b = self.matrix
        if a.ndim != 2 or len(a) > _PACKED_ROWS or b.shape[1] == 1:
            return None
        if {a.dtype, b.dtype, a.dtype if out is None else out.dtype} != _ONLY_FLOAT:
            return None
        strides = _strides(a), _strides(b), None if out is None else _strides(out)
        form = _packed_product(a.shape, strides[0], b.shape, strides[1], strides[2])
        if form is None:
            return None
        packed = self._packed.get(form)
        if packed is None:
            room = np.empty(form.packed_bytes + _LINE, np.uint8)
            packed = room[-address_of(room) % _LINE :]
            form.packing.run(address_of(b), address_of(packed))
            self._packed[form] = packed
        result = np.empty((len(a), b.shape[1]), np.float32) if out is None else out
        form.product.run(address_of(a), address_of(packed), address_of(result))
        return result


class _PackedProduct(NamedTuple):
    """How to compute a product with a right matrix that is packed.

    Attributes:
        packing: Packs it: takes the matrix, and where to write.
        packed_bytes: What it writes.
        product: Takes the left matrix, the packed one and the result.
    """

    packing: PrimitiveBatch
    packed_bytes: int
    product: PrimitiveBatch


def fast_product(a: Array, b: Array, out: Array | None) -> Array | None:
    """The product of two matrices, or of two batches of them; None where oneDNN does not compute it.

    Args:
        a: Shape ``[..., m, k]``.
        b: Shape ``[..., k, n]``, with the same batch.
        out: Where to write, ``[..., m, n]``; None for a new array.
    """
    if a.ndim < 2 or a.ndim != b.ndim or a.dtype != np.float32 or b.dtype != np.float32:
        return None
    if out is not None and out.dtype != np.float32:
        return None
    if b.shape[-1] == 1:  # for a column the library has a plain loop, which takes fifty times as long as OpenBLAS
        return None
    shape = (*a.shape[:-1], b.shape[-1])
    if _work(a.shape, b.shape, shape) < _LEAST_WORK:
        return None
    out_strides = None if out is None else _strides(out)
    product = _product(a.shape, _strides(a), b.shape, _strides(b), out_strides)
    if product is None:
        return None
    result = np.empty(shape, np.float32) if out is None else out
    product.run(address_of(a), address_of(b), address_of(result))
    return result


@lru_cache(maxsize=1024)
def _work(a: Shape, b: Shape, result: Shape) -> float:
    """About how many floating-point operations take as long as this product."""
    return max(2.0 * prod(result) * a[-1], 4.0 * _FLOPS_PER_BYTE * (prod(a) + prod(b) + prod(result)))


def _strides(array: Array) -> Shape:
    return tuple(stride // 4 for stride in array.strides)


@lru_cache(maxsize=1024)
def _product(
    a: Shape, a_strides: Shape, b: Shape, b_strides: Shape, out_strides: Shape | None
) -> PrimitiveBatch | None:
    """How to compute a product, from the two matrices and the result; None where oneDNN does not."""
    found = _cut_product(a, a_strides, b, b_strides, out_strides)
    if found is None:
        return None
    dnnl, layouts, parts = found
    if not dnnl.has_wide_vectors and b_strides[-1] == 1 and b_strides[-2] % _ALIASED == 0:
        return None
    try:
        made: dict[tuple[bool, tuple[Shape, ...]], _PartForm] = {}
        items, scratch_bytes = [], 0
        for part in parts:
            calls: list[Call] = []
            for slab in _slabs(part, a, b_strides):
                sizes = tuple(_cut_sizes(whole, slices) for (whole, _), slices in zip(layouts, slab, strict=True))
                key = bool(calls), sizes
                if key not in made:
                    made[key] = _part_form(dnnl, sizes, layouts, adds=bool(calls))
                offsets = [_offset(piece, strides) for piece, (_, strides) in zip(slab, layouts, strict=True)]
                calls += made[key].calls(list(map(Place, range(3), offsets)))
                scratch_bytes = max(scratch_bytes, made[key].scratch_bytes)
            items.append(calls)
    except Unsupported:
        return None
    return PrimitiveBatch(dnnl, items, len(layouts), (scratch_bytes, 0))


class _PartForm(NamedTuple):
    """How to compute a part of a product.

    Attributes:
        product: Takes the left matrix, the right one and the result.
        turning: Writes the left matrix into scratch memory row by row, for `product`; None where it takes it as it is.
        copying: Copies the result, which `product` writes into scratch memory; None where it writes it in place.
        scratch_bytes: Size of the scratch memory.
    """

    product: Primitive
    turning: Primitive | None = None
    copying: Primitive | None = None
    scratch_bytes: int = 0

    def calls(self, places: Sequence[Place]) -> list[Call]:
        """The calls that compute it, from the places of left matrix, right matrix and result."""
        left, right, result = places
        scratch = Place(SCRATCH)
        if self.turning is not None:
            return [Call(self.turning, [left, scratch]), Call(self.product, [scratch, right, result])]
        if self.copying is not None:
            return [Call(self.product, [left, right, scratch]), Call(self.copying, [scratch, result])]
        return [Call(self.product, [left, right, result])]


def _part_form(dnnl: Library, sizes: Sequence[Shape], layouts: Sequence[_Layout], adds: bool) -> _PartForm:
    """How to compute a part of a product.

    The library packs a turned right matrix only if the rows of the result follow each other. Otherwise the product
    takes 1.1 to 1.5 times as long, if its rows are few beside those of the right matrix, so that copying takes little.

    With a turned left matrix it reads a right one where it lies, though rows of that share few sets of the cache.
    """
    left, right, result = _laid_out(dnnl, sizes, layouts)
    rows, columns = sizes[2][-2:]
    turned_left, turned_right = (strides[-1] != 1 for _, strides in layouts[:2])
    if turned_left and _is_shallow(*layouts[:2]):
        plain = dnnl.layout(sizes[0], (sizes[0][1], 1))
        turning = reorder(dnnl, left, plain)
        return _PartForm(_primitive(dnnl, plain, right, result), turning, scratch_bytes=4 * prod(sizes[0]))
    is_dense = columns == layouts[2][1][-2]
    if adds or not turned_right or is_dense or len(sizes[2]) > 2 or 2 * rows > sizes[0][1]:
        return _PartForm(_primitive(dnnl, left, right, result, adds=adds))
    dense = dnnl.layout(sizes[2], (columns, 1))
    copying = reorder(dnnl, dense, result)
    return _PartForm(_primitive(dnnl, left, right, dense), None, copying, 4 * prod(sizes[2]))


@lru_cache(maxsize=1024)
def _packed_product(
    a: Shape, a_strides: Shape, b: Shape, b_strides: Shape, out_strides: Shape | None
) -> _PackedProduct | None:
    """How to compute a product with a right matrix that is packed; None if the library does not, or takes it as it is.

    Every part packs the columns that it reads. Parts of the same columns share them.
    """
    found = _cut_product(a, a_strides, b, b_strides, out_strides)
    if found is None or _work(a, b, (*a[:-1], b[-1])) < _LEAST_WORK:
        return None
    dnnl, layouts, parts = found
    packing, calls, size = [], [], 0
    packed: dict[int, tuple[Any, int]] = {}
    try:
        for part in parts:
            sizes = tuple(_cut_sizes(whole, slices) for (whole, _), slices in zip(layouts, part, strict=True))
            left, right, result = _laid_out(dnnl, sizes, layouts)
            primitive = _primitive(dnnl, left, dnnl.layout(sizes[1]), result, _WEIGHTS)
            chosen, begin = primitive.layouts[1], part[1][-1].start or 0
            if begin not in packed:
                pack = reorder(dnnl, right, chosen)
                if pack is None:
                    return None
                packing.append([Call(pack, [Place(0, _offset(part[1], layouts[1][1])), Place(1, size)])])
                packed[begin] = chosen, size
                size += -(-dnnl.size(chosen) // _LINE) * _LINE
            shared, offset = packed[begin]
            if not dnnl.are_equal(shared, chosen):
                return None
            ends = [_offset(part[index], layouts[index][1]) for index in (0, 2)]
            calls.append([Call(primitive, [Place(0, ends[0]), Place(1, offset), Place(2, ends[1])])])
    except Unsupported:
        return None
    return _PackedProduct(PrimitiveBatch(dnnl, packing, 2), size, PrimitiveBatch(dnnl, calls, len(layouts)))


def _cut_product(
    a: Shape, a_strides: Shape, b: Shape, b_strides: Shape, out_strides: Shape | None
) -> tuple[Library, list[_Layout], list[_Part]] | None:
    """The layouts of two matrices and their product, and the parts to compute it in; None where oneDNN does not."""
    dnnl = library()
    if dnnl is None or not can_compile() or a[:-2] != b[:-2] or a[-1] != b[-2]:
        return None
    shape = (*a[:-1], b[-1])
    if not prod(shape) * a[-1]:
        return None
    layouts = [(a, a_strides), (b, b_strides), (shape, _contiguous(shape) if out_strides is None else out_strides)]
    if not all(_is_plain(sizes, strides) for sizes, strides in layouts):
        return None
    if _is_shallow(*layouts[:2]):
        return dnnl, layouts, _tiles(shape)
    # With a matrix that is turned, parts of all rows, or of all columns, are faster.
    in_grid = all(strides[-1] == 1 for strides in (a_strides, b_strides))
    return dnnl, layouts, _parts(shape, _part_count(_work(a, b, shape)), in_grid)


def _is_shallow(left: _Layout, right: _Layout) -> bool:
    """Whether a product has few terms, many rows, and a right matrix whose rows share few sets of the cache."""
    (sizes, _), (_, strides) = left, right
    is_aliased = strides[-1] == 1 and strides[-2] % _ALIASED == 0
    return len(sizes) == 2 and is_aliased and sizes[1] in _SHALLOW and sizes[0] > _FEW_ROWS[-1]


def _tiles(shape: Shape) -> list[_Part]:
    """A product cut into tiles, of about the same size."""
    rows, columns = (_even_slices(size, most) for size, most in zip(shape, (_TILE_ROWS, _TILE_COLUMNS), strict=True))
    whole = slice(None)
    return [((row, whole), (whole, column), (row, column)) for row, column in itertools.product(rows, columns)]


def _even_slices(size: int, most: int) -> list[slice]:
    """Slices of `most` elements or less, which begin at multiples of `_GRAIN`."""
    units, count = -(-size // _GRAIN), -(-size // most)
    ends = [units * i // count * _GRAIN for i in range(count)] + [size]
    return list(map(slice, ends[:-1], ends[1:]))


def _laid_out(dnnl: Library, sizes: Sequence[Shape], layouts: Sequence[_Layout]) -> list[Handle]:
    """The library's layouts of a part of each matrix."""
    return [dnnl.layout(each, _spread(each, strides)) for each, (_, strides) in zip(sizes, layouts, strict=True)]


def _primitive(
    dnnl: Library, left: Handle, right: Handle, result: Handle, query: int | None = None, adds: bool = False
) -> Primitive:
    """A product; `query` asks for the layout of the right matrix where the library chooses it."""
    taken = [(1, left), (33, right if query is None else query), (17, result)]
    return Primitive(dnnl, "matmul", (dnnl.engine, left, right, None, result), taken, adds)


def _slabs(part: _Part, a: Shape, b_strides: Shape) -> list[_Part]:
    """A part of a product of few rows as a sum, where rows of the right matrix share few sets of the cache.

    The library passes over a column of the right matrix once for some rows of the left one. If the column's rows push
    each other out, each pass reads it from memory anew. Those of a slab stay.
    """
    left, right, result = part
    depth, rows = a[-1], len(range(*left[-2].indices(a[-2])))
    if len(a) > 2 or b_strides[-1] != 1 or rows not in _FEW_ROWS:
        return [part]
    period = gcd(4 * b_strides[-2], _CACHE_WAY_BYTES)
    step = max(_CACHED_BYTES // period // _GRAIN * _GRAIN, _GRAIN)
    if step > _MOST_DEPTH:
        return [part]
    count = max(1, round(depth / step))
    ends = [depth * i // count // 16 * 16 for i in range(count)] + [depth]
    return [((left[0], each), (each, right[1]), result) for each in map(slice, ends[:-1], ends[1:])]


def _offset(part: tuple[slice, ...], strides: Shape) -> int:
    """Where a part of a matrix begins, in bytes."""
    return 4 * sum((piece.start or 0) * stride for piece, stride in zip(part, strides, strict=True))


def _part_count(work: float) -> int:
    few, many = min(_FEW_PARTS, int(work / _PART_WORK)), min(_MOST_PARTS, int(work / _LARGE_PART_WORK))
    return even(max(2 if work >= _TWO_PARTS_WORK else 1, few, many))


def _contiguous(shape: Shape) -> Shape:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _is_plain(sizes: Shape, strides: Shape) -> bool:
    """Whether rows or columns are runs of elements, and no element stands for several."""
    longer = [stride for size, stride in zip(sizes, strides, strict=True) if size > 1]
    inner = [stride for size, stride in zip(sizes[-2:], strides[-2:], strict=True) if size > 1]
    return all(stride > 0 for stride in longer) and (not inner or min(inner) == 1)


def _spread(sizes: Shape, strides: Shape) -> Shape:
    """Strides that the library accepts for dimensions of size 1 too, of which NumPy's may be anything."""
    inner = max((size * stride for size, stride in zip(sizes, strides, strict=True) if size > 1), default=1)
    return tuple(stride if size > 1 else inner for size, stride in zip(sizes, strides, strict=True))


def _cut_sizes(sizes: Shape, slices: tuple[slice, ...]) -> Shape:
    return tuple(len(range(*each.indices(size))) for size, each in zip(sizes, slices, strict=True))


def _parts(shape: Shape, count: int, in_grid: bool) -> list[_Part]:
    """A product cut along the longest axis of batch, rows and columns; a step in the batch counts as `_GRAIN` rows.

    Args:
        shape: Shape of the product.
        count: Number of parts, about.
        in_grid: Whether rows and columns may both be cut.
    """
    whole = slice(None)
    rank = len(shape)
    lengths = [shape[0] if rank > 2 else 0, -(-shape[-2] // _GRAIN), -(-shape[-1] // _GRAIN)]
    axis = lengths.index(max(lengths))
    counts = [1, 1, 1]
    counts[axis] = max(1, min(count, lengths[axis]))
    if in_grid and axis > 0:
        counts[1:] = _grid(lengths[1], lengths[2], count)
    batches, *both = (
        [slice(length * i // number * unit, length * (i + 1) // number * unit) for i in range(number)]
        if number > 1
        else [whole]
        for length, number, unit in zip(lengths, counts, (1, _GRAIN, _GRAIN), strict=True)
    )
    parts = []
    for piece, rows, columns in itertools.product(batches, *both):
        batch = (piece,) + (whole,) * (rank - 3) if rank > 2 else ()
        parts.append(((*batch, rows, whole), (*batch, whole, columns), (*batch, rows, columns)))
    return parts


def _grid(rows: int, columns: int, count: int) -> tuple[int, int]:
    """How often to cut rows and columns: at most `count` parts, not many less, that read as little as they can.

    A part reads its rows of the left matrix, and its columns of the right one, which the library packs anew for each.
    """
    grids = [(r, min(count // r, columns)) for r in range(1, min(count, rows) + 1)]
    most = max(r * c for r, c in grids)
    enough = [(r, c) for r, c in grids if 4 * r * c >= 3 * most]
    return min(enough, key=lambda grid: grid[1] * rows + grid[0] * columns)
