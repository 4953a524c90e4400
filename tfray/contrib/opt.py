"""``tf.contrib.opt``: optimizers that are not in `tf.train`."""

from tfray.training.optimizers.adam import LazyAdamOptimizer
from tfray.training.optimizers.external_optimizer import ExternalOptimizerInterface, ScipyOptimizerInterface
from tfray.training.optimizers.nadam import NadamOptimizer

__all__ = ["ExternalOptimizerInterface", "LazyAdamOptimizer", "NadamOptimizer", "ScipyOptimizerInterface"]
