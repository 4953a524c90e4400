"""Tests of random operations."""
