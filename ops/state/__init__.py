"""Variables, and the updates of optimizers."""
