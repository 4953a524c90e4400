"""Layers, their losses and their columns of features."""
