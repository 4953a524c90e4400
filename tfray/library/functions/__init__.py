"""Python functions that are traced into graphs, once, and called many times."""
