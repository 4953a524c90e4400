"""Graphs in TensorFlow's own form: `functionalize` turns TensorFlow 1's control flow into functions."""
