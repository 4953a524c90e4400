"""`tf.contrib.learn.RunConfig` reads ``TF_CONFIG`` as TensorFlow 1.15's did."""

from __future__ import annotations

import json

import pytest

import tfray as tf
from tfray.contrib import learn
from tfray.programs.learn import cluster_config

CLUSTER = {"ps": ["h1:1", "h2:2"], "worker": ["h3:3", "h4:4", "h5:5"]}
MASTERS = {**CLUSTER, "master": ["h6:6"]}


def _config(monkeypatch, environment, **options):
    monkeypatch.setenv("TF_CONFIG", json.dumps(environment))
    return learn.RunConfig(**options)


@pytest.mark.parametrize(
    ("environment", "options", "expected"),
    [
        ({}, {}, ("", 0, None, True, 0, 0, "")),
        ({"cluster": {}, "task": {}}, {}, ("", 0, None, True, 0, 0, "")),
        (
            {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}},
            {},
            ("grpc://h4:4", 1, "worker", False, 2, 3, ""),
        ),
        ({"cluster": CLUSTER, "task": {"type": "worker"}}, {}, ("grpc://h3:3", 0, "worker", True, 2, 3, "")),
        ({"cluster": CLUSTER}, {}, ("", 0, None, True, 2, 3, "")),
        ({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker"}}, {}, ("", 0, "worker", True, 0, 1, "")),
        (
            {"cluster": {"ps": ["h:0"], "mine": ["h:1", "h:2"]}, "task": {"type": "worker", "index": 2}},
            {"master": "h:0", "evaluation_master": "h:1"},
            ("h:0", 2, "worker", False, 1, 0, "h:1"),
        ),
        (
            {"cluster": MASTERS, "task": {"type": "master", "index": 0}, "environment": "cloud"},
            {},
            ("grpc://h6:6", 0, "master", True, 2, 4, ""),
        ),
        ({"cluster": MASTERS, "task": {"type": "master"}}, {}, ("grpc://h6:6", 0, "master", False, 2, 4, "")),
    ],
)
def test_a_process_knows_its_place(monkeypatch, environment, options, expected):
    config = _config(monkeypatch, environment, **options)
    for made in (config, cluster_config.ClusterConfig(**options)):
        assert (
            made.master,
            made.task_id,
            made.task_type,
            made.is_chief,
            made.num_ps_replicas,
            made.num_worker_replicas,
            made.evaluation_master,
        ) == expected
        assert made.cluster_spec == tf.train.ClusterSpec(environment.get("cluster", {}))
    assert isinstance(config, tf.estimator.RunConfig) and config.get_task_id() == config.task_id


@pytest.mark.parametrize(
    ("task", "words"),
    [({"type": "none"}, "none is not a valid task_type"), ({"type": "worker", "index": 3}, "3 is not a valid task_id")],
)
def test_tasks_that_the_cluster_does_not_have(monkeypatch, task, words):
    with pytest.raises(ValueError, match=words):
        _config(monkeypatch, {"cluster": CLUSTER, "task": task})


def test_one_run_has_one_name(monkeypatch):
    config = _config(monkeypatch, {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}}, model_dir="a")
    assert config.uid() == config.uid() == config.replace(save_summary_steps=7).uid()
    other = config.replace(model_dir="b")
    assert config.uid() != other.uid() and config.uid(["model_dir"]) == other.uid(["model_dir"])
    assert config.uid([]) != config.replace(save_summary_steps=7).uid([])


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, (600, None)), ({"save_checkpoints_steps": 5}, (None, 5)), ({"save_checkpoints_secs": 7}, (7, None))],
)
def test_the_options_are_those_of_the_older_class(options, expected):
    config = learn.RunConfig("", 0, True, 0.5, 11, **options)
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == expected
    assert config.tf_random_seed == 11 and config.tf_config.log_device_placement
    assert config.tf_config.gpu_options.per_process_gpu_memory_fraction == 0.5
