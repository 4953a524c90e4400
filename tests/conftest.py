"""Fixtures that all tests share: a fresh default graph, a local Ray, and a Ray of several nodes."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import zlib
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support import ROOT
from tests.support.local_ray import patiently, start_local_ray
from tfray.framework.graph import get_default_graph, reset_default_graph
from tfray.ops.kernels import random_streams
from tfray.session import Session

# What tests define must be importable in Ray's processes too, and tfray from wherever they run.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
# Every process of Ray would compile tfray anew, which takes longer than all else that it does to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Ray's processes have the priority of the tests: as Ray has it, they would wait while anything else computes.
os.environ.setdefault("RAY_worker_niceness", "0")
# A shell that runs the tests in the background lets them ignore Ctrl-C, and so the programs whose Ctrl-C is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Trainers write event files where a test says so, and nowhere else.
os.environ["TFRAY_LOGDIR"] = ""

pytest_plugins = ["tests.support.hung_runs"]

# A busy machine is no failure: neither that an example takes long, nor that it takes long to make one.
settings.register_profile("however busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("however busy")

FAST_HEALTH_CHECKS = {
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}
"""With these Ray notices in two seconds that a node is gone."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Thin out long tables, and put tests that stop Ray last: to start it again takes as long as many of them."""
    rows = Counter()
    for item in items:
        marker = item.get_closest_marker("rows")
        if marker is not None:
            test = (item.parent, item.originalname)
            if rows[test] % marker.kwargs["every"]:
                item.add_marker("slow")
            rows[test] += 1
    for item in items:
        names = set(item.fixturenames)
        if names & {"ray_local", "ray_nodes"} and names & {"capfd", "capsys"}:
            raise pytest.UsageError(f"{item.nodeid}: where Ray runs, printed_text takes the place of capfd and capsys")
    items.sort(key=lambda item: [fixture in item.fixturenames for fixture in ("ray_nodes", "ray_stopped")])


def pytest_collectstart():
    """Collect no garbage while tests are collected: nearly all that is made then is kept."""
    gc.disable()


def pytest_collection_finish():
    """Take the 25,000 tests out of the garbage collector's work: it would look at all of them again and again."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def graph():
    """An empty default graph for every test."""
    with contextlib.suppress(RuntimeError):  # a fixture of the module has entered a graph of its own
        reset_default_graph()
    return get_default_graph()


def pytest_addoption(parser):
    """Let whoever runs the tests choose other random numbers."""
    parser.addoption("--numbers", type=int, default=0, help="which random numbers the tests have that set no seed")


@pytest.fixture(autouse=True)
def random_numbers(request):
    """In this process, what has no seed depends on the name of the test: a test that fails will fail again."""
    seed = zlib.crc32(request.node.nodeid.encode())
    seeds = np.random.SeedSequence([seed, request.config.getoption("--numbers")])
    np.random.seed(seeds.generate_state(4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_streams, "fresh_seeds", lambda: seeds.spawn(1)[0])
        yield


@pytest.fixture
def session(graph):
    """A session in this process, the default one while the test runs."""
    with Session() as session:
        yield session


@pytest.fixture(autouse=True)
def no_unexpected_answers(request):
    """No device answers what nobody asked: somebody else would wait for ever."""
    if "ray_local" not in request.fixturenames and "conducted" not in request.fixturenames:
        yield
        return
    from tfray.actors.links import peers

    unexpected = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers, "report_unexpected", lambda *answer: unexpected.append(answer))
        yield
    assert not unexpected


@pytest.fixture(scope="session")
def _ray_of_the_session():
    ray = pytest.importorskip("ray")
    yield ray
    ray.shutdown()


@pytest.fixture
def ray_local(_ray_of_the_session):
    """Ray on this machine, started once; tests of several nodes stop it and the next test starts it again."""
    start_local_ray(_ray_of_the_session)
    return _ray_of_the_session


class PrintedText:
    """What this process prints. It may be printed into after the test too, when nobody reads it any more.

    Ray prints what actors print on a thread of its own, at any time. The streams of `capfd` and `capsys` are closed
    when a test ends, and such a thread, if it just writes into one of them, fails.
    """

    class Read(NamedTuple):
        """What is new."""

        out: str
        err: str

    def __init__(self) -> None:
        self.streams = io.StringIO(), io.StringIO()
        self._read = [0, 0]

    def readouterr(self) -> PrintedText.Read:
        """What was printed since the last call."""
        texts = [stream.getvalue()[start:] for stream, start in zip(self.streams, self._read, strict=True)]
        self._read = [start + len(text) for start, text in zip(self._read, texts, strict=True)]
        return PrintedText.Read(*texts)


@pytest.fixture
def printed_text():
    """In place of `capfd` where Ray runs."""
    return PrintedText()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item):
    """Let `printed_text` have what a test prints. Between the phases of a test pytest takes the streams back."""
    printed = item.funcargs.get("printed_text")
    if printed is None:
        return (yield)
    with contextlib.redirect_stdout(printed.streams[0]), contextlib.redirect_stderr(printed.streams[1]):
        return (yield)


@pytest.fixture
def ray_stopped(_ray_of_the_session):
    """This process without a connection to Ray."""
    _ray_of_the_session.shutdown()
    return _ray_of_the_session


@pytest.fixture(scope="module")
def cluster_of_module():
    """A function that gives the tests of a module one cluster of these jobs; who has died in it is replaced.

    A process for each device takes as long to start as most tests take.
    """
    from tfray.actors.clusters.cluster import Cluster

    started = []

    def cluster_of(jobs):
        if not started or not started[-1].connected:
            started.append(Cluster(jobs))
        started[-1].replace_dead()
        return started[-1]

    yield cluster_of
    for cluster in started:
        cluster.close()


@pytest.fixture
def ray_nodes(_ray_of_the_session, monkeypatch):
    """A `ray.cluster_utils.Cluster` without nodes, whose dead nodes are noticed fast. Add nodes, then `connect`."""
    from ray.cluster_utils import Cluster

    _ray_of_the_session.shutdown()
    for name, value in FAST_HEALTH_CHECKS.items():
        monkeypatch.setenv(name, value)

    class Nodes(Cluster):
        """Without dashboards: those of several runs on one machine would want the same port."""

        def add_node(self, **options):
            add = super().add_node
            return patiently(lambda: add(**{"include_dashboard": False, **options}))

    cluster = Nodes(initialize_head=False)
    yield cluster
    _ray_of_the_session.shutdown()
    cluster.shutdown()


@pytest.fixture
def clusters(monkeypatch):
    """The clusters that trainers start, so that a test can kill their actors."""
    from tfray.training.trainer import cluster_training

    started, start = [], cluster_training.start_cluster

    def start_and_note(*args):
        started.append(start(*args))
        return started[-1]

    monkeypatch.setattr(cluster_training, "start_cluster", start_and_note)
    return started
