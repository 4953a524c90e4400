"""Printing values while a step runs, and failing the step when they are wrong."""

from __future__ import annotations

import itertools
import logging
import pprint
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.arguments import by_either_name
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import Gradient
from tfray.framework.op_def import Array, KernelContext, OpDef, Reach, on_every_device, register
from tfray.framework.shape_functions import like_input, no_outputs
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.kernels.text import as_string, summarized

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
        name: Name scope of the operation, ``Assert`` in it.

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
    with get_default_graph().name_scope(name or "Assert"):
        condition = convert_to_tensor(condition, dtypes.bool_, "Condition")
        return add_op(ASSERT, condition, list(data), summarize=3 if summarize is None else int(summarize))


def refuse_if_false(condition: Tensor, data: Sequence[object]) -> None:
    """Raise `InvalidArgumentError` with `data` while the graph is built, if it tells that `condition` does not hold.

    `condition` is bool of any shape. Nothing happens where the graph does not know it.
    """
    value = constant_value(condition)
    if value is not None and not np.all(value):
        shown = " ".join(_shown_statically(item) for item in data)
        raise InvalidArgumentError(f"the condition never holds: {shown}")


def _shown_statically(item: object) -> str:
    value = constant_value(item) if isinstance(item, Tensor) else item
    return repr(item) if value is None else format_value(value, -1)


def _assert_kernel(ctx: KernelContext, condition: Array, *data: Array) -> None:
    if not bool(condition.all()):
        limit = ctx.attr("summarize")
        shown = [format_value(ctx.to_host(array), limit) for array in data]
        bracketed = (text if array.ndim else f"[{text}]" for text, array in zip(shown, data, strict=True))
        raise InvalidArgumentError(f"assertion failed: {' '.join(bracketed)}")


ASSERT = register(
    OpDef(
        name="Assert",
        inputs=("condition: bool", "data: any*"),
        outputs=(),
        host_inputs=("condition",),
        attrs=("summarize",),
        shape=no_outputs,
        kernels=on_every_device(_assert_kernel),
        stateful=True,
    )
)


def format_value(value: object, limit: int, element: Callable[[Any], str] = str) -> str:
    """A value for people: at most `limit` elements of an array, all when it is negative; strings without quotes.

    `element` writes an element that is no string.
    """
    array = np.asarray(value)
    if array.ndim == 0:
        return _format_element(array.reshape(-1)[0], element)
    if not array.size:
        return "[]"
    left = array.size if limit < 0 else limit
    ending = "..." if left < array.size else ""

    def rows(part: np.ndarray[Any, Any]) -> str:
        nonlocal left
        shown = []
        for item in part:
            if left <= 0:
                break
            left -= part.ndim == 1
            shown.append(_format_element(item, element) if part.ndim == 1 else rows(item))
        more = ending if part is array or (part.ndim == 1 and len(shown) < len(part)) else ""
        return f"[{(' ' if part.ndim == 1 else '').join(shown)}{more}]"

    return rows(array)


def _format_element(item: Any, element: Callable[[Any], str]) -> str:
    return item.decode(errors="backslashreplace") if isinstance(item, bytes) else element(item)


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
    tensor = by_either_name("verify_tensor_all_finite", x=x, t=t)
    message = by_either_name("verify_tensor_all_finite", message=message, msg=msg)
    if tensor is None:
        raise InvalidArgumentError("verify_tensor_all_finite: there is no tensor")
    return check_numerics(tensor, message or "", name or "VerifyFinite")


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
    key = "times printed", ctx.op_name
    if first_n < 0 or next(ctx.session_state.lookup_or_create(key, itertools.count)) < first_n:
        arrays = [np.atleast_1d(ctx.to_host(array)) for array in data]
        values = "".join(format_value(array, ctx.attr("summarize"), partial(summarized, count=-1)) for array in arrays)
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
    output_stream: Any = None,
    summarize: int | None = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> Operation:
    """Print tensors and Python values when the operation runs. Public as ``tf.print``.

    Args:
        *inputs: Tensors of any shape, sparse ones and variables, whose values are printed, other objects, whose text
            is, and lists, tuples and dictionaries of them.
        output_stream: ``sys.stdout``, ``sys.stderr``, which None means, ``"file://PATH"``, to which is added, or a
            function of `tf.logging`: ``tf.logging.info``, ``warn``, ``error`` and the like.
        summarize: How many entries to show from the beginning and from the end of each dimension; all when -1.
        sep: Printed between the inputs.
        end: Printed after them.
        name: Name of the operation.

    Returns:
        The operation: put it into `tf.control_dependencies`, or run it.

    Raises:
        ValueError: There is no such stream.
    """
    tensors: list[Any] = []
    texts: list[str | None] = []
    for index, item in enumerate(inputs):
        text = item if isinstance(item, str) else pprint.pformat(_with_slots(item, tensors))
        for part in re.split("(\0\\d+\0)", f"{sep if index else ''}{text}"):
            texts.append(None if part.startswith("\0") else part)
    attrs = {"texts": texts, "sep": "", "end": end, "summarize": 3 if summarize is None else int(summarize)}
    if isinstance(output_stream, str) and output_stream.startswith("file://"):
        return add_op(PRINT_TO_FILE, tensors, name=name, path=output_stream.removeprefix("file://"), **attrs)
    return add_op(PRINT_V2, tensors, name=name, output_stream=_stream_name(output_stream), **attrs)


class _Slot:
    """Stands in a structure for tensors, of which `text` has the numbers between zero characters."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _with_slots(structure: Any, tensors: list[Any]) -> Any:
    """`structure` with slots in place of its tensors, which are added to `tensors`."""

    def slot(item: Any) -> str:
        tensors.append(item)
        return f"\0{len(tensors) - 1}\0"

    def leaf(item: Any) -> Any:
        if isinstance(item, SparseTensor):
            parts = slot(item.indices), slot(item.values), slot(item.dense_shape)
            return _Slot("'SparseTensor(indices={}, values={}, shape={})'".format(*parts))
        return _Slot(slot(item)) if _is_symbolic(item) else item

    return nest.map_structure(leaf, structure)


_LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "fatal": 50}
"""Functions of `tf.logging` that `tf.print` takes, and their levels."""


def _stream_name(stream: Any) -> str:
    if stream is None or stream is sys.stderr:
        return "stderr"
    if stream is sys.stdout:
        return "stdout"
    if callable(stream) and getattr(stream, "__name__", "") in _LEVELS:
        return f"log({stream.__name__})"
    raise InvalidArgumentError(
        f"print: output_stream is {stream!r}, expected sys.stdout, sys.stderr, 'file://PATH' or one of tf.logging's"
    )


def _is_symbolic(item: object) -> bool:
    return isinstance(getattr(item, "graph", None), type(get_default_graph()))


def _line(ctx: KernelContext, data: Sequence[Array]) -> str:
    alone = len(data) == 1 and not any(ctx.attr("texts"))
    values = iter([_printed(ctx.to_host(array), ctx.attr("summarize"), alone) for array in data])
    parts = [next(values) if text is None else text for text in ctx.attr("texts")]
    return f"{ctx.attr('sep').join(parts)}{ctx.attr('end')}"


def _printed(value: Array, count: int, alone: bool) -> str:
    if alone and value.ndim == 0 and value.dtype.kind == "O":
        return as_string(value).decode("utf-8", "surrogateescape")  # as it is; beside others in quotes
    return summarized(value, count)


def _log(level: int, line: str) -> None:
    """Log a line. Where nothing would show it, it goes to stderr, as TensorFlow's operation writes it."""
    logger = logging.getLogger("tfray")
    if logger.isEnabledFor(level) and logger.hasHandlers():
        logger.log(level, "%s", line)
    elif level >= logging.INFO:
        print(f"{datetime.now()}: {logging.getLevelName(level)[0]} {line}", file=sys.stderr, flush=True)


def _print_v2_kernel(ctx: KernelContext, *data: Array) -> None:
    line, stream = _line(ctx, data), ctx.attr("output_stream")
    if stream.startswith("log("):
        _log(_LEVELS[stream[4:-1]], line.removesuffix("\n"))
    else:
        readable = line.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        print(readable, end="", file=getattr(sys, stream), flush=True)


def _print_to_file_kernel(ctx: KernelContext, *data: Array) -> None:
    with open(ctx.attr("path"), "ab") as file:
        file.write(_line(ctx, data).encode("utf-8", "surrogateescape"))


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

PRINT_TO_FILE = register(
    OpDef(
        name="PrintToFile",
        inputs=("data: any*",),
        outputs=(),
        attrs=("texts", "sep", "end", "path", "summarize"),
        shape=no_outputs,
        kernels=on_every_device(_print_to_file_kernel),
        stateful=True,
        reach=Reach("files", attr="path"),
    )
)
