"""Operations that only look at values; constants and placeholders; unusual conversions."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.op_samples.array_samples import WORDS
from tfray.framework import dtypes
from tfray.ops.arrays import source_ops, tuple_ops
from tfray.ops.checks import print_assert_ops
from tfray.ops.math import conversion_ops


def _both(x, y):
    return tuple_ops.identity_n([x, y])


SAMPLES = [
    *[
        OpSample("Const", lambda value=value: source_ops.constant(value), [], lambda value=value: value)
        for value in (grid(2, 3), WORDS, np.int8(3))
    ],
    *[
        OpSample("PlaceholderWithDefault", source_ops.placeholder_with_default, [x], lambda x: x, {"shape": x.shape})
        for x in (grid(2, 3), WORDS)
    ],
    *[
        OpSample("CheckNumerics", print_assert_ops.check_numerics, [x], lambda x: x, {"message": "checked"})
        for x in (grid(2, 3), grid(), grid(0, 2))
    ],
    *[
        OpSample("Print", lambda x: print_assert_ops.Print(x, [x, "text"]), [x], lambda x: x)
        for x in (grid(2, 3), grid(), WORDS)
    ],
    OpSample("IdentityN", _both, [grid(2, 3), grid(4, seed=1)], lambda x, y: [x, y]),
    OpSample("IdentityN", _both, [grid(), np.array([True, False])], lambda x, y: [x, y], label="mixed"),
]

_FAR = np.array([-1e300, -3e9, -129.0, -0.6, 0.5, 1.0, 127.4, 4e4, 1e6, 3e9, 1e300])


def _saturated(x, wanted):
    if wanted.is_floating:
        return np.clip(x.astype(np.float64), float(wanted.min), float(wanted.max))
    limits = np.iinfo(wanted.numpy)
    return np.array([min(max(int(number), int(limits.min)), int(limits.max)) for number in x.tolist()], wanted.numpy)


SAMPLES += [
    *[
        OpSample(
            "SaturateCast",
            conversion_ops.saturate_cast,
            [_FAR],
            lambda x, wanted=wanted: _saturated(x, wanted),
            {"dtype": wanted},
            dtypes=[dtypes.float64],
            differentiable=(),
            label=wanted.name,
        )
        for wanted in (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.uint64)
    ],
    *[
        OpSample(
            "SaturateCast",
            conversion_ops.saturate_cast,
            [value],
            lambda x, wanted=wanted: _saturated(x, wanted),
            {"dtype": wanted},
            label=f"{value.dtype}-{wanted.name}",
        )
        for value in (np.array([-(2**63), -1, 0, 300, 2**63 - 1]), np.array([0, 300, 2**64 - 1], np.uint64))
        for wanted in (dtypes.int8, dtypes.uint8, dtypes.uint32, dtypes.float16)
    ],
    OpSample(
        "SaturateCast",
        conversion_ops.saturate_cast,
        [np.array([np.nan, np.inf, -np.inf])],
        lambda x: np.array([0, 2**31 - 1, -(2**31)], np.int32),
        {"dtype": "int32"},
        dtypes=[dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64],
        differentiable=(),
        label="not finite",
    ),
    *[
        OpSample("Bitcast", conversion_ops.bitcast, [x], lambda x, wanted=wanted: x.view(wanted), {"type": wanted})
        for x, wanted in [(np.int32([1, -2]), np.float32), (np.uint16(7), np.float16), (np.arange(3), np.float64)]
    ],
    OpSample(
        "Bitcast",
        conversion_ops.bitcast,
        [np.int32([[1, 2], [3, -1]])],
        lambda x: x[..., None].view(np.uint8),
        {"type": "uint8"},
        label="smaller",
    ),
    OpSample(
        "Bitcast",
        conversion_ops.bitcast,
        [np.int16([[[1, 2], [3, -1]]])],
        lambda x: x.view(np.int32)[..., 0],
        {"type": "int32"},
        label="larger",
    ),
]

ERRORS = [
    OpError("Bitcast", lambda x: conversion_ops.bitcast(x, "int64"), [np.int32([1, 2, 3])], "must be of size 2"),
    OpError(
        "Bitcast", lambda x: conversion_ops.bitcast(x, "int64"), [np.int32([1, 2, 3])], "does not make", at_run=True
    ),
    OpError(
        "CheckNumerics",
        lambda x: print_assert_ops.check_numerics(x, "loss"),
        [np.array([1, np.nan, -np.inf])],
        "loss: the tensor has NaN and Inf values",
        at_run=True,
    ),
]

TESTED_ELSEWHERE = {
    "Placeholder": "every row feeds placeholders",
    "Assert": "has no output: test_print_assert_ops.py",
    "PrintToFile": "has no output: test_print_assert_ops.py",
    "PrintV2": "has no output: test_print_assert_ops.py",
    "PyFunc": "its results depend on a Python function: test_script_ops.py",
    "PyFuncStateless": "its results depend on a Python function: test_script_ops.py",
}
