"""Rows are picked, written and added by compiled kernels exactly as by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.ops.kernels import compiling, fast_rows
from tfray.ops.state import updates

pytestmark = pytest.mark.skipif(not compiling.can_compile(), reason="numba is not installed")

FEW = settings(max_examples=25, deadline=None)


def drawn(data, widths=(1, 2, 7, 16, 33, 128)):
    """A random source, rows of it, some of them several times, and values for them."""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    width, rows = data.draw(st.sampled_from(widths)), data.draw(st.sampled_from([1, 5, 900]))
    count = (1 << 14) // width + data.draw(st.integers(1, 100))
    values = random.standard_normal((rows, width)), random.standard_normal((count, width))
    indices = random.integers(0, rows, count).astype(data.draw(st.sampled_from([np.int32, np.int64])))
    return values, indices


def without_kernels(patch):
    for name in ("can_copy", "can_add", "can_sum"):
        patch.setattr(fast_rows, name, lambda *arguments: False)
    patch.setattr(updates, "LEAST_ELEMENTS", np.inf)


@given(st.lists(st.integers(0, 30), max_size=200))
@FEW
def test_groups_of_equal_entries(entries):
    indices = np.array([entry << 40 for entry in entries], np.int64)
    groups = fast_rows.group(indices)
    assert groups.rows[: groups.count].tolist() == list(dict.fromkeys(indices.tolist()))
    for number in range(groups.count):
        members = groups.order[groups.starts[number] : groups.starts[number + 1]]
        np.testing.assert_array_equal(members, np.flatnonzero(indices == groups.rows[number]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.complex64])
@pytest.mark.usefixtures("threads")
@given(data=st.data())
@FEW
def test_gathered_and_written_rows(dtype, data):
    (source, values), indices = (array for array in drawn(data))
    source, values = source.astype(dtype), values.astype(dtype)
    assert fast_rows.can_copy(source, values.size)
    np.testing.assert_array_equal(fast_rows.gather(source, indices, None), source[indices])
    every_other = np.zeros((2 * len(indices), source.shape[1]), dtype)
    fast_rows.gather(source, indices, every_other[::2])
    np.testing.assert_array_equal(every_other[::2], source[indices])
    written = source.copy()
    fast_rows.write_rows(written, indices, values)
    latest = {int(row): value for row, value in zip(indices, values, strict=True)}
    for row, value in enumerate(source):
        np.testing.assert_array_equal(written[row], latest.get(row, value))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("threads")
@given(data=st.data())
@FEW
def test_sums_of_rows(dtype, data):
    (target, rows), indices = drawn(data)
    target, rows = target.astype(dtype), rows.astype(dtype)
    in_turn = np.zeros_like(target)
    np.add.at(in_turn, indices, rows)
    np.testing.assert_array_equal(fast_rows.sum_rows(rows, indices, len(target)), in_turn)
    for subtract, wanted in ((False, target + in_turn), (True, target - in_turn)):
        result = target.copy()
        fast_rows.add_rows(result, indices, rows, subtract)
        np.testing.assert_array_equal(result, wanted)


def test_variables_are_scattered_and_gathered_as_by_numpy(monkeypatch):
    random = np.random.default_rng(0)
    start, rows = (random.standard_normal((size, 33)).astype(np.float32) for size in (400, 2000))
    indices = random.integers(0, 400, (20, 100))

    def computed():
        with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
            results = []
            for scatter in (tf.scatter_add, tf.scatter_sub, tf.scatter_update):
                variable = tf.Variable(start)
                fed = tf.constant(rows.reshape(20, 100, 33))
                with tf.control_dependencies([scatter(variable, indices, fed)]):
                    results.append(tf.gather(variable, indices))
            data = tf.constant(rows)
            total = tf.unsorted_segment_sum(data, indices.reshape(-1), 400)
            results += [total, *tf.gradients(total, data, tf.constant(start))]
            sorted_total = tf.segment_sum(data, np.sort(indices.reshape(-1)))
            results += [sorted_total, *tf.gradients(sorted_total, data)]
            session.run(tf.global_variables_initializer())
            return session.run(results)

    compiled = computed()
    without_kernels(monkeypatch)
    for one, other in zip(compiled, computed(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("row", [(), (33,), (8, 4)])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "optimizer",
    [
        tf.train.GradientDescentOptimizer(0.1),
        tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        tf.train.AdagradOptimizer(0.1),
        tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
        tf.contrib.opt.LazyAdamOptimizer(),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_sparse_updates_have_the_bits_of_numpy(optimizer, dtype, row, monkeypatch):
    random = np.random.default_rng(0)
    count = (1 << 14) // int(np.prod(row)) + 3
    start, gradient = (random.standard_normal((size, *row)).astype(dtype.as_numpy_dtype) for size in (700, count))
    gradient = np.rint(gradient * 64) / 64  # sums of these are exact: NumPy adds single numbers in pairs
    indices = random.integers(0, 700, count)

    def trained():
        with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
            variable = tf.Variable(start)
            slices = tf.IndexedSlices(tf.constant(gradient), tf.constant(indices), variable.shape.as_list())
            train = optimizer.apply_gradients([(slices, variable)])
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            return session.run(tf.global_variables())

    compiled = trained()
    without_kernels(monkeypatch)
    for one, other in zip(compiled, trained(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("wrong", [-1, 50])
def test_a_row_that_does_not_exist_is_named(wrong):
    indices, rows = np.full(700, 3), np.ones((700, 32), np.float32)
    indices[600] = wrong
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        variable = tf.Variable(np.zeros((50, 32), np.float32))
        session.run(variable.initializer)
        slices = tf.IndexedSlices(tf.constant(rows), tf.constant(indices), [50, 32])
        train = tf.train.AdagradOptimizer(0.1).apply_gradients([(slices, variable)])
        session.run(tf.global_variables_initializer())
        for fetch in (tf.gather(variable, indices), tf.scatter_add(variable, indices, rows), train):
            with pytest.raises(InvalidArgumentError, match=rf"= {wrong} is not in \[0, 50\)"):
                session.run(fetch)
        with pytest.raises(InvalidArgumentError, match=rf"= {wrong} is not in \[0, 50\)"):
            session.run(tf.gather(variable.value() + 1.0, indices))


def test_updates_that_are_rows_of_the_variable_itself():
    start = np.random.default_rng(0).standard_normal((600, 32)).astype(np.float32)
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        variable = tf.Variable(start)
        session.run(variable.initializer)
        indices = np.arange(600)[::-1] // 2
        added = session.run(tf.scatter_add(variable, indices, variable))
        expected = start.copy()
        for row in range(300):
            expected[row] += start[599 - 2 * row - 1] + start[599 - 2 * row]
        np.testing.assert_array_equal(added, expected)
