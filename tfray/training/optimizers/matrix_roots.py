"""Powers of symmetric matrices by iterations of matrix products, which need no decomposition."""

from __future__ import annotations

from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.array_ops import eye
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.math import math_ops
from tfray.ops.math.linalg_ops import matmul


def _norm(matrix: Tensor) -> Tensor:
    return math_ops.sqrt(math_ops.reduce_sum(matrix * matrix))


def matrix_square_root(
    mat_a: TensorLike, mat_a_size: TensorLike, iter_count: int = 100, ridge_epsilon: float = 1e-4
) -> Tensor:
    """The square root of a matrix without negative eigenvalues, by the coupled iteration of Newton and Schulz.

    It stops before the round that would make the error larger.

    Args:
        mat_a: Shape ``[size, size]``, a float dtype: a symmetric matrix.
        mat_a_size: Its size.
        iter_count: Most rounds.
        ridge_epsilon: Added to the diagonal.

    Returns:
        Same shape and dtype.

    References:
        Higham, "Stable iterations for the matrix square root", 1997.
    """
    given = convert_to_tensor(mat_a)
    unit = eye(mat_a_size, dtype=given.dtype)
    matrix = given + ridge_epsilon * unit
    norm = _norm(matrix)

    def improves(turn: Tensor, root: Any, last: Any, inverse: Any, error: Tensor, before: Tensor) -> Tensor:
        return math_ops.logical_and(turn < iter_count, error < before)

    def improved(turn: Tensor, root: Any, last: Any, inverse: Any, error: Tensor, before: Tensor) -> Any:
        factor = 0.5 * (3.0 * unit - matmul(inverse, root))
        new = matmul(root, factor)
        left = _norm(matrix - norm * matmul(new, new)) / norm
        return turn + 1, new, root, matmul(factor, inverse), left, error

    start = matrix / norm
    return while_loop(improves, improved, [0, start, start, unit, norm, norm + 1.0])[2] * math_ops.sqrt(norm)


def matrix_inverse_pth_root(
    mat_g: TensorLike,
    mat_g_size: TensorLike,
    alpha: float,
    iter_count: int = 100,
    epsilon: float = 1e-6,
    ridge_epsilon: float = 1e-6,
) -> Tensor:
    """A matrix to the power ``-1 / p`` for a whole number p, by the iteration of Schur and Newton.

    Args:
        mat_g: Shape ``[size, size]``, a float dtype: a symmetric matrix without negative eigenvalues.
        mat_g_size: Its size.
        alpha: The power.
        iter_count: Most rounds.
        epsilon: The iteration ends when no element is farther off.
        ridge_epsilon: Added to the diagonal.

    Returns:
        Same shape and dtype.

    Raises:
        ValueError: There is no such p.

    References:
        Guo and Higham, "A Schur-Newton method for the matrix p-th root and its inverse", 2006.
    """
    given = convert_to_tensor(mat_g)
    unit = eye(mat_g_size, dtype=given.dtype)
    matrix = given + ridge_epsilon * unit
    if isinstance(mat_g_size, int) and mat_g_size == 1:
        return math_ops.pow(matrix, alpha)
    times = round(-1 / alpha)
    if times < 1 or abs(times * alpha + 1) > 1e-6:
        raise ValueError(f"the power must be -1 / p for a whole p, not {alpha}: by iteration there is no other")
    scale = (1 + times) / (2 * _norm(matrix))

    def is_far(turn: Tensor, product: Tensor, _power: Tensor) -> Tensor:
        return math_ops.logical_and(turn < iter_count, math_ops.reduce_max(math_ops.abs(product - unit)) > epsilon)

    def nearer(turn: Tensor, product: Tensor, power: Tensor) -> Any:
        factor = (1 - alpha) * unit + alpha * product
        return turn + 1, matmul(_whole_power(factor, times), product), matmul(power, factor)

    return while_loop(is_far, nearer, [0, scale * matrix, unit * math_ops.pow(scale, -alpha)])[2]


def _whole_power(matrix: Tensor, times: int) -> Tensor:
    """The product of a matrix with itself, in as few products as its square, the square of that, and so on allow."""
    if times == 1:
        return matrix
    half = _whole_power(matmul(matrix, matrix), times // 2)
    return matmul(matrix, half) if times % 2 else half
