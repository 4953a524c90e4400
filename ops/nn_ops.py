"""Neural-network operations: activations, losses, convolution, pooling, dropout."""

from __future__ import annotations

from typing import Any

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.shape_functions import all_inputs_alike, like_input


def relu(features: Any, name: str | None = None) -> Tensor:
    """Compute ``max(features, 0)`` elementwise.

    Args:
        features: Shape ``[...]``, a real dtype.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `features`. The subgradient at 0 is taken as 0.
    """
    return add_op(RELU, features, name=name)


def _relu_kernel(ctx: KernelContext, features: Array, out: Array | None = None) -> Array:
    # An array zero, not a Python scalar: NumPy's maximum is three times faster with it.
    return ctx.xp.maximum(features, ctx.xp.zeros((1,) * features.ndim, features.dtype), out=out)


def _relu_gradient(op: Operation, d_activations: Tensor) -> list[Tensor | None]:
    # Gate by the output: the input need not stay alive until the backward pass.
    return [relu_grad(d_activations, op.outputs[0])]


RELU = register(
    OpDef(
        name="Relu",
        inputs=("features: T",),
        outputs=("activations: T",),
        types={"T": dtypes.REAL},
        shape=like_input(0),
        kernels=on_every_device(out_kernel(_relu_kernel, may_overwrite=(0,))),
        gradient=_relu_gradient,
    )
)


def relu_grad(gradients: Any, features: Any, name: str | None = None) -> Tensor:
    """Pass `gradients` where `features` (the input or the output of `relu`) is positive, 0 elsewhere."""
    return add_op(RELU_GRAD, gradients, features, name=name)


def _relu_grad_kernel(ctx: KernelContext, gradients: Array, features: Array, out: Array | None = None) -> Array:
    return ctx.xp.multiply(gradients, features > 0, out=out)


def _relu_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [relu_grad(d_output, op.inputs[1]), None]


RELU_GRAD = register(
    OpDef(
        name="ReluGrad",
        inputs=("gradients: T", "features: T"),
        outputs=("backprops: T",),
        types={"T": dtypes.REAL},
        shape=all_inputs_alike,
        kernels=on_every_device(out_kernel(_relu_grad_kernel, may_overwrite=(0,))),
        gradient=_relu_grad_gradient,
    )
)
