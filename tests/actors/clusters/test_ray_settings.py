"""What a Ray that tfray starts is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import ROOT
from tests.support.local_ray import NO_MODE, one_of_the_machine
from tests.support.processes import PATIENCE_S

PRIORITY = """
import os
import tfray as tf
with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}, address="local") as cluster, tf.Session(cluster) as session:
    with tf.device("/job:worker/task:0"):
        niceness = tf.py_func(lambda: os.nice(0), [], tf.int64)
    print("niceness", session.run(niceness))
"""


@pytest.mark.ray
@pytest.mark.parametrize(("given", "niceness"), [(None, os.nice(0)), pytest.param("7", 7, marks=pytest.mark.slow)])
def test_actors_have_the_priority_of_other_programs(tmp_path, given, niceness):
    """Ray lets them wait while others compute, unless it is told otherwise. Whoever has told it is heard."""
    environment = NO_MODE | {"PYTHONPATH": str(ROOT)} | ({} if given is None else {"RAY_worker_niceness": given})
    with one_of_the_machine("start-of-ray"):
        command = [sys.executable, "-c", PRIORITY]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert f"niceness {niceness}\n" in done.stdout, done.stderr
