"""Distributions of numbers and vectors that are moved, scaled and bent images of simple ones."""

from __future__ import annotations

from functools import reduce
from typing import ClassVar

from tfray.errors import ArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.bijector import Bijector, Chain
from tfray.library.distributions.continuous_distributions import Exponential, Laplace, Normal, StudentT
from tfray.library.distributions.distribution import Distribution
from tfray.library.distributions.elementwise_bijectors import AffineScalar
from tfray.library.distributions.elementwise_bijectors import SinhArcsinh as SinhArcsinhBijector
from tfray.library.distributions.transformed_distribution import TransformedDistribution
from tfray.library.distributions.vector_bijectors import Affine
from tfray.library.distributions.vector_distributions import diagonal_scale
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import square


def _shape_of(*parameters: Tensor) -> TensorShape | Tensor:
    """The shape that tensors broadcast to: static where that is known."""
    static = reduce(array_ops.broadcast_static_shape, [parameter.shape for parameter in parameters])
    if static.is_fully_defined():
        return static
    return reduce(array_ops.broadcast_dynamic_shape, [array_ops.shape(parameter) for parameter in parameters])


class _ScaledVector(TransformedDistribution):
    """Base of vectors ``loc + scale_diag * z`` of numbers z that are distributed alike."""

    _moments: ClassVar[tuple[float, float]]  # the mean and the variance of z

    def _init(
        self,
        numbers: Distribution,
        loc: Tensor | None,
        diag: Tensor,
        validate_args: bool,
        parameters: dict[str, object],
        name: str,
    ) -> None:
        self.loc, self._diag = loc, diag
        shape = _shape_of(*([diag] if loc is None else [loc, diag]))
        affine = Affine(loc, scale_diag=diag, validate_args=validate_args)
        super().__init__(numbers, affine, shape[:-1], shape[-1:], validate_args, name)
        self._parameters = parameters

    def _everywhere(self, value: Tensor) -> Tensor:
        zeros = array_ops.zeros_like(self._diag)
        return value + (zeros if self.loc is None else zeros + array_ops.zeros_like(self.loc))

    def _moved(self, value: Tensor) -> Tensor:
        return self._everywhere(value if self.loc is None else self.loc + value)

    def _mean(self) -> Tensor:
        return self._moved(self._diag * self._moments[0])

    def _mode(self) -> Tensor:
        return self._moved(array_ops.zeros_like(self._diag))

    def _variance(self) -> Tensor:
        return self._everywhere(square(self._diag) * self._moments[1])

    def _covariance(self) -> Tensor:
        return array_ops.matrix_diag(self._variance())


class VectorExponentialDiag(_ScaledVector):
    """Vectors ``loc + scale * z`` of numbers z that have the exponential distribution with rate 1.

    Args:
        loc: Shape ``[..., n]``: zeros when None.
        scale_diag: Shape ``[..., n]``, not 0: the scales; ones when None.
        scale_identity_multiplier: Shape ``[...]``: a number to be added to all scales of a vector, or to be all of them
            where there is no `scale_diag`.
        validate_args: Check that no scale is 0.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: There is neither `loc` nor `scale_diag`; the parameters are not of one floating dtype.
    """

    _moments = 1.0, 1.0

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorExponentialDiag",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            loc, diag = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            numbers = Exponential(array_ops.ones([], diag.dtype), allow_nan_stats=allow_nan_stats)
            self._init(numbers, loc, diag, validate_args, parameters, name)


class VectorLaplaceDiag(_ScaledVector):
    """Vectors ``loc + scale * z`` of numbers z that have Laplace's distribution with mean 0 and scale 1.

    Args:
        loc: See `VectorExponentialDiag`.
        scale_diag: See `VectorExponentialDiag`.
        scale_identity_multiplier: See `VectorExponentialDiag`.
        validate_args: See `VectorExponentialDiag`.
        allow_nan_stats: See `VectorExponentialDiag`.
        name: See `VectorExponentialDiag`.

    Raises:
        ValueError: See `VectorExponentialDiag`.
    """

    _moments = 0.0, 2.0

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorLaplaceDiag",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            loc, diag = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            zero, one = array_ops.zeros([], diag.dtype), array_ops.ones([], diag.dtype)
            numbers = Laplace(zero, one, allow_nan_stats=allow_nan_stats)
            self._init(numbers, loc, diag, validate_args, parameters, name)


class VectorStudentT(TransformedDistribution):
    """Vectors ``loc + scale @ z`` of numbers z that have Student's t distribution.

    TensorFlow keeps it to itself as ``_VectorStudentT``. The elements of z are independent: this is not the
    multivariate t distribution.

    Args:
        df: Degrees of freedom, positive, shape ``[...]``.
        loc: Shape ``[..., n]``; zeros when None.
        scale_identity_multiplier: See `bijectors.Affine`, as for the other parts of the scale.
        scale_diag: See `bijectors.Affine`.
        scale_tril: See `bijectors.Affine`.
        scale_perturb_factor: See `bijectors.Affine`.
        scale_perturb_diag: See `bijectors.Affine`.
        validate_args: Check that `df` is positive, and that diagonals have no 0.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: No parameter says how long vectors are.
    """

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_tril: TensorLike | None = None,
        scale_perturb_factor: TensorLike | None = None,
        scale_perturb_diag: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorStudentT",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            scales = scale_identity_multiplier, scale_diag, scale_tril, scale_perturb_factor, scale_perturb_diag
            affine = Affine(loc, *scales, validate_args=validate_args)
            vectors = [convert_to_tensor(part) for part in (loc, scale_diag) if part is not None]
            vectors += [
                convert_to_tensor(part)[..., 0] for part in (scale_tril, scale_perturb_factor) if part is not None
            ]
            if not vectors:
                raise ArgumentError("the size of the vectors is not known: give loc or one of the scales")
            if scale_identity_multiplier is not None:
                vectors.append(convert_to_tensor(scale_identity_multiplier)[..., None])
            self.df = convert_to_tensor(df, name="df")
            zero, one = array_ops.zeros([], self.df.dtype), array_ops.ones([], self.df.dtype)
            numbers = StudentT(self.df, zero, one, validate_args, allow_nan_stats)
            shape = _shape_of(*vectors)
            batch: TensorShape | Tensor | None = shape[:-1]
            if self.df.shape.rank:
                batch = None
            elif self.df.shape.rank is None:  # numbers of several degrees of freedom are a batch already
                sizes = convert_to_tensor(batch)
                is_one = array_ops.cast(math_ops.equal(array_ops.rank(self.df), 0), sizes.dtype)
                batch = sizes[: is_one * array_ops.size(sizes)]
            super().__init__(numbers, affine, batch, shape[-1:], validate_args, name)
        self._parameters = parameters


# -- with tails and skewness ---------------------------------------------------------------------------


def _numbers(distribution: Distribution | None, like: Tensor, allow_nan_stats: bool) -> Distribution:
    """The distribution of numbers that are bent; the standard normal one when None."""
    if distribution is None:
        zero, one = array_ops.zeros([], like.dtype), array_ops.ones([], like.dtype)
        return Normal(zero, one, allow_nan_stats=allow_nan_stats)
    if distribution.dtype is not like.dtype:
        raise TypeError(f"dtype mismatch; distribution.dtype={distribution.dtype.name} is not {like.dtype.name}")
    if distribution.batch_shape.rank or distribution.event_shape.rank:
        raise ArgumentError("`distribution` must be one distribution of numbers")
    return distribution


def _bent(
    scale: Tensor, skewness: TensorLike | None, tailweight: TensorLike | None
) -> tuple[Bijector, Tensor, Tensor, Tensor]:
    """The map that bends, the scale that comes after it, and the two parameters as tensors.

    The scale is such that without skewness the image of 2 is twice the scale that is given.
    """
    weight = convert_to_tensor(1.0 if tailweight is None else tailweight, scale.dtype, "tailweight")
    skew = convert_to_tensor(0.0 if skewness is None else skewness, scale.dtype, "skewness")
    straight = SinhArcsinhBijector(array_ops.zeros([], scale.dtype), weight)
    scaled = 2.0 * scale / straight.forward(convert_to_tensor(2.0, scale.dtype))
    return SinhArcsinhBijector(skew, weight), scaled, skew, weight


class SinhArcsinh(TransformedDistribution):
    """Numbers ``loc + c * sinh((arcsinh(z) + skewness) * tailweight)``: normal ones with other tails, and skewed.

    c is `scale` times 2 over the image of 2 without skewness. With the defaults, these are ``loc + scale * z``.

    Args:
        loc: Where they are.
        scale: Their scale; broadcast against `loc`, as are the others.
        skewness: 0 when None.
        tailweight: Positive; heavier tails above 1, which it is when None.
        distribution: The distribution of z; the standard normal one when None.
        validate_args: Check the scale.
        allow_nan_stats: Statistics that are not defined are NaN; when False, they are errors of the step.
        name: Prefix of the operations' names.

    Raises:
        ValueError: `distribution` is a batch, or not of numbers.
        TypeError: It has another dtype than `loc`.
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        skewness: TensorLike | None = None,
        tailweight: TensorLike | None = None,
        distribution: Distribution | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "SinhArcsinh",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.loc = convert_to_tensor(loc, name="loc")
            self.scale = convert_to_tensor(scale, self.loc.dtype, "scale")
            numbers = _numbers(distribution, self.loc, allow_nan_stats)
            bend, scaled, self.skewness, self.tailweight = _bent(self.scale, skewness, tailweight)
            shape = _shape_of(self.loc, self.scale, self.tailweight, self.skewness)
            affine = AffineScalar(self.loc, scaled, validate_args=validate_args)
            super().__init__(numbers, Chain([affine, bend]), shape, None, validate_args, name)
        self._parameters = parameters


class VectorSinhArcsinhDiag(TransformedDistribution):
    """Vectors of numbers as those of `SinhArcsinh`.

    Args:
        loc: See `VectorExponentialDiag`.
        scale_diag: See `VectorExponentialDiag`.
        scale_identity_multiplier: See `VectorExponentialDiag`.
        skewness: See `SinhArcsinh`; broadcast against vectors.
        tailweight: See `SinhArcsinh`; broadcast against vectors.
        distribution: See `SinhArcsinh`.
        validate_args: See `SinhArcsinh`.
        allow_nan_stats: See `SinhArcsinh`.
        name: See `SinhArcsinh`.

    Raises:
        ValueError: See `VectorExponentialDiag` and `SinhArcsinh`.
        TypeError: See `SinhArcsinh`.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        skewness: TensorLike | None = None,
        tailweight: TensorLike | None = None,
        distribution: Distribution | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalLinearOperator",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as name:
            self.loc, diag = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            numbers = _numbers(distribution, diag, allow_nan_stats)
            bend, scaled, self.skewness, self.tailweight = _bent(diag, skewness, tailweight)
            shape = _shape_of(*([diag] if self.loc is None else [self.loc, diag]))
            affine = Affine(self.loc, scale_diag=scaled, validate_args=validate_args)
            super().__init__(numbers, Chain([affine, bend]), shape[:-1], shape[-1:], validate_args, name)
        self._parameters = parameters
