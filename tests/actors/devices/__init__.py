"""Tests of device actors."""
