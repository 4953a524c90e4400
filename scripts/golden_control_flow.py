#!/usr/bin/env python
"""Write ``tests/golden/control_flow.npz``: graphs with TensorFlow 1's control flow, what to feed, and what they give.

The programs stand in ``tests/support/cases/control_flow_cases.py``. Run it with an interpreter that has TensorFlow;
tfray itself is not needed:

    /path/to/python scripts/golden_control_flow.py
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.cases.control_flow_cases import CASES, WITH_VARIABLES, Program  # noqa: E402


def write(name: str, program: Program, values: dict[str, np.ndarray]) -> None:
    """Run one program, and add its graph, feeds and results."""
    graph = tf.get_default_graph()
    sparse = (tf.IndexedSlices,)
    fetches = [tf.convert_to_tensor(each) if isinstance(each, sparse) else each for each in program.fetches]
    values[f"{name}/graph"] = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
    names = {"fetches": [each.name for each in fetches], "setup": [each.name for each in program.setup]}
    values[f"{name}/names"] = np.frombuffer(json.dumps(names).encode(), np.uint8)
    with tf.Session() as session:
        for each in program.setup:
            session.run(each)
        for step, feeds in enumerate(program.steps):
            for tensor, value in feeds.items():
                values[f"{name}/feed/{step}/{tensor.name}"] = np.asarray(value, tensor.dtype.as_numpy_dtype)
            for index, value in enumerate(session.run(fetches, feeds)):
                if value is not None:
                    is_text = isinstance(value, bytes)
                    values[f"{name}/result/{step}/{index}"] = np.asarray(value, "S" if is_text else None)


def main() -> None:
    """Write the file."""
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    values: dict[str, np.ndarray] = {}
    count = 0
    for name, build in CASES.items():
        for resource in (False, True) if name in WITH_VARIABLES else (False,):
            (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
            with tf.Graph().as_default():
                tf.set_random_seed(1)
                write(f"{name}_of_resources" if resource else name, build(tf), values)
            count += 1
    path = ROOT / "tests" / "golden" / "control_flow.npz"
    np.savez_compressed(path, **values)
    print(f"{count} graphs, {path.stat().st_size} bytes in {path}")


if __name__ == "__main__":
    main()
