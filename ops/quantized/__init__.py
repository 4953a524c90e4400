"""Floats stored in a few bits: rounding as if they were, and computing with those that are."""
