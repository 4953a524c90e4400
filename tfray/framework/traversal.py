"""Walks over the operations of a graph."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from tfray.errors import InvalidArgumentError

Item = TypeVar("Item", bound=Hashable)


def predecessors(op: Any) -> list[Any]:
    """The operations that must run before `op`: those of its inputs, then its control inputs."""
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def reachable_backward(targets: Iterable[Item], follow: Callable[[Item], Iterable[Item]] = predecessors) -> set[Item]:
    """Every operation, or other thing, from which some target is reachable, targets included."""
    seen: set[Item] = set()
    stack = list(targets)
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(follow(op))
    return seen


def topological_order(ops: Iterable[Item], extra_edges: Iterable[tuple[Item, Item]] = ()) -> list[Item]:
    """`ops` ordered so that each comes after its predecessors, ties broken by order of creation.

    Args:
        ops: Operations of one graph; predecessors outside this set are ignored.
        extra_edges: Further pairs (earlier, later).

    Raises:
        InvalidArgumentError: The edges form a cycle; the message names its operations.
    """
    members: set[Any] = set(ops)
    before: dict[Any, set[Any]] = {op: {p for p in predecessors(op) if p in members} for op in members}
    for earlier, later in extra_edges:
        before[later].add(earlier)
    after: dict[Any, list[Any]] = {op: [] for op in members}
    for op, earlier_ops in before.items():
        for earlier in earlier_ops:
            after[earlier].append(op)
    waiting = {op: len(earlier_ops) for op, earlier_ops in before.items()}
    ready = [(op.id, op) for op, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[Any] = []
    while ready:
        _, op = heapq.heappop(ready)
        order.append(op)
        for later in after[op]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, (later.id, later))
    if len(order) < len(members):
        raise InvalidArgumentError(f"the graph has a cycle through {_some_names(members - set(order))}")
    return order


_NAMED: Final = 5
"""Operations that an error names."""


def _some_names(ops: Iterable[Any]) -> str:
    names: Sequence[str] = sorted(op.name for op in ops)
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
