"""`tf.train.ClusterSpec`, its messages, and what device setters read from it."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray.actors.clusters.server import _definition

JOBS = {"ps": ["ps0:2222"], "worker": ["w0:2222", "w1:2222"]}


@pytest.mark.parametrize(
    "form",
    [
        JOBS,
        {b"ps": [b"ps0:2222"], "worker": ("w0:2222", "w1:2222")},
        {"ps": {0: "ps0:2222"}, "worker": {1: "w1:2222", 0: "w0:2222"}},
        tf.train.ClusterSpec(JOBS),
        tf.train.ClusterSpec(JOBS).as_cluster_def(),
        tf.train.ClusterDef.FromString(tf.train.ClusterSpec(JOBS).as_cluster_def().SerializeToString()),
    ],
)
def test_all_forms_are_one(form):
    spec = tf.train.ClusterSpec(form)
    assert spec == tf.train.ClusterSpec(JOBS) and hash(spec) == hash(tf.train.ClusterSpec(JOBS))
    assert spec.as_dict() == JOBS and sorted(spec.jobs) == ["ps", "worker"] and spec
    assert spec.num_tasks("worker") == 2 and spec.task_indices("worker") == [0, 1]
    assert spec.task_address("worker", 1) == "w1:2222" and spec.job_tasks("ps") == ["ps0:2222"]


def test_tasks_may_have_gaps():
    spec = tf.train.ClusterSpec({"worker": {1: "w1:2222", 3: "w3:2222"}})
    assert spec.job_tasks("worker") == [None, "w1:2222", None, "w3:2222"]
    assert spec.as_dict() == {"worker": {1: "w1:2222", 3: "w3:2222"}} and spec.num_tasks("worker") == 2
    assert spec != tf.train.ClusterSpec({"worker": ["w1:2222", "w3:2222"]})
    assert not tf.train.ClusterSpec({}) and tf.train.ClusterSpec({}) == {}
    assert spec == {"worker": {1: "w1:2222", 3: "w3:2222"}}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tf.train.ClusterSpec(["w0:2222"]), TypeError, "expected a dictionary"),
        (lambda: tf.train.ClusterSpec({"worker": "w0:2222"}), TypeError, "expected a list of addresses"),
        (lambda: tf.train.ClusterSpec({"worker": [2222]}), TypeError, "expected text"),
        (lambda: tf.train.ClusterSpec({"worker": {-1: "w0:2222"}}), TypeError, "numbers from 0 on"),
        (lambda: tf.train.ClusterSpec(JOBS).num_tasks("chief"), ValueError, "no job 'chief'; it has ps, worker"),
        (lambda: tf.train.ClusterSpec(JOBS).task_address("ps", 1), ValueError, "no task 1; it has 0"),
        (lambda: tf.train.Server(JOBS), ValueError, "say by job_name"),
        (lambda: tf.train.Server(JOBS, "worker"), ValueError, "say by task_index"),
        (lambda: tf.train.Server(JOBS, "worker", 2), ValueError, "no task 2"),
    ],
)
def test_what_makes_no_sense(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_servers_know_their_task_from_any_form():
    definition = _definition(JOBS, "worker", 1, None)
    assert (definition.job_name, definition.task_index, definition.protocol) == ("worker", 1, "grpc")
    assert _definition(definition, None, None, None) == definition
    assert _definition({"local": ["l:1"]}, None, None, "grpc+verbs").job_name == "local"


@pytest.mark.parametrize("form", [JOBS, tf.train.ClusterSpec(JOBS), tf.train.ClusterSpec(JOBS).as_cluster_def()])
def test_device_setters_read_clusters(form):
    two = tf.train.ClusterSpec(form).as_dict() | {"ps": {0: "ps0:2222", 1: "ps1:2222"}}
    for cluster, tasks in ((form, [0, 0]), (tf.train.ClusterSpec(two), [0, 1])):
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=cluster)):
            variables = [tf.Variable(1.0), tf.Variable(2.0)]
            product = variables[0] * variables[1]
        assert [variable.device for variable in variables] == [f"/job:ps/task:{task}" for task in tasks]
        assert product.device == "/job:worker"


def test_parts_of_a_variable_go_to_all_parameter_servers():
    strategy = tf.train.GreedyLoadBalancingStrategy(3, tf.train.byte_size_load_fn)
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1", "c:1"], "worker": ["w:1"]})
    with tf.device(tf.train.replica_device_setter(cluster=cluster, ps_strategy=strategy)):
        large = tf.get_variable("large", [100, 10])
        table = tf.get_variable("table", [30, 10], partitioner=tf.fixed_size_partitioner(3))
    assert large.device == "/job:ps/task:0"
    assert [part.device for part in table] == [f"/job:ps/task:{task}" for task in (1, 2, 1)]


def test_a_server_drawn_from_the_name():
    strategy = tf.contrib.training.RandomStrategy(2, seed=0)
    with tf.device(tf.train.replica_device_setter(2, ps_strategy=strategy)):
        variables = [tf.Variable(tf.zeros([2])) for _ in range(4)]
    # What TensorFlow's hash of the names says.
    assert [variable.device for variable in variables] == [f"/job:ps/task:{task}" for task in (1, 0, 1, 1)]
