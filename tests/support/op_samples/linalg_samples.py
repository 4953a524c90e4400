"""Products of matrices and tensors."""

from __future__ import annotations

import itertools

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.op_samples.array_samples import build_op
from tfray.framework import dtypes
from tfray.ops.linalg import norm_ops
from tfray.ops.math import einsum_ops, linalg_ops

WIDE = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def _flip(x, transpose, adjoint=False):
    x = x.swapaxes(-1, -2) if transpose or adjoint else x
    return x.conj() if adjoint else x


def _matmul_row(op, a, b, flip_a, flip_b):
    a = a.swapaxes(-1, -2) if flip_a else a
    b = b.swapaxes(-1, -2) if flip_b else b
    return OpSample(
        op,
        linalg_ops.matmul,
        [np.ascontiguousarray(a), np.ascontiguousarray(b)],
        lambda a, b: np.matmul(_flip(a, flip_a), _flip(b, flip_b), dtype=a.dtype),
        {"transpose_a": flip_a, "transpose_b": flip_b},
        modes=("known", "unknown sizes") if op == "MatMul" else ("known", "unknown sizes", "unknown rank"),
        tolerance=20,
        label="a" * flip_a + "b" * flip_b,
    )


FLIPS = list(itertools.product((False, True), repeat=2))

PRODUCTS = [
    *[_matmul_row("MatMul", grid(3, 4), grid(4, 2, seed=1), *flips) for flips in FLIPS],
    *[_matmul_row("MatMul", grid(0, 4), grid(4, 2), False, False), _matmul_row("MatMul", grid(2, 0), grid(0, 3), 0, 0)],
    *[_matmul_row("BatchMatMul", grid(2, 3, 4), grid(2, 4, 2, seed=1), *flips) for flips in FLIPS],
    *[_matmul_row("BatchMatMul", grid(2, 3, 4), grid(4, 2, seed=1), *flips) for flips in FLIPS],
    *[_matmul_row("BatchMatMul", grid(3, 1, 2, 3), grid(2, 3, 2, seed=1), *flips) for flips in FLIPS],
    _matmul_row("BatchMatMul", grid(0, 2, 3), grid(3, 2), False, False),
    _matmul_row("BatchMatMul", grid(2, 3, 0), grid(0, 2), False, False),
    OpSample(
        "MatMul",
        linalg_ops.matmul,
        [grid(4, 3) + 1j * grid(4, 3, seed=1), grid(2, 4) + 1j * grid(2, 4, seed=1)],
        lambda a, b: a.conj().T @ b.conj().T,
        {"adjoint_a": True, "adjoint_b": True},
        modes=("known", "unknown sizes"),
        tolerance=10,
        label="adjoint",
    ),
    OpSample(
        "MatMul",
        lambda a, b: a @ b,
        [grid(2, 3), grid(3, 2)],
        lambda a, b: np.matmul(a, b, dtype=a.dtype),
        modes=("known", "unknown sizes"),
        tolerance=20,
        label="operator",
    ),
]

PARTS = [
    OpSample(
        "_MatMulPart",
        build_op(linalg_ops.MAT_MUL_PART, transpose_a=flips[0], transpose_b=flips[1], begin=1, size=3, name="part"),
        [grid(4, 2) if flips[0] else grid(2, 4), grid(5, 4, seed=1) if flips[1] else grid(4, 5, seed=1)],
        lambda a, b, flips=flips: np.matmul(_flip(a, flips[0]), _flip(b, flips[1]), dtype=a.dtype)[:, 1:4],
        modes=("known", "unknown sizes"),
        tolerance=20,
        differentiable=(),
    )
    for flips in FLIPS
]

TENSORDOT = [
    OpSample(
        "MatMul",
        lambda a, b, axes=axes: linalg_ops.tensordot(a, b, axes),
        [a, b],
        lambda a, b, axes=axes: np.tensordot(a, b, axes),
        dtypes=WIDE,
        modes=("known", "unknown sizes"),
        tolerance=20,
        label=f"tensordot-{axes}",
    )
    for a, b, axes in [
        (grid(2, 3, 4), grid(4, 5, seed=1), 1),
        (grid(2, 3, 4), grid(3, 4, 2, seed=1), 2),
        (grid(2, 3), grid(4, seed=1), 0),
        (grid(2, 3, 4), grid(4, 3, 2, seed=1), [[1, 2], [1, 0]]),
        (grid(2, 3, 4), grid(5, 3, seed=1), [1, 1]),
        (grid(3), grid(3, seed=1), 1),
    ]
]


def _numpy_norm(ord, axis, keep):
    def reference(x):
        if axis is None:
            return np.linalg.norm(x.ravel(), None if ord == "euclidean" else ord)
        numpy_ord = {"euclidean": "fro" if isinstance(axis, tuple) else 2}.get(ord, ord)
        return np.linalg.norm(x, numpy_ord, axis, keep)

    return reference


COMPOSED = [
    OpSample(
        "MatrixDiagPart",
        linalg_ops.trace,
        [grid(2, 3, 4)],
        lambda x: np.trace(x, axis1=1, axis2=2, dtype=x.dtype),
        dtypes=WIDE,
        tolerance=4,
        label="trace",
    ),
    *[
        OpSample(
            op,
            lambda x, ord=ord, axis=axis, keep=keep: norm_ops.norm(x, ord, axis, keep),
            [array],
            _numpy_norm(ord, axis, keep),
            dtypes=WIDE,
            modes=("known", "unknown sizes"),
            tolerance=20,
            label=f"norm-{ord}-{axis}",
        )
        for op, array, ord, axis, keep in [
            ("Sqrt", grid(2, 3), "euclidean", None, False),
            ("Sqrt", grid(2, 3), "euclidean", 1, True),
            ("Sqrt", grid(2, 3, 4), "fro", (0, 2), False),
            ("Sum", grid(2, 3), 1, 0, False),
            ("Max", grid(2, 3), np.inf, 0, False),
            ("Pow", grid(2, 3), 3, 0, True),
            ("Max", grid(2, 3, 4), 1, (1, 2), False),
            ("Max", grid(2, 3, 4), np.inf, (1, 2), True),
        ]
    ],
]

EINSUM = [
    OpSample(
        "Einsum",
        lambda *xs, equation=equation: einsum_ops.einsum(equation, *xs),
        [grid(*shape, seed=i) for i, shape in enumerate(shapes)],
        lambda *xs, equation=equation: np.einsum(equation, *xs),
        dtypes=(*WIDE, dtypes.float16, dtypes.int32),
        modes=("known", "unknown sizes", "unknown rank")[: 2 if "ii" in equation or "jj" in equation else 3],
        tolerance=30,
        label=equation,
    )
    for equation, shapes in [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
        ("bij,kj->bik", [(2, 3, 4), (2, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->i", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,i->", [(3,), (3,)]),
        ("bi,bi->b", [(2, 3), (2, 3)]),
        ("ijm,jk->ik", [(2, 3, 2), (3, 4)]),
        ("abc,bcd,da->a", [(2, 3, 2), (3, 2, 4), (4, 2)]),
        ("...ij,...jk->...ik", [(2, 3, 2), (2, 2)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
        ("i...,...j->...ij", [(3, 2, 2), (2, 4)]),
        ("i...k->...i", [(2, 3, 4)]),
        ("...i,i->...", [(1, 3, 2), (2,)]),
        ("...i,...,ij->...j", [(1, 3, 2), (4, 1), (2, 2)]),
        ("ii->i", [(3, 3)]),
        ("ii->", [(3, 3)]),
        ("bii,bi->b", [(2, 3, 3), (2, 3)]),
        ("ij,ji->", [(2, 3), (3, 2)]),
        ("ij,jk->ik", [(0, 3), (3, 2)]),
        ("ij,jk->ik", [(2, 0), (0, 2)]),
        ("->...", [()]),
        ("ij,jk...k->i...", [(3, 2), (2, 4, 1, 4)]),
        ("ijj,k->ik", [(2, 3, 3), (4,)]),
    ]
]

CROSSES = [
    OpSample("Cross", linalg_ops.cross, [grid(*shape), grid(*shape, seed=1)], np.cross, tolerance=10)
    for shape in [(3,), (2, 4, 3), (0, 3)]
]

SAMPLES = [*CROSSES, *PRODUCTS, *PARTS, *TENSORDOT, *COMPOSED, *EINSUM]

_A, _B = np.zeros((2, 3)), np.zeros((2, 3))

ERRORS = [
    OpError("Cross", linalg_ops.cross, [np.ones((2, 2)), np.ones((2, 2))], "must be 3"),
    OpError("Cross", linalg_ops.cross, [np.ones(3), np.ones((2, 3))], "one shape", at_run=True),
    OpError("MatMul", linalg_ops.matmul, [_A, _B], "Dimensions must be equal, but are 3 and 2"),
    OpError("MatMul", linalg_ops.matmul, [_A, np.zeros(3)], "rank"),
    OpError("BatchMatMul", linalg_ops.matmul, [np.zeros((2, 2, 3)), np.zeros((3, 3, 2))], "broadcast"),
    OpError("BatchMatMul", linalg_ops.matmul, [_A, _B], "cannot multiply matrices", at_run=True),
    OpError("BatchMatMul", linalg_ops.matmul, [_A, np.zeros(3)], "ranks of at least 2", at_run=True),
    OpError("tensordot", lambda a, b: linalg_ops.tensordot(a, b, 3), [_A, _B], "cannot sum over 3"),
    OpError("tensordot", lambda a, b: linalg_ops.tensordot(a, b, [[0], [5]]), [_A, _B], "not in"),
    OpError("norm", lambda a: norm_ops.norm(a, "max"), [_A], "must be a supported vector norm"),
    OpError("einsum", lambda a, b: einsum_ops.einsum("ij,jk,kl->il", a, b), [_A, _B], "has 3 inputs, got 2"),
    OpError("einsum", lambda a: einsum_ops.einsum("i1->i", a), [_A], "malformed at 'i1'"),
    OpError("einsum", lambda a: einsum_ops.einsum("ij->k", a), [_A], "must name letters of the inputs"),
    OpError("Einsum", lambda a: einsum_ops.einsum("...i->i", a), [_A], "does not name"),
    OpError("Einsum", lambda a, b: einsum_ops.einsum("ij,jk->ik", a, b), [_A, _B], "sizes 3 and 2"),
    OpError("Einsum", lambda a, b: einsum_ops.einsum("ij,jk->ik", a, b), [_A, _B], "does not fit", at_run=True),
    OpError("Einsum", lambda a: einsum_ops.einsum("ijk->i", a), [_A], "does not name"),
]
