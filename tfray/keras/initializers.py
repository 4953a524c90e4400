"""``tf.keras.initializers``: the initializers of weights, and `get`, which finds one by name."""

# isort: skip_file
from tfray.library.variables.initializers import GlorotNormal as glorot_normal, GlorotUniform as glorot_uniform
from tfray.library.layers.named_initializers import (
    Constant as Constant,
    Identity as Identity,
    Ones as Ones,
    Orthogonal as Orthogonal,
    VarianceScaling as VarianceScaling,
    Zeros as Zeros,
    get as get,
    he_normal as he_normal,
    he_uniform as he_uniform,
    lecun_normal as lecun_normal,
    lecun_uniform as lecun_uniform,
    random_normal as random_normal,
    random_uniform as random_uniform,
    truncated_normal as truncated_normal,
)

# fmt: off
__all__ = [
    "Constant", "Identity", "Ones", "Orthogonal", "VarianceScaling", "Zeros", "get", "glorot_normal", "glorot_uniform",
    "he_normal", "he_uniform", "lecun_normal", "lecun_uniform", "random_normal", "random_uniform", "truncated_normal",
]
# fmt: on
