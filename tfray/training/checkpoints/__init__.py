"""Saving and restoring: savers, folders of checkpoints, meta graphs, saved models."""
