"""Tests of threads beside training."""
