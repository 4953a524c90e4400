"""How branches and loops meet the rest of the system: state, names, random numbers, errors, threads, other forms."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import interpret
from tests.support.region_runs import run
from tfray.errors import InvalidArgumentError, OutOfRangeError, UnknownError

# -- state, effects, order -----------------------------------------------------------------------------


def test_assignments_in_a_body_under_control_dependencies(session):
    v = tf.Variable(1.0)

    def body(i):
        with tf.control_dependencies([v.assign(v.read_value() * 2)]):
            return tf.identity(i) + 1

    loop = tf.while_loop(lambda i: i < 5, body, [0])
    session.run(v.initializer)
    assert session.run(loop) == 5
    assert session.run(v) == 32.0


def test_a_body_reads_what_it_wrote(session):
    v = tf.Variable([1.0, 1.0])

    def body(i, seen):
        with tf.control_dependencies([v.assign_add([1.0, 2.0])]):
            return i + 1, seen + tf.reduce_sum(v.read_value())

    _, seen = tf.while_loop(lambda i, s: i < 3, body, [0, 0.0])
    session.run(v.initializer)
    assert session.run(seen) == 5 + 8 + 11
    assert session.run(v).tolist() == [4.0, 7.0]


def test_loops_after_loops_see_their_updates(session):
    v = tf.Variable(0.0)

    def add(amount):
        def body(i):
            with tf.control_dependencies([v.assign_add(amount)]):
                return tf.identity(i) + 1

        return tf.while_loop(lambda i: i < 3, body, [0])

    first = add(1.0)
    with tf.control_dependencies([first]):
        second = add(10.0)
        with tf.control_dependencies([second]):
            value = v.read_value()
    session.run(v.initializer)
    assert session.run([value, second]) == [33.0, 3]


def test_a_body_waits_for_what_stands_before_the_loop(session):
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign(5.0)]):
        loop = tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + v.read_value()), [0, 0.0])
        branch = tf.cond(tf.constant(1.0) > 0.0, lambda: v.read_value(), lambda: tf.constant(-1.0))
    session.run(v.initializer)
    assert session.run([loop[1], branch]) == [10.0, 5.0]


def test_an_update_beside_a_read_that_a_loop_drops(session):
    v = tf.Variable(1.0)
    i, _ = tf.while_loop(lambda i, b: i < 3, lambda i, b: (i + 1, b + v), [0, 0.0])
    update = v.assign_add(1.0)
    session.run(v.initializer)
    assert session.run([i, update]) == [3, 2.0]


def test_outer_control_inputs_inside_a_body(session):
    v = tf.Variable(0.0)
    update = v.assign(7.0)

    def body(i, s):
        with tf.control_dependencies([update]):
            return i + 1, s + v.read_value()

    _, total = tf.while_loop(lambda i, s: i < 2, body, [0, 0.0])
    session.run(v.initializer)
    assert session.run(total) == 14.0


def test_py_func_print_and_assert_in_a_body(session, capfd):
    seen = []

    def note(i):
        seen.append(int(i))
        return i

    def body(i):
        with tf.control_dependencies([tf.Assert(i < 3, ["at", i])]):
            i = tf.Print(i, [i], "turn ")
        return tf.py_func(note, [i], tf.int32) + 1

    def loop(limit):
        return tf.while_loop(lambda i: i < limit, body, [tf.constant(0)], shape_invariants=[tf.TensorShape(None)])

    assert session.run(loop(3)) == 3
    assert seen == [0, 1, 2]
    assert [line for line in capfd.readouterr().err.splitlines() if "turn" in line] == [f"turn [{i}]" for i in range(3)]
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[at\] \[3\]"):
        session.run(loop(5))


# -- variables, collections, names ---------------------------------------------------------------------


def test_variables_made_in_a_body_live_outside(session):
    graph = tf.get_default_graph()

    def body(i, x):
        with tf.variable_scope("cell"):
            w = tf.get_variable("w", [2, 2], initializer=tf.constant_initializer(2.0))
        return i + 1, tf.matmul(x, w)

    with tf.variable_scope("net"):
        _, y = tf.while_loop(lambda i, x: i < 2, body, [0, tf.ones([1, 2])])
    assert [variable.name for variable in tf.trainable_variables()] == ["net/cell/w:0"]
    (w,) = tf.trainable_variables()
    assert w.graph is graph and w.op.graph is graph and w.initializer.graph is graph
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(y), [[16, 16]])
    (d_w,) = tf.gradients(y, w)
    # y = 1' w w, summed: d = 1 (w 1)' + (1' w)' 1'
    np.testing.assert_array_equal(session.run(d_w), np.full((2, 2), 8.0))


def test_variables_made_in_branches(session):
    p = tf.placeholder(tf.bool, [])

    def branch(name, value):
        return lambda: tf.get_variable(name, [], initializer=tf.constant_initializer(value)) + tf.Variable(0.5)

    y = tf.cond(p, branch("a", 1.0), branch("b", 2.0))
    session.run(tf.global_variables_initializer())
    assert session.run(y, {p: True}) == 1.5 and session.run(y, {p: False}) == 2.5
    assert len(tf.global_variables()) == 4


def test_a_body_may_reuse_variables():
    with tf.variable_scope("s"):
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))

    def body(x):
        with tf.variable_scope("s", reuse=True):
            return x * tf.get_variable("w", [])

    y = tf.while_loop(lambda x: x < 20.0, body, [1.0])
    assert run(y) == 27.0 and tf.global_variables() == [w]


def test_regularizers_and_partitions_of_variables_in_a_body(session):
    def body(x):
        w = tf.get_variable(
            "w",
            [4],
            initializer=tf.ones_initializer(),
            regularizer=lambda v: tf.reduce_sum(v),
            partitioner=tf.fixed_size_partitioner(2),
        )
        return x + tf.reduce_sum(tf.convert_to_tensor(w))

    y = tf.while_loop(lambda x: x < 10.0, body, [0.0])
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    session.run(tf.global_variables_initializer())
    assert session.run(y) == 12.0 and session.run(tf.add_n(losses)) == 4.0


def test_an_initial_value_of_a_body_is_refused():
    with pytest.raises(ValueError, match=r"within a branch or a loop.*function without arguments"):
        tf.while_loop(lambda x: x < 3.0, lambda x: x + tf.Variable(x), [0.0])


def test_collections_are_those_of_the_graph():
    def body(i):
        tf.add_to_collection("seen", "body")
        assert tf.get_collection("seen")[0] == "outside"
        return i + 1

    tf.add_to_collection("seen", "outside")
    tf.while_loop(lambda i: i < 2, body, [0])
    assert tf.get_collection("seen") == ["outside", "body"]


def test_names_inside_are_those_of_the_scopes():
    names = {}

    def body(i):
        names["body"] = tf.add(i, 1, name="next").op.name
        return tf.add(i, 1, name="next")

    with tf.name_scope("model"):
        loop = tf.while_loop(lambda i: i < 2, body, [0], name="steps")
    assert names["body"] == "model/steps/next" and loop.op.name == "model/steps/Exit"


def test_a_layer_used_inside_and_outside_shares_its_variables(session):
    def layer(x):
        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
            return x * tf.get_variable("scale", [], initializer=tf.constant_initializer(2.0))

    x = tf.constant(1.0)
    y = tf.while_loop(lambda a: a < 10.0, layer, [layer(x)])
    session.run(tf.global_variables_initializer())
    assert session.run(y) == 16.0 and len(tf.global_variables()) == 1


# -- random numbers ------------------------------------------------------------------------------------


def draws(seed=None, graph_seed=None):
    """Five draws of one operation in a loop."""
    with tf.Graph().as_default():
        tf.set_random_seed(graph_seed)
        numbers = tf.TensorArray(tf.float32, 5)
        _, numbers = tf.while_loop(
            lambda i, numbers: i < 5,
            lambda i, numbers: (i + 1, numbers.write(i, tf.random_uniform([], seed=seed))),
            [0, numbers],
        )
        with tf.Session() as session:
            return session.run(numbers.stack()).tolist()


def test_every_iteration_draws_anew_and_seeds_repeat():
    assert len(set(draws())) == 5
    assert draws(seed=7) == draws(seed=7) and len(set(draws(seed=7))) == 5
    assert draws(graph_seed=3) == draws(graph_seed=3) != draws(graph_seed=4)


def test_two_draws_in_one_body_differ():
    tf.set_random_seed(1)
    _, a, b = tf.while_loop(
        lambda i, a, b: i < 1, lambda i, a, b: (i + 1, tf.random_normal([3]), tf.random_normal([3])),
        [0, tf.zeros([3]), tf.zeros([3])],
    )  # fmt: skip
    a, b = run([a, b])
    assert not np.array_equal(a, b)


def test_dropout_in_a_body_uses_its_own_mask_backward(session):
    x = tf.ones([1000])
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.nn.dropout(a, 0.5)), [0, x])
    (d_x,) = tf.gradients(y, x)
    for _ in range(2):
        value, gradient = session.run([y, d_x])
        np.testing.assert_array_equal(value, gradient)  # both are 8 where no mask dropped the element
        assert 60 < np.count_nonzero(value) < 200


# -- tensors of inner graphs ---------------------------------------------------------------------------


def test_tensors_of_a_body_exist_only_there(session):
    kept = []

    def body(i):
        kept.append(i * 2)
        return i + 1

    tf.while_loop(lambda i: i < 3, body, [0])
    with pytest.raises(ValueError, match="within a branch or a loop"):
        kept[0] + 1
    with pytest.raises(ValueError, match="within a branch or a loop"):
        session.run(kept[0])
    with pytest.raises(ValueError, match="within a branch or a loop"):
        tf.gradients(kept[0], kept[0])
    with (
        pytest.raises(ValueError, match="within a branch or a loop"),
        tf.control_dependencies([kept[0]]),
    ):
        tf.constant(1) + 1
    with pytest.raises(ValueError, match="within a branch or a loop"):
        tf.cond(tf.constant(True), lambda: kept[0], lambda: kept[0])


def test_tensors_of_one_branch_are_not_those_of_the_other():
    made = []

    def first():
        made.append(tf.constant([1.0, 2.0]) * tf.placeholder_with_default(1.0, []))
        return made[0]

    with pytest.raises(ValueError, match="within a branch or a loop"):
        tf.cond(tf.placeholder(tf.bool, []), first, lambda: made[0] + 1)


# -- errors of steps -----------------------------------------------------------------------------------


def test_errors_in_a_body_name_operation_and_line(session):
    x = tf.placeholder(tf.float32)

    def body(i, a):
        return i + 1, tf.matmul(a, x, name="product")  # the line at fault

    _, y = tf.while_loop(
        lambda i, a: i < 2, body, [0, tf.ones([2, 3])], shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)]
    )
    with pytest.raises(
        InvalidArgumentError, match=r"(?s)while/product.*test_control_flow_effects\.py:\d+, in body"
    ) as caught:
        session.run(y, {x: np.ones((2, 2))})
    assert caught.value.op_name == "while/product"
    assert session.run(y, {x: np.ones((3, 3))}).tolist() == [[9.0] * 3] * 2


def test_errors_in_a_nested_branch_name_operation_and_line(session):
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, [])
    with tf.device("/cpu:0"):  # a GPU checks no indices
        y = tf.while_loop(
            lambda i: i < 5,
            lambda i: tf.cond(p, lambda: i + tf.gather([1, 2, 3], x, name="lookup"), lambda: i + 1),
            [0],
        )
    with pytest.raises((InvalidArgumentError, OutOfRangeError), match=r"(?s)lookup.*test_control_flow_effects"):
        session.run(y, {p: True, x: 30})
    assert session.run(y, {p: False, x: 30}) == 5
    assert session.run(y, {p: True, x: 1}) == 6


def test_an_exception_of_a_python_function_in_a_body(session):
    def fail(i):
        raise RuntimeError("out of luck")

    y = tf.while_loop(lambda i: i < 5, lambda i: tf.reshape(tf.py_func(fail, [i], tf.int32), []), [0])
    with pytest.raises(UnknownError, match="out of luck"):
        session.run(y)


# -- many threads, many sessions -----------------------------------------------------------------------


def test_concurrent_steps_of_one_loop(session):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
    _, y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.sqrt(a * a + 1.0)), [0, x])

    def work(seed):
        value = np.linspace(0, seed, 500 + seed, dtype=np.float32)
        for turns in (20, 1, 0, 30):
            expected = value
            for _ in range(turns):
                expected = np.sqrt(expected * expected + np.float32(1))
            np.testing.assert_array_equal(session.run(y, {n: turns, x: value}), expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))


# -- other forms of the same graph ---------------------------------------------------------------------


def program():
    """A graph with everything in it: fetches and feeds."""
    x, n = tf.placeholder(tf.float32, [None, 2], name="x"), tf.placeholder(tf.int32, [], name="n")
    w = tf.constant(np.float32([[0.5, -1.0], [0.25, 2.0]]))

    def body(i, a, array):
        b = tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(tf.matmul(a, w)), lambda: a * tf.cast(i, tf.float32))
        _, c = tf.while_loop(lambda j, c: j < i, lambda j, c: (j + 1, c + b), [0, b])
        return i + 1, c / 2.0, array.write(i, tf.reduce_sum(c, 0))

    array = tf.TensorArray(tf.float32, n, element_shape=[2])
    _, y, array = tf.while_loop(lambda i, *_: i < n, body, [0, x, array])
    stacked = tf.identity(array.stack(), name="stacked")
    (d_x,) = tf.gradients([y, stacked], x)
    return [tf.identity(y, name="y"), stacked, tf.identity(d_x, name="d_x")]


def test_program_equals_its_interpretation(session):
    fetches = program()
    graph = tf.get_default_graph()
    x, n = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("n:0")
    for turns in (0, 1, 2, 5):
        feeds = {x: np.random.default_rng(turns).normal(size=(3, 2)).astype(np.float32), n: turns}
        expected = interpret(fetches, feeds)
        for actual, wanted in zip(run(fetches, feeds), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def test_program_survives_serialisation(session):
    fetches = program()
    definition = tf.get_default_graph().as_graph_def()
    again = tf.GraphDef.FromString(definition.SerializeToString())
    assert again == definition
    feeds = {"x:0": np.float32([[1, 2], [3, 4]]), "n:0": 4}
    expected = session.run(fetches, feeds)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(again, name="")
        assert {node.name for node in definition.node} <= {node.name for node in graph.as_graph_def().node}
        with tf.Session() as other:
            for actual, wanted in zip(other.run(["y:0", "stacked:0", "d_x:0"], feeds), expected, strict=True):
                np.testing.assert_array_equal(actual, wanted)
    with tf.Graph().as_default(), tf.Session() as other:
        tf.import_graph_def(again, name="copy")
        feeds = {f"copy/{name}": value for name, value in feeds.items()}
        for actual, wanted in zip(other.run(["copy/y:0", "copy/d_x:0"], feeds), expected[::2], strict=True):
            np.testing.assert_array_equal(actual, wanted)


def test_a_loaded_graph_differentiates(session):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.identity(tf.while_loop(lambda a: a < 100.0, lambda a: a * a, [x]), name="y")
    definition = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph, tf.Session() as other:
        tf.import_graph_def(definition, name="")
        x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
        (d_x,) = tf.gradients(y, x)
        assert other.run(d_x, {x: 2.0}) == 8 * 2.0**7


def test_gradients_by_constants_that_regions_use():
    factor = tf.constant(3.0)
    chosen = tf.cond(tf.placeholder_with_default(True, []), lambda: factor * factor, lambda: factor)
    _, power = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * factor), [0, 1.0])
    with tf.Session() as session:
        assert session.run([tf.gradients(chosen, factor), tf.gradients(power, factor)]) == [[6.0], [27.0]]
