"""``tf.train.experimental``: scaled losses, and state of Python in checkpoints."""

from tfray.training.checkpoints.object_graph import PythonState
from tfray.training.optimizers.loss_scale import (
    DynamicLossScale,
    FixedLossScale,
    LossScale,
    MixedPrecisionLossScaleOptimizer,
    disable_mixed_precision_graph_rewrite,
    enable_mixed_precision_graph_rewrite,
)

# fmt: off
__all__ = [
    "DynamicLossScale", "FixedLossScale", "LossScale", "MixedPrecisionLossScaleOptimizer", "PythonState",
    "disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite",
]
# fmt: on
