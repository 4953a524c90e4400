"""`Trainer`: replicated training, its configuration, its result and its log."""
