"""Sums over rows on a GPU, of each column of a matrix, and along rows; several of them in one pass over memory.

CuPy shares out a sum by its results: 32 neighbouring ones are a block's. The sums of 64 channels over all pixels would
be the work of two blocks, where a device runs hundreds. Here the rows are shared out too. Each block adds up some rows
of some columns, and a second launch adds up what the blocks found. A thread loads 16 bytes at a time where the columns
allow it: memory is at its full speed only then. How the rows are cut depends on shapes alone, so that results do. A sum
along a row is a block's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, NumpyDType
from tfray.ops.kernels.addresses import address_on_device
from tfray.ops.kernels.gpu.device_loops import ALIGNMENT, device_sum, element_of, known_type, preamble, rounded
from tfray.ops.kernels.precision import working_dtype

_THREADS: Final = 256
"""Threads of a block."""
_MOST_GROUPS: Final = 32
"""Neighbouring groups of columns that a block takes where rows are many: 512 bytes of each row."""
_FEW_GROUPS: Final = 8
"""The same where one block adds up all rows of its columns: more blocks are at work then."""
_BLOCKS: Final = 512
"""Blocks of the first launch: they keep the largest devices busy, and leave little to the second."""
_FEW_TURNS: Final = 8
"""Rows that a thread adds up at least, before they are cut into more parts."""
_MOST_TURNS: Final = 16
"""Rows that a thread may add up in one launch, before a second one pays."""

_LONG_ROW: Final = 256
"""Elements from which the sum along a row is a block's; CuPy shares out shorter ones well."""

_Forms = Mapping[str, tuple[bool, bool, str]]
"""Of arrays, by their form: whether an element serves all turns of a thread, all its lanes, and which it is."""

_OVER_ROWS: Final[_Forms] = {
    "whole": (False, False, "row * columns + column"),
    "row": (True, False, "column"),
    "number": (True, True, "0"),
}
_ALONG_ROWS: Final[_Forms] = {
    "whole": (False, False, "row * columns + column"),
    "row": (False, False, "column"),
    "column": (True, True, "row"),
    "number": (True, True, "0"),
}

_PREAMBLE: Final = """
template <int N, typename T, int D, bool C, bool I> __device__ Lanes<T, N> run(const CArray<T, D, C, I>& a, int64 i) {
  return *reinterpret_cast<const Lanes<T, N>*>(&a[i]);
}
"""


def staged_sum(
    xp: ArrayModule,
    element: str,
    arrays: Sequence[Array],
    axis: int | tuple[int, ...],
    scale: float = 1.0,
    dtype: NumpyDType | None = None,
) -> Array:
    """As `staged_sums`, of one expression."""
    return staged_sums(xp, [element], arrays, axis, scale, dtype)[0]


def staged_sums(
    xp: ArrayModule,
    elements: Sequence[str],
    arrays: Sequence[Array],
    axis: int | tuple[int, ...],
    scale: float = 1.0,
    dtype: NumpyDType | None = None,
) -> list[Array]:
    """As `device_sum` for each expression. Over the first dimensions it takes one pass over the arrays for all.

    Args:
        xp: CuPy.
        elements: Expressions of the elements ``{0}``, ``{1}``, ... of the arrays.
        arrays: The arrays, which are broadcast against each other.
        axis: The dimensions that are summed over; they have size 1 in the result.
        scale: What the sums are multiplied by.
        dtype: What they are rounded to, if it is not the dtype in which they are added up.

    Returns:
        The sums, in the order of the expressions.
    """
    axes = (axis,) if isinstance(axis, int) else axis
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    if prod(shape) and axes == tuple(range(len(axes))) and axes:
        matrices = [matrix for array in arrays if (matrix := _as_rows(array, shape, len(axes))) is not None]
        if len(matrices) == len(arrays):
            rows, columns = prod(shape[: len(axes)]), prod(shape[len(axes) :])
            kept = (1,) * len(axes) + shape[len(axes) :]
            return [total.reshape(kept) for total in _sums_of_rows(xp, elements, matrices, rows, columns, scale, dtype)]
    if axes == (1,) and len(shape) == 2 and shape[1] >= _LONG_ROW and shape[0]:
        taken = [array if array.shape == (shape[0], 1) else _as_rows(array, shape, 1) for array in arrays]
        matrices = [matrix for matrix in taken if matrix is not None and matrix.flags.c_contiguous]
        if len(matrices) == len(arrays):
            return _sums_along_rows(xp, elements, matrices, shape, scale, dtype)
    if axes == (0, *range(2, len(shape))) and prod(shape) // max(shape[1], 1) > _MOST_TURNS * _THREADS:
        parts = [device_sum(xp, element, arrays, axes[1:]) for element in elements]
        return [device_sum(xp, "{0}", [part], 0, scale, dtype) for part in parts]
    return [device_sum(xp, element, arrays, axis, scale, dtype) for element in elements]


def are_staged(rows: int, columns: int) -> bool:
    """Whether the sum of these many rows takes two launches."""
    return _cut(rows, columns).parts > 1


def _as_rows(array: Array, shape: tuple[int, ...], summed: int) -> Array | None:
    """The array as one of all elements, or of those of a row, or as one number; None if it is none of these."""
    if array.shape == shape:
        return array.reshape(-1, prod(shape[summed:])) if array.flags.c_contiguous else None
    own = (1,) * (len(shape) - array.ndim) + array.shape
    is_row = own == (1,) * summed + shape[summed:] or array.size == 1
    return array.reshape(-1) if is_row and array.flags.c_contiguous else None


@dataclass(frozen=True)
class _Cut:
    """How rows and columns are shared out to blocks.

    Attributes:
        width: Groups of neighbouring columns of a block; each is a thread's.
        tiles: Blocks beside each other, for all columns.
        parts: Blocks below each other, for all rows.
    """

    width: int
    tiles: int
    parts: int


@lru_cache(maxsize=1024)
def _cut(rows: int, groups: int, most_parts: int = _BLOCKS) -> _Cut:
    width = min(groups, _FEW_GROUPS)
    if most_parts == 1 or rows <= _MOST_TURNS * (_THREADS // width):
        return _Cut(width, -(-groups // width), 1)
    width = min(groups, _MOST_GROUPS)
    tiles = -(-groups // width)
    turns = rows // (_THREADS // width * _FEW_TURNS)
    return _Cut(width, tiles, max(min(_BLOCKS // tiles, turns), 1))


def _sums_of_rows(
    xp: ArrayModule,
    elements: Sequence[str],
    matrices: Sequence[Array],
    rows: int,
    columns: int,
    scale: float,
    dtype: NumpyDType | None,
) -> list[Array]:
    lanes = _lanes(matrices, columns)
    cut = _cut(rows, columns // lanes)
    total = working_dtype(matrices[0].dtype)
    if cut.parts > 1:
        partial = _launch(xp, elements, matrices, rows, columns, lanes, cut, 1.0, total)
        matrices, elements, rows = [partial.reshape(cut.parts, -1)], ["{0}"], cut.parts
        lanes = _lanes(matrices, partial.size // rows)
        cut = _cut(rows, partial.size // rows // lanes, most_parts=1)
        found = _launch(xp, elements, matrices, rows, partial.size // rows, lanes, cut, scale, dtype or total)
    else:
        found = _launch(xp, elements, matrices, rows, columns, lanes, cut, scale, dtype or total)
    return list(found.reshape(-1, columns))


def _sums_along_rows(
    xp: ArrayModule, elements: Sequence[str], matrices: Sequence[Array], shape: Sequence[int], scale: float, dtype: Any
) -> list[Array]:
    rows, columns = shape
    forms = ["column" if matrix.shape == (rows, 1) else _form(matrix) for matrix in matrices]
    lanes = _lanes([m for m, form in zip(matrices, forms, strict=True) if form in ("whole", "row")], columns)
    threads = min(_THREADS, 1 << max(columns // lanes - 1, 31).bit_length())
    dtypes = tuple(matrix.dtype for matrix in matrices)
    result = dtype or working_dtype(dtypes[0])
    kernel = _along_kernel(xp, tuple(elements), dtypes, tuple(forms), lanes, threads, result)
    out = xp.empty((len(elements), rows), result)
    kernel(*matrices, rows, columns, scale, out, size=rows * threads, block_size=threads)
    return [total.reshape(rows, 1) for total in out]


def _form(matrix: Array) -> str:
    return "whole" if matrix.ndim > 1 else "number" if matrix.size == 1 else "row"


def _lanes(matrices: Sequence[Array], columns: int) -> int:
    """How many neighbouring columns a thread takes: as many as are 16 bytes, if all are aligned."""
    size = min((matrix.dtype.itemsize for matrix in matrices if matrix.ndim > 1), default=ALIGNMENT)
    lanes = max(ALIGNMENT // size, 1)
    is_aligned = all(address_on_device(matrix) % ALIGNMENT == 0 for matrix in matrices if matrix.size > 1)
    return lanes if columns % lanes == 0 and is_aligned else 1


def _launch(
    xp: ArrayModule,
    elements: Sequence[str],
    matrices: Sequence[Array],
    rows: int,
    columns: int,
    lanes: int,
    cut: _Cut,
    scale: float,
    dtype: NumpyDType,
) -> Array:
    """The sums of each part of the rows, ``[parts, expressions, columns]``."""
    forms = tuple(map(_form, matrices))
    dtypes = tuple(matrix.dtype for matrix in matrices)
    kernel = _rows_kernel(xp, tuple(elements), dtypes, forms, lanes, dtype)
    out = xp.empty((cut.parts, len(elements), columns), dtype)
    sizes = (rows, columns, cut.width, cut.tiles, cut.parts)
    kernel(*matrices, *sizes, scale, out, size=cut.parts * cut.tiles * _THREADS, block_size=_THREADS)
    return out


class _Source:
    """Parts of the source of a sum: what is loaded before and in each turn, and what is done for each lane."""

    def __init__(
        self, elements: Sequence[str], dtypes: Sequence[NumpyDType], forms: Sequence[str], of: _Forms, lanes: int
    ) -> None:
        self.kind = known_type(working_dtype(dtypes[0]))
        self.before: list[str] = []
        self.turn: list[str] = []
        self.inner: list[str] = []
        for number, (dtype, form) in enumerate(zip(dtypes, forms, strict=True)):
            is_before, is_single, index = of[form]
            where = self.before if is_before else self.turn
            if is_single:
                where.append(f"const {known_type(dtype)} x{number} = {element_of(f'in{number}[{index}]', dtype)};")
                continue
            where.append(f"const auto p{number} = run<{lanes}>(in{number}, {index});")
            self.inner.append(f"const {known_type(dtype)} x{number} = {element_of(f'p{number}[k]', dtype)};")
        names = [f"x{number}" for number in range(len(dtypes))]
        self.values = [element.format(*names) for element in elements]
        self.inputs = ", ".join(f"raw {dtype.name} in{number}" for number, dtype in enumerate(dtypes))

    def kernel(self, xp: ArrayModule, sizes: str, lines: Sequence[str], result: NumpyDType, name: str) -> Any:
        """The kernel of these lines."""
        parameters = f"{self.inputs}, {sizes}, {self.kind} scale"
        before = preamble(parameters, result.name) + _PREAMBLE
        return xp.ElementwiseKernel(parameters, f"raw {result.name} out", "\n".join(lines), name, preamble=before)


@cache
def _along_kernel(
    xp: ArrayModule,
    elements: tuple[str, ...],
    dtypes: tuple[NumpyDType, ...],
    forms: tuple[str, ...],
    lanes: int,
    threads: int,
    result: NumpyDType,
) -> Any:
    source = _Source(elements, dtypes, forms, _ALONG_ROWS, lanes)
    count, kind = len(elements), source.kind
    lines = [
        f"__shared__ {kind} shared[{count}][{threads}];",
        "const int64 row = blockIdx.x;",
        f"{kind} totals[{count}] = {{}};",
        *source.before,
        "#pragma unroll 4",
        f"for (int64 column = threadIdx.x * {lanes}; column < columns; column += {threads * lanes}) {{",
        *source.turn,
        f"for (int32 k = 0; k < {lanes}; ++k) {{",
        *source.inner,
        *(f"totals[{number}] += {value};" for number, value in enumerate(source.values)),
        "}",
        "}",
        f"for (int32 e = 0; e < {count}; ++e) shared[e][threadIdx.x] = totals[e];",
        "__syncthreads();",
        f"for (int32 half = {threads // 2}; half > 0; half /= 2) {{",
        f"if (threadIdx.x < half) for (int32 e = 0; e < {count}; ++e)",
        "shared[e][threadIdx.x] += shared[e][threadIdx.x + half];",
        "__syncthreads();",
        "}",
        f"if (threadIdx.x == 0) for (int32 e = 0; e < {count}; ++e)",
        f"out[e * rows + row] = {rounded('shared[e][0] * scale', result)};",
    ]
    return source.kernel(xp, "int64 rows, int64 columns", lines, result, "tfray_sums_along_rows")


@cache
def _rows_kernel(
    xp: ArrayModule,
    elements: tuple[str, ...],
    dtypes: tuple[NumpyDType, ...],
    forms: tuple[str, ...],
    lanes: int,
    result: NumpyDType,
) -> Any:
    source = _Source(elements, dtypes, forms, _OVER_ROWS, lanes)
    kind = source.kind
    declared = [f"{kind} totals{number}[{lanes}] = {{}};" for number in range(len(elements))]
    kept = [
        f"shared[(({number} * high + line) * width + across) * {lanes} + k] = totals{number}[k];"
        for number in range(len(elements))
    ]
    lines = [
        f"__shared__ {kind} shared[{_THREADS * lanes * len(elements)}];",
        f"const int32 high = {_THREADS} / width, line = threadIdx.x / width, across = threadIdx.x % width;",
        "const int32 tile = blockIdx.x % tiles, part = blockIdx.x / tiles;",
        f"const int64 column = int64(tile * width + across) * {lanes};",
        "if (line < high && column < columns) {",
        *declared,
        *source.before,
        "#pragma unroll 4",
        "for (int64 row = part * high + line; row < rows; row += parts * high) {",
        *source.turn,
        f"for (int32 k = 0; k < {lanes}; ++k) {{",
        *source.inner,
        *(f"totals{number}[k] += {value};" for number, value in enumerate(source.values)),
        "}",
        "}",
        f"for (int32 k = 0; k < {lanes}; ++k) {{",
        *kept,
        "}",
        "}",
        "__syncthreads();",
        f"const int32 run_size = width * {lanes};",
        f"for (int32 e = threadIdx.x; e < {len(elements)} * run_size; e += {_THREADS}) {{",
        "const int32 which = e / run_size, place = e % run_size;",
        "const int64 target = int64(tile) * run_size + place;",
        "if (target < columns) {",
        f"{kind} total = 0;",
        "for (int32 k = 0; k < high; ++k) total += shared[(which * high + k) * run_size + place];",
        f"out[(int64(part) * {len(elements)} + which) * columns + target] = {rounded('total * scale', result)};",
        "}",
        "}",
    ]
    sizes = "int64 rows, int64 columns, int32 width, int32 tiles, int32 parts"
    return source.kernel(xp, sizes, lines, result, "tfray_row_sums")
