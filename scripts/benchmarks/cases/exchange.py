"""Graphs as TensorFlow writes them: `nodes` operations that are imported and run once, and `mb` megabytes of constants.

Either side reads the same messages. The graph of many operations has rows of additions, products, tanh and the like,
with a constant for each, products of matrices with variables, and a tree that adds the rows up. ``small`` has a few
operations: what the other cases take beyond its memory is theirs. The frozen graph lies in a file, and is read,
imported and left alone: what a side keeps of it is what counts.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_SMALL: Final = 300
_ROW: Final = 24
"""Turns of a row: seven operations each, and two more where a matrix is multiplied, in every eighth."""
_SIDE: Final = 2000
"""Rows and columns of a matrix in the frozen graph: 16 MB."""


class _Writer:
    """Writes the nodes of a graph. All values are matrices of float32."""

    def __init__(self, tf: Any, side: int) -> None:
        self.message = tf.GraphDef()
        self.message.versions.producer = 2119
        self.side = side
        self._float = tf.float32.as_datatype_enum
        self._resource = tf.resource.as_datatype_enum
        self._random = np.random.default_rng(0)

    def add(self, op: str, *inputs: str, typed: str = "T", name: str = "") -> str:
        """Add a node, whose dtype is in the attribute `typed` if it has one. Returns its name."""
        node = self.message.node.add(op=op, name=name or f"node_{len(self.message.node)}")
        node.input.extend(inputs)
        if typed:
            node.attr[typed].type = self._float
        return str(node.name)

    def constant(self, name: str = "") -> str:
        name = self.add("Const", typed="dtype", name=name)
        tensor = self.message.node[-1].attr["value"].tensor
        tensor.dtype = self._float
        self._shape(tensor.tensor_shape)
        # So small that products of many matrices stay finite.
        scale = np.float32(1 / self.side)
        tensor.tensor_content = (self._random.random(self.side**2, np.float32) * scale).tobytes()
        return name

    def placeholder(self) -> str:
        name = self.add("Placeholder", typed="dtype", name="x")
        self._shape(self.message.node[-1].attr["shape"].shape)
        return name

    def variable(self) -> tuple[str, str]:
        """A variable's value, and what initialises it."""
        name = self.add("VarHandleOp", typed="dtype")
        attr = self.message.node[-1].attr
        self._shape(attr["shape"].shape)
        attr["shared_name"].s = name.encode()
        assign = self.add("AssignVariableOp", name, self.constant(), typed="dtype")
        return self.add("ReadVariableOp", name, typed="dtype"), assign

    def _shape(self, proto: Any) -> None:
        for _ in range(2):
            proto.dim.add(size=self.side)


def _of_many(tf: Any, nodes: int) -> Any:
    """The graph of many operations: ``x`` is fed, ``y`` fetched, ``init`` run before."""
    graph = _Writer(tf, 4)
    x = graph.placeholder()
    ends, assigns = [], []
    while len(graph.message.node) < nodes or not ends:
        value = x
        weights, assign = graph.variable()
        assigns.append(f"^{assign}")
        for turn in range(_ROW):
            if turn % 8 == 0:
                value = graph.add("MatMul", value, weights)
            constant = graph.constant()
            product = graph.add("Mul", graph.add("AddV2", value, constant), graph.add("Tanh", value))
            value = graph.add("Maximum", product, graph.add("Relu", graph.add("Sub", value, constant)))
        ends.append(value)
    while len(ends) > 1:
        left, right, *ends = ends
        ends.append(graph.add("AddV2", left, right))
    graph.add("Identity", ends[0], name="y")
    graph.add("NoOp", *assigns, typed="", name="init")
    return graph.message


@contextmanager
def _import_and_run(backend: Backend, options: Options) -> Iterator[Step]:
    tf = backend.tf
    data = _of_many(tf, options["nodes"]).SerializeToString()
    fed = np.ones((4, 4), np.float32)

    def import_and_run() -> None:
        message = tf.GraphDef.FromString(data)
        with tf.Graph().as_default():
            tf.import_graph_def(message, name="")
            with tf.Session() as session:
                session.run("init")
                session.run("y:0", {"x:0": fed})

    yield import_and_run


@contextmanager
def _export(backend: Backend, options: Options) -> Iterator[Step]:
    tf = backend.tf
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(_of_many(tf, options["nodes"]), name="")
        yield lambda: graph.as_graph_def().SerializeToString()


@contextmanager
def _import_frozen(backend: Backend, options: Options) -> Iterator[Step]:
    tf = backend.tf
    with tempfile.TemporaryDirectory(prefix="tfray-bench-") as folder:
        path = os.path.join(folder, "frozen.pb")
        with open(path, "wb") as file:
            value = "x"
            for index in range(max(1, round(options["mb"] * 1e6 / (4 * _SIDE**2)))):
                graph = _Writer(tf, _SIDE)  # messages one after another are one message
                if not index:
                    graph.placeholder()
                constant = graph.constant(f"constant_{index}")
                value = graph.add("MatMul", value, constant, name=f"product_{index}")
                file.write(graph.message.SerializeToString())

        def import_frozen() -> None:
            message = tf.GraphDef()
            with open(path, "rb") as source:
                message.ParseFromString(source.read())
            with tf.Graph().as_default():
                tf.import_graph_def(message, name="")
            del message
            gc.collect()  # graphs are cycles: the one of the step before would count as well

        yield import_frozen


CASES: Final = {
    "small": Case(_import_and_run, options={"nodes": _SMALL}),
    "import_and_run": Case(_import_and_run),
    "export": Case(_export),
    "import_frozen": Case(_import_frozen, note="read from a file, parsed and imported, not run"),
}
