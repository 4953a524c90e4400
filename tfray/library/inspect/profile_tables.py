"""Where the time and the memory of recorded steps went: tables by operation, type, name scope and device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats.step_stats import RunMetadata, StepStats
from tfray.library.inspect.step_spans import PeakMemory, StepSpan, coverage, peak_memory, spans_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree

Recorded = RunMetadata | StepStats

_KEYS: Final[dict[str, Callable[[StepSpan], str]]] = {
    "op": lambda span: span.name,
    "type": lambda span: span.type,
    "device": lambda span: span.device,
}


@dataclass
class Row:
    """A line of a table.

    Attributes:
        name: Operation, type of operations, or device.
        type: Type of the operation, or ``""`` for several.
        runs: How often it ran.
        self_ns: Time that it took itself.
        share: Part of the time of all lines.
        output_bytes: Bytes of what it returned.
        allocated_bytes: Of these, bytes of memory that was not there before.
    """

    name: str
    type: str = ""
    runs: int = 0
    self_ns: int = 0
    share: float = 0.0
    output_bytes: int = 0
    allocated_bytes: int = 0

    def add(self, span: StepSpan) -> None:
        """Count one run."""
        self.type = span.type if self.runs == 0 or self.type == span.type else ""
        self.runs += 1
        self.self_ns += span.self_ns
        self.output_bytes += span.output_bytes
        self.allocated_bytes += span.allocated_bytes


@dataclass
class Scope:
    """A name scope with what is below it; operations are the leaves. `total` counts everything below."""

    name: str
    total: Row
    children: dict[str, Scope] = field(default_factory=dict)


def rows(recorded: Recorded | Sequence[Recorded], by: str = "op", waits: bool = False) -> list[Row]:
    """A table, longest time first.

    Args:
        recorded: One or more steps, as `Session.run` recorded them.
        by: ``"op"``, ``"type"`` or ``"device"``.
        waits: Whether to count what is not an operation, such as waiting for other devices.
    """
    if by not in _KEYS:
        raise InvalidArgumentError(f"a table is by {', '.join(_KEYS)}, not {by!r}")
    found: dict[str, Row] = {}
    for span in _spans(recorded, waits):
        name = _KEYS[by](span)
        found.setdefault(name, Row(name)).add(span)
    total = sum(row.self_ns for row in found.values())
    for row in found.values():
        row.share = row.self_ns / total if total else 0.0
    return sorted(found.values(), key=lambda row: -row.self_ns)


def scopes(recorded: Recorded | Sequence[Recorded], waits: bool = False) -> Scope:
    """The operations from the top down, by name scope."""
    root = Scope("", Row(""))
    for span in _spans(recorded, waits):
        node = root
        node.total.add(span)
        for part in span.name.split("/"):
            node = node.children.setdefault(part, Scope(part, Row(part)))
            node.total.add(span)
    _set_shares(root, root.total.self_ns)
    return root


def _set_shares(scope: Scope, total: int) -> None:
    scope.total.share = scope.total.self_ns / total if total else 0.0
    for child in scope.children.values():
        _set_shares(child, total)


def _spans(recorded: Recorded | Sequence[Recorded], waits: bool) -> Iterable[StepSpan]:
    steps = [recorded] if isinstance(recorded, (RunMetadata, StepStats)) else recorded
    return [span for step in steps for span in spans_of(step) if waits or span.is_operation]


# -- on the terminal -----------------------------------------------------------------------------------


def format_bytes(size: int) -> str:
    """Bytes for people."""
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError("the last unit takes everything")


def as_table(lines: Sequence[Row], title: str = "", limit: int | None = 30) -> Table:
    """A table for `rich`."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for heading in ("name", "type"):
        table.add_column(heading, overflow="fold")
    for heading in ("runs", "self, ms", "share", "output", "allocated"):
        table.add_column(heading, justify="right")
    for row in lines[:limit]:
        sizes = (format_bytes(row.output_bytes), format_bytes(row.allocated_bytes))
        table.add_row(row.name, row.type, str(row.runs), f"{row.self_ns / 1e6:.3f}", f"{100 * row.share:.1f} %", *sizes)
    if limit is not None and len(lines) > limit:
        table.add_row(f"and {len(lines) - limit} more")
    return table


def as_tree(scope: Scope, min_share: float = 0.01) -> Tree:
    """A tree of name scopes for `rich`, without what takes less than `min_share` of the time."""
    from rich.tree import Tree

    tree = Tree(_described(scope.total, "all operations"))
    _add_children(tree, scope, min_share)
    return tree


def _add_children(tree: Any, scope: Scope, min_share: float) -> None:
    for child in sorted(scope.children.values(), key=lambda each: -each.total.self_ns):
        if child.total.share >= min_share:
            _add_children(tree.add(_described(child.total, child.name)), child, min_share)


def _described(row: Row, name: str) -> str:
    return f"{name}  {row.self_ns / 1e6:.3f} ms  {100 * row.share:.1f} %  {format_bytes(row.output_bytes)}"


def memory_table(peaks: Sequence[PeakMemory], limit: int = 10) -> Table:
    """The peak memory of each device, and what held it, for `rich`."""
    from rich.table import Table

    table = Table(title="peak memory", title_justify="left", box=None, pad_edge=False)
    for heading in ("device", "held by", "kind"):
        table.add_column(heading, overflow="fold")
    table.add_column("bytes", justify="right")
    for peak in peaks:
        table.add_row(peak.device, "all", "", format_bytes(peak.size_bytes))
        for holding in peak.holdings[:limit]:
            table.add_row("", holding.name, holding.allocator, format_bytes(holding.size_bytes))
        if len(peak.holdings) > limit:
            table.add_row("", f"and {len(peak.holdings) - limit} more")
    return table


def show(recorded: Recorded, limit: int = 20, console: Console | None = None) -> None:
    """Print where the time and the memory of a step went.

    Args:
        recorded: The step.
        limit: Lines of the table of operations.
        console: Where to print; standard output when None.
    """
    from rich.console import Console

    console = console or Console()
    console.print(as_table(rows(recorded, "op"), "operations", limit))
    console.print()
    console.print(as_tree(scopes(recorded)))
    console.print()
    console.print(as_table(rows(recorded, "device", waits=True), "devices, waits included"))
    for device, part in coverage(spans_of(recorded)).items():
        console.print(f"{device}: {100 * part:.1f} % of the step explained", highlight=False)
    console.print()
    console.print(memory_table(peak_memory(recorded)))
