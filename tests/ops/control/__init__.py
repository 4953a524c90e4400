"""Tests of branches, loops and tensor arrays."""
