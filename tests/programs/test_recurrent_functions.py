"""TensorFlow's operations that are whole recurrent cells, and old normalisations, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import tfray as tf
from tests.support.sessions import run
from tfray.programs.generated_functions import generated_function

RANDOM = np.random.default_rng(5)
BATCH, INPUTS, UNITS = 2, 3, 4


def random(*shape):
    return RANDOM.normal(size=shape).astype(np.float32) * 0.5


def lstm_arguments():
    names = ["x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"]
    shapes = [(BATCH, INPUTS), (BATCH, UNITS), (BATCH, UNITS), (INPUTS + UNITS, 4 * UNITS), *[(UNITS,)] * 3]
    return dict(zip(names, [random(*shape) for shape in [*shapes, (4 * UNITS,)]], strict=True))


def lstm_in_numpy(x, cs_prev, h_prev, w, wci, wcf, wco, b, forget_bias, clip, sees, order="icfo"):
    pieces = dict(zip(order, np.split(np.concatenate([x, h_prev], 1) @ w + b, 4, 1), strict=True))
    i, f = (
        special.expit(pieces["i"] + sees * wci * cs_prev),
        special.expit(pieces["f"] + forget_bias + sees * wcf * cs_prev),
    )
    ci = np.tanh(pieces["c"])
    cs = np.clip(ci * i + cs_prev * f, -clip, clip) if clip > 0 else ci * i + cs_prev * f
    o, co = special.expit(pieces["o"] + sees * wco * cs), np.tanh(cs)
    return [i, cs, f, o, ci, co, co * o]


@pytest.mark.parametrize("sees", [False, True])
@pytest.mark.parametrize("clip", [0.3, 0.0])
def test_an_lstm_cell_and_its_gradient(sees, clip):
    given = {key: tf.constant(value) for key, value in lstm_arguments().items()}
    cell = generated_function("lstm_block_cell")(**given, forget_bias=0.7, cell_clip=clip, use_peephole=sees)
    expected = lstm_in_numpy(**run(given), forget_bias=0.7, clip=clip, sees=sees)
    for found, wanted in zip(run(list(cell)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    if clip:
        return
    d_cs, d_h = tf.constant(random(BATCH, UNITS)), tf.constant(random(BATCH, UNITS))
    values = {key: getattr(cell, key) for key in ("i", "cs", "f", "o", "ci", "co")}
    own = generated_function("lstm_block_cell_grad")(**given, **values, cs_grad=d_cs, h_grad=d_h, use_peephole=sees)
    sources = [given["cs_prev"], given["b"], *(given[key] for key in ("wci", "wcf", "wco") if sees)]
    wanted = run(tf.gradients([cell.cs, cell.h], sources, [d_cs, d_h]))
    found = run(list(own))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[1].sum(0), wanted[1], rtol=1e-4, atol=1e-6)
    for index in range(3):
        np.testing.assert_allclose(found[2 + index], wanted[2 + index] if sees else 0, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["block_lstm", "block_lstm_v2"])
def test_an_lstm_over_all_steps(name):
    given = lstm_arguments()
    steps = given["x"] = random(5, BATCH, INPUTS)
    options = {} if name.endswith("v2") else {"forget_bias": 0.5}
    made = generated_function(name)(3, **given, cell_clip=0.4, use_peephole=True, **options)
    order = "ifco" if name.endswith("v2") else "icfo"
    expected = []
    for x in steps[:3]:
        before = {"cs_prev": expected[-1][1], "h_prev": expected[-1][6]} if expected else {}
        expected.append(
            lstm_in_numpy(
                **{**given, **before, "x": x},
                forget_bias=options.get("forget_bias", 0.0),
                clip=0.4,
                sees=True,
                order=order,
            )
        )
    for index, found in enumerate(run(list(made))):
        np.testing.assert_allclose(found[:3], [each[index] for each in expected], rtol=1e-5, atol=1e-6)
        assert not found[3:].any()


def test_a_gru_cell():
    x, h, w_ru, w_c, b_ru, b_c = (
        random(*shape)
        for shape in [(BATCH, INPUTS), (BATCH, UNITS), (7, 2 * UNITS), (7, UNITS), (2 * UNITS,), (UNITS,)]
    )
    found = run(list(generated_function("gru_block_cell")(x, h, w_ru, w_c, b_ru, b_c)))
    r, u = np.split(special.expit(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, r * h], 1) @ w_c + b_c)
    for mine, wanted in zip(found, [r, u, c, u * h + (1 - u) * c], strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5)


def test_ranks_of_cells_are_checked():
    given = lstm_arguments()
    with pytest.raises(ValueError, match="must be rank 2 but is rank 1"):
        generated_function("lstm_block_cell")(**{**given, "x": given["x"][0]})


@pytest.mark.parametrize("scales", [True, False])
def test_gradients_of_the_old_normalization(scales):
    x, d_y = random(2, 3, 3, 4), random(2, 3, 3, 4)
    m, v, gamma = random(4), np.abs(random(4)), random(4)
    tensors = [tf.constant(value) for value in (x, m, v, np.zeros(4, np.float32), gamma)]
    y = (tensors[0] - tensors[1]) * tf.rsqrt(tensors[2] + 0.1) * (tensors[4] if scales else 1.0) + tensors[3]
    function = generated_function("_batch_norm_with_global_normalization_grad")
    made = function(x, m, v, gamma, d_y, 0.1, scales)
    wanted = tf.gradients(y, tensors if scales else tensors[:4], d_y)
    for found, expected in zip(run(list(made)[: len(wanted)]), run(wanted), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert scales or not run(made.dg).any()
