"""Tests of placement, partitions and replication."""
