"""``tf.contrib.checkpoint``: checkpoints of which the latest are kept."""

from tfray.training.checkpoints.checkpoint_manager import CheckpointManager

__all__ = ["CheckpointManager"]
