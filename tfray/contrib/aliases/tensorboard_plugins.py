"""``tf.contrib.tensorboard.plugins``: the projector."""

from tfray.programs import projector

__all__ = ["projector"]
