"""``tf.contrib.tfprof``: `tf.profiler` under its older names."""

from tfray.contrib.aliases import model_analyzer

__all__ = ["model_analyzer"]
