"""Tests of random forests."""
