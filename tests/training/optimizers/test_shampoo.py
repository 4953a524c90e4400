"""`tf.contrib.opt.ShampooOptimizer`: steps as TensorFlow 1.15 makes them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import ArgumentError
from tfray.training.optimizers.matrix_roots import matrix_inverse_pth_root, matrix_square_root

SHAPES = [(3,), (3, 2), (2, 3, 2), (4, 1)]


def gradients_by_shape():
    """Gradients of three steps, to two places."""
    random = np.random.RandomState(0)
    return {shape: random.normal(size=(3, *shape)).astype(np.float32).round(2) for shape in SHAPES}


def trained(shape, rows, **settings):
    """The optimizer, and a variable of ones after three steps; of sparse gradients where there are rows."""
    variable, step = tf.Variable(np.ones(shape, np.float32)), tf.Variable(0, trainable=False)
    given = tf.placeholder(tf.float32, [None, *shape[1:]])
    gradient = tf.reshape(given, shape) if rows is None else tf.IndexedSlices(given, tf.constant(rows), list(shape))
    optimizer = tf.contrib.opt.ShampooOptimizer(global_step=step, **settings)
    update = optimizer.apply_gradients([(gradient, variable)], step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in gradients_by_shape()[shape]:
            session.run(update, {given: value if rows is None else value[: len(rows)]})
        return optimizer, session.run(variable).ravel()


STEPS = [
    ((3,), None, {}, [-2.55182, 0.76402, 1.68226]),
    ((3, 2), None, {}, [0.07982, -0.10158, 0.40429, -0.78591, 2.57717, 0.67427]),
    ((2, 3, 2), None, {}, [0.84524, 0.64256, 1.0767, 1.51893, -0.37233, 1.72165, 2.16001, 2.09402, 0.69499,
     1.07519, 0.65612, 2.17354]),
    ((4, 1), None, {}, [1.79951, 1.05059, 2.0201, 1.28993]),
    ((3, 2), None, {"gbar_decay": 0.5, "gbar_weight": 0.5, "mat_gbar_decay": 0.9, "mat_gbar_weight": 0.1,
     "learning_rate": 0.1, "alpha": 1.0, "epsilon": 0.01}, [0.61962, 0.73743, 0.32981, 0.46778, 1.7603, 0.29345]),
    ((3, 2), None, {"max_matrix_size": 2}, [-0.34908, -0.63813, 0.4065, -1.01196, 2.31245, 0.88139]),
    ((2, 3, 2), None, {"max_matrix_size": 1, "mat_gbar_decay": 0.5}, [1.02519, 0.83477, 1.33615, 1.67449,
     -0.48093, 1.8702, 2.16484, 2.24695, 0.73352, 1.31535, 0.53812, 2.24352]),
    ((3,), None, {"max_matrix_size": 2}, [-1.10267, -0.89968, 0.77907]),
    ((3, 2), None, {"svd_interval": 2, "precond_update_interval": 2}, [-2.29149, 1.04605, 6.19348, -4.40876,
     1.90328, 1.38438]),
    ((3, 2), None, {"gbar_decay": lambda t: t / (t + 1.0), "gbar_weight": lambda t: 1 / (t + 1.0),
     "learning_rate": lambda t: 0.5 / t}, [0.83486, 0.89529, 0.54709, 0.76534, 1.19867, 0.74009]),
    ((3, 2), None, {"use_iterative_root": True}, [0.07982, -0.10158, 0.40429, -0.78591, 2.57717, 0.67427]),
    ((4, 1), None, {"use_iterative_root": True, "alpha": 1.0}, [1.58144, 1.31095, 1.68456, 1.15459]),
    ((3, 2), [2, 0], {}, [0.71996, -1.41523, 1.0, 1.0, -0.77065, 0.25493]),
    ((3, 2), [2, 0], {"max_matrix_size": 2}, [0.59367, -0.77031, 1.0, 1.0, -0.19889, -0.40947]),
    ((2, 3, 2), [1], {"max_matrix_size": 1}, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.08453, 0.73956, 0.9607, 1.48498,
     -0.05196, 1.71221]),
    ((3, 2), [2, 2], {"max_matrix_size": 2}, [1.0, 1.0, 1.0, 1.0, 0.09798, -1.41424]),
    ((3, 2), None, {"mat_gbar_decay": 0.0}, [0.07847, -0.40464, 1.35143, -1.48901, 3.60912, 0.84891]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "rows", "settings", "expected"),  # what TensorFlow 1.15 printed
    STEPS,
)
def test_steps(shape, rows, settings, expected):
    optimizer, found = trained(shape, rows, **settings)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    kept = [f"H_{place}" for place in range(len(shape))] if "svd_interval" in settings else []
    assert optimizer.get_slot_names() == [*(f"Gbar_{place}" for place in range(len(shape))), *kept, "gbar"]


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([2, 0], {"max_matrix_size": 2, "mat_gbar_decay": 0.5}, "mat_gbar_decay of 1"),
        (None, {"use_iterative_root": True, "alpha": 0.3}, "use_iterative_root needs an alpha"),
    ],
)
def test_settings_that_do_not_go_together(rows, settings, message):
    with pytest.raises((ValueError, ArgumentError), match=message):
        trained((3, 2), rows, **settings)


def test_roots_of_matrices_by_iteration():
    random = np.random.default_rng(0).normal(size=(6, 6))
    matrix = random @ random.T + np.eye(6)
    values, vectors = np.linalg.eigh(matrix)
    with tf.Session() as session:
        root = session.run(matrix_square_root(matrix, 6, ridge_epsilon=0.0))
        np.testing.assert_allclose(root @ root, matrix, rtol=1e-5)
        power = session.run(matrix_inverse_pth_root(matrix, 6, -0.25))
        np.testing.assert_allclose(power, vectors * values**-0.25 @ vectors.T, rtol=1e-4, atol=1e-6)
        assert session.run(matrix_inverse_pth_root([[16.0]], 1, -0.25))[0, 0] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="-1 / p for a whole p"):
        matrix_inverse_pth_root(matrix, 6, -0.3)
