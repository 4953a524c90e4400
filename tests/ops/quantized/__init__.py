"""Tests of operations on quantized numbers."""
