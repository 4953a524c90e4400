"""Graphs that TensorFlow has written, with what to feed and what it computed of it.

Files ``.npz.xz``, in which each graph has

    NAME/graph              the GraphDef
    NAME/names              JSON: the names of what steps fetch, and of what is run before, one after the other
    NAME/feed/STEP/TENSOR   what step STEP feeds
    NAME/result/STEP/INDEX  what its fetch INDEX returned, where that is a tensor

This module is also run by TensorFlow's interpreter (see `compare_with_tensorflow`): it knows NumPy alone.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class GoldenGraph:
    """One graph.

    Attributes:
        name: Its name.
        graph: The GraphDef, as bytes.
        fetches: Names of the tensors and operations that steps fetch.
        setup: Names of operations that are run before.
        steps: What each step feeds, by name of the tensor, and what its fetches return, by number.
    """

    name: str
    graph: bytes
    fetches: list[str]
    setup: list[str]
    steps: list[tuple[dict[str, np.ndarray], dict[int, np.ndarray]]] = field(default_factory=list)


def read_golden_graphs(path: Path) -> dict[str, GoldenGraph]:
    """The graphs of a file, by name."""
    found: dict[str, GoldenGraph] = {}
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as values:
        for key in values.files:
            name, _, rest = key.partition("/")
            if rest == "graph":
                names = json.loads(values[f"{name}/names"].tobytes())
                found[name] = GoldenGraph(name, values[key].tobytes(), names["fetches"], names["setup"])
                for _ in range(names["steps"]):
                    found[name].steps.append(({}, {}))
        for key in values.files:
            name, kind, *rest = key.split("/", 3)
            if kind == "feed":
                found[name].steps[int(rest[0])][0][rest[1]] = values[key]
            elif kind == "result":
                found[name].steps[int(rest[0])][1][int(rest[1])] = values[key]
    return found


def write_golden_graphs(path: Path, graphs: list[GoldenGraph]) -> None:
    """Write a file of graphs."""
    values = {}
    for each in graphs:
        names = {"fetches": each.fetches, "setup": each.setup, "steps": len(each.steps)}
        values[f"{each.name}/graph"] = np.frombuffer(each.graph, np.uint8)
        values[f"{each.name}/names"] = np.frombuffer(json.dumps(names).encode(), np.uint8)
        for step, (feeds, results) in enumerate(each.steps):
            values |= {f"{each.name}/feed/{step}/{tensor}": value for tensor, value in feeds.items()}
            values |= {f"{each.name}/result/{step}/{index}": value for index, value in results.items()}
    file = io.BytesIO()
    np.savez(file, **values)
    path.write_bytes(lzma.compress(file.getvalue()))


def difference(expected: np.ndarray, value: Any) -> str:
    """How a result differs from the expected one; empty when it does not."""
    value = np.asarray(value)
    if expected.dtype.kind in "SU":
        return "" if value.astype(expected.dtype.kind).tolist() == expected.tolist() else f"{value} is not {expected}"
    if value.shape != expected.shape or value.dtype != expected.dtype:
        return f"{value.dtype} {value.shape} is not {expected.dtype} {expected.shape}"
    if np.allclose(value, expected, rtol=1e-5, atol=1e-5):
        return ""
    return f"{value} is not {expected}"


def run_by_tensorflow(golden: GoldenGraph) -> list[str]:
    """What differs when TensorFlow runs a graph."""
    import tensorflow.compat.v1 as tf

    found = []
    graph = tf.GraphDef.FromString(golden.graph)
    config = tf.ConfigProto()
    # The sum of two Switches on one value becomes a product that is dead on both sides.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        try:
            tf.import_graph_def(graph, name="")
            for name in golden.setup:
                session.run(name)
            for step, (feeds, results) in enumerate(golden.steps):
                values = session.run(golden.fetches, feeds)
                for index, expected in results.items():
                    what = difference(expected, values[index])
                    found += [f"step {step}, {golden.fetches[index]}: {what}"] * bool(what)
        except (tf.errors.OpError, ValueError) as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def main() -> None:
    """Print what differs in the file of the first argument, as JSON."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    graphs = read_golden_graphs(Path(sys.argv[1]))
    differing = {name: run_by_tensorflow(golden) for name, golden in graphs.items()}
    print(json.dumps({name: what for name, what in differing.items() if what}))


if __name__ == "__main__":
    main()


def check_steps(golden: GoldenGraph, fetches: Any, session: Any) -> None:
    """Run the steps of a graph that has been imported: they give what they gave TensorFlow."""
    for operation in golden.setup:
        session.run(operation)
    for feeds, results in golden.steps:
        values = session.run(fetches, feeds)
        assert [difference(expected, values[index]) for index, expected in results.items()] == [""] * len(results)
