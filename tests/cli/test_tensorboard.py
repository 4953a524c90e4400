"""The real TensorBoard, started by `tfray board` and looked at through a headless Chromium.

The screenshots stay in the test's folder, or in ``$TFRAY_SCREENSHOTS``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tfray as tf
from tests.support import browser
from tests.support.processes import PATIENCE_S, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CONTENT = (380, 110, 1380, 830)
"""Where pages show what they are about: left, top, right and bottom."""


def write_log(folder):
    """A run of a small model, with everything that it can show."""
    features = tf.placeholder(tf.float32, [None, 3], name="features")
    with tf.name_scope("dense_layer"):
        product = tf.matmul(features, tf.get_variable("weights", [3, 2]), name="product")
    doubled = tf.while_loop(
        lambda i, value: i < 3, lambda i, value: (i + 1, value * 2), [0, tf.reduce_sum(product)], name="doubling"
    )[1]
    loss = tf.reduce_mean(tf.square(product)) + 0 * doubled
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    tf.summary.scalar("training/loss", loss)
    tf.summary.histogram("products_histogram", product)
    tf.summary.image("pictures", tf.random_uniform([1, 8, 8, 3], seed=1), max_outputs=1)
    tf.summary.text("notes", tf.constant("so it **begins**"))
    merged = tf.summary.merge_all()
    inputs = np.random.default_rng(0).normal(size=(50, 3))
    with tf.Session() as session, tf.summary.FileWriter(folder, session.graph) as writer:
        session.run(tf.global_variables_initializer())
        for step in range(30):
            summary, _ = session.run([merged, train], {features: inputs})
            writer.add_summary(summary, step)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(train, {features: inputs}, options, metadata)
        writer.add_run_metadata(metadata, "traced", 30)


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """TensorBoard over a run; its address."""
    pytest.importorskip("tensorboard")
    folder = tmp_path_factory.mktemp("log")
    with tf.Graph().as_default():
        write_log(str(folder))
    output = (tmp_path_factory.mktemp("board") / "output").open("w+")
    command = [sys.executable, "-m", "tfray.cli", "board", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def address():
        assert process.poll() is None, Path(output.name).read_text()
        return re.search(r"http://localhost:\d+", Path(output.name).read_text())

    try:
        wait_for(address)
        yield address().group()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        output.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A Chromium."""
    if browser.program() is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with browser.Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def show(page, board, tmp_path, request):
    """Opens a tab of TensorBoard; returns how to look at it, once it shows all of these texts."""

    def open_tab(tab, *texts):
        page.open("about:blank")
        page.open(f"{board}/#{tab}")
        page.wait_for_text(*texts)
        return screenshot

    def screenshot(name):
        folder = Path(os.environ.get("TFRAY_SCREENSHOTS", tmp_path))
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(folder / f"{name}.png")
        return np.asarray(Image.open(folder / f"{name}.png").convert("RGB").crop(CONTENT)).astype(int)

    return open_tab


def ink(pixels):
    """How many pixels are neither white nor nearly so."""
    return int((pixels.min(axis=2) < 200).sum())


def colored(pixels):
    """How many pixels have a colour."""
    return int((pixels.max(axis=2) - pixels.min(axis=2) > 60).sum())


def test_the_board_serves_the_run(board):
    with urllib.request.urlopen(f"{board}/data/plugin/scalars/tags") as answer:
        assert b"training/loss" in answer.read()


def test_scalars_are_drawn(show, page):
    look = show("scalars", "training/loss", "Horizontal Axis")
    wait_for(lambda: colored(look("scalars")) > 300)
    assert page.evaluate("document.title") == "TensorBoard"


def test_time_series_are_drawn(show):
    look = show("timeseries", "training", "products_histogram", "pictures")
    wait_for(lambda: colored(look("timeseries")) > 5_000)  # the picture, mostly


def test_histograms_are_drawn(show):
    look = show("histograms", "products_histogram", "Offset time axis")
    wait_for(lambda: colored(look("histograms")) > 1_000)


def test_distributions_are_drawn(show):
    look = show("distributions", "products_histogram", "Horizontal axis")
    wait_for(lambda: colored(look("distributions")) > 500)


def test_texts_are_shown(show):
    show("text", "notes", "begins")("text")


def test_the_graph_is_drawn(show, page):
    look = show("graphs", "Main Graph", "dense_layer", "features", "doubling", "GradientDescent")
    wait_for(lambda: ink(look("graph")) > 3_000)
    page.double_click("doubling")
    page.wait_for_text("condition", "body")
    wait_for(lambda: ink(look("loop")) > 5_000)


def test_the_board_serves_the_traced_step(board):
    with urllib.request.urlopen(f"{board}/data/plugin/graphs/run_metadata?run=.&tag=traced") as answer:
        stats = re.findall(r'node_name: "(.*?)"', answer.read().decode())
    with urllib.request.urlopen(f"{board}/data/plugin/graphs/graph?run=.") as answer:
        nodes = set(re.findall(r'name: "(.*?)"', answer.read().decode()))
    assert {"dense_layer/product", "doubling/body/mul"} <= set(stats) <= nodes | {"_buffers", "_compile"}


def test_the_graph_shows_the_time_of_a_traced_step(show, page):
    look = show("graphs", "Main Graph", "dense_layer", "traced")
    page.choose("traced")
    page.wait_for_text("Parsing metadata.pbtxt", "Compute time")

    def selected():
        page.click("dense_layer")  # the graph is drawn anew meanwhile
        return re.search(r"Node Stats\nCompute Time\n\d+", page.text())

    wait_for(selected)
    look("traced")
