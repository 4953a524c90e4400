"""Metrics over many batches: each keeps its sums in local variables."""
