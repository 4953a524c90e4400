"""Optimizer updates, by dense gradients and by those of some rows: gradient descent, momentum, Adagrad and Adam.

Learning rates and other scalars may have another dtype than the variable: 1e-8, for example, is 0 in half precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    OpDef,
    StoredVariable,
    Update,
    on_every_device,
    register,
)
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.kernels.cpu_threads import scratch
from tfray.ops.kernels.updated_arrays import locked, own_array
from tfray.ops.state.updates import (
    Formula,
    add_update,
    apply_sparse,
    as_numbers,
    as_operands,
    check_sparse,
    dense_kernel,
    dense_shape,
    register_updates,
    run_row_tiles,
    run_tile,
    sparse_shape,
    summed_rows,
)


def _gradient_descent(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, alpha: Array
) -> None:
    """Update ``var -= alpha * gradient``."""
    step, _ = temporaries
    xp.multiply(gradient, alpha, out=step)
    xp.subtract(var, step, out=var)


def _choose_gradient_descent(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    return _gradient_descent, scalars


GRADIENT_DESCENT: Final = register_updates("GradientDescent", (), ("alpha",), _choose_gradient_descent, dtypes.INEXACT)


def _plain_momentum(
    xp: ArrayModule,
    temporaries: tuple[Array, Array],
    gradient: Array,
    var: Array,
    accum: Array,
    lr: Array,
    momentum: Array,
) -> None:
    """Update ``accum = momentum * accum + gradient; var -= lr * accum``."""
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


def _choose_momentum(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    return _nesterov_momentum if ctx.attr("use_nesterov") else _plain_momentum, scalars


MOMENTUM: Final = register_updates(
    "Momentum", ("accum",), ("lr",), _choose_momentum, dtypes.INEXACT, after=("momentum",), attrs=("use_nesterov",)
)


def adagrad(
    xp: ArrayModule, temporaries: tuple[Array, Array], gradient: Array, var: Array, accum: Array, lr: Array
) -> None:
    """Update ``accum += gradient ** 2; var -= lr * gradient / sqrt(accum)``."""
    step, _ = temporaries
    xp.multiply(gradient, gradient, out=step)
    xp.add(accum, step, out=accum)
    xp.sqrt(accum, out=step)
    xp.divide(gradient, step, out=step)
    xp.multiply(step, lr, out=step)
    xp.subtract(var, step, out=var)


def _choose_adagrad(ctx: KernelContext, scalars: list[Array]) -> tuple[Formula, list[Any]]:
    return adagrad, scalars


ADAGRAD: Final = register_updates("Adagrad", ("accum",), ("lr",), _choose_adagrad)


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
        use_nesterov: Look ahead, with ``beta1 * m + (1 - beta1) * grad`` in place of ``m``.
        name: Name of the operation.

    Returns:
        The operation.

    References:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 2.
    """
    scalars = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    return add_update(APPLY_ADAM, var, (m, v), *scalars, grad, name=name, use_nesterov=use_nesterov)


def _adam(
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


def _adam_scalars(ctx: KernelContext, values: Sequence[Array]) -> list[Any]:
    """Scalars of the formula `_adam` from those of the operation, in their order."""
    beta1_power, beta2_power, lr, beta1, beta2, epsilon = as_numbers(ctx, values)
    # The moments start at 0 and are too small in the first steps: this larger rate corrects for that.
    rate = lr * ctx.xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    return [rate, beta1, 1 - beta1, 1 - beta2, epsilon]


def _adam_update(
    ctx: KernelContext, var: StoredVariable, m: StoredVariable, v: StoredVariable, *inputs: Array
) -> Update:
    *values, grad = inputs
    formula = _nesterov_adam if ctx.attr("use_nesterov") else _adam
    return Update(formula, [var, m, v], grad, _adam_scalars(ctx, values))


_ADAM_INPUTS: Final = (
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
        inputs=_ADAM_INPUTS,
        outputs=(),
        attrs=("shape", "use_nesterov"),
        types={"dtype": dtypes.FLOATS, "Tscalar": dtypes.FLOATS},
        shape=dense_shape,
        kernels=on_every_device(dense_kernel(_adam_update)),
        stateful=True,
        access="update",
    )
)


def sparse_apply_adam(
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
    indices: TensorLike,
    lazy: bool = False,
    name: str | None = None,
) -> Any:
    """Update by Adam with a gradient that is zero but for some rows; the gradients of equal indices add up.

    Args:
        var: The variable, of rank 1 or more.
        m: Slot of the same shape, the mean of the gradients.
        v: Slot of the same shape, the mean of their squares.
        beta1_power: As the further scalars, see `apply_adam`.
        beta2_power: Scalar.
        lr: Scalar.
        beta1: Scalar.
        beta2: Scalar.
        epsilon: Scalar.
        grad: Shape ``[n, ...]``, the gradient of the rows.
        indices: Shape ``[n]``, the rows.
        lazy: Touch only the rows ``indices``. Otherwise the result is that of the dense gradient: the moments of the
            other rows decay, and these rows still change by their moments.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.
    """
    scalars = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    return add_update(SPARSE_APPLY_ADAM, var, (m, v), *scalars, grad, indices, name=name, lazy=lazy)


def _sparse_apply_adam_kernel(
    ctx: KernelContext, var: StoredVariable, m: StoredVariable, v: StoredVariable, *inputs: Array
) -> None:
    *values, grad, indices = inputs
    scalars = _adam_scalars(ctx, values)
    if ctx.attr("lazy"):
        apply_sparse(ctx, _adam, [var, m, v], grad, indices, *scalars)
    else:
        _apply_adam_to_all_rows(ctx, [var, m, v], grad, indices, scalars)


def _apply_adam_to_all_rows(
    ctx: KernelContext, resources: Sequence[StoredVariable], gradient: Array, indices: Array, scalars: Sequence[Array]
) -> None:
    operands = as_operands(ctx.xp, scalars, gradient)

    def work() -> None:
        arrays = [own_array(ctx.xp, resource) for resource in resources]
        check_sparse(ctx, resources, arrays, gradient, indices)
        rows, summed = summed_rows(ctx, gradient, indices, len(arrays[0]))

        def tile(part: slice) -> None:
            tiles = [array[part] for array in arrays]
            first, last = 0, len(rows)
            if len(tiles[0]) < len(arrays[0]):
                first, last = ctx.xp.searchsorted(rows, ctx.xp.asarray([part.start, part.stop]))
            dense = _zeros(ctx.xp, tiles[0])
            dense[rows[first:last] - part.start] = summed[first:last]
            run_tile(ctx.xp, _adam, [dense, *tiles], operands)

        run_row_tiles(ctx.xp, tile, arrays[0])

    locked(resources, work)


def _zeros(xp: ArrayModule, like: Array) -> Array:
    if xp is not np:
        return xp.zeros_like(like)
    array = scratch("update_gradient", like.shape, like.dtype)
    array.fill(0)
    return array


SPARSE_APPLY_ADAM = register(
    OpDef(
        name="SparseApplyAdam",
        inputs=(*_ADAM_INPUTS, "indices: Tindices"),
        outputs=(),
        attrs=("shape", "lazy"),
        types={"dtype": dtypes.FLOATS, "Tscalar": dtypes.FLOATS, "Tindices": dtypes.INDICES},
        shape=sparse_shape,
        kernels=on_every_device(_sparse_apply_adam_kernel),
        stateful=True,
        access="update",
    )
)
