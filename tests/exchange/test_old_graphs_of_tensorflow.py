"""Graphs as earlier versions of TensorFlow 1 wrote them: golden graphs whose messages are edited."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.graphs.golden_graphs import CASES, feeds, message, values
from tfray.exchange.attributes import read_attr
from tfray.exchange.op_table import REQUIRED, tensorflow_op
from tfray.formats.graph_proto import GraphDef


def same(value, default):
    """Whether an attribute has its default value; numbers have single precision."""
    if isinstance(default, float):
        return np.float32(value) == np.float32(default)
    return value == default


def without_defaults(nodes):
    """Attributes that came later, and those that are left out by ``strip_default_attrs``."""
    for node in nodes:
        definition = tensorflow_op(node.op)
        for name, attr in definition.attrs.items() if definition else ():
            if name in node.attr and attr.default is not REQUIRED and same(read_attr(node.attr[name]), attr.default):
                del node.attr[name]


def with_old_marks(nodes):
    """Device strings of 1.0, shapes of outputs, colocation with itself, and attributes that only Python knows."""
    for index, node in enumerate(nodes):
        node.device = ["/cpu:0", "/job:localhost/replica:0/task:0/cpu:0", "/job:localhost/task:0/device:CPU:0"][
            index % 3
        ]
        node.attr["_output_shapes"].list.shape.add().unknown_rank = True
        node.attr["_class"].list.s.append(f"loc:@{node.name}".encode())
        node.attr["_gradient_op_type"].s = b"Nothing"


def edited(name, edit, inner=True):
    graph = message(name)
    edit(graph.node)
    for function in graph.library.function if inner else ():
        edit(function.node_def)
    graph.versions.Clear()
    graph.versions.producer = 21
    return GraphDef.FromString(graph.SerializeToString())


def assert_results_are_equal(name, graph):
    case = CASES[name]
    tf.import_graph_def(graph, name="")
    with tf.Session() as session:
        if "init" in case:
            session.run(case["init"])
        for index, result in enumerate(session.run(case["fetches"], feeds(name))):
            wanted = values()[f"{name}/fetch/{index}"]
            if wanted.dtype.kind == "S":
                assert np.asarray(result).astype(bytes).tolist() == wanted.tolist()
            else:
                np.testing.assert_allclose(result, wanted, 1e-5, 1e-5, err_msg=case["fetches"][index])


QUICK = {"arithmetic", "images", "normalisation", "branches", "queues", "trained_adam", "functions", "examples"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in sorted(CASES)]
)
def test_attributes_may_be_missing_and_others_be_there(name):
    def edit(nodes):
        without_defaults(nodes)
        with_old_marks(nodes)

    assert_results_are_equal(name, edited(name, edit))


# -- types that came later -----------------------------------------------------------------------------


def renamed(new, old, change=lambda node, nodes: None, where=lambda node, nodes: True):
    """An edit that gives nodes their former type, with what else was another then."""

    def edit(nodes):
        changed = [node for node in nodes if node.op == new and where(node, nodes)]
        assert changed
        for node in changed:
            node.op = old
            change(node, nodes)
            for attr in set(node.attr) - set(tensorflow_op(old).attrs):
                del node.attr[attr]

    return edit


def constant(nodes, name):
    (found,) = (node for node in nodes if node.name == name.partition(":")[0])
    return tf.make_ndarray(found.attr["value"].tensor) if found.op == "Const" else None


def axis_first(node, nodes):
    node.input.insert(0, node.input.pop())


def without_last(node, nodes):
    node.input.pop()


def first_alone(node, nodes):
    del node.input[1:]


def k_as_attribute(node, nodes):
    node.attr["k"].i = int(constant(nodes, node.input.pop()))


def with_limits(node, nodes):
    for value, name in ((-1e9, "low"), (1e9, "high")):
        made = nodes.add(name=f"{node.name}/{name}", op="Const")
        made.attr["dtype"].type = int(tf.float32)
        made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))
        node.input.append(made.name)
    node.attr["T"].type = int(tf.float32)


def of_three_types(node, nodes):
    for name in ("Ta", "Tb", "Tout"):
        node.attr[name].CopyFrom(node.attr["T"])


def along_rows(node, nodes):
    axis = constant(nodes, node.input[2])
    return axis is not None and axis == 0


def handles_as_text(nodes):
    """References to text were the handles of queues and tables."""
    changed = [node for node in nodes if node.op.startswith(("Queue", "LookupTable")) or "Table" in node.op]
    changed += [node for node in nodes if "Queue" in node.op]
    assert changed
    for node in changed:
        older = tensorflow_op(node.op.removesuffix("V2"))
        if older is not None:
            node.op = older.name
            if node.op == "MutableDenseHashTable":
                node.input[:] = node.input[:1]  # it knew no key for what is deleted
            for attr in set(node.attr) - set(older.attrs):
                del node.attr[attr]


def old_batch_norm(nodes):
    renamed("FusedBatchNormV3", "FusedBatchNorm")(nodes)
    renamed("FusedBatchNormGradV3", "FusedBatchNormGrad", without_last)(nodes)
    for node in nodes:  # there was no sixth output
        node.input[:] = [text.replace("FusedBatchNormV3:5", "FusedBatchNormV3:4") for text in node.input]


OLD = {
    "Add": ("arithmetic", renamed("AddV2", "Add")),
    "Div": ("arithmetic", renamed("RealDiv", "Div")),
    "Mod": ("bits", renamed("FloorMod", "Mod")),
    "BatchMatMul": ("matrices", renamed("BatchMatMulV2", "BatchMatMul")),
    "BatchMatMulV3": ("matrices", renamed("BatchMatMulV2", "BatchMatMulV3", of_three_types)),
    "Concat": ("joins", renamed("ConcatV2", "Concat", axis_first)),
    "Gather": ("slices", renamed("GatherV2", "Gather", without_last, along_rows)),
    "Inv": ("elementwise", renamed("Reciprocal", "Inv")),
    "InvGrad": ("gradients_of_arithmetic", renamed("ReciprocalGrad", "InvGrad")),
    "TopK": ("activations", renamed("TopKV2", "TopK", k_as_attribute)),
    "FusedBatchNorm": ("gradients_of_layers", old_batch_norm),
    "PlaceholderV2": ("casts", renamed("Placeholder", "PlaceholderV2")),
    "AdjustContrast": ("images", renamed("AdjustContrastv2", "AdjustContrast", with_limits)),
    "MatrixDiag": ("matrices", renamed("MatrixDiagV3", "MatrixDiag", first_alone)),
    "MatrixDiagPart": ("matrices", renamed("MatrixDiagPartV3", "MatrixDiagPart", first_alone)),
    "Variable": ("trained_adam", renamed("VariableV2", "Variable")),
    "queues by reference": ("queues", handles_as_text),
    "tables by reference": ("lookup_tables", handles_as_text),
}


@pytest.mark.parametrize("old", OLD)
def test_types_that_were_replaced_compute_the_same(old):
    name, edit = OLD[old]
    assert_results_are_equal(name, edited(name, edit, inner=False))


def small(op, *arrays, **attrs):
    """What an operation of a type returns that TensorFlow makes no more."""
    graph = GraphDef()
    for index, array in enumerate(arrays):
        node = graph.node.add(name=f"input_{index}", op="Const")
        node.attr["dtype"].type = int(tf.as_dtype(array.dtype))
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
    node = graph.node.add(name="made", op=op, input=[f"input_{index}" for index in range(len(arrays))])
    for key, (kind, value) in attrs.items():
        setattr(node.attr[key], kind, value)
    (made,) = tf.import_graph_def(graph, return_elements=["made:0"])
    with tf.Session() as session:
        return session.run(made)


X = np.random.default_rng(0).normal(size=(2, 4, 4, 3)).astype(np.float32)
FLOAT = "type", int(tf.float32)


def test_batch_normalization_of_the_first_version():
    mean, variance, beta, gamma = (np.arange(1, 4, dtype=np.float32) * scale for scale in (0.1, 0.5, 0.3, 2))
    attrs = {"variance_epsilon": ("f", 0.01), "scale_after_normalization": ("b", True), "T": FLOAT}
    found = small("BatchNormWithGlobalNormalization", X, mean, variance, beta, gamma, **attrs)
    np.testing.assert_allclose(found, (X - mean) / np.sqrt(variance + 0.01) * gamma + beta, 1e-5, 1e-5)


def test_blocks_of_one_size():
    blocks = small("SpaceToBatch", X, np.zeros((2, 2), np.int32), block_size=("i", 2), T=FLOAT)
    assert blocks.shape == (8, 2, 2, 3)
    np.testing.assert_array_equal(blocks[0], X[0, ::2, ::2])
    np.testing.assert_array_equal(
        small("BatchToSpace", blocks, np.zeros((2, 2), np.int32), block_size=("i", 2), T=FLOAT), X
    )


def test_sums_of_any_number_of_tensors():
    graph = message("special_functions")
    assert "AccumulateNV2" not in {node.op for node in graph.node}
    renamed("AddN", "AccumulateNV2", lambda node, nodes: node.attr["shape"].shape.SetInParent())(graph.node)
    assert_results_are_equal("special_functions", graph)
