"""Further optimizers of `tf.contrib.opt`: the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

opt = tf.contrib.opt


def problem(dtype=np.float32, sparse=False):
    """A loss of two variables."""
    b = tf.Variable(np.array([1, -2], dtype), name="b")
    a = tf.Variable(np.array([[0.5, 1], [2, -1]], dtype), name="a")
    if sparse:
        return a, b, tf.reduce_sum(tf.gather(a, [1, 1]) ** 2 * [1.0, 2.0]) + tf.reduce_sum(b**2)
    return a, b, tf.reduce_sum(tf.matmul(a, b[:, None]) ** 2) + tf.reduce_sum((a - 1) ** 4)


def trained(update, steps, *variables):
    """Values of variables after some steps, one after the other."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(update)
        return np.concatenate([session.run(variable).ravel() for variable in variables])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"learning_rate": 0.1, "window": 3}, [0.54679, 0.90084, 1.89539, -0.70139, 0.86965, -1.95298]),
        ({"learning_rate": 0.05, "eps": 1.0, "window": 2}, [0.51677, 0.96798, 1.95494, -0.85307, 0.9454, -1.96994]),
    ],
)
def test_full_matrices(settings, expected):
    a, b, loss = problem(np.float64)
    step = tf.train.create_global_step()
    update = opt.GGTOptimizer(**settings).minimize(loss, global_step=step)
    assert trained(update, 3, a, b) == pytest.approx(np.array(expected), abs=1e-4)
    shapes = {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()[3:]}
    window = settings["window"]
    assert shapes == {"global_step_1": [], "grad_buffer": [window, 6], "moment1": [6], "flat_grad": [6]}


def test_full_matrices_of_dense_gradients_only():
    a, _, loss = problem(sparse=True)
    with pytest.raises(NotImplementedError, match="Sparse gradient updates are not supported"):
        opt.GGTOptimizer().minimize(loss, var_list=[a])


ADAM = [0.7895799, 0.70709, 1.70626, -0.70301, 0.70442, -1.70648]
GATHERED = [0.5, 1, 1.70062, -0.70159, 0.70159, -1.70062]


@pytest.mark.parametrize(
    ("make", "sparse", "expected"),
    [
        (opt.AdamGSOptimizer, False, ADAM),
        (opt.AdamGSOptimizer, True, GATHERED),
        (opt.LazyAdamGSOptimizer, True, GATHERED),
        (
            lambda step, rate: opt.AdamGSOptimizer(learning_rate=rate),
            False,
            [0.87243, 0.62199, 1.62036, -0.61449, 0.61701, -1.62075],
        ),
    ],
    ids=["dense", "sparse", "lazy", "always the first step"],
)
def test_steps_are_counted_outside(make, sparse, expected):
    a, b, loss = problem(sparse=sparse)
    step = tf.train.create_global_step()
    optimizer = make(step, 0.1)
    update = optimizer.minimize(loss, global_step=step)
    assert trained(update, 3, a, b) == pytest.approx(np.array(expected), abs=1e-4)
    slots = {variable.op.name for variable in tf.global_variables()[3:]}
    assert slots == {"a/Adam", "a/Adam_1", "b/Adam", "b/Adam_1"} and optimizer.get_slot_names() == ["m", "v"]


def test_sums_of_squares_that_stand_still():
    a, b, loss = problem()
    update = opt.RegAdagradOptimizer(0.5).minimize(loss)
    expected = [1.0651, 0.45492, 1.37647, -0.20972, 0.29614, -1.38014]
    assert trained(update, 3, a, b) == pytest.approx(np.array(expected), abs=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_regularization_leaves_sums_of_squares_alone(sparse):
    a = tf.Variable([[0.5, 1.0], [2, -1]])
    loss = tf.reduce_sum(tf.gather(a, [1, 1]) ** 2 * [1.0, 2.0] if sparse else a**2)
    optimizer = opt.RegAdagradOptimizer(0.5)
    with optimizer.avoid_updating_slots():
        update = optimizer.minimize(loss)
    found = trained(update, 2, a, optimizer.get_slot(a, "accumulator"))
    expected = [0.5, 1, 56.70178, -135.70176] if sparse else [2.33772, 4.67544, 9.35089, -4.67544]
    assert found == pytest.approx(np.array([*expected, *[0.1] * 4]), rel=1e-5)


def test_gradients_in_time_are_applied():
    a, b, loss = problem()
    step = tf.train.create_global_step()
    optimizer = opt.DropStaleGradientOptimizer(tf.train.AdamOptimizer(0.1), staleness=1)
    update = optimizer.minimize(loss, global_step=step)
    assert trained(update, 3, a, b) == pytest.approx(np.array(ADAM), abs=1e-4)
    assert optimizer.get_slot_names() == ["m", "v"] and optimizer.get_slot(a, "m").op.name == "a/Adam"
    assert [each.op.name for each in tf.get_collection("summaries")] == ["Gradient_staleness_percentage"]


@pytest.mark.parametrize(("meanwhile", "dropped"), [(0, 0), (2, 0), (3, 1)])
def test_gradients_that_are_late_are_dropped(meanwhile, dropped):
    variable = tf.Variable(1.0)
    step = tf.train.create_global_step()
    optimizer = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), staleness=2)
    ((gradient, _),) = optimizer.compute_gradients(variable * 1.0, [variable])
    with tf.control_dependencies([gradient, step.assign_add(meanwhile)]):
        late = tf.identity(gradient)
    update = optimizer.apply_gradients([(late, variable)], step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(update) == dropped
        assert session.run([variable, step]) == ([1.0, 3] if dropped else [0.5, meanwhile + 1])


def test_late_gradients_need_a_global_step():
    variable = tf.Variable(1.0)
    optimizer = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), 1)
    with pytest.raises(ValueError, match="needs a global step"):
        optimizer.compute_gradients(variable * 1.0)
    with pytest.raises(ValueError, match="needs global_step"):
        optimizer.apply_gradients([(tf.constant(1.0), variable)])
    with pytest.raises(ValueError, match="call compute_gradients"):
        optimizer.apply_gradients([(tf.constant(1.0), variable)], tf.train.create_global_step())


@pytest.mark.parametrize(
    ("parts", "slots"),
    [
        (None, {"a/w/Adagrad": [4, 1]}),
        (1, {"w/0/Adagrad": [4, 1]}),
        (2, {"w/Adagrad": [4, 1]}),
    ],
)
def test_slots_within_a_scope(parts, slots, tmp_path):
    """The names of TensorFlow 1.15 in a checkpoint; of several parts it has one for each, which lacks the others."""
    w = tf.get_variable("w", [4, 1], partitioner=parts and tf.fixed_size_partitioner(parts))
    with tf.variable_scope("a"):
        update = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.convert_to_tensor(w) ** 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    assert dict(tf.train.list_variables(path)) == {"w": [4, 1], **slots}


def test_slots_of_canned_estimators_and_of_optimize_loss(tmp_path):
    """The names of TensorFlow 1.15, with which training goes on from its checkpoints."""
    column = tf.feature_column.numeric_column("a")
    estimator = tf.estimator.DNNClassifier([2], [column], str(tmp_path))
    estimator.train(lambda: ({"a": tf.constant([[1.0], [2.0]])}, tf.constant([0, 1])), steps=1)
    layers = [f"dnn/{layer}/{kind}" for layer in ("hiddenlayer_0", "logits") for kind in ("bias", "kernel")]
    assert set(estimator.get_variable_names()) == {"global_step", *layers, *(f"{each}/t_0/Adagrad" for each in layers)}
    w = tf.get_variable("w", [2])
    tf.train.create_global_step()
    tf.contrib.layers.optimize_loss(tf.reduce_sum(w**2), None, 0.1, "Adam")
    names = [variable.op.name for variable in tf.global_variables()]
    assert names[2:] == [
        f"OptimizeLoss/{name}" for name in ("learning_rate", "beta1_power", "beta2_power", "w/Adam", "w/Adam_1")
    ]
