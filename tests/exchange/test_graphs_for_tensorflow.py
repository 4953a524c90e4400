"""Graphs that tfray writes in TensorFlow's form: read again here, and run by TensorFlow itself."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import tfray as tf
from tests.support.graphs.golden_graphs import CASES, each, feeds, message, values
from tests.support.peer import PEER, needs_peer
from tfray.errors import UnimplementedError
from tfray.exchange.op_table import tensorflow_op
from tfray.exchange.to_tensorflow import check_for_tensorflow, to_tensorflow
from tfray.formats.graph_proto import GraphDef


def written(name):
    """A golden graph as tfray writes it."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(message(name), name="")
    return to_tensorflow(graph)


def check(found, wanted):
    """Compare a result with the one that TensorFlow gave."""
    if wanted.dtype.kind == "S":
        assert np.asarray(found).astype(bytes).tolist() == wanted.tolist()
    else:
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("name", each())
def test_written_graphs_compute_the_same(name):
    definition = GraphDef.FromString(written(name).SerializeToString())
    tf.import_graph_def(definition, name="")
    with tf.Session() as session:
        if "init" in CASES[name]:
            session.run(CASES[name]["init"])
        for index, found in enumerate(session.run(CASES[name]["fetches"], feeds(name))):
            check(found, values()[f"{name}/fetch/{index}"])


def test_branches_and_loops_become_functions():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.cond(x > 0, lambda: x * 2, lambda: -x)
    tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + y), [0, x])
    definition = to_tensorflow(tf.get_default_graph())
    ops = {node.op: node for node in definition.node}
    names = {function.signature.name for function in definition.library.function}
    assert {ops["If"].attr[key].func.name for key in ("then_branch", "else_branch")} < names
    assert {ops["While"].attr[key].func.name for key in ("cond", "body")} < names
    tf.reset_default_graph()
    tf.import_graph_def(definition, name="")
    with tf.Session() as session:
        assert session.run("while/Exit_1:0", {"x:0": -1.5}) == 3.0


def test_dense_gradients_of_rows_with_long_indices_are_read_again():
    rows = tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", [4, 2], initializer=tf.ones_initializer())
    tf.identity(tf.gradients(tf.gather(tf.square(table), rows), table)[0], "gradient")
    definition = to_tensorflow(tf.get_default_graph())
    for node in definition.node:
        if node.op == "ScatterNd":
            assert node.attr["Tindices"].type == tf.int64.as_datatype_enum
    tf.reset_default_graph()
    tf.import_graph_def(definition, name="")
    with tf.Session() as session:
        session.run("table/Assign")
        assert session.run("gradient:0", {rows.name: [1, 3, 3]}).tolist() == [[0, 0], [2, 2], [0, 0], [4, 4]]


def test_variables_have_the_reads_that_tensorflow_freezes():
    tf.get_variable("weights", [2])
    definition = to_tensorflow(tf.get_default_graph())
    reads = {node.name: list(node.input) for node in definition.node if node.op == "ReadVariableOp"}
    assert reads["weights/Read/ReadVariableOp"] == ["weights"]
    tf.reset_default_graph()
    tf.import_graph_def(definition, name="")
    assert [op.name for op in tf.get_default_graph().get_operations() if "Read" in op.type] == ["weights/read"]


PROGRAM = """
import json, sys, traceback
import numpy as np, tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
folder = sys.argv[1]
for name, case in json.load(open(f"{folder}/cases.json")).items():
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(tf.GraphDef.FromString(open(f"{folder}/{name}.pb", "rb").read()), name="")
            fed = dict(np.load(f"{folder}/{name}.npz"))
            if "init" in case:
                session.run(case["init"])
            found = {f"{i}": np.asarray(value) for i, value in enumerate(session.run(case["fetches"], fed))}
            found = {key: value.astype("S") if value.dtype == object else value for key, value in found.items()}
            if name.startswith("trained"):
                session.run(case["init"])
                found["losses"] = [session.run(["loss:0", "train"], fed)[0] for _ in range(20)]
        np.savez(f"{folder}/{name}.found.npz", **found)
    except Exception:
        open(f"{folder}/{name}.error", "w").write(traceback.format_exc())
"""


STAYS_HERE = {"iterators"}
"""What tfray writes of their datasets, TensorFlow does not read."""

THERE = sorted(set(CASES) - STAYS_HERE)


def test_datasets_are_no_operations_of_tensorflow():
    for name in STAYS_HERE:
        with pytest.raises(UnimplementedError, match="MapDataset"):
            check_for_tensorflow(written(name))
    for name in ("queues", "staging", "sparse"):
        check_for_tensorflow(written(name))


@pytest.fixture(scope="module")
def run_by_tensorflow(tmp_path_factory):
    """A folder with what TensorFlow returns, or says, when it runs what tfray has written of each golden graph."""
    folder = tmp_path_factory.mktemp("written")
    for name in THERE:
        (folder / f"{name}.pb").write_bytes(written(name).SerializeToString())
        np.savez(folder / f"{name}.npz", **feeds(name))
    (folder / "cases.json").write_text(json.dumps({name: CASES[name] for name in THERE}))
    environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([PEER, "-c", PROGRAM, str(folder)], check=True, timeout=500, env=environment, capture_output=True)
    return folder


@pytest.mark.slow
@needs_peer
@pytest.mark.parametrize("name", THERE)
def test_tensorflow_runs_what_is_written(name, run_by_tensorflow):
    error = run_by_tensorflow / f"{name}.error"
    assert not error.exists(), error.read_text()[-2000:]
    with np.load(run_by_tensorflow / f"{name}.found.npz") as found:
        for index in range(len(CASES[name]["fetches"])):
            check(found[f"{index}"], values()[f"{name}/fetch/{index}"])
        if f"{name}/losses" in values():
            np.testing.assert_allclose(found["losses"], values()[f"{name}/losses"], 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", [tf.uint8, tf.float32])
def test_images_of_any_kind_are_of_a_type_that_1_15_knows(dtype):
    """Its DecodePng decodes JPEG, too. tfray reads its own type again."""
    contents = tf.placeholder(tf.string, [], name="contents")
    tf.identity(tf.image.decode_image(contents, channels=3, dtype=dtype), "image")
    definition = to_tensorflow(tf.get_default_graph())
    assert {node.op for node in definition.node} & {"DecodeImage", "DecodePng"} == {"DecodePng"}
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    with tf.Session() as session:
        file = session.run(tf.image.encode_png(pixels))
    tf.reset_default_graph()
    tf.import_graph_def(definition, name="")
    assert [op.type for op in tf.get_default_graph().get_operations() if "Decode" in op.type] == ["DecodeImage"]
    with tf.Session() as session:
        found = session.run("image:0", {"contents:0": file})
        np.testing.assert_allclose(found, pixels if dtype is tf.uint8 else pixels / 255, 1e-6)


PRINTING = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.Graph().as_default(), tf.Session() as session:
    tf.import_graph_def(tf.GraphDef.FromString(open(sys.argv[1], "rb").read()), name="")
    session.run("said", {"x:0": [[1.5, -2.0]] * 9})
"""


def printing(path):
    """A graph that prints texts, numbers and a whole tensor into a file."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    tf.print(
        "values {}:", x, {"count": tf.shape(x)[0]}, tf.constant("text"), output_stream=f"file://{path}", name="said"
    )
    return x


def test_what_is_printed_is_text_that_another_operation_makes(tmp_path):
    x = printing(tmp_path / "here")
    definition = to_tensorflow(tf.get_default_graph())
    check_for_tensorflow(definition)
    assert {"StringFormat", "PrintV2"} <= {node.op for node in definition.node}
    with tf.Session() as session:
        session.run("said", {x: [[1.5, -2.0]] * 9})
    expected = (tmp_path / "here").read_text()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, name="", allow=["files"])
        session.run("said", {"x:0": [[1.5, -2.0]] * 9})
    assert (tmp_path / "here").read_text() == expected * 2


@pytest.mark.slow
@needs_peer
def test_tensorflow_prints_the_same(tmp_path):
    x = printing(tmp_path / "text")
    (tmp_path / "graph.pb").write_bytes(to_tensorflow(tf.get_default_graph()).SerializeToString())
    with tf.Session() as session:
        session.run("said", {x: [[1.5, -2.0]] * 9})
    expected = (tmp_path / "text").read_text()
    environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [PEER, "-c", PRINTING, str(tmp_path / "graph.pb")]
    subprocess.run(command, check=True, timeout=200, env=environment, capture_output=True)
    assert (tmp_path / "text").read_text() == expected * 2


def depthwise():
    return tf.nn.depthwise_conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), [1] * 4, "SAME")


NEWER = [
    ("TopKV2", lambda: tf.nn.top_k([3.0, 1.0, 2.0], 2), {"Tk", "index_type"}),
    ("RFFT", lambda: tf.signal.rfft([1.0, 2.0]), {"Treal", "Tcomplex"}),
    ("DepthwiseConv2dNative", depthwise, {"explicit_paddings"}),
]


@pytest.mark.parametrize(("there", "build", "newer"), NEWER)
def test_attributes_that_1_15_does_not_know_are_left_out(there, build, newer):
    """It refuses a node that has one, whatever its value."""
    with tf.Graph().as_default() as graph:
        build()
        (node,) = [node for node in graph.as_graph_def().node if node.op == there]
    known = tensorflow_op(there).attrs
    assert newer == {name for name, attr in known.items() if attr.is_newer}
    assert set(node.attr) == known.keys() - newer


def test_an_attribute_that_1_15_does_not_know_is_written_where_it_says_something():
    with tf.Graph().as_default() as graph:
        tf.nn.top_k([3.0, 1.0], tf.constant(1, tf.int64))
        (node,) = [node for node in graph.as_graph_def().node if node.op == "TopKV2"]
    assert node.attr["Tk"].type == tf.int64.as_datatype_enum


def test_products_of_batches_are_written_as_the_type_that_broadcasts():
    with tf.Graph().as_default() as graph:
        tf.linalg.matvec(tf.ones([2, 3]), tf.ones([4, 5, 3]))
        assert "BatchMatMulV2" in {node.op for node in graph.as_graph_def().node}


def test_targets_and_k_of_in_top_k_have_one_dtype():
    with tf.Graph().as_default():
        found = tf.nn.in_top_k([[0.1, 0.7], [0.6, 0.3]], tf.constant([1, 1], tf.int64), 1)
        assert found.op.inputs[2].dtype == tf.int64
        with tf.Session() as session:
            assert session.run(found).tolist() == [True, False]


def test_initial_values_from_other_variables_are_branches_that_tensorflow_knows():
    """`initialized_value` and moving averages read a variable if it is initialised."""
    first = tf.Variable([1.0, 2.0], name="first")
    tf.Variable(first.initialized_value() * 3, name="second")
    tf.group(tf.global_variables_initializer(), name="init")
    definition = to_tensorflow(tf.get_default_graph())
    check_for_tensorflow(definition)
    assert {"VarIsInitializedOp", "Switch", "Merge"} <= {node.op for node in definition.node}
    for cut in (False, True):  # without tfray's marks it is a graph of TensorFlow's
        tf.reset_default_graph()
        for node in definition.node if cut else ():
            for mark in [name for name in node.attr if name.startswith("_tfray")]:
                del node.attr[mark]
        tf.import_graph_def(definition, name="")
        types = {op.type for op in tf.get_default_graph().get_operations()}
        assert ("ReadOrDefault" in types) != cut
        with tf.Session() as session:
            session.run("init")
            assert session.run("second/read:0").tolist() == [3, 6]
