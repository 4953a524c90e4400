"""``tf.contrib.receptive_field``: which part of a picture an output of a convolutional network sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.exchange.graph_import import import_graph_def
from tfray.framework.allowed_uses import KINDS
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.traversal import predecessors, reachable_backward, topological_order
from tfray.framework.type_aliases import TensorLike
from tfray.library.platform import logging

__all__ = ["ReceptiveField", "compute_receptive_field_from_graph_def"]

# fmt: off
_UNCHANGED: Final = frozenset((
    "Abs", "Add", "AddN", "AddV2", "BiasAdd", "Cast", "Ceil", "ConcatV2", "Concat", "Div", "Dropout", "Elu", "Exp",
    "Floor", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "GreaterEqual", "Identity", "LRN", "LeakyRelu",
    "Log", "Maximum", "Minimum", "Mul", "Neg", "Pow", "RealDiv", "Relu", "Relu6", "Round", "Rsqrt", "Select", "Selu",
    "Sigmoid", "Sign", "Softmax", "Softplus", "Softsign", "Sqrt", "Square", "StopGradient", "Sub", "Tanh",
))
# fmt: on
"""Operations that see at each place what is at that place."""


class ReceptiveField:
    """What part of a picture an output sees.

    Args:
        size: Width and height of the part.
        stride: How much further it is at the next output.
        padding: By how much it begins beyond the left and the upper edge at the first output.

    Attributes:
        size: Likewise, as an array.
        stride: Likewise.
        padding: Likewise; elements are None where it depends on the size of the picture.
    """

    def __init__(self, size: Sequence[int], stride: Sequence[int], padding: Sequence[int | None]) -> None:
        self.size, self.stride, self.padding = np.asarray(size), np.asarray(stride), np.asarray(padding)

    def compute_input_center_coordinates(self, y: TensorLike, axis: Sequence[int] | None = None) -> Any:
        """The centres of what outputs see.

        Args:
            y: Places of outputs, shape ``[..., axes]``.
            axis: The axes that they have; all when None.

        Returns:
            Places in the picture, of the same shape.

        Raises:
            ValueError: `y` has another number of axes.
        """
        axes, places = self._checked(y, axis)
        return -self.padding[axes] + places * self.stride[axes] + (self.size[axes] - 1) / 2

    def compute_feature_coordinates(self, x: TensorLike, axis: Sequence[int] | None = None) -> Any:
        """The places of outputs that see parts with these centres; see `compute_input_center_coordinates`."""
        axes, places = self._checked(x, axis)
        return (places + self.padding[axes] + (1 - self.size[axes]) / 2) / self.stride[axes]

    def _checked(self, given: TensorLike, axis: Sequence[int] | None) -> tuple[list[int], Any]:
        axes, places = list(range(self.size.size) if axis is None else axis), np.asarray(given)
        if places.shape[-1] != len(axes):
            raise ValueError(
                f"Dimensionality of the coordinates ({places.shape[-1]}) does not match dimensionality of `axis` "
                f"({len(axes)})"
            )
        return axes, places

    def __iter__(self) -> Iterator[Any]:
        return iter(np.concatenate([self.size, self.stride, self.padding]))


class _Step(NamedTuple):
    """What an operation does along one axis. Of paddings the first is that at the beginning, the second both."""

    kernel: int = 1
    stride: int = 1
    padding: int | None = 0
    total: int | None = 0


class _Seen(NamedTuple):
    """What part of a tensor an output sees along one axis."""

    size: int
    stride: int
    padding: int | None

    def before(self, step: _Step) -> _Seen:
        """The part of what an operation takes, from that of what it gives."""
        known = self.padding is not None and step.padding is not None
        padding = step.stride * int(self.padding or 0) + int(step.padding or 0) if known else None
        return _Seen(step.stride * self.size + step.kernel - step.stride, self.stride * step.stride, padding)

    def joined(self, other: _Seen, direction: str) -> _Seen:
        """The larger part, seen along two ways."""
        if self.padding is not None and other.padding is not None:
            way = f"different in {direction} direction"
            if self.stride != other.stride:
                raise ValueError(f"Graph is not aligned since effective stride from different paths is {way}")
            if (self.size - 1) / 2 - self.padding != (other.size - 1) / 2 - other.padding:
                raise ValueError(f"Graph is not aligned since center shift from different paths is {way}")
        return other if other.size > self.size else self


def compute_receptive_field_from_graph_def(
    graph_def: Any,
    input_node: str | Tensor,
    output_node: str | Tensor,
    stop_propagation: Sequence[str] | None = None,
    input_resolution: Sequence[int] | None = None,
) -> ReceptiveField:
    """The part of a picture that an output of a convolutional network sees.

    Args:
        graph_def: The graph, or a message of it.
        input_node: The picture, or its name.
        output_node: The output, or its name.
        stop_propagation: What the names of operations begin with that do not count.
        input_resolution: Height and width of the picture; without them, some paddings are not known.

    Returns:
        A `ReceptiveField`, which can be unpacked: its sizes, strides and paddings, those in ``x`` first.

    Raises:
        ValueError: There is no such operation, or no way between them; an operation on the way does something else than
            convolutions, pooling and what leaves places as they are; or two ways see parts with other centres.
    """
    graph = graph_def
    if not isinstance(graph_def, Graph):
        graph = Graph()
        with graph.as_default():
            import_graph_def(graph_def, name="", allow=KINDS)  # it is not run
    first, last = (_named(graph, node, what) for node, what in ((input_node, "Input"), (output_node, "Output")))
    way = _way(first, last, tuple(stop_propagation or ()))
    steps = _steps(way, first, input_resolution)
    seen: dict[Operation, tuple[_Seen, _Seen]] = {last: (_Seen(1, 1, 0), _Seen(1, 1, 0))}
    for op in reversed(way):
        if op is first or op not in seen:
            continue
        part = tuple(each.before(step) for each, step in zip(seen[op], steps[op], strict=True))
        for other in dict.fromkeys(tensor.op for tensor in op.inputs):
            if other in steps:
                there = seen.get(other, part)
                seen[other] = there[0].joined(part[0], "vertical"), there[1].joined(part[1], "horizontal")
    y, x = seen[first]
    return ReceptiveField((x.size, y.size), (x.stride, y.stride), (x.padding, y.padding))


def _named(graph: Graph, node: str | Tensor, what: str) -> Operation:
    name = node.op.name if isinstance(node, Tensor) else node.partition(":")[0]
    if name not in graph:
        raise ValueError(f"{what} node was not found: {name}")
    return graph.get_operation_by_name(name)


def _way(first: Operation, last: Operation, stops: tuple[str, ...]) -> list[Operation]:
    """The operations between two, in order."""

    def before(op: Operation) -> list[Operation]:
        return [] if op is first else [each for each in predecessors(op) if not (stops and each.name.startswith(stops))]

    found: dict[Operation, None] = {}
    for op in topological_order(reachable_backward([last], before)):
        if op is first or any(tensor.op in found for tensor in op.inputs):
            found[op] = None
    if first not in found or last not in found:
        raise ValueError(f"Input node was not found: {last.name} does not depend on {first.name}")
    return list(found)


def _steps(
    way: Sequence[Operation], first: Operation, resolution: Sequence[int] | None
) -> dict[Operation, tuple[_Step, _Step]]:
    """What each operation does along both axes."""
    sizes: dict[Operation, Sequence[int] | None] = {first: resolution}
    found = {first: (_Step(), _Step())}
    for op in way:
        if op is first:
            continue
        size = next((sizes[tensor.op] for tensor in op.inputs if tensor.op in sizes), None)
        found[op] = _of_operation(op, size)
        sizes[op] = size and [
            (each + int(step.total or 0) - step.kernel) // step.stride + 1
            for each, step in zip(size, found[op], strict=True)
        ]
    return found


def _of_operation(op: Operation, size: Sequence[int] | None) -> tuple[_Step, _Step]:
    axes = (2, 3) if str(op.attrs.get("data_format", "")).startswith("NC") else (1, 2)
    if op.type in ("Pad", "PadV2", "MirrorPad"):
        paddings = constant_value(op.inputs[1])
        if paddings is None or np.any(np.delete(paddings, axes, 0)):
            raise ValueError(f"{op.name} does not pad heights and widths only, by what is known")
        rows = [paddings[axis] for axis in axes]
        top, left = (_Step(1, 1, int(row[0]), int(sum(row))) for row in rows)
        return top, left
    if op.type in ("Conv2D", "DepthwiseConv2dNative"):
        kernel = [
            (int(each or 0) - 1) * op.attrs["dilations"][axis] + 1
            for each, axis in zip(op.inputs[1].shape.as_list()[:2], axes, strict=True)
        ]
    elif op.type in ("AvgPool", "MaxPool"):
        kernel = [op.attrs["ksize"][axis] for axis in axes]
    elif op.type in _UNCHANGED:
        return _Step(), _Step()
    else:
        raise ValueError(f"Unknown layer for operation '{op.name}': {op.type}")
    strides: list[int] = [op.attrs["strides"][axis] for axis in axes]
    given: Sequence[int | None] = size or [None, None]
    y, x = (_Step(k, s, *_paddings(op, k, s, n, i)) for k, s, n, i in zip(kernel, strides, given, axes, strict=True))
    return y, x


def _paddings(op: Operation, kernel: int, stride: int, size: int | None, axis: int) -> tuple[int | None, int | None]:
    """The padding at the beginning, and that at both ends; None where it depends on a size that is not known."""
    padding = op.attrs["padding"]
    if padding == "EXPLICIT":
        begin, end = op.attrs["explicit_paddings"][2 * axis : 2 * axis + 2]
        return begin, begin + end
    if padding == "VALID" or (size is None and kernel == 1):
        return 0, 0
    if size is not None:
        total = max(kernel - (size % stride or stride), 0)
        return total // 2, total
    if stride == 1:
        return (kernel - 1) // 2, kernel - 1
    if stride == 2 and kernel % 2 == 0:
        return (kernel - 1) // 2, None
    logging.warning("the padding of %s depends on the size of its input: give input_resolution", op.name)
    return None, None
