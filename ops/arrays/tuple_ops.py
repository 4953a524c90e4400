"""Several tensors through one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.indexed_slices import Gradient
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike


def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[Tensor]:
    """Pass several tensors on unchanged, by one operation.

    Use it with `Graph.gradient_override_map` for the type ``IdentityN`` to give a part of a graph your own gradient:
    see `tf.custom_gradient`.

    Args:
        input: Tensors of any shapes and dtypes.
        name: Name of the operation.

    Returns:
        As many tensors, of the same shapes and dtypes.

    Raises:
        TypeError: `input` is no list.
        ValueError: It is empty.
    """
    if not isinstance(input, (list, tuple)):
        raise TypeError(f"identity_n: input is {input!r}, expected a list of tensors")
    if not input:
        raise ValueError("identity_n: input is empty, expected at least one tensor")
    tensors = [convert_to_tensor(value) for value in input]
    return add_op(IDENTITY_N, tensors, name=name, T=[tensor.dtype for tensor in tensors])


def _identity_n_kernel(ctx: KernelContext, *values: Array) -> list[Array]:
    return list(values)


def _identity_n_shape(op: Operation) -> list[TensorShape]:
    return [tensor.shape for tensor in op.inputs]


def _identity_n_gradient(op: Operation, *d_outputs: Gradient) -> list[Any]:
    return list(d_outputs)


IDENTITY_N = register(
    OpDef(
        name="IdentityN",
        inputs=("input: any*",),
        outputs=("output: T*",),
        attrs=("T",),
        shape=_identity_n_shape,
        kernels=on_every_device(_identity_n_kernel),
        gradient=_identity_n_gradient,
    )
)
