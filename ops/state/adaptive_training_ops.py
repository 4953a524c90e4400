"""Optimizer updates that scale each element by running means of squares: RMSProp and Adadelta.

Each comes in a dense and a sparse form, which changes the rows of its indices and no others.
"""

from __future__ import annotations

from typing import Any, Final

from tfray.framework.op_def import Array, ArrayModule, KernelContext
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.state.updates import Formula, add_either, register_updates


def apply_rms_prop(
    var: VariableOrHandle,
    ms: VariableOrHandle,
    mom: VariableOrHandle,
    lr: TensorLike,
    rho: TensorLike,
    momentum: TensorLike,
    epsilon: TensorLike,
    grad: TensorLike,
    indices: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Update by RMSProp:

        ms += (1 - rho) * (grad ** 2 - ms)
        mom = momentum * mom + lr * grad / sqrt(ms + epsilon)
        var -= mom

    Args:
        var: The variable, of any shape and a floating dtype.
        ms: Slot of the same shape, the mean of the squares.
        mom: Slot of the same shape, the sum of the steps, in which older steps count less.
        lr: Scalar, the learning rate.
        rho: Scalar, the decay of `ms`.
        momentum: Scalar, the decay of `mom`.
        epsilon: Scalar, keeps the quotient finite.
        grad: The gradient, of the variable's shape; with `indices` the gradient of these rows.
        indices: Rows to update, shape ``[n]``; the gradients of equal ones add up. None for all.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.

    References:
        Tieleman and Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012.
    """
    return add_either(_RMS_PROP, var, (ms, mom), (lr, rho, momentum, epsilon), grad, indices, name)


def _rms_prop(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    ms: Array,
    mom: Array,
    *scalars: Array,
) -> None:
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


_RMS_PROP: Final = register_updates("RMSProp", ("ms", "mom"), ("lr", "rho", "momentum", "epsilon"), _choose_rms_prop)


def apply_centered_rms_prop(
    var: VariableOrHandle,
    mg: VariableOrHandle,
    ms: VariableOrHandle,
    mom: VariableOrHandle,
    lr: TensorLike,
    rho: TensorLike,
    momentum: TensorLike,
    epsilon: TensorLike,
    grad: TensorLike,
    indices: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Update by RMSProp with the variance of the gradients in place of the mean of their squares:

        ms += (1 - rho) * (grad ** 2 - ms)
        mg += (1 - rho) * (grad - mg)
        mom = momentum * mom + lr * grad / sqrt(ms - mg ** 2 + epsilon)
        var -= mom

    Args:
        var: The variable, of any shape and a floating dtype.
        mg: Slot of the same shape, the mean of the gradients.
        ms: Slot of the same shape, the mean of their squares.
        mom: Slot of the same shape, the sum of the steps, in which older steps count less.
        lr: Scalar, the learning rate.
        rho: Scalar, the decay of the means.
        momentum: Scalar, the decay of `mom`.
        epsilon: Scalar, keeps the quotient finite.
        grad: The gradient, of the variable's shape; with `indices` the gradient of these rows.
        indices: Rows to update, shape ``[n]``; the gradients of equal ones add up. None for all.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.

    References:
        Graves, "Generating Sequences With Recurrent Neural Networks", 2013, equations 38 to 45.
    """
    return add_either(_CENTERED_RMS_PROP, var, (mg, ms, mom), (lr, rho, momentum, epsilon), grad, indices, name)


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


_CENTERED_RMS_PROP: Final = register_updates(
    "CenteredRMSProp", ("mg", "ms", "mom"), ("lr", "rho", "momentum", "epsilon"), _choose_centered_rms_prop
)


def apply_adadelta(
    var: VariableOrHandle,
    accum: VariableOrHandle,
    accum_update: VariableOrHandle,
    lr: TensorLike,
    rho: TensorLike,
    epsilon: TensorLike,
    grad: TensorLike,
    indices: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Update by Adadelta:

        accum = rho * accum + (1 - rho) * grad ** 2
        update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad
        accum_update = rho * accum_update + (1 - rho) * update ** 2
        var -= lr * update

    Args:
        var: The variable, of any shape and a floating dtype.
        accum: Slot of the same shape, the mean of the squared gradients.
        accum_update: Slot of the same shape, the mean of the squared updates.
        lr: Scalar, the learning rate.
        rho: Scalar, the decay of the means.
        epsilon: Scalar. It makes the first updates nonzero, when both slots are still 0.
        grad: The gradient, of the variable's shape; with `indices` the gradient of these rows.
        indices: Rows to update, shape ``[n]``; the gradients of equal ones add up. None for all.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.

    References:
        Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
    """
    return add_either(_ADADELTA, var, (accum, accum_update), (lr, rho, epsilon), grad, indices, name)


def _adadelta(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    accum_update: Array,
    *scalars: Array,
) -> None:
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


_ADADELTA: Final = register_updates("Adadelta", ("accum", "accum_update"), ("lr", "rho", "epsilon"), _choose_adadelta)
