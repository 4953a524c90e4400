"""Initializers of weights by the names that Keras gives them; layers take these names too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.library.variables.initializers import Constant as Constant
from tfray.library.variables.initializers import (
    GlorotNormal,
    GlorotUniform,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
)
from tfray.library.variables.initializers import Identity as Identity
from tfray.library.variables.initializers import Ones as Ones
from tfray.library.variables.initializers import Orthogonal as Orthogonal
from tfray.library.variables.initializers import VarianceScaling as VarianceScaling
from tfray.library.variables.initializers import Zeros as Zeros
from tfray.library.variables.initializers import he_normal as he_normal
from tfray.library.variables.initializers import he_uniform as he_uniform
from tfray.library.variables.initializers import lecun_normal as lecun_normal
from tfray.library.variables.initializers import lecun_uniform as lecun_uniform

# Three functions in place of the classes: the defaults of Keras are not those of `tf.random_normal_initializer` and
# the like.


def random_normal(mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> RandomNormal:
    """Initializer of normal numbers with mean `mean` and standard deviation `stddev`."""
    return RandomNormal(mean, stddev, seed)


def random_uniform(minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> RandomUniform:
    """Initializer of uniform numbers from ``[minval, maxval)``."""
    return RandomUniform(minval, maxval, seed)


def truncated_normal(mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> TruncatedNormal:
    """Initializer of normal numbers, each drawn again while it is over two standard deviations from the mean."""
    return TruncatedNormal(mean, stddev, seed)


_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "identity": Identity,
    "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
    "normal": random_normal,
    "ones": Ones,
    "orthogonal": Orthogonal,
    "random_normal": random_normal,
    "random_uniform": random_uniform,
    "truncated_normal": truncated_normal,
    "uniform": random_uniform,
    "zeros": Zeros,
}


def get(identifier: Any) -> Any:
    """The initializer of that name, with its default arguments. Anything but a string is returned unchanged."""
    if not isinstance(identifier, str):
        return identifier
    if identifier not in _BY_NAME:
        raise InvalidArgumentError(f"there is no initializer {identifier!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[identifier]()
