"""Modules that users see as `tf.math`, `tf.nn` and so on, and that only collect names."""
