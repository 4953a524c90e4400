"""Sparse tensors, and sets."""
