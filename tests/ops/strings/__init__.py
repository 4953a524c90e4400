"""Tests of strings and parsing."""
