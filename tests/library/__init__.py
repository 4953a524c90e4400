"""Tests of the library over operations."""
