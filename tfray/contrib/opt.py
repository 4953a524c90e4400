"""``tf.contrib.opt``: optimizers that are not in `tf.train`."""

from tfray.training.checkpoints.averaged_optimizer import MovingAverageOptimizer
from tfray.training.optimizers.adagrad import RegAdagradOptimizer
from tfray.training.optimizers.adam import AdamGSOptimizer, LazyAdamGSOptimizer, LazyAdamOptimizer
from tfray.training.optimizers.external_optimizer import ExternalOptimizerInterface, ScipyOptimizerInterface
from tfray.training.optimizers.ggt import GGTOptimizer
from tfray.training.optimizers.lars import LARSOptimizer
from tfray.training.optimizers.nadam import AdaMaxOptimizer, NadamOptimizer
from tfray.training.optimizers.shampoo import ShampooOptimizer
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
from tfray.training.sessions.accumulated_gradients import AGNCustomGetter, AGNOptimizer
from tfray.training.sessions.elastic_average import ElasticAverageCustomGetter, ElasticAverageOptimizer
from tfray.training.sessions.model_average import ModelAverageCustomGetter, ModelAverageOptimizer
from tfray.training.sessions.stale_gradients import DropStaleGradientOptimizer

# fmt: off
__all__ = [
    "AGNCustomGetter", "AGNOptimizer", "AdaMaxOptimizer", "AdamGSOptimizer", "AdamWOptimizer", "AddSignOptimizer",
    "DecoupledWeightDecayExtension", "DropStaleGradientOptimizer", "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer", "ExternalOptimizerInterface", "GGTOptimizer", "LARSOptimizer", "LazyAdamGSOptimizer",
    "LazyAdamOptimizer", "ModelAverageCustomGetter", "ModelAverageOptimizer", "MomentumWOptimizer",
    "MovingAverageOptimizer", "MultitaskOptimizerWrapper", "NadamOptimizer", "PowerSignOptimizer",
    "RegAdagradOptimizer", "ScipyOptimizerInterface", "ShampooOptimizer", "VariableClippingOptimizer",
    "clip_gradients_by_global_norm", "extend_with_decoupled_weight_decay", "get_cosine_decay_fn", "get_linear_decay_fn",
    "get_restart_decay_fn",
]
# fmt: on
