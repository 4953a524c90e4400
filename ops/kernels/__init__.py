"""Array code that kernels of several families share: no operation is defined here."""
