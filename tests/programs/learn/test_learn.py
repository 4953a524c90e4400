"""tf.contrib.learn: estimators that are fit to arrays, experiments, and columns by their older names."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import layers, learn

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(100, 4))
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
CONFIG = {"tf_random_seed": 42, "save_checkpoints_secs": None, "save_checkpoints_steps": 20}


def test_a_classifier_of_arrays(tmp_path):
    columns = [layers.real_valued_column("", dimension=4)]
    classifier = learn.DNNClassifier(
        feature_columns=columns,
        hidden_units=[10, 10],
        n_classes=3,
        model_dir=str(tmp_path),
        optimizer=tf.train.AdamOptimizer(0.01),
        config=learn.RunConfig(gpu_memory_fraction=0.5, **CONFIG),
        enable_centered_bias=True,
    )
    watching = learn.monitors.ValidationMonitor(X, CLASSES, every_n_steps=20)
    assert classifier.fit(X, CLASSES, steps=150, batch_size=50, monitors=[watching]) is classifier
    results = classifier.evaluate(x=X, y=CLASSES)
    assert results["accuracy"] > 0.9 and 0 < results["loss"] < 0.7 and results["global_step"] == 150
    assert watching.best_value < 1 and watching.best_step >= 40, "the loss is a mean over the batch"
    predicted = list(classifier.predict(X[:5]))
    assert (np.array(predicted) == CLASSES[:5]).mean() > 0.5
    probabilities = classifier.predict_proba(X[:5], as_iterable=False)
    assert probabilities.shape == (5, 3) and (probabilities.argmax(1) == predicted).all()
    compatible = learn.SKCompat(classifier)
    assert compatible.predict(X[:5])["classes"].tolist() == predicted
    assert compatible.score(X, CLASSES)["accuracy"] == results["accuracy"]
    assert {"dnn/hiddenlayer_0/weights", "dnn/logits/biases"} <= set(classifier.get_variable_names())
    assert classifier.get_variable_value("dnn/logits/biases").shape == (3,) and classifier.model_dir == str(tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: learn.LinearRegressor(optimizer=tf.train.GradientDescentOptimizer(1.0), **options),
        lambda **options: learn.DNNRegressor([3], optimizer="SGD", **options),
        lambda feature_columns, **options: learn.DNNLinearCombinedRegressor(
            linear_feature_columns=feature_columns, linear_optimizer="SGD", **options
        ),
    ],
    ids=["linear", "network", "both"],
)
def test_gradients_are_clipped(make, tmp_path):
    columns = [layers.real_valued_column("", dimension=4)]
    sizes = []
    for clip_norm in (None, 1e-6):
        regressor = make(
            feature_columns=columns, gradient_clip_norm=clip_norm, model_dir=str(tmp_path / str(clip_norm))
        )
        values = []
        for _ in range(2):
            regressor.fit(X, 10 * X[:, 0], steps=1)
            names = [name for name in regressor.get_variable_names() if name != "global_step"]
            values.append(np.concatenate([np.ravel(regressor.get_variable_value(name)) for name in sorted(names)]))
        sizes.append(np.linalg.norm(values[1] - values[0]))
    assert sizes[0] > 1e-3 and sizes[1] <= 1.1e-6


def test_what_would_be_left_out_is_refused():
    columns = [layers.real_valued_column("", dimension=4)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="feature_engineering_fn is not taken"):
        learn.DNNRegressor([3], columns, feature_engineering_fn=lambda features, labels: (features, labels))
    with pytest.raises(tf.errors.InvalidArgumentError, match="embedding_lr_multipliers is not taken"):
        learn.DNNClassifier([3], columns, embedding_lr_multipliers={})


def test_labels_that_are_words():
    columns = [layers.real_valued_column("", dimension=4)]
    words = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    classifier = learn.LinearClassifier(columns, label_keys=["no", "yes"]).fit(X, words, steps=100)
    assert classifier.evaluate(X, words)["accuracy"] > 0.9
    encoded = [word.encode() for word in words]
    found = list(classifier.predict(X))
    assert np.mean(np.equal(found, encoded)) > 0.9
    assert [each["classes"] for each in classifier.predict(X, outputs=["classes"])] == found
    assert learn.SKCompat(classifier).predict(X)["classes"].tolist() == found


def test_predictions_of_classes_are_numbers():
    columns = [layers.real_valued_column("", dimension=4)]
    classifier = learn.LinearClassifier(columns).fit(X, (X[:, 0] > 0).astype(int), steps=20)
    found = list(classifier.predict(X[:5]))
    given = list(classifier.predict(X[:5], outputs=["probabilities", "classes"]))
    assert [each["classes"] for each in given] == found == [np.argmax(each["probabilities"]) for each in given]
    arrays = learn.SKCompat(classifier).predict(X[:5])
    assert sorted(arrays) == ["classes", "logistic", "logits", "probabilities"]
    assert arrays["classes"].tolist() == found


@pytest.mark.parametrize("size", [1, 2])
def test_predictions_of_numbers_are_scores(size):
    columns = [layers.real_valued_column("", dimension=4)]
    regressor = learn.LinearRegressor(columns, label_dimension=size).fit(X, X[:, :size], steps=5)
    found = regressor.predict(X[:5], as_iterable=False)
    assert found.shape == ((5,) if size == 1 else (5, 2))
    np.testing.assert_array_equal([each["scores"] for each in regressor.predict(X[:5], outputs=["scores"])], found)
    arrays = learn.SKCompat(regressor).predict(X[:5])
    assert arrays.keys() == {"scores"}
    np.testing.assert_array_equal(arrays["scores"], found)


def test_predictions_of_a_program_keep_their_names():
    def model_fn(features, labels):
        step = tf.train.get_global_step().assign_add(1)
        return {"classes": features, "class_ids": 2.0 * features}, tf.constant(0.0), step

    found = learn.SKCompat(learn.Estimator(model_fn).fit(X, X[:, 0], steps=1)).predict(X[:3])
    np.testing.assert_allclose(found["classes"], X[:3])
    np.testing.assert_allclose(found["class_ids"], 2 * X[:3])


def test_early_stopping(tmp_path):
    columns = learn.infer_real_valued_columns_from_input(X)
    regressor = learn.LinearRegressor(columns, str(tmp_path), config=learn.RunConfig(**CONFIG))
    noise = RANDOM.normal(size=100)
    watching = learn.monitors.ValidationMonitor(
        X, -10 * X[:, 0], every_n_steps=20, early_stopping_rounds=40, name="held_out"
    )
    regressor.fit(X, 10 * X[:, 0] + noise, steps=1000, monitors=[watching])
    assert regressor.evaluate(X, noise)["global_step"] < 200, "what it learns makes the watched loss worse"


def test_a_regressor_of_functions():
    def input_fn():
        return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[2.0], [4.0]])

    regressor = learn.LinearRegressor(learn.infer_real_valued_columns_from_input_fn(input_fn))
    regressor.fit(input_fn=input_fn, steps=200)
    assert regressor.evaluate(input_fn=input_fn, steps=1)["loss"] < 0.1
    assert list(regressor.predict({"x": np.array([1.0, 2.0])})) == pytest.approx([2, 4], abs=0.5)


@pytest.mark.parametrize(
    ("make", "labels", "expected"),
    [
        (learn.LinearClassifier, [1, 0, 0], {"loss": 0.09671453, "accuracy/baseline_label_mean": 0.98039216}),
        (learn.LinearRegressor, [1.0, 0.0, 0.5], {"loss": 0.012100448}),
    ],
)
def test_losses_of_weighted_examples_are_means_by_weight(make, labels, expected):
    def input_fn():
        ages = tf.constant([[20.0]] * 3)
        return {"age": ages, "weight": tf.constant([[100], [1], [1]])}, tf.constant(labels)[:, None]

    learner = make([layers.real_valued_column("age")], weight_column_name="weight").fit(input_fn=input_fn, steps=5)
    found = learner.evaluate(input_fn=input_fn, steps=1)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert ("recall/positive_threshold_0.500000_mean" in found) == (make is learn.LinearClassifier)


def _linear(features, targets):
    prediction = layers.fully_connected(features, 1, None)[:, 0]
    loss = tf.losses.mean_squared_error(targets, prediction)
    step = tf.contrib.framework.get_global_step()
    return prediction, loss, layers.optimize_loss(loss, step, 0.1, "SGD")


def _with_modes(features, targets, mode, params):
    prediction = params["factor"] * layers.fully_connected(features["x"], 1, None)[:, 0]
    loss = train = None
    if mode != learn.ModeKeys.INFER:
        loss = tf.losses.mean_squared_error(targets, prediction)
        train = layers.optimize_loss(loss, tf.train.get_global_step(), 0.1, "SGD")
    return learn.ModelFnOps(mode, {"out": prediction}, loss, train)


def test_model_functions_in_the_forms_of_all_versions(tmp_path):
    old = learn.Estimator(model_fn=_linear, model_dir=str(tmp_path / "old"))
    assert old.fit(X, X[:, 0], steps=50).evaluate(X, X[:, 0])["loss"] < 0.1
    new = learn.Estimator(_with_modes, str(tmp_path / "new"), params={"factor": 2.0})
    new.fit({"x": X}, X[:, 0], steps=50)
    spec = learn.MetricSpec(tf.contrib.metrics.streaming_mean_squared_error, prediction_key="out")
    results = new.evaluate({"x": X}, X[:, 0], metrics={"mse": spec, ("mae", "out"): _absolute})
    assert results["mse"] == pytest.approx(results["loss"], rel=1e-5) and results["mae"] > 0
    assert [set(each) for each in new.predict({"x": X[:2]})] == [{"out"}, {"out"}]
    with pytest.raises(ValueError, match="Either x or input_fn must be provided"):
        new.fit()


def _absolute(predictions, labels):
    return tf.contrib.metrics.streaming_mean_absolute_error(predictions, labels)


def test_columns_under_their_older_names(tmp_path):
    kind = layers.sparse_column_with_hash_bucket("kind", hash_bucket_size=10)
    word = layers.sparse_column_with_keys(column_name="word", keys=["u", "v"])
    size = layers.real_valued_column("size")
    assert layers.sparse_column_with_integerized_feature("id", bucket_size=7).num_buckets == 7
    buckets = layers.bucketized_column(size, boundaries=[0.0, 1.0, 1.0])
    crossed = layers.crossed_column([kind, word], hash_bucket_size=int(1e2))
    classifier = learn.DNNLinearCombinedClassifier(
        model_dir=str(tmp_path),
        linear_feature_columns=[kind, crossed, buckets],
        dnn_feature_columns=[
            layers.embedding_column(kind, dimension=3),
            size,
            layers.one_hot_column(word),
        ],
        dnn_hidden_units=[5, 3],
        fix_global_step_increment_bug=True,
    )

    def input_fn():
        words = tf.SparseTensor([[0, 0], [1, 0]], ["u", "v"], [2, 1])
        return {"kind": tf.constant(["p", "q"]), "word": words, "size": tf.constant([0.5, 2.0])}, tf.constant([0, 1])

    classifier.fit(input_fn=input_fn, steps=20)
    assert {"accuracy", "auc", "loss"} <= set(classifier.evaluate(input_fn=input_fn, steps=1))


def _counting(features, labels, mode):
    loss = tf.reduce_sum(tf.get_variable("v", [1]) ** 2)
    count = tf.train.get_global_step().assign_add(1)
    return tf.estimator.EstimatorSpec(mode, predictions={"v": loss}, loss=loss, train_op=count)


def test_experiments(tmp_path):
    evaluated = []

    class Watch(tf.train.SessionRunHook):
        def end(self, session):
            evaluated.append(session.run(tf.train.get_global_step()))

    def experiment_fn(run_config, hparams):
        def input_fn():
            return tf.constant([1.0]), tf.constant([1.0])

        assert hparams == "hparams"
        return learn.Experiment(
            estimator=tf.estimator.Estimator(_counting, config=run_config),
            train_input_fn=input_fn,
            eval_input_fn=input_fn,
            train_steps=6,
            eval_steps=1,
            eval_hooks=[Watch()],
            min_eval_frequency=2,
            eval_delay_secs=0,
        )

    config = learn.RunConfig(model_dir=str(tmp_path))
    run = learn.learn_runner.run
    results, exported = run(experiment_fn=experiment_fn, run_config=config, hparams="hparams")
    assert results["global_step"] == 6 and evaluated == [2, 4, 6] and exported == []
    with pytest.raises(ValueError, match="non-existent task dance"):
        run(experiment_fn, run_config=config, hparams="hparams", schedule="dance")
    with pytest.raises(ValueError, match="output_dir"):
        run(experiment_fn)


def test_input_functions_give_one_tensor_to_columns_without_a_name(tmp_path):
    columns = [layers.real_valued_column("", dimension=4)]
    classifier = learn.DNNClassifier([8], columns, str(tmp_path), n_classes=3, config=learn.RunConfig(**CONFIG))
    classifier.fit(input_fn=lambda: (tf.constant(X), tf.constant(CLASSES)), steps=20)
    results = classifier.evaluate(input_fn=lambda: (tf.constant(X), tf.constant(CLASSES)), steps=1)
    assert results == classifier.evaluate(X, CLASSES) and results["global_step"] == 20
    found = classifier.predict_classes(input_fn=lambda: tf.constant(X[:3]), as_iterable=True)
    assert [next(found) for _ in range(3)] == classifier.predict_classes(X[:3], as_iterable=False).tolist()


def _serve():
    x = tf.placeholder(tf.float32, [None])
    return learn.InputFnOps({"x": x}, None, {"x": x})


@pytest.mark.parametrize("kind", ["own", "parsing", "default"])
def test_functions_for_serving_by_their_older_names(tmp_path, kind):
    def model(features, labels, mode):
        step = tf.train.get_global_step()
        loss = tf.reduce_sum(features["x"])
        return learn.ModelFnOps(mode, {"y": 2 * features["x"]}, loss, None if step is None else step.assign_add(1))

    estimator = learn.Estimator(model, str(tmp_path / "model"))
    estimator.fit(input_fn=lambda: ({"x": tf.ones([2])}, tf.ones([2])), steps=1)
    serving = {
        "own": _serve,
        "parsing": learn.build_parsing_serving_input_fn({"x": tf.FixedLenFeature([], tf.float32)}),
        "default": learn.utils.build_default_serving_input_fn({"x": tf.placeholder(tf.float32, [None])}),
    }[kind]
    path = os.fsdecode(estimator.export_savedmodel(str(tmp_path / "export"), serving))
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(3)
    fed = {"examples": [example.SerializeToString()]} if kind == "parsing" else {"x": np.float32([3])}
    assert tf.contrib.predictor.from_saved_model(path)(fed)["y"].tolist() == [6]


def test_experiments_that_export(tmp_path):
    def receive():
        x = tf.placeholder(tf.float32, [None, 4])
        return tf.estimator.export.ServingInputReceiver({"": x}, {"x": x})

    def experiment_fn(output_dir):
        classifier = learn.LinearClassifier([layers.real_valued_column("", 4)], output_dir, n_classes=3)
        labels = tf.estimator.inputs.numpy_input_fn({"": np.float32(X)}, CLASSES, num_epochs=None, shuffle=False)
        return learn.Experiment(
            classifier,
            labels,
            labels,
            train_steps=3,
            eval_steps=1,
            export_strategies=learn.make_export_strategy(receive),
        )

    results, (exported,) = learn.learn_runner.run(experiment_fn, str(tmp_path))
    assert results["global_step"] == 3 and os.path.exists(os.path.join(os.fsdecode(exported), "saved_model.pb"))
