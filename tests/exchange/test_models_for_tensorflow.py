"""Models that tfray has saved: TensorFlow restores and serves them, and trains on with equal losses."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import tfray as tf
from tests.support.peer import PEER, needs_peer

STEPS = 20
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(16, 8, 8, 1)).astype(np.float32)
LABELS = RNG.integers(0, 3, 16)
IDS = RNG.integers(0, 12, (16, 4))

OPTIMIZERS = {
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
}


def convnet(optimizer):
    """A convnet with batch normalization and a partitioned variable."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    hidden = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
    hidden = tf.layers.batch_normalization(hidden, training=True)
    hidden = tf.layers.flatten(tf.layers.max_pooling2d(hidden, 2, 2))
    hidden = tf.layers.dense(hidden, 8, activation=tf.nn.relu)
    parts = tf.get_variable("parts", [8, 3], partitioner=tf.fixed_size_partitioner(2))
    y = tf.matmul(hidden, tf.convert_to_tensor(parts), name="y")
    loss = tf.identity(tf.losses.sparse_softmax_cross_entropy(labels, y), name="loss")
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        OPTIMIZERS[optimizer]().minimize(loss, step, name="train")
    return {"x:0": IMAGES, "labels:0": LABELS}


def words(optimizer):
    """An embedding in two parts, whose gradients are sparse, and an LSTM."""
    ids = tf.placeholder(tf.int64, [None, 4], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    table = tf.get_variable("table", [12, 5], partitioner=tf.fixed_size_partitioner(2))
    rows = tf.nn.embedding_lookup(table, ids)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(6), rows, dtype=tf.float32)
    y = tf.identity(tf.layers.dense(outputs[:, -1], 3), name="y")
    loss = tf.identity(tf.losses.sparse_softmax_cross_entropy(labels, y), name="loss")
    OPTIMIZERS[optimizer]().minimize(loss, tf.train.get_or_create_global_step(), name="train")
    return {"x:0": IDS, "labels:0": LABELS}


MODELS = {"convnet": convnet, "words": words}
CASES = [(model, optimizer) for model in MODELS for optimizer in OPTIMIZERS]


def save(folder, model, optimizer):
    """Train for a step, save in each way, and write what 20 further steps give."""
    tf.reset_default_graph()
    tf.set_random_seed(1)
    fed = MODELS[model](optimizer)
    saver = tf.train.Saver(write_format="tensorflow")
    x, y = (tf.get_default_graph().get_tensor_by_name(name) for name in ("x:0", "y:0"))
    tf.add_to_collection("outputs", y)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run("train", fed)
        saver.save(session, f"{folder}/model", tf.train.get_global_step())
        tf.train.export_meta_graph(f"{folder}/text.meta", as_text=True, saver_def=saver.as_saver_def())
        tf.saved_model.simple_save(session, f"{folder}/saved", {"x": x}, {"y": y})
        tf.saved_model.export(session, f"{folder}/frozen", {"x": x}, {"y": y})
        result = session.run(y, fed)
        losses = [session.run(["loss:0", "train"], fed)[0] for _ in range(STEPS)]
        again = session.run(y, fed)
    np.savez(f"{folder}/values.npz", **fed, y=result, losses=losses, again=again)


PROGRAM = """
import json, sys, traceback
import numpy as np, tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
said = {}

def close(found, wanted, what):
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=what)

def check(folder):
    known = dict(np.load(f"{folder}/values.npz"))
    fed = {name: known[name] for name in ("x:0", "labels:0")}
    x = {"x:0": fed["x:0"]}
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{folder}/model-1.meta")
        saver.restore(session, f"{folder}/model-1")
        close(session.run("y:0", x), known["y"], "restored")
        assert session.run(tf.train.get_global_step()) == 1
        assert [each.name for each in tf.get_collection("outputs")] == ["y:0"]
        path = saver.save(session, f"{folder}/again", write_meta_graph=False)
        for turn in range(2):
            losses = [session.run(["loss:0", "train"], fed)[0] for _ in known["losses"]]
            close(losses, known["losses"], f"losses of turn {turn}")
            close(session.run("y:0", x), known["again"], f"result of turn {turn}")
            saver.restore(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{folder}/text.meta")
        saver.restore(session, f"{folder}/model-1")
        close(session.run("y:0", x), known["y"], "meta graph as text")
    for kind in ("saved", "frozen"):
        with tf.Graph().as_default(), tf.Session() as session:
            signatures = tf.saved_model.loader.load(session, ["serve"], f"{folder}/{kind}").signature_def
            signature = signatures["serving_default"]
            feeds = {signature.inputs["x"].name: fed["x:0"]}
            close(session.run(signature.outputs["y"].name, feeds), known["y"], kind)

for folder in sys.argv[2:]:
    try:
        check(folder)
    except Exception:
        said[folder] = traceback.format_exc()[-1500:]
json.dump(said, open(sys.argv[1], "w"))
"""

EAGER = """
import json, sys, traceback
import numpy as np, tensorflow as tf
said = {}
for folder in sys.argv[2:]:
    try:
        known = dict(np.load(f"{folder}/values.npz"))
        for kind in ("saved", "frozen"):
            model = tf.saved_model.load(f"{folder}/{kind}")
            found = model.signatures["serving_default"](tf.constant(known["x:0"]))["y"]
            np.testing.assert_allclose(found, known["y"], 1e-4, 1e-5, err_msg=kind)
        names = dict(tf.train.list_variables(f"{folder}/model-1"))
        assert "global_step" in names and len(names) > 4, names
    except Exception:
        said[folder] = traceback.format_exc()[-1500:]
json.dump(said, open(sys.argv[1], "w"))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What TensorFlow says against each model that tfray has saved, by its loaders of the first and second version."""
    root = tmp_path_factory.mktemp("models")
    folders = {}
    for model, optimizer in CASES:
        folder = folders[model, optimizer] = root / f"{model}_{optimizer}"
        folder.mkdir()
        save(folder, model, optimizer)
    environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    found = []
    for index, program in enumerate((PROGRAM, EAGER)):
        command = [PEER, "-c", program, str(root / f"said{index}.json"), *map(str, folders.values())]
        done = subprocess.run(command, timeout=550, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(json.loads((root / f"said{index}.json").read_text()))
    return {case: [each.get(str(folder), "") for each in found] for case, folder in folders.items()}


@pytest.mark.slow
@needs_peer
@pytest.mark.parametrize("case", CASES, ids="_".join)
def test_tensorflow_restores_and_trains_on(case, said):
    assert said[case] == ["", ""], "\n".join(said[case])
