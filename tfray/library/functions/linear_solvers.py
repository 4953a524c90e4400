"""Iterative methods of linear algebra, which know a matrix only by its products with vectors.

Public as ``tf.contrib.solvers``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros, zeros_like
from tfray.ops.arrays.join_ops import concat
from tfray.ops.arrays.shape_ops import cast, expand_dims, shape, squeeze
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import conj, maximum, sqrt, square
from tfray.ops.math.comparison_ops import logical_and
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.random.random_ops import random_uniform


class LinearOperator(NamedTuple):
    """A matrix ``A`` of shape ``[m, n]`` as functions of matrices whose columns are vectors.

    ``shape`` is a list of two ints or an int32 vector, ``apply(x)`` is ``A x``, ``apply_adjoint(x)`` is ``A* x``.
    """

    shape: Sequence[int] | Tensor
    dtype: DType
    apply: Callable[[Tensor], Tensor]
    apply_adjoint: Callable[[Tensor], Tensor]


class SolverState(NamedTuple):
    """Where a solver ended: ``i`` iterations, the solution ``x``, the residual ``r``, the next direction ``p``, and
    the squared norm ``gamma`` that it brings to 0."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


class LanczosBidiagonalization(NamedTuple):
    """``A v = u B``, where `alpha` is the diagonal of ``B``, and `beta` the one below it."""

    u: Tensor
    v: Tensor
    alpha: Tensor
    beta: Tensor


def _shape(matrix: Tensor) -> list[int] | Tensor:
    static = matrix.get_shape()
    return static.as_list() if static.is_fully_defined() else shape(matrix)  # type: ignore[return-value]


def create_operator(matrix: Tensor) -> LinearOperator:
    """The `LinearOperator` of a matrix, shape ``[m, n]``."""
    return LinearOperator(
        _shape(matrix), matrix.dtype, lambda x: matmul(matrix, x), lambda x: matmul(matrix, x, adjoint_a=True)
    )


def identity_operator(matrix: Tensor) -> LinearOperator:
    """A `LinearOperator` of the shape and dtype of a matrix, which leaves vectors as they are."""
    return LinearOperator(_shape(matrix), matrix.dtype, lambda x: x, lambda x: x)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """The sum of the products of `y` and the conjugate of `x`, a scalar."""
    return reduce_sum(conj(x) * y)


def l2norm_squared(v: Tensor) -> Tensor:
    """The sum of the squared magnitudes of all elements, a scalar of the dtype of `v`."""
    return cast(reduce_sum(square(absolute(v))), v.dtype)


def l2norm(v: Tensor) -> Tensor:
    """The square root of `l2norm_squared`."""
    return sqrt(l2norm_squared(v))


def l2normalize(v: Tensor) -> tuple[Tensor, Tensor]:
    """`v` divided by its norm, and the norm. A `v` of zeros stays as it is."""
    length = l2norm(v)
    smallest = cast(v.dtype.as_numpy_dtype(1e-30), v.dtype)
    return v / (maximum(length, smallest) if v.dtype.is_floating else length), length


def conjugate_gradient(
    operator: LinearOperator,
    rhs: Tensor,
    preconditioner: LinearOperator | None = None,
    x: TensorLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> SolverState:
    """Solve ``A x = rhs`` for a selfadjoint positive definite ``A`` by conjugate gradients.

    Args:
        operator: ``A``, shape ``[n, n]``.
        rhs: Shape ``[n]``.
        preconditioner: An approximate inverse of ``A``, with `apply`.
        x: Where to begin, shape ``[n]``; zeros when None.
        tol: Ends when the norm of the residual is this part of that of `rhs`.
        max_iter: The most iterations.
        name: Name of the operations.

    Returns:
        The last state. ``gamma`` is ``r* M r`` with the preconditioner ``M``, without one the squared norm of ``r``.
    """

    def precondition(vector: Tensor) -> Tensor:
        return vector if preconditioner is None else preconditioner.apply(vector)

    with get_default_graph().name_scope(name):
        right = expand_dims(rhs, -1)
        goal = l2norm(right) * tol
        begin = zeros_like(right) if x is None else expand_dims(convert_to_tensor(x, dtype=rhs.dtype), -1)
        residual = right if x is None else right - operator.apply(begin)
        direction = precondition(residual)

        def step(state: SolverState) -> tuple[SolverState]:
            image = operator.apply(state.p)
            length = state.gamma / dot(state.p, image)
            residual = state.r - length * image
            descent = precondition(residual)
            gamma = dot(residual, descent)
            direction = descent + gamma / state.gamma * state.p
            return (SolverState(state.i + 1, state.x + length * state.p, residual, direction, gamma),)

        first = SolverState(convert_to_tensor(0), begin, residual, direction, dot(residual, direction))
        return _solve(step, first, lambda state: absolute(l2norm(state.r)) > absolute(goal), max_iter)


def cgls(
    operator: LinearOperator, rhs: Tensor, tol: float = 1e-6, max_iter: int = 20, name: str = "cgls"
) -> SolverState:
    """Find the ``x`` for which the norm of ``A x - rhs`` is least, by conjugate gradients.

    Args:
        operator: ``A``, shape ``[m, n]``.
        rhs: Shape ``[m]``.
        tol: Ends when the norm of ``A* (rhs - A x)`` is this part of that of ``A* rhs``.
        max_iter: The most iterations.
        name: Name of the operations.

    Returns:
        The last state. ``x`` and ``p`` have shape ``[n]``, ``r`` has ``[m]``.
        ``gamma`` is the squared norm of ``A* r``.
    """
    with get_default_graph().name_scope(name):
        right = expand_dims(rhs, -1)
        slope = operator.apply_adjoint(right)
        gamma = l2norm_squared(slope)

        def step(state: SolverState) -> tuple[SolverState]:
            image = operator.apply(state.p)
            length = state.gamma / l2norm_squared(image)
            residual = state.r - length * image
            slope = operator.apply_adjoint(residual)
            gamma = l2norm_squared(slope)
            direction = slope + gamma / state.gamma * state.p
            return (SolverState(state.i + 1, state.x + length * state.p, residual, direction, gamma),)

        first = SolverState(convert_to_tensor(0), zeros_like(slope), right, slope, gamma)
        goal = absolute(gamma) * tol**2
        return _solve(step, first, lambda state: absolute(state.gamma) > goal, max_iter)


def _solve(
    step: Callable[[SolverState], tuple[SolverState]],
    first: SolverState,
    unfinished: Callable[[SolverState], Tensor],
    max_iter: int,
) -> SolverState:
    shapes = [each.get_shape() for each in first]

    def body(state: SolverState) -> tuple[SolverState]:
        (after,) = step(state)
        for tensor, static in zip(after, shapes, strict=True):
            tensor.set_shape(static)
        return (after,)

    (last,) = while_loop(
        lambda state: logical_and(state.i < max_iter, unfinished(state)), body, [first], return_same_structure=True
    )
    return SolverState(last.i, squeeze(last.x, [-1]), squeeze(last.r, [-1]), squeeze(last.p, [-1]), last.gamma)


def lanczos_bidiag(
    operator: LinearOperator,
    k: int,
    orthogonalize: bool = True,
    starting_vector: TensorLike | None = None,
    name: str = "lanczos_bidiag",
) -> LanczosBidiagonalization:
    """Find orthonormal ``u`` and ``v`` and a lower bidiagonal ``B`` with ``A v = u B``, by Lanczos' method.

    Args:
        operator: ``A``, shape ``[m, n]``.
        k: The number of steps.
        orthogonalize: Make each new vector orthogonal to all before. Otherwise rounding errors grow with the steps.
        starting_vector: The direction of the first column of ``u``, shape ``[m]``; random when None.
        name: Name of the operations.

    Returns:
        ``u`` of shape ``[m, k + 1]``, ``v`` of shape ``[n, k]``, and the diagonals `alpha` and `beta`, each ``[k]``.

    Raises:
        InvalidArgumentError: `k` is not positive.
    """
    if k < 1:
        raise InvalidArgumentError(f"k is {k}, expected one step or more")
    with get_default_graph().name_scope(name):
        rows = operator.shape[0]
        start = random_uniform([rows], -1.0, 1.0, operator.dtype) if starting_vector is None else starting_vector
        u, _ = l2normalize(expand_dims(convert_to_tensor(start, dtype=operator.dtype), -1))
        us, vs, alphas, betas = [u], list[Tensor](), list[Tensor](), list[Tensor]()
        for _ in range(k):
            v = operator.apply_adjoint(us[-1])
            if vs:
                v = v - betas[-1] * vs[-1]
            v, alpha = l2normalize(_orthogonal(v, vs) if orthogonalize else v)
            u = operator.apply(v) - alpha * us[-1]
            u, beta = l2normalize(_orthogonal(u, us) if orthogonalize else u)
            us, vs, alphas, betas = [*us, u], [*vs, v], [*alphas, alpha], [*betas, beta]
        diagonals = [concat([expand_dims(each, 0) for each in values], 0) for values in (alphas, betas)]
        return LanczosBidiagonalization(concat(us, 1), concat(vs, 1), *diagonals)


def _orthogonal(vector: Tensor, basis: Sequence[Tensor]) -> Tensor:
    # Once leaves an error as large as what cancels, twice does not.
    for _ in range(2 if basis else 0):
        columns = concat(list(basis), 1)
        vector = vector - matmul(columns, matmul(columns, vector, adjoint_a=True))
    return vector


def bidiag_matmul(
    matrix: Tensor, alpha: Tensor, beta: Tensor, adjoint_b: bool = False, name: str = "bidiag_matmul"
) -> Tensor:
    """Multiply a matrix by a lower bidiagonal one, ``B`` of shape ``[k + 1, k]``, or by the adjoint of its first rows.

    Args:
        matrix: Shape ``[m, k + 1]``, with `adjoint_b` ``[m, k]``.
        alpha: The diagonal of ``B``, shape ``[k]``.
        beta: The diagonal below it, shape ``[k]``.
        adjoint_b: Multiply by the adjoint of the first ``k`` rows of ``B``.
        name: Name of the operations.

    Returns:
        Shape ``[m, k]``.
    """
    with get_default_graph().name_scope(name):
        if not adjoint_b:
            return matrix[:, :-1] * alpha + matrix[:, 1:] * beta
        before = concat([zeros([shape(matrix)[0], 1], matrix.dtype), matrix[:, :-1] * beta[:-1]], 1)
        return matrix * alpha + before
