"""Functions of the numbers from 0 on, and names of files as data."""

from __future__ import annotations

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
