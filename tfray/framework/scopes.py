"""The current graph's scopes and collections as functions: ``tf.device``, ``tf.name_scope`` and their like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tfray.framework.graph import DeviceFunction, Graph, Operation, Tensor, get_default_graph


@contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Iterable[Any] | None = None) -> Iterator[str]:
    """Put new operations under ``name/`` (or ``default_name/`` when `name` is None). Yields the scope's name.

    Args:
        name: Scope name; one that ends in ``/`` re-enters that very scope.
        default_name: Scope name when `name` is None.
        values: Tensors of the graph in which the scope is opened, when it is not the default graph.

    Raises:
        TypeError: `name` is neither a string nor None.
        ValueError: There are `values`, and neither `name` nor `default_name`; or they are of several graphs.
    """
    if not isinstance(name, str | None):
        raise TypeError(f"name_scope takes a name, not {name!r}")
    if name is None and default_name is None and values is not None:
        raise ValueError("name_scope with values needs a name or a default_name")
    graph, current = _graph_of(values), get_default_graph()
    if graph is None or current.admits(graph):
        graph = current
    with graph.as_default(), graph.name_scope(default_name if name is None else name) as scope:
        yield scope


@contextmanager
def op_scope(values: Iterable[Any] | None, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """The older form of `name_scope`: `values` come first."""
    with name_scope(name, default_name, values) as scope:
        yield scope


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
