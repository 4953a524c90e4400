"""Sparse updates of variables, and what is printed, in TensorFlow's form."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tfray.errors import UnimplementedError
from tfray.exchange.exports import Body, export
from tfray.exchange.node import behind
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
    if op.inputs:
        text = body.part(op, "StringFormat", "StringFormat", [body.text(tensor) for tensor in op.inputs], **kinds)
    else:
        text = body.part(op, "text", "Const", [], value=np.array(line.encode(), object), dtype=dtypes.string)
    stream = f"file://{op.attrs['path']}" if op.type == "PrintToFile" else op.attrs["output_stream"]
    attrs = {"output_stream": stream, "end": op.attrs["end"]}
    body.keep(op, body.node(op, "PrintV2", [text], attrs))
