"""Tests of flags, files, logging and `tf.test`."""
