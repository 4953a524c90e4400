"""Tests of operations: the battery over all of them, and rooms as in `ops/`."""
