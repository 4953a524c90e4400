"""Graphs that TensorFlow has written give here what they gave there."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from google.protobuf import text_format

import tfray as tf
from tests.support.graphs.golden_graphs import CASES, FOLDER, each, feeds, message, values
from tests.support.traced_memory import ResidentPeak, at_most
from tfray.errors import DataLossError, InvalidArgumentError, PermissionDeniedError, UnimplementedError
from tfray.exchange import from_tensorflow
from tfray.formats.graph_proto import AttrValue, GraphDef


@pytest.mark.rows(every=3)
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
        ([("a", "Identity", ["b"], {"T": FLOAT})], "Node 'a': Unknown input node 'b'"),
        (
            [ZERO, ("a", "Identity", ["zero:1"], {"T": FLOAT})],
            "'a': Connecting to invalid output 1 of source",
        ),
        ([ZERO, ("a", "Identity", ["zero", "zero"], {"T": FLOAT})], "'a' .* is not a valid Identity"),
        ([("a", "NoOp", ["^b"], {})], r"Node 'a': Unknown input node '\^b'"),
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


# -- graphs that were made to harm ---------------------------------------------------------------------


def nested_calls(depth, width):
    """Functions of which each calls the next one several times."""
    definition = GraphDef()
    for index in range(depth):
        function = definition.library.function.add()
        function.signature.name = f"f{index}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        text = "x"
        for call in range(width if index + 1 < depth else 0):
            function.node_def.add(name=f"n{call}", op=f"f{index + 1}", input=[text])
            text = f"n{call}:y:0"
        function.ret["y"] = text
    definition.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    definition.node.add(name="call", op="f0", input=["x"])
    return definition


def test_functions_that_call_one_another_often_do_not_fill_memory(monkeypatch):
    monkeypatch.setattr(from_tensorflow, "ANY_CALLED", 200)
    tf.import_graph_def(nested_calls(4, 3))
    with at_most(16), pytest.raises(InvalidArgumentError, match="call one another so often"):
        tf.import_graph_def(nested_calls(30, 2))
    with pytest.raises(InvalidArgumentError, match="more than 64 deep"):
        tf.import_graph_def(nested_calls(100, 1))


@pytest.mark.parametrize(
    ("attr", "value", "message"),
    [
        ("dtype", {"b": True}, "'dtype' is to be of kind type, and is bool"),
        ("value", {"type": 1}, "'value' is to be of kind tensor, and is type"),
        ("value", {}, "'value' is to be of kind tensor, and is none"),
        ("dtype", {"placeholder": "T"}, "dtype is to be 'T' of a function"),
    ],
)
def test_attributes_of_another_kind_are_named(attr, value, message):
    attrs = ZERO[3] | {attr: value}
    with pytest.raises(InvalidArgumentError, match=f"'zero' of the imported graph is not a valid Const.*{message}"):
        tf.import_graph_def(small_graph(("zero", "Const", [], attrs)))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([ZERO, ZERO], "Node 'zero' is not unique"),
        ([ZERO, ("y", "Identity", [""], {"T": FLOAT})], "Node 'y': Unknown input node ''"),
        ([("y", "Tfray>Sort", [], {"_tfray": {"s": b"[1"}})], "'_tfray': it is no JSON"),
        ([("y", "Identity", [], {"_tfray": {"s": b"{}"}})], "does not tell op, input"),
        ([ZERO, ("y", "Split", ["zero", "zero"], {"T": FLOAT, "num_split": {"i": 1 << 40}})], "Split"),
    ],
)
def test_what_is_wrong_with_a_graph_is_said(nodes, message):
    with at_most(16), pytest.raises((InvalidArgumentError, DataLossError), match=message):
        tf.import_graph_def(small_graph(*nodes))


@pytest.mark.parametrize("given", [[2.5], [], [1.0, 2.0, 0.0]])
def test_a_constant_that_repeats_its_last_element_takes_no_memory_of_its_own(given):
    shape = {"dim": [{"size": 1 << 11}, {"size": 1 << 11}]}
    value = {"tensor": {"dtype": 1, "tensor_shape": shape, "float_val": given}}
    definition = small_graph(("c", "Const", [], {"dtype": FLOAT, "value": value}))
    before = ResidentPeak()
    (c,) = tf.import_graph_def(definition, return_elements=["c:0"])
    assert before.bytes() < 8 << 20  # of 16 MiB
    with tf.Session() as session:
        found = session.run(c)
    whole = np.full(1 << 22, given[-1] if given else 0, np.float32)
    whole[: len(given)] = given
    np.testing.assert_array_equal(found.reshape(-1), whole)


def test_a_constant_of_many_values_does_not_declare_far_more():
    shape = {"dim": [{"size": 1 << 24}]}
    value = {"tensor": {"dtype": 1, "tensor_shape": shape, "float_val": [1.0, 2.0]}}
    with at_most(4), pytest.raises(DataLossError, match="2 different elements declares 67108864 bytes"):
        tf.import_graph_def(small_graph(("c", "Const", [], {"dtype": FLOAT, "value": value})))


@pytest.mark.parametrize("padding", [b"EXPLICIT", b"", b"HALF", b"\xff"])
def test_an_unknown_padding_is_refused(padding):
    """It is not taken for VALID."""
    image = tf.placeholder(tf.float32, [None, 8, 8, 3], name="image")
    tf.nn.max_pool(image, 2, 2, "VALID", name="pool")
    graph_def = tf.get_default_graph().as_graph_def()
    graph_def.node[1].attr["padding"].s = padding
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match=r"padding is .*expected SAME or VALID"):
        tf.import_graph_def(graph_def)


def test_identities_in_a_circle_are_refused():
    """In the body of a loop: what its variables come from is looked for without end otherwise."""
    tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [0, 1.0])
    graph_def = tf.get_default_graph().as_graph_def()
    (loop,) = (node for node in graph_def.node if node.op in ("While", "StatelessWhile"))
    (body,) = (each for each in graph_def.library.function if each.signature.name == loop.attr["body"].func.name)
    for name, source in (("there", "back"), ("back", "there")):
        node = body.node_def.add(name=name, op="Identity", input=[f"{source}:output:0"])
        node.attr["T"].type = int(tf.float32)
    body.ret[body.signature.output_arg[1].name] = "there:output:0"
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="circle"):
        tf.import_graph_def(graph_def)


CALLS_A_GRADIENT = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "k" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "dz" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "square" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node {
  name: "gradient" op: "SymbolicGradient" input: "square" input: "k" input: "dz"
  attr { key: "Tin" value { list { type: DT_FLOAT type: DT_INT32 type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT type: DT_INT32 } } }
  attr { key: "f" value { func { name: "scaled_sine" } } }
}
node { name: "dx" op: "Identity" input: "gradient" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "dk" op: "Identity" input: "gradient:1" attr { key: "T" value { type: DT_INT32 } } }
library {
  function {
    signature {
      name: "scaled_sine"
      input_arg { name: "a" type: DT_FLOAT } input_arg { name: "count" type: DT_INT32 }
      output_arg { name: "z" type: DT_FLOAT }
    }
    node_def { name: "sine" op: "Sin" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    node_def {
      name: "scale" op: "Cast" input: "count"
      attr { key: "SrcT" value { type: DT_INT32 } } attr { key: "DstT" value { type: DT_FLOAT } }
    }
    node_def { name: "z" op: "Mul" input: "sine:y:0" input: "scale:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "z" value: "z:z:0" }
  }
}
"""


def test_the_gradient_of_a_function_is_that_of_its_operations():
    """TensorFlow 1 writes it so for functions that are called: for their inputs alone, zeros for whole numbers."""
    tf.import_graph_def(text_format.Parse(CALLS_A_GRADIENT, tf.GraphDef()), name="")
    x, dz = np.array([0.5, 2.0], np.float32), np.array([1.0, 3.0], np.float32)
    with tf.Session() as session:
        dx, dk = session.run(["dx:0", "dk:0"], {"x:0": x, "k:0": 4, "dz:0": dz})
    np.testing.assert_allclose(dx, 4 * np.cos(x**2) * dz, rtol=1e-6)
    assert dk == 0


@pytest.mark.parametrize(("given", "norm"), [([3, 1, 2], 3), ([3 + 4j, 2j], 29**0.5), ([3.0, 4.0], 5.0)])
def test_euclidean_norms_of_any_numbers(given, norm):
    node = tf.NodeDef(name="norm", op="EuclideanNorm", input=["x", "axes"])
    node.attr["T"].type = tf.convert_to_tensor(given).dtype.as_datatype_enum
    with tf.Graph().as_default():
        tf.constant(given, name="x"), tf.constant([0], name="axes")
        definition = tf.get_default_graph().as_graph_def()
        definition.node.append(node)
        found = tf.import_graph_def(definition, return_elements=["norm:0"], name="again")[0]
        with tf.Session() as session:
            np.testing.assert_allclose(session.run(found), norm, 1e-6)


def test_strings_are_added_as_tensorflow_1_writes_it():
    """`map_fn` and `foldr` over characters: TensorFlow 1.15 writes ``a + b`` of strings as an Add."""
    nodes = [tf.NodeDef(name=name, op="Placeholder") for name in ("a", "b")]
    nodes.append(tf.NodeDef(name="both", op="Add", input=["a", "b"]))
    for node, key in zip(nodes, ("dtype", "dtype", "T"), strict=True):
        node.attr[key].type = tf.string.as_datatype_enum
    tf.import_graph_def(tf.GraphDef(node=nodes), name="")
    with tf.Session() as session:
        assert session.run("both:0", {"a:0": ["x", "y"], "b:0": "z"}).tolist() == [b"xz", b"yz"]


READ_LATE = """
node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape {} } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
node { name: "init" op: "Assign" input: "v" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "v/read" op: "Identity" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "up" op: "AssignAdd" input: "v" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "later" op: "Add" input: "v/read" input: "v/read" input: "^up" attr { key: "T" value { type: DT_FLOAT } } }
"""


def test_what_waits_for_an_update_sees_it_in_reads_beside_the_variable():
    """As in TensorFlow 1, whose own variables give their memory: moving averages after a training step are of this."""
    tf.import_graph_def(text_format.Parse(READ_LATE, tf.GraphDef()), name="")
    with tf.Session() as session:
        session.run("init")
        assert session.run("later:0") == 4
        assert session.run("v/read:0") == 2
