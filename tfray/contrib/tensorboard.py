"""``tf.contrib.tensorboard``: what programs tell plugins of TensorBoard."""

from tfray.contrib.aliases import tensorboard_plugins as plugins

__all__ = ["plugins"]
