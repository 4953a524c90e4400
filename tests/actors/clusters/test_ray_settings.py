"""What a Ray that tfray starts is told."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.local_ray import NO_MODE, one_of_the_machine, patiently
from tests.support.processes import PATIENCE_S, descendants, is_alive, wait_for

PRIORITY = """
import os
import tfray as tf
with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}, address="local") as cluster, tf.Session(cluster) as session:
    with tf.device("/job:worker/task:0"):
        niceness = tf.py_func(lambda: os.nice(0), [], tf.int64)
    print("niceness", session.run(niceness))
"""


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize(("given", "niceness"), [(None, os.nice(0)), pytest.param("7", 7)])
def test_actors_have_the_priority_of_other_programs(tmp_path, given, niceness):
    """Ray lets them wait while others compute, unless it is told otherwise. Whoever has told it is heard."""
    environment = NO_MODE | {"PYTHONPATH": str(ROOT)} | ({} if given is None else {"RAY_worker_niceness": given})
    with one_of_the_machine("start-of-ray"):
        command = [sys.executable, "-c", PRIORITY]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert f"niceness {niceness}\n" in done.stdout, done.stderr


OWN = """
import ray
import tfray as tf
ray.init(address="local", num_cpus=3, include_dashboard=False, logging_level="error")
print(ray.get_runtime_context().gcs_address)
for _ in range(2):
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster:
        pass
ray.shutdown()
with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}, address="local") as cluster:
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as second:
        pass
"""


@pytest.mark.ray
def test_the_cluster_to_which_a_program_has_connected_itself_is_told_once():
    """The program may have meant another. A Ray that tfray has started is nobody else's."""
    command, environment = [sys.executable, "-c", OWN], NO_MODE | {"PYTHONPATH": str(ROOT)}

    def run():
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
        assert done.returncode == 0, done.stderr
        return done

    done = patiently(run)
    (line,) = [line for line in done.stderr.splitlines() if "Ray cluster" in line]
    address = done.stdout.split()[0]  # Ray may add what it has to say
    assert line == f"tfray: uses the Ray cluster of this program at {address}: 1 node, 3 CPUs"


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.fault(
    "Machines and networks",
    "Ray does not start within its half minute: the machine is busy.",
    happens="A line tells of it, and Ray is started again, up to three times.",
    promise="What was half started ends.",
)
def test_a_ray_that_does_not_start_in_time_is_started_again():
    """A raylet stands still, as on a machine that has no time for it."""
    program = (
        "import tfray as tf\n"
        "with tf.Cluster({'worker': 1}) as cluster, tf.Session(cluster) as session:\n"
        "    print(session.run(tf.constant(3) + 4))"
    )
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = NO_MODE | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, **piped) as running:
        wait_for(lambda: started_by(running.pid, b"/raylet"))
        raylets, masters = (started_by(running.pid, name) for name in (b"/raylet", b"/gcs_server"))
        os.kill(raylets[0], signal.SIGSTOP)
        # Before Ray is there, not only when the program ends.
        wait_for(lambda: not any(map(is_alive, [*raylets, *masters])))
        assert running.poll() is None
        output, said = running.communicate(timeout=PATIENCE_S)
    assert output == "7\n" and "did not start within its 30 s" in said


def started_by(pid, name):
    """The processes that a process has started whose program's name ends so."""
    found = []
    for each in descendants(pid):
        with contextlib.suppress(OSError):
            command, _, _ = Path(f"/proc/{each}/cmdline").read_bytes().partition(b"\0")
            if command.endswith(name):
                found.append(each)
    return found
