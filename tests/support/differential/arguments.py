"""Arguments of random calls: tensors of the program where one fits, arrays otherwise.

A row of calls has the names of public functions that take the same, and a function from the `Pool` to positional
arguments; `named` at the end gives the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.support.differential.calls import FLOATS, INTS, NUMBERS, Call, Maker, Pool, ref

KINDS = {
    "f": FLOATS,
    "i": INTS,
    "n": NUMBERS,
    "b": ("bool",),
    "c": ("complex64", "complex128"),
    "u": ("uint8",),
    "s": ("string",),
    "g": ("float32",),
    "a": (*NUMBERS, "bool", "complex64", "string", "uint8", "float16"),
}

Row = Callable[[Pool], list[Any]]


def array(pool: Pool, dtype: str, shape: Any, low: float = -2.0, high: float = 2.0, kind: str = "") -> dict[str, Any]:
    """A constant tensor of random numbers; of the kind "definite", a positive definite matrix."""
    made = {"array": list(shape), "of": dtype, "low": low, "high": high, "seed": pool.small(0, 10**6)}
    return {**made, "kind": kind} if kind else made


def shape_of(x: Any) -> list[int]:
    """The shape of an argument."""
    return list(x["array"]) if "array" in x else list(x["shape"])


def dtype_of(x: Any) -> str:
    """The dtype of an argument."""
    return x["of"] if "array" in x else x["dtype_name"]


def some(pool: Pool, kinds: str, rank: Any = None, least: int = 0, most: int = 5, full: bool = False) -> dict[str, Any]:
    """A tensor of the program whose shape is known, or an array: of this rank, not empty if `full`."""
    dtypes = tuple(dict.fromkeys(name for kind in kinds for name in KINDS[kind]))

    def fits(each: Any) -> bool:
        fitting = len(each.shape) == rank if rank is not None else least <= len(each.shape) <= most
        if each.dtype not in dtypes or not fitting or None in each.shape:
            return False
        return int(full) <= math.prod(each.shape) < 3000

    found = pool.pick(fits) if pool.chance(0.7) else None
    if found is not None:
        return {**ref(found), "shape": list(found.shape), "dtype_name": found.dtype}
    sizes = [pool.small(1, 5) for _ in range(least + pool.small(0, 2) if rank is None else rank)]
    return array(pool, pool.choose(dtypes), sizes)


def like(pool: Pool, x: Any, shape: Any = None, low: float = -2.0, high: float = 2.0) -> dict[str, Any]:
    """An array of an argument's dtype, and its shape if no other is given."""
    return array(pool, dtype_of(x), shape_of(x) if shape is None else shape, low, high)


def square(pool: Pool, kind: str = "", dtypes: Any = FLOATS) -> dict[str, Any]:
    """A square matrix, or a batch of them."""
    size = pool.small(1, 4)
    return array(pool, pool.choose(dtypes), [2] * pool.chance(0.3) + [size, size], kind=kind)


def picture(pool: Pool, rank: int = 4, depth: int = 3, dtype: str = "float32") -> dict[str, Any]:
    """An image, or a batch of them, of numbers from 0 to 1 (0 to 255 if whole)."""
    high = 256 if dtype == "uint8" else 1.0
    return array(pool, dtype, [pool.small(1, 3)] * (rank - 3) + [pool.small(2, 7), pool.small(2, 7), depth], 0.0, high)


def sparse(pool: Pool, dtypes: Any = FLOATS, rank: int = 2, shape: Any = None) -> dict[str, Any]:
    """A sparse tensor."""
    sizes = shape or [pool.small(1, 5) for _ in range(rank)]
    return {"sparse": sizes, "of": pool.choose(dtypes), "seed": pool.small(0, 10**6)}


def words(pool: Pool, shape: Any = None) -> dict[str, Any]:
    """Strings."""
    return array(pool, "string", [pool.small(1, 4)] if shape is None else shape)


def dtype(pool: Pool, *names: str) -> dict[str, Any]:
    """One of these dtypes, as an argument."""
    return {"dtype": pool.choose(names)}


def ids(pool: Pool, shape: Any, low: int, high: int, of: str = "int32") -> dict[str, Any]:
    """Whole numbers."""
    return array(pool, of, shape, low, high)


def maker(name: str, row: Row) -> Maker:
    """A row as a maker."""

    def make(pool: Pool) -> Call | None:
        args = row(pool)
        options = args.pop() if args and isinstance(args[-1], dict) and "named" in args[-1] else {}
        if pool.chance(0.03):
            spoil(pool, args, options)
        return Call(name, args, {key: value for key, value in options.items() if key != "named"})

    return make


def spoil(pool: Pool, args: list[Any], options: dict[str, Any]) -> None:
    """Make one argument wrong, or at least another."""
    places = [(args, i) for i in range(len(args))] + [(options, key) for key in options if key != "named"]
    if not places:
        return
    holder, key = pool.choose(places)
    other = pool.pick(lambda each: True)
    wrong: list[Any] = [None, -1, 100, 1.5, "x", [], [1, 2, 3], [[1], [2]], *([ref(other)] * 4 if other else [])]
    if isinstance(holder[key], int) and not isinstance(holder[key], bool):
        wrong += [holder[key] + 1, holder[key] - 1, -holder[key]] * 3
    holder[key] = pool.choose(wrong)


def named(**options: Any) -> dict[str, Any]:
    """Named arguments."""
    return {"named": True, **options}


def pair(pool: Pool, kinds: str, **options: Any) -> list[Any]:
    """Two arguments of one dtype and shape."""
    x = some(pool, kinds, **options)
    return [x, like(pool, x)]


def convolved(pool: Pool, rank: int, transposed: bool = False) -> list[Any]:
    """Input and filter of a convolution over `rank` axes."""
    x = array(pool, pool.choose(FLOATS), [pool.small(1, 3), *(pool.small(3, 7) for _ in range(rank)), pool.small(1, 4)])
    depths = [pool.small(1, 4), shape_of(x)[-1]] if transposed else [shape_of(x)[-1], pool.small(1, 4)]
    return [x, like(pool, x, [*(pool.small(1, 4) for _ in range(rank)), *depths])]


def padding(pool: Pool) -> str:
    """SAME or VALID."""
    return pool.choose(["SAME", "VALID"])


def transposed(pool: Pool, rank: int) -> list[Any]:
    """Arguments of a transposed convolution."""
    step, how = pool.small(1, 3), padding(pool)
    x, filters = convolved(pool, rank, transposed=True)
    sizes = shape_of(x)[1:-1]
    outer = [n * step if how == "SAME" else (n - 1) * step + k for n, k in zip(sizes, shape_of(filters), strict=False)]
    full = [shape_of(x)[0], *outer, shape_of(filters)[-2]]
    strides = step if rank == 1 else [1, *[step] * rank, 1]
    return [x, filters, full, strides, named(padding=how)]


def pooled(pool: Pool, rank: int, scalar: bool = False) -> list[Any]:
    """Arguments of pooling."""
    x, _ = convolved(pool, rank)
    size, step = pool.small(1, 4), pool.small(1, 3)
    if scalar:
        return [x, size, step, padding(pool)]
    return [x, [1, *[size] * rank, 1], [1, *[step] * rank, 1], padding(pool)]


def boxes(pool: Pool, count: int) -> dict[str, Any]:
    """Boxes: corners from 0 to 1, in order."""
    low = pool.random.uniform(0, 0.6, (count, 2))
    return {"values": np.concatenate([low, low + pool.random.uniform(0.1, 0.4, (count, 2))], 1).round(3).tolist()}


def segments(pool: Pool, x: Any) -> list[int]:
    """Sorted numbers, one for each row."""
    return np.sort(pool.random.integers(0, 3, shape_of(x)[0])).tolist()


def blocks_of(pool: Pool, back: bool) -> list[Any]:
    """Arguments of `space_to_batch_nd`, and of the way back."""
    x = array(pool, "float32", [4 if back else 2, 4, 6, 1])
    widths = [[pool.small(0, 2) * 2, 0], [0, 0]]
    return [x, [2, 2], widths]


def rows_of_variable(pool: Pool) -> list[Any]:
    """A start, its dtype, indices, and as many rows."""
    name = pool.choose(["float32", "float64", "int32"])
    indices = [pool.small(0, 4) for _ in range(pool.small(1, 4))]
    start = pool.random.integers(1, 9, (4, 2)).tolist()
    return [start, name, indices, array(pool, name, [len(indices), 2], 1, 5)]


def sequence(pool: Pool) -> list[Any]:
    """Logits over time, and lengths."""
    time, batch = pool.small(3, 6), pool.small(1, 3)
    return [array(pool, "float32", [time, batch, 4]), [pool.small(2, time + 1) for _ in range(batch)]]


def labels_and_logits(pool: Pool) -> list[Any]:
    x = some(pool, "f", rank=2, full=True)
    return [like(pool, x, low=0.0, high=1.0), x]


def predictions(pool: Pool) -> list[Any]:
    """Labels and predictions of one shape."""
    shape = pool.choose([[4], [2, 3]])
    return [array(pool, "float32", shape, 0, 1), array(pool, "float32", shape, 0.01, 0.99)]


def makers(rows: Iterable[tuple[str, Row]]) -> list[Maker]:
    """A maker for each function of the rows."""
    return [maker(name, row) for names, row in rows for name in names.split()]
