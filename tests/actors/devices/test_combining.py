"""Combining what several replicas contribute to a step on one device."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

from tests.support.processes import PATIENCE_S
from tfray.actors.devices.combining import Combination, OwnReceipt
from tfray.actors.links.messages import Combiner
from tfray.errors import AbortedError, DeadlineExceededError, UnavailableError
from tfray.ops.system.replica_ops import partial_reduction

SHARD = "/job:ps/task:0/device:CPU:0"
X, Y = f"x:0 /job:worker -> {SHARD}", f"y:0 /job:worker -> {SHARD}"


class Sent:
    """The sending side: keeps what is sent."""

    def __init__(self, error=None):
        self.values = {}
        self.error = error

    def room(self, key, destination, shape, dtype):
        assert destination == SHARD
        return np.empty(shape, dtype)

    def send(self, key, destination, value):
        assert destination == SHARD
        self.values[key] = np.array(value)

    def flush(self):
        pass

    def wait_until_received(self, timeout_s):
        if self.error is not None:
            raise self.error


class Run:
    """A combination that runs on a thread, and ends as a device would end it."""

    def __init__(self, replicas, reductions, sent):
        self.combination = Combination()
        self.replicas = replicas
        self.sent = sent

        def run():
            try:
                self.combination.run(reductions, sent)
            except (AbortedError, UnavailableError) as error:
                self.combination.end(error)
            else:
                self.combination.end(None)

        self.thread = threading.Thread(target=run)

    def add(self, replica, **values):
        receipt = OwnReceipt()
        names = {"x": X, "y": Y}
        self.combination.add(
            replica, [(names[name], np.float32(value)) for name, value in values.items()], receipt.told
        )
        return receipt

    def start(self):
        self.combination.begin(Combiner("/job:worker", self.replicas, (SHARD,), 1.0))
        self.thread.start()
        return self

    def join(self):
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


BOTH = {X: "mean", Y: "first"}


def test_each_sum_is_sent_when_all_have_contributed_to_it():
    run = Run((3, 1), BOTH, Sent())
    early = run.add(1, x=10)
    run.start()
    receipts = [early, run.add(3, x=1, y=5), run.add(1, y=6)]
    for receipt in receipts:
        receipt(PATIENCE_S)
    run.join()
    assert run.sent.values == {X: 11, Y: 5}


def test_nobody_is_told_before_the_shards_hold_it():
    dead = UnavailableError("the shard died", device=SHARD)
    run = Run((0, 1), BOTH, Sent(dead)).start()
    for receipt in [run.add(0, x=1, y=1), run.add(1, x=1, y=1)]:
        with pytest.raises(UnavailableError, match="the shard died"):
            receipt(PATIENCE_S)
    run.join()


def test_when_it_is_ended_all_are_told_and_later_ones_at_once():
    run = Run((0, 1), BOTH, Sent()).start()
    waiting = run.add(0, x=1, y=1)
    with pytest.raises(DeadlineExceededError, match="not been combined in time"):
        waiting(0.0)
    run.combination.end(AbortedError("replica 1 is gone"))
    for receipt in (waiting, run.add(1, x=1)):
        with pytest.raises(AbortedError, match="replica 1 is gone"):
            receipt(PATIENCE_S)
    run.join()
    assert not run.sent.values


@pytest.mark.parametrize(
    ("reduction", "values", "expected"),
    [
        ("mean", [[1, 2], [3, 4], [5, 6]], [9, 12]),
        ("first", [[1, 2], [3, 4]], [1, 2]),
        ("concat", [[1, 2], [3], []], [1, 2, 3]),
        ("concat_mean", [[[1, 2]], [[3, 4], [5, 6]]], [[1, 2], [3, 4], [5, 6]]),
        ("mean", [[7, 8]], [7, 8]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int64])
def test_partial_reductions(reduction, values, expected, dtype):
    arrays = [np.array(value, dtype) for value in values]
    result = partial_reduction(reduction, arrays, np.empty_like)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float64), expected)


def test_sums_of_16_bits_are_added_up_in_32():
    ones = [np.ones(3, ml_dtypes.bfloat16) for _ in range(512)]
    assert partial_reduction("mean", ones, np.empty_like).tolist() == [512.0] * 3
