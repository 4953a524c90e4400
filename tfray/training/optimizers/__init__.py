"""Optimizers, learning rates, moving averages."""
