"""Tests of savers and saved models."""
