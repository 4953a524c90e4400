"""``tf.contrib.compiler.jit``: operations that TensorFlow compiles together."""

from tfray.library.functions.xla_experimental import jit_scope as experimental_jit_scope

__all__ = ["experimental_jit_scope"]
