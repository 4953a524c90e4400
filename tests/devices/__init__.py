"""Tests of devices: of more than one GPU."""
