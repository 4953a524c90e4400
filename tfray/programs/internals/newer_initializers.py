"""`init_ops_v2` of TensorFlow, `tf.compat.v2.initializers`: initializers that are told the dtype when they are called.

Their arguments and configurations name no dtype. Random ones have the small standard deviation of Keras.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from tfray.framework.dtypes import DType, DTypeLike, as_dtype, float32
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import ShapeLike, TensorLike
from tfray.keras.initializers import deserialize, get, serialize
from tfray.library.variables import initializers as older
from tfray.ops.arrays.source_ops import constant as constant_tensor

# fmt: off
__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "Identity", "Initializer", "Ones", "Orthogonal", "RandomNormal",
    "RandomUniform", "TruncatedNormal", "VarianceScaling", "Zeros", "constant", "constant_initializer", "deserialize",
    "get", "glorot_normal", "glorot_normal_initializer", "glorot_uniform", "glorot_uniform_initializer", "he_normal",
    "he_uniform", "identity", "identity_initializer", "lecun_normal", "lecun_uniform", "normal", "ones",
    "ones_initializer", "orthogonal", "orthogonal_initializer", "random_normal", "random_normal_initializer",
    "random_uniform", "random_uniform_initializer", "serialize", "truncated_normal", "truncated_normal_initializer",
    "uniform", "variance_scaling_initializer", "zeros", "zeros_initializer",
]
# fmt: on

_NOT_ARGUMENTS = ("dtype", "verify_shape")


class Initializer(older.Initializer):
    """Base of the initializers: called as ``initializer(shape, dtype=tf.float32)``."""

    _expected: ClassVar[str] = "floating point type"

    def __call__(self, shape: ShapeLike, dtype: DTypeLike | None = float32, partition_info: Any = None) -> Tensor:
        """A tensor of initial values.

        Args:
            shape: Shape of the variable, or of one part of it.
            dtype: Dtype of the values.
            partition_info: For one part of a partitioned variable: the shape of the whole, and the place in it.

        Raises:
            ValueError: There are no such values of this dtype.
        """
        wanted = float32 if dtype is None else as_dtype(dtype)
        if not self._takes(wanted):
            raise ValueError(f"{type(self).__name__}: Expected {self._expected}, got {wanted}.")
        return super().__call__(shape, wanted, partition_info)

    def _takes(self, dtype: DType) -> Any:
        return dtype.is_floating

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal initializer."""
        return {name: value for name, value in super().get_config().items() if name not in _NOT_ARGUMENTS}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The initializer whose `get_config` is `config`, which may name a dtype."""
        return cls(**{name: value for name, value in config.items() if name not in _NOT_ARGUMENTS})


class Zeros(Initializer, older.Zeros):
    """All zeros, or empty strings."""

    def __init__(self) -> None:
        super().__init__()

    def _takes(self, dtype: DType) -> Any:
        return True


class Ones(Initializer, older.Ones):
    """All ones, or True."""

    _expected = "numeric or boolean dtype"

    def __init__(self) -> None:
        super().__init__()

    def _takes(self, dtype: DType) -> Any:
        return dtype.is_floating or dtype.is_integer or dtype.is_complex or dtype.is_bool


class Constant(Initializer, older.Constant):
    """A given value.

    Args:
        value: A number for all elements, or an array or list with as many elements as the variable.
    """

    def __init__(self, value: TensorLike = 0) -> None:
        super().__init__(value)

    def __call__(self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: Any = None) -> Tensor:  # type: ignore[override]
        """A tensor of the value; its dtype when `dtype` is None.

        Raises:
            TypeError: The value has neither one element nor as many as the shape.
        """
        wanted, count = TensorShape(shape), np.size(self.value)
        if count not in (1, wanted.num_elements()):
            raise TypeError(f"Expected Tensor's shape: {wanted}, got {np.shape(self.value)}.")
        return constant_tensor(self.value, None if dtype is None else as_dtype(dtype), wanted)


class RandomUniform(Initializer, older.RandomUniform):
    """Uniform random numbers; arguments as for `tf.random_uniform_initializer`."""

    _expected = "float or integer dtype"

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(minval, maxval, seed)

    def _takes(self, dtype: DType) -> Any:
        return dtype.is_floating or dtype.is_integer


class RandomNormal(Initializer, older.RandomNormal):
    """Normal random numbers; arguments as for `tf.random_normal_initializer`."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)


class TruncatedNormal(Initializer, older.TruncatedNormal):
    """Normal random numbers within two standard deviations."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)


class VarianceScaling(Initializer, older.VarianceScaling):
    """Random numbers scaled to the number of units; arguments as for `tf.variance_scaling_initializer`."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: Literal["fan_in", "fan_out", "fan_avg"] = "fan_in",
        distribution: Literal["truncated_normal", "normal", "untruncated_normal", "uniform"] = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        super().__init__(scale, mode, distribution, seed)


class Orthogonal(Initializer, older.Orthogonal):
    """Orthonormal rows or columns; arguments as for `tf.orthogonal_initializer`."""

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        super().__init__(gain, seed)


class Identity(Initializer, older.Identity):
    """The identity matrix times `gain`."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain)


class GlorotUniform(VarianceScaling):
    """Uniform, scaled to the mean of inputs and outputs."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)

    def get_config(self) -> dict[str, Any]:
        """The seed."""
        return {"seed": self.seed}


class GlorotNormal(VarianceScaling):
    """Truncated normal, scaled to the mean of inputs and outputs."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)

    def get_config(self) -> dict[str, Any]:
        """The seed."""
        return {"seed": self.seed}


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


zeros = zeros_initializer = Zeros
ones = ones_initializer = Ones
constant = constant_initializer = Constant
uniform = random_uniform = random_uniform_initializer = RandomUniform
normal = random_normal = random_normal_initializer = RandomNormal
truncated_normal = truncated_normal_initializer = TruncatedNormal
variance_scaling_initializer = VarianceScaling
orthogonal = orthogonal_initializer = Orthogonal
identity = identity_initializer = Identity
glorot_uniform = glorot_uniform_initializer = GlorotUniform
glorot_normal = glorot_normal_initializer = GlorotNormal
