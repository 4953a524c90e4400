"""Tests of graphs: what they hold, and what is known while they are built."""
