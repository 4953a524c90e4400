"""Looking up rows of tables in one piece and in shards."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.sessions import run_initialized
from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.gradients import gradients
from tfray.library.variables.partitioned_variables import fixed_size_partitioner
from tfray.library.variables.variable_scope import get_variable
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.math import math_ops
from tfray.ops.nn.embedding_ops import embedding_lookup


def shards_of(table, count, strategy):
    return [table[i::count] for i in range(count)] if strategy == "mod" else np.array_split(table, count)


@pytest.mark.rows(every=2)
@pytest.mark.parametrize("make", [Variable, constant])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("ids", [[3, 0, 3, 9], [[1, 2], [8, 7]], [], 5])
@pytest.mark.parametrize("row", [(), (3,), (2, 2)])
@pytest.mark.parametrize(("count", "strategy"), [(1, "mod"), (3, "mod"), (3, "div"), (4, "div")])
def test_rows_and_their_gradients(count, strategy, row, ids, dtype, make):
    table = np.arange(10 * int(np.prod(row)), dtype=np.float64).reshape(10, *row)
    shards = [make(shard) for shard in shards_of(table, count, strategy)]
    ids = np.array(ids, dtype)
    rows = embedding_lookup(shards if count > 1 else shards[0], constant(ids), strategy)
    assert rows.shape == [*ids.shape, *row]
    weights = np.arange(1.0, 1.0 + rows.shape.num_elements()).reshape(rows.shape.as_list())
    d_shards = gradients(math_ops.reduce_sum(rows * weights), shards)
    d_dense = [convert_to_tensor(d) for d in d_shards]
    values, d_values = run_initialized([rows, d_dense])
    assert (values == table[ids]).all()
    expected = np.zeros_like(table)
    np.add.at(expected, ids, weights)
    for d_value, d_expected in zip(d_values, shards_of(expected, count, strategy), strict=True):
        assert (d_value == d_expected).all()


def test_gradients_are_sparse_and_only_rows_that_were_used():
    shards = [Variable(np.zeros((5, 2), np.float32)) for _ in range(2)]
    rows = embedding_lookup(shards, [0, 2, 3])
    slices = gradients(math_ops.reduce_sum(rows), shards)
    assert all(isinstance(d, IndexedSlices) for d in slices)
    assert [len(value.indices) for value in run_initialized(slices)] == [2, 1]


def test_shards_of_unknown_shape():
    shards = [placeholder(dtypes.float32), placeholder(dtypes.float32)]
    for shard in shards:
        shard.set_shape([None, None])
    table = np.arange(14, dtype=np.float32).reshape(7, 2)
    for strategy in ("mod", "div"):
        feeds = dict(zip(shards, shards_of(table, 2, strategy), strict=True))
        assert (run_initialized(embedding_lookup(shards, [6, 0, 3], strategy), feeds) == table[[6, 0, 3]]).all()


def test_partitioned_variable_is_looked_up_part_by_part():
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    whole = get_variable("v", initializer=table, partitioner=fixed_size_partitioner(3))
    rows = embedding_lookup(whole, [0, 4, 9], "div")
    assert (run_initialized(rows) == table[[0, 4, 9]]).all()
    assert sum(op.type == "ResourceGather" for op in rows.graph.get_operations()) == 3


def test_each_gather_runs_beside_its_shard(graph):
    shards = []
    for task in range(2):
        with graph.device(f"/job:ps/task:{task}"):
            shards.append(Variable(np.zeros((5, 2), np.float32)))
    with graph.device("/job:worker"):
        embedding_lookup(shards, [1, 2])
    gathers = [op for op in graph.get_operations() if op.type == "ResourceGather"]
    assert [op.device for op in gathers] == ["/job:ps/task:0", "/job:ps/task:1"]


def test_rows_longer_than_the_maximum_are_scaled():
    table = Variable(np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]))
    rows = embedding_lookup(table, [0, 1, 2], max_norm=1.0)
    (d_table,) = gradients(math_ops.reduce_sum(rows), [table])
    values, d_values = run_initialized([rows, convert_to_tensor(d_table)])
    np.testing.assert_allclose(values, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(d_values, [[0.032, -0.024], [1, 1], [1, 1]], atol=1e-12)


@pytest.mark.parametrize(("count", "strategy"), [(1, "mod"), (2, "mod"), (2, "div")])
@pytest.mark.parametrize("wrong", [-1, 10])
def test_rows_that_do_not_exist_are_refused(count, strategy, wrong):
    with get_default_graph().device("/cpu:0"):
        shards = [Variable(shard) for shard in shards_of(np.zeros((10, 2), np.float32), count, strategy)]
        rows = embedding_lookup(shards, [wrong], strategy)
    with pytest.raises(InvalidArgumentError, match="is not in"):
        run_initialized(rows)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="at least one shard"):
        embedding_lookup([], [1])
    with pytest.raises(ValueError, match="'mod' or 'div'"):
        embedding_lookup([np.zeros((2, 2))] * 2, [1], "hash")


def test_gather_of_a_variable_reads_rows_only():
    table = Variable(np.arange(6.0).reshape(3, 2))
    rows = array_ops.gather(table, [2, 0])
    assert rows.op.type == "ResourceGather"
    assert run_initialized(rows).tolist() == [[4, 5], [0, 1]]
    assert run_initialized(array_ops.gather(table, [1], axis=1)).tolist() == [[1], [3], [5]]
