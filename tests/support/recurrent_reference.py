"""Recurrent cells in plain NumPy: one step each, from the values of their variables."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def basic_step(weights: dict[str, Array], x: Array, state: Array) -> tuple[Array, Array]:
    """One step of a BasicRNNCell."""
    output = np.tanh(np.concatenate([x, state], 1) @ weights["kernel"] + weights["bias"])
    return output, output


def gru_step(weights: dict[str, Array], x: Array, state: Array) -> tuple[Array, Array]:
    """One step of a GRUCell."""
    gates = sigmoid(np.concatenate([x, state], 1) @ weights["gates/kernel"] + weights["gates/bias"])
    reset, update = np.split(gates, 2, 1)
    joined = np.concatenate([x, reset * state], 1)
    candidate = np.tanh(joined @ weights["candidate/kernel"] + weights["candidate/bias"])
    output = update * state + (1 - update) * candidate
    return output, output


def lstm_step(
    weights: dict[str, Array],
    x: Array,
    state: Any,
    forget_bias: float = 1.0,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
    activation: Any = np.tanh,
) -> tuple[Array, Any]:
    """One step of an LSTMCell: peepholes and a projection if there are weights for them."""
    c, h = state
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ weights["kernel"] + weights["bias"], 4, 1)
    if "w_f_diag" in weights:
        i, f = i + weights["w_i_diag"] * c, f + weights["w_f_diag"] * c
    c = sigmoid(f + forget_bias) * c + sigmoid(i) * activation(j)
    if cell_clip is not None:
        c = np.clip(c, -cell_clip, cell_clip)
    if "w_o_diag" in weights:
        o = o + weights["w_o_diag"] * c
    h = sigmoid(o) * activation(c)
    if "projection/kernel" in weights:
        h = h @ weights["projection/kernel"]
        if proj_clip is not None:
            h = np.clip(h, -proj_clip, proj_clip)
    return h, (c, h)


def layer_norm_lstm_step(weights: dict[str, Array], x: Array, state: Any) -> tuple[Array, Any]:
    """One step of a LayerNormBasicLSTMCell without dropout."""

    def normalized(values: Array, scope: str) -> Array:
        centred = values - values.mean(1, keepdims=True)
        scaled = centred / np.sqrt(values.var(1, keepdims=True) + 1e-12)
        return scaled * weights[f"{scope}/gamma"] + weights[f"{scope}/beta"]

    c, h = state
    parts = np.split(np.concatenate([x, h], 1) @ weights["kernel"], 4, 1)
    scopes = ("input", "transform", "forget", "output")
    i, j, f, o = (normalized(part, scope) for part, scope in zip(parts, scopes, strict=True))
    c = normalized(c * sigmoid(f + 1.0) + sigmoid(i) * np.tanh(j), "state")
    h = np.tanh(c) * sigmoid(o)
    return h, (c, h)


def run_over(step: Any, inputs: Array, state: Any, lengths: Any = None) -> tuple[Array, Any]:
    """Outputs ``[batch, time, size]`` and the last state of ``step(x, state)`` over ``[batch, time, size]``."""
    batch, steps = inputs.shape[:2]
    lengths = np.full(batch, steps) if lengths is None else np.asarray(lengths)
    outputs = []
    for time in range(steps):
        output, following = step(inputs[:, time], state)
        going = (time < lengths)[:, None]
        outputs.append(np.where(going, output, 0))
        if isinstance(state, tuple):
            state = tuple(np.where(going, new, old) for new, old in zip(following, state, strict=True))
        else:
            state = np.where(going, following, state)
    return np.stack(outputs, 1), state
