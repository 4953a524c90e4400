"""Tests of matrices and signals."""
