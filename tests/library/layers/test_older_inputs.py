"""Inputs and linear models of `tf.contrib.layers`' columns: the values, names and orders of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import variable_names

layers = tf.contrib.layers


def features():
    return {
        "x": tf.constant([[1.0, 2], [3, 4]]),
        "y": tf.constant([[0.5], [2.5]]),
        "w": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "b", "zz"], [2, 2]),
        "v": tf.SparseTensor([[0, 0], [1, 0]], ["p", "q"], [2, 1]),
    }


def sequences():
    return {
        "x": tf.constant(np.arange(12.0).reshape(2, 3, 2), tf.float32),
        "y": tf.constant(np.arange(6.0).reshape(2, 3, 1) / 2, tf.float32),
        "w": tf.SparseTensor([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], ["a", "b", "zz", "c"], [2, 3, 2]),
        "v": tf.SparseTensor([[0, 0], [0, 2], [1, 0]], ["p", "q", "q"], [2, 3]),
    }


def column(name):
    """A column by what follows ``:`` in its name: an embedding, ids that are shown, or buckets."""
    name, _, what = name.partition(":")
    if name in "xy":
        made = layers.real_valued_column(name, 2 if name == "x" else 1)
        return layers.bucketized_column(made, [1.0, 2]) if what else made
    made = layers.sparse_column_with_keys(name, ["a", "b", "c"] if name == "w" else ["p", "q"])
    kinds = {"embedding": lambda each: layers.embedding_column(each, 2), "shown": layers.one_hot_column}
    return kinds[what](made) if what else made


def columns(*names):
    return [column(name) for name in names]


def counted(fetches, step=1.0):
    """The values, with 1, 2, 3 and so on in the first variable by name, twice that in the second and so on."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for index, variable in enumerate(sorted(tf.global_variables(), key=lambda each: each.op.name)):
            shape = variable.shape.as_list()
            variable.load(np.arange(1, 1 + np.prod(shape)).reshape(shape) * (index + 1) * step, session)
        return session.run(fetches)


ALL = ("x", "y:buckets", "w:embedding", "v:shown", "y")
ROWS = [[1, 0, 0, 0.2, 0.3, 1, 0, 1, 2, 0.5], [0, 0, 1, 0, 0, 0, 1, 3, 4, 2.5]]


@pytest.mark.parametrize("first", [False, True], ids=["features", "transformed"])
def test_inputs(first):
    given, made, outputs = features(), columns(*ALL), {}
    if first:
        given.update(layers.transform_features(given, made))
    rows = layers.input_from_feature_columns(given, made, cols_to_outs=outputs)
    assert variable_names() == variable_names(tf.trainable_variables())
    assert variable_names() == ["input_from_feature_columns/w_embedding/weights"] and rows.shape.as_list() == [2, 10]
    assert counted(rows, 0.1) == pytest.approx(np.array(ROWS))
    assert set(outputs) == set(made)


def test_inputs_within_a_scope():
    rows = layers.input_from_feature_columns(
        features(), columns("w:embedding"), weight_collections=["mine"], trainable=False, scope="here"
    )
    assert variable_names(tf.get_collection("mine")) == variable_names() == ["here/w_embedding/weights"]
    assert tf.trainable_variables() == [] and rows.shape.as_list() == [2, 2]
    with pytest.raises(ValueError, match="DenseColumn"):
        layers.input_from_feature_columns(features(), columns("w"))


@pytest.mark.parametrize("first", [False, True], ids=["features", "transformed"])
def test_inputs_of_sequences(first):
    given, made = sequences(), columns("x", "w:embedding", "y")
    if first:
        given = layers.transform_features(given, made)
    rows = layers.sequence_input_from_feature_columns(given, made)
    assert variable_names() == ["sequence_input_from_feature_columns/w_embedding/weights"]
    assert rows.shape.as_list() == [2, 3, 5]
    expected = [[[0.2, 0.3], [0, 0], [0, 0]], [[0.5, 0.6], [0, 0], [0, 0]]]
    numbers = np.concatenate([np.arange(12.0).reshape(2, 3, 2), np.arange(6.0).reshape(2, 3, 1) / 2], 2)
    assert counted(rows, 0.1) == pytest.approx(np.concatenate([expected, numbers], 2))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v:shown", [[[1, 0], [0, 0], [0, 1]], [[0, 1], [0, 0], [0, 0]]]),
        ("v:embedding", [[[1, 2], [0, 0], [3, 4]], [[3, 4], [0, 0], [0, 0]]]),
        ("y:buckets", [[[1, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 1]]]),
    ],
)
def test_inputs_of_sequences_with_one_id_a_step(name, expected):
    rows = layers.sequence_input_from_feature_columns(sequences(), columns(name))
    assert counted(rows).tolist() == expected


def test_weighted_sums():
    x, w, buckets = made = columns("x", "w", "y:buckets")
    sums, variables, bias = layers.weighted_sum_from_feature_columns(features(), made, 2)
    scope = "weighted_sum_from_feature_columns"
    names = ["y_bucketized/weights", "x/weight", "w/weights", "bias_weight"]
    assert variable_names() == [f"{scope}/{name}" for name in names]
    assert variable_names(tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)) == variable_names()
    assert variable_names([variables[x][0], variables[w][0], bias]) == [f"{scope}/{name}" for name in names[1:]]
    assert len(variables[buckets]) == 1
    assert counted(sums).tolist() == [[34, 52], [66, 92]]


def test_weighted_sums_within_a_scope():
    sums, _, _ = layers.weighted_sum_from_feature_columns(
        features(), columns("y", "v"), 1, weight_collections=["mine"], trainable=False, scope="lin"
    )
    assert variable_names() == ["lin/y/weight", "lin/v/weights", "lin/bias_weight"] and tf.trainable_variables() == []
    assert variable_names(tf.get_collection("mine")) == variable_names()
    assert counted(sums).tolist() == [[4.5], [12.5]]
    with pytest.raises(ValueError, match="Error creating weighted sum for column: w_embedding"):
        layers.weighted_sum_from_feature_columns(features(), columns("w:embedding"), 1)


def test_weighted_sums_with_one_variable():
    sums, variables, bias = layers.joint_weighted_sum_from_feature_columns(features(), columns("v", "w"), 2)
    scope = "joint_weighted_sum_from_feature_columns"
    assert variable_names() == [f"{scope}/linear_weights/weights", f"{scope}/bias_weight"]
    assert variable_names([*variables, bias]) == variable_names()
    assert counted(sums).tolist() == [[27.0, 34.0], [13.0, 18.0]]
    with pytest.raises(NotImplementedError, match="Real-valued columns are not supported"):
        layers.joint_weighted_sum_from_feature_columns(features(), columns("x"), 1)
    weighted = layers.weighted_sparse_column(column("w"), "y")
    with pytest.raises(ValueError, match="has weights of its own"):
        layers.joint_weighted_sum_from_feature_columns(features(), [weighted], 1)


def test_parsed_examples():
    lists = [(0.5, [b"a"]), (1.5, [b"a", b"c"])]
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "y": tf.train.Feature(float_list=tf.train.FloatList(value=[number])),
                    "w": tf.train.Feature(bytes_list=tf.train.BytesList(value=words)),
                }
            )
        ).SerializeToString()
        for number, words in lists
    ]
    made = columns("y:buckets", "w:shown")
    parsed = layers.parse_feature_columns_from_examples(examples, made)
    assert set(parsed) == {"y", "w", *made, *columns("y", "w")}
    expected = [[1, 0, 0, 1, 0, 0], [0, 1, 0, 1, 0, 1]]
    assert counted(layers.input_from_feature_columns(parsed, made)).tolist() == expected
