"""The samples of operations as calls: built in a graph, and compared with what is expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.op_samples import TOLERANCES, OpSample, all_samples, widened
from tfray.framework import dtypes
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.ops.arrays.source_ops import constant, placeholder

SAMPLES = all_samples()


CASES = [
    pytest.param(sample, dtype, id=f"{sample}-{dtype.name if dtype else 'as_is'}")
    for sample in SAMPLES
    for dtype in sample.swept_dtypes()
]


def expected_values(sample: OpSample, arrays: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        expected = sample.reference(*map(widened, arrays))
    return list(expected) if isinstance(expected, (list, tuple)) else [expected]


def build(sample: OpSample, arrays: list[Any], mode: str) -> tuple[dict[Tensor, Any], list[Tensor]]:
    """The sample in the current graph: what to feed, and its outputs."""
    tensors: list[Any] = []
    feeds: dict[Tensor, Any] = {}
    for index, array in enumerate(arrays):
        if index in sample.sizes and mode != "fed sizes":
            tensors.append(constant(array))
            continue
        shape = {"unknown sizes": [None] * array.ndim, "unknown rank": None}.get(mode, array.shape)
        tensors.append(placeholder(as_dtype(array.dtype), shape))
        feeds[tensors[-1]] = read_only(array)
    return feeds, as_list(sample.build(*tensors, **sample.kwargs))


def read_only(array: Any) -> Any:
    array = array.view()
    array.flags.writeable = False
    return array


def as_list(outputs: Any) -> list[Tensor]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def operations_of(op_type: str, outputs: list[Tensor]) -> list[Operation]:
    return [op for op in outputs[0].graph.get_operations() if op.type == op_type]


def assert_as_inferred(tensor: Tensor, value: Any, fully: bool) -> None:
    assert np.asarray(value).dtype == tensor.dtype.numpy, f"{tensor!r} computed as {np.asarray(value).dtype}"
    assert tensor.shape.is_compatible_with(np.shape(value)), f"{tensor!r} computed in shape {np.shape(value)}"
    if fully:
        assert tensor.shape.is_fully_defined(), f"{tensor!r}: the shape {np.shape(value)} could have been inferred"


def assert_equal(value: Any, expected: Any, factor: float, what: str) -> None:
    value = np.asarray(value)
    expected = np.asarray(expected)
    assert value.shape == expected.shape, f"{what}: shape {value.shape}, expected {expected.shape}"
    tolerance = TOLERANCES.get(value.dtype)
    if tolerance is None:
        assert_same(value, expected.astype(value.dtype), what)
        return
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        expected = expected.astype(value.dtype).astype(wide)
    np.testing.assert_allclose(
        value.astype(wide), expected, rtol=factor * tolerance, atol=factor * tolerance, err_msg=what
    )


def assert_same(value: Any, expected: Any, what: str) -> None:
    np.testing.assert_array_equal(np.asarray(value), np.asarray(expected), err_msg=what)


DIFFERENTIABLE = [sample for sample in SAMPLES if sample.differentiable_inputs()]


def enumerate_fed(sample: OpSample, feeds: dict[Tensor, Any], mode: str) -> list[tuple[int, Tensor]]:
    fed = [i for i in range(len(sample.inputs)) if i not in sample.sizes or mode == "fed sizes"]
    return list(zip(fed, feeds, strict=True))


def session_dtype(sample: OpSample) -> DType | None:
    """The dtype of most programs where the sample has it."""
    swept = list(sample.swept_dtypes())
    return dtypes.float32 if dtypes.float32 in swept else swept[0]
