"""Feature columns of ``tf.contrib.layers``: what they have that those of `tf.feature_column` have not."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.library.layers.scattered_embeddings import scattered_embedding_lookup, scattered_embedding_lookup_sparse

L = tf.contrib.layers
WORDS = tf.VarLenFeature(tf.string)


def hashed(name):
    return L.sparse_column_with_hash_bucket(name, hash_bucket_size=100)


def keyed(name):
    return L.sparse_column_with_keys(name, ["marlo", "omar"])


def test_columns_tell_what_they_are_made_of():
    number, word = L.real_valued_column("cost", 3, default_value=2), hashed("word")
    assert (number.column_name, number.dimension, list(number.default_value)) == ("cost", 3, [2, 2, 2])
    assert (word.bucket_size, word.combiner) == (100, "sum")
    buckets = L.bucketized_column(L.real_valued_column("price"), [1.0, 2.0, 2.0, 3.0])
    assert (buckets.name, buckets.boundaries, buckets.length) == ("price_bucketized", (1.0, 2.0, 3.0), 4)
    crossed = L.crossed_column({buckets, word, hashed("a")}, hash_bucket_size=10)
    assert [each.name for each in crossed.columns] == ["a", "price_bucketized", "word"]
    assert crossed.name == "a_X_price_bucketized_X_word"
    for made in (L.embedding_column(word, 4), L.one_hot_column(word), L.weighted_sparse_column(word, "weight")):
        assert made.sparse_id_column is word
    assert word == hashed("word") and hash(word) == hash(hashed("word")) and word != hashed("other")
    with pytest.raises(AttributeError, match="do not change"):
        word.column_name = "other"


@pytest.mark.parametrize(
    ("make", "config"),
    [  # TensorFlow 1.15's values
        (lambda: L.real_valued_column("r"), {"r": tf.FixedLenFeature([1], tf.float32)}),
        (
            lambda: L.real_valued_column("r", 2, 4, tf.int32),
            {"r": tf.FixedLenFeature([2], tf.int32, [4, 4])},
        ),
        (lambda: L.sparse_column_with_integerized_feature("i", 10), {"i": tf.VarLenFeature(tf.int64)}),
        (
            lambda: L.weighted_sparse_column(keyed("ids"), "weights", tf.int32),
            {"ids": WORDS, "weights": tf.VarLenFeature(tf.int32)},
        ),
        (lambda: L.embedding_column(hashed("e"), 4), {"e": WORDS}),
        (lambda: L.crossed_column([hashed("a"), hashed("b")], 10), {"a": WORDS, "b": WORDS}),
    ],
)
def test_how_features_are_parsed(make, config):
    assert make().config == config == L.create_feature_spec_for_parsing([make()])


def test_placeholders_of_features():
    columns = {hashed("word"), L.real_valued_column("r", 5), L.bucketized_column(L.real_valued_column("b"), [0, 4])}
    found = L.make_place_holder_tensors_for_base_features(columns)
    assert sorted(found) == ["b", "r", "word"] and isinstance(found["word"], tf.SparseTensor)
    assert [found[name].shape.as_list() for name in "rb"] == [[None, 5], [None, 1]]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: L.real_valued_column("r", dimension=1.0), TypeError, "dimension must be an integer"),
        (lambda: L.real_valued_column("r", dimension=0), ValueError, "r"),
        (lambda: L.real_valued_column("r", default_value="text"), TypeError, "default_value"),
        (lambda: L.real_valued_column("r", default_value=2.0, dtype=tf.int32), TypeError, "default_value"),
        (lambda: L.real_valued_column("r", 3, default_value=[2.0]), ValueError, "default_value"),
        (lambda: L.real_valued_column("r", dtype=tf.string), ValueError, "dtype"),
        (lambda: L.sparse_column_with_integerized_feature("i", 10, dtype=tf.float32), ValueError, "must be an integer"),
        (lambda: L.bucketized_column("r", [0]), TypeError, "must be a real_valued_column"),
        (lambda: L.bucketized_column(L.real_valued_column("r"), [5, 0, 4]), ValueError, "sorted"),
        (lambda: L.crossed_column([hashed("a"), L.real_valued_column("r")], 10), TypeError, "is of numbers"),
        (lambda: L.weighted_sparse_column(keyed("a"), "w", tf.string), ValueError, "dtype"),
    ],
)
def test_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_embeddings_whose_numbers_are_shared():
    with tf.variable_scope("parts"):
        numbers = tf.get_variable("numbers", [50], partitioner=tf.fixed_size_partitioner(3))
    words = tf.SparseTensor([[0, 0], [1, 0], [1, 1], [3, 0]], ["foo", "bar", "foo", "bar"], [5, 2])
    found = scattered_embedding_lookup_sparse(numbers, words, 5)
    whole = scattered_embedding_lookup(tf.range(8.0), tf.constant(["foo"]), 100)
    column = L.scattered_embedding_column("words", 50, 4, hash_key=1)
    inputs = L.input_from_feature_columns({"words": words}, [column])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows, covered, shape = *session.run([found, whole]), session.run(inputs).shape
    np.testing.assert_allclose(rows[1], (rows[0] + rows[3]) / 2)
    np.testing.assert_array_equal(rows[2], rows[4])
    assert len(np.unique(covered)) == 8 and shape == (5, 4) and np.abs(rows[2]).sum() > 0
    assert (column.name, column.column_name, column.size) == ("words_scattered_embedding", "words", 50)
    assert column.config == {"words": tf.VarLenFeature(tf.string)}
    for wrong in ({"dimension": 0}, {"size": 0}, {"combiner": "max"}, {"initializer": 1}):
        with pytest.raises(ValueError):
            L.scattered_embedding_column("words", **{"size": 5, "dimension": 4, "hash_key": 1, **wrong})


def test_shared_embeddings_tell_their_name():
    a, b = (L.sparse_column_with_hash_bucket(name, 100) for name in ("aaa", "bbb"))
    made = L.shared_embedding_columns([b, a], dimension=4)
    assert [each.shared_embedding_name for each in made] == ["aaa_bbb_shared_embedding"] * 2
    assert [each.sparse_id_column.name for each in made] == ["bbb", "aaa"]
    with pytest.raises(TypeError, match="must be a list of columns"):
        L.shared_embedding_columns(a, dimension=4)
