"""Ordinary differential equations ``dy/dt = func(y, t)``, solved step by step in loops of the graph.

Public as ``tf.contrib.integrate``. Gradients flow back through all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import cast, identity, size
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control.control_flow_ops import cond, while_loop
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import add_n, maximum, minimum, sqrt, square
from tfray.ops.math.comparison_ops import is_finite
from tfray.ops.math.complex_ops import imag, real
from tfray.ops.math.reduction_ops import reduce_all, reduce_mean
from tfray.ops.math.rounding_ops import ceil

Derivative = Callable[[Tensor, Tensor], TensorLike]

# The method of Dormand and Prince, of order 5, with the error and the midpoint of Shampine (1986), doi:10.2307/2008219.
# Its last slope is that of the result, so that an accepted step begins with it.
_TIMES: Final = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_SLOPES: Final = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_MIDDLE: Final = (
    6025192743 / 60171106304,
    0,
    51252292925 / 130801643196,
    -2691868925 / 90256658654,
    187940372067 / 3189068634112,
    -1776094331 / 39487288512,
    11237099 / 470086768,
)
_FOURTH_ORDER: Final = (1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60)
_ERROR: Final = tuple(fourth - fifth for fourth, fifth in zip(_FOURTH_ORDER, (*_SLOPES[-1], 0), strict=True))

_QUARTIC: Final = ((-2, 2, -8, -8, 16), (5, -3, 18, 14, -32), (-4, 1, -11, -5, 16), (1, 0, 0, 0, 0), (0, 0, 1, 0, 0))
"""The polynomial through begin, middle and end of a step with the slopes at both ends, highest power first, as sums of
these slopes times the step, begin, end and middle."""


def odeint(
    func: Derivative,
    y0: TensorLike,
    t: TensorLike,
    rtol: TensorLike = 1e-6,
    atol: TensorLike = 1e-12,
    method: str | None = None,
    options: Mapping[str, Any] | None = None,
    full_output: bool = False,
    name: str | None = None,
) -> Any:
    """Integrate ``dy/dt = func(y, t)`` from ``y(t[0]) = y0``, by steps that are as long as the error allows.

    Args:
        func: Function of the state, of the shape of `y0`, and the time, a scalar, that returns the slope of the state.
        y0: The state at ``t[0]``, any shape, a float or complex dtype.
        t: Increasing times ``[times]``, a float dtype; float64 unless it is a tensor or a variable.
        rtol: The error of a step may be this much of the state; a scalar.
        atol: It may be this much besides; a scalar.
        method: ``dopri5`` or None, which is the same: Dormand and Prince's method.
        options: Only with a `method`: ``first_step`` (1), ``safety`` (0.9), ``ifactor`` (10) and ``dfactor`` (0.2), by
            which a step may grow and shrink, and ``max_num_steps`` (1000) between two times.
        full_output: Return a pair, with a dictionary that tells of the steps.
        name: Name of the operations.

    Returns:
        The states at all times, shape ``[times, ...]``. With `full_output` also ``num_func_evals``, and for all steps,
        refused ones included, their ends (``integrate_points``) and errors over allowed errors (``error_ratio``).

    Raises:
        ValueError: There is no such method, or options come without one.
        TypeError: `y0` or `t` are not of such dtypes, or there is no such option.
        InvalidArgumentError: In the step: `t` does not increase, the state is no longer finite, or steps become too
            small or too many.
    """
    if method not in (None, "dopri5"):
        raise ValueError(f"invalid method: {method!r}; expected 'dopri5'")
    if options is not None and method is None:
        raise ValueError("cannot supply `options` without specifying `method`")
    with get_default_graph().name_scope(name or "odeint"):
        state, times = _checked(y0, t)
        allowed = [convert_to_tensor(each, dtype=absolute(state).dtype) for each in (rtol, atol)]
        solver = _Adaptive(func, times, *allowed, **(options or {}))
        solution, points, ratios = solver.solve(state)
        if not full_output:
            return solution
        return solution, {"num_func_evals": 6 * size(points) + 1, "integrate_points": points, "error_ratio": ratios}


def odeint_fixed(
    func: Derivative,
    y0: TensorLike,
    t: TensorLike,
    dt: TensorLike | None = None,
    method: str = "rk4",
    name: str | None = None,
) -> Tensor:
    """Integrate ``dy/dt = func(y, t)`` from ``y(t[0]) = y0``, by steps of given length.

    Args:
        func: Function of the state and the time, as for `odeint`.
        y0: The state at ``t[0]``, any shape, a float or complex dtype.
        t: Increasing times ``[times]``, a float dtype; float64 unless it is a tensor or a variable.
        dt: The longest step: a scalar, or one for each interval between times, ``[times - 1]``. Steps of an interval
            are of one length. By default each interval is one step.
        method: ``rk4``, the usual method of Runge and Kutta, or ``midpoint``, of order 2.
        name: Name of the operations.

    Returns:
        The states at all times, shape ``[times, ...]``.

    Raises:
        ValueError: There is no such method, or `t` or `dt` have another shape.
        TypeError: Dtypes are not as above.
        InvalidArgumentError: In the step, when `t` does not increase.
    """
    if method not in _FIXED:
        raise ValueError(f"method not supported: {method!r}; expected 'midpoint' or 'rk4'")
    with get_default_graph().name_scope(name or "odeint_fixed"):
        state, times = _checked(y0, t)
        intervals = times[1:] - times[:-1]
        longest = intervals if dt is None else _as_times(dt, "dt")
        if not (intervals.shape.is_compatible_with(longest.shape) or longest.shape.rank == 0):
            raise ValueError(f"t and dt have incompatible lengths: {times.shape} and {longest.shape}; N and N - 1 fit")
        counts = ceil(intervals / cast(longest, times.dtype))
        steps, counts = intervals / counts, cast(counts, dtypes.int32)

        def interval(solution: TensorArray, y: Tensor, i: Tensor) -> list[Any]:
            def step(y: Tensor, time: Tensor, j: Tensor) -> list[Tensor]:
                return [y + cast(_FIXED[method](func, y, time, steps[i - 1]), y.dtype), time + steps[i - 1], j + 1]

            y = while_loop(lambda _, __, j: j < counts[i - 1], step, [y, times[i - 1], 0])[0]
            return [solution.write(i, y), y, i + 1]

        with get_default_graph().control_dependencies([_increasing(times)]):
            count = size(times)
        first: Any = [TensorArray(state.dtype, count).write(0, state), state, 1]
        solution: Tensor = while_loop(lambda _, __, i: i < count, interval, first)[0].stack()
        solution.set_shape(times.shape.concatenate(state.shape))
        return solution


def _midpoint(func: Derivative, y: Tensor, time: Tensor, dt: Tensor) -> Tensor:
    step = cast(dt, y.dtype)
    return step * func(y + step * func(y, time) / 2, time + dt / 2)


def _rk4(func: Derivative, y: Tensor, time: Tensor, dt: Tensor) -> Tensor:
    step, half = cast(dt, y.dtype), time + dt / 2
    first = convert_to_tensor(func(y, time))
    second = convert_to_tensor(func(y + step * first / 2, half))
    third = convert_to_tensor(func(y + step * second / 2, half))
    return add_n([first, 2 * second, 2 * third, func(y + step * third, time + dt)]) * (step / 6)


_FIXED: Final[Mapping[str, Callable[[Derivative, Tensor, Tensor, Tensor], Tensor]]] = {
    "midpoint": _midpoint,
    "rk4": _rk4,
}


def _checked(y0: TensorLike, t: TensorLike) -> tuple[Tensor, Tensor]:
    state, times = convert_to_tensor(y0, name="y0"), _as_times(t, "t")
    if not (state.dtype.is_floating or state.dtype.is_complex):
        raise TypeError(f"`y0` must have a floating point or complex floating point dtype, not {state.dtype.name}")
    if times.shape.rank not in (None, 1):
        raise ValueError(f"`t` must be a 1D tensor, not of shape {times.shape}")
    return state, times


def _as_times(values: TensorLike, name: str) -> Tensor:
    times = convert_to_tensor(values, name=name, preferred_dtype=dtypes.float64)
    if not times.dtype.is_floating:
        raise TypeError(f"`{name}` must have a floating point dtype, not {times.dtype.name}")
    return times


def _increasing(times: Tensor) -> Operation:
    return Assert(reduce_all(times[1:] > times[:-1]), ["`t` must be monotonic increasing"])


def _weighted(step: Tensor, weights: Sequence[float], values: Sequence[Tensor]) -> Tensor:
    return add_n([(step * weight) * value for weight, value in zip(weights, values, strict=True) if weight])


def _square(x: Tensor) -> Tensor:
    return square(real(x)) + square(imag(x)) if x.dtype.is_complex else square(x)


class _Adaptive:
    """Steps whose length follows from the error of the last one."""

    def __init__(
        self,
        func: Derivative,
        times: Tensor,
        rtol: Tensor,
        atol: Tensor,
        first_step: TensorLike | None = None,
        safety: TensorLike = 0.9,
        ifactor: TensorLike = 10.0,
        dfactor: TensorLike = 0.2,
        max_num_steps: TensorLike = 1000,
    ) -> None:
        self._func, self._times, self._rtol, self._atol = func, times, rtol, atol
        given = (1.0 if first_step is None else first_step, safety, ifactor, dfactor)
        self._first, self._safety, self._grow, self._shrink = (convert_to_tensor(x, times.dtype) for x in given)
        self._most_steps = convert_to_tensor(max_num_steps, dtypes.int32)

    def solve(self, y0: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The states at all times, the ends of the steps and the ratios of their errors."""
        times = self._times
        with get_default_graph().control_dependencies([_increasing(times)]):
            count = size(times)
        slope = convert_to_tensor(self._func(y0, times[0]))
        # The state: y and its slope at the end, times of begin and end, the length of the next step, the polynomial.
        first: Any = [y0, slope, times[0], times[0], self._first, [y0] * 5]
        history: Any = [TensorArray(dtype, 0, dynamic_size=True) for dtype in (times.dtype, self._rtol.dtype)]

        def reach(solution: TensorArray, state: Any, history: Any, i: Tensor) -> list[Any]:
            time = times[i]
            state, history, _ = while_loop(
                lambda state, history, count: time > state[3], self._step, [state, history, 0]
            )
            return [solution.write(i, _between(state, time)), state, history, i + 1]

        found: Any = TensorArray(y0.dtype, count).write(0, y0)
        solution, _, (points, ratios), _ = while_loop(
            lambda _, __, ___, i: i < count, reach, [found, first, history, 1]
        )
        states = solution.stack()
        states.set_shape(times.shape.concatenate(y0.shape))
        return states, points.stack(), ratios.stack()

    def _step(self, state: Any, history: Any, count: Tensor) -> list[Any]:
        y0, f0, _, begin, dt, polynomial = state
        checks = [
            Assert(begin + dt > begin, ["underflow in dt", dt]),
            Assert(count < self._most_steps, ["max_num_steps exceeded"]),
            Assert(reduce_all(is_finite(absolute(y0))), ["non-finite values in state `y`", y0]),
        ]
        with get_default_graph().control_dependencies(checks):
            step = identity(cast(dt, y0.dtype))
        slopes, y1 = [f0], y0
        for fraction, weights in zip(_TIMES, _SLOPES, strict=True):
            y1 = y0 + _weighted(step, weights, slopes)
            slopes.append(convert_to_tensor(self._func(y1, begin + fraction * dt)))
        error = _weighted(step, _ERROR, slopes)
        allowed = self._atol + self._rtol * maximum(absolute(y0), absolute(y1))
        ratio = sqrt(reduce_mean(_square(error) / _square(allowed)))

        def fitted() -> list[Tensor]:
            middle = y0 + _weighted(step, _MIDDLE, slopes)
            parts = [step * slopes[0], step * slopes[-1], y0, y1, middle]
            one = cast(1.0, y0.dtype)
            return [_weighted(one, weights, parts) for weights in _QUARTIC]

        # A refused step leaves an interval of no length, behind which another step always follows.
        y, f, end, *polynomial = cond(
            ratio <= 1, lambda: [y1, slopes[-1], begin + dt, *fitted()], lambda: [y0, f0, begin, *polynomial]
        )
        # With the ratio as a numerator, a step without error divides nothing by 0.
        factor = cast(ratio, dt.dtype) ** cast(0.2, dt.dtype) / self._safety
        following = dt / maximum(1 / self._grow, minimum(factor, 1 / self._shrink))
        ends, ratios = history
        history = [ends.write(ends.size(), begin + dt), ratios.write(ratios.size(), ratio)]
        return [[y, f, begin, end, following, polynomial], history, count + 1]


def _between(state: Any, time: Tensor) -> Tensor:
    """The polynomial of the last step at a time in it."""
    begin, end, polynomial = state[2], state[3], state[5]
    x = cast((time - begin) / (end - begin), polynomial[0].dtype)
    value = polynomial[0]
    for coefficient in polynomial[1:]:
        value = value * x + coefficient
    return value
