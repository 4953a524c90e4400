"""Variables: how they are made, scoped, initialised, split, averaged and clipped."""
