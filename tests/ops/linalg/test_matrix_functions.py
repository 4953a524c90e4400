"""Functions of matrices that are made of several operations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.sessions import run

RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(2, 4, 4)).astype(np.float32)
B = RANDOM.normal(size=(2, 4, 3)).astype(np.float32)


@pytest.mark.parametrize("batched", [True, False])
def test_triangular_factors(batched):
    a, b = (A, B) if batched else (A[0], B[0])
    factors, rows = tf.linalg.lu(a)
    np.testing.assert_allclose(run(tf.linalg.lu_reconstruct(factors, rows)), a, atol=1e-5)
    np.testing.assert_allclose(run(tf.linalg.lu_solve(factors, rows, b)), np.linalg.solve(a, b), rtol=1e-3)
    np.testing.assert_allclose(run(tf.linalg.lu_matrix_inverse(factors, rows)), np.linalg.inv(a), rtol=1e-3)


def test_matvec():
    vectors = B[..., 0]
    np.testing.assert_allclose(run(tf.linalg.matvec(A, vectors)), np.einsum("nij,nj->ni", A, vectors), rtol=1e-5)
    turned = run(tf.linalg.matvec(A, vectors, transpose_a=True))
    np.testing.assert_allclose(turned, np.einsum("nji,nj->ni", A, vectors), rtol=1e-4, atol=1e-5)


def test_normalize():
    divided, length = run(tf.linalg.normalize(B, axis=1))
    np.testing.assert_allclose(length, np.linalg.norm(B, axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(divided, B / length, rtol=1e-5)


@pytest.mark.parametrize(
    "ord, axis, match",
    [
        ("fro", None, "'ord' must be a supported vector norm"),
        (-1.1, 0, "'ord' must be a supported vector norm"),
        ("foo", [0, 1], "'ord' must be a supported matrix norm"),
        (1.1, [0, 1], "'ord' must be a supported matrix norm"),
        *[
            (2, axis, "'axis' must be None, an integer, or a tuple of 2 unique integers")
            for axis in ([], [[1]], [1, 1])
        ],
    ],
)
def test_norms_that_there_are_not(ord, axis, match):
    with pytest.raises(ValueError, match=match):
        tf.norm(A, ord, axis)


@pytest.mark.parametrize("kind", [np.float32, np.complex64])
def test_exponentials_are_as_precise_as_their_dtype(kind):
    matrices = np.random.default_rng(0).uniform(-3, 3, (2, 32, 32)).astype(kind)
    exact = np.stack([scipy.linalg.expm(matrix.astype(np.complex128)) for matrix in matrices])
    found = run(tf.linalg.expm(matrices))
    assert found.dtype == kind
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=2e-7 * np.abs(exact).max())


def test_rank_and_pseudo_inverse():
    flat = np.stack([np.outer(B[0, :, 0], B[0, :, 1]), A[0]]).astype(np.float32)
    np.testing.assert_array_equal(run(tf.linalg.matrix_rank(flat)), [1, 4])
    np.testing.assert_array_equal(run(tf.linalg.matrix_rank(flat, tol=1e3)), [0, 0])
    np.testing.assert_array_equal(
        run(tf.linalg.matrix_rank(np.diag([1.0, 2.0, 3.0]), tol=[[0.5], [1.5], [9.0]])), [3, 2, 0]
    )
    for matrices in (B, B.swapaxes(1, 2), flat):
        found = run(tf.linalg.pinv(matrices))
        np.testing.assert_allclose(matrices @ found @ matrices, matrices, atol=1e-4)
        np.testing.assert_allclose(found @ matrices @ found, found, atol=1e-3)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize("rows, columns", [(3, 3), (3, 4), (4, 3), (2, 4)])
def test_gradients_of_singular_vectors(rows, columns, kind, full):
    """Each pair of vectors may turn its phase; products of both, and spaces, are the same whatever it is."""
    matrices = RANDOM.normal(size=(2, rows, columns)).astype(kind)
    if kind is np.complex128:
        matrices += 1j * RANDOM.normal(size=matrices.shape)
    least = min(rows, columns)

    def build(x):
        s, u, v = tf.svd(x, full_matrices=full)
        pairs = tf.matmul(u[..., :least] * tf.cast(tf.range(least) + 1, x.dtype), v[..., :least], adjoint_b=True)
        spaces = [tf.matmul(each[..., :2], each[..., :2], adjoint_b=True) for each in (u, v)]
        return [s, pairs, *spaces]

    if full and abs(rows - columns) > 1:
        with pytest.raises(tf.errors.InvalidArgumentError, match="differ by 1"):
            check_gradients(build, [matrices])
    else:
        check_gradients(build, [matrices], tolerance=1e-5)


@pytest.mark.parametrize("form", ["compact", "sequence", "matrix"])
def test_tridiagonal_matrices(form):
    above, on, below = RANDOM.normal(size=(3, 2, 4)).astype(np.float32)
    on = on + 5
    dense = np.stack([np.diag(above[i, :-1], 1) + np.diag(on[i]) + np.diag(below[i, 1:], -1) for i in range(2)])
    given = {"compact": np.stack([above, on, below], 1), "sequence": [above, on, below], "matrix": dense}[form]
    np.testing.assert_allclose(run(tf.linalg.tridiagonal_matmul(given, B, form)), dense @ B, rtol=1e-4, atol=1e-5)
    wanted = np.linalg.solve(dense, B)
    np.testing.assert_allclose(run(tf.linalg.tridiagonal_solve(given, B, form)), wanted, rtol=1e-4, atol=1e-6)
    turned = tf.linalg.tridiagonal_solve(given, B.swapaxes(1, 2), form, transpose_rhs=True)
    np.testing.assert_allclose(run(turned), wanted, rtol=1e-4, atol=1e-6)
    vector = tf.linalg.tridiagonal_solve(given, B[..., 0], form)
    np.testing.assert_allclose(run(vector), wanted[..., 0], rtol=1e-4, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="diagonals_format"):
        tf.linalg.tridiagonal_solve(given, B, "dense")


@pytest.mark.parametrize(
    ("diagonals", "rhs"),
    [((5, 4, 4), (5, 4)), ((5, 3, 4), (4, 5)), ((5, 3, 4), (5, 3, 2)), ((5,), (5, 4))],
)
def test_tridiagonal_systems_of_other_shapes_are_refused(diagonals, rhs):
    with pytest.raises(ValueError, match="compatible"):
        tf.linalg.tridiagonal_solve(tf.ones(diagonals), tf.ones(rhs))


def test_special_functions():
    x = np.linspace(-2, 2, 9).astype(np.float32)
    np.testing.assert_allclose(run(tf.math.bessel_i0(x)), scipy.special.i0(x), rtol=1e-5)
    np.testing.assert_allclose(run(tf.math.bessel_i1(x)), scipy.special.i1(x), rtol=1e-5)
    np.testing.assert_allclose(run(tf.math.erfcinv(x / 4 + 0.75)), scipy.special.erfcinv(x / 4 + 0.75), rtol=1e-4)
    inverse = np.divide(1, x, out=np.zeros_like(x), where=x != 0)
    np.testing.assert_allclose(run(tf.math.reciprocal_no_nan(x)), inverse)


BY_MATRIX = {
    "svd": lambda a: tf.svd(a),
    "singular values": lambda a: [tf.svd(a, compute_uv=False)],
    "logarithm": lambda a: [tf.linalg.logm(tf.cast(a, tf.complex64))],
    "triangular system": lambda a: [tf.matrix_triangular_solve(a, a)],
    "least squares": lambda a: [tf.matrix_solve_ls(a, a, fast=False)],
    "norm": lambda a: [tf.norm(a, 2, axis=[-2, -1])],
}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", BY_MATRIX)
def test_a_matrix_that_is_not_finite_spoils_its_own_results_alone(name, bad):
    good = np.float32([[2, 0.5], [0.25, 3]])
    both = np.stack([good, np.float32([[1, bad], [2, 3]])])
    with tf.Session() as session:
        for alone, found in zip(*session.run([BY_MATRIX[name](good), BY_MATRIX[name](both)]), strict=True):
            np.testing.assert_allclose(found[0], alone, rtol=1e-6)
            assert not np.isfinite(found[1]).all()  # as TensorFlow 2.21 gives them


@pytest.mark.parametrize("function", [tf.self_adjoint_eig, tf.self_adjoint_eigvals])
def test_eigenvalues_of_what_is_not_finite_are_refused(function):
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="holds NaN or infinity"):
        session.run(function(np.float32([[1, np.nan], [np.nan, 1]])))


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    ("count", "size", "dtype"),
    [(40, 3, np.complex64), (70, 8, np.float32), (9, 5, np.float64), (2, 7, np.complex64), (1, 40, np.float32)],
)
def test_triangular_systems_are_solved(count, size, dtype, lower, adjoint):
    random = np.random.default_rng(0)
    matrices, sides = random.normal(size=(count, size, size)), random.normal(size=(count, size, 2)).astype(dtype)
    matrices = (matrices + 3 * np.eye(size) + (1j * matrices[::-1] if dtype is np.complex64 else 0)).astype(dtype)
    triangles = np.tril(matrices) if lower else np.triu(matrices)
    expected = np.linalg.solve(np.conj(triangles).swapaxes(-1, -2) if adjoint else triangles, sides)
    solved = run(tf.linalg.triangular_solve(matrices, sides, lower=lower, adjoint=adjoint))
    assert solved.dtype == dtype
    np.testing.assert_allclose(solved, expected, rtol=1e-3, atol=1e-4)
    matrices[-1, 2, 2] = 0
    with tf.device("/cpu:0"), pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        run(tf.linalg.triangular_solve(matrices, sides, lower=lower, adjoint=adjoint))
