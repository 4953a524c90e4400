"""``tf.contrib.solvers``: linear equations and least squares, from products with vectors."""

from tfray.library.functions.linear_solvers import (
    bidiag_matmul,
    cgls,
    conjugate_gradient,
    create_operator,
    dot,
    identity_operator,
    l2norm,
    l2norm_squared,
    l2normalize,
    lanczos_bidiag,
)

__all__ = [
    "bidiag_matmul",
    "cgls",
    "conjugate_gradient",
    "create_operator",
    "dot",
    "identity_operator",
    "l2norm",
    "l2norm_squared",
    "l2normalize",
    "lanczos_bidiag",
]
