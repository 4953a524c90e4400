"""Random programs for hypothesis, with values computed independently of compilation.

A program works on float32 tensors whose shapes are made of 1, 2, 3 and ``n``: a size that the graph does not know and
that differs from step to step. It may hold variables, each updated at most once in a step, so that what every read
must see is plain: the value before the step, or after the update where a control dependency says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

import tfray as tf
from tests.support.interpreter import interpret
from tfray.ops.state import state_ops

Symbolic = tuple[object, ...]
"""A shape in which ``"n"`` stands for the size that the graph does not know."""

SHAPES: tuple[Symbolic, ...] = ((), (3,), ("n",), (2, 3), ("n", 3), (3, "n"), (1, 3), (2, 2, 3))


@dataclass
class _State:
    variable: tf.Variable
    shape: Symbolic
    update: tf.Tensor | None = None
    kind: str = ""
    operand: tf.Tensor | None = None
    old_reads: list[tf.Tensor] = field(default_factory=list)
    new_reads: list[tf.Tensor] = field(default_factory=list)


@dataclass
class Program:
    """A graph, what to feed and fetch, and its variables."""

    graph: tf.Graph
    placeholders: list[tuple[tf.Tensor, Symbolic]]
    fetches: list[tf.Tensor]
    states: list[_State]

    def feeds(self, n: int, seed: int) -> dict[tf.Tensor, np.ndarray]:
        """Random values for every placeholder."""
        rng = np.random.default_rng(seed)
        return {t: rng.uniform(-2, 2, concrete(shape, n)).astype(np.float32) for t, shape in self.placeholders}

    def initial_values(self) -> list[np.ndarray]:
        """One value per variable."""
        rng = np.random.default_rng(len(self.states))
        return [rng.uniform(-1, 1, concrete(s.shape, 0)).astype(np.float32) for s in self.states]

    def expected(
        self, feeds: dict[tf.Tensor, np.ndarray], values: list[np.ndarray]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What one step fetches, and the variables after it."""
        known = dict(feeds)
        for state, value in zip(self.states, values, strict=True):
            known.update(dict.fromkeys(state.old_reads, value))
        after = list(values)
        updated = [i for i, state in enumerate(self.states) if state.update is not None]
        # In order of creation, an update depends on earlier updates only.
        for i in sorted(updated, key=lambda i: self.states[i].update.op.id):
            state = self.states[i]
            operand = np.array(interpret(state.operand, known))
            after[i] = operand if state.kind == "assign" else (values[i] + operand).astype(np.float32)
            known.update(dict.fromkeys([state.update, *state.new_reads], after[i]))
        fetched = interpret(self.fetches, known)
        last = {read: value for state, value in zip(self.states, after, strict=True) for read in state.old_reads}
        return [last.get(_source(t), value) for t, value in zip(self.fetches, fetched, strict=True)], after


def _source(tensor: tf.Tensor) -> tf.Tensor:
    """What the same value comes from: a fetched variable is read last, behind identities too."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def concrete(shape: Symbolic, n: int) -> tuple[int, ...]:
    """The shape with a size in place of ``"n"``."""
    return tuple(n if size == "n" else size for size in shape)


class _Builder:
    def __init__(self, draw: Callable, devices: int, stateful: bool) -> None:
        self.draw = draw
        self.devices = devices
        self.stateful = stateful
        self.tensors: list[tuple[tf.Tensor, Symbolic]] = []
        self.placeholders: list[tuple[tf.Tensor, Symbolic]] = []
        self.states: list[_State] = []

    def build(self, graph: tf.Graph, operations: int) -> Program:
        for shape in self.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)):
            tensor = tf.placeholder(tf.float32, [None if size == "n" else size for size in shape])
            self.placeholders.append((tensor, shape))
            self.tensors.append((tensor, shape))
        if self.stateful:
            self.add_variables()
        steps = [self.constant, self.unary, self.unary, self.binary, self.binary, self.reduce, self.reshape]
        steps += [self.matmul, self.concat, self.split, self.shape_of, self.slice, self.stack]
        steps += [self.branch, self.loop]
        if self.stateful:
            steps += [self.update, self.read_again, self.update, self.read_again]
        for _ in range(operations):
            with self.device():
                self.draw(st.sampled_from(steps))()
        fetches = self.draw(st.lists(st.sampled_from([t for t, _ in self.tensors]), min_size=1, max_size=5))
        fetches += [s.update for s in self.states if s.update is not None]
        computed = list(dict.fromkeys(t for t in fetches if t not in dict(self.placeholders)))
        return Program(graph, self.placeholders, computed or [tf.identity(fetches[0])], self.states)

    def device(self):
        return tf.device(self.device_name())

    def device_name(self) -> str:
        if self.devices < 2:
            return ""
        return self.draw(st.sampled_from(["", *(f"/cpu:{i}" for i in range(self.devices))]))

    def pick(self, fits: Callable[[Symbolic], bool] = lambda shape: True) -> tuple[tf.Tensor, Symbolic] | None:
        """One of the tensors so far, later ones more often."""
        candidates = [(t, s) for t, s in self.tensors if fits(s)]
        if not candidates:
            return None
        index = min(self.draw(st.integers(0, 2 * len(candidates))), len(candidates) - 1)
        return candidates[index]

    def add(self, tensor: tf.Tensor, shape: Symbolic) -> None:
        self.tensors.append((tensor, shape))

    # -- operations --------------------------------------------------------------------------------

    def constant(self) -> None:
        shape = self.draw(st.sampled_from([s for s in SHAPES if "n" not in s]))
        value = np.random.default_rng(self.draw(st.integers(0, 3))).uniform(-1, 1, shape).astype(np.float32)
        self.add(tf.constant(value), shape)

    def unary(self) -> None:
        function = self.draw(
            st.sampled_from(
                [
                    tf.tanh,
                    tf.negative,
                    tf.abs,
                    tf.sigmoid,
                    tf.square,
                    tf.identity,
                    tf.stop_gradient,
                    lambda x: tf.exp(tf.minimum(x, 1.0)),
                    lambda x: tf.maximum(x, 0.0),
                    lambda x: tf.cast(tf.cast(x, tf.float64), tf.float32),
                    lambda x: tf.where(x > 0.0, x, tf.zeros_like(x)),
                    lambda x: x * 2.0 + 1.0,
                ]
            )
        )
        x, shape = self.pick()
        self.add(function(x), shape)

    def binary(self) -> None:
        function = self.draw(
            st.sampled_from([tf.add, tf.subtract, tf.multiply, tf.maximum, tf.squared_difference, tf.minimum])
        )
        x, shape = self.pick()
        y, other = self.pick(lambda s: s == shape or s == () or (len(s) < len(shape) and shape[-len(s) :] == s))
        if self.draw(st.booleans()):
            x, y = y, x
        self.add(tf.tanh(function(x, y)), shape if len(shape) >= len(other) else other)

    def reduce(self) -> None:
        x, shape = self.pick(lambda s: len(s) > 0) or (None, ())
        if x is None:
            return
        axis = self.draw(st.integers(0, len(shape) - 1))
        keep = self.draw(st.booleans())
        function = self.draw(st.sampled_from([tf.reduce_sum, tf.reduce_mean, tf.reduce_max]))
        left = shape[:axis] + ((1,) if keep else ()) + shape[axis + 1 :]
        self.add(function(x, axis, keepdims=keep), left)

    def reshape(self) -> None:
        x, shape = self.pick(lambda s: len(s) > 0) or (None, ())
        if x is None:
            return
        match self.draw(st.integers(0, 3)):
            case 0:
                self.add(tf.transpose(x), shape[::-1])
            case 1:
                self.add(tf.expand_dims(x, 0), (1, *shape))
            case 2:
                self.add(tf.reshape(x, tf.shape(x)), shape)
            case 3:
                self.add(tf.reverse(x, [0]), shape)

    def matmul(self) -> None:
        a = self.pick(lambda s: len(s) == 2)
        b = a and self.pick(lambda s: len(s) == 2 and s[0] == a[1][1])
        if a and b:
            self.add(tf.tanh(tf.matmul(a[0], b[0])), (a[1][0], b[1][1]))

    def concat(self) -> None:
        x, shape = self.pick(lambda s: len(s) > 0 and s[0] != "n") or (None, ())
        if x is not None and shape[0] <= 3:
            y, _ = self.pick(lambda s: s == shape)
            self.add(tf.concat([x, y], 0), (2 * shape[0], *shape[1:]))

    def split(self) -> None:
        x, shape = self.pick(lambda s: len(s) > 0 and s[0] in (2, 4, 6)) or (None, ())
        if x is not None:
            for part in tf.split(x, 2, 0):
                self.add(part, (shape[0] // 2, *shape[1:]))

    def stack(self) -> None:
        x, shape = self.pick(lambda s: len(s) < 3) or (None, ())
        if x is None:
            return
        y, _ = self.pick(lambda s: s == shape)
        stacked = tf.stack([x, y, x])
        self.add(stacked, (3, *shape))
        self.add(tf.unstack(stacked, 3)[1], shape)

    def slice(self) -> None:
        x, shape = self.pick(lambda s: len(s) > 0 and s[0] in (2, 3)) or (None, ())
        if x is not None:
            self.add(x[1:], (shape[0] - 1, *shape[1:]))
            self.add(x[0], shape[1:])

    def shape_of(self) -> None:
        x, shape = self.pick()
        if self.draw(st.booleans()):
            self.add(tf.fill(tf.shape(x), 0.5), shape)
        else:
            self.add(tf.cast(tf.size(x), tf.float32), ())

    # -- branches and loops ------------------------------------------------------------------------

    def branch(self) -> None:
        x, shape = self.pick()
        other, _ = self.pick(lambda s: s == shape or s == ())
        decisive, _ = self.pick()
        first, second = self.part_of_a_region(), self.part_of_a_region()
        results = tf.cond(
            tf.reduce_sum(decisive) > self.draw(st.sampled_from([-1.0, 0.0, 1.0])),
            lambda: [first(x), second(x) * other],
            lambda: [x, first(second(other) + x)],
        )
        for result in results:
            self.add(tf.tanh(result), shape)

    def loop(self) -> None:
        x, shape = self.pick()
        other, _ = self.pick(lambda s: s == shape or s == ())
        part, turns = self.part_of_a_region(), self.draw(st.sampled_from([0, 1, 2, 3]))
        nested = self.draw(st.booleans())

        def body(i: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> list[tf.Tensor]:
            if nested:
                _, a = tf.while_loop(lambda j, _: j < i, lambda j, c: (j + 1, part(c) + other), [0, a])
            return [i + 1, tf.tanh(part(a) + b), tf.tanh(b + other * tf.cast(i, tf.float32))]

        limit = turns if self.draw(st.booleans()) else tf.size(x) % 4
        invariants = [tf.TensorShape([]), x.shape, x.shape]
        results = tf.while_loop(lambda i, *_: i < limit, body, [tf.constant(0), x, x * 0.5], invariants)
        for result in results[1:]:
            self.add(result, shape)

    def part_of_a_region(self) -> Callable[[tf.Tensor], tf.Tensor]:
        """A function of one tensor, on a device of its own perhaps."""
        function = self.draw(
            st.sampled_from([tf.tanh, tf.square, tf.identity, tf.negative, lambda x: x * 2.0, tf.stop_gradient])
        )
        device = self.device_name()

        def part(x: tf.Tensor) -> tf.Tensor:
            with tf.device(device):
                return tf.tanh(function(x))

        return part

    # -- state -------------------------------------------------------------------------------------

    def add_variables(self) -> None:
        for shape in self.draw(st.lists(st.sampled_from([(), (3,), (2, 3)]), min_size=1, max_size=3)):
            with self.device():
                variable = tf.Variable(np.zeros(shape, np.float32))
                read = tf.identity(variable)
            state = _State(variable, shape, old_reads=[variable.value()])
            self.states.append(state)
            self.add(read, shape)

    def update(self) -> None:
        state = self.draw(st.sampled_from(self.states))
        operand = self.pick(lambda s: s == state.shape)
        if state.update is not None or operand is None:
            return
        state.kind = self.draw(st.sampled_from(["assign", "assign_add"]))
        state.operand = operand[0]
        function = state_ops.assign if state.kind == "assign" else state_ops.assign_add
        state.update = function(state.variable, state.operand)
        self.add(state.update, state.shape)

    def read_again(self) -> None:
        state = self.draw(st.sampled_from(self.states))
        if state.update is None or self.draw(st.booleans()):
            # An identity ordered after another update may still see the value before this one's.
            read = state_ops.read_variable(state.variable)
            state.old_reads.append(read)
        else:
            with tf.control_dependencies([state.update]):
                read = state_ops.read_variable(state.variable)
            state.new_reads.append(read)
        self.add(read, state.shape)


@st.composite
def programs(draw, devices: int = 1, stateful: bool = False, max_operations: int = 25) -> Program:
    """A random program whose operations ask for one of so many CPU devices."""
    graph = tf.Graph()
    with graph.as_default():
        return _Builder(draw, devices, stateful).build(graph, draw(st.integers(1, max_operations)))


def assert_same(actual: Sequence[object], expected: Sequence[object]) -> None:
    """The same values, shapes and dtypes."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert np.shape(a) == np.shape(e)
        assert np.asarray(a).dtype == np.asarray(e).dtype
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)


def check_program(program: Program, config: tf.ConfigProto | None, sizes: Sequence[int]) -> None:
    """Run steps with each of these sizes, and compare with what they should give."""
    with tf.Session(graph=program.graph, config=config) as session:
        values = program.initial_values()
        for state, value in zip(program.states, values, strict=True):
            initial = state.variable.initializer.inputs[1]
            session.run(state.variable.initializer, {initial: value})
        kept = []
        for seed, n in enumerate(sizes):
            feeds = program.feeds(n, seed)
            given_feeds = {tensor: array.copy() for tensor, array in feeds.items()}
            expected, values = program.expected(feeds, values)
            actual = session.run(program.fetches, feeds)
            assert_same(actual, expected)
            kept.append((actual, [np.array(value) for value in actual]))
            for tensor, array in feeds.items():
                assert np.array_equal(array, given_feeds[tensor]), "a step wrote into what was fed"
        for actual, copies in kept:
            for array, copy in zip(actual, copies, strict=True):
                assert np.array_equal(array, copy), "a later step wrote into what was fetched"
        for state, value in zip(program.states, values, strict=True):
            assert_same([session.run(state.variable)], [value])
