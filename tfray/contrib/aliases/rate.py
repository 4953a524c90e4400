"""``tf.contrib.rate``: how fast values change."""

from tfray.library.functions.rates import Rate

__all__ = ["Rate"]
