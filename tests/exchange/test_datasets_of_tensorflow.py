"""Graphs of TensorFlow whose input comes from datasets: imported with them, or up to the iterator."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.graphs.golden_graphs import message
from tfray.formats.graph_proto import GraphDef

FLOAT, INT64, STRING = (int(dtype) for dtype in (tf.float32, tf.int64, tf.string))


def constant(graph, name, value, dtype):
    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = dtype
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.as_dtype(dtype)))


def dataset(graph, name, op, inputs, **types):
    node = graph.node.add(name=name, op=op, input=inputs)
    for key, value in types.items():
        node.attr[key].list.type.extend(value)
    if op not in ("TFRecordDataset", "TextLineDataset"):
        node.attr["output_shapes"].list.shape.add()
    return node


def pipeline(middle="RepeatDataset", one_shot=False):
    """Doubles of numbers of a dataset; the type of the operation between can be chosen."""
    graph = GraphDef()
    kinds = {"output_types": [FLOAT]}
    if one_shot:
        factory = graph.library.function.add()
        factory.signature.name = "make"
        factory.signature.output_arg.add(name="made", type=int(tf.variant))
        inner = GraphDef()
        constant(inner, "values", [1.0, 2.0], FLOAT)
        dataset(inner, "slices", "TensorSliceDataset", ["values:output:0"], Toutput_types=[FLOAT])
        constant(inner, "count", 2, INT64)
        dataset(inner, "middle", middle, ["slices:handle:0", "count:output:0"], **kinds)
        factory.node_def.extend(inner.node)
        factory.ret["made"] = "middle:handle:0"
        iterator = dataset(graph, "iterator", "OneShotIterator", [], **kinds)
        iterator.attr["dataset_factory"].func.name = "make"
    else:
        constant(graph, "values", [1.0, 2.0], FLOAT)
        dataset(graph, "slices", "TensorSliceDataset", ["values"], Toutput_types=[FLOAT])
        constant(graph, "count", 2, INT64)
        dataset(graph, "middle", middle, ["slices", "count"], **kinds)
        iterator = dataset(graph, "iterator", "IteratorV2", [], **kinds)
        graph.node.add(name="MakeIterator", op="MakeIterator", input=["middle", "iterator"])
    iterator.attr["shared_name"].s = iterator.attr["container"].s = b""
    dataset(graph, "IteratorGetNext", "IteratorGetNext", ["iterator"], **kinds)
    total = graph.node.add(name="double", op="AddV2", input=["IteratorGetNext", "IteratorGetNext"])
    total.attr["T"].type = FLOAT
    return graph


def test_a_dataset_begins_where_its_iterator_is_made():
    tf.import_graph_def(pipeline(), name="")
    with tf.Session() as session:
        session.run("MakeIterator")
        assert [session.run("double:0") for _ in range(4)] == [2, 4, 2, 4]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run("double:0")


def test_batches_of_results_of_a_function():
    graph = pipeline("MapAndBatchDataset")
    double = graph.library.function.add()
    double.signature.name = "double_it"
    double.signature.input_arg.add(name="x", type=FLOAT)
    double.signature.output_arg.add(name="y", type=FLOAT)
    total = double.node_def.add(name="total", op="AddV2", input=["x", "x"])
    total.attr["T"].type = FLOAT
    double.ret["y"] = "total:z:0"
    constant(graph, "calls", 1, INT64)
    constant(graph, "drop", False, int(tf.bool))
    middle = next(node for node in graph.node if node.name == "middle")
    middle.input.extend(["calls", "drop"])
    middle.attr["f"].func.name = "double_it"
    middle.attr["Targuments"].list.SetInParent()
    for node in graph.node:
        if node.name in ("middle", "iterator", "IteratorGetNext"):
            node.attr["output_shapes"].list.shape[0].unknown_rank = True
    tf.import_graph_def(graph, name="")
    with tf.Session() as session:
        session.run("MakeIterator")
        assert session.run("double:0").tolist() == [4, 8]


def test_an_iterator_of_one_pass_needs_no_initializer():
    tf.import_graph_def(pipeline(one_shot=True), name="")
    with tf.Session() as session:
        assert [session.run("double:0") for _ in range(4)] == [2, 4, 2, 4]


@pytest.mark.parametrize("one_shot", [False, True])
def test_a_dataset_without_equivalent_is_left_out_and_its_elements_are_fed(one_shot):
    tf.import_graph_def(pipeline("SamplingDataset", one_shot), name="")
    with tf.Session() as session:
        if not one_shot:
            session.run("MakeIterator")  # as programs do before they feed
        assert session.run("double:0", {"IteratorGetNext:0": 7.0}) == 14
        with pytest.raises(tf.errors.InvalidArgumentError, match="SamplingDataset: feed IteratorGetNext:0, or import"):
            session.run("double:0")


def test_elements_of_a_dataset_are_taken_over_by_input_map():
    x = tf.constant(4.0)
    (double,) = tf.import_graph_def(pipeline("SamplingDataset"), {"IteratorGetNext:0": x}, ["double:0"])
    with tf.Session() as session:
        assert session.run(double) == 8


def test_what_else_reads_a_dataset_without_equivalent_is_named():
    graph = pipeline("SamplingDataset")
    dataset(graph, "first", "DatasetToSingleElement", ["middle"], output_types=[FLOAT])
    with pytest.raises(tf.errors.UnimplementedError, match=r"SamplingDataset \(1, the first is 'middle'\)"):
        tf.import_graph_def(graph)


def test_records_of_files_are_read_where_that_is_allowed(tmp_path):
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"first")
    graph = pipeline()
    del graph.node[:]
    constant(graph, "path", path, STRING)
    constant(graph, "compression", "", STRING)
    constant(graph, "buffer", 0, INT64)
    dataset(graph, "records", "TFRecordDataset", ["path", "compression", "buffer"])
    iterator = dataset(graph, "iterator", "IteratorV2", [], output_types=[STRING])
    iterator.attr["shared_name"].s = iterator.attr["container"].s = b""
    graph.node.add(name="MakeIterator", op="MakeIterator", input=["records", "iterator"])
    dataset(graph, "IteratorGetNext", "IteratorGetNext", ["iterator"], output_types=[STRING])
    with pytest.raises(tf.errors.PermissionDeniedError, match="TFRecordDataset"):
        tf.import_graph_def(graph)
    tf.import_graph_def(graph, name="", allow=["files"])
    with tf.Session() as session:
        session.run("MakeIterator")
        assert session.run("IteratorGetNext:0") == b"first"


def test_functions_of_elements_capture_what_is_fed():
    tf.import_graph_def(message("iterators"), name="")
    with tf.Session() as session:
        first = session.run("result_0:0", {"x:0": np.full((1, 3), 100, np.float32)})
    np.testing.assert_array_equal(first[0], [106, 108, 110])
