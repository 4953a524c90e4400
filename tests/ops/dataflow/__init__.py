"""Tests of queues, readers, tables and datasets on devices."""
