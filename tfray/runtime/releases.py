"""What steps of parameter shards release to the steps that come after them.

A step of a shard sends its variables to the replicas, waits for their gradients, and updates the variables. The updates
of the last layers are made while gradients of the first ones are still being computed. So a step *releases* each large
variable as soon as it will not touch it again. The next step begins before this one is over, takes what has been
released, and sends it: the parameters of one layer travel while the gradients of another do, in the other direction.

Everything else that a step reads or changes, such as the global step, is released when the step is over.

References:
    Zhang et al., "Poseidon: An Efficient Communication Architecture for Distributed Deep Learning on GPU Clusters",
    USENIX ATC 2017, section 3 (wait-free backpropagation).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Final

from tfray.framework.effects import access_of, accessed_handles, is_stateful, resource_name
from tfray.framework.graph import Graph, Operation
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.rendezvous import LARGE_BYTES

_STATELESS: Final = frozenset({"Variable", "Placeholder", "NoOp", "Send", "Recv", "ReplicaReduce"})
"""Types of operations that are called stateful, and neither read nor change what another step does."""

_OTHERS: Final = "*"
"""Stands for all state that is not in large variables. No operation has this name."""


@dataclass(frozen=True)
class Releases:
    """What a step releases before it is over.

    Attributes:
        keys: What a step waits for before it touches something, in the order of the variables; empty if all waits for
            the end of the step before. They look like keys of edges from the device to itself.
        of_ops: By operation: the keys for which it waits, and which are released when it has run.
        units: Keys of edges from replicas. What comes over those of one unit is needed together.
    """

    keys: tuple[str, ...] = ()
    of_ops: dict[Operation, frozenset[str]] = field(default_factory=dict)
    units: tuple[frozenset[str], ...] = ()


def find_releases(graph: Graph, device: str, replica: str) -> Releases:
    """What the steps of a shard's partition release.

    Args:
        graph: The operations of the partition.
        device: The shard.
        replica: The device that stands for every replica.
    """
    ops = graph.get_operations()
    large = [op for op in ops if op.type == "Variable" and _bytes_of(op) >= LARGE_BYTES]
    contributions = [op for op in ops if op.type == "Recv" and op.attr("source") == replica]
    if not large or not contributions:
        return Releases()
    names = {resource_name(op) for op in large}
    touched = {op: _touched(op, names) for op in ops}
    together = _Sets()
    for op, origins in _contributions_of_updates(ops, contributions).items():
        # A parameter and its momentum are released together. So are all that depend on one contribution.
        together.join([*(touched[op] or (_OTHERS,)), *origins])
    early = {together.root(name): str(EdgeKey.of_control(name, device, device)) for name in sorted(names)}
    early.pop(together.root(_OTHERS), None)
    if not early:
        return Releases()
    rest = str(EdgeKey.of_control(_OTHERS, device, device))
    roots = [together.root(resource_name(op)) for op in large]
    keys = (*dict.fromkeys(early[root] for root in roots if root in early), rest)

    def keys_of(resources: frozenset[str] | None) -> frozenset[str]:
        return frozenset(keys if resources is None else (early.get(together.root(each), rest) for each in resources))

    units: defaultdict[str, set[str]] = defaultdict(set)
    for recv in contributions:
        units[early.get(together.root(recv.attr("key")), rest)].add(recv.attr("key"))
    return Releases(
        keys,
        {op: keys_of(resources) for op, resources in touched.items() if resources != frozenset()},
        tuple(frozenset(unit) for unit in units.values()),
    )


def _bytes_of(variable: Operation) -> int:
    shape, dtype = variable.attr("shape"), variable.attr("dtype")
    return (shape.num_elements() or 0) * (dtype.size or 0)


def _touched(op: Operation, large: Container[str]) -> frozenset[str] | None:
    """The names of the large variables that an operation reads or changes, and `_OTHERS` for other state.

    None if that is not known.
    """
    access = access_of(op)
    if op.type in _STATELESS or not (access or is_stateful(op)):
        return frozenset()
    handles = accessed_handles(op)
    if op.op_def.regions or any(handle.op.type != "Variable" for handle in handles):
        return None
    names = [resource_name(handle.op) for handle in handles]
    return frozenset(name if name in large else _OTHERS for name in names) if access else frozenset([_OTHERS])


def _contributions_of_updates(
    ops: Iterable[Operation], contributions: Iterable[Operation]
) -> dict[Operation, frozenset[str]]:
    """For each operation that changes state: the contributions from which its values are computed, by their keys."""
    origins = {recv: frozenset([recv.attr("key")]) for recv in contributions}
    found: dict[Operation, frozenset[str]] = {}
    for op in ops:
        if op not in origins:
            origins[op] = frozenset().union(*(origins[tensor.op] for tensor in op.inputs))
        access = access_of(op)
        if access == "update" or (access is None and op.type not in _STATELESS and is_stateful(op)):
            found[op] = origins[op]
    return found


class _Sets:
    """Names that belong together."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def root(self, name: str) -> str:
        """The name that stands for all those with which `name` belongs."""
        while (parent := self._parents.get(name, name)) != name:
            name = parent
        return name

    def join(self, names: Iterable[str]) -> None:
        """Note that names belong together."""
        roots = [self.root(name) for name in names]
        for root in roots[1:]:
            self._parents[self.root(root)] = self.root(roots[0])
