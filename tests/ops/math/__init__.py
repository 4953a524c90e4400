"""Tests of arithmetic."""
