"""Graphs with large constants: what they cost in memory, and that their messages are as any others."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message as ProtobufMessage

import tfray as tf
from tests.support.traced_memory import at_most, resident_at_most
from tfray.errors import DataLossError, PermissionDeniedError
from tfray.formats.graph_proto import AttrValue, GraphDef
from tfray.formats.meta_graph_proto import MetaGraphDef, SavedModel
from tfray.training.checkpoints.model_file import open_model

SIDE = 1024
"""Rows and columns of a matrix: 4 MiB."""


def frozen(count, side=SIDE):
    """The bytes of a graph that multiplies ``x`` by `count` matrices, and the matrices."""
    definition, matrices = GraphDef(), []
    definition.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    value = "x"
    for index in range(count):
        matrices.append(np.full((side, side), (index + 1) / side, np.float32))
        matrices[-1][0, 0] = index
        node = definition.node.add(name=f"w{index}" + "_" * (index % 4), op="Const")  # so that they begin anywhere
        node.attr["dtype"].type = 1
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(matrices[-1]))
        product = definition.node.add(name=f"y{index}", op="MatMul", input=[value, node.name])
        product.attr["T"].type = 1
        value = product.name
    return definition.SerializeToString(), matrices


@pytest.fixture(scope="module")
def large():
    tf.import_graph_def(GraphDef(), name="")  # loads what it needs
    return frozen(5)


def content(definition, index):
    return definition.node[1 + 2 * index].attr["value"].tensor


def run(name="y4"):
    ones = np.ones((1, SIDE), np.float32)
    with tf.Session() as session:
        return session.run(f"{name}:0", {"x:0": ones})


def product_of(matrices):
    value = np.ones((1, SIDE))
    for matrix in matrices:
        value = value @ matrix
    return value


# -- memory --------------------------------------------------------------------------------------------


def test_importing_a_large_graph_takes_its_size_besides_the_bytes_of_the_program():
    data, matrices = frozen(16)
    assert len(data) > 64 << 20
    tf.import_graph_def(GraphDef.FromString(frozen(1, 8)[0]), name="small")
    definition = tf.GraphDef()
    with resident_at_most(1.2 * 64):
        definition.ParseFromString(data)
        tf.import_graph_def(definition, name="")
        np.testing.assert_allclose(run("y15"), product_of(matrices), 1e-4)


def test_the_constants_of_a_graph_in_a_file_are_in_memory_once(large, tmp_path):
    data, matrices = large
    meta = MetaGraphDef(graph_def=GraphDef.FromString(data))
    (tmp_path / "graph.meta").write_bytes(meta.SerializeToString())
    meta.meta_info_def.tags.append("serve")
    for kind, name in (("inputs", "x:0"), ("outputs", "y4:0")):
        getattr(meta.signature_def["serving_default"], kind)[kind].name = name
    (tmp_path / "saved_model.pb").write_bytes(SavedModel(meta_graphs=[meta]).SerializeToString())
    del meta
    with resident_at_most(1.2 * 20):
        tf.train.import_meta_graph(str(tmp_path / "graph.meta"))
        np.testing.assert_allclose(run(), product_of(matrices), 1e-4)
    tf.reset_default_graph()
    with resident_at_most(1.2 * 20), tf.Session() as session:
        loaded = tf.saved_model.load(session, ["serve"], str(tmp_path))
        assert loaded.signature_def["serving_default"].outputs["outputs"].name == "y4:0"
        np.testing.assert_allclose(session.run("y4:0", {"x:0": np.ones((1, SIDE))}), product_of(matrices), 1e-4)
    with resident_at_most(4):
        assert isinstance(open_model(tmp_path / "graph.meta").message, MetaGraphDef)
        assert isinstance(open_model(tmp_path).message, SavedModel)
    assert content(loaded.graph_def, 2).tensor_content == matrices[2].tobytes()


def test_a_graph_and_its_message_share_constants(large, tmp_path):
    data, matrices = large
    tf.import_graph_def(GraphDef.FromString(data), name="")
    with resident_at_most(8):
        definition = tf.get_default_graph().as_graph_def()
        part = tf.graph_util.extract_sub_graph(definition, ["y3"])
        part = tf.graph_util.remove_training_nodes(part)
        tf.io.write_graph(part, str(tmp_path), "graph.pb", as_text=False)
        tf.import_graph_def(definition, name="again")
    assert (tmp_path / "graph.pb").stat().st_size < 17 << 20
    again = tf.GraphDef.FromString((tmp_path / "graph.pb").read_bytes())
    assert [content(again, index).tensor_content for index in range(4)] == [each.tobytes() for each in matrices[:4]]
    assert content(definition, 4).tensor_content == matrices[4].tobytes()


# -- messages ------------------------------------------------------------------------------------------


def test_a_message_with_large_constants_is_as_any_other(large):
    data, matrices = large
    definition = tf.GraphDef.FromString(data)
    assert definition.SerializeToString() == data  # before its contents have been asked for
    assert isinstance(definition, ProtobufMessage) and isinstance(definition, tf.GraphDef)
    assert definition.versions.producer == 0 and not definition.library.function
    assert [content(definition, index).tensor_content for index in range(5)] == [each.tobytes() for each in matrices]
    np.testing.assert_array_equal(tf.make_ndarray(content(definition, 3)), matrices[3])
    assert definition.SerializeToString() == data and definition.ByteSize() == len(data)


@pytest.mark.parametrize(
    "taken",
    [
        lambda message: pickle.loads(pickle.dumps(message)),
        copy.deepcopy,
        copy.copy,
        lambda message: MetaGraphDef(graph_def=message).graph_def,
        lambda message: GraphDef(node=message.node),
        lambda message: merged(type(message)(), message, "CopyFrom"),
        lambda message: merged(tf.MetaGraphDef().graph_def, message, "CopyFrom"),
        lambda message: merged(tf.MetaGraphDef().graph_def, message, "MergeFrom"),
        lambda message: merged(GraphDef(), message.SerializeToString(), "MergeFromString"),
        lambda message: merged(GraphDef(version=3), message.SerializeToString(), "ParseFromString"),
    ],
)
def test_a_copy_of_a_message_has_its_large_constants(large, taken):
    data, _ = large
    definition = tf.GraphDef.FromString(data)
    made = taken(definition)
    assert made == definition and definition == made
    assert made.SerializeToString() == data


def merged(message, other, method):
    getattr(message, method)(other)
    return message


def test_a_message_is_read_and_written_as_text():
    definition = text_format.Parse('node { name: "a" op: "NoOp" }', tf.GraphDef())
    assert text_format.MessageToString(definition) == str(definition) == 'node {\n  name: "a"\n  op: "NoOp"\n}\n'
    assert repr(definition) == str(definition)
    assert "library" not in dir(tf) and "library" in dir(definition)
    with pytest.raises(AttributeError, match="nothing"):
        definition.nothing = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(definition)


def test_a_graph_is_not_changed_with_its_message(large):
    data, matrices = large
    definition = tf.GraphDef.FromString(data)
    tf.import_graph_def(definition, name="")
    content(definition, 0).tensor_content = bytes(len(matrices[0].tobytes()))
    tf.import_graph_def(definition, name="changed")
    del definition
    np.testing.assert_allclose(run(), product_of(matrices), 1e-4)
    (value,) = (op.get_attr("value") for op in tf.get_default_graph().get_operations() if op.name == "changed/w0")
    assert not np.any(value)


def test_large_constants_are_found_wherever_a_message_has_them():
    values = [np.arange(1_500_000, dtype=dtype) for dtype in (np.int8, np.float16, np.float64)]
    protos = [tf.make_tensor_proto(value) for value in values]
    definition = GraphDef()
    body = definition.library.function.add()
    body.signature.name = "f"
    body.node_def.add(name="inside", op="Const").attr["value"].tensor.CopyFrom(protos[0])
    node = definition.node.add(name="n", op="NoOp")
    node.attr["list"].list.tensor.extend(protos[1:])
    node.attr["text"].s = bytes(1 << 20)
    node.attr["f"].CopyFrom(AttrValue(func={"name": "g", "attr": {"t": AttrValue(tensor=protos[2])}}))
    data = definition.SerializeToString()
    twice = data + data  # messages one behind the other are one
    again = tf.GraphDef.FromString(twice)
    for index in range(2):
        inside = again.library.function[index].node_def[0].attr["value"].tensor
        assert inside.tensor_content == values[0].tobytes()
        assert [tf.make_ndarray(each).tobytes() for each in again.node[index].attr["list"].list.tensor] == [
            each.tobytes() for each in values[1:]
        ]
        assert again.node[index].attr["f"].func.attr["t"].tensor == protos[2]
    whole = GraphDef(node=[node, node], library={"function": [body, body]})
    assert again == whole and tf.GraphDef.FromString(twice).SerializeToString() == whole.SerializeToString()


# -- what is wrong -------------------------------------------------------------------------------------


def test_a_large_message_that_is_damaged_is_refused(large):
    data, _ = large
    for broken in (data[:-1], data[:-100] + bytes(100), b"\x0a\xff\xff\xff\xff\x07" + data):
        with pytest.raises(DataLossError, match=f"these {len(broken)} bytes are no GraphDef"):
            tf.GraphDef.FromString(broken)


def test_a_file_that_declares_more_than_it_holds_takes_no_memory(large, tmp_path):
    data, _ = large
    inner = b"\x12\xff\xff\xff\xff\x07" + data  # the graph of the meta graph has 2 GiB, it says
    (tmp_path / "graph.meta").write_bytes(inner)
    with at_most(30), pytest.raises(DataLossError):
        tf.train.import_meta_graph(str(tmp_path / "graph.meta"))


def test_an_error_does_not_show_large_constants(large):
    data, _ = large
    definition = tf.GraphDef.FromString(data + GraphDef(node=[tf.NodeDef(name="last", op="Frob")]).SerializeToString())
    with resident_at_most(4), pytest.raises(tf.errors.UnimplementedError, match="Frob"):
        tf.import_graph_def(definition)
    assert repr(definition) == "<GraphDef with 20,971,520 large bytes>"


def test_a_large_constant_of_another_size_than_its_shape_is_refused(large):
    data, _ = large
    definition = tf.GraphDef.FromString(data)
    content(definition, 1).tensor_shape.dim[0].size = SIDE - 1
    with pytest.raises(DataLossError, match="4194304 bytes do not make a float32 tensor"):
        tf.import_graph_def(tf.GraphDef.FromString(definition.SerializeToString()))


def test_only_a_graph_of_this_process_may_touch_files_whatever_its_constants(large):
    data, _ = large
    tf.import_graph_def(tf.GraphDef.FromString(data), name="")
    tf.read_file("path")
    definition = tf.get_default_graph().as_graph_def()
    tf.import_graph_def(definition, name="own")
    with pytest.raises(PermissionDeniedError, match="ReadFile"):
        tf.import_graph_def(tf.GraphDef.FromString(definition.SerializeToString()), name="loaded")


def test_a_file_may_go_once_its_graph_has_been_read(large, tmp_path):
    data, matrices = large
    path = tmp_path / "graph.pb"
    path.write_bytes(data)
    definition = open_model(path).message
    path.unlink()
    assert content(definition, 4).tensor_content == matrices[4].tobytes()
