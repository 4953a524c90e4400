"""How branches, loops and the TensorArrays of loops become nodes of ONNX.

A TensorArray is no value there. One that was unstacked is the tensor of its rows. One that is written in order, before
a loop and by it, an element in each turn, is what the loop stacks; rows that were never written are zeros behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfray.errors import UnimplementedError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.region import Region, passed_inputs
from tfray.framework.tensor_shape import SCALAR
from tfray.onnx.onnx_body import Body, exports, used_nodes
from tfray.onnx.onnx_types import onnx_package


@dataclass(frozen=True)
class _Rows:
    """A TensorArray whose elements are the rows of a value."""

    value: str


@dataclass(frozen=True)
class _Begun:
    """A TensorArray of which the first elements are written.

    Attributes:
        size: The size with which it was made.
        rows: The written elements, each with a first axis of size 1.
    """

    size: Tensor
    rows: tuple[str, ...] = ()


def _graph(body: Body, inputs: Sequence[Any], outputs: Sequence[tuple[str, Any]], name: str) -> Any:
    """The graph of a branch or a body. Its outputs get names of their own, because it may pass on outer values."""
    declared = []
    for value, info in outputs:
        info.name = body.shared.free_name(f"{name}/out")
        body.named(info.name, value)
        declared.append(info)
    nodes, _ = used_nodes(body.nodes, [info.name for info in declared])
    return onnx_package().helper.make_graph(nodes, name, inputs, declared)


def _rows(body: Body, op: Operation) -> str:
    found = body.flows.get(op.inputs[0])
    if isinstance(found, _Begun) and found.rows:
        rows = body.emit("Concat", found.rows, axis=0)
        found = body.flows[op.inputs[0]] = _Rows(_filled(body, rows, found.size, op.outputs[0].dtype))
    if not isinstance(found, _Rows):
        raise UnimplementedError("the TensorArray is neither unstacked nor written in order")
    return found.value


# -- branches ------------------------------------------------------------------------------------------


@exports("Cond")
def _cond(body: Body, op: Operation) -> Any:
    graphs = {}
    for attr, name in (("then", "then_branch"), ("orelse", "else_branch")):
        region: Region = op.attrs[attr]
        inner = Body(body.shared, f"{op.name}/{attr}/")
        for tensor, outer in passed_inputs(op, region):
            inner.share(tensor, body, outer)
        inner.add_all(region.get_operations())
        outputs = [
            (inner.text(tensor), inner.value_info("", tensor.dtype, outer.shape))
            for tensor, outer in zip(region.outputs, op.outputs, strict=True)
        ]
        graphs[name] = _graph(inner, [], outputs, f"{op.name}/{attr}")
    return body.node("If", [body.text(op.inputs[0])], len(op.outputs), graphs)


# -- loops ---------------------------------------------------------------------------------------------


@exports("While")
def _while(body: Body, op: Operation) -> None:
    condition, region, count = op.attrs["condition"], op.attrs["body"], op.attrs["variables"]
    if len(op.outputs) > count + 1:
        raise UnimplementedError("it keeps values for gradients: export what does not depend on them")
    fixed = {i for i in range(count) if region.outputs[i] is region.inputs[i]}
    written = {i: _write(body, op, i) for i in range(count) if op.inputs[i].dtype is dtypes.variant and i not in fixed}
    plain = [i for i in range(count) if i not in fixed and i not in written]
    inner = Body(body.shared, f"{op.name}/body/")
    for i in [*fixed, *range(count, len(op.inputs))]:
        for regions in (condition, region):
            (inner if regions is region else body).share(regions.inputs[i], body, op.inputs[i])
    for i in plain:
        body.share(condition.inputs[i], body, op.inputs[i])
        inner.put(region.inputs[i], body.shared.free_name(region.inputs[i].op.name))
    body.add_all(condition.get_operations())
    first = body.text(condition.outputs[0])
    inner.add_all(o for o in region.get_operations() if not any(o is write.op for write in written.values()))
    follows = _condition_after(inner, op, plain, fixed)
    turn, again = (body.shared.free_name(f"{op.name}/{name}") for name in ("turn", "again"))
    inputs = [inner.value_info(turn, dtypes.int64, SCALAR), inner.value_info(again, dtypes.bool_, SCALAR)]
    inputs += [inner.value_info(inner.text(t), t.dtype, t.shape) for t in (region.inputs[i] for i in plain)]
    turns = inner.emit("Add", [turn, inner.constant(1)])
    kept = [(inner.text(region.outputs[i]), region.outputs[i].dtype, region.inputs[i].shape) for i in plain]
    counted = body.shared.free_name(f"{op.name}/turns")
    inputs.append(inner.value_info(counted, dtypes.int64, SCALAR))
    stacked = [(inner.text(write.value), write.value.dtype, write.value.shape) for write in written.values()]
    outputs = [(follows, dtypes.bool_, SCALAR), *kept, (turns, dtypes.int64, SCALAR), *stacked]
    declared = [(value, inner.value_info("", dtype, shape)) for value, dtype, shape in outputs]
    graph = _graph(inner, inputs, declared, f"{op.name}/body")
    given = ["", first, *(body.text(op.inputs[i]) for i in plain), body.constant(0)]
    made = body.node("Loop", given, len(plain) + 1 + len(written), {"body": graph})
    made = [made] if isinstance(made, str) else made
    for i in fixed:
        body.share(op.outputs[i + 1], body, op.inputs[i])
    for i, value in zip(plain, made, strict=False):
        body.put(op.outputs[i + 1], value)
    body.put(op.outputs[0], body.cast(made[len(plain)], dtypes.int64, dtypes.int32))
    for (i, write), value in zip(written.items(), made[len(plain) + 1 :], strict=True):
        rows = body.emit("Concat", [*write.begun.rows, value], axis=0) if write.begun.rows else value
        full = rows if write.is_full else _filled(body, rows, write.begun.size, write.value.dtype)
        body.flows[op.outputs[i + 1]] = _Rows(full)


@dataclass(frozen=True)
class _Write:
    """The write of an element to a TensorArray in each turn of a loop.

    Attributes:
        op: The operation.
        value: The element.
        begun: The TensorArray before the loop.
        is_full: Whether the loop ends only when all elements are written.
    """

    op: Operation
    value: Tensor
    begun: _Begun
    is_full: bool


def _write(body: Body, loop: Operation, index: int) -> _Write:
    """How a loop writes to its TensorArray variable `index`. Raises `UnimplementedError` if otherwise than in order."""
    region: Region = loop.attrs["body"]
    write, begun = region.outputs[index].op, body.flows.get(loop.inputs[index])
    if write.type == "TensorArrayWrite" and write.inputs[0] is region.inputs[index] and isinstance(begun, _Begun):
        place = write.inputs[1]
        counters = [i for i in range(loop.attrs["variables"]) if region.inputs[i] is place]
        if counters and _counts_up(loop, counters[0], len(begun.rows)):
            return _Write(write, write.inputs[2], begun, _runs_to(loop, counters[0], begun.size))
    raise UnimplementedError(f"the loop does not write {loop.inputs[index].op.name!r} in order, once in each turn")


def _counts_up(loop: Operation, index: int, first: int) -> bool:
    """Whether a variable of a loop is `first` and grows by 1 in each turn."""
    region: Region = loop.attrs["body"]
    start, step = loop.inputs[index].op, region.outputs[index].op
    if start.type != "Const" or np.any(start.attrs["value"] != first) or step.type != "Add":
        return False
    others = [tensor for tensor in step.inputs if tensor is not region.inputs[index]]
    return len(others) == 1 and others[0].op.type == "Const" and bool(np.all(others[0].op.attrs["value"] == 1))


def _runs_to(loop: Operation, index: int, size: Tensor) -> bool:
    """Whether a loop goes on exactly while a variable is less than `size`."""
    condition: Region = loop.attrs["condition"]
    test = condition.outputs[0].op
    if test.type != "Less" or test.inputs[0] is not condition.inputs[index]:
        return False
    passed = dict(passed_inputs(loop, condition))
    limit = passed.get(test.inputs[1], test.inputs[1])
    if limit.op.type == size.op.type == "Const":
        return bool(np.all(limit.op.attrs["value"] == size.op.attrs["value"]))
    return limit is size


def _condition_after(inner: Body, op: Operation, plain: Sequence[int], fixed: set[int]) -> str:
    """The condition of a loop on the variables that its body has computed."""
    condition, region = op.attrs["condition"], op.attrs["body"]
    after = Body(inner.shared, scope="next/")
    after.nodes = inner.nodes
    for i, tensor in enumerate(condition.inputs):
        if i in plain:
            after.share(tensor, inner, region.outputs[i])
        elif i in fixed or i >= op.attrs["variables"]:
            after.share(tensor, inner, region.inputs[i])
    after.add_all(condition.get_operations())
    return after.text(condition.outputs[0])


def _filled(body: Body, rows: str, size: Tensor, dtype: DType) -> str:
    """Rows with zeros behind them, as many as are missing to the size of the TensorArray."""
    shape = body.sizes(rows)
    there = body.emit("Slice", [shape, body.constant([0]), body.constant([1])])
    rest = body.emit("Slice", [shape, body.constant([1]), body.constant([np.iinfo(np.int64).max])])
    missing = body.emit("Max", [body.emit("Sub", [body.index(size), there]), body.constant([0])])
    wanted = body.emit("Concat", [missing, rest], axis=0)
    zeros = body.emit("Expand", [body.constant(0, dtype), wanted])
    return body.emit("Concat", [rows, zeros], axis=0)


# -- TensorArrays --------------------------------------------------------------------------------------


@exports("TensorArray")
def _tensor_array(body: Body, op: Operation) -> None:
    body.flows[op.outputs[0]] = _Begun(op.inputs[0])


@exports("TensorArrayIdentity")
def _identity(body: Body, op: Operation) -> None:
    body.share(op.outputs[0], body, op.inputs[0])


@exports("TensorArrayScatter")
def _scatter(body: Body, op: Operation) -> None:
    flow, indices, value = op.inputs
    begun = body.flows.get(flow)
    if not isinstance(begun, _Begun) or begun.rows or not _is_range(body, indices):
        raise UnimplementedError("it does not write all elements of a new TensorArray in order")
    body.flows[op.outputs[0]] = _Rows(body.text(value))


def _is_range(body: Body, indices: Tensor) -> bool:
    """Whether indices are 0, 1, 2 and so on."""
    if indices.op.type == "Range":
        start, _, step = map(body.known, indices.op.inputs)
        return start is not None and step is not None and int(start) == 0 and int(step) == 1
    known = body.known(indices)
    return known is not None and np.array_equal(known, np.arange(len(known)))


@exports("TensorArrayWrite")
def _write_next(body: Body, op: Operation) -> None:
    begun = body.flows.get(op.inputs[0])
    if not isinstance(begun, _Begun) or body.needed(op.inputs[1]) != len(begun.rows):
        raise UnimplementedError("it does not write the elements in order")
    row = body.emit("Unsqueeze", [body.text(op.inputs[2])], axes=[0])
    body.flows[op.outputs[0]] = _Begun(begun.size, (*begun.rows, row))


@exports("TensorArrayRead")
def _read(body: Body, op: Operation) -> str:
    return body.emit("Gather", [_rows(body, op), body.index(op.inputs[1])], axis=0)


@exports("TensorArrayGather")
def _gather(body: Body, op: Operation) -> str:
    flow, indices = op.inputs
    rows, limit = _rows(body, op), indices.op.inputs[1].op if indices.op.type == "Range" else None
    if limit is not None and limit.type == "TensorArraySize" and limit.inputs[0] is flow and _is_range(body, indices):
        return rows
    return body.emit("Gather", [rows, body.index(indices)], axis=0)


@exports("TensorArraySize")
def _size(body: Body, op: Operation) -> str:
    found = body.flows.get(op.inputs[0])
    if isinstance(found, _Begun):
        return body.text(found.size)
    size = body.emit("Gather", [body.sizes(_rows(body, op)), body.constant(0)], axis=0)
    return body.cast(size, dtypes.int64, dtypes.int32)
