"""``tf.contrib.tpu``: what of it has a meaning without TPUs."""

from tfray.estimator.tpu import InputPipelineConfig, RunConfig, TPUConfig, TPUEstimator, TPUEstimatorSpec
from tfray.training.optimizers.cross_shard import CrossShardOptimizer, bfloat16_scope

# fmt: off
__all__ = [
    "CrossShardOptimizer", "InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec",
    "bfloat16_scope",
]
# fmt: on
