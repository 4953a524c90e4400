"""Wishart's distributions of matrices: of the scatter of vectors that have a normal distribution."""

from __future__ import annotations

import math

from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.checks import after
from tfray.library.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.arrays.matrix_ops import matrix_band_part, matrix_diag_part, matrix_set_diag
from tfray.ops.checks.check_ops import assert_equal, assert_less_equal, assert_positive
from tfray.ops.linalg.decomposition_ops import cholesky
from tfray.ops.linalg.solve_ops import matrix_triangular_solve
from tfray.ops.math.math_ops import digamma, lgamma, log, matmul, reduce_sum, sqrt, square
from tfray.ops.random import random_ops


class WishartCholesky(Distribution):
    """Wishart's distributions, by the lower triangular factor of the scale.

    Args:
        df: Degrees of freedom, at least k; broadcast against the batch of `scale`.
        scale: Shape ``[..., k, k]``, lower triangular, with a positive diagonal.
        cholesky_input_output_matrices: Whether samples, values and means are lower triangular factors too.
        validate_args: Check the parameters.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        TypeError: `scale` is not floating.
        ValueError: `df` is less than k.
    """

    def __init__(
        self,
        df: TensorLike,
        scale: TensorLike,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartCholesky",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            factor = convert_to_tensor(scale, name="scale")
            if not factor.dtype.is_floating:
                raise TypeError(f"scale.dtype={factor.dtype.name} is not a floating-point type")
            if validate_args:
                factor = after([assert_positive(matrix_diag_part(factor))], factor)
            factor = matrix_band_part(factor, -1, 0)
            df = convert_to_tensor(df, factor.dtype, "df")
            self.dimension = array_ops.cast(array_ops.shape(factor)[-1], factor.dtype)
            known, size = constant_value(df), factor.shape.as_list()[-1] if factor.shape.rank else None
            if known is not None and size is not None and (known < size).any():
                raise ValueError(
                    f"Degrees of freedom (df = {known}) cannot be less than dimension of scale matrix "
                    f"(scale.dimension = {size})"
                )
            if validate_args and (known is None or size is None):
                message = "Degrees of freedom cannot be less than dimension of scale matrix"
                df = after([assert_less_equal(self.dimension, df, message=message)], df)
            self.df, self._factor = df, factor
            self.cholesky_input_output_matrices = cholesky_input_output_matrices
        super().__init__(
            factor.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [df, factor], name
        )

    def scale(self) -> Tensor:
        """The scale, or its factor where matrices are factors."""
        return self._factor if self.cholesky_input_output_matrices else self._squared(self._factor)

    def mean_log_det(self, name: str = "mean_log_det") -> Tensor:
        """The mean of the logarithm of the determinant of samples."""
        with self._name_scope(name):
            return self._multi_digamma(0.5 * self.df) + self.dimension * math.log(2.0) + self._log_det()

    def log_normalization(self, name: str = "log_normalization") -> Tensor:
        """The logarithm of what the density is divided by."""
        with self._name_scope(name):
            half = 0.5 * self.df
            return half * self._log_det() + self.df * self.dimension * (0.5 * math.log(2.0)) + self._multi_lgamma(half)

    # -- shapes ----------------------------------------------------------------------------------

    def _batch_shape(self) -> TensorShape:
        return self._factor.shape[:-2]

    def _event_shape(self) -> TensorShape:
        return self._factor.shape[-2:]

    def _batch_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._factor)[:-2]

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._factor)[-2:]

    # -- functions of the parameters -------------------------------------------------------------

    @staticmethod
    def _squared(factor: Tensor) -> Tensor:
        return matmul(factor, factor, transpose_b=True)

    def _log_det(self) -> Tensor:
        return 2.0 * reduce_sum(log(matrix_diag_part(self._factor)), -1)

    def _sequence(self, a: Tensor) -> Tensor:
        """What the gamma function of matrices takes those of numbers of, in a last dimension."""
        steps = array_ops.cast(array_ops.range(array_ops.shape(self._factor)[-1]), self.dtype)
        return a[..., None] - 0.5 * steps

    def _multi_lgamma(self, a: Tensor) -> Tensor:
        k = self.dimension
        return 0.25 * math.log(math.pi) * k * (k - 1.0) + reduce_sum(lgamma(self._sequence(a)), -1)

    def _multi_digamma(self, a: Tensor) -> Tensor:
        return reduce_sum(digamma(self._sequence(a)), -1)

    # -- what it knows ---------------------------------------------------------------------------

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        count = array_ops.reshape(n, [1])
        normal = random_ops.random_normal(
            array_ops.concat([count, array_ops.shape(self._factor)], 0), dtype=self.dtype, seed=seed
        )
        halves = self._sequence(0.5 * self.df) + array_ops.zeros_like(matrix_diag_part(self._factor))
        own = None if seed is None else seed ^ 0x57695368  # another stream than that of the normal numbers
        squares = random_ops.random_gamma(count, halves, convert_to_tensor(0.5, self.dtype), self.dtype, own)
        factor = matmul(self._factor, matrix_set_diag(matrix_band_part(normal, -1, 0), sqrt(squares)))
        return factor if self.cholesky_input_output_matrices else self._squared(factor)

    def _log_prob(self, value: Tensor) -> Tensor:
        factor = value if self.cholesky_input_output_matrices else cholesky(value)
        scale = self._factor + array_ops.zeros_like(factor)
        ratio = matrix_triangular_solve(scale, factor + array_ops.zeros_like(scale))
        half_log_det = reduce_sum(log(matrix_diag_part(factor)), -1)
        trace = reduce_sum(square(ratio), [-2, -1])
        return (self.df - self.dimension - 1.0) * half_log_det - 0.5 * trace - self.log_normalization()

    def _entropy(self) -> Tensor:
        half_dp1, half_df, k = 0.5 * self.dimension + 0.5, 0.5 * self.df, self.dimension
        gammas = self._multi_lgamma(half_df) + (half_dp1 - half_df) * self._multi_digamma(half_df)
        return k * (half_df + half_dp1 * math.log(2.0)) + half_dp1 * self._log_det() + gammas

    def _mean(self) -> Tensor:
        df = self.df[..., None, None]
        return sqrt(df) * self._factor if self.cholesky_input_output_matrices else df * self.scale()

    def _variance(self) -> Tensor:
        scaled = sqrt(self.df)[..., None, None] * self._squared(self._factor)
        diagonal = matrix_diag_part(scaled)[..., None]
        variance = square(scaled) + matmul(diagonal, diagonal, transpose_b=True)
        return cholesky(variance) if self.cholesky_input_output_matrices else variance

    def _stddev(self) -> Tensor:
        if self.cholesky_input_output_matrices:
            raise ValueError("Computing std. dev. when is cholesky_input_output_matrices=True does not make sense.")
        return cholesky(self._variance())

    def _mode(self) -> Tensor:
        over = self.df - self.dimension - 1.0
        over = where_v2(over < 0, convert_to_tensor(math.nan, self.dtype), over)[..., None, None]
        return sqrt(over) * self._factor if self.cholesky_input_output_matrices else over * self.scale()


class WishartFull(WishartCholesky):
    """Wishart's distributions, by the scale itself.

    Args:
        df: See `WishartCholesky`.
        scale: Shape ``[..., k, k]``, symmetric and positive definite.
        cholesky_input_output_matrices: See `WishartCholesky`.
        validate_args: See `WishartCholesky`.
        allow_nan_stats: See `WishartCholesky`.
        name: See `WishartCholesky`.

    Raises:
        TypeError: See `WishartCholesky`.
        ValueError: See `WishartCholesky`.
    """

    def __init__(
        self,
        df: TensorLike,
        scale: TensorLike,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartFull",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            matrix = convert_to_tensor(scale, name="scale")
            if not matrix.dtype.is_floating:
                raise TypeError(f"scale.dtype={matrix.dtype.name} is not a floating-point type")
            if validate_args:
                turned = array_ops.matrix_transpose(matrix)
                matrix = after([assert_equal(matrix, turned, message="scale is not symmetric")], matrix)
            factor = cholesky(matrix)
        super().__init__(df, factor, cholesky_input_output_matrices, validate_args, allow_nan_stats, name)
        self._parameters = parameters
