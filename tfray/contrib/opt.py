"""``tf.contrib.opt``: optimizers that are not in `tf.train`."""

from tfray.training.optimizers.adam import LazyAdamOptimizer
from tfray.training.optimizers.external_optimizer import ExternalOptimizerInterface, ScipyOptimizerInterface
from tfray.training.optimizers.nadam import NadamOptimizer
from tfray.training.optimizers.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)

# fmt: off
__all__ = [
    "AdamWOptimizer", "DecoupledWeightDecayExtension", "ExternalOptimizerInterface", "LazyAdamOptimizer",
    "MomentumWOptimizer", "NadamOptimizer", "ScipyOptimizerInterface", "extend_with_decoupled_weight_decay",
]
# fmt: on
