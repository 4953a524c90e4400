"""``tf.contrib.opt``: optimizers that are not in `tf.train`."""

from tfray.training.checkpoints.averaged_optimizer import MovingAverageOptimizer
from tfray.training.optimizers.adam import LazyAdamOptimizer
from tfray.training.optimizers.external_optimizer import ExternalOptimizerInterface, ScipyOptimizerInterface
from tfray.training.optimizers.lars import LARSOptimizer
from tfray.training.optimizers.nadam import AdaMaxOptimizer, NadamOptimizer
from tfray.training.optimizers.sign_optimizers import (
    AddSignOptimizer,
    PowerSignOptimizer,
    get_cosine_decay_fn,
    get_linear_decay_fn,
    get_restart_decay_fn,
)
from tfray.training.optimizers.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from tfray.training.optimizers.wrapper_optimizers import (
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

# fmt: off
__all__ = [
    "AdaMaxOptimizer", "AdamWOptimizer", "AddSignOptimizer", "DecoupledWeightDecayExtension",
    "ExternalOptimizerInterface", "LARSOptimizer", "LazyAdamOptimizer", "MomentumWOptimizer", "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper", "NadamOptimizer", "PowerSignOptimizer", "ScipyOptimizerInterface",
    "VariableClippingOptimizer", "clip_gradients_by_global_norm", "extend_with_decoupled_weight_decay",
    "get_cosine_decay_fn", "get_linear_decay_fn", "get_restart_decay_fn",
]
# fmt: on
