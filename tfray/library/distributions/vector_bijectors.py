"""Maps of vectors and matrices (`Bijector`): affine ones, permutations, shares, triangles, and flows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.bijector import Bijector, Chain, known_length, length_of, nothing_like
from tfray.library.distributions.checks import after, not_singular
from tfray.library.distributions.elementwise_bijectors import AffineScalar, Softplus
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.arrays.matrix_ops import matrix_band_part, matrix_diag, matrix_diag_part, matrix_set_diag
from tfray.ops.checks.check_ops import (
    assert_equal,
    assert_greater_equal,
    assert_less_equal,
    assert_none_equal,
    assert_positive,
)
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.linalg import decomposition_ops, solve_ops
from tfray.ops.math import math_ops, sorting_ops
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.math_ops import cumsum, exp, log, reduce_logsumexp, reduce_sum
from tfray.ops.nn.activation_ops import softplus
from tfray.ops.nn.cross_entropy_ops import softmax

# -- triangles -----------------------------------------------------------------------------------------


def fill_triangular(x: TensorLike, upper: bool = False, name: str | None = None) -> Tensor:
    """Triangular matrices ``[..., n, n]`` of the numbers in vectors ``[..., n (n + 1) / 2]``.

    They go round: those of one triangle of three rows, ``[1, ..., 6]``, are ``[[4, 0, 0], [6, 5, 0], [3, 2, 1]]``.

    Args:
        x: The vectors.
        upper: Fill the upper triangle, not the lower one.
        name: Name scope of the operations.

    Raises:
        ValueError: The size of the vectors is none of these numbers.
    """
    with get_default_graph().name_scope(name or "fill_triangular"):
        x = convert_to_tensor(x, name="x")
        count = x.shape.as_list()[-1] if x.shape.rank else None
        size = _rows_of_tensor(array_ops.shape(x)[-1]) if count is None else convert_to_tensor(_rows_of(count))
        parts = [x, array_ops.reverse(x[..., size:], [-1])] if upper else [x[..., size:], array_ops.reverse(x, [-1])]
        square = array_ops.concat([array_ops.shape(x)[:-1], array_ops.stack([size, size])], 0)
        filled = array_ops.reshape(array_ops.concat(parts, -1), square)
        filled = matrix_band_part(filled, 0, -1) if upper else matrix_band_part(filled, -1, 0)
        if count is not None:
            filled.set_shape(x.shape[:-1].concatenate([_rows_of(count)] * 2))
        return filled


def fill_triangular_inverse(x: TensorLike, upper: bool = False, name: str | None = None) -> Tensor:
    """The vectors ``[..., n (n + 1) / 2]`` of which `fill_triangular` makes matrices ``[..., n, n]``.

    Args:
        x: The matrices.
        upper: Whether they are upper triangles.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name or "fill_triangular_inverse"):
        x = convert_to_tensor(x, name="x")
        size = x.shape.as_list()[-1] if x.shape.rank else None
        rows = array_ops.shape(x)[-1] if size is None else convert_to_tensor(size)
        first = x[..., 0, :] if upper else array_ops.reverse(x[..., -1, :], [-1])
        others = x[..., 1:, :] if upper else x[..., :-1, :]
        both = others + array_ops.reverse(others, [-1, -2])
        sizes = array_ops.concat([array_ops.shape(x)[:-2], array_ops.stack([rows * (rows - 1)])], 0)
        rest = array_ops.reshape(both, sizes)[..., : rows * (rows - 1) // 2]
        vectors = array_ops.concat([first, rest], -1)
        vectors.set_shape(x.shape[:-2].concatenate([None if size is None else size * (size + 1) // 2]))
        return vectors


def matrix_diag_transform(
    matrix: TensorLike, transform: Callable[[Tensor], Tensor] | None = None, name: str | None = None
) -> Tensor:
    """Matrices with what a function makes of their diagonals in place of these.

    Args:
        matrix: Square matrices.
        transform: The function of the diagonals; they stay when None.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name or "matrix_diag_transform"):
        matrix = convert_to_tensor(matrix, name="matrix")
        return matrix if transform is None else matrix_set_diag(matrix, transform(matrix_diag_part(matrix)))


def _rows_of_tensor(count: Tensor) -> Tensor:
    rows = math_ops.sqrt(0.25 + 2.0 * array_ops.cast(count, dtypes.float64)) - 0.5
    return array_ops.cast(rows, dtypes.int32)


def _rows_of(count: int) -> int:
    if not _is_triangular(count):
        raise ValueError(f"Input right-most shape ({count}) does not correspond to a triangular matrix.")
    return (math.isqrt(8 * count + 1) - 1) // 2


def _is_triangular(count: int) -> bool:
    return math.isqrt(8 * count + 1) ** 2 == 8 * count + 1


class FillTriangular(Bijector):
    """`fill_triangular`.

    Args:
        upper: Whether the upper triangle is filled.
        validate_args: See `Bijector`.
        name: See `Bijector`.
    """

    def __init__(self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular") -> None:
        self._upper = upper
        super().__init__(None, True, validate_args, None, 1, 2, name)

    def _forward(self, x: Tensor) -> Tensor:
        return fill_triangular(x, self._upper)

    def _inverse(self, y: Tensor) -> Tensor:
        return fill_triangular_inverse(y, self._upper)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return nothing_like(x)

    def _forward_event_shape(self, input_shape: TensorShape) -> ShapeLike:
        batch, count = input_shape[:-1], input_shape.as_list()[-1]
        if count is not None and not _is_triangular(count):
            raise ValueError(f"Vector length {count} is not a triangular number.")
        rows = None if count is None else _rows_of(count)
        return batch.concatenate([rows, rows])

    def _inverse_event_shape(self, output_shape: TensorShape) -> ShapeLike:
        batch, (first, second) = output_shape[:-2], output_shape.as_list()[-2:]
        if None not in (first, second) and first != second:
            raise ValueError("Matrix must be square.")
        rows = second if first is None else first
        return batch.concatenate([None if rows is None else rows * (rows + 1) // 2])

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        rows = _rows_of_tensor(input_shape[-1])
        if self.validate_args:
            claim = "Vector length is not a triangular number."
            rows = after([assert_equal(rows * (rows + 1) // 2, input_shape[-1], message=claim)], rows)
        return array_ops.concat([input_shape[:-1], [rows, rows]], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        rows = output_shape[-1]
        if self.validate_args:
            rows = after([assert_equal(output_shape[-2], rows, message="Matrix must be square.")], rows)
        return array_ops.concat([output_shape[:-2], [rows * (rows + 1) // 2]], 0)


# -- affine --------------------------------------------------------------------------------------------


class Affine(Bijector):
    """``scale @ x + shift`` of vectors, where the matrix `scale` is the sum of the parts that are given.

    Args:
        shift: What is added, ``[..., d]``; nothing when None.
        scale_identity_multiplier: A factor of the unit matrix, ``[...]``.
        scale_diag: A diagonal matrix's diagonal, ``[..., d]``.
        scale_tril: A lower triangular matrix, ``[..., d, d]``; what is above its diagonal does not count.
        scale_perturb_factor: ``[..., d, r]``: a matrix V for the part ``V @ diag @ V^T``.
        scale_perturb_diag: The diagonal of that part, ``[..., r]``; ones when None.
        validate_args: Check that diagonals have no 0.
        name: See `Bijector`.

    Raises:
        ValueError: `scale_perturb_diag` is given alone.
    """

    def __init__(
        self,
        shift: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_tril: TensorLike | None = None,
        scale_perturb_factor: TensorLike | None = None,
        scale_perturb_diag: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "affine",
    ) -> None:
        if scale_perturb_diag is not None and scale_perturb_factor is None:
            raise ValueError("When scale_perturb_diag is specified, scale_perturb_factor must be specified.")
        given = {
            "shift": shift,
            "scale_identity_multiplier": scale_identity_multiplier,
            "scale_diag": scale_diag,
            "scale_tril": scale_tril,
            "scale_perturb_factor": scale_perturb_factor,
            "scale_perturb_diag": scale_perturb_diag,
        }
        parts = {key: convert_to_tensor(value, name=key) for key, value in given.items() if value is not None}
        self.shift = parts.get("shift")
        names = "scale_identity_multiplier", "scale_diag", "scale_tril"
        multiplier, diagonal, self._tril = (parts.get(key) for key in names)
        factor = parts.get("scale_perturb_factor")
        if self._tril is not None:
            self._tril = matrix_band_part(self._tril, -1, 0)
        # One number for all elements, a diagonal, or a matrix.
        self._multiplier = multiplier if diagonal is None and self._tril is None and factor is None else None
        self._diagonal = self._matrix = None
        if self._multiplier is None and parts.keys() - {"shift"}:
            own = None if multiplier is None else multiplier[..., None]
            if self._tril is not None:
                own = matrix_diag_part(self._tril) if own is None else own + matrix_diag_part(self._tril)
            if diagonal is not None:
                own = diagonal if own is None else own + diagonal
            if own is not None and validate_args:
                own = not_singular(own)
            self._diagonal = own
            self._matrix = self._as_matrix(own, factor, parts.get("scale_perturb_diag"))
        self._is_triangle = factor is None
        super().__init__(list(parts.values()), True, validate_args, None, 1, 1, name)

    def _as_matrix(self, diagonal: Tensor | None, factor: Tensor | None, weights: Tensor | None) -> Tensor | None:
        """The matrix, unless it is but a diagonal."""
        if self._tril is None and factor is None:
            return None
        matrix = None
        if self._tril is not None and diagonal is not None:
            matrix = self._tril + array_ops.zeros_like(diagonal)[..., None]
            matrix = matrix_set_diag(matrix, diagonal + array_ops.zeros_like(matrix[..., 0]))
        if factor is not None:
            weighted = factor if weights is None else factor * weights[..., None, :]
            low_rank = matmul(weighted, factor, transpose_b=True)
            if matrix is None:
                size = array_ops.shape(factor)[-2]
                ones = array_ops.ones(array_ops.stack([size]), factor.dtype)
                matrix = matrix_diag(ones if diagonal is None else diagonal * ones)
            matrix = matrix + low_rank
        return matrix

    @property
    def scale(self) -> Tensor | None:
        """The factor of the unit matrix, the diagonal, or the matrix; None where nothing is scaled."""
        return next((part for part in (self._matrix, self._diagonal, self._multiplier) if part is not None), None)

    def _forward(self, x: Tensor) -> Tensor:
        if self._matrix is not None:
            y = _of_vectors(matmul, self._matrix, x)
        elif self._diagonal is not None:
            y = x * self._diagonal
        else:
            y = x if self._multiplier is None else x * self._multiplier[..., None]
        return array_ops.identity(y) if self.shift is None else y + self.shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self.shift is None else y - self.shift
        if self._matrix is not None and self._is_triangle:
            return _of_vectors(solve_ops.matrix_triangular_solve, self._matrix, x)
        if self._matrix is not None:
            return _of_vectors(matmul, solve_ops.matrix_inverse(self._matrix), x)
        if self._diagonal is not None:
            return x / self._diagonal
        return array_ops.identity(x) if self._multiplier is None else x / self._multiplier[..., None]

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._matrix is not None and not self._is_triangle:
            return solve_ops.slogdet(self._matrix)[1]
        if self._diagonal is not None:
            size = array_ops.ones(array_ops.shape(x)[-1:], x.dtype)
            return reduce_sum(log(math_ops.abs(self._diagonal)) * size, -1)
        if self._multiplier is None:
            return nothing_like(x)
        return log(math_ops.abs(self._multiplier)) * array_ops.cast(array_ops.shape(x)[-1], x.dtype)


def _of_vectors(function: Callable[[Tensor, Tensor], Tensor], matrix: Tensor, x: Tensor) -> Tensor:
    """A function of a matrix and of columns, for vectors ``[..., d]``."""
    if matrix.shape.rank != 2:
        return function(matrix, x[..., None])[..., 0]
    # One matrix for vectors of any rank, also one that only the step knows.
    rows = array_ops.reshape(x, array_ops.stack([-1, array_ops.shape(x)[-1]]))
    y = array_ops.reshape(array_ops.transpose(function(matrix, array_ops.transpose(rows))), array_ops.shape(x))
    y.set_shape(x.shape)
    return y


# -- vectors -------------------------------------------------------------------------------------------


class Permute(Bijector):
    """Puts the elements of vectors in another order: ``x[..., permutation]``.

    Args:
        permutation: The numbers from 0 to ``d - 1``, each once.
        validate_args: Check that of a tensor while a step runs.
        name: See `Bijector`; ``permute`` when None.

    Raises:
        TypeError: They are not integers.
        ValueError: They are not all of these.
    """

    def __init__(self, permutation: TensorLike, validate_args: bool = False, name: str | None = None) -> None:
        self.permutation = convert_to_tensor(permutation, name="permutation")
        if not self.permutation.dtype.is_integer:
            raise TypeError(f"permutation.dtype ({self.permutation.dtype.name}) should be `int`-like.")
        known = constant_value(self.permutation)
        if known is not None and not np.array_equal(np.sort(known), np.arange(known.size)):
            raise ValueError("Permutation over `d` must contain exactly one of each of `{0, 1, ..., d}`.")
        if validate_args and known is None:
            size = array_ops.shape(self.permutation)[-1]
            complete = assert_equal(
                sorting_ops.sort(self.permutation),
                array_ops.cast(array_ops.range(size), self.permutation.dtype),
                message="Permutation over `d` must contain exactly one of each of `{0, 1, ..., d}`.",
            )
            self.permutation = after([complete], self.permutation)
        super().__init__([self.permutation], True, validate_args, None, 1, 1, name or "permute")

    def _forward(self, x: Tensor) -> Tensor:
        return array_ops.gather(x, self.permutation, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return array_ops.gather(y, array_ops.invert_permutation(self.permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return nothing_like(x)


class Reshape(Bijector):
    """Gives events another shape.

    Args:
        event_shape_out: The shape of images; one size may be -1.
        event_shape_in: The shape of events; one size may be -1.
        validate_args: Check while a step runs that the sizes fit.
        name: See `Bijector`; ``reshape`` when None.

    Raises:
        TypeError: A shape is not of integers.
        ValueError: A shape is no vector.
        InvalidArgumentError: With `validate_args`, a shape has negative sizes other than -1.
    """

    def __init__(
        self,
        event_shape_out: TensorLike,
        event_shape_in: TensorLike = (-1,),
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        self._out = _checked_shape(event_shape_out, "event_shape_out", validate_args)
        self._in = _checked_shape(event_shape_in, "event_shape_in", validate_args)
        # The volume stays the same whatever the events are, so that any number of dimensions may be one.
        super().__init__([self._in, self._out], True, validate_args, None, 0, 0, name or "reshape")

    def _reshaped(self, value: Tensor, before: Tensor, after_: Tensor) -> Tensor:
        static = self._static(value.shape, before, after_)
        sizes, length = array_ops.shape(value), array_ops.rank(value) - length_of(before)
        if self.validate_args and (constant_value(before) is None or not value.shape.is_fully_defined()):
            given = where_v2(before >= 0, sizes[length:], before)
            fits = assert_equal(given, before, message="Input `event_shape` does not match `event_shape_in`.")
            value = after([fits], value)
        outer = sizes[:length]
        reshaped = array_ops.reshape(value, array_ops.concat([outer, after_], 0))
        reshaped.set_shape(static)
        return reshaped

    def _forward(self, x: Tensor) -> Tensor:
        return self._reshaped(x, self._in, self._out)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._reshaped(y, self._out, self._in)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return nothing_like(x)

    def _forward_event_shape(self, input_shape: TensorShape) -> ShapeLike:
        return self._static(input_shape, self._in, self._out)

    def _inverse_event_shape(self, output_shape: TensorShape) -> ShapeLike:
        return self._static(output_shape, self._out, self._in)

    @staticmethod
    def _static(shape: TensorShape, before: Tensor, after_: Tensor) -> TensorShape:
        count = known_length(before)
        if shape.rank is None or count is None or known_length(after_) is None:
            return TensorShape(None)
        batch, event = shape[: shape.rank - count], shape[shape.rank - count :]
        return batch.concatenate(_shape_after(event, before, after_))

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return _shape_tensor_after(input_shape, self._in, self._out)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return _shape_tensor_after(output_shape, self._out, self._in)


def _checked_shape(shape: TensorLike, name: str, validate: bool) -> Tensor:
    given = shape.as_list() if isinstance(shape, TensorShape) else shape
    if isinstance(given, (list, tuple)) and not given:
        given = np.zeros(0, np.int32)
    tensor = convert_to_tensor(given, name=name)
    if not tensor.dtype.is_integer:
        raise TypeError(f"{name} dtype ({tensor.dtype.name}) should be `int`-like.")
    if tensor.shape.rank is not None and tensor.shape.rank != 1:
        raise ValueError(f"{name} rank should be 1.")
    known = constant_value(tensor)
    tensor = array_ops.cast(tensor, dtypes.int32)
    if not validate or (known is not None and (known >= 0).all()):
        return tensor
    unknown = reduce_sum(array_ops.cast(math_ops.equal(tensor, -1), dtypes.int32))
    checks = [
        assert_greater_equal(tensor, -1, message=f"`{name}` elements must be either positive integers or `-1`."),
        assert_less_equal(unknown, 1, message=f"`{name}` elements must have at most one `-1`."),
    ]
    return tensor if known is not None and (known == -1).sum() == 1 else after(checks, tensor)


def _shape_after(event: TensorShape, before: Tensor, after_: Tensor) -> TensorShape:
    """The static shape of a reshaped event. Raises `ValueError` where it cannot be reshaped so."""
    expected, wanted = constant_value(before), constant_value(after_)
    if expected is not None:
        given = TensorShape([None if size < 0 else size for size in expected.tolist()])
        if not event.is_compatible_with(given):
            raise ValueError(f"Input `event_shape` does not match `event_shape_in` ({event} vs {given}).")
        event = event.merge_with(given)
    if wanted is None:
        return TensorShape([None] * (known_length(after_) or 0))
    sizes = [None if size < 0 else size for size in wanted.tolist()]
    total = event.num_elements()
    if total is None or sizes.count(None) > 1:
        return TensorShape(sizes)
    rest = int(np.prod([size for size in sizes if size is not None]))
    if None in sizes and rest and total % rest == 0:
        sizes[sizes.index(None)] = total // rest
    elif None in sizes or rest != total:
        raise ValueError(
            f"Cannot reshape a tensor with {total} elements to shape {wanted.tolist()}, as events {event} have"
        )
    return TensorShape(sizes)


def _shape_tensor_after(shape: Tensor, before: Tensor, after_: Tensor) -> Tensor:
    """`_shape_after` of a shape of which the last sizes are those of an event, as a tensor."""
    count = length_of(before)
    rank = array_ops.size(shape)
    total = math_ops.reduce_prod(shape[rank - count :])
    known = math_ops.reduce_prod(math_ops.maximum(after_, 1))
    filled = array_ops.where(after_ < 0, array_ops.zeros_like(after_) + total // known, after_)
    return array_ops.concat([shape[: rank - count], filled], 0)


class SoftmaxCentered(Bijector):
    """The softmax of vectors with a 0 put behind them: vectors of shares, with one element more.

    Args:
        validate_args: See `Bijector`.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "softmax_centered") -> None:
        super().__init__(None, False, validate_args, None, 1, 1, name)

    def _forward(self, x: Tensor) -> Tensor:
        return softmax(array_ops.concat([x, array_ops.zeros_like(x[..., :1])], -1))

    def _inverse(self, y: Tensor) -> Tensor:
        shares = log(y)
        return shares[..., :-1] - shares[..., -1:]

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -reduce_sum(log(y), -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        whole = softplus(reduce_logsumexp(x, -1, keepdims=True))
        return (-whole + reduce_sum(x - whole, -1, keepdims=True))[..., 0]

    def _forward_event_shape(self, input_shape: TensorShape) -> ShapeLike:
        return _longer(input_shape, 1)

    def _inverse_event_shape(self, output_shape: TensorShape) -> ShapeLike:
        return _longer(output_shape, -1)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return array_ops.concat([input_shape[:-1], input_shape[-1:] + 1], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return array_ops.concat([output_shape[:-1], output_shape[-1:] - 1], 0)


def _longer(shape: TensorShape, by: int) -> TensorShape:
    if not shape.rank:
        return shape
    size = shape.as_list()[-1]
    if size is not None and size + by < 1:
        raise ValueError(f"an event of shape {shape} has too few elements")
    return shape[:-1].concatenate([None if size is None else size + by])


class Ordered(Bijector):
    """Of growing vectors the first number, and the logarithms of the steps.

    Args:
        validate_args: Check that vectors grow.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "ordered") -> None:
        super().__init__(None, False, validate_args, None, 1, 1, name)

    def _steps(self, x: Tensor) -> Tensor:
        steps = x[..., 1:] - x[..., :-1]
        if not self.validate_args:
            return steps
        message = "Forward transformation input must be strictly increasing."
        return after([assert_positive(steps, message=message)], steps)

    def _forward(self, x: Tensor) -> Tensor:
        return array_ops.concat([x[..., :1], log(self._steps(x))], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return cumsum(array_ops.concat([y[..., :1], exp(y[..., 1:])], -1), -1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return reduce_sum(y[..., 1:], -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -reduce_sum(log(self._steps(x)), -1)


# -- matrices ------------------------------------------------------------------------------------------


class CholeskyOuterProduct(Bijector):
    """``x @ x^T`` of lower triangular matrices with a positive diagonal; its inverse is Cholesky's factor.

    Args:
        validate_args: Check that diagonals are positive.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "cholesky_outer_product") -> None:
        super().__init__(None, False, validate_args, None, 2, 2, name)

    def _checked(self, x: Tensor) -> Tensor:
        return after([assert_positive(matrix_diag_part(x))], x) if self.validate_args else x

    def _forward(self, x: Tensor) -> Tensor:
        x = self._checked(x)
        return matmul(x, x, adjoint_b=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return decomposition_ops.cholesky(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        diagonal = matrix_diag_part(self._checked(x))
        size = array_ops.shape(diagonal)[-1]
        weights = array_ops.cast(array_ops.range(size, 0, -1), x.dtype)
        return array_ops.cast(size, x.dtype) * math.log(2.0) + reduce_sum(log(diagonal) * weights, -1)


class MatrixInverseTriL(Bijector):
    """Inverses of lower triangular matrices.

    Args:
        validate_args: Check that diagonals have no 0.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "matrix_inverse_tril") -> None:
        super().__init__(None, False, validate_args, None, 2, 2, name)

    def _forward(self, x: Tensor) -> Tensor:
        diagonal = matrix_diag_part(x)
        if self.validate_args:
            x = after([assert_none_equal(diagonal, array_ops.zeros_like(diagonal))], x)
        return solve_ops.matrix_triangular_solve(x, matrix_diag(array_ops.ones_like(diagonal)), lower=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        size = array_ops.cast(array_ops.shape(x)[-1], x.dtype)
        return -(size + 1.0) * reduce_sum(log(math_ops.abs(matrix_diag_part(x))), -1)


class TransformDiagonal(Bijector):
    """A map of the diagonals of matrices.

    Args:
        diag_bijector: The map, of numbers or vectors.
        validate_args: See `Bijector`.
        name: See `Bijector`.
    """

    def __init__(self, diag_bijector: Bijector, validate_args: bool = False, name: str = "transform_diagonal") -> None:
        self._diag_bijector = diag_bijector
        super().__init__(
            diag_bijector.graph_parents, diag_bijector.is_constant_jacobian, validate_args, None, 2, 2, name
        )

    def _forward(self, x: Tensor) -> Tensor:
        return matrix_set_diag(x, self._diag_bijector.forward(matrix_diag_part(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return matrix_set_diag(y, self._diag_bijector.inverse(matrix_diag_part(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._diag_bijector.forward_log_det_jacobian(matrix_diag_part(x), 1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return self._diag_bijector.inverse_log_det_jacobian(matrix_diag_part(y), 1)


class ScaleTriL(Chain):
    """Lower triangular matrices with a positive diagonal, of vectors.

    Args:
        diag_bijector: What makes the diagonal positive; `Softplus` when None.
        diag_shift: Added to the diagonal; nothing when None.
        validate_args: See `Bijector`.
        name: See `Bijector`.
    """

    def __init__(
        self,
        diag_bijector: Bijector | None = None,
        diag_shift: float | None = 1e-5,
        validate_args: bool = False,
        name: str = "scale_tril",
    ) -> None:
        diagonal = diag_bijector or Softplus(validate_args=validate_args)
        if diag_shift is not None:
            diagonal = Chain([AffineScalar(shift=diag_shift), diagonal])
        super().__init__([TransformDiagonal(diagonal), FillTriangular()], validate_args, name)


# -- flows ---------------------------------------------------------------------------------------------

ShiftAndLogScale = Callable[[Tensor, int], tuple[Tensor, Tensor | None]]


class RealNVP(Bijector):
    """Scales and shifts the last elements of vectors by what a function makes of the first ones.

    Args:
        num_masked: How many of the first elements stay as they are.
        shift_and_log_scale_fn: Takes these, and how many others there are; gives what is added to them, and the
            logarithms of their factors, or None.
        is_constant_jacobian: Whether the factors are the same everywhere.
        validate_args: See `Bijector`.
        name: See `Bijector`; ``real_nvp`` when None.

    Raises:
        ValueError: `num_masked` is not positive.
    """

    def __init__(
        self,
        num_masked: int,
        shift_and_log_scale_fn: ShiftAndLogScale,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        if num_masked <= 0:
            raise ValueError("num_masked must be a positive integer.")
        self._num_masked = num_masked
        self._function = shift_and_log_scale_fn
        super().__init__(None, is_constant_jacobian, validate_args, None, 1, 1, name or "real_nvp")

    def _parts(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        size = value.shape.as_list()[-1] if value.shape.rank else None
        if size is None or self._num_masked >= size:
            raise ValueError(f"RealNVP: events have shape {value.shape[-1:]}, expected more than {self._num_masked}")
        first, others = value[..., : self._num_masked], value[..., self._num_masked :]
        return first, others, *self._function(first, size - self._num_masked)

    def _forward(self, x: Tensor) -> Tensor:
        first, others, shift, log_scale = self._parts(x)
        others = others if log_scale is None else others * exp(log_scale)
        return array_ops.concat([first, others + shift], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        first, others, shift, log_scale = self._parts(y)
        others = others - shift
        return array_ops.concat([first, others if log_scale is None else others * exp(-log_scale)], -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        log_scale = self._parts(x)[3]
        return nothing_like(x) if log_scale is None else reduce_sum(log_scale, -1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        log_scale = self._parts(y)[3]
        return nothing_like(y) if log_scale is None else -reduce_sum(log_scale, -1)


class MaskedAutoregressiveFlow(Bijector):
    """Scales and shifts each element of vectors by what a function makes of the elements of the image before it.

    `inverse` calls the function once, `forward` once for each element.

    Args:
        shift_and_log_scale_fn: Takes images; gives what is added, and the logarithms of the factors, or None. What it
            gives for an element must depend on earlier ones only.
        is_constant_jacobian: Whether the factors are the same everywhere.
        validate_args: See `Bijector`.
        unroll_loop: Whether the graph holds the function once for each element, whose number must be known then.
        name: See `Bijector`; ``masked_autoregressive_flow`` when None.
    """

    def __init__(
        self,
        shift_and_log_scale_fn: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        unroll_loop: bool = False,
        name: str | None = None,
    ) -> None:
        self._function = shift_and_log_scale_fn
        self._unroll = unroll_loop
        super().__init__(None, is_constant_jacobian, validate_args, None, 1, 1, name or "masked_autoregressive_flow")

    def _forward(self, x: Tensor) -> Tensor:
        def following(y: Tensor) -> Tensor:
            shift, log_scale = self._function(y)
            y = (x if log_scale is None else x * exp(log_scale)) + shift
            y.set_shape(x.shape)
            return y

        first, size = array_ops.zeros_like(x), x.shape.as_list()[-1] if x.shape.rank else None
        if self._unroll:
            if size is None:
                raise ValueError("The final dimension of `x` must be known at graph construction time.")
            for _ in range(size):
                first = following(first)
            return first
        following(first)  # makes the variables, outside of the loop
        count = array_ops.shape(x)[-1]
        _, y = while_loop(lambda i, _: i < count, lambda i, y: (i + 1, following(y)), (0, first))
        y.set_shape(x.shape)
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        shift, log_scale = self._function(y)
        return y - shift if log_scale is None else (y - shift) * exp(-log_scale)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        log_scale = self._function(y)[1]
        return nothing_like(y) if log_scale is None else -reduce_sum(log_scale, -1)
