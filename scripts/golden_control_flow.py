#!/usr/bin/env python
"""Write ``tests/golden/control_flow.npz.xz``: graphs with TensorFlow 1's control flow, and their results.

The programs stand in ``tests/support/cases``: ``control_flow_cases.py``, ``control_flow_state_cases.py`` and
``control_flow_array_cases.py``. Run it with an interpreter that has TensorFlow; tfray itself is not needed:

    /path/to/python scripts/golden_control_flow.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # whose recurrent cells are those of TensorFlow 1

import numpy as np
import tensorflow.compat.v1 as tf

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.cases import control_flow_array_cases, control_flow_state_cases  # noqa: E402, F401 (add cases)
from tests.support.cases.control_flow_cases import CASES, WITH_VARIABLES, Program  # noqa: E402
from tests.support.graphs.control_flow_graphs import GoldenGraph, write_golden_graphs  # noqa: E402


def run(name: str, program: Program) -> GoldenGraph:
    """Run one program in the default graph."""
    fetches = [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in program.fetches]
    graph = tf.get_default_graph().as_graph_def().SerializeToString()
    golden = GoldenGraph(name, graph, [each.name for each in fetches], [each.name for each in program.setup])
    with tf.Session() as session:
        for each in program.setup:
            session.run(each)
        for feeds in program.steps:
            results = session.run(fetches, feeds)
            fed = {each.name: np.asarray(value, each.dtype.as_numpy_dtype) for each, value in feeds.items()}
            golden.steps.append((fed, {i: array(value) for i, value in enumerate(results) if value is not None}))
    return golden


def array(value: object) -> np.ndarray:
    """A result as an array that a file can hold."""
    found = np.asarray(value)
    return found.astype("S") if found.dtype == object else found


def main() -> None:
    """Write the file."""
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    graphs = []
    for name, build in CASES.items():
        for resource in (False, True) if name in WITH_VARIABLES else (False,):
            (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
            with tf.Graph().as_default():
                tf.set_random_seed(1)
                graphs.append(run(f"{name}_of_resources" if resource else name, build(tf)))
    path = ROOT / "tests" / "golden" / "control_flow.npz.xz"
    write_golden_graphs(path, graphs)
    print(f"{len(graphs)} graphs, {path.stat().st_size} bytes in {path}")


if __name__ == "__main__":
    main()
