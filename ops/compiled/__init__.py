"""Kernels that are compiled for the CPU: Python that numba translates. They are called through `ops.kernels.compiling`.

Nothing imports these modules but the compiler, and only where the extra ``fast`` is installed. A kernel is a function
``kernel(first, last, ...)`` that computes the items from `first` to `last`, such as rows; its annotations give the
types of its arguments (see `vectors`).
"""
