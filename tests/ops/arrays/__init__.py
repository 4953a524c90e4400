"""Tests of operations that move and shape arrays."""
