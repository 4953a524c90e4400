"""Input: datasets, queues, readers, tables."""
