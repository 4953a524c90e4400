"""Canned estimators beside the linear and the dense ones: clusters, and recurrent networks."""
