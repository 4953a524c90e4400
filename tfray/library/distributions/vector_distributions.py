"""Distributions of vectors: multivariate normal ones, and one of several classes as a one-hot vector."""

from __future__ import annotations

import math

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions import checks
from tfray.library.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    RegisterKL,
    VectorDistribution,
    float_parameters,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.shape_ops import matrix_transpose
from tfray.ops.checks.check_ops import assert_near
from tfray.ops.linalg.decomposition_ops import cholesky
from tfray.ops.linalg.solve_ops import matrix_triangular_solve
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import log, matmul, reduce_sum, square
from tfray.ops.nn.activation_ops import softplus
from tfray.ops.random import random_ops

_LOG_TAU = math.log(2 * math.pi)


class _MultivariateNormal(VectorDistribution):
    """A vector of standard normal numbers, multiplied by a matrix, the scale, and moved by `loc`.

    A subclass says what multiplying and dividing by the scale is. `_vectors` is the mean of each of the batch.
    Variance, deviation and covariance have the shape of the batch; TensorFlow 1 leaves it out where only `loc` has it.
    """

    loc: Tensor | None

    def _init(self, loc: Tensor | None, rows: Tensor, described: tuple[bool, bool, dict[str, object], str]) -> None:
        """`rows` has the shape of the scale, but for its last dimension if that is of a matrix."""
        validate_args, allow_nan_stats, parameters, name = described
        self.loc = loc
        nothing = array_ops.zeros_like(rows)
        self._vectors = nothing if loc is None else loc + nothing
        super().__init__(
            rows.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [rows, *([] if loc is None else [loc])],
            name,
        )

    def _times(self, vectors: Tensor) -> Tensor:
        raise NotImplementedError

    def _divided(self, vectors: Tensor) -> Tensor:
        return self._divided_columns(vectors[..., None])[..., 0]

    def _divided_columns(self, matrices: Tensor) -> Tensor:
        raise NotImplementedError

    def _log_determinant(self) -> Tensor:
        raise NotImplementedError

    def _matrix(self) -> Tensor:
        raise NotImplementedError

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        sizes = array_ops.concat([array_ops.reshape(n, [1]), array_ops.shape(self._vectors)], 0)
        return self._times(random_ops.random_normal(sizes, dtype=self.dtype, seed=seed)) + self._vectors

    def _log_prob(self, value: Tensor) -> Tensor:
        standardized = self._divided(value - self._vectors)
        size = array_ops.cast(self._vector_size(), self.dtype)
        return -0.5 * reduce_sum(square(standardized), -1) - (self._log_determinant() + 0.5 * _LOG_TAU * size)

    def _entropy(self) -> Tensor:
        size = array_ops.cast(self._vector_size(), self.dtype)
        return 0.5 * (1.0 + _LOG_TAU) * size + self._log_determinant() + array_ops.zeros_like(self._vectors[..., 0])

    def _mean(self) -> Tensor:
        return array_ops.identity(self._vectors)

    def _mode(self) -> Tensor:
        return self._mean()

    def _covariance(self) -> Tensor:
        spread = array_ops.zeros_like(self._vectors)[..., None]
        return matmul(self._matrix(), self._matrix(), transpose_b=True) + spread

    def _variance(self) -> Tensor:
        return reduce_sum(square(self._matrix()), -1) + array_ops.zeros_like(self._vectors)


@RegisterKL(_MultivariateNormal, _MultivariateNormal)
def _kl_normal(a: _MultivariateNormal, b: _MultivariateNormal, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_mvn"):
        columns = a._matrix() + array_ops.zeros_like(b._vectors)[..., None]
        return _kl_of(a, b, reduce_sum(square(b._divided_columns(columns)), [-2, -1]))


def _kl_of(a: _MultivariateNormal, b: _MultivariateNormal, ratio: Tensor) -> Tensor:
    """The divergence, by the sum of squares of the one scale divided by the other."""
    moved = reduce_sum(square(b._divided(b._vectors - a._vectors)), -1)
    size = array_ops.cast(a._vector_size(), a.dtype)
    return 0.5 * (ratio + moved - size) + b._log_determinant() - a._log_determinant()


class MultivariateNormalDiag(_MultivariateNormal):
    """Normal distributions of vectors whose elements are independent.

    Args:
        loc: Shape ``[..., n]``: means; zeros when None.
        scale_diag: Shape ``[..., n]``, not 0: standard deviations; ones when None.
        scale_identity_multiplier: Shape ``[...]``: a number to be added to each of a vector's standard deviations, or
            to be all of them where there is no `scale_diag`.
        validate_args: Check parameters when a step runs.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: There is neither `loc` nor `scale_diag`; the parameters are not of one floating dtype.
        InvalidArgumentError: With `validate_args`: a standard deviation is 0.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            loc, diag = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            if validate_args:
                diag = checks.not_singular(diag)
            self._diag = diag
            self._init(loc, diag, (validate_args, allow_nan_stats, parameters, name))

    def _times(self, vectors: Tensor) -> Tensor:
        return vectors * self._diag

    def _divided(self, vectors: Tensor) -> Tensor:
        return vectors / self._diag

    def _divided_columns(self, matrices: Tensor) -> Tensor:
        return matrices / self._diag[..., None]

    def _log_determinant(self) -> Tensor:
        return reduce_sum(log(math_ops.abs(self._diag)), -1)

    def _matrix(self) -> Tensor:
        return array_ops.matrix_diag(self._diag)

    def _variance(self) -> Tensor:
        return square(self._diag) + array_ops.zeros_like(self._vectors)

    def _stddev(self) -> Tensor:
        return math_ops.abs(self._diag) + array_ops.zeros_like(self._vectors)


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _kl_diag(a: MultivariateNormalDiag, b: MultivariateNormalDiag, name: str | None = None) -> Tensor:
    with get_default_graph().name_scope(name or "kl_mvn"):
        return _kl_of(a, b, reduce_sum(square(a._diag / b._diag), -1))


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """`MultivariateNormalDiag` whose standard deviations are ``softplus(scale_diag)``."""

    def __init__(
        self,
        loc: TensorLike,
        scale_diag: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            super().__init__(loc, softplus(convert_to_tensor(scale_diag)), None, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class MultivariateNormalTriL(_MultivariateNormal):
    """Normal distributions of vectors, by a lower triangular matrix that is multiplied with its transpose.

    Args:
        loc: Shape ``[..., n]``: means; zeros when None.
        scale_tril: Shape ``[..., n, n]``: the matrix; the identity when None. What is above its diagonal is not read.
        validate_args: See `MultivariateNormalDiag`.
        allow_nan_stats: See `MultivariateNormalDiag`.
        name: See `MultivariateNormalDiag`.

    Raises:
        ValueError: There is neither `loc` nor `scale_tril`; they are not of one floating dtype.
        InvalidArgumentError: With `validate_args`: an element of the diagonal is 0.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_tril: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            if scale_tril is None:
                if loc is None:
                    raise InvalidArgumentError(f"{type(self).__name__}: how long vectors are is not known: give loc")
                scale_tril = array_ops.matrix_diag(array_ops.ones_like(convert_to_tensor(loc)))
            tensors = _parameters(loc=loc, scale_tril=scale_tril)
            tril = array_ops.matrix_band_part(tensors["scale_tril"], -1, 0)
            if validate_args:
                tril = checks.after([checks.not_singular(array_ops.matrix_diag_part(tril)).op], tril)
            self._tril = tril
            described = (validate_args, allow_nan_stats, parameters, name)
            self._init(tensors.get("loc"), array_ops.matrix_diag_part(tril), described)

    def _times(self, vectors: Tensor) -> Tensor:
        return matmul(self._tril, vectors[..., None])[..., 0]

    def _divided_columns(self, matrices: Tensor) -> Tensor:
        sizes = array_ops.concat([array_ops.shape(matrices)[:-1], [self._vector_size()]], 0)
        return matrix_triangular_solve(array_ops.broadcast_to(self._tril, sizes), matrices)

    def _log_determinant(self) -> Tensor:
        return reduce_sum(log(math_ops.abs(array_ops.matrix_diag_part(self._tril))), -1)

    def _matrix(self) -> Tensor:
        return self._tril


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """Normal distributions of vectors, by their covariances.

    Args:
        loc: Shape ``[..., n]``: means; zeros when None.
        covariance_matrix: Shape ``[..., n, n]``, symmetric and positive definite; the identity when None.
        validate_args: See `MultivariateNormalDiag`.
        allow_nan_stats: See `MultivariateNormalDiag`.
        name: See `MultivariateNormalDiag`.

    Raises:
        ValueError: There is neither `loc` nor `covariance_matrix`; they are not of one floating dtype.
        InvalidArgumentError: At run time: a matrix is not positive definite.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        covariance_matrix: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            tril = None
            if covariance_matrix is not None:
                covariance = convert_to_tensor(covariance_matrix, name="covariance_matrix")
                if validate_args:
                    same = assert_near(covariance, matrix_transpose(covariance), message="Matrix was not symmetric")
                    covariance = checks.after([same], covariance)
                tril = cholesky(covariance)
            super().__init__(loc, tril, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class MultivariateNormalDiagPlusLowRank(MultivariateNormalTriL):
    """Normal distributions of vectors, by a diagonal matrix to which one of low rank is added.

    The matrix, which is multiplied with its transpose, is
    ``diag(scale_diag + scale_identity_multiplier) + factor @ diag(scale_perturb_diag) @ transpose(factor)``.

    Args:
        loc: Shape ``[..., n]``: means; zeros when None.
        scale_diag: See `MultivariateNormalDiag`.
        scale_identity_multiplier: See `MultivariateNormalDiag`.
        scale_perturb_factor: Shape ``[..., n, r]``: the factor of what is added; nothing is when None.
        scale_perturb_diag: Shape ``[..., r]``; ones when None.
        validate_args: See `MultivariateNormalDiag`.
        allow_nan_stats: See `MultivariateNormalDiag`.
        name: See `MultivariateNormalDiag`.

    Raises:
        ValueError: No parameter says how long vectors are, or they are not of one floating dtype.
        InvalidArgumentError: At run time: the matrix is singular.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        scale_perturb_factor: TensorLike | None = None,
        scale_perturb_diag: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            factor = weights = like = None
            if scale_perturb_factor is not None:
                tensors = _parameters(factor=scale_perturb_factor, weights=scale_perturb_diag)
                factor, weights = tensors["factor"], tensors.get("weights")
                like = factor[..., 0]
            elif scale_perturb_diag is not None:
                raise ValueError("When scale_perturb_diag is specified, scale_perturb_factor must be specified.")
            loc, diag = diagonal_scale(loc, scale_diag, scale_identity_multiplier, like)
            scale = array_ops.matrix_diag(diag)
            if factor is not None:
                weighted = factor if weights is None else factor * weights[..., None, :]
                scale = scale + matmul(weighted, factor, transpose_b=True)
            tril = cholesky(matmul(scale, scale, transpose_b=True))
            super().__init__(loc, tril, validate_args, allow_nan_stats, name)
        self._parameters = parameters


def diagonal_scale(
    loc: TensorLike | None,
    scale_diag: TensorLike | None,
    scale_identity_multiplier: TensorLike | None,
    like: Tensor | None = None,
) -> tuple[Tensor | None, Tensor]:
    """The location, and a scale of every element of a vector, by what is given of them.

    Args:
        loc: The location; or None.
        scale_diag: Scales; or None for those of the multiplier, or else ones.
        scale_identity_multiplier: What is added to the scales; or None.
        like: A tensor of the shape of the scales, where neither `loc` nor `scale_diag` need be given.

    Raises:
        InvalidArgumentError: Nothing says how many elements there are.
        ValueError: The dtypes differ, or are not floating; `loc` or `scale_diag` is a scalar.
    """
    tensors = _parameters(loc=loc, scale_diag=scale_diag, scale_identity_multiplier=scale_identity_multiplier)
    for name in ("loc", "scale_diag"):
        if name in tensors and tensors[name].shape.rank == 0:
            raise ValueError(f"`{name}` must have at least 1 dimension")
    diag, multiplier = tensors.get("scale_diag"), tensors.get("scale_identity_multiplier")
    if diag is None:
        like = tensors.get("loc", like)
        if like is None:
            raise InvalidArgumentError("the size of the vectors is not known: give loc or scale_diag")
        diag = (array_ops.ones_like if multiplier is None else array_ops.zeros_like)(like)
    return tensors.get("loc"), diag if multiplier is None else diag + multiplier[..., None]


def _parameters(**values: TensorLike | None) -> dict[str, Tensor]:
    """Those of `values` that are given, as tensors of one floating dtype."""
    given = {name: value for name, value in values.items() if value is not None}
    return dict(zip(given, float_parameters([], **given), strict=True))
