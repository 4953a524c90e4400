"""Functions of square matrices (exponential, logarithm, square root), LU factors, norms, rank and pseudoinverse."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, GradientFunction, KernelContext, OpDef, lookup, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Axes, TensorLike
from tfray.ops.arrays.broadcast_ops import where, zeros_like
from tfray.ops.arrays.construction_ops import eye
from tfray.ops.arrays.gather_ops import batch_gather, gather
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.matrix_ops import matrix_band_part, matrix_diag_part, matrix_set_diag
from tfray.ops.arrays.shape_ops import cast, expand_dims, invert_permutation, shape, squeeze
from tfray.ops.linalg.decomposition_ops import adjoint, svd
from tfray.ops.linalg.norm_ops import norm
from tfray.ops.linalg.solve_ops import DECOMPOSABLE, matrix_triangular_solve, refuses_bad_matrices, square_matrices
from tfray.ops.math.arithmetic_ops import multiply, realdiv, truediv
from tfray.ops.math.comparison_ops import greater
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_max, reduce_sum
from tfray.ops.math.sorting_ops import argsort


@lru_cache(maxsize=1)
def _scipy() -> Any:
    return import_module("scipy.linalg")


def _each(function: Callable[[Array], Any], matrices: Array) -> Array:
    """`function` of each matrix of a batch."""
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    return np.array([function(matrix) for matrix in flat], matrices.dtype).reshape(matrices.shape)


def _square_shape(op: Operation) -> list[TensorShape]:
    return [square_matrices(op.inputs[0].shape)]


def _check_square(ctx: KernelContext, matrices: Array) -> None:
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
        raise InvalidArgumentError(f"{ctx.op_name}: shape {matrices.shape}, expected square matrices")


def _by_blocks(name: str) -> GradientFunction:
    """Make the gradient function of the operation `name`, which computes a function f of a matrix A.

    The derivative of f at A in the direction E is the upper right block of ``f([[A, E], [0, A]])`` (Mathias 1996).
    The gradient is this derivative at the adjoint of A, in the direction of the incoming gradient.
    """

    def gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
        a, n = adjoint(op.inputs[0]), shape(d_output)[-1]
        upper, lower = concat([a, d_output], -1), concat([zeros_like(a), a], -1)
        blocks = add_op(lookup(name), concat([upper, lower], -2))
        d_input = blocks[..., :n, n:]
        d_input.set_shape(op.inputs[0].shape)
        return [d_input]

    return gradient


def matrix_exponential(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the exponential of square matrices.

    Args:
        input: Shape ``[..., n, n]``, float32, float64 or complex.
        name: Name of the operation.
    """
    return add_op(MATRIX_EXPONENTIAL, input, name=name)


def _matrix_exponential_kernel(ctx: KernelContext, input: Array) -> Array:
    _check_square(ctx, input)
    if not input.size:
        return input
    # Squaring doubles the error of 32-bit numbers again and again.
    return _each(_scipy().expm, input.astype(np.result_type(input, np.float64))).astype(input.dtype)


MATRIX_EXPONENTIAL = register(
    OpDef(
        name="MatrixExponential",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        shape=_square_shape,
        kernels=on_cpu(refuses_bad_matrices()(_matrix_exponential_kernel)),
        gradient=_by_blocks("MatrixExponential"),
    )
)


def matrix_logarithm(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the principal logarithm of square matrices.

    Args:
        input: Shape ``[..., n, n]``, complex; invertible, without negative real eigenvalues.
        name: Name of the operation.
    """
    return add_op(MATRIX_LOGARITHM, input, name=name)


def _matrix_logarithm_kernel(ctx: KernelContext, input: Array) -> Array:
    _check_square(ctx, input)
    wide = input.astype(np.complex128)  # in complex64 the result would be inaccurate, and SciPy would warn of it
    return _each(_logarithm, wide).astype(input.dtype) if input.size else input


def _logarithm(matrix: Array) -> Array:
    if not np.isfinite(matrix).all():
        return np.full_like(matrix, complex(np.nan, np.nan))
    logarithm: Array = _scipy().logm(matrix)
    return logarithm


MATRIX_LOGARITHM = register(
    OpDef(
        name="MatrixLogarithm",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": dtypes.COMPLEX},
        shape=_square_shape,
        kernels=on_cpu(refuses_bad_matrices()(_matrix_logarithm_kernel)),
        gradient=_by_blocks("MatrixLogarithm"),
    )
)


def matrix_square_root(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the principal square root of square matrices: ``output @ output = input``.

    Args:
        input: Shape ``[..., n, n]``, float32, float64 or complex; invertible, without negative real eigenvalues.
        name: Name of the operation.

    Returns:
        Same shape and dtype. A real matrix that has no real square root gives NaN; cast to complex64 it has one.
    """
    return add_op(MATRIX_SQUARE_ROOT, input, name=name)


def _matrix_square_root_kernel(ctx: KernelContext, input: Array) -> Array:
    _check_square(ctx, input)

    def root(matrix: Array) -> Array:
        found = _scipy().sqrtm(matrix)
        if found.dtype.kind == "c" and input.dtype.kind == "f":
            return np.full_like(matrix, np.nan)
        return found

    return _each(root, input) if input.size else input


MATRIX_SQUARE_ROOT = register(
    OpDef(
        name="MatrixSquareRoot",
        inputs=("input: T",),
        outputs=("output: T",),
        types={"T": DECOMPOSABLE},
        shape=_square_shape,
        kernels=on_cpu(refuses_bad_matrices()(_matrix_square_root_kernel)),
        gradient=_by_blocks("MatrixSquareRoot"),
    )
)


# -- triangular factors --------------------------------------------------------------------------------


class Lu(NamedTuple):
    """What `lu` returns: both factors in one matrix, and the permutation of the rows."""

    lu: Tensor
    p: Tensor


def lu(input: TensorLike, output_idx_type: DTypeLike = dtypes.int32, name: str | None = None) -> Lu:
    """Factor square matrices, their rows permuted, into triangular ones: ``input[p] = lower @ upper``.

    Args:
        input: Shape ``[..., n, n]``, float32, float64 or complex; invertible.
        output_idx_type: int32 or int64.
        name: Name of the operation.

    Returns:
        Both factors in one matrix ``[..., n, n]`` (the lower one without its diagonal, which is all ones), and the
        permutation p of the rows, ``[..., n]``. No gradient flows.

    Raises:
        InvalidArgumentError: While running: a matrix is singular.
    """
    return Lu(*add_op(LU, input, name=name, output_idx_type=as_dtype(output_idx_type)))


def _lu_kernel(ctx: KernelContext, input: Array) -> tuple[Array, Array]:
    _check_square(ctx, input)
    factors, rows = np.empty_like(input), np.empty(input.shape[:-1], ctx.output_dtype(1))
    n = input.shape[-1]
    for place in np.ndindex(input.shape[:-2]):
        packed, exchanges = _scipy().lu_factor(input[place], check_finite=False) if n else (input[place], [])
        if n and not np.diagonal(packed).all():
            raise InvalidArgumentError(
                f"{ctx.op_name}: Input is not invertible. A matrix is singular (input shape {input.shape})"
            )
        # LAPACK tells the permutation as exchanges: row 0 with row exchanges[0], then row 1 with row exchanges[1], ...
        order = list(range(n))
        for first, second in enumerate(exchanges):
            order[first], order[second] = order[second], order[first]
        factors[place], rows[place] = packed, order
    return factors, rows


def _lu_shape(op: Operation) -> list[TensorShape]:
    square = square_matrices(op.inputs[0].shape)
    return [square, square[:-1]]


LU = register(
    OpDef(
        name="Lu",
        inputs=("input: T",),
        outputs=("lu: T", "p: output_idx_type"),
        types={"T": DECOMPOSABLE, "output_idx_type": dtypes.INDICES},
        shape=_lu_shape,
        kernels=on_cpu(_lu_kernel),
    )
)


def _unit_lower(lower_upper: Tensor) -> Tensor:
    """The lower factor, with its diagonal of ones."""
    lower = matrix_band_part(lower_upper, -1, 0)
    return matrix_set_diag(lower, zeros_like(matrix_diag_part(lower)) + 1)


def _as_matrix(value: TensorLike) -> Tensor:
    """As `convert_to_tensor`, but numbers of Python are floats, integers too."""
    return convert_to_tensor(value, preferred_dtype=dtypes.float32)


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Undo `lu`: from the factors `lower_upper` and the permutation `perm`, compute the matrices ``[..., n, n]``."""
    with get_default_graph().name_scope(name or "lu_reconstruct"):
        factors, perm = _as_matrix(lower_upper), convert_to_tensor(perm)
        product = matmul(_unit_lower(factors), matrix_band_part(factors, 0, -1))
        if perm.shape.rank == 1:
            return gather(product, invert_permutation(perm))
        # The argsort of a permutation is its inverse. `invert_permutation` takes one vector, this a batch.
        return batch_gather(product, argsort(perm))


def lu_solve(
    lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Solve ``x @ solution = rhs``, given the factors of x.

    Args:
        lower_upper: Factors of x from `lu`, ``[..., n, n]``.
        perm: Permutation from `lu`, ``[..., n]``.
        rhs: ``[..., n, k]``.
        validate_args: Accepted for compatibility.
        name: Name scope of the operations.

    Returns:
        ``[..., n, k]``.
    """
    with get_default_graph().name_scope(name or "lu_solve"):
        factors, perm = _as_matrix(lower_upper), convert_to_tensor(perm)
        rhs = _as_matrix(rhs)
        permuted = gather(rhs, perm, axis=-2) if perm.shape.rank == 1 else batch_gather(rhs, perm)
        inner = matrix_triangular_solve(_unit_lower(factors), permuted)
        return matrix_triangular_solve(factors, inner, lower=False)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Invert matrices, given their factors (arguments as `lu_solve`)."""
    with get_default_graph().name_scope(name or "lu_matrix_inverse"):
        factors = _as_matrix(lower_upper)
        sizes = shape(factors)
        identity = eye(sizes[-1], batch_shape=sizes[:-2], dtype=factors.dtype)
        return lu_solve(factors, perm, identity)


# -- products, norms, rank and pseudoinverse -----------------------------------------------------------


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply matrices by vectors.

    Args:
        a: ``[..., n, m]``, a number dtype.
        b: ``[..., m]``.
        transpose_a: Transpose the matrices first.
        adjoint_a: Transpose and conjugate them first.
        a_is_sparse: As for `matmul`.
        b_is_sparse: As for `matmul`.
        name: Name scope of the operations.

    Returns:
        ``[..., n]``.
    """
    with get_default_graph().name_scope(name or "matvec"):
        product = matmul(
            a,
            expand_dims(b, -1),
            transpose_a=transpose_a,
            adjoint_a=adjoint_a,
            a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )
        return squeeze(product, [-1])


def normalize(
    tensor: TensorLike, ord: float | str = "euclidean", axis: Axes | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divide a tensor by its norm.

    Args:
        tensor: Shape ``[...]``, a float or complex dtype. Integers are divided as by `truediv`, where `ord` is 1 or
            infinite.
        ord: As for `norm`: a number, or a name.
        axis: An integer for norms of vectors along that dimension, or two integers for norms of matrices in those
            dimensions. None takes all elements as one vector.
        name: Name scope of the operations.

    Returns:
        The divided tensor, of the same shape, and the norm, of that shape with size 1 in the dimensions of `axis`.
    """
    with get_default_graph().name_scope(name or "normalize"):
        tensor = convert_to_tensor(tensor)
        length = cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype)
        return truediv(tensor, length), length


def matrix_rank(
    a: TensorLike, tol: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Count the singular values above a tolerance.

    Args:
        a: ``[..., m, n]``, float32 or float64.
        tol: The tolerance, of a shape that broadcasts with that of the singular values, ``[..., min(m, n)]``; by
            default the greatest singular value times ``max(m, n) * eps``, where eps is the machine epsilon of the
            dtype.
        validate_args: Accepted for compatibility.
        name: Name scope of the operations.

    Returns:
        int32 ``[...]``; its leading dimensions are those of `tol` where it has more.
    """
    with get_default_graph().name_scope(name or "matrix_rank"):
        a = _as_matrix(a)
        values = svd(a, compute_uv=False)
        limit = _tolerance(a, values, None) if tol is None else convert_to_tensor(tol, values.dtype)
        return reduce_sum(cast(greater(values, limit), dtypes.int32), -1)


def _tolerance(a: Tensor, values: Tensor, relative: TensorLike | None) -> Tensor:
    """The greatest of the singular values `values` of `a`, times `relative`; by default that is max(m, n) * eps."""
    if relative is None:
        relative = cast(reduce_max(shape(a)[-2:]), values.dtype) * float(np.finfo(values.dtype.numpy).eps)
    return multiply(reduce_max(values, -1, keepdims=True), relative)


def pinv(
    a: TensorLike, rcond: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Compute the Moore-Penrose inverse of matrices.

    Args:
        a: ``[..., m, n]``, float32 or float64.
        rcond: A scalar. Singular values up to `rcond` times the greatest one count as 0. The default is
            ``10 * max(m, n) * eps``, where eps is the machine epsilon of the dtype.
        validate_args: Accepted for compatibility.
        name: Name scope of the operations.

    Returns:
        ``[..., n, m]``.
    """
    with get_default_graph().name_scope(name or "pinv"):
        a = convert_to_tensor(a)
        values, left, right = svd(a)
        if rcond is None:
            rcond = 10 * cast(reduce_max(shape(a)[-2:]), values.dtype) * float(np.finfo(values.dtype.numpy).eps)
        else:
            rcond = expand_dims(convert_to_tensor(rcond, values.dtype), -1)
        is_large = greater(values, _tolerance(a, values, rcond))
        # The inner `where` replaces small values by 1: dividing by 0 would make the gradient NaN.
        inverse = where(is_large, realdiv(1, where(is_large, values, zeros_like(values) + 1)), zeros_like(values))
        return matmul(right * expand_dims(inverse, -2), left, adjoint_b=True)
