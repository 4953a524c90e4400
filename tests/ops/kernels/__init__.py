"""Tests of array code under operations."""
