"""Tests of variables and their scopes."""
