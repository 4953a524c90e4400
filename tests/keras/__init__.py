"""Tests of ``tf.keras``: models, layers, training, files."""
