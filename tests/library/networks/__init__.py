"""Tests of layers, losses and feature columns."""
