"""Keras models and their weights in files."""
