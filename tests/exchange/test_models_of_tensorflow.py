"""Models that TensorFlow has saved (`scripts/golden_models.py`) give here what they gave there, and train on."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.graphs.models_of_tensorflow import unpack_models
from tfray.formats.meta_graph_proto import MetaGraphDef

KINDS = ["references", "resources"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return unpack_models(tmp_path_factory.mktemp("models"))


def values(folder):
    with np.load(folder / "values.npz") as found:
        return dict(found)


def assert_trains_on(session, known):
    """Twenty further steps have the losses that they have in TensorFlow."""
    feeds = {"x:0": known["x"], "labels:0": known["labels"]}
    losses = [session.run(["loss:0", "train"], feeds)[0] for _ in known["losses"]]
    np.testing.assert_allclose(losses, known["losses"], 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_from_a_meta_graph(models, kind, tmp_path):
    folder, known = models / kind, values(models / kind)
    saver = tf.train.import_meta_graph(f"{folder}/model-3.meta")
    with tf.Session() as session:
        saver.restore(session, f"{folder}/model-3")
        np.testing.assert_allclose(session.run("y:0", {"x:0": known["x"]}), known["y"], 1e-5, 1e-6)
        assert session.run(tf.train.get_global_step()) == 3
        path = saver.save(session, f"{tmp_path}/again", tf.train.get_global_step())
        assert_trains_on(session, known)
        saver.restore(session, path)
        assert_trains_on(session, known)
    assert set(tf.train.load_checkpoint(path).get_variable_to_shape_map()) >= {"layer/weights", "parts", "global_step"}


@pytest.mark.parametrize("kind", KINDS)
def test_collections_of_a_meta_graph_are_there(models, kind):
    tf.train.import_meta_graph(f"{models / kind}/text.pbtxt")  # as text
    names = {variable.op.name for variable in tf.trainable_variables()}
    assert names == {"layer/weights", "layer/bias", "parts/part_0", "parts/part_1"}
    assert [variable.shape.as_list() for variable in tf.trainable_variables("parts")] == [[4, 3], [4, 3]]
    found = {name: tf.get_collection(name) for name in ("numbers", "rates", "notes", "outputs")}
    assert found.pop("outputs")[0] is tf.get_default_graph().get_tensor_by_name("y:0")
    assert found == {"numbers": [3], "rates": [0.5], "notes": [b"a note"]}
    (train,) = tf.get_collection("train_op")[-1:]
    assert train is tf.get_default_graph().get_operation_by_name("train")


@pytest.mark.parametrize("kind", KINDS)
def test_imported_variables_are_trained_by_an_optimizer_of_ours(models, kind):
    known = values(models / kind)
    saver = tf.train.import_meta_graph(f"{models / kind}/model-3.meta", import_scope="old")
    loss = tf.get_default_graph().get_tensor_by_name("old/loss:0")
    head = tf.trainable_variables("old/parts")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=head)
    feeds = {"old/x:0": known["x"], "old/labels:0": known["labels"]}
    with tf.Session() as session:
        saver.restore(session, f"{models / kind}/model-3")
        weights = session.run("old/layer/weights/read:0" if kind == "references" else "old/layer/weights:0")
        losses = [session.run([loss, train], feeds)[0] for _ in range(20)]
        assert losses[-1] < losses[0]
        still = session.run("old/layer/weights/read:0" if kind == "references" else "old/layer/weights:0")
        assert np.array_equal(weights, still)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_of_tensorflow_1_is_served_and_trained(models, kind):
    folder, known = models / kind / "saved", values(models / kind)
    assert tf.saved_model.contains_saved_model(folder)
    np.testing.assert_allclose(tf.saved_model.load_model(folder)(known["x"])["y"], known["y"], 1e-5, 1e-6)
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], str(folder))
        assert isinstance(loaded, MetaGraphDef) and list(loaded.signature_def) == ["serving_default"]
        assert_trains_on(session, known)


@pytest.mark.parametrize("name", ["functions", "convolutions", "recurrent"])
def test_a_saved_model_of_tensorflow_2_is_run_by_its_signature(models, name):
    known = values(models / name)
    model = tf.saved_model.load_model(models / name / "saved")
    (found,) = model(known["x"]).values()
    np.testing.assert_allclose(found, known["y"], 1e-5, 1e-6)
    model.close()


def test_tables_of_a_model_of_tensorflow_2_read_its_assets(models):
    model = tf.saved_model.load_model(models / "functions" / "saved", "ids")
    assert model(["bee", "cat", "ant"])["ids"].tolist() == [1, -1, 0]
    with pytest.raises(tf.errors.NotFoundError, match="it has ids, serving_default"):
        tf.saved_model.load_model(models / "functions" / "saved", "other")


def test_a_model_may_write_nowhere_else(models):
    """The path of a saver in a file is given by who calls it, or the file is refused."""
    definition = MetaGraphDef.FromString((models / "references" / "model-3.meta").read_bytes())
    for node in definition.graph_def.node:
        if node.op == "SaveV2":
            node.input[0] = "elsewhere"
    elsewhere = definition.graph_def.node.add(name="elsewhere", op="Const")
    elsewhere.attr["dtype"].type = int(tf.string)
    elsewhere.attr["value"].tensor.CopyFrom(tf.make_tensor_proto("/somewhere/else"))
    with pytest.raises(tf.errors.PermissionDeniedError, match=r"SaveV2 \(1"):
        tf.train.import_meta_graph(MetaGraphDef.FromString(definition.SerializeToString()))


def test_queues_of_a_meta_graph_are_filled_by_its_queue_runners():
    tf.train.import_meta_graph(str(GOLDEN / "saved_models" / "queues.meta"))
    with tf.Session() as session:
        session.run("setup")
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert len(threads) >= 4
        plain = [session.run(["plain_x:0", "plain_i:0"]) for _ in range(7)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run("plain_x:0")
        mixed = [session.run(["mixed_x:0", "mixed_i:0"]) for _ in range(4)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run("mixed_i:0")
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=10)
    assert np.concatenate([i for _, i in plain]).tolist() == [*range(7)] * 2
    np.testing.assert_array_equal(np.concatenate([x for x, _ in plain]), 2 * np.tile(np.arange(7), 2) + 1)
    assert sorted(np.concatenate([i for _, i in mixed])) == [*range(7)]
    assert all(np.array_equal(x, i + 1) for x, i in mixed)
