"""``tf.contrib.tfprof``: `tf.profiler` under its older names, and profiles of some of a program's steps."""

from tfray.contrib.aliases import model_analyzer
from tfray.library.inspect.profile_context import ProfileContext

__all__ = ["ProfileContext", "model_analyzer"]
