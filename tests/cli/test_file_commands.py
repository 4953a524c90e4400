"""``tfray inspect`` and ``tfray convert``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.script import run
from tests.support.traced_memory import at_most
from tfray.formats.open_checkpoint import open_checkpoint

MODEL = str(GOLDEN / "checkpoints" / "model-20")
V1 = str(GOLDEN / "checkpoints" / "v1")


def read_all(path):
    opened = open_checkpoint(str(path))
    return {name: opened.read(name) for name in opened.tensors}


def assert_same(path, other, without=()):
    found, expected = read_all(path), read_all(other)
    assert found.keys() == expected.keys() - set(without)
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name])
        assert value.dtype == expected[name].dtype


@pytest.mark.parametrize(
    ("path", "name"),
    [(MODEL, "TensorFlow V2"), (f"{MODEL}.index", "TensorFlow V2"), (V1, "TensorFlow V1"), (f"{V1}/whole", "V1")],
)
def test_what_a_checkpoint_holds(path, name):
    shown = run("inspect", path, "--verify")
    assert shown.exit_code == 0 and name in shown.output and "all as they were written" in shown.output
    records = {record["name"]: record for record in json.loads(run("inspect", path, "--json").output)}
    known = {"name": "out/kernel", "dtype": "float32", "shape": [6, 4], "bytes": 96, "parts": 3}
    assert records.get("out/kernel", known) == known
    assert records.get("table", known | {"name": "table", "shape": [7, 4], "bytes": 112})["parts"] == 3
    assert run("checkpoint", path).output == run("inspect", path).output


def test_no_values_are_read(tmp_path):
    with tf.Session() as session:
        variable = tf.Variable(np.zeros(3_000_000))
        session.run(variable.initializer)
        path = tf.train.Saver(write_format="tensorflow").save(session, f"{tmp_path}/m", write_meta_graph=False)
    for data in tmp_path.glob("m.data-*"):
        data.unlink()
    with at_most(2):
        shown = run("inspect", path)
    assert shown.exit_code == 0 and "24,000,000 bytes" in shown.output


def test_there_and_back(tmp_path):
    assert run("convert", MODEL, tmp_path / "ours").exit_code == 0
    assert list(tmp_path.glob("ours.data-*.arrow"))
    shown = run("convert", tmp_path / "ours", tmp_path / "theirs")
    assert shown.exit_code == 0 and "TensorFlow V2" in shown.output
    for path in ("ours", "theirs"):
        assert_same(tmp_path / path, MODEL)
    assert len(open_checkpoint(f"{tmp_path}/theirs").tensors["out/kernel"].slices) == 3


def test_version_1_becomes_version_2(tmp_path):
    assert run("convert", V1, tmp_path / "new", "--to", "tensorflow").exit_code == 0
    assert_same(tmp_path / "new", f"{V1}/whole")


def test_to_safetensors_and_from_there(tmp_path):
    refused = run("convert", MODEL, tmp_path / "m.safetensors")
    assert refused.exit_code == 2 and "'names' is string" in refused.output
    assert not list(tmp_path.iterdir())
    with tf.Session() as session:
        tf.Variable(np.arange(6.0).reshape(2, 3), name="w")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, f"{tmp_path}/ours", write_meta_graph=False)
    assert run("convert", path, tmp_path / "m.safetensors").exit_code == 0
    assert run("convert", tmp_path / "m.safetensors", tmp_path / "theirs", "--to", "tensorflow").exit_code == 0
    assert_same(tmp_path / "theirs", path)
    wrong = run("convert", path, tmp_path / "m.bin", "--to", "safetensors")
    assert wrong.exit_code == 2 and "ends in .safetensors" in wrong.output


def test_nothing_is_replaced_unasked(tmp_path):
    target = tmp_path / "m"
    assert run("convert", MODEL, target).exit_code == 0
    refused = run("convert", f"{V1}/whole", target)
    assert refused.exit_code == 2 and "--overwrite" in refused.output
    assert_same(target, MODEL)
    assert run("convert", f"{V1}/whole", target, "--overwrite").exit_code == 0
    assert_same(target, f"{V1}/whole")
    assert run("convert", target, target, "--overwrite").exit_code == 0  # in its place, into the other format
    assert_same(target, f"{V1}/whole")
    assert open_checkpoint(str(target)).format_name == "TensorFlow V2"


def test_a_damaged_checkpoint_is_not_converted(tmp_path):
    for suffix in (".index", ".data-00000-of-00001"):
        (tmp_path / f"m{suffix}").write_bytes((GOLDEN / "checkpoints" / f"model-20{suffix}").read_bytes()[:-1])
    for path in (tmp_path / "m", tmp_path / "nowhere"):
        failed = run("convert", path, tmp_path / "new")
        assert failed.exit_code in (1, 2) and failed.output.count("\n") == 1
    assert not list(tmp_path.glob("new*"))
