"""Where values come from: constants and placeholders, and what the graph alone says of a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes, shape_functions
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, constant_tensor, convert_to_tensor, make_array, quantized_type
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.sparse_tensor import is_tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.shape_ops import known_entries


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike = None,
    name: str | None = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Make a tensor that always has the same value.

    Args:
        value: A number, string, array, or nested lists of them.
        dtype: Dtype of the result; by default ``float32`` or ``int32`` for Python numbers, an array's own.
        shape: Shape of the result. A shorter `value` is continued with its last element, one of no elements with zeros.
            In one without elements Python values are not looked at: without `dtype` it is ``float32``.
        name: Name of the operation.
        verify_shape: Refuse a `value` of another shape than `shape`.

    Returns:
        Shape `shape`; that of `value` when None.

    Raises:
        InvalidArgumentError: The value does not fit the dtype or shape.

    Examples:
        >>> session.run(tf.constant([[1, 2], [3, 4]]))
        array([[1, 2],
               [3, 4]], dtype=int32)
        >>> session.run(tf.constant(0.5, shape=[2, 2]))
        array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
    """
    wanted = None if dtype is None else as_dtype(dtype)
    sizes = None if shape is None else _known_sizes(shape)
    if sizes is not None and 0 in sizes and not isinstance(value, (np.ndarray, np.generic)):
        value = np.empty(sizes, (wanted or dtypes.float32).numpy)
    array = make_array(value, wanted)
    if sizes is not None:
        array = _fill_to_shape(array, sizes, verify_shape)
    return constant_tensor(array, name, quantized_type(value, wanted))


def _known_sizes(shape: ShapeLike) -> tuple[int, ...]:
    if isinstance(shape, Tensor):
        raise ArgumentError(f"constant: shape is {shape!r}, which is not known before a step: use tf.fill")
    known = TensorShape(shape)
    if not known.is_fully_defined():
        raise ArgumentError(f"constant: shape is {known}, and a constant has known sizes")
    return tuple(size for size in known.as_list() if size is not None)


def _fill_to_shape(array: Array, sizes: tuple[int, ...], verify_shape: bool) -> np.ndarray[Any, Any]:
    count = int(np.prod(sizes, dtype=np.int64))
    if verify_shape and array.shape != sizes:
        raise ArgumentError(f"constant: the value has shape {array.shape}, expected {sizes}")
    if array.size == 0 and count > 0:
        return np.full(sizes, b"" if array.dtype == object else 0, array.dtype)
    if array.size == 1 and count == 0:
        return np.empty(sizes, array.dtype)
    if array.size > count:
        raise InvalidArgumentError(f"constant: {array.size} elements do not fit shape {sizes}")
    if array.size == count:
        return array.reshape(sizes)
    flat = np.empty(count, dtype=array.dtype)
    flat[: array.size] = array.reshape(-1)
    flat[array.size :] = array.reshape(-1)[-1]
    return flat.reshape(sizes)


def _const_kernel(ctx: KernelContext) -> Array:
    value = ctx.attr("value")
    return ctx.asarray(value if value.flags.c_contiguous else value.copy())


def _const_shape(op: Operation) -> list[TensorShape]:
    value = op.attr("value")
    if value.dtype != op.attr("dtype").numpy:
        raise ValueError(f"the value is {value.dtype}, expected {op.attr('dtype').name}")
    return [TensorShape(value.shape)]


CONST = register(
    OpDef(
        name="Const",
        inputs=(),
        outputs=("output: dtype",),
        attrs=("value",),
        types={"dtype": dtypes.VALUES},
        shape=_const_shape,
        kernels=on_every_device(_const_kernel),
    )
)


def placeholder(dtype: DTypeLike, shape: ShapeLike = None, name: str | None = None) -> Tensor:
    """Make a tensor whose value each step must feed.

    Args:
        dtype: Dtype of the values to be fed.
        shape: Static shape; None, or None in a dimension, accepts any size.
        name: Name of the operation.

    Returns:
        A tensor of static shape `shape`.

    Examples:
        >>> x = tf.placeholder(tf.float32, [None, 2])
        >>> session.run(x * 10, {x: [[1, 2]]})
        array([[10., 20.]], dtype=float32)
    """
    return add_op(PLACEHOLDER, name=name, dtype=as_dtype(dtype), shape=TensorShape(shape))


def _placeholder_kernel(ctx: KernelContext) -> Array:
    shape, kind = ctx.attr("shape"), dtypes.name_in_c(as_dtype(ctx.output_dtype()).name)
    sizes = "" if shape.rank is None else f" and shape [{','.join('?' if n is None else str(n) for n in shape.sizes)}]"
    raise InvalidArgumentError(
        f"You must feed a value for placeholder tensor {ctx.op_name!r} with dtype {kind}{sizes}: "
        f"pass feed_dict={{{ctx.op_name}: value}} to Session.run"
    )


PLACEHOLDER = register(
    OpDef(
        name="Placeholder",
        inputs=(),
        outputs=("output: dtype",),
        attrs=("shape",),
        types={"dtype": (*dtypes.VALUES, dtypes.variant)},
        shape=shape_functions.from_attr("shape"),
        kernels=on_every_device(_placeholder_kernel),
        stateful=True,
    )
)


def placeholder_with_default(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Make a tensor that has the value `input` in every step that does not feed another.

    Args:
        input: The default value, any shape and dtype.
        shape: Static shape of the result, compatible with that of `input`.
        name: Name of the operation.

    Returns:
        A tensor of static shape `shape`.

    Examples:
        >>> rate = tf.placeholder_with_default([0.1], [1])
        >>> session.run(rate), session.run(rate, {rate: [0.5]})
        (array([0.1], dtype=float32), array([0.5], dtype=float32))
    """
    value = convert_to_tensor(input)
    value.shape.assert_is_compatible_with(shape)
    return add_op(PLACEHOLDER_WITH_DEFAULT, value, name=name, shape=TensorShape(shape))


def _placeholder_with_default_kernel(ctx: KernelContext, value: Array) -> Array:
    return value


def _placeholder_with_default_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [d_output]


PLACEHOLDER_WITH_DEFAULT = register(
    OpDef(
        name="PlaceholderWithDefault",
        inputs=("input: dtype",),
        outputs=("output: dtype",),
        attrs=("shape",),
        types={"dtype": dtypes.VALUES},
        shape=shape_functions.from_attr("shape"),
        kernels=on_every_device(_placeholder_with_default_kernel),
        gradient=_placeholder_with_default_gradient,
        stateful=True,  # not a constant: another value may be fed
    )
)


def get_static_value(tensor: Any, partial: bool = False) -> Any | None:
    """The value of `tensor` where the graph alone determines it, and it is small; else None.

    Args:
        tensor: A tensor of any shape. What is none is returned as it is. Variables and sparse tensors have no static
            value.
        partial: Also give a stack of values, or a vector of integers, of which only some are known: a list of the
            entries, with None for the others.

    Returns:
        An array of the shape and dtype of `tensor`, a list, or None.
    """
    if not isinstance(tensor, Tensor):
        return None if is_tensor(tensor) else tensor
    value = constant_value(tensor)
    if value is not None or not partial:
        return value
    if tensor.shape.rank == 1 and tensor.dtype.is_integer:
        entries: list[Any] | None = known_entries(tensor)
    else:
        is_stack = tensor.op.type == "Pack" and tensor.op.attrs["axis"] == 0
        entries = [get_static_value(each, partial) for each in tensor.op.inputs] if is_stack else None
    return None if entries is None or all(entry is None for entry in entries) else entries
