"""Resolvers of clusters: what they say is what TensorFlow 1.15's say of the same, unless a comment tells otherwise."""

from __future__ import annotations

import json
import os

import pytest

import tfray as tf
from tfray.distribute.cluster_resolver import (
    ClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    UnionResolver,
)

CLUSTER = {"ps": ["ps0:2222", "ps1:2222"], "worker": ["w0:2222", "w1:2222", "w2:2222"]}


def resolver(cluster=None, **options):
    return SimpleClusterResolver(tf.train.ClusterSpec(CLUSTER if cluster is None else cluster), **options)


# -- told --------------------------------------------------------------------------------------------------


def test_a_resolver_says_what_it_was_told():
    found = resolver(master="m:1", task_type="ps", task_id=1, environment="google", num_accelerators={"GPU": 8})
    assert found.cluster_spec().as_dict() == CLUSTER
    assert (found.task_type, found.task_id, found.environment, found.rpc_layer) == ("ps", 1, "google", None)
    assert found.master() == "m:1" and found.master("worker", 2) == "w2:2222"
    assert found.master("worker", 2, "grpc") == "grpc://w2:2222"
    assert found.num_accelerators("worker", 0) == {"GPU": 8} and resolver().num_accelerators() == {}
    found.task_type, found.task_id, found.rpc_layer = "worker", 0, "local"
    assert (found.task_type, found.task_id, found.master()) == ("worker", 0, "local://m:1")
    # An empty address has its protocol, too.
    assert resolver(rpc_layer="grpc").master() == "grpc://"


def test_what_is_no_cluster_is_refused():
    with pytest.raises(TypeError, match="cluster_spec must be a ClusterSpec"):
        SimpleClusterResolver(CLUSTER)
    with pytest.raises(TypeError, match="master must be a string"):
        resolver(master=1)
    with pytest.raises(TypeError, match="abstract"):
        ClusterResolver()
    with pytest.raises(ValueError, match="no task 7"):
        resolver().master("ps", 7)


class Own(ClusterResolver):
    """A program's own resolver."""

    def cluster_spec(self):
        return tf.train.ClusterSpec({})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return ""


def test_a_session_tells_the_devices():
    assert Own().environment == ""
    assert Own().num_accelerators()["CPU"] >= 1 and Own().num_accelerators()["TPU"] == 0
    assert Own().num_accelerators("localhost", 0) == Own().num_accelerators()
    assert Own().num_accelerators("worker", 0) == {}


# -- TF_CONFIG ---------------------------------------------------------------------------------------------


def configured(monkeypatch, **config):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_tf_config_tells_the_cluster(monkeypatch):
    configured(monkeypatch, cluster=CLUSTER, task={"type": "worker", "index": "1"}, rpc_layer="grpc")
    found = TFConfigClusterResolver()
    assert found.cluster_spec() == tf.train.ClusterSpec(CLUSTER)
    assert (found.task_type, found.task_id, found.rpc_layer, found.environment) == ("worker", 1, "grpc", None)
    assert found.master() == "grpc://w1:2222" and found.master("ps", 0) == "grpc://ps0:2222"
    configured(monkeypatch, cluster=CLUSTER, task={"type": "ps", "index": 0})
    assert (found.task_type, found.task_id, found.rpc_layer, found.master()) == ("ps", 0, None, "ps0:2222")


def test_arguments_come_before_tf_config(monkeypatch):
    configured(monkeypatch, cluster=CLUSTER, task={"type": "worker", "index": 1}, rpc_layer="grpc")
    found = TFConfigClusterResolver("ps", 0, "http", "google")
    assert (found.task_type, found.task_id, found.rpc_layer, found.environment) == ("ps", 0, "http", "google")
    assert found.master() == "http://ps0:2222"
    found.task_type, found.task_id, found.rpc_layer = "worker", 2, "local"
    assert found.master() == "local://w2:2222"
    # TensorFlow takes no notice of an index without a job, and of the protocol that is asked for.
    assert TFConfigClusterResolver(task_id=2).task_id == 2
    assert TFConfigClusterResolver().master(rpc_layer="http") == "http://w1:2222"


@pytest.mark.parametrize(
    ("config", "master"),
    [
        ({}, ""),
        ({"cluster": {"worker": ["w0:2222"]}}, ""),
        ({"cluster": CLUSTER, "session_master": "grpc://m:1"}, "grpc://m:1"),
    ],
)
def test_masters_without_a_task(monkeypatch, config, master):
    configured(monkeypatch, **config)
    found = TFConfigClusterResolver()
    assert found.master() == master and (found.task_type, found.task_id) == (None, None)


def test_tf_config_that_makes_no_sense(monkeypatch):
    configured(monkeypatch, cluster=CLUSTER)
    with pytest.raises(ValueError, match="no task with type and index"):
        TFConfigClusterResolver().master()
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(ValueError, match="TF_CONFIG is no JSON"):
        TFConfigClusterResolver().cluster_spec()
    monkeypatch.delenv("TF_CONFIG")
    assert TFConfigClusterResolver().cluster_spec() == tf.train.ClusterSpec({})
    assert TFConfigClusterResolver().num_accelerators()["CPU"] >= 1


# -- several -----------------------------------------------------------------------------------------------


def test_several_resolvers_are_one():
    first = resolver({"ps": ["a:1"], "worker": ["b:1"]}, master="m", task_type="ps", task_id=0, rpc_layer="grpc")
    second = resolver({"worker": ["c:1", "d:1"], "eval": {3: "e:1"}}, environment="google")
    found = UnionResolver(first, second)
    assert found.cluster_spec().as_dict() == {"ps": ["a:1"], "worker": ["b:1", "c:1", "d:1"], "eval": {3: "e:1"}}
    assert (found.task_type, found.task_id, found.rpc_layer, found.environment) == ("ps", 0, "grpc", "")
    # An address of a task has the protocol of the union alone.
    assert found.master() == "grpc://m" and found.master("worker", 1) == "c:1"
    assert found.master("worker", 1, "http") == "http://c:1" and found.num_accelerators() == {}
    found = UnionResolver(first, second, task_type="worker", task_id=0, rpc_layer="http")
    assert (found.task_type, found.task_id, found.rpc_layer) == ("worker", 0, "http")
    assert found.master("worker", 1) == "http://c:1"


def test_indices_stay_when_a_job_has_gaps():
    gaps = resolver({"worker": {1: "b:1", 3: "d:1"}})
    assert UnionResolver(resolver({"worker": ["a:1"]}), gaps).cluster_spec().as_dict() == {
        "worker": {0: "a:1", 1: "b:1", 3: "d:1"}
    }
    with pytest.raises(KeyError, match="Duplicate keys detected"):
        UnionResolver(gaps, resolver({"worker": ["a:1", "b:1"]})).cluster_spec()


def test_unions_that_are_refused():
    with pytest.raises(ValueError, match="At least one"):
        UnionResolver()
    with pytest.raises(ValueError, match="Unexpected kwargs"):
        UnionResolver(resolver(), job="ps")
    with pytest.raises(TypeError, match="All arguments must be"):
        UnionResolver(resolver(), CLUSTER)


# -- Slurm -------------------------------------------------------------------------------------------------


@pytest.fixture
def step(monkeypatch, tmp_path):
    """A step of Slurm with five processes on three nodes, of which this is the fourth."""
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nprintf 'node1\\nnode2\\nnode3\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name, value in {"PROCID": 3, "NTASKS": 5, "NTASKS_PER_NODE": 2}.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return monkeypatch


def test_slurm_tells_the_nodes(step):
    found = SlurmClusterResolver({"worker": 4, "ps": 1}, gpus_per_node=4, gpus_per_task=2)
    assert found.get_task_info() == (None, None) and found.master() == "" and found.rpc_layer == "grpc"
    assert found.cluster_spec().as_dict() == {
        "ps": ["node1:8888"],
        "worker": ["node1:8889", "node2:8888", "node2:8889", "node3:8888"],
    }
    assert found.get_task_info() == (found.task_type, found.task_id) == ("worker", 2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert found.master() == "grpc://node2:8889" and found.master("ps", 0, "http") == "http://node1:8888"
    assert found.num_accelerators() == {"GPU": 4} and found.environment == ""


def test_processes_of_mpi(step):
    step.setenv("OMPI_COMM_WORLD_RANK", "1")
    step.setenv("OMPI_COMM_WORLD_SIZE", "2")
    found = SlurmClusterResolver({"worker": 2}, 1000, tasks_per_node=1, auto_set_gpu=False, rpc_layer=None)
    assert found.cluster_spec().as_dict() == {"worker": ["node1:1000", "node2:1000"]}
    assert found.get_task_info() == ("worker", 1) and found.master() == "node2:1000"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_nodes_without_gpus(step):
    """TensorFlow refuses tasks that have none."""
    found = SlurmClusterResolver({"worker": 5}, gpus_per_node=0, gpus_per_task=0)
    assert found.cluster_spec().num_tasks("worker") == 5 and os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("jobs", "options", "message"),
    [
        ({"worker": 5}, {}, "more GPUs per node then available"),
        ({"worker": 4}, {"gpus_per_node": 2}, "more tasks then assigned tasks"),
    ],
)
def test_steps_that_do_not_fit(step, jobs, options, message):
    with pytest.raises(RuntimeError, match=message):
        SlurmClusterResolver(jobs, **options)


def test_what_slurm_does_not_say(step, tmp_path):
    step.delenv("SLURM_NTASKS_PER_NODE")
    with pytest.raises(RuntimeError, match="SLURM_NTASKS_PER_NODE is set"):
        SlurmClusterResolver({"worker": 5})
    found = SlurmClusterResolver({"worker": 5}, tasks_per_node=1)
    with pytest.raises(RuntimeError, match="places for 3 tasks"):
        found.cluster_spec()
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(RuntimeError, match="scontrol show hostname"):
        found.cluster_spec()
    step.delenv("SLURM_PROCID")
    with pytest.raises(KeyError, match="SLURM_PROCID is not set"):
        SlurmClusterResolver({"worker": 5})
