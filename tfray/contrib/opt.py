"""The names of ``tf.contrib.opt``."""

# isort: skip_file
from tfray.training.optimizers.adam import LazyAdamOptimizer as LazyAdamOptimizer
from tfray.training.optimizers.external_optimizer import (
    ExternalOptimizerInterface as ExternalOptimizerInterface,
    ScipyOptimizerInterface as ScipyOptimizerInterface,
)
from tfray.training.optimizers.nadam import NadamOptimizer as NadamOptimizer
