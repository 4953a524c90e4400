"""Optimizer updates with L1 and L2 penalties: they shrink weights towards 0 in closed form, some to exactly 0.

Each comes in a dense and a sparse form, which changes the rows of its indices and no others.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import Array, ArrayModule, KernelContext
from tfray.ops.state.training_ops import adagrad
from tfray.ops.state.updates import Formula, register_updates


def _proximal_gradient_descent(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, *scalars: Array
) -> None:
    """Proximal gradient descent:

    moved = var - alpha * gradient
    var = sign(moved) * max(abs(moved) - alpha * l1, 0) / (1 + alpha * l2)
    """
    rate, low, high, shrink = scalars
    step, _ = temporaries
    xp.multiply(gradient, rate, out=step)
    xp.subtract(var, step, out=var)
    # sign(x) * max(abs(x) - t, 0) equals x - clip(x, -t, t), which takes fewer passes.
    xp.clip(var, low, high, out=step)
    xp.subtract(var, step, out=var)
    xp.multiply(var, shrink, out=var)


def _choose_proximal_gradient_descent(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    rate, l1, l2 = scalars
    return _proximal_gradient_descent, [rate, -rate * l1, rate * l1, 1 / (1 + rate * l2)]


PROXIMAL_GRADIENT_DESCENT: Final = register_updates(
    "ProximalGradientDescent", (), ("alpha", "l1", "l2"), _choose_proximal_gradient_descent
)


def _proximal_adagrad(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, accum: Array, *scalars: Array
) -> None:
    """Adagrad with penalties:

    accum += gradient ** 2
    rate = lr / sqrt(accum)
    moved = var - rate * gradient
    var = sign(moved) * max(abs(moved) - rate * l1, 0) / (1 + rate * l2)
    """
    lr, low, high, damping = scalars
    root, step = temporaries
    xp.multiply(gradient, gradient, out=step)
    xp.add(accum, step, out=accum)
    xp.sqrt(accum, out=root)
    # Multiply everything by the root of `accum`: the threshold is then one scalar, and one division remains.
    xp.multiply(var, root, out=var)
    xp.multiply(gradient, lr, out=step)
    xp.subtract(var, step, out=var)
    xp.clip(var, low, high, out=step)
    xp.subtract(var, step, out=var)
    xp.add(root, damping, out=root)
    xp.divide(var, root, out=var)


def _choose_proximal_adagrad(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    lr, l1, l2 = scalars
    if isinstance(l1, float) and l1 == l2 == 0:
        return adagrad, [lr]
    return _proximal_adagrad, [lr, -lr * l1, lr * l1, lr * l2]


PROXIMAL_ADAGRAD: Final = register_updates("ProximalAdagrad", ("accum",), ("lr", "l1", "l2"), _choose_proximal_adagrad)


def _adagrad_da(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    sums: Array,
    squares: Array,
    *scalars: Array,
) -> None:
    """Adagrad with dual averaging:

    gradient_accumulator += gradient
    gradient_squared_accumulator += gradient ** 2
    beyond = sign(gradient_accumulator) * max(abs(gradient_accumulator) - l1 * global_step, 0)
    var = -lr * beyond / (l2 * global_step * lr + sqrt(gradient_squared_accumulator))
    """
    minus_lr, low, high, damping = scalars
    step, root = temporaries
    xp.add(sums, gradient, out=sums)
    xp.multiply(gradient, gradient, out=step)
    xp.add(squares, step, out=squares)
    xp.clip(sums, low, high, out=step)
    xp.subtract(sums, step, out=step)
    xp.multiply(step, minus_lr, out=step)
    xp.sqrt(squares, out=root)
    xp.add(root, damping, out=root)
    xp.divide(step, root, out=var)


def _choose_adagrad_da(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    lr, l1, l2, step = scalars
    return _adagrad_da, [-lr, -l1 * step, l1 * step, l2 * step * lr]


ADAGRAD_DA: Final = register_updates(
    "AdagradDA",
    ("gradient_accumulator", "gradient_squared_accumulator"),
    ("lr", "l1", "l2", "global_step"),
    _choose_adagrad_da,
)


def _ftrl(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    linear: Array,
    *scalars: Array,
) -> None:
    """FTRL-Proximal ("follow the regularised leader"):

    new_accum = accum + gradient ** 2
    linear += gradient + 2 * l2_shrinkage * var - (new_accum ** -lr_power - accum ** -lr_power) / lr * var
    quadratic = new_accum ** -lr_power / lr + 2 * l2
    var = (sign(linear) * l1 - linear) / quadratic if abs(linear) > l1 else 0
    accum = new_accum
    """
    power, *others = scalars
    xp.power(accum, power, out=temporaries[1])
    xp.multiply(gradient, gradient, out=temporaries[0])
    xp.add(accum, temporaries[0], out=accum)
    xp.power(accum, power, out=temporaries[0])
    _follow(xp, temporaries, gradient, var, linear, *others)


def _ftrl_by_roots(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    linear: Array,
    *scalars: Array,
) -> None:
    _grow_by_roots(xp, temporaries, gradient, accum)
    _follow(xp, temporaries, gradient, var, linear, *scalars)


def _ftrl_without_penalties(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    linear: Array,
    minus_inverse_lr: Array,
    most: Array,
) -> None:
    _grow_by_roots(xp, temporaries, gradient, accum)
    quadratic, change = temporaries
    xp.subtract(quadratic, change, out=change)
    xp.multiply(change, minus_inverse_lr, out=change)
    xp.multiply(change, var, out=change)
    xp.add(change, gradient, out=change)
    xp.add(linear, change, out=linear)
    xp.multiply(quadratic, minus_inverse_lr, out=quadratic)
    xp.minimum(quadratic, most, out=quadratic)
    xp.divide(linear, quadratic, out=var)


def _grow_by_roots(xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, accum: Array) -> None:
    """Add to `accum`; leave its new and its old root in `temporaries`."""
    new, old = temporaries
    xp.sqrt(accum, out=old)
    xp.multiply(gradient, gradient, out=new)
    xp.add(accum, new, out=accum)
    xp.sqrt(accum, out=new)


def _follow(
    xp: ArrayModule, powers: tuple[Array, Array], gradient: Array, var: Array, linear: Array, *scalars: Array
) -> None:
    """Update `linear` and `var`, given the new and the old powers of the accumulator, which are overwritten."""
    inverse_lr, low, high, l2_twice, shrinkage_twice, least = scalars
    quadratic, change = powers
    xp.subtract(quadratic, change, out=change)
    xp.multiply(change, inverse_lr, out=change)
    xp.subtract(shrinkage_twice, change, out=change)
    xp.multiply(change, var, out=change)
    xp.add(change, gradient, out=change)
    xp.add(linear, change, out=linear)
    xp.multiply(quadratic, inverse_lr, out=quadratic)
    xp.add(quadratic, l2_twice, out=quadratic)
    xp.maximum(quadratic, least, out=quadratic)  # 0 before the first gradient: avoids 0 / 0, as `linear` is 0 too
    xp.clip(linear, low, high, out=change)
    xp.subtract(change, linear, out=change)
    xp.divide(change, quadratic, out=var)


def _choose_ftrl(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    lr, l1, l2, l2_shrinkage, lr_power = scalars
    least = float(np.finfo(np.float32).tiny)
    by_roots = isinstance(lr_power, float) and lr_power == -0.5
    if by_roots and l1 == l2 == l2_shrinkage == 0:
        return _ftrl_without_penalties, [-_inverse(lr), -least]
    rest = [_inverse(lr), -l1, l1, 2 * l2, 2 * l2_shrinkage, least]
    return (_ftrl_by_roots, rest) if by_roots else (_ftrl, [-lr_power, *rest])


def _inverse(number: Any) -> Any:
    return math.inf if isinstance(number, float) and number == 0 else 1 / number


FTRL: Final = register_updates(
    "Ftrl", ("accum", "linear"), ("lr", "l1", "l2", "l2_shrinkage", "lr_power"), _choose_ftrl
)
