"""Keep what a step needs: the operations behind its fetches, cut where values are fed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tfray.framework.graph import Operation, Tensor
from tfray.framework.traversal import reachable_backward, topological_order


def prune(targets: Iterable[Operation], fed: Collection[Tensor]) -> list[Operation]:
    """The operations that must run for `targets`, each after its predecessors.

    Args:
        targets: Operations to run, those of fetched tensors included.
        fed: Tensors whose values the caller gives. An operation all of whose uses are fed is not run.
    """
    fed = set(fed)

    def needed(op: Operation) -> list[Operation]:
        return [tensor.op for tensor in op.inputs if tensor not in fed] + op.control_inputs

    return topological_order(reachable_backward(targets, needed))
