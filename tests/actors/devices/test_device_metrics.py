"""Metrics of training, as Prometheus reads them from Ray."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import free_port, wait_for


def train():
    def model(features, labels):
        loss = tf.reduce_mean(tf.square(tf.layers.dense(features, 2) - labels))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))

    source = tf.train.array_input(np.ones((60, 4), np.float32), np.ones((60, 2), np.float32), batch_size=30)
    scaling = tf.train.ScalingConfig(workers=3, backup_workers=1)
    return tf.train.Trainer(model, source, scaling=scaling, run=tf.train.RunConfig(steps=20, logdir=None)).fit()


def totals(text):
    """The sum of each of tfray's metrics over its labels."""
    found = {}
    for name, value in re.findall(r"^ray_(tfray_\w+)(?:\{.*\})? (\S+)", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


@pytest.mark.ray
@pytest.mark.slow
def test_prometheus_reads_steps_examples_drops_and_bytes(ray_stopped):
    pytest.importorskip("opencensus", reason="Ray's metrics agent comes with ray[default]")
    port = free_port()
    ray_stopped.init(address="local", num_cpus=8, include_dashboard=False, _metrics_export_port=port)
    try:
        result = train()

        def read():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                    return totals(answer.read().decode())
            except (urllib.error.URLError, ConnectionError):
                return {}

        wait_for(lambda: read().get("tfray_step_seconds_count") == 20 and "tfray_sent_bytes_total" in read())
        found = read()
    finally:
        ray_stopped.shutdown()
    # Ray knows of a histogram only its buckets, and takes their middles for the sum.
    assert found["tfray_step_seconds_sum"] == pytest.approx(sum(r.duration_s for r in result.history), rel=1)
    assert found["tfray_examples_per_second"] > 0 and found["tfray_live_replicas"] == 3
    assert found.get("tfray_dropped_gradients_total", 0) == result.dropped
    # Each step sends the variables to each of the replicas, and at least two send their gradients.
    assert found["tfray_sent_bytes_total"] >= 20 * 4 * (4 * 2 + 2) * (2 + 2)
