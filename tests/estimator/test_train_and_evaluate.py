"""`tf.estimator.train_and_evaluate`: in one process, by replicas on Ray, and as a cluster under `tfray launch`."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.processes import PATIENCE_S

POINTS = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
TARGETS = (POINTS @ [[2.0], [-3.0]] + 1).astype(np.float32)
EXAMPLE = ROOT / "examples" / "estimator_wide_and_deep.py"


def line(features, labels, mode):
    weights = tf.get_variable("weights", [2, 1], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], weights) + bias
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.losses.mean_squared_error(labels, y)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def examples():
    return tf.data.Dataset.from_tensor_slices(({"x": POINTS}, TARGETS))


def train_fn():
    return examples().repeat().batch(16)


def eval_fn():
    return examples().batch(16)


def serving_fn():
    return tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 2])})()


def specs(steps, **evaluation):
    return tf.estimator.TrainSpec(train_fn, max_steps=steps), tf.estimator.EvalSpec(eval_fn, **evaluation)


def test_each_checkpoint_is_evaluated_and_the_end_is_exported(tmp_path):
    model = tf.estimator.Estimator(line, str(tmp_path), tf.estimator.RunConfig(save_checkpoints_steps=10))
    exporters = [tf.estimator.FinalExporter("final", serving_fn), tf.estimator.LatestExporter("latest", serving_fn)]
    results, exports = tf.estimator.train_and_evaluate(model, *specs(30, throttle_secs=0, exporters=exporters))
    assert results["global_step"] == 30 and results["loss"] < 0.01
    assert list(tf.contrib.estimator.read_eval_metrics(model.eval_dir())) == [10, 20, 30]
    assert exports[0].startswith(f"{tmp_path}/export/final/".encode())
    assert len(os.listdir(tmp_path / "export" / "final")) == 1
    served = tf.saved_model.load_model(exports[0].decode())(x=POINTS[:3])["y"]
    np.testing.assert_allclose(served, list(np.array([p["y"] for p in model.predict(eval_fn)])[:3]), rtol=1e-6)


def test_numbers_of_steps_are_quotients_and_input_functions_have_arguments_of_their_own(tmp_path):
    def batches(size=16, shuffled=False, *, params=None):
        return (examples().shuffle(8) if shuffled else examples()).repeat().batch(params or size)

    model = tf.estimator.Estimator(line, str(tmp_path))
    training = tf.estimator.TrainSpec(functools.partial(batches, shuffled=True), max_steps=10 / 4)
    results, _ = tf.estimator.train_and_evaluate(model, training, tf.estimator.EvalSpec(batches, steps=7 / 2))
    assert results["global_step"] == 3
    assert model.train(batches, steps=5 / 2).evaluate(batches, steps=1.0)["global_step"] == 6


def test_evaluations_keep_their_distance(tmp_path):
    model = tf.estimator.Estimator(line, str(tmp_path), tf.estimator.RunConfig(save_checkpoints_steps=10))
    tf.estimator.train_and_evaluate(model, *specs(50, throttle_secs=600))
    assert list(tf.contrib.estimator.read_eval_metrics(model.eval_dir())) == [10, 50]


def test_the_best_is_exported_when_it_is_better(tmp_path):
    model = tf.estimator.Estimator(line, str(tmp_path)).train(train_fn, steps=1)
    path, step = f"{tmp_path}/export", 0

    def export(exporter, loss):
        nonlocal step
        step += 1
        result = {"loss": loss, "global_step": step}
        return exporter.export(model, path, model.latest_checkpoint(), result, False) is not None

    first = tf.estimator.BestExporter("best", serving_fn, exports_to_keep=2)
    assert [export(first, loss) for loss in (3.0, 4.0, 2.0, 1.0)] == [True, False, True, True]
    assert len(os.listdir(path)) == 2
    # Another process reads from event files what was best.
    model.evaluate(eval_fn)
    best = model.evaluate(eval_fn)["loss"]
    second = tf.estimator.BestExporter("best", serving_fn)
    assert [export(second, loss) for loss in (best + 1, best - 0.5)] == [False, True]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: tf.estimator.TrainSpec(3), TypeError, "expected a function"),
        (lambda: tf.estimator.TrainSpec(train_fn, max_steps=0), ValueError, "max_steps is 0"),
        (lambda: tf.estimator.TrainSpec(train_fn, hooks=[1]), TypeError, "SessionRunHook"),
        (lambda: tf.estimator.EvalSpec(eval_fn, steps=-1), ValueError, "steps is -1"),
        (lambda: tf.estimator.EvalSpec(eval_fn, name=1), TypeError, "name is 1"),
        (lambda: tf.estimator.EvalSpec(eval_fn, exporters=[1]), TypeError, "Exporter"),
        (lambda: tf.estimator.EvalSpec(eval_fn, throttle_secs=-1), ValueError, "throttle_secs is -1"),
        (lambda: tf.estimator.EvalSpec(eval_fn, start_delay_secs=-1), ValueError, "start_delay_secs is -1"),
        (
            lambda: tf.estimator.EvalSpec(eval_fn, exporters=[tf.estimator.FinalExporter("a", None)] * 2),
            ValueError,
            "each its own",
        ),
        (lambda: tf.estimator.LatestExporter("a", None, exports_to_keep=0), ValueError, "more than 0"),
        (lambda: tf.estimator.BestExporter(compare_fn=lambda a, b: True), ValueError, "best_eval_result"),
        (lambda: tf.estimator.train_and_evaluate(1, *specs(1)), TypeError, "estimator is 1"),
    ],
)
def test_what_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


# -- by replicas on Ray ----------------------------------------------------------------------------------


def replicated(folder, model_fn=line):
    scaling = tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5, cpus_per_parameter_server=0.5)
    config = tf.estimator.RunConfig(save_checkpoints_steps=20, tf_random_seed=1, trainer=scaling)
    return tf.estimator.Estimator(model_fn, str(folder), config)


def share_fn(config):
    """The share of one replica."""
    return examples().shard(config.num_worker_replicas, config.task_id).repeat().batch(16)


@pytest.mark.ray
def test_replicas_train_one_model_function(ray_local, tmp_path):
    """Two replicas with 16 examples each make the steps of one process with the 32."""
    model = replicated(tmp_path / "replicas").train(share_fn, steps=30)
    assert model.latest_checkpoint().endswith("model.ckpt-30") and model.get_variable_value("global_step") == 30

    def whole_fn():
        order = np.arange(64).reshape(-1, 2).T.reshape(2, -1, 16).swapaxes(0, 1).reshape(-1)
        return tf.data.Dataset.from_tensor_slices(({"x": POINTS[order]}, TARGETS[order])).repeat().batch(32)

    alone = tf.estimator.Estimator(line, str(tmp_path / "alone")).train(whole_fn, steps=30)
    for name in ("weights", "bias"):
        np.testing.assert_allclose(model.get_variable_value(name), alone.get_variable_value(name), rtol=1e-4)
    # They go on from the newest checkpoint, and checkpoints are evaluated.
    train, test = specs(60, throttle_secs=0)
    results, _ = tf.estimator.train_and_evaluate(model, train._replace(input_fn=share_fn), test)
    assert results["global_step"] == 60 and results["loss"] < 1e-3


@pytest.mark.slow
@pytest.mark.ray
def test_replicas_take_canned_estimators_and_sparse_features(ray_local, tmp_path):
    words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    scaling = tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5, cpus_per_parameter_server=0.5)

    def input_fn():
        word = tf.data.Dataset.from_tensor_slices(np.array(["a", "b"] * 8)).map(
            lambda w: tf.SparseTensor([[0]], tf.reshape(w, [1]), [2])
        )
        labels = tf.data.Dataset.from_tensor_slices(np.array([0, 1] * 8))
        return tf.data.Dataset.zip((word, labels)).map(lambda w, y: ({"word": w}, y)).repeat().batch(8)

    model = tf.estimator.LinearClassifier(
        [words], str(tmp_path), config=tf.estimator.RunConfig(trainer=scaling, tf_random_seed=1)
    ).train(input_fn, steps=20)
    assert model.evaluate(input_fn, steps=2)["accuracy"] == 1


@pytest.mark.ray
def test_what_replicas_do_not_have_is_refused(ray_local, tmp_path):
    def hooked(features, labels, mode):
        return line(features, labels, mode)._replace(training_hooks=[tf.train.StopAtStepHook(1)])

    with pytest.raises(tf.errors.InvalidArgumentError, match="training hooks"):
        replicated(tmp_path, hooked).train(share_fn, steps=1)
    with pytest.raises(ValueError, match="hooks and saving_listeners"):
        replicated(tmp_path).train(share_fn, hooks=[tf.train.StopAtStepHook(1)], steps=1)


# -- as a cluster ----------------------------------------------------------------------------------------


def launched(folder, steps):
    """The example as a cluster of five tasks."""
    command = [
        sys.executable, "-m", "tfray.cli", "launch", "--chief", "--workers", "2", "--ps", "1", "--evaluator",
        str(EXAMPLE), "--", f"--model_dir={folder}", f"--steps={steps}", "--people=4000",
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.ray
def test_a_cluster_is_killed_and_goes_on(ray_stopped, tmp_path):
    """A chief, two workers, a parameter server and an evaluator; killed after the first checkpoints, and run again."""
    folder = tmp_path / "people"
    process = launched(folder, 60000)
    try:
        assert process.stdout is not None
        for text in process.stdout:
            if "joined the Ray cluster" in text:
                break
        deadline = tf.train.checkpoints_iterator(str(folder), timeout=PATIENCE_S)
        next(path for path in deadline if not path.endswith("-0"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    reached = int(tf.train.load_variable(str(folder), "global_step"))
    assert 0 < reached < 60000
    goal = reached + 300
    again = launched(folder, goal)
    output, _ = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, output
    final = int(tf.train.load_variable(str(folder), "global_step"))
    assert goal <= final < goal + 60
    step, accuracy = re.search(r"\[evaluator 0\] step (\d+), accuracy (\S+),", output).groups()
    assert int(step) == final and float(accuracy) > 0.7, output
    assert len(os.listdir(folder / "export" / "people")) == 1
    assert final in tf.contrib.estimator.read_eval_metrics(str(folder / "eval"))
