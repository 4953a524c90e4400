"""Solutions of differential equations, against known ones and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate

import tfray as tf
from tfray.contrib.integrate import odeint, odeint_fixed
from tfray.errors import InvalidArgumentError

TIMES = np.array([0.0, 0.3, 1.0, 2.5])


@pytest.mark.parametrize(
    ("func", "start", "expected"),
    [
        (lambda y, t: -y, 1.0, np.exp(-TIMES)),
        (lambda y, t: tf.cast(2 * t, y.dtype), 1.0, 1 + TIMES**2),
        (lambda y, t: 1j * y, 1 + 0j, np.exp(1j * TIMES)),
        (lambda y, t: tf.stack([y[1], -y[0]]), [0.0, 1.0], np.stack([np.sin(TIMES), np.cos(TIMES)], 1)),
        (
            lambda y, t: y * [[1.0], [-2.0]],
            [[1.0], [3.0]],
            np.stack([np.exp(TIMES), 3 * np.exp(-2 * TIMES)], 1)[..., None],
        ),
    ],
)
def test_known_solutions(session, func, start, expected):
    y0 = tf.constant(np.asarray(start))
    for found in (odeint(func, y0, TIMES, 1e-9, 1e-12), odeint_fixed(func, y0, TIMES, dt=0.01)):
        assert found.shape.as_list() == list(expected.shape) and found.dtype == y0.dtype
        np.testing.assert_allclose(session.run(found), expected, rtol=1e-7, atol=1e-8)


def test_times_in_a_variable(session):
    times = tf.get_variable("times", initializer=TIMES.astype(np.float32))
    session.run(tf.global_variables_initializer())
    for solve in (odeint, odeint_fixed):
        found = solve(lambda y, t: tf.cast(2 * t, y.dtype), 1.0, times)
        np.testing.assert_allclose(session.run(found), 1 + TIMES**2, rtol=1e-5)


def van_der_pol(y, t, stack=np.stack):
    return stack([y[1], 3 * (1 - y[0] ** 2) * y[1] - y[0]])


def test_as_scipy_finds_it(session):
    times = np.linspace(0, 10, 21)
    expected = scipy.integrate.solve_ivp(
        lambda t, y: van_der_pol(y, t), (0, 10), [2.0, 0.0], "DOP853", times, rtol=1e-11, atol=1e-11
    ).y.T
    y, told = odeint(
        lambda y, t: van_der_pol(y, t, tf.stack), tf.constant([2.0, 0.0], tf.float64), times, full_output=True
    )
    found, told = session.run([y, told])
    np.testing.assert_allclose(found, expected, atol=2e-4)
    points, ratios = told["integrate_points"], told["error_ratio"]
    assert told["num_func_evals"] == 6 * len(points) + 1 and len(points) == len(ratios)
    accepted = points[ratios <= 1]
    assert (ratios > 1).any() and accepted[-1] >= 10 and (np.diff(accepted) > 0).all()


def test_options_choose_the_steps(session):
    options = {"first_step": 0.01, "safety": 0.5, "ifactor": 1.0, "dfactor": 0.5}
    told = odeint(lambda y, t: -y, 1.0, [0.0, 0.05], 1e-3, 1e-3, "dopri5", options, full_output=True)[1]
    # Steps cannot grow.
    np.testing.assert_allclose(session.run(told["integrate_points"]), 0.01 * np.arange(1, 6), rtol=1e-6)


@pytest.mark.parametrize(("method", "order"), [("midpoint", 2), ("rk4", 4)])
def test_the_order_of_a_method(session, method, order):
    def error(dt):
        found = odeint_fixed(lambda y, t: y * tf.cos(t), tf.constant(1.0, tf.float64), [0.0, 1.0], dt, method)
        return abs(session.run(found)[-1] - np.exp(np.sin(1.0)))

    assert np.log2(error(1 / 32) / error(1 / 64)) == pytest.approx(order, abs=0.1)


def test_steps_of_intervals(session):
    seen = []

    def slope(y, t):
        found = tf.py_func(lambda y, t: (seen.append(float(t)), -y)[1], [y, t], tf.float64)
        found.set_shape(y.shape)
        return found

    def times(dt):
        seen.clear()
        session.run(odeint_fixed(slope, tf.constant(1.0, tf.float64), [0.0, 1.0, 1.5], dt, "midpoint"))
        return seen[::2]

    assert times(None) == [0, 1]
    assert times(0.4) == pytest.approx([0, 1 / 3, 2 / 3, 1, 1.25])
    assert times([0.5, 1.0]) == [0, 0.5, 1]


@pytest.mark.parametrize("solve", [odeint, odeint_fixed])
def test_gradients(session, solve):
    rate, start = tf.placeholder(tf.float64, []), tf.placeholder(tf.float64, [])
    y = solve(lambda y, t: -rate * y, start, np.linspace(0, 1, 5))[-1]
    found = session.run([y, *tf.gradients(y, [rate, start])], {rate: 0.7, start: 2.0})
    value = np.exp(-0.7)
    np.testing.assert_allclose(found, [2 * value, -2 * value, value], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: odeint(lambda y, t: y, 1.0, [0, 1], method="euler"), ValueError, "invalid method"),
        (lambda: odeint(lambda y, t: y, 1.0, [0, 1], options={"safety": 1}), ValueError, "without specifying"),
        (lambda: odeint(lambda y, t: y, 1.0, [0, 1], method="dopri5", options={"saftey": 1}), TypeError, "saftey"),
        (lambda: odeint(lambda y, t: y, 1, [0, 1]), TypeError, "`y0` must have a floating point"),
        (lambda: odeint(lambda y, t: y, 1.0, tf.constant([0, 1])), TypeError, "`t` must have a floating point"),
        (lambda: odeint(lambda y, t: y, 1.0, [[0, 1]]), ValueError, "1D"),
        (lambda: odeint_fixed(lambda y, t: y, 1.0, [0, 1], method="euler"), ValueError, "not supported"),
        (lambda: odeint_fixed(lambda y, t: y, 1.0, [0, 1], [1.0, 1.0]), ValueError, "incompatible lengths"),
    ],
)
def test_what_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: odeint(lambda y, t: y, 1.0, [0, 1, 0.5]), "monotonic increasing"),
        (lambda: odeint_fixed(lambda y, t: y, 1.0, [0, 1, 0.5]), "monotonic increasing"),
        (lambda: odeint(lambda y, t: y, 1.0, [0, 1], method="dopri5", options={"max_num_steps": 3}), "max_num_steps"),
        (lambda: odeint(lambda y, t: y / 0.0, 1.0, [0, 1]), "underflow|non-finite"),
    ],
)
def test_what_fails_in_a_step(session, make, match):
    with pytest.raises(InvalidArgumentError, match=match):
        session.run(make())
