"""What graphs of TensorFlow compute, written down plainly: dead tensors and frames, and functions with If and While.

Values are numbers of int32. ``Print`` is the operation with an effect: a run notes what each one has printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

DEAD = object()
"""What passes where a Switch has gone the other way."""

ABSENT = object()
"""What a branch returns for a value that only the other one computes."""

PURE: dict[str, Callable[..., Any]] = {
    "Identity": lambda a: a,
    "AddV2": lambda a, b: np.int32(a + b),
    "Sub": lambda a, b: np.int32(a - b),
    "Mul": lambda a, b: np.int32(a * b),
    "Less": lambda a, b: np.bool_(a < b),
    "Equal": lambda a, b: np.bool_(a == b),
    "LogicalNot": lambda a: np.bool_(not a),
}


def constant(node: Any) -> Any:
    """The value of a Const."""
    tensor = node.attr["value"].tensor
    return np.bool_(tensor.bool_val[0]) if tensor.bool_val else np.int32(tensor.int_val[0] if tensor.int_val else 0)


class DeadTensorRun:
    """A step of a graph with dead tensors and frames.

    A value is that of a node in the turns of the loops in which it stands, outermost first.
    """

    def __init__(self, graph: Any, feeds: dict[str, Any]) -> None:
        self.nodes = {node.name: node for node in graph.node}
        self.feeds = feeds
        self.values: dict[tuple[str, tuple[int, ...]], Any] = {}
        self.printed: list[tuple[str, Any]] = []

    def fetch(self, name: str, turns: tuple[int, ...] = ()) -> Any:
        """The value of a tensor, or `DEAD`."""
        name, _, index = name.lstrip("^").partition(":")
        key = name, turns
        if key not in self.values:
            self.values[key] = self._compute(self.nodes[name], turns)
        values = self.values[key]
        return values[int(index or 0)] if isinstance(values, tuple) else values

    def _compute(self, node: Any, turns: tuple[int, ...]) -> Any:
        data = [each for each in node.input if not each.startswith("^")]
        if node.op == "Exit":
            return self._leave(data[0], turns)
        around = turns[:-1] if node.op == "Enter" else turns
        kinds = {self.nodes[each.partition(":")[0]].op: each for each in data}
        if node.op == "Merge" and "NextIteration" in kinds:
            enter, following = kinds["Enter"], kinds["NextIteration"]
            return self.fetch(following, (*turns[:-1], turns[-1] - 1)) if turns[-1] else self.fetch(enter, turns)
        waits = [self.fetch(each, around) for each in node.input if each.startswith("^")]
        values = [self.fetch(each, around) for each in data]
        if node.op == "ControlTrigger":
            return None
        if any(each is DEAD for each in waits):
            return DEAD
        if node.op == "Merge":
            return next(((each, np.int32(i)) for i, each in enumerate(values) if each is not DEAD), (DEAD, DEAD))
        if any(each is DEAD for each in values):
            return (DEAD, DEAD) if node.op == "Switch" else DEAD
        if node.op == "Switch":
            return (DEAD, values[0]) if values[1] else (values[0], DEAD)
        if node.op in ("Enter", "NextIteration", "LoopCond"):
            return values[0]
        if node.op == "Print":
            self.printed.append((node.name, values[0]))
            return values[0]
        return run_simple(node, values, self.feeds)

    def _leave(self, name: str, turns: tuple[int, ...]) -> Any:
        switch = self.nodes[name.partition(":")[0]]
        for turn in range(1000):
            condition = self.fetch(switch.input[1], (*turns, turn))
            if condition is DEAD:
                return DEAD
            if not condition:
                return self.fetch(name, (*turns, turn))
        raise AssertionError("a loop does not end")


class FunctionRun:
    """A step of a graph with functions."""

    def __init__(self, graph: Any, feeds: dict[str, Any]) -> None:
        self.nodes = {node.name: node for node in graph.node}
        self.functions = {function.signature.name: function for function in graph.library.function}
        self.feeds = feeds
        self.values: dict[str, Any] = {}
        self.printed: list[tuple[str, Any]] = []

    def fetch(self, name: str) -> Any:
        """The value of a tensor."""
        name, _, index = name.lstrip("^").partition(":")
        if name not in self.values:
            self.values[name] = self._compute(self.nodes[name], self.fetch)
        values = self.values[name]
        return values[int(index or 0)] if isinstance(values, tuple) else values

    def _compute(self, node: Any, fetch: Callable[[str], Any]) -> Any:
        for each in node.input:
            if each.startswith("^"):
                fetch(each)
        values = [fetch(each) for each in node.input if not each.startswith("^")]
        if node.op in ("If", "StatelessIf"):
            branch = "then_branch" if values[0] else "else_branch"
            return tuple(self._call(node.attr[branch].func.name, values[1:]))
        if node.op in ("While", "StatelessWhile"):
            while self._call(node.attr["cond"].func.name, values)[0]:
                values = self._call(node.attr["body"].func.name, values)
            return tuple(values)
        if node.op == "FakeParam":
            return ABSENT
        if node.op == "IdentityN":
            return tuple(values)
        assert not any(each is ABSENT for each in values) or node.op == "Identity", node.name
        if node.op == "Print":
            self.printed.append((node.name, values[0]))
            return values[0]
        return run_simple(node, values, self.feeds)

    def _call(self, name: str, args: Sequence[Any]) -> list[Any]:
        function = self.functions[name]
        nodes = {node.name: node for node in function.node_def}
        values = {arg.name: (value,) for arg, value in zip(function.signature.input_arg, args, strict=True)}

        def fetch(edge: str) -> Any:
            node, *rest = edge.lstrip("^").split(":")
            if node not in values:
                found = self._compute(nodes[node], fetch)
                values[node] = found if isinstance(found, tuple) else (found,)
            return values[node][int(rest[1]) if rest else 0] if values[node] else None

        for each in function.control_ret.values():
            fetch(f"^{each}")
        return [fetch(function.ret[result.name]) for result in function.signature.output_arg]


def run_simple(node: Any, values: Sequence[Any], feeds: dict[str, Any]) -> Any:
    """What an operation without control flow returns."""
    if node.op == "Placeholder":
        return feeds[node.name]
    if node.op == "Const":
        return constant(node)
    if node.op == "NoOp":
        return None
    with np.errstate(over="ignore"):
        return PURE[node.op](*values)
