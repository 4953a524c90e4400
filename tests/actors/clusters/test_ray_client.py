"""A process that is a Ray Client is told so at once, however it became one."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.support import ROOT
from tests.support.local_ray import NO_MODE, ray_head
from tests.support.processes import PATIENCE_S, free_port

pytestmark = pytest.mark.ray

PROGRAM = """
import time

import numpy as np
import ray
import tfray as tf

ends = time.monotonic() + {patience_s}
while {connects}:
    try:
        ray.init()
        break
    except ConnectionError:  # Ray gives its server half a minute for each client, however busy the machine is
        if time.monotonic() > ends:
            raise
ONES = np.ones(4, np.float32)


def model_fn(features, labels):
    loss = tf.reduce_mean(tf.get_variable("w", []) * features)
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(1.0).minimize(loss))


attempts = {{
    "cluster": lambda: tf.Cluster({{"worker": 1}}),
    "auto": lambda: tf.Cluster({{"worker": 1}}, "auto"),
    "trainer": lambda: tf.train.Trainer(model_fn, tf.train.array_input(ONES, ONES, 2)).fit(),
    "server": lambda: tf.train.Server({{"worker": ["a:1", "b:1"]}}, "worker", 0),
    "local server": lambda: tf.train.Server.create_local_server(),
}}
for name, attempt in attempts.items():
    try:
        attempt()
    except tf.errors.InvalidArgumentError as error:
        print(name, error.message, sep=": ")
with tf.Session() as session:
    print("session:", session.run(tf.constant(3)))
"""
ATTEMPTS = ["cluster", "auto", "trainer", "server", "local server"]


@pytest.fixture(scope="module")
def client_address():
    """Where a server for Ray Clients listens."""
    port = free_port()

    def listens(address):
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", port)) == 0

    with ray_head({"RAY_AUTH_MODE": "disabled"}, f"--ray-client-server-port={port}", ready=listens):
        yield f"ray://127.0.0.1:{port}"


def run(address, connects):
    """What the program prints, by what it has tried."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(connects=connects, patience_s=PATIENCE_S / 2)],
        env=NO_MODE | {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stderr
    return dict(line.split(": ", 1) for line in result.stdout.splitlines() if ": " in line)


def assert_told(found, what):
    assert found.pop("session") == "3"  # in the process itself
    assert list(found) == ATTEMPTS
    for message in found.values():
        assert what in message and "`ray job submit`" in message and "\n" not in message


@pytest.mark.slow
def test_a_ray_client_is_told_what_to_do_instead(client_address):
    assert_told(run(client_address, connects=True), "this process is a Ray Client")


def test_the_address_of_a_client_server_is_refused_wherever_it_stands():
    """Nothing is asked there: the address alone says it."""
    assert_told(run("ray://127.0.0.1:1", connects=False), "tfray cannot join 'ray://127.0.0.1:1'")
