"""The global step: the number of updates that a model has had, by all workers together."""

from __future__ import annotations

from typing import Any, Final

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.initializers import zeros_initializer
from tfray.library.variables.variable_scope import get_variable
from tfray.library.variables.variables import Variable, VariableAggregation

_GLOBAL_STEP_READ: Final = "global_step_read_op_cache"
"""The collection in which TensorFlow keeps it, too."""


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step in a session.

    Args:
        sess: The session.
        global_step_tensor: The global step, a variable or tensor.
    """
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Graph | None = None) -> Any | None:
    """The global step of a graph, or None.

    It is the variable in ``GraphKeys.GLOBAL_STEP``, otherwise the variable named ``global_step``.

    Args:
        graph: The graph; the default graph when None.

    Raises:
        InvalidArgumentError: There are several global steps, or it is not an integer scalar.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        names = ", ".join(variable.name for variable in found)
        raise InvalidArgumentError(f"the graph has {len(found)} global steps ({names}), expected one")
    if not found:
        found = [v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if v.op.name == GraphKeys.GLOBAL_STEP]
    if not found:
        return None
    assert_global_step(found[0])
    return found[0]


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the global step of a graph, an int64 scalar that starts at 0.

    Args:
        graph: The graph; the default graph when None.

    Raises:
        InvalidArgumentError: The graph has a global step already.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise InvalidArgumentError("'global_step' already exists: use get_global_step or get_or_create_global_step")
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            (),
            dtypes.int64,
            zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,  # all replicas make one step
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph. It is created if there is none.

    Args:
        graph: The graph; the default graph when None.
    """
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def get_or_create_global_step_read(graph: Graph | None = None) -> Tensor | None:
    """The global step as it is before the step that fetches it; None if the graph has none.

    A fetched variable has the value that the step leaves behind. Hooks, which do not know whether the step makes an
    update, ask for this scalar instead. It is made once, and kept in the graph's collection.

    Args:
        graph: The graph; the default graph when None.
    """
    graph = graph or get_default_graph()
    made: list[Tensor] = graph.get_collection(_GLOBAL_STEP_READ)
    step = get_global_step(graph)
    if made or step is None:
        return made[0] if made else None
    with graph.as_default(), graph.name_scope(None), graph.name_scope(f"{step.op.name}/"):
        read: Tensor = step + 0
    graph.add_to_collection(_GLOBAL_STEP_READ, read)
    return read


def increment_global_step(increment: int, graph: Graph | None = None) -> Tensor:
    """The global step after it has been made greater by `increment`.

    Raises:
        ValueError: The graph has none.
    """
    step = get_global_step(graph)
    if step is None:
        raise InvalidArgumentError(
            "Global step tensor should be created by tf.train.get_or_create_global_step before calling increment."
        )
    with (graph or get_default_graph()).as_default():
        result: Tensor = step.assign_add(increment)
        return result


def assert_global_step(global_step_tensor: Any) -> None:
    """Raise `TypeError` unless a tensor or variable is an integer scalar."""
    about = [getattr(global_step_tensor, name, None) for name in ("name", "dtype", "shape")]
    name, dtype, shape = about
    if dtype is None or shape is None or not dtype.is_integer or not shape.is_compatible_with([]):
        shown = global_step_tensor if dtype is None or shape is None else f"{name!r}, which is {dtype.name} {shape}"
        what = "is not scalar" if dtype is not None and dtype.is_integer else "does not have integer type"
        raise ArgumentError(f"the global step {what}: it is {shown}, expected an integer scalar")
