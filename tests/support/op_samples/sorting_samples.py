"""Sorting, searching in sorted rows, places, and tensors with changed slices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.ops.arrays import tensor_scatter_ops
from tfray.ops.checks import check_ops
from tfray.ops.math import sorting_ops

DESCENDING = {"direction": "DESCENDING"}


def order(values: Any, axis: int = -1, direction: str = "ASCENDING") -> Any:
    """The stable order."""
    keys = -values.astype(np.float64) if direction == "DESCENDING" else values
    return np.argsort(keys, axis=axis, kind="stable").astype(np.int32)


def sort_rows() -> list[OpSample]:
    rows = []
    for values, kwargs in (
        (grid(3, 5), {}),
        (grid(3, 5), DESCENDING),
        (grid(4, 3, 2), {"axis": 0}),
        (grid(4, 3, 2), {"axis": -2, **DESCENDING}),
        (grid(0, 3), {}),
    ):

        def ordered(x: Any, kwargs: Any = kwargs) -> Any:
            return np.take_along_axis(x, order(x, **kwargs), axis=kwargs.get("axis", -1))

        modes = ("known",) if "axis" in kwargs else ("known", "unknown sizes", "unknown rank")
        label = "-".join(map(str, kwargs.values()))
        common: dict[str, Any] = {"kwargs": kwargs, "modes": modes, "label": label}
        rows += [
            OpSample("Sort", sorting_ops.sort, [values], ordered, **common),
            OpSample("ArgSort", sorting_ops.argsort, [values], lambda x, k=kwargs: order(x, **k), **common),
        ]
    ties = np.array([2, 1, 2, 1, 1], np.int32)
    rows += [
        OpSample("ArgSort", sorting_ops.argsort, [ties], order, label="ties"),
        OpSample(
            "ArgSort",
            sorting_ops.argsort,
            [ties],
            lambda x: order(x, **DESCENDING),
            kwargs=DESCENDING,
            label="ties down",
        ),
    ]
    for n, reverse in ((0, False), (2, False), (1, True)):
        rows.append(
            OpSample(
                "NthElement",
                sorting_ops.nth_element,
                [grid(3, 5), np.int32(n)],
                lambda x, n, r=reverse: np.sort(x, axis=-1)[..., -1 - n if r else n],
                kwargs={"reverse": reverse},
                label="down" if reverse else "",
            )
        )
    return rows


def search_rows() -> list[OpSample]:
    rows = []
    unsigned = [dtype for dtype in dtypes.REAL if dtype.is_unsigned]
    signed = [dtype for dtype in dtypes.REAL if not dtype.is_unsigned]
    for side, swept in itertools.product(("left", "right"), (signed, unsigned)):
        # As unsigned integers, negative numbers would not ascend.
        sequence, values = (np.abs(x) if swept is unsigned else x for x in (grid(2, 3, 6), grid(2, 3, 4, seed=1)))
        rows.append(
            OpSample(
                "SearchSorted",
                sorting_ops.searchsorted,
                [np.sort(sequence, axis=-1), np.round(values)],
                lambda rows, values, side=side: np.array(
                    [
                        [np.searchsorted(r, v, side) for r, v in zip(*pair, strict=True)]
                        for pair in zip(rows, values, strict=True)
                    ],
                    np.int64,
                ),
                kwargs={"side": side, "out_type": dtypes.int64},
                dtypes=swept,
                label=side,
            )
        )
    rows += [
        OpSample(
            "UnravelIndex",
            sorting_ops.unravel_index,
            [np.array([5, 0, 23, 7], np.int32), np.array([2, 3, 4], np.int32)],
            lambda places, sizes: np.array(np.unravel_index(places, sizes), np.int32),
        ),
        OpSample(
            "UnravelIndex",
            sorting_ops.unravel_index,
            [np.int64(7), np.array([4, 2], np.int64)],
            lambda place, sizes: np.array(np.unravel_index(place, sizes), np.int64),
        ),
    ]
    return rows


def scatter_rows() -> list[OpSample]:
    ufuncs = {"update": None, "add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum}
    names = {"update": "Update", "add": "Add", "sub": "Sub", "max": "Max", "min": "Min"}
    rows = []
    for kind, ufunc in ufuncs.items():

        def changed(tensor: Any, indices: Any, updates: Any, ufunc: Any = ufunc) -> Any:
            result = tensor.copy()
            for place in np.ndindex(indices.shape[:-1]):
                at = tuple(indices[place])
                result[at] = updates[place] if ufunc is None else ufunc(result[at], updates[place])
            return result

        for tensor, indices, updates in (
            (grid(5, 3), np.array([[4], [1]], np.int32), grid(2, 3, seed=1)),
            (grid(3, 4), np.array([[[0, 1]], [[2, 3]]], np.int64), grid(2, 1, seed=1)),
            (grid(3, 2), np.zeros((0, 1), np.int32), np.zeros((0, 2))),
            *([] if ufunc is None else [(grid(4), np.array([[1], [1], [3]], np.int32), grid(3, seed=1))]),
        ):
            function = getattr(tensor_scatter_ops, f"tensor_scatter_{kind}")
            floats = {"dtypes": dtypes.FLOATS} if kind in ("max", "min") else {}
            rows.append(
                OpSample(f"TensorScatter{names[kind]}", function, [tensor, indices, updates], changed, **floats)
            )
    return rows


SAMPLES = [
    *sort_rows(),
    *search_rows(),
    *scatter_rows(),
    OpSample(
        "EnsureShape", check_ops.ensure_shape, [grid(2, 3)], lambda x: x, kwargs={"shape": [None, 3]}, modes=("known",)
    ),
]
ERRORS = [
    OpError("Sort", sorting_ops.sort, [np.float32(1)], "at least rank 1"),
    OpError("Sort", lambda x: sorting_ops.sort(x, direction="UP"), [np.zeros(3)], "ASCENDING or DESCENDING"),
    OpError("NthElement", sorting_ops.nth_element, [np.zeros(3), np.int32(3)], "must have last dimension > n = 3"),
    OpError("NthElement", sorting_ops.nth_element, [np.zeros(3), np.int32(-1)], "must be non-negative but is -1"),
    OpError("NthElement", sorting_ops.nth_element, [np.zeros(3), np.int32([1])], "must be scalar but has rank 1"),
    OpError("NthElement", sorting_ops.nth_element, [np.float64(3), np.int32(0)], "Input must be >= 1-D", at_run=True),
    OpError("NthElement", sorting_ops.nth_element, [np.zeros(3), np.int32(-7)], "Need n >= 0, got -7", at_run=True),
    OpError("NthElement", sorting_ops.nth_element, [np.zeros(3), np.int32(3)], r"at least n\+1 columns", at_run=True),
    OpError("SearchSorted", sorting_ops.searchsorted, [np.zeros((2, 3)), np.zeros((3, 3))], "as many rows"),
    OpError(
        "SearchSorted", sorting_ops.searchsorted, [np.zeros((2, 3)), np.zeros((3, 3))], "as many rows", at_run=True
    ),
    OpError("searchsorted", lambda x: sorting_ops.searchsorted(x, x, "middle"), [np.zeros(3)], "'left' or 'right'"),
    OpError(
        "UnravelIndex",
        sorting_ops.unravel_index,
        [np.array([9], np.int32), np.array([2, 3], np.int32)],
        "not within the 6 elements",
        at_run=True,
    ),
    OpError(
        "TensorScatterAdd",
        tensor_scatter_ops.tensor_scatter_add,
        [np.zeros((3, 2)), np.array([[1]], np.int32), np.zeros((1, 3))],
        "incompatible",
    ),
    OpError(
        "TensorScatterUpdate",
        tensor_scatter_ops.tensor_scatter_update,
        [np.zeros((3, 2)), np.array([[1]], np.int32), np.zeros((1, 3))],
        "do not fit",
        at_run=True,
    ),
]
ERRORS += [
    OpError("EnsureShape", lambda x: check_ops.ensure_shape(x, [3, None]), [np.zeros((2, 3))], "incompatible"),
    OpError("EnsureShape", lambda x: check_ops.ensure_shape(x, [3, None]), [np.zeros((2, 3))], "expected", at_run=True),
]
TESTED_ELSEWHERE = dict.fromkeys(
    (
        "FakeQuantWithMinMaxArgs",
        "FakeQuantWithMinMaxArgsGradient",
        "FakeQuantWithMinMaxVars",
        "FakeQuantWithMinMaxVarsGradient",
        "FakeQuantWithMinMaxVarsPerChannel",
        "FakeQuantWithMinMaxVarsPerChannelGradient",
    ),
    "the gradient is not that of the rounding: tests/ops/math/test_array_functions.py",
)
