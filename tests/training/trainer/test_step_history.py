"""The history of a run: a sequence of records that takes little memory, and a result that prints in a line."""

from __future__ import annotations

import copy
import pickle
import sys
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tfray.formats.step_stats import RunMetadata
from tfray.training.trainer import step_history
from tfray.training.trainer.step_history import StepHistory, StepRecord

NUMBERS = st.floats(allow_nan=False, width=64)
TIMES = st.floats(0, 1e6, width=32)  # to seven digits
RECORDS = st.lists(
    st.builds(
        StepRecord,
        st.integers(1, 1 << 40),
        st.fixed_dictionaries({"loss": NUMBERS, "accuracy": NUMBERS}),
        TIMES,
        st.integers(0, 1000),
        st.integers(0, 1 << 40),
        st.sets(st.integers(0, 1000)).map(lambda members: tuple(sorted(members))),
        st.integers(0, 1000),
        st.dictionaries(st.integers(0, 1000), TIMES),
        st.none() | st.builds(RunMetadata),
        bad_gradients=st.dictionaries(st.integers(0, 9), st.lists(st.text()).map(tuple), max_size=2),
    ),
    max_size=8,
)


@given(RECORDS, st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 1 << 40))
def test_a_history_reads_like_the_list_of_its_records(records, begin, end, step):
    history = StepHistory(records)
    assert len(history) == len(records)
    assert list(history) == records and history == records and history == StepHistory(records)
    assert history[begin:end] == records[begin:end] and history[::-1] == records[::-1]
    for index in range(-len(records), len(records)):
        assert history[index] == records[index]
    with pytest.raises(IndexError):
        history[len(records)]
    assert pickle.loads(pickle.dumps(history)) == copy.deepcopy(history) == records
    history.forget_from(step)
    while records and records[-1].step >= step:
        records.pop()
    assert history == records
    assert history != [*records, StepRecord(1, {}, 0.0)]
    history.append(StepRecord(7, {"loss": 1.0, "accuracy": 0.0}, 0.5))
    assert history[-1].step == 7 and history[-1].metrics["loss"] == 1.0


def test_summaries_are_not_kept():
    history = StepHistory([StepRecord(1, {}, 0.0, summary=b"an image")])
    assert history[0].summary == b""


def test_records_of_another_model_are_refused():
    history = StepHistory([StepRecord(1, {"loss": 0.0}, 0.0)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="loss"):
        history.append(StepRecord(2, {"cost": 0.0}, 0.0))


def bytes_of(value):
    """Bytes of an object of the history and what it refers to."""
    if isinstance(value, array):
        return sys.getsizeof(value)
    return sys.getsizeof(value) + sum(map(bytes_of, getattr(value, "__dict__", {}).values()))


MANY_STEPS = 20_000


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A run has very many steps.",
    happens="`print(result)` is one line.",
    promise="With loss, accuracy and the times of 4 replicas, a step takes less than 64 bytes of the history.",
)
@pytest.mark.parametrize(
    ("replicas", "metrics", "most"),
    [(0, 0, 16), (1, 1, 28), (1, 2, 36), (2, 2, 40), (4, 2, 50), (4, 3, 58), (64, 2, 310)],
)
def test_bytes_of_a_step(replicas, metrics, most):
    """As documented: 8 for a metric, 4 and an eighth for a replica, 8 to 16 for the rest."""
    history, names = StepHistory(), [f"metric{number}" for number in range(metrics)]
    for step in range(1, MANY_STEPS + 1):
        members = tuple(range(step % 2, replicas))
        record = StepRecord(
            step,
            dict.fromkeys(names, 1 / step),
            0.1,
            live=replicas,
            dropped=step // 2,
            members=members,
            staleness=step % 200,
            replica_s=dict.fromkeys(members, 0.25),
        )
        history.append(record)
    assert bytes_of(history) < most * MANY_STEPS and (most <= 64 or replicas > 4)
    assert history[-1].members == tuple(range(replicas)) and set(history[-1].replica_s) == set(range(replicas))
    assert history[-2].members == tuple(range(1, replicas)) and history[-2].staleness == 199


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A run on many replicas has very many steps.",
    happens="The history forgets the times of each replica in the oldest steps; see `tf.train.StepHistory`.",
    promise="A million steps on 64 replicas, with loss and accuracy, take less than 64 bytes each.",
)
def test_times_of_many_replicas_are_kept_for_the_newest_steps(monkeypatch):
    """Here with a tenth of the steps and of the limit."""
    kept = step_history.MOST_REPLICA_TIMES // 640  # steps
    monkeypatch.setattr(step_history, "MOST_REPLICA_TIMES", 64 * kept)
    history, members = StepHistory(), tuple(range(64))
    metrics, times_s = {"loss": 0.5, "accuracy": 0.75}, dict.fromkeys(members, 0.25)
    for step in range(1, 100_001):
        history.append(StepRecord(step, metrics, 0.125, 64, step // 2, members, step % 200, times_s))
    assert bytes_of(history) < 64 * 100_000
    told = [record.step for record in history[-2 * kept :] if record.replica_s]
    assert kept <= len(told) <= 1.25 * kept and told == list(range(told[0], 100_001))
    assert history[-1].replica_s == times_s and history[0] == StepRecord(
        1, metrics, 0.125, live=64, members=members, staleness=1
    )
    history.forget_from(50_000)
    history.append(StepRecord(50_000, metrics, 0.125, members=members, replica_s={63: 1.0}))
    assert history[-2].replica_s == {} and history[-1].replica_s == {63: 1.0}


def test_steps_that_are_not_numbered_in_order_are_kept():
    numbers = [7, 8, 3, 1 << 40, 5]
    assert [record.step for record in StepHistory(StepRecord(number, {}, 0.0) for number in numbers)] == numbers


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A run has very many steps.",
    happens="`print(result)` is one line.",
    promise="With loss, accuracy and the times of 4 replicas, a step takes less than 64 bytes of the history.",
)
def test_a_result_prints_in_one_line():
    records = [StepRecord(step, {"loss": 1 / step}, 0.1) for step in range(1, 20_001)]
    variables = {"w": np.ones((100, 100), np.float32), "b": np.ones(1000, np.float32)}
    result = tf.train.Result(records[-1].metrics, StepHistory(records), variables, 0, 2000.0)
    shown = repr(result)
    assert len(shown) < 250 and "\n" not in shown
    for part in ("'loss': 5e-05", "20000 steps, 1 to 20000", "2 of 44,000 bytes"):
        assert part in shown
