"""What operations compute, written plainly in NumPy."""
