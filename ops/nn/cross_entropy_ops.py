"""Softmax and the cross entropies between labels and logits, computed so that no exponential can overflow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import by_either_name
from tfray.framework.convert import add_op, convert_alike, convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    ArrayModule,
    KernelContext,
    KernelFunction,
    OpDef,
    on_every_device,
    out_kernel,
    register,
)
from tfray.framework.shape_functions import all_inputs_alike, broadcast, normalize_axis
from tfray.framework.tensor_shape import TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import broadcast_to, sum_to_shape_of, where, zeros_like
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.join_ops import concat, late_index
from tfray.ops.arrays.partition_ops import setdiff1d
from tfray.ops.arrays.shape_ops import cast, expand_dims, identity, reshape, stop_gradient, transpose
from tfray.ops.arrays.shape_ops import rank as rank_of
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.arrays.slice_ops import getitem
from tfray.ops.checks.check_ops import assert_equal
from tfray.ops.kernels.compiled_rows import can_compute, compute_rows
from tfray.ops.kernels.copies import fill
from tfray.ops.kernels.precision import is_half, widened
from tfray.ops.kernels.products import matrix_product
from tfray.ops.kernels.tiles import buffer, for_each_rows, map_flat
from tfray.ops.math import arithmetic_ops
from tfray.ops.math.arithmetic_ops import add, exp, log, multiply, negative, subtract
from tfray.ops.math.axis_ops import from_front, last_axis_first
from tfray.ops.math.comparison_ops import less_equal
from tfray.ops.math.reduction_ops import reduce_prod, reduce_sum
from tfray.ops.math.transcendental_ops import log1p, sigmoid
from tfray.ops.nn.activation_ops import log1p_exp_formula, relu, zeros_for
from tfray.ops.nn.device import device_kernels

_LARGE_ELEMENTS: Final = 1 << 18
"""Elements from which a second thread pays. It is below `LARGE_ELEMENTS` because exponentials cost more than copies."""


def _at_least_vector(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank_at_least(1)]


def _as_rows(array: Array) -> Array:
    return array.reshape(-1, array.shape[-1])


def _row_max(xp: ArrayModule, rows: Array) -> Array:
    """The greatest of each row, [rows, 1]."""
    if xp is not np or rows.shape[1] > 32 or len(rows) < 512:
        return rows.max(axis=1, keepdims=True)
    # NumPy's reduction is slow for many short rows: take the elementwise maximum of the columns instead.
    greatest = rows[:, 0].copy()
    for column in range(1, rows.shape[1]):
        np.maximum(greatest, rows[:, column], out=greatest)
    return greatest[:, None]


@lru_cache(maxsize=64)
def _ones(count: int, dtype: DTypeLike) -> Array:
    return np.ones(count, dtype)


def _row_sum(xp: ArrayModule, rows: Array) -> Array:
    """The sum of each row, [rows, 1]."""
    if xp is not np:
        return rows.sum(axis=1, keepdims=True)
    return matrix_product(np, rows, _ones(rows.shape[1], rows.dtype))[:, None]  # BLAS adds faster than NumPy


# -- softmax -------------------------------------------------------------------------------------------


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """Compute ``exp(logits) / sum(exp(logits))`` along `axis`.

    Args:
        logits: Shape ``[..., classes]``, a float dtype.
        axis: Where the classes stand; the last dimension when None.
        name: Name of the operation.
        dim: Old name of `axis`.

    Returns:
        Same shape and dtype.

    Raises:
        InvalidArgumentError: The axis is out of range, or `logits` is a scalar.

    Examples:
        >>> session.run(tf.nn.softmax([[1.0, 1.0], [0.0, 2.0]]))
        array([[0.5       , 0.5       ],
               [0.11920292, 0.880797  ]], dtype=float32)
    """
    return _along_axis(SOFTMAX, logits, by_either_name("softmax", axis=axis, dim=dim), name)


def _along_axis(definition: OpDef, logits: TensorLike, axis: TensorLike | None, name: str | None) -> Tensor:
    logits = convert_to_tensor(logits)
    axis = -1 if axis is None else late_index(axis, 0, f"{definition.name}: axis")
    is_late = isinstance(axis, Tensor)
    if not is_late and (axis == -1 or (logits.shape.rank is not None and axis == logits.shape.rank - 1)):
        return add_op(definition, logits, name=name)
    order = _swapping_order(logits, axis, definition.name)
    result = transpose(add_op(definition, transpose(logits, order)), order, name=name or definition.name)
    result.set_shape(logits.shape)
    return result


def _swapping_order(tensor: Tensor, axis: Any, what: str) -> Any:
    """The permutation that swaps `axis` with the last dimension; its last entry is `axis` counted from the front."""
    rank = tensor.shape.rank
    if rank is None or isinstance(axis, Tensor):
        return last_axis_first(from_front(axis, tensor), tensor)
    try:
        axis = normalize_axis(axis, rank)
    except ValueError as error:
        raise InvalidArgumentError(f"{what}: {error}") from error
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return order


def _by_rows(compiled: str, work: Callable[..., None]) -> KernelFunction:
    """The kernel of an operation on rows: a compiled one, or else ``work(xp, *inputs, out)`` on a part of the rows."""

    def kernel(ctx: KernelContext, *inputs: Array, out: Array | None = None) -> Array:
        if out is None:
            out = ctx.xp.empty(inputs[0].shape, inputs[0].dtype)
        if out.size == 0:
            return out
        arrays = [_as_rows(array) for array in (*inputs, out)]
        if can_compute(ctx.xp, *arrays[:-1]):
            compute_rows("softmax", compiled, *arrays[0].shape, *arrays)
            return out

        def work_on(part: slice) -> None:
            work(ctx.xp, *(array[part] for array in arrays))

        for_each_rows(ctx.xp, work_on, arrays[0], _LARGE_ELEMENTS)
        return out

    in_float32 = widened(kernel)

    @wraps(kernel)
    def chosen(ctx: KernelContext, *inputs: Array, out: Array | None = None) -> Array:
        if not device_kernels.has_kernels(ctx.xp, *inputs):
            return in_float32(ctx, *inputs, out=out)
        if out is None:
            out = ctx.xp.empty(inputs[0].shape, inputs[0].dtype)
        on_device = device_kernels.softmax_gradient if compiled.endswith("gradient") else device_kernels.softmax
        on_device(ctx.xp, *map(_as_rows, (*inputs, out)), is_log=compiled.startswith("log"))
        return out

    return chosen


def _softmax_rows(xp: ArrayModule, logits: Array, out: Array) -> None:
    powers = _shifted(xp, logits, out)
    xp.exp(powers, out=powers)
    xp.divide(powers, _row_sum(xp, powers), out=powers)


def _shifted(xp: ArrayModule, logits: Array, out: Array) -> Array:
    """Write the logits minus the greatest of their row to `out`."""
    return xp.subtract(logits, _row_max(xp, logits), out=out)


def _softmax_gradient(op: Operation, d_softmax: Tensor) -> list[Tensor | None]:
    return [add_op(SOFTMAX_GRAD, d_softmax, op.outputs[0])]


SOFTMAX = register(
    OpDef(
        name="Softmax",
        inputs=("logits: T",),
        outputs=("softmax: T",),
        types={"T": dtypes.FLOATS},
        shape=_at_least_vector,
        kernels=on_every_device(out_kernel(_by_rows("softmax", _softmax_rows), may_overwrite=(0,))),
        gradient=_softmax_gradient,
    )
)


def softmax_grad(gradients: TensorLike, outputs: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``(gradients - sum(gradients * outputs)) * outputs``: the gradient of `softmax` from its outputs.

    The arguments and the result have one shape and dtype; sums are over the last dimension.
    """
    return add_op(SOFTMAX_GRAD, gradients, outputs, name=name)


def _softmax_grad_rows(xp: ArrayModule, d: Array, y: Array, out: Array) -> None:
    product = xp.multiply(d, y, out=buffer(xp, "product", y.shape, y.dtype))
    xp.subtract(d, _row_sum(xp, product), out=product)
    xp.multiply(product, y, out=out)


def _softmax_grad_gradient(op: Operation, u: Tensor) -> list[Tensor | None]:
    d, y = op.inputs
    d_y = subtract(
        multiply(u, subtract(d, reduce_sum(multiply(d, y), -1, True))),
        multiply(d, reduce_sum(multiply(u, y), -1, True)),
    )
    return [softmax_grad(u, y), d_y]


SOFTMAX_GRAD = register(
    OpDef(
        name="SoftmaxGrad",
        inputs=("gradients: T", "outputs: T"),
        outputs=("backprops: T",),
        types={"T": dtypes.FLOATS},
        shape=all_inputs_alike,
        kernels=on_every_device(out_kernel(_by_rows("softmax_gradient", _softmax_grad_rows), may_overwrite=(0, 1))),
        gradient=_softmax_grad_gradient,
    )
)


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """Compute the logarithm of `softmax`, without rounding small probabilities to 0.

    The arguments are those of `softmax`; the result has the shape and dtype of `logits`.

    Examples:
        >>> session.run(tf.nn.log_softmax([[1.0, 1.0], [0.0, 2.0]]))
        array([[-0.6931472 , -0.6931472 ],
               [-2.126928  , -0.12692805]], dtype=float32)
    """
    return _along_axis(LOG_SOFTMAX, logits, by_either_name("log_softmax", axis=axis, dim=dim), name)


def _log_softmax_rows(xp: ArrayModule, logits: Array, out: Array) -> None:
    shifted = _shifted(xp, logits, out)
    powers = xp.exp(shifted, out=buffer(xp, "powers", shifted.shape, shifted.dtype))
    xp.subtract(shifted, xp.log(_row_sum(xp, powers)), out=shifted)


def _log_softmax_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [add_op(LOG_SOFTMAX_GRAD, d_output, op.outputs[0])]


LOG_SOFTMAX = register(
    OpDef(
        name="LogSoftmax",
        inputs=("logits: T",),
        outputs=("logsoftmax: T",),
        types={"T": dtypes.FLOATS},
        shape=_at_least_vector,
        kernels=on_every_device(out_kernel(_by_rows("log_softmax", _log_softmax_rows), may_overwrite=(0,))),
        gradient=_log_softmax_gradient,
    )
)


def _log_softmax_grad_rows(xp: ArrayModule, d: Array, y: Array, out: Array) -> None:
    powers = xp.exp(y, out=buffer(xp, "powers", d.shape, d.dtype))
    xp.multiply(powers, _row_sum(xp, d), out=powers)
    xp.subtract(d, powers, out=out)


def _log_softmax_grad_gradient(op: Operation, u: Tensor) -> list[Tensor | None]:
    d, y = op.inputs
    weighted = multiply(u, exp(y))
    return [subtract(u, reduce_sum(weighted, -1, True)), negative(multiply(weighted, reduce_sum(d, -1, True)))]


LOG_SOFTMAX_GRAD = register(
    OpDef(
        name="LogSoftmaxGrad",
        inputs=("gradients: T", "outputs: T"),
        outputs=("backprops: T",),
        types={"T": dtypes.FLOATS},
        shape=all_inputs_alike,
        kernels=on_every_device(
            out_kernel(_by_rows("log_softmax_gradient", _log_softmax_grad_rows), may_overwrite=(0, 1))
        ),
        gradient=_log_softmax_grad_gradient,
    )
)


# -- cross entropy with distributions ------------------------------------------------------------------


def softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int | None = None,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """Compute `softmax_cross_entropy_with_logits_v2` with labels to which no gradient flows.

    Args:
        _sentinel: Not used: pass the other arguments by name.
        labels: Shape ``[..., classes]``, each row a distribution; the shape and dtype of `logits`.
        logits: Shape ``[..., classes]``, unscaled log probabilities, a float dtype.
        dim: Old name of `axis`.
        name: Name of the operation.
        axis: Where the classes stand; the last dimension when None.

    Returns:
        Shape ``[...]``, without the classes.

    Examples:
        >>> labels, logits = [[0.0, 1.0]], [[1.0, 1.0]]
        >>> session.run(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        array([0.6931472], dtype=float32)
    """
    labels, logits = _by_name_only("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    constant_labels = stop_gradient(convert_to_tensor(labels))
    axis = by_either_name("softmax_cross_entropy_with_logits", axis=axis, dim=dim)
    return softmax_cross_entropy_with_logits_v2(
        constant_labels, logits, axis, name or "softmax_cross_entropy_with_logits_sg"
    )


def _by_name_only(
    op: str, sentinel: object, labels: TensorLike | None, logits: TensorLike | None
) -> tuple[TensorLike, TensorLike]:
    """Labels and logits, which must both be given, and by name."""
    if sentinel is not None:
        raise InvalidArgumentError(f"Only call `{op}` with named arguments (labels=..., logits=..., ...)")
    if labels is None or logits is None:
        raise InvalidArgumentError(f"{op}: Both labels and logits must be provided")
    return labels, logits


def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike, logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Compute the cross entropy between distributions over classes and the softmax of logits.

    Args:
        labels: Shape ``[..., classes]``, each row a distribution; the shape and dtype of `logits`.
        logits: Shape ``[..., classes]``, unscaled log probabilities, a float dtype. Half precision is computed in
            float32.
        axis: Where the classes stand; the last dimension when None.
        name: Name of the operation.
        dim: Old name of `axis`.

    Returns:
        ``-sum(labels * log(softmax(logits)))`` along `axis`, which disappears: shape ``[...]``.

    Raises:
        InvalidArgumentError: Shapes that differ, or an axis out of range.

    Examples:
        >>> labels, logits = [[0.0, 1.0]], [[1.0, 1.0]]
        >>> session.run(tf.nn.softmax_cross_entropy_with_logits_v2(labels, logits))
        array([0.6931472], dtype=float32)
    """
    axis = by_either_name("softmax_cross_entropy_with_logits", axis=axis, dim=dim)
    name = name or "softmax_cross_entropy_with_logits"
    with get_default_graph().name_scope(name) as scope:
        logits = convert_to_tensor(logits)
        dtype = logits.dtype
        labels = cast(convert_to_tensor(labels), dtype)
        axis = -1 if axis is None else late_index(axis, 0, f"{name}: axis")
        if isinstance(axis, Tensor) or axis != -1:
            logits, labels = (_with_last(tensor, axis, name) for tensor in (logits, labels))
        if 0 in (labels.shape.rank, logits.shape.rank):
            raise InvalidArgumentError(
                f"{name}: labels {labels.shape} and logits {logits.shape}: expected rank 1 or more"
            )
        if labels.shape.is_fully_defined() and logits.shape.is_fully_defined() and labels.shape != logits.shape:
            common = broadcast_shapes(labels.shape, logits.shape)
            logits, labels = (broadcast_to(tensor, common) for tensor in (logits, labels))
        flat_logits, flat_labels = _rows_of(logits), _rows_of(labels)
        rows = map(_in_single_precision, (flat_logits, flat_labels))
        losses = add_op(SOFTMAX_CROSS_ENTROPY, *rows, name=scope)[0]
        return identity(_outer_shaped(cast(losses, dtype), logits), "Reshape_2")  # TensorFlow's name of the result


def _with_last(tensor: Tensor, axis: Any, what: str) -> Tensor:
    """`tensor` with one dimension moved behind the others."""
    if tensor.shape.rank is None or isinstance(axis, Tensor):
        last = reshape(from_front(axis, tensor), [1])
        return transpose(tensor, concat([setdiff1d(range_(rank_of(tensor)), last).out, last], 0))
    last = _swapping_order(tensor, axis, what)[-1]
    return transpose(tensor, [*(i for i in range(len(tensor.shape)) if i != last), last])


def _in_single_precision(tensor: Tensor) -> Tensor:
    return cast(tensor, dtypes.float32) if tensor.dtype.size == 2 else tensor


def _rows_of(tensor: Tensor) -> Tensor:
    """A tensor as a matrix of its last dimension."""
    if tensor.shape.rank == 2:
        return tensor
    if tensor.shape.rank == 0:
        raise InvalidArgumentError(f"cross entropy: Logits cannot be scalars - received shape {tensor.shape}")
    columns = None if tensor.shape.rank is None else tensor.shape.sizes[-1]
    if columns:
        return reshape(tensor, [-1, columns])
    sizes = shape_of(tensor)
    # Of no classes at all the number of rows cannot be inferred by -1.
    return reshape(tensor, [reduce_prod(getitem(sizes, slice(None, -1))), getitem(sizes, -1)])


def _outer_shaped(losses: Tensor, logits: Tensor) -> Tensor:
    """One loss per row in the shape that `logits` has before its last dimension."""
    if logits.shape.rank == 2:
        return losses
    result = reshape(losses, getitem(shape_of(logits), slice(None, -1)))
    if logits.shape.rank is not None:
        result.set_shape(logits.shape[:-1])
    return result


def _softmax_cross_entropy_kernel(ctx: KernelContext, logits: Array, labels: Array) -> tuple[Array, Array]:
    xp = ctx.xp
    losses, backprop = xp.empty(logits.shape[:1], logits.dtype), xp.empty(logits.shape, logits.dtype)
    if logits.size == 0:
        fill(losses, 0)
        return losses, backprop
    if can_compute(xp, logits, labels):
        compute_rows("softmax", "cross_entropy", *logits.shape, logits, labels, losses, backprop)
        return losses, backprop
    if device_kernels.has_kernels(xp, logits, labels):
        device_kernels.cross_entropy(xp, logits, labels, losses, backprop)
        return losses, backprop

    def work(part: slice) -> None:
        wanted = labels[part]
        shifted = _shifted(xp, logits[part], buffer(xp, "shifted", wanted.shape, logits.dtype))
        powers = xp.exp(shifted, out=backprop[part])
        total = _row_sum(xp, powers)
        xp.divide(powers, total, out=powers)
        xp.subtract(powers, wanted, out=powers)
        xp.subtract(xp.log(total), shifted, out=shifted)
        losses[part] = _row_sum(xp, xp.multiply(shifted, wanted, out=shifted))[:, 0]

    for_each_rows(xp, work, logits, _LARGE_ELEMENTS)
    return losses, backprop


def _softmax_cross_entropy_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank(2).merge_with(op.inputs[1].shape)
    return [shape[:1], shape]


def _softmax_cross_entropy_gradient(
    op: Operation, d_losses: Tensor | None, d_backprop: Tensor | None
) -> list[Tensor | None]:
    d_logits, d_labels = _d_logits(op, d_losses, d_backprop), None
    if d_losses is not None:
        d_labels = negative(multiply(expand_dims(d_losses, -1), log_softmax(op.inputs[0])))
    if d_backprop is not None:
        d_labels = negative(d_backprop) if d_labels is None else subtract(d_labels, d_backprop)
    return [d_logits, d_labels]


def _d_logits(op: Operation, d_losses: Tensor | None, d_backprop: Tensor | None) -> Tensor | None:
    """Gradient of the logits. The output `backprop` is softmax minus labels: its gradient makes second derivatives."""
    d_logits = None if d_losses is None else multiply(expand_dims(d_losses, -1), op.outputs[1])
    if d_backprop is None:
        return d_logits
    through_softmax = softmax_grad(d_backprop, softmax(op.inputs[0]))
    return through_softmax if d_logits is None else add(d_logits, through_softmax)


SOFTMAX_CROSS_ENTROPY = register(
    OpDef(
        name="SoftmaxCrossEntropyWithLogits",
        inputs=("features: T", "labels: T"),
        outputs=("loss: T", "backprop: T"),
        types={"T": (dtypes.float32, dtypes.float64)},
        shape=_softmax_cross_entropy_shape,
        kernels=on_every_device(_softmax_cross_entropy_kernel),
        gradient=_softmax_cross_entropy_gradient,
    )
)


# -- cross entropy with class numbers ------------------------------------------------------------------


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the cross entropy between class numbers and the softmax of logits.

    Args:
        _sentinel: Not used: pass the other arguments by name.
        labels: Shape ``[...]``, int32 or int64: the number of the right class, at least 0 and below ``classes``.
        logits: Shape ``[..., classes]``, a float dtype. Half precision is computed in float32.
        name: Name of the operation.

    Returns:
        ``-log(softmax(logits)[label])``, the shape of `labels`.

    Raises:
        InvalidArgumentError: Shapes that do not meet; in a step, a label out of range (on a GPU its loss is NaN).

    Examples:
        >>> logits = [[1.0, 1.0], [0.0, 2.0]]
        >>> session.run(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=logits))
        array([0.6931472, 2.126928 ], dtype=float32)
    """
    labels, logits = _by_name_only("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "SparseSoftmaxCrossEntropyWithLogits"):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        _check_label_shape(labels, logits)
        rows = _in_single_precision(_rows_of(logits))
        if logits.shape.rank == 2:  # the kernel compares the shapes
            return cast(add_op(SPARSE_SOFTMAX_CROSS_ENTROPY, rows, labels)[0], logits.dtype)
        flat_labels = reshape(_of_shape_of_rows(labels, logits), [-1])
        losses = cast(add_op(SPARSE_SOFTMAX_CROSS_ENTROPY, rows, flat_labels)[0], logits.dtype)
        result = reshape(losses, shape_of(labels))
        result.set_shape(labels.shape)
        return result


def _of_shape_of_rows(labels: Tensor, logits: Tensor) -> Tensor:
    """`labels`. The step fails where they do not have the shape of `logits` without its last dimension."""
    if labels.shape.is_fully_defined() and logits.shape[:-1].is_fully_defined():
        return labels
    shapes = shape_of(labels), shape_of(logits)[:-1]
    with get_default_graph().device("/device:CPU:0"):  # no other device holds text
        check = assert_equal(*shapes, message="labels do not have the shape of logits")
    with get_default_graph().control_dependencies([check]):
        return identity(labels)


def _check_label_shape(labels: Tensor, logits: Tensor) -> None:
    if logits.shape.rank == 0:
        raise InvalidArgumentError(
            f"sparse_softmax_cross_entropy_with_logits: Logits cannot be scalars - received shape {logits.shape}"
        )
    if labels.shape.rank is not None and logits.shape.rank not in (None, labels.shape.rank + 1):
        raise InvalidArgumentError(
            f"sparse_softmax_cross_entropy_with_logits: Rank mismatch: Rank of labels (received {labels.shape.rank}) "
            f"should equal rank of logits minus 1 (received {logits.shape.rank})"
        )
    if logits.shape.rank is not None and not labels.shape.is_compatible_with(logits.shape[:-1]):
        raise InvalidArgumentError(
            "sparse_softmax_cross_entropy_with_logits: labels must have the shape of logits without its last "
            f"dimension; found labels {labels.shape} and logits {logits.shape}"
        )


def _one_dimension_missing(shape: Sequence[int | None]) -> str:
    return f"labels must be 1-D, but got shape [{','.join('?' if size is None else str(size) for size in shape)}]"


def _sparse_softmax_cross_entropy_kernel(ctx: KernelContext, logits: Array, labels: Array) -> tuple[Array, Array]:
    xp = ctx.xp
    if is_half(logits.dtype):
        wide = _sparse_softmax_cross_entropy_kernel(ctx, logits.astype(np.float32), labels)
        return wide[0].astype(logits.dtype), wide[1].astype(logits.dtype)
    losses, backprop = xp.empty(labels.shape, logits.dtype), xp.empty(logits.shape, logits.dtype)
    if labels.ndim != 1:
        raise InvalidArgumentError(f"sparse cross entropy: {_one_dimension_missing(labels.shape)}")
    if labels.shape != logits.shape[:1]:
        raise InvalidArgumentError(f"sparse cross entropy: labels {labels.shape} do not fit logits {logits.shape}")
    if xp is np:
        _check_labels(labels, logits.shape[1])
    if logits.size == 0:
        return losses, backprop
    if can_compute(xp, logits):
        rights = labels.astype(np.int64, copy=False)
        compute_rows("softmax", "sparse_cross_entropy", *logits.shape, logits, rights, losses, backprop)
        return losses, backprop
    if device_kernels.has_kernels(xp, logits):
        # On a GPU nothing is checked, because the host would have to wait: a wrong label gives NaN.
        device_kernels.sparse_cross_entropy(xp, logits, labels, losses, backprop)
        return losses, backprop
    columns = labels if xp is np else xp.clip(labels, 0, logits.shape[1] - 1)

    def work(part: slice) -> None:
        powers = _shifted(xp, logits[part], backprop[part])
        flat = powers.reshape(-1)
        chosen = columns[part] + xp.arange(0, flat.size, logits.shape[1])
        right = flat[chosen]
        total = _row_sum(xp, xp.exp(powers, out=powers))
        xp.subtract(xp.log(total[:, 0]), right, out=losses[part])
        xp.divide(powers, total, out=powers)
        flat[chosen] -= 1

    for_each_rows(xp, work, logits, _LARGE_ELEMENTS)
    if xp is not np:
        # On a GPU nothing is checked, because the host would have to wait: a wrong label gives NaN.
        losses[columns != labels] = np.nan
    return losses, backprop


def _check_labels(labels: Array, classes: int) -> None:
    # Read as unsigned, a negative label is larger than any class: one comparison finds both kinds of error.
    if labels.size and labels.view(f"u{labels.itemsize}").max() >= classes:
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise InvalidArgumentError(
            f"Received a label value of {wrong} which is outside the valid range of [0, {classes}): label {wrong} is "
            f"not one of the {classes} classes from 0 on"
        )


def _sparse_softmax_cross_entropy_shape(op: Operation) -> list[TensorShape]:
    logits, labels = op.inputs[0].shape.with_rank(2), op.inputs[1].shape
    if labels.rank not in (None, 1):
        shown = _one_dimension_missing(labels.as_list())
        raise ValueError(f"{shown}: Shape must be rank 1 but is rank {labels.rank}")
    batch = logits[:1].merge_with(labels)
    return [batch, batch.concatenate(logits[1:])]


def _sparse_softmax_cross_entropy_gradient(
    op: Operation, d_losses: Tensor | None, d_backprop: Tensor | None
) -> list[Tensor | None]:
    return [_d_logits(op, d_losses, d_backprop), None]


SPARSE_SOFTMAX_CROSS_ENTROPY = register(
    OpDef(
        name="SparseSoftmaxCrossEntropyWithLogits",
        inputs=("features: T", "labels: Tlabels"),
        outputs=("loss: T", "backprop: T"),
        types={"T": dtypes.FLOATS, "Tlabels": dtypes.INDICES},
        shape=_sparse_softmax_cross_entropy_shape,
        kernels=on_every_device(_sparse_softmax_cross_entropy_kernel),
        gradient=_sparse_softmax_cross_entropy_gradient,
    )
)


# -- independent classes -------------------------------------------------------------------------------


def sigmoid_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the cross entropy between probabilities and the sigmoid of logits, element by element.

    Args:
        _sentinel: Not used: pass the other arguments by name.
        labels: Shape ``[...]``, numbers from 0 to 1; the shape and dtype of `logits`.
        logits: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, same shape.

    Examples:
        >>> session.run(tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.0, 2.0]))
        array([0.6931472, 2.126928 ], dtype=float32)
    """
    labels, logits = _by_name_only("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits, labels = convert_alike(logits, labels)
        _check_alike("sigmoid_cross_entropy_with_logits", labels=labels, logits=logits)
        return add_op(SIGMOID_CROSS_ENTROPY, logits, labels, name=scope)


def _check_alike(op: str, **tensors: Tensor) -> None:
    """Refuse two tensors whose shapes are known to differ. While running, they may broadcast."""
    (first, x), (second, y) = tensors.items()
    if not x.shape.is_compatible_with(y.shape):
        raise InvalidArgumentError(
            f"{op}: {first} and {second} must have the same shape; found {x.shape} and {y.shape}"
        )


def _sigmoid_cross_entropy_kernel(ctx: KernelContext, logits: Array, labels: Array, out: Array | None = None) -> Array:
    xp = ctx.xp
    if logits.shape != labels.shape:
        logits, labels = (array.copy() for array in xp.broadcast_arrays(logits, labels))
    if out is None:
        out = xp.empty(logits.shape, logits.dtype)

    def formula(out: Array, logits: Array, labels: Array) -> None:
        # max(x, 0) - x * z + log(1 + exp(-abs(x))): for z = 1 and a large x the first two terms cancel exactly.
        log1p_exp_formula(xp, out, logits)
        linear, product = (buffer(xp, slot, logits.shape, logits.dtype) for slot in ("linear", "product"))
        xp.maximum(logits, zeros_for(xp, logits), out=linear)
        xp.subtract(linear, xp.multiply(logits, labels, out=product), out=linear)
        xp.add(out, linear, out=out)

    return map_flat(xp, formula, out, logits, labels)


def _sigmoid_cross_entropy_gradient(op: Operation, d_loss: Tensor) -> list[Tensor | None]:
    logits, labels = op.inputs
    d_logits, d_labels = multiply(d_loss, subtract(sigmoid(logits), labels)), negative(multiply(d_loss, logits))
    return [sum_to_shape_of(d_logits, logits, labels), sum_to_shape_of(d_labels, labels, logits)]


SIGMOID_CROSS_ENTROPY = register(
    OpDef(
        name="SigmoidCrossEntropyWithLogits",
        inputs=("logits: T", "labels: T"),
        outputs=("loss: T",),
        types={"T": dtypes.FLOATS},
        shape=broadcast,
        kernels=on_every_device(out_kernel(widened(_sigmoid_cross_entropy_kernel))),
        gradient=_sigmoid_cross_entropy_gradient,
    )
)


def weighted_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    pos_weight: TensorLike | None = None,
    name: str | None = None,
    targets: TensorLike | None = None,
) -> Tensor:
    """Compute `sigmoid_cross_entropy_with_logits` with a weight on the positive part.

    Args:
        labels: Shape ``[...]``, numbers from 0 to 1.
        logits: Same shape, a float dtype.
        pos_weight: Factor on the positive part, which broadcasts to the shape.
        name: Name of the operation.
        targets: Old name of `labels`.

    Returns:
        ``-pos_weight * labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, same shape. As in
        TensorFlow, the gradient of a logit that is 0 is ``1 - labels``.

    Examples:
        >>> labels, logits = [1.0, 0.0], [0.0, 0.0]
        >>> session.run(tf.nn.weighted_cross_entropy_with_logits(labels, logits, pos_weight=2.0))
        array([1.3862944, 0.6931472], dtype=float32)
    """
    labels = by_either_name("weighted_cross_entropy_with_logits", labels=labels, targets=targets)
    if labels is None or logits is None or pos_weight is None:
        raise InvalidArgumentError("weighted_cross_entropy_with_logits: labels, logits and pos_weight are required")
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits)
        labels = convert_to_tensor(labels, logits.dtype)
        _check_alike("weighted_cross_entropy_with_logits", labels=labels, logits=logits)
        weight = add(multiply(subtract(convert_to_tensor(pos_weight, logits.dtype), 1), labels), 1)
        # Of these terms TensorFlow makes it: so the gradient where a logit is 0, as in a model that begins with zeros.
        tail = add(log1p(exp(negative(arithmetic_ops.abs(logits)))), relu(negative(logits)))
        return add(multiply(subtract(1, labels), logits), multiply(weight, tail), scope)


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Compute the loss of a Poisson distribution: ``exp(log_input) - log_input * targets``.

    Args:
        targets: Shape ``[...]``, a float dtype: the counts.
        log_input: Same shape and dtype: logarithms of the expected counts.
        compute_full_loss: Add Stirling's approximation of ``log(targets!)``, where `targets` are above 1.
        name: Name scope of the operations.

    Returns:
        Same shape and dtype.
    """
    with get_default_graph().name_scope(name or "log_poisson_loss"):
        log_input = convert_to_tensor(log_input)
        targets = convert_to_tensor(targets, log_input.dtype)
        _check_alike("log_poisson_loss", targets=targets, log_input=log_input)
        loss = subtract(exp(log_input), multiply(log_input, targets))
        if not compute_full_loss:
            return loss
        stirling = add(
            subtract(multiply(targets, log(targets)), targets), multiply(0.5, log(multiply(2 * math.pi, targets)))
        )
        return add(loss, where(less_equal(targets, 1), zeros_like(targets), stirling))
