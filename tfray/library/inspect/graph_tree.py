"""Graphs as trees on the terminal: name scopes, operations, shapes, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfray.framework.graph import Graph, Operation, get_default_graph
from tfray.framework.region import Region, regions_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree


def show(
    graph: Graph | None = None,
    scope: str = "",
    depth: int | None = None,
    constants: bool = False,
    console: Console | None = None,
) -> None:
    """Print a graph as a tree of its name scopes.

    Args:
        graph: The graph; the default graph when None.
        scope: Show only what is below this name scope.
        depth: Levels to show; below, scopes are summed up. All when None.
        constants: Whether to show constants.
        console: Where to print; standard output when None.
    """
    from rich.console import Console

    (console or Console()).print(graph_tree(graph, scope, depth, constants))


def graph_tree(graph: Graph | None = None, scope: str = "", depth: int | None = None, constants: bool = False) -> Tree:
    """The tree that `show` prints, for `rich`."""
    from rich.text import Text
    from rich.tree import Tree

    prefix = scope.rstrip("/") + "/" if scope else ""
    ops = [op for op in (graph or get_default_graph()).get_operations() if op.name.startswith(prefix)]
    shown = [op for op in ops if constants or op.type != "Const"]
    hidden = len(ops) - len(shown)
    note = f", {hidden} of them constants that are not shown" if hidden else ""
    tree = Tree(Text(f"{scope or 'graph'}: {len(ops)} operations{note}"))
    _add(tree, [(op.name.removeprefix(prefix).split("/"), op) for op in shown], depth, constants)
    return tree


def _add(tree: Any, members: list[tuple[list[str], Operation]], depth: int | None, constants: bool) -> None:
    from rich.text import Text

    groups: dict[str, list[tuple[list[str], Operation]]] = {}
    for path, op in members:
        groups.setdefault(path[0], []).append((path[1:], op))
    for name, group in groups.items():
        own = [op for path, op in group if not path]
        below = [(path, op) for path, op in group if path]
        label = _line(name, own[0]) if own else Text(f"{name}/", style="bold")
        if below and depth is not None and depth <= 1:
            label.append(f"  {len(below)} operations", style="dim")
            tree.add(label)
            continue
        branch = tree.add(label)
        _add(branch, below, None if depth is None else depth - 1, constants)
        for op in own:
            _add_regions(branch, op, depth, constants)


def _add_regions(branch: Any, op: Operation, depth: int | None, constants: bool) -> None:
    from rich.text import Text

    if depth is not None and depth <= 1:
        return
    for name, region in zip(op.op_def.regions, regions_of(op), strict=True):
        inner = [each for each in Region.get_operations(region) if constants or each.type != "Const"]
        within = branch.add(Text(f"{name}:", style="italic"))
        shown = [(each.name.removeprefix(f"{op.name}/").split("/"), each) for each in inner]
        _add(within, shown, None if depth is None else depth - 1, constants)


def _line(name: str, op: Operation) -> Any:
    from rich.text import Text

    line = Text(name)
    line.append(f"  {op.type}", style="cyan")
    values = [f"{tensor.dtype.name}{_sizes(tensor.shape.sizes)}" for tensor in op.outputs]
    line.append(f"  {', '.join(values)}" if values else "", style="green")
    line.append(f"  {op.device}" if op.device else "", style="magenta")
    return line


def _sizes(sizes: Any) -> str:
    return "[...]" if sizes is None else "[" + ",".join("?" if size is None else str(size) for size in sizes) + "]"
