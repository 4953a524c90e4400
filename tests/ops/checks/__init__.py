"""Tests of assertions and printing."""
