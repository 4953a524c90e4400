"""The programs of `examples/tf1`, which import tensorflow, run as they are and learn."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.processes import PATIENCE_S

FOLDER = ROOT / "examples" / "tf1"

pytest.importorskip("sklearn")

PROGRAMS = {
    "mnist_softmax": (["--steps", "150"], r"test accuracy (\S+)", 0.9, 1.0),
    "mnist_convnet": (["--steps", "50"], r"test accuracy (\S+)", 0.8, 1.0),
    "char_lstm": (["--max_epoch", "15", "--hidden_size", "32", "--num_layers", "1"], r"perplexity (\S+)", 1.0, 9.0),
    "word2vec_projector": (["--steps", "300"], r"to (\d\S+)", 0.0, 4.0),
    "variational_autoencoder": (["--steps", "100"], r"cost after (\S+)", 100.0, 260.0),
    "gan": (["--steps", "200"], r"differs by (\S+)", 0.0, 0.25),
    "q_learning": (["--episodes", "100"], r"walk (\S+)", 1.0, 1.0),
    "seq2seq_attention": (["--steps", "60"], r"backwards (\S+)", 0.8, 1.0),
    "tfrecords_by_queues": (["--num_epochs", "3"], r"test accuracy (\S+)", 0.85, 1.0),
    "monitored_training": (["--max_steps", "120"], r"test accuracy (\S+)", 0.85, 1.0),
    "multi_task": (["--steps", "150"], r"digit accuracy (\S+)", 0.85, 1.0),
}
"""Arguments, a number that the program prints, and its bounds."""


def run(script, arguments, folder):
    done = subprocess.run(
        [sys.executable, "-m", "tfray", FOLDER / f"{script}.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*PROGRAMS, "small_data"}
    sources = {name: (FOLDER / f"{name}.py").read_text() for name in PROGRAMS}
    assert not [name for name, text in sources.items() if "tfray as" in text or "import tensorflow as tf" not in text]


QUICK = ("mnist_softmax", "char_lstm", "word2vec_projector", "q_learning")
"""Programs that are not slow. Two others are run for a few steps by the tests below."""


@pytest.mark.parametrize(
    "script", [pytest.param(script, marks=() if script in QUICK else pytest.mark.slow) for script in PROGRAMS]
)
def test_a_program_runs_as_it_is(script, tmp_path):
    arguments, pattern, low, high = PROGRAMS[script]
    assert low <= float(re.findall(pattern, run(script, arguments, tmp_path))[-1]) <= high


@pytest.mark.slow
def test_a_program_goes_on_from_its_checkpoint(tmp_path):
    assert "trained 30 steps" in run("monitored_training", ["--max_steps", "30"], tmp_path)
    printed = run("monitored_training", ["--max_steps", "50"], tmp_path)
    assert "trained 20 steps" in printed and "step 50 test" in printed
    assert tf.train.latest_checkpoint(str(tmp_path / "monitored")).endswith("-50")


def test_what_the_projector_finds(tmp_path):
    run("word2vec_projector", ["--steps", "5"], tmp_path)
    config = (tmp_path / "word2vec_logs" / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "embeddings:0"' in config and 'metadata_path: "metadata.tsv"' in config
    table = tf.train.load_variable(str(tmp_path / "word2vec_logs"), "embeddings")
    assert len((tmp_path / "word2vec_logs" / "metadata.tsv").read_text().splitlines()) == len(table)


@pytest.mark.slow
def test_flags_choose_the_tasks(tmp_path):
    printed = run("multi_task", ["--steps=5", "--tasks=odd", "--noshuffle"], tmp_path)
    assert "odd accuracy" in printed and "digit accuracy" not in printed
