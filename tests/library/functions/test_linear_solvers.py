"""Solvers, expectations and rates: what `tf.contrib` has of numerical methods, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import solvers
from tfray.contrib.bayesflow import monte_carlo
from tfray.errors import InvalidArgumentError


def _matrix(rows: int, columns: int, dtype: type) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, [rows, columns]).astype(dtype)


def _operator(value: np.ndarray, static: bool) -> solvers.LinearOperator:
    return solvers.create_operator(tf.placeholder_with_default(value, value.shape if static else None))


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-4), (np.float64, 1e-8)])
def test_conjugate_gradient_solves(dtype, tol, static):
    value = _matrix(4, 4, dtype)
    value = value.T @ value
    right = _matrix(4, 1, dtype)[:, 0]
    operator = _operator(value, static)
    with tf.Session() as session:
        plain = session.run(solvers.conjugate_gradient(operator, tf.constant(right), tol=tol, max_iter=20))
        inverse = solvers.create_operator(tf.constant(np.linalg.inv(value)))
        helped = session.run(solvers.conjugate_gradient(operator, tf.constant(right), inverse, [1, 0, 0, 0], tol))
    for state in (plain, helped):
        assert np.linalg.norm(value @ state.x - right) <= 2 * tol * np.linalg.norm(right)
    assert helped.i < plain.i


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("size", [(4, 4), (8, 5), (3, 7)])
def test_cgls_finds_least_squares(size, static):
    value, right = _matrix(*size, np.float64), _matrix(size[0], 1, np.float64)[:, 0]
    with tf.Session() as session:
        state = session.run(solvers.cgls(_operator(value, static), tf.constant(right), tol=1e-12, max_iter=20))
    np.testing.assert_allclose(state.x, np.linalg.lstsq(value, right, rcond=None)[0], rtol=1e-8, atol=1e-10)
    assert np.sqrt(state.gamma) <= 1e-12 * np.linalg.norm(value.T @ right)


@pytest.mark.parametrize("orthogonalize", [True, False])
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("size", "k"), [((4, 4), 4), ((7, 4), 3), ((5, 8), 1)])
def test_lanczos_factorizes(size, k, static, orthogonalize):
    value = _matrix(*size, np.float64)
    found = solvers.lanczos_bidiag(_operator(value, static), k, orthogonalize=orthogonalize)
    pairs = [
        (tf.matmul(value, found.v), solvers.bidiag_matmul(found.u, found.alpha, found.beta)),
        (
            tf.matmul(value, found.u[:, :-1], transpose_a=True),
            solvers.bidiag_matmul(found.v, found.alpha, found.beta, adjoint_b=True),
        ),
    ]
    with tf.Session() as session:
        for left, right in session.run(pairs):
            np.testing.assert_allclose(left, right, atol=1e-12)
    with pytest.raises(InvalidArgumentError, match="k is 0"):
        solvers.lanczos_bidiag(_operator(value, static), 0)


def test_norms_and_identity():
    value = np.array([[2.0], [-3.0], [5.0]])
    same = solvers.identity_operator(tf.constant(value))
    assert same.shape == [3, 1] and same.apply(value) is value and same.apply_adjoint(value) is value
    v = tf.constant(value)
    with tf.Session() as session:
        lengths = session.run([solvers.l2norm(v), solvers.l2norm_squared(v), solvers.dot(v, v), solvers.l2normalize(v)])
    assert np.allclose(lengths[:3], [38**0.5, 38, 38])
    np.testing.assert_allclose(lengths[3][0], value / 38**0.5)


def test_expectations_from_samples_of_another_distribution():
    distributions = tf.distributions
    p = distributions.Normal(loc=np.array([-1.0, 1.0]), scale=np.array([0.5, 0.5]))
    q = distributions.Normal(loc=np.zeros(2), scale=np.ones(2))
    mean = monte_carlo.expectation_importance_sampler(lambda x: x, p.log_prob, q, n=100000, seed=42)
    log_square = monte_carlo.expectation_importance_sampler_logspace(
        lambda x: tf.log(tf.square(x)), p.log_prob, q, z=q.sample(100000, seed=7)
    )
    assert mean.shape.as_list() == log_square.shape.as_list() == [2]
    with tf.Session() as session:
        found, square = session.run([mean, tf.exp(log_square)])
    np.testing.assert_allclose(found, [-1, 1], rtol=0.03)
    np.testing.assert_allclose(square, [1.25, 1.25], rtol=0.03)
    with pytest.raises(ValueError, match="exactly one"):
        monte_carlo.expectation_importance_sampler(lambda x: x, p.log_prob, q)


def test_the_score_function_has_the_gradient_of_the_expectation():
    loc = tf.constant(0.5, tf.float64)
    p = tf.distributions.Normal(loc=loc, scale=np.float64(1.0))
    samples = p.sample(200000, seed=3)
    ways = [monte_carlo.expectation(tf.square, samples, p.log_prob, use_reparametrization=way) for way in (True, False)]
    with tf.Session() as session:
        values, gradients = session.run([ways, [tf.gradients(way, loc)[0] for way in ways]])
    np.testing.assert_allclose(values, [1.25, 1.25], rtol=0.02)
    np.testing.assert_allclose(gradients, [1, 1], rtol=0.05)
    for arguments in ((None, samples), (tf.square, samples, None, False)):
        with pytest.raises(ValueError, match="must be a callable function"):
            monte_carlo.expectation(*arguments)


def test_rate_is_the_change_since_the_last_step():
    rate = tf.contrib.rate.Rate()
    value, time = tf.placeholder(tf.float32, [1]), tf.placeholder(tf.int32, [1])
    change = rate(value, denominator=time)
    numer = rate.numer
    rate(value, time)
    assert rate.numer is numer
    assert {each.op.name for each in tf.local_variables()} >= {"Rate_1/numer", "Rate_1/prev_denominator"}
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        pairs = [(1, 1), (2, 2), (4, 3), (16, 3)]
        assert [session.run(change, {value: [v], time: [t]})[0] for v, t in pairs] == [1, 1, 2, 0]


def test_rates_of_names_with_spaces():
    rate = tf.contrib.rate.Rate(name="has space")
    rate(tf.ones([1]), tf.ones([1]))
    assert rate.name == "has space"
    assert rate.prev_values.name == "has_space_1/prev_values:0"
