"""Tests of neural-network operations."""
