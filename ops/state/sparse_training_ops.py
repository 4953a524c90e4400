"""Optimizer updates with sparse gradients: they change only the rows that the gradient names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.op_def import Array, ArrayModule, KernelContext, OpDef, StoredVariable, on_every_device, register
from tfray.framework.type_aliases import TensorLike, VariableOrHandle
from tfray.ops.kernels.cpu_threads import scratch
from tfray.ops.state.training_ops import ADAM_INPUTS, adagrad, adam, adam_scalars, gradient_descent, momentum_formula
from tfray.ops.state.updates import (
    add_update,
    apply_sparse,
    as_numbers,
    as_operands,
    check_sparse,
    distinct_rows,
    locked,
    own_array,
    run_row_tiles,
    run_tile,
    sparse_shape,
)


def sparse_apply_gradient_descent(
    var: VariableOrHandle,
    alpha: TensorLike,
    grad: TensorLike,
    indices: TensorLike,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Update rows, ``var[indices[i]] -= alpha * grad[i]`` for every i; equal indices add up.

    Args:
        var: The variable, of rank 1 or more.
        alpha: Scalar, the learning rate.
        grad: Shape ``[n, ...]``, the gradient of the rows.
        indices: Shape ``[n]``, the rows.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.
    """
    return add_update(SPARSE_APPLY_GRADIENT_DESCENT, var, (), alpha, grad, indices, name=name)


def _sparse_apply_gradient_descent_kernel(
    ctx: KernelContext, var: StoredVariable, alpha: Array, grad: Array, indices: Array
) -> None:
    apply_sparse(ctx, gradient_descent, [var], grad, indices, *as_numbers(ctx, [alpha]))


SPARSE_APPLY_GRADIENT_DESCENT = register(
    OpDef(
        name="SparseApplyGradientDescent",
        inputs=("var: resource", "alpha: Tscalar", "grad: dtype", "indices: Tindices"),
        outputs=(),
        attrs=("shape",),
        types={"dtype": dtypes.INEXACT, "Tscalar": dtypes.INEXACT, "Tindices": dtypes.INDICES},
        shape=sparse_shape,
        kernels=on_every_device(_sparse_apply_gradient_descent_kernel),
        stateful=True,
        access="update",
    )
)


def sparse_apply_momentum(
    var: VariableOrHandle,
    accum: VariableOrHandle,
    lr: TensorLike,
    grad: TensorLike,
    indices: TensorLike,
    momentum: TensorLike,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> Any:
    """Update as `apply_momentum` the rows ``indices`` and no others; the gradients of equal indices add up.

    Args:
        var: The variable, of rank 1 or more.
        accum: Its slot, of the same shape.
        lr: Scalar, the learning rate.
        grad: Shape ``[n, ...]``, the gradient of the rows.
        indices: Shape ``[n]``, the rows.
        momentum: Scalar.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        use_nesterov: As for `apply_momentum`.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.
    """
    return add_update(
        SPARSE_APPLY_MOMENTUM, var, (accum,), lr, grad, indices, momentum, name=name, use_nesterov=use_nesterov
    )


def _sparse_apply_momentum_kernel(
    ctx: KernelContext,
    var: StoredVariable,
    accum: StoredVariable,
    lr: Array,
    grad: Array,
    indices: Array,
    momentum: Array,
) -> None:
    apply_sparse(ctx, momentum_formula(ctx), [var, accum], grad, indices, *as_numbers(ctx, [lr, momentum]))


SPARSE_APPLY_MOMENTUM = register(
    OpDef(
        name="SparseApplyMomentum",
        inputs=(
            "var: resource",
            "accum: resource",
            "lr: Tscalar",
            "grad: dtype",
            "indices: Tindices",
            "momentum: Tscalar",
        ),
        outputs=(),
        attrs=("shape", "use_nesterov"),
        types={"dtype": dtypes.INEXACT, "Tscalar": dtypes.INEXACT, "Tindices": dtypes.INDICES},
        shape=sparse_shape,
        kernels=on_every_device(_sparse_apply_momentum_kernel),
        stateful=True,
        access="update",
    )
)


def sparse_apply_adagrad(
    var: VariableOrHandle,
    accum: VariableOrHandle,
    lr: TensorLike,
    grad: TensorLike,
    indices: TensorLike,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """Update as `apply_adagrad` the rows ``indices`` and no others; the gradients of equal indices add up.

    Args:
        var: The variable, of rank 1 or more.
        accum: Its slot, of the same shape.
        lr: Scalar, the learning rate.
        grad: Shape ``[n, ...]``, the gradient of the rows.
        indices: Shape ``[n]``, the rows.
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: While running: a row that the variable does not have.
    """
    return add_update(SPARSE_APPLY_ADAGRAD, var, (accum,), lr, grad, indices, name=name)


def _sparse_apply_adagrad_kernel(
    ctx: KernelContext, var: StoredVariable, accum: StoredVariable, lr: Array, grad: Array, indices: Array
) -> None:
    apply_sparse(ctx, adagrad, [var, accum], grad, indices, *as_numbers(ctx, [lr]))


SPARSE_APPLY_ADAGRAD = register(
    OpDef(
        name="SparseApplyAdagrad",
        inputs=("var: resource", "accum: resource", "lr: Tscalar", "grad: dtype", "indices: Tindices"),
        outputs=(),
        attrs=("shape",),
        types={"dtype": dtypes.FLOATS, "Tscalar": dtypes.FLOATS, "Tindices": dtypes.INDICES},
        shape=sparse_shape,
        kernels=on_every_device(_sparse_apply_adagrad_kernel),
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
    use_locking: bool = False,
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
        use_locking: Accepted for TensorFlow 1's sake: updates never interleave.
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
    scalars = adam_scalars(ctx, values)
    if ctx.attr("lazy"):
        apply_sparse(ctx, adam, [var, m, v], grad, indices, *scalars)
    else:
        _apply_adam_to_all_rows(ctx, [var, m, v], grad, indices, scalars)


def _apply_adam_to_all_rows(
    ctx: KernelContext, resources: Sequence[StoredVariable], gradient: Array, indices: Array, scalars: Sequence[Array]
) -> None:
    operands = as_operands(ctx.xp, scalars, gradient)

    def work() -> None:
        arrays = [own_array(ctx, resource) for resource in resources]
        check_sparse(ctx, resources, arrays, gradient, indices)
        rows, summed = distinct_rows(ctx, gradient, indices)

        def tile(part: slice) -> None:
            tiles = [array[part] for array in arrays]
            first, last = ctx.xp.searchsorted(rows, ctx.xp.asarray([part.start, part.stop]))
            dense = _zeros(ctx.xp, tiles[0])
            dense[rows[first:last] - part.start] = summed[first:last]
            run_tile(ctx.xp, adam, [dense, *tiles], operands)

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
        inputs=(*ADAM_INPUTS, "indices: Tindices"),
        outputs=(),
        attrs=("shape", "lazy"),
        types={"dtype": dtypes.FLOATS, "Tscalar": dtypes.FLOATS, "Tindices": dtypes.INDICES},
        shape=sparse_shape,
        kernels=on_every_device(_sparse_apply_adam_kernel),
        stateful=True,
        access="update",
    )
)
