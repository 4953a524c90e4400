"""Elementwise arithmetic, rounding, comparison, logic and functions."""

from __future__ import annotations

import numpy as np
import scipy.special

from tests.support.op_samples import OpError, OpSample, binary_rows, grid, unary_rows
from tfray.framework import dtypes
from tfray.framework.graph import Tensor
from tfray.ops.math import math_ops, special_ops, transcendental_ops

WIDE = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
"""Dtypes in which functions with steep slopes are compared: 16 bits carry too little."""

SPECIAL_VALUES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5])


def _c_quotient(x, y):
    return np.trunc(x / y) if x.dtype.kind == "f" else (x - np.fmod(x, y)) // y


def _safe_quotient(x, y):
    return np.where(y == 0, 0, x / np.where(y == 0, 1, y))


def _complex_grid(*shape):
    return grid(*shape) + 1j * grid(*shape, seed=1)


ARITHMETIC = [
    *binary_rows("Add", math_ops.add, np.add),
    *binary_rows("Sub", math_ops.subtract, np.subtract),
    *binary_rows("Mul", math_ops.multiply, np.multiply),
    *binary_rows("RealDiv", math_ops.truediv, np.divide, second=(0.5, 3)),
    *binary_rows("SquaredDifference", math_ops.squared_difference, lambda x, y: np.conj(x - y) * (x - y)),
    *binary_rows("Maximum", math_ops.maximum, np.maximum),
    *binary_rows("Minimum", math_ops.minimum, np.minimum),
    *binary_rows("Pow", math_ops.pow, np.power, 0.5, 3, second=(1, 3), dtypes=(*WIDE, dtypes.int32, dtypes.uint8)),
    OpSample("Pow", math_ops.pow, [grid(2, 3), np.array(2.0)], np.power, differentiable=(0,), label="square"),
    OpSample("Pow", math_ops.pow, [grid(2, 3), np.array(3.0)], np.power, differentiable=(0,), label="cube"),
    *[
        OpSample("Pow", math_ops.pow, [grid(5, low=0.5, high=2), np.array(y)], np.power, label=f"{y}")
        for y in (1.0, 2.5, 4.0)
    ],
    *[
        OpSample(
            "Pow",
            math_ops.pow,
            [grid(5, low=0.5, high=2), np.array(y)],
            np.power,
            dtypes=dtypes.FLOATS,
            differentiable=(0,),
            label=f"{y}",
            tolerance=2,
        )
        for y in (-1.0, 0.5, -0.5, 0.0)
    ],
    *[
        OpSample(
            op, build, [grid(3, 2000), np.array(0.5)], reference, dtypes=dtypes.REAL, differentiable=(), label=label
        )
        for op, build, reference, label in [
            ("Maximum", math_ops.maximum, np.maximum, "long"),
            ("Minimum", math_ops.minimum, np.minimum, "long"),
        ]
    ],
    *[
        OpSample(
            op,
            build,
            [np.where(grid(5000) > 0, np.nan, grid(5000)), np.array(0.5)],
            reference,
            dtypes=dtypes.FLOATS,
            differentiable=(),
            label="nan",
        )
        for op, build, reference in [
            ("Maximum", math_ops.maximum, np.maximum),
            ("Minimum", math_ops.minimum, np.minimum),
        ]
    ],
    *binary_rows("DivNoNan", math_ops.div_no_nan, _safe_quotient, second=(0.5, 3), tolerance=3),
    OpSample(
        "DivNoNan",
        math_ops.div_no_nan,
        [np.array([1.0, 2.0, 0.0]), np.array([0.0, 4.0, 0.0])],
        _safe_quotient,
        differentiable=(0,),
        label="zeros",
    ),
    *unary_rows("Neg", math_ops.negative, np.negative),
    *unary_rows("Abs", math_ops.abs, np.abs),
    *unary_rows("Sign", math_ops.sign, np.sign, dtypes=dtypes.REAL),
    *[OpSample("Sign", math_ops.sign, [_complex_grid(2, 3)], np.sign, label="complex")],
    *unary_rows("Square", math_ops.square, np.square),
    *unary_rows("Sqrt", math_ops.sqrt, np.sqrt, 0.5, 4),
    *unary_rows("Rsqrt", math_ops.rsqrt, lambda x: 1 / np.sqrt(x), 0.5, 4, tolerance=2),
    *unary_rows("Reciprocal", math_ops.reciprocal, np.reciprocal, 0.5, 3, tolerance=2),
    *unary_rows("Exp", math_ops.exp, np.exp, -2, 2, tolerance=4),
    *unary_rows("Log", math_ops.log, np.log, 0.5, 4, tolerance=4),
    OpSample("AddN", lambda *xs: math_ops.add_n(xs, "total"), [grid(2, 3)], lambda x: x, label="one"),
    OpSample("AddN", lambda *xs: math_ops.add_n(xs), [grid(2, 3), grid(2, 3, seed=1)], np.add, label="two"),
    OpSample(
        "AddN",
        lambda *xs: math_ops.add_n(xs),
        [grid(2, 3, seed=seed) for seed in range(4)],
        lambda *xs: sum(xs),
        label="four",
        tolerance=2,
    ),
    OpSample(
        "AddN",
        lambda *xs: math_ops.add_n(xs),
        [grid(seed=seed) for seed in range(3)],
        lambda *xs: sum(xs),
        label="scalars",
        tolerance=2,
    ),
    OpSample(
        "AddN",
        lambda *xs: math_ops.accumulate_n(xs, shape=[2]),
        [grid(2), grid(2, seed=1)],
        np.add,
        label="accumulate",
    ),
]

ROUNDING = [
    *unary_rows("Floor", math_ops.floor, np.floor),
    *unary_rows("Ceil", math_ops.ceil, np.ceil),
    *unary_rows("Rint", math_ops.rint, np.rint),
    *unary_rows("Round", math_ops.round, np.rint),
    OpSample("Round", math_ops.round, [np.array([0.5, 1.5, 2.5, -0.5])], np.rint, differentiable=(), label="halves"),
    *binary_rows("FloorDiv", math_ops.floordiv, np.floor_divide, second=(1, 3)),
    *binary_rows("FloorMod", math_ops.floormod, np.remainder, second=(1, 3), tolerance=4),
    *binary_rows("TruncateDiv", math_ops.truncatediv, _c_quotient, second=(1, 3)),
    *binary_rows("TruncateMod", math_ops.truncatemod, np.fmod, second=(1, 3), tolerance=4),
    OpSample("FloorDiv", math_ops.div, [np.array([-7, 7]), np.array([2, 2])], np.floor_divide, label="div"),
    OpSample(
        "ClipByValue",
        math_ops.clip_by_value,
        [grid(3, 4), np.array(-1.0), np.array(2.0)],
        lambda x, low, high: np.clip(x, low, high),
    ),
    OpSample(
        "ClipByValue",
        math_ops.clip_by_value,
        [grid(3, 4), grid(4, low=-2, high=-1), grid(3, 1, low=1, high=2)],
        lambda x, low, high: np.clip(x, low, high),
    ),
]

COMPARISON = [
    OpSample(op, build, [x, y], reference, differentiable=(), label=label)
    for op, build, reference in [
        ("Equal", math_ops.equal, np.equal),
        ("NotEqual", math_ops.not_equal, np.not_equal),
        ("Less", math_ops.less, np.less),
        ("LessEqual", math_ops.less_equal, np.less_equal),
        ("Greater", math_ops.greater, np.greater),
        ("GreaterEqual", math_ops.greater_equal, np.greater_equal),
    ]
    for label, x, y in [
        ("same", np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])),
        ("broadcast", np.array([[1.0], [2.0]]), np.array([1.0, 2.0, 3.0])),
        ("scalars", np.array(2.0), np.array(2.0)),
        ("empty", np.zeros((0, 2)), np.zeros((1, 2))),
    ]
] + [
    OpSample(
        op,
        build,
        [np.array([b"a", b"b\0", b""], object), np.array([b"a", b"b", b"c"], object)],
        lambda x, y, f=reference: f(x, y).astype(bool),
        label="strings",
    )
    for op, build, reference in [
        ("Equal", math_ops.equal, np.equal),
        ("NotEqual", math_ops.not_equal, np.not_equal),
    ]
]

_TRUTHS = [np.array([True, True, False, False]), np.array([True, False, True, False])]
_BITS = [np.array([0b1100, -3, 7], np.int32), np.array([0b1010, 5, -1], np.int32)]

LOGIC = [
    OpSample("LogicalAnd", math_ops.logical_and, _TRUTHS, np.logical_and),
    OpSample("LogicalOr", math_ops.logical_or, _TRUTHS, np.logical_or),
    OpSample("NotEqual", math_ops.logical_xor, _TRUTHS, np.logical_xor, label="xor"),
    OpSample("LogicalAnd", math_ops.logical_and, [_TRUTHS[0], np.array(True)], np.logical_and),
    OpSample("LogicalNot", math_ops.logical_not, _TRUTHS[:1], np.logical_not),
    OpSample("LogicalNot", math_ops.logical_not, [np.array(True)], np.logical_not),
    OpSample("BitwiseAnd", math_ops.bitwise_and, _BITS, np.bitwise_and),
    OpSample("BitwiseOr", math_ops.bitwise_or, _BITS, np.bitwise_or),
    OpSample("BitwiseXor", math_ops.bitwise_xor, _BITS, np.bitwise_xor),
    OpSample("BitwiseXor", math_ops.bitwise_xor, [np.array([3, 250], np.uint8), np.uint8(255)], np.bitwise_xor),
    OpSample("Invert", math_ops.invert, _BITS[:1], np.invert),
    OpSample("LeftShift", math_ops.left_shift, [_BITS[0], np.array([0, 1, 3], np.int32)], np.left_shift),
    OpSample("RightShift", math_ops.right_shift, [_BITS[0], np.array([0, 1, 3], np.int32)], np.right_shift),
    OpSample("IsNan", math_ops.is_nan, [SPECIAL_VALUES], np.isnan, differentiable=()),
    OpSample("IsInf", math_ops.is_inf, [SPECIAL_VALUES], np.isinf, differentiable=()),
    OpSample("IsFinite", math_ops.is_finite, [SPECIAL_VALUES], np.isfinite, differentiable=()),
]

FUNCTIONS = [
    *unary_rows("Expm1", math_ops.expm1, np.expm1, -2, 2, tolerance=4),
    *unary_rows("Log1p", math_ops.log1p, np.log1p, -0.5, 4, tolerance=4),
    *unary_rows("Sigmoid", math_ops.sigmoid, scipy.special.expit, dtypes=dtypes.FLOATS),
    OpSample(
        "Sigmoid",
        math_ops.sigmoid,
        [np.array([-1e4, -90.0, 0.0, 90.0, 1e4])],
        scipy.special.expit,
        dtypes=dtypes.FLOATS,
        label="saturated",
    ),
    OpSample("Sigmoid", math_ops.sigmoid, [_complex_grid(2, 3)], lambda z: 1 / (1 + np.exp(-z)), tolerance=3),
    OpSample(
        "SigmoidGrad",
        transcendental_ops.sigmoid_grad,
        [grid(2, 3), grid(2, 3, seed=1)],
        lambda y, dy: dy * y * (1 - y),
        tolerance=4,
    ),
    *unary_rows("Sin", math_ops.sin, np.sin, tolerance=4),
    *unary_rows("Cos", math_ops.cos, np.cos, tolerance=4),
    *unary_rows("Tan", math_ops.tan, np.tan, -1.2, 1.2, tolerance=4),
    *unary_rows("Asin", math_ops.asin, np.arcsin, -0.8, 0.8, tolerance=4),
    *unary_rows("Acos", math_ops.acos, np.arccos, -0.8, 0.8, tolerance=4),
    *unary_rows("Atan", math_ops.atan, np.arctan, tolerance=4, dtypes=dtypes.FLOATS),
    OpSample("Atan", math_ops.atan, [_complex_grid(2, 3) / 5], np.arctan, tolerance=4),
    *binary_rows("Atan2", math_ops.atan2, np.arctan2, tolerance=4),
    *unary_rows("Sinh", math_ops.sinh, np.sinh, tolerance=4),
    *unary_rows("Cosh", math_ops.cosh, np.cosh, tolerance=4),
    *unary_rows("Tanh", math_ops.tanh, np.tanh, tolerance=4),
    OpSample(
        "TanhGrad",
        transcendental_ops.tanh_grad,
        [grid(2, 3), grid(2, 3, seed=1)],
        lambda y, dy: dy * (1 - y * y),
        tolerance=4,
    ),
    *unary_rows("Asinh", math_ops.asinh, np.arcsinh, tolerance=4),
    *unary_rows("Acosh", math_ops.acosh, np.arccosh, 1.3, 4, tolerance=4),
    *unary_rows("Atanh", math_ops.atanh, np.arctanh, -0.8, 0.8, tolerance=4),
    *unary_rows("Erf", math_ops.erf, scipy.special.erf, tolerance=2),
    *unary_rows("Erfc", math_ops.erfc, scipy.special.erfc, tolerance=2),
    *unary_rows("Lgamma", math_ops.lgamma, scipy.special.gammaln, 0.5, 5, tolerance=4),
    *unary_rows("Digamma", math_ops.digamma, scipy.special.digamma, 0.5, 5, tolerance=4),
    OpSample(
        "Polygamma",
        math_ops.polygamma,
        [np.array([[0.0], [1.0], [2.0]]), grid(3, 4, low=0.5, high=4)],
        lambda n, x: scipy.special.polygamma(n.astype(int), x),
        differentiable=(1,),
        tolerance=20,
    ),
    OpSample(
        "Zeta",
        math_ops.zeta,
        [grid(3, 1, low=2, high=5), grid(3, 4, low=0.5, high=4)],
        scipy.special.zeta,
        differentiable=(1,),
        tolerance=20,
    ),
]

SPECIAL = [
    *unary_rows("Erfinv", special_ops.erfinv, scipy.special.erfinv, -0.8, 0.8, tolerance=4),
    *unary_rows("Ndtri", special_ops.ndtri, scipy.special.ndtri, 0.1, 0.9, tolerance=4),
    *unary_rows("LogNdtr", special_ops.log_ndtr, scipy.special.log_ndtr, tolerance=4),
    *unary_rows("Erfcx", special_ops.erfcx, scipy.special.erfcx, tolerance=4),
    *unary_rows("BesselI0", special_ops.bessel_i0, scipy.special.i0, tolerance=4),
    *unary_rows("BesselI1", special_ops.bessel_i1, scipy.special.i1, tolerance=4),
    *unary_rows("BesselI0e", special_ops.bessel_i0e, scipy.special.i0e, tolerance=4),
    *unary_rows("BesselI1e", special_ops.bessel_i1e, scipy.special.i1e, tolerance=4),
    *[
        OpSample(
            op,
            build,
            [grid(3, 1, low=0.5, high=4), grid(3, 4, low=0.5, high=4, seed=1)],
            reference,
            # The derivative by the first argument has no gradient of its own, as in TensorFlow.
            differentiable=differentiable,
            twice=len(differentiable) == 1,
            tolerance=40,
            label="" if len(differentiable) == 1 else "both",
        )
        for op, build, reference in [
            ("Igamma", special_ops.igamma, scipy.special.gammainc),
            ("Igammac", special_ops.igammac, scipy.special.gammaincc),
        ]
        for differentiable in ((1,), (0, 1))
    ],
    OpSample(
        "Betainc",
        special_ops.betainc,
        [grid(3, 1, low=0.5, high=4), grid(4, low=0.5, high=4), grid(3, 4, low=0.1, high=0.9, seed=1)],
        scipy.special.betainc,
        differentiable=(2,),
        tolerance=40,
    ),
    OpSample(
        "Lgamma",
        special_ops.lbeta,
        [grid(3, 2, low=0.5, high=4)],
        lambda x: scipy.special.betaln(x[:, 0], x[:, 1]),
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=10,
        label="lbeta",
    ),
    *binary_rows("Xlogy", special_ops.xlogy, scipy.special.xlogy, second=(0.5, 3), tolerance=4),
    *binary_rows("Xlog1py", special_ops.xlog1py, scipy.special.xlog1py, second=(0.5, 3), tolerance=4),
    *binary_rows("Xdivy", special_ops.xdivy, np.divide, second=(0.5, 3), tolerance=2),
    *binary_rows("MulNoNan", math_ops.multiply_no_nan, np.multiply),
    *[
        OpSample(op, build, [x, y], lambda x, y: np.zeros(2), differentiable=(), label="zeros")
        for op, build, x, y in [
            ("Xlogy", special_ops.xlogy, np.zeros(2), np.array([0.0, 1.0])),
            ("Xlog1py", special_ops.xlog1py, np.zeros(2), np.array([-1.0, 1.0])),
            ("Xdivy", special_ops.xdivy, np.zeros(2), np.array([0.0, 1.0])),
            ("MulNoNan", math_ops.multiply_no_nan, np.array([np.inf, np.nan]), np.zeros(2)),
        ]
    ],
    OpSample(
        "NextAfter",
        special_ops.nextafter,
        [np.array([1.0, 2.0]), np.array([2.0, 1.0])],
        np.nextafter,
        dtypes=(dtypes.float64,),
        differentiable=(0,),
    ),
    OpSample(
        "Add",
        lambda x, c: special_ops.polyval([2.0, c, -1.0], x),
        [grid(4), grid()],
        lambda x, c: 2 * x * x + c * x - 1,
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=8,
        label="polyval",
    ),
]

COMPLEX = [
    OpSample("Complex", math_ops.complex, [grid(2, 3), grid(2, 3, seed=1)], lambda x, y: x + 1j * y),
    OpSample("Complex", math_ops.complex, [grid(2, 1), grid(3, seed=1)], lambda x, y: x + 1j * y),
    OpSample("Complex", math_ops.complex, [grid(), grid(seed=1)], lambda x, y: x + 1j * y),
    *[
        OpSample(op, build, [_complex_grid(*shape)], reference)
        for op, build, reference in [
            ("Real", math_ops.real, np.real),
            ("Imag", math_ops.imag, np.imag),
            ("Conj", math_ops.conj, np.conj),
            ("Angle", math_ops.angle, np.angle),
            ("ComplexAbs", math_ops.abs, np.abs),
        ]
        for shape in [(2, 3), (), (0, 3)]
    ],
]

OPERATORS = [
    OpSample("Add", lambda x: 1 + x, [grid(2)], lambda x: 1 + x, label="operator"),
    OpSample("Sub", lambda x: 2 - x, [grid(2)], lambda x: 2 - x, dtypes=dtypes.FLOATS, label="operator"),
    OpSample("Mul", lambda x: x * 3, [grid(2)], lambda x: x * 3, label="operator"),
    OpSample("RealDiv", lambda x: 1 / x, [grid(2)], lambda x: 1 / x, label="operator"),
    OpSample("RealDiv", Tensor.__truediv__, [np.array([7, -7], np.int32), np.int32(2)], np.divide, label="integers"),
    OpSample(
        "RealDiv",
        Tensor.__truediv__,
        [np.array([7, -7], np.int8), np.int8(2)],
        lambda x, y: np.float32(x) / np.float32(y),
        label="bytes",
    ),
    OpSample("FloorDiv", lambda x: x // 2, [grid(4)], lambda x: x // 2, label="operator"),
    OpSample("FloorMod", lambda x: x % 2, [grid(4)], lambda x: x % 2, label="operator", tolerance=4),
    OpSample("Pow", lambda x: x**2, [grid(4)], lambda x: x**2, label="operator"),
    OpSample("Neg", lambda x: -x, [grid(4)], lambda x: -x, label="operator"),
    OpSample("Abs", lambda x: abs(x), [grid(4)], np.abs, label="operator"),
    OpSample("Less", lambda x: x < 1, [grid(4)], lambda x: x < 1, label="operator"),
    OpSample("LessEqual", lambda x: x <= 1, [grid(4)], lambda x: x <= 1, label="operator"),
    OpSample("Greater", lambda x: x > 1, [grid(4)], lambda x: x > 1, label="operator"),
    OpSample("GreaterEqual", lambda x: x >= 1, [grid(4)], lambda x: x >= 1, label="operator"),
    OpSample("LogicalAnd", lambda x, y: x & y, _TRUTHS, np.logical_and, label="operator"),
    OpSample("LogicalOr", lambda x, y: x | y, _TRUTHS, np.logical_or, label="operator"),
    OpSample("NotEqual", lambda x, y: x ^ y, _TRUTHS, np.logical_xor, label="operator"),
    OpSample("LogicalNot", lambda x: ~x, _TRUTHS[:1], np.logical_not, label="operator"),
    OpSample("BitwiseAnd", lambda x, y: x & y, _BITS, np.bitwise_and, label="operator"),
    OpSample("BitwiseOr", lambda x, y: x | y, _BITS, np.bitwise_or, label="operator"),
    OpSample("BitwiseXor", lambda x, y: x ^ y, _BITS, np.bitwise_xor, label="operator"),
    OpSample("Invert", lambda x: ~x, _BITS[:1], np.invert, label="operator"),
]

SAMPLES = [*ARITHMETIC, *ROUNDING, *COMPARISON, *LOGIC, *FUNCTIONS, *SPECIAL, *COMPLEX, *OPERATORS]

ERRORS = [
    OpError("Add", math_ops.add, [np.zeros((2, 3)), np.zeros(2)], r"\(2, 3\) and \(2,\). Dimensions must be equal"),
    OpError("Add", math_ops.add, [np.zeros(2), np.zeros(2, np.float32)], "float32, expected float64"),
    OpError("Exp", math_ops.exp, [np.zeros(2, np.int32)], "DataType int32 not in list of allowed"),
    OpError(
        "LogicalAnd",
        math_ops.logical_and,
        [np.zeros(2), np.zeros(2)],
        "has type float64 that does not match expected type of bool",
    ),
    OpError("AddN", lambda x, y: math_ops.add_n([x, y]), [np.zeros(2), np.zeros(3)], "incompatible"),
    OpError(
        "ClipByValue",
        math_ops.clip_by_value,
        [np.zeros(2), np.zeros((3, 2)), np.float64(1)],
        "do not broadcast to the shape",
    ),
    OpError("FloorDiv", math_ops.floordiv, [np.ones(2, int), np.array([1, 0])], "division by zero", at_run=True),
    OpError("FloorMod", math_ops.floormod, [np.ones(2, int), np.array([1, 0])], "division by zero", at_run=True),
    OpError("TruncateDiv", math_ops.truncatediv, [np.ones(2, int), np.array(0)], "division by zero", at_run=True),
    OpError("Pow", math_ops.pow, [np.ones(2, int), np.array(-1)], "Integers to negative integer powers", at_run=True),
]
