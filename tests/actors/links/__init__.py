"""Tests of links between actors and of what travels over them."""
