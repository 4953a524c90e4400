"""Tests of replicated training: its protocol, its faults, and workers that come and go."""
