"""Functions of matrices, triangular factors, tridiagonal systems, running sums of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.ops.linalg import matrix_function_ops, tridiagonal_ops
from tfray.ops.math import scan_ops

DOUBLES = (dtypes.float64, dtypes.float32)


def each(function: Any) -> Any:
    """A function of a matrix, for every matrix of a batch."""

    def apply(matrices: Any) -> Any:
        flat = matrices.reshape(-1, *matrices.shape[-2:])
        return np.array([function(matrix) for matrix in flat], matrices.dtype).reshape(matrices.shape)

    return apply


def definite(*shape: int) -> Any:
    """Symmetric matrices with eigenvalues above 1."""
    a = grid(*shape, low=-1, high=1)
    return a @ a.swapaxes(-1, -2) + 1.5 * np.eye(shape[-1])


def by_eigenvalues(function: Any) -> Any:
    """The function of symmetric (Hermitian) matrices by their eigenvalues."""

    def apply(matrix: Any) -> Any:
        values, vectors = np.linalg.eigh(matrix)
        return vectors @ np.diag(function(values)) @ vectors.conj().T

    return each(apply)


def lu(matrices: Any) -> Any:
    factors, rows = np.empty_like(matrices), np.empty(matrices.shape[:-1], np.int32)
    for place in np.ndindex(matrices.shape[:-2]):
        order, lower, upper = scipy.linalg.lu(matrices[place], p_indices=True)
        factors[place] = np.tril(lower, -1) + upper
        rows[place] = np.argsort(order)
    return factors, rows


def tridiagonal(diagonals: Any) -> Any:
    above, on, below = diagonals
    return np.diag(above[:-1], 1) + np.diag(on) + np.diag(below[1:], -1)


def solved(diagonals: Any, rhs: Any) -> Any:
    out = np.empty_like(rhs)
    for place in np.ndindex(rhs.shape[:-2]):
        out[place] = np.linalg.solve(tridiagonal(diagonals[place]), rhs[place]) if rhs.shape[-2] else 0
    return out


def running(x: Any, axis: Any, exclusive: bool = False, reverse: bool = False) -> Any:
    moved = np.moveaxis(x, axis, 0)
    moved = moved[::-1] if reverse else moved
    sums = np.log(np.cumsum(np.exp(moved), axis=0))
    if exclusive:
        sums = np.concatenate([np.full_like(sums[:1], np.finfo(np.float64).min), sums[:-1]])
    return np.moveaxis(sums[::-1] if reverse else sums, 0, axis)


def rows() -> list[OpSample]:
    ops = matrix_function_ops
    small, three = grid(2, 3, 3, low=-0.5, high=0.5), 0.3 * grid(4, 4) + 0.2j * grid(4, 4, seed=1)
    heavy = grid(2, 3, 5, low=-1, high=1) + np.array([0, 4, 0])[:, None]
    hermitian = definite(3, 3) + 0.1j * (np.triu(np.ones((3, 3)), 1) - np.tril(np.ones((3, 3)), -1))
    some: dict[str, Any] = {"tolerance": 30, "modes": ("known", "unknown sizes")}
    found = [
        OpSample("MatrixExponential", ops.matrix_exponential, [small], each(scipy.linalg.expm), **some),
        OpSample(
            "MatrixExponential", ops.matrix_exponential, [three], each(scipy.linalg.expm), label="complex", **some
        ),
        OpSample("MatrixExponential", ops.matrix_exponential, [np.zeros((0, 2, 2))], lambda x: x, **some),
        OpSample(
            "MatrixLogarithm",
            ops.matrix_logarithm,
            [hermitian],
            by_eigenvalues(np.log),
            dtypes=(dtypes.complex128,),
            tolerance=100,
        ),
        OpSample(
            "MatrixSquareRoot",
            ops.matrix_square_root,
            [definite(2, 3, 3)],
            by_eigenvalues(np.sqrt),
            dtypes=DOUBLES,
            tolerance=100,
            modes=("known", "unknown sizes"),
        ),
        OpSample("Lu", ops.lu, [grid(2, 4, 4)], lu, dtypes=DOUBLES, tolerance=100),
        OpSample("TridiagonalSolve", tridiagonal_ops.tridiagonal_solve, [heavy, grid(2, 5, 2, seed=2)], solved, **some),
        OpSample("TridiagonalSolve", tridiagonal_ops.tridiagonal_solve, [heavy[0, :, :1], grid(1, 3, seed=2)], solved),
    ]
    for axis, exclusive, reverse in ((0, False, False), (1, True, False), (-1, False, True), (0, True, True)):
        found.append(
            OpSample(
                "CumulativeLogsumexp",
                scan_ops.cumulative_logsumexp,
                [grid(3, 4), np.array(axis, np.int32)],
                lambda x, axis, e=exclusive, r=reverse: running(x, axis, e, r),
                kwargs={"exclusive": exclusive, "reverse": reverse},
                sizes=(1,),
                tolerance=4,
                label=f"{exclusive}-{reverse}",
                twice=False,
                # Its first numbers are too large for differences.
                **({"dtypes": (dtypes.float64,), "differentiable": ()} if exclusive else {}),
            )
        )
    return found


SAMPLES = rows()
ERRORS = [
    OpError("MatrixExponential", matrix_function_ops.matrix_exponential, [np.zeros((2, 3))], "not square"),
    OpError("MatrixExponential", matrix_function_ops.matrix_exponential, [np.zeros((2, 3))], "square", at_run=True),
    OpError("Lu", matrix_function_ops.lu, [np.zeros((2, 2))], "singular", at_run=True),
    OpError(
        "TridiagonalSolve",
        lambda x: tridiagonal_ops.tridiagonal_solve(x, np.zeros((4, 1))),
        [np.zeros((3, 2))],
        "expected",
        at_run=True,
    ),
]
