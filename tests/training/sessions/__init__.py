"""Tests of sessions that are watched over."""
