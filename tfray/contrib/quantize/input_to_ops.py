"""``tensorflow.contrib.quantize.python.input_to_ops``: which operations take the outputs of others."""

from __future__ import annotations

from tfray.framework.graph import Graph, Operation

__all__ = ["InputToOps"]


class InputToOps:
    """Looks up the operations of a graph by those whose outputs they take.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.mapping: dict[Operation, set[Operation]] = {}
        for op in graph.get_operations():
            for tensor in op.inputs:
                self.mapping.setdefault(tensor.op, set()).add(op)

    def ConsumerOperations(self, producer_op: Operation) -> set[Operation]:
        """The operations that take an output of another one, as of when the map was made.

        Args:
            producer_op: The other one.
        """
        return self.mapping.get(producer_op, set())
