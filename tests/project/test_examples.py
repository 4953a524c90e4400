"""The example programs learn."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.support import ROOT
from tests.support.graphs.models_of_tensorflow import unpack_models
from tfray import cli

EXAMPLES = ROOT / "examples"

pytest.importorskip("sklearn")


@pytest.fixture(autouse=True)
def clean_process(monkeypatch):
    """Scripts change where Python imports from."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])


@pytest.mark.parametrize(
    ("script", "steps", "accuracy"),
    [("softmax_regression.py", 100, 0.90), ("mlp.py", 80, 0.95), ("convnet.py", 60, 0.90)],
)
def test_a_classifier_learns_the_digits(script, steps, accuracy, tmp_path):
    history = tmp_path / "history.json"
    arguments = ["run", f"{EXAMPLES / script}:build", "--local", "--steps", str(steps), "--json", str(history)]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(history.read_text())["test"]["accuracy"] >= accuracy


TRAINED = {
    "autoencoder.py": (300, "unexplained", 0.4),
    "vae.py": (150, "loss", 31.0),
    "resnet.py": (40, "loss", 0.6),
    "text/text_cnn.py": (80, "loss", 0.1),
    "matrix_factorization.py": (300, "rmse", 0.6),
    "text/language_model.py": (60, "perplexity", 9.0),
    "text/word2vec.py": (200, "loss", 5.0),
    "text/seq2seq.py": (100, "loss", 1.0),
}
"""Programs with a trainer: steps, a number that they print, and what it must fall below."""

LOOPS = {
    "gan.py": (800, r"ring (\S+)", 0.0, 0.3),
    "kmeans.py": (15, r"distance (\S+)", 0.0, 0.3),
    "policy_gradient.py": (50, r"balanced for (\d+)", 60, 200),
    "dqn.py": (3000, r"balanced for (\d+)", 40, 200),
    "style_transfer.py": (60, r"(\S+)% of the difference", 0.0, 10.0),
}
"""Programs with a loop of their own: steps, what they print in the end, and its bounds."""


def last_metrics(script, steps, tmp_path, *arguments):
    history = tmp_path / "history.json"
    arguments = ["run", f"{EXAMPLES / script}:build", "--steps", str(steps), "--json", str(history), *arguments]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(history.read_text())["history"][-1]


SLOW = ("resnet.py", "text/seq2seq.py", "dqn.py", "policy_gradient.py")
"""Programs that take longer than the others of their kind."""


def quick_and_slow(scripts):
    return [pytest.param(script, marks=pytest.mark.slow if script in SLOW else ()) for script in scripts]


@pytest.mark.parametrize("script", quick_and_slow(TRAINED))
def test_a_program_with_a_trainer_learns(script, tmp_path):
    steps, name, limit = TRAINED[script]
    assert last_metrics(script, steps, tmp_path, "--local")[name] < limit


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("script", TRAINED)
def test_a_program_with_a_trainer_learns_on_ray(script, tmp_path, ray_local):
    steps, name, limit = TRAINED[script]
    assert (
        last_metrics(script, steps, tmp_path, "--workers", "2", "--ps", "2", "--cpus-per-worker", "0.5")[name] < limit
    )


def printed_number(script, steps, pattern, printed_text, *arguments):
    sys.argv[:] = [script, "--steps", str(steps), *arguments]
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    return float(re.findall(pattern, printed_text.readouterr().out)[-1])


@pytest.mark.parametrize("script", quick_and_slow(LOOPS))
def test_a_program_with_a_loop_learns(script, printed_text):
    steps, pattern, low, high = LOOPS[script]
    assert low <= printed_number(script, steps, pattern, printed_text, "--local") <= high


@pytest.mark.ray
@pytest.mark.slow
def test_a_program_with_a_loop_learns_on_ray(printed_text, ray_local):
    steps, pattern, low, high = LOOPS["kmeans.py"]
    assert low <= printed_number("kmeans.py", steps, pattern, printed_text) <= high


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("script", ["gan.py", "policy_gradient.py", "style_transfer.py"])
def test_programs_with_a_loop_learn_on_ray(script, printed_text, ray_local):
    steps, pattern, low, high = LOOPS[script]
    assert low <= printed_number(script, steps, pattern, printed_text) <= high


REPLICAS = {"downpour_sgd.py": 150, "elastic_averaging.py": 120, "sandblaster_lbfgs.py": 25}
"""Programs that coordinate replicas themselves, and steps after which they know the digits."""


@pytest.mark.parametrize("script", REPLICAS)
def test_replicas_that_programs_coordinate_learn(script, printed_text):
    assert printed_number(script, REPLICAS[script], r"test accuracy (\S+)", printed_text, "--local") >= 0.92


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("script", REPLICAS)
def test_replicas_that_programs_coordinate_learn_on_ray(script, printed_text, ray_local):
    assert printed_number(script, REPLICAS[script], r"test accuracy (\S+)", printed_text, "--workers", "3") >= 0.92


@pytest.fixture(scope="module")
def digits_of_tensorflow(tmp_path_factory):
    """The path of a checkpoint, beside its meta graph, that TensorFlow has written (`scripts/golden_models.py`)."""
    return f"{unpack_models(tmp_path_factory.mktemp('tensorflow'))}/digits/model-10"


def finetuned(tmp_path, steps, *arguments):
    history = tmp_path / f"history{len(arguments)}.json"
    command = ["run", f"{EXAMPLES / 'finetune_meta_graph.py'}:build", "--steps", str(steps), "--json", str(history)]
    result = CliRunner().invoke(cli.main, [*command, *arguments])
    assert result.exit_code == 0, result.output
    return json.loads(history.read_text())


def test_a_model_without_its_program_learns_on(tmp_path, digits_of_tensorflow):
    """It knows few digits, by TensorFlow or by itself, and begins with what it knows."""
    known = [step["accuracy"] for step in finetuned(tmp_path, 60, "--local")["history"]]
    assert known[0] > 0.6 and known[-1] > 0.9
    found = finetuned(tmp_path, 60, "--local", f"model={digits_of_tensorflow}")
    assert 0.2 < found["history"][0]["accuracy"] < 0.7 and found["test"]["accuracy"] > 0.85


@pytest.mark.slow
@pytest.mark.ray
def test_a_meta_graph_of_tensorflow_is_trained_on_a_cluster(tmp_path, digits_of_tensorflow, ray_local):
    """Two replicas, with its variables on two parameter servers, take the steps that one process takes."""
    model = f"model={digits_of_tensorflow}"
    scaling = ["--workers", "2", "--ps", "2", "--cpus-per-worker", "0.5"]
    losses = [step["loss"] for step in finetuned(tmp_path, 3, *scaling, model)["history"]]
    assert len(losses) == 3
    assert losses == pytest.approx([step["loss"] for step in finetuned(tmp_path, 3, "--local", model)["history"]])


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(500)
def test_a_search_finds_a_good_perceptron(tmp_path):
    pytest.importorskip("ray.tune")
    command = [EXAMPLES / "tune_mlp.py", "--trials", "4", "--steps", "60", "--storage", tmp_path]
    # A process of its own: Ray lets trials import what lies beside the script that has started it.
    run = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=450)
    assert run.returncode == 0, run.stderr
    printed = run.stdout
    steps = [int(count) for count in re.findall(r"^hidden .* after (\d+) steps$", printed, re.MULTILINE)]
    assert len(steps) == 4 and max(steps) == 60
    assert float(re.search(r"^best: .*accuracy (\S+),", printed, re.MULTILINE)[1]) >= 0.85


@pytest.mark.ray
@pytest.mark.slow
def test_a_perceptron_learns_from_rows_of_ray_data(printed_text, ray_local):
    pytest.importorskip("ray.data")
    sys.argv[:] = ["ray_data.py", "--epochs", "8"]
    runpy.run_path(str(EXAMPLES / "ray_data.py"), run_name="__main__")
    steps, accuracy = re.search(
        r"^(\d+) steps, test accuracy (\S+)$", printed_text.readouterr().out, re.MULTILINE
    ).groups()
    assert int(steps) in (95, 96) and float(accuracy) >= 0.9  # 8 passes of 1438 rows, in batches of 120


def accuracy_of_model_parallel(printed_text, *arguments):
    sys.argv[:] = ["model_parallel.py", *arguments]
    runpy.run_path(str(EXAMPLES / "model_parallel.py"), run_name="__main__")
    printed = printed_text.readouterr().out
    assert "output/weights:0 (256, 10) on /" in printed
    return float(re.search(r"test accuracy (\S+)", printed)[1])


def test_a_model_spreads_over_two_devices_of_this_process(printed_text):
    assert accuracy_of_model_parallel(printed_text, "--local", "--steps", "60") >= 0.9


@pytest.mark.ray
def test_a_model_spreads_over_two_actors(printed_text, ray_local):
    assert accuracy_of_model_parallel(printed_text, "--steps", "60") >= 0.9


def accuracy_of_input_pipeline(printed_text, *arguments):
    sys.argv[:] = ["input_pipeline.py", *arguments]
    runpy.run_path(str(EXAMPLES / "input_pipeline.py"), run_name="__main__")
    printed = printed_text.readouterr().out
    assert "the input has ended" in printed
    return float(re.search(r"test accuracy (\S+)", printed)[1])


def test_a_model_learns_from_queues(printed_text):
    assert accuracy_of_input_pipeline(printed_text, "--local") >= 0.9


@pytest.mark.ray
@pytest.mark.slow
def test_a_model_learns_from_queues_on_actors(printed_text, ray_local):
    assert accuracy_of_input_pipeline(printed_text) >= 0.9
