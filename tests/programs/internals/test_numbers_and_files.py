"""Functions of the numbers from 0 on, and names of files as data."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tfray as tf
from tfray.programs.internals.file_names import MatchingFilesDataset
from tfray.programs.internals.parallel_for import for_loop, pfor


def test_functions_of_numbers():
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    def results(number):
        return {"row": tf.gather(rows, number), "pair": (number, number > 0)}

    with tf.Session() as session:
        for found in session.run([pfor(results, 2), for_loop(results, [[tf.int32, tf.bool], tf.float32], 2)]):
            assert found["row"].tolist() == [[1, 2], [3, 4]]
            assert [each.tolist() for each in found["pair"]] == [[0, 1], [False, True]]
        assert session.run(for_loop(lambda number: number * 2, tf.int32, 0)).tolist() == []


def test_rows_operations_and_nothing_are_results(session):
    v = tf.Variable(0, use_resource=True)
    session.run(v.initializer)

    def rows(number):
        values = tf.cast(tf.reshape(number, [1]), tf.float32)
        return tf.IndexedSlices(values=values, indices=tf.reshape(number, [1]), dense_shape=[3]), None

    for found in (pfor(rows, 2), for_loop(rows, tf.float32, 2)):
        assert found[1] is None
        assert session.run(found[0]).tolist() == [[0, 0, 0], [0, 1, 0]]
    counted = pfor(lambda number: v.assign_add(number).op, 4)
    assert isinstance(counted, tf.Operation)
    session.run(counted)
    assert session.run(v.value()) == 6


class _Centred:
    def __init__(self, x):
        self.x = x

    def __call__(self, number, pfor_config):
        return tf.gather(self.x, number) - pfor_config.reduce_mean(tf.gather(self.x, number))


def test_a_function_may_ask_for_what_all_turns_computed(session):
    values = np.array([[1.0, 2.0], [3.0, 7.0], [5.0, 0.0]], np.float32)
    x = tf.constant(values)

    def normed(number, pfor_config, power=1):
        row = tf.gather(x, number)
        centred = row - pfor_config.reduce_mean(row)
        return centred / pfor_config.reduce_sum(centred**power)

    def last(number, pfor_config):
        return pfor_config.reduce_concat(tf.gather(x, number))[-1]

    centred = values - values.mean(0)
    for function, expected in (
        (_Centred(x), centred),
        (functools.partial(normed, power=2), centred / (centred**2).sum(0)),
        (last, np.tile(values[-1], (3, 1))),
    ):
        np.testing.assert_allclose(session.run(pfor(function, 3)), expected, rtol=1e-5)
        np.testing.assert_allclose(session.run(pfor(function, 3, parallel_iterations=4)), expected, rtol=1e-5)
        with pytest.raises(ValueError, match="parallel_iterations currently unsupported"):
            pfor(function, 3, parallel_iterations=2)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: pfor(tf.identity, 8, parallel_iterations=0), ValueError, "positive integer"),
        (lambda: pfor(tf.identity, 8, parallel_iterations=1), ValueError, "Use for_loop instead"),
        (lambda: for_loop(tf.identity, tf.int32, 8, parallel_iterations=0), TypeError, "positive integer"),
    ],
)
def test_turns_at_once_are_some(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_names_of_files_that_match(tmp_path):
    for name in ("b.py", "a.py", "c.txt"):
        (tmp_path / name).touch()

    def names(*patterns):
        element = tf.data.make_one_shot_iterator(MatchingFilesDataset(list(patterns))).get_next()
        with tf.Session() as session:
            while True:
                try:
                    yield session.run(element).decode()
                except tf.errors.OutOfRangeError:
                    return

    expected = [f"{tmp_path}/{name}" for name in ("a.py", "b.py", "c.txt")]
    assert sorted(names(f"{tmp_path}/*.py", f"{tmp_path}/c*")) == expected
    with pytest.raises(tf.errors.NotFoundError):
        list(names(f"{tmp_path}/nothing/*"))
