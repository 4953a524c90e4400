"""Special functions and their derivatives over extreme arguments, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import tfray as tf
from tfray.ops.math import special_ops
from tfray.ops.math.gamma_sensitivity_ops import random_gamma_grad

FAR = np.array([-1e4, -700.0, -100, -40, -20, -3, -1, -1e-3, -1e-9, 0, 1e-9, 1e-3, 0.3, 1, 3, 20, 40, 100, 700, 1e4])
BETWEEN = np.array([-1 + 1e-12, -0.999, -0.5, -1e-9, 0, 1e-30, 0.25, 0.999, 1 - 1e-12])


def derivatives(function, arguments, count=2):
    """The function's values at the arguments, then those of its derivatives by the last argument."""
    tensors = [tf.constant(argument) for argument in arguments]
    found = [function(*tensors)]
    for _ in range(count):
        found.append(tf.gradients(found[-1], tensors[-1])[0])
    with tf.Session() as session:
        return session.run(found)


def check(found, expected, rtol=1e-10, atol=1e-300):
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=rtol, atol=atol)


def test_logarithm_of_the_normal_distribution_in_both_tails():
    hazard = np.sqrt(2 / np.pi) / special.erfcx(-FAR / np.sqrt(2))
    value, slope = derivatives(special_ops.log_ndtr, [FAR], 1)
    np.testing.assert_allclose(value, special.log_ndtr(FAR), rtol=1e-13)
    np.testing.assert_allclose(slope, hazard, rtol=1e-12)
    # The second derivative is a difference of two numbers of about the same size, for very negative arguments.
    near = FAR[np.abs(FAR) <= 40]
    second = derivatives(special_ops.log_ndtr, [near])[2]
    hazard = np.sqrt(2 / np.pi) / special.erfcx(-near / np.sqrt(2))
    np.testing.assert_allclose(second, -hazard * (near + hazard), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tf.math.bessel_i0, lambda x: [special.i0(x), special.i1(x), (special.i0(x) + special.iv(2, x)) / 2]),
        (
            tf.math.bessel_i1,
            lambda x: [special.i1(x), special.ivp(1, x), (3 * special.i1(x) + special.iv(3, x)) / 4],
        ),
    ],
)
def test_bessel_functions(function, expected):
    x = FAR[np.abs(FAR) <= 100]
    # Near 0 the second derivative of the first order is right to the square root of the precision, absolutely.
    check(derivatives(function, [x]), expected(x), rtol=1e-9, atol=2e-8)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tf.erf, lambda x: [special.erf(x), 2 / np.sqrt(np.pi) * np.exp(-x * x)]),
        (tf.erfc, lambda x: [special.erfc(x), -2 / np.sqrt(np.pi) * np.exp(-x * x)]),
        (tf.sigmoid, lambda x: [special.expit(x), special.expit(x) * special.expit(-x)]),
        (tf.log_sigmoid, lambda x: [special.log_expit(x), special.expit(-x)]),
        (tf.nn.softplus, lambda x: [-special.log_expit(-x), special.expit(x)]),
        (tf.math.bessel_i0e, lambda x: [special.i0e(x), special.i1e(x) - np.sign(x) * special.i0e(x)]),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_tails(function, expected):
    found = derivatives(function, [FAR], 1)
    check(found[:1], expected(FAR)[:1])
    # A factor of 1 - y takes what is left of digits near 1, as in TensorFlow.
    np.testing.assert_allclose(found[1], expected(FAR)[1], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("function", "value"), [(tf.sigmoid, special.expit), (lambda x: tf.gradients(tf.expm1(x), x)[0], np.exp)]
)
def test_tails_in_float32(function, value):
    x = np.array([-80, -40, -20, -5, 0, 5], np.float32)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(function(tf.constant(x))), value(x.astype(float)), rtol=1e-5)


def test_inverses():
    y = special.erfinv(BETWEEN)
    slope = np.sqrt(np.pi) / 2 * np.exp(y * y)
    check(derivatives(tf.math.erfinv, [BETWEEN]), [y, slope, 2 * y * slope * slope])
    p = np.array([1e-100, 1e-30, 1e-3, 0.3, 0.5, 0.999])
    z = special.ndtri(p)
    slope = np.sqrt(2 * np.pi) * np.exp(z * z / 2)
    check(derivatives(tf.math.ndtri, [p]), [z, slope, z * slope * slope], rtol=1e-9, atol=1e-12)


A, X = (m.ravel() for m in np.meshgrid([1e-3, 0.1, 0.9, 1.0, 2.0, 30, 1e3, 1e5], [1e-30, 1e-3, 0.4, 1, 3, 29, 990]))


def test_incomplete_gamma_functions():
    density = stats.gamma(A).pdf(X)
    second = density * ((A - 1) / X - 1)
    check(derivatives(tf.igamma, [A, X]), [special.gammainc(A, X), density, second], rtol=1e-8)
    check(derivatives(tf.igammac, [A, X]), [special.gammaincc(A, X), -density, -second], rtol=1e-8)


def test_incomplete_gamma_functions_by_their_first_argument():
    # What TensorFlow gives for these: the derivative by a, and by x and a.
    by_a = [-6.2932038249, -0.01838675643, -0.26174513995, -0.000988327945, -0.07302883978, -4.152846967e-34]
    mixed = [986.4095176166, 0.0224340902974, -1.561178818473, 0.000853428223759, -0.0012662874518, 3.073289048e-34]
    a, x = (
        tf.constant([1e-3, 0.1, 1.0, 2.0, 30, 50], tf.float64),
        tf.constant([1e-3, 3.0, 0.1, 10, 29, 190], tf.float64),
    )
    lower, upper = tf.igamma(a, x), tf.igammac(a, x)
    fetches = [tf.gradients(y, a)[0] for y in (lower, upper, *tf.gradients(lower, x))]
    with tf.Session() as session:
        found = session.run(fetches)
    np.testing.assert_allclose(found[0], by_a, rtol=1e-8)
    np.testing.assert_allclose(found[1], np.negative(by_a), rtol=1e-8)
    np.testing.assert_allclose(found[2], mixed, rtol=1e-8)


def test_derivative_of_draws_from_gamma_distributions():
    a = np.array([0.01, 0.1, 0.5, 1, 2, 10, 100, 1e4])
    for quantile in (1e-4, 0.1, 0.5, 0.9, 1 - 1e-9):
        draws, step = stats.gamma(a).ppf(quantile), 1e-5 * a
        expected = (stats.gamma(a + step).ppf(quantile) - stats.gamma(a - step).ppf(quantile)) / (2 * step)
        with tf.Session() as session:
            found = session.run(random_gamma_grad(tf.constant(a), draws))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-300)


def test_xlogy_of_halves_is_rounded_as_the_product_is():
    x = np.array([[0.1, 0.2, 3.5], [0.0, -5.0, 30.0]], np.float16)
    y = np.array([[0.1, 0.2, 3.5], [0.0, 4.0, 2.0]], np.float16)
    with np.errstate(all="ignore"):
        expected = np.where(x == 0, 0, x * np.log(y.astype(np.float32)).astype(np.float16))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.math.xlogy(x, y)), expected)
