"""Tables of what files say. Names in a file can be anything: nothing in them reaches the terminal as a command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 10_000


def printable(text: str) -> str:
    """A text of a file with escapes in place of what is no visible character."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their headers, in lines as long as they need to be unless a terminal has a width."""
    table = Table(box=None, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console()
    (console if console.is_terminal else Console(width=_WIDE)).print(table)


def shape_text(sizes: Sequence[int | None] | None) -> str:
    """A shape as ``?x4``."""
    if sizes is None:
        return "unknown"
    return "x".join("?" if size is None else str(size) for size in sizes) or "scalar"
