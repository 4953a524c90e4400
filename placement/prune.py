"""Keep what a step needs: the operations behind its fetches, cut where values are fed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tfray.framework.graph import Operation, Tensor
from tfray.framework.traversal import reachable_backward, topological_order


def prune(
    targets: Iterable[Operation], fed: Collection[Tensor], finished: Collection[Operation] = ()
) -> list[Operation]:
    """The operations that must run for `targets`, each after its predecessors.

    Args:
        targets: Operations to run, those of fetched tensors included.
        fed: Tensors whose values the caller gives. An operation all of whose uses are fed is not run.
        finished: Operations that have run already, for which nothing waits.
    """
    fed = set(fed)
    # A fed placeholder is not run, not even for operations that wait for it by a control edge.
    done = {tensor.op for tensor in fed if tensor.op.type == "Placeholder"} | set(finished)

    def needed(op: Operation) -> list[Operation]:
        waits_for = [control for control in op.control_inputs if control not in done]
        return [tensor.op for tensor in op.inputs if tensor not in fed] + waits_for

    return topological_order(reachable_backward([op for op in targets if op not in done], needed))


def ungrouped(targets: Sequence[Operation]) -> list[Operation]:
    """The targets, with each NoOp, such as that of `tf.group`, replaced by the operations that it waits for.

    The NoOp itself would cost a message from every device that runs one of these operations. It is not needed: a step
    ends when all devices have finished.
    """
    found: dict[Operation, None] = {}
    pending = list(reversed(targets))
    while pending:
        op = pending.pop()
        if op.type == "NoOp" and op.control_inputs:
            pending += reversed(op.control_inputs)
        else:
            found[op] = None
    return list(found)
