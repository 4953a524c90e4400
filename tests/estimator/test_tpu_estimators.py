"""Estimators of programs for TPUs, as they run without TPUs."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError, UnimplementedError

tpu = tf.contrib.tpu
X = np.random.default_rng(0).normal(size=(320, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(3)
    return dataset.batch(params["batch_size"], drop_remainder=True)


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


class Model:
    """A model function that notes what it is told, and what runs with its steps."""

    def __init__(self, as_dictionary=False):
        self.told, self.steps = [], 0
        self._as_dictionary = as_dictionary

    def __call__(self, features, labels, mode, params):
        self.told.append((mode, params.get("batch_size"), params["use_tpu"], features["x"].shape[0].value))
        logits = tf.layers.dense(features["x"], 2, name="dense")
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(params["rate"]))
        tensors = {"labels": labels, "logits": logits} if self._as_dictionary else [labels, logits]
        return tpu.TPUEstimatorSpec(
            mode,
            loss=loss,
            train_op=optimizer.minimize(loss, tf.train.get_global_step()),
            eval_metrics=(metric_fn, tensors),
            host_call=(self._host_call, [loss]),
            scaffold_fn=lambda: tf.train.Scaffold(init_fn=lambda scaffold, session: None),
        )

    def _host_call(self, loss):
        def note(loss):
            self.steps += 1
            return loss

        return [tf.py_func(note, [loss], tf.float32)]


def estimator(model, folder, **more):
    config = tpu.RunConfig(
        cluster=None, master=None, model_dir=str(folder), tpu_config=tpu.TPUConfig(100, num_shards=8)
    )
    given = {"train_batch_size": 32, "eval_batch_size": 16, "predict_batch_size": 8, "params": {"rate": 0.1}}
    return tpu.TPUEstimator(use_tpu=False, model_fn=model, config=config, **given | more)


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_each_mode_has_its_batch_size(tmp_path, as_dictionary):
    model = Model(as_dictionary)
    trained = estimator(model, tmp_path)
    trained.train(input_fn, max_steps=20)
    assert model.steps == 20
    results = trained.evaluate(input_fn, steps=10)
    assert results["accuracy"] > 0.8 and model.steps == 30
    assert len(list(trained.predict(input_fn))) == 960
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": X[:2]})
    folder = trained.export_saved_model(str(tmp_path / "export"), receiver)
    assert "dense/kernel/Adam" in trained.get_variable_names() and folder
    assert model.told == [
        ("train", 32, False, 32),
        ("eval", 16, False, 16),
        ("infer", 8, False, 8),
        ("infer", None, False, None),
    ]
    assert trained.params == {"rate": 0.1}


def test_train_and_evaluate(tmp_path):
    model = Model()
    trained = estimator(model, tmp_path)
    result, _ = tf.estimator.train_and_evaluate(
        trained, tf.estimator.TrainSpec(input_fn, 20), tf.estimator.EvalSpec(input_fn, 5)
    )
    assert result["global_step"] == 20 and [told[1] for told in model.told] == [32, 16]


def test_without_batch_sizes_and_with_an_ordinary_spec(tmp_path):
    def model_fn(features, labels, params):
        assert "batch_size" not in params and params.deep == 2
        loss = tf.reduce_mean(tf.layers.dense(features["x"], 1) ** 2)
        return tf.estimator.EstimatorSpec(
            "train", loss=loss, train_op=tf.assign_add(tf.train.get_global_step(), params.deep)
        )

    def own_input_fn(params):
        return tf.data.Dataset.from_tensors(({"x": X}, Y)).repeat(2)

    params = tf.contrib.training.HParams(deep=2)
    model = estimator(functools.partial(model_fn), tmp_path, train_batch_size=None, params=params)
    model.train(own_input_fn)
    assert model.get_variable_value("global_step") == 4


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"use_tpu": True}, UnimplementedError, "use_tpu=False"),
        ({"embedding_config_spec": object()}, UnimplementedError, "embedding_config_spec"),
        ({"config": tf.estimator.RunConfig()}, ValueError, "tf.estimator.tpu.RunConfig"),
        ({"params": {"batch_size": 3}}, ValueError, "batch_size"),
        ({"model_fn": lambda features, labels, mode: None, "params": None}, ValueError, "params"),
    ],
)
def test_what_estimators_refuse(arguments, error, message):
    given = {"model_fn": Model(), "config": tpu.RunConfig(), "use_tpu": False, "params": {"rate": 1}}
    with pytest.raises(error, match=message):
        tpu.TPUEstimator(**given | arguments)


def test_an_input_function_must_take_params(tmp_path):
    with pytest.raises(ValueError, match="the input function takes"):
        estimator(Model(), tmp_path).train(lambda mode: None, steps=1)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (metric_fn, ValueError),
        ((metric_fn, [1], 2), ValueError),
        (("f", [1]), TypeError),
        ((metric_fn, 1), ValueError),
        ((metric_fn, [1]), RuntimeError),
    ],
)
@pytest.mark.parametrize("name", ["eval_metrics", "host_call"])
def test_functions_and_their_tensors(name, call, error):
    with pytest.raises(error, match=name):
        tpu.TPUEstimatorSpec("eval", **{name: call})


def test_a_function_of_any_number_of_tensors():
    tpu.TPUEstimatorSpec("eval", eval_metrics=(lambda *tensors: {"count": len(tensors)}, [1, 2, 3]))


@pytest.mark.parametrize(
    "arguments",
    [
        {"iterations_per_loop": 0},
        {"iterations_per_loop": "0s"},
        {"iterations_per_loop": "5d"},
        {"num_shards": 0},
        {"num_cores_per_replica": 3},
        {"initial_infeed_sleep_secs": -1},
        {"input_partition_dims": [[1]]},
        {"input_partition_dims": [[1]] * 3, "num_cores_per_replica": 2, "per_host_input_for_training": 3},
        {"eval_training_input_configuration": 4},
    ],
)
def test_options_that_make_no_sense(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        tpu.TPUConfig(**arguments)


def test_options():
    assert tpu.TPUConfig("30s", per_host_input_for_training=False).per_host_input_for_training == 1
    assert tpu.TPUConfig(per_host_input_for_training=tpu.InputPipelineConfig.BROADCAST)[3] == 4
    config = tpu.RunConfig(tpu.TPUConfig(5), evaluation_master="", master="", save_checkpoints_steps=7)
    assert config.tpu_config.iterations_per_loop == 5 and config.save_checkpoints_steps == 7 and config.cluster is None
    other = config.replace(tpu_config=tpu.TPUConfig(6), save_checkpoints_steps=8)
    assert (other.tpu_config[0], other.save_checkpoints_steps, config.tpu_config[0]) == (6, 8, 5)
    assert other.replace(tf_random_seed=1).tpu_config[0] == 6
    with pytest.raises(InvalidArgumentError, match="TF_CONFIG"):
        tpu.RunConfig(cluster=object())


def test_the_namespaces():
    assert tf.estimator.tpu.TPUEstimator is tpu.TPUEstimator and tf.tpu.CrossShardOptimizer is tpu.CrossShardOptimizer
    for call in ("tf.tpu.rewrite", "tf.contrib.tpu.cross_replica_sum", "tf.estimator.tpu.rewrite"):
        with pytest.raises(AttributeError, match="CPUs and GPUs"):
            eval(call)


def test_bfloat16_scope(session):
    with tpu.bfloat16_scope():
        cast = tf.get_variable("a", [2], tf.bfloat16, tf.ones_initializer())
        plain = tf.get_variable("b", [2])
    assert cast.dtype is tf.bfloat16 and plain.dtype.base_dtype is tf.float32
    assert {each.op.name: each.dtype.base_dtype for each in tf.global_variables()} == {
        "a": tf.float32,
        "b": tf.float32,
    }
    session.run(tf.global_variables_initializer())
    assert session.run(tf.cast(cast, tf.float32)).tolist() == [1, 1]


def test_optimizers_across_one_shard(session):
    v = tf.Variable(3.0)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.5, 0.9), reduction=tf.losses.Reduction.SUM)
    step = optimizer.minimize(v * v)
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(v) == 0 and optimizer.get_slot_names() == ["momentum"]
    assert optimizer.variables() == [optimizer.get_slot(v, "momentum")]
    with pytest.raises(ValueError, match="reduction"):
        tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(), "none")
    with pytest.raises(TypeError, match="opt"):
        tf.tpu.CrossShardOptimizer(0.1)
