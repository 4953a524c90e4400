"""``tfray inspect``, ``run-model`` and ``convert`` on graphs, meta graphs and saved models."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.script import run

OLD = GOLDEN / "saved_models" / "json"
WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)
X = np.array([[1, 2], [3, 4]], np.float32)


def inspected(path):
    shown = run("inspect", path, "--json")
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.output)


def refused(*arguments):
    """The message about a request that cannot be met."""
    failed = run(*arguments)
    assert failed.exit_code == 2 and failed.output.startswith("tfray: "), failed.output
    return failed.output


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A saved model with two signatures, a table and two sets of tags, and its meta graph and frozen graph as files."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "words.txt").write_text("ant\nbee\n")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.matmul(x, tf.get_variable("w", initializer=WEIGHTS), name="y")
        words = tf.placeholder(tf.string, [None], name="words")
        path = tf.constant(str(folder / "words.txt"), name="path")
        ids = tf.contrib.lookup.index_table_from_file(path, default_value=-1).lookup(words)
        session.run(tf.global_variables_initializer())
        signatures = {
            "serving_default": tf.saved_model.predict_signature_def({"x": x}, {"y": y}),
            "ids": tf.saved_model.predict_signature_def({"words": words}, {"ids": ids, "same": tf.identity(words)}),
        }
        builder = tf.saved_model.Builder(folder / "saved")
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, assets_collection=[path], main_op=tf.tables_initializer()
        )
        builder.add_meta_graph(["serve", "gpu"], signatures, assets_collection=[path])
        builder.save()
        tf.train.write_graph(graph, folder, "graph.pb", as_text=False)
        tf.train.export_meta_graph(folder / "graph.meta")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A saved model with one signature of another name, and tags of its own."""
    folder = tmp_path_factory.mktemp("small") / "saved"
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.matmul(x, tf.get_variable("w", initializer=WEIGHTS), name="y")
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(folder)
        signature = tf.saved_model.predict_signature_def({"x": x}, {"a/../y": y})
        builder.add_meta_graph_and_variables(session, ["train"], {"only": signature})
        builder.save()
    return folder


# -- inspect -------------------------------------------------------------------------------------------


def test_what_a_saved_model_holds(model, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(model / "saved", folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    found = inspected(folder)
    assert (found["kind"], found["form"], found["bytes"]) == ("saved model", "binary", size)
    assert [graph["tags"] for graph in found["graphs"]] == [["serve"], ["gpu", "serve"]]
    signatures = found["graphs"][0]["signatures"]
    assert signatures["serving_default"] == {
        "method": "tensorflow/serving/predict",
        "inputs": {"x": {"tensor": "x:0", "dtype": "float32", "shape": [None, 2]}},
        "outputs": {"y": {"tensor": "y:0", "dtype": "float32", "shape": [None, 3]}},
    }
    assert signatures["ids"]["inputs"]["words"]["dtype"] == "string"
    assert found["tensors"] == [{"name": "w", "dtype": "float32", "shape": [2, 3], "bytes": 24, "parts": 1}]
    assert found["assets"] == [{"name": "words.txt", "bytes": 8}]
    assert found["graphs"][0]["types"]["MatMul"] == 1
    for data in (folder / "variables").glob("*.data-*"):
        data.unlink()
    assert inspected(folder / "saved_model.pb")["tensors"] == found["tensors"]  # values are not read
    shown = run("inspect", folder)
    for text in (
        "tags gpu, serve",
        "serving_default  input   x",
        "?x2",
        "words.txt",
        "MatMul 1",
        f"{size - 24:,} bytes",
    ):
        assert text in shown.output
    assert run("inspect", folder, "--verify").exit_code == 2
    assert "all as they were written" in run("inspect", model / "saved", "--verify").output


def test_what_files_of_graphs_hold(model):
    found = inspected(model / "graph.pb")
    (graph,) = found["graphs"]
    assert (found["kind"], found["form"]) == ("graph", "binary")
    assert {"name": "x", "dtype": "float32", "shape": [None, 2]} in graph["inputs"]
    assert {"name": "w", "dtype": "float32", "shape": [2, 3]} in graph["variables"]
    assert {"name": "y", "type": "MatMul"} in graph["ends"]
    meta = inspected(model / "graph.meta")
    assert meta["kind"] == "meta graph" and meta["graphs"][0]["collections"]["trainable_variables"] == 1
    assert meta["graphs"][0]["operations"] == graph["operations"]
    assert "variable  w" in run("inspect", model / "graph.meta").output
    assert "no checksums" in refused("inspect", model / "graph.pb", "--verify")


@pytest.mark.parametrize(
    ("path", "kind", "form"),
    [
        ("graphs/frozen_perceptron.pb", "graph", "binary"),
        ("messages/meta_graph.pb", "meta graph", "binary"),
        ("messages/meta_graph.pbtxt", "meta graph", "text"),
        ("saved_models/json", "saved model", "tfray's JSON"),
    ],
)
def test_what_tensorflow_and_older_versions_wrote(path, kind, form):
    found = inspected(GOLDEN / path)
    assert (found["kind"], found["form"]) == (kind, form)
    assert found["graphs"][0]["types"]["MatMul"] >= 1
    assert run("inspect", GOLDEN / path).exit_code == 0


def test_graphs_in_the_older_form(tmp_path):
    tf.add(1.0, 2.0, name="three")
    (tmp_path / "old.pb").write_bytes(tf.get_default_graph().as_plain().SerializeToString())
    found = inspected(tmp_path / "old.pb")
    assert (found["kind"], found["form"]) == ("graph", "tfray's JSON")
    assert found["graphs"][0]["ends"] == [{"name": "three", "type": "Add"}]
    assert run("convert", tmp_path / "old.pb", tmp_path / "new.pb").exit_code == 0
    assert inspected(tmp_path / "new.pb")["graphs"] == found["graphs"]


def test_names_of_a_file_are_no_commands_of_the_terminal(tmp_path):
    graph = tf.GraphDef(node=[tf.NodeDef(name="[red]a\x1b[2J", op="Placeholder")])
    (tmp_path / "m.pb").write_bytes(graph.SerializeToString())
    shown = run("inspect", tmp_path / "m.pb").output
    assert "[red]a\\x1b[2J" in shown and "\x1b" not in shown


@pytest.mark.parametrize("contents", [b"", b"\xff" * 100, b"hello: 1", b"node { name: 1 }", b"{}", b"meta_graphs {"])
@pytest.mark.parametrize("name", ["m.pb", "m.meta", "saved_model.pb", "saved_model.pbtxt"])
def test_what_is_no_model_is_said_in_one_line(tmp_path, contents, name):
    (tmp_path / name).write_bytes(contents)
    for command in (["inspect"], ["convert"]):
        message = refused(*command, tmp_path / name, *([tmp_path / "out.pb"] if command == ["convert"] else []))
        assert message.count("\n") == 1 and str(tmp_path) in message
    assert not (tmp_path / "out.pb").exists()


# -- run-model -----------------------------------------------------------------------------------------


def test_a_signature_is_run(model, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "all.npz", x=X, other=X + 1)
    for value in (f"{tmp_path}/x.npy", f"{tmp_path}/all.npz[x]", "[[1, 2], [3, 4]]"):
        shown = run("run-model", model / "saved", "--input", f"x={value}")
        assert shown.exit_code == 0 and shown.output == f"y: float32, 2x3\n{X @ WEIGHTS}\n"
    long = json.dumps(np.ones((100, 2)).tolist())
    shown = run("run-model", model / "saved", "--tag", "gpu", "--tag", "serve", "--input", f"x={long}")
    assert "100x3" in shown.output and "..." in shown.output and shown.output.count("\n") < 10


def test_outputs_are_written(model, small, tmp_path):
    arguments = ["run-model", model / "saved", "--signature", "ids", "--output-dir", tmp_path / "out"]
    shown = run(*arguments, "--input", 'words=["bee", "wasp"]')
    assert shown.exit_code == 0 and "ids: int64, 2\n[ 1 -1]" in shown.output
    assert np.load(tmp_path / "out" / "ids.npy").tolist() == [1, -1]
    assert np.load(tmp_path / "out" / "same.npy").tolist() == [b"bee", b"wasp"]
    np.save(tmp_path / "words.npy", np.array(["ant"]))
    again = [*arguments, "--input", f"words={tmp_path}/words.npy"]
    assert "--overwrite" in refused(*again)
    assert run(*again, "--overwrite").exit_code == 0
    assert np.load(tmp_path / "out" / "ids.npy").tolist() == [0]
    shown = run("run-model", small, "--input", "x=[[1, 2]]", "--output-dir", tmp_path / "names")
    (written,) = (tmp_path / "names").iterdir()  # the name is the model's: it leads nowhere else
    assert shown.exit_code == 0 and np.array_equal(np.load(written), X[:1] @ WEIGHTS)


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ([], ["input 'x' is missing", "x: float32, ?x2"]),
        (["--input", "z=1"], ["no input 'z'", "x: float32, ?x2"]),
        (["--input", "x"], ["expected NAME=VALUE"]),
        (["--input", "x=1", "--input", "x=2"], ["given twice"]),
        (["--input", "x=nowhere.npy"], ["there is no file nowhere.npy"]),
        (["--input", "x=nowhere.npz[x]"], ["there is no file nowhere.npz"]),
        (["--input", "x=[[1, 2"], ["no JSON"]),
        (
            ["--input", "x=[[1, 2, 3]]"],
            ["for Tensor 'x:0', which has shape '(?, 2)'", "x: float32, ?x2"],
        ),
        (["--input", 'x=[["a", "b"]]'], ["no array of float32", "x: float32, ?x2"]),
        (["--signature", "other"], ["no signature 'other'", "ids, serving_default"]),
        (["--tag", "train", "--input", "x=[[1, 2]]"], ["['train']", "['serve']"]),
        (["--allow", "everything"], ["files, python"]),
    ],
)
def test_what_cannot_be_run(model, arguments, messages):
    output = refused("run-model", model / "saved", *arguments)
    assert all(message in output for message in messages), output


def test_nothing_is_unpickled(model, tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    assert "Python objects" in refused("run-model", model / "saved", "--input", f"x={tmp_path}/x.npy")


def test_a_model_that_reads_files_has_to_be_allowed(tmp_path):
    (tmp_path / "secret").write_text("hidden")
    name = tf.placeholder(tf.string, [], name="name")
    with tf.Session() as session:
        tf.saved_model.simple_save(session, tmp_path / "saved", {"name": name}, {"text": tf.read_file(name)})
    arguments = ["run-model", tmp_path / "saved", "--input", f'name="{tmp_path}/secret"']
    failed = run(*arguments)
    assert failed.exit_code != 0 and "ReadFile" in failed.output and "hidden" not in failed.output
    assert "hidden" in run(*arguments, "--allow", "files").output


# -- convert -------------------------------------------------------------------------------------------


def test_graphs_as_text_and_back(model, tmp_path):
    for name, kind in (("graph.pb", tf.GraphDef), ("graph.meta", tf.MetaGraphDef)):
        assert run("convert", model / name, tmp_path / "as.text").exit_code == 0  # the form that the source has not
        assert inspected(tmp_path / "as.text")["form"] == "text"
        assert run("convert", tmp_path / "as.text", tmp_path / "back.pb").exit_code == 0
        written = kind.FromString((model / name).read_bytes())
        assert kind.FromString((tmp_path / "back.pb").read_bytes()) == written
        assert "--overwrite" in refused("convert", model / name, tmp_path / "back.pb")
        assert run("convert", model / name, tmp_path / "back.pb", "--to", "text", "--overwrite").exit_code == 0
        assert inspected(tmp_path / "back.pb")["form"] == "text"
        for left in tmp_path.iterdir():
            left.unlink()
    assert "binary, text" in refused("convert", model / "graph.pb", tmp_path / "m", "--to", "safetensors")


def test_a_saved_model_becomes_a_frozen_graph(model, small, tmp_path):
    for folder, options in ((model / "saved", ["--tag", "serve"]), (small, [])):
        path = tmp_path / "frozen.pb"
        shown = run("convert", folder, path, "--overwrite", *options)
        assert shown.exit_code == 0 and "inputs x: x:0\n" in shown.output and "y: y:0" in shown.output
        frozen = tf.GraphDef.FromString(path.read_bytes())
        assert {node.op for node in frozen.node} <= {"Placeholder", "Const", "Identity", "MatMul"}
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(frozen, name="")
            np.testing.assert_array_equal(session.run("y:0", {"x:0": X}), X @ WEIGHTS)
    assert "HashTable" in refused("convert", model / "saved", tmp_path / "i.pb", "--tag", "serve", "--signature", "ids")
    assert "no signature" in refused("convert", small, tmp_path / "i.pb", "--signature", "other")
    assert "already" in refused("convert", small, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["frozen.pb"]


def test_models_in_the_older_form_become_tensorflows(tmp_path):
    assert run("convert", OLD, tmp_path / "new").exit_code == 0
    old, new = inspected(OLD)["graphs"][0], inspected(tmp_path / "new")
    assert new["form"] == "binary" and new["graphs"][0]["signatures"] == old["signatures"]
    assert [(each["name"], each["shape"]) for each in new["tensors"]] == [("w", [3, 200])]
    assert (tmp_path / "new" / "assets" / "words.txt").read_bytes() == (OLD / "assets" / "words.txt").read_bytes()
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    for signature, value in (("serving_default", x), ("ids", ["bee", "none"])):
        before, after = (tf.saved_model.load_model(folder, signature)(value) for folder in (OLD, tmp_path / "new"))
        assert all(np.array_equal(after[key], before[key]) for key in before)
    assert "already exists" in refused("convert", OLD, tmp_path / "new")
