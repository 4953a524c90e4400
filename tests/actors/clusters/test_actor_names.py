"""Actors have names that people understand, and what they print comes with their task."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import kill_actor, wait_for
from tfray.framework.device_spec import short_name
from tfray.ops.system.script_ops import py_func

SMALL = tf.JobSpec(1, num_cpus=0.1)
WORKER = "/job:worker/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("device", "name"),
    [(WORKER, "worker/0"), ("/job:ps/task:3/device:CPU:0", "ps/3"), ("/job:a/task:1/device:GPU:0", "a/1/GPU:0")],
)
def test_a_device_in_short(device, name):
    assert short_name(device) == name


@pytest.mark.ray
@pytest.mark.slow
def test_actors_of_two_clusters_of_one_name_have_names_of_their_own(ray_local):
    def names():
        return {each for each in ray_local.util.list_named_actors() if each.startswith("tfray/line-")}

    with tf.Cluster({"ps": SMALL, "worker": SMALL}, name="line") as first, tf.Cluster({"worker": SMALL}, name="line"):
        assert sorted(re.sub("-[0-9a-f]{8}/", "/", name) for name in names()) == [
            "tfray/line/ps/0",
            "tfray/line/worker/0",
            "tfray/line/worker/0",
        ]
        kill_actor(ray_local, first, WORKER)
        assert first.replace_dead() == [WORKER]
        assert [name[-2:] for name in names() if "#" in name] == ["#2"]
    wait_for(lambda: not names())


@pytest.mark.ray
def test_what_an_actor_prints_comes_with_its_task(ray_local, printed_text):
    printed = []

    def said():
        printed.append(printed_text.readouterr().out)
        return "the worker says 7" in "".join(printed)

    def say(value):
        print("the worker says", int(value), flush=True)
        return value

    with tf.Cluster({"worker": SMALL}, name="line") as cluster, tf.device(WORKER):
        spoken = py_func(say, [tf.constant(7)], tf.int32)
        with tf.Session(cluster) as session:
            np.testing.assert_array_equal(session.run(spoken), 7)
        wait_for(said)
    assert re.search(r"\(worker/0 pid=\d+\).* the worker says 7", "".join(printed))
