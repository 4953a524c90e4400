"""Tests of variables' operations."""
