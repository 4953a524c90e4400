"""Branches, loops, calls and gradients of functions made by `Defun`: those of TensorFlow's ``functional_ops``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.scopes import control_dependencies
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import gradients
from tfray.library.functions.traced_function import DefinedFunction
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.shape_ops import cast, identity, size
from tfray.ops.arrays.source_ops import constant
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control.control_flow_ops import cond as branch
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.math.arithmetic_ops import abs as abs_
from tfray.ops.math.comparison_ops import greater, less, less_equal, logical_and, logical_or, not_equal
from tfray.ops.math.rounding_ops import floordiv
from tfray.ops.strings.string_ops import string_length


def if_(
    cond: TensorLike,
    inputs: Sequence[Any],
    then_branch: DefinedFunction,
    else_branch: DefinedFunction,
    name: str | None = None,
) -> list[Tensor] | Operation:
    """``then_branch(*inputs)`` where `cond` is true, else ``else_branch(*inputs)``.

    Args:
        cond: A tensor. A number is true when it is not zero, a string when it is not empty, and what is no scalar when
            it has elements.
        inputs: Tensors.
        then_branch: A function with as many arguments.
        else_branch: Another, whose results have the same dtypes.
        name: Name of the operation.

    Returns:
        The results, as a list; the operation, if there are none.
    """
    given = [convert_to_tensor(each) for each in inputs]
    return _list_of(
        branch(
            _as_bool(cond),
            lambda: _list_of(then_branch(*given)),
            lambda: _list_of(else_branch(*given)),
            name=name or "If",
            strict=True,
        )
    )


def while_(
    input_: Sequence[Any],
    cond: DefinedFunction,
    body: DefinedFunction,
    name: str | None = None,
    hostmem: Sequence[int] | None = None,
) -> list[Tensor]:
    """``values = body(*values)`` as long as ``cond(*values)`` is true.

    Args:
        input_: The first values, tensors of the dtypes that `cond` and `body` take.
        cond: A function with one result, which is true or false as in `if_`. It uses nothing but its arguments.
        body: A function whose results are the next values.
        name: Name of the operation.
        hostmem: Accepted for TensorFlow 1's sake.

    Returns:
        The last values, as a list.

    Raises:
        ValueError: `cond` uses other tensors of the graph, or takes other dtypes than `body`.
        InvalidArgumentError: `cond` or `body` returns another number of tensors.
    """
    if cond.captured_inputs:
        raise ValueError("While op 'cond' argument must be a function without implicitly captured inputs.")
    if cond.declared_input_types != body.declared_input_types:
        raise ValueError(
            f"While op 'cond' and 'body' signatures do not match. {cond.declared_input_types} vs "
            f"{body.declared_input_types}"
        )
    given = [convert_to_tensor(each, dtype) for each, dtype in zip(input_, body.declared_input_types, strict=True)]

    def condition(*values: Tensor) -> Tensor:
        found = _list_of(cond(*values))
        if not isinstance(found, list) or len(found) != 1:
            count = len(found) if isinstance(found, list) else 0
            raise InvalidArgumentError(f"Expected a single scalar from {cond.name}, but got {count} tensors.")
        return _as_bool(found[0])

    def turn(*values: Tensor) -> list[Tensor]:
        return _as_many(len(values), _list_of(body(*values)), "While")

    return _loop(condition, turn, given, name or "While")


def for_(
    start: TensorLike,
    limit: TensorLike,
    delta: TensorLike,
    inputs: Sequence[Any],
    body: DefinedFunction,
    name: str | None = None,
    hostmem: Sequence[int] | None = None,
    rewrite_with_while: bool | None = None,
) -> list[Tensor]:
    """``values = body(i, *values)`` for each `i` of ``range(start, limit, delta)``.

    Args:
        start: An int32 scalar.
        limit: An int32 scalar.
        delta: An int32 scalar; negative, where `limit` is below `start`.
        inputs: The first values, tensors.
        body: A function of an int32 scalar and the values, whose results are the next values.
        name: Name of the operation.
        hostmem: Accepted for TensorFlow 1's sake.
        rewrite_with_while: Whether the operation is called ``While``, not ``For``.

    Returns:
        The last values, as a list.

    Raises:
        InvalidArgumentError: `start`, `limit` or `delta` is no scalar, or `body` returns another number of tensors; in
            the session: `limit` cannot be reached by steps of `delta`.
    """
    first, last, step = (_scalar(each, what) for each, what in ((start, "start"), (limit, "limit"), (delta, "delta")))
    types = body.declared_input_types[1:]
    given = [convert_to_tensor(each, dtype) for each, dtype in zip(inputs, types, strict=True)]
    up, down = (
        logical_and(greater(step, 0), less_equal(first, last)),
        logical_and(less(step, 0), less_equal(last, first)),
    )
    with control_dependencies([Assert(logical_or(up, down), ["Invalid start/limit/delta:", first, last, step])]):
        turns = floordiv(abs_(last - first) + abs_(step) - 1, abs_(step))

    def turn(number: Tensor, *values: Tensor) -> list[Tensor]:
        returned = _list_of(body(first + number * step, *values))
        with control_dependencies([returned] if isinstance(returned, Operation) else []):
            number = number + 1
        return [number, *_as_many(len(values), returned, "For")]

    name = name or ("While" if rewrite_with_while else "For")
    return _loop(lambda number, *_: less(number, turns), turn, [constant(0), *given], name)[1:]


def gradient(inputs: Sequence[Any], f: DefinedFunction, name: str | None = None) -> list[Tensor]:
    """The gradients of a function with respect to its arguments.

    Args:
        inputs: The arguments of `f`, then the gradients of its results.
        f: A function.
        name: Name of a scope for what is added.

    Returns:
        As many tensors as `f` has arguments: zeros for one that nothing depends on.
    """
    count = len(f.declared_input_types)
    with get_default_graph().name_scope(name or "SymbolicGradient"):
        given = [
            identity(convert_to_tensor(each, dtype))
            for each, dtype in zip(inputs, f.declared_input_types, strict=False)
        ]
        results = _list_of(f(*given))
        if isinstance(results, Operation):
            raise InvalidArgumentError(f"{f.name} has no results, of which there would be gradients")
        outer = [convert_to_tensor(each, result.dtype) for each, result in zip(inputs[count:], results, strict=True)]
        found = gradients(results, given, outer)
        return [zeros_like(x) if d_x is None else convert_to_tensor(d_x) for x, d_x in zip(given, found, strict=True)]


def remote_call(
    target: str | bytes, args: Sequence[Any], Tout: Sequence[DTypeLike], f: DefinedFunction, name: str | None = None
) -> list[Tensor] | Operation:
    """Call a function on another device.

    Args:
        target: Name of the device. It is known when the graph is built.
        args: The arguments, tensors.
        Tout: The dtypes of the results.
        f: A function.
        name: Name of the operation.

    Returns:
        The results, as a list; the operation, if there are none.

    Raises:
        InvalidArgumentError: The results have other dtypes than `Tout`.
    """
    device = target.decode() if isinstance(target, bytes) else target
    with get_default_graph().device(device):
        return _call(f, args, Tout, name or "RemoteCall")


def partitioned_call(
    args: Sequence[Any],
    f: DefinedFunction,
    tout: Iterable[DTypeLike] | None = None,
    executing_eagerly: bool | None = None,
    config: Any = None,
    executor_type: str | None = None,
) -> list[Tensor] | Operation:
    """Call a function whose operations may be on several devices.

    Args:
        args: The arguments, tensors.
        f: A function.
        tout: The dtypes of the results; None stands for what they are.
        executing_eagerly: Accepted for TensorFlow 1's sake, as are `config` and `executor_type`.
        config: See `executing_eagerly`.
        executor_type: See `executing_eagerly`.

    Returns:
        The results, as a list; the operation, if there are none.

    Raises:
        InvalidArgumentError: The results have other dtypes than `tout`.
    """
    return _call(f, args, tout, "PartitionedFunctionCall")


def _call(
    f: DefinedFunction, args: Sequence[Any], types: Iterable[DTypeLike] | None, name: str
) -> list[Tensor] | Operation:
    returned = _list_of(f(*args, name=name))
    if types is not None:
        wanted = [as_dtype(dtype) for dtype in types]
        found = [tensor.dtype for tensor in returned] if isinstance(returned, list) else []
        if found != wanted:
            raise InvalidArgumentError(f"{f.name} returns {found}, expected are {wanted}")
    return returned


def _list_of(returned: Any) -> list[Tensor] | Operation:
    if isinstance(returned, Operation):
        return returned
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _as_many(count: int, returned: list[Tensor] | Operation, kind: str) -> list[Tensor]:
    results = returned if isinstance(returned, list) else []
    if len(results) != count:
        raise InvalidArgumentError(f"{kind} loop body returned {len(results)} arguments. Expected: {count}")
    return results


def _as_bool(value: TensorLike) -> Tensor:
    """What TensorFlow takes a tensor for, as a condition."""
    tensor = convert_to_tensor(value)
    if tensor.shape.rank != 0 and tensor.shape.rank is not None:
        return greater(size(tensor), 0)
    if tensor.dtype is dtypes.bool_:
        return tensor
    if tensor.dtype is dtypes.string:
        return greater(string_length(tensor), 0)
    return not_equal(tensor, cast(0, tensor.dtype))


def _scalar(value: TensorLike, what: str) -> Tensor:
    tensor = convert_to_tensor(value, dtypes.int32)
    if tensor.shape.rank:
        raise InvalidArgumentError(f"{what} must be a scalar, not {tensor!r}")
    return tensor


def _loop(
    condition: Callable[..., Tensor], body: Callable[..., list[Tensor]], given: Sequence[Tensor], name: str
) -> list[Tensor]:
    """The last values of a loop whose values keep their first shapes; where they do not, nothing is known of them."""
    try:
        return list(while_loop(condition, body, list(given), name=name, return_same_structure=True))
    except ValueError:
        anything = [TensorShape(None)] * len(given)
        return list(while_loop(condition, body, list(given), anything, name=name, return_same_structure=True))
