"""Conditional accumulators: which gradients count, and when they can be taken."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import Task, timed_out, until_waiting, waiting
from tfray.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", [2.5, 4.5]), ("SUM", [5.0, 9.0])])
def test_gradients_are_averaged_or_added(session, dtype, reduction, expected):
    accumulator = tf.ConditionalAccumulator(dtype, shape=[2], reduction_type=reduction)
    assert accumulator.dtype is dtype and accumulator.name == "conditional_accumulator"
    take = accumulator.take_grad(2)
    assert take.shape.as_list() == [2] and take.dtype is dtype
    for value in ([1.0, 3.0], [4.0, 6.0]):
        session.run(accumulator.apply_grad(tf.cast(value, dtype)))
    assert session.run(accumulator.num_accumulated()) == 2
    value = session.run(take)
    assert value.astype(np.float64).tolist() == expected and value.dtype == dtype.numpy
    assert session.run(accumulator.num_accumulated()) == 0


def test_all_that_have_come_are_taken(session):
    accumulator = tf.ConditionalAccumulator(tf.float32)
    for value in (1.0, 2.0, 6.0):
        session.run(accumulator.apply_grad(value, local_step=0))
    assert session.run(accumulator.take_grad(1)) == 3.0


def test_late_gradients_are_dropped(session):
    accumulator = tf.ConditionalAccumulator(tf.float32, [])
    step = tf.placeholder(tf.int64, [])
    apply, take = accumulator.apply_grad(10.0, step), accumulator.take_grad(1)
    session.run(apply, {step: 0})
    assert session.run(take) == 10.0  # time step 1 begins
    session.run(apply, {step: 0})
    assert session.run(accumulator.num_accumulated()) == 0
    for local_step in (1, 2, 7):
        session.run(apply, {step: local_step})
    assert session.run(accumulator.num_accumulated()) == 3
    session.run(accumulator.set_global_step(5))
    session.run(apply, {step: 4})
    assert session.run(accumulator.num_accumulated()) == 3
    session.run(take)
    session.run(apply, {step: 5})  # now it is 6
    assert session.run(accumulator.num_accumulated()) == 0


def test_taking_waits_for_enough(session):
    accumulator = tf.ConditionalAccumulator(tf.float32, [], name="a")
    value = tf.placeholder(tf.float32, [])
    apply = accumulator.apply_grad(value, local_step=100)
    first = Task(session.run, accumulator.take_grad(3))
    until_waiting(session, "a", 0)
    second = Task(session.run, accumulator.take_grad(1))
    until_waiting(session, "a", 0, 2)
    for number in (1.0, 2.0):
        session.run(apply, {value: number})
    assert waiting(session, "a") == [2]  # in their order
    session.run(apply, {value: 6.0})
    assert first.result() == 3.0
    session.run(apply, {value: 8.0})
    assert second.result() == 8.0


def test_workers_and_a_chief_make_synchronous_steps(session):
    """As SyncReplicasOptimizer has it: gradients of all workers, one update, tokens to go on."""
    accumulator = tf.ConditionalAccumulator(tf.float32, [])
    tokens = tf.FIFOQueue(10, tf.int64, [()])
    weight, step = tf.Variable(10.0), tf.Variable(0, dtype=tf.int64)
    session.run(tf.global_variables_initializer())
    token = tf.placeholder(tf.int64, [])
    apply = accumulator.apply_grad(2.0 * weight, token)
    next_token = tokens.dequeue()
    update = weight.assign_sub(0.25 * accumulator.take_grad(3))
    with tf.control_dependencies([update]):
        advance = tokens.enqueue_many([tf.fill([3], step.assign_add(1))])

    def work():
        mine = 0
        while mine < 5:  # a fast worker may take two tokens of one step: it has to use both
            session.run(apply, {token: mine})
            mine = session.run(next_token)

    workers = [Task(work) for _ in range(3)]
    for _ in range(5):
        session.run(advance)
    for worker in workers:
        worker.result()
    assert session.run(weight) == 10.0 * 0.5**5 and session.run(step) == 5


def test_a_take_that_times_out_takes_nothing(session):
    accumulator = tf.ConditionalAccumulator(tf.float32, [], name="a")
    session.run(accumulator.apply_grad(4.0))
    timed_out(session, accumulator.take_grad(2), at="AccumulatorTakeGradient")
    assert waiting(session, "a") == [0]
    assert session.run(accumulator.take_grad(1)) == 4.0


def test_the_accumulator_owns_its_sum(session):
    accumulator = tf.ConditionalAccumulator(tf.float32, [2], reduction_type="SUM")
    fed = tf.placeholder(tf.float32, [2])
    array = np.array([1.0, 2.0], np.float32)
    session.run(accumulator.apply_grad(fed), {fed: array})
    array[:] = 50
    session.run(accumulator.apply_grad(fed), {fed: array})
    assert array.tolist() == [50, 50]
    assert session.run(accumulator.take_grad(1)).tolist() == [51, 52]


def test_what_does_not_fit_is_refused(session):
    accumulator = tf.ConditionalAccumulator(tf.float32, [2])
    with pytest.raises(ValueError, match="shape"):
        accumulator.apply_grad([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="float32"):
        accumulator.apply_grad(tf.constant([1, 2]))
    with pytest.raises(InvalidArgumentError, match=r"\(2,\), got one of shape \(3,\)"):
        session.run(accumulator.apply_grad(tf.placeholder_with_default(np.ones(3, np.float32), None)))
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        session.run(accumulator.take_grad(0))
    unknown = tf.ConditionalAccumulator(tf.float32)
    session.run(unknown.apply_grad([1.0]))
    with pytest.raises(InvalidArgumentError, match="shape"):
        session.run(unknown.apply_grad([1.0, 2.0]))
    with pytest.raises(InvalidArgumentError, match="MEAN"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MEDIAN")


def test_equal_shared_names_are_one_accumulator(session):
    first = tf.ConditionalAccumulator(tf.float32, [], shared_name="a")
    second = tf.ConditionalAccumulator(tf.float32, [], shared_name="a")
    session.run(first.apply_grad(1.0))
    assert session.run(second.take_grad(1)) == 1.0
    other = tf.ConditionalAccumulator(tf.float32, [], shared_name="a", reduction_type="SUM")
    with pytest.raises(InvalidArgumentError, match="reduction"):
        session.run(other.num_accumulated())


# -- sparse --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["MEAN", "SUM"])
def test_rows_are_averaged_over_the_gradients_that_have_them(session, reduction):
    accumulator = tf.SparseConditionalAccumulator(tf.float32, [5, 2], reduction_type=reduction)
    session.run(accumulator.apply_grad([0, 3], [[1.0, 2.0], [3.0, 4.0]], [5, 2]))
    session.run(accumulator.apply_grad([3, 1], [[5.0, 6.0], [7.0, 8.0]]))
    indices, values, shape = accumulator.take_grad(2)
    assert (indices.dtype, values.shape.as_list()) == (tf.int64, [None, 2])
    indices, values, shape = session.run([indices, values, shape])
    assert indices.tolist() == [0, 1, 3] and shape.tolist() == [5, 2]
    third = [4.0, 5.0] if reduction == "MEAN" else [8.0, 10.0]
    assert values.tolist() == [[1.0, 2.0], [7.0, 8.0], third] and values.dtype == np.float32


def test_equal_indices_of_one_gradient_add_up(session):
    accumulator = tf.SparseConditionalAccumulator(tf.float32)
    session.run(accumulator.apply_grad([2, 2], [[1.0], [2.0]]))
    session.run(accumulator.apply_grad([2], [[5.0]]))
    indices, values, shape = session.run(accumulator.take_grad(1))
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([2], [[4.0]], [-1, 1])


def test_gradients_of_an_embedding(session):
    table = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    session.run(table.initializer)
    (gradient,) = tf.gradients(tf.reduce_sum(tf.gather(table, [1, 3]) * 2.0), [table])
    assert isinstance(gradient, tf.IndexedSlices)
    accumulator = tf.SparseConditionalAccumulator(tf.float32, table.shape)
    session.run(accumulator.apply_indexed_slices_grad(gradient))
    session.run(accumulator.apply_indexed_slices_grad(gradient, local_step=0))
    taken = session.run(accumulator.take_indexed_slices_grad(2))
    assert taken.indices.tolist() == [1, 3] and taken.values.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    session.run(accumulator.apply_indexed_slices_grad(gradient, local_step=0))
    assert session.run(accumulator.num_accumulated()) == 0


@pytest.mark.parametrize(
    ("shape", "values", "found"),
    [
        ([], [1.0], [-1]),
        ((), [[1.0, 2.0]], [-1, 2]),
        ([3], [[1.0, 2.0]], [3, 2]),
        ([2, None], [[[1.0], [2.0]]], [2, 2, 1]),
        ([None, 2], [[[1.0], [2.0]]], [-1, 2, 1]),
    ],
)
def test_dimensions_behind_those_of_an_accumulator_are_free(session, shape, values, found):
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape)
    session.run(accumulator.apply_grad([0], values, None if shape else []))
    session.run(accumulator.apply_grad([0], values))
    with pytest.raises(InvalidArgumentError, match="accumulator"):
        session.run(accumulator.apply_grad([0], [[[[1.0], [2.0]]]]))
    taken = session.run(accumulator.take_indexed_slices_grad(2))
    assert taken.values.tolist() == values and taken.dense_shape.tolist() == found


@pytest.mark.parametrize(
    ("indices", "values", "shape", "words"),
    [
        ([0, 1], [[1.0, 2.0]], None, "2 non-empty input values, got 1"),
        ([[0]], [[1.0, 2.0]], None, r"should be vector but received shape: \(1, 1\)"),
        ([0], 1.0, None, "Values cannot be 0-dimensional"),
        ([4], [[1.0, 2.0]], None, "4 rows"),
        ([-1], [[1.0, 2.0]], None, "4 rows"),
        ([0], [[1.0, 2.0, 3.0]], None, "of shape"),
        ([0], [[1.0, 2.0]], [3, 2], "of shape"),
        ([0], [[1.0, 2.0]], [4, 3], "of shape"),
    ],
)
def test_rows_that_do_not_fit_are_refused(session, indices, values, shape, words):
    accumulator = tf.SparseConditionalAccumulator(tf.float32, [4, 2])
    with pytest.raises(InvalidArgumentError, match=f"accumulator.*{words}"):
        session.run(accumulator.apply_grad(indices, values, shape))
    assert session.run(accumulator.num_accumulated()) == 0
