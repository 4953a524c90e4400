"""Tests of operations on images."""
