"""Reads and updates of variables, dense and by rows."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tfray.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from tfray.framework import dtypes
from tfray.framework.graph import get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.gradients import gradients
from tfray.library.variables.variables import Variable, global_variables_initializer
from tfray.ops.arrays import array_ops, grouping_ops, partition_ops, slice_ops
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.control import control_flow_ops
from tfray.ops.kernels.row_sums import add_rows, group_equal, sum_groups
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops, state_ops
from tfray.runtime.device import cupy
from tfray.session import Session


def run_initialized(*fetches, feeds=None):
    with Session() as session:
        session.run(global_variables_initializer())
        results = [session.run(fetch, feeds) for fetch in fetches]
    return results[0] if len(results) == 1 else results


# -- dense -----------------------------------------------------------------------------------------------


def test_reads_see_the_value_from_before_the_updates_of_the_step():
    v = Variable([1.0, 2.0])
    before, after = run_initialized([v.value() * 1.0, v.assign_add([10.0, 10.0])])
    assert before.tolist() == [1, 2]
    assert after.tolist() == [11, 12]


def test_what_an_update_returns_stands_for_the_variable():
    v = Variable([1.0, 2.0])
    rows = Variable([0.0], validate_shape=False)
    moved = state_ops.assign_add(state_ops.assign(v, v * 0.5), [10.0, 20.0])
    cleared = state_ops.assign(rows, array_ops.zeros([4]), validate_shape=False)
    placed = sparse_state_ops.scatter_update(cleared, [1, 3], [7.0, 8.0])
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run(moved).tolist() == session.run(v).tolist() == [10.5, 21]
        assert session.run(placed).tolist() == session.run(rows).tolist() == [0, 7, 0, 8]


def test_what_an_update_returns_stands_for_the_variable_in_a_branch():
    v = Variable([1.0, 2.0])
    flag = placeholder(dtypes.bool_, [])
    before = state_ops.assign(v, [3.0, 3.0])
    result = control_flow_ops.cond(
        flag,
        lambda: state_ops.assign_add(state_ops.assign(v, [1.0, 1.0]), [1.0, 2.0]),
        lambda: state_ops.assign_sub(before, [1.0, 2.0]),
    )
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run(result, {flag: True}).tolist() == session.run(v).tolist() == [2, 3]
        assert session.run(result, {flag: False}).tolist() == session.run(v).tolist() == [2, 1]


def test_fetched_values_are_not_changed_by_later_updates():
    v = Variable([1.0, 2.0])
    first, _, later = run_initialized(v, v.assign_add([1.0, 1.0]), v)
    assert first.tolist() == [1, 2]
    assert later.tolist() == [2, 3]


def test_a_single_partition_of_a_variable_keeps_the_value_it_has_read(graph):
    v = Variable([1.0, 2.0])
    (part,) = partition_ops.dynamic_partition(v, [0, 0], 1)
    with graph.control_dependencies([part]):
        update = v.assign_add([1.0, 1.0])
    read, updated = run_initialized([part, update])
    assert (read.tolist(), updated.tolist()) == ([1, 2], [2, 3])


def test_updates_of_one_variable_follow_control_dependencies(graph):
    v = Variable(3)
    with graph.control_dependencies([v.assign_add(4)]):
        doubled = v.assign(v * 2)
    assert run_initialized(doubled, v) == [14, 14]


@pytest.mark.parametrize("update", [state_ops.assign, state_ops.assign_add, state_ops.assign_sub])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.int64, dtypes.complex64])
def test_dense_updates(update, dtype):
    old, value = np.array([[5, 6]], dtype.numpy), np.array([[2, 4]], dtype.numpy)
    v = Variable(constant(old))
    result = update(v, constant(value))
    assert result.shape == [1, 2]
    computed = run_initialized(result)
    expected = {"assign": value, "assign_add": old + value, "assign_sub": old - value}[update.__name__]
    assert computed.dtype == dtype.numpy
    assert (computed == expected).all()


def test_a_variable_of_strings():
    v = Variable(["a", "b"])
    assert run_initialized(v.assign(["c", "d"])).tolist() == [b"c", b"d"]


def test_updates_of_another_shape_are_refused_while_running():
    v = Variable([1.0, 2.0])
    value = placeholder(dtypes.float32)
    for update in (v.assign_add(value), v.assign(value)):
        with pytest.raises(InvalidArgumentError, match=r"has shape|incompatible"):
            run_initialized(update, feeds={value: np.ones((3,), np.float32)})


def test_updating_before_initialisation_names_the_variable():
    v = Variable([1.0], name="weights")
    with Session() as session, pytest.raises(FailedPreconditionError, match="uninitialized value weights"):
        session.run(v.assign_add([1.0]))


def test_references_must_be_variables():
    v = Variable(1.0)
    with pytest.raises(InvalidArgumentError, match="not a variable"):
        state_ops.assign(v + 1.0, 2.0)


def test_concurrent_steps_lose_no_update():
    v = Variable(np.zeros(1000, np.float32))
    add = v.assign_add(np.ones(1000, np.float32))
    with Session() as session:
        session.run(global_variables_initializer())
        threads = [threading.Thread(target=lambda: [session.run(add.op) for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (session.run(v) == 200).all()


def test_variable_shape_is_known_or_computed():
    v = Variable(np.zeros((2, 3)), validate_shape=False)
    assert run_initialized(state_ops.variable_shape(v)).tolist() == [2, 3]
    w = Variable(np.zeros((2, 3)))
    assert array_ops.reshape(constant(np.zeros(6)), state_ops.variable_shape(w)).shape == [2, 3]


def test_is_variable_initialized():
    v = Variable(1.0)
    ready = state_ops.is_variable_initialized(v)
    with Session() as session:
        assert not session.run(ready)
        session.run(v.initializer)
        assert session.run(ready)


# -- gradients -------------------------------------------------------------------------------------------


def test_gradients_reach_the_variable_through_all_its_reads():
    v = Variable([2.0, 3.0])
    loss = math_ops.reduce_sum(v.value() * v.value()) + math_ops.reduce_sum(v.read_value())
    (gradient,) = gradients(loss, [v])
    assert run_initialized(gradient).tolist() == [5, 7]


def test_gathering_gives_a_sparse_gradient():
    v = Variable(np.arange(12, dtype=np.float32).reshape(4, 3))
    rows = v.sparse_read([[1, 1], [3, 0]])
    assert rows.shape == [2, 2, 3]
    (gradient,) = gradients(math_ops.reduce_sum(rows * rows), [v])
    assert isinstance(gradient, IndexedSlices)
    values, slices = run_initialized(rows, gradient)
    assert values.tolist() == [[[3, 4, 5], [3, 4, 5]], [[9, 10, 11], [0, 1, 2]]]
    assert slices.indices.tolist() == [1, 1, 3, 0]
    assert (slices.values == 2 * values.reshape(4, 3)).all()
    assert slices.dense_shape.tolist() == [4, 3]


def test_no_gradient_flows_through_updates():
    v = Variable([1.0])
    assert gradients(v.assign_add([1.0]) * 2.0, [v]) == [None]


# -- by rows ---------------------------------------------------------------------------------------------

SCATTERS = {
    sparse_state_ops.scatter_add: np.add,
    sparse_state_ops.scatter_sub: np.subtract,
    sparse_state_ops.scatter_mul: np.multiply,
    sparse_state_ops.scatter_div: np.true_divide,
    sparse_state_ops.scatter_min: np.minimum,
    sparse_state_ops.scatter_max: np.maximum,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("index_shape", [(5,), (2, 3), (0,), ()])
@pytest.mark.parametrize("row", [(), (4,), (2, 3)])
@pytest.mark.parametrize("scatter", SCATTERS)
def test_scatter_with_repeated_rows(scatter, row, index_shape, dtype):
    rng = np.random.default_rng(0)
    old = rng.integers(1, 9, (3, *row)).astype(dtype)
    indices = rng.integers(0, 3, index_shape).astype(np.int32)
    updates = rng.integers(1, 5, (*index_shape, *row)).astype(dtype)
    expected = old.copy()
    ufunc = SCATTERS[scatter]
    if ufunc is np.true_divide and dtype is np.int32:
        ufunc = np.floor_divide
    ufunc.at(expected, indices, updates)
    v = Variable(constant(old))
    np.testing.assert_allclose(run_initialized(scatter(v, indices, updates)), expected, rtol=1e-5)


def test_scatter_update_and_scalar_updates():
    v = Variable([1, 2, 3, 4])
    assert run_initialized(sparse_state_ops.scatter_update(v, [2, 0], [30, 10])).tolist() == [10, 2, 30, 4]
    assert run_initialized(sparse_state_ops.scatter_add(v, [1, 1], 5)).tolist() == [1, 12, 3, 4]


def test_scatter_of_half_precision_sums_in_single():
    v = Variable(np.zeros((1, 2), np.float16))
    rows = np.full((4000, 2), 1, np.float16)
    assert run_initialized(v.scatter_add(IndexedSlices(constant(rows), constant(np.zeros(4000, int))))).max() == 4000


@pytest.mark.parametrize("bad", [[-1], [4]])
def test_rows_that_do_not_exist_are_refused(bad):
    with get_default_graph().device("/cpu:0"):
        v = Variable(np.zeros((4, 2), np.float32), name="table")
    indices = placeholder(dtypes.int32, [1])
    for op in (v.sparse_read(indices), sparse_state_ops.scatter_add(v, indices, np.ones((1, 2), np.float32))):
        with pytest.raises(InvalidArgumentError, match=r"\[0, 4\), the rows of variable 'table'"):
            run_initialized(op, feeds={indices: bad})


def test_updates_that_do_not_fit_the_rows_are_refused():
    v = Variable(np.zeros((4, 2), np.float32))
    with pytest.raises(InvalidArgumentError, match="incompatible"):
        sparse_state_ops.scatter_add(v, [0, 1], np.ones((2, 3), np.float32))


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("method", ["scatter_nd_update", "scatter_nd_add", "scatter_nd_sub"])
def test_scatter_by_full_indices(method, depth):
    old = np.arange(12.0).reshape(3, 4)
    indices = np.array([[2, 1], [0, 3]])[:, :depth]
    updates = np.arange(1.0, 1 + 2 * 4 ** (2 - depth)).reshape(2, *[4] * (2 - depth))
    expected = old.copy()
    places = tuple(indices.T)
    expected[places] = {"update": updates, "add": old[places] + updates, "sub": old[places] - updates}[method[11:]]
    v = Variable(old)
    assert (run_initialized(getattr(v, method)(indices, updates)) == expected).all()


def test_scatter_by_full_indices_adds_repeated_ones_and_checks():
    with get_default_graph().device("/cpu:0"):
        v = Variable(np.zeros((2, 2)), name="table")
    assert run_initialized(v.scatter_nd_add([[1, 1], [1, 1]], [1.0, 2.0])).tolist() == [[0, 0], [0, 3]]
    with pytest.raises(InvalidArgumentError, match="'table'"):
        run_initialized(v.scatter_nd_add([[1, 2]], [1.0]))
    with pytest.raises(InvalidArgumentError, match="incompatible"):
        v.scatter_nd_add([[1, 1]], [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="does not fit shape"):
        v.scatter_nd_add([[1, 1, 1]], [1.0])


def test_assigning_a_part():
    v = Variable([[1, 2], [3, 4]])
    assert run_initialized(state_ops.assign(v[:, 1], [5, 6])).tolist() == [[1, 5], [3, 6]]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("scatter_max", [10, 3, 30]),
        ("scatter_min", [5, 2, 20]),
        ("scatter_mul", [50, 6, 600]),
        ("scatter_div", [0.5, 1.5, 1.5]),
        ("batch_scatter_update", [10, 2, 20]),
    ],
)
def test_methods_that_change_rows(method, expected):
    v = Variable([5.0, 3.0, 30.0])
    rows = IndexedSlices(constant([10.0, 2.0, 20.0]), constant([0, 1, 2]))
    np.testing.assert_allclose(run_initialized(getattr(v, method)(rows)), expected)
    assert run_initialized(v.gather_nd([[2], [0]])).tolist() == [30, 5]


def test_counting_up_to_a_limit():
    v = Variable(0, name="counter")
    with Session() as session:
        session.run(v.initializer)
        count = v.count_up_to(3)
        assert [session.run(count) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(OutOfRangeError, match="Reached limit of 3: variable 'counter'"):
            session.run(count)
        assert session.run(v) == 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.complex64])
@pytest.mark.parametrize("row", [(), (5,), (2, 2)])
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_sums_of_equal_rows(count, row, dtype):
    rng = np.random.default_rng(1)
    indices = rng.integers(0, 20, count)
    rows = rng.integers(0, 9, (count, *row)).astype(dtype)
    target = np.zeros((20, *row), dtype)
    expected = target.astype(np.complex128)
    np.add.at(expected, indices, rows)
    add_rows(target, indices, rows)
    assert (target == expected).all()
    add_rows(target, indices, rows, subtract=True)
    assert (target == 0).all()
    distinct, order, starts = group_equal(indices)
    assert (distinct == np.unique(indices)).all()
    assert (sum_groups(rows, order, starts) == expected[distinct]).all()


@pytest.mark.gpu
@pytest.mark.skipif(cupy() is None, reason="needs a GPU")
@pytest.mark.parametrize("scatter", SCATTERS)
def test_scatter_on_a_gpu(scatter, graph):
    old, indices = np.arange(1.0, 13.0).reshape(4, 3), [1, 1, 3]
    updates = np.arange(2.0, 11.0).reshape(3, 3)
    with graph.device("/device:GPU:0"):
        v = Variable(old)
        results = [v.assign_add(old), v.assign(old), scatter(v, indices, updates)]
    with Session() as session:
        session.run(v.initializer)
        doubled, again, scattered = [session.run(result) for result in results]
        rows = session.run(v.sparse_read(indices))
    expected = old.copy()
    SCATTERS[scatter].at(expected, indices, updates)
    np.testing.assert_allclose(scattered, expected)
    assert (doubled == 2 * old).all() and (again == old).all() and (rows == scattered[indices]).all()


# -- grouping --------------------------------------------------------------------------------------------


def test_group_runs_all_its_parts():
    a, b = Variable(1), Variable(2)
    everything = grouping_ops.group(a.assign(10), [b.assign(20), None])
    assert run_initialized(everything, a, b) == [None, 10, 20]
    with pytest.raises(TypeError, match="not 'a'"):
        grouping_ops.group(everything, "a")


def test_group_over_several_devices_sends_one_signal_from_each(graph):
    ops = []
    for device in ("/job:ps/task:0", "/job:ps/task:1"):
        with graph.device(device):
            ops += [grouping_ops.no_op(), grouping_ops.no_op()]
    whole = grouping_ops.group(*ops, name="all")
    assert whole.name == "all"
    assert [(op.name, op.device, len(op.control_inputs)) for op in whole.control_inputs] == [
        ("all/NoOp", "/job:ps/task:0", 2),
        ("all/NoOp_1", "/job:ps/task:1", 2),
    ]


def test_tuple_waits_for_all():
    a, b = Variable(1), Variable(2)
    values = grouping_ops.tuple_([a.assign(10), None], control_inputs=[b.assign(20)])
    assert values[1] is None
    assert run_initialized(values[0], b) == [10, 20]


# -- parts -----------------------------------------------------------------------------------------------

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (slice(1, 3), np.ones((2, 4))),
        (1, np.ones(4)),
        ((..., 1), [9.0, 9.0, 9.0]),
        ((None, slice(1, 2), slice(None, 2)), [[[7.0, 8.0]]]),
        ((slice(None, None, 2), slice(None, None, -1)), np.arange(8.0).reshape(2, 4)),
        ((-1, -2), 5.0),
        (slice(3, None), np.ones((0, 4))),
        (1, 5.0),
    ],
)
def test_a_part_of_a_variable_is_assigned_as_in_numpy(key, value):
    expected = ROWS.copy()
    expected[key] = value
    v = Variable(ROWS)
    assigned, after = run_initialized(v[key].assign(value), v)
    np.testing.assert_array_equal(assigned, expected)
    np.testing.assert_array_equal(after, expected)


def test_a_part_may_begin_where_a_tensor_says():
    v, begin = Variable([1.0, 2.0, 3.0]), placeholder("int32", [])
    part = v[begin:]
    assert run_initialized(part.assign([9.0, 8.0]), feeds={begin: 1}).tolist() == [1, 9, 8]
    with pytest.raises(InvalidArgumentError, match=r"no value of shape \(2,\)"):
        run_initialized(part.assign([9.0, 8.0]), feeds={begin: 0})
    assert slice_ops.strided_slice(v.value(), [0], [2], var=v).assign([5.0, 6.0]).shape == [3]


def test_parts_that_cannot_be_assigned():
    v = Variable(ROWS)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        v[1].assign([1.0, 2.0])
    assert not hasattr(v.value()[1], "assign")
    with pytest.raises(FailedPreconditionError), Session() as session:
        session.run(v[1].assign(np.ones(4)))
    assert gradients(v[1].assign(np.ones(4)), v) == [None]


def test_batch_scatter_update():
    v = Variable(ROWS)
    expected = ROWS.copy()
    expected[np.arange(3), [2, 0, 1]] = [7, 8, 9]
    updated = sparse_state_ops.batch_scatter_update(v, [[2], [0], [1]], [[7.0], [8.0], [9.0]])
    np.testing.assert_array_equal(run_initialized(updated), expected)
    np.testing.assert_array_equal(
        run_initialized(sparse_state_ops.batch_scatter_update(v, [0, 2], np.ones((2, 4)))), [[1] * 4, ROWS[1], [1] * 4]
    )
