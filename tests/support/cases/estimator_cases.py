"""Canned estimators and heads on small data: what they give is compared with what TensorFlow gave.

Nothing here is tfray's: `scripts/golden_estimators.py` runs the same with TensorFlow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

STEPS = 3
BATCH = 16


def data():
    """Features by name, and labels by kind."""
    rng = np.random.RandomState(0)
    count = 40
    features = {
        "a": rng.normal(size=count).astype(np.float32),
        "b": rng.normal(size=(count, 2)).astype(np.float32),
        "c": np.array(["x", "y", "z", "w"])[rng.randint(0, 4, count)],
        "weight": rng.uniform(0.5, 2, count).astype(np.float32),
    }
    yes = (features["a"] + features["b"][:, 0] > 0).astype(np.int64)
    number = (2 * features["a"] - features["b"][:, 1] + 0.5).astype(np.float32)
    labels = {
        "yes": yes,
        "word": np.array(["no", "yes"])[yes],
        "class": rng.randint(0, 3, count).astype(np.int64),
        "number": number,
        "numbers": np.stack([number, -number], 1),
        "several": rng.randint(0, 2, (count, 3)).astype(np.int64),
        "count": rng.poisson(2, count).astype(np.float32),
        "share": yes.astype(np.float32),
        "both": {"one": yes, "two": number},
    }
    return features, labels


def cases(tf):
    """By name: the labels, whether variables are set to fixed values, and a function from a folder to the estimator."""
    column, estimator = tf.feature_column, tf.estimator
    numbers = [column.numeric_column("a"), column.numeric_column("b", shape=2)]
    words = column.categorical_column_with_vocabulary_list("c", ["x", "y", "z"])
    wide, deep = [*numbers, words], [*numbers, column.embedding_column(words, 2)]
    shown = [*numbers, column.indicator_column(words)]
    reduction = tf.losses.Reduction

    def canned(name, *arguments, **settings):
        def make(folder):
            config = estimator.RunConfig(str(folder), tf_random_seed=3, save_summary_steps=1)
            return getattr(estimator, name)(*arguments, config=config, **settings)

        return make

    def with_head(head, units):
        def model_fn(features, labels, mode):
            inputs = tf.stack([features["a"], features["b"][:, 0]], 1)
            weights = tf.get_variable("weights", [2, units], initializer=tf.constant_initializer(0.2))
            return head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=tf.matmul(inputs, weights),
                labels=labels,
                train_op_fn=lambda loss: tf.train.GradientDescentOptimizer(0.01).minimize(
                    loss, tf.train.get_global_step()
                ),
            )

        return lambda folder: estimator.Estimator(model_fn, str(folder), estimator.RunConfig(save_summary_steps=1))

    combined = {"linear_feature_columns": [words], "dnn_feature_columns": deep, "dnn_hidden_units": [4]}
    mean = {"loss_reduction": reduction.MEAN, "sparse_combiner": "mean", "optimizer": "SGD"}
    adam = tf.train.AdamOptimizer
    return {
        "linear_binary": ("yes", False, canned("LinearClassifier", wide)),
        "linear_weighted": ("yes", False, canned("LinearClassifier", wide, weight_column="weight")),
        "linear_words": ("word", False, canned("LinearClassifier", wide, label_vocabulary=["no", "yes"])),
        "linear_mean": ("yes", False, canned("LinearClassifier", wide, **mean)),
        "linear_classes": ("class", False, canned("LinearClassifier", wide, n_classes=3)),
        "linear_numbers": (
            "numbers", False, canned("LinearRegressor", wide, label_dimension=2, optimizer=lambda: adam(0.1)),
        ),
        "dnn_binary": ("yes", True, canned("DNNClassifier", [4, 3], shown)),
        "dnn_classes": ("class", True, canned("DNNClassifier", [4], deep, n_classes=3)),
        "dnn_normalized": ("number", True, canned("DNNRegressor", [4, 3], numbers, batch_norm=True)),
        "combined_binary": ("yes", True, canned("DNNLinearCombinedClassifier", **combined)),
        "combined_number": ("number", True, canned("DNNLinearCombinedRegressor", **combined)),
        "baseline_binary": ("yes", False, canned("BaselineClassifier")),
        "baseline_classes": ("class", False, canned("BaselineClassifier", n_classes=3)),
        "baseline_number": ("number", False, canned("BaselineRegressor")),
        "head_binary": (
            "yes",
            False,
            with_head(estimator.BinaryClassHead(thresholds=[0.3, 0.6], weight_column="weight", name="yes"), 1),
        ),
        "head_numbers": ("numbers", False, with_head(estimator.RegressionHead(2, weight_column="weight"), 2)),
        "head_share": ("share", False, with_head(estimator.LogisticRegressionHead(), 1)),
        "head_count": ("count", False, with_head(estimator.PoissonRegressionHead(), 1)),
        "heads": (
            "both",
            False,
            with_head(
                estimator.MultiHead(
                    [estimator.BinaryClassHead(name="one"), estimator.RegressionHead(name="two")], [1.0, 0.5]
                ),
                2,
            ),
        ),
    }  # fmt: skip


def run(tf, name, folder):
    """Train, evaluate and predict. Returns plain data: losses, results, predictions, dtypes and names."""
    kind, fixed, make = cases(tf)[name]
    features, labels = data()
    features = features if "weighted" in name or "head_" in name else {k: features[k] for k in "abc"}

    def dataset():
        return tf.data.Dataset.from_tensor_slices((features, labels[kind]))

    class Losses(tf.train.SessionRunHook):
        values = ()

        def begin(self):
            self.loss = tf.get_collection("losses")[-1]

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.loss)

        def after_run(self, run_context, run_values):
            self.values = (*self.values, run_values.results)

    class Fixed(tf.train.SessionRunHook):
        """Sets the trainable variables to values that depend on their names."""

        def begin(self):
            self.new = {}
            for variable in tf.trainable_variables():
                shape = variable.shape.as_list()
                begin = len(variable.op.name.replace("/part_0", ""))
                value = (np.sin(np.arange(np.prod(shape)) + begin) * 0.3).reshape(shape)
                self.new[tf.assign(variable, value.astype(np.float32))] = variable

        def after_create_session(self, session, coord):
            session.run(list(self.new))

    model, losses = make(folder), Losses()
    model.train(lambda: dataset().repeat().batch(BATCH), [losses, Fixed()] if fixed else [losses], steps=STEPS)
    results = model.evaluate(lambda: dataset().batch(BATCH))
    prediction = next(model.predict(lambda: dataset().batch(BATCH)))
    prediction = {key if isinstance(key, str) else "/".join(key): np.asarray(prediction[key]) for key in prediction}
    variables = [each for each in model.get_variable_names() if each.rpartition("/")[2] not in SLOTS]
    events = [each for path in Path(folder).glob("*tfevents*") for each in tf.train.summary_iterator(str(path))]
    return {
        "losses": [float(value) for value in losses.values],
        "results": {key: float(results[key]) for key in sorted(results)},
        "predictions": {key: _plain(prediction[key]) for key in sorted(prediction)},
        "dtypes": {key: f"{prediction[key].dtype}{list(prediction[key].shape)}" for key in sorted(prediction)},
        "variables": sorted(variables),
        "tags": sorted({value.tag for event in events for value in event.summary.value}),
    }


SLOTS = ("Ftrl", "Ftrl_1", "Adagrad", "Adam", "Adam_1")
"""Ends of names of slots, which TensorFlow names by the scope in which the optimizer is called."""


def _plain(value):
    if value.dtype.kind in "SO":
        return [each.decode() for each in value.ravel()]
    return value.astype(float).ravel().tolist()
