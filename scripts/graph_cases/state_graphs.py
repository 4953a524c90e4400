"""What keeps state: queues, tables, barriers, lists, iterators."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import data_flow_ops
from tensorflow.python.ops import gen_data_flow_ops as gen
from tensorflow.python.ops import gen_lookup_ops as tables

from graph_cases.declaring import case, given

raw = tf.raw_ops
linalg, signal, image = tf.linalg, tf.signal, tf.image


# -- what keeps state ----------------------------------------------------------------------------------


def in_turn(*steps: Any) -> list[Any]:
    """Run functions one after another; the tensors that they return."""
    found, last = [], []
    for step in steps:
        with tf.control_dependencies(last):
            made = step()
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            made = [tf.identity(each) if isinstance(each, tf.Tensor) else each for each in made]
        found += [each for each in made if isinstance(each, tf.Tensor)]
        last = made
    return found


@case()
def queues() -> list[Any]:
    x = given(4, 3)
    first = tf.FIFOQueue(9, [tf.float32, tf.int32], [[3], []])
    second = tf.PaddingFIFOQueue(9, [tf.float32], [[None]])
    third = tf.PriorityQueue(9, [tf.float32], [[]])
    fourth = tf.RandomShuffleQueue(9, 0, tf.float32, [[3]])
    found = in_turn(
        lambda: first.enqueue_many([x, [1, 2, 3, 4]]),
        first.size,
        first.dequeue,
        lambda: first.dequeue_many(2),
        lambda: first.enqueue([x[1], 9]),
        first.close,
        lambda: first.dequeue_up_to(9),
        first.is_closed,
    )
    found += in_turn(lambda: second.enqueue([x[0]]), lambda: second.enqueue([x[1, :2]]), lambda: second.dequeue_many(2))
    found += in_turn(
        lambda: third.enqueue_many([tf.constant([3, 1, 2], tf.int64), x[:3, 0]]), third.dequeue, third.dequeue
    )
    return found + in_turn(
        lambda: fourth.enqueue_many([x]), fourth.size, lambda: tf.reduce_sum(fourth.dequeue_many(4), 0), fourth.size
    )


@case()
def old_queues() -> list[Any]:
    x = given(4, 3)
    queue = gen.fifo_queue([tf.float32], [[3]], 5)
    padding = gen.padding_fifo_queue([tf.float32], [[None]], 5)
    found = in_turn(
        lambda: gen.queue_enqueue_many(queue, [x]),
        lambda: gen.queue_size(queue),
        lambda: gen.queue_dequeue(queue, [tf.float32]),
        lambda: gen.queue_dequeue_many(queue, 2, [tf.float32]),
        lambda: gen.queue_close(queue),
        lambda: gen.queue_dequeue_up_to(queue, 5, [tf.float32]),
    )
    return found + in_turn(
        lambda: gen.queue_enqueue(padding, [x[0, :2]]), lambda: gen.queue_dequeue_many(padding, 1, [tf.float32])
    )


@case()
def lookup_tables() -> list[Any]:
    words = tf.placeholder_with_default([b"bee", b"cat", b"ant"], [None], name="words")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["ant", "bee"], tf.constant([3, 5], tf.int64)), -1
    )
    names = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant([3, 5], tf.int64), ["ant", "bee"]), "?"
    )
    buckets = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["ant", "bee"], tf.constant([0, 1], tf.int64)), 4
    )
    changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.5)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -9)
    found = [table.lookup(words), table.size(), names.lookup(table.lookup(words)), buckets.lookup(words)]
    found += in_turn(
        lambda: changing.insert(words, [1.0, 2.0, 3.0]),
        lambda: changing.lookup(tf.constant(["ant", "dog"])),
        changing.size,
        lambda: changing.remove(words[:1]),
        lambda: tf.sort(changing.export()[1]),
        changing.size,
    )
    return found + in_turn(lambda: dense.insert([4, 5], [6, 7]), lambda: dense.lookup([5, 9]), dense.size)


@case()
def old_lookup_tables() -> list[Any]:
    words = tf.placeholder_with_default([b"bee", b"cat", b"ant"], [None], name="words")
    table = tables.hash_table(tf.string, tf.int64)
    changing = tables.mutable_hash_table(tf.string, tf.float32)
    found = in_turn(
        lambda: tables.initialize_table(table, ["ant", "bee"], tf.constant([3, 5], tf.int64)),
        lambda: tables.lookup_table_find(table, words, tf.constant(-1, tf.int64)),
        lambda: tables.lookup_table_size(table),
    )
    return found + in_turn(
        lambda: tables.lookup_table_insert(changing, words, [1.0, 2.0, 3.0]),
        lambda: tables.lookup_table_find(changing, ["ant", "dog"], 0.5),
        lambda: tables.lookup_table_size(changing),
    )


@case()
def accumulators() -> list[Any]:
    x = given(4, 3)
    mean = tf.ConditionalAccumulator(tf.float32, [3])
    total = tf.ConditionalAccumulator(tf.float32, [3], reduction_type="SUM")
    rows = tf.SparseConditionalAccumulator(tf.float32, [5, 3])
    found = in_turn(
        lambda: mean.apply_grad(x[0], 0),
        lambda: mean.apply_grad(x[1], 0),
        mean.num_accumulated,
        lambda: mean.take_grad(2),
        lambda: mean.set_global_step(4),
        lambda: mean.apply_grad(x[2], 1),
        mean.num_accumulated,
    )
    found += in_turn(lambda: total.apply_grad(x[0], 0), lambda: total.apply_grad(x[1], 0), lambda: total.take_grad(1))
    return found + in_turn(
        lambda: rows.apply_grad(tf.constant([0, 2], tf.int64), x[:2], [5, 3]),
        lambda: rows.apply_grad(tf.constant([2], tf.int64), x[2:3], [5, 3]),
        rows.num_accumulated,
        lambda: rows.take_grad(2),
    )


def taken(barrier: Any) -> list[Any]:
    """Two elements."""
    _, keys, values = barrier.take_many(2)
    return [keys, *values]


@case()
def barriers() -> list[Any]:
    x = given(3, 2)
    barrier = data_flow_ops.Barrier([tf.float32, tf.int32], [[2], []])
    keys = ["a", "b", "c"]
    return in_turn(
        lambda: barrier.insert_many(0, keys, x),
        barrier.incomplete_size,
        lambda: barrier.insert_many(1, keys[1:], [5, 6]),
        barrier.ready_size,
        lambda: taken(barrier),
        barrier.close,
    )


@case()
def staging() -> list[Any]:
    x = given(3, 2)
    area = data_flow_ops.StagingArea([tf.float32, tf.int32], [[2], []])
    found = in_turn(
        lambda: area.put([x[0], tf.constant(3)]),
        area.size,
        lambda: area.peek(0),
        area.get,
        lambda: area.put([x[1], tf.constant(4)]),
        area.clear,
        area.size,
    )
    keyed = data_flow_ops.MapStagingArea([tf.float32, tf.int32], [[2], []], ["a", "b"], ordered=True)
    key = tf.constant(7, tf.int64)
    return found + in_turn(
        lambda: keyed.put(key, {"a": x[2], "b": tf.constant(1)}),
        keyed.size,
        lambda: [keyed.get(key)[1]["a"]],
        keyed.size,
    )


@case()
def keyed_staging() -> list[Any]:
    x, keys = given(3, 2), [tf.constant(key, tf.int64) for key in (4, 2)]
    area = data_flow_ops.MapStagingArea([tf.float32, tf.int32], [[2], []], ["a", "b"])
    ordered = data_flow_ops.MapStagingArea([tf.float32], [[2]], ["a"], ordered=True)
    found = in_turn(
        lambda: area.put(keys[0], {"a": x[0]}),
        area.incomplete_size,
        lambda: area.put(keys[0], {"b": tf.constant(5)}),
        lambda: [area.peek(keys[0], ["a"])["a"]],
        lambda: [area.get()[1]["b"]],
        lambda: area.put(keys[1], {"a": x[1], "b": tf.constant(6)}),
        area.clear,
        area.size,
    )
    return found + in_turn(
        lambda: ordered.put(keys[0], {"a": x[0]}),
        lambda: ordered.put(keys[1], {"a": x[1]}),
        lambda: [ordered.peek(keys[1])["a"]],
        lambda: ordered.get()[0],
        ordered.clear,
        ordered.size,
    )


@case()
def more_lookup_tables() -> list[Any]:
    rows = raw.MutableHashTableOfTensorsV2(key_dtype=tf.string, value_dtype=tf.float32, value_shape=[2])
    older = tables.mutable_hash_table_of_tensors(tf.int64, tf.float32, value_shape=[2])
    x = given(3, 2)
    found = in_turn(
        lambda: raw.LookupTableInsertV2(table_handle=rows, keys=["a", "b"], values=x[:2]),
        lambda: raw.LookupTableImportV2(table_handle=rows, keys=["c", "d"], values=x[1:]),
        lambda: raw.LookupTableFindV2(table_handle=rows, keys=["d", "a"], default_value=[7.0, 8.0]),
        lambda: raw.LookupTableSizeV2(table_handle=rows),
    )
    found += in_turn(
        lambda: tables.lookup_table_insert(older, tf.constant([3, 1], tf.int64), x[:2]),
        lambda: tf.sort(tables.lookup_table_export(older, tf.int64, tf.float32)[0]),
        lambda: tables.lookup_table_find(older, tf.constant([1], tf.int64), [0.0, 0.0]),
    )
    return found


@case(resource=True)
def tensor_lists() -> list[Any]:
    x, shape = given(4, 3), tf.constant([3])
    items = raw.TensorListFromTensor(tensor=x, element_shape=shape)
    spread = raw.TensorListScatterV2(tensor=x, indices=[2, 0, 3, 1], element_shape=shape, num_elements=-1)
    parts = raw.TensorListSplit(tensor=x, element_shape=[-1, 3], lengths=tf.constant([1, 3], tf.int64))

    def stacked(each: Any, size: int) -> Any:
        return raw.TensorListStack(input_handle=each, element_shape=shape, element_dtype=tf.float32, num_elements=size)

    found = [stacked(spread, 4), stacked(raw.TensorListResize(input_handle=items, size=2), 2)]
    found += [raw.TensorListGather(input_handle=items, indices=[3, 0], element_shape=shape, element_dtype=tf.float32)]
    joined = raw.TensorListConcatV2(
        input_handle=parts, element_shape=[-1, 3], leading_dims=tf.zeros([0], tf.int64), element_dtype=tf.float32
    )
    pushed = raw.TensorListPushBack(input_handle=items, tensor=x[0])
    found += [*joined, raw.TensorListLength(input_handle=pushed), stacked(pushed, 5)]
    popped = raw.TensorListPopBack(input_handle=pushed, element_shape=shape, element_dtype=tf.float32)
    return [
        *found,
        popped[1],
        raw.TensorListGetItem(input_handle=items, index=2, element_shape=shape, element_dtype=tf.float32),
    ]


@case()
def critical_sections() -> list[Any]:
    x = given(2, 3)
    section = tf.CriticalSection()
    return [section.execute(lambda: x * 2), section.execute(lambda: x + 1)]


@case(resource=True)
def scattered_variables_resource() -> list[Any]:
    return scattered()


@case()
def scattered_variables() -> list[Any]:
    return scattered()


def scattered() -> list[Any]:
    v, x = (
        tf.get_variable("v", initializer=np.arange(1, 13, dtype=np.float32).reshape(4, 3)),
        given(2, 3, low=1, high=3),
    )
    names = ["scatter_update", "scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_min", "scatter_max"]
    found = []
    last: list[Any] = []
    for name in [*names, "scatter_nd_update", "scatter_nd_add", "scatter_nd_sub"]:
        with tf.control_dependencies(last):
            changed = getattr(tf, name)(v, [[1], [3]] if "_nd_" in name else [0, 2], x)
        with tf.control_dependencies([changed]):
            last = [v.read_value() * 1.0]
        found += last
    with tf.control_dependencies(last):
        changed = v[1:3, ::2].assign(x[:, :2])
    with tf.control_dependencies([changed]):
        found.append(v.read_value() * 1.0)
    counter = tf.get_variable("counter", initializer=0)
    return [*found, tf.count_up_to(counter, 5), tf.gather_nd(v.read_value() * 0, [[1, 1]])]


@case()
def iterators() -> list[Any]:
    numbers = tf.data.Dataset.from_tensor_slices((np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)))
    offset = given(1, 3)

    def further(x: Any, i: Any) -> Any:
        return tf.data.Dataset.from_tensors((x, i)).repeat(i)

    changed = numbers.map(lambda x, i: (x * 2 + offset[0], i), 2).filter(lambda x, i: tf.not_equal(i, 2))
    changed = changed.flat_map(further).batch(2).prefetch(1)
    begun = tf.data.make_initializable_iterator(changed)
    joined = (
        tf.data.Dataset.zip((tf.data.Dataset.range(5).skip(1), numbers.repeat()))
        .take(3)
        .concatenate(tf.data.Dataset.zip((tf.data.Dataset.range(9, 10), numbers)))
    )
    once = tf.data.make_one_shot_iterator(joined.batch(3, drop_remainder=False))
    found = in_turn(lambda: begun.initializer, begun.get_next, begun.get_next)
    return [*found, *in_turn(lambda: tf.nest.flatten(once.get_next()), lambda: tf.nest.flatten(once.get_next()))]


@case()
def checks() -> list[Any]:
    x = given(3, 4)
    with tf.control_dependencies(
        [tf.assert_equal(tf.shape(x)[1], 4), tf.assert_rank(x, 2), tf.Assert(tf.reduce_all(x < 2), [x])]
    ):
        y = tf.check_numerics(x, "x") + 1
    return [
        tf.ensure_shape(y, [3, 4]),
        tf.verify_tensor_all_finite(y, "y"),
        raw.CheckNumericsV2(tensor=y, message="y"),
        tf.is_non_decreasing(y[0]),
        tf.Print(y, [y[0, 0]], "y"),
    ]


@case()
def functions_of_python() -> list[Any]:
    x = given(3, 4)
    return [
        tf.map_fn(lambda row: row * tf.reduce_sum(row), x),
        tf.foldl(lambda a, row: a + row, x),
        tf.scan(lambda a, row: a * row, x),
        tf.foldr(lambda a, row: a - row, x),
    ]
