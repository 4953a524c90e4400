"""How tensors, steps and answers travel between processes."""
