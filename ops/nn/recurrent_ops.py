"""The elementwise part of recurrent cells in one operation: the gates of an LSTM.

A cell written with sigmoid, tanh and products would do the same in some fifteen operations, each a pass over arrays
that are too small to hide the call.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, ArrayModule, KernelContext, NumpyDType, OpDef, on_every_device, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.join_ops import concat, split
from tfray.ops.kernels.gpu.device_loops import DeviceLoop, Load, Section, Trace, has_loop
from tfray.ops.kernels.precision import is_half
from tfray.ops.math.arithmetic_ops import add, multiply, square
from tfray.ops.math.transcendental_ops import tanh
from tfray.ops.nn.nn_ops import bias_add_grad


def lstm_gates(
    projected: TensorLike, bias: TensorLike, cell: TensorLike, forget_bias: float = 1.0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The elementwise part of an LSTM cell without peepholes.

    With ``i, j, f, o`` the four parts of ``projected + bias`` along the second axis:

        new_cell = cell * sigmoid(f + forget_bias) + sigmoid(i) * tanh(j)
        output = tanh(new_cell) * sigmoid(o)

    Args:
        projected: Shape ``[batch, 4 * units]``, a float dtype: input and last output times the weights.
        bias: Shape ``[4 * units]``.
        cell: Shape ``[batch, units]``: the cell's state.
        forget_bias: Added to the forget gate.
        name: Name of the operation.

    Returns:
        ``new_cell`` and ``output``, each of shape ``[batch, units]``.
    """
    new_cell, output, _ = add_op(LSTM_GATES, projected, bias, cell, name=name, forget_bias=float(forget_bias))
    return new_cell, output


@lru_cache(maxsize=64)
def _bias_of_gates(xp: ArrayModule, units: int, dtype: NumpyDType, forget_bias: float) -> Array:
    """The fixed part of the bias of each column, which is added to the learned bias: `forget_bias` for forget gates."""
    bias = np.zeros(4 * units, np.float32)
    bias[2 * units : 3 * units] = forget_bias
    return xp.asarray(bias.astype(dtype))


def _lstm_gates_kernel(ctx: KernelContext, projected: Array, bias: Array, cell: Array) -> tuple[Array, Array, Array]:
    xp, dtype, units = ctx.xp, ctx.output_dtype(), cell.shape[1]
    if has_loop(xp, dtype, projected.size):
        made = [xp.empty(shape, dtype) for shape in (cell.shape, cell.shape, projected.shape)]
        _gates_loop(cell.size, units, dtype, ctx.attr("forget_bias"))(xp, projected, bias, cell, *made)
        return made[0], made[1], made[2]
    if is_half(dtype):
        projected, bias, cell = (array.astype(np.float32) for array in (projected, bias, cell))
    negative_bias = -(bias + _bias_of_gates(xp, units, cell.dtype, ctx.attr("forget_bias")))
    # Three of the four parts are sigmoids, 1 / (1 + exp(-x)): passes over the whole array are cheaper than by parts.
    gates = xp.subtract(negative_bias, projected)
    candidate = gates[:, units : 2 * units]
    squashed = xp.tanh(xp.negative(candidate, out=candidate))
    one = cell.dtype.type(1)
    xp.exp(gates, out=gates)
    xp.add(gates, one, out=gates)
    xp.divide(one, gates, out=gates)
    candidate[...] = squashed
    new_cell = xp.multiply(cell, gates[:, 2 * units : 3 * units])
    output = xp.multiply(gates[:, :units], squashed, out=squashed)
    xp.add(new_cell, output, out=new_cell)
    xp.tanh(new_cell, out=output)
    xp.multiply(output, gates[:, 3 * units :], out=output)
    if is_half(dtype):
        return new_cell.astype(dtype), output.astype(dtype), gates.astype(dtype)
    return new_cell, output, gates


def _parts(name: str, units: int, dtype: NumpyDType, index: str) -> list[Load]:
    """What is loaded from the four parts of an array; `index` is that of a part of no columns before it."""
    return [Load(f"{name}{part}", dtype, "at", index=f"{index} + {part * units}", array=name) for part in range(4)]


@lru_cache(maxsize=64)
def _gates_loop(size: int, units: int, dtype: NumpyDType, forget_bias: float) -> DeviceLoop:
    """The kernel of a GPU: it takes `projected`, `bias` and `cell`, and gives the outputs."""
    place = f"quotient(j, {units}) * {4 * units} + j % {units}"
    loads = [
        *_parts("projected", units, dtype, place),
        *_parts("bias", units, dtype, f"j % {units}"),
        Load("cell", dtype),
    ]
    trace = Trace()
    *wide, cell = trace.values(loads)
    i, j, f, o = (x + b for x, b in zip(wide[:4], wide[4:], strict=True))
    i, j, f, o = trace.sigmoid(i), trace.tanh(j), trace.sigmoid(f + forget_bias), trace.sigmoid(o)
    new_cell = cell * f + i * j
    output = trace.tanh(new_cell) * o
    gates = [(gate.name, "gates", f"{place} + {part * units}") for part, gate in enumerate((i, j, f, o))]
    stored = (new_cell.name, "new_cell"), (output.name, "output"), *gates
    return DeviceLoop([Section(size, tuple(loads), tuple(trace.assignments), stored)])


def _lstm_gates_shape(op: Operation) -> list[TensorShape]:
    projected, bias, cell = (tensor.shape for tensor in op.inputs)
    projected, cell = projected.with_rank(2), cell.with_rank(2)
    units = cell.sizes[1]
    if units is None and projected.sizes[1] is not None:
        units = projected.sizes[1] // 4
    batch = TensorShape(projected.sizes[:1]).merge_with(TensorShape(cell.sizes[:1]))
    cell = batch.concatenate(cell.merge_with([None, units])[1:])
    wide = TensorShape([None if units is None else 4 * units]).merge_with(bias)
    return [cell, cell, projected.merge_with(batch.concatenate(wide))]


def _lstm_gates_gradient(
    op: Operation, d_cell: Tensor | None, d_output: Tensor | None, d_gates: Tensor | None
) -> list[Tensor | None]:
    new_cell, output, gates = op.outputs
    d_cell = zeros_like(new_cell) if d_cell is None else d_cell
    d_output = zeros_like(output) if d_output is None else d_output
    d_projected, d_last = add_op(LSTM_GATES_GRAD, gates, op.inputs[2], new_cell, d_cell, d_output)
    if d_gates is not None:  # from a second derivative
        d_projected = add(d_projected, multiply(d_gates, _slopes(gates)))
    return [d_projected, bias_add_grad(d_projected), d_last]


def _slopes(gates: Tensor) -> Tensor:
    i, j, f, o = split(gates, 4, 1)
    return concat([i - square(i), 1 - square(j), f - square(f), o - square(o)], 1)


LSTM_GATES = register(
    OpDef(
        name="LSTMGates",
        inputs=("projected: T", "bias: T", "cell: T"),
        outputs=("new_cell: T", "output: T", "gates: T"),
        types={"T": dtypes.FLOATS},
        attrs=("forget_bias",),
        shape=_lstm_gates_shape,
        kernels=on_every_device(_lstm_gates_kernel),
        gradient=_lstm_gates_gradient,
    )
)


def _lstm_gates_grad_kernel(
    ctx: KernelContext, gates: Array, cell: Array, new_cell: Array, d_cell: Array, d_output: Array
) -> tuple[Array, Array]:
    xp, dtype, units = ctx.xp, ctx.output_dtype(), cell.shape[1]
    arrays = gates, cell, new_cell, d_cell, d_output
    if has_loop(xp, dtype, gates.size):
        made = xp.empty(gates.shape, dtype), xp.empty(cell.shape, dtype)
        _gates_grad_loop(cell.size, units, dtype)(xp, *arrays, *made)
        return made
    if is_half(dtype):
        gates, cell, new_cell, d_cell, d_output = (array.astype(np.float32) for array in arrays)
    i, j, f, o = (gates[:, part * units : (part + 1) * units] for part in range(4))
    squashed = xp.tanh(new_cell)
    slopes = xp.multiply(gates, gates)
    tanh_slope = slopes[:, units : 2 * units]
    xp.subtract(cell.dtype.type(1), tanh_slope, out=tanh_slope)
    for gate, slope in ((i, slopes[:, :units]), (gates[:, 2 * units :], slopes[:, 2 * units :])):
        xp.subtract(gate, slope, out=slope)
    d_projected = xp.empty_like(gates)
    xp.multiply(d_output, squashed, out=d_projected[:, 3 * units :])
    xp.multiply(squashed, squashed, out=squashed)
    d_inner = xp.subtract(cell.dtype.type(1), squashed, out=squashed)
    xp.multiply(d_inner, o, out=d_inner)
    xp.multiply(d_inner, d_output, out=d_inner)
    xp.add(d_inner, d_cell, out=d_inner)
    xp.multiply(d_inner, j, out=d_projected[:, :units])
    xp.multiply(d_inner, i, out=d_projected[:, units : 2 * units])
    xp.multiply(d_inner, cell, out=d_projected[:, 2 * units : 3 * units])
    xp.multiply(d_projected, slopes, out=d_projected)
    d_last = xp.multiply(d_inner, f, out=d_inner)
    return (d_projected.astype(dtype), d_last.astype(dtype)) if is_half(dtype) else (d_projected, d_last)


@lru_cache(maxsize=64)
def _gates_grad_loop(size: int, units: int, dtype: NumpyDType) -> DeviceLoop:
    """The kernel of a GPU: it takes the inputs, and gives the outputs."""
    place = f"quotient(j, {units}) * {4 * units} + j % {units}"
    loads = _parts("gates", units, dtype, place)
    loads += [Load(name, dtype) for name in ("cell", "new_cell", "d_cell", "d_output")]
    trace = Trace()
    i, j, f, o, cell, new_cell, d_cell, d_output = trace.values(loads)
    squashed = trace.tanh(new_cell)
    d_inner = (1 - squashed * squashed) * o * d_output + d_cell
    d_gates = [
        d_inner * j * (i - i * i),
        d_inner * i * (1 - j * j),
        d_inner * cell * (f - f * f),
        d_output * squashed * (o - o * o),
    ]
    d_last = d_inner * f
    stored = [(d_gate.name, "d_projected", f"{place} + {part * units}") for part, d_gate in enumerate(d_gates)]
    section = Section(size, tuple(loads), tuple(trace.assignments), (*stored, (d_last.name, "d_last")))
    return DeviceLoop([section])


def _lstm_gates_grad_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape, op.inputs[1].shape]


def _lstm_gates_grad_gradient(op: Operation, u_gates: Tensor | None, u_last: Tensor | None) -> list[Tensor | None]:
    """With ``u`` the gradients that flow in: the derivatives of ``u_gates * d_projected + u_last * d_last``."""
    gates, cell, new_cell, d_cell, d_output = op.inputs
    i, j, f, o = split(gates, 4, 1)
    u_i, u_j, u_f, u_o = split(zeros_like(gates) if u_gates is None else u_gates, 4, 1)
    u_last = zeros_like(cell) if u_last is None else u_last
    squashed = tanh(new_cell)
    slope = 1 - square(squashed)
    slope_i, slope_j, slope_f, slope_o = i - square(i), 1 - square(j), f - square(f), o - square(o)
    d_inner = d_cell + d_output * o * slope
    by_inner = u_i * j * slope_i + u_j * i * slope_j + u_f * cell * slope_f + u_last * f
    by_gates = [
        d_inner * (u_i * j * (1 - 2 * i) + u_j * slope_j),
        d_inner * (u_i * slope_i - 2 * u_j * i * j),
        d_inner * (u_f * cell * (1 - 2 * f) + u_last),
        d_output * (by_inner * slope + u_o * squashed * (1 - 2 * o)),
    ]
    by_squashed = d_output * (u_o * slope_o - 2 * by_inner * o * squashed)
    by_output = by_inner * o * slope + u_o * squashed * slope_o
    return [concat(by_gates, 1), d_inner * u_f * slope_f, by_squashed * slope, by_inner, by_output]


LSTM_GATES_GRAD = register(
    OpDef(
        name="LSTMGatesGrad",
        inputs=("gates: T", "cell: T", "new_cell: T", "d_cell: T", "d_output: T"),
        outputs=("d_projected: T", "d_last: T"),
        types={"T": dtypes.FLOATS},
        shape=_lstm_gates_grad_shape,
        kernels=on_every_device(_lstm_gates_grad_kernel),
        gradient=_lstm_gates_grad_gradient,
    )
)
