"""`input_map`: tensors of the program in place of those of an imported graph, as in TensorFlow 2.21's `compat.v1`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.graphs.control_flow_graphs import difference, read_golden_graphs
from tfray.formats.graph_proto import GraphDef

GRAPHS = read_golden_graphs(GOLDEN / "control_flow.npz.xz")
SPLIT = ("a", "w", "parts", "parts/split_dim")


def _without(graph, *names):
    left = tf.GraphDef()
    left.node.extend(node for node in graph.node if node.name not in names)
    left.library.CopyFrom(graph.library)
    return left


def _graph():
    """``b = a + parts[0]``, and ``c = parts[1] * 2``, which waits for `a`."""
    with tf.Graph().as_default() as graph:
        a = tf.placeholder(tf.float32, [2], name="a")
        first, second = tf.split(tf.placeholder(tf.float32, [2], name="w"), 2, name="parts")
        tf.add(a, first, name="b")
        factor = tf.constant(2.0, name="factor")
        with tf.control_dependencies([a.op]):
            tf.multiply(second, factor, name="c")
    return graph.as_graph_def()


def _unwaiting():
    graph = _graph()
    for node in graph.node:
        node.input[:] = [text for text in node.input if not text.startswith("^")]
    return graph


@pytest.fixture
def given():
    return {"x": tf.constant([1.0, 2.0], name="x"), "y": tf.constant([10.0]), "z": tf.constant([100.0])}


@pytest.mark.parametrize(
    ("absent", "keys", "expected"),
    [
        (SPLIT, {"a:0": "x", "parts:0": "y", "parts:1": "z"}, ([11, 12], [200])),
        (SPLIT, {"a": "x", "parts": "y", "parts:1": "z"}, ([11, 12], [200])),
        (("a",), {"a:0": "x", "w:0": "x"}, ([2, 3], [4])),
        (("a",), {"a:0": "x", "parts:0": "y", "parts:1": "z"}, ([11, 12], [200])),
        ((), {"a:0": "x", "w:0": "x", "c:0": "y"}, ([2, 3], [10])),
    ],
)
def test_what_the_graph_lacks_is_given(session, given, absent, keys, expected):
    graph = _without(_unwaiting(), *absent)
    before = graph.SerializeToString()
    results = tf.import_graph_def(graph, {key: given[name] for key, name in keys.items()}, ["b:0", "c:0"])
    for value, wanted in zip(session.run(results), expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert graph.SerializeToString() == before
    assert not [op.name for op in session.graph.get_operations() if op.name.removeprefix("import/") in absent]


@pytest.mark.parametrize(
    ("absent", "keys", "message"),
    [
        (("a",), {"w:0": "x"}, "Node 'b': Unknown input node 'a'"),
        (("parts",), {"a": "x", "parts:0": "y"}, "Node 'c': Unknown input node 'parts:1'"),
        (("a",), {"a:0": "x", "nothing:0": "x"}, r"not found in graph_def: \[nothing:0\]: it neither has nor uses"),
        (("a",), {"a:0": "x", "nothing": "x", "a:1": "x"}, r"not found in graph_def: \[a:1, nothing:0\]"),
        ((), {"a:0": "x", "c:1": "x"}, r"not found in graph_def: \[c:1\]"),
        ((), {"a:0": "x", "^nothing": "x"}, r"not found in graph_def: \[\^nothing\]"),
    ],
)
def test_what_is_neither_given_nor_used_is_named(given, absent, keys, message):
    with pytest.raises(ValueError, match=message):
        tf.import_graph_def(_without(_unwaiting(), *absent), {key: given[name] for key, name in keys.items()})


def test_an_operation_waits_for_what_is_given(session, given):
    ran = tf.Variable(0, use_resource=True)
    with tf.control_dependencies([ran.assign_add(1)]):
        signal = tf.identity(given["x"])
    graph = _without(_graph(), "a")
    tensors = {"a:0": given["x"], "w:0": given["x"]}
    with pytest.raises(ValueError, match=r"Node 'c': Unknown input node '\^a'"):
        tf.import_graph_def(graph, tensors)
    (c,) = tf.import_graph_def(graph, {**tensors, "^a": signal}, ["c"])
    assert c.control_inputs == [signal.op]
    session.run(ran.initializer)
    session.run(c)
    assert session.run(ran) == 1


def test_a_value_becomes_a_constant_and_what_is_given_is_returned(session, given):
    inputs = {"a:0": np.array([1, 2], np.float32), "w:0": given["x"]}
    a, b = tf.import_graph_def(_without(_unwaiting(), "a"), inputs, ["a:0", "b:0"], name="given")
    assert a.op.name == "given/_inputs/Const"
    np.testing.assert_array_equal(session.run([a, b]), [[1, 2], [2, 3]])


@pytest.mark.parametrize("key", ["a", "w"])
def test_another_dtype_is_refused(given, key):
    inputs = {"a": given["x"], "w": given["x"], key: tf.constant([1, 2])}
    with pytest.raises(ValueError, match="int32"):
        tf.import_graph_def(_without(_unwaiting(), "a"), inputs)


def test_a_meta_graph_lacks_an_input_too(session):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(3.0))
        tf.multiply(x, weight, name="product")
        meta_graph = tf.train.export_meta_graph()
    kept = _without(meta_graph.graph_def, "x")
    meta_graph.graph_def.CopyFrom(kept)
    tf.train.import_meta_graph(meta_graph, input_map={"x:0": tf.constant(5.0)})
    session.run(tf.global_variables_initializer())
    assert session.run("product:0") == 15


@pytest.mark.rows(every=4)
@pytest.mark.parametrize("name", GRAPHS)
def test_control_flow_of_tensorflow_takes_what_is_given(name):
    golden = GRAPHS[name]
    graph = GraphDef.FromString(golden.graph)
    placeholders = [node.name for node in graph.node if node.op == "Placeholder"]
    given = {
        node.name: tf.placeholder(node.attr["dtype"].type, node.attr["shape"].shape)
        for node in graph.node
        if node.name in placeholders and any(node.name in used.input for used in graph.node)
    }
    unused = {*placeholders} - {*given}
    fetches = tf.import_graph_def(_without(graph, *placeholders), given, golden.fetches, name="")
    with tf.Session() as session:
        for operation in golden.setup:
            session.run(operation)
        for feeds, results in golden.steps:
            named = [(text.partition(":")[0], value) for text, value in feeds.items()]
            fed = {given.get(name, name + ":0"): value for name, value in named if name not in unused}
            values = session.run(fetches, fed)
            assert [difference(expected, values[index]) for index, expected in results.items()] == [""] * len(results)


# -- one operation ---------------------------------------------------------------------------------------


def made(op_type, inputs, *args, **kwargs):
    return tf.get_default_graph().create_op(op_type, inputs, *args, **kwargs)


def test_an_operation_is_made_of_its_type():
    kind = {"T": tf.AttrValue(type=1)}
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    first = made("Identity", [x], [tf.float32], name="same")
    assert [first.name, made("Identity", [x], [tf.float32], None, "same", kind).name] == ["same", "same_1"]
    with tf.name_scope("scope"), tf.control_dependencies([first]), tf.device("/cpu:0"):
        added = made("AddV2", [x, x], [tf.float32])
    assert (added.name, added.control_inputs, added.device) == ("scope/AddV2", [first], "/device:CPU:0")
    parts = made("Split", [tf.constant(1), x], attrs={"num_split": tf.AttrValue(i=2)}).outputs
    joined = made("ConcatV2", [*parts, tf.constant(0)]).outputs[0]
    packed = made("Pack", [x, x], attrs={"axis": tf.AttrValue(i=2)}).outputs[0]
    assert made("Placeholder", [], attrs={"dtype": tf.AttrValue(type=1)}).outputs[0].shape.rank is None
    with tf.Session() as session:
        assert session.run(added.outputs[0]).tolist() == [[2, 4], [6, 8]]
        assert session.run(joined).tolist() == [[1], [3], [2], [4]]
        assert session.run(packed).tolist() == [[[1, 1], [2, 2]], [[3, 3], [4, 4]]]


def test_an_operation_takes_the_gradient_that_the_scope_says():
    tf.RegisterGradient("TestCreatedTwice")(lambda op, gradient: 2 * gradient)
    x = tf.constant(3.0)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestCreatedTwice"}):
        y = made("Identity", [x], [tf.float32]).outputs[0]
    with tf.Session() as session:
        assert session.run(tf.gradients(y, x)) == [2]


@pytest.mark.parametrize(
    ("op_type", "inputs", "kind", "words"),
    [
        ("Identity", lambda: [1.0], TypeError, "Input #0 is not a tensor: 1.0"),
        ("NoSuchType", list, RuntimeError, "Op type not registered 'NoSuchType'"),
        ("MatMul", lambda: [tf.zeros([2])] * 2, ValueError, "rank 2"),
        ("Add", lambda: [tf.zeros([2]), tf.constant(1)], ValueError, "expected float"),
        ("Add", lambda: [tf.zeros([2])], ValueError, "do not match 1 inputs"),
    ],
)
def test_an_operation_that_does_not_fit_is_refused(op_type, inputs, kind, words):
    with pytest.raises(kind, match=words):
        made(op_type, inputs())


def test_shapes_follow_from_the_programs_own_tensors():
    other = tf.Graph()
    with other.as_default():
        x = tf.placeholder(tf.float32, [None, 1], name="x")
        tf.multiply(x, 2.0, name="y")
    definition = other.as_graph_def()
    (wider,) = tf.import_graph_def(definition, {"x:0": tf.ones([1, 100])}, ["y:0"])
    (unknown,) = tf.import_graph_def(definition, {"x:0": tf.placeholder(tf.float32)}, ["y:0"])
    (same,) = tf.import_graph_def(definition, return_elements=["y:0"])
    assert wider.shape.as_list() == [1, 100] and unknown.shape.rank is None and same.shape.as_list() == [None, 1]
    with tf.Session() as session:
        assert session.run(wider).tolist() == [[2.0] * 100]
