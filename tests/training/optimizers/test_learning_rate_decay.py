"""Learning-rate schedules against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.interpreter import interpret
from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.library.variables.variables import Variable, global_variables_initializer
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.session import Session
from tfray.training.optimizers import learning_rate_decay as decay
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.threads.global_step import get_or_create_global_step

STEPS = (0, 1, 7, 10, 15, 20, 25)


def polynomial(step, steps, end, power, cycle=False):
    if cycle:
        steps *= max(1, math.ceil(step / steps))
    step = min(step, steps)
    return (0.5 - end) * (1 - step / steps) ** power + end


def linear_cosine(step, periods, alpha, beta):
    done = min(step, 10) / 10
    return 0.5 * ((alpha + 1 - done) * 0.5 * (1 + math.cos(2 * math.pi * periods * done)) + beta)


def restarts(step, period, t_mul, m_mul, alpha):
    high = 1.0
    while step >= period:
        step, period, high = step - period, period * t_mul, high * m_mul
    return 0.5 * ((1 - alpha) * high * 0.5 * (1 + math.cos(math.pi * step / period)) + alpha)


@pytest.mark.parametrize("rate_dtype", ["float32", "float64"])
@pytest.mark.parametrize("step_dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("schedule", "formula"),
    [
        (lambda rate, t: decay.exponential_decay(rate, t, 10, 0.75), lambda t: 0.5 * 0.75 ** (t / 10)),
        (lambda rate, t: decay.exponential_decay(rate, t, 10, 0.75, True), lambda t: 0.5 * 0.75 ** (t // 10)),
        (lambda rate, t: decay.natural_exp_decay(rate, t, 10, 0.75), lambda t: 0.5 * math.exp(-0.075 * t)),
        (lambda rate, t: decay.natural_exp_decay(rate, t, 10, 0.75, True), lambda t: 0.5 * math.exp(-0.75 * (t // 10))),
        (lambda rate, t: decay.inverse_time_decay(rate, t, 10, 0.75), lambda t: 0.5 / (1 + 0.075 * t)),
        (lambda rate, t: decay.inverse_time_decay(rate, t, 10, 0.75, True), lambda t: 0.5 / (1 + 0.75 * (t // 10))),
        (lambda rate, t: decay.polynomial_decay(rate, t, 10, 0.125), lambda t: polynomial(t, 10, 0.125, 1)),
        (lambda rate, t: decay.polynomial_decay(rate, t, 10, 0.125, 2.0), lambda t: polynomial(t, 10, 0.125, 2)),
        (
            lambda rate, t: decay.polynomial_decay(rate, t, 10, 0.125, cycle=True),
            lambda t: polynomial(t, 10, 0.125, 1, cycle=True),
        ),
        (
            lambda rate, t: decay.cosine_decay(rate, t, 10),
            lambda t: 0.25 * (1 + math.cos(math.pi * min(t, 10) / 10)),
        ),
        (
            lambda rate, t: decay.cosine_decay(rate, t, 10, alpha=0.5),
            lambda t: 0.5 * (0.25 * (1 + math.cos(math.pi * min(t, 10) / 10)) + 0.5),
        ),
        (
            lambda rate, t: decay.linear_cosine_decay(rate, t, 10, 1.5, 0.25, 0.125),
            lambda t: linear_cosine(t, 1.5, 0.25, 0.125),
        ),
        (lambda rate, t: decay.cosine_decay_restarts(rate, t, 4), lambda t: restarts(t, 4, 2.0, 1.0, 0.0)),
        (
            lambda rate, t: decay.cosine_decay_restarts(rate, t, 4, 1.0, 0.5, 0.25),
            lambda t: restarts(t, 4, 1.0, 0.5, 0.25),
        ),
        (
            lambda rate, t: decay.cosine_decay_restarts(rate, t, 4, 1.5, 0.75),
            lambda t: restarts(t, 4, 1.5, 0.75, 0.0),
        ),
        (
            lambda rate, t: decay.noisy_linear_cosine_decay(rate, t, 10, 0.0, 0.5, 1.5, 0.25, 0.125),
            lambda t: linear_cosine(t, 1.5, 0.25, 0.125),
        ),
    ],
)
def test_schedules(schedule, formula, step_dtype, rate_dtype):
    step = placeholder(step_dtype, [])
    rate = schedule(constant(0.5, rate_dtype), step)
    assert (rate.dtype, rate.shape.as_list()) == (dtypes.as_dtype(rate_dtype), [])
    actual = [interpret(rate, {step: t}) for t in STEPS]
    np.testing.assert_allclose(actual, [formula(t) for t in STEPS], rtol=1e-5)


def test_published_example_of_exponential_decay():
    # TensorFlow's documentation: "decay every 100000 steps with a base of 0.96".
    rate = decay.exponential_decay(0.1, constant(250_000), 100_000, 0.96, staircase=True)
    np.testing.assert_allclose(interpret(rate), 0.1 * 0.96**2, rtol=1e-6)


def test_piecewise_constant():
    # TensorFlow's documentation: 1.0 for the first 100001 steps, 0.5 for the next 10000, 0.1 then.
    step = placeholder("int64", [])
    rate = decay.piecewise_constant(step, [100_000, 110_000], [1.0, 0.5, 0.1])
    cases = {0: 1.0, 100_000: 1.0, 100_001: 0.5, 110_000: 0.5, 110_001: 0.1, 10**7: 0.1}
    np.testing.assert_allclose([interpret(rate, {step: t}) for t in cases], list(cases.values()), rtol=1e-6)


def test_piecewise_constant_of_other_types():
    position = constant(0.5)
    assert interpret(decay.piecewise_constant(position, [0.25, 0.75], [1, 2, 3])) == 2
    assert interpret(decay.piecewise_constant(position, [], [7])) == 7
    values = [constant(1.0, "float64"), constant(2.0, "float64")]
    assert interpret(decay.piecewise_constant(constant(3), [constant(2)], values)) == 2.0


def test_piecewise_constant_checks_its_arguments():
    with pytest.raises(InvalidArgumentError, match="2 boundaries need 3 values, got 2"):
        decay.piecewise_constant(constant(1), [1, 2], [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="boundaries are float32 and x is int32"):
        decay.piecewise_constant(constant(1), [1.5], [1.0, 2.0])


def test_noise_has_the_variance_asked_for():
    # Where the cosine is 1 and the line is its full height the noise shows alone.
    step = placeholder("int64", [])
    rate = decay.noisy_linear_cosine_decay(2.0, step, 1000, 4.0, 2.0, num_periods=0.0)
    with Session() as session:
        early = [session.run(rate, {step: 0}) for _ in range(400)]
        late = [session.run(rate, {step: 3}) for _ in range(400)]
    np.testing.assert_allclose(np.std(early), 4.0, rtol=0.15)
    np.testing.assert_allclose(np.std(late), 1.0, rtol=0.15)
    np.testing.assert_allclose(np.mean(late), 2 * (1 - 0.003 + 0.001), atol=0.2)


def test_names(graph):
    rate = decay.exponential_decay(0.1, constant(1), 10, 0.9)
    assert rate.name == "ExponentialDecay:0"
    assert decay.cosine_decay(0.1, constant(1), 10, name="lr").name.startswith("lr/")


def test_the_rate_of_a_step_is_that_of_the_steps_before_it():
    step, var = get_or_create_global_step(), Variable([0.0])
    rate = decay.piecewise_constant(step, [0, 1], [1.0, 10.0, 100.0])
    train_op = GradientDescentOptimizer(rate).minimize(-1.0 * var, global_step=step)
    with Session() as session:
        session.run(global_variables_initializer())
        seen = []
        for _ in range(3):
            session.run(train_op)
            seen.append(session.run(var).item())
        assert seen == [1.0, 11.0, 111.0]
        assert session.run(step) == 3
