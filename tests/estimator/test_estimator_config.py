"""`tf.estimator.RunConfig`: values, and the place in a cluster that ``TF_CONFIG`` gives."""

from __future__ import annotations

import json

import pytest

import tfray as tf

CLUSTER = {"chief": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1", "h5:1"]}


def config_of(monkeypatch, job, index, cluster=CLUSTER, **more):
    task = {"task": {"type": job, "index": index}} if job else {}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, **task, **more}))
    return tf.estimator.RunConfig()


def test_defaults(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    config = tf.estimator.RunConfig()
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (600, None)
    assert (config.save_summary_steps, config.log_step_count_steps, config.keep_checkpoint_max) == (100, 100, 5)
    assert (config.task_type, config.task_id, config.master, config.is_chief) == ("worker", 0, "", True)
    assert (config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster) == (0, 1, 0)
    assert config.model_dir is config.tf_random_seed is config.session_config is None
    assert config.keep_checkpoint_every_n_hours == 10000 and not config.cluster_spec


# The rows are those of the table in TensorFlow's documentation of `global_id_in_cluster`.
@pytest.mark.parametrize(
    ("job", "index", "master", "number"),
    [
        ("chief", 0, "grpc://h0:1", 0),
        ("worker", 0, "grpc://h3:1", 1),
        ("worker", 1, "grpc://h4:1", 2),
        ("worker", 2, "grpc://h5:1", 3),
        ("ps", 0, "grpc://h1:1", 4),
        ("ps", 1, "grpc://h2:1", 5),
    ],
)
def test_tasks_of_a_cluster(monkeypatch, job, index, master, number):
    config = config_of(monkeypatch, job, index)
    assert (config.task_type, config.task_id, config.master) == (job, index, master)
    assert (config.num_ps_replicas, config.num_worker_replicas) == (2, 4)
    assert config.global_id_in_cluster == number and config.is_chief == (job == "chief")
    assert config.cluster_spec == tf.train.ClusterSpec(CLUSTER)


def test_a_worker_uses_its_own_devices_and_the_parameter_servers(monkeypatch):
    assert config_of(monkeypatch, "worker", 1).session_config.device_filters == ["/job:ps", "/job:worker/task:1"]
    assert config_of(monkeypatch, "chief", 0).session_config.device_filters == ["/job:ps", "/job:chief"]


def test_the_evaluator_is_not_in_the_cluster(monkeypatch):
    config = config_of(monkeypatch, "evaluator", 0)
    assert (config.task_type, config.master, config.evaluation_master, config.is_chief) == ("evaluator", "", "", False)
    assert (config.num_ps_replicas, config.num_worker_replicas) == (0, 0) and not config.cluster_spec
    with pytest.raises(ValueError, match="train_and_evaluate"):
        tf.estimator.Estimator(lambda features: None, config=config).train(lambda: None)


def test_a_cluster_with_a_master(monkeypatch):
    config = config_of(monkeypatch, "master", 0, {"master": ["m:1"], "worker": ["w:1"]})
    assert config.is_chief and config.num_worker_replicas == 2 and config.master == "grpc://m:1"


@pytest.mark.parametrize(
    ("job", "index", "cluster", "message"),
    [
        ("worker", 0, {"worker": ["a:1"]}, "needs one task 'chief'"),
        ("chief", 0, {"chief": ["a:1", "b:1"]}, "needs one task 'chief'"),
        ("worker", 7, CLUSTER, "no task 7"),
        ("worker", -1, CLUSTER, "expected 0 or more"),
        ("gardener", 0, CLUSTER, "no job 'gardener'"),
        (None, 0, CLUSTER, "needs a task"),
        ("chief", 0, {**CLUSTER, "master": ["m:1"]}, "both a master and a chief"),
        ("evaluator", 0, {"master": ["m:1"]}, "the master evaluates"),
        ("ps", 0, {}, "must be worker 0"),
    ],
)
def test_clusters_that_make_no_sense(monkeypatch, job, index, cluster, message):
    with pytest.raises(ValueError, match=message):
        config_of(monkeypatch, job, index, cluster)


def test_what_is_no_json_is_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(ValueError, match="no JSON"):
        tf.estimator.RunConfig()


def test_the_folder_may_stand_in_the_environment(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": "/a"}))
    assert tf.estimator.RunConfig().model_dir == "/a"
    with pytest.raises(ValueError, match="TF_CONFIG says '/a'"):
        tf.estimator.RunConfig("/b")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("save_summary_steps", -1),
        ("save_checkpoints_steps", -1),
        ("save_checkpoints_secs", -1),
        ("keep_checkpoint_max", -1),
        ("keep_checkpoint_every_n_hours", 0),
        ("log_step_count_steps", 0),
        ("tf_random_seed", 1.5),
        ("session_config", {}),
        ("device_fn", lambda device: ""),
        ("protocol", "http"),
        ("session_creation_timeout_secs", 0),
        ("experimental_max_worker_delay_secs", 0.5),
        ("model_dir", ""),
        ("train_distribute", object()),
        ("experimental_distribute", object()),
        ("experimental_distribute", tf.contrib.distribute.DistributeConfig(remote_cluster={"worker": ["a:1"]})),
        ("trainer", 3),
    ],
)
def test_values_that_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        tf.estimator.RunConfig(**{name: value})
    with pytest.raises(ValueError, match=name):
        tf.estimator.RunConfig().replace(**{name: value})


def test_replace_makes_a_copy():
    config = tf.estimator.RunConfig()
    other = config.replace(save_checkpoints_steps=5, model_dir="/c")
    assert (other.save_checkpoints_steps, other.save_checkpoints_secs, other.model_dir) == (5, None, "/c")
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs, config.model_dir) == (None, 600, None)
    with pytest.raises(ValueError, match="cannot replace 'task_id'"):
        config.replace(task_id=3)
    with pytest.raises(ValueError, match="exclude each other"):
        tf.estimator.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1)


def no_input():
    return None


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: tf.estimator.TrainSpec(no_input, max_steps="5"), TypeError, "TrainSpec: max_steps is '5'"),
        (lambda: tf.estimator.TrainSpec(no_input, max_steps=0), ValueError, "max_steps is 0, expected more than 0"),
        (lambda: tf.estimator.TrainSpec(no_input, max_steps=float("nan")), ValueError, "max_steps is nan"),
        (lambda: tf.estimator.EvalSpec(no_input, steps="5"), TypeError, "EvalSpec: steps is '5'"),
        (lambda: tf.estimator.EvalSpec(no_input, start_delay_secs="5"), TypeError, "start_delay_secs is '5'"),
        (lambda: tf.estimator.EvalSpec(no_input, throttle_secs=float("nan")), ValueError, "throttle_secs is nan"),
        (lambda: tf.estimator.RunConfig(keep_checkpoint_max="5"), ValueError, "keep_checkpoint_max"),
        (lambda: tf.estimator.RunConfig(save_checkpoints_secs=float("nan")), ValueError, "save_checkpoints_secs"),
        (lambda: tf.estimator.inputs.numpy_input_fn({}, batch_size=-4, shuffle=False), ValueError, "batch_size is -4"),
    ],
)
def test_numbers_that_are_none_or_too_small_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("steps", ["5", -1])
def test_steps_of_an_estimator_are_checked(steps, tmp_path):
    estimator = tf.estimator.Estimator(lambda features, labels, mode: None, str(tmp_path))
    for call in (estimator.train, estimator.evaluate):
        with pytest.raises((TypeError, ValueError), match=f"steps is {steps!r}"):
            call(no_input, steps=steps)
