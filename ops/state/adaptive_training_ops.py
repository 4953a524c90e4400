"""Optimizer updates that scale each element by running means of squares: RMSProp and Adadelta.

Each comes in a dense and a sparse form, which changes the rows of its indices and no others.
"""

from __future__ import annotations

from typing import Any, Final

from tfray.framework.op_def import Array, ArrayModule, KernelContext
from tfray.ops.state.updates import Formula, register_updates


def _rms_prop(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    ms: Array,
    mom: Array,
    *scalars: Array,
) -> None:
    """RMSProp:

    ms += (1 - rho) * (gradient ** 2 - ms)
    mom = momentum * mom + lr * gradient / sqrt(ms + epsilon)
    var -= mom
    """
    rate, gain, momentum, epsilon = scalars
    step, _ = temporaries
    xp.multiply(gradient, gradient, out=step)
    _move_mean(xp, step, ms, gain)
    xp.add(ms, epsilon, out=step)
    _step_by_root(xp, step, gradient, var, mom, rate, momentum)


def _rms_prop_without_momentum(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    ms: Array,
    mom: Array,
    *scalars: Array,
) -> None:
    rate, gain, _, epsilon = scalars
    step, _ = temporaries
    xp.multiply(gradient, gradient, out=step)
    _move_mean(xp, step, ms, gain)
    xp.add(ms, epsilon, out=step)
    xp.sqrt(step, out=step)
    xp.divide(gradient, step, out=mom)
    xp.multiply(mom, rate, out=mom)
    xp.subtract(var, mom, out=var)


def _move_mean(xp: ArrayModule, value: Array, mean: Array, gain: Array) -> None:
    """Move `mean` towards `value`, which is overwritten."""
    xp.subtract(value, mean, out=value)
    xp.multiply(value, gain, out=value)
    xp.add(mean, value, out=mean)


def _step_by_root(
    xp: ArrayModule, square: Array, gradient: Array, var: Array, mom: Array, rate: Array, momentum: Array
) -> None:
    """Step by ``gradient / sqrt(square)`` with momentum; `square` is overwritten."""
    xp.sqrt(square, out=square)
    xp.divide(gradient, square, out=square)
    xp.multiply(square, rate, out=square)
    xp.multiply(mom, momentum, out=mom)
    xp.add(mom, square, out=mom)
    xp.subtract(var, mom, out=var)


def _choose_rms_prop(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    lr, rho, momentum, epsilon = scalars
    # On a GPU the momentum is an array: comparing it with 0 would make the host wait for the device.
    formula = _rms_prop_without_momentum if isinstance(momentum, float) and momentum == 0 else _rms_prop
    return formula, [lr, 1 - rho, momentum, epsilon]


RMS_PROP: Final = register_updates("RMSProp", ("ms", "mom"), ("lr", "rho", "momentum", "epsilon"), _choose_rms_prop)


def _centered_rms_prop(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    *scalars: Array,
) -> None:
    """RMSProp with the variance of the gradients in place of the mean of their squares:

    ms += (1 - rho) * (gradient ** 2 - ms)
    mg += (1 - rho) * (gradient - mg)
    mom = momentum * mom + lr * gradient / sqrt(ms - mg ** 2 + epsilon)
    var -= mom
    """
    rate, gain, momentum, epsilon = scalars
    step, square = temporaries
    xp.multiply(gradient, gradient, out=step)
    _move_mean(xp, step, ms, gain)
    xp.subtract(gradient, mg, out=step)
    xp.multiply(step, gain, out=step)
    xp.add(mg, step, out=mg)
    xp.multiply(mg, mg, out=square)
    xp.subtract(ms, square, out=step)
    xp.add(step, epsilon, out=step)
    _step_by_root(xp, step, gradient, var, mom, rate, momentum)


def _choose_centered_rms_prop(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    lr, rho, momentum, epsilon = scalars
    return _centered_rms_prop, [lr, 1 - rho, momentum, epsilon]


CENTERED_RMS_PROP: Final = register_updates(
    "CenteredRMSProp", ("mg", "ms", "mom"), ("lr", "rho", "momentum", "epsilon"), _choose_centered_rms_prop
)


def _adadelta(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    accum_update: Array,
    *scalars: Array,
) -> None:
    """Adadelta:

    accum = rho * accum + (1 - rho) * gradient ** 2
    update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * gradient
    accum_update = rho * accum_update + (1 - rho) * update ** 2
    var -= lr * update
    """
    rate, gain, epsilon = scalars
    step, root = temporaries
    xp.multiply(gradient, gradient, out=step)
    _move_mean(xp, step, accum, gain)
    xp.add(accum_update, epsilon, out=step)
    xp.add(accum, epsilon, out=root)
    xp.divide(step, root, out=step)
    xp.sqrt(step, out=step)
    xp.multiply(step, gradient, out=step)
    xp.multiply(step, rate, out=root)
    xp.subtract(var, root, out=var)
    xp.multiply(step, step, out=step)
    _move_mean(xp, step, accum_update, gain)


def _choose_adadelta(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    lr, rho, epsilon = scalars
    return _adadelta, [lr, 1 - rho, epsilon]


ADADELTA: Final = register_updates("Adadelta", ("accum", "accum_update"), ("lr", "rho", "epsilon"), _choose_adadelta)
