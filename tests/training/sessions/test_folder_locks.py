"""Two programs with sessions of TensorFlow's kind on one folder of checkpoints: the second is told of the first."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import tfray as tf
from tests.support.counted_steps import counting_model
from tests.support.processes import freeze
from tfray.errors import FailedPreconditionError
from tfray.formats.holder import Holder

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from tests.training.sessions import test_folder_locks as tests
with tests.{name}({folder!r}) as run:
    while True:
        print(run(), flush=True)
        sys.stdin.readline()
"""


@contextmanager
def monitored(folder, **options):
    """Yields a function that makes a step of a `MonitoredTrainingSession`."""
    with tf.Graph().as_default():
        step = counting_model()
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(folder), **options) as session:
            yield lambda: session.run(step)


@contextmanager
def supervised(folder, **options):
    """The same with a `Supervisor`."""
    with tf.Graph().as_default():
        step = counting_model()
        with tf.train.Supervisor(logdir=str(folder), **options).managed_session() as session:
            yield lambda: session.run(step)


@contextmanager
def in_another_process(name, folder):
    """The process in which such a session is open on a folder; it is killed in the end, and gone."""
    program = PROGRAM.format(tests=str(ROOT), name=name, folder=str(folder))
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True)
    try:
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "tfray.lock"}


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Two runs use one checkpoint folder.",
    happens="`tf.errors.FailedPreconditionError` for the second, with process and machine of the first.",
    promise="Neither touches a file of the other. The lock of a process that has died is taken over.",
)
@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("monitored", monitored),
        ("supervised", supervised),
        pytest.param("monitored", supervised, marks=pytest.mark.slow),
    ],
    ids=["MonitoredTrainingSession", "Supervisor", "both"],
)
def test_two_processes_do_not_save_in_one_folder(tmp_path, name, opened):
    """A frozen process is slow, not gone; the lock of one that was killed is stale, and known to be."""
    with in_another_process(name, tmp_path) as process:
        held = rf"in use by process {process.pid} on {os.uname().nodename}, since \d+-\d+-\d+ \d+:\d+:\d+.*another"
        freeze(process.pid)
        before = files_in(tmp_path)
        with pytest.raises(FailedPreconditionError, match=held), opened(tmp_path):
            pytest.fail("it has begun")
        after = files_in(tmp_path)
        assert {name: after[name] for name in before} == before
    assert (tmp_path / "tfray.lock").exists()
    with opened(tmp_path) as run:
        run()
    assert not (tmp_path / "tfray.lock").exists()


@pytest.mark.parametrize(
    ("opened", "options"),
    [
        (monitored, {"save_checkpoint_secs": None, "save_checkpoint_steps": None}),
        (supervised, {"saver": None}),
        (supervised, {"save_model_secs": 0}),
    ],
    ids=["no intervals", "no saver", "no thread that saves"],
)
def test_who_saves_nothing_needs_no_lock(tmp_path, opened, options):
    with in_another_process("monitored", tmp_path), opened(tmp_path, **options) as run:
        run()
        assert (tmp_path / "tfray.lock").exists()


def test_a_worker_that_is_not_the_chief_needs_no_lock(tmp_path):
    server = tf.Graph()
    with in_another_process("monitored", tmp_path), server.as_default():
        counting_model()
        supervisor = tf.train.Supervisor(logdir=str(tmp_path), is_chief=False)
        assert supervisor.save_path is None and supervisor._lock is None


def test_sessions_of_one_process_share_the_lock(tmp_path):
    with monitored(tmp_path) as outer:
        outer()
        with monitored(tmp_path) as inner:
            inner()
        assert (tmp_path / "tfray.lock").exists()
        outer()
    assert not (tmp_path / "tfray.lock").exists()


@pytest.mark.parametrize("opened", [monitored, supervised])
def test_an_error_gives_the_lock_back(tmp_path, opened):
    with pytest.raises(ZeroDivisionError), opened(tmp_path) as run:
        run()
        assert Holder.from_bytes((tmp_path / "tfray.lock").read_bytes()).process == os.getpid()
        raise ZeroDivisionError
    assert not (tmp_path / "tfray.lock").exists()


def test_a_session_whose_lock_was_taken_over_saves_no_more(tmp_path):
    lock = tmp_path / "tfray.lock"
    opened = monitored(tmp_path, save_checkpoint_steps=2, save_checkpoint_secs=None)
    with pytest.raises(FailedPreconditionError, match="taken over by process"), opened as run:
        for _ in range(2):
            run()
        newest = tf.train.latest_checkpoint(tmp_path)
        mine = Holder.from_bytes(lock.read_bytes())
        lock.write_bytes(replace(mine, token="0123456789ab").to_bytes())
        for _ in range(2):
            run()
    assert tf.train.latest_checkpoint(tmp_path) == newest
