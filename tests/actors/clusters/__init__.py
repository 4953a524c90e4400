"""Tests of clusters, and of sessions on them."""
