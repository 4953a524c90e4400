"""Learning rates that fall as training goes on: functions of the global step, as tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import PositiveNumber, checked
from tfray.framework.convert import convert_to_tensor, is_rank0_number
from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops

Number = float | Tensor | Variable
Steps = PositiveNumber | Tensor | Variable


@checked
def exponential_decay(
    learning_rate: Number,
    global_step: Number,
    decay_steps: Steps,
    decay_rate: Number,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        decay_steps: Steps after which the rate has changed by `decay_rate`.
        decay_rate: That factor.
        staircase: Round the exponent down, so that the rate changes every `decay_steps` steps.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.

    Examples:
        >>> session.run(tf.train.exponential_decay(0.1, global_step=200, decay_steps=100, decay_rate=0.5))
        np.float32(0.025)
    """
    with _scope(name, "ExponentialDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        periods = _periods(global_step, decay_steps, rate, staircase)
        return math_ops.multiply(rate, math_ops.pow(_like(decay_rate, rate), periods), scope)


@checked
def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Tensor:
    """``values[0]`` up to ``boundaries[0]``, ``values[1]`` from there up to ``boundaries[1]``, and so on.

        learning_rate = tf.train.piecewise_constant(global_step, [100000, 110000], [1.0, 0.5, 0.1])

    Args:
        x: A scalar or variable, the global step as a rule.
        boundaries: Ascending numbers or scalars of the dtype of `x`; each belongs to the interval that it ends.
        values: One more number or scalar than there are boundaries.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `values`.

    Raises:
        InvalidArgumentError: The lengths do not match, or boundaries are not of the dtype of `x`.

    Examples:
        >>> step = tf.placeholder(tf.int32, [])
        >>> rate = tf.train.piecewise_constant(step, boundaries=[100], values=[0.5, 0.25])
        >>> session.run(rate, {step: 100}), session.run(rate, {step: 101})
        (np.float32(0.5), np.float32(0.25))
    """
    if len(boundaries) != len(values) - 1:
        raise InvalidArgumentError(
            f"piecewise_constant: {len(boundaries)} boundaries need {len(boundaries) + 1} values, got {len(values)}"
        )
    with _scope(name, "PiecewiseConstant"):
        position = convert_to_tensor(x)
        choices = array_ops.stack([convert_to_tensor(value) for value in values])
        if not boundaries:
            return choices[0]
        limits = array_ops.stack([_boundary(limit, position) for limit in boundaries])
        passed = math_ops.reduce_sum(array_ops.to_int32(math_ops.greater(position, limits)))
        return array_ops.gather(choices, passed)


piecewise_constant_decay = piecewise_constant


def _boundary(limit: Any, position: Tensor) -> Tensor:
    limit = convert_to_tensor(limit)
    if limit.dtype is position.dtype:
        return limit
    if limit.dtype.is_integer and position.dtype.is_integer:
        return array_ops.cast(limit, position.dtype)
    raise InvalidArgumentError(
        f"piecewise_constant: boundaries are {limit.dtype.name} and x is {position.dtype.name}; "
        "give boundaries of the dtype of x"
    )


@checked
def polynomial_decay(
    learning_rate: Number,
    global_step: Number,
    decay_steps: Steps,
    end_learning_rate: Number = 0.0001,
    power: Number = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """A polynomial from `learning_rate` at step 0 to `end_learning_rate` at step `decay_steps`, and constant then.

    With ``remaining = 1 - min(global_step, decay_steps) / decay_steps`` it is
    ``end_learning_rate + (learning_rate - end_learning_rate) * remaining ** power``.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        decay_steps: The step at which the end is reached.
        end_learning_rate: The rate at the end.
        power: Exponent of the polynomial; 1 makes a straight line.
        cycle: At the end jump back up, and fall over the first multiple of `decay_steps` not yet passed.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.

    Examples:
        >>> session.run(tf.train.polynomial_decay(0.5, global_step=50, decay_steps=100, end_learning_rate=0.0))
        np.float32(0.25)
    """
    with _scope(name, "PolynomialDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        end = _like(end_learning_rate, rate)
        step, steps = _like(global_step, rate), _like(decay_steps, rate)
        if cycle:
            # The first cycle lasts from step 0 to `decay_steps`, both included.
            steps = math_ops.multiply(steps, math_ops.maximum(math_ops.ceil(step / steps), _like(1.0, rate)))
        else:
            step = math_ops.minimum(step, steps)
        remaining = math_ops.subtract(_like(1.0, rate), step / steps)
        return math_ops.add(math_ops.multiply(rate - end, math_ops.pow(remaining, _like(power, rate))), end, scope)


@checked
def natural_exp_decay(
    learning_rate: Number,
    global_step: Number,
    decay_steps: Steps,
    decay_rate: Number,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``, a scalar; arguments of `exponential_decay`."""
    with _scope(name, "ExponentialDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        periods = _periods(global_step, decay_steps, rate, staircase)
        return math_ops.multiply(rate, math_ops.exp(math_ops.negative(_like(decay_rate, rate) * periods)), scope)


@checked
def inverse_time_decay(
    learning_rate: Number,
    global_step: Number,
    decay_steps: Steps,
    decay_rate: Number,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``, a scalar; arguments of `exponential_decay`."""
    with _scope(name, "InverseTimeDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        periods = _periods(global_step, decay_steps, rate, staircase)
        return math_ops.divide(rate, _like(1.0, rate) + _like(decay_rate, rate) * periods, scope)


@checked
def cosine_decay(
    learning_rate: Number, global_step: Number, decay_steps: Steps, alpha: Number = 0.0, name: str | None = None
) -> Tensor:
    """Half a period of a cosine from `learning_rate` down to ``alpha * learning_rate`` at step `decay_steps`.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        decay_steps: The step from which on the rate stays.
        alpha: The rate at the end as a fraction of that at step 0.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.

    References:
        Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
    """
    with _scope(name, "CosineDecay"):
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        steps, one = _like(decay_steps, rate), _like(1.0, rate)
        completed = math_ops.minimum(_like(global_step, rate), steps) / steps
        wave = _like(0.5, rate) * (one + math_ops.cos(_like(math.pi, rate) * completed))
        low = _like(alpha, rate)
        return math_ops.multiply(rate, (one - low) * wave + low)


@checked
def cosine_decay_restarts(
    learning_rate: Number,
    global_step: Number,
    first_decay_steps: Steps,
    t_mul: Number = 2.0,
    m_mul: Number = 1.0,
    alpha: Number = 0.0,
    name: str | None = None,
) -> Tensor:
    """Falls like `cosine_decay`, and starts again after each period, which may be longer and lower than the last.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        first_decay_steps: Length of the first period.
        t_mul: Factor from the length of a period to that of the next.
        m_mul: Factor from the first rate of a period to that of the next.
        alpha: The least rate as a fraction of that at step 0.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.

    References:
        Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
    """
    with _scope(name, "SGDRDecay"):
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        one, growth = _like(1.0, rate), _like(t_mul, rate)
        completed = _like(global_step, rate) / _like(first_decay_steps, rate)
        restarts, within = smart_cond(
            math_ops.equal(growth, one),
            lambda: [math_ops.floor(completed), completed - math_ops.floor(completed)],
            lambda: _growing_periods(completed, growth, one),
        )
        wave = _like(0.5, rate) * math_ops.pow(_like(m_mul, rate), restarts)
        wave = wave * (one + math_ops.cos(_like(math.pi, rate) * within))
        low = _like(alpha, rate)
        return math_ops.multiply(rate, (one - low) * wave + low)


def sgdr_decay(
    learning_rate: Number,
    global_step: Number,
    initial_period_steps: Steps,
    t_mul: Number = 2.0,
    m_mul: Number = 1.0,
    name: str | None = None,
) -> Tensor:
    """`cosine_decay_restarts` down to 0: ``tf.contrib.training`` has it by this name.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        initial_period_steps: Length of the first period.
        t_mul: Factor from the length of a period to that of the next.
        m_mul: Factor from the first rate of a period to that of the next.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.
    """
    return cosine_decay_restarts(learning_rate, global_step, initial_period_steps, t_mul, m_mul, name=name)


def _growing_periods(completed: Tensor, growth: Tensor, one: Tensor) -> list[Tensor]:
    """How many periods are over, and the part of the current one that is, `completed` being in first periods."""
    over = math_ops.floor(math_ops.log(one - completed * (one - growth)) / math_ops.log(growth))
    length = math_ops.pow(growth, over)
    return [over, (completed - (one - length) / (one - growth)) / length]


@checked
def linear_cosine_decay(
    learning_rate: Number,
    global_step: Number,
    decay_steps: Steps,
    num_periods: Number = 0.5,
    alpha: Number = 0.0,
    beta: Number = 0.001,
    name: str | None = None,
) -> Tensor:
    """A straight line to 0 at step `decay_steps` times a cosine.

    With ``x = min(global_step, decay_steps) / decay_steps`` it is
    ``learning_rate * ((alpha + 1 - x) * (1 + cos(2 * pi * num_periods * x)) / 2 + beta)``.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        decay_steps: The step from which on the rate stays.
        num_periods: Periods of the cosine.
        alpha: Added to the line.
        beta: Added to the product.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.

    References:
        Bello, Zoph, Vasudevan and Le, "Neural Optimizer Search with Reinforcement Learning", 2017.
    """
    with _scope(name, "LinearCosineDecay"):
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        steps, one = _like(decay_steps, rate), _like(1.0, rate)
        completed = math_ops.minimum(_like(global_step, rate), steps) / steps
        angle = _like(2 * math.pi, rate) * _like(num_periods, rate) * completed
        wave = _like(0.5, rate) * (one + math_ops.cos(angle))
        line = _like(alpha, rate) + one - completed
        return math_ops.multiply(rate, line * wave + _like(beta, rate))


@checked
def noisy_linear_cosine_decay(
    learning_rate: Number,
    global_step: Number,
    decay_steps: Steps,
    initial_variance: Number = 1.0,
    variance_decay: Number = 0.55,
    num_periods: Number = 0.5,
    alpha: Number = 0.0,
    beta: Number = 0.001,
    name: str | None = None,
) -> Tensor:
    """As `linear_cosine_decay`, with noise on the straight line.

    The noise is normal, of the variance ``initial_variance / (1 + min(global_step, decay_steps)) ** variance_decay``.

    Args:
        learning_rate: The rate at step 0, a float number or scalar.
        global_step: The step, an integer scalar or variable.
        decay_steps: The step from which on the rate stays, but for the noise.
        initial_variance: Variance of the noise at step 0.
        variance_decay: How fast the variance falls.
        num_periods: Periods of the cosine.
        alpha: Added to the line.
        beta: Added to the product.
        name: Name scope of the operations.

    Returns:
        A scalar of the dtype of `learning_rate`.

    References:
        Bello, Zoph, Vasudevan and Le, "Neural Optimizer Search with Reinforcement Learning", 2017.
    """
    with _scope(name, "NoisyLinearCosineDecay"):
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        steps, one = _like(decay_steps, rate), _like(1.0, rate)
        step = math_ops.minimum(_like(global_step, rate), steps)
        variance = _like(initial_variance, rate) / math_ops.pow(one + step, _like(variance_decay, rate))
        noise = random_ops.random_normal([], dtype=rate.dtype) * math_ops.sqrt(variance)
        completed = step / steps
        angle = _like(2 * math.pi, rate) * _like(num_periods, rate) * completed
        wave = _like(0.5, rate) * (one + math_ops.cos(angle))
        line = _like(alpha, rate) + one - completed + noise
        return math_ops.multiply(rate, line * wave + _like(beta, rate))


def _scope(name: str | None, default: str) -> Any:
    return get_default_graph().name_scope(name or default)


def _like(value: Any, rate: Tensor) -> Tensor:
    if is_rank0_number(value):
        return convert_to_tensor(value, rate.dtype)
    return array_ops.cast(value, rate.dtype)


def _periods(global_step: Any, decay_steps: Any, rate: Tensor, staircase: bool) -> Tensor:
    periods = _like(global_step, rate) / _like(decay_steps, rate)
    return math_ops.floor(periods) if staircase else periods
