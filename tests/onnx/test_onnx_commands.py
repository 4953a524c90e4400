"""``tfray inspect``, ``tfray run-model`` and ``tfray convert`` on files of ONNX."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support.script import run

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")


def test_a_file_is_inspected_and_run(tmp_path):
    path = tmp_path / "m.onnx"
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.matmul(x, np.arange(6, dtype=np.float32).reshape(2, 3))
    with tf.Session() as session:
        tf.onnx.export(session, path, {"x": x}, {"y": y})
    found = json.loads(run("inspect", path, "--json").output)
    (graph,) = found["graphs"]
    (signature,) = graph["signatures"].values()
    assert found["kind"] == "model of ONNX" and found["bytes"] == path.stat().st_size
    assert graph["types"]["MatMul"] == 1 and found["form"].startswith("opset ")
    assert signature["inputs"] == {"x": {"tensor": "x", "dtype": "float32", "shape": [None, 2]}}
    assert signature["outputs"]["y"]["dtype"] == "float32"
    shown = run("inspect", path)
    assert shown.exit_code == 0 and "MatMul 1" in shown.output and "?x2" in shown.output
    shown = run("run-model", path, "--input", "x=[[1, 2]]", "--output-dir", tmp_path)
    assert shown.exit_code == 0 and np.load(tmp_path / "y.npy").tolist() == [[6, 9, 12]]
    assert "x: float32, ?x2" in run("run-model", path).output


def test_models_are_converted_in_both_directions(tmp_path):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", [2, 3], initializer=tf.ones_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, tmp_path / "saved", {"x": x}, {"y": tf.nn.relu(tf.matmul(x, w) - 2.0)})
    for source, target in [("saved", "m.onnx"), ("m.onnx", "again"), ("again", "n.onnx"), ("n.onnx", "frozen.pb")]:
        shown = run("convert", tmp_path / source, tmp_path / target)
        assert shown.exit_code == 0 and str(tmp_path / target) in shown.output, shown.output
        assert run("convert", tmp_path / source, tmp_path / target).exit_code == 2, "it is there"
    for name in ("saved", "m.onnx", "again", "n.onnx"):
        shown = run(
            "run-model", tmp_path / name, "--input", "x=[[1, 2], [0, 1]]", "--output-dir", tmp_path / f"of-{name}"
        )
        assert shown.exit_code == 0 and np.load(tmp_path / f"of-{name}" / "y.npy").tolist() == [[1] * 3, [0] * 3]
    graph_def = tf.GraphDef.FromString((tmp_path / "frozen.pb").read_bytes())
    fetched = [node.name for node in graph_def.node if node.op == "Relu"]
    (y,) = tf.import_graph_def(graph_def, return_elements=[f"{fetched[0]}:0"])
    with tf.Session() as session:
        assert session.run(y, {"import/x:0": [[1, 2]]}).tolist() == [[1, 1, 1]]
    refused = run("convert", tmp_path / "m.onnx", tmp_path / "other.onnx")
    assert refused.exit_code == 2 and "a file of ONNX already" in refused.output


def test_what_is_no_file_of_onnx(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\xff" * 50)
    for command in ("inspect", "run-model"):
        failed = run(command, tmp_path / "m.onnx")
        assert failed.exit_code == 2 and "no file of ONNX" in failed.output and failed.output.count("\n") == 1
