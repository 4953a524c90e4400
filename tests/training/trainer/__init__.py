"""Tests of the `Trainer`."""
