"""Every snippet of the README and of tfray/docs runs, and what their pages name is there."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tfray as tf
from tests.support import ROOT
from tfray import cli

EXAMPLES = ROOT / "examples"
DOCS = ROOT / "tfray" / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

SNIPPET = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
"""A block of code: its language and its text."""

ON_RAY = "plane.py"
"""The program of the pages that is trained on Ray. Longer ones are trained there by the tests of the examples."""

OTHER_COMMANDS = ("pip ", "scripts/", "python scripts/bench.py")
"""Beginnings of command lines that other tests run: of packaging, of the scripts, of the benchmarks."""


def snippets_of(page):
    return SNIPPET.findall(page.read_text())


def needs_ray(page):
    """Whether a program makes a cluster, or a command trains on one."""
    return any("tf.Cluster(" in text or f"tfray run {ON_RAY}" in text for _, text in snippets_of(page))


LONG = {"clusters"}
"""Pages whose snippets take longer than most tests."""

WITH_SNIPPETS = [
    pytest.param(
        page,
        id=page.stem,
        marks=[pytest.mark.ray] * needs_ray(page) + [pytest.mark.slow] * (page.stem in LONG),
    )
    for page in PAGES
    if snippets_of(page)
]


def run_program(program, names, page):
    """Run a program of a page; one that begins with the name of a file is written there as well."""
    if named := re.match(r"# (\w+\.py)\n", program):
        Path(named[1]).write_text(program)
    exec(compile(program, page.name, "exec"), names)


def run_command(line):
    """Run a command line of tfray's, for few steps. One that needs more than this process is only parsed."""
    _, name, *arguments = shlex.split(line, comments=True)
    arguments = [re.sub(r"^examples/", f"{EXAMPLES}/", argument) for argument in arguments]
    # The tests' Ray was started elsewhere, and a path that is not absolute begins where an actor runs.
    arguments = [re.sub(r"^runs/", f"{Path.cwd()}/runs/", argument) for argument in arguments]
    if name == "run":
        arguments += ["--steps", "3"]
    runs_here = name in ("plan", "graph", "ops") or arguments == [] or "--local" in arguments
    if runs_here or arguments[0].startswith(ON_RAY):
        result = CliRunner().invoke(cli.main, [name, *arguments])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    else:
        cli.main.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("page", WITH_SNIPPETS)
def test_the_snippets_of_a_page_run(request, capsys, tmp_path, monkeypatch, page):
    if needs_ray(page):
        request.getfixturevalue("ray_local")
    if any("tf.onnx." in text for _, text in snippets_of(page)):
        pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    names: dict[str, object] = {"__name__": page.stem}
    with tf.Graph().as_default():
        for language, text in snippets_of(page):
            assert language in ("python", "bash")
            if language == "python":
                run_program(text, names, page)
                continue
            for line in text.splitlines():
                if line.startswith("tfray "):
                    run_command(line)
                else:
                    assert line.startswith(OTHER_COMMANDS), f"{page}: nothing runs {line}"
    if page.stem == "README":
        assert names["result"].metrics["loss"] < 1e-3
    elif page.stem == "serving":
        assert names["answer"] == 11
    elif page.stem in SHOWN:
        assert re.search(SHOWN[page.stem], capsys.readouterr().out)


SHOWN = {
    "clusters": r"\[\[2\. 2\.\]",
    "debugging": r"(?s)product.*ratio.*6\.0",
    "first_cluster": r"12\.0",
    "first_graph": r"(?s)\[\[2\. 4\.\].*weights",
    "moving_a_program": r"(?s)tf\.contrib\.lite does not exist.*'line/kernel'",
    "performance": r"(?s)500\.0\n\[0 1 4\]",
}
"""What the programs of a page print."""


@pytest.mark.parametrize("page", [*PAGES, ROOT / ".github" / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_a_page_links_to_what_is_there(page):
    for link in re.findall(r"\]\(([^)#:]+)[)#]", page.read_text()):
        assert (page.parent / link).exists(), f"{page} links to {link}"


@pytest.mark.parametrize("page", sorted((DOCS / "explanations").glob("*.md")), ids=lambda page: page.stem)
def test_files_that_an_explanation_names_are_there(page):
    """They may be named from the root, from ``tfray/``, or by their last parts."""
    modules = [
        path.as_posix()
        for folder in ("tfray", "ops", "placement", "actors", "tests")
        for path in ROOT.glob(f"{folder}/**/*.py")
    ]
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text()):
        assert any(f"/{module}".endswith(f"/{name}") for module in modules), f"{page} names {name}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200
