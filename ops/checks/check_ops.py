"""Assertions about values, ranks and dtypes.

Each gives an operation that must run to check anything: put it into `tf.control_dependencies`. What the graph alone
refutes raises `InvalidArgumentError` at once; what it proves costs nothing when a step runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, register
from tfray.framework.sparse_tensor import SparseTensor
from tfray.framework.tensor_shape import SCALAR, ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.arrays.shape_ops import identity, reshape
from tfray.ops.arrays.shape_ops import rank as rank_of
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.slice_ops import getitem
from tfray.ops.checks.print_assert_ops import Assert, refuse_if_false
from tfray.ops.math import comparison_ops
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import add, minimum, multiply, subtract
from tfray.ops.math.reduction_ops import reduce_all

# -- comparisons ---------------------------------------------------------------------------------------


def _assert_compares(
    compare: Callable[[Tensor, Tensor], Tensor],
    sign: str,
    x: TensorLike,
    y: TensorLike,
    options: tuple[Sequence[Any] | None, int | None, str | None],
    name: str | None,
) -> Operation:
    """An assertion that ``compare(x, y)`` holds for every pair of elements."""
    data, summarize, message = options
    with get_default_graph().name_scope(name):
        x = convert_to_tensor(x, y.dtype if isinstance(y, Tensor) and not isinstance(x, Tensor) else None)
        y = convert_to_tensor(y, x.dtype)
        holds = reduce_all(compare(x, y))
        known = constant_value(holds)
        if known is not None and bool(known):
            return no_op("holds_always")
        if data is None:
            data = [f"Condition x {sign} y did not hold element-wise:", f"x ({x.name}) =", x, f"y ({y.name}) =", y]
        shown = _shown(message, data)
        if known is not None and _is_followed(x) and _is_followed(y):
            refuse_if_false(holds, shown)
        return Assert(holds, shown, summarize)


# Through these, besides constants, TensorFlow follows values back when it builds a graph. An assertion about what else
# computes fails in the step that runs it, though the graph may tell before that it will.
_FOLLOWED = frozenset({"Cast", "ConcatV2", "Equal", "Fill", "Identity", "NotEqual", "Pack", "Range", "StopGradient"})


def _is_followed(tensor: Tensor) -> bool:
    op = tensor.op
    if op.type in ("Const", "Rank", "Shape", "Size"):
        return True
    return op.type in _FOLLOWED and all(map(_is_followed, op.inputs))


def _shown(message: str | None, data: Sequence[object]) -> list[object]:
    """What an error shows: the message, if there is one, and the data."""
    return [*([message] if message else []), *data]


def assert_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_equal",
) -> Operation:
    """Assert ``x == y`` for every pair of elements; empty tensors always pass.

    Args:
        x: Any shape and dtype.
        y: A shape that broadcasts with that of `x`, the same dtype.
        data: What the error shows, tensors of any shape; `x` and `y` when None.
        summarize: How many elements of each tensor the error shows; 3 when None.
        message: Begins the error.
        name: Name scope of the operations.

    Returns:
        The operation that checks.

    Raises:
        InvalidArgumentError: While building, when the graph alone refutes the assertion; else at run time.

    Examples:
        >>> x = tf.placeholder(tf.int32, [2])
        >>> with tf.control_dependencies([tf.assert_equal(x[0], x[1])]):
        ...     doubled = x * 2
        >>> session.run(doubled, {x: [3, 3]})
        array([6, 6], dtype=int32)
    """
    return _assert_compares(comparison_ops.equal, "==", x, y, (data, summarize, message), name)


def assert_none_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_none_equal",
) -> Operation:
    """Assert ``x != y`` for every pair of elements. See `assert_equal`.

    The shapes broadcast. The arguments are those of `assert_equal`.
    """
    return _assert_compares(comparison_ops.not_equal, "!=", x, y, (data, summarize, message), name)


def assert_less(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_less",
) -> Operation:
    """Assert ``x < y`` for every pair of elements. See `assert_equal`.

    The shapes broadcast. The arguments are those of `assert_equal`.
    """
    return _assert_compares(comparison_ops.less, "<", x, y, (data, summarize, message), name)


def assert_less_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_less_equal",
) -> Operation:
    """Assert ``x <= y`` for every pair of elements. See `assert_equal`.

    The shapes broadcast. The arguments are those of `assert_equal`.
    """
    return _assert_compares(comparison_ops.less_equal, "<=", x, y, (data, summarize, message), name)


def assert_greater(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_greater",
) -> Operation:
    """Assert ``x > y`` for every pair of elements. See `assert_equal`.

    The shapes broadcast. The arguments are those of `assert_equal`.

    Examples:
        >>> x = tf.placeholder(tf.float32, [2])
        >>> with tf.control_dependencies([tf.assert_greater(x, 0.0)]):
        ...     logarithm = tf.log(x)
        >>> session.run(logarithm, {x: [1.0, 1.0]})
        array([0., 0.], dtype=float32)
    """
    return _assert_compares(comparison_ops.greater, ">", x, y, (data, summarize, message), name)


def assert_greater_equal(
    x: TensorLike,
    y: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_greater_equal",
) -> Operation:
    """Assert ``x >= y`` for every pair of elements. See `assert_equal`.

    The shapes broadcast. The arguments are those of `assert_equal`.

    Examples:
        >>> x = tf.placeholder(tf.float32, [2])
        >>> with tf.control_dependencies([tf.assert_greater_equal(x, 0.0)]):
        ...     root = tf.sqrt(x)
        >>> session.run(root, {x: [4.0, 9.0]})
        array([2., 3.], dtype=float32)
    """
    return _assert_compares(comparison_ops.greater_equal, ">=", x, y, (data, summarize, message), name)


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike | None = None,
    atol: TensorLike | None = None,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_near",
) -> Operation:
    """Assert ``abs(x - y) <= atol + rtol * abs(y)`` for every pair of elements.

    Args:
        x: Any shape, a float dtype.
        y: A shape that broadcasts with that of `x`, the same dtype.
        rtol: Relative tolerance, a scalar; ten times the distance from 1 to the next number of the dtype when None.
        atol: Absolute tolerance, a scalar; the same when None.
        data: What the error shows, tensors of any shape; `x` and `y` when None.
        summarize: As for `assert_equal`.
        message: As for `assert_equal`.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name):
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, x.dtype)
        spacing = 10 * float(ml_dtypes.finfo(x.dtype.numpy).eps)  # type: ignore[no-untyped-call]
        tolerances = [convert_to_tensor(spacing if t is None else t, x.dtype.real_dtype) for t in (rtol, atol)]
        bound = add(tolerances[1], multiply(tolerances[0], absolute(y)))
        if data is None:
            claim = ["x and y not equal to tolerance rtol =", tolerances[0], ", atol =", tolerances[1]]
            data = [*claim, f"x ({x.name}) =", x, f"y ({y.name}) =", y]
        holds = reduce_all(comparison_ops.less_equal(absolute(subtract(x, y)), bound))
        return Assert(holds, _shown(message, data), summarize)


def _against_zero(
    compare: Callable[..., Operation], sign: str, x: TensorLike, options: tuple[Any, Any, Any], name: str | None
) -> Operation:
    x = convert_to_tensor(x)
    data, summarize, message = options
    if data is None:
        data = [f"Condition x {sign} 0 did not hold element-wise:", f"x ({x.name}) =", x]
    return compare(x, zeros_like(x), data, summarize, message, name)


def assert_positive(
    x: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_positive",
) -> Operation:
    """Assert ``x > 0`` for every element. See `assert_equal`.

    `x` may have any shape. The other arguments are those of `assert_equal`.

    Examples:
        >>> x = tf.placeholder(tf.float32, [2])
        >>> with tf.control_dependencies([tf.assert_positive(x)]):
        ...     root = tf.sqrt(x)
        >>> session.run(root, {x: [4.0, 9.0]})
        array([2., 3.], dtype=float32)
    """
    return _against_zero(assert_greater, ">", x, (data, summarize, message), name)


def assert_negative(
    x: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_negative",
) -> Operation:
    """Assert ``x < 0`` for every element. See `assert_equal`.

    `x` may have any shape. The other arguments are those of `assert_equal`.
    """
    return _against_zero(assert_less, "<", x, (data, summarize, message), name)


def assert_non_negative(
    x: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_non_negative",
) -> Operation:
    """Assert ``x >= 0`` for every element. See `assert_equal`.

    `x` may have any shape. The other arguments are those of `assert_equal`.
    """
    return _against_zero(assert_greater_equal, ">=", x, (data, summarize, message), name)


def assert_non_positive(
    x: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_non_positive",
) -> Operation:
    """Assert ``x <= 0`` for every element. See `assert_equal`.

    `x` may have any shape. The other arguments are those of `assert_equal`.
    """
    return _against_zero(assert_less_equal, "<=", x, (data, summarize, message), name)


# -- ranks ---------------------------------------------------------------------------------------------


def assert_rank(
    x: TensorLike,
    rank: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_rank",
) -> Operation:
    """Assert that `x` has `rank` dimensions.

    Args:
        x: Any shape and dtype.
        rank: Scalar integer.
        data: What the error shows; the rank and the name of `x` when None.
        summarize: How many elements of each tensor the error shows; 3 when None.
        message: Begins the error.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: While building, when the graph alone refutes the assertion, or `rank` is no scalar; else
            at run time.
        ArgumentError: Which is a `TypeError`: `rank` is not int32.
    """
    return _assert_rank(assert_equal, "", x, rank, (data, summarize, message), name)


def assert_rank_at_least(
    x: TensorLike,
    rank: TensorLike,
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_rank_at_least",
) -> Operation:
    """Assert that `x` has `rank` dimensions or more. See `assert_rank`."""
    return _assert_rank(assert_greater_equal, "at least ", x, rank, (data, summarize, message), name)


def assert_rank_in(
    x: TensorLike,
    ranks: Sequence[TensorLike],
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = "assert_rank_in",
) -> Operation:
    """Assert that the number of dimensions of `x` is one of `ranks`. See `assert_rank`."""
    with get_default_graph().name_scope(name):
        x = convert_to_tensor(x)
        wanted = [_one_rank(each, message) for each in ranks]
        known = [int(value) for value in map(constant_value, wanted) if value is not None]
        if x.shape.rank in known:
            return no_op("holds_always")
        if x.shape.rank is not None and len(known) == len(wanted):
            raise _wrong_rank(x, f"in {tuple(known)}", message)
        found = [comparison_ops.equal(rank_of(x), each) for each in wanted]
        some = functools.reduce(comparison_ops.logical_or, found, convert_to_tensor(False))
        if data is None:
            data = [f"Tensor {x.name} must have rank in", *wanted, "Received shape:", shape_of(x)]
        return Assert(some, _shown(message, data), summarize)


def _assert_rank(
    compare: Callable[..., Operation],
    relation: str,
    x: TensorLike,
    rank: TensorLike,
    options: tuple[Any, Any, Any],
    name: str | None,
) -> Operation:
    x = convert_to_tensor(x)
    data, summarize, message = options
    wanted = _one_rank(rank, message)
    known = constant_value(wanted)
    if known is not None and x.shape.rank is not None:
        if (compare is assert_equal and x.shape.rank != known) or x.shape.rank < known:
            raise _wrong_rank(x, f"{relation}{known}", message)
        return no_op("static_checks_determined_all_ok")
    if data is None:
        data = [f"Tensor {x.name} must have rank {relation}".rstrip(), wanted, "Received shape:", shape_of(x)]
    return compare(rank_of(x), wanted, data, summarize, message, name)


def _one_rank(rank: TensorLike, message: str | None) -> Tensor:
    """A rank as a tensor: a scalar of int32, which is checked at run time where the graph does not know its shape."""
    wanted = convert_to_tensor(rank)
    assert_type(wanted, dtypes.int32, message)
    if wanted.shape.rank is None:
        is_scalar = comparison_ops.equal(rank_of(wanted), 0)
        with get_default_graph().control_dependencies(
            [Assert(is_scalar, _shown(message, ["Rank must be a scalar. Received rank:", wanted]))]
        ):
            return identity(wanted)
    if wanted.shape.rank != 0:
        raise InvalidArgumentError(f"{_begin(message)}Rank must be a scalar, not {wanted!r}")
    return wanted


def _begin(message: str | None) -> str:
    return f"{message}.  " if message else ""


def _wrong_rank(x: Tensor, wanted: str, message: str | None) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{_begin(message)}Tensor {x.name} must have rank {wanted}.  Received rank {x.shape.rank}, shape {x.shape}"
    )


def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> Tensor:
    """Return `tensor`. Raises `InvalidArgumentError` unless its static shape is that of a scalar."""
    tensor = convert_to_tensor(tensor, name=name)
    if tensor.shape != SCALAR:
        raise InvalidArgumentError(
            f"{_begin(message)}Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}."
        )
    return tensor


def assert_shapes(
    shapes: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    data: Sequence[object] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Assert the shapes of tensors, and that sizes with one name are equal in all of them.

    Args:
        shapes: Each tensor with its sizes: whole numbers, names (any hashable), and None or ``"."`` for any size. If
            the first is ``...`` or ``"*"``, the others are the last sizes of a tensor of any rank. A scalar counts as
            a vector of one element. A dictionary, or pairs.
        data: What the error shows; the sizes that differ when None.
        summarize: How many elements of each tensor the error shows; 3 when None.
        message: Begins the error.
        name: Name scope of the operations.

    Returns:
        An operation that checks what the graph alone cannot tell.

    Raises:
        InvalidArgumentError: The graph alone shows that a shape is another. When run: a shape is another.
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    options = (data, summarize, message)
    named: dict[Any, tuple[int | Tensor, str]] = {}
    checks: list[Operation] = []
    with get_default_graph().name_scope(name or "assert_shapes") as scope:
        for tensor, wanted in pairs:
            tensor = convert_to_tensor(tensor)
            sizes = tuple(wanted)
            is_end = bool(sizes) and (sizes[0] is Ellipsis or sizes[0] == "*")
            sizes = sizes[1:] if is_end else sizes or (1,)
            last = _last_sizes(tensor, len(sizes), is_end, options, checks)
            for index, (size, found) in enumerate(zip(sizes, last, strict=True)):
                if size is None or size == ".":
                    continue
                dimension = index - len(sizes) if is_end else index
                explicit = _whole_number(size)
                first = (found, f"Specified by tensor {tensor.name} dimension {dimension}")
                wanted_size, reason = (
                    named.setdefault(size, first) if explicit is None else (explicit, "Specified explicitly")
                )
                _check_size(tensor, dimension, found, wanted_size, reason, options, checks)
        return group(*checks, name=scope)


_Options = tuple[Sequence[object] | None, int | None, str | None]


def _last_sizes(x: Tensor, count: int, is_end: bool, options: _Options, checks: list[Operation]) -> list[Any]:
    """The last `count` sizes of `x`: whole numbers, or scalars for those that the graph does not know."""
    if x.shape.rank is None:
        checks.append((assert_rank_at_least if is_end else assert_rank)(x, count, *options))
        return [getitem(shape_of(x), index - count) for index in range(count)]
    sizes = list(x.shape.sizes) or [1]
    if len(sizes) < count or (len(sizes) > count and not is_end):
        raise _wrong_rank(x, f"at least {count}" if is_end else "in (0, 1)" if count == 1 else f"{count}", options[2])
    first = len(sizes) - count
    return [getitem(shape_of(x), first + i) if size is None else size for i, size in enumerate(sizes[first:])]


def _whole_number(size: Any) -> int | None:
    try:
        return int(size)
    except (TypeError, ValueError):
        return None


def _check_size(
    x: Tensor, dimension: int, size: Any, wanted: Any, reason: str, options: _Options, checks: list[Operation]
) -> None:
    if size is wanted:
        return
    data, summarize, message = options
    claim = f"{reason}.  Tensor {x.name} dimension {dimension} must have size"
    if isinstance(size, Tensor) or isinstance(wanted, Tensor):
        shown = [claim, wanted, "Received shape:", shape_of(x)] if data is None else data
        checks.append(assert_equal(size, wanted, shown, summarize, message))
    elif size != wanted:
        raise InvalidArgumentError(f"{_begin(message)}{claim} {wanted}.  Received size {size}, shape {x.shape}")


# -- dtypes and orders ---------------------------------------------------------------------------------


def assert_type(
    tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> Operation:
    """Raise `ArgumentError`, a `TypeError`, unless `tensor`, of any shape, is of dtype `tf_type`; the operation
    returned does nothing.
    """
    tensor, wanted = convert_to_tensor(tensor), as_dtype(tf_type)
    if tensor.dtype is not wanted:
        raise _wrong_dtype(tensor, str(wanted), message)
    return no_op(name or "assert_type")


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """Raise `ArgumentError`, a `TypeError`, unless `x`, of any shape, is of an integer dtype; the operation returned
    does nothing.
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_integer:
        raise ArgumentError(f'{_begin(message)}Expected "{x.name}" to be of an integer type. Found: {x.dtype!r}')
    return no_op(name or "assert_integer")


def _wrong_dtype(x: Tensor, wanted: str, message: str | None) -> ArgumentError:
    return ArgumentError(f"{_begin(message)}{x.name} must be of type {wanted}; found: {x.dtype!r}")


def assert_same_float_dtype(tensors: Iterable[Any] | None = None, dtype: DTypeLike | None = None) -> DType:
    """The floating dtype that all of `tensors`, and `dtype` where it is given, have; float32 if there is none.

    Args:
        tensors: Tensors of any shape; None stands for one of any dtype.
        dtype: The dtype that they must have.

    Raises:
        ArgumentError: Which is a `ValueError` and `TypeError`: dtypes differ, or are not floating.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for each in tensors or ():
        if each is not None:
            wanted = wanted or as_dtype(each.dtype)
            if as_dtype(each.dtype) is not wanted:
                raise _wrong_dtype(each, wanted.name, None)
    if wanted is not None and not wanted.is_floating:
        raise ArgumentError(f"the dtype of the tensors is {wanted.name}, expected a floating dtype")
    return wanted or dtypes.float32


def assert_proper_iterable(values: Any) -> None:
    """Raise `TypeError` unless `values` is an iterable, of tensors of any shape: no tensor itself, array, or string."""
    if isinstance(values, (Tensor, SparseTensor, np.ndarray, str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable, such as a list.  Found: {type(values)}')


def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Whether `tensor`, of any shape, is a `Tensor` of numbers: not of bools or strings."""
    return isinstance(tensor, Tensor) and tensor.dtype.kind in ("int", "uint", "float", "complex")


def is_non_decreasing(x: TensorLike, name: str | None = "is_non_decreasing") -> Tensor:
    """Whether each element of `x`, in row-major order, is at least the one before: a bool scalar."""
    return _neighbours_compare(comparison_ops.greater_equal, x, name)


def is_strictly_increasing(x: TensorLike, name: str | None = "is_strictly_increasing") -> Tensor:
    """Whether each element of `x`, in row-major order, exceeds the one before: a bool scalar."""
    return _neighbours_compare(comparison_ops.greater, x, name)


def _neighbours_compare(compare: Callable[[Tensor, Tensor], Tensor], x: TensorLike, name: str | None) -> Tensor:
    with get_default_graph().name_scope(name):
        flat = reshape(x, [-1])
        return reduce_all(compare(getitem(flat, slice(1, None)), getitem(flat, slice(None, -1))))


# -- weights of values ---------------------------------------------------------------------------------


def assert_broadcastable(weights: TensorLike, values: TensorLike) -> Operation:
    """An operation that checks that weights can be spread over values: see `broadcastable`."""
    return _unspread(convert_to_tensor(weights), convert_to_tensor(values)) or no_op("assert_broadcastable")


def broadcastable(weights: TensorLike, values: TensorLike) -> Tensor:
    """Weights that can be spread over values. What else would broadcast is mostly a mistake.

    Args:
        weights: A scalar, or a tensor of the rank of `values` with each size 1 or theirs.
        values: Shape ``[...]``.

    Returns:
        The weights.

    Raises:
        InvalidArgumentError: They have another rank, or sizes that do not match: now, if the shapes are known, else
            when a step runs.
    """
    weights, values = convert_to_tensor(weights), convert_to_tensor(values)
    check = _unspread(weights, values)
    if check is None:
        return weights
    with get_default_graph().control_dependencies([check]):
        return identity(weights)


def _unspread(weights: Tensor, values: Tensor) -> Operation | None:
    """What checks in a step that weights can be spread over values; None if the shapes tell it."""
    ranks = weights.shape.rank, values.shape.rank
    sizes = [] if None in ranks else list(zip(weights.shape.as_list(), values.shape.as_list(), strict=False))
    fits = ranks[0] in (0, ranks[1]) and all(a in (None, 1) or b is None or a == b for a, b in sizes)
    if None not in ranks and not fits:
        raise InvalidArgumentError(
            f"weights can not be broadcast to values. values.rank={ranks[1]}. weights.rank={ranks[0]}. "
            f"values.shape={values.shape}. weights.shape={weights.shape}. "
            "Expected a scalar, or the rank of the values with each size 1 or that of the values"
        )
    if ranks[0] == 0 or (None not in ranks and all(a == 1 or None not in (a, b) for a, b in sizes)):
        return None
    mine, theirs = shape_of(weights), shape_of(values)
    told = ["weights can not be broadcast to values. values.shape=", theirs, "weights.shape=", mine]
    if None in ranks:
        rank = rank_of(weights)
        is_scalar, is_same = comparison_ops.equal(rank, 0), comparison_ops.equal(rank, rank_of(values))
        count = minimum(rank, rank_of(values))  # of what can be compared, whether or not the ranks are the same
        fit = _all_fit(getitem(mine, slice(None, count)), getitem(theirs, slice(None, count)))
        return Assert(comparison_ops.logical_or(is_scalar, comparison_ops.logical_and(is_same, fit)), told)
    return Assert(_all_fit(mine, theirs), told)


def _all_fit(mine: Tensor, theirs: Tensor) -> Tensor:
    return reduce_all(comparison_ops.logical_or(comparison_ops.equal(mine, 1), comparison_ops.equal(mine, theirs)))


# -- shapes --------------------------------------------------------------------------------------------


def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Return `x`, whose shape is known from here on, and is checked while running.

    Args:
        x: A tensor of any shape and dtype.
        shape: The shape: a `TensorShape` or a list with None for sizes that may be any.
        name: Name of the operation.

    Returns:
        The value and dtype of `x`, with the static shape `shape`.

    Raises:
        InvalidArgumentError: The static shape contradicts `shape`; or while running, the actual one.
    """
    return add_op(ENSURE_SHAPE, x, name=name, shape=TensorShape(shape))


def _check_like(name: str, found: TensorShape, wanted: TensorShape) -> None:
    """Raise `InvalidArgumentError` if a tensor does not have the shape that `ensure_shape` was given."""
    if not wanted.is_compatible_with(found):
        sizes = [",".join("?" if n is None else str(n) for n in shape.as_list()) for shape in (found, wanted)]
        ranks = "" if found.rank == wanted.rank else f". Shape must be rank {wanted.rank} but is rank {found.rank}"
        raise InvalidArgumentError(
            f"Shape of tensor {name} [{sizes[0]}] is not compatible with expected shape [{sizes[1]}]: "
            f"they are incompatible{ranks}"
        )


def _ensure_shape_kernel(ctx: KernelContext, x: Array) -> Array:
    _check_like(ctx.op_name, TensorShape(x.shape), TensorShape(ctx.attr("shape")))
    return x


def _ensured_shape(op: Operation) -> list[TensorShape]:
    found, wanted = op.inputs[0].shape, TensorShape(op.attr("shape"))
    _check_like(op.inputs[0].name, found, wanted)
    return [found.merge_with(wanted)]


def _ensure_shape_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [d_output]


ENSURE_SHAPE = register(
    OpDef(
        name="EnsureShape",
        inputs=("input: T",),
        outputs=("output: T",),
        attrs=("shape",),
        types={"T": dtypes.VALUES},
        shape=_ensured_shape,
        kernels=on_every_device(_ensure_shape_kernel),
        gradient=_ensure_shape_gradient,
    )
)
