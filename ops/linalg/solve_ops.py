"""Inverses, determinants and systems of linear equations, for batches of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.convert import add_op, convert_alike
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, KernelFunction, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import sum_to_shape_of
from tfray.ops.arrays.matrix_ops import matrix_band_part
from tfray.ops.arrays.shape_ops import cast, expand_dims
from tfray.ops.kernels.cpu_threads import BlasThreads, one_blas_thread
from tfray.ops.math.arithmetic_ops import conj, multiply, negative
from tfray.ops.math.linalg_ops import matmul

DECOMPOSABLE = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
"""Dtypes that LAPACK knows."""


def refuses_bad_matrices(reason: str = "") -> Callable[[KernelFunction], KernelFunction]:
    """Let a kernel raise `InvalidArgumentError` where a matrix is found singular or not definite.

    The message begins with `reason`, which is TensorFlow's, and goes on with what the library says.

    LAPACK runs on one thread. OpenBLAS's threads wait for each other more than they compute, up to matrices of many
    hundred rows: with them a decomposition of 512 rows takes 30 times as long. On a GPU the host waits for what
    cuSOLVER found, as in TensorFlow.
    """

    def decorate(function: KernelFunction) -> KernelFunction:
        @wraps(function)
        def kernel(ctx: KernelContext, *arrays: Array) -> Any:
            try:
                with one_blas_thread() if ctx.xp is np else import_module("cupyx").errstate(linalg="raise"):
                    return function(ctx, *arrays)
            except ValueError as error:  # LinAlgError is one
                shapes = ", ".join(str(array.shape) for array in arrays)
                said = f"{reason} {error}".lstrip()
                raise InvalidArgumentError(f"{ctx.op_name}: {said} (input shapes {shapes})") from error

        return kernel

    return decorate


@lru_cache(maxsize=1)
def one_scipy_thread() -> BlasThreads:
    """A context manager within which SciPy's BLAS, another library than NumPy's, runs on the calling thread."""
    return BlasThreads(import_module("scipy.linalg._fblas").__file__)


def square_matrices(shape: TensorShape) -> TensorShape:
    """`shape`, when it can be that of square matrices: its last two sizes merged. Raises `ValueError`."""
    if shape.with_rank_at_least(2).rank is None:
        return shape
    side = TensorShape(shape.sizes[-1:])
    if not side.is_compatible_with(shape.sizes[-2:-1]):
        raise ValueError(f"the matrices of shape {shape} are not square")
    side = side.merge_with(shape.sizes[-2:-1])
    return shape[:-2].concatenate(side).concatenate(side)


def _square_shape(op: Operation) -> list[TensorShape]:
    return [square_matrices(op.inputs[0].shape)]


def _adjoint_array(array: Array) -> Array:
    return array.conj().swapaxes(-1, -2)


# -- inverse and determinant ---------------------------------------------------------------------------


def matrix_inverse(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Invert square matrices.

    Args:
        input: Shape ``[..., n, n]``, a 32- or 64-bit floating or complex dtype.
        adjoint: Invert the conjugate transpose instead.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Raises:
        InvalidArgumentError: The matrices are not square, or, when run, one is singular.

    Examples:
        >>> session.run(tf.matrix_inverse([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return add_op(MATRIX_INVERSE, input, name=name, adjoint=adjoint)


@refuses_bad_matrices("Input is not invertible.")
def _matrix_inverse_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.linalg.inv(_adjoint_array(input) if ctx.attr("adjoint") else input)


def _matrix_inverse_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    inverse = op.outputs[0]
    if op.attr("adjoint"):
        # Here the output is the inverse of the adjoint: the factors to the left and right of the gradient swap places.
        return [negative(matmul(inverse, matmul(d_output, inverse, adjoint_a=True)))]
    return [negative(matmul(inverse, matmul(d_output, inverse, adjoint_b=True), adjoint_a=True))]


MATRIX_INVERSE = register(
    OpDef(
        name="MatrixInverse",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        attrs=("adjoint",),
        shape=_square_shape,
        kernels=on_every_device(_matrix_inverse_kernel),
        gradient=_matrix_inverse_gradient,
    )
)


def matrix_determinant(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the determinants of square matrices.

    Args:
        input: Shape ``[..., n, n]``, a 32- or 64-bit floating or complex dtype.
        name: Name of the operation.

    Returns:
        Shape ``[...]``.

    Examples:
        >>> session.run(tf.matrix_determinant([[2.0, 1.0], [0.0, 4.0]]))
        np.float32(8.0)
    """
    return add_op(MATRIX_DETERMINANT, input, name=name)


@refuses_bad_matrices()
def _matrix_determinant_kernel(ctx: KernelContext, input: Array) -> Array:
    return ctx.xp.linalg.det(input)


def _batch_shape(op: Operation) -> list[TensorShape]:
    return [square_matrices(op.inputs[0].shape)[:-2]] * len(op.outputs)


def _as_matrices(tensor: Tensor) -> Tensor:
    return expand_dims(expand_dims(tensor, -1), -1)


def _matrix_determinant_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    factor = multiply(d_output, conj(op.outputs[0]))
    return [multiply(_as_matrices(factor), matrix_inverse(op.inputs[0], adjoint=True))]


MATRIX_DETERMINANT = register(
    OpDef(
        name="MatrixDeterminant",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        shape=_batch_shape,
        kernels=on_every_device(_matrix_determinant_kernel),
        gradient=_matrix_determinant_gradient,
    )
)


class LogMatrixDeterminant(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    log_abs_determinant: Tensor


def slogdet(input: TensorLike, name: str | None = None) -> LogMatrixDeterminant:
    """Compute sign and logarithm of the absolute value of the determinants of square matrices.

    Args:
        input: Shape ``[..., n, n]``, a 32- or 64-bit floating or complex dtype.
        name: Name of the operation.

    Returns:
        The signs and the logarithms, both of shape ``[...]`` and the dtype of `input`. No gradient flows
        through the sign.
    """
    return LogMatrixDeterminant(*add_op(LOG_MATRIX_DETERMINANT, input, name=name))


@refuses_bad_matrices()
def _log_matrix_determinant_kernel(ctx: KernelContext, input: Array) -> tuple[Array, Array]:
    sign, logarithm = ctx.xp.linalg.slogdet(input)
    return sign.astype(input.dtype), logarithm.astype(input.dtype)


def _log_matrix_determinant_gradient(
    op: Operation, d_sign: Tensor | None, d_logarithm: Tensor | None
) -> list[Tensor | None]:
    if d_logarithm is None:
        return [None]
    # The logarithm is real, whatever dtype it comes in.
    real = cast(cast(d_logarithm, d_logarithm.dtype.real_dtype), d_logarithm.dtype)
    return [multiply(_as_matrices(real), matrix_inverse(op.inputs[0], adjoint=True))]


LOG_MATRIX_DETERMINANT = register(
    OpDef(
        name="LogMatrixDeterminant",
        inputs=("input: T",),
        outputs=("sign: T", "log_abs_determinant: T"),
        types={"T": DECOMPOSABLE},
        shape=_batch_shape,
        kernels=on_every_device(_log_matrix_determinant_kernel),
        gradient=_log_matrix_determinant_gradient,
    )
)


# -- systems of equations ------------------------------------------------------------------------------


def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solve ``matrix @ x = rhs``.

    Args:
        matrix: Shape ``[..., n, n]``, a 32- or 64-bit floating or complex dtype.
        rhs: Shape ``[..., n, k]``, same dtype; the leading dimensions broadcast.
        adjoint: Take the conjugate transpose of `matrix`.
        name: Name of the operation.

    Returns:
        Shape ``[..., n, k]``.

    Raises:
        InvalidArgumentError: The shapes do not fit, or, when run, a matrix is singular.
    """
    return add_op(MATRIX_SOLVE, *convert_alike(matrix, rhs), name=name, adjoint=adjoint)


@refuses_bad_matrices("Input matrix is not invertible.")
def _matrix_solve_kernel(ctx: KernelContext, matrix: Array, rhs: Array) -> Array:
    xp, matrix = ctx.xp, _adjoint_array(matrix) if ctx.attr("adjoint") else matrix
    if xp is not np and matrix.shape[:-2] != rhs.shape[:-2]:  # CuPy broadcasts no batches
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        matrix, rhs = (xp.broadcast_to(array, batch + array.shape[-2:]) for array in (matrix, rhs))
    if not rhs.size:  # nothing is asked for, so that singular matrices do no harm
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        return xp.zeros(batch + rhs.shape[-2:], rhs.dtype)
    return xp.linalg.solve(matrix, rhs)


def _solve_shape(op: Operation) -> list[TensorShape]:
    matrix, rhs = square_matrices(op.inputs[0].shape), op.inputs[1].shape
    if rhs.rank is not None and rhs.rank < 2:
        raise ValueError(f"rhs has shape {rhs}, expected [..., n, k]")
    if matrix.rank is None or rhs.rank is None:
        return [UNKNOWN]
    if not TensorShape(matrix.sizes[-1:]).is_compatible_with(rhs.sizes[-2:-1]):
        raise ValueError(f"rhs of shape {rhs} does not fit matrices of shape {matrix}")
    side = TensorShape(matrix.sizes[-1:]).merge_with(rhs.sizes[-2:-1])
    return [broadcast_shapes(matrix[:-2], rhs[:-2]).concatenate(side).concatenate(rhs.sizes[-1:])]


def _solve_gradient(op: Operation, d_x: Tensor, solve: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
    matrix, rhs = op.inputs
    x, adjoint = op.outputs[0], op.attr("adjoint")
    d_rhs = solve(matrix, d_x, adjoint=not adjoint)
    outer = matmul(x, d_rhs, adjoint_b=True) if adjoint else matmul(d_rhs, x, adjoint_b=True)
    return sum_to_shape_of(negative(outer), matrix), sum_to_shape_of(d_rhs, rhs)


def _matrix_solve_gradient(op: Operation, d_x: Tensor) -> list[Tensor | None]:
    return [*_solve_gradient(op, d_x, matrix_solve)]


MATRIX_SOLVE = register(
    OpDef(
        name="MatrixSolve",
        inputs=("matrix: T", "rhs: T"),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        attrs=("adjoint",),
        shape=_solve_shape,
        kernels=on_every_device(_matrix_solve_kernel),
        gradient=_matrix_solve_gradient,
    )
)


@none_is_default
def matrix_triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solve ``matrix @ x = rhs`` for triangular matrices; what is beyond the diagonal is not read.

    Args:
        matrix: Shape ``[..., n, n]``, a 32- or 64-bit floating or complex dtype.
        rhs: Shape ``[..., n, k]``, same dtype; the leading dimensions broadcast.
        lower: The matrices are lower triangular, not upper.
        adjoint: Take the conjugate transpose of `matrix`.
        name: Name of the operation.

    Returns:
        Shape ``[..., n, k]``.

    Raises:
        InvalidArgumentError: The shapes do not fit, or, when run on a CPU, a matrix is singular. On a GPU, as in
            TensorFlow, the solution is then not finite.
    """
    return add_op(MATRIX_TRIANGULAR_SOLVE, *convert_alike(matrix, rhs), name=name, lower=bool(lower), adjoint=adjoint)


@refuses_bad_matrices("Input matrix is not invertible.")
def _matrix_triangular_solve_kernel(ctx: KernelContext, matrix: Array, rhs: Array) -> Array:
    xp, lower, is_adjoint = ctx.xp, ctx.attr("lower"), ctx.attr("adjoint")
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    if not rhs.size or not matrix.size:
        return xp.zeros(batch + rhs.shape[-2:], rhs.dtype)
    matrices = xp.broadcast_to(matrix, batch + matrix.shape[-2:]).reshape(-1, *matrix.shape[-2:])
    sides = xp.broadcast_to(rhs, batch + rhs.shape[-2:]).reshape(-1, *rhs.shape[-2:])
    if xp is np and 2 * matrix.shape[-1] <= min(len(sides), _LARGEST_SUBSTITUTED):
        return _substituted(matrices, sides, lower, is_adjoint).reshape(batch + rhs.shape[-2:])
    result = xp.array(sides, order="C", copy=True)
    if xp is np:
        _solve_in_place(matrices, result, lower, is_adjoint)
    else:
        solve = import_module("cupyx.scipy.linalg").solve_triangular
        for i in range(len(result)):
            result[i] = solve(matrices[i], sides[i], trans="C" if is_adjoint else "N", lower=lower, check_finite=False)
    return result.reshape(batch + rhs.shape[-2:])


def _solve_in_place(matrices: Array, sides: Array, lower: bool, adjoint: bool) -> None:
    """Put solutions in the place of right-hand sides.

    BLAS reads matrices column by column: to it, these are their transposes, and the unknowns stand on the left. It
    knows no matrix that is only conjugated: then the conjugates of the solutions are solved for.
    """
    _refuse_singular(matrices)
    is_conjugated = adjoint and sides.dtype.kind == "c"
    if is_conjugated:
        np.conj(sides, out=sides)
    solve = import_module("scipy.linalg").get_blas_funcs("trsm", dtype=sides.dtype)
    with one_scipy_thread():
        for matrix, side in zip(matrices, sides, strict=True):
            side[...] = solve(1, matrix.T, side.T, side=1, lower=not lower, trans_a=int(adjoint), overwrite_b=1).T
    if is_conjugated:
        np.conj(sides, out=sides)


def _refuse_singular(matrices: Array) -> None:
    """Raise `LinAlgError` if a triangular matrix has a 0 on its diagonal."""
    if not np.diagonal(matrices, axis1=-2, axis2=-1).all():
        raise np.linalg.LinAlgError("a matrix is singular: 0 on its diagonal")


_LARGEST_SUBSTITUTED: Final = 64
"""Twice the rows of the largest matrices of which many are solved at once: larger ones BLAS solves one by one."""


def _substituted(matrices: Array, sides: Array, lower: bool, adjoint: bool) -> Array:
    """The solutions for many small matrices, row by row for all at once."""
    if adjoint:
        matrices, lower = _adjoint_array(matrices), not lower
    size = matrices.shape[-1]
    _refuse_singular(matrices)
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    result = np.empty(sides.shape, sides.dtype)
    for i in range(size) if lower else reversed(range(size)):
        solved = slice(0, i) if lower else slice(i + 1, size)
        known = np.matmul(matrices[:, i : i + 1, solved], result[:, solved])[:, 0]
        result[:, i] = (sides[:, i] - known) / diagonal[:, i, None]
    return result


def _matrix_triangular_solve_gradient(op: Operation, d_x: Tensor) -> list[Tensor | None]:
    lower = op.attr("lower")

    def solve(matrix: Tensor, rhs: Tensor, adjoint: bool) -> Tensor:
        return matrix_triangular_solve(matrix, rhs, lower, adjoint)

    d_matrix, d_rhs = _solve_gradient(op, d_x, solve)
    return [matrix_band_part(d_matrix, -1 if lower else 0, 0 if lower else -1), d_rhs]


MATRIX_TRIANGULAR_SOLVE = register(
    OpDef(
        name="MatrixTriangularSolve",
        inputs=("matrix: T", "rhs: T"),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        attrs=("lower", "adjoint"),
        shape=_solve_shape,
        kernels=on_every_device(_matrix_triangular_solve_kernel),
        gradient=_matrix_triangular_solve_gradient,
    )
)
