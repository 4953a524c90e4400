"""Graphs for tests: those that TensorFlow has written, and such as are made at random."""
