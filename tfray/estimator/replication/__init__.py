"""Estimators whose models have replicas: in one graph, or on Ray."""
