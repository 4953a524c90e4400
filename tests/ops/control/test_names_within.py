"""Names of operations within branches and loops: those that TensorFlow 2.21's `compat.v1` gives, with `tf.cond` and
`tf.while_loop` of TensorFlow 1. There too they are found by name, and cannot be fetched or fed.
"""

from __future__ import annotations

import pytest

import tfray as tf


def _x():
    return tf.placeholder(tf.float32, [], name="x")


def _flag():
    return tf.placeholder(tf.bool, [], name="flag")


def _plain_loop():
    x = _x()

    def body(i, total):
        with tf.name_scope("turn"):
            return tf.add(i, 1, name="next"), tf.multiply(total, x, name="product")

    tf.while_loop(lambda i, _: tf.less(i, 3, name="goes_on"), body, (tf.constant(0), x))


def _bounded_loop():
    x = _x()
    start = (tf.constant(0), x)
    tf.while_loop(lambda i, _: i < 3, lambda i, total: (i + 1, total + x * 2.0), start, maximum_iterations=5)


def _branches():
    x = _x()
    tf.cond(_flag(), lambda: tf.identity(x + 1.0, name="x"), lambda: tf.constant(3.0) * x)


def _nested_branches():
    x, flag = _x(), _flag()

    def inner():
        return tf.cond(flag, lambda: tf.square(x, name="squared"), lambda: -x)

    tf.cond(flag, inner, lambda: x, name="outer")


def _branches_in_a_loop():
    x = _x()

    def body(i, total):
        return i + 1, tf.cond(total > 3.0, lambda: total * x, lambda: total - x)

    tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), x))


def _case():
    x = _x()
    tf.case([(x < 1.0, lambda: x * 2.0), (x < 2.0, lambda: x * 3.0)], default=lambda: -x)


NAMES = [
    (_plain_loop, "while/Merge while/Merge_1 while/goes_on while/Identity while/Identity_1 while/turn/next "
     "while/turn/product while/Enter while/Exit_1"),
    (_bounded_loop, "while/maximum_iterations while/iteration_counter while/Less while/Less_1 while/LogicalAnd "
     "while/Identity_2 while/add while/add_1 while/mul while/add_2 while/Exit_2"),
    (_branches, "cond/pred_id cond/add cond/x cond/Const cond/mul cond/Merge"),
    (_nested_branches, "outer/cond/pred_id outer/cond/squared outer/cond/Neg outer/cond/Merge outer/Merge"),
    (_branches_in_a_loop, "while/Greater while/cond/pred_id while/cond/mul while/cond/sub while/cond/Merge while/add"),
    (_case, "case/cond/mul case/cond/cond/mul case/cond/cond/Neg case/cond/cond/Merge case/cond/Merge"),
    (lambda: tf.scan(lambda total, row: total + row * 2.0, tf.constant([1.0, 2.0])),
     "scan/while/mul scan/while/add_1 scan/while/add_2 scan/while/Less_1 scan/while/Identity_3 scan/while/Exit_3"),
    (lambda: tf.map_fn(lambda row: row * row + 1.0, tf.constant([1.0, 2.0])),
     "map/while/mul map/while/Less_1 map/while/Identity_2 map/while/Exit_2 map/while/add_1 map/while/add_2"),
    (lambda: tf.foldl(lambda total, row: total * row, tf.constant([1.0, 2.0])),
     "foldl/while/mul foldl/while/add_1 foldl/while/Identity_2 foldl/while/Exit_2"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "names"), NAMES)
def test_operations_within_branches_and_loops_are_found_by_name(build, names):
    build()
    graph = tf.get_default_graph()
    for name in names.split():
        assert graph.get_operation_by_name(name).name == name
        assert graph.get_tensor_by_name(f"{name}:0").op is graph.get_operation_by_name(name)


@pytest.mark.parametrize("name", ["while/turn/product:0", "while/Identity:0", "while/goes_on:0"])
def test_what_stands_within_is_neither_fetched_nor_fed(session, name):
    _plain_loop()
    tensor = session.graph.get_tensor_by_name(name)
    assert not session.graph.is_fetchable(tensor)
    assert not session.graph.is_feedable(tensor)
    for element in (tensor, name, name[:-2]):
        with pytest.raises(ValueError, match=r"within a branch or a loop.*let the branch or the loop return it"):
            session.run(element, {"x:0": 1.0})
    for element in (tensor, name):
        with pytest.raises(ValueError, match="within a branch or a loop"):
            session.run("while/Exit:0", {"x:0": 1.0, element: 1.0})
    with pytest.raises(ValueError, match="within a branch or a loop"):
        tf.identity(tensor)


def test_names_are_looked_up_from_within_too(session):
    x = _x()
    graph = tf.get_default_graph()
    result = tf.cond(
        x > 0.0,
        lambda: tf.square(tf.identity(x, name="inner"), name="s") + graph.get_tensor_by_name("x:0"),
        lambda: tf.get_default_graph().get_tensor_by_name("x:0") * 10.0,
    )
    assert session.run(result, {x: 3.0}) == 12.0
    assert session.run(result, {x: -3.0}) == -30.0
    assert graph.get_operation_by_name("cond/s").inputs[0].name == "cond/inner:0"


@pytest.mark.parametrize("name", ["while/LoopCond", "while/Switch_1", "while/NextIteration", "cond/switch_t"])
def test_the_parts_of_which_tensorflow_makes_flow_are_said_not_to_be_there(name):
    _plain_loop()
    with pytest.raises(KeyError, match="one operation each here: use their results, such as cond/Merge"):
        tf.get_default_graph().get_operation_by_name(name)
