"""Tests of input pipelines of queues."""
