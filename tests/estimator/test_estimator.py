"""`tf.estimator.Estimator`: training, evaluation and prediction in a folder, and what it refuses."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tfray as tf

ModeKeys = tf.estimator.ModeKeys

POINTS = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
TARGETS = (POINTS @ [[2.0], [-3.0]] + 1).astype(np.float32)


def line(features, labels, mode, params):
    """A linear model that begins with zeros."""
    weights = tf.get_variable("weights", [2, 1], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], weights) + bias
    if mode == ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y, "double": 2 * y})
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_global_step()),
        eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, y)},
    )


def estimator(folder, model_fn=line, rate=0.1, **config):
    return tf.estimator.Estimator(model_fn, str(folder), tf.estimator.RunConfig(**config), {"rate": rate})


def dataset():
    return tf.data.Dataset.from_tensor_slices(({"x": POINTS}, TARGETS)).repeat().batch(16)


def once():
    return tf.data.Dataset.from_tensor_slices(({"x": POINTS}, TARGETS)).batch(16)


def test_it_trains_evaluates_and_predicts(tmp_path):
    model = estimator(tmp_path, save_checkpoints_steps=20)
    assert model.train(dataset, steps=50) is model
    assert model.latest_checkpoint() == f"{tmp_path}/model.ckpt-50"
    assert model.get_variable_names() == ["bias", "global_step", "weights"]
    model.train(dataset, steps=100)
    np.testing.assert_allclose(model.get_variable_value("weights"), [[2], [-3]], atol=1e-3)
    assert model.get_variable_value("global_step") == 150
    results = model.evaluate(once)
    assert set(results) == {"loss", "error", "global_step"} and results["global_step"] == 150
    assert results["error"] < 1e-3
    predicted = list(model.predict(once))
    assert len(predicted) == 64
    np.testing.assert_allclose([each["y"] for each in predicted], TARGETS, atol=1e-3)
    np.testing.assert_allclose(predicted[3]["double"], 2 * predicted[3]["y"])


def test_loss_is_the_mean_of_the_batches_and_metrics_that_of_the_examples(tmp_path):
    """20 examples, of which the last batch has 4: computed with NumPy for a model of zeros."""
    labels = TARGETS[:20]
    results = estimator(tmp_path).evaluate(
        lambda: tf.data.Dataset.from_tensor_slices(({"x": POINTS[:20]}, labels)).batch(16)
    )
    losses = [np.mean(labels[:16] ** 2), np.mean(labels[16:] ** 2)]
    np.testing.assert_allclose(results["loss"], np.mean(losses), rtol=1e-5)
    np.testing.assert_allclose(results["error"], np.mean(np.abs(labels)), rtol=1e-5)
    assert results["global_step"] == 0


def test_max_steps_counts_from_the_beginning(tmp_path):
    model = estimator(tmp_path)
    model.train(dataset, max_steps=10).train(dataset, max_steps=10)
    assert model.get_variable_value("global_step") == 10
    model.train(dataset, max_steps=12)
    assert model.get_variable_value("global_step") == 12


def test_training_ends_with_its_input(tmp_path):
    model = estimator(tmp_path).train(once)
    assert model.get_variable_value("global_step") == 4


def test_checkpoints_are_kept_as_the_configuration_says(tmp_path):
    estimator(tmp_path, save_checkpoints_steps=2, keep_checkpoint_max=2).train(dataset, steps=8)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert [path.rpartition("-")[2] for path in state.all_model_checkpoint_paths] == ["6", "8"]


def test_a_step_of_evaluation_is_a_batch_and_results_are_written_for_tensorboard(tmp_path):
    model = estimator(tmp_path).train(dataset, steps=3)
    whole, part = model.evaluate(once), model.evaluate(once, steps=1, name="part")
    assert whole["error"] != part["error"]
    assert model.eval_dir() == f"{tmp_path}/eval" and model.eval_dir("part") == f"{tmp_path}/eval_part"
    written = tf.contrib.estimator.read_eval_metrics(model.eval_dir("part"))
    assert written[3]["error"] == pytest.approx(part["error"])
    (path,) = (tmp_path / "eval").glob("*tfevents*")
    tags = {value.tag for event in tf.train.summary_iterator(str(path)) for value in event.summary.value}
    assert {"loss", "error", "3/checkpoint_path"} == tags


@pytest.mark.parametrize("names", [(), ("mode",), ("params", "config"), ("mode", "params", "config")])
def test_an_input_function_takes_what_it_wants(tmp_path, names):
    seen = {}

    def take(**given):
        seen.update(given)
        return dataset()

    namespace = {"take": take}
    exec(f"def input_fn({', '.join(names)}): return take({', '.join(f'{name}={name}' for name in names)})", namespace)
    model = estimator(tmp_path, tf_random_seed=7)
    model.train(namespace["input_fn"], steps=1)
    assert tuple(seen) == names
    assert seen.get("mode", ModeKeys.TRAIN) == "train" and seen.get("params", {"rate": 0.1}) == {"rate": 0.1}
    assert "config" not in seen or seen["config"].tf_random_seed == 7


def test_tensors_as_input(tmp_path):
    model = estimator(tmp_path).train(lambda: ({"x": tf.constant(POINTS)}, tf.constant(TARGETS)), steps=100)
    np.testing.assert_allclose(model.get_variable_value("bias"), [1], atol=1e-3)


def test_batches_of_predictions_and_some_of_their_names(tmp_path):
    model = estimator(tmp_path).train(dataset, steps=1)
    batches = list(model.predict(once, predict_keys="y", yield_single_examples=False))
    assert [list(batch) for batch in batches] == [["y"]] * 4 and batches[0]["y"].shape == (16, 1)
    with pytest.raises(ValueError, match="none of predict_keys"):
        next(model.predict(once, predict_keys=["nonsense"]))


def test_the_callers_graph_stays_the_default_between_predictions(tmp_path):
    graph = tf.get_default_graph()
    predictions = estimator(tmp_path).predict(once)
    next(predictions)
    assert tf.get_default_graph() is graph and tf.get_default_session() is None
    predictions.close()


def test_hooks_and_listeners_are_called(tmp_path):
    class Count(tf.train.SessionRunHook):
        steps = 0

        def after_run(self, run_context, run_values):
            self.steps += 1

    class Saves(tf.train.CheckpointSaverListener):
        def __init__(self):
            self.steps = []

        def after_save(self, session, global_step_value):
            self.steps.append(global_step_value)

    training, evaluating, predicting, saves = Count(), Count(), Count(), Saves()
    model = estimator(tmp_path, save_checkpoints_steps=2)
    model.train(dataset, hooks=[training], steps=4, saving_listeners=[saves])
    model.evaluate(once, hooks=[evaluating])
    list(model.predict(once, hooks=[predicting]))
    assert (training.steps, evaluating.steps, predicting.steps) == (4, 4, 4)
    assert saves.steps == [0, 2, 4]


def test_hooks_of_the_model_and_summaries_are_used(tmp_path):
    logged = []

    def model_fn(features, labels, mode, params):
        spec = line(features, labels, mode, params)
        tf.summary.scalar("twice", 2 * spec.loss)
        hook = tf.train.LoggingTensorHook(
            {"loss": spec.loss}, every_n_iter=1, formatter=lambda v: logged.append(v) or ""
        )
        return spec._replace(training_hooks=[hook])

    estimator(tmp_path, model_fn, save_summary_steps=1).train(dataset, steps=3)
    assert len(logged) == 3
    (path,) = tmp_path.glob("*tfevents*")
    values = {}
    for event in tf.train.summary_iterator(str(path)):
        for value in event.summary.value:
            values.setdefault(value.tag, []).append(value.simple_value)
    np.testing.assert_allclose(values["twice"], 2 * np.array(values["loss"]), rtol=1e-6)
    assert len(values["loss"]) == 3


def test_seeds_repeat_a_run(tmp_path):
    def noise(features, labels, mode, params):
        weights = tf.get_variable("weights", [2, 1])
        loss = tf.reduce_sum(weights)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.get_global_step().assign_add(1))

    values = [
        estimator(tmp_path / str(i), noise, tf_random_seed=seed).train(dataset, steps=1).get_variable_value("weights")
        for i, seed in enumerate([5, 5, 6])
    ]
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])


def test_without_a_folder_a_temporary_one_is_used():
    model = tf.estimator.Estimator(line, params={"rate": 0.1})
    assert model.model_dir.startswith("/") and model.config.model_dir == model.model_dir
    with pytest.raises(ValueError, match="no checkpoint"):
        model.get_variable_names()


def test_a_nan_loss_is_an_error(tmp_path):
    with pytest.raises(tf.train.NanLossDuringTrainingError):
        estimator(tmp_path, rate=1e30).train(dataset, steps=50)


def test_a_models_own_local_initialisation_is_joined_by_that_of_its_evaluation(tmp_path):
    def with_table(features, labels, mode, params):
        spec = line(features, labels, mode, params)
        if mode != ModeKeys.EVAL:
            return spec
        own = tf.Variable(7.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="own")
        scaffold = tf.train.Scaffold(local_init_op=tf.group({"own": own.initializer}))
        return spec._replace(scaffold=scaffold)

    model = estimator(tmp_path, with_table).train(dataset, steps=2)
    assert model.evaluate(dataset, steps=2)["global_step"] == 2


def test_a_derived_class_makes_the_global_step(tmp_path):
    class Stepping(tf.estimator.Estimator):
        def _create_global_step(self, graph):
            step = tf.train.create_global_step(graph)
            tf.add_to_collection("made", step)
            return step

    def looking(features, labels, mode, params):
        assert tf.get_collection("made") == [tf.train.get_global_step()]
        return line(features, labels, mode, params)

    Stepping(looking, str(tmp_path), params={"rate": 0.1}).train(dataset, steps=1)


class Derived(tf.estimator.Estimator):
    def train(self, *args):
        return None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.estimator.Estimator(None), "model_fn is None"),
        (lambda: tf.estimator.Estimator(lambda labels: None), "expected features"),
        (lambda: tf.estimator.Estimator(lambda features: None, params={"a": 1}), "add the argument params"),
        (lambda: tf.estimator.Estimator(lambda features, other: None), "takes other"),
        (lambda: tf.estimator.Estimator(line, "/a", tf.estimator.RunConfig("/b")), "give one of them"),
        (lambda: tf.estimator.Estimator(line, ""), "model_dir is empty"),
        (lambda: tf.estimator.Estimator(line, config={}), "config must be a RunConfig or None, got {}"),
        (lambda: Derived(line, "/a"), "Derived overrides train"),
    ],
)
def test_what_cannot_be_an_estimator(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda model: model.train(dataset, steps=1, max_steps=1), ValueError, "not both"),
        (lambda model: model.train(dataset, steps=0), ValueError, "steps is 0"),
        (lambda model: model.train(dataset, max_steps=-1), ValueError, "max_steps is -1"),
        (lambda model: model.train(dataset, hooks=["a"], steps=1), TypeError, "SessionRunHook"),
        (lambda model: model.evaluate(dataset, steps=0), ValueError, "steps is 0"),
        (lambda model: model.train(lambda: (1, 2, 3), steps=1), ValueError, "returned 3 things"),
        (lambda model: model.export_saved_model("x", None), ValueError, "serving_input_receiver_fn"),
        (lambda model: model.export_saved_model("x", lambda: None), ValueError, "no checkpoint"),
    ],
)
def test_calls_that_are_refused(tmp_path, call, kind, message):
    with pytest.raises(kind, match=message):
        call(estimator(tmp_path))


def spec(mode, **fields):
    loss = tf.constant(1.0)
    made = {"loss": loss, "train_op": tf.no_op(), "predictions": {"y": loss}} | fields
    return tf.estimator.EstimatorSpec(mode, **made)


@pytest.mark.parametrize(
    ("mode", "fields", "kind", "message"),
    [
        ("train", {"loss": None}, ValueError, "a loss is needed"),
        ("train", {"train_op": None}, ValueError, "train_op is needed"),
        ("eval", {"loss": None}, ValueError, "a loss is needed"),
        ("infer", {"predictions": None}, ValueError, "predictions are needed"),
        ("train", {"loss": 1.0}, TypeError, "expected a tensor"),
        ("train", {"train_op": "op"}, TypeError, "expected an operation"),
        ("eval", {"eval_metric_ops": {"a": 1}}, TypeError, "a pair"),
        ("eval", {"predictions": 3}, TypeError, "expected a tensor"),
        ("infer", {"export_outputs": {"a": 1}}, TypeError, "tf.estimator.export"),
        ("train", {"training_hooks": [1]}, TypeError, "SessionRunHook"),
        ("train", {"scaffold": 1}, TypeError, "Scaffold"),
        ("predict", {}, ValueError, "ModeKeys"),
    ],
)
def test_specs_that_are_refused(mode, fields, kind, message):
    with tf.Graph().as_default(), pytest.raises(kind, match=message):
        spec(mode, **fields)


def test_specs_that_are_of_another_graph_or_shape_are_refused():
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="another graph"):
            spec("train", loss=other)
        with pytest.raises(ValueError, match="must be a scalar"):
            spec("train", loss=tf.constant([1.0, 2.0]))
        assert spec("train", loss=tf.constant([1.0])).loss.shape == []


def test_names_that_are_not_there_say_what_to_use():
    with pytest.raises(AttributeError, match=r"use tf\.estimator\.DNNClassifier"):
        _ = tf.estimator.BoostedTreesClassifier


def plain(features, labels, mode):
    step = tf.assign_add(tf.train.get_global_step(), 1)
    return tf.estimator.EstimatorSpec(mode, loss=tf.constant(1.0), train_op=step, predictions=tf.constant([1.0]))


def inputs():
    return {"x": tf.constant([[1.0]])}, tf.constant([[1]])


def test_arguments_of_a_model_that_are_bound():
    seen = []

    def model(features, labels, foo, mode, params, config, bar):
        seen.append((foo, bar, params, mode))
        return plain(features, labels, mode)

    bound = functools.partial(model, foo=45, bar=46)
    tf.estimator.Estimator(bound, params={"some": "value"}).train(inputs, steps=1)
    assert seen == [(45, 46, {"some": "value"}, "train")]


@pytest.mark.parametrize(
    ("model", "data", "arguments", "error", "match"),
    [  # the key words of TensorFlow 1.15
        (plain, inputs, {"steps": 0}, ValueError, "Must specify steps > 0"),
        (plain, inputs, {"max_steps": -1}, ValueError, "Must specify max_steps > 0"),
        (plain, inputs, {"steps": 1, "hooks": ["none"]}, TypeError, "must be a SessionRunHook"),
        (
            plain,
            inputs,
            {"steps": 1, "saving_listeners": ["none"]},
            TypeError,
            "saving_listeners must be a list of CheckpointSaverListener",
        ),
        (plain, lambda: (1, 2, 3), {"steps": 1}, ValueError, "len 2 tuple"),
        (lambda features: None, inputs, {"steps": 1}, ValueError, "model_fn does not take labels"),
    ],
)
def test_words_of_what_is_refused(model, data, arguments, error, match):
    with pytest.raises(error, match=match):
        tf.estimator.Estimator(model).train(data, **arguments)


def test_listeners_need_checkpoints():
    config = tf.estimator.RunConfig(save_checkpoints_steps=None, save_checkpoints_secs=None)
    with pytest.raises(ValueError, match="CheckpointSaverHook to use saving_listeners"):
        tf.estimator.Estimator(plain, config=config).train(
            inputs, steps=1, saving_listeners=[tf.train.CheckpointSaverListener()]
        )
