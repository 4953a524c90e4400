"""The site of the documentation: its reference lists the whole public interface, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

import tfray as tf
from tests.support import ROOT
from tfray.cli.ops_command import missing_symbols, program_symbols

DOCS = ROOT / "tfray" / "docs"


@pytest.fixture(scope="module")
def scripts():
    """The scripts that put the site together, as modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        import api_pages
        import site_pages

        yield api_pages, site_pages


@pytest.fixture(scope="module")
def reference(scripts):
    """The text of the API reference, before docstrings are filled in."""
    return "".join(scripts[0].pages().values())


def is_listed(name, reference):
    return f"`{name}`" in reference


def test_the_reference_lists_every_name_of_the_facade(reference):
    names = getattr(tf, "__all__", None) or [name for name in vars(tf) if not name.startswith("_") and name.islower()]
    modules = {name for name, value in vars(tf).items() if type(value) is type(tf)}
    assert [name for name in names if name not in modules and not is_listed(f"tf.{name}", reference)] == []


def test_the_reference_lists_what_programs_use(scripts, reference):
    """Names that public programs use, which tfray has: directly, or in the page of another name of their namespace."""
    api_pages, _ = scripts
    missing = {name for name, _ in missing_symbols(tf)}
    homes = {id(namespace.module): namespace.name for namespace in api_pages.namespaces()}
    unlisted = []
    for name, _ in program_symbols():
        *parents, last = name.split(".")[1:]
        holder = tf
        for parent in parents:
            holder = getattr(holder, parent, None)
        if name not in missing and id(holder) in homes and not last.startswith("_"):
            unlisted += [name] if not is_listed(f"{homes[id(holder)]}.{last}", reference) else []
    assert unlisted == []


def test_the_reference_documents_each_object_once_and_nothing_that_leaks(scripts, reference):
    api_pages, _ = scripts
    documented = [line for line in reference.splitlines() if line.startswith("::: ")]
    assert len(documented) > 900
    assert len(documented) == len(set(documented))
    listed = {symbol.name for namespace in api_pages.namespaces() for symbol in namespace.symbols}
    assert not listed & {"tf.lazy_modules", "tf.framework", "tf.losses.Any", "tf.train.annotations", "tf.compat.np"}


def test_pages_of_the_site_link_to_one_another_and_to_the_reference(scripts, tmp_path):
    _, site_pages = scripts
    site_pages.write(tmp_path / "pages")
    front = (tmp_path / "pages" / "index.md").read_text()
    assert "](what_can_go_wrong.md)" in front and "](examples/mlp.py.md)" in front
    assert "```python" in (tmp_path / "pages" / "examples" / "mlp.py.md").read_text()
    assert "[`tf.train.Saver`][tf.train.Saver]" in "".join(
        path.read_text() for path in (tmp_path / "pages").rglob("checkpoints.md")
    )
    assert "api/tf.nn.md" in (tmp_path / "mkdocs.yml").read_text()


def test_every_page_is_in_the_menu():
    menu = (DOCS / "mkdocs.yml").read_text()
    pages = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    assert [str(page) for page in pages if f": {page}\n" not in menu] == []


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("material", "mkdocstrings"))), reason="needs pip install '.[docs]'"
)
def test_the_site_builds_without_a_warning(scripts, tmp_path):
    api_pages, site_pages = scripts
    site_pages.write(tmp_path / "pages")
    configuration = tmp_path / "mkdocs.yml"
    configuration.write_text(configuration.read_text().replace("paths: [..]", f"paths: [{ROOT}]"))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", configuration]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    built = "".join(path.read_text() for path in (tmp_path / "site" / "api").iterdir())
    names = [symbol.name for namespace in api_pages.namespaces() for symbol in namespace.symbols]
    assert [name for name in names if f"<code>{name}</code>" not in built] == []
    homes = set(api_pages.homes().values())
    assert [name for name in homes if f'id="{name}"' not in built] == []
