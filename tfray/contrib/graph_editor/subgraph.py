"""Parts of a graph."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from tfray.contrib.graph_editor.select import get_name_scope_ops, get_walks_union_ops, select_ops_and_ts
from tfray.contrib.graph_editor.util import get_consuming_ops, make_list_of_op, make_list_of_t
from tfray.framework.graph import Graph, Operation, Tensor

__all__ = ["SubGraphView", "make_view", "make_view_from_scope"]


class SubGraphView:
    """A part of a graph: operations, and tensors that go through without one.

    Args:
        inside_ops: The operations in it.
        passthrough_ts: Tensors that are both inputs and outputs, but for those of the operations.

    Attributes:
        ops: The operations, as a list.
        inputs: The tensors that it takes from outside, each once, and those that go through.
        outputs: The tensors of it that something outside takes, or that nothing takes, and those that go through.
        passthroughs: The tensors that go through.
        graph: The graph; None of nothing.
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self.ops = list(dict.fromkeys(make_list_of_op(inside_ops)))
        given = make_list_of_t(passthrough_ts)
        inside = frozenset(self.ops)
        graphs = [*(op.graph for op in self.ops), *(tensor.graph for tensor in given)]
        self.graph: Any = graphs[0] if graphs else None
        taken = list(dict.fromkeys(tensor for op in self.ops for tensor in op.inputs if tensor.op not in inside))
        made = [tensor for op in self.ops for tensor in op.outputs]
        own = frozenset([*taken, *made])
        self.passthroughs = [tensor for tensor in given if tensor not in own]
        self.inputs = [*taken, *self.passthroughs]
        given_out = [each for each in made if not each.consumers() or set(each.consumers()) - inside]
        self.outputs = [*given_out, *self.passthroughs]

    def copy(self) -> SubGraphView:
        """Another view of the same part."""
        new = copy.copy(self)
        for name in ("ops", "passthroughs", "inputs", "outputs"):
            setattr(new, name, list(getattr(self, name)))
        return new

    def remap_inputs(self, new_input_indices: Iterable[Any]) -> SubGraphView:
        """A view with some of the inputs, by their places or as they are, in this order."""
        return self.remap(new_input_indices)

    def remap_outputs(self, new_output_indices: Iterable[Any]) -> SubGraphView:
        """A view with some of the outputs, by their places or as they are, in this order."""
        return self.remap(None, new_output_indices)

    def remap(
        self, new_input_indices: Iterable[Any] | None = None, new_output_indices: Iterable[Any] | None = None
    ) -> SubGraphView:
        """A view with some of the inputs and some of the outputs; see `remap_inputs`.

        Raises:
            ValueError: An input is named twice.
        """
        new = self.copy()
        if new_input_indices is not None:
            new.inputs = _picked(self.inputs, new_input_indices)
            if len(set(new.inputs)) < len(new.inputs):
                raise ValueError(f"inputs of a part of a graph are taken once each, not {new.inputs}")
        if new_output_indices is not None:
            new.outputs = _picked(self.outputs, new_output_indices)
        return new

    def remap_default(self, remove_input_map: bool = True, remove_output_map: bool = True) -> SubGraphView:
        """A view with the inputs and the outputs that it had at first."""
        first, new = SubGraphView(self.ops, self.passthroughs), self.copy()
        new.inputs = first.inputs if remove_input_map else new.inputs
        new.outputs = first.outputs if remove_output_map else new.outputs
        return new

    def remap_outputs_make_unique(self) -> SubGraphView:
        """A view with each output once."""
        return self.remap_outputs(dict.fromkeys(self.outputs))

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """A view with each output as often as operations take it."""
        return self.remap_outputs([tensor for tensor in self.outputs for _ in tensor.consumers()])

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """A view with those operations only that depend on an input, or on which an output depends.

        Args:
            control_inputs: Control dependencies count too.
        """
        new = self.copy()
        used = get_walks_union_ops(
            self.connected_inputs, self.connected_outputs, within_ops=self.ops, control_inputs=control_inputs
        )
        new.ops = [op for op in self.ops if op in frozenset(used)]
        return new

    def op(self, op_id: int) -> Operation:
        """An operation by its place."""
        return self.ops[op_id]

    def find_op_by_name(self, op_name: str) -> Operation:
        """An operation by its name. Raises `ValueError` when there is none."""
        for op in self.ops:
            if op.name == op_name:
                return op
        raise ValueError(f"there is no operation {op_name!r} in this part of the graph")

    def is_passthrough(self, t: Tensor) -> bool:
        """Whether a tensor goes through without an operation."""
        return t in self.passthroughs

    def input_index(self, t: Tensor) -> int:
        """The place of an input. Raises `ValueError` when it is none."""
        return self.inputs.index(t)

    def output_index(self, t: Tensor) -> int:
        """The place of an output. Raises `ValueError` when it is none."""
        return self.outputs.index(t)

    @property
    def connected_inputs(self) -> list[Tensor]:
        """The inputs that do not go through."""
        return [tensor for tensor in self.inputs if tensor not in self.passthroughs]

    @property
    def connected_outputs(self) -> list[Tensor]:
        """The outputs that do not go through."""
        return [tensor for tensor in self.outputs if tensor not in self.passthroughs]

    def consumers(self) -> list[Operation]:
        """The operations outside that take its outputs."""
        inside = frozenset(self.ops)
        return [op for op in get_consuming_ops(self.outputs) if op not in inside]

    def __bool__(self) -> bool:
        return self.graph is not None

    def __str__(self) -> str:
        lines = [f"SubgraphView (graphid={id(self.graph)}):"]
        for what, found in (("Ops", self.ops), ("Inputs", self.inputs), ("Outputs", self.outputs)):
            lines += [f"** {what}:", *(f"  {each.name}" for each in found)]
        return "\n".join(lines)


def _picked(tensors: Sequence[Tensor], wanted: Iterable[Any]) -> list[Tensor]:
    return [tensors[tensors.index(each)] if isinstance(each, Tensor) else tensors[each] for each in wanted]


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """A part of a graph.

    Args:
        *args: A view; or operations, a graph for all of its, tensors that go through, and expressions for names.
        **kwargs: ``graph``: where to look for names.
    """
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0]
    found = select_ops_and_ts(*args, **kwargs)
    return SubGraphView(
        [each for each in found if isinstance(each, Operation)], [each for each in found if isinstance(each, Tensor)]
    )


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """The part of a graph that is within a name scope."""
    return SubGraphView(get_name_scope_ops(graph, scope))
