"""Steps of optimizers against plain NumPy: dense and sparse, of one tile and of several, of complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tfray.framework import dtypes
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.variables import Variable, global_variables_initializer
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.session import Session
from tfray.training.optimizers.adadelta import AdadeltaOptimizer
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adagrad_da import AdagradDAOptimizer
from tfray.training.optimizers.adam import AdamOptimizer, LazyAdamOptimizer
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from tfray.training.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from tfray.training.optimizers.rms_prop import RMSPropOptimizer
from tfray.training.threads.global_step import create_global_step

TOLERANCES = {"float64": 1e-12, "float32": 2e-6, "float16": 6e-3, "bfloat16": 5e-2}

# -- the optimizers in NumPy -----------------------------------------------------------------------------


class Descent:
    def __init__(self, rate):
        self.rate = rate

    def step(self, var, gradient, rows):
        var[rows] -= self.rate * gradient


class Momentum:
    def __init__(self, rate, momentum, nesterov):
        self.rate, self.momentum, self.nesterov = rate, momentum, nesterov
        self.sum = 0.0

    def step(self, var, gradient, rows):
        self.sum = np.zeros_like(var) + self.sum
        self.sum[rows] = self.momentum * self.sum[rows] + gradient
        ahead = gradient + self.momentum * self.sum[rows] if self.nesterov else self.sum[rows]
        var[rows] -= self.rate * ahead


class Adagrad:
    def __init__(self, rate, start):
        self.rate, self.sum = rate, start

    def step(self, var, gradient, rows):
        self.sum = np.zeros_like(var) + self.sum
        self.sum[rows] += gradient**2
        var[rows] -= self.rate * gradient / np.sqrt(self.sum[rows])


class Adam:
    def __init__(self, rate, beta1, beta2, epsilon, lazy=False):
        self.rate, self.beta1, self.beta2, self.epsilon, self.lazy = rate, beta1, beta2, epsilon, lazy
        self.m = self.v = 0.0
        self.t = 0

    def step(self, var, gradient, rows):
        self.t += 1
        self.m, self.v = np.zeros_like(var) + self.m, np.zeros_like(var) + self.v
        dense = np.zeros_like(var)
        dense[rows] = gradient
        moved = rows if self.lazy else slice(None)
        self.m[moved] = self.beta1 * self.m[moved] + (1 - self.beta1) * dense[moved]
        self.v[moved] = self.beta2 * self.v[moved] + (1 - self.beta2) * dense[moved] ** 2
        m, v = self.m[moved] / (1 - self.beta1**self.t), self.v[moved] / (1 - self.beta2**self.t)
        # The paper's section 2.1 moves epsilon along with the correction.
        var[moved] -= self.rate * m / (np.sqrt(v) + self.epsilon / np.sqrt(1 - self.beta2**self.t))


def shrink(values, threshold):
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0)


class Slots:
    """Keeps slots in the shape of the variable, and hands out their rows."""

    starts = ()

    def step(self, var, gradient, rows):
        if not hasattr(self, "slots"):
            self.slots = [np.full_like(var, start) for start in self.starts]
            self.t = 0
        self.t += 1
        parts = [slot[rows] for slot in self.slots]
        new_var, *new_parts = self.update(var[rows], gradient, *parts)
        var[rows] = new_var
        for slot, part in zip(self.slots, new_parts, strict=True):
            slot[rows] = part


class RMSProp(Slots):
    starts = (1.0, 0.0, 0.0)

    def __init__(self, rate, decay, momentum, epsilon, centered=False):
        self.rate, self.decay, self.momentum, self.epsilon, self.centered = rate, decay, momentum, epsilon, centered

    def update(self, var, gradient, ms, mom, mg):
        ms = self.decay * ms + (1 - self.decay) * gradient**2
        mg = self.decay * mg + (1 - self.decay) * gradient
        variance = ms - mg**2 if self.centered else ms
        mom = self.momentum * mom + self.rate * gradient / np.sqrt(variance + self.epsilon)
        return var - mom, ms, mom, mg


class Adadelta(Slots):
    starts = (0.0, 0.0)

    def __init__(self, rate, rho, epsilon):
        self.rate, self.rho, self.epsilon = rate, rho, epsilon

    def update(self, var, gradient, squares, updates):
        squares = self.rho * squares + (1 - self.rho) * gradient**2
        update = np.sqrt(updates + self.epsilon) / np.sqrt(squares + self.epsilon) * gradient
        return var - self.rate * update, squares, self.rho * updates + (1 - self.rho) * update**2


class AdagradDA(Slots):
    def __init__(self, rate, start, l1, l2):
        self.rate, self.l1, self.l2 = rate, l1, l2
        self.starts = (0.0, start)

    def update(self, var, gradient, sums, squares):
        sums, squares = sums + gradient, squares + gradient**2
        beyond = shrink(sums, self.l1 * self.t)
        return -self.rate * beyond / (self.l2 * self.t * self.rate + np.sqrt(squares)), sums, squares


class Ftrl(Slots):
    def __init__(self, rate, power, start, l1, l2, shrinkage):
        self.rate, self.power, self.l1, self.l2, self.shrinkage = rate, power, l1, l2, shrinkage
        self.starts = (start, 0.0)

    def update(self, var, gradient, squares, linear):
        new = squares + gradient**2
        sigma = (new**-self.power - squares**-self.power) / self.rate
        linear = linear + gradient + 2 * self.shrinkage * var - sigma * var
        quadratic = new**-self.power / self.rate + 2 * self.l2
        with np.errstate(all="ignore"):
            moved = (np.sign(linear) * self.l1 - linear) / quadratic
        return np.where(np.abs(linear) > self.l1, moved, 0), new, linear


class ProximalDescent(Slots):
    def __init__(self, rate, l1, l2):
        self.rate, self.l1, self.l2 = rate, l1, l2

    def update(self, var, gradient):
        moved = var - self.rate * gradient
        return (shrink(moved, self.rate * self.l1) / (1 + self.rate * self.l2),)


class ProximalAdagrad(Slots):
    def __init__(self, rate, start, l1, l2):
        self.rate, self.l1, self.l2 = rate, l1, l2
        self.starts = (start,)

    def update(self, var, gradient, squares):
        squares = squares + gradient**2
        rate = self.rate / np.sqrt(squares)
        return shrink(var - rate * gradient, rate * self.l1) / (1 + rate * self.l2), squares


_ADAM = (0.0625, 0.75, 0.875, 2.0**-10)
_RMS = (0.125, 0.75, 0.5, 2.0**-10)
# The optimizer, from the global step, and its reference. Numbers are exact in float32.
OPTIMIZERS = {
    "descent": (lambda step: GradientDescentOptimizer(0.25), lambda: Descent(0.25)),
    "momentum": (lambda step: MomentumOptimizer(0.125, 0.75), lambda: Momentum(0.125, 0.75, False)),
    "nesterov": (lambda step: MomentumOptimizer(0.125, 0.75, use_nesterov=True), lambda: Momentum(0.125, 0.75, True)),
    "adagrad": (lambda step: AdagradOptimizer(0.5), lambda: Adagrad(0.5, 0.1)),
    "adam": (lambda step: AdamOptimizer(*_ADAM), lambda: Adam(*_ADAM)),
    "lazy_adam": (lambda step: LazyAdamOptimizer(*_ADAM), lambda: Adam(*_ADAM, lazy=True)),
    "rms_prop": (lambda step: RMSPropOptimizer(*_RMS), lambda: RMSProp(*_RMS)),
    "rms_prop_plain": (
        lambda step: RMSPropOptimizer(0.125, epsilon=2.0**-20, decay=0.875),
        lambda: RMSProp(0.125, 0.875, 0, 2.0**-20),
    ),
    "rms_prop_centered": (lambda step: RMSPropOptimizer(*_RMS, centered=True), lambda: RMSProp(*_RMS, centered=True)),
    "adadelta": (lambda step: AdadeltaOptimizer(0.5, 0.75, 2.0**-6), lambda: Adadelta(0.5, 0.75, 2.0**-6)),
    "adagrad_da": (lambda step: AdagradDAOptimizer(0.5, step, 0.25), lambda: AdagradDA(0.5, 0.25, 0, 0)),
    "adagrad_da_penalties": (
        lambda step: AdagradDAOptimizer(0.5, step, 0.25, 0.125, 0.25),
        lambda: AdagradDA(0.5, 0.25, 0.125, 0.25),
    ),
    "ftrl": (lambda step: FtrlOptimizer(0.5), lambda: Ftrl(0.5, -0.5, 0.1, 0, 0, 0)),
    "ftrl_penalties": (
        lambda step: FtrlOptimizer(0.5, -0.5, 0.25, 0.125, 0.25, l2_shrinkage_regularization_strength=0.0625),
        lambda: Ftrl(0.5, -0.5, 0.25, 0.125, 0.25, 0.0625),
    ),
    "ftrl_power": (
        lambda step: FtrlOptimizer(0.5, -0.75, 0.25, 0.125, 0.25),
        lambda: Ftrl(0.5, -0.75, 0.25, 0.125, 0.25, 0),
    ),
    "ftrl_constant_rate": (lambda step: FtrlOptimizer(0.5, 0.0), lambda: Ftrl(0.5, 0.0, 0.1, 0, 0, 0)),
    "proximal_descent": (
        lambda step: ProximalGradientDescentOptimizer(0.5, 0.125, 0.25),
        lambda: ProximalDescent(0.5, 0.125, 0.25),
    ),
    "proximal_adagrad": (
        lambda step: ProximalAdagradOptimizer(0.5, 0.25, 0.125, 0.25),
        lambda: ProximalAdagrad(0.5, 0.25, 0.125, 0.25),
    ),
    "proximal_adagrad_plain": (
        lambda step: ProximalAdagradOptimizer(0.5, 0.25),
        lambda: ProximalAdagrad(0.5, 0.25, 0, 0),
    ),
}


def with_global_step(make):
    """The optimizer, whose steps are counted whether or not the caller passes a global step."""
    step = create_global_step()
    optimizer = make(step)
    apply = optimizer.apply_gradients
    optimizer.apply_gradients = lambda pairs: apply(pairs, global_step=step)
    return optimizer


def check_steps(optimizer, reference, initial, feeds, gradient, rows_of, steps=5):
    """Run `steps` steps of `optimizer` and of `reference`, which computes in 64 bits, and compare."""
    var = Variable(initial)
    train_op = optimizer.apply_gradients([(gradient, var)])
    expected = initial.astype(np.float64)
    with Session() as session:
        session.run(global_variables_initializer())
        for step in range(steps):
            session.run(train_op, feeds(step))
            reference.step(expected, *rows_of(step))
        actual = session.run(var)
    assert actual.dtype == initial.dtype
    tolerance = TOLERANCES[initial.dtype.name]
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_dense_steps(name, dtype):
    make, reference = OPTIMIZERS[name]
    random = np.random.default_rng(3)
    numpy_dtype = dtypes.as_dtype(dtype).numpy
    values = random.uniform(-1, 1, size=(5, 3, 4)).astype(numpy_dtype)
    gradient = placeholder(dtype, [3, 4])
    check_steps(
        with_global_step(make),
        reference(),
        random.uniform(-1, 1, size=(3, 4)).astype(numpy_dtype),
        lambda step: {gradient: values[step]},
        gradient,
        lambda step: (values[step].astype(np.float64), slice(None)),
    )


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse_steps_with_repeated_rows(name, dtype, index_dtype):
    make, reference = OPTIMIZERS[name]
    random = np.random.default_rng(4)
    numpy_dtype = dtypes.as_dtype(dtype).numpy
    values = random.uniform(-1, 1, size=(5, 6, 4)).astype(numpy_dtype)
    indices = random.integers(0, 7, size=(5, 6))
    indices[1] = [6, 6, 6, 0, 0, 3]
    indices[2] = [5, 4, 3, 2, 1, 0]
    rows, positions = placeholder(dtype, [None, 4]), placeholder(index_dtype, [None])

    def summed(step):
        distinct = np.unique(indices[step])
        return np.stack([values[step][indices[step] == i].astype(np.float64).sum(0) for i in distinct]), distinct

    check_steps(
        with_global_step(make),
        reference(),
        random.uniform(-1, 1, size=(7, 4)).astype(numpy_dtype),
        lambda step: {rows: values[step], positions: indices[step]},
        IndexedSlices(rows, positions),
        summed,
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_over_several_tiles(name):
    make, reference = OPTIMIZERS[name]
    random = np.random.default_rng(5)
    values = random.uniform(-1, 1, size=(2, 300_001)).astype(np.float32)
    gradient = placeholder("float32", [300_001])
    check_steps(
        with_global_step(make),
        reference(),
        random.uniform(-1, 1, size=300_001).astype(np.float32),
        lambda step: {gradient: values[step]},
        gradient,
        lambda step: (values[step].astype(np.float64), slice(None)),
        steps=2,
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse_steps_over_several_tiles(name):
    make, reference = OPTIMIZERS[name]
    random = np.random.default_rng(6)
    indices = random.permutation(3000)[:1500]
    values = random.uniform(-1, 1, size=(1500, 8, 25)).astype(np.float32)
    check_steps(
        with_global_step(make),
        reference(),
        random.uniform(-1, 1, size=(3000, 8, 25)).astype(np.float32),
        lambda step: {},
        IndexedSlices(constant(values), constant(indices)),
        lambda step: (values.astype(np.float64), indices),
        steps=2,
    )


@pytest.mark.parametrize("name", ["descent", "momentum", "nesterov"])
def test_complex_variables(name):
    make, reference = OPTIMIZERS[name]
    var = Variable(np.array([1 + 1j, 2 - 1j], np.complex64))
    gradient = np.array([0.5j, 1 - 1j], np.complex64)
    train_op = with_global_step(make).apply_gradients([(constant(gradient), var)])
    expected = np.array([1 + 1j, 2 - 1j])
    model = reference()
    with Session() as session:
        session.run(global_variables_initializer())
        for _ in range(3):
            session.run(train_op)
            model.step(expected, gradient, slice(None))
        np.testing.assert_allclose(session.run(var), expected, rtol=1e-5)
