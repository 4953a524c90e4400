"""The names of ``tf.contrib.opt``."""

from tfray.training.optimizers.adam import LazyAdamOptimizer
from tfray.training.optimizers.external_optimizer import ExternalOptimizerInterface, ScipyOptimizerInterface
from tfray.training.optimizers.nadam import NadamOptimizer

__all__ = ["ExternalOptimizerInterface", "LazyAdamOptimizer", "NadamOptimizer", "ScipyOptimizerInterface"]
