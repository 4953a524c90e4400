"""The current graph's scopes and collections as functions: ``tf.device``, ``tf.name_scope`` and their like."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, NamedTuple

from tfray.framework.default_stack import DefaultStack
from tfray.framework.graph import DeviceFunction, Graph, Operation, Tensor, get_default_graph


class name_scope:
    """Context manager that puts new operations under ``name/``, or under ``default_name/`` when `name` is None.

    It gives the scope's name when it is entered.

    Args:
        name: Scope name; one that ends in ``/`` re-enters that very scope.
        default_name: Scope name when `name` is None.
        values: Tensors of the graph in which the scope is opened, when it is not the default graph.

    Raises:
        TypeError: When entered: `name` is neither a string nor None.
        ValueError: When entered: there are `values`, and neither `name` nor `default_name`; or they are of several
            graphs.
    """

    def __init__(self, name: str | None, default_name: str | None = None, values: Iterable[Any] | None = None) -> None:
        self._given, self._values = name, values
        self._name = default_name if name is None else name
        self._entered: list[ExitStack] = []

    @property
    def name(self) -> str | None:
        """`name`, or `default_name`, as it was given."""
        return self._name

    def __enter__(self) -> str:
        if not isinstance(self._given, str | None):
            raise TypeError(f"name_scope takes a name, not {self._given!r}")
        if self._name is None and self._values is not None:
            raise ValueError("name_scope with values needs a name or a default_name")
        graph, current = _graph_of(self._values), get_default_graph()
        if graph is None or current.admits(graph):
            graph = current
        with ExitStack() as stack:
            stack.enter_context(graph.as_default())
            scope: str = stack.enter_context(graph.name_scope(self._name))
            self._entered.append(stack.pop_all())
        return scope

    def __exit__(self, *raised: Any) -> None:
        self._entered.pop().__exit__(*raised)


def op_scope(values: Iterable[Any] | None, name: str | None, default_name: str | None = None) -> name_scope:
    """The older form of `name_scope`: `values` come first."""
    return name_scope(name, default_name, values)


def _graph_of(values: Iterable[Any] | None) -> Graph | None:
    """The graph that all values may be used in: the innermost, where some are of a region and others around it."""
    found: Graph | None = None
    for value in values or ():
        if not isinstance(value, (Tensor, Operation)) or value.graph is found:
            continue
        if found is None or value.graph.admits(found):
            found = value.graph
        elif not found.admits(value.graph):
            raise ValueError(f"name_scope: {value!r} is of another graph than the values before it")
    return found


def device(device_name_or_function: str | DeviceFunction | Any | None) -> Any:
    """Ask for a device for new operations; see `Graph.device`."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Iterable[Any] | None) -> Any:
    """Make new operations run after others; see `Graph.control_dependencies`."""
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """Put new operations on the device of `op`; see `Graph.colocate_with`."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name: str) -> Any:
    """Context manager that puts new queues, readers and other shared resources under a name of their own on devices.

    Args:
        container_name: Resources with equal shared names in different containers are different ones.
    """
    return get_default_graph().container(container_name)


def current_container() -> str:
    """The name that the innermost `container` gives, or ``""``."""
    name: str = get_default_graph().scope_attrs.get("_container", "")
    return name


def add_to_collection(name: str, value: Any) -> None:
    """Append `value` to a collection of the current graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Iterable[str] | str, value: Any) -> None:
    """Append `value` to several collections of the current graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the current graph; see `Graph.get_collection`."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list[Any]:
    """A collection of the current graph itself."""
    return get_default_graph().get_collection_ref(key)


_OF_GRAPH: Final = ("_devices", "_control", "_colocation", "_attr_scope")
"""Scopes that a graph has whichever thread builds it. Scopes of names belong to a thread."""


def scopes_of(graph: Graph) -> dict[str, Any]:
    """The devices, control dependencies, colocations and attributes that new operations of a graph would get."""
    return {name: getattr(graph, name) for name in _OF_GRAPH}


def take_up(graph: Graph, scopes: dict[str, Any]) -> None:
    """Let new operations get what `scopes_of` returned: so several threads build one graph in turns."""
    for name, value in scopes.items():
        setattr(graph, name, value)


# -- replicas of strategies -----------------------------------------------------------------------------


class ReplicaMode(NamedTuple):
    """A strategy of `tf.distribute`, and the replica of it that is being built.

    Attributes:
        strategy: The `tf.distribute.Strategy`.
        replica: The `tf.distribute.ReplicaContext`; None across replicas, as in ``strategy.scope()``.
        graph: The graph for which it holds, in this thread.
    """

    strategy: Any
    replica: Any
    graph: Graph | None


class NoStrategy:
    """Stands for the default strategy in code that is to work as if there were no other."""

    is_default = True


_modes = DefaultStack()


def replica_mode(strategy: Any, replica: Any) -> AbstractContextManager[Any]:
    """Context manager in which a strategy, and perhaps one of its replicas, is that of this thread and this graph."""
    return _modes.activate(ReplicaMode(strategy, replica, get_default_graph().root))


def innermost_mode() -> ReplicaMode | None:
    """The mode of this thread in the default graph, or None. Another graph, within it, begins without a strategy."""
    mode: ReplicaMode | None = _modes.top()
    return mode if mode is not None and mode.graph is get_default_graph().root else None


def current_mode() -> ReplicaMode | None:
    """The mode of this thread; None without a strategy, or with the default one, which changes nothing."""
    mode = innermost_mode()
    return None if mode is None or mode.strategy.is_default else mode


def merging(variable: Any) -> Any:
    """The context of the replica being built, if several replicas update `variable` together; None otherwise."""
    mode = current_mode()
    if mode is None or mode.replica is None or mode.strategy.num_replicas_in_sync == 1:
        return None
    return mode.replica if getattr(variable, "distribute_strategy", None) is mode.strategy else None
