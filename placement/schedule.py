"""One order in which all operations could run on one device; every partition keeps it.

Operations keep their order of creation where dependencies allow. One rule is added: an update of a variable comes after
those reads of the variable in the same step that do not depend on the update. So a step reads the values from before
its own updates, on one device or many, unless control dependencies say otherwise, or the variable itself is fetched
(see `tfray.placement.last_reads`).

What runs while it has a lock (see `tf.CriticalSection`) comes before what takes the same lock later. The rule on reads
gives way to this one.
"""

from __future__ import annotations

import heapq

from tfray.framework.effects import access_of, accessed_handles, returned_lock, taken_locks
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import predecessors


def schedule(graph: Graph) -> tuple[list[Operation], list[tuple[Operation, Operation]]]:
    """The order, and the edges (earlier, later) between reads and updates of one variable that it adds."""
    order = _Scheduler(graph.get_operations()).run()
    return order, _access_edges(order)


class _Scheduler:
    """Kahn's algorithm over a heap of operation ids.

    Updates are held back while reads of their variable are left, and what takes a lock while another one has it.
    """

    def __init__(self, ops: list[Operation]) -> None:
        self._ops = {op.id: op for op in ops}
        self._after: dict[Operation, list[Operation]] = {op: [] for op in ops}
        self._waiting: dict[Operation, int] = {}
        self._unread: dict[Tensor, int] = {}
        self._returned = {returned_lock(op) for op in ops}
        self._locked: set[Tensor] = set()
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
                # Only held operations are ready, so every read that is left depends on one: release the earliest.
                # Those that take a lock come last: it may be given back before.
                op = self._release(
                    min(self._held, key=lambda handle: (handle in self._locked, min(self._held[handle])))
                )
            else:
                op = self._ops[heapq.heappop(self._ready)]
                handle = self._holding(op)
                if handle is not None:
                    self._held.setdefault(handle, []).append(op.id)
                    continue
            order.append(op)
            self._finish(op)
        return order

    def _holding(self, op: Operation) -> Tensor | None:
        """What holds `op` back: a lock that another has, or a variable that it updates and of which a read is left."""
        for handle in taken_locks(op) & self._locked if self._locked else ():
            return handle
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
        if op.type == "MutexLock":
            self._locked.update(taken_locks(op) & self._returned)
        returned = returned_lock(op)
        if returned is not None:
            self._locked.discard(returned)
            self._let_go(returned)
        if access_of(op) == "read":
            for handle in accessed_handles(op):
                self._unread[handle] -= 1
                if self._unread[handle] == 0:
                    self._let_go(handle)

    def _let_go(self, handle: Tensor) -> None:
        for op_id in self._held.pop(handle, ()):
            heapq.heappush(self._ready, op_id)


def _access_edges(order: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Edges that keep the order of accesses: for each variable, between reads and updates, and between updates.

    And those from what gives a lock back to what takes it next.
    """
    edges: list[tuple[Operation, Operation]] = []
    reads: dict[Tensor, list[Operation]] = {}
    last_update: dict[Tensor, Operation] = {}
    last_return: dict[Tensor, Operation] = {}
    for op in order:
        for handle in taken_locks(op):
            if handle in last_return:
                edges.append((last_return[handle], op))
            if op.op_def.regions:
                last_return[handle] = op
        returned = returned_lock(op)
        if returned is not None:
            last_return[returned] = op
        for handle in accessed_handles(op):
            if handle in last_update:
                edges.append((last_update[handle], op))
            if access_of(op) == "read":
                reads.setdefault(handle, []).append(op)
            else:
                edges.extend((read, op) for read in reads.pop(handle, ()))
                last_update[handle] = op
    return edges
