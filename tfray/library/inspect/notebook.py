"""What notebooks show: a graph as drawings of its scopes, which fold, and numbers of steps as curves.

All of it is HTML with SVG inside, without scripts, and well-formed XML. Its size is bounded, however large a graph is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from tfray.framework.graph import Graph, Operation
from tfray.framework.region import regions_of

MAX_BOXES: Final = 48
"""Most boxes in the drawing of one scope: more are hard to tell apart. The drawing says how many are left out."""

MAX_BOXES_IN_ALL: Final = 1000
"""Most boxes in all drawings together. A box with its line takes about 500 bytes, so this adds half a megabyte."""

MAX_SCOPES: Final = 200
"""Most scopes that can be unfolded. Outer scopes come first; for the rest only their number is shown."""

_ROW: Final = 6
"""Boxes side by side: as many as a notebook's column is wide."""

_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y = 132, 34, 14, 26
"""Sizes in pixels; a label of `_LABEL` characters of 11 pixels fits into a box."""

_LABEL: Final = 19
"""Longest label of a box, in characters."""

_MAX_POINTS: Final = 400
"""Most points of a curve: its panel is this many pixels wide, so more would not be seen."""

_PANEL_WIDTH, _PANEL_HEIGHT = 400, 120


@dataclass
class _Scope:
    """A name scope, or a region of an operation: what is drawn together.

    Attributes:
        label: What the fold is called.
        boxes: What stands in it: an operation for a name of its own, None for a scope, in order of creation.
        arrows: Pairs of names of boxes, where a value or a control dependency goes from the first to the second.
        scopes: The scopes in it by name, then its operations' regions.
        operations: Number of operations, those of inner scopes included.
        constants: How many of them are constants, which are not drawn.
    """

    label: str
    boxes: dict[str, Operation | None] = field(default_factory=dict)
    arrows: dict[tuple[str, str], None] = field(default_factory=dict)
    scopes: dict[str, _Scope] = field(default_factory=dict)
    operations: int = 0
    constants: int = 0


def graph_html(graph: Graph) -> str:
    """A graph as nested folds, one for each name scope and each region, with a drawing of what stands in it."""
    root = _scope_of("graph", graph.get_operations(), "")
    drawn: set[int] = set()
    boxes = 0
    waiting = deque([root])
    while waiting and len(drawn) < MAX_SCOPES:
        scope = waiting.popleft()
        boxes += min(len(scope.boxes), MAX_BOXES)
        if boxes > MAX_BOXES_IN_ALL:
            break
        drawn.add(id(scope))
        waiting.extend(scope.scopes.values())
    return f'<div style="font: 12px sans-serif; overflow: auto">{_fold(root, drawn, is_open=True)}</div>'


def _scope_of(label: str, ops: Sequence[Operation], prefix: str) -> _Scope:
    """The tree of scopes of `ops`, the part `prefix` of whose names says nothing."""
    root = _Scope(label)
    places: dict[Operation, list[str]] = {}
    for op in ops:
        *scopes, name = op.name.removeprefix(prefix).split("/")
        places[op] = [*(f"{scope}/" for scope in scopes), name]
        inner = root
        inner.operations += 1
        inner.constants += op.type == "Const"
        for scope in places[op][:-1]:
            inner.boxes.setdefault(scope)
            inner = inner.scopes.setdefault(scope, _Scope(scope))
            inner.operations += 1
            inner.constants += op.type == "Const"
        if op.type != "Const":
            inner.boxes[name] = op
            for attribute, region in zip(op.op_def.regions, regions_of(op), strict=True):
                title = f"{name}: {attribute}"
                inner.scopes[title] = _scope_of(title, Graph.get_operations(region), f"{op.name}/")
    for op, place in places.items():
        for source in dict.fromkeys([tensor.op for tensor in op.inputs] + op.control_inputs):
            if source in places and source.type != "Const":
                _add_arrow(root, places[source], place)
    return root


def _add_arrow(scope: _Scope, source: list[str], target: list[str]) -> None:
    """Draw a dependency where its ends part: in the innermost scope that has both."""
    for one, other in zip(source, target, strict=False):
        if one != other:
            scope.arrows[one, other] = None
            return
        scope = scope.scopes[one]


def _fold(scope: _Scope, drawn: set[int], is_open: bool = False) -> str:
    parts = [f"{scope.operations} operations"]
    if scope.constants:
        parts.append(f"{scope.constants} of them constants, which are not drawn")
    title = f"<summary><b>{_text(scope.label)}</b> {', '.join(parts)}</summary>"
    if id(scope) not in drawn:
        return f"<div>{_text(scope.label)} {', '.join(parts)}: not drawn, the graph is too large</div>"
    inner = [_drawing(scope)] if scope.boxes else []
    if len(scope.boxes) > MAX_BOXES:
        inner.append(f"<div>and {len(scope.boxes) - MAX_BOXES} more, which are not drawn</div>")
    shown = [each for each in scope.scopes.values() if id(each) in drawn]
    inner += [_fold(each, drawn) for each in shown]
    if len(shown) < len(scope.scopes):
        inner.append(f"<div>and {len(scope.scopes) - len(shown)} more scopes, which are not drawn</div>")
    state = ' open="open"' if is_open else ""
    return f'<details{state} style="margin-left: 12px">{title}{"".join(inner)}</details>'


# -- the drawing of one scope ------------------------------------------------------------------------------


def _drawing(scope: _Scope) -> str:
    names = list(scope.boxes)[:MAX_BOXES]
    arrows = [(one, other) for one, other in scope.arrows if one in names and other in names]
    rows = _rows(names, arrows)
    width = max(map(len, rows)) * (_BOX_WIDTH + _GAP_X) + _GAP_X
    height = len(rows) * (_BOX_HEIGHT + _GAP_Y) + _GAP_Y
    places: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        left = (width - len(row) * (_BOX_WIDTH + _GAP_X) + _GAP_X) / 2
        for column, name in enumerate(row):
            places[name] = left + column * (_BOX_WIDTH + _GAP_X), _GAP_Y / 2 + number * (_BOX_HEIGHT + _GAP_Y)
    lines = [_arrow(places[one], places[other]) for one, other in arrows]
    boxes = [_box(name, scope.boxes[name], *places[name]) for name in names]
    return _svg(width, height, lines + boxes)


def _rows(names: Sequence[str], arrows: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Names in rows: each below all that lead to it, save where scopes lead to one another in circles."""
    before: dict[str, set[str]] = {name: set() for name in names}
    for one, other in arrows:
        before[other].add(one)
    depth: dict[str, int] = {}
    waiting = list(names)
    while waiting:
        ready = [name for name in waiting if before[name] <= depth.keys()] or waiting[:1]
        for name in ready:
            depth[name] = 1 + max((depth[one] for one in before[name] if one in depth), default=-1)
        waiting = [name for name in waiting if name not in depth]
    levels: list[list[str]] = [[] for _ in range(1 + max(depth.values()))]
    for name in names:
        levels[depth[name]].append(name)
    columns: dict[str, float] = {}
    rows: list[list[str]] = []
    for level in levels:
        # Under the middle of what leads to it, so that few lines cross.
        middles = {
            name: sum(columns.get(one, 0.0) for one in before[name]) / max(1, len(before[name])) for name in level
        }
        level.sort(key=middles.__getitem__)
        columns.update((name, number - len(level) / 2) for number, name in enumerate(level))
        rows += [level[start : start + _ROW] for start in range(0, len(level), _ROW)]
    return rows


def _box(name: str, op: Operation | None, x: float, y: float) -> str:
    is_scope = op is None
    fill, corner = ("#eceff4", 2) if is_scope else ("#ffffff", 9)
    values = [] if op is None else [f"{tensor.dtype.name} {tensor.shape}" for tensor in op.outputs]
    second = "" if op is None else " ".join([op.type, *(str(tensor.shape) for tensor in op.outputs[:1])])
    hint = name if op is None else "\n".join([f"{op.name} ({op.type})", *values, *([op.device] if op.device else [])])
    middle = x + _BOX_WIDTH / 2
    first_y = y + (14 if second else 21)
    below = f'<text x="{middle:g}" y="{y + 27:g}" fill="#56709a">{_label(second)}</text>' if second else ""
    return (
        f'<g><title>{_text(hint)}</title><rect x="{x:g}" y="{y:g}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" '
        f'rx="{corner}" fill="{fill}" stroke="#7f8fa6"/>'
        f'<text x="{middle:g}" y="{first_y:g}">{_label(name)}</text>{below}</g>'
    )


def _arrow(source: tuple[float, float], target: tuple[float, float]) -> str:
    x, y = source[0] + _BOX_WIDTH / 2, source[1] + _BOX_HEIGHT
    to_x, to_y = target[0] + _BOX_WIDTH / 2, target[1]
    bend = _GAP_Y * 0.8
    path = f"M{x:g} {y:g}C{x:g} {y + bend:g} {to_x:g} {to_y - bend:g} {to_x:g} {to_y:g}"
    return (
        f'<path d="{path}" fill="none" stroke="#a9b4c4"/><circle cx="{to_x:g}" cy="{to_y:g}" r="2.5" fill="#7f8fa6"/>'
    )


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="11" text-anchor="middle">'
        f"{''.join(parts)}</svg>"
    )


def _label(text: str) -> str:
    return _text(text if len(text) <= _LABEL else text[: _LABEL - 1] + "…")


def _text(text: str) -> str:
    """Text as XML, without the characters that XML cannot hold."""
    return escape("".join(each if each.isprintable() or each == "\n" else "�" for each in text))


# -- curves ------------------------------------------------------------------------------------------------


def curves_html(title: str, x: Sequence[float], curves: Mapping[str, Sequence[float]]) -> str:
    """Curves over the same `x`, each in a panel of its own, with its first, last, lowest and highest value.

    Args:
        title: What stands above them.
        x: Where the values lie; `[points]`, rising.
        curves: Name to values, `[points]`. Where one is not finite the curve has a gap.
    """
    panels = "".join(f"<div>{_panel(name, x, values)}</div>" for name, values in curves.items())
    return f'<div style="font: 12px sans-serif"><b>{_text(title)}</b>{panels}</div>'


def chosen(count: int) -> list[int]:
    """Positions of at most as many of `count` points as a curve shows: evenly spaced, the first and the last too."""
    if count <= _MAX_POINTS:
        return list(range(count))
    return [position * (count - 1) // (_MAX_POINTS - 1) for position in range(_MAX_POINTS)]


def _panel(name: str, x: Sequence[float], values: Sequence[float]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    across, up = (x[-1] - x[0] if x else 0.0) or 1.0, high - low or 1.0
    left, top = 70, 18
    path, pen = [], "M"
    for where, value in zip(x, values, strict=True):
        if not math.isfinite(value):
            pen = "M"
            continue
        right = left + (where - x[0]) / across * _PANEL_WIDTH
        path.append(f"{pen}{right:.1f} {top + (high - value) / up * _PANEL_HEIGHT:.1f}")
        pen = "L"
    last = f"{name}: {values[-1]:.4g}" if values else name
    texts = [(left + _PANEL_WIDTH / 2, 12, last), (35, top + 8, f"{high:.4g}"), (35, top + _PANEL_HEIGHT, f"{low:.4g}")]
    if x:
        bottom = top + _PANEL_HEIGHT + 14
        texts += [(left + 10, bottom, f"{x[0]:g}"), (left + _PANEL_WIDTH - 10, bottom, f"{x[-1]:g}")]
    parts = [
        f'<rect x="{left}" y="{top}" width="{_PANEL_WIDTH}" height="{_PANEL_HEIGHT}" fill="none" stroke="#c3cbd6"/>',
        f'<path d="{"".join(path)}" fill="none" stroke="#2f6fb7" stroke-width="1.5"/>' if path else "",
        *(f'<text x="{x_:g}" y="{y_:g}">{_text(text)}</text>' for x_, y_, text in texts),
    ]
    return _svg(left + _PANEL_WIDTH + 20, top + _PANEL_HEIGHT + 20, parts)
