"""``tf.keras.initializers``: the initializers of weights, and `get`, which finds one by name."""

# isort: skip_file
from tfray.library.layers.descriptions import deserializer
from tfray.library.layers.descriptions import serialize as serialize
from tfray.library.variables.initializers import Initializer as Initializer
from tfray.library.layers.named_initializers import (
    Constant as Constant,
    GlorotNormal as glorot_normal,
    GlorotUniform as glorot_uniform,
    Identity as Identity,
    Ones as Ones,
    Orthogonal as Orthogonal,
    RandomNormal as RandomNormal,
    RandomUniform as RandomUniform,
    TruncatedNormal as TruncatedNormal,
    VarianceScaling as VarianceScaling,
    Zeros as Zeros,
    get as get,
    he_normal as he_normal,
    he_uniform as he_uniform,
    lecun_normal as lecun_normal,
    lecun_uniform as lecun_uniform,
)

# fmt: off
__all__ = [
    "Constant", "Identity", "Initializer", "Ones", "Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal",
    "VarianceScaling", "Zeros", "constant", "deserialize", "get", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "identity", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "random_normal",
    "random_uniform", "serialize", "truncated_normal", "uniform", "zeros",
]
# fmt: on

constant, identity, ones, orthogonal, zeros = Constant, Identity, Ones, Orthogonal, Zeros
normal, uniform = random_normal, random_uniform = RandomNormal, RandomUniform
truncated_normal = TruncatedNormal

deserialize = deserializer(get)
