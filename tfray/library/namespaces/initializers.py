"""``tf.initializers``: the initializers of variables, by their short names."""

from tfray.library.input.lookup import tables_initializer
from tfray.library.variables.initializers import Constant as constant
from tfray.library.variables.initializers import GlorotNormal as glorot_normal
from tfray.library.variables.initializers import GlorotUniform as glorot_uniform
from tfray.library.variables.initializers import Identity as identity
from tfray.library.variables.initializers import Ones as ones
from tfray.library.variables.initializers import Orthogonal as orthogonal
from tfray.library.variables.initializers import RandomNormal as random_normal
from tfray.library.variables.initializers import RandomUniform as random_uniform
from tfray.library.variables.initializers import TruncatedNormal as truncated_normal
from tfray.library.variables.initializers import UniformUnitScaling as uniform_unit_scaling
from tfray.library.variables.initializers import VarianceScaling as variance_scaling
from tfray.library.variables.initializers import Zeros as zeros
from tfray.library.variables.initializers import he_normal, he_uniform, lecun_normal, lecun_uniform
from tfray.library.variables.variables import global_variables_initializer as global_variables
from tfray.library.variables.variables import local_variables_initializer as local_variables
from tfray.library.variables.variables import variables_initializer as variables

# fmt: off
__all__ = [
    "constant", "global_variables", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity",
    "lecun_normal", "lecun_uniform", "local_variables", "ones", "orthogonal", "random_normal", "random_uniform",
    "tables_initializer", "truncated_normal", "uniform_unit_scaling", "variables", "variance_scaling", "zeros",
]
# fmt: on
