"""Writes tfray/docs/what_can_go_wrong.md from the tests that are marked `fault`: run it when such a test has changed.

A test says of itself, in plain strings,

    @pytest.mark.fault("Section", "what goes wrong", happens="what the user sees", promise="what holds in spite of it")

and several tests may say the same. The tests are read, not run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "tfray" / "docs" / "what_can_go_wrong.md"

INTRODUCTION = """\
# What can go wrong

Each row is a fault that tests bring about: by real processes that are killed or frozen, real files that are damaged,
real wrong calls. The last column names these tests. This page is made from them, by `python scripts/fault_page.py`.
"""

SECTIONS = (
    "Steps",
    "Workers and parameter servers",
    "Machines and networks",
    "Drivers and checkpoints",
    "Files",
    "Input",
    "Configuration",
    "Command line",
    "Strangers",
)
"""In the order of the page."""


class Fault(NamedTuple):
    """A row of the page."""

    section: str
    what: str
    happens: str
    promise: str


def faults_of(path: Path) -> Iterator[tuple[Fault, str]]:
    """The faults of which tests of a file tell, each with the name of its test. Raises `ValueError` for a bad mark."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
                try:
                    section, what = (ast.literal_eval(each) for each in mark.args)
                    told = {each.arg: ast.literal_eval(each.value) for each in mark.keywords}
                    fault = Fault(section, what, told.pop("happens"), told.pop("promise"))
                except (ValueError, KeyError) as error:
                    raise ValueError(f"{path.name}, {node.name}: the mark `fault` is not complete: {error}") from error
                if told or section not in SECTIONS:
                    raise ValueError(f"{path.name}, {node.name}: unknown {list(told) or section!r}; see SECTIONS")
                yield fault, f"{path.stem}::{node.name}"


def page(tests: Path = ROOT / "tests") -> str:
    """The text of the page."""
    rows: dict[Fault, list[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        for fault, name in faults_of(path):
            rows.setdefault(fault, []).append(name)
    parts = [INTRODUCTION]
    for section in SECTIONS:
        lines = [
            f"| {fault.what} | {fault.happens} | {fault.promise} | {', '.join(f'`{name}`' for name in names)} |"
            for fault, names in rows.items()
            if fault.section == section
        ]
        if lines:
            head = ["| fault | what happens | what is promised | shown by |", "| --- | --- | --- | --- |"]
            parts.append("\n".join([f"## {section}", "", *head, *lines, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)
