"""What writes an operation in TensorFlow's form, where no rule for its type says it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from tfray.formats.graph_proto import GraphDef, NodeDef
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor


class Body(Protocol):
    """The nodes of a graph or of a function: see `tfray.exchange.to_tensorflow`."""

    message: GraphDef
    nodes: Any
    in_function: bool
    texts: dict[Tensor, str]
    taken: set[str]
    origins: dict[Tensor, Tensor]

    def add(self, op: Operation) -> None:
        """Add an operation."""

    def of_function(self, nodes: Any, names: Iterable[str]) -> Body:
        """The nodes of a function of the same graph, whose operations have these names."""

    def node(
        self, op: Operation, there: str, inputs: Sequence[str], attrs: Mapping[str, Any], name: str = ""
    ) -> NodeDef:
        """Add the node of an operation's name."""

    def part(self, op: Operation, suffix: str, there: str, inputs: Sequence[str], **attrs: Any) -> str:
        """The first output of a node that is needed besides."""

    def constant(self, op: Operation, suffix: str, value: Any, dtype: DType = dtypes.int32) -> str:
        """A constant that is needed besides."""

    def named(self, name: str, there: str, index: int, attrs: Mapping[str, Any]) -> str:
        """How an output of a node is named as an input."""

    def text(self, tensor: Tensor) -> str:
        """How a tensor is named as an input."""

    def give(self, op: Operation, there: str, attrs: Mapping[str, Any], outputs: Sequence[int] | None = None) -> None:
        """Let the node of an operation's name give the operation's outputs."""

    def made(self, op: Operation, there: str, inputs: Sequence[str], /, **attrs: Any) -> NodeDef:
        """Add the node of an operation's name, which gives the operation's outputs."""

    def add_part(self, op: Operation) -> None:
        """Add an operation of TensorFlow's. Raises `UnimplementedError` for one that only tfray has."""

    def by_rule(self, op: Operation) -> None:
        """Add an operation whose type there agrees, or differs by a `Rule`."""

    def effect(self, op: Operation, suffix: str, there: str, inputs: Sequence[str], **attrs: Any) -> str:
        """The name of a node without outputs that is needed besides."""

    def keep(self, op: Operation, made: NodeDef) -> None:
        """Let tfray read an operation as it is, and leave out the nodes that TensorFlow needs in its place."""


Export = Callable[[Any, Operation], None]

EXPORTS: Final[dict[str, Export]] = {}
"""What adds the nodes of an operation, by its type."""


def export(*types: str) -> Callable[[Export], Export]:
    """Decorator: what adds the nodes of operations of these types to a `Body`."""

    def declare(function: Export) -> Export:
        EXPORTS.update(dict.fromkeys(types, function))
        return function

    return declare
