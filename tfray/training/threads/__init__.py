"""Threads beside a session, the global step, placement on parameter servers."""
