"""Matrices of checkpoints with other rows and columns: values are those that TensorFlow 1.15 gives."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.system.remap_ops import generate_vocab_remapping, load_and_remap_matrix

OLD = np.arange(80, dtype=np.float32).reshape(5, 16)
ALL = list(range(5))


@pytest.fixture
def checkpoint(tmp_path):
    tf.get_variable("matrix", initializer=OLD)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return tf.train.Saver(write_version=tf.train.SaverDef.V2).save(session, str(tmp_path / "model"))


def remapped(checkpoint, rows, columns, initial):
    matrix = load_and_remap_matrix([checkpoint], "matrix", rows, columns, initial, len(rows), len(columns) or 16)
    with tf.Session() as session:
        return session.run(matrix)


@pytest.mark.parametrize(
    ("rows", "columns", "initial", "expected"),
    [
        ([1, 0], [], [], OLD[[1, 0]]),
        (ALL, [2, 0], [], OLD[:, [2, 0]]),
        ([1, 0, 4], [1, 15], [], OLD[[1, 0, 4]][:, [1, 15]]),
        ([2, -1, 0], [1, -1], [42.0, 43.0, 44.0, 45.0], [[33.0, 42.0], [43.0, 44.0], [1.0, 45.0]]),
        ([-1] * 7, [-1] * 4, [42.0] * 28, np.full([7, 4], 42.0)),
        ([], [], [], np.zeros([0, 16])),
    ],
)
def test_rows_and_columns_of_a_matrix(checkpoint, rows, columns, initial, expected):
    np.testing.assert_array_equal(remapped(checkpoint, rows, columns, initial), expected)


@pytest.mark.parametrize(
    ("rows", "columns", "initial", "error", "said"),
    [
        ([1, 0, 0], [], [], tf.errors.UnimplementedError, "Old ID 0 is mapped to both new ID 1 and 2"),
        (ALL, [1, 0, 0], [], tf.errors.UnimplementedError, "Old ID 0 is mapped to both"),
        ([2, -1, 0], [1, -1], [], tf.errors.InvalidArgumentError, "contained 0 elements.* more missing values remain"),
        ([2, -1, 0], [1, -1], [0.0] * 5, tf.errors.InvalidArgumentError, "contained 5 elements, expected 4"),
        ([5], [], [], tf.errors.InvalidArgumentError, "5 is asked for"),
    ],
)
def test_what_cannot_be_remapped(checkpoint, rows, columns, initial, error, said):
    with pytest.raises(error, match=said):
        remapped(checkpoint, rows, columns, initial)


@pytest.mark.parametrize(
    ("new", "offset", "count", "old_size", "expected"),
    [
        ("knitting eminem MISSING", 0, 3, -1, ([0, 1, 2], 3)),
        ("MISSING knitting eminem", 0, 3, -1, ([2, 0, 1], 3)),
        ("MISSING knitting eminem", 1, 1, -1, ([0], 1)),
        ("MISSING knitting eminem", 0, 3, 2, ([-1, 0, 1], 2)),
    ],
)
def test_words_of_a_vocabulary_in_another(tmp_path, new, offset, count, old_size, expected):
    files = [tmp_path / "new", tmp_path / "old"]
    for file, words in zip(files, (new, "knitting eminem MISSING"), strict=True):
        file.write_text(words.replace(" ", "\n") + "\n")
    found = generate_vocab_remapping(*map(str, files), offset, count, old_size)
    with tf.Session() as session:
        remapping, present = session.run(found)
    assert (remapping.tolist(), present) == expected
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="has 3 words, expected 4"):
        session.run(generate_vocab_remapping(*map(str, files), 0, 4))
