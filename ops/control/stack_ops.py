"""Stacks: what the gradients of TensorFlow 1's loops keep values of forward turns on, in imported graphs.

A stack lives as long as a step, and unlike a TensorArray it changes in place: control dependencies and loops order what
is pushed and popped. Its handle is a variant tensor, which passes into branches and loops and can itself be pushed.
"""

from __future__ import annotations

from typing import Any

from tfray.errors import InvalidArgumentError, ResourceExhaustedError
from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_every_device, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import TensorLike


class Stack:
    """The value behind a handle.

    Attributes:
        values: What is on it, the newest one last.
        limit: How many it may hold; None for any number.
    """

    def __init__(self, limit: int | None) -> None:
        self.values: list[Any] = []
        self.limit = limit


def stack_v2(max_size: TensorLike = -1, name: str | None = None) -> Tensor:
    """A new, empty stack in each step.

    Args:
        max_size: int32 scalar: how many values it may hold. A negative one stands for any number.
        name: Name of the operation.

    Returns:
        Its handle, a variant scalar.
    """
    return add_op(STACK, max_size, name=name)


def _stack_kernel(ctx: KernelContext, max_size: Array) -> Stack:
    limit = int(max_size)
    return Stack(limit if limit >= 0 else None)


def _handle_shape(op: Operation) -> list[TensorShape]:
    return [scalar(op)[0]]


STACK = register(
    OpDef(
        name="StackV2",
        inputs=("max_size: int32",),
        outputs=("handle: variant",),
        host_inputs=("max_size",),
        shape=_handle_shape,
        kernels=on_every_device(_stack_kernel),
        stateful=True,
        gradient=not_differentiable,
    )
)


def stack_push_v2(handle: Tensor, elem: TensorLike, name: str | None = None) -> Tensor:
    """Push a value on a stack.

    Args:
        handle: The handle of the stack.
        elem: A tensor of any shape and dtype.
        name: Name of the operation.

    Returns:
        `elem`, of the same shape and dtype.

    Raises:
        ResourceExhaustedError: When run, for more than the stack may hold.
    """
    return add_op(STACK_PUSH, handle, elem, name=name)


def _push_kernel(ctx: KernelContext, handle: Stack, elem: Any) -> Any:
    if handle.limit is not None and len(handle.values) >= handle.limit:
        raise ResourceExhaustedError(f"the stack may hold {handle.limit} values, and one more is pushed")
    handle.values.append(elem)
    return elem


def _pushed_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape]


STACK_PUSH = register(
    OpDef(
        name="StackPushV2",
        inputs=("handle: variant", "elem: T"),
        outputs=("output: T",),
        types={"T": dtypes.ALL},
        shape=_pushed_shape,
        kernels=on_every_device(_push_kernel),
        stateful=True,
        keeps_inputs=True,
        gradient=not_differentiable,
    )
)


def stack_pop_v2(handle: Tensor, elem_type: DTypeLike, name: str | None = None) -> Tensor:
    """Take the newest value off a stack.

    Args:
        handle: The handle of the stack.
        elem_type: Dtype of the value.
        name: Name of the operation.

    Returns:
        The value, of unknown shape.

    Raises:
        InvalidArgumentError: When run, for an empty stack.
    """
    return add_op(STACK_POP, handle, elem_type=as_dtype(elem_type), name=name)


def _pop_kernel(ctx: KernelContext, handle: Stack) -> Any:
    if not handle.values:
        raise InvalidArgumentError("a value is popped off an empty stack")
    return handle.values.pop()


def _popped_shape(op: Operation) -> list[TensorShape]:
    return [UNKNOWN]


STACK_POP = register(
    OpDef(
        name="StackPopV2",
        inputs=("handle: variant",),
        outputs=("elem: elem_type",),
        types={"elem_type": dtypes.ALL},
        shape=_popped_shape,
        kernels=on_every_device(_pop_kernel),
        stateful=True,
        gradient=not_differentiable,
    )
)
