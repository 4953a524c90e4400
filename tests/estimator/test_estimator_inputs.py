"""Input functions over arrays and data frames."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

numpy_input_fn = tf.estimator.inputs.numpy_input_fn


def batches(input_fn, count=100):
    """All batches, at most so many."""
    with tf.Graph().as_default():
        fetches = input_fn()
        found = []
        with tf.train.MonitoredSession() as session:
            while not session.should_stop() and len(found) < count:
                found.append(session.run(fetches))
        return found


def test_batches_go_on_over_the_ends_of_epochs():
    """As in TensorFlow: five examples, twice, in batches of four."""
    found = batches(numpy_input_fn(np.arange(5), np.arange(5) * 10, batch_size=4, num_epochs=2, shuffle=False))
    assert [x.tolist() for x, _ in found] == [[0, 1, 2, 3], [4, 0, 1, 2], [3, 4]]
    assert [y.tolist() for _, y in found] == [[0, 10, 20, 30], [40, 0, 10, 20], [30, 40]]


def test_shuffling_keeps_pairs_and_takes_every_example_once_per_epoch():
    x = {"a": np.arange(100), "b": np.arange(200).reshape(100, 2)}
    found = batches(numpy_input_fn(x, {"y": -np.arange(100)}, batch_size=30, shuffle=True))
    a = np.concatenate([features["a"] for features, _ in found])
    assert sorted(a) == list(range(100)) and a.tolist() != list(range(100))
    np.testing.assert_array_equal(np.concatenate([labels["y"] for _, labels in found]), -a)
    np.testing.assert_array_equal(np.concatenate([features["b"][:, 0] for features, _ in found]), 2 * a)


def test_without_end_and_labels_shapes_are_static():
    with tf.Graph().as_default():
        features = numpy_input_fn({"a": np.zeros((6, 3), np.float32)}, batch_size=4, num_epochs=None, shuffle=True)()
        assert features["a"].shape == [4, 3] and features["a"].dtype == tf.float32
    assert len(batches(numpy_input_fn(np.arange(3), batch_size=2, num_epochs=None, shuffle=False), count=50)) == 50


def test_arrays_do_not_become_part_of_the_graph():
    with tf.Graph().as_default() as graph:
        numpy_input_fn(np.zeros(100_000), shuffle=False)()
        assert len(graph.as_graph_def().SerializeToString()) < 20_000


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"x": np.arange(3), "shuffle": None}, ValueError, "shuffle is None"),
        ({"x": [1, 2], "shuffle": True}, TypeError, "x is a list"),
        ({"x": {}, "shuffle": True}, ValueError, "empty dictionary"),
        ({"x": np.zeros(0), "shuffle": True}, ValueError, "empty array"),
        ({"x": np.arange(3), "y": np.arange(4), "shuffle": True}, ValueError, "same number of examples"),
        ({"x": np.arange(3), "y": np.arange(4), "shuffle": True}, ValueError, "Length of tensors in x and y is mism"),
        ({"x": {"a": np.arange(3)}, "y": {"a": np.arange(3)}, "shuffle": True}, ValueError, "both a feature"),
    ],
)
def test_what_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        numpy_input_fn(**arguments)()


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame({"a": [1, 2, 3], "c": ["u", "v", "w"]})
    y = pandas.Series([0.5, 1.5, 2.5])
    ((features, labels),) = batches(tf.estimator.inputs.pandas_input_fn(x, y, shuffle=False))
    assert features["a"].tolist() == [1, 2, 3] and features["c"].tolist() == [b"u", b"v", b"w"]
    assert labels.tolist() == [0.5, 1.5, 2.5]
    (features,) = batches(tf.estimator.inputs.pandas_input_fn(x, shuffle=False))
    assert set(features) == {"a", "c"}
    with pytest.raises(ValueError, match="target_column"):
        tf.estimator.inputs.pandas_input_fn(x, y, shuffle=False, target_column="a")
    with pytest.raises(ValueError, match="index"):
        tf.estimator.inputs.pandas_input_fn(x, y[1:], shuffle=False)


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(TypeError, match="pip install pandas"):
        tf.estimator.inputs.pandas_input_fn(None, shuffle=False)
