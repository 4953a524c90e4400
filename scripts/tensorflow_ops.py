#!/usr/bin/env python
"""Write ``tfray/exchange/tensorflow_ops.txt``: TensorFlow's definitions of its operation types.

Run it with interpreters that have TensorFlow 1.15 and 2.21; tfray itself is not needed. The first lists the attributes
that were there then, for the second to mark those that are newer:

    /path/to/python3.7 scripts/tensorflow_ops.py --attributes older.json
    /path/to/python scripts/tensorflow_ops.py --older older.json
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import dtypes

try:
    from tensorflow.python.client.pywrap_tf_session import TF_GetAllOpList, TF_GetBuffer
except ImportError:  # 1.15
    from tensorflow.python.pywrap_tensorflow import TF_GetAllOpList, TF_GetBuffer

ROOT = Path(__file__).resolve().parent.parent


def argument(arg: Any) -> str:
    """``name:type``, ``name:number*type`` or ``name:*types``, with ``&`` for a reference."""
    one = arg.type_attr or (dtypes.as_dtype(arg.type).name if arg.type else "")
    kind = f"*{arg.type_list_attr}" if arg.type_list_attr else f"{arg.number_attr}*{one}" if arg.number_attr else one
    return f"{arg.name}:{kind}{'&' if arg.is_ref else ''}"


def plain(value: Any) -> Any:
    """The value of an attribute for JSON: types by name, shapes as lists of sizes."""
    kind = value.WhichOneof("value")
    if kind == "list":
        ((_, values),) = value.list.ListFields() or ((None, ()),)
        field = value.list.ListFields()[0][0].name if value.list.ListFields() else ""
        return [one(field, each) for each in values]
    return one(kind, getattr(value, kind))


def one(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode()
    if kind == "type":
        return dtypes.as_dtype(value).name
    if kind == "shape":
        return None if value.unknown_rank else [dim.size for dim in value.dim]
    if kind == "f":
        return float(f"{value:.7g}")
    return value if kind in ("i", "b") else None


def attribute(attr: Any, is_newer: bool) -> str:
    """``name:type``, ``=default`` and the allowed values in braces; ``+`` behind a name that 1.15 does not have."""
    text = f"{attr.name}{'+' if is_newer else ''}:{attr.type}"
    if attr.HasField("default_value"):
        text += "=" + json.dumps(plain(attr.default_value), separators=(",", ":"))
    if attr.HasField("allowed_values") and attr.type == "string":
        text += "{" + ",".join(plain(attr.allowed_values)) + "}"
    return text


def line(op: op_def_pb2.OpDef, older: Any) -> str:
    """The columns of an operation type: name, with ``!`` for one that has a state; inputs, outputs, attributes."""
    name = op.name + "!" * op.is_stateful
    args = (" ".join(map(argument, each)) for each in (op.input_arg, op.output_arg))
    known = older.get(op.name)
    attrs = (attribute(attr, known is not None and attr.name not in known) for attr in op.attr)
    return "\t".join([name, *args, *attrs])


def main() -> None:
    """Write the file, or the list of attributes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attributes", type=Path, help="list the attributes of each type in this file, and end")
    parser.add_argument("--older", type=Path, help="such a list, of TensorFlow 1.15")
    options = parser.parse_args()
    listed = op_def_pb2.OpList.FromString(TF_GetBuffer(TF_GetAllOpList()))
    if options.attributes:
        options.attributes.write_text(json.dumps({op.name: [attr.name for attr in op.attr] for op in listed.op}))
        return
    older = json.loads(options.older.read_text())
    ops = sorted((op for op in listed.op if not op.name.startswith("_")), key=lambda op: op.name)
    path = ROOT / "tfray" / "exchange" / "tensorflow_ops.txt"
    text = "\n".join(line(op, older) for op in ops) + "\n"
    path.write_text(text)
    print(f"{text.count(chr(10))} types, {len(text)} bytes in {path}")


if __name__ == "__main__":
    main()
