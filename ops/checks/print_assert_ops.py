"""Printing values while a step runs, and failing the step when they are wrong."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import Gradient
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.shape_functions import like_input, no_outputs
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.grouping_ops import group

# -- assertions ----------------------------------------------------------------------------------------


def Assert(
    condition: TensorLike, data: Sequence[object], summarize: int | None = None, name: str | None = None
) -> Operation:
    """Fail the step unless `condition` holds.

    The operation must run to check anything: put it into `tf.control_dependencies`.

    Args:
        condition: bool of any shape; every element must hold.
        data: Tensors of any shape, or Python values, that the error shows.
        summarize: How many elements of each tensor to show; 3 when None, all when -1.
        name: Name of the operation.

    Returns:
        The operation.

    Raises:
        InvalidArgumentError: `data` is empty; in the step that runs it, when an element of `condition` is False.

    Examples:
        >>> x = tf.placeholder(tf.float32, [])
        >>> with tf.control_dependencies([tf.Assert(x >= 0, ["a negative number", x])]):
        ...     root = tf.sqrt(x)
        >>> session.run(root, {x: 4.0})
        np.float32(2.0)
    """
    if not data:
        raise InvalidArgumentError("Assert: data is empty, and the error would have nothing to show")
    condition = convert_to_tensor(condition, dtypes.bool_)
    return add_op(ASSERT, condition, list(data), name=name, summarize=3 if summarize is None else int(summarize))


def refuse_if_false(condition: Tensor, data: Sequence[object]) -> None:
    """Raise `InvalidArgumentError` with `data` while the graph is built, if it tells that `condition` does not hold.

    `condition` is bool of any shape. Nothing happens where the graph does not know it.
    """
    value = constant_value(condition)
    if value is not None and not np.all(value):
        shown = ", ".join(_shown_statically(item) for item in data)
        raise InvalidArgumentError(f"the condition never holds; data: {shown}")


def _shown_statically(item: object) -> str:
    value = constant_value(item) if isinstance(item, Tensor) else item
    return repr(item) if value is None else format_value(value, -1)


def _assert_kernel(ctx: KernelContext, condition: Array, *data: Array) -> None:
    if not bool(condition.all()):
        limit = ctx.attr("summarize")
        shown = " ".join(format_value(ctx.to_host(array), limit) for array in data)
        raise InvalidArgumentError(f"assertion failed: {shown}")


ASSERT = register(
    OpDef(
        name="Assert",
        inputs=("condition: bool", "data: any*"),
        outputs=(),
        attrs=("summarize",),
        shape=no_outputs,
        kernels=on_every_device(_assert_kernel),
        stateful=True,
    )
)


def format_value(value: object, limit: int) -> str:
    """A value for people: at most `limit` elements of an array, all when it is negative; strings without quotes."""
    array = np.asarray(value)
    flat = array.reshape(-1)
    shown = [_format_element(element) for element in (flat if limit < 0 else flat[:limit])]
    if array.ndim == 0:
        return _format_element(flat[0])
    return f"[{' '.join(shown)}{'...' if len(shown) < flat.size else ''}]"


def _format_element(element: Any) -> str:
    return element.decode(errors="backslashreplace") if isinstance(element, bytes) else str(element)


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Return `tensor`, or fail the step if an element is not a number or infinite. Its gradient is checked too.

    Args:
        tensor: Any shape, a float dtype.
        message: Begins the error.
        name: Name of the operation.

    Returns:
        Same shape and dtype.

    Examples:
        >>> session.run(tf.check_numerics([1.0, 2.0], "a weight is not finite"))
        array([1., 2.], dtype=float32)
    """
    return add_op(CHECK_NUMERICS, tensor, name=name, message=message)


def _check_numerics_kernel(ctx: KernelContext, tensor: Array) -> Array:
    if not bool(ctx.xp.isfinite(tensor).all()):
        found = [kind for kind, test in (("NaN", ctx.xp.isnan), ("Inf", ctx.xp.isinf)) if bool(test(tensor).any())]
        raise InvalidArgumentError(f"{ctx.attr('message')}: the tensor has {' and '.join(found)} values")
    return tensor


def _check_numerics_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [check_numerics(d_output, f"gradient of {op.name} ({op.attr('message')})")]


CHECK_NUMERICS = register(
    OpDef(
        name="CheckNumerics",
        inputs=("tensor: T",),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        attrs=("message",),
        shape=like_input(0),
        kernels=on_every_device(_check_numerics_kernel),
        gradient=_check_numerics_gradient,
    )
)


def verify_tensor_all_finite(
    t: TensorLike | None = None,
    msg: str | None = None,
    name: str | None = None,
    x: TensorLike | None = None,
    message: str | None = None,
) -> Tensor:
    """`check_numerics` under its older name: any shape, and the same for the result.

    `x` and `message` are newer names of `t` and `msg`.
    """
    tensor = x if t is None else t
    if tensor is None:
        raise InvalidArgumentError("verify_tensor_all_finite: there is no tensor")
    return check_numerics(tensor, message or msg or "", name or "VerifyFinite")


def add_check_numerics_ops() -> Operation:
    """An operation that checks every float tensor that the graph has so far: see `check_numerics`."""
    checks = [
        check_numerics(tensor, f"{op.type} {tensor.name}")
        for op in get_default_graph().get_operations()
        for tensor in op.outputs
        if tensor.dtype in dtypes.FLOATS and op.type != "CheckNumerics"
    ]
    return group(*checks)


# -- printing ------------------------------------------------------------------------------------------


def Print(
    input_: TensorLike,
    data: Sequence[object],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `input_`, and print values to the standard error stream whenever it is computed.

    Args:
        input_: Any shape and dtype.
        data: Tensors of any shape to print.
        message: What to print before them.
        first_n: Print only the first `first_n` times; always when None or -1.
        summarize: How many elements of each tensor to show; 3 when None, all when -1.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `input_`.

    Examples:
        >>> x = tf.constant([1, 2])
        >>> session.run(tf.Print(x, [x], "x is "))  # on the standard error stream: x is [1 2]
        array([1, 2], dtype=int32)
    """
    attrs = {
        "message": message or "",
        "first_n": -1 if first_n is None else int(first_n),
        "summarize": 3 if summarize is None else int(summarize),
    }
    return add_op(PRINT, input_, list(data), name=name, **attrs)


def _print_kernel(ctx: KernelContext, input: Array, *data: Array) -> Array:
    first_n = ctx.attr("first_n")
    times = ctx.resources.lookup_or_create(("times printed", ctx.op_name), itertools.count) if first_n >= 0 else None
    if times is None or next(times) < first_n:
        values = "".join(format_value(ctx.to_host(array), ctx.attr("summarize")) for array in data)
        print(f"{ctx.attr('message')}{values}", file=sys.stderr, flush=True)
    return input


def _print_gradient(op: Operation, d_output: Gradient) -> list[Any]:
    return [d_output, *[None] * (len(op.inputs) - 1)]


PRINT = register(
    OpDef(
        name="Print",
        inputs=("input: T", "data: any*"),
        outputs=("output: T",),
        types={"T": dtypes.VALUES},
        attrs=("message", "first_n", "summarize"),
        shape=like_input(0),
        kernels=on_every_device(_print_kernel),
        gradient=_print_gradient,
        stateful=True,
    )
)


def print_(
    *inputs: object,
    output_stream: TextIO | None = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> Operation:
    """Print tensors and Python values when the operation runs. Public as ``tf.print``.

    Args:
        *inputs: Tensors of any shape, whose values are printed, and other objects, whose text is.
        output_stream: Not a tensor but ``sys.stdout``, or ``sys.stderr``, which None means.
        summarize: How many elements of each tensor to show; all when -1.
        sep: Printed between the inputs.
        end: Printed after them.
        name: Name of the operation.

    Returns:
        The operation: put it into `tf.control_dependencies`, or run it.
    """
    if output_stream not in (None, sys.stdout, sys.stderr):
        raise InvalidArgumentError(f"print: output_stream is {output_stream!r}, expected sys.stdout or sys.stderr")
    tensors = [item for item in inputs if _is_symbolic(item)]
    texts = [None if _is_symbolic(item) else str(item) for item in inputs]
    attrs = {"texts": texts, "sep": sep, "end": end, "summarize": int(summarize)}
    stream = "stdout" if output_stream is sys.stdout else "stderr"
    return add_op(PRINT_V2, tensors, name=name, output_stream=stream, **attrs)


def _is_symbolic(item: object) -> bool:
    return isinstance(getattr(item, "graph", None), type(get_default_graph()))


def _print_v2_kernel(ctx: KernelContext, *data: Array) -> None:
    values = iter([format_value(ctx.to_host(array), ctx.attr("summarize")) for array in data])
    parts = [next(values) if text is None else text for text in ctx.attr("texts")]
    print(*parts, sep=ctx.attr("sep"), end=ctx.attr("end"), file=getattr(sys, ctx.attr("output_stream")), flush=True)


PRINT_V2 = register(
    OpDef(
        name="PrintV2",
        inputs=("data: any*",),
        outputs=(),
        attrs=("texts", "sep", "end", "output_stream", "summarize"),
        shape=no_outputs,
        kernels=on_every_device(_print_v2_kernel),
        stateful=True,
    )
)
