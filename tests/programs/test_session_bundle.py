"""`tf.contrib.session_bundle`: exported models that TensorFlow 1.15 reads, and one that it has written."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.archives import unpack
from tfray.contrib.session_bundle import bundle_shim, constants, exporter, gc, manifest_pb2, session_bundle
from tfray.errors import PermissionDeniedError


def model(folder):
    """A model with a file, and what its exporter needs."""
    path = folder / "words.txt"
    path.write_text("a\nb\n")
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.multiply(x, tf.Variable(2.0, name="w"), name="y")
    asset = tf.constant(str(path))
    table = tf.contrib.lookup.index_table_from_file(asset)
    tf.identity(table.lookup(tf.constant(["b", "c"])), name="ids")
    init_op = tf.group(tf.tables_initializer(), name="init_op")
    return x, y, asset, init_op


def exported(folder, versions=(7,), **settings):
    x, y, asset, init_op = model(folder)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made = exporter.Exporter(tf.train.Saver(sharded=True, write_format="tensorflow"))
        made.init(
            session.graph.as_graph_def(),
            init_op=init_op,
            default_graph_signature=exporter.classification_signature(input_tensor=x, scores_tensor=y),
            named_graph_signatures={
                "inputs": exporter.generic_signature({"x": x}),
                "outputs": exporter.generic_signature({"y": y}),
            },
            assets_collection=[asset],
        )
        paths = [made.export(str(folder / "model") + "/", tf.constant(v), session, **settings) for v in versions]
    return [path.decode() for path in paths]


def signatures_of(meta_graph):
    found, packed = manifest_pb2.Signatures(), meta_graph.collection_def[constants.SIGNATURES_KEY].any_list.value
    assert packed[0].type_url == "type.googleapis.com/tensorflow.serving.Signatures"
    assert packed[0].Unpack(found) and not packed[0].Unpack(manifest_pb2.AssetFile())
    return found


def test_a_model_is_exported_and_loaded(tmp_path):
    (path,) = exported(tmp_path)
    assert path == f"{tmp_path}/model/00000007"
    assert {"export.meta", "export.index", "export.data-00000-of-00001", "assets"} <= set(os.listdir(path))
    (tmp_path / "words.txt").unlink()
    check(path)


def test_a_model_of_tensorflow_is_loaded(tmp_path):
    unpack(ROOT / "tests" / "golden" / "saved_models" / "session_bundle.tar.xz", tmp_path)
    check(tmp_path / "00000003")


def check(path):
    assert session_bundle.maybe_session_bundle_dir(path)
    session, meta_graph = session_bundle.load_session_bundle_from_path(str(path))
    signatures = signatures_of(meta_graph)
    with session:
        assert tf.get_default_graph() is session.graph
        default = signatures.default_signature.classification_signature
        assert signatures.default_signature.WhichOneof("type") == constants.CLASSIFICATION_SIGNATURE
        y, ids = session.run([default.scores.tensor_name, "ids:0"], {default.input.tensor_name: [1.0, 3.0]})
    assert y.tolist() == [2, 6] and ids.tolist() == [1, -1]
    assert signatures.named_signatures["outputs"].generic_signature.map["y"].tensor_name == "y:0"

    session, meta_graph = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(path)
    with session:
        signature = meta_graph.signature_def["serving_default"]
        assert signature.method_name == tf.saved_model.signature_constants.CLASSIFY_METHOD_NAME
        fed = {signature.inputs["inputs"].name: np.float32([1])}
        assert session.run(signature.outputs["scores"].name, fed).tolist() == [2]
        named = meta_graph.signature_def["serving_default_from_named"]
        assert (named.inputs["x"].name, named.outputs["y"].name) == ("x:0", "y:0")
        assert named.method_name == "tensorflow/serving/predict"


def test_versions_that_are_kept(tmp_path):
    paths = exported(tmp_path, [1, 2, 10], exports_to_keep=gc.largest_export_versions(2))
    assert sorted(os.listdir(tmp_path / "model")) == ["00000002", "00000010"]
    assert paths[0].endswith("00000001")
    with pytest.raises(RuntimeError, match="Duplicate export dir"):
        exported(tmp_path, [2])


def test_filters_of_versions(tmp_path):
    """The values of TensorFlow's own tests."""
    paths = [gc.Path("/foo", 8), gc.Path("/foo", 9), gc.Path("/foo", 10)]
    assert gc.largest_export_versions(2)(paths) == paths[1:]
    assert gc.largest_export_versions(2)([gc.Path("/foo", None), *paths[:1]]) == paths[:1]
    assert gc.largest_export_versions(0)(paths) == []
    many = [gc.Path("/foo", v) for v in (0, 4, 5, 6, 8, 9, 33)]
    assert gc.mod_export_version(2)(many[1:6]) == [gc.Path("/foo", v) for v in (4, 6, 8)]
    assert gc.mod_export_version(3)(many[1:6]) == [gc.Path("/foo", v) for v in (6, 9)]
    spread = [gc.Path("/foo", v) for v in (0, 1, 3, 5, 6, 7, 8, 33)]
    assert gc.one_of_every_n_export_versions(3)(spread) == [gc.Path("/foo", v) for v in (3, 6, 8, 33)]
    assert gc.one_of_every_n_export_versions(3)([gc.Path("/foo", 0), gc.Path("/foo", None)]) == [gc.Path("/foo", 0)]
    few = [gc.Path("/foo", v) for v in range(10)]
    both = gc.union(gc.largest_export_versions(3), gc.mod_export_version(3))
    assert both(few) == [gc.Path("/foo", v) for v in (0, 3, 6, 7, 8, 9)]
    assert gc.negation(both)(few) == [gc.Path("/foo", v) for v in (1, 2, 4, 5)]

    for name in ("0", "1", "2", "ignore"):
        (tmp_path / name).mkdir()
    found = gc.get_paths(tmp_path, lambda path: path if path.path[-1].isdigit() else None)
    assert [os.path.basename(path.path) for path in found] == ["0", "1", "2"]


def test_signatures():
    x, y = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, name="y")
    made = exporter.regression_signature(x, y)
    assert made.WhichOneof("type") == constants.REGRESSION_SIGNATURE
    assert made.regression_signature.output.tensor_name == "y:0"
    assert not exporter.classification_signature(x, classes_tensor=y).classification_signature.HasField("scores")
    assert exporter.generic_signature({}).WhichOneof("type") == constants.GENERIC_SIGNATURE


def test_devices_are_left_out():
    with tf.device("/device:CPU:0"):
        tf.Variable(1.0, name="w")
    exporter.Exporter(tf.train.Saver()).init(clear_devices=True)
    copied = tf.GraphDef()
    assert tf.get_collection(constants.GRAPH_KEY)[0].Unpack(copied)
    assert {node.device for node in copied.node} == {""} and "w" in {node.name for node in copied.node}


def test_misuse(tmp_path):
    tf.Variable(1.0)
    made = exporter.Exporter(tf.train.Saver())
    with pytest.raises(RuntimeError, match="init must be called first"):
        made.export(tmp_path, tf.constant(1), None)
    with pytest.raises(TypeError, match="init_op needs to be an Operation"):
        made.init(init_op=tf.constant(1))
    for asset, what in (
        ("path", "not a Tensor"),
        (tf.placeholder(tf.string), "constants"),
        (tf.constant(1), "string"),
        (tf.constant(["a", "b"]), "scalar"),
    ):
        with pytest.raises(TypeError, match=what):
            made.init(assets_collection=[asset])
    with pytest.raises(ValueError, match="invalid asset"):
        made.init(assets_collection=[tf.constant("")])
    made.init()
    with pytest.raises(RuntimeError, match="only once"):
        made.init()
    with pytest.raises(RuntimeError, match="meta graph file missing"):
        session_bundle.load_session_bundle_from_path(tmp_path)
    with pytest.raises(RuntimeError, match="not found at specified export location"):
        bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(tmp_path)


def test_a_model_reads_no_other_files(tmp_path):
    tf.group(tf.write_file("elsewhere", "x"), name="bad")
    tf.Variable(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made = exporter.Exporter(tf.train.Saver())
        made.init()
        path = made.export(str(tmp_path), tf.constant(1), session)
    with pytest.raises(PermissionDeniedError, match="WriteFile"):
        session_bundle.load_session_bundle_from_path(path.decode())
    session, _ = session_bundle.load_session_bundle_from_path(path.decode(), allow=["files"])
    session.close()


def test_saved_models_are_loaded_too(tmp_path):
    x = tf.placeholder(tf.float32, name="x")
    with tf.Session() as session:
        y = x * tf.Variable(3.0)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
    with tf.Graph().as_default():
        session, meta_graph = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(
            tmp_path / "model", ["serve"]
        )
        with session:
            name = meta_graph.signature_def["serving_default"].outputs["y"].name
            assert session.run(name, {"x:0": 2.0}) == 6
