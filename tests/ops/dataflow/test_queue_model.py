"""Queues against a plain model: any sequence of operations, waiting ones included, has the same outcome."""

from __future__ import annotations

import heapq
import random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tfray.errors import CancelledError, OutOfRangeError
from tfray.framework import dtypes
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.resources.queue_resource import PaddingQueue, PriorityQueue, Queue, ShuffleQueue

SCALAR = TensorShape([])


class Model:
    """A queue as the documentation has it, one operation after another, in lists.

    Attributes:
        outcomes: By operation: ``("ok", elements)`` or the kind of its error; what waits has none.
    """

    def __init__(self, capacity, keep_back=0, pick=lambda items: 0):
        self.capacity, self.keep_back, self.pick = capacity, keep_back, pick
        self.items, self.closed = [], False
        self.adding, self.taking = [], []
        self.outcomes = {}

    def add(self, number, elements):
        self.adding.append((number, list(elements)))
        self.settle()

    def take(self, number, count, up_to):
        self.taking.append((number, count, up_to, []))
        self.settle()

    def close(self, number, cancel):
        if not cancel:
            self.adding.append((number, None))
        else:
            self.closed = True
            self.outcomes[number] = ("ok", None)
            for other, _ in self.adding:
                self.outcomes[other] = CancelledError
            self.adding.clear()
        self.settle()

    def cancel(self, number):
        self.adding = [entry for entry in self.adding if entry[0] != number]
        for entry in self.taking:
            if entry[0] == number:
                self.give_back(entry[3])
        self.taking = [entry for entry in self.taking if entry[0] != number]
        self.outcomes[number] = CancelledError
        self.settle()

    def give_back(self, taken):
        self.items[:0] = taken
        taken.clear()

    def settle(self):
        changed = True
        while changed:
            changed = False
            while self.settle_first_add():
                changed = True
            while self.settle_first_take():
                changed = True

    def settle_first_add(self):
        if not self.adding:
            return False
        number, elements = self.adding[0]
        if self.closed:
            self.outcomes[number] = CancelledError
        elif elements is None:
            self.closed = True
            self.outcomes[number] = ("ok", None)
        elif len(self.items) < self.capacity:
            self.items.append(elements.pop(0))
            if elements:
                return True
            self.outcomes[number] = ("ok", None)
        else:
            return False
        self.adding.pop(0)
        return True

    def settle_first_take(self):
        if not self.taking:
            return False
        number, count, up_to, taken = self.taking[0]
        if self.closed and len(taken) + len(self.items) < count:
            self.give_back(taken)
            if not self.items or not up_to:
                self.outcomes[number] = OutOfRangeError
                self.taking.pop(0)
            else:
                self.taking[0] = (number, len(self.items), up_to, taken)
            return True
        if len(self.items) <= (0 if self.closed else self.keep_back):
            return False
        taken.append(self.items.pop(self.pick(self.items)))
        if len(taken) == count:
            self.outcomes[number] = ("ok", taken)
            self.taking.pop(0)
        return True


def outcome(attempt):
    """What came of a real operation, or None while it waits."""
    if not attempt.done:
        return None
    try:
        result = attempt.result()
    except (CancelledError, OutOfRangeError) as error:
        return type(error)
    return "ok", None if result is None else np.atleast_1d(result[-1]).tolist()


class AgainstModel(RuleBasedStateMachine):
    """Operations on a queue and on the model; after each, the outcomes agree."""

    def __init__(self):
        super().__init__()
        self.attempts = {}
        self.next_element = 0
        self.queue, self.model = self.make()

    def make(self):
        return Queue("q", 4, [dtypes.int64], [SCALAR]), Model(4)

    def elements(self, count):
        first = self.next_element
        self.next_element += count
        return list(range(first, first + count))

    def columns(self, elements):
        return [np.array(elements, np.int64)]

    def _start(self, attempt):
        number = len(self.attempts)
        self.attempts[number] = attempt
        return number

    @rule()
    def enqueue(self):
        (element,) = self.elements(1)
        attempt = self.queue.enqueue([column[0] for column in self.columns([element])])
        self.model.add(self._start(attempt), [element])

    @rule(count=st.integers(1, 7))
    def enqueue_many(self, count):
        elements = self.elements(count)
        self.model.add(self._start(self.queue.enqueue_many(self.columns(elements))), elements)

    @rule()
    def dequeue(self):
        self.model.take(self._start(self.queue.dequeue()), 1, False)

    @rule(count=st.integers(1, 7), up_to=st.booleans())
    def dequeue_many(self, count, up_to):
        self.model.take(self._start(self.queue.dequeue_many(count, up_to)), count, up_to)

    @rule(data=st.data())
    @precondition(lambda self: any(not attempt.done for attempt in self.attempts.values()))
    def cancel(self, data):
        waiting = [number for number, attempt in self.attempts.items() if not attempt.done]
        number = data.draw(st.sampled_from(waiting))
        self.attempts[number].cancel()
        self.model.cancel(number)

    @rule(cancel=st.booleans())
    @precondition(lambda self: len(self.attempts) > 6)
    def close(self, cancel):
        self.model.close(self._start(self.queue.close(cancel)), cancel)

    @invariant()
    def they_agree(self):
        assert self.queue.closed == self.model.closed
        assert self.queue.size == len(self.model.items)
        for number, attempt in self.attempts.items():
            assert outcome(attempt) == self.model.outcomes.get(number), number


class PaddingAgainstModel(AgainstModel):
    def make(self):
        return PaddingQueue("q", 4, [dtypes.int64], [SCALAR]), Model(4)


class PriorityAgainstModel(AgainstModel):
    """Elements are pairs of a priority and a number; the model takes the smallest, of equal ones the first."""

    def make(self):
        self.priorities = random.Random(0)
        queue = PriorityQueue("q", 4, [dtypes.int64, dtypes.int64], [SCALAR, SCALAR])
        return queue, PriorityModel(4)

    def elements(self, count):
        return [(self.priorities.randrange(3), number) for number in super().elements(count)]

    def columns(self, elements):
        priorities, numbers = zip(*elements, strict=True)
        return [np.array(priorities, np.int64), np.array(numbers, np.int64)]

    @invariant()
    def they_agree(self):
        assert self.queue.size == len(self.model.items)
        for number, attempt in self.attempts.items():
            expected = self.model.outcomes.get(number)
            if isinstance(expected, tuple) and expected[1] is not None:
                expected = "ok", [value for _, value in expected[1]]
            assert outcome(attempt) == expected


class PriorityModel(Model):
    def __init__(self, capacity):
        super().__init__(capacity, pick=lambda items: items.index(heapq.nsmallest(1, items, key=lambda e: e[0])[0]))


class ShuffleAgainstModel(AgainstModel):
    """In any order: what waits agrees with the model, and no element is lost or doubled."""

    def make(self):
        return ShuffleQueue("q", 6, [dtypes.int64], [SCALAR], 2, (1, 2)), Model(6, keep_back=2)

    @invariant()
    def they_agree(self):
        assert self.queue.size == len(self.model.items)
        given = []
        for number, attempt in self.attempts.items():
            real, expected = outcome(attempt), self.model.outcomes.get(number)
            if isinstance(real, tuple) and real[1] is not None:
                given += real[1]
                assert len(real[1]) == len(expected[1])
            else:
                assert real == expected
        assert len(set(given)) == len(given)


@pytest.mark.parametrize(
    "machine", [AgainstModel, PaddingAgainstModel, PriorityAgainstModel, ShuffleAgainstModel], ids=lambda m: m.__name__
)
def test_queues_behave_as_the_model(machine):
    case = machine.TestCase()
    case.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
    case.runTest()
