"""How models of `tf.keras` are compiled and trained: outputs without losses, weights, metrics, tensors, callbacks."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy import sparse

import tfray as tf

keras = tf.keras
layers = keras.layers
K = keras.backend

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(6, 3)).astype(np.float32)
Y = RANDOM.normal(size=(6, 2)).astype(np.float32)


def two_outputs():
    """Outputs ``double`` and ``triple``, two and three times the input."""
    x = keras.Input([3], name="x")
    outputs = [layers.Lambda(lambda v, n=n: n * v, name=name)(x) for n, name in ((2.0, "double"), (3.0, "triple"))]
    return keras.Model(x, outputs)


def linear(**settings):
    return keras.Sequential([layers.Dense(2, input_shape=(3,), **settings)])


ZEROS = np.zeros_like(X)
DOUBLE, TRIPLE = 4 * (X**2).mean(-1), 9 * (X**2).mean(-1)


# -- losses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [{"triple": "mse"}, [None, "mse"]])
def test_outputs_without_a_loss_have_no_targets(loss):
    model = two_outputs()
    model.compile("sgd", loss, metrics={"triple": ["mae"]})
    found = model.evaluate(X, {"triple": ZEROS}, verbose=0)
    assert model.metrics_names == ["loss", "triple_loss", "triple_mean_absolute_error"]
    np.testing.assert_allclose(found, [TRIPLE.mean(), TRIPLE.mean(), 3 * np.abs(X).mean()], rtol=1e-5)
    with pytest.raises(ValueError, match="Expected to see 1 array"):
        model.train_on_batch(X, [ZEROS, ZEROS])


def test_losses_that_layers_add_are_enough():
    model = linear(kernel_initializer="ones", activity_regularizer=lambda v: 0.5 * tf.reduce_sum(v))
    model.add_loss(tf.reduce_mean(model.outputs[0]))
    model.compile(keras.optimizers.SGD(0.1))
    ones = np.ones([4, 3], np.float32)
    np.testing.assert_allclose(model.test_on_batch(ones), 0.5 * 6 + 3, rtol=1e-5)
    history = model.fit(ones, epochs=2, verbose=0).history["loss"]
    assert history[1] < history[0] == 6
    with pytest.raises(ValueError, match="no loss to optimize"):
        linear().compile("sgd")


def test_each_output_has_weights_of_its_own():
    model = two_outputs()
    model.compile("sgd", "mse", loss_weights=[1.0, 0.5])
    first, second = np.arange(6.0), np.array([1.0, 0, 0, 2, 0, 0])
    expected = [(DOUBLE * first).mean(), (TRIPLE * second).mean()]
    for weights in ([first, second], {"triple": second, "double": first}):
        loss, *parts = model.test_on_batch(X, [ZEROS, ZEROS], sample_weight=weights)
        np.testing.assert_allclose(parts, expected, rtol=1e-5)
        np.testing.assert_allclose(loss, expected[0] + 0.5 * expected[1], rtol=1e-5)
    with pytest.raises(TypeError, match="should be either a list or a dict"):
        model.train_on_batch(X, [ZEROS, ZEROS], sample_weight=first)
    with pytest.raises(ValueError, match="one array per model output"):
        model.train_on_batch(X, [ZEROS, ZEROS], sample_weight=[first])


def test_the_last_examples_are_validated_with_their_weights():
    model = keras.Sequential([layers.Lambda(lambda v: v, input_shape=(3,))])
    model.compile("sgd", "mse")
    weights = np.array([1.0, 1, 1, 1, 2, 4], np.float32)
    found = model.fit(X, ZEROS, sample_weight=weights, validation_split=0.34, verbose=0).history["val_loss"]
    np.testing.assert_allclose(found, [((X[3:] ** 2).mean(-1) * weights[3:]).mean()], rtol=1e-5)


SEQUENCES = RANDOM.normal(size=(4, 3, 2)).astype(np.float32)


def refused(words, kind=ValueError, mode=None, loss="mse", **given):
    return pytest.param(given, mode, loss, kind, words, id=words)


@pytest.mark.parametrize(
    ("given", "mode", "loss", "kind", "words"),
    [
        refused("specify sample_weight_mode", x=SEQUENCES, y=SEQUENCES, sample_weight=np.ones([4, 3])),
        refused("restricted to 2D weights", mode="temporal", x=SEQUENCES, y=SEQUENCES, sample_weight=np.ones(4)),
        refused("not supported for 3", x=SEQUENCES, y=SEQUENCES, class_weight={0: 1.0}),
        refused("to have shape", x=np.ones([4, 3, 5]), y=SEQUENCES),
        refused("to have 3 dimensions", x=np.ones([4, 2]), y=SEQUENCES),
        refused("expects targets to have the same shape", x=SEQUENCES, y=np.ones([4, 3, 1])),
        refused("to be binary matrices", loss="categorical_crossentropy", x=SEQUENCES, y=np.ones([4, 3, 1])),
        refused("different numbers of examples", x=SEQUENCES, y=SEQUENCES[1:]),
        refused("No data provided for", x={"other": SEQUENCES}, y=SEQUENCES),
    ],
)  # fmt: skip
def test_data_that_do_not_fit(given, mode, loss, kind, words):
    model = keras.Sequential([layers.Activation("relu", input_shape=(3, 2))])
    model.compile("sgd", loss, sample_weight_mode=mode)
    with pytest.raises(kind, match=words):
        model.train_on_batch(**given)


def test_what_compile_refuses():
    for settings in (
        {"loss": "none"},
        {"optimizer": "none"},
        {"loss": {"other": "mse"}},
        {"metrics": {"other": "mse"}},
    ):
        with pytest.raises(ValueError, match=r"Unknown (loss function:|optimizer: |entries in (loss|metrics) dic)"):
            linear().compile(**{"optimizer": "sgd", "loss": "mse", **settings})
    with pytest.raises(RuntimeError, match="You must compile your model"):
        linear().fit(X, Y, verbose=0)
    linear().predict(X)
    model = linear()
    model.compile("sgd", "categorical_crossentropy")
    with pytest.raises(ValueError, match="must contain all classes in the data"):
        model.fit(X, np.eye(2)[[0, 1, 0, 1, 0, 1]], class_weight={0: 1.0}, verbose=0)


# -- tensors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lambda t: t, lambda t: [t], lambda t: {"dense": t}])
def test_targets_may_be_tensors(form):
    model = linear(name="dense")
    model.compile("sgd", "mse", target_tensors=form(tf.constant(Y)))
    np.testing.assert_allclose(model.test_on_batch(X), ((model.predict(X) - Y) ** 2).mean(), rtol=1e-5)
    model.train_on_batch(X)


def test_inputs_may_be_tensors():
    x = keras.Input(tensor=K.variable(X))
    model = keras.Model(x, layers.Dense(2)(x))
    model.compile("sgd", "mse")
    loss = model.test_on_batch(None, Y)
    np.testing.assert_allclose(loss, ((model.predict(None, steps=1) - Y) ** 2).mean(), rtol=1e-5)
    assert model.fit(None, Y, batch_size=6, epochs=2, shuffle=False, verbose=0).history["loss"][1] < loss
    assert model.predict(None, steps=3).shape == (18, 2)
    model.compile("sgd", "mse", target_tensors=tf.constant(Y))
    model.fit(steps_per_epoch=2, verbose=0)
    with pytest.raises(ValueError, match="steps_per_epoch"):
        model.fit(verbose=0)


# -- metrics ---------------------------------------------------------------------------------------------


class Summing(layers.Layer):
    def call(self, inputs):
        self.add_metric(tf.reduce_sum(inputs), name="total", aggregation="mean")
        return inputs


class SummingModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense, self.mean = layers.Dense(2, use_bias=False, kernel_initializer="ones"), keras.metrics.Mean("mean")

    def call(self, inputs):
        outputs = self.dense(inputs)
        self.add_metric(tf.reduce_sum(outputs) / 2, name="total", aggregation="mean")
        self.add_metric(self.mean(outputs))
        return outputs


def of_layers():
    model = keras.Sequential([Summing(input_shape=(3,)), layers.Dense(2, kernel_initializer="ones")])
    model.add_metric(keras.metrics.Mean("mean")(model.outputs[0]))
    return model


@pytest.mark.parametrize("build", [of_layers, SummingModel])
def test_metrics_that_layers_add(build):
    model = build()
    model.compile("sgd", "mse", metrics=["mae"])
    ones = np.ones([8, 3], np.float32)
    found = model.evaluate(ones, np.zeros([8, 2]), batch_size=4, verbose=0)
    logs = dict(zip(model.metrics_names, found, strict=True))
    assert logs == {"loss": 9.0, "mean_absolute_error": 3.0, "total": 12.0, "mean": 3.0}
    history = model.fit(ones, np.full([8, 2], 3.0), validation_data=(ones, np.zeros([8, 2])), verbose=0).history
    assert history["total"] == [24.0]
    assert history["val_mean"] == [3.0]
    assert [metric.name for metric in model.metrics] == model.metrics_names[1:]


def test_what_add_metric_refuses():
    with pytest.raises(ValueError, match="Please provide a name for your metric"):
        linear().add_metric(tf.constant(1.0), aggregation="mean")
    with pytest.raises(ValueError, match="only `mean` sample-wise metric aggregation"):
        linear().add_metric(tf.constant(1.0), aggregation="sum", name="x")


def test_metrics_go_on_until_they_are_reset():
    model = keras.Sequential([layers.Lambda(lambda v: v, input_shape=(3,))])
    model.compile("sgd", "mae", metrics=["mse", keras.metrics.MeanSquaredError(name="object")])
    ones = np.ones_like(X)
    for expected, target in ((4.0, -ones), (2.0, ones)):
        assert model.test_on_batch(ones, target, reset_metrics=False)[1:] == [expected, expected]
    model.reset_metrics()
    assert model.test_on_batch(ones, ones)[1:] == [0.0, 0.0]


def test_each_output_has_metrics_of_its_own():
    model = two_outputs()
    metric = keras.metrics.MeanAbsoluteError(name="error")
    model.compile("sgd", "mse", metrics=[metric])
    found = model.evaluate(X, [ZEROS, ZEROS], verbose=0, batch_size=2)
    np.testing.assert_allclose(found[3:], [2 * np.abs(X).mean(), 3 * np.abs(X).mean()], rtol=1e-5)
    assert model.metrics_names[3:] == ["double_error", "triple_error"]


# -- what layers are told of training --------------------------------------------------------------------


class Telling(layers.Layer):
    """1 in training, 0 otherwise, in place of its input."""

    def call(self, inputs, training=False):
        return K.in_train_phase(tf.ones_like(inputs), tf.zeros_like(inputs), training=training)


class Around(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = Telling()

    def call(self, inputs, training=None):
        return self.inner(inputs)


class ModelAround(keras.Model):
    def __init__(self, passes):
        super().__init__()
        self.inner, self.passes = Around(), passes

    def call(self, inputs, training=False):
        return self.inner(inputs, training=training) if self.passes else self.inner(inputs)


@pytest.mark.parametrize("passes", [False, True])
def test_layers_of_a_derived_model_are_told_the_learning_phase(passes):
    model = ModelAround(passes)
    model.compile("sgd", "mae")
    history = model.fit(X, ZEROS, verbose=0, validation_data=(X, ZEROS)).history
    assert (history["loss"], history["val_loss"]) == ([1.0], [0.0])


def test_layers_are_told_what_the_layer_around_them_is():
    x = tf.constant(X)
    telling = Around()
    values = [telling(x), telling(x, training=True)]
    values += [model(x, training=True) for model in (ModelAround(False), keras.Sequential([telling]))]
    with K.learning_phase_scope(1):
        values.append(Telling()(x))
    means = [float(K.get_value(value).mean()) for value in values]
    assert means == [0, 1, 1, 1, 1]


def test_trainable_is_set_for_all_layers_within():
    inner = linear()
    model = keras.Sequential([inner])
    model.trainable = False
    assert not inner.trainable and not inner.layers[0].trainable and not model.trainable_weights
    model.trainable = True
    inner.layers[0].trainable = False
    assert model.trainable and not model.trainable_weights
    again = keras.models.clone_model(model)
    assert again.trainable and not again.trainable_weights


# -- callbacks -------------------------------------------------------------------------------------------


class Listening(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.heard = []
        for name in dir(keras.callbacks.Callback):
            if name.startswith("on_"):
                setattr(self, name, lambda *args, name=name: self.heard.append(name.removeprefix("on_")))


def test_callbacks_hear_of_all():
    model = linear()
    model.compile("sgd", "mse")
    listening = Listening()
    model.fit(X, Y, batch_size=6, verbose=0, callbacks=[listening], validation_data=(X, Y))
    test = ["test_begin", "test_batch_begin", "test_batch_end", "test_end"]
    batch = ["train_batch_begin", "train_batch_end"]
    assert listening.heard == ["train_begin", "epoch_begin", *batch, *test, "epoch_end", "train_end"]
    listening.heard.clear()
    model.evaluate(X, Y, verbose=0, callbacks=[listening])
    model.predict(X, callbacks=[listening])
    assert listening.heard == [*test, *(each.replace("test", "predict") for each in test)]


@pytest.mark.parametrize(("every", "count"), [(2, 2), ([1, 4], 2), ([2, 3, 9], 2)])
def test_when_a_model_is_validated(every, count):
    model = linear()
    model.compile("sgd", "mse")
    history = model.fit(X, Y, epochs=4, verbose=0, validation_data=(X, Y), validation_freq=every).history
    assert (len(history["loss"]), len(history["val_loss"])) == (4, count)


class Plain(keras.Model):
    """A model whose `call` is not told of training."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, inputs):
        return self.dense(inputs["x"])


def test_models_of_models_as_tensorflow_1_calls_them():
    """Arrays of float64 are float32 in a model; a layer that takes no `training` is called without it."""

    class Around(keras.Model):
        def __init__(self, base):
            super().__init__()
            self.base = base

        def call(self, inputs, training=False):
            return self.base(inputs, training=training)

    x = {"x": np.array([[1.0, 2.0], [3.0, 4.0]])}
    layers = [keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))]
    for base in (Plain(), keras.Sequential(layers)):
        model = Around(base)
        model.compile("sgd", "mse")
        model.fit(x, np.array([[3.0], [7.0]]), verbose=0)
        found = model.predict(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [[3.0], [7.0]])


def test_sparse_inputs():
    """A sparse input is fed by arrays and by SciPy's sparse matrices, and so is a dense one."""
    x = np.array([[1, 0, 2, 0], [0, 0, 0, 3], [1, 1, 1, 1]], np.float32)
    given = sparse.csr_matrix(x)
    inputs = keras.Input((4,), sparse=True)
    assert keras.backend.is_sparse(inputs)
    dense = keras.layers.Lambda(lambda each: tf.reshape(tf.sparse.to_dense(each), [-1, 4]))(inputs)
    model = keras.Model(inputs, keras.layers.Dense(2, kernel_initializer="ones")(dense))
    model.compile("sgd", "mse")
    np.testing.assert_allclose(model.predict(given), [[3, 3], [3, 3], [4, 4]])
    np.testing.assert_allclose(model.train_on_batch(x, np.zeros((3, 2))), 34 / 3, rtol=1e-5)
    losses = model.fit(given, np.zeros((3, 2)), batch_size=2, epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0] < 34 / 3
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
    np.testing.assert_allclose(model.predict(given), [[3], [3], [4]])
    with pytest.raises(ValueError, match="no ragged inputs"):
        keras.Input((4,), ragged=True)


def test_what_was_trainable_when_a_model_was_compiled_is_trained():
    """A GAN's discriminator is compiled, and then held still within the model that trains the generator."""
    judge = keras.Sequential([keras.layers.Dense(1, "sigmoid", input_shape=(2,), name="judge")])
    judge.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    judge.trainable = False
    maker = keras.Sequential([keras.layers.Dense(2, input_shape=(1,), name="maker")])
    both = keras.Sequential([maker, judge])
    both.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")

    def changed(model, x, y):
        before = [*judge.get_weights(), *maker.get_weights()]
        model.train_on_batch(x, y)
        after = [*judge.get_weights(), *maker.get_weights()]
        return [not np.array_equal(old, new) for old, new in zip(before, after, strict=True)]

    for _ in range(2):
        assert changed(judge, np.ones((4, 2)), np.zeros(4)) == [True, True, False, False]
        assert changed(both, np.ones((4, 1)), np.ones(4)) == [False, False, True, True]
    assert not judge.trainable and judge.trainable_weights == []
    judge.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    assert changed(judge, np.ones((4, 2)), np.zeros(4)) == [False] * 4


@pytest.mark.parametrize("kind", ["sequence", "dataset", "endless dataset"])
def test_validation_begins_anew(kind):
    x = np.arange(20, dtype=np.float32).reshape(10, 2)
    y = x.sum(1, keepdims=True)

    class Batches(keras.utils.Sequence):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return x[2 * index : 2 * index + 2], y[2 * index : 2 * index + 2]

    data = Batches() if kind == "sequence" else tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    data = data.repeat() if kind == "endless dataset" else data
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    found = model.fit(x, y, epochs=3, verbose=0, validation_data=data, validation_steps=2).history["val_loss"]
    np.testing.assert_allclose(found, [np.mean(y[:4] ** 2)] * 3, rtol=1e-6)


def test_the_loss_of_a_model_that_was_compiled():
    """Programs compute norms of its gradients, fed as a step is."""
    x = np.random.default_rng(0).normal(size=[6, 3])
    model = keras.Sequential([keras.layers.Dense(4, "softmax", input_shape=(3,), kernel_regularizer="l2")])
    with pytest.raises(RuntimeError, match="compile"):
        _ = model.total_loss
    model.compile("sgd", "sparse_categorical_crossentropy")
    y = np.array([0, 1, 2, 3, 0, 1])
    gradients = keras.backend.gradients(model.total_loss, model.trainable_weights)
    function = keras.backend.function(model._feed_inputs + model._feed_targets, [model.total_loss, *gradients])
    loss, of_kernel, of_bias = function([x, y[:, None]])
    kernel, _ = model.get_weights()
    scores = x @ kernel
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = -np.log(shares[np.arange(6), y]).mean() + 0.01 * (kernel**2).sum()
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    wrong = (shares - np.eye(4)[y]) / 6
    np.testing.assert_allclose(of_kernel, x.T @ wrong + 0.02 * kernel, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(of_bias, wrong.sum(0), rtol=1e-4, atol=1e-6)
    assert model.fit(x, y, epochs=1, verbose=0).history["loss"][0] == pytest.approx(loss, rel=1e-5)


def test_what_training_shows(capsys):
    """The words of TensorFlow 1.15: a bar for each epoch, or a line, or nothing."""
    model = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse", metrics=["mae"])
    model.fit(X, Y, epochs=2, batch_size=4, validation_data=(X[:5], Y[:5]))
    first, *epochs = capsys.readouterr().out.split("\n")
    assert first == "Train on 6 samples, validate on 5 samples"
    assert epochs[::2] == ["Epoch 1/2", "Epoch 2/2", ""] and "4/6 [===================>" in epochs[1]
    assert "6/6 [==============================] - " in epochs[3] and "/sample - loss: " in epochs[3]
    history = model.fit(X, Y, verbose=2, batch_size=4, shuffle=False).history
    shown = " - ".join(f"{name}: {values[0]:.4f}" for name, values in history.items())
    assert re.fullmatch(rf"Train on 6 samples\n6/6 - \d+s - {shown}\n", capsys.readouterr().out)
    model.evaluate(X, Y)
    model.predict(X, verbose=1)
    evaluated, predicted, _ = capsys.readouterr().out.split("\n")
    assert "/sample - loss: " in evaluated and predicted.endswith("/sample")
    model.fit(tf.data.Dataset.from_tensor_slices((X, Y)).batch(3).repeat(), steps_per_epoch=3)
    assert capsys.readouterr().out.startswith("Train on 3 steps\n")
    model.fit(X, Y, verbose=0)
    model.evaluate(X, Y, verbose=0)
    assert capsys.readouterr().out == ""


def test_a_description_that_tensorflow_wrote():
    """It tells by which versions it was written, as that of `to_json` does."""
    model = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    told = json.loads(model.to_json())
    assert (told["backend"], told["class_name"], told["keras_version"]) == ("tensorflow", "Sequential", "2.2.4-tf")
    again = keras.models.model_from_json(json.dumps({**told, "keras_version": "2.1.6-tf"}))
    assert again.count_params() == 8


def test_callbacks_are_told_of_the_metrics():
    told = {}

    class Told(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            told.update(self.params)

    model = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse", metrics=["mae"])
    model.fit(X, Y, verbose=0, validation_split=0.5, callbacks=[Told()])
    names = ["loss", "mean_absolute_error"]
    assert told["metrics"] == [*names, *(f"val_{name}" for name in names)] and told["samples"] == 3


def _endless():
    return _few().repeat()


def _few():
    examples = np.arange(30, dtype=np.float32).reshape(10, 3), np.ones((10, 4), np.float32)
    return tf.data.Dataset.from_tensor_slices(examples).batch(5)


def _four():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_dim=3, kernel_initializer="zeros")])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.fit(_endless(), verbose=0), "infinitely repeating dataset.*`steps_per_epoch` argument"),
        (lambda m: m.evaluate(_endless(), verbose=0), "infinitely repeating dataset.*`steps` argument"),
        (lambda m: m.predict(_endless()), "infinitely repeating dataset.*`steps` argument"),
        (
            lambda m: m.fit(_few(), verbose=0, validation_data=_endless()),
            "infinitely repeating dataset.*`validation_steps` argument",
        ),
        (lambda m: m.fit(_few(), _few(), verbose=0), "you should not specify a target"),
        (lambda m: m.evaluate(_few(), np.ones(10)), "you should not specify a target"),
        (lambda m: m.train_on_batch(_few(), np.ones(10)), "you should not specify a target"),
        (lambda m: m.fit(_few(), sample_weight=np.ones(10)), "`sample_weight` argument is not supported when input"),
        (lambda m: m.evaluate(_few(), sample_weight=np.ones(10)), "`sample_weight` argument is not supported"),
        (lambda m: m.fit(_few(), validation_split=0.5), "`validation_split` argument is not supported when input"),
    ],
)
def test_what_datasets_do_not_go_with(call, words):
    with pytest.raises(ValueError, match=words):
        call(_four())


def test_one_batch_of_a_dataset():
    model, rows = _four(), np.arange(15, dtype=np.float32).reshape(5, 3)
    assert model.test_on_batch(_few()) == 1.0  # predictions are 0
    np.testing.assert_array_equal(model.predict_on_batch(_few()), np.zeros((5, 4)))
    assert model.train_on_batch(_few()) == 1.0
    # Of each loss, a mean over 5 rows and 4 outputs, the gradient of a weight is -2 sum(x) / 20.
    np.testing.assert_allclose(model.get_weights()[0][:, 0], 0.01 * 2 * rows.sum(0) / 20, rtol=1e-5)


def test_targets_of_a_dataset_are_broadcast():
    model = _four()
    dataset = tf.data.Dataset.from_tensor_slices((np.zeros((4, 3), np.float32), np.array([1, 2, 3, 4], np.int32)))
    assert model.evaluate(dataset.batch(2), verbose=0) == np.mean(np.square([1, 2, 3, 4]))
    with pytest.raises(ValueError, match="same shape as the output"):
        model.fit(np.zeros((4, 3)), np.array([1, 2, 3, 4]), verbose=0)


def compiled(*more, **settings):
    model = keras.Sequential([layers.Dense(2, input_shape=(3,), kernel_initializer="ones", name="dense"), *more])
    model.compile("sgd", "mse", **settings)
    return model


@pytest.mark.parametrize("kind", [tf.constant, K.variable], ids=["tensor", "variable"])
@pytest.mark.parametrize("places", ["xy", "x", "y"], ids=["both", "inputs", "targets"])
def test_each_step_takes_the_values_of_tensors(kind, places):
    x = kind(X) if "x" in places else X
    y = kind(Y) if "y" in places else Y
    expected = ((X.sum(1, keepdims=True) - Y) ** 2).mean()
    model = compiled()
    np.testing.assert_allclose(model.test_on_batch(x, y), expected, rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(x, y, steps=2, verbose=0), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict(x, steps=2)[-6:], X.sum(1, keepdims=True) * np.ones((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(model.predict_on_batch(x)[:, 0], X.sum(1), rtol=1e-5)
    np.testing.assert_allclose(model.train_on_batch(x, y), expected, rtol=1e-5)
    history = model.fit(
        x, y, steps_per_epoch=2, epochs=2, validation_data=(x, y), validation_steps=1, verbose=0
    ).history
    assert history["val_loss"][1] < history["loss"][1] < history["loss"][0] < expected
    with pytest.raises(ValueError, match="you should specify the `steps_per_epoch` argument"):
        model.fit(x, y, verbose=0)


def test_several_inputs_may_be_tensors_by_name():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    model = keras.Model([a, b], layers.Add()([a, b]))
    model.compile("sgd", "mse")
    for x in ([tf.constant(X), tf.constant(2 * X)], {"b": tf.constant(2 * X), "a": X}):
        np.testing.assert_allclose(model.predict(x, steps=1), 3 * X, rtol=1e-6)
        np.testing.assert_allclose(model.test_on_batch(x, tf.constant(ZEROS)), 9 * (X**2).mean(), rtol=1e-5)


def test_with_a_number_of_steps_each_takes_all_examples():
    # TensorFlow 1.15 printed these, too: 3 steps of 6 examples, counted as one each.
    sizes = []
    seen = keras.callbacks.LambdaCallback(on_batch_end=lambda _, logs: sizes.append(logs["size"]))
    model = compiled()
    model.fit(X, Y, batch_size=2, steps_per_epoch=3, callbacks=[seen], verbose=0)
    assert sizes == [1, 1, 1]
    assert model.predict(X, steps=2).shape == (12, 2)
    reference = compiled()
    for _ in range(3):
        reference.train_on_batch(X, Y)
    np.testing.assert_allclose(model.get_weights()[0], reference.get_weights()[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: compiled(target_tensors=[tf.constant(Y)] * 2), ValueError, "one entry per model output"),
        (lambda: compiled(target_tensors={"other": None}), ValueError, "entries in target_tensors dictionary"),
        (lambda: compiled(target_tensors=set()), TypeError, "a list or tuple or dict or a single tensor"),
        (lambda: compiled(loss_weights=[1.0, 2.0]), ValueError, "as loss_weights, it should have one entry per model"),
        (lambda: compiled(loss_weights=set()), TypeError, "Could not interpret loss_weights argument"),
        (lambda: compiled(metrics=["other"]), ValueError, "Unknown metric function:other"),
        (lambda: compiled(metrics={"other": "mae"}), ValueError, "Unknown entries in metrics dictionary"),
        (lambda: compiled(sample_weight_mode={"other": None}), ValueError, "entries in sample_weight_mode dictionary"),
        (lambda: linear().compile("other", "mse"), ValueError, "Unknown optimizer: other"),
        (lambda: linear().compile("sgd", "other"), ValueError, "Unknown loss function:other"),
        (lambda: compiled(target_tensors=tf.constant(Y)).fit(X, Y), ValueError, "target: expected no data, but got"),
        (lambda: compiled().fit(_Batches(), validation_split=0.5), ValueError, "cannot use `validation_split`"),
        (lambda: compiled().fit(_Batches(), sample_weight=[1.0]), ValueError, "`sample_weight` argument is not"),
        (lambda: compiled().fit(_Batches(), Y), ValueError, "`y` argument is not supported"),
        (
            lambda: compiled().fit(X, Y, validation_data=(X, Y), validation_freq=0, verbose=0),
            ValueError,
            "`validation_freq` can not be less than 1",
        ),
        (lambda: compiled().fit(tf.constant(X), Y, validation_split=0.5), ValueError, "cannot use `validation_split`"),
    ],
)
def test_what_models_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


class _Batches(keras.utils.Sequence):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return X, Y


class _Branches(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(2, name="first"), layers.Dense(2)

    def call(self, inputs):
        one, other = (inputs["a"], inputs["b"]) if isinstance(inputs, dict) else inputs
        return [self.first(one), self.second(other)]


@pytest.mark.parametrize(
    ("make", "x", "inputs", "outputs"),
    [
        (_Branches, [X, X], ["input_1", "input_2"], ["output_1", "output_2"]),
        (_Branches, {"b": X, "a": X}, ["a", "b"], ["output_1", "output_2"]),
        (lambda: keras.Sequential([layers.Dense(2)]), X, ["input_1"], ["output_1"]),
    ],
    ids=["list", "dictionary", "sequential"],
)
def test_names_of_models_that_are_built_for_data(make, x, inputs, outputs):
    model = make()
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(x, [Y] * len(outputs), verbose=0).history
    assert [model.input_names, model.output_names] == [inputs, outputs]
    names = [f"{name}_loss" for name in outputs] + [f"{name}_mean_absolute_error" for name in outputs]
    assert sorted(history) == sorted(["loss", *(names if len(outputs) > 1 else ["mean_absolute_error"])])


def test_steps_are_functions_of_lists():
    """As programs for TensorFlow 1.15 use them: before threads predict, or to set the weights of optimizers."""
    model = keras.Sequential(
        [keras.layers.Dense(3, input_shape=(2,)), keras.layers.Dropout(0.0), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "mse", metrics=["mae"], loss_weights=[2.0])
    assert model.loss == "mse" and model.loss_weights == [2.0] and model.sample_weight_mode is None
    model._make_train_function()
    assert [each.shape for each in model.optimizer.get_weights()] == [(), (2, 3), (3,), (3, 1), (1,)]
    model._make_test_function()
    model._make_predict_function()
    x, y = np.ones([4, 2], np.float32), np.zeros([4, 1], np.float32)
    (predicted,) = model.predict_function([x])
    np.testing.assert_array_equal(predicted, model.predict(x))
    before = model.test_function([x, y, 0])
    np.testing.assert_allclose(before, [2 * np.square(predicted).mean(), np.abs(predicted).mean()], rtol=1e-6)
    np.testing.assert_allclose(model.train_function([x, y, 1]), before, rtol=1e-6)
    assert model.test_function([x, y])[0] < before[0]


@pytest.mark.parametrize("size", [-4, 0, "8", float("nan")])
def test_a_size_of_batches_is_a_number_of_at_least_one(size):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    x, y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
    for call in (lambda: model.fit(x, y, size), lambda: model.evaluate(x, y, size), lambda: model.predict(x, size)):
        with pytest.raises(ValueError, match=f"batch_size is {size!r}, expected a whole number of at least 1"):
            call()
