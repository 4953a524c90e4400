"""Tests of the actors on Ray."""
