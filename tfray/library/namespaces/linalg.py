"""The names of ``tf.linalg``."""

# isort: skip_file
from tfray.library.variables.clip import (
    global_norm as global_norm,
)
from tfray.ops.arrays.construction_ops import (
    eye as eye,
)
from tfray.ops.linalg.decomposition_ops import (
    adjoint as adjoint,
    cholesky as cholesky,
    cholesky_solve as cholesky_solve,
    self_adjoint_eig as eigh,
    self_adjoint_eigvals as eigvalsh,
    logdet as logdet,
    matrix_solve_ls as lstsq,
    qr as qr,
    svd as svd,
)
from tfray.ops.math.einsum_ops import (
    einsum as einsum,
)
from tfray.ops.math.linalg_ops import (
    cross as cross,
    matmul as matmul,
    norm as norm,
    tensordot as tensordot,
    trace as trace,
)
from tfray.ops.linalg.matrix_function_ops import (
    matrix_exponential as expm,
    matrix_logarithm as logm,
    lu as lu,
    lu_matrix_inverse as lu_matrix_inverse,
    lu_reconstruct as lu_reconstruct,
    lu_solve as lu_solve,
    matrix_rank as matrix_rank,
    matvec as matvec,
    normalize as normalize,
    pinv as pinv,
    matrix_square_root as sqrtm,
)
from tfray.ops.arrays.matrix_ops import (
    matrix_band_part as band_part,
    matrix_diag as diag,
    matrix_diag_part as diag_part,
    matrix_set_diag as set_diag,
    diag as tensor_diag,
    diag_part as tensor_diag_part,
)
from tfray.ops.nn.normalization_ops import (
    l2_normalize as l2_normalize,
)
from tfray.ops.arrays.shape_ops import (
    matrix_transpose as matrix_transpose,
    matrix_transpose as transpose,
)
from tfray.ops.linalg.solve_ops import (
    matrix_determinant as det,
    matrix_inverse as inv,
    slogdet as slogdet,
    matrix_solve as solve,
    matrix_triangular_solve as triangular_solve,
)
from tfray.ops.linalg.tridiagonal_ops import (
    tridiagonal_matmul as tridiagonal_matmul,
    tridiagonal_solve as tridiagonal_solve,
)
