"""Inverses, equations and decompositions of matrices."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework import dtypes
from tfray.ops.linalg import decomposition_ops, solve_ops
from tfray.ops.math import linalg_ops
from tfray.ops.math.arithmetic_ops import add, multiply, sign
from tfray.ops.math.reduction_ops import reduce_sum

MODES = ("known", "unknown sizes")
"""Gradients transpose, for which the rank must be known."""


def _regular(*shape, seed=0):
    """Matrices far from singular."""
    return grid(*shape, low=-1, high=1, seed=seed) + 2 * np.eye(shape[-2], shape[-1])


def _definite(x):
    """Positive definite matrices made from any ones, in the graph: their gradients are defined on symmetric ones."""
    return add(linalg_ops.matmul(x, x, adjoint_b=True), np.eye(x.shape.as_list()[-1] or 3).astype(x.dtype.numpy))


def _definite_arrays(x):
    return np.matmul(x, x.conj().swapaxes(-1, -2)) + np.eye(x.shape[-1])


def _adjoint(x):
    return x.conj().swapaxes(-1, -2)


def _complex(array):
    return array + 0.3j * np.flip(array)


# Each singular vector and eigenvector is one of two, and libraries differ in which they give: here those whose elements
# have a positive sum. Vectors of no singular value are any basis, so that only the product with its adjoint is known.


def _eigenvectors(x):
    e, v = decomposition_ops.self_adjoint_eig(x)
    return e, multiply(v, sign(reduce_sum(v, -2, keepdims=True)))


def _known_eigenvectors(x):
    e, v = np.linalg.eigh(x)
    return [e, v * np.sign(v.sum(-2, keepdims=True))]


def _singular_vectors(x):
    s, u, v = decomposition_ops.svd(x)
    signs = sign(reduce_sum(u, -2, keepdims=True))
    return s, multiply(u, signs), multiply(v, signs)


def _known_singular_vectors(x):
    u, s, v_adjoint = np.linalg.svd(x, full_matrices=False)
    signs = np.sign(u.sum(-2, keepdims=True))
    return [s, u * signs, _adjoint(v_adjoint) * signs]


def _full_singular_vectors(x):
    s, u, v = decomposition_ops.svd(x, full_matrices=True)
    signs = sign(reduce_sum(u[:, :2], 0))
    return s, u[:, :2] * signs, v * signs, linalg_ops.matmul(u[:, 2:], u[:, 2:], adjoint_b=True)


def _known_full_singular_vectors(x):
    s, u, v = _known_singular_vectors(x)
    return [s, u, v, np.eye(4) - u @ u.T]


REGULAR = [_regular(3, 3), _regular(2, 3, 3), _complex(_regular(3, 3))]

INVERSES = [
    *[
        OpSample(
            op,
            build,
            [matrix],
            reference,
            modes=MODES if op == "MatrixDeterminant" else ("known", "unknown sizes", "unknown rank"),
            tolerance=40,
            label=label,
        )
        for op, label, build, reference in [
            ("MatrixInverse", "", solve_ops.matrix_inverse, np.linalg.inv),
            (
                "MatrixInverse",
                "adjoint",
                lambda x: solve_ops.matrix_inverse(x, True),
                lambda x: np.linalg.inv(_adjoint(x)),
            ),
            ("MatrixDeterminant", "", solve_ops.matrix_determinant, np.linalg.det),
        ]
        for matrix in REGULAR
    ],
    *[
        OpSample(
            "LogMatrixDeterminant",
            lambda x: solve_ops.slogdet(x)[1] if x.dtype.is_complex else solve_ops.slogdet(x),
            [matrix],
            lambda x: np.linalg.slogdet(x)[1] if x.dtype.kind == "c" else list(np.linalg.slogdet(x)),
            tolerance=40,
        )
        for matrix in REGULAR
    ],
]

_SYSTEMS = [
    (_regular(3, 3), grid(3, 2, seed=1)),
    (_regular(2, 3, 3), grid(2, 3, 1, seed=1)),
    (_regular(2, 3, 3), grid(3, 2, seed=1)),
    (_complex(_regular(3, 3)), grid(3, 2, seed=1) * (1 + 1j)),
]


def _solve_triangular(lower, adjoint):
    def reference(matrix, rhs):
        matrix = np.tril(matrix) if lower else np.triu(matrix)
        return np.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)

    return reference


SYSTEMS = [
    *[
        OpSample(
            "MatrixSolve",
            solve_ops.matrix_solve,
            [matrix, rhs],
            lambda a, b, adjoint=adjoint: np.linalg.solve(_adjoint(a) if adjoint else a, b),
            {"adjoint": adjoint},
            tolerance=60,
            label="adjoint" * adjoint,
        )
        for matrix, rhs in _SYSTEMS
        for adjoint in (False, True)
    ],
    *[
        OpSample(
            "MatrixTriangularSolve",
            solve_ops.matrix_triangular_solve,
            [matrix, rhs],
            _solve_triangular(lower, adjoint),
            {"lower": lower, "adjoint": adjoint},
            tolerance=60,
            label="lower" * lower + "adjoint" * adjoint,
        )
        for matrix, rhs in _SYSTEMS
        for lower, adjoint in [(True, False), (False, False), (True, True), (False, True)]
    ],
    OpSample(
        "MatrixTriangularSolve",
        decomposition_ops.cholesky_solve,
        [_regular(3, 3), grid(3, 2, seed=1)],
        lambda a, b: np.linalg.solve(np.tril(a) @ _adjoint(np.tril(a)), b),
        dtypes=(dtypes.float32, dtypes.float64),
        tolerance=100,
        label="cholesky_solve",
    ),
    *[
        OpSample(
            "Cholesky",
            decomposition_ops.matrix_solve_ls,
            [grid(*shape), grid(shape[0], 2, seed=1)],
            lambda a, b: np.linalg.lstsq(a, b)[0],
            dtypes=(dtypes.float32, dtypes.float64),
            modes=("known",),
            tolerance=1000,
            label="least_squares",
        )
        for shape in [(4, 2), (2, 4)]
    ],
]

DECOMPOSITIONS = [
    *[
        OpSample(
            "Cholesky",
            lambda x: decomposition_ops.cholesky(_definite(x)),
            [matrix],
            lambda x: np.linalg.cholesky(_definite_arrays(x)),
            modes=("known", "unknown sizes"),
            tolerance=60,
        )
        for matrix in REGULAR
    ],
    OpSample(
        "Cholesky",
        lambda x: decomposition_ops.logdet(_definite(x)),
        [_regular(2, 3, 3)],
        lambda x: np.linalg.slogdet(_definite_arrays(x))[1],
        modes=MODES,
        tolerance=40,
        label="logdet",
    ),
    *[
        OpSample(
            "Qr",
            decomposition_ops.qr,
            [matrix],
            lambda x: list(np.linalg.qr(x)),
            modes=("known",),
            tolerance=60,
        )
        for matrix in [_regular(3, 3), _regular(2, 4, 2), _regular(2, 4)]
    ],
    OpSample(
        "Qr",
        decomposition_ops.qr,
        [_regular(4, 2)],
        lambda x: list(np.linalg.qr(x, "complete")),
        {"full_matrices": True},
        differentiable=(),
        modes=MODES,
        tolerance=60,
        label="full",
    ),
    *[
        OpSample(
            "Qr",
            decomposition_ops.qr,
            [_complex(matrix)],
            lambda x: list(np.linalg.qr(x)),
            modes=("known",),
            tolerance=60,
            label="complex",
        )
        for matrix in [_regular(3, 3), _regular(4, 2), _regular(2, 4)]
    ],
    *[
        OpSample(
            "SelfAdjointEigV2",
            _eigenvectors,
            [matrix],
            _known_eigenvectors,
            dtypes=(dtypes.float32, dtypes.float64),
            modes=MODES,
            tolerance=200,
        )
        for matrix in [grid(3, 3), grid(2, 3, 3)]
    ],
    OpSample(
        "SelfAdjointEigV2",
        decomposition_ops.self_adjoint_eigvals,
        [grid(3, 3)],
        np.linalg.eigvalsh,
        dtypes=(dtypes.float32, dtypes.float64),
        modes=MODES,
        tolerance=60,
        label="values",
    ),
    OpSample(
        "SelfAdjointEigV2",
        decomposition_ops.self_adjoint_eigvals,
        [_complex(grid(3, 3))],
        lambda x: np.linalg.eigvalsh(x).astype(x.dtype),
        differentiable=(),
        tolerance=60,
        label="values",
    ),
    *[
        OpSample(
            "Svd",
            _singular_vectors,
            [matrix],
            _known_singular_vectors,
            dtypes=(dtypes.float32, dtypes.float64),
            modes=MODES,
            tolerance=200,
        )
        for matrix in [grid(3, 3), grid(4, 2), grid(2, 2, 4)]
    ],
    OpSample(
        "Svd",
        _full_singular_vectors,
        [grid(4, 2)],
        _known_full_singular_vectors,
        dtypes=(dtypes.float32, dtypes.float64),
        differentiable=(),
        tolerance=200,
        label="full",
    ),
    *[
        OpSample(
            "Svd",
            decomposition_ops.svd,
            [matrix],
            lambda x: np.linalg.svd(x)[1],
            {"compute_uv": False},
            dtypes=(dtypes.float32, dtypes.float64),
            modes=MODES,
            tolerance=100,
            label="values",
        )
        for matrix in [grid(4, 2), grid(2, 3)]
    ],
    OpSample(
        "Svd",
        decomposition_ops.svd,
        [_complex(grid(3, 2))],
        lambda x: np.linalg.svd(x)[1],
        {"compute_uv": False},
        tolerance=100,
        label="values",
    ),
]

SAMPLES = [*INVERSES, *SYSTEMS, *DECOMPOSITIONS]

_SINGULAR = np.ones((2, 2))

ERRORS = [
    OpError("MatrixInverse", solve_ops.matrix_inverse, [np.ones((2, 3))], "not square"),
    OpError("MatrixInverse", solve_ops.matrix_inverse, [np.ones(3)], "at least rank 2 but is rank 1"),
    OpError("MatrixInverse", solve_ops.matrix_inverse, [_SINGULAR], "Input is not invertible", at_run=True),
    OpError("MatrixSolve", solve_ops.matrix_solve, [np.eye(2), np.ones((3, 1))], "does not fit"),
    OpError(
        "MatrixSolve",
        solve_ops.matrix_solve,
        [_SINGULAR, np.ones((2, 1))],
        "Input matrix is not invertible",
        at_run=True,
    ),
    OpError(
        "MatrixTriangularSolve",
        solve_ops.matrix_triangular_solve,
        [np.zeros((2, 2)), np.ones((2, 1))],
        "Input matrix is not invertible",
        at_run=True,
    ),
    OpError("Cholesky", decomposition_ops.cholesky, [-np.eye(2)], "not successful.*positive definite", at_run=True),
    OpError("Svd", decomposition_ops.svd, [np.ones(3)], "at least rank 2 but is rank 1"),
]
