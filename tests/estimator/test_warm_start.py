"""Warm starts: variables that begin with the values of another model's checkpoint."""

from __future__ import annotations

import pytest

import tfray as tf

Settings, Vocab = tf.estimator.WarmStartSettings, tf.estimator.VocabInfo


def model(shape=(3, 2), start=0.0, name="weights"):
    def model_fn(features, labels, mode):
        weights = tf.get_variable(name, shape, initializer=tf.constant_initializer(start))
        bias = tf.get_variable("bias", [2], initializer=tf.constant_initializer(start))
        loss = tf.reduce_sum(weights) + tf.reduce_sum(bias)
        step = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, predictions=features["x"], loss=loss, train_op=step)

    return model_fn


def input_fn():
    return {"x": tf.zeros([1])}


@pytest.fixture
def trained(tmp_path):
    """A checkpoint in which weights are 0 to 5 and biases 7."""

    def model_fn(features, labels, mode):
        weights = tf.get_variable("weights", initializer=tf.reshape(tf.range(6.0), [3, 2]))
        bias = tf.get_variable("bias", initializer=tf.constant([7.0, 7.0]))
        step = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_sum(weights) + bias[0], train_op=step)

    return tf.estimator.Estimator(model_fn, str(tmp_path / "old")).train(input_fn, steps=3)


def started(settings, folder, **options):
    """Weights, bias and global step of a model after one step."""
    made = tf.estimator.Estimator(model(**options), str(folder / "new"), warm_start_from=settings)
    made.train(input_fn, steps=1)
    name = options.get("name", "weights")
    return [made.get_variable_value(each).tolist() for each in (name, "bias", "global_step")]


OLD = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
ZERO = [[0.0, 0.0]] * 3


def test_all_trainable_variables_but_not_the_global_step(trained, tmp_path):
    assert started(trained.model_dir, tmp_path) == [OLD, [7.0, 7.0], 1]


@pytest.mark.parametrize(
    ("which", "weights", "bias"),
    [("weig.*", OLD, [0.0, 0.0]), (["bias"], ZERO, [7.0, 7.0]), (None, ZERO, [0.0, 0.0])],
)
def test_some_variables(trained, tmp_path, which, weights, bias):
    assert started(Settings(trained.latest_checkpoint(), which), tmp_path) == [weights, bias, 1]


def test_another_name(trained, tmp_path):
    settings = Settings(trained.model_dir, ".*", None, {"kernel": "weights"})
    assert started(settings, tmp_path, name="kernel")[0] == OLD


def test_vocabularies(trained, tmp_path):
    (tmp_path / "old.txt").write_text("apple\nbanana\ncherry\n")
    (tmp_path / "new.txt").write_text("cherry\nfig\napple\n")
    info = Vocab(str(tmp_path / "new.txt"), 3, 1, str(tmp_path / "old.txt"))
    settings = Settings(trained.model_dir, ".*", {"weights": info})
    found = started(settings, tmp_path, shape=(4, 2), start=9.0)[0]
    assert found == [[4.0, 5.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    # Only the first two words of the old vocabulary count, and others get values of an initializer of their own.
    info = info._replace(old_vocab_size=2, backup_initializer=tf.ones_initializer())
    found = started(Settings(trained.model_dir, ".*", {"weights": info}), tmp_path / "b", shape=(4, 2), start=9.0)[0]
    assert found == [[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]


def test_a_vocabulary_of_columns(trained, tmp_path):
    (tmp_path / "old.txt").write_text("yes\nno\n")
    (tmp_path / "new.txt").write_text("no\nperhaps\nyes\n")
    info = Vocab(str(tmp_path / "new.txt"), 3, 0, str(tmp_path / "old.txt"), axis=1)
    found = started(Settings(trained.model_dir, "weights", {"weights": info}), tmp_path, shape=(3, 3), start=9.0)[0]
    assert found == [[1.0, 0.0, 0.0], [3.0, 0.0, 2.0], [5.0, 0.0, 4.0]]


def test_only_the_first_training_begins_so(trained, tmp_path):
    made = tf.estimator.Estimator(model(start=1.0), str(tmp_path / "new")).train(input_fn, steps=1)
    again = tf.estimator.Estimator(model(start=1.0), str(tmp_path / "new"), warm_start_from=trained.model_dir)
    again.train(input_fn, steps=1)
    assert (
        made.get_variable_value("weights").tolist() == again.get_variable_value("weights").tolist() == [[1.0] * 2] * 3
    )


def test_a_canned_model_goes_on_from_another(tmp_path):
    words = tf.feature_column.categorical_column_with_vocabulary_list("w", ["a", "b"])

    def data():
        return tf.data.Dataset.from_tensors(({"w": ["a", "b"]}, [1, 0])).repeat()

    first = tf.estimator.LinearClassifier([words], str(tmp_path / "a")).train(data, steps=50)
    second = tf.estimator.LinearClassifier(
        [words], str(tmp_path / "b"), warm_start_from=first.model_dir, optimizer="SGD"
    )
    loss = second.evaluate(data, steps=1)["loss"]
    assert loss == pytest.approx(first.evaluate(data, steps=1)["loss"])


def test_what_makes_no_sense(trained, tmp_path):
    with pytest.raises(ValueError, match="nothing"):
        started(Settings(trained.model_dir, ".*", None, {"nothing": "weights"}), tmp_path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape of variable weights"):
        started(trained.model_dir, tmp_path, shape=(5, 2))
    with pytest.raises(ValueError, match="warm_start_from"):
        started(3.5, tmp_path)
