"""Branches, loops and functions of elements."""
