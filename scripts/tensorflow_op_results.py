#!/usr/bin/env python
"""Write ``tfray/exchange/op_results.txt``: what each operation of TensorFlow returns, and whether it has effects.

Run it with an interpreter that has TensorFlow; tfray itself is not needed:

    /path/to/python scripts/tensorflow_op_results.py
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write the file. Its form is told in ``tfray/exchange/op_results.py``."""
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    lines = [line(op) for op in sorted(ops.op, key=lambda op: op.name) if not op.name.startswith("_")]
    path = ROOT / "tfray" / "exchange" / "op_results.txt"
    path.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} operations, {path.stat().st_size} bytes in {path}")


def line(op: op_def_pb2.OpDef) -> str:
    """One operation."""
    refers = any(arg.is_ref for arg in [*op.input_arg, *op.output_arg])
    flags = "!" * (op.is_stateful or refers) + "@" * any(attr.name == "shared_name" for attr in op.attr)
    return " ".join([op.name + flags, *(output(op, arg) for arg in op.output_arg)])


def output(op: op_def_pb2.OpDef, arg: op_def_pb2.OpDef.ArgDef) -> str:
    """One output."""
    defaults = {attr.name: attr.default_value for attr in op.attr if attr.HasField("default_value")}
    if arg.type_list_attr:
        kind = f"[{arg.type_list_attr}]"
    elif arg.type_attr:
        default = defaults.get(arg.type_attr)
        kind = arg.type_attr + (f"={default.type}" if default is not None else "")
    else:
        kind = str(arg.type)
    return f"{arg.name}:{'&' * arg.is_ref}{kind}" + (f"*{arg.number_attr}" if arg.number_attr else "")


if __name__ == "__main__":
    main()
