"""What tfray does without the packages that it can do without, and when it is interrupted before it has begun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.support import ROOT
from tests.support.processes import PATIENCE_S

FINDER = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package in os.environ.get("MISSING", "").split():
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        if name == os.environ.get("INTERRUPTED_AT"):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""

PROGRAM = """
import numpy as np
import tfray as tf

def build(local=False):
    def model(x, y):
        loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 1) - y))
        return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))
    source = tf.train.array_input(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32), batch_size=4)
    return tf.train.Trainer(model, source, run=tf.train.RunConfig(steps=2, logdir=None, local=local))

if __name__ == "__main__":
    with tf.Session() as session:
        print("session", session.run(tf.constant(2) * 3))
    print("trained", build(local=True).fit().steps)
    try:
        build().fit()
    except tf.errors.NotFoundError as error:
        print("cluster:", error)
"""


@pytest.fixture
def python(tmp_path):
    """Runs a Python in which packages are missing, or which is interrupted when it imports a module."""
    (tmp_path / "sitecustomize.py").write_text(FINDER)
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "TFRAY_LOGDIR": ""} | environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    return run


@pytest.mark.fault(
    "Command line",
    "Ray or another package is not installed.",
    happens="One line with the command that installs it.",
    promise="What needs no such package works.",
)
def test_without_ray_everything_runs_in_this_process(python):
    done = python("program.py", MISSING="ray msgpack tensorboard matplotlib PIL")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "session 6",
        "trained 2",
        "cluster: running on a cluster needs Ray: pip install 'tfray[ray]' (a local session works without it)",
    ]


@pytest.mark.rows(every=2)
@pytest.mark.fault(
    "Command line",
    "Ray or another package is not installed.",
    happens="One line with the command that installs it.",
    promise="What needs no such package works.",
)
@pytest.mark.parametrize(
    ("missing", "arguments", "remedy"),
    [
        ("ray", ["run", "program.py:build", "--no-progress"], "pip install 'tfray[ray]'"),
        pytest.param(
            "ray", ["timeline", "program.py:build", "--no-progress"], "pip install 'tfray[ray]'", marks=pytest.mark.slow
        ),
        pytest.param("ray", ["plan", "program.py:build"], "pip install 'tfray[ray]'", marks=pytest.mark.slow),
        pytest.param("ray", ["launch", "program.py"], "pip install 'tfray[ray]'", marks=pytest.mark.slow),
        ("ray", ["devices", "--address", "auto"], "pip install 'tfray[ray]'"),
        ("msgpack", ["run", "program.py:build", "--no-progress"], "pip install 'tfray[ray]'"),
        ("matplotlib", ["run", "program.py:build", "--local", "--plot", "x.png"], "pip install 'tfray[examples]'"),
    ],
)
def test_a_package_that_is_missing_is_one_line_with_the_remedy(python, missing, arguments, remedy):
    done = python("-m", "tfray.cli", *arguments, MISSING=missing)
    assert done.returncode == 2
    assert remedy in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.rows(every=3)
@pytest.mark.fault(
    "Command line",
    "Ctrl-C while a command starts.",
    happens="It ends, with at most one line.",
    promise="No traceback of an import.",
)
@pytest.mark.parametrize("module", ["tfray.errors", "tfray.options", "rich", "click", "tfray.cli.progress"])
@pytest.mark.parametrize("arguments", [["-m", "tfray.cli", "devices"], ["tfray", "devices"]])
def test_an_interrupt_while_a_command_is_imported_ends_it_in_silence(python, tmp_path, module, arguments):
    (tmp_path / "tfray").write_text("import sys\nfrom tfray.cli import main\nsys.exit(main())\n")  # as pip writes it
    done = python(*arguments, INTERRUPTED_AT=module)
    assert done.returncode in (130, -signal.SIGINT)  # a shell says 130 to both
    assert done.stdout == "" and done.stderr in ("", "tfray: interrupted\n")


def test_a_program_that_is_interrupted_keeps_its_traceback(python):
    done = python("program.py", INTERRUPTED_AT="tfray.training.trainer.trainer")
    assert "KeyboardInterrupt" in done.stderr
