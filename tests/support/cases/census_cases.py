"""People like those of a census, made by a formula, and canned estimators that tell who earns much.

`run` gives how often an estimator is right. TensorFlow 1.15 runs it too: see ``scripts/golden_census.py``.
"""

from __future__ import annotations

import tempfile

import numpy as np

SEEDS = (7, 8, 9)
"""Of the initial values. Networks of different seeds differ by half a point."""

EDUCATION = ["school", "college", "bachelor", "master", "doctor"]


def people(count, seed):
    """Features of people, and whether each earns much."""
    random = np.random.RandomState(seed)
    age = random.uniform(17, 80, count).astype(np.float32)
    hours = np.clip(random.normal(40, 12, count), 1, 99).astype(np.float32)
    education = random.randint(0, 5, count)
    occupation = random.randint(0, 40, count)
    worth = np.random.RandomState(0).normal(size=(5, 8))
    score = -(((age - 48) / 14) ** 2) + 0.05 * (hours - 40) + 0.7 * education + worth[education, occupation % 8] - 1.0
    earns_much = (score + random.logistic(0, 0.6, count) > 0).astype(np.int32)
    features = {
        "age": age,
        "hours": hours,
        "education": np.array(EDUCATION)[education],
        "occupation": np.array([f"occupation {number}" for number in occupation]),
    }
    return features, earns_much


def _columns(tf):
    columns = tf.feature_column
    age = columns.numeric_column("age", normalizer_fn=lambda age: (age - 45) / 15)
    hours = columns.numeric_column("hours", normalizer_fn=lambda hours: (hours - 40) / 12)
    ages = columns.bucketized_column(columns.numeric_column("age"), list(range(20, 75, 5)))
    education = columns.categorical_column_with_vocabulary_list("education", EDUCATION)
    occupation = columns.categorical_column_with_hash_bucket("occupation", 200)
    both = columns.crossed_column(["education", "occupation"], 2000)
    wide = [ages, hours, education, occupation, both]
    return wide, [age, hours, columns.indicator_column(education), columns.embedding_column(occupation, 8)]


def _estimator(tf, kind, seed, folder):
    wide, deep = _columns(tf)
    config = tf.estimator.RunConfig(folder, tf_random_seed=seed)
    if kind == "linear":
        return tf.estimator.LinearClassifier(wide, config=config)
    if kind == "deep":
        return tf.estimator.DNNClassifier([32, 16], deep, config=config)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[32, 16],
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        config=config,
    )


KINDS = ("linear", "deep", "wide and deep")


def _input_fn(tf, data, epochs):
    def make():
        dataset = tf.data.Dataset.from_tensor_slices(data)
        return (dataset.shuffle(8000, seed=3) if epochs > 1 else dataset).repeat(epochs).batch(100)

    return make


def run(tf, kind):
    """The share of 8,000 other people about whom an estimator is right after twelve epochs over 8,000, by seed."""
    found = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            estimator = _estimator(tf, kind, seed, folder)
            estimator.train(_input_fn(tf, people(8000, 1), 12))
            found.append(float(estimator.evaluate(_input_fn(tf, people(8000, 2), 1))["accuracy"]))
    return found
