"""Decompositions of batches of matrices: Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import add_op, convert_alike, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones_like, zeros_like
from tfray.ops.arrays.construction_ops import eye
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.matrix_ops import matrix_band_part, matrix_diag, matrix_diag_part, matrix_set_diag
from tfray.ops.arrays.shape_ops import cast, expand_dims, matrix_transpose, shape
from tfray.ops.linalg.solve_ops import (
    DECOMPOSABLE,
    matrix_triangular_solve,
    one_scipy_thread,
    refuses_bad_matrices,
    square_matrices,
)
from tfray.ops.math.arithmetic_ops import add, add_n, conj, log, multiply, realdiv, reciprocal, square, subtract
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_sum


def _matrix_sides(op: Operation) -> tuple[TensorShape, Any, Any] | None:
    """Leading dimensions, rows and columns of the first input; None while the rank is unknown."""
    source = op.inputs[0].shape.with_rank_at_least(2)
    if source.rank is None:
        return None
    return source[:-2], source.sizes[-2], source.sizes[-1]


def _least(rows: int | None, columns: int | None) -> int | None:
    return None if rows is None or columns is None else min(rows, columns)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Transpose matrices and take the complex conjugate: shape ``[..., n, m]`` to ``[..., m, n]``."""
    with get_default_graph().name_scope(name or "adjoint"):
        return matrix_transpose(matrix, conjugate=True)


# -- Cholesky ------------------------------------------------------------------------------------------


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """Decompose positive definite matrices: ``input = chol @ adjoint(chol)``, `chol` lower triangular.

    Args:
        input: Shape ``[..., n, n]``, symmetric or Hermitian, of which the lower triangle is read; a 32- or
            64-bit floating or complex dtype.
        name: Name of the operation.

    Returns:
        The same shape. The gradient is that of a symmetric input: it is symmetric.

    Raises:
        InvalidArgumentError: When run, a matrix is not positive definite.

    Examples:
        >>> session.run(tf.cholesky([[4.0, 2.0], [2.0, 5.0]]))
        array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    return add_op(CHOLESKY, input, name=name)


@lru_cache(maxsize=1)
def _lapack_functions() -> Any:
    return import_module("scipy.linalg").get_lapack_funcs


@refuses_bad_matrices("Cholesky decomposition was not successful. The input might not be valid.")
def _cholesky_kernel(ctx: KernelContext, input: Array) -> Array:
    if ctx.xp is not np or input.shape[-1] < _LAPACK_ROWS:
        return ctx.xp.linalg.cholesky(input)
    # A matrix in C order is its transpose in Fortran order: the lower triangle is then the upper one, for which LAPACK
    # is many times as fast.
    (potrf,) = _lapack_functions()(("potrf",), dtype=input.dtype)
    out = np.empty(input.shape, input.dtype)
    for place in np.ndindex(input.shape[:-2]):
        with one_scipy_thread():
            upper, failed = potrf(input[place].T, lower=0, clean=1)
        if failed:
            raise ValueError(f"matrix {list(place)} is not positive definite")
        out[place] = upper.T
    return out


_LAPACK_ROWS: Final = 16
"""Rows from which LAPACK is called for each matrix: for smaller ones the calls cost more than NumPy's batched form."""


def _cholesky_shape(op: Operation) -> list[TensorShape]:
    return [square_matrices(op.inputs[0].shape)]


def cholesky_grad(chol: Tensor, d_chol: Tensor) -> Tensor:
    """The gradient of a Cholesky decomposition.

    Args:
        chol: Shape ``[..., n, n]``, the result of `cholesky`.
        d_chol: The gradient with respect to it.

    Returns:
        The gradient with respect to what was decomposed, of the same shape.
    """
    middle = matrix_band_part(matmul(chol, d_chol, adjoint_a=True), -1, 0)
    middle = matrix_set_diag(middle, multiply(matrix_diag_part(middle), 0.5))
    # chol^-H middle chol^-1, by two triangular solutions.
    left = matrix_triangular_solve(chol, middle, adjoint=True)
    d_input = adjoint(matrix_triangular_solve(chol, adjoint(left), adjoint=True))
    return multiply(add(d_input, adjoint(d_input)), 0.5)


def _cholesky_gradient(op: Operation, d_chol: Tensor) -> list[Tensor | None]:
    return [cholesky_grad(op.outputs[0], d_chol)]


CHOLESKY = register(
    OpDef(
        name="Cholesky",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        shape=_cholesky_shape,
        kernels=on_every_device(_cholesky_kernel),
        gradient=_cholesky_gradient,
    )
)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Solve ``chol @ adjoint(chol) @ x = rhs``.

    Args:
        chol: Shape ``[..., n, n]``: what `cholesky` gives.
        rhs: Shape ``[..., n, k]``, same dtype.
        name: Name of the last operation.

    Returns:
        Shape ``[..., n, k]``, same dtype.
    """
    with get_default_graph().name_scope(name or "cholesky_solve"):
        return matrix_triangular_solve(chol, matrix_triangular_solve(chol, rhs), adjoint=True)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithm of the determinant of positive definite matrices (arguments as `cholesky`).

    Returns:
        Shape ``[...]``, real.
    """
    with get_default_graph().name_scope(name or "logdet"):
        diagonal = matrix_diag_part(cholesky(matrix))
        return multiply(reduce_sum(log(cast(diagonal, diagonal.dtype.real_dtype)), -1), 2, "mul")


def matrix_solve_ls(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Find the `x` for which ``matrix @ x`` is nearest to `rhs`, by least squares.

    The normal equations are solved, so the condition number of `matrix` should be well below the square root
    of the dtype's precision. Of several solutions of underdetermined systems the shortest is found.

    Args:
        matrix: Shape ``[..., m, n]`` of full rank.
        rhs: Shape ``[..., m, k]``, same dtype.
        l2_regularizer: Weight of the squared length of `x` in what is minimised.
        fast: Accepted for TensorFlow 1's sake: the normal equations are always used.
        name: Name of the last operation.

    Returns:
        Shape ``[..., n, k]``.
    """
    matrix, rhs = convert_alike(matrix, rhs)
    if matrix.shape.rank is None or None in matrix.shape.sizes[-2:]:
        # Singular values serve matrices with more rows as well as those with more columns.
        values, left, right = svd(matrix)
        factors = realdiv(values, add(square(values), l2_regularizer))
        coordinates = matmul(left, rhs, adjoint_a=True)
        return matmul(right, multiply(expand_dims(cast(factors, matrix.dtype), -1), coordinates), name=name)
    rows, columns = (int(extent) for extent in matrix.shape[-2:])
    unit = eye(min(rows, columns), dtype=matrix.dtype)
    if rows >= columns:
        gram = add(matmul(matrix, matrix, adjoint_a=True), multiply(unit, l2_regularizer))
        return cholesky_solve(cholesky(gram), matmul(matrix, rhs, adjoint_a=True), name)
    gram = add(matmul(matrix, matrix, adjoint_b=True), multiply(unit, l2_regularizer))
    return matmul(matrix, cholesky_solve(cholesky(gram), rhs), adjoint_a=True, name=name)


# -- QR ------------------------------------------------------------------------------------------------


class Qr(NamedTuple):
    """What `qr` returns."""

    q: Tensor
    r: Tensor


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Decompose matrices: ``input = q @ r``, `q` with orthonormal columns, `r` upper triangular.

    Args:
        input: Shape ``[..., m, n]``, a 32- or 64-bit floating or complex dtype.
        full_matrices: Make `q` square, rather than with ``min(m, n)`` columns.
        name: Name of the operation.

    Returns:
        `q` and `r`. There is a gradient if m and n are known, with `full_matrices` only for ``m <= n``.
    """
    return Qr(*add_op(QR, input, name=name, full_matrices=full_matrices))


@refuses_bad_matrices()
def _qr_kernel(ctx: KernelContext, input: Array) -> tuple[Array, Array]:
    q, r = ctx.xp.linalg.qr(input, mode="complete" if ctx.attr("full_matrices") else "reduced")
    return q, r


def _qr_shape(op: Operation) -> list[TensorShape]:
    sides = _matrix_sides(op)
    if sides is None:
        return [UNKNOWN, UNKNOWN]
    batch, rows, columns = sides
    inner = rows if op.attr("full_matrices") else _least(rows, columns)
    return [batch.concatenate([rows, inner]), batch.concatenate([inner, columns])]


def _qr_gradient(op: Operation, d_q: Tensor | None, d_r: Tensor | None) -> list[Tensor | None]:
    q, r = op.outputs
    _, rows, columns = _matrix_sides(op) or (UNKNOWN, None, None)
    if rows is None or columns is None or (op.attr("full_matrices") and rows > columns):
        raise InvalidArgumentError(
            f"Qr: the gradient of {op.name} needs known sizes, and full_matrices=False for more rows than columns; "
            f"the input shape is {op.inputs[0].shape}",
            op_name=op.name,
        )
    d_q = zeros_like(q) if d_q is None else d_q
    d_r = zeros_like(r) if d_r is None else d_r
    if rows >= columns:
        return [_tall_qr_gradient(q, r, d_q, d_r)]
    # The first columns of the input, as many as there are rows, make q, and q makes the others of r.
    d_rest = d_r[..., rows:]
    d_q = add(d_q, matmul(op.inputs[0][..., rows:], d_rest, adjoint_b=True))
    return [concat([_tall_qr_gradient(q, r[..., :rows], d_q, d_r[..., :rows]), matmul(q, d_rest)], -1)]


def _tall_qr_gradient(q: Tensor, r: Tensor, d_q: Tensor, d_r: Tensor) -> Tensor:
    q_dq = matmul(q, d_q, adjoint_a=True)
    r_dr = matmul(r, d_r, adjoint_b=True)
    skew = add(subtract(q_dq, adjoint(q_dq)), subtract(r_dr, adjoint(r_dr)))
    lower = matrix_band_part(skew, -1, 0)
    if q.dtype.is_complex:
        # The diagonal of r is real, which keeps each column of q from turning its phase.
        lower = subtract(lower, multiply(matrix_band_part(skew, 0, 0), 0.5))
    within = matmul(q, add(d_r, _divided_by_adjoint(lower, r)))
    beyond = _divided_by_adjoint(subtract(d_q, matmul(q, q_dq)), r)
    return add(within, beyond)


def _divided_by_adjoint(x: Tensor, r: Tensor) -> Tensor:
    """``x @ inverse(adjoint(r))`` for upper triangular `r`."""
    return adjoint(matrix_triangular_solve(r, adjoint(x), lower=False))


QR = register(
    OpDef(
        name="Qr",
        inputs=("input: T",),
        outputs=("q: T", "r: T"),
        types={"T": DECOMPOSABLE},
        attrs=("full_matrices",),
        shape=_qr_shape,
        kernels=on_every_device(_qr_kernel),
        gradient=_qr_gradient,
    )
)


# -- eigenvalues ---------------------------------------------------------------------------------------


def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Decompose symmetric or Hermitian matrices: ``tensor = v @ diag(e) @ adjoint(v)``.

    Args:
        tensor: Shape ``[..., n, n]``, of which the lower triangle is read; a 32- or 64-bit floating or
            complex dtype.
        name: Name of the operation.

    Returns:
        Eigenvalues `e`, ascending, of shape ``[..., n]``, and eigenvectors `v`, the columns of ``[..., n, n]``;
        both of the dtype of `tensor`. The gradient of `v` is infinite where eigenvalues coincide.
    """
    e, v = add_op(SELF_ADJOINT_EIG, tensor, name=name, compute_v=True)
    return e, v


def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Compute the eigenvalues of symmetric or Hermitian matrices, ascending (see `self_adjoint_eig`)."""
    e, _ = add_op(SELF_ADJOINT_EIG, tensor, name=name, compute_v=False)
    return e


@refuses_bad_matrices("Self-adjoint eigen decomposition was not successful. The input might not be valid.")
def _self_adjoint_eig_kernel(ctx: KernelContext, input: Array) -> tuple[Array, Array]:
    if not ctx.xp.isfinite(input).all():
        raise ValueError("a matrix holds NaN or infinity, and has no eigenvalues")
    if ctx.attr("compute_v"):
        e, v = ctx.xp.linalg.eigh(input)
        return e.astype(input.dtype), v
    return ctx.xp.linalg.eigvalsh(input).astype(input.dtype), ctx.xp.empty(0, input.dtype)


def _self_adjoint_eig_shape(op: Operation) -> list[TensorShape]:
    source = square_matrices(op.inputs[0].shape)
    return [source[:-1], source if op.attr("compute_v") else TensorShape([0])]


def _self_adjoint_eig_gradient(op: Operation, d_e: Tensor | None, d_v: Tensor | None) -> list[Tensor | None]:
    e, v = op.outputs if op.attr("compute_v") else self_adjoint_eig(op.inputs[0])
    middle = zeros_like(v) if d_e is None else matrix_diag(d_e)
    if d_v is not None and op.attr("compute_v"):
        middle = add(middle, multiply(_reciprocal_gaps(e), matmul(v, d_v, adjoint_a=True)))
    d_input = matmul(v, matmul(middle, v, adjoint_b=True))
    # The kernel reads only the lower triangle: it gets the gradient of both triangles.
    d_input = matrix_band_part(add(d_input, adjoint(d_input)), -1, 0)
    return [matrix_set_diag(d_input, multiply(matrix_diag_part(d_input), 0.5))]


def _reciprocal_gaps(values: Tensor) -> Tensor:
    """At (i, j) the reciprocal of value j minus value i, and 0 on the diagonal."""
    gaps = subtract(expand_dims(values, -2), expand_dims(values, -1))
    on_diagonal = matrix_set_diag(gaps, ones_like(values))
    return matrix_set_diag(reciprocal(on_diagonal), zeros_like(values))


SELF_ADJOINT_EIG = register(
    OpDef(
        name="SelfAdjointEigV2",
        inputs=("input: T",),
        outputs=("e: T", "v: T"),
        types={"T": DECOMPOSABLE},
        attrs=("compute_v",),
        shape=_self_adjoint_eig_shape,
        kernels=on_every_device(_self_adjoint_eig_kernel),
        gradient=_self_adjoint_eig_gradient,
    )
)


# -- singular values -----------------------------------------------------------------------------------


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Decompose matrices: ``tensor = u @ diag(s) @ adjoint(v)``.

    Args:
        tensor: Shape ``[..., m, n]``, a 32- or 64-bit floating or complex dtype.
        full_matrices: Make `u` and `v` square, rather than with ``min(m, n)`` columns.
        compute_uv: Return `u` and `v` too.
        name: Name of the operation.

    Returns:
        Singular values `s`, descending, real, of shape ``[..., min(m, n)]``; with `compute_uv` the tuple
        ``(s, u, v)``. With `full_matrices`, the gradient of `u` and `v` needs m and n that are known and differ by 1
        at most.

    Examples:
        >>> session.run(tf.svd([[3.0, 0.0], [0.0, -4.0]], compute_uv=False))
        array([4., 3.], dtype=float32)
    """
    tensor = convert_to_tensor(tensor)
    s, u, v = add_op(SVD, tensor, name=name, full_matrices=full_matrices, compute_uv=compute_uv)
    s = cast(s, s.dtype.real_dtype)
    return (s, u, v) if compute_uv else s


@refuses_bad_matrices()
def _svd_kernel(ctx: KernelContext, input: Array) -> tuple[Array, Array, Array]:
    xp = ctx.xp
    lost = ~xp.isfinite(input).all((-2, -1))  # LAPACK refuses these; the others of the batch are decomposed
    has_lost = bool(lost.any())
    if has_lost:
        input = xp.where(lost[..., None, None], input.dtype.type(0), input)
    if ctx.attr("compute_uv"):
        u, s, v_adjoint = xp.linalg.svd(input, full_matrices=ctx.attr("full_matrices"))
        results = s.astype(input.dtype), u, v_adjoint.conj().swapaxes(-1, -2)
    else:
        nothing = xp.empty(0, input.dtype)
        results = xp.linalg.svd(input, compute_uv=False).astype(input.dtype), nothing, nothing
    for result in results if has_lost else ():
        if result.ndim > 1 or result is results[0]:
            result[lost] = np.nan
    return results


def _svd_shape(op: Operation) -> list[TensorShape]:
    sides = _matrix_sides(op)
    if sides is None:
        return [UNKNOWN] * 3 if op.attr("compute_uv") else [UNKNOWN, TensorShape([0]), TensorShape([0])]
    batch, rows, columns = sides
    least = _least(rows, columns)
    values = batch.concatenate([least])
    if not op.attr("compute_uv"):
        return [values, TensorShape([0]), TensorShape([0])]
    full = op.attr("full_matrices")
    return [
        values,
        batch.concatenate([rows, rows if full else least]),
        batch.concatenate([columns, columns if full else least]),
    ]


def _svd_gradient(op: Operation, d_s: Tensor | None, d_u: Tensor | None, d_v: Tensor | None) -> list[Tensor | None]:
    if not op.attr("compute_uv"):
        s, u, v = add_op(SVD, op.inputs[0], full_matrices=False, compute_uv=True)
        d_u = d_v = None
    else:
        s, u, v = op.outputs
    if not (d_u is d_v is None or _knows_vectors(op)):
        raise InvalidArgumentError(
            f"Svd: the gradient of the vectors of {op.name} needs, with full_matrices=True, sizes that are known and "
            f"differ by 1 at most; the input shape is {op.inputs[0].shape}",
            op_name=op.name,
        )
    count = shape(s)[-1] if op.attr("full_matrices") else None
    # Singular values are real, whatever dtype they come in.
    core = zeros_like(matrix_diag(s)) if d_s is None else matrix_diag(cast(cast(d_s, s.dtype.real_dtype), s.dtype))
    beyond: list[Tensor] = []
    gaps = _reciprocal_gaps(square(s))
    u_basis, v_basis = u[..., :count], v[..., :count]
    _, rows, columns = _matrix_sides(op) or (UNKNOWN, None, None)
    is_tall = rows is not None and columns is not None and rows > columns
    if d_u is not None:
        turn = matmul(u_basis, d_u[..., :count], adjoint_a=True)
        core = add(core, multiply(_hermitian(multiply(gaps, turn)), expand_dims(s, -2)))
        if is_tall and s.dtype.is_complex:
            core = subtract(core, _phases(turn, s))
        outside = realdiv(_outside(u, d_u, count), expand_dims(s, -2))
        beyond.append(matmul(outside, v_basis, adjoint_b=True))
    if d_v is not None:
        turn = matmul(v_basis, d_v[..., :count], adjoint_a=True)
        core = add(core, multiply(expand_dims(s, -1), _hermitian(multiply(gaps, turn))))
        if not is_tall and s.dtype.is_complex:
            core = add(core, _phases(turn, s))
        outside = realdiv(_outside(v, d_v, count), expand_dims(s, -2))
        beyond.append(matmul(u_basis, outside, adjoint_b=True))
    return [add_n([matmul(u_basis, matmul(core, v_basis, adjoint_b=True)), *beyond])]


def _hermitian(x: Tensor) -> Tensor:
    return add(x, adjoint(x))


def _phases(turn: Tensor, s: Tensor) -> Tensor:
    """What turns the phases of complex vectors, of which a pair may turn as one."""
    diagonal = matrix_diag_part(turn)
    return matrix_diag(realdiv(multiply(subtract(conj(diagonal), diagonal), 0.5), s))


def _outside(vectors: Tensor, d_vectors: Tensor, count: Tensor | None) -> Tensor:
    """How the gradient moves the first `count` columns of `vectors` out of the space that they span."""
    basis, d_basis = vectors[..., :count], d_vectors[..., :count]
    outside = subtract(d_basis, matmul(basis, matmul(basis, d_basis, adjoint_a=True)))
    if count is None:
        return outside
    # The other columns span what is outside: they turn the other way.
    rest, d_rest = vectors[..., count:], d_vectors[..., count:]
    return subtract(outside, matmul(rest, matmul(d_rest, basis, adjoint_a=True)))


def _knows_vectors(op: Operation) -> bool:
    """Whether the vectors are unique: two of them that no singular value belongs to could turn."""
    _, rows, columns = _matrix_sides(op) or (UNKNOWN, None, None)
    return not op.attr("full_matrices") or (rows is not None and columns is not None and abs(rows - columns) <= 1)


SVD = register(
    OpDef(
        name="Svd",
        inputs=("input: T",),
        outputs=("s: T", "u: T", "v: T"),
        types={"T": DECOMPOSABLE},
        attrs=("compute_uv", "full_matrices"),
        shape=_svd_shape,
        kernels=on_every_device(_svd_kernel),
        gradient=_svd_gradient,
    )
)
