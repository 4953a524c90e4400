"""Checkpoints go over to TensorFlow itself, in an interpreter of its own, and come back.

``TFRAY_PEER_PYTHON`` names an interpreter that has TensorFlow.
"""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN, ROOT
from tests.support.cases.checkpoint_values import VALUES_OF_DTYPES
from tests.support.cases.checkpointed_model import checkpointed_model
from tests.support.peer import PEER, needs_peer
from tfray.formats.open_checkpoint import open_checkpoint

pytestmark = [
    pytest.mark.slow,
    needs_peer,
]

START = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
folder = sys.argv[1]
"""

READ = """
assert tf.train.checkpoint_exists(f"{folder}/m-1") and tf.train.latest_checkpoint(folder) == f"{folder}/m-1"
reader = tf.train.load_checkpoint(folder)
arrays = {}
for name, shape in reader.get_variable_to_shape_map().items():
    value = np.asarray(reader.get_tensor(name))
    assert list(value.shape) == shape, name
    if value.dtype == object:
        arrays[name + ":lengths"] = np.array([len(each) for each in value.ravel()], np.int64)
        value = np.frombuffer(b"".join(value.ravel()), np.uint8)
    elif value.dtype.name == "bfloat16":
        value = value.view(np.uint16)
    arrays[name] = value
np.savez(f"{folder}/read.npz", **arrays)
"""

PARTS = """
for parts in (None, 1, 2, 5):
    partitioner = tf.fixed_size_partitioner(parts) if parts else None
    for axis_name, axis in (("rows", 0), ("columns", 1)):
        with tf.Graph().as_default(), tf.Session() as session:
            partitioner = tf.fixed_size_partitioner(parts, axis) if parts else None
            table = tf.convert_to_tensor(tf.get_variable(axis_name, [7, 300], partitioner=partitioner))
            tf.train.Saver().restore(session, f"{folder}/m-1")
            np.save(f"{folder}/{axis_name}{parts}.npy", session.run(table))
"""

MOVE = """
sys.path.insert(0, sys.argv[2])
import golden_checkpoints
x, predictions, train = golden_checkpoints.build()
names = [variable.op.name for variable in tf.global_variables()]
with tf.Session() as session:
    saver = tf.train.Saver(max_to_keep=None)
    saver.restore(session, tf.train.latest_checkpoint(folder))
    saver.save(session, f"{folder}/back/v2")
    tf.train.Saver(write_version=tf.train.SaverDef.V1).save(session, f"{folder}/back/v1")
    tf.train.Saver(sharded=True).save(session, f"{folder}/back/sharded")
    batch = np.load(f"{folder}/batch.npy")
    for _ in range(3):
        session.run(train, {x: batch})
    np.save(f"{folder}/predictions.npy", session.run(predictions, {x: batch}))
    # TensorFlow deletes what was written here.
    tf.train.remove_checkpoint(f"{folder}/m-3")
"""


def peer(program, folder, *arguments):
    """Run a program in the interpreter of TensorFlow."""
    command = [PEER, "-c", START + program, str(folder), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A checkpoint by tfray of all dtypes, and of variables in parts."""
    folder = tmp_path_factory.mktemp("written")
    rng = np.random.default_rng(0)
    tables = {name: rng.normal(size=(7, 300)).astype(np.float32) for name in ("rows", "columns")}
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in VALUES_OF_DTYPES.items():
            tf.get_variable(name, initializer=tf.constant(value, tf.as_dtype(value.dtype)))
        for axis, (name, value) in enumerate(tables.items()):
            partitioner = tf.fixed_size_partitioner(3, axis)
            table = tf.get_variable(name, [7, 300], partitioner=partitioner)
            cuts = np.cumsum([part.shape.as_list()[axis] for part in table])[:-1]
            for part, rows in zip(table, np.split(value, cuts, axis), strict=True):
                session.run(part.assign(rows))
        names = [variable for variable in tf.global_variables() if variable.op.name in VALUES_OF_DTYPES]
        session.run([variable.initializer for variable in names])
        tf.train.Saver(write_format="tensorflow").save(session, f"{folder}/m", 1, write_meta_graph=False)
    return folder, VALUES_OF_DTYPES | tables


def test_tensorflow_reads_every_dtype(written):
    folder, values = written
    peer(READ, folder)
    with np.load(folder / "read.npz") as arrays:
        for name, value in values.items():
            found = arrays[name]
            if value.dtype == object:
                assert arrays[f"{name}:lengths"].tolist() == [len(each) for each in value.ravel()]
                assert found.tobytes() == b"".join(value.ravel())
            else:
                assert found.shape == value.shape and found.tobytes() == value.tobytes()
                assert found.dtype == (np.uint16 if name == "bfloat16" else value.dtype)


def test_tensorflow_restores_variables_in_other_parts(written):
    folder, values = written
    peer(PARTS, folder)
    for axis in ("rows", "columns"):
        for parts in (None, 1, 2, 5):
            np.testing.assert_array_equal(np.load(folder / f"{axis}{parts}.npy"), values[axis])


def test_a_training_run_goes_over_and_comes_back(tmp_path):
    batch = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
    np.save(tmp_path / "batch.npy", batch)
    x, predictions, _, train = checkpointed_model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train, {x: batch})
        saver = tf.train.Saver(write_format="tensorflow")
        saver.save(session, f"{tmp_path}/m", 3)
        before = session.run(tf.global_variables())
        peer(MOVE, tmp_path, ROOT / "scripts")
        assert not list(tmp_path.glob("m-3*"))
        for name in ("v2", "v1", "sharded"):
            session.run(tf.global_variables_initializer())
            saver.restore(session, f"{tmp_path}/back/{name}")
            after = session.run(tf.global_variables())
            assert [value.tobytes() for value in after] == [value.tobytes() for value in before]
        for _ in range(3):
            session.run(train, {x: batch})
        found = session.run(predictions, {x: batch})
    np.testing.assert_allclose(found, np.load(tmp_path / "predictions.npy"), rtol=2e-5, atol=1e-6)


def test_what_tensorflow_wrote_is_read_after_a_move_of_both_sides(tmp_path):
    """Its golden checkpoint, written again in its format, is the same to it, byte for byte of each tensor."""
    source = open_checkpoint(str(GOLDEN / "checkpoints" / "model-20"))
    with tf.Session() as session:
        for name, entry in source.tensors.items():
            variable = tf.get_variable(name, entry.shape, entry.dtype, initializer=tf.zeros_initializer())
            session.run(variable.assign(source.read(name)))
        tf.train.Saver(write_format="tensorflow").save(session, f"{tmp_path}/m", 1, write_meta_graph=False)
    peer(READ, tmp_path)
    with np.load(tmp_path / "read.npz") as arrays:
        for name in source.tensors:
            if source.tensors[name].dtype.kind != "string":
                assert arrays[name].tobytes() == source.read(name).tobytes()
