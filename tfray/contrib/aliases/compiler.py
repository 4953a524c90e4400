"""``tf.contrib.compiler``: `tf.xla` under its older names."""

from tfray.contrib.aliases import compiler_jit as jit
from tfray.contrib.aliases import compiler_xla as xla

__all__ = ["jit", "xla"]
