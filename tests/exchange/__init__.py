"""Tests of TensorFlow's own graphs, in and out."""
