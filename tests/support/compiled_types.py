"""Which types of operations a step runs, once it is compiled."""

from __future__ import annotations

from typing import Any

import tfray as tf


def run_with_types(fetches: Any, feeds: Any, devices: int = 1) -> tuple[Any, list[str]]:
    """The values of a step, and the types of the operations that computed them."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
        values = session.run(fetches, feeds, options, metadata)
    return values, [node.op for graph in metadata.partition_graphs for node in graph.node]
