"""Initial values of variables: functions of a shape and a dtype, for `tf.get_variable`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tfray.framework.arguments import PositiveNumber, checked
from tfray.framework.dtypes import DType, DTypeLike, as_dtype, float32
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import linalg_ops
from tfray.ops.random import random_ops

Number = float | Tensor | np.ndarray[Any, Any]
"""A number, or one for each element."""


class PartitionInfo(NamedTuple):
    """What an initializer is told of the part of a partitioned variable that it fills.

    Attributes:
        full_shape: Shape of the whole variable.
        var_offset: Where the part begins in each dimension.
    """

    full_shape: Sequence[int]
    var_offset: Sequence[int]


class Initializer:
    """Base of the initializers: called as ``initializer(shape, dtype=None, partition_info=None)``.

    Attributes:
        dtype: Dtype of the values when the call names none.
    """

    def __init__(self, dtype: DTypeLike = float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """A tensor of initial values.

        Args:
            shape: Shape of the variable, or of one part of it.
            dtype: Dtype of the values; that of the initializer when None.
            partition_info: For one part of a partitioned variable: the shape of the whole, and the place in it.
        """
        sizes = [int(size) for size in TensorShape(shape)]
        full_shape = sizes if partition_info is None else list(partition_info.full_shape)
        return self.values(sizes, self.dtype if dtype is None else as_dtype(dtype), full_shape, partition_info)

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        """What a call returns, its arguments made uniform; each initializer defines this."""
        raise TypeError(f"{type(self).__name__} is not an initializer by itself")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal initializer."""
        return {
            name: value.name if isinstance(value, DType) else value
            for name, value in vars(self).items()
            if not name.startswith("_")
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """The initializer whose `get_config` is `config`."""
        return cls(**config)


InitializerLike = Callable[..., TensorLike] | type[Initializer] | TensorLike
"""What makes the initial value of a variable: ``function(shape, dtype=..., partition_info=...)``, or the value."""


class Zeros(Initializer):
    """All zeros."""

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        return array_ops.zeros(shape, dtype)


class Ones(Initializer):
    """All ones."""

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        return array_ops.ones(shape, dtype)


class Constant(Initializer):
    """A given value.

    Args:
        value: A number for all elements, or an array or nested list. Where it has fewer elements than the
            variable, its last one fills the rest.
        dtype: Dtype of the values.
        verify_shape: Require `value` to have the shape of the variable.
    """

    def __init__(self, value: TensorLike = 0, dtype: DTypeLike = float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(f"a constant initializer takes a number, list or array, not {value!r}")
        super().__init__(dtype)
        self.value = value
        self.verify_shape = verify_shape

    def __call__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        partition_info: PartitionInfo | None = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        """A tensor of initial values; `verify_shape` in place of what the initializer was made with, unless None."""
        if verify_shape is None or verify_shape == self.verify_shape:
            return super().__call__(shape, dtype, partition_info)
        return Constant(self.value, self.dtype, verify_shape)(shape, dtype, partition_info)

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        if np.ndim(self.value) == 0 and not self.verify_shape:
            return array_ops.fill(shape, constant(self.value, dtype))  # a large constant would bloat the graph
        return constant(self.value, dtype, shape, verify_shape=self.verify_shape)


class RandomUniform(Initializer):
    """Uniform numbers from ``[minval, maxval)``; `maxval` None stands for 1, and must be given for integers."""

    @checked
    def __init__(
        self, minval: Number = 0, maxval: Number | None = None, seed: int | None = None, dtype: DTypeLike = float32
    ) -> None:
        super().__init__(dtype)
        self.minval = minval
        self.maxval = maxval
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        return random_ops.random_uniform(shape, self.minval, self.maxval, dtype, self.seed)


class RandomNormal(Initializer):
    """Normal numbers with mean `mean` and standard deviation `stddev`."""

    @checked
    def __init__(
        self, mean: Number = 0.0, stddev: Number = 1.0, seed: int | None = None, dtype: DTypeLike = float32
    ) -> None:
        super().__init__(_floating(dtype))
        self.mean = mean
        self.stddev = stddev
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        return random_ops.random_normal(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """Normal numbers, drawn again where they are more than two standard deviations from the mean."""

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        return random_ops.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


def _floating(dtype: DTypeLike) -> DType:
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"Expected floating point type, got {dtype}.")
    return dtype


# -- scaled to the number of units -----------------------------------------------------------------------


def compute_fans(shape: Sequence[int]) -> tuple[float, float]:
    """Numbers of inputs and outputs of a unit with weights of this shape.

    Dense weights are ``[inputs, outputs]``, convolution filters ``[..., inputs, outputs]``, the dimensions in front
    being those of the receptive field.
    """
    if len(shape) == 0:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


class VarianceScaling(Initializer):
    """Random numbers of variance ``scale / n``.

    Args:
        scale: Positive.
        mode: What n is: ``fan_in``, ``fan_out`` or ``fan_avg`` (see `compute_fans`).
        distribution: ``truncated_normal`` (or ``normal``), ``untruncated_normal`` or ``uniform``.
        seed: Seed of the operation.
        dtype: Dtype of the values.

    References:
        He et al., Delving deep into rectifiers (2015); Glorot and Bengio, Understanding the difficulty of
        training deep feedforward neural networks (2010).
    """

    @checked
    def __init__(
        self,
        scale: PositiveNumber = 1.0,
        mode: Literal["fan_in", "fan_out", "fan_avg"] = "fan_in",
        distribution: Literal["truncated_normal", "normal", "untruncated_normal", "uniform"] = "truncated_normal",
        seed: int | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(_floating(dtype))
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        fan_in, fan_out = compute_fans(full_shape)
        units = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, units)
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random_ops.random_uniform(shape, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        return random_ops.truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED_STDDEV, dtype, self.seed)


_TRUNCATED_STDDEV = 0.87962566103423978
"""Standard deviation of the standard normal distribution cut at two."""


class GlorotUniform(VarianceScaling):
    """Uniform numbers of variance ``2 / (fan_in + fan_out)``: the default of `tf.get_variable`."""

    @checked
    def __init__(self, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotNormal(VarianceScaling):
    """Truncated normal numbers of variance ``2 / (fan_in + fan_out)``."""

    @checked
    def __init__(self, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of variance ``2 / fan_in``, for layers with `tf.nn.relu`."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers of variance ``2 / fan_in``."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of variance ``1 / fan_in``."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers of variance ``1 / fan_in``."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


class UniformUnitScaling(Initializer):
    """Uniform numbers that keep the scale of the inputs, n being all dimensions but the last: variance
    ``factor ** 2 / n``."""

    @checked
    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(_floating(dtype))
        self.factor = factor
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        limit = math.sqrt(3 / max(math.prod(full_shape[:-1]), 1)) * self.factor
        return random_ops.random_uniform(shape, -limit, limit, dtype, self.seed)


# -- matrices --------------------------------------------------------------------------------------------


class Orthogonal(Initializer):
    """A random matrix with orthonormal rows or columns, whichever are fewer, times `gain`.

    A shape ``[..., n]`` of higher rank is filled from the matrix whose rows are all dimensions but the last.
    """

    @checked
    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(_floating(dtype))
        self.gain = gain
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        if len(shape) < 2:
            raise ValueError(f"The tensor to initialize must be at least two-dimensional, and has the shape {shape}")
        matrix = random_ops.random_orthogonal(math.prod(shape[:-1]), shape[-1], dtype, self.seed)
        return array_ops.reshape(matrix, shape) * self.gain


class DeltaOrthogonal(Initializer):
    """Filters of convolutions that are random matrices with orthonormal rows in the middle, times `gain`, and else 0.

    The shape is ``[..., inputs, outputs]`` with one to three sizes before, and no more inputs than outputs.

    References:
        Xiao et al., "Dynamical Isometry and a Mean Field Theory of CNNs", 2018.
    """

    @checked
    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(_floating(dtype))
        self.gain = gain
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        *sizes, inputs, outputs = shape
        if not 3 <= len(shape) <= 5:
            raise ValueError(
                f"The tensor to initialize must be at least three-dimensional and at most five-dimensional, not {shape}"
            )
        if inputs > outputs:
            raise ValueError(f"In_filters cannot be greater than out_filters: the shape is {shape}")
        matrix = random_ops.random_orthogonal(outputs, outputs, dtype, self.seed)[:inputs] * self.gain
        around = [[(size - 1) // 2, size // 2] for size in sizes]
        return array_ops.pad(array_ops.reshape(matrix, [*[1] * len(sizes), inputs, outputs]), [*around, [0, 0], [0, 0]])


class ConvolutionOrthogonal(Initializer):
    """Filters of convolutions that keep the norm of what is padded in circles, times `gain`.

    The shape is ``[size, ..., inputs, outputs]`` with one to three equal sizes, and no more inputs than outputs.

    References:
        Xiao et al., "Dynamical Isometry and a Mean Field Theory of CNNs", 2018, algorithm 1.
    """

    _rank = 0
    """How many sizes the shape has."""

    @checked
    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(_floating(dtype))
        self.gain = gain
        self.seed = seed

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        *sizes, inputs, outputs = shape
        if len(sizes) != self._rank:
            named = ("three", "four", "five")[self._rank - 1]
            raise ValueError(f"The tensor to initialize must be {named}-dimensional, not {shape}")
        if inputs > outputs:
            raise ValueError(f"In_filters cannot be greater than out_filters: the shape is {shape}")
        if len(set(sizes)) > 1:
            raise ValueError(f"Kernel sizes must be equal: the shape is {shape}")
        seeds = itertools.repeat(None) if self.seed is None else itertools.count(self.seed)
        orthogonal = random_ops.random_orthogonal(outputs, outputs, dtype, next(seeds))[:inputs]
        parts = {(0,) * self._rank: orthogonal}
        for _ in range(sizes[0] - 1):
            parts = self._longer(parts, outputs, dtype, seeds)
        in_order = array_ops.stack([parts[place] for place in itertools.product(*map(range, sizes))])
        return array_ops.reshape(in_order, shape) * self.gain

    def _longer(
        self, parts: dict[tuple[int, ...], Tensor], size: int, dtype: DType, seeds: Iterator[int | None]
    ) -> dict[tuple[int, ...], Tensor]:
        """A convolution and one of size 2 after it, which is made of a random projection along each axis."""
        halves = []
        for _ in range(self._rank):
            matrix = random_ops.random_orthogonal(size, size, dtype, next(seeds))
            chosen = array_ops.cast(random_ops.random_normal([size], seed=next(seeds)) > 0, dtype)
            projection = linalg_ops.matmul(matrix * chosen, matrix, transpose_b=True)
            halves.append((projection, constant(np.eye(size), dtype) - projection))
        found: dict[tuple[int, ...], Tensor] = {}
        for place, part in parts.items():
            for step in itertools.product((0, 1), repeat=self._rank):
                product = part
                for half, which in zip(halves, step, strict=True):
                    product = linalg_ops.matmul(product, half[which])
                there = tuple(map(sum, zip(place, step, strict=True)))
                found[there] = found[there] + product if there in found else product
        return found


class ConvolutionOrthogonal1D(ConvolutionOrthogonal):
    """`ConvolutionOrthogonal` of sequences."""

    _rank = 1


class ConvolutionOrthogonal2D(ConvolutionOrthogonal):
    """`ConvolutionOrthogonal` of images."""

    _rank = 2


class ConvolutionOrthogonal3D(ConvolutionOrthogonal):
    """`ConvolutionOrthogonal` of volumes."""

    _rank = 3


class Identity(Initializer):
    """The identity matrix times `gain`; only for two dimensions."""

    @checked
    def __init__(self, gain: float = 1.0, dtype: DTypeLike = float32) -> None:
        super().__init__(_floating(dtype))
        self.gain = gain

    def values(
        self, shape: list[int], dtype: DType, full_shape: list[int], partition_info: PartitionInfo | None
    ) -> Tensor:
        if len(full_shape) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices, not {full_shape}")
        row, column = (0, 0) if partition_info is None else partition_info.var_offset
        diagonal = np.eye(shape[0], shape[1], row - column, dtype=np.float32)
        return constant(diagonal * self.gain, dtype)


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
variance_scaling_initializer = VarianceScaling
uniform_unit_scaling_initializer = UniformUnitScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
orthogonal_initializer = Orthogonal
identity_initializer = Identity
