"""Random numbers, with state and without."""
