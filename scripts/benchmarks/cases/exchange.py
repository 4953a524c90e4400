"""Graphs as TensorFlow writes them: `nodes` operations that are imported and run once, and `mb` megabytes of constants.

Either side reads the same messages. The graph of many operations has rows of additions, products, tanh and the like,
with a constant for each, products of matrices with variables, and a tree that adds the rows up. ``small`` has a few
operations: what the other cases take beyond its memory is theirs. The frozen graph lies in a file. A program reads it,
parses it and imports it (``import_frozen``): its bytes, the message and the graph count, until the program lets go of
them. Or the side reads the file (``import_file``). Then the graph runs once.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Counted, Options, Step, Work

_SMALL: Final = 300
_ROW: Final = 24
"""Turns of a row: seven operations each, and two more where a matrix is multiplied, in every eighth."""
_SIDE: Final = 2000
"""Rows and columns of a matrix in the frozen graph: 16 MB."""

_GRAPH_DEF: Final = b"\x12"
"""How the field of a MetaGraphDef with its graph begins."""

_LENGTH_BYTES: Final = 5


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
        self._shape(tensor.tensor_shape, self.side)
        # So small that products of many matrices stay finite.
        scale = np.float32(1 / self.side)
        tensor.tensor_content = (self._random.random(self.side**2, np.float32) * scale).tobytes()
        return name

    def placeholder(self, rows: int) -> str:
        name = self.add("Placeholder", typed="dtype", name="x")
        self._shape(self.message.node[-1].attr["shape"].shape, rows)
        return name

    def variable(self) -> tuple[str, str]:
        """A variable's value, and what initialises it."""
        name = self.add("VarHandleOp", typed="dtype")
        attr = self.message.node[-1].attr
        self._shape(attr["shape"].shape, self.side)
        attr["shared_name"].s = name.encode()
        assign = self.add("AssignVariableOp", name, self.constant(), typed="dtype")
        return self.add("ReadVariableOp", name, typed="dtype"), assign

    def _shape(self, proto: Any, rows: int) -> None:
        for size in (rows, self.side):
            proto.dim.add(size=size)


def _of_many(tf: Any, nodes: int) -> Any:
    """The graph of many operations: ``x`` is fed, ``y`` fetched, ``init`` run before."""
    graph = _Writer(tf, 4)
    x = graph.placeholder(graph.side)
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


def _frozen_graph(tf: Any, mb: float) -> Iterator[bytes]:
    """A graph of products with constants, which ``x`` goes through, as messages: one after another they are one."""
    value = "x"
    for index in range(max(1, round(mb * 1e6 / (4 * _SIDE**2)))):
        graph = _Writer(tf, _SIDE)
        if not index:
            graph.placeholder(1)
        constant = graph.constant(f"constant_{index}")
        value = graph.add("MatMul", value, constant, name=f"product_{index}")
        yield graph.message.SerializeToString()
    graph = _Writer(tf, _SIDE)
    graph.add("Identity", value, name="y")
    yield graph.message.SerializeToString()


def _field_head(tag: bytes, size: int) -> bytes:
    """How a field of `size` bytes begins; the length takes as much room for any size."""
    octets = [size >> 7 * i & 0x7F | 0x80 for i in range(_LENGTH_BYTES)]
    return tag + bytes([*octets[:-1], octets[-1] & 0x7F])


@contextmanager
def _frozen(backend: Backend, options: Options, import_from: Callable[[Any, str], None], tag: bytes) -> Iterator[Step]:
    """Importing the frozen graph from a file: the graph itself, or as a field with this tag of another message."""
    tf = backend.tf
    with tempfile.TemporaryDirectory(prefix="tfray-bench-") as folder:
        path = os.path.join(folder, "frozen.pb")
        with open(path, "wb") as file:
            head_bytes = file.write(_field_head(tag, 0) if tag else b"")
            for message in _frozen_graph(tf, options["mb"]):
                file.write(message)
            size = file.tell()
            file.seek(0)
            file.write(_field_head(tag, size - head_bytes) if tag else b"")
        fed = np.ones((1, _SIDE), np.float32)

        def import_and_run() -> None:
            with tf.Graph().as_default():
                import_from(tf, path)
                with tf.Session() as session:
                    session.run("y:0", {"x:0": fed})

        def step() -> None:
            import_and_run()
            gc.collect()  # graphs are cycles: the one of the step before would count as well

        yield Counted(step, Work(bytes=size))


def _parse_and_import(tf: Any, path: str) -> None:
    message = tf.GraphDef()
    with open(path, "rb") as source:
        message.ParseFromString(source.read())
    tf.import_graph_def(message, name="")


def _import_file(tf: Any, path: str) -> None:
    tf.train.import_meta_graph(path)


CASES: Final = {
    "small": Case(_import_and_run, options={"nodes": _SMALL}),
    "import_and_run": Case(_import_and_run),
    "export": Case(_export),
    "import_frozen": Case(
        partial(_frozen, import_from=_parse_and_import, tag=b""),
        note="GraphDef.ParseFromString(file.read()) and import_graph_def; the program's bytes count once in the peak",
    ),
    "import_file": Case(
        partial(_frozen, import_from=_import_file, tag=_GRAPH_DEF), note="train.import_meta_graph(path)"
    ),
}
