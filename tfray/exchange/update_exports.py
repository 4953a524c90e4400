"""Sparse updates of variables, and what is printed, in TensorFlow's form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.exchange.exports import Body, export
from tfray.exchange.node import behind
from tfray.exchange.op_table import tensorflow_op
from tfray.framework import dtypes
from tfray.framework.graph import Operation

# -- updates -------------------------------------------------------------------------------------------


@export("SparseApplyGradientDescent")
def _descend_in_rows(body: Body, op: Operation) -> None:
    var, _, grad, indices = map(body.text, op.inputs)
    dtype = op.inputs[2].dtype
    step = body.part(op, "step", "Mul", [grad, _scalar(body, op, 1)], T=dtype)
    attrs = {"dtype": dtype, "Tindices": op.inputs[3].dtype}
    body.keep(op, body.node(op, "ResourceScatterSub", [var, indices, step], attrs))


IN_ROWS: Final = (
    "SparseApplyAdadelta",
    "SparseApplyAdagrad",
    "SparseApplyCenteredRMSProp",
    "SparseApplyFtrl",
    "SparseApplyMomentum",
    "SparseApplyProximalAdagrad",
    "SparseApplyProximalGradientDescent",
    "SparseApplyRMSProp",
)


@export(*IN_ROWS)
def _update_rows(body: Body, op: Operation) -> None:
    with distinct_rows(body, op):
        body.by_rule(op)
    body.keep(op, body.nodes[-1])


@contextmanager
def distinct_rows(body: Body, op: Operation) -> Iterator[None]:
    """Under it, the gradients of a row are one.

    An operation here adds them up; TensorFlow's takes one after another, and its optimizers add them up before it.
    """
    given = dict(zip((argument.name for argument in op.op_def.input_arguments), op.inputs, strict=True))
    grad, indices = given["grad"], given["indices"]
    old = body.text(grad), body.text(indices)
    kinds = {"T": indices.dtype, "out_idx": dtypes.int32}
    rows = body.part(op, "rows", "Unique", [old[1]], **kinds)
    group = body.named(rows.partition(":")[0], "Unique", 1, kinds)
    sizes = {"T": indices.dtype, "out_type": dtypes.int32}
    count = body.part(op, "count", "Size", [rows], **sizes)
    kinds = {"T": grad.dtype, "Tindices": dtypes.int32, "Tnumsegments": dtypes.int32}
    summed = body.part(op, "summed", "UnsortedSegmentSum", [old[0], group, count], **kinds)
    body.texts[grad], body.texts[indices] = summed, rows
    try:
        yield
    finally:
        body.texts[grad], body.texts[indices] = old


@export("SparseApplyAdam")
def _adam_in_rows(body: Body, op: Operation) -> None:
    """TensorFlow's is for dense gradients, to which this one, that decays all rows, is equal."""
    if op.attrs["lazy"]:
        raise UnimplementedError(f"{op.name!r} changes some rows only, TensorFlow's Adam all of them")
    *state, grad, indices = op.inputs
    dtype, shape = behind(op.inputs[0])
    if shape.rank is None or shape.as_list()[0] is None:
        raise UnimplementedError(f"{op.name!r} updates a variable whose number of rows is not known")
    rows = body.constant(op, "rows", shape.as_list()[0])
    kinds = {"T": dtype, "Tindices": indices.dtype, "Tnumsegments": dtypes.int32}
    dense = body.part(op, "dense", "UnsortedSegmentSum", [body.text(grad), body.text(indices), rows], **kinds)
    scalars = [_scalar(body, op, index) for index in range(3, len(state))]
    texts = [*map(body.text, state[:3]), *scalars, dense]
    body.keep(op, body.node(op, "ResourceApplyAdam", texts, {"T": dtype}))


def _scalar(body: Body, op: Operation, index: int) -> str:
    """An input that may be of another dtype here than the variable is."""
    scalar, dtype = op.inputs[index], behind(op.inputs[0])[0]
    text = body.text(scalar)
    name = op.op_def.input_arguments[index].name
    return text if scalar.dtype is dtype else body.part(op, name, "Cast", [text], SrcT=scalar.dtype, DstT=dtype)


@export("ApplyAdagradDA")
def _dual_averaging(body: Body, op: Operation) -> None:
    """The step is of the dtype of the variable here."""
    ours = [argument.name for argument in op.op_def.input_arguments]
    given = dict(zip(ours, op.inputs, strict=True))
    step, there = given["global_step"], f"Resource{op.type}"
    texts = {name: body.text(tensor) for name, tensor in given.items()}
    texts["global_step"] = body.part(op, "global_step", "Cast", [body.text(step)], SrcT=step.dtype, DstT=dtypes.int64)
    definition = tensorflow_op(there)
    assert definition is not None
    attrs = {"T": step.dtype} | ({"Tindices": given["indices"].dtype} if "indices" in given else {})
    body.keep(op, body.node(op, there, [texts[arg.name] for arg in definition.inputs], attrs))


@export("SparseApplyAdagradDA")
def _dual_averaging_in_rows(body: Body, op: Operation) -> None:
    with distinct_rows(body, op):
        _dual_averaging(body, op)


# -- reads ---------------------------------------------------------------------------------------------


@export("ReadOrDefault")
def _read_or_default(body: Body, op: Operation) -> None:
    """A branch of TensorFlow 1, which 1.15 and 2 take: the variable is read where it is initialised, or not at all."""
    if body.in_function:
        raise UnimplementedError(f"{op.name!r} is in a function")
    handle, default = map(body.text, op.inputs)
    dtype = op.outputs[0].dtype
    is_set = body.part(op, "is_initialized", "VarIsInitializedOp", [handle])
    sides = body.part(op, "sides", "Switch", [is_set, is_set], T=dtypes.bool_)
    taken = body.part(op, "taken", "Identity", [f"{sides}:1"], T=dtypes.bool_)
    value = body.part(op, "value", "ReadVariableOp", [handle, f"^{taken}"], dtype=dtype)
    other = body.part(op, "default", "Switch", [default, is_set], T=dtype)
    body.keep(op, body.made(op, "Merge", [other, value], T=dtype, N=2))


# -- text ----------------------------------------------------------------------------------------------

_SLOTS: Final = ("{}", "{tensor}", "\x01")


@export("PrintV2", "PrintToFile")
def _print(body: Body, op: Operation) -> None:
    """There the text is made by an operation of its own."""
    texts = op.attrs["texts"]
    slot = next(each for each in _SLOTS if not any(text and each in text for text in texts))
    line = op.attrs["sep"].join(slot if text is None else text for text in texts)
    kinds: dict[str, Any] = {"T": [tensor.dtype for tensor in op.inputs]}
    kinds |= {"template": line, "placeholder": slot, "summarize": op.attrs["summarize"]}
    if not any(texts) and [(each.dtype, each.shape.rank) for each in op.inputs] == [(dtypes.string, 0)]:
        text = body.text(op.inputs[0])  # as it is; beside others in quotes
    elif op.inputs:
        text = body.part(op, "StringFormat", "StringFormat", [body.text(tensor) for tensor in op.inputs], **kinds)
    else:
        text = body.part(op, "text", "Const", [], value=np.array(line.encode(), object), dtype=dtypes.string)
    stream = f"file://{op.attrs['path']}" if op.type == "PrintToFile" else op.attrs["output_stream"]
    attrs = {"output_stream": stream, "end": op.attrs["end"]}
    body.keep(op, body.node(op, "PrintV2", [text], attrs))
