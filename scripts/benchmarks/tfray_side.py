"""The side of tfray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import tfray as tf
from benchmarks.side import serve
from tfray.actors.clusters.ray_runtime import SYSTEM_CONFIG

_STORE_BYTES: Final = 4 << 30
"""Size of the object store of each node. The system gives its memory only when it is used."""


class TfrayBackend:
    """See `benchmarks.cases.Backend`."""

    tf = tf
    versions: Final = {"tfray": tf.__version__}

    def unoptimized_config(self) -> Any:
        options = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
        return tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))

    @contextmanager
    def cluster(self, jobs: Mapping[str, int], nodes: int | None = None) -> Iterator[Any]:
        if nodes is None:
            with tf.Cluster(dict(jobs), address="local") as cluster:
                yield cluster
            return
        with _nodes(jobs, nodes) as specs, tf.Cluster(specs, address="auto") as cluster:
            yield cluster


@contextmanager
def _nodes(jobs: Mapping[str, int], worker_nodes: int) -> Iterator[dict[str, tf.JobSpec]]:
    """Ray nodes on this machine, and the jobs placed on them. This process is on a node without a task."""
    import ray
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    head = {"num_cpus": 0, "object_store_memory": _STORE_BYTES, "_system_config": dict(SYSTEM_CONFIG)}
    ray_nodes = Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=ray_nodes.address, logging_level="error")
        specs = {}
        for job, count in jobs.items():
            made = min(count, worker_nodes) if job == "worker" else count
            names = [ray_nodes.add_node(num_cpus=count, object_store_memory=_STORE_BYTES).node_id for _ in range(made)]
            on = [NodeAffinitySchedulingStrategy(names[task % made], soft=False) for task in range(count)]
            specs[job] = tf.JobSpec(count, scheduling_strategy=on)
        ray_nodes.wait_for_nodes()
        yield specs
    finally:
        ray.shutdown()
        ray_nodes.shutdown()


if __name__ == "__main__":
    serve(TfrayBackend())
