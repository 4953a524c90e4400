"""Tests of programs whose tasks are processes."""
