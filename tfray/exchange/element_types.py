"""The dtypes of what lists and stacks of tensors hold, which TensorFlow's operations on them have to say.

Here a list, or the handle of a stack, is a variant, and knows of each element what it is. What is written to a list, or
read from it, tells the dtype of the elements of all lists that come from it, through branches, loops and sums.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Final

from tfray.errors import UnimplementedError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.region import Region, ops_within

_KNOWN: Final[weakref.WeakKeyDictionary[Graph, tuple[int, ElementTypes]]] = weakref.WeakKeyDictionary()


def element_type(flow: Tensor) -> DType:
    """The dtype of the elements of a list or stack; float32 where nothing tells it.

    Raises:
        UnimplementedError: It holds elements of several dtypes.
    """
    return _types(flow.graph).of(flow)


def type_there(tensor: Tensor) -> DType:
    """The dtype that TensorFlow has for a tensor: stacks, which are values here, are resources there."""
    is_stack = tensor.dtype is dtypes.variant and _types(tensor.graph).is_stack(tensor)
    return dtypes.resource if is_stack else tensor.dtype


def _types(graph: Graph) -> ElementTypes:
    root = graph.root
    known = _KNOWN.get(root)
    if known is None or known[0] != root.version:
        known = _KNOWN[root] = root.version, ElementTypes(root)
    return known[1]


class ElementTypes:
    """What the lists of a graph hold: lists that come from each other are joined, with what is known of them.

    Args:
        graph: The graph; its regions are looked at too.
    """

    def __init__(self, graph: Graph) -> None:
        self._joined: dict[Tensor, Tensor] = {}
        self._found: dict[Tensor, set[DType]] = {}
        self._inner: dict[Tensor, Tensor] = {}
        self._stacks: set[Tensor] = set()
        for outer in graph.get_operations():
            for op in ops_within(outer):
                self._note(op)

    def of(self, flow: Tensor) -> DType:
        """See `element_type`."""
        root = self._root(flow)
        found = self._found.get(root, {dtypes.float32})
        if len(found) > 1:
            names = ", ".join(sorted(dtype.name for dtype in found))
            raise UnimplementedError(
                f"the list {flow.name!r} has elements of several dtypes ({names}): TensorFlow's have elements of one"
            )
        is_of_stacks = root in self._inner and self.is_stack(self._inner[root])
        return dtypes.resource if is_of_stacks else next(iter(found))

    def is_stack(self, tensor: Tensor) -> bool:
        """Whether it is the handle of a stack."""
        return self._root(tensor) in self._stacks

    def _root(self, flow: Tensor) -> Tensor:
        while flow in self._joined:
            flow = self._joined[flow]
        return flow

    def _join(self, first: Tensor, second: Tensor) -> None:
        """Two tensors are the same list, or one comes from the other."""
        pairs = [(first, second)]
        for one, other in pairs:  # grows
            one, other = self._root(one), self._root(other)
            if one is other or one.dtype is not dtypes.variant or other.dtype is not dtypes.variant:
                continue
            self._joined[other] = one
            if other in self._stacks:
                self._stacks.add(one)
            if other in self._found:
                self._found.setdefault(one, set()).update(self._found.pop(other))
            if other in self._inner:
                inner = self._inner.pop(other)
                pairs.append((self._inner.setdefault(one, inner), inner))

    def _hold(self, flow: Tensor, element: Tensor) -> None:
        """A list holds such an element, which may be a list."""
        root = self._root(flow)
        self._found.setdefault(root, set()).add(element.dtype)
        if element.dtype is dtypes.variant:
            self._join(self._inner.setdefault(root, element), element)

    def _note(self, op: Operation) -> None:
        if op.type == "Cond":
            for branch in (op.attrs["then"], op.attrs["orelse"]):
                self._join_all(op.inputs[1:], branch.inputs)
                self._join_all(op.outputs, branch.outputs)
        elif op.type == "While":
            self._note_loop(op)
        elif op.type in ("StackV2", "StackPushV2", "StackPopV2"):
            self._note_stack(op)
        elif op.type in ("Identity", "IdentityN"):
            self._join_all(op.inputs, op.outputs)
        elif op.type in ("ProductOfStacks", "StackTimesMatrix"):
            for flow in (*op.inputs, *op.outputs):
                if flow.dtype is dtypes.variant:
                    self._hold(flow, op.inputs[-1])
        elif op.type.startswith("TensorArray"):
            named = list(_named(op))
            flows = [tensor for name, tensor in named if tensor.dtype is dtypes.variant and name not in _ELEMENTS]
            self._join_all(flows[:1] * len(flows), flows)
            for name, tensor in named:
                if name in _ELEMENTS:
                    self._hold(flows[0], tensor)

    def _note_stack(self, op: Operation) -> None:
        handle, *elements = [*op.inputs, *op.outputs] if op.type != "StackV2" else op.outputs
        self._stacks.add(self._root(handle))
        for element in elements:
            self._hold(handle, element)

    def _note_loop(self, op: Operation) -> None:
        body: Region = op.attrs["body"]
        count: int = op.attrs["variables"]
        for region in (op.attrs["condition"], body):
            self._join_all(op.inputs, region.inputs)
        self._join_all(op.outputs[1:], body.outputs[:count])
        self._join_all(body.inputs, body.outputs[:count])
        for kept, element in zip(op.outputs[1 + count :], body.outputs[count:], strict=True):
            self._hold(kept, element)

    def _join_all(self, first: Sequence[Tensor], second: Sequence[Tensor]) -> None:
        for one, other in zip(first, second, strict=False):
            self._join(one, other)


_ELEMENTS: Final = frozenset({"value", "element"})
"""How inputs and outputs are called that are elements of lists, or several of them."""


def _named(op: Operation) -> Iterator[tuple[str, Tensor]]:
    """The inputs and outputs of an operation, each with its argument's name."""
    for arguments, tensors in ((op.op_def.input_arguments, op.inputs), (op.op_def.output_arguments, op.outputs)):
        for index, tensor in enumerate(tensors):
            yield arguments[min(index, len(arguments) - 1)].name, tensor
