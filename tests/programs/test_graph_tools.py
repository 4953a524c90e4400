"""TensorFlow's tools on graphs and checkpoints, on a model that TensorFlow has saved (`scripts/golden_models.py`)."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.graphs.models_of_tensorflow import unpack_models
from tfray.errors import InvalidArgumentError
from tfray.programs.graph_tools import (
    export_scoped_meta_graph,
    freeze_graph,
    freeze_graph_with_def_protos,
    import_scoped_meta_graph,
    optimize_for_inference,
    print_tensors_in_checkpoint_file,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = unpack_models(tmp_path_factory.mktemp("models"))
    graph = tf.MetaGraphDef.FromString((folder / "digits" / "model-10.meta").read_bytes())
    (folder / "digits" / "graph.pb").write_bytes(graph.graph_def.SerializeToString())
    (folder / "digits" / "graph.pbtxt").write_text(str(graph.graph_def))
    return folder / "digits"


def frozen(model, target="", **choices):
    """The common arguments of programs that freeze a graph."""
    arguments = {"input_graph": "", "input_checkpoint": f"{model}/model-10", "clear_devices": True} | choices
    return freeze_graph(
        input_saver="",
        input_binary=True,
        output_node_names="scores",
        restore_op_name="save/restore_all",
        filename_tensor_name="save/Const:0",
        output_graph=target,
        initializer_nodes="",
        **arguments,
    )


def assert_gives_the_scores(graph_def, model):
    with np.load(model / "values.npz") as known, tf.Graph().as_default(), tf.Session() as session:
        (scores,) = tf.import_graph_def(graph_def, return_elements=["scores:0"])
        np.testing.assert_allclose(session.run(scores, {"import/image:0": known["image"]}), known["scores"], 1e-5, 1e-6)


SOURCES = {
    "bytes": lambda model: {"input_graph": model / "graph.pb"},
    "text": lambda model: {"input_graph": model / "graph.pbtxt", "clear_devices": False},
    "meta graph": lambda model: {"input_meta_graph": model / "model-10.meta"},
    "saved model": lambda model: {"input_saved_model_dir": model / "saved", "input_checkpoint": ""},
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_frozen_graph_gives_what_the_model_gives(model, source, tmp_path):
    choices = SOURCES[source](model)
    made = frozen(model, f"{tmp_path}/frozen.pb", **choices)
    assert made == tf.GraphDef.FromString((tmp_path / "frozen.pb").read_bytes())
    assert not {node.op for node in made.node} & {"VariableV2", "VarHandleOp", "Variable"}
    assert any(node.device for node in made.node) == (not choices.get("clear_devices", True))
    assert_gives_the_scores(made, model)


def test_a_graph_at_hand_is_frozen_as_one_in_a_file(model):
    graph = tf.GraphDef.FromString((model / "graph.pb").read_bytes())
    arguments = None, f"{model}/model-10", "scores", "save/restore_all", "save/Const:0", "", True, ""
    made = freeze_graph_with_def_protos(graph, *arguments)
    assert made == frozen(model, input_graph=model / "graph.pb")
    with pytest.raises(InvalidArgumentError, match="nothing to freeze"):
        freeze_graph_with_def_protos(None, *arguments)


def test_variables_may_stay_and_must_be_in_the_checkpoint(model, tmp_path):
    part = frozen(model, input_graph=model / "graph.pb", variable_names_blacklist="filters/bias")
    assert [node.name for node in part.node if node.op in ("VariableV2", "VarHandleOp")] == ["filters/bias"]
    tf.Variable(1.0, name="another")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        other = tf.train.Saver().save(session, f"{tmp_path}/other")
    with pytest.raises(InvalidArgumentError, match=r"other has no .*filters/kernel"):
        frozen(model, input_graph=model / "graph.pb", input_checkpoint=other)


def test_what_inference_needs_is_left(model):
    whole = frozen(model, input_graph=model / "graph.pb")
    made = optimize_for_inference(whole, ["image"], ["scores"], int(tf.float32))
    assert len(made.node) < len(whole.node) and "Identity" not in {node.op for node in made.node}
    assert_gives_the_scores(made, model)


def test_tensors_of_a_checkpoint_are_printed(model, capsys):
    print_tensors_in_checkpoint_file(f"{model}/model-10", "global_step", all_tensors=False)
    assert capsys.readouterr().out.startswith("tensor_name:  global_step\n10\n")
    print_tensors_in_checkpoint_file(f"{model}/model-10", None, False, count_exclude_pattern="Adam|_power|global_step")
    shown = capsys.readouterr().out.splitlines()
    assert "filters/kernel (float32) [3, 3, 1, 8]" in shown
    assert shown[-1] == f"# Total number of params: {80 + 72 * 24 + 24 + 24 * 10 + 10}"
    print_tensors_in_checkpoint_file(f"{model}/model-10", "", all_tensors=True)
    assert capsys.readouterr().out.count("tensor_name: ") == len(shown) - 1
    with pytest.raises(InvalidArgumentError, match="no tensor 'nothing'"):
        print_tensors_in_checkpoint_file(f"{model}/model-10", "nothing", False)


def test_a_scope_is_exported_and_imported_with_its_variables():
    with tf.name_scope("outer"):
        v = tf.Variable(3.0, name="v")
        tf.multiply(v, 2.0, name="double")
    made, variables = export_scoped_meta_graph(export_scope="outer")
    assert variables == {"v:0": v}
    graph = tf.Graph()
    found = import_scoped_meta_graph(made, graph=graph, import_scope="new")
    assert list(found) == ["v:0"] and found["v:0"].op.name == "new/v"
    with tf.Session(graph=graph) as session:
        session.run(found["v:0"].initializer)
        assert session.run("new/double:0") == 6.0


@pytest.mark.parametrize("given", ["graph", "graph_def"])
def test_devices_are_left_out_of_what_is_exported(given):
    with tf.Graph().as_default() as graph, tf.device("/cpu:0"):
        tf.constant(1)
    values = {"graph": graph, "graph_def": graph.as_graph_def()}
    for clear_devices in (False, True):
        made = tf.train.export_meta_graph(clear_devices=clear_devices, **{given: values[given]})
        assert bool(made.graph_def.node[0].device) != clear_devices
    assert values["graph_def"].node[0].device


def test_what_a_graph_does_not_have_is_not_made_up():
    made = tf.GraphDef()
    made.node.add(name="a", op="NoOp")
    assert tf.graph_util.remove_training_nodes(made) == made


def test_types_of_operations_are_listed_with_those_of_functions():
    made = tf.GraphDef()
    made.node.add(name="a", op="A")
    for name, ops in {"A": ["B"], "B": ["Square", "A"], "unused": ["Exp"]}.items():
        function = made.library.function.add()
        function.signature.name = name
        for op in ops:
            function.node_def.add(name=op, op=op)
    [square] = tf.contrib.util.stripped_op_list_for_graph(made).op
    assert (square.name, square.input_arg[0].name, square.output_arg[0].type_attr) == ("Square", "x", "T")
    with tf.Graph().as_default() as graph:
        tf.placeholder(tf.float32) * 1.0
    found = tf.contrib.util.stripped_op_list_for_graph(graph.as_graph_def()).op
    assert [op.name for op in found] == ["Const", "Mul", "Placeholder"]
    made.node.add(name="b", op="Unknown")
    with pytest.raises(tf.errors.NotFoundError, match="Op type not registered 'Unknown'"):
        tf.contrib.util.stripped_op_list_for_graph(made)


def test_meta_graphs_list_the_types_of_their_operations():
    x = tf.placeholder(tf.float32, [], name="x")
    tf.while_loop(lambda y: y < 3.0, lambda y: tf.square(y), [tf.exp(x)])
    tf.py_func(np.sin, [x], tf.float32)
    listed = tf.train.export_meta_graph().meta_info_def.stripped_op_list.op
    assert {"Exp", "Less", "Placeholder", "Square", "While"} <= {op.name for op in listed}
    assert not any(">" in op.name for op in listed)
