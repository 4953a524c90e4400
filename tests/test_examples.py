"""The example programs learn, and the README's programs run."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tfray import cli

ROOT = Path(__file__).parents[1]
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


def accuracy_of_model_parallel(capsys, *arguments):
    sys.argv[:] = ["model_parallel.py", *arguments]
    runpy.run_path(str(EXAMPLES / "model_parallel.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "output/weights:0 (256, 10) on /" in printed
    return float(re.search(r"test accuracy (\S+)", printed)[1])


def test_a_model_spreads_over_two_devices_of_this_process(capsys):
    assert accuracy_of_model_parallel(capsys, "--local", "--steps", "60") >= 0.9


@pytest.mark.ray
def test_a_model_spreads_over_two_actors(capsys, ray_local):
    assert accuracy_of_model_parallel(capsys, "--steps", "60") >= 0.9


@pytest.mark.ray
def test_the_programs_of_the_readme_run(capsys, ray_local):
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(programs) == 3
    names: dict[str, object] = {"__name__": "readme"}
    for program in programs:
        exec(compile(program, "README.md", "exec"), names)
    assert names["result"].metrics["loss"] < 1e-3
    assert "[2., 2.]" in capsys.readouterr().out.replace("[[2. 2.]", "[2., 2.]")
