"""Kernels of a GPU for images and rows: convolutions by cuDNN, and what is compiled for the device."""
