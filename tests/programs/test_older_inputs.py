"""Inputs that go on where they stopped, and small names of `tf.contrib`; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import crf, lookup, rnn
from tfray.contrib import data as contrib_data

TRANSITIONS = np.array([[0.1, 0.5, -0.2], [0.3, 0, 0.4], [-0.5, 0.2, 0.1]], np.float32)
INPUTS = np.array([[1.0, 2, 3], [0, -1, 1]], np.float32)
STATE = np.array([[0.5, 0, 1], [1, 2, 0]], np.float32)


class Seen(tf.train.SessionRunHook):
    """Looks at what a model gets."""

    def __init__(self):
        self.values = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection("x")[0])

    def after_run(self, run_context, run_values):
        self.values.append(int(run_values.results))


def model(features, labels, mode):
    tf.add_to_collection("x", features)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.constant(0.0), train_op=tf.assign_add(tf.train.get_global_step(), 1)
    )


def test_inputs_that_go_on(tmp_path):
    seen = Seen()
    for steps in (3, 4):
        config = tf.estimator.RunConfig(save_checkpoints_steps=2)
        estimator = tf.estimator.Estimator(model, str(tmp_path), config)
        hook = tf.data.experimental.CheckpointInputPipelineHook(estimator)
        estimator.train(lambda: tf.data.Dataset.range(100), hooks=[seen, hook], steps=steps)
    assert seen.values == list(range(7))
    saved = {name for name in os.listdir(tmp_path) if name.endswith("index") and name.startswith("input")}
    assert saved == {f"input.ckpt-{step}.index" for step in (0, 2, 3, 4, 6, 7)}
    assert (tmp_path / "checkpoint_input").exists() and contrib_data.CheckpointInputPipelineHook is type(hook)


def test_reduced_datasets():
    reducer = contrib_data.Reducer(lambda key: key + 10, lambda state, x: state + x, lambda state: state * 100)
    with tf.Session() as session:
        assert session.run(contrib_data.reduce_dataset(tf.data.Dataset.range(5), reducer)) == 20
    with pytest.raises(TypeError, match=r"must be a `tf.data.Dataset`"):
        contrib_data.reduce_dataset(3, reducer)


def test_batches_of_features(tmp_path):
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(3):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"v": feature})).SerializeToString())
    spec = {"v": tf.FixedLenFeature([], tf.int64)}
    batch = contrib_data.read_batch_features(path, 2, spec, randomize_input=False, num_epochs=2)
    with tf.Session() as session:
        assert [session.run(batch)["v"].tolist() for _ in range(2)] == [[0, 1], [2, 0]]


def test_steps_of_random_fields():
    forward, decoding = crf.CrfForwardRnnCell(tf.constant(TRANSITIONS)), crf.CrfDecodeForwardRnnCell(TRANSITIONS)
    backward = crf.CrfDecodeBackwardRnnCell(3)
    assert [(cell.state_size, cell.output_size) for cell in (forward, decoding, backward)] == [(3, 3), (3, 3), (1, 1)]
    steps = tf.constant(np.stack([INPUTS] * 3, 1))
    _, last = tf.nn.dynamic_rnn(forward, steps, sequence_length=[2, 3], initial_state=tf.constant(STATE))
    found = [forward(INPUTS, STATE), decoding(INPUTS, STATE), backward([[2, 0, 1], [1, 1, 2]], [[2], [0]]), last]
    with tf.Session() as session:
        (alphas, state), (before, best), (tags, _), last = session.run(found)
    expected = [[2.5729, 3.9514, 4.7657], [2.609, 1.572, 3.664]]
    assert alphas == pytest.approx(np.array(expected), abs=1e-4) and (state == alphas).all()
    assert before.tolist() == [[0, 2, 2], [1, 1, 1]] and before.dtype == np.int32
    assert best == pytest.approx(np.array([[1.6, 3.2, 4.1], [2.3, 1.0, 3.4]]), abs=1e-5)
    assert tags.tolist() == [[1], [1]]
    assert last == pytest.approx(np.array([[6.0492, 7.38, 8.3849], [5.2385, 4.7235, 6.5707]]), abs=1e-4)


def test_bases():
    for kind in (rnn.FusedRNNCellAdaptor, rnn.TimeReversedFusedRNN):
        assert issubclass(kind, rnn.FusedRNNCell)
    assert issubclass(lookup.HashTable, lookup.InitializableLookupTableBase)
    assert issubclass(lookup.TextFileInitializer, lookup.TableInitializerBase)
    with pytest.raises(TypeError, match="abstract"):
        rnn.FusedRNNCell()


def test_receivers_like_inputs():
    receive = tf.contrib.estimator.build_supervised_input_receiver_fn_from_input_fn(
        lambda n: ({"a": tf.zeros([n, 2])}, tf.zeros([n])), n=4
    )
    found = receive()
    assert sorted(found.receiver_tensors) == ["a", "label"] and found.features["a"].shape.as_list() == [None, 2]
