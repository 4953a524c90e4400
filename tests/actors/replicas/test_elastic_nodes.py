"""Elastic runs while nodes of Ray come and go: by the test's hand, and by Ray's autoscaler."""

from __future__ import annotations

import contextlib
import json
import os
import signal

import pytest

import tfray as tf
from tests.support.elastic_runs import Stages, nothing, paced
from tests.support.processes import Barrier, descendants, free_port, is_alive, wait_for
from tests.support.training_models import OPTIMIZERS, classification_data, dense_model

pytestmark = pytest.mark.ray


def assert_every_step_counted_once(result, steps):
    """Also that training has learned something meanwhile."""
    assert [record.step for record in result.history] == list(range(1, steps + 1))
    assert result.variables["global_step"] == steps
    assert result.dropped == 0
    assert result.metrics["loss"] < 0.5 * result.history[0].metrics["loss"]


class WorkerNodes:
    """The nodes of a fake cluster that have room for one worker each."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.nodes = []

    def add(self, count):
        self.nodes += [self.cluster.add_node(num_cpus=1, resources={"worker": 1}) for _ in range(count)]

    def kill(self, count):
        for _ in range(count):
            self.cluster.remove_node(self.nodes.pop(0), allow_graceful=False)


@pytest.mark.fault(
    "Machines and networks",
    "A machine dies.",
    happens="Its workers are replaced where there is room; until then the others go on.",
    promise="Every step is done once.",
)
@pytest.mark.slow
def test_a_run_follows_the_nodes(ray_nodes, tmp_path):
    """Two workers, four, one, three: nodes come, and die, the first worker's too."""
    import ray

    ray_nodes.add_node(num_cpus=1, resources={"ps": 2})
    nodes = WorkerNodes(ray_nodes)
    nodes.add(2)
    ray.init(address=ray_nodes.address, logging_level="warning")
    barrier, steps = Barrier(tmp_path), 1500
    stages = Stages(
        barrier, (2, lambda: nodes.add(2)), (4, lambda: nodes.kill(3)), (1, lambda: nodes.add(2)), (3, nothing)
    )
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["momentum"]),
        paced(tf.train.array_input(*classification_data(), batch_size=24), barrier, steps),
        tf.train.ScalingConfig(
            (1, 4),
            2,
            cpus_per_worker=1,
            cpus_per_parameter_server=0.1,
            worker_resources={"worker": 1},
            parameter_server_resources={"ps": 1},
        ),
        tf.train.RunConfig(steps=steps, on_step=stages),
    ).fit()
    assert not stages.stages, "all four sizes were seen"
    assert_every_step_counted_once(result, steps)
    assert result.history[-1].live == 3


# -- with Ray's autoscaler -----------------------------------------------------------------------------


def autoscaling(gcs_port, max_workers):
    """A description for Ray's autoscaler: it starts fake nodes on this machine, of room for one worker each."""
    worker = {"resources": {"CPU": 1, "worker": 1, "object_store_memory": 150 << 20}, "node_config": {}}
    lists = ("cluster_synced_files", "rsync_exclude", "rsync_filter", "initialization_commands", "setup_commands")
    commands = ("head_setup_commands", "worker_setup_commands", "head_start_ray_commands", "worker_start_ray_commands")
    return {
        **{name: [] for name in (*lists, *commands)},
        "file_mounts": {},
        "file_mounts_sync_continuously": False,
        "docker": {},
        "cluster_name": "tests",
        "max_workers": max_workers,
        "upscaling_speed": 10,
        "idle_timeout_minutes": 0.2,
        "provider": {
            "type": "external",
            "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
            "gcs_address": f"127.0.0.1:{gcs_port}",
            "use_node_id_as_ip": True,  # all of them have the address of this machine
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "auth": {},
        "head_node_type": "ray.head.default",
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 1, "ps": 1}, "node_config": {}, "max_workers": 0},
            "worker": worker | {"min_workers": 0, "max_workers": max_workers},
        },
    }


@pytest.fixture
def autoscaled(ray_nodes, tmp_path, monkeypatch):
    """A head without workers, whose autoscaler starts up to three nodes for them. Yields its address."""
    import ray
    from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID

    monkeypatch.setenv("RAY_FAKE_CLUSTER", "1")
    monkeypatch.setenv("RAY_OVERRIDE_NODE_ID_FOR_TESTING", FAKE_HEAD_NODE_ID)
    monkeypatch.setenv("AUTOSCALER_UPDATE_INTERVAL_S", "1")
    port = free_port()
    described = tmp_path / "cluster.json"
    described.write_text(json.dumps(autoscaling(port, 3)))
    head = ray_nodes.add_node(
        num_cpus=1,
        resources={"ps": 1},
        gcs_server_port=port,
        autoscaling_config=str(described),
        include_dashboard=False,
    )
    monitor = head.all_processes["monitor"][0].process.pid
    yield ray_nodes.address
    ray.shutdown()
    started = {monitor} | descendants(monitor)  # nobody else ends the nodes that it has started
    for pid in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, started)))


def living_nodes(ray):
    return sum(node["Alive"] for node in ray.nodes())


def demand(address):
    """What Ray's autoscaler knows that somebody waits for."""
    from ray._raylet import GcsClient
    from ray.autoscaler.v2.sdk import get_cluster_resource_state

    return [
        request.count
        for request in get_cluster_resource_state(GcsClient(address)).pending_resource_requests
        if request.count
    ]


@pytest.mark.slow
def test_a_run_brings_the_nodes_that_it_needs(autoscaled, tmp_path):
    """From none: at first there is no node for any worker. A fourth worker never finds room, and is waited for no more
    once the run is over."""
    import ray

    ray.init(address=autoscaled, logging_level="warning")
    assert living_nodes(ray) == 1
    barrier, steps = Barrier(tmp_path), 2000
    wanted = []
    stages = Stages(barrier, (3, lambda: wait_for(lambda: wanted.append(demand(autoscaled)) or wanted[-1])))
    result = tf.train.Trainer(
        dense_model(OPTIMIZERS["momentum"]),
        paced(tf.train.array_input(*classification_data(), batch_size=24), barrier, steps),
        tf.train.ScalingConfig(
            (1, 4),
            worker_resources={"worker": 1},
            parameter_server_resources={"ps": 1},
            start_timeout_s=120,
        ),
        tf.train.RunConfig(steps=steps, on_step=stages),
    ).fit()
    assert not stages.stages, "three nodes have come"
    assert_every_step_counted_once(result, steps)
    sizes = [record.live for record in result.history]
    assert sizes == sorted(sizes) and sizes[0] >= 1 and sizes[-1] == 3
    assert wanted[-1] == [1]
    wait_for(lambda: demand(autoscaled) == [])
    wait_for(lambda: living_nodes(ray) == 1)
