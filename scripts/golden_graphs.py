#!/usr/bin/env python
"""Write ``tests/golden/graphs/``: graphs that TensorFlow has made, and what it computes with them.

Run it with an interpreter that has TensorFlow 2.21; tfray itself is not needed:

    /path/to/python scripts/golden_graphs.py [NAME ...]

Each case has its graph in ``NAME.pb``. ``cases.json`` says what is fed and fetched, and which operation initialises and
trains; ``values.npz`` holds the fed arrays as ``NAME/feed/TENSOR``, and the results as ``NAME/fetch/INDEX``, those of
training as ``NAME/losses``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow.compat.v1 as tf
from graph_cases import *  # noqa: F403  (each module declares its cases)
from graph_cases.declaring import CASES, FED, FROZEN, LOW_LEVEL, RESOURCE

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "graphs"
STEPS = 20


def write(name: str, cases: dict[str, Any], values: dict[str, Any]) -> None:
    """Build, run and write one case."""
    FED.clear()
    (tf.disable_resource_variables, tf.enable_resource_variables)[name in RESOURCE]()
    (tf.enable_control_flow_v2, tf.disable_control_flow_v2)[name in LOW_LEVEL]()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        fetched = [tf.identity(tensor, name=f"result_{i}") for i, tensor in enumerate(CASES[name]())]
        fetches = [tensor.name for tensor in fetched]
        init = tf.global_variables_initializer() if tf.global_variables() else None
        if tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS):
            init = tf.tables_initializer()
        if init is not None:
            session.run(init)
        results = session.run(fetches, FED)
        described: dict[str, Any] = {"fetches": fetches}
        definition = graph.as_graph_def()
        if name in FROZEN:
            outputs = [tensor.op.name for tensor in fetched]
            definition = tf.graph_util.convert_variables_to_constants(session, definition, outputs)
        elif init is not None:
            described["init"] = init.name
        if name.startswith("trained"):
            session.run(init)
            losses = [session.run(["loss:0", "train"], FED)[0] for _ in range(STEPS)]
            values[f"{name}/losses"] = np.array(losses)
    held = {node.name for node in definition.node}
    fed = {key: value for key, value in FED.items() if key.partition(":")[0] in held}
    described["feeds"] = sorted(fed)
    (FOLDER / f"{name}.pb").write_bytes(definition.SerializeToString(deterministic=True))
    cases[name] = described
    values.update({f"{name}/feed/{key}": value for key, value in fed.items()})
    for index, result in enumerate(results):
        array = np.asarray(result)
        values[f"{name}/fetch/{index}"] = array.astype(bytes) if array.dtype == object else array


def main(names: list[str]) -> None:
    """Write the cases of these names, or all."""
    tf.disable_v2_behavior()
    FOLDER.mkdir(exist_ok=True)
    described, stored = FOLDER / "cases.json", FOLDER / "values.npz"
    cases = json.loads(described.read_text()) if described.exists() else {}
    values = dict(np.load(stored)) if stored.exists() else {}
    for name in names or CASES:
        values = {key: value for key, value in values.items() if key.partition("/")[0] != name}
        write(name, cases, values)
    described.write_text(json.dumps(cases, indent=0, sort_keys=True) + "\n")
    np.savez_compressed(stored, **values)
    print(f"{len(cases)} graphs, {sum(path.stat().st_size for path in FOLDER.iterdir())} bytes in {FOLDER}")


if __name__ == "__main__":
    main(sys.argv[1:])
