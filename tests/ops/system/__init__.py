"""Tests of files, Python functions, summaries, and of what crosses devices."""
