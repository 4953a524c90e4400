"""`tf.contrib.opt`: optimizers outside the graph, with decayed weights, of signs, and others, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError


def trained(optimizer, gradients, start=(1.0, -2.0), sparse=False, **options):
    """A variable after one step for each gradient."""
    variable = tf.Variable(np.array(start, np.float32).reshape(-1, 1) if sparse else np.array(start, np.float32))
    given = tf.placeholder(tf.float32, [None, 1] if sparse else [2])
    gradient = tf.IndexedSlices(given, [0] * len(gradients[0])) if sparse else given
    step = tf.train.create_global_step()
    update = optimizer.apply_gradients([(gradient, variable)], step, **options)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in gradients:
            session.run(update, {given: np.reshape(value, [-1, 1]) if sparse else value})
        return session.run(variable).ravel()


GRADIENTS = [(1.0, -2.0), (-0.5, -1.0), (0.25, 0.0)]


@pytest.mark.parametrize("kind", ["add", "power"])
@pytest.mark.parametrize("decays", [False, True])
def test_optimizers_that_look_at_signs(kind, decays):
    opt = tf.contrib.opt
    decay = opt.get_linear_decay_fn(4) if decays else None
    made = {"add": opt.AddSignOptimizer(0.5, 2.0, 0.75, decay), "power": opt.PowerSignOptimizer(0.5, 3.0, 0.75, decay)}
    value, mean = np.array([1.0, -2.0]), np.zeros(2)
    for turn, gradient in enumerate(np.array(GRADIENTS)):
        mean = 0.75 * mean + 0.25 * gradient
        signs = np.sign(gradient) * np.sign(mean) * ((1 - turn / 4) if decays else 1)
        value = value - 0.5 * (2 + signs if kind == "add" else 3.0**signs) * gradient
    np.testing.assert_allclose(trained(made[kind], GRADIENTS), value, rtol=1e-5)


def test_signs_of_sparse_gradients():
    found = trained(tf.contrib.opt.AddSignOptimizer(0.5, 2.0, 0.75), [(1.0, 1.0), (-0.5, -0.5)], sparse=True)
    mean = np.array([0.25 * 2, 0.75 * 0.5 - 0.25])
    np.testing.assert_allclose(found, [1 - 0.5 * 3 * 2 - 0.5 * (2 - np.sign(mean[1])) * -1, -2], rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "expected"),  # after 0, 1, 3, 4 and 9 steps
    [
        (lambda opt: opt.get_linear_decay_fn(4), [1, 0.75, 0.25, 0, 0]),
        (lambda opt: opt.get_cosine_decay_fn(4), [1, 0.5 + 0.5**1.5, 0.5 - 0.5**1.5, 0, 0]),
        (lambda opt: opt.get_cosine_decay_fn(4, 1, 0.75), [1, 0.5, 0, 0, 0]),
        (lambda opt: opt.get_restart_decay_fn(4, 2), [1, 0.5, 0.5, 1, 1]),
        (lambda opt: opt.get_restart_decay_fn(4, 2, 1.5), [1, 0.5, 0, 0, 0]),
    ],
)
def test_decays_of_signs(session, make, expected):
    decay = make(tf.contrib.opt)
    steps = tf.constant([0, 1, 3, 4, 9], tf.int64)
    np.testing.assert_allclose(session.run([decay(step) for step in tf.unstack(steps)]), expected, atol=1e-6)
    with pytest.raises(ValueError, match="global_step is required"):
        decay(None)


@pytest.mark.parametrize(("skipped", "start"), [((), (3.0, 4.0)), (["Vari"], (3.0, 4.0)), ((), (0.0, 0.0))])
def test_a_learning_rate_for_each_layer(skipped, start):
    optimizer = tf.contrib.opt.LARSOptimizer(0.5, 0.75, 0.25, 0.125, 0.0625, skip_list=skipped)
    value, momentum = np.array(start), np.zeros(2)
    for gradient in np.array(GRADIENTS[:2]):
        size, slope = np.linalg.norm(value), np.linalg.norm(gradient)
        ratio = 0.125 * size / (slope + 0.25 * size + 0.0625) if size and not skipped else 1
        decay = 0 if skipped else 0.25 * value
        momentum = 0.75 * momentum + 0.5 * ratio * (gradient + decay)
        value = value - momentum
    np.testing.assert_allclose(trained(optimizer, GRADIENTS[:2], start), value, rtol=1e-5)
    with pytest.raises(ValueError, match="momentum should be positive"):
        tf.contrib.opt.LARSOptimizer(0.5, -1.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_adam_with_the_largest_gradient(sparse):
    optimizer = tf.contrib.opt.AdaMaxOptimizer(0.5, 0.75, 0.875, 0.125)
    gradients = [(2.0, 1.0), (-1.0, 0.5)] if sparse else GRADIENTS
    value, mean, largest = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for turn, gradient in enumerate(np.array(gradients)):
        rows = [0] if sparse else [0, 1]
        gradient = np.array([gradient.sum(), 0]) if sparse else gradient
        mean[rows] = (0.75 * mean + 0.25 * gradient)[rows]
        largest[rows] = np.maximum(0.875 * largest, np.abs(gradient))[rows]
        value[rows] -= (0.5 / (1 - 0.75 ** (turn + 1)) * mean / (largest + 0.125))[rows]
    np.testing.assert_allclose(trained(optimizer, gradients, sparse=sparse), value, rtol=1e-5)


def test_gradients_of_zeros_change_nothing(session):
    optimizer = tf.contrib.opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(1.0, 0.5))
    variable, table = tf.Variable([1.0, 2.0]), tf.Variable([[1.0], [2.0]])
    weight = tf.placeholder(tf.float32, [])
    loss = weight * (tf.reduce_sum(variable) + tf.reduce_sum(tf.gather(table, [1])))
    step = optimizer.minimize(loss)
    session.run(tf.global_variables_initializer())
    for value in (1.0, 0.0, 0.0):
        session.run(step, {weight: value})
    assert session.run(variable).tolist() == [0, 1] and session.run(table).tolist() == [[1], [1]]
    clipped, norm = tf.contrib.opt.clip_gradients_by_global_norm(
        [(tf.constant([3.0, 4.0]), variable), (None, table), (tf.zeros([2]), variable)], 1.0
    )
    found = session.run([clipped[0][0], norm])
    np.testing.assert_allclose(found[0], [0.6, 0.8], rtol=1e-6)
    assert found[1] == 5 and clipped[1] == (None, table)
    with pytest.raises(TypeError, match="must be an instance"):
        tf.contrib.opt.MultitaskOptimizerWrapper(3)


def test_variables_of_bounded_norms(session):
    dense, table = tf.Variable([[3.0, 4.0], [0.3, 0.4]]), tf.Variable([[3.0, 4.0], [6.0, 8.0]])
    inner = tf.train.GradientDescentOptimizer(1.0)
    optimizer = tf.contrib.opt.VariableClippingOptimizer(inner, {dense: [1], table: [1]}, 1.0)
    gradients = [(tf.zeros([2, 2]), dense), (tf.IndexedSlices(tf.zeros([1, 2]), [1], [2, 2]), table)]
    step = optimizer.apply_gradients(gradients)
    session.run(tf.global_variables_initializer())
    session.run(step)
    np.testing.assert_allclose(session.run(dense), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(session.run(table), [[3, 4], [0.6, 0.8]], rtol=1e-6)


def test_means_are_saved_in_place_of_variables(session, tmp_path):
    variable = tf.Variable(4.0, name="v")
    optimizer = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 0.5)
    with pytest.raises(RuntimeError, match="apply_gradients or minimize"):
        optimizer.swapping_saver()
    step = optimizer.minimize(2.0 * variable)
    saver = optimizer.swapping_saver()
    session.run(tf.global_variables_initializer())
    session.run(step)
    path = saver.save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "v") == 3 and session.run(variable) == 2
    tf.train.Saver([variable]).restore(session, path)
    assert session.run(variable) == 3


@pytest.mark.parametrize(
    ("make", "expected"),
    [  # variables are multiplied by 0.9 before the update
        (lambda opt: opt.AdamWOptimizer(0.1, 0.5), [0.9 - 0.5, 1.8 - 0.5]),
        (lambda opt: opt.MomentumWOptimizer(lambda: 0.1, 0.5, 0.9), [0.9 - 0.5, 1.8 - 1.0]),
        (
            lambda opt: opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)(
                tf.constant(0.1), 0.5
            ),
            [0.9 - 0.5, 1.8 - 1.0],
        ),
    ],
)
def test_weights_that_decay(session, make, expected):
    optimizer = make(tf.contrib.opt)
    v, kept = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    loss = tf.reduce_sum(v * v + kept * kept) / 2
    step = optimizer.minimize(loss, var_list=[v, kept], decay_var_list=[v])
    session.run(tf.global_variables_initializer())
    session.run(step)
    np.testing.assert_allclose(session.run(v), expected, rtol=1e-5)
    np.testing.assert_allclose(session.run(kept), np.add(expected, [0.1, 0.2]), rtol=1e-5)


def test_rows_without_a_gradient_do_not_decay(session):
    optimizer = tf.contrib.opt.MomentumWOptimizer(0.1, 0.5, 0.9)
    table = tf.Variable([[1.0], [2.0], [4.0]])
    step = optimizer.minimize(tf.reduce_sum(tf.gather(table, [1, 1])))
    session.run(tf.global_variables_initializer())
    session.run(step)
    np.testing.assert_allclose(session.run(table), [[1.0], [2.0 * 0.9 - 0.5 * 2], [4.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda opt: opt.NadamOptimizer(), ["beta1_power", "beta2_power", "v/Adam", "v/Adam_1"]),
        (lambda opt: opt.AdaMaxOptimizer(), ["beta1_power", "v/AdaMax", "v/AdaMax_1"]),
        (lambda opt: opt.LARSOptimizer(0.1), ["v/LARSOptimizer"]),
    ],
)
def test_checkpoints_name_what_optimizers_keep_as_in_tensorflow(make, names):
    variable = tf.Variable([1.0], name="v")
    make(tf.contrib.opt).minimize(variable * variable)
    assert sorted(each.op.name for each in tf.global_variables()) == sorted(["v", *names])


# -- optimizers outside the graph --------------------------------------------------------------------------


def rosenbrock(x):
    return tf.reduce_sum(100.0 * tf.square(x[1:] - tf.square(x[:-1])) + tf.square(1.0 - x[:-1]))


def test_lbfgs():
    x = tf.Variable([-1.2, 1.0, 0.5], dtype=tf.float64)
    loss = rosenbrock(x)
    seen = []
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 200, "gtol": 1e-8})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session, fetches=[loss], loss_callback=lambda value: seen.append(float(value)))
        np.testing.assert_allclose(session.run(x), 1.0, atol=1e-4)
    assert seen[0] > 1 > 1e-6 > min(seen)


def test_lbfgs_on_several_variables_with_bounds():
    a, b = tf.Variable([[3.0, 3.0]]), tf.Variable(5.0)
    table = tf.Variable(np.ones((4, 2), np.float32))
    target = tf.placeholder(tf.float32, [])
    loss = tf.reduce_sum(tf.square(a - 1.0)) + tf.square(b - target)
    loss += tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, [1, 3]) - 2.0))
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, var_to_bounds={a: (2.0, 4.0)})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(feed_dict={target: -7.0})
        results = session.run([a, b, table])
    np.testing.assert_allclose(results[0], 2.0, rtol=1e-5)
    np.testing.assert_allclose(results[1], -7.0, rtol=1e-4)
    np.testing.assert_allclose(results[2], [[1, 1], [2, 2], [1, 1], [2, 2]], rtol=1e-3)


def test_constraints():
    x = tf.Variable([3.0, -1.0], dtype=tf.float64)
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(
        tf.reduce_sum(tf.square(x)), equalities=[tf.reduce_sum(x) - 2.0], inequalities=[x[0] - 1.5]
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        np.testing.assert_allclose(session.run(x), [1.5, 0.5], atol=1e-5)


class _OneStep(tf.contrib.opt.ExternalOptimizerInterface):
    def _minimize(self, initial_val, loss_grad_func, step_callback, **settings):
        step_callback(initial_val)
        return initial_val - loss_grad_func(initial_val)[1]


def test_methods_of_ones_own_are_called_without_callbacks_too():
    x = tf.Variable([7.0, -2.0])
    loss = tf.reduce_sum(tf.square(x - [0.0, 1.0])) / 2.0
    seen = []
    with tf.Session() as session:
        for callback in (None, seen.append):
            session.run(tf.global_variables_initializer())
            _OneStep(loss).minimize(session, step_callback=callback)
            np.testing.assert_allclose(session.run(x), [0.0, 1.0], atol=1e-6)
        np.testing.assert_allclose(seen, [[7.0, -2.0]])
        with pytest.raises(NotImplementedError, match="subclass from it and implement the _minimize"):
            tf.contrib.opt.ExternalOptimizerInterface(loss).minimize(session)


def test_nothing_to_minimise():
    with pytest.raises(InvalidArgumentError, match="No variables"):
        tf.contrib.opt.ScipyOptimizerInterface(tf.constant(1.0))
    tf.Variable(1.0)
    with pytest.raises(InvalidArgumentError, match="depends on none"):
        tf.contrib.opt.ScipyOptimizerInterface(tf.constant(1.0))


def test_nadam():
    var = tf.Variable([1.0, 2.0])
    train_op = tf.contrib.opt.NadamOptimizer(0.25, 0.5, 0.75, 0.125).minimize(tf.reduce_sum(var * [2.0, -1.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        gradient = np.array([2.0, -1.0])
        ahead, v = 0.5 * 0.5 * gradient + 0.5 * gradient, 0.25 * gradient**2
        step = 0.25 * np.sqrt(0.25) / 0.5 * ahead / (np.sqrt(v) + 0.125)
        np.testing.assert_allclose(session.run(var), [1.0, 2.0] - step, rtol=1e-5)
