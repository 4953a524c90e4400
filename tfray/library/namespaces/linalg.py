"""``tf.linalg``: matrix products, decompositions, solvers, norms and diagonals, for single matrices or batches."""

from tfray.library.variables.clip import global_norm
from tfray.ops.arrays.construction_ops import eye
from tfray.ops.arrays.matrix_ops import diag as tensor_diag
from tfray.ops.arrays.matrix_ops import diag_part as tensor_diag_part
from tfray.ops.arrays.matrix_ops import matrix_band_part as band_part
from tfray.ops.arrays.matrix_ops import matrix_diag as diag
from tfray.ops.arrays.matrix_ops import matrix_diag_part as diag_part
from tfray.ops.arrays.matrix_ops import matrix_set_diag as set_diag
from tfray.ops.arrays.shape_ops import matrix_transpose
from tfray.ops.arrays.shape_ops import matrix_transpose as transpose
from tfray.ops.linalg.decomposition_ops import adjoint, cholesky, cholesky_solve, logdet, qr, svd
from tfray.ops.linalg.decomposition_ops import matrix_solve_ls as lstsq
from tfray.ops.linalg.decomposition_ops import self_adjoint_eig as eigh
from tfray.ops.linalg.decomposition_ops import self_adjoint_eigvals as eigvalsh
from tfray.ops.linalg.matrix_function_ops import (
    lu,
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
    matrix_rank,
    matvec,
    normalize,
    pinv,
)
from tfray.ops.linalg.matrix_function_ops import matrix_exponential as expm
from tfray.ops.linalg.matrix_function_ops import matrix_logarithm as logm
from tfray.ops.linalg.matrix_function_ops import matrix_square_root as sqrtm
from tfray.ops.linalg.norm_ops import norm
from tfray.ops.linalg.solve_ops import matrix_determinant as det
from tfray.ops.linalg.solve_ops import matrix_inverse as inv
from tfray.ops.linalg.solve_ops import matrix_solve as solve
from tfray.ops.linalg.solve_ops import matrix_triangular_solve as triangular_solve
from tfray.ops.linalg.solve_ops import slogdet
from tfray.ops.linalg.tridiagonal_ops import tridiagonal_matmul, tridiagonal_solve
from tfray.ops.math.einsum_ops import einsum
from tfray.ops.math.linalg_ops import cross, matmul, tensordot, trace
from tfray.ops.nn.normalization_ops import l2_normalize

# fmt: off
__all__ = [
    "adjoint", "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part", "eigh", "eigvalsh",
    "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet", "logm", "lstsq", "lu", "lu_matrix_inverse",
    "lu_reconstruct", "lu_solve", "matmul", "matrix_rank", "matrix_transpose", "matvec", "norm", "normalize", "pinv",
    "qr", "set_diag", "slogdet", "solve", "sqrtm", "svd", "tensor_diag", "tensor_diag_part", "tensordot", "trace",
    "transpose", "triangular_solve", "tridiagonal_matmul", "tridiagonal_solve",
]
# fmt: on
