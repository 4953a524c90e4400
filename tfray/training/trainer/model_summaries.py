"""The summaries of a model that a `Trainer` trains: when to compute them, and where.

In one process they are fetched with a step. On a cluster, summaries that depend on the batch become a branch of the
replica's graph: a placeholder that the input feeds says whether to take it. The others, of variables and the like, are
computed where the variables live, before the step begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.effects import access_of, is_stateful
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import import_graph_def
from tfray.framework.plain_graph import PlainGraph
from tfray.framework.traversal import reachable_backward
from tfray.library.inspect import summaries
from tfray.library.platform import logging
from tfray.ops.arrays import source_ops
from tfray.ops.control import control_flow_ops
from tfray.training.trainer.model import BuiltModel

SCOPE: Final = "summaries"
"""Name scope of what is added to the graph."""


def is_due(step: int, first_step: int, every_steps: int | None) -> bool:
    """Whether summaries are wanted of a step; of the first one of a run always."""
    return every_steps is not None and (step == first_step or step % every_steps == 0)


@dataclass(frozen=True)
class Branch:
    """Summaries that are computed on request.

    Attributes:
        summary: All of them, merged; empty unless they are wanted.
        wanted: The placeholder that says whether they are wanted.
    """

    summary: Tensor
    wanted: Tensor


class ModelSummaries:
    """The summaries in a model's collection ``SUMMARIES``.

    Args:
        model: The model.
        every_steps: They are wanted once in so many steps; None for never.
    """

    def __init__(self, model: BuiltModel, every_steps: int | None) -> None:
        self._model = model
        found = model.graph.get_collection(GraphKeys.SUMMARIES) if every_steps else []
        self._found: list[Tensor] = list(dict.fromkeys(found))
        self.every_steps = every_steps if found else None

    def due(self, step: int, first_step: int) -> bool:
        """Whether they are wanted for a step, in a run that begins with `first_step`."""
        return is_due(step, first_step, self.every_steps)

    def next_due(self, step: int, first_step: int) -> int | None:
        """The first step after `step` for which they are wanted; None for none."""
        if self.every_steps is None:
            return None
        return first_step if step < first_step else (step // self.every_steps + 1) * self.every_steps

    def all(self) -> Tensor | None:
        """All of them, merged, to be fetched in this process; None if there are none."""
        return _merged(self._model.graph, self._found)

    # -- on a cluster ----------------------------------------------------------------------------

    @cached_property
    def of_state(self) -> Tensor | None:
        """Those of the values of variables, merged; None if there are none."""
        return _merged(self._model.graph, [summary for summary in self._reportable if _is_of_state(summary)])

    @cached_property
    def of_batch(self) -> Branch | None:
        """The others, for a replica; None if there are none."""
        found = [summary for summary in self._reportable if not _is_of_state(summary)]
        if not found:
            return None
        graph, model = self._model.graph, self._model
        trained = reachable_backward([model.train_operation, *(tensor.op for tensor in model.fetches.values())])
        # Operations that only summaries need are copied into the branch. All others run in every step anyway.
        own = reachable_backward([tensor.op for tensor in found], lambda op: _own(_inputs(op), trained))
        with graph.as_default(), graph.device(None), graph.control_dependencies(None), graph.name_scope(SCOPE):
            wanted = source_ops.placeholder(dtypes.bool_, [], name="wanted")
            summary = control_flow_ops.cond(wanted, lambda: _copied(found, own), lambda: source_ops.constant(b""))
        return Branch(summary, wanted)

    @cached_property
    def _reportable(self) -> list[Tensor]:
        """Those that do not depend on combined gradients: a replica never sees these, as the shards combine them."""
        found = []
        for summary in self._found:
            if any(map(_is_combined, reachable_backward([summary.op], _inputs))):
                logging.warning(
                    "summary %s is not logged on a cluster: it depends on an update of the same step", summary.op.name
                )
            else:
                found.append(summary)
        return found


def _inputs(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.inputs]


def _own(ops: Iterable[Operation], trained: set[Operation]) -> list[Operation]:
    """Those of `ops` that may move into the branch: values that training does not need. State stays outside."""
    return [op for op in ops if op not in trained and op.type != "Placeholder" and not _is_near_state(op)]


def _is_near_state(op: Operation) -> bool:
    return any(tensor.dtype is dtypes.resource for tensor in (*op.inputs, *op.outputs))


def _is_combined(op: Operation) -> bool:
    return op.type == "ReplicaReduce" or access_of(op) == "update"


def _is_of_state(summary: Tensor) -> bool:
    """Whether a summary depends only on the values of variables."""
    return all(
        not is_stateful(op) or access_of(op) == "read" or op.type in ("Variable", "NoOp")
        for op in reachable_backward([summary.op])
    )


def _copied(found: Sequence[Tensor], own: set[Operation]) -> Tensor:
    """One summary of copies of `own` in the current graph, which takes everything else from outside."""
    nodes = []
    for op in sorted(own, key=lambda op: op.id):
        node = op.as_plain()
        node.input = [text for text in node.input if not text.startswith("^")]
        node.attr = {name: value for name, value in node.attr.items() if name != "_class"}
        nodes.append(node)
    outside = {tensor.name: tensor for op in own for tensor in op.inputs if tensor.op not in own}
    copies: Any = import_graph_def(PlainGraph(nodes), outside, [tensor.name for tensor in found], SCOPE)
    return summaries.merge(copies)


def _merged(graph: Graph, found: Sequence[Tensor]) -> Tensor | None:
    if not found:
        return None
    with graph.as_default(), graph.device(None), graph.control_dependencies(None), graph.name_scope(SCOPE):
        return summaries.merge(found)
