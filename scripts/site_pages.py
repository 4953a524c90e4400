"""Puts together what the site of the documentation is built from: `scripts/site.sh` runs this, then the generator.

The pages are those of tfray/docs, the README as the front page, the API reference (`api_pages.py`), and every file of
the checkout to which a page links. Links between them are changed so that they lead to the same files in the site, and
names such as `tf.matmul` in the text become links to their reference.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path, PurePosixPath

import api_pages

ROOT = Path(__file__).resolve().parents[1]
DOCS = PurePosixPath("tfray/docs")
FRONT = PurePosixPath("README.md")
CONFIGURATION = "mkdocs.yml"

LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
"""Where a link to a file leads."""

FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"(?<!\[)`(tf(?:\.\w+)+)([^`\n]*)`(?!\])")
"""A name of the interface in the text, and what follows it in the same code, such as its arguments."""


def place(path: PurePosixPath) -> PurePosixPath:
    """Where a file of the checkout stands in the site."""
    if path == FRONT:
        return PurePosixPath("index.md")
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    # A folder whose name begins with a dot would be left out.
    inner = PurePosixPath(*(part.lstrip(".") for part in path.parts))
    return inner.with_name(f"{inner.name}.md") if path.suffix == ".py" else inner


def target(page: PurePosixPath, link: str) -> PurePosixPath:
    """The file of the checkout to which a link of a page leads."""
    return PurePosixPath(os.path.normpath(page.parent / link))


def links(page: PurePosixPath) -> set[PurePosixPath]:
    """The files to which a page links.

    Raises:
        FileNotFoundError: One of them is not there.
    """
    found = {target(page, link) for link in LINK.findall(FENCE.sub("", (ROOT / page).read_text()))}
    for path in found:
        if not (ROOT / path).is_file():
            raise FileNotFoundError(f"{page} links to {path}, which is not there")
    return found


def files() -> list[PurePosixPath]:
    """The files of the checkout that the site shows: the front page, the pages, and what they link to."""
    found = [FRONT, *sorted(PurePosixPath(path.relative_to(ROOT)) for path in (ROOT / DOCS).rglob("*.md"))]
    for path in found:
        if path.suffix == ".md":
            found += sorted(links(path) - set(found))
    return found


def markdown(path: PurePosixPath, names: dict[str, str]) -> str:
    """A file of the checkout as a page of the site; `names` says where names of the interface are documented."""
    text = (ROOT / path).read_text()
    if path.suffix == ".py":
        return f"# {path.name}\n\n```python\n{text}```\n"

    def moved(link: re.Match[str]) -> str:
        return os.path.relpath(place(target(path, link[1])), place(path).parent)

    def explained(name: re.Match[str]) -> str:
        return f"[{name[0]}][{names[name[1]]}]" if name[1] in names else name[0]

    parts = FENCE.split(text)
    parts[::2] = [NAME.sub(explained, LINK.sub(moved, part)) for part in parts[::2]]
    return "".join(parts)


def write(folder: Path) -> None:
    """Write all pages into a new folder, and beside it the configuration with the API reference in its menu."""
    shutil.rmtree(folder, ignore_errors=True)
    symbols = [symbol for namespace in api_pages.namespaces() for symbol in namespace.symbols]
    homes = {symbol.name: api_pages.homes().get(api_pages.identity(symbol.value)) for symbol in symbols}
    names = {name: home for name, home in homes.items() if home is not None}
    for path in files():
        there = folder / place(path)
        there.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".md", ".py"):
            there.write_text(markdown(path, names))
        else:
            shutil.copyfile(ROOT / path, there)
    (folder / "api").mkdir()
    menu = ["  - API reference:"]
    for name, text in api_pages.pages().items():
        (folder / "api" / name).write_text(text)
        menu.append(f"    - {Path(name).stem}: api/{name}")
    configuration = (ROOT / DOCS / CONFIGURATION).read_text()
    (folder.parent / CONFIGURATION).write_text("\n".join([configuration.rstrip("\n"), *menu, ""]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the pages; the configuration is written beside it")
    write(parser.parse_args().folder.resolve())
