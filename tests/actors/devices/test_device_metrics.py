"""Metrics of training, as Prometheus reads them from Ray."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections import Counter
from importlib import resources

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, free_port, wait_for

STEP_BYTES = 4 * (4 * 2 + 2) * (2 + 2)
"""Each step sends the variables to each of the replicas, and at least two send their gradients."""


def train(on_step):
    def model(features, labels):
        loss = tf.reduce_mean(tf.square(tf.layers.dense(features, 2) - labels))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))

    source = tf.train.array_input(np.ones((60, 4), np.float32), np.ones((60, 2), np.float32), batch_size=30)
    scaling = tf.train.ScalingConfig(workers=3, backup_workers=1)
    run = tf.train.RunConfig(steps=20, logdir=None, on_step=on_step)
    return tf.train.Trainer(model, source, scaling=scaling, run=run).fit()


def totals(text):
    """The sum of each of tfray's metrics over its labels."""
    found = {}
    for name, value in re.findall(r"^ray_(tfray_\w+)(?:\{.*\})? (\S+)", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


DASHBOARD = json.loads((resources.files("tfray") / "grafana_dashboard.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
SHOWN = {name for expression in EXPRESSIONS for name in re.findall(r"ray_(tfray_\w+)", expression)}
"""The metrics that the dashboard shows."""


def series(metric):
    """The names under which Prometheus knows a metric of Ray."""
    endings = {"Counter": ["_total"], "Gauge": [""], "Histogram": ["_bucket", "_count", "_sum"]}
    return {metric.info["name"] + ending for ending in endings[type(metric).__name__]}


def test_the_dashboard_shows_the_metrics_that_there_are():
    device_metrics = pytest.importorskip("tfray.actors.devices.device_metrics")
    metrics = [each for each in vars(device_metrics.StepMetrics()).values() if hasattr(each, "info")]
    metrics.append(device_metrics._sent_bytes())
    assert set().union(*map(series, metrics)) >= SHOWN
    assert all(series(metric) & SHOWN for metric in metrics)


def test_the_dashboard_is_what_grafana_imports():
    assert DASHBOARD["title"] and re.fullmatch(r"[\w-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["schemaVersion"] >= 36 and "id" not in DASHBOARD  # Grafana gives the id
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels) > 0
    cells = Counter()
    for panel in panels:
        assert panel["type"] == "timeseries" and panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert references and len(set(references)) == len(references)
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells.update((at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"]))
    assert set(cells.values()) == {1}, "panels lie over one another"
    used = {name for expression in EXPRESSIONS for name in re.findall(r"\$(\w+)", expression)}
    assert used - {"__rate_interval"} <= variables
    for expression in EXPRESSIONS:
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression


@pytest.mark.ray
@pytest.mark.slow
def test_prometheus_reads_steps_examples_drops_and_bytes(ray_stopped):
    pytest.importorskip("opencensus", reason="Ray's metrics agent comes with ray[default]")
    port = free_port()
    ray_stopped.init(address="local", num_cpus=8, include_dashboard=False, _metrics_export_port=port)

    def read():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
                return totals(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            return {}

    def on_step(record):
        time.sleep(0.12)  # devices tell what they have sent once in a tenth of a second
        if record.step == 19:  # the processes of devices end with the run
            wait_for(lambda: read().get("tfray_sent_bytes_total", 0) >= 15 * STEP_BYTES)

    try:
        result = train(on_step)
        wait_for(lambda: read().get("tfray_step_seconds_count") == 20)
        found = read()
        metrics = pytest.importorskip("tfray.actors.devices.device_metrics").StepMetrics()
        for live in (1, 5):  # a change is told at once, however short the steps
            metrics.observe(0.001, 1, live, 0)
        wait_for(lambda: read()["tfray_live_replicas"] == 5)
    finally:
        ray_stopped.shutdown()
    # Ray knows of a histogram only its buckets, and takes their middles for the sum.
    assert found["tfray_step_seconds_sum"] == pytest.approx(sum(r.duration_s for r in result.history), rel=1)
    assert found["tfray_examples_per_second"] > 0 and found["tfray_live_replicas"] == 3
    assert found.get("tfray_dropped_gradients_total", 0) == result.dropped
    assert set(found) >= SHOWN - {"tfray_dropped_gradients_total"}  # of which there may be none
    assert found["tfray_sent_bytes_total"] >= 15 * STEP_BYTES
