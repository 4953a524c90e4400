"""``tf.contrib.mixed_precision``: loss scaling."""

from tfray.training.optimizers.loss_scale_managers import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    LossScaleOptimizer,
)

__all__ = ["ExponentialUpdateLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "LossScaleOptimizer"]
