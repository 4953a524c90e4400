"""One order in which all operations could run on one device; every partition keeps it.

Operations keep their order of creation where dependencies allow. One rule is added: an update of a variable comes after
those reads of the variable in the same step that do not depend on the update. So a step reads the values from before
its own updates, on one device or many, unless control dependencies say otherwise.
"""

from __future__ import annotations

import heapq

from tfray.framework.effects import access_of, accessed_handles
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import predecessors


def schedule(graph: Graph) -> tuple[list[Operation], list[tuple[Operation, Operation]]]:
    """The order, and the edges (earlier, later) between reads and updates of one variable that it adds."""
    order = _Scheduler(graph.get_operations()).run()
    return order, _access_edges(order)


class _Scheduler:
    """Kahn's algorithm over a heap of operation ids. Updates are held back while reads of their variable are left."""

    def __init__(self, ops: list[Operation]) -> None:
        self._ops = {op.id: op for op in ops}
        self._after: dict[Operation, list[Operation]] = {op: [] for op in ops}
        self._waiting: dict[Operation, int] = {}
        self._unread: dict[Tensor, int] = {}
        for op in ops:
            earlier = set(predecessors(op))
            self._waiting[op] = len(earlier)
            for other in earlier:
                self._after[other].append(op)
            if access_of(op) == "read":
                for handle in accessed_handles(op):
                    self._unread[handle] = self._unread.get(handle, 0) + 1
        self._ready = [op.id for op in ops if self._waiting[op] == 0]
        self._held: dict[Tensor, list[int]] = {}

    def run(self) -> list[Operation]:
        heapq.heapify(self._ready)
        order: list[Operation] = []
        while self._ready or self._held:
            if not self._ready:
                # Only held updates are ready, so every read that is left depends on one: release the earliest.
                op = self._release(min(self._held, key=lambda handle: min(self._held[handle])))
            else:
                op = self._ops[heapq.heappop(self._ready)]
                unread = self._unread_handle(op)
                if unread is not None:
                    self._held.setdefault(unread, []).append(op.id)
                    continue
            order.append(op)
            self._finish(op)
        return order

    def _unread_handle(self, op: Operation) -> Tensor | None:
        """A variable that `op` updates and of which a read is left, or None."""
        if access_of(op) != "update":
            return None
        return next((handle for handle in accessed_handles(op) if self._unread.get(handle, 0)), None)

    def _release(self, handle: Tensor) -> Operation:
        held = self._held[handle]
        op_id = min(held)
        held.remove(op_id)
        if not held:
            del self._held[handle]
        return self._ops[op_id]

    def _finish(self, op: Operation) -> None:
        for later in self._after[op]:
            self._waiting[later] -= 1
            if self._waiting[later] == 0:
                heapq.heappush(self._ready, later.id)
        if access_of(op) == "read":
            for handle in accessed_handles(op):
                self._unread[handle] -= 1
                if self._unread[handle] == 0:
                    for op_id in self._held.pop(handle, ()):
                        heapq.heappush(self._ready, op_id)


def _access_edges(order: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Edges that keep the order of accesses: for each variable, between reads and updates, and between updates."""
    edges: list[tuple[Operation, Operation]] = []
    reads: dict[Tensor, list[Operation]] = {}
    last_update: dict[Tensor, Operation] = {}
    for op in order:
        for handle in accessed_handles(op):
            if handle in last_update:
                edges.append((last_update[handle], op))
            if access_of(op) == "read":
                reads.setdefault(handle, []).append(op)
            else:
                edges.extend((read, op) for read in reads.pop(handle, ()))
                last_update[handle] = op
    return edges
