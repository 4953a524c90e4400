"""Calls that are made by tfray and by TensorFlow alike, whose results stand in ``tests/golden``."""
