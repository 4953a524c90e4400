"""The side of tfray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import tfray as tf
from benchmarks.side import serve


class TfrayBackend:
    """See `benchmarks.cases.Backend`."""

    tf = tf
    versions: Final = {"tfray": tf.__version__}

    def unoptimized_config(self) -> Any:
        options = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
        return tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))

    @contextmanager
    def cluster(self, jobs: Mapping[str, int]) -> Iterator[Any]:
        with tf.Cluster(dict(jobs), address="local") as cluster:
            yield cluster


if __name__ == "__main__":
    serve(TfrayBackend())
