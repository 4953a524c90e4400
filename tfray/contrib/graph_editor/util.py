"""Operations and tensors as lists, and placeholders in the places of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.tensor_shape import ShapeLike
from tfray.ops.arrays.source_ops import placeholder

__all__ = [
    "ControlOutputs",
    "get_consuming_ops",
    "get_generating_ops",
    "get_tensors",
    "make_list_of_op",
    "make_list_of_t",
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "placeholder_name",
]


class ControlOutputs:
    """Which operations of a graph run after which others because of control dependencies.

    Args:
        graph: The graph. Raises `TypeError` when it is none.
    """

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"expected a graph, got {graph!r}")
        self.graph = graph
        self.update()

    def update(self) -> ControlOutputs:
        """Look at the graph again; returns itself."""
        self._found: dict[Operation, list[Operation]] = {}
        for op in self.graph.get_operations():
            for before in op.control_inputs:
                self._found.setdefault(before, []).append(op)
        return self

    def get_all(self) -> dict[Operation, list[Operation]]:
        """For each operation after which others run, these."""
        return self._found

    def get(self, op: Operation) -> Sequence[Operation]:
        """The operations that run after one."""
        return self._found.get(op, ())


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """Operations as a list.

    Args:
        ops: A graph, an operation, or several.
        check_graph: Refuse operations of several graphs.
        allow_graph: Whether `ops` may be a graph: all of its operations.
        ignore_ts: Leave tensors out, which are refused otherwise.

    Raises:
        TypeError: `ops` is, or holds, something else.
        ValueError: They are of several graphs.
    """
    found = ops.get_operations() if isinstance(ops, Graph) and allow_graph else listed(ops)
    return _checked([each for each in found if not (ignore_ts and isinstance(each, Tensor))], Operation, check_graph)


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """Tensors as a list.

    Args:
        ts: A graph, a tensor, or several.
        check_graph: Refuse tensors of several graphs.
        allow_graph: Whether `ts` may be a graph: all of its tensors.
        ignore_ops: Leave operations out, which are refused otherwise.

    Raises:
        TypeError: `ts` is, or holds, something else.
        ValueError: They are of several graphs.
    """
    found = get_tensors(ts) if isinstance(ts, Graph) and allow_graph else listed(ts)
    return _checked([each for each in found if not (ignore_ops and isinstance(each, Operation))], Tensor, check_graph)


def listed(values: Any) -> list[Any]:
    """One thing, or several, as a list."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, Tensor) else [values]


def _checked(found: list[Any], kind: type, check_graph: bool) -> list[Any]:
    for each in found:
        if not isinstance(each, kind):
            raise TypeError(f"expected a tf.{kind.__name__}, got {each!r}")
    if check_graph and len({each.graph for each in found}) > 1:
        raise ValueError(f"{found} are of several graphs")
    return found


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph. Raises `TypeError` when it is none."""
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a graph, got {graph!r}")
    return [tensor for op in graph.get_operations() for tensor in op.outputs]


def get_generating_ops(ts: Any) -> list[Operation]:
    """The operations that make tensors."""
    return [tensor.op for tensor in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The operations that take tensors, each once."""
    return list(dict.fromkeys(op for tensor in make_list_of_t(ts, allow_graph=False) for op in tensor.consumers()))


def placeholder_name(t: Tensor | None = None, scope: str | None = None, prefix: str = "geph") -> str:
    """A name for a placeholder.

    Args:
        t: The tensor in whose place it is to be, which its name tells of.
        scope: Name scope; that of `t` when None.
        prefix: What the name begins with.

    Raises:
        TypeError: `t` is no tensor.
    """
    if t is None:
        return f"{scope.rstrip('/')}/{prefix}" if scope else prefix
    if not isinstance(t, Tensor):
        raise TypeError(f"expected a tf.Tensor, got {t!r}")
    within, _, name = t.op.name.rpartition("/")
    within = within if scope is None else scope.rstrip("/")
    if not name.startswith(f"{prefix}__"):
        name = f"{prefix}__{name}_{t.value_index}"
    return f"{within}/{name}" if within else name


def make_placeholder_from_tensor(t: Tensor, scope: str | None = None, prefix: str = "geph") -> Tensor:
    """A placeholder of the dtype and shape of a tensor, in the default graph; see `placeholder_name`."""
    return placeholder(t.dtype, t.shape, placeholder_name(t, scope, prefix))


def make_placeholder_from_dtype_and_shape(
    dtype: DTypeLike, shape: ShapeLike = None, scope: str | None = None, prefix: str = "geph"
) -> Tensor:
    """A placeholder of a dtype and a shape, in the default graph; see `placeholder_name`."""
    return placeholder(dtype, shape, placeholder_name(None, scope, prefix))
