"""Tests of the execution of compiled steps."""
