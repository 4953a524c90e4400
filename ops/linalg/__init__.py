"""Decompositions, solvers, functions of matrices, and Fourier transforms."""
