"""How the recurrent layers of ONNX become loops of tfray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.graph import Tensor
from tfray.onnx.load_flow import run_loop
from tfray.onnx.onnx_node import Node, loads
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.math import math_ops
from tfray.ops.nn import activation_ops

_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "Sigmoid": math_ops.sigmoid,
    "Tanh": math_ops.tanh,
    "Relu": activation_ops.relu,
}
_DEFAULTS: Final = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


@loads("RNN", "GRU", "LSTM")
def _recurrent(node: Node) -> list[Tensor]:
    kind, direction = node.operator, node.attr("direction")
    names = [name.decode() if isinstance(name, bytes) else name for name in node.attr("activations") or []]
    count = 2 if direction == "bidirectional" else 1
    names = names or _DEFAULTS[kind] * count
    if node.attr("clip") is not None or node.attr("input_forget", 0) or not set(names) <= set(_ACTIVATIONS):
        raise node.refuse("clip, input_forget, or other activations than Sigmoid, Tanh and Relu")
    if node.optional(7) is not None:
        raise node.refuse("peepholes")
    batch_first = node.attr("layout", 0)
    x = array_ops.transpose(node.input(0), [1, 0, 2]) if batch_first else node.input(0)
    parts = []
    for index in range(count):
        reverse = direction == "reverse" or index == 1
        functions = [_ACTIVATIONS[name] for name in names[index * len(_DEFAULTS[kind]) :]]
        parts.append(_one_direction(node, x, index, reverse, functions, bool(batch_first)))
    sequence = array_ops.stack([part[0] for part in parts], 1)
    states = [array_ops.stack(list(each), 0) for each in zip(*(part[1] for part in parts), strict=True)]
    if batch_first:
        sequence = array_ops.transpose(sequence, [2, 0, 1, 3])
        states = [array_ops.transpose(state, [1, 0, 2]) for state in states]
    return [sequence, *states]


def _one_direction(
    node: Node, x: Tensor, index: int, reverse: bool, functions: Sequence[Callable[[Tensor], Tensor]], batch_first: bool
) -> tuple[Tensor, list[Tensor]]:
    """The outputs of all steps and the last states, in one direction."""
    w, r = node.input(1)[index], node.input(2)[index]
    units = r.shape.sizes[1] if r.shape.rank == 2 else None
    if units is None:
        raise node.refuse("weights of unknown shape")
    bias, lengths = node.optional(3), node.optional(4)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[node.operator]
    zero = array_ops.zeros([2 * gates * units], x.dtype)
    both = zero if bias is None else bias[index]
    of_input, of_state = both[: gates * units], both[gates * units :]
    steps, batch = array_ops.shape(x)[0], array_ops.shape(x)[1]
    if reverse:
        x = (
            array_ops.reverse(x, [0])
            if lengths is None
            else array_ops.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)
        )
    flat = math_ops.matmul(array_ops.reshape(x, [-1, array_ops.shape(x)[2]]), w, transpose_b=True) + of_input
    projected = array_ops.reshape(flat, array_ops.stack([steps, batch, gates * units]))
    states = []
    for place in (5, 6)[: 2 if node.operator == "LSTM" else 1]:
        given = node.optional(place)
        if given is None:
            states.append(array_ops.zeros(array_ops.stack([batch, units]), x.dtype))
        else:
            states.append(given[:, index] if batch_first else given[index])
    cell = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}[node.operator]

    def body(turn: Tensor, *old: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        new = cell(node, projected[turn], old, r, of_state, functions)
        if lengths is None:
            return new, [new[0]]
        going = array_ops.expand_dims(turn < array_ops.cast(lengths, turn.dtype), 1)
        kept = [where_v2(going, a, b) for a, b in zip(new, old, strict=True)]
        return kept, [where_v2(going, new[0], array_ops.zeros_like(new[0]))]

    for state in states:
        state.set_shape([None, units])
    final, (outputs,) = run_loop(body, states, array_ops.cast(steps, dtypes.int64))
    if reverse:
        if lengths is None:
            outputs = array_ops.reverse(outputs, [0])
        else:
            outputs = array_ops.reverse_sequence(outputs, lengths, seq_axis=0, batch_axis=1)
    return outputs, final


def _rnn_step(node: Node, x: Tensor, old: Sequence[Tensor], r: Tensor, bias: Tensor, f: Sequence[Any]) -> list[Tensor]:
    return [f[0](x + math_ops.matmul(old[0], r, transpose_b=True) + bias)]


def _gru_step(node: Node, x: Tensor, old: Sequence[Tensor], r: Tensor, bias: Tensor, f: Sequence[Any]) -> list[Tensor]:
    units, h = old[0].shape.sizes[1] or 0, old[0]
    gates = f[0](x[:, : 2 * units] + math_ops.matmul(h, r[: 2 * units], transpose_b=True) + bias[: 2 * units])
    z, reset = array_ops.split(gates, 2, 1)
    inner = h if node.attr("linear_before_reset") else reset * h
    candidate = math_ops.matmul(inner, r[2 * units :], transpose_b=True) + bias[2 * units :]
    candidate = f[1](x[:, 2 * units :] + (reset * candidate if node.attr("linear_before_reset") else candidate))
    return [(1 - z) * candidate + z * h]


def _lstm_step(node: Node, x: Tensor, old: Sequence[Tensor], r: Tensor, bias: Tensor, f: Sequence[Any]) -> list[Tensor]:
    h, c = old
    i, o, forget, new = array_ops.split(x + math_ops.matmul(h, r, transpose_b=True) + bias, 4, 1)
    c = f[0](forget) * c + f[0](i) * f[1](new)
    return [f[0](o) * f[2](c), c]
