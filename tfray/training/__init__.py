"""Training as user-level code: optimizers, slots, replicas, the trainer."""
