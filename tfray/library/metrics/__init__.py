"""Metrics, which add up over batches in variables."""
