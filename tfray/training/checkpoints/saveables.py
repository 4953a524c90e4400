"""What a `Saver` saves: variables, parts of variables, and other resources of devices, each under a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfray.framework.effects import has_kernel
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.op_def import lookup
from tfray.framework.region import ops_within
from tfray.library.input.queues import QueueBase
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.saveable_resource import SaveableResource, saveable_of
from tfray.library.variables.variables import Variable
from tfray.ops.system.checkpoint_ops import Part, random_states
from tfray.training.checkpoints.saveable_objects import SaveableObject


@dataclass(frozen=True)
class Saveable:
    """One resource, or tensor of a `SaveableObject`, with its name in checkpoints.

    Attributes:
        name: Name of the tensor, or of the whole of which it is a part.
        handle: The resource, or the tensor.
        part: Which part of the whole, or None.
        expected: Dtype and static shape of a variable; None for other resources.
        source: The `SaveableObject` whose tensor it is; None for a resource.
    """

    name: str
    handle: Tensor
    part: Part
    expected: tuple[str, Sequence[int | None] | None] | None
    source: SaveableObject | None = None


def saveables_of(var_list: Any) -> list[Saveable]:
    """The resources that a ``var_list`` names.

    Args:
        var_list: Variables, partitioned variables, lists of the parts of one, queues, mutable tables,
            `SaveableResource` and `SaveableObject` objects: a sequence of them, or a dictionary from names in the
            checkpoint. The tensors of a `SaveableObject` have the names that it says.

    Raises:
        TypeError: Something in it cannot be saved, or a name is not a string.
        ValueError: Two of them have the same name, or one has two names.
    """
    if isinstance(var_list, Mapping):
        for name in var_list:
            if not isinstance(name, str):
                raise TypeError(f"var_list names {var_list[name]!r} {name!r}, which is not a string")
        found = [saveable for name, value in var_list.items() for saveable in _named(value, name)]
    else:
        found = [saveable for value in var_list for saveable in _named(value, None)]
        _check_names(found)  # nothing may stand twice in a list
    unique: dict[Any, Saveable] = {}
    for saveable in found:
        key = saveable.handle if saveable.source is None else (saveable.name, str(saveable.part))
        if unique.setdefault(key, saveable).name != saveable.name:
            raise ValueError(
                f"The same saveable will be restored with two names: {saveable.handle.op.name}: as "
                f"{unique[saveable.handle].name!r} and as {saveable.name!r}"
            )
    _check_names(list(unique.values()))
    return list(unique.values())


def _named(value: Any, name: str | None) -> Iterator[Saveable]:
    value = saveable_of(value)
    if isinstance(value, SaveableObject):
        for spec in value.specs:
            yield Saveable(spec.name, spec.tensor, spec.part, None, value)
    elif isinstance(value, SaveableResource):
        yield Saveable(name or value.name, value.handle, None, None)
    elif isinstance(value, QueueBase):
        yield Saveable(name or value.queue_ref.op.name, value.queue_ref, None, None)
    elif isinstance(value, (PartitionedVariable, list, tuple)):
        for part in value:
            yield from _named(part, name)
    elif isinstance(value, Variable):
        shape = value.shape
        expected = value.dtype.name, None if shape.rank is None else shape.as_list()
        info = value._save_slice_info
        if info is None:
            yield Saveable(name or value.op.name, value.handle, None, expected)
        else:
            part = list(info.full_shape), list(info.var_offset)
            yield Saveable(name or info.full_name, value.handle, part, (value.dtype.name, list(info.var_shape)))
    else:
        raise TypeError(f"{value!r} cannot be saved: expected a variable, or the parts of a partitioned one")


def _check_names(saveables: Iterable[Saveable]) -> None:
    seen: dict[str, Saveable] = {}
    for saveable in saveables:
        other = seen.setdefault(saveable.name, saveable)
        if other is not saveable and (other.part is None or saveable.part is None):
            raise ValueError(
                f"At least two variables have the same name: {saveable.name}: {other.handle.name} and "
                f"{saveable.handle.name}; "
                "give one of them another name with a dictionary as var_list"
            )


def by_device(saveables: Iterable[Saveable]) -> list[list[Saveable]]:
    """Saveables in groups of one device each: what no GPU holds, such as strings, keeps no other from one."""
    groups: dict[tuple[str, bool], list[Saveable]] = {}
    for saveable in saveables:
        handle = saveable.handle
        groups.setdefault((handle.device, has_kernel(handle.op, "GPU")), []).append(saveable)
    return list(groups.values())


def default_saveables(graph: Graph | None = None) -> list[Any]:
    """What a Saver without ``var_list`` saves: the global variables, and what programs have added to be saved."""
    graph = graph or get_default_graph()
    return [
        *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
        *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS),
    ]


def random_state_saveables(graph: Graph | None = None, name: str = "random_state") -> list[SaveableResource]:
    """The streams of all random operations of a graph, to be saved: one object for each device.

    With them, a restored model draws the same numbers as it would have drawn without the interruption.

    Args:
        graph: The graph; the default graph when None. Operations that are added later are not included.
        name: Their name in checkpoints.
    """
    graph = graph or get_default_graph()
    streams: dict[str, list[tuple[str, int, int]]] = {}
    for outer in graph.get_operations():
        for op in ops_within(outer):
            if _draws(op):
                streams.setdefault(outer.device, []).append((op.name, op.attrs["seed"], op.attrs["seed2"]))
    made = []
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(f"{name}/"):
        for index, (device, found) in enumerate(streams.items()):
            with graph.device(None), graph.device(device or None):
                handle = random_states(found, name="streams")
            made.append(SaveableResource(name if len(streams) == 1 else f"{name}_{index}", handle))
    return made


def _draws(op: Operation) -> bool:
    definition = lookup(op.type)
    seeds = op.attrs.get("seed"), op.attrs.get("seed2")
    return definition.stateful and all(type(seed) is int for seed in seeds)
