"""Every way to install the package gives all of it, in an environment that does not see the checkout."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support import ROOT

PROGRAM = """
import numpy as np
import tfray as tf, tfray.ops, tfray.actors, tfray.placement
from tfray.ops.math import math_ops

assert tfray.ops is __import__("sys").modules["tfray.ops"]
x = tf.placeholder(tf.float32, [None, 2])
w = tf.Variable(tf.ones([2, 1]))
y = tf.matmul(x, w)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print("local", session.run(y, {x: [[1, 2]]}).item())

def model(features, labels):
    loss = tf.reduce_mean(tf.square(tf.matmul(features, tf.get_variable("v", [2, 1])) - labels))
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss))

points = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
if __name__ == "__main__":
    result = tf.train.Trainer(
        model,
        tf.train.array_input(points, points @ np.float32([[2], [-3]]), batch_size=8, shuffle_seed=0),
        tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5),
        tf.train.RunConfig(steps=40, address="local"),
    ).fit()
    print("ray", np.round(result.variables["v"].ravel()).tolist())
    print("from", tfray.ops.__file__)
"""

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the checkout, for builds to leave their traces in."""
    copy = tmp_path_factory.mktemp("checkout") / "tfray"
    ignored = shutil.ignore_patterns(
        ".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "runs", "build", "*.egg-info"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    return copy


@pytest.fixture
def python(tmp_path):
    """The interpreter of a fresh environment that has the dependencies, but not tfray."""
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    packages = sysconfig.get_path("purelib", vars={"base": str(environment)})
    # What is added so has its own .pth files ignored, and with them an editable tfray.
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "python"


def run(*command, cwd=None):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def isolation(option):
    """Without a current setuptools here, the build fetches one."""
    return [option] if int(importlib.metadata.version("setuptools").split(".")[0]) >= 77 else []


def install(python, *what):
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
    ]
    run(*pip, *isolation("--no-build-isolation"), *what)


def works(python, folder):
    """Run the program elsewhere; returns the folder from which the package came."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    printed = run(python, script, cwd=folder)
    assert "local 3.0" in printed and "ray [2.0, -3.0]" in printed
    return printed.split("from ")[1].strip()


@pytest.mark.slow
def test_from_the_folder(checkout, python, tmp_path):
    install(python, checkout)
    assert works(python, tmp_path).startswith(str(tmp_path / "environment"))
    run(python, "-m", "tfray.cli", "--version")
    assert "tfray" in run(python.parent / "tfray", "--version")
    assert "CPU:0" in run(python.parent / "tfray", "devices")


@pytest.mark.slow
def test_for_editing(checkout, python, tmp_path):
    install(python, "--editable", checkout)
    # A folder on the path, with links in it: type checkers and editors find that, and no import hooks.
    assert str(checkout) in run(python, "-c", "import sys, os; print(os.linesep.join(sys.path))").splitlines()


@pytest.mark.slow
def test_from_git(checkout, python, tmp_path):
    repository = tmp_path / "repository"
    shutil.copytree(checkout, repository, symlinks=True)
    git = ["git", "-C", repository, "-c", "user.name=x", "-c", "user.email=x@example.com"]
    run(*git, "init", "--quiet")
    run(*git, "add", "--all")
    run(*git, "commit", "--quiet", "--message", "x")
    install(python, f"git+file://{repository}")
    assert works(python, tmp_path).startswith(str(tmp_path / "environment"))


@pytest.mark.slow
def test_from_a_copy_without_links(checkout, python, tmp_path):
    """As from a system, or an archive, that has none."""
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy, symlinks=True)
    for link in (copy / "tfray").iterdir():
        if link.is_symlink():
            link.unlink()
    install(python, copy)
    assert works(python, tmp_path).startswith(str(tmp_path / "environment"))


@pytest.mark.slow
def test_from_a_source_distribution(checkout, python, tmp_path):
    pytest.importorskip("build")
    run(sys.executable, "-m", "build", "--sdist", *isolation("--no-isolation"), "--outdir", tmp_path / "made", checkout)
    (archive,) = (tmp_path / "made").iterdir()
    install(python, archive)
    assert works(python, tmp_path).startswith(str(tmp_path / "environment"))
