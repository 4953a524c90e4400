"""Gradients against differences: symbolic derivatives of any graph, checked in random directions.

One number tests a whole Jacobian: for random `w` and `v` the inner product of `v` with the gradient of ``<w, y>``
must be the derivative of ``<w, y>`` along `v`, taken by central differences of order four in 64-bit numbers.
Inner products are real: ``<a, b>`` is the real part of the sum of ``conj(a) * b``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.support.interpreter import interpret
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor
from tfray.framework.indexed_slices import IndexedSlices
from tfray.gradients import gradients
from tfray.ops.arrays.source_ops import placeholder

STEP = 2e-4


def check_gradients(
    build: Callable[..., Any],
    inputs: Sequence[Any],
    differentiable: Sequence[int] | None = None,
    *,
    twice: bool = True,
    tolerance: float = 1e-7,
    seed: int = 0,
    constants: Sequence[int] = (),
) -> None:
    """Check the gradients of what `build` makes, and the gradients of these gradients.

    Args:
        build: From one tensor per input to a tensor or a list of tensors.
        inputs: Values of the inputs, 64-bit where they are differentiable.
        differentiable: Indices of the inputs to differentiate by; all floating and complex ones by default.
        twice: Check second derivatives as well, by the inputs and by the incoming gradient.
        tolerance: Largest error allowed, relative to the derivative's size.
        seed: Seed of the directions.
        constants: Indices of inputs that are constants of the graph rather than fed.

    Raises:
        AssertionError: A derivative is wrong; the message tells which.
    """
    arrays = [np.asarray(value) for value in inputs]
    if differentiable is None:
        differentiable = [i for i, array in enumerate(arrays) if array.dtype.kind in "fc"]
    random = np.random.default_rng(seed)
    with Graph().as_default():
        tensors: list[Any] = [
            array if i in constants else placeholder(array.dtype, array.shape) for i, array in enumerate(arrays)
        ]
        feeds = {tensor: array for tensor, array in zip(tensors, arrays, strict=True) if isinstance(tensor, Tensor)}
        ys = [y for y in _as_list(build(*tensors)) if y.dtype.is_differentiable]
        xs = [tensors[i] for i in differentiable]
        ws = [placeholder(y.dtype, y.shape) for y in ys]
        feeds.update({w: _direction(random, y) for w, y in zip(ws, interpret(ys, feeds), strict=True)})
        d_xs = gradients(ys, xs, grad_ys=ws)
        _check(ys, [feeds[w] for w in ws], xs, d_xs, feeds, random, tolerance, "first derivative")
        for x, d_x in zip(xs, d_xs, strict=True):
            assert d_x is None or d_x.shape.is_compatible_with(x.shape), f"gradient {d_x!r} of {x!r}"
        flowing = [_dense(d_x) for d_x in d_xs if d_x is not None]
        if not twice or not flowing:
            return
        us = [_direction(random, d_x) for d_x in interpret(flowing, feeds)]
        second = gradients(flowing, [*xs, *ws], grad_ys=us)
        _check(flowing, us, [*xs, *ws], second, feeds, random, 10 * tolerance, "second derivative")


def _check(
    ys: list[Tensor],
    weights: list[Any],
    xs: list[Tensor],
    d_xs: list[Any],
    feeds: dict[Tensor, Any],
    random: np.random.Generator,
    tolerance: float,
    what: str,
) -> None:
    flowing = [x for x, d_x in zip(xs, d_xs, strict=True) if d_x is not None]
    values = interpret([_dense(d_x) for d_x in d_xs if d_x is not None], feeds)
    by_input = dict(zip(flowing, values, strict=True))
    for index, x in enumerate(xs):
        v = _direction(random, feeds[x])
        symbolic = _inner(by_input[x], v) if x in by_input else 0.0
        numeric = _difference(ys, weights, x, v, feeds)
        scale = max(1.0, abs(numeric), *(float(np.abs(w).sum()) ** 0.5 for w in weights))
        error = abs(symbolic - numeric)
        assert error <= tolerance * scale, (
            f"{what} by input {index} ({x.name}, shape {feeds[x].shape}): "
            f"gradients say {symbolic:.12g}, differences {numeric:.12g}"
        )


def _difference(ys: list[Tensor], weights: list[Any], x: Tensor, v: Any, feeds: dict[Tensor, Any]) -> float:
    def along(step: float) -> float:
        values = interpret(ys, {**feeds, x: feeds[x] + step * v})
        return sum(_inner(w, y) for w, y in zip(weights, values, strict=True))

    near = along(STEP) - along(-STEP)
    far = along(2 * STEP) - along(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


def _inner(a: Any, b: Any) -> float:
    return float(np.real(np.sum(np.conj(a) * b)))


def _direction(random: np.random.Generator, value: Any) -> Any:
    value = np.asarray(value)
    direction = random.standard_normal(value.shape)
    if value.dtype.kind == "c":
        direction = direction + 1j * random.standard_normal(value.shape)
    return direction.astype(value.dtype)


def _dense(gradient: Any) -> Tensor:
    if isinstance(gradient, IndexedSlices):
        return convert_to_tensor(gradient)
    return gradient


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
