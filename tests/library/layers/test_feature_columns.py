"""`tf.feature_column`: from features by name to numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

fc = tf.feature_column

FEATURES = {
    "age": np.array([5.0, 20.0, 65.0], np.float32),
    "size": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32),
    "colour": np.array([b"red", b"blue", b"mauve"]),
    "number": np.array([2, 0, 1]),
}
TAGS = ([[0, 0], [0, 1], [2, 0]], [b"x", b"y", b"x"], [3, 2])
COLOURS = ["red", "green", "blue"]


def features():
    return {**{key: tf.constant(value) for key, value in FEATURES.items()}, "tags": tf.SparseTensor(*TAGS)}


def run(fetches):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches)


def dense(column):
    return run(fc.input_layer(features(), [column])).tolist()


def test_numeric_column():
    assert dense(fc.numeric_column("age")) == [[5], [20], [65]]
    assert dense(fc.numeric_column("size", 2)) == FEATURES["size"].tolist()
    assert dense(fc.numeric_column("number", normalizer_fn=lambda x: x / 2)) == [[1.0], [0.0], [0.5]]


def test_bucketized_column():
    column = fc.bucketized_column(fc.numeric_column("age"), [18, 65])
    assert dense(column) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    pair = fc.bucketized_column(fc.numeric_column("size", [2]), [2.5])
    assert dense(pair) == [[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1]]
    assert run(pair.ids(features())).tolist() == [[0, 2], [1, 3], [1, 3]]


def test_vocabulary():
    column = fc.categorical_column_with_vocabulary_list("colour", COLOURS)
    assert dense(fc.indicator_column(column)) == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    spread = fc.categorical_column_with_vocabulary_list("colour", COLOURS, num_oov_buckets=2)
    assert spread.num_buckets == 5
    assert sum(dense(fc.indicator_column(spread))[2][3:]) == 1
    default = fc.categorical_column_with_vocabulary_list("colour", COLOURS, default_value=1)
    assert dense(fc.indicator_column(default))[2] == [0, 1, 0]
    numbers = fc.categorical_column_with_vocabulary_list("number", [2, 1])
    assert dense(fc.indicator_column(numbers)) == [[1, 0], [0, 0], [0, 1]]


def test_several_and_no_ids():
    column = fc.categorical_column_with_vocabulary_list("tags", ["x", "y"])
    assert dense(fc.indicator_column(column)) == [[1, 1], [0, 0], [1, 0]]
    table = np.array([[1.0, 2.0], [5.0, 6.0]])
    for combiner, first in [("mean", [3, 4]), ("sum", [6, 8]), ("sqrtn", [6 / 2**0.5, 8 / 2**0.5])]:
        embedded = fc.embedding_column(column, 2, combiner, tf.constant_initializer(table))
        np.testing.assert_allclose(dense(embedded), [first, [0, 0], [1, 2]], rtol=1e-6)


def test_identity_and_hash():
    identity = fc.categorical_column_with_identity("number", 3)
    assert dense(fc.indicator_column(identity)) == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    bounded = fc.categorical_column_with_identity("number", 2, default_value=0)
    assert dense(fc.indicator_column(bounded)) == [[1, 0], [1, 0], [0, 1]]
    for key, dtype in (("colour", tf.string), ("number", tf.int64)):
        hashed = fc.categorical_column_with_hash_bucket(key, 7, dtype)
        values = FEATURES[key] if dtype is tf.string else [b"2", b"0", b"1"]
        expected = run(tf.string_to_hash_bucket_fast(tf.constant(values), 7))
        assert np.argmax(dense(fc.indicator_column(hashed)), 1).tolist() == expected.tolist()


def test_crossed_column():
    buckets = fc.bucketized_column(fc.numeric_column("age"), [18])
    column = fc.crossed_column(["colour", buckets], 11)
    assert column.name == "age_bucketized_X_colour"
    expected = run(tf.string_to_hash_bucket_fast([b"red_X_0", b"blue_X_1", b"mauve_X_1"], 11))
    assert np.argmax(dense(fc.indicator_column(column)), 1).tolist() == expected.tolist()
    many = fc.crossed_column(["colour", "tags"], 50)
    assert np.sum(dense(fc.indicator_column(many)), 1).tolist() == [2, 0, 1]


def test_columns_stand_in_the_order_of_their_names():
    columns = [fc.numeric_column("size", 2), fc.numeric_column("age")]
    variables = {}
    column = fc.embedding_column(fc.categorical_column_with_identity("number", 3), 4)
    inputs = fc.input_layer(features(), [*columns, column], cols_to_vars=variables)
    assert inputs.shape.as_list()[1] == 7
    values = run(inputs)
    assert values[:, 0].tolist() == [5, 20, 65]
    assert values[:, 5:].tolist() == FEATURES["size"].tolist()
    assert [v.op.name for v in tf.global_variables()] == ["input_layer/number_embedding/embedding_weights"]
    assert variables[column] == tf.trainable_variables()


def test_linear_model():
    columns = [
        fc.numeric_column("size", 2),
        fc.categorical_column_with_vocabulary_list("tags", ["x", "y"]),
        fc.bucketized_column(fc.numeric_column("age"), [18, 65]),
    ]
    variables = {}
    outputs = fc.linear_model(features(), columns, units=1, cols_to_vars=variables)
    names = [variable.op.name for variable in tf.global_variables()]
    assert names == [
        "linear_model/age_bucketized/weights",
        "linear_model/size/weights",
        "linear_model/tags/weights",
        "linear_model/bias_weights",
    ]
    values = [[[1.0], [2.0], [3.0]], [[0.5], [0.25]], [[10.0], [20.0]], [100.0]]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert session.run(outputs).tolist() == [[0], [0], [0]]
        for variable, value in zip(tf.global_variables(), values, strict=True):
            variable.load(value, session)
        assert session.run(outputs)[:, 0].tolist() == [1 + 1 + 30 + 100, 2 + 2.5 + 100, 3 + 4 + 10 + 100]
    assert set(variables) == {*columns, "bias"}


def test_a_linear_model_learns():
    random = np.random.default_rng(0)
    words = random.choice([b"up", b"down"], size=80)
    x = random.normal(size=80).astype(np.float32)
    labels = ((x + np.where(words == b"up", 1.0, -1.0)) > 0).astype(np.float32)[:, None]
    columns = [fc.numeric_column("x"), fc.categorical_column_with_vocabulary_list("word", ["up", "down"])]
    logits = fc.linear_model({"x": tf.constant(x), "word": tf.constant(words)}, columns)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train_op = tf.train.FtrlOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(60):
            session.run(train_op)
        assert ((session.run(logits) > 0) == labels).mean() > 0.95


def test_parse_example_spec():
    columns = [
        fc.bucketized_column(fc.numeric_column("age", default_value=1.0), [18]),
        fc.embedding_column(fc.categorical_column_with_hash_bucket("colour", 9), 2),
        fc.indicator_column(fc.categorical_column_with_identity("number", 3)),
        fc.crossed_column(["a", "b"], 5),
    ]
    assert fc.make_parse_example_spec(columns) == {
        "age": tf.FixedLenFeature([1], tf.float32, 1.0),
        "colour": tf.VarLenFeature(tf.string),
        "number": tf.VarLenFeature(tf.int64),
        "a": tf.VarLenFeature(tf.string),
        "b": tf.VarLenFeature(tf.string),
    }


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: fc.bucketized_column("age", [1]), ValueError, "numeric column"),
        (lambda: fc.bucketized_column(fc.numeric_column("age"), [2, 1]), ValueError, "ascending"),
        (lambda: fc.categorical_column_with_vocabulary_list("c", ["a", "a"]), ValueError, "none twice"),
        (lambda: fc.crossed_column(["a"], 5), ValueError, "two keys"),
        (lambda: fc.crossed_column(["a", 1], 5), ValueError, "names and categorical"),
        (lambda: fc.embedding_column(fc.categorical_column_with_identity("n", 3), 2, "max"), ValueError, "combiner"),
        (lambda: fc.input_layer({}, [fc.numeric_column("none")]), InvalidArgumentError, "no feature 'none'"),
        (lambda: fc.input_layer({}, fc.categorical_column_with_identity("n", 3)), ValueError, "holds ids"),
        (lambda: fc.input_layer({}, ["n"]), ValueError, "no feature column"),
        (lambda: fc.input_layer({}, [fc.numeric_column("n")] * 2), ValueError, "none twice"),
    ],
)
def test_what_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()
