"""Tests of `tf.metrics`."""
