"""The names of ``tf.contrib.opt``."""

# isort: skip_file
from tfray.training.adam import LazyAdamOptimizer as LazyAdamOptimizer
from tfray.training.external_optimizer import (
    ExternalOptimizerInterface as ExternalOptimizerInterface,
    ScipyOptimizerInterface as ScipyOptimizerInterface,
)
from tfray.training.nadam import NadamOptimizer as NadamOptimizer
