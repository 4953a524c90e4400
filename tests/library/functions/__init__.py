"""Tests of distributions."""
