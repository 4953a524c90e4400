"""Values that stay on their device from one step to the next, and are named by handles."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_every_device, register
from tfray.framework.shape_functions import no_outputs, unknown
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.kernels.text import as_string

_numbers: Final = itertools.count()


def get_session_handle(data: TensorLike, name: str | None = None) -> Tensor:
    """Keep a tensor's value on its device beyond the step. Running this gives a `TensorHandle`.

    Args:
        data: Any shape and dtype.
        name: Name of the operation.

    Returns:
        A string scalar, for which `Session.run` returns a `TensorHandle`: feed that in place of a value, give its
        ``handle`` to `tf.get_session_tensor`, or look at the value with ``eval()``.

    Examples:
        >>> kept = session.run(tf.get_session_handle(tf.constant([1.0, 2.0])))
        >>> holder, value = tf.get_session_tensor(kept.handle, tf.float32)
        >>> session.run(value * 10, {holder: kept.handle})
        array([10., 20.], dtype=float32)
    """
    return add_op(GET_SESSION_HANDLE, convert_to_tensor(data), name=name)


def get_session_tensor(handle: str | bytes, dtype: DTypeLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The value that a handle names, on the device where it is.

    Args:
        handle: The ``handle`` of a `TensorHandle`. It says the device; the values of other handles can be fed.
        dtype: Dtype of the value.
        name: Name of the operation.

    Returns:
        A placeholder for a handle, and the value of unknown shape.

    Raises:
        InvalidArgumentError: When run: there is no such value, or its dtype is another.
    """
    with get_default_graph().device(_device_of(handle)):
        holder = placeholder(dtypes.string, [])
        return holder, add_op(GET_SESSION_TENSOR, holder, name=name, dtype=as_dtype(dtype))


def delete_session_tensor(handle: str | bytes, name: str | None = None) -> tuple[Tensor, Operation]:
    """Forget the value that a handle names.

    Args:
        handle: As for `get_session_tensor`.
        name: Name of the operation.

    Returns:
        A placeholder for a handle, and the operation that forgets its value.
    """
    with get_default_graph().device(_device_of(handle)):
        holder = placeholder(dtypes.string, [])
        return holder, add_op(DELETE_SESSION_TENSOR, holder, name=name)


def _device_of(handle: str | bytes) -> str:
    text = handle.decode() if isinstance(handle, bytes) else handle
    if not isinstance(text, str) or text.count(";") != 2:
        raise InvalidArgumentError(f"{handle!r} is not the handle of a tensor: give the `handle` of a TensorHandle")
    return text.rpartition(";")[2]


def _key(handle: Array) -> tuple[str, str]:
    return "session_tensor", as_string(handle).decode()


def _get_session_handle_kernel(ctx: KernelContext, value: Array) -> Array:
    handle = f"{ctx.op_name};{next(_numbers)};{ctx.device}"
    ctx.session_state.lookup_or_create(("session_tensor", handle), lambda: value)
    return np.array(handle.encode(), object)


def _get_session_tensor_kernel(ctx: KernelContext, handle: Array) -> Array:
    value: Any = ctx.session_state.find(_key(handle))
    if value is None:
        raise InvalidArgumentError(
            f"there is no value for the handle {_key(handle)[1]!r}: it was deleted, or is of another session"
        )
    if value.dtype != ctx.output_dtype():
        raise InvalidArgumentError(
            f"the value of {as_string(handle).decode()!r} is {value.dtype}, not {ctx.output_dtype()}"
        )
    return value


def _delete_session_tensor_kernel(ctx: KernelContext, handle: Array) -> None:
    ctx.session_state.remove(_key(handle))


GET_SESSION_HANDLE = register(
    OpDef(
        name="GetSessionHandle",
        inputs=("value: any",),
        outputs=("handle: string",),
        shape=lambda op: [TensorShape([])],
        kernels=on_every_device(_get_session_handle_kernel),
        gradient=not_differentiable,
        stateful=True,
        keeps_inputs=True,
    )
)

GET_SESSION_TENSOR = register(
    OpDef(
        name="GetSessionTensor",
        inputs=("handle: string",),
        outputs=("value: dtype",),
        types={"dtype": dtypes.VALUES},
        shape=unknown,
        kernels=on_every_device(_get_session_tensor_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)

DELETE_SESSION_TENSOR = register(
    OpDef(
        name="DeleteSessionTensor",
        inputs=("handle: string",),
        outputs=(),
        shape=no_outputs,
        kernels=on_every_device(_delete_session_tensor_kernel),
        stateful=True,
    )
)
