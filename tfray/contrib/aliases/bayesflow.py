"""``tf.contrib.bayesflow``: expectations from samples."""

from tfray.library.functions import monte_carlo

__all__ = ["monte_carlo"]
