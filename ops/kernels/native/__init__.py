"""Kernels of libraries in C, and threads that help without the interpreter's lock."""
