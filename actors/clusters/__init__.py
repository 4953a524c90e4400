"""Clusters: the actors of jobs and tasks, where they are, and sessions on them."""
