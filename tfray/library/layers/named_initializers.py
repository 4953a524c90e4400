"""Initializers of weights by the names that Keras gives them; layers take these names too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.framework.dtypes import DTypeLike, float32
from tfray.library.layers.descriptions import as_given, named_object, restored
from tfray.library.variables import initializers
from tfray.library.variables.initializers import Constant as Constant
from tfray.library.variables.initializers import GlorotNormal as GlorotNormal
from tfray.library.variables.initializers import GlorotUniform as GlorotUniform
from tfray.library.variables.initializers import Identity as Identity
from tfray.library.variables.initializers import Ones as Ones
from tfray.library.variables.initializers import Orthogonal as Orthogonal
from tfray.library.variables.initializers import VarianceScaling as VarianceScaling
from tfray.library.variables.initializers import Zeros as Zeros
from tfray.library.variables.initializers import he_normal as he_normal
from tfray.library.variables.initializers import he_uniform as he_uniform
from tfray.library.variables.initializers import lecun_normal as lecun_normal
from tfray.library.variables.initializers import lecun_uniform as lecun_uniform

# The defaults of Keras are not those of `tf.random_normal_initializer` and the like.


class RandomNormal(initializers.RandomNormal):
    """Normal numbers with mean `mean` and standard deviation `stddev`."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: DTypeLike = float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class RandomUniform(initializers.RandomUniform):
    """Uniform numbers from ``[minval, maxval)``."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None, dtype: DTypeLike = float32
    ) -> None:
        super().__init__(minval, maxval, seed, dtype)


class TruncatedNormal(initializers.TruncatedNormal):
    """Normal numbers, each drawn again while it is over two standard deviations from the mean."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: DTypeLike = float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    **{
        made.__name__: made
        for made in (Constant, Identity, Ones, Orthogonal, RandomNormal, RandomUniform, TruncatedNormal, Zeros)
    },
    "VarianceScaling": VarianceScaling,
    "constant": Constant,
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "identity": Identity,
    "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
    "normal": RandomNormal,
    "one": Ones,
    "ones": Ones,
    "orthogonal": Orthogonal,
    "random_normal": RandomNormal,
    "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "uniform": RandomUniform,
    "zero": Zeros,
    "zeros": Zeros,
}


def get(identifier: Any) -> Any:
    """The initializer of that name, with its default arguments, or of that description; what is called as it is.

    Raises:
        InvalidArgumentError: There is none, or it is nothing that can be called. It is also a `ValueError`.
    """
    if isinstance(identifier, Mapping):
        return restored(identifier)
    if not isinstance(identifier, str):
        return as_given(identifier, "initializer")
    found = named_object(identifier, _BY_NAME, "initializer")
    return found() if found in _BY_NAME.values() else found
