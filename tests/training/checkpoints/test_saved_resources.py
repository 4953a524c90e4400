"""State that is no variable comes back from checkpoints as well: places in datasets, queues, tables."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError, NotFoundError


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "model")


def dataset(length=20):
    return tf.data.Dataset.range(length).shuffle(10, seed=3).repeat(2).batch(3)


@pytest.mark.parametrize("kind", ["one_shot", "initializable"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_place_in_a_dataset(path, kind, asynchronous):
    def build():
        one_shot = kind == "one_shot"
        iterator = dataset().make_one_shot_iterator() if one_shot else dataset().make_initializable_iterator()
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
        return iterator.get_next(), tf.no_op() if one_shot else iterator.initializer

    element, start = build()
    saver = tf.train.Saver(asynchronous=asynchronous)
    with tf.Session() as session:
        session.run(start)
        for _ in range(4):
            session.run(element)
        saver.save(session, path)
        saver.wait()
        expected = [session.run(element) for _ in range(9)]
        saver.restore(session, path)  # in the same session as well
        np.testing.assert_array_equal(
            np.concatenate([session.run(element) for _ in range(9)]), np.concatenate(expected)
        )
    with tf.Graph().as_default(), tf.Session() as session:
        element, start = build()
        session.run(start)
        tf.train.Saver().restore(session, path)
        for value in expected:
            np.testing.assert_array_equal(session.run(element), value)


def test_another_dataset_is_too_short(path):
    iterator = dataset().make_one_shot_iterator()
    element, saveable = iterator.get_next(), tf.data.experimental.make_saveable_from_iterator(iterator)
    with tf.Session() as session:
        for _ in range(5):
            session.run(element)
        tf.train.Saver([saveable]).save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = dataset(3).make_one_shot_iterator()
        element, saveable = iterator.get_next(), tf.data.experimental.make_saveable_from_iterator(iterator)
        tf.train.Saver([saveable]).restore(session, path)
        with pytest.raises(InvalidArgumentError, match="after 5 elements"):
            session.run(element)


QUEUES = {
    "fifo": lambda: tf.FIFOQueue(10, [tf.int32, tf.string], [[2], []], shared_name="q"),
    "ragged": lambda: tf.PaddingFIFOQueue(10, [tf.int32, tf.string], [[None], []], shared_name="q"),
    "shuffle": lambda: tf.RandomShuffleQueue(10, 0, [tf.int32, tf.string], [[2], []], seed=5, shared_name="q"),
}


@pytest.mark.parametrize("kind", QUEUES)
def test_queues(path, kind):
    def build():
        queue = QUEUES[kind]()
        return queue, queue.enqueue([tf.placeholder_with_default([0, 0], [2], name="x"), tf.constant("text")])

    queue, enqueue = build()
    taken = queue.dequeue()
    with tf.Session() as session:
        for i in range(6):
            session.run(enqueue, {"x:0": [i, 10 * i]})
        session.run(taken)
        tf.train.Saver({"queue": queue}).save(session, path)
        session.run(queue.close())
        expected = [session.run(taken) for _ in range(5)]
    with tf.Graph().as_default(), tf.Session() as session:
        queue, enqueue = build()
        session.run(enqueue)
        tf.train.Saver({"queue": queue}).restore(session, path)
        taken, size = queue.dequeue(), queue.size()
        assert session.run(size) == 5
        for numbers, text in expected:
            found = session.run(taken)
            np.testing.assert_array_equal(found[0], numbers)
            assert found[1] == text


def test_the_order_of_a_priority_queue(path):
    def build():
        return tf.PriorityQueue(10, [tf.string], [[]], shared_name="q")

    queue = build()
    with tf.Session() as session:
        for priority, text in [(3, "c"), (1, "a"), (3, "d"), (2, "b")]:
            session.run(queue.enqueue([tf.constant(priority, tf.int64), text]))
        tf.train.Saver([queue]).save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        queue = build()
        tf.train.Saver([queue]).restore(session, path)
        taken = queue.dequeue()
        assert [session.run(taken)[1] for _ in range(4)] == [b"a", b"b", b"c", b"d"]


def test_tables_that_change(path):
    def build():
        return tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1, name="table")

    table = build()
    with tf.Session() as session:
        session.run(table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)))
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        table = build()
        session.run(table.insert(tf.constant(["z"]), tf.constant([9], tf.int64)))
        tf.train.Saver().restore(session, path)
        assert session.run(table.lookup(tf.constant(["b", "z", "a"]))).tolist() == [2, -1, 1]
        with pytest.raises(NotFoundError, match="no state of 'other'"):
            tf.train.Saver({"other": tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)[0]}).restore(session, path)


@pytest.mark.parametrize(
    ("make", "value", "missing"),
    [
        (lambda: tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, -1.0), 2.5, -1.0),
        (lambda: tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, [0, 0]), [3, 4], [0, 0]),
        (
            lambda: tf.contrib.lookup.MutableDenseHashTable(tf.int64, tf.float32, -1.0, empty_key=0, deleted_key=-9),
            2.5,
            -1.0,
        ),
    ],
)
def test_saved_models_have_the_entries_of_tables(tmp_path, make, value, missing):
    ids = tf.placeholder(tf.int64, [None], name="ids")
    table, factor = make(), tf.Variable(2, name="factor")
    found = table.lookup(ids)
    with tf.Session() as session:
        session.run(factor.initializer)
        session.run(table.insert(tf.constant([70], tf.int64), tf.constant([value], found.dtype)))
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"ids": ids}, {"found": found})
    name = table.resource_handle.op.name
    assert {f"{name}-keys", f"{name}-values", "factor"} == {
        key for key, _ in tf.train.list_variables(str(tmp_path / "model" / "variables" / "variables"))
    }
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        assert session.run(found.name, {"ids:0": [70, 1]}).tolist() == [value, missing]
        types = {node.op for node in model.graph_def.node}
    assert {"LookupTableExportV2", "LookupTableImportV2", "SaveV2", "RestoreV2"} <= types


def test_saved_models_have_state_that_tensorflow_has_no_type_for(tmp_path):
    ids = tf.placeholder(tf.int64, [None], name="ids")
    table = tf.train.DynamicEmbedding("words", dim=2, capacity=4)
    rows = table.lookup(ids, training=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(table.lookup(ids), {ids: [70, 90]})
        expected = session.run(rows, {ids: [90, 1, 70]})
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"ids": ids}, {"rows": rows})
    assert expected[0].all() and not expected[1].any()
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        np.testing.assert_array_equal(session.run(rows.name, {"ids:0": [90, 1, 70]}), expected)
