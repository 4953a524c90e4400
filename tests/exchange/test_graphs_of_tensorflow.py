"""Graphs that TensorFlow has written give here what they gave there."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tfray as tf
from tests.support.graphs.golden_graphs import CASES, FOLDER, each, feeds, message, values
from tfray.errors import DataLossError, InvalidArgumentError, PermissionDeniedError, UnimplementedError
from tfray.formats.graph_proto import AttrValue, GraphDef


@pytest.mark.parametrize("name", each())
def test_results_are_equal(name):
    case = CASES[name]
    tf.import_graph_def(message(name), name="")
    with tf.Session() as session:
        if "init" in case:
            session.run(case["init"])
        found = session.run(case["fetches"], feeds(name))
        for index, result in enumerate(found):
            wanted = values()[f"{name}/fetch/{index}"]
            if wanted.dtype.kind == "S":
                assert np.asarray(result).astype(bytes).tolist() == wanted.tolist(), case["fetches"][index]
            else:
                assert np.shape(result) == wanted.shape and np.asarray(result).dtype == wanted.dtype
                np.testing.assert_allclose(result, wanted, 1e-5, 1e-5, err_msg=case["fetches"][index])
        if f"{name}/losses" in values():
            session.run(case["init"])
            losses = [session.run(["loss:0", "train"], feeds(name))[0] for _ in range(20)]
            np.testing.assert_allclose(losses, values()[f"{name}/losses"], 1e-5, 1e-5)


def test_a_frozen_graph_is_read_by_the_program_that_read_it_in_tensorflow():
    definition = tf.GraphDef()
    definition.ParseFromString((FOLDER / "frozen_perceptron.pb").read_bytes())
    fed = values()["frozen_perceptron/feed/x:0"]
    x = tf.constant(fed)
    (found,) = tf.import_graph_def(definition, {"x": x}, ["result_0:0"])
    assert found.op.name == "import/result_0"
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(found), values()["frozen_perceptron/fetch/0"], 1e-5, 1e-6)


def small_graph(*nodes):
    """A message with nodes given as ``(name, op, inputs, attributes)``."""
    definition = GraphDef()
    for name, op, inputs, attrs in nodes:
        node = definition.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(AttrValue(**value))
    return definition


FLOAT = {"type": 1}
LIST = {"list": {}}
ZERO = ("zero", "Const", [], {"dtype": FLOAT, "value": {"tensor": tf.make_tensor_proto(0.0)}})


def test_all_types_without_equivalent_are_named_at_once():
    definition = small_graph(ZERO, ("a", "Frob", [], {}), ("b", "Frob", [], {}), ("c", "Nicate", [], {}))
    with pytest.raises(UnimplementedError, match=r"Frob \(2, the first is 'a'\), Nicate \(1, the first is 'c'\)"):
        tf.import_graph_def(definition)
    assert not tf.get_default_graph().get_operations()


def test_operations_come_in_any_order_and_take_defaults():
    definition = small_graph(("sum", "Add", ["zero", "zero", "^first"], {"T": FLOAT}), ("first", "NoOp", [], {}), ZERO)
    tf.import_graph_def(definition, name="")
    total = tf.get_default_graph().get_operation_by_name("sum")
    assert [op.name for op in total.control_inputs] == ["first"]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([("a", "Add", ["b", "b"], {"T": FLOAT}), ("b", "Identity", ["a"], {"T": FLOAT})], "in a circle"),
        ([("a", "Identity", ["b"], {"T": FLOAT})], "'b' of 'a' is not a tensor"),
        ([ZERO, ("a", "Identity", ["zero:1"], {"T": FLOAT})], "'zero:1' of 'a' is not a tensor"),
        ([ZERO, ("a", "Identity", ["zero", "zero"], {"T": FLOAT})], "'a' .* is not a valid Identity"),
        ([("a", "NoOp", ["^b"], {})], "control input 'b'"),
        ([("a", "Placeholder", [], {})], "attribute dtype of Placeholder is missing"),
        ([("a", "PartitionedCall", [], {"f": {"func": {"name": "f"}}, "Tin": LIST, "Tout": LIST})], "no function 'f'"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_operation(nodes, said):
    with pytest.raises(InvalidArgumentError, match=said):
        tf.import_graph_def(small_graph(*nodes))


def test_a_function_that_calls_itself_is_refused():
    definition = small_graph(("a", "PartitionedCall", [], {"f": {"func": {"name": "f"}}, "Tin": LIST, "Tout": LIST}))
    function = definition.library.function.add()
    function.signature.name = "f"
    function.node_def.add().CopyFrom(definition.node[0])
    with pytest.raises(InvalidArgumentError, match="deep"):
        tf.import_graph_def(definition)


def test_a_large_constant_is_copied_once():
    with tf.Graph().as_default() as other:  # a graph of this process that uses files: its message is known by its bytes
        tf.read_file("path")
        other.as_graph_def()
    value = np.ones(1 << 21, np.float32)
    node = ("c", "Const", [], {"dtype": FLOAT, "value": {"tensor": tf.make_tensor_proto(value)}})
    path = ("p", "Const", [], {"dtype": {"type": 7}, "value": {"tensor": tf.make_tensor_proto("path")}})
    data = small_graph(node, path, ("file", "ReadFile", ["p"], {})).SerializeToString()
    tf.import_graph_def(small_graph(ZERO), name="first")  # loads what it needs
    tracemalloc.start()
    try:
        message = GraphDef.FromString(data)
        (imported,) = tf.import_graph_def(message, return_elements=["c"], allow=["files"])
        assert tracemalloc.get_traced_memory()[1] < 1.2 * value.nbytes  # protobuf's own copy is not traced
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(imported.get_attr("value"), value)


def test_files_are_touched_only_when_that_is_allowed(tmp_path):
    path = tmp_path / "secret"
    path.write_text("s")
    name = {"dtype": {"type": 7}, "value": {"tensor": tf.make_tensor_proto(str(path))}}
    definition = small_graph(("name", "Const", [], name), ("read", "ReadFile", ["name"], {}))
    with pytest.raises(PermissionDeniedError, match="ReadFile"):
        tf.import_graph_def(definition)
    (found,) = tf.import_graph_def(definition, None, ["read:0"], allow={"files"})
    with tf.Session() as session:
        assert session.run(found) == b"s"


def test_a_constant_that_declares_more_than_it_holds_is_refused():
    definition = small_graph(ZERO)
    tensor = definition.node[0].attr["value"].tensor
    tensor.ClearField("tensor_content")
    tensor.float_val.append(1.0)
    tensor.tensor_shape.dim.add(size=1 << 40)
    with pytest.raises(DataLossError, match="declares shape"):
        tf.import_graph_def(definition)


@pytest.mark.parametrize("data", [b"{}", b"\x00\x01\x02", b"no graph", b"\xff" * 9])
def test_bytes_that_are_no_graph_are_refused(data):
    with pytest.raises(DataLossError):
        tf.GraphDef.FromString(data)
