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
    weights = {}
    outputs = fc.linear_model(features(), pair, cols_to_vars=weights)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        weights[pair][0].load([[1.0], [2.0], [10.0], [20.0]], session)
        assert session.run(outputs)[:, 0].tolist() == [11, 22, 22]


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
    # TensorFlow's hashes, so that weights of its checkpoints are those of the same crosses.
    assert np.argmax(dense(fc.indicator_column(column)), 1).tolist() == [10, 0, 4]
    many = fc.crossed_column(["colour", "tags"], 50)
    assert np.sum(dense(fc.indicator_column(many)), 1).tolist() == [2, 0, 1]
    nested = fc.crossed_column([fc.crossed_column(["colour", "tags"], 4), "age"], 50)
    assert nested.name == "age_X_colour_X_tags"


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


def test_weights_of_ids():
    words = fc.categorical_column_with_vocabulary_list("tags", ["x", "y"])
    column = fc.weighted_categorical_column(words, "weights")
    given = {**features(), "weights": tf.SparseTensor(TAGS[0], [0.5, 2.0, -1.0], [3, 2])}
    table = tf.constant_initializer([[1.0, 2.0], [3.0, 4.0]])
    columns = [fc.embedding_column(column, 2, combiner, table) for combiner in ("sum", "mean")]
    found = run([fc.input_layer(given, each) for each in (fc.indicator_column(column), *columns)])
    # As TensorFlow: weights that are not positive count in sums alone.
    for values, expected in zip(
        found,
        [
            [[0.5, 2], [0, 0], [-1, 0]],
            [[6.5, 9], [0, 0], [-1, -2]],
            [[2.6, 3.6], [0, 0], [0, 0]],
        ],
        strict=True,
    ):
        np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert column.parse_example_spec == {"tags": tf.VarLenFeature(tf.string), "weights": tf.VarLenFeature(tf.float32)}
    with pytest.raises(ValueError, match="Bad dtype"):
        fc.input_layer({**given, "weights": given["tags"]}, fc.indicator_column(column))


def test_columns_that_share_a_table():
    first = fc.categorical_column_with_vocabulary_list("tags", ["x", "y"])
    second = fc.categorical_column_with_vocabulary_list("colour", ["red", "blue"])
    table = tf.constant_initializer([[1.0, 2.0], [3.0, 4.0]])
    columns = fc.shared_embedding_columns([first, second], 2, initializer=table)
    assert [column.name for column in columns] == ["tags_shared_embedding", "colour_shared_embedding"]
    values = run(fc.input_layer(features(), columns))
    assert values.tolist() == [[1, 2, 2, 3], [3, 4, 0, 0], [0, 0, 1, 2]]
    assert [v.op.name for v in tf.global_variables()] == ["input_layer/colour_tags_shared_embedding/embedding_weights"]
    other = fc.categorical_column_with_vocabulary_list("colour", COLOURS)
    with pytest.raises(ValueError, match="same number of buckets"):
        fc.shared_embedding_columns([first, other], 2)


def test_a_vocabulary_in_a_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("red\ngreen\nblue\n")
    column = fc.categorical_column_with_vocabulary_file("colour", str(path))
    assert column.num_buckets == 3
    assert dense(fc.indicator_column(column)) == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    shorter = fc.categorical_column_with_vocabulary_file("colour", str(path), 2, num_oov_buckets=1)
    assert dense(fc.indicator_column(shorter)) == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_an_embedding_of_a_checkpoint(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        saved = tf.get_variable("table", initializer=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        session.run(saved.initializer)
        tf.train.Saver().save(session, str(tmp_path / "model"))
    identity = fc.categorical_column_with_identity("number", 3)
    column = fc.embedding_column(identity, 2, ckpt_to_load_from=str(tmp_path), tensor_name_in_ckpt="table")
    assert dense(column) == [[5, 6], [1, 2], [3, 4]]


def test_ids_out_of_range_are_an_error_of_the_step():
    column = fc.indicator_column(fc.categorical_column_with_identity("number", 2))
    with pytest.raises(InvalidArgumentError, match="too large"):
        dense(column)


def test_sequences():
    steps = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([1, 0, 2]), [3, 2])
    numbers = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [0, 3], [2, 0], [2, 1]], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 4])
    words = fc.sequence_categorical_column_with_identity("steps", 3)
    table = tf.constant_initializer([[1.0], [2.0], [3.0]])
    columns = [fc.embedding_column(words, 1, initializer=table), fc.sequence_numeric_column("numbers", 2)]
    given = {"steps": steps, "numbers": numbers}
    inputs, lengths = run(tf.contrib.feature_column.sequence_input_layer(given, columns))
    assert lengths.tolist() == [2, 0, 1]
    assert inputs.tolist() == [[[1, 2, 2], [3, 4, 1]], [[0, 0, 0], [0, 0, 0]], [[5, 6, 3], [0, 0, 0]]]
    counts, _ = run(tf.contrib.feature_column.sequence_input_layer(given, fc.indicator_column(words)))
    assert counts.tolist() == [[[0, 1, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]]]
    with pytest.raises(ValueError, match="without sequence_"):
        fc.input_layer(given, columns[0])


def test_layers_of_columns_keep_their_variables():
    column = fc.embedding_column(fc.categorical_column_with_identity("number", 3), 2)
    layer = tf.keras.layers.DenseFeatures([fc.numeric_column("age"), column])
    first, second = layer(features()), layer(features())
    assert [variable.op.name for variable in layer.variables] == ["dense_features/number_embedding/embedding_weights"]
    assert tf.trainable_variables() == layer.variables
    one, two = run([first, second])
    assert one.tolist() == two.tolist()
    assert one[:, 0].tolist() == [5, 20, 65]
    with pytest.raises(ValueError, match="must be a DenseColumn"):
        tf.keras.layers.DenseFeatures([column.categorical_column])


def _twice(values):
    return 2 * values


def test_models_of_columns_are_described():
    words = fc.categorical_column_with_vocabulary_list("b", ["one", "two"])
    columns = [
        fc.numeric_column("a", default_value=0.5, normalizer_fn=_twice),
        fc.indicator_column(words),
        fc.embedding_column(fc.categorical_column_with_identity("c", 5), 3),
        fc.bucketized_column(fc.numeric_column("d"), [0.0, 1.0]),
        fc.indicator_column(fc.crossed_column(["b", "e"], 10)),
    ]
    dtypes = {"a": "float32", "b": "string", "c": "int64", "d": "float32", "e": "string"}
    inputs = {name: tf.keras.Input((1,), name=name, dtype=dtype) for name, dtype in dtypes.items()}
    layer = tf.keras.layers.DenseFeatures(columns)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(4)(layer(inputs)))
    told = {each["config"].get("key"): each for each in layer.get_config()["feature_columns"]}
    assert told["a"]["class_name"] == "NumericColumn" and told["a"]["config"] == {
        "key": "a",
        "shape": [1],
        "default_value": [0.5],
        "dtype": "float32",
        "normalizer_fn": {"function": "_twice"},
    }
    again = tf.keras.models.model_from_json(model.to_json(), {"_twice": _twice})
    again.set_weights(model.get_weights())
    data = {
        "a": np.ones([3, 1]),
        "b": np.array([["one"], ["two"], ["three"]]),
        "c": np.array([[0], [1], [2]]),
        "d": np.array([[-1.0], [0.5], [2.0]]),
        "e": np.array([["x"], ["x"], ["y"]]),
    }
    tf.keras.backend.get_session().run(tf.tables_initializer())
    np.testing.assert_allclose(again.predict(data), model.predict(data))
    assert type(words).from_config(words.get_config()) == words
    with pytest.raises(tf.errors.InvalidArgumentError, match="_twice"):
        tf.keras.models.model_from_json(model.to_json())


def test_columns_say_what_they_gave():
    outputs: dict = {}
    columns = [fc.numeric_column("size", 2), fc.numeric_column("age")]
    fc.input_layer(features(), columns, cols_to_output_tensors=outputs)
    assert [value.tolist() for value in run([outputs[column] for column in columns])] == [
        FEATURES["size"].tolist(),
        [[5], [20], [65]],
    ]


def test_parse_example_spec():
    columns = [
        fc.bucketized_column(fc.numeric_column("age", default_value=1.0), [18]),
        fc.embedding_column(fc.categorical_column_with_hash_bucket("colour", 9), 2),
        fc.indicator_column(fc.categorical_column_with_identity("number", 3)),
        fc.crossed_column(["a", "b"], 5),
    ]
    assert fc.make_parse_example_spec(columns) == {
        "age": tf.FixedLenFeature((1,), tf.float32, (1.0,)),
        "colour": tf.VarLenFeature(tf.string),
        "number": tf.VarLenFeature(tf.int64),
        "a": tf.VarLenFeature(tf.string),
        "b": tf.VarLenFeature(tf.string),
    }


def test_columns_that_read_a_feature_in_two_ways_have_no_spec():
    with pytest.raises(ValueError, match="different parse_spec for key age"):
        fc.make_parse_example_spec([fc.numeric_column("age"), fc.categorical_column_with_identity("age", 3)])


def column_of_words(**arguments):
    return fc.categorical_column_with_vocabulary_list("colour", ["a", "b"], **arguments)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: fc.bucketized_column("age", [1]), "numeric_column"),
        (lambda: fc.bucketized_column(fc.numeric_column("age"), [2, 1]), "sorted list"),
        (lambda: fc.bucketized_column(fc.numeric_column("age"), []), "not be empty"),
        (lambda: fc.bucketized_column(fc.numeric_column("age", [1, 1]), [1]), "one-dimensional"),
        (lambda: fc.numeric_column("age", dtype=tf.string), "convertible to float"),
        (lambda: fc.numeric_column("age", 0), "greater than 0"),
        (lambda: fc.numeric_column("age", 2, default_value=[1.0]), "equal to given shape"),
        (lambda: fc.numeric_column(("age",)), "must be a string"),
        (lambda: fc.categorical_column_with_vocabulary_list("c", ["a", "a"]), "Duplicate keys"),
        (lambda: fc.categorical_column_with_vocabulary_list("c", []), "non-empty"),
        (lambda: column_of_words(default_value=0, num_oov_buckets=2), "both num_oov_buckets and default_value"),
        (lambda: column_of_words(dtype=tf.int64), "do not match"),
        (lambda: fc.categorical_column_with_vocabulary_file("c", "/nowhere"), "does not exist"),
        (lambda: fc.categorical_column_with_identity("c", 0), "num_buckets 0 < 1"),
        (lambda: fc.categorical_column_with_identity("c", 2, 2), "not in range"),
        (lambda: fc.categorical_column_with_hash_bucket("c", 0), "at least 1"),
        (lambda: fc.crossed_column(["a"], 5), "length > 1"),
        (lambda: fc.crossed_column(["a", 1], 5), "Unsupported key type"),
        (lambda: fc.crossed_column(["a", fc.categorical_column_with_hash_bucket("c", 2)], 5), "not supported for"),
        (lambda: fc.embedding_column(column_of_words(), 2, "max"), "combiner"),
        (lambda: fc.embedding_column(column_of_words(), 0), "Invalid dimension"),
        (lambda: fc.embedding_column(column_of_words(), 2, ckpt_to_load_from="x"), "both `ckpt_to_load_from`"),
        (lambda: fc.input_layer({}, [fc.numeric_column("none")]), "Feature none is not in features"),
        (lambda: fc.input_layer({"n": 1.0}, [fc.numeric_column("n")]), "cannot have rank 0"),
        (lambda: fc.input_layer(features(), fc.numeric_column("tags")), "SparseTensor is not supported"),
        (lambda: fc.input_layer({}, column_of_words()), "wrap a categorical column"),
        (lambda: fc.input_layer({}, ["n"]), "must be a FeatureColumn"),
        (lambda: fc.input_layer({}, {"n": fc.numeric_column("n")}), "found dict"),
        (lambda: fc.input_layer({}, []), "not be empty"),
        (lambda: fc.input_layer({}, [fc.numeric_column("n")] * 2), "Duplicate feature column name"),
        (
            lambda: fc.input_layer({"a": [1.0], "b": [1.0, 2.0]}, [fc.numeric_column("a"), fc.numeric_column("b")]),
            "must be same",
        ),
    ],
)
def test_what_is_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
