"""``tf.xla``: functions that TensorFlow compiles as a whole. Here a session compiles all that it runs."""

from tfray.library.functions import xla_experimental as experimental

__all__ = ["experimental"]
