"""What recurrent cells compute."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework.convert import add_op
from tfray.ops.nn import recurrent_ops


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm(projected, bias, cell):
    i, j, f, o = np.split(projected + bias, 4, 1)
    i, j, f, o = _sigmoid(i), np.tanh(j), _sigmoid(f + 0.5), _sigmoid(o)
    new_cell = cell * f + i * j
    return [new_cell, np.tanh(new_cell) * o, np.concatenate([i, j, f, o], 1)]


def _lstm_grad(gates, cell, new_cell, d_cell, d_output):
    i, j, f, o = np.split(gates, 4, 1)
    squashed = np.tanh(new_cell)
    d_inner = d_cell + d_output * o * (1 - squashed**2)
    parts = [
        d_inner * j * i * (1 - i),
        d_inner * i * (1 - j**2),
        d_inner * cell * f * (1 - f),
        d_output * squashed * o * (1 - o),
    ]
    return [np.concatenate(parts, 1), d_inner * f]


SAMPLES = [
    *[
        OpSample(
            "LSTMGates",
            lambda *arrays: recurrent_ops.lstm_gates(*arrays, forget_bias=0.5)[0].op.outputs,
            [grid(batch, 12), grid(12, seed=1), grid(batch, 3, seed=2)],
            _lstm,
            tolerance=4,
        )
        for batch in (2, 0)
    ],
    OpSample(
        "LSTMGatesGrad",
        lambda *arrays: add_op(recurrent_ops.LSTM_GATES_GRAD, *arrays),
        [grid(2, 12, low=0, high=1), *(grid(2, 3, seed=seed) for seed in range(4))],
        _lstm_grad,
        tolerance=8,
    ),
]

ERRORS = [
    OpError("LSTMGates", recurrent_ops.lstm_gates, [grid(2, 12), grid(8, seed=1), grid(2, 3, seed=2)], "incompatible"),
]
