"""Tests of debugging and profiling."""
