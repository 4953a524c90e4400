"""Kernels of GPUs that CuPy does not have: generated loops, products, and rows that are combined."""
