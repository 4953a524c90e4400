"""Random programs as TensorFlow 1 would have written them: nested branches and loops of Switch, Merge and frames."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tfray.formats.graph_proto import GraphDef

INT32, BOOL = 3, 10


@dataclass(eq=False)
class Context:
    """A branch of a conditional, or a loop, within others.

    Attributes:
        outer: The one around it; None for the graph.
        pivot: What its operations without inputs wait for.
        predicate: Of a branch, its predicate.
        side: Of a branch, 1 where the predicate holds.
        frame: Of a loop, its frame.
    """

    outer: Context | None = None
    pivot: str = ""
    predicate: str = ""
    side: int = 0
    frame: str = ""


class LowLevelProgram:
    """A random graph of numbers of int32.

    Attributes:
        graph: The GraphDef.
        feeds: Names of its placeholders.
        fetches: Names of what it returns.
    """

    def __init__(self, random: Random, size: int = 12) -> None:
        self.random = random
        self.graph: Any = GraphDef()
        self.contexts: dict[str, Context] = {}
        self.predicates: set[str] = set()
        self.constant: set[str] = set()
        self.left = size
        top = Context()
        self.feeds = [self.add("Placeholder", [], top, dtype=INT32) for _ in range(2)]
        values = [*self.feeds, self.number(top)]
        while self.left > 0:
            self.statement(values, top, 0)
        self.fetches = values[len(self.feeds) :]
        self.graph.versions.producer = 1882

    def add(self, op: str, inputs: list[str], context: Context, **types: Any) -> str:
        """Add an operation; returns its name."""
        node = self.graph.node.add()
        node.name, node.op = f"n{len(self.graph.node)}", op
        node.input.extend(inputs)
        if context.frame and op not in ("Enter", "Exit") and inputs and all(each in self.constant for each in inputs):
            node.input.append(f"^{context.pivot}")  # or it would run once more than the turns
        if types.get("is_constant"):
            self.constant.add(node.name)
        for name, value in types.items():
            if isinstance(value, bool):
                node.attr[name].b = value
            elif isinstance(value, int):
                node.attr[name].i = value
                if name in ("T", "dtype"):
                    node.attr[name].type = value
            else:
                node.attr[name].s = value.encode()
        self.contexts[node.name] = context
        return node.name

    def number(self, context: Context) -> str:
        """A constant."""
        name = self.add("Const", [f"^{context.pivot}"] if context.pivot else [], context, dtype=INT32)
        tensor = self.graph.node[-1].attr["value"].tensor
        tensor.dtype = INT32
        tensor.tensor_shape.SetInParent()
        tensor.int_val.append(self.random.randint(-3, 3))
        return name

    def taken(self, value: str, context: Context, dtype: int = INT32) -> str:
        """A value where it can be read in a context."""
        home = self.contexts[value.partition(":")[0]]
        if home is context or context.outer is None:
            return value
        value = self.taken(value, context.outer, dtype)
        if context.frame:
            return self.enter(value, context, dtype, True)
        name = self.add("Switch", [value, context.predicate], context.outer, T=dtype)
        self.contexts[name] = context
        return f"{name}:{context.side}"

    def enter(self, value: str, context: Context, dtype: int, is_constant: bool) -> str:
        """A value in a loop."""
        return self.add("Enter", [value], context, T=dtype, frame_name=context.frame, is_constant=is_constant)

    def statement(self, values: list[str], context: Context, depth: int) -> None:
        """Add something that computes one or more values, which are appended."""
        self.left -= 1
        kind = self.random.choice(["number", "compute", "compute", "print", "branch", "branch", "loop"])
        if kind == "number":
            values.append(self.number(context))
        elif kind in ("branch", "loop") and depth < 3 and self.left > 0:
            values += (self.branches if kind == "branch" else self.loop)(values, context, depth)
        elif kind == "print":
            printed = self.taken(self.random.choice(values), context)
            name = self.add("Print", [printed, printed], context, T=INT32)
            self.graph.node[-1].attr["U"].list.type.append(INT32)
            value = self.taken(self.random.choice(values), context)
            values.append(self.random.choice([name, self.add("Identity", [value, f"^{name}"], context, T=INT32)]))
        else:
            op = self.random.choice(["AddV2", "Sub", "Mul"])
            values.append(
                self.add(op, [self.taken(self.random.choice(values), context) for _ in "ab"], context, T=INT32)
            )

    def predicate(self, values: list[str], context: Context) -> str:
        """A comparison of two values; now and then one that is there already."""
        known = [name for name, home in self.contexts.items() if name in self.predicates and home is context]
        if known and self.random.random() < 0.4:
            return self.random.choice(known)
        name = self.add("Less", [self.taken(self.random.choice(values), context) for _ in "ab"], context, T=INT32)
        self.predicates.add(name)
        return name

    def branches(self, values: list[str], context: Context, depth: int) -> list[str]:
        """A conditional of one or two results."""
        predicate = self.predicate(values, context)
        pivots = self.add("Switch", [predicate, predicate], context, T=BOOL)
        count = self.random.choice([1, 1, 2])
        returned = []
        for side in (0, 1):
            inner = Context(context, predicate=self.add("Identity", [predicate], context, T=BOOL), side=side)
            inner.pivot = self.add("Identity", [f"{pivots}:{side}"], inner, T=BOOL)
            mine = list(values)
            for _ in range(self.random.randint(0, 3)):
                self.statement(mine, inner, depth + 1)
            chosen = [mine[-1]] + [self.random.choice(mine) for _ in range(count - 1)]
            returned.append([self.taken(each, inner) for each in chosen])
        results = []
        for pair in zip(*returned, strict=True):
            merge = self.add("Merge", self.random.sample(pair, 2), context, T=INT32, N=2)
            results += [merge, f"{merge}:1"] if self.random.random() < 0.2 else [merge]
        return results

    def loop(self, values: list[str], context: Context, depth: int) -> list[str]:
        """A loop of a few turns over one or two values and a counter."""
        inner = Context(context, frame=f"frame{len(self.graph.node)}")
        start = [self.number(context), *(self.random.choice(values) for _ in range(self.random.choice([1, 2])))]
        enters = [self.enter(self.taken(each, context), inner, INT32, False) for each in start]
        merges = [self.add("Merge", [each, each], inner, T=INT32, N=2) for each in enters]
        inner.pivot = merges[0]
        limit = self.number(inner)
        goes_on = self.add("Less", [merges[0], limit], inner, T=INT32)
        condition = self.add("LoopCond", [goes_on], inner)
        switches = [self.add("Switch", [each, condition], inner, T=INT32) for each in merges]
        turned = [self.add("Identity", [f"{each}:1"], inner, T=INT32) for each in switches]
        inner.pivot = turned[0]
        mine = [*values, *turned[1:]]
        for _ in range(self.random.randint(1, 4)):
            self.statement(mine, inner, depth + 1)
        following = [self.add("AddV2", [turned[0], self.known(1, inner)], inner, T=INT32)]
        following += [self.taken(self.random.choice(mine[-3:]), inner) for _ in turned[1:]]
        nodes = {node.name: node for node in self.graph.node}
        for merge, each in zip(merges, following, strict=True):
            nodes[merge].input[1] = self.add("NextIteration", [self.turned(each, inner)], inner, T=INT32)
        exits = [self.add("Exit", [each], context, T=INT32) for each in switches]
        for each in exits:
            self.contexts[each] = context
        return exits

    def known(self, value: int, context: Context) -> str:
        """A constant of this value."""
        name = self.number(context)
        self.graph.node[-1].attr["value"].tensor.int_val[0] = value
        return name

    def turned(self, value: str, context: Context) -> str:
        """A value that is there only when a turn is: what enters a loop is there at its end too."""
        return self.add("AddV2", [value, self.known(0, context)], context, T=INT32)
