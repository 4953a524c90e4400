"""`tf.GradientTape` in a graph. Unless a comment says otherwise, the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

NONE, ZERO = tf.UnconnectedGradients.NONE, tf.UnconnectedGradients.ZERO


def given(value=3.0):
    return tf.constant(value)


def run(fetches):
    """The values of tensors in a structure; None stays."""
    flat = tf.nest.flatten(fetches)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = iter(session.run([tensor for tensor in flat if tensor is not None]))
    return [None if tensor is None else np.asarray(next(found)).tolist() for tensor in flat]


def recorded(compute, *watched, **options):
    """A tape that has recorded `compute` and watched the tensors, and what was computed."""
    with tf.GradientTape(persistent=True, **options) as tape:
        tape.watch(watched)
        result = compute()
    return tape, result


# -- what is recorded ------------------------------------------------------------------------------------


def test_a_watched_tensor_has_a_gradient_and_another_has_none():
    x, other = given(), given()
    tape, y = recorded(lambda: x * x * x + other, x)
    assert run(tape.gradient(y, [x, other])) == [27.0, None]
    assert run(tape.gradient(y, {"a": x, "b": (other,)})) == [27.0, None]


def test_what_is_made_outside_does_not_count():
    x = given()
    before = x * x
    tape, inside = recorded(lambda: before * before, before)
    after = inside * 2.0
    sources = [x, before]
    assert run(tape.gradient(inside, sources)) == [None, 18.0]
    assert run(tape.gradient(after, sources)) == [None, None]
    assert run(recorded(lambda: before * before + x, x, before)[0].gradient(after, sources)) == [None, None]


def test_a_path_between_two_watched_tensors_counts_when_it_is_recorded():
    x = given()
    before = x * x
    tape, result = recorded(lambda: before * before + x, x, before)
    assert run(tape.gradient(result, [x, before])) == [1.0, 18.0]
    tape, (square, result) = recorded(lambda: (x * x, (x * x) * (x * x)), x)
    assert run(tape.gradient(square, [x, square])) == [6.0, 1.0]
    assert run(tape.gradient(result, x)) == [108.0]


def test_what_was_computed_while_recording_is_a_source():
    x = given()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        square = x * x
        z = square * square
    assert run([tape.gradient(z, x), tape.gradient(z, [square, x])]) == [108.0, 18.0, 108.0]


def test_recording_stops_and_goes_on():
    x = given()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * y
        w = z * x
    assert run([tape.gradient(w, x), tape.gradient(y, x), tape.gradient(z, x)]) == [81.0, 6.0, None]


def test_a_reset_forgets():
    x = given()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * y
    assert run(tape.gradient(z, x)) == [9.0]


def test_a_gradient_within_the_recording_ends_it_unless_the_tape_is_persistent():
    x = given()
    with tf.GradientTape() as tape:
        tape.watch(x)
        slope = tape.gradient(x * x, x)
    assert run(slope) == [6.0]


def test_a_tape_around_a_tape_records_its_gradients():
    x = given()
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        slope = inner.gradient(y, x)
    assert run([slope, outer.gradient(slope, x)]) == [27.0, 18.0]


# -- variables -------------------------------------------------------------------------------------------


def variables(trainable=True):
    v = tf.get_variable("v", initializer=3.0, use_resource=True, trainable=trainable)
    return v, tf.get_variable("w", initializer=2.0, use_resource=True)


@pytest.mark.parametrize(
    ("trainable", "accessed", "wanted", "names"),
    [(True, True, [12.0, 9.0], ["v", "w"]), (True, False, [None, None], []), (False, True, [None, 9.0], ["w"])],
)
def test_trainable_variables_are_watched_as_they_are_used(trainable, accessed, wanted, names):
    v, w = variables(trainable)
    tape, z = recorded(lambda: v * v * w, watch_accessed_variables=accessed)
    assert run(tape.gradient(z, [v, w])) == wanted
    assert [variable.op.name for variable in tape.watched_variables()] == names


def test_a_variable_that_is_watched_by_name_alone():
    v, w = variables()
    tape, z = recorded(lambda: v * v * w, v, watch_accessed_variables=False)
    assert run(tape.gradient(z, [v, w])) == [12.0, None]
    assert tape.watched_variables() == (v,)


def test_a_variable_is_a_target():
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    tape, _ = recorded(lambda: v * v)
    assert run([tape.gradient(v, v), tape.jacobian(v, v)]) == [[1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]]


def test_every_read_of_a_variable_counts():
    v, _ = variables()
    tape, y = recorded(lambda: v.read_value() * tf.identity(v))
    assert run(tape.gradient(y, v)) == [6.0]


def test_rows_of_a_variable_are_sparse():
    v = tf.get_variable("v", initializer=np.ones((4, 2), np.float32))
    tape, y = recorded(lambda: tf.gather(v, [1, 1]))
    gradient = tape.gradient(y, v)
    assert isinstance(gradient, tf.IndexedSlices)
    assert run([gradient.values, gradient.indices]) == [[[1.0, 1.0], [1.0, 1.0]], [1, 1]]


def test_variables_of_keras_layers():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    with tf.GradientTape() as tape:
        y = dense(tf.constant([[1.0, 2.0]]))
    (gradient,) = tape.gradient(y, dense.trainable_variables)
    with tf.Session() as session:
        session.run([variable.initializer for variable in dense.trainable_variables])
        assert session.run(gradient).tolist() == [[1.0], [2.0]]


def test_an_optimizer_applies_them():
    v, _ = variables()
    with tf.GradientTape() as tape:
        loss = v * v
    train = tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(tape.gradient(loss, [v]), [v], strict=True))
    with tf.control_dependencies([train]):
        after = v.read_value()
    assert run(after) == pytest.approx([2.4])


# -- targets and gradients given -------------------------------------------------------------------------


def test_several_targets_and_their_gradients():
    x = given([3.0, 2.0])
    tape, (y, z) = recorded(lambda: (x * x, x * 3.0), x)
    assert run(tape.gradient([y, z], x)) == [[9.0, 7.0]]
    assert run(tape.gradient([y, z], x, output_gradients=[tf.constant([1.0, 10.0]), None])) == [[9.0, 43.0]]
    # A list of numbers for one target is one gradient; TensorFlow 1.15 takes the first of them alone.
    assert run(tape.gradient(y, x, output_gradients=[1.0, 10.0])) == [[6.0, 40.0]]


def test_zeros_for_what_is_not_connected():
    x, y = given([3.0, 2.0]), given([1.0, 1.0])
    tape, z = recorded(lambda: x * 3.0, x, y)
    assert run(tape.gradient(z, [x, y, tf.constant(5.0)], unconnected_gradients=ZERO)) == [[3.0, 3.0], [0.0, 0.0], 0.0]
    assert run(tape.jacobian(z, y, unconnected_gradients=ZERO)) == [[[0.0, 0.0], [0.0, 0.0]]]
    assert tape.jacobian(z, y) is None


def test_nothing_flows_through_integers():
    x = tf.constant(3)
    tape, y = recorded(lambda: x * x, x)
    assert tape.gradient(y, x) is None


# -- within and around other graphs ----------------------------------------------------------------------


def test_branches_and_loops_are_differentiated():
    """TensorFlow 1.15 raises NotImplementedError."""
    x = given()
    tape, (branch, loop) = recorded(
        lambda: (
            tf.cond(x > 1.0, lambda: x * x, lambda: x * 7.0),
            tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1],
        ),
        x,
    )
    assert run([tape.gradient(branch, x), tape.gradient(loop, x)]) == [6.0, 108.0]


def test_a_tape_within_a_loop():
    v, _ = variables()

    def body(i, total):
        with tf.GradientTape() as tape:
            y = v * v * total
        return i + 1, total + tape.gradient(y, v)

    total = tf.while_loop(lambda i, _: i < 2, body, [0, 1.0])[1]
    assert run(total) == [49.0]  # 1 + 6, and then 7 + 6 * 7


def test_functions_around_a_tape_and_within():
    v, _ = variables()

    @tf.function
    def around(x):
        with tf.GradientTape() as tape:
            y = v * x * x
        return tape.gradient(y, v)

    @tf.function
    def within(x):
        return v * v * x

    x = tf.constant(2.0)
    tape, y = recorded(lambda: within(x), x)
    assert run([around(x), tape.gradient(y, [v, x])]) == [4.0, 12.0, 9.0]


def test_gradients_of_the_programs_own():
    @tf.custom_gradient
    def f(x):
        return x * x, lambda d: d * 100.0

    x = given(2.0)
    tape, y = recorded(lambda: f(x), x)
    assert run(tape.gradient(y, x)) == [100.0]


# -- Jacobians -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [[2, 2], [None, 2], None], ids=str)
def test_jacobians(shape):
    value = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    x = tf.placeholder_with_default(value, shape)
    tape, (product, square, total) = recorded(lambda: (tf.matmul(x, x), x * x, tf.reduce_sum(x * x)), x)
    one = np.eye(2)
    wanted = np.einsum("ik,lj->ijkl", one, value) + np.einsum("ik,jl->ijkl", value, one)
    found = run([tape.jacobian(product, x), tape.jacobian(total, x), tape.batch_jacobian(square, x)])
    np.testing.assert_allclose(found[0], wanted)
    np.testing.assert_allclose(found[1], 2 * value)
    np.testing.assert_allclose(found[2], [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])


def test_a_jacobian_of_many_elements_is_a_loop():
    x = tf.constant(np.arange(100, dtype=np.float32))
    tape, y = recorded(lambda: x * x, x)
    before = len(tf.get_default_graph().get_operations())
    jacobian = tape.jacobian(y, x)
    assert len(tf.get_default_graph().get_operations()) - before < 60
    assert jacobian.shape == [100, 100]
    np.testing.assert_allclose(run(jacobian)[0], np.diag(2 * np.arange(100)))


def test_jacobians_of_several_sources():
    x, other, aside = given([1.0, 2.0]), given([3.0]), given()
    tape, y = recorded(lambda: x * other, x, other, aside)
    found = tape.jacobian(y, {"x": x, "other": other, "aside": aside})
    assert found["aside"] is None
    assert run([found["x"], found["other"]]) == [[[3.0, 0.0], [0.0, 3.0]], [[1.0], [2.0]]]


# -- mistakes --------------------------------------------------------------------------------------------


def test_a_tape_is_asked_once_unless_it_is_persistent():
    x = given()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=r"GradientTape.gradient can only be called once on non-persistent tapes"):
        tape.gradient(y, x)


def test_what_is_wrong_is_said():
    x = given([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with pytest.raises(ValueError, match="Tape is already recording"):
            tape.__enter__()
        with pytest.raises(ValueError, match=r"Passed in object of type <class 'float'>, not tf.Tensor"):
            tape.watch(3.0)
    with pytest.raises(RuntimeError, match="stop recording a tape which is not recording"), tape.stop_recording():
        pass
    with pytest.raises(tf.errors.ArgumentError, match=r"a source is 3.0, expected a tensor or a variable"):
        tape.gradient(y, 3.0)
    for target, source in ((tf.reduce_sum(y), x), (y, tf.constant([[1.0], [2.0]]))):
        with pytest.raises(ValueError, match="Need first dimension of output shape"):
            tape.batch_jacobian(target, source)
