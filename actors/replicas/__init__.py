"""Replicated training: who computes which step, whose gradients count, who is there."""
