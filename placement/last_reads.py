"""Variables that are fetched are read last: a step returns the values that it leaves behind.

So it is in TensorFlow 1, where a fetched variable shares its memory with the variable itself: programs print the step,
or the weights, that ``session.run([train_op, global_step])`` returns. What is computed from a variable reads it before
the step's updates; see `tfray.placement.schedule`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tfray.framework.effects import updated_handles
from tfray.framework.graph import Graph, Operation, Tensor


def read_last(
    graph: Graph, fetches: Sequence[Tensor], live: Collection[Operation], settled: Sequence[bool]
) -> list[Tensor]:
    """The fetches, with a further read in place of those that are variables which `live` operations update.

    Args:
        graph: The graph of the step. The further reads are added to it.
        fetches: What is fetched.
        live: The operations that run.
        settled: For each fetch, whether the program says when it is read; see `are_settled`. Such a read stays.
    """
    reads = [None if stays else _read_of(tensor) for tensor, stays in zip(fetches, settled, strict=True)]
    if not any(reads):
        return list(fetches)
    updates: dict[Tensor, list[Operation]] = {}
    for op in live:
        for handle in updated_handles(op):
            updates.setdefault(handle, []).append(op)
    last: list[Tensor] = []
    for tensor, read in zip(fetches, reads, strict=True):
        after = [] if read is None else updates.get(read.inputs[0], [])
        last.append(_read_after(graph, read, after) if read is not None and after else tensor)
    return last


def are_settled(fetches: Sequence[Tensor], ops: Collection[Operation]) -> list[bool]:
    """For each fetch, whether one of `ops` waits by a control dependency for it, or for what it is a copy of."""
    awaited = {earlier for op in ops for earlier in op.control_inputs}
    return [not awaited.isdisjoint(_copied(tensor)) for tensor in fetches]


def _copied(tensor: Tensor) -> list[Operation]:
    """The operation that makes `tensor`; before it, while that is a copy, the operation that makes what is copied."""
    ops = [tensor.op]
    while ops[-1].type == "Identity":
        ops.append(ops[-1].inputs[0].op)
    return ops


def _read_of(tensor: Tensor) -> Operation | None:
    """The operation that reads the variable whose value `tensor` is, as it is; None for anything else."""
    op = _copied(tensor)[-1]
    return op if op.type == "ReadVariableOp" else None


def _read_after(graph: Graph, read: Operation, updates: Sequence[Operation]) -> Tensor:
    made = graph.add_operation(
        read.type,
        read.inputs,
        read.attrs,
        graph.unique_name("_last/" + read.name),
        control_inputs=sorted(updates, key=lambda op: op.id),
        exact_name=True,
        device=read.device,
        site=read.site,
    )
    made.outputs[0].set_shape(read.outputs[0].shape)
    return made.outputs[0]
