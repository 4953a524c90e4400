"""LSTM cells that run over the parts of each input: the values that TensorFlow 1.15 gives for weights of 0.3."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized, variable_names

rnn = tf.contrib.rnn
X = np.array([[1.0, -1, 0.5, 2], [0, 1, 1, -0.5]], np.float32)
PARTS = {"feature_size": 2, "frequency_skip": 1}
THREE = {"num_frequency_blocks": [3], **PARTS}
TWO_BLOCKS = {
    "num_frequency_blocks": [1, 2],
    "start_freqindex_list": [0, 1],
    "end_freqindex_list": [2, 4],
    **PARTS,
}
CASES = {
    "frequencies": (
        lambda: rnn.TimeFreqLSTMCell(2, **PARTS),
        [0.0032, 0.0062, -0.0142, -0.0115, 0.3251, 0.3289],
        (1.5331, 27.1099),
        2,
    ),
    "frequencies, peepholes": (
        lambda: rnn.TimeFreqLSTMCell(2, True, cell_clip=0.5, **PARTS),
        [0.0032, 0.0063, -0.0143, -0.0115, 0.3328, 0.3328],
        (1.5199, 26.1781),
        5,
    ),
    "grid": (lambda: rnn.GridLSTMCell(1, **THREE), [0.0539, 0.0159, 0.1, 0.0049, 0.5343, 0.35], (1.791, 9.6897), 4),
    "peepholes": (
        lambda: rnn.GridLSTMCell(1, True, **THREE),
        [0.0556, 0.0164, 0.1059, 0.0053, 0.6075, 0.4046],
        (2.1338, 10.9514),
        16,
    ),
    "shared, clipped, joined": (
        lambda: rnn.GridLSTMCell(2, True, True, cell_clip=0.6, state_is_tuple=False, **THREE),
        [0.0032, 0.0063, 0.0032, 0.0032, -0.0144, -0.0116, -0.0233, -0.0233, 0.3494, 0.3539, 0.2887, 0.2891],
        (3.5693, 30.0608),
        8,
    ),
    "coupled": (
        lambda: rnn.GridLSTMCell(1, True, couple_input_forget_gates=True, **THREE),
        [0.0413, 0.0164, 0.0658, 0.001, 0.4605, 0.3907],
        (1.5533, 7.5013),
        12,
    ),
    "coupled, shared": (
        lambda: rnn.GridLSTMCell(1, False, True, couple_input_forget_gates=True, forget_bias=0.0, **THREE),
        [0.0408, 0.0159, 0.0684, 0.0016, 0.4174, 0.3454],
        (1.4035, 7.1379),
        2,
    ),
    "blocks": (
        lambda: rnn.GridLSTMCell(1, **TWO_BLOCKS),
        [0.0539, 0.0159, 0.0985, -0.0073, 0.5332, 0.3367],
        (1.5833, 9.3869),
        8,
    ),
    "blocks, joined": (
        lambda: rnn.GridLSTMCell(1, state_is_tuple=False, **TWO_BLOCKS),
        [0.0013, 0.0013, -0.0309, -0.0309, 0.2942, 0.2453],
        (1.1353, 5.1086),
        8,
    ),
    "both ways": (
        lambda: rnn.BidirectionalGridLSTMCell(1, **THREE),
        [0.0539, 0.0159, 0.1, 0.0049, 0.5343, 0.35, 0.6005, 0.3661, 0.3886, 0.2925, 0.4983, 0.3766],
        (4.5309, 59.0243),
        8,
    ),
    "both ways, peepholes": (
        lambda: rnn.BidirectionalGridLSTMCell(1, True, backward_slice_offset=1, **THREE),
        [0.0556, 0.0164, 0.1059, 0.0053, 0.6075, 0.4046, 0.641, 0.3705, 0.7965, 0.7182, 0.6599, 0.6693],
        (4.6779, 60.2757),
        32,
    ),
    "both ways, to the left": (
        lambda: rnn.BidirectionalGridLSTMCell(1, backward_slice_offset=-1, **THREE),
        [0.0539, 0.0159, 0.1, 0.0049, 0.5343, 0.35, 0.2696, 0.0245, 0.4071, 0.1185, 0.5801, 0.3476],
        (4.6197, 56.7976),
        8,
    ),
}


def constants(size):
    """States that differ, of sizes as a cell has them."""
    if isinstance(size, tuple):
        return type(size)(*[tf.fill([2, each], 0.1 * (i + 1)) for i, each in enumerate(size)])
    return tf.constant(0.1 * np.arange(2 * size).reshape(2, size) / size, tf.float32)


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    make, first, total, count = CASES[case]
    cell = make()
    size = 12 if isinstance(cell, rnn.TimeFreqLSTMCell) else cell.state_size
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.3)):
        output, state = cell(tf.constant(X), constants(size))
    found, states = run_initialized([output, state])
    assert type(states) is type(size) or isinstance(states, np.ndarray)
    assert found[0] == pytest.approx(first, abs=1e-4)
    assert found[1].sum() == pytest.approx(total[0], abs=1e-3)
    flat = np.concatenate(states, 1) if isinstance(states, tuple) else states
    assert (flat[1] * np.arange(1, flat.shape[1] + 1)).sum() == pytest.approx(total[1], abs=1e-3)
    assert len(variable_names()) == count


def test_sequences():
    cell = rnn.GridLSTMCell(2, **THREE)
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.3)):
        outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(np.stack([X, X], 1)), dtype=tf.float32)
    scope = "root/rnn/grid_lstm_cell"
    assert variable_names() == [f"{scope}/{name}" for name in ("W_f_0_0", "B_f_0", "W_t_0_0", "B_t_0")]
    assert type(state) is cell.state_tuple_type and state._fields[2] == "state_f01_b00_c"
    found = run_initialized(outputs)[:, 1]
    assert found[0, ::2] == pytest.approx([0, 0, -0.0568, -0.035, 0.4972, 0.2919], abs=1e-4)
    assert found[1, :8:2] == pytest.approx([0.1899, 0.117, 0.4568, 0.3907], abs=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rnn.GridLSTMCell(2), "Must specify num_frequency_blocks"),
        (lambda: rnn.GridLSTMCell(2, num_frequency_blocks=[2], **PARTS), "requires 3 but gets 2"),
        (lambda: rnn.GridLSTMCell(2, num_frequency_blocks=[3]), "needs feature_size"),
        (lambda: rnn.GridLSTMCell(2, num_frequency_blocks=[1, 2], **PARTS), "Length of num_frequency_blocks"),
        (
            lambda: rnn.GridLSTMCell(2, num_frequency_blocks=[1], start_freqindex_list=[0], **PARTS),
            "Length of start and end",
        ),
        (lambda: rnn.TimeFreqLSTMCell(2, num_unit_shards=2, **PARTS), "num_unit_shards is 2"),
    ],
)
def test_misuse(make, words):
    with pytest.raises(ValueError, match=words):
        cell = make()
        cell(tf.constant(X), constants(cell.state_size))
