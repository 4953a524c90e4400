"""Neural-network operations that are neither activation, loss, normalization nor convolution."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import accumulator_dtype, zeros_like
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.checks.check_ops import broadcastable
from tfray.ops.kernels import sums
from tfray.ops.kernels.compiled_rows import can_compute, column_sums
from tfray.ops.kernels.gpu.device_loops import has_loop
from tfray.ops.kernels.gpu.device_sums import staged_sum
from tfray.ops.kernels.products import inner_product
from tfray.ops.kernels.tiles import FEW_ELEMENTS, LARGE_ELEMENTS, cut, run_tiles, shares_for
from tfray.ops.math.arithmetic_ops import multiply, reciprocal, subtract, truediv
from tfray.ops.math.comparison_ops import equal, greater_equal
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_mean, reduce_sum
from tfray.ops.nn.activation_ops import RELU6_GRAD, RELU_GRAD
from tfray.ops.nn.activation_ops import relu as relu
from tfray.ops.nn.activation_ops import relu_grad as relu_grad
from tfray.ops.nn.device.device_kernels import elements, has_kernels
from tfray.ops.random.random_ops import random_uniform

# -- biases --------------------------------------------------------------------------------------------


def bias_add(value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Add a bias to every channel.

    Args:
        value: Shape ``[..., channels]``, or ``[batch, channels, ...]`` for NCHW; a number dtype.
        bias: Shape ``[channels]``.
        data_format: ``"NHWC"`` (the default; any rank from 2 on) or ``"NCHW"``.
        name: Name of the operation.

    Returns:
        Same shape and dtype as `value`.

    Raises:
        InvalidArgumentError: The bias does not fit the channels.

    Examples:
        >>> session.run(tf.nn.bias_add([[1, 2], [3, 4]], [10, 20]))
        array([[11, 22],
               [13, 24]], dtype=int32)
    """
    return add_op(BIAS_ADD, value, bias, name=name, data_format=_bias_layout(data_format))


def _bias_layout(data_format: str | None) -> str:
    # Layout names for other ranks say the same thing: channels last, or channels second.
    layouts = {None: "NHWC", "NWC": "NHWC", "NDHWC": "NHWC", "N..C": "NHWC", "NCW": "NCHW", "NCDHW": "NCHW"}
    layout = {**layouts, "NC..": "NCHW", "NHWC": "NHWC", "NCHW": "NCHW"}.get(data_format)
    if layout is None:
        raise InvalidArgumentError(f"bias_add: data_format is {data_format!r}, expected NHWC or NCHW")
    return layout


_MANY_ELEMENTS = 1 << 17
"""Elements from which `bias_add` works on wide rows; for fewer it adds plainly."""


def _bias_add_kernel(ctx: KernelContext, value: Array, bias: Array, out: Array | None = None) -> Array:
    xp = ctx.xp
    if ctx.attr("data_format") == "NCHW":
        return xp.add(value, bias.reshape(-1, *[1] * (value.ndim - 2)), out=out)
    if value.ndim == 0 or value.shape[-1:] != bias.shape:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: bias_add: a bias of shape "
            f"{bias.shape} does not fit values of {value.shape}"
        )
    if xp is not np or value.size < _MANY_ELEMENTS or not value.flags.c_contiguous:
        return xp.add(value, bias, out=out)
    if out is None:
        out = np.empty(value.shape, value.dtype)
    rows, out_rows = (sums.as_wide_rows(array, bias.size) for array in (value, out))
    row = np.tile(bias, rows.shape[1] // bias.size)
    is_large = value.size >= LARGE_ELEMENTS
    parts = cut(len(rows), min(shares_for(xp, is_large), len(rows)))
    run_tiles(lambda index: np.add(rows[parts[index]], row, out=out_rows[parts[index]]), len(parts), is_large)
    return out


def _is_channels_last(op: Operation) -> bool:
    return op.attrs["data_format"] == "NHWC"


def _inline_bias_add(op: Operation) -> str | None:
    value, bias = (tensor.shape.whole() for tensor in op.inputs)
    is_small = value is not None and math.prod(value) <= FEW_ELEMENTS and value[-1:] == bias
    return "{np.add}({0}, {1}, {out})" if is_small and _is_channels_last(op) else None


def _bias_add_shape(op: Operation) -> list[TensorShape]:
    value, bias = op.inputs[0].shape.with_rank_at_least(2), op.inputs[1].shape.with_rank(1)
    if value.rank is None:
        return [value]
    channels: list[int | None] = [None] * value.rank
    channels[-1 if op.attr("data_format") == "NHWC" else 1] = bias.sizes[0]
    return [value.merge_with(channels)]


def _bias_add_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [d_output, bias_add_grad(d_output, op.attr("data_format"))]


BIAS_ADD = register(
    OpDef(
        name="BiasAdd",
        inputs=("value: T", "bias: T"),
        outputs=("output: T",),
        attrs=("data_format",),
        types={"T": dtypes.NUMERIC},
        shape=_bias_add_shape,
        kernels=on_every_device(
            out_kernel(
                _bias_add_kernel, (0,), elementwise=_is_channels_last, element="{0} + {1}", inline=_inline_bias_add
            )
        ),
        gradient=_bias_add_gradient,
    )
)


def bias_add_grad(out_backprop: TensorLike, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Sum over all but the channels: the gradient of the bias of `bias_add`.

    Args:
        out_backprop: Gradient of the result, ``[..., channels]``, or in the order of `data_format`.
        data_format: As for `bias_add`.
        name: Name of the operation.

    Returns:
        Shape ``[channels]``.
    """
    return add_op(BIAS_ADD_GRAD, out_backprop, name=name, data_format=_bias_layout(data_format))


def _bias_add_grad_kernel(ctx: KernelContext, d_output: Array) -> Array:
    xp, axis = ctx.xp, d_output.ndim - 1 if ctx.attr("data_format") == "NHWC" else 1
    channels = d_output.shape[axis]
    is_by_rows = axis == d_output.ndim - 1 and d_output.flags.c_contiguous and d_output.dtype.char in "fd"
    if xp is np and is_by_rows and d_output.size:
        return sums.of_short_rows(d_output, channels)
    axes = tuple(i for i in range(d_output.ndim) if i != axis)
    if has_loop(xp, d_output.dtype, d_output.size):
        return staged_sum(xp, "{0}", [d_output], axes, dtype=d_output.dtype).reshape(-1)
    total = xp.sum(d_output, axis=axes, dtype=accumulator_dtype(d_output.dtype))
    return total.astype(d_output.dtype, copy=False)


def _bias_add_grad_shape(op: Operation) -> list[TensorShape]:
    source = op.inputs[0].shape
    if source.rank is None:
        return [TensorShape([None])]
    return [TensorShape([source.sizes[-1 if op.attr("data_format") == "NHWC" else 1]])]


def _bias_add_grad_gradient(op: Operation, d_bias: Tensor) -> list[Tensor | None]:
    return [bias_add(zeros_like(op.inputs[0]), d_bias, op.attr("data_format"))]


BIAS_ADD_GRAD = register(
    OpDef(
        name="BiasAddGrad",
        inputs=("out_backprop: T",),
        outputs=("output: T",),
        attrs=("data_format",),
        types={"T": dtypes.NUMERIC},
        shape=_bias_add_grad_shape,
        kernels=on_every_device(_bias_add_grad_kernel),
        gradient=_bias_add_grad_gradient,
    )
)


_LAST_LET_THROUGH: Final = {"Relu": math.inf, "Relu6": float(np.nextafter(np.float32(6), np.float32(0)))}
"""By activation, the greatest output whose gradient goes through."""


def _gated_bias_add_grad_kernel(
    ctx: KernelContext, d_output: Array, features: Array, out: Array | None = None
) -> list[Array]:
    mode = ctx.attr("activation_mode")
    if can_compute(ctx.xp, d_output, features):
        gated = np.empty(d_output.shape, np.float32) if out is None else out
        arrays = [d_output, features]
        return [gated, column_sums("channels", "gated_totals", arrays, _LAST_LET_THROUGH[mode], gated)]
    gate = (RELU_GRAD if mode == "Relu" else RELU6_GRAD).kernels["CPU"]
    if has_kernels(ctx.xp, d_output, features):
        gated = ctx.xp.empty(d_output.shape, d_output.dtype) if out is None else out
        elements(ctx.xp, str(gate.element), [d_output, features], gated)
    else:
        gated = gate.function(ctx, d_output, features, out=out)
    return [gated, _bias_add_grad_kernel(ctx, gated)]


GATED_BIAS_ADD_GRAD = register(
    OpDef(
        name="_GatedBiasAddGrad",  # made of two operations when a step is compiled (`placement.fuse`)
        inputs=("gradients: T", "features: T"),
        outputs=("backprops: T", "output: T"),
        attrs=("activation_mode", "data_format"),
        types={"T": dtypes.REAL},
        shape=lambda op: [op.inputs[0].shape, *_bias_add_grad_shape(op)],
        kernels=on_every_device(out_kernel(_gated_bias_add_grad_kernel, (0,))),
    )
)


def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``x @ weights + biases``.

    Args:
        x: ``[batch, inputs]``.
        weights: ``[inputs, outputs]``.
        biases: ``[outputs]``.
        name: Name of the operation.

    Returns:
        ``[batch, outputs]``.

    Examples:
        >>> session.run(tf.nn.xw_plus_b([[1.0, 2.0]], [[1.0], [10.0]], [0.5]))
        array([[21.5]], dtype=float32)
    """
    return bias_add(matmul(x, weights), convert_to_tensor(biases), name=name or "xw_plus_b")


def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """Compute ``relu(x @ weights + biases)``, of shape ``[batch, outputs]`` (arguments as `xw_plus_b`)."""
    return relu(xw_plus_b(x, weights, biases), name or "relu_layer")


# -- sums ----------------------------------------------------------------------------------------------


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Compute half the sum of squares, ``sum(t ** 2) / 2``.

    Args:
        t: Shape ``[...]``, a float dtype.
        name: Name of the operation.

    Returns:
        A scalar.

    Examples:
        >>> session.run(tf.nn.l2_loss([[3.0, 4.0]]))
        np.float32(12.5)
    """
    return add_op(L2_LOSS, t, name=name)


def _l2_loss_kernel(ctx: KernelContext, t: Array) -> Array:
    flat = t.reshape(-1).astype(accumulator_dtype(t.dtype), copy=False)
    return (inner_product(ctx.xp, flat, flat) * flat.dtype.type(0.5)).astype(t.dtype)


def _l2_loss_gradient(op: Operation, d_loss: Tensor) -> list[Tensor | None]:
    return [multiply(d_loss, op.inputs[0])]


L2_LOSS = register(
    OpDef(
        name="L2Loss",
        inputs=("t: T",),
        outputs=("output: T",),
        types={"T": dtypes.FLOATS},
        shape=scalar,
        kernels=on_every_device(_l2_loss_kernel),
        gradient=_l2_loss_gradient,
    )
)


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """Compute which part of the elements is 0, a float32 scalar.

    Args:
        value: Shape ``[...]``, a number dtype.
        name: Name of the operation.

    Examples:
        >>> session.run(tf.nn.zero_fraction([0, 1, 0, 2]))
        np.float32(0.5)
    """
    value = convert_to_tensor(value)
    with get_default_graph().name_scope(name or "zero_fraction"):
        return reduce_mean(cast(equal(value, cast(0, value.dtype)), dtypes.float32), name="fraction")


# -- dropout -------------------------------------------------------------------------------------------


def dropout(
    x: TensorLike,
    keep_prob: TensorLike | None = None,
    noise_shape: TensorLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    rate: TensorLike | None = None,
) -> Tensor:
    """Set random elements to 0 and scale the others up, so that the expected sum stays the same.

    Args:
        x: Shape ``[...]``, a float dtype.
        keep_prob: Probability that an element is kept, a number or scalar tensor.
        noise_shape: Shape of the random choices, which broadcasts to that of `x`: where it is 1, elements are
            kept or dropped together. None stands for that of `x`.
        seed: Seed of the operation (see `tf.set_random_seed`).
        name: Name of the operation.
        rate: Probability that an element is dropped, a number or scalar tensor, instead of `keep_prob`.

    Returns:
        Same shape and dtype as `x`; `x` itself when nothing is dropped.

    Raises:
        InvalidArgumentError: A probability outside its range, both or neither of `keep_prob` and `rate`, or an
            `x` that is not of a float dtype.

    Examples:
        >>> dropped = session.run(tf.nn.dropout(tf.ones([1000]), keep_prob=0.5))
        >>> sorted(set(dropped.tolist()))
        [0.0, 2.0]
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise InvalidArgumentError(f"dropout: x has to be a floating point tensor, not {x.dtype.name}")
    with get_default_graph().name_scope(name or "dropout"):
        dropped = _drop_rate(x, keep_prob, rate)
        if isinstance(dropped, float) and dropped == 0:
            return x
        threshold = convert_to_tensor(dropped, x.dtype)
        numbers = random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
        kept = cast(greater_equal(numbers, threshold), x.dtype)
        result = multiply(x, multiply(kept, reciprocal(subtract(1, threshold))), "mul")
        result.set_shape(x.shape)
        return result


def _drop_rate(x: Tensor, keep_prob: TensorLike | None, rate: TensorLike | None) -> Any:
    """The probability to drop an element: a number where it is known, a tensor otherwise."""
    if (keep_prob is None) == (rate is None):
        raise InvalidArgumentError("dropout: pass exactly one of keep_prob and rate")
    given = rate if keep_prob is None else keep_prob
    value = constant_value(given) if isinstance(given, Tensor) else given
    if value is None or not isinstance(value, (int, float, np.ndarray, np.generic)):
        given = convert_to_tensor(given, x.dtype)
        given.shape.assert_has_rank(0)
        return given if keep_prob is None else subtract(1, given)
    if np.ndim(value):
        raise InvalidArgumentError(f"dropout: expected a scalar, got {value!r}")
    dropped = float(value) if keep_prob is None else 1 - float(value)
    if not 0 <= dropped < 1:
        what, bounds = ("rate", "[0, 1)") if keep_prob is None else ("keep_prob", "(0, 1]")
        raise InvalidArgumentError(f"dropout: {what} is {float(value)}, expected a number in {bounds}")
    return dropped


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    if noise_shape is None:
        return shape_of(x)
    if isinstance(noise_shape, Tensor):
        return noise_shape
    try:
        sizes = TensorShape(noise_shape).sizes
    except (TypeError, ValueError):  # there are tensors among its sizes
        return noise_shape
    if None not in sizes:
        return list(sizes)
    if len(sizes) != x.shape.rank:
        raise InvalidArgumentError(
            f"dropout: noise_shape {list(sizes)} leaves sizes to x, whose shape {x.shape} has another rank"
        )
    actual = shape_of(x)
    return [actual[axis] if size is None else size for axis, size in enumerate(sizes)]


# -- losses of a batch ---------------------------------------------------------------------------------


def compute_average_loss(
    per_example_loss: TensorLike, sample_weight: TensorLike | None = None, global_batch_size: TensorLike | None = None
) -> Tensor:
    """Average the losses of a batch.

    Args:
        per_example_loss: Shape ``[batch, ...]``, a float dtype.
        sample_weight: What each loss counts, of a shape that broadcasts to that of the losses; 1 when None.
        global_batch_size: By what the sum is divided, a scalar; the size of the batch when None.

    Returns:
        A scalar.

    Raises:
        InvalidArgumentError: `per_example_loss` is a scalar, or `sample_weight` has sizes that do not fit.
    """
    losses = convert_to_tensor(per_example_loss)
    if losses.shape.rank == 0:
        raise InvalidArgumentError(
            "compute_average_loss: Invalid value passed for `per_example_loss`. Expected a tensor with at least rank "
            f"1, received: {losses!r}"
        )
    if sample_weight is not None:
        sample_weight = broadcastable(sample_weight, losses)
        weighing = losses.dtype if losses.dtype.is_floating else dtypes.float32
        losses = cast(multiply(cast(losses, weighing), cast(sample_weight, weighing)), losses.dtype)
    count = shape_of(losses)[0] if global_batch_size is None else global_batch_size
    return truediv(reduce_sum(losses), cast(count, losses.dtype))


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """Add up the losses of regularization, a float tensor of any shape, to a scalar.

    Where TensorFlow divides by the number of replicas that a strategy runs, there is one here: the `Trainer` averages
    the gradients of its replicas.
    """
    return reduce_sum(regularization_loss)
