"""Tests of ``tf.distribute``."""
