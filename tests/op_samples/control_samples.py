"""Operations that only look at values; constants and placeholders."""

from __future__ import annotations

import numpy as np

from tests.op_samples import OpError, OpSample, grid
from tests.op_samples.array_samples import WORDS
from tfray.ops import control_ops, source_ops

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
        OpSample("CheckNumerics", control_ops.check_numerics, [x], lambda x: x, {"message": "checked"})
        for x in (grid(2, 3), grid(), grid(0, 2))
    ],
    *[
        OpSample("Print", lambda x: control_ops.Print(x, [x, "text"]), [x], lambda x: x)
        for x in (grid(2, 3), grid(), WORDS)
    ],
]

ERRORS = [
    OpError(
        "CheckNumerics",
        lambda x: control_ops.check_numerics(x, "loss"),
        [np.array([1, np.nan, -np.inf])],
        "loss: the tensor has NaN and Inf values",
        at_run=True,
    ),
]

TESTED_ELSEWHERE = {
    "Placeholder": "every row feeds placeholders",
    "Assert": "has no output: test_control_ops.py",
    "PrintV2": "has no output: test_control_ops.py",
    "PyFunc": "its results depend on a Python function: test_script_ops.py",
    "PyFuncStateless": "its results depend on a Python function: test_script_ops.py",
}
