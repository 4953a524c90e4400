"""Optimizer updates with dense gradients: one fused operation per optimizer.

Learning rates and other scalars may have another dtype than the variable: 1e-8, for example, is 0 in half precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.op_def import Array, ArrayModule, KernelContext, OpDef, StoredVariable, on_every_device, register
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.state.updates import Formula, add_update, apply_dense, as_numbers, dense_shape


def apply_gradient_descent(
    var: VariableOrHandle, alpha: TensorLike, delta: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Update ``var -= alpha * delta``.

    Args:
        var: The variable, of any shape and a floating or complex dtype.
        alpha: Scalar, the learning rate.
        delta: The gradient, of the variable's shape.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The operation.
    """
    return add_update(APPLY_GRADIENT_DESCENT, var, (), alpha, delta, name=name)


def gradient_descent(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, alpha: Array
) -> None:
    step, _ = temporaries
    xp.multiply(gradient, alpha, out=step)
    xp.subtract(var, step, out=var)


def _apply_gradient_descent_kernel(ctx: KernelContext, var: StoredVariable, alpha: Array, delta: Array) -> None:
    apply_dense(ctx, gradient_descent, [var], delta, *as_numbers(ctx, [alpha]))


APPLY_GRADIENT_DESCENT = register(
    OpDef(
        name="ApplyGradientDescent",
        inputs=("var: resource", "alpha: Tscalar", "grad: dtype"),
        outputs=(),
        attrs=("shape",),
        types={"dtype": dtypes.INEXACT, "Tscalar": dtypes.INEXACT},
        shape=dense_shape,
        kernels=on_every_device(_apply_gradient_descent_kernel),
        stateful=True,
        access="update",
    )
)


def apply_momentum(
    var: VariableOrHandle,
    accum: VariableOrHandle,
    lr: TensorLike,
    grad: TensorLike,
    momentum: TensorLike,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> Any:
    """Update ``accum = momentum * accum + grad; var -= lr * accum``.

    Args:
        var: The variable, of any shape and a floating or complex dtype.
        accum: Its slot, of the same shape.
        lr: Scalar, the learning rate.
        grad: The gradient, of the variable's shape.
        momentum: Scalar.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        use_nesterov: Look ahead, ``var -= lr * (grad + momentum * accum)``.
        name: Name of the operation.

    Returns:
        The operation.
    """
    return add_update(APPLY_MOMENTUM, var, (accum,), lr, grad, momentum, name=name, use_nesterov=use_nesterov)


def _momentum(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    lr: Array,
    momentum: Array,
) -> None:
    step, _ = temporaries
    xp.multiply(accum, momentum, out=accum)
    xp.add(accum, gradient, out=accum)
    xp.multiply(accum, lr, out=step)
    xp.subtract(var, step, out=var)


def _nesterov_momentum(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    lr: Array,
    momentum: Array,
) -> None:
    step, _ = temporaries
    xp.multiply(accum, momentum, out=accum)
    xp.add(accum, gradient, out=accum)
    xp.multiply(accum, momentum, out=step)
    xp.add(step, gradient, out=step)
    xp.multiply(step, lr, out=step)
    xp.subtract(var, step, out=var)


def momentum_formula(ctx: KernelContext) -> Formula:
    return _nesterov_momentum if ctx.attr("use_nesterov") else _momentum


def _apply_momentum_kernel(
    ctx: KernelContext, var: StoredVariable, accum: StoredVariable, lr: Array, grad: Array, momentum: Array
) -> None:
    apply_dense(ctx, momentum_formula(ctx), [var, accum], grad, *as_numbers(ctx, [lr, momentum]))


APPLY_MOMENTUM = register(
    OpDef(
        name="ApplyMomentum",
        inputs=("var: resource", "accum: resource", "lr: Tscalar", "grad: dtype", "momentum: Tscalar"),
        outputs=(),
        attrs=("shape", "use_nesterov"),
        types={"dtype": dtypes.INEXACT, "Tscalar": dtypes.INEXACT},
        shape=dense_shape,
        kernels=on_every_device(_apply_momentum_kernel),
        stateful=True,
        access="update",
    )
)


def apply_adagrad(
    var: VariableOrHandle,
    accum: VariableOrHandle,
    lr: TensorLike,
    grad: TensorLike,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Update ``accum += grad ** 2; var -= lr * grad / sqrt(accum)``.

    Args:
        var: The variable, of any shape and a floating dtype.
        accum: Its slot, of the same shape, positive where `grad` may be 0.
        lr: Scalar, the learning rate.
        grad: The gradient, of the variable's shape.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The operation.
    """
    return add_update(APPLY_ADAGRAD, var, (accum,), lr, grad, name=name)


def adagrad(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, accum: Array, lr: Array
) -> None:
    step, _ = temporaries
    xp.multiply(gradient, gradient, out=step)
    xp.add(accum, step, out=accum)
    xp.sqrt(accum, out=step)
    xp.divide(gradient, step, out=step)
    xp.multiply(step, lr, out=step)
    xp.subtract(var, step, out=var)


def _apply_adagrad_kernel(
    ctx: KernelContext, var: StoredVariable, accum: StoredVariable, lr: Array, grad: Array
) -> None:
    apply_dense(ctx, adagrad, [var, accum], grad, *as_numbers(ctx, [lr]))


APPLY_ADAGRAD = register(
    OpDef(
        name="ApplyAdagrad",
        inputs=("var: resource", "accum: resource", "lr: Tscalar", "grad: dtype"),
        outputs=(),
        attrs=("shape",),
        types={"dtype": dtypes.FLOATS, "Tscalar": dtypes.FLOATS},
        shape=dense_shape,
        kernels=on_every_device(_apply_adagrad_kernel),
        stateful=True,
        access="update",
    )
)


def apply_adam(
    var: VariableOrHandle,
    m: VariableOrHandle,
    v: VariableOrHandle,
    beta1_power: TensorLike,
    beta2_power: TensorLike,
    lr: TensorLike,
    beta1: TensorLike,
    beta2: TensorLike,
    epsilon: TensorLike,
    grad: TensorLike,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> Any:
    """Update by Adam:

        m += (1 - beta1) * (grad - m)
        v += (1 - beta2) * (grad ** 2 - v)
        var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)

    Args:
        var: The variable, of any shape and a floating dtype.
        m: Slot of the same shape, the mean of the gradients.
        v: Slot of the same shape, the mean of their squares.
        beta1_power: Scalar, `beta1` to the number of this step, counted from 1.
        beta2_power: Scalar, `beta2` to the number of this step.
        lr: Scalar, the learning rate.
        beta1: Scalar, the decay of `m`.
        beta2: Scalar, the decay of `v`.
        epsilon: Scalar, keeps the quotient finite.
        grad: The gradient, of the variable's shape.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        use_nesterov: Look ahead, with ``beta1 * m + (1 - beta1) * grad`` in place of ``m``.
        name: Name of the operation.

    Returns:
        The operation.

    References:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 2.
    """
    scalars = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    return add_update(APPLY_ADAM, var, (m, v), *scalars, grad, name=name, use_nesterov=use_nesterov)


def adam(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, m: Array, v: Array, *scalars: Array
) -> None:
    rate, _, gain1, gain2, epsilon = scalars
    step, _ = temporaries
    _update_moments(xp, step, gradient, m, v, gain1, gain2)
    _move_by_moments(xp, step, var, m, v, rate, epsilon)


def _nesterov_adam(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, m: Array, v: Array, *scalars: Array
) -> None:
    rate, beta1, gain1, gain2, epsilon = scalars
    step, ahead = temporaries
    _update_moments(xp, step, gradient, m, v, gain1, gain2)
    xp.subtract(m, gradient, out=ahead)
    xp.multiply(ahead, beta1, out=ahead)
    xp.add(ahead, gradient, out=ahead)
    _move_by_moments(xp, step, var, ahead, v, rate, epsilon)


def _update_moments(
    xp: ArrayModule, step: Array, gradient: Array, m: Array, v: Array, gain1: Array, gain2: Array
) -> None:
    xp.subtract(gradient, m, out=step)
    xp.multiply(step, gain1, out=step)
    xp.add(m, step, out=m)
    xp.multiply(gradient, gradient, out=step)
    xp.subtract(step, v, out=step)
    xp.multiply(step, gain2, out=step)
    xp.add(v, step, out=v)


def _move_by_moments(xp: ArrayModule, step: Array, var: Array, m: Array, v: Array, rate: Array, epsilon: Array) -> None:
    xp.sqrt(v, out=step)
    xp.add(step, epsilon, out=step)
    xp.divide(m, step, out=step)
    xp.multiply(step, rate, out=step)
    xp.subtract(var, step, out=var)


def adam_scalars(ctx: KernelContext, values: Sequence[Array]) -> list[Any]:
    """Scalars of the formula `adam` from those of the operation, in their order."""
    beta1_power, beta2_power, lr, beta1, beta2, epsilon = as_numbers(ctx, values)
    # The moments start at 0 and are too small in the first steps: this larger rate corrects for that.
    rate = lr * ctx.xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    return [rate, beta1, 1 - beta1, 1 - beta2, epsilon]


def _apply_adam_kernel(
    ctx: KernelContext, var: StoredVariable, m: StoredVariable, v: StoredVariable, *inputs: Array
) -> None:
    *values, grad = inputs
    formula = _nesterov_adam if ctx.attr("use_nesterov") else adam
    apply_dense(ctx, formula, [var, m, v], grad, *adam_scalars(ctx, values))


ADAM_INPUTS: Final = (
    "var: resource",
    "m: resource",
    "v: resource",
    "beta1_power: Tscalar",
    "beta2_power: Tscalar",
    "lr: Tscalar",
    "beta1: Tscalar",
    "beta2: Tscalar",
    "epsilon: Tscalar",
    "grad: dtype",
)

APPLY_ADAM = register(
    OpDef(
        name="ApplyAdam",
        inputs=ADAM_INPUTS,
        outputs=(),
        attrs=("shape", "use_nesterov"),
        types={"dtype": dtypes.FLOATS, "Tscalar": dtypes.FLOATS},
        shape=dense_shape,
        kernels=on_every_device(_apply_adam_kernel),
        stateful=True,
        access="update",
    )
)
