"""Tridiagonal matrices, whose entries are zero except on the diagonal and next to it."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.shape_functions import like_input
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.matrix_ops import matrix_diag_part
from tfray.ops.arrays.shape_ops import expand_dims, matrix_transpose, squeeze
from tfray.ops.linalg.solve_ops import DECOMPOSABLE, refuses_bad_matrices
from tfray.ops.math.arithmetic_ops import conj, multiply, negative
from tfray.ops.math.reduction_ops import reduce_sum


@lru_cache(maxsize=1)
def _scipy() -> Any:
    return import_module("scipy.linalg")


def _compact(diagonals: Any, diagonals_format: str, op: str) -> Tensor:
    """The three diagonals as ``[..., 3, n]``: above, on and below, entries beyond the matrix ignored."""
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals)
    if diagonals_format == "sequence":
        above, on, below = (convert_to_tensor(diagonal) for diagonal in diagonals)
        if on.shape.rank:
            size = on.shape.sizes[-1]
            above, below = (_with_ignored(side, size, is_first) for side, is_first in ((above, False), (below, True)))
        return stack([above, on, below], -2)
    if diagonals_format != "matrix":
        raise InvalidArgumentError(
            f"{op}: diagonals_format is {diagonals_format!r}, expected 'compact', 'sequence' or 'matrix'"
        )
    matrix = convert_to_tensor(diagonals)
    none = zeros_like(matrix[..., :1, 0])
    above = concat([matrix_diag_part(matrix[..., :-1, 1:]), none], -1)
    below = concat([none, matrix_diag_part(matrix[..., 1:, :-1])], -1)
    return stack([above, matrix_diag_part(matrix), below], -2)


def _with_ignored(side: Tensor, size: int | None, is_first: bool) -> Tensor:
    """A diagonal beside the main one, which has `size` entries, with its entry that is ignored if it comes without."""
    if size is None or side.shape.rank is None or side.shape.sizes[-1] != size - 1:
        return side
    ignored = zeros_like(side[..., :1])
    return concat([ignored, side] if is_first else [side, ignored], -1)


def tridiagonal_solve(
    diagonals: TensorLike,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """Solve systems of equations with tridiagonal matrices.

    Args:
        diagonals: ``[..., 3, n]``: the diagonals above (its last entry ignored), on, and below (its first entry
            ignored) the main one; or a list of these three; or the matrices ``[..., n, n]``.
        rhs: ``[..., n, k]``, or ``[..., n]``; float32, float64 or complex.
        diagonals_format: ``"compact"``, ``"sequence"`` or ``"matrix"``.
        transpose_rhs: `rhs` is ``[..., k, n]``.
        conjugate_rhs: Conjugate `rhs` first.
        name: Name scope of the operations.
        partial_pivoting: Accepted for compatibility: rows are exchanged where that is needed.

    Returns:
        The solutions, in the shape of `rhs` (transposed with `transpose_rhs`).

    Raises:
        InvalidArgumentError: An unknown format, or shapes that do not fit; or while running: a matrix is singular.
    """
    with get_default_graph().name_scope(name or "tridiagonal_solve"):
        compact = _compact(diagonals, diagonals_format, "tridiagonal_solve")
        right = convert_to_tensor(rhs, compact.dtype)
        is_vector = right.shape.rank is not None and right.shape.rank + 1 == compact.shape.rank
        right = expand_dims(right, -1) if is_vector else right
        right = matrix_transpose(right) if transpose_rhs and not is_vector else right
        if compact.shape.rank is not None and right.shape.rank is not None:
            expected = right.shape[:-2].concatenate([3]).concatenate(right.shape[-2:-1])
            compact.shape.assert_is_compatible_with(expected)
        solution = add_op(TRIDIAGONAL_SOLVE, compact, conj(right) if conjugate_rhs else right)
        return squeeze(solution, [-1]) if is_vector else solution


def _tridiagonal_solve_kernel(ctx: KernelContext, diagonals: Array, rhs: Array) -> Array:
    n = rhs.shape[-2]
    if diagonals.shape != (*rhs.shape[:-2], 3, n):
        raise InvalidArgumentError(
            f"{ctx.op_name}: diagonals {diagonals.shape} and right-hand sides {rhs.shape}, expected [..., 3, n] and "
            "[..., n, k]"
        )
    solution = np.empty_like(rhs)
    for place in np.ndindex(rhs.shape[:-2]):
        # LAPACK wants the diagonal above shifted to the right, and that below to the left.
        banded = np.zeros((3, n), rhs.dtype)
        banded[0, 1:], banded[1], banded[2, :-1] = (
            diagonals[place][0, :-1],
            diagonals[place][1],
            diagonals[place][2, 1:],
        )
        solved = _scipy().solve_banded((1, 1), banded, rhs[place], check_finite=False) if n else rhs[place]
        solution[place] = solved
    return solution


def _tridiagonal_solve_gradient(op: Operation, d_solution: Tensor) -> list[Tensor | None]:
    diagonals, _ = op.inputs
    above, on, below = (conj(diagonals[..., i, :]) for i in range(3))
    # The adjoint matrix has the conjugate diagonals, those beside the main one exchanged.
    exchanged = stack([_towards_start(below), on, _towards_end(above)], -2)
    d_rhs = add_op(TRIDIAGONAL_SOLVE, exchanged, d_solution)
    x, d = conj(op.outputs[0]), negative(d_rhs)
    none = zeros_like(x[..., :1, :])
    later, earlier = concat([x[..., 1:, :], none], -2), concat([none, x[..., :-1, :]], -2)
    parts = [reduce_sum(multiply(d, factor), -1) for factor in (later, x, earlier)]
    return [stack(parts, -2), d_rhs]


def _towards_start(vectors: Tensor) -> Tensor:
    return concat([vectors[..., 1:], zeros_like(vectors[..., :1])], -1)


def _towards_end(vectors: Tensor) -> Tensor:
    return concat([zeros_like(vectors[..., :1]), vectors[..., :-1]], -1)


TRIDIAGONAL_SOLVE = register(
    OpDef(
        name="TridiagonalSolve",
        inputs=("diagonals: T", "rhs: T"),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        shape=like_input(1),
        kernels=on_cpu(refuses_bad_matrices()(_tridiagonal_solve_kernel)),
        gradient=_tridiagonal_solve_gradient,
    )
)


def tridiagonal_matmul(
    diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Multiply tridiagonal matrices by others.

    Args:
        diagonals: ``[..., 3, n]``, a list of the three diagonals, or the matrices ``[..., n, n]``, as for
            `tridiagonal_solve`.
        rhs: ``[..., n, k]``, a number dtype.
        diagonals_format: As for `tridiagonal_solve`.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name or "tridiagonal_matmul"):
        compact = _compact(diagonals, diagonals_format, "tridiagonal_matmul")
        right = convert_to_tensor(rhs, compact.dtype)
        compact.shape.assert_same_rank(right.shape)
        above, on, below = (expand_dims(compact[..., i, :], -1) for i in range(3))
        none = zeros_like(right[..., :1, :])
        later, earlier = concat([right[..., 1:, :], none], -2), concat([none, right[..., :-1, :]], -2)
        return multiply(above, later) + multiply(on, right) + multiply(below, earlier)
