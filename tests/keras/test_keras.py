"""`tf.keras`: models that are compiled, fitted, evaluated and asked."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tfray as tf
from tests.support.event_reading import tensorboard_view
from tests.support.processes import PATIENCE_S
from tfray.errors import InvalidArgumentError

keras = tf.keras
layers = keras.layers


def blobs(count=120, seed=0):
    """Points around three centres, and which centre."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, size=count)
    centres = np.array([[2.0, 0.0], [-2.0, 1.0], [0.0, -2.0]])
    return (centres[labels] + 0.3 * random.normal(size=(count, 2))).astype(np.float32), labels


def classifier(**compile_settings):
    tf.set_random_seed(1)
    model = keras.Sequential(
        [layers.Dense(16, activation="relu", input_shape=(2,)), layers.Dense(3, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", **{"metrics": ["accuracy"], **compile_settings})
    return model


def test_it_loads_when_it_is_used():
    code = "import sys, tfray as tf; assert 'tfray.keras' not in sys.modules; tf.keras.layers; tf.keras.Model"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tf.__path__[0] + "/..", timeout=PATIENCE_S)
    with pytest.raises(AttributeError, match=r"tf\.keras\.no_such_part does not exist"):
        _ = keras.no_such_part


def test_sequential_learns():
    x, y = blobs()
    model = classifier()
    model.optimizer.lr = 0.05
    history = model.fit(x, y, batch_size=16, epochs=8, verbose=0, validation_split=0.25)
    assert history.epoch == list(range(8))
    assert set(history.history) == {"loss", "acc", "val_loss", "val_acc"}
    assert history.history["loss"][-1] < 0.3 * history.history["loss"][0]
    loss, accuracy = model.evaluate(x, y, verbose=0)
    assert accuracy > 0.97 and loss < 0.3
    predictions = model.predict(x)
    np.testing.assert_allclose(predictions.sum(1), 1, rtol=1e-5)
    assert (model.predict_classes(x) == y).mean() == pytest.approx(accuracy)


def test_loss_and_metrics_are_means_over_examples():
    x, y = blobs(10)
    model = classifier(metrics=["accuracy", "sparse_categorical_crossentropy"])
    loss, accuracy, entropy = model.evaluate(x, y, batch_size=4, verbose=0)
    shares = model.predict(x, batch_size=3)
    assert loss == pytest.approx(-np.log(shares[np.arange(10), y]).mean(), rel=1e-4)
    assert entropy == pytest.approx(loss, rel=1e-4)
    assert accuracy == pytest.approx((shares.argmax(1) == y).mean())
    assert model.metrics_names == ["loss", "acc", "sparse_categorical_crossentropy"]
    weighted = model.test_on_batch(x, y, sample_weight=np.arange(10))
    assert weighted[0] == pytest.approx((-np.log(shares[np.arange(10), y]) * np.arange(10)).mean(), rel=1e-4)


class _Numbered(keras.utils.Sequence):
    """Batches of 20 by their number, and how often all were made."""

    def __init__(self, *arrays):
        self.arrays, self.ends = arrays, 0

    def __len__(self):
        return len(self.arrays[0]) // 20

    def __getitem__(self, index):
        return tuple(array[20 * index : 20 * index + 20] for array in self.arrays)

    def on_epoch_end(self):
        self.ends += 1


def _endless(*arrays):
    while True:
        yield from _Numbered(*arrays)


def _dataset(*arrays):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(20)


SOURCES = {
    "generator": (_endless, 100 / 20),
    "sequence": (_Numbered, None),
    "dataset": (_dataset, None),
    "repeated dataset": (lambda *arrays: _dataset(*arrays).repeat(), 4.5),
    "iterator of a dataset": (lambda *arrays: _dataset(*arrays).repeat().make_one_shot_iterator(), 5),
    "tensors": (lambda *arrays: _dataset(*arrays).repeat().make_one_shot_iterator().get_next(), 5),
}


@pytest.mark.parametrize(("make", "steps"), SOURCES.values(), ids=SOURCES)
def test_batches_come_one_after_the_other(make, steps):
    x, y = blobs(100)
    reference, model = classifier(), classifier()
    model.set_weights(reference.get_weights())
    expected = reference.fit(x, y, batch_size=20, epochs=2, shuffle=False, validation_data=(x, y), verbose=0).history
    options = {"epochs": 2, "shuffle": False, "validation_data": make(x, y), "validation_steps": steps, "verbose": 0}
    found = model.fit_generator(make(x, y), steps, **options).history
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4)
    np.testing.assert_allclose(model.evaluate_generator(make(x, y), steps), reference.evaluate(x, y), rtol=1e-4)
    np.testing.assert_allclose(model.predict_generator(make(x, y), steps), reference.predict(x), rtol=1e-3, atol=1e-5)


def test_the_end_of_batches():
    x, y = blobs(100)
    batches, model = _Numbered(x, y), classifier()
    assert len(model.fit(batches, epochs=3, verbose=0).epoch) == batches.ends == 3
    ended = model.fit(iter(batches), steps_per_epoch=3, epochs=4, verbose=0)
    assert ended.epoch == [0, 1], "the second epoch had two batches, and there are no more"
    with pytest.raises(ValueError, match="specify the number of steps via the `steps_per_epoch`"):
        model.fit(iter(batches))
    weighted = _endless(x, y, np.arange(100) < 50)
    assert model.fit(weighted, steps_per_epoch=5, class_weight={0: 2.0, 1: 1.0, 2: 1.0}, verbose=0).epoch == [0]


def test_names_of_layers_and_variables():
    model = classifier()
    assert [layer.name for layer in model.layers] == ["dense", "dense_1"]
    assert [w.op.name for w in model.weights] == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    assert model.get_layer("dense_1") is model.get_layer(index=1)
    assert model.count_params() == 2 * 16 + 16 + 16 * 3 + 3
    for asked, words in (
        ({"name": "x"}, "No such layer: x; there are"),
        ({"index": 2}, "retrieve layer at index 2 but model only has 2 layers"),
        ({}, "Provide either a layer name or layer index"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            model.get_layer(**asked)


def test_functional_models():
    a, b = keras.Input([4], name="a"), keras.Input([3])
    shared = layers.Dense(5, activation=tf.nn.tanh)
    left, right = shared(a), shared(layers.Dense(4)(b))
    joined = layers.concatenate([left, right])
    first = layers.Dense(1, name="first")(layers.add([left, right]))
    second = layers.Dense(2, activation="softmax", name="second")(layers.Dropout(0.5)(joined))
    model = keras.Model([a, b], [first, second])
    assert [layer.name for layer in model.layers][-2:] == ["first", "second"]
    assert len(model.trainable_weights) == 8
    model.compile("sgd", ["mse", "categorical_crossentropy"], loss_weights=[1.0, 0.5])
    random = np.random.default_rng(0)
    x = [random.normal(size=(8, 4)), random.normal(size=(8, 3))]
    y = [random.normal(size=8), np.eye(2)[random.integers(0, 2, size=8)]]
    before = model.evaluate(x, y, verbose=0)
    model.fit(x, y, epochs=20, verbose=0, batch_size=8)
    assert model.evaluate(x, y, verbose=0) < before
    one, two = model.predict(x)
    assert (one.shape, two.shape) == ((8, 1), (8, 2))


def test_names_of_inputs_and_outputs():
    a, b = keras.Input([4], name="a"), keras.Input([3])
    shared = layers.Dense(2, name="shared")
    model = keras.Model([b, a], [shared(layers.Dense(4)(b)), shared(a), layers.Dense(1, name="last")(a)])
    assert model.input_names == ["input_1", "a"]
    assert model.output_names == ["shared", "shared_1", "last"]
    assert classifier().input_names == ["dense_1_input"]
    assert classifier().output_names == ["dense_4"]
    assert keras.Sequential([layers.Dense(3)]).input_names == []


def test_models_are_layers():
    x = keras.Input([2])
    inner = keras.Model(x, layers.Dense(3, use_bias=False)(x))
    outer_input = keras.Input([2])
    twice = layers.add([inner(outer_input), inner(outer_input)])
    outer = keras.Model(outer_input, twice)
    assert outer.weights == inner.weights
    points = blobs(5)[0]
    np.testing.assert_allclose(outer.predict(points), 2 * inner.predict(points), rtol=1e-5)
    stacked = keras.Sequential([inner, layers.Dense(1)])
    assert stacked.predict(points).shape == (5, 1)


def test_models_of_ones_own():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.hidden = layers.Dense(16, activation="relu")
            self.heads = [layers.Dense(3, activation="softmax")]

        def call(self, inputs):
            return self.heads[0](self.hidden(inputs))

    tf.set_random_seed(3)
    model = Net()
    x, y = blobs()
    model.compile(tf.train.AdamOptimizer(0.05), keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
    model.fit(x, y, epochs=8, verbose=0)
    assert model.evaluate(x, y)[1] > 0.97
    assert len(model.trainable_weights) == 4
    with pytest.raises(InvalidArgumentError, match="no layers"):
        keras.Model(name="empty")(tf.constant([[1.0]]))


def test_a_layer_of_ones_own():
    class Scale(layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_weight("factor", shape=(input_shape[-1],), initializer="ones")
            super().build(input_shape)

        def call(self, inputs):
            return inputs * self.factor

    model = keras.Sequential([Scale(input_shape=(2,))])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x = np.array([[1.0, 2.0], [2.0, 1.0]])
    model.fit(x, 3 * x, epochs=200, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], [3, 3], rtol=1e-2)


def test_models_without_input_shape_are_built_by_data():
    model = keras.Sequential([layers.Flatten(), layers.Dense(1, kernel_initializer="ones")])
    assert model.weights == []
    np.testing.assert_allclose(model.predict(np.ones((3, 2, 2))), 4)
    assert len(model.weights) == 2


def test_convnets():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, size=64)
    images = random.normal(size=(64, 8, 8, 1)) * 0.3
    images[labels == 1, 2:6, 3:5] += 1.0
    images[labels == 0, 3:5, 2:6] += 1.0
    tf.set_random_seed(2)
    model = keras.Sequential(
        [
            layers.Conv2D(8, 3, padding="same", input_shape=(8, 8, 1)),
            layers.BatchNormalization(momentum=0.8),
            layers.Activation("relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.1),
            layers.Flatten(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(lr=0.02), "binary_crossentropy", metrics=["acc"])
    model.fit(images, labels, epochs=12, batch_size=16, verbose=0)
    assert model.evaluate(images, labels, verbose=0)[1] > 0.95
    moving_mean = model.get_layer("batch_normalization").moving_mean
    assert abs(keras.backend.get_value(moving_mean)).max() > 0
    assert moving_mean in model.non_trainable_weights


def test_learning_phase():
    model = keras.Sequential([layers.Dropout(0.5, input_shape=(1000,)), layers.GaussianNoise(1.0)])
    ones = np.ones((1, 1000), np.float32)
    assert (model.predict(ones) == 1).all()
    session = keras.backend.get_session()
    noisy = session.run(model.outputs[0], {model.inputs[0]: ones, keras.backend.learning_phase(): True})
    assert noisy.std() > 1
    tf.reset_default_graph()
    keras.backend.set_learning_phase(1)
    model = keras.Sequential([layers.Dropout(0.5, input_shape=(1000,))])
    assert set(np.unique(model.predict(ones))) == {0.0, 2.0}


def run_layer(layer, *inputs):
    tensors = [tf.constant(value) for value in inputs]
    outputs = layer(tensors if len(tensors) > 1 else tensors[0])
    return keras.backend.get_session().run(outputs)


def test_small_layers():
    images = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    a, b = np.array([[1.0, 4.0]], np.float32), np.array([[3.0, 2.0]], np.float32)
    assert run_layer(layers.GlobalAveragePooling2D(), images).tolist() == images.mean((1, 2)).tolist()
    assert run_layer(layers.GlobalMaxPooling2D(), images).tolist() == images.max((1, 2)).tolist()
    assert run_layer(layers.GlobalAveragePooling1D(), images[0]).tolist() == images[0].mean(1).tolist()
    assert run_layer(layers.GlobalMaxPooling1D(), images[0]).tolist() == images[0].max(1).tolist()
    assert run_layer(layers.Reshape([4, -1]), images).shape == (1, 4, 6)
    assert run_layer(layers.Permute([3, 1, 2]), images).shape == (1, 4, 2, 3)
    assert run_layer(layers.RepeatVector(3), a).tolist() == [[[1, 4]] * 3]
    assert run_layer(layers.ZeroPadding2D((1, 2)), images).shape == (1, 4, 7, 4)
    assert run_layer(layers.Cropping2D(((1, 0), (0, 1))), images).tolist() == images[:, 1:, :2].tolist()
    assert run_layer(layers.UpSampling2D(2), images).tolist() == images.repeat(2, 1).repeat(2, 2).tolist()
    assert run_layer(layers.LeakyReLU(0.5), -a).tolist() == (-a / 2).tolist()
    assert run_layer(layers.ReLU(), -a).tolist() == [[0, 0]]
    assert run_layer(layers.Softmax(), a).sum() == pytest.approx(1)
    assert run_layer(layers.Lambda(lambda x, by: x * by, arguments={"by": 3}), a).tolist() == (a * 3).tolist()
    assert run_layer(layers.Subtract(), a, b).tolist() == (a - b).tolist()
    assert run_layer(layers.Multiply(), a, b, a).tolist() == (a * b * a).tolist()
    assert run_layer(layers.Average(), a, b).tolist() == ((a + b) / 2).tolist()
    assert run_layer(layers.Maximum(), a, b).tolist() == np.maximum(a, b).tolist()
    assert run_layer(layers.Minimum(), a, b).tolist() == np.minimum(a, b).tolist()
    assert run_layer(layers.Dot(), a, b).tolist() == [[11]]
    assert run_layer(layers.Concatenate(0), a, b).tolist() == np.concatenate([a, b]).tolist()


def test_embedding():
    model = keras.Sequential([layers.Embedding(10, 4, input_length=3), layers.GlobalAveragePooling1D()])
    model.compile("rmsprop", "mse")
    x = np.array([[1, 2, 3], [4, 4, 4]])
    table = model.get_weights()[0]
    np.testing.assert_allclose(model.predict(x), table[x].mean(1), rtol=1e-5)
    model.fit(x, np.zeros((2, 4)), epochs=3, verbose=0)
    assert (model.get_weights()[0][[0, 5]] == table[[0, 5]]).all()


T, P = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32), np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", ((P - T) ** 2).mean(1)),
        ("mean_absolute_error", abs(P - T).mean(1)),
        ("msle", ((np.log1p(P) - np.log1p(np.maximum(T, 1e-7))) ** 2).mean(1)),
        ("hinge", np.maximum(1 - (2 * T - 1) * P, 0).mean(1)),
        ("squared_hinge", (np.maximum(1 - (2 * T - 1) * P, 0) ** 2).mean(1)),
        ("logcosh", np.log(np.cosh(P - T)).mean(1)),
        ("huber", (0.5 * (P - T) ** 2).mean(1)),
        ("poisson", (P - T * np.log(P)).mean(1)),
        ("binary_crossentropy", -(T * np.log(P) + (1 - T) * np.log(1 - P)).mean(1)),
        ("categorical_crossentropy", -(T * np.log(P)).sum(1)),
        ("kullback_leibler_divergence", -(T * np.log(P)).sum(1)),
        ("cosine_proximity", (T * P).sum(1) / np.linalg.norm(P, axis=1)),
    ],
)
def test_losses(name, expected):
    values = keras.backend.get_session().run(keras.losses.get(name)(T, P))
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-4)


def test_losses_of_logits():
    logits = np.array([[1.0, -1.0], [0.0, 2.0]], np.float32)
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    values = keras.backend.get_session().run(
        [
            keras.losses.SparseCategoricalCrossentropy(from_logits=True)([0, 1], logits),
            keras.losses.CategoricalCrossentropy(from_logits=True)(T, logits),
            keras.losses.BinaryCrossentropy(from_logits=True)(T, logits, sample_weight=[1.0, 0.0]),
            keras.losses.MeanSquaredError()(T, logits),
            keras.losses.MeanAbsoluteError()(T, logits),
            keras.losses.Huber(0.5)(T, T + 1),
        ]
    )
    chance = 1 / (1 + np.exp(-logits[0]))
    expected = [
        -np.log([shares[0, 0], shares[1, 1]]).mean(),
        -np.log([shares[0, 1], shares[1, 0]]).mean(),
        -(T[0] * np.log(chance) + (1 - T[0]) * np.log(1 - chance)).mean() / 2,
        ((T - logits) ** 2).mean(),
        abs(T - logits).mean(),
        0.125 + 0.25,
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["sgd", "RMSprop", "adagrad", "adadelta", "adam", "nadam"])
def test_optimizers_by_name(name):
    tf.set_random_seed(0)
    model = keras.Sequential([layers.Dense(1, input_shape=(2,))])
    model.compile(name, "mse")
    x = blobs()[0]
    losses = model.fit(x, x.sum(1), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_settings_of_optimizers():
    model = keras.Sequential([layers.Dense(1, use_bias=False, kernel_initializer="zeros", input_shape=(1,))])
    model.compile(keras.optimizers.SGD(learning_rate=0.5, decay=1.0, clipvalue=0.1), "mse")
    x, y = np.ones((1, 1)), np.full((1, 1), 100.0)
    model.train_on_batch(x, y)
    model.train_on_batch(x, y)
    np.testing.assert_allclose(model.get_weights()[0], 0.05 + 0.025, rtol=1e-5)
    model.compile(keras.optimizers.SGD(1.0, momentum=0.9, nesterov=True, clipnorm=0.5), "mse")
    model.train_on_batch(x, y)
    np.testing.assert_allclose(model.get_weights()[0], 0.075 + 0.95, rtol=1e-5)


def test_callbacks(tmp_path):
    x, y = blobs()
    model = classifier()
    rates, batches = [], []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rates.append(float(keras.backend.get_value(self.model.optimizer.lr)))

    history = model.fit(
        x,
        y,
        epochs=6,
        verbose=0,
        validation_data=(x, y),
        callbacks=[
            keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1)),
            keras.callbacks.ModelCheckpoint(str(tmp_path / "w{epoch:02d}-{val_acc:.1f}"), period=3),
            keras.callbacks.ModelCheckpoint(str(tmp_path / "best"), save_best_only=True),
            keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: batches.append(logs["loss"])),
            keras.callbacks.EarlyStopping("loss", patience=2, min_delta=10.0),
            keras.callbacks.TerminateOnNaN(),
            Watch(),
        ],
    )
    assert history.epoch == [0, 1, 2]  # no loss improves by 10
    np.testing.assert_allclose(rates, [0.1, 0.05, 0.1 / 3], rtol=1e-5)
    assert len(batches) == 3 * 4
    saved = sorted(path.name for path in tmp_path.iterdir())
    assert saved[0] == "best" and saved[1].startswith("w03-")


def test_plateaus_and_best_weights():
    x, y = blobs()
    model = classifier()
    model.optimizer.lr = 0.0
    model.fit(x, y, epochs=1, verbose=0)
    keras.backend.set_value(model.optimizer.lr, 1.0)
    stop = keras.callbacks.EarlyStopping("loss", patience=3, restore_best_weights=True, min_delta=100.0)
    before = model.get_weights()
    reduce = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=100.0, min_lr=0.3)
    model.fit(x, y, epochs=9, verbose=0, callbacks=[reduce, stop])
    assert float(keras.backend.get_value(model.optimizer.lr)) == pytest.approx(0.3)
    assert stop.stopped_epoch == 3
    assert any((now != then).any() for now, then in zip(model.get_weights(), before, strict=True))


def test_weights_in_files(tmp_path):
    path = str(tmp_path / "weights")
    model = classifier()
    values = model.get_weights()
    model.save_weights(path)
    model.set_weights([value * 0 for value in values])
    model.load_weights(path)
    for value, now in zip(values, model.get_weights(), strict=True):
        np.testing.assert_array_equal(value, now)
    other = keras.Sequential([layers.Dense(2, input_shape=(2,))])
    with pytest.raises(InvalidArgumentError, match="weights of another model: layer_with_weights-0/bias/"):
        other.load_weights(path)


def test_regularizers_and_class_weights():
    model = keras.Sequential(
        [layers.Dense(1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.l2(0.5), input_shape=(2,))]
    )
    model.compile("sgd", "mse")
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert model.evaluate(x, np.array([1.0, 2.0]), verbose=0) == pytest.approx(1.0)
    binary = keras.Sequential([layers.Dense(1, kernel_initializer="zeros", input_shape=(2,))])
    binary.compile("sgd", "mse")
    loss = binary.train_on_batch(x, np.array([1, 0]), class_weight={0: 1.0, 1: 5.0})
    assert loss == pytest.approx(5.0 / 2)


def test_sessions():
    with tf.Session() as session:
        model = classifier()
        model.fit(*blobs(), epochs=1, verbose=0)
        assert keras.backend.get_session() is session
        one = session.run(model.weights[0])
    np.testing.assert_array_equal(one.shape, (2, 16))
    other = tf.Session()
    keras.backend.set_session(other)
    assert keras.backend.get_session() is other


def test_utilities():
    assert keras.utils.to_categorical([[0], [2]]).tolist() == [[1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(keras.utils.normalize(np.array([[3.0, 4.0], [0, 0]])), [[0.6, 0.8], [0, 0]])
    assert keras.backend.int_shape(keras.Input([3])) == (None, 3)
    assert keras.initializers.get("he_normal").scale == 2.0
    assert keras.activations.get(None)(3) == 3


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: keras.Model(keras.Input([2]), layers.Dense(1)(keras.Input([2]))), "Graph disconnected"),
        (lambda: keras.Model(keras.Input([2]), tf.constant([1.0])), "neither an input"),
        (lambda: classifier().fit(np.ones((2, 2)), np.ones(3)), "different numbers"),
        (lambda: classifier().fit([np.ones((2, 2))] * 2, np.ones(2)), "Expected to see 1 array"),
        (lambda: keras.Input(), "needs a shape"),
        (lambda: layers.Dense(1, activation="magic"), "Unknown activation function:magic; there are"),
        (lambda: layers.Dense(1, kernel_initializer="magic"), "Unknown initializer:magic; there are"),
        (lambda: keras.losses.get("magic"), "Unknown loss function:magic; there are"),
        (lambda: keras.optimizers.get("magic"), "Unknown optimizer: magic; there are"),
        (lambda: keras.metrics.get("magic"), "Unknown metric function:magic; there are"),
    ],
)
def test_what_is_refused(build, words):
    with pytest.raises(InvalidArgumentError, match=words):
        build()


def test_tensorboard_is_told(tmp_path):
    model = keras.Sequential([keras.layers.Dense(4, input_shape=(3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)
    board = keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=2, write_images=True, update_freq="batch")
    history = model.fit(x, x[:, :1], epochs=3, batch_size=8, verbose=0, validation_split=0.25, callbacks=[board])
    view = tensorboard_view(tmp_path)
    assert [event.value for event in view.Scalars("epoch_loss")] == pytest.approx(history.history["loss"], rel=1e-5)
    assert len(view.Scalars("epoch_val_loss")) == 3
    assert len(view.Scalars("batch_loss")) == 9
    assert len(view.Tags()["histograms"]) == 6 and len(view.Tags()["images"]) == 3
    assert view.Graph().node
    with pytest.raises(tf.errors.InvalidArgumentError, match="update_freq"):
        keras.callbacks.TensorBoard(update_freq="often")


def test_subclasses_may_have_attributes_of_any_name():
    class Scale(tf.keras.layers.Layer):
        def build(self, input_shape):
            self._weights = self.add_weight("factor", [input_shape[-1]], initializer="ones")
            self._calls = self.add_weight("count", [], trainable=False)
            super().build(input_shape)

        def call(self, inputs):
            return inputs * self._weights

    class Doubled(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self._weights = self._loss = self._train_op = self._targets = self._nodes = self._metrics = "mine"
            self._numbers = self._single = self._calls = self._weighted = "mine"
            self.scale = Scale()

        def _prepare(self):
            raise NotImplementedError

        _validate = _run_batch = _connect = _gathered = _over = _prepare

        def call(self, inputs):
            return self.scale(inputs)

    model = Doubled()
    model.compile("sgd", "mse")
    history = model.fit(np.ones((4, 2)), np.ones((4, 2)), validation_split=0.5, verbose=0)
    assert history.history["val_loss"] == [0.0] and model.predict(np.ones((1, 2))).tolist() == [[1.0, 1.0]]
    assert [len(model.trainable_weights), len(model.non_trainable_weights)] == [1, 1]
    model.scale.trainable = False
    assert [weight.shape.ndims for weight in model.scale.non_trainable_weights] == [1, 0]
    assert model._loss == model._targets == model._numbers == "mine"


# -- cells of programs ---------------------------------------------------------------------------------


class WithConstant(keras.layers.Layer):
    """The last output, the input and a constant, each times weights."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = units

    def build(self, input_shape):
        step, constant = input_shape
        self.kernels = [
            self.add_weight(name, [size, self.units], initializer="glorot_uniform")
            for name, size in [("inputs", step[-1]), ("state", self.units), ("constant", constant[-1])]
        ]

    def call(self, inputs, states, constants):
        parts = zip([inputs, states[0], constants[0]], self.kernels, strict=True)
        output = tf.tanh(tf.add_n([tf.matmul(value, kernel) for value, kernel in parts]))
        return output, [output]


class Plain(keras.layers.Layer):
    """The last output and the input, each times weights."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = units

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", [input_shape[-1], self.units], initializer="glorot_uniform")
        self.recurrent = self.add_weight("recurrent", [self.units, self.units], initializer="glorot_uniform")

    def call(self, inputs, states):
        output = tf.tanh(tf.matmul(inputs, self.kernel) + tf.matmul(states[0], self.recurrent))
        return output, [output]


def plainly(x, kernel, recurrent, state=0.0):
    """Outputs of `Plain` over sequences."""
    outputs = []
    state = np.broadcast_to(state, (len(x), len(recurrent)))
    for step in np.moveaxis(x, 1, 0):
        state = np.tanh(step @ kernel + state @ recurrent)
        outputs.append(state)
    return np.stack(outputs, 1)


SEQUENCES = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)


def test_a_cell_of_the_program():
    x, first = keras.Input((None, 3)), keras.Input((6,))
    layer = keras.layers.RNN(Plain(6), return_sequences=True, return_state=True)
    model = keras.Model([x, first], layer(x, initial_state=first))
    assert len(layer.trainable_weights) == 2
    model.compile("sgd", "mse")
    state = np.full((4, 6), 0.5, np.float32)
    outputs, last = model.predict([SEQUENCES, state])
    expected = plainly(SEQUENCES, *layer.get_weights(), state)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, expected[:, -1], rtol=1e-5, atol=1e-6)


def test_cells_one_above_the_other_learn():
    x = keras.Input((None, 3))
    layer = keras.layers.RNN([Plain(4), keras.layers.LSTMCell(5), Plain(2)])
    model = keras.Model(x, layer(x))
    model.compile("adam", "mse")
    before = layer.get_weights()
    assert [each.shape for each in before] == [(3, 4), (4, 4), (4, 20), (5, 20), (20,), (5, 2), (2, 2)]
    model.train_on_batch(SEQUENCES, np.ones((4, 2), np.float32))
    assert all(np.any(old != new) for old, new in zip(before, layer.get_weights(), strict=True))
    only = keras.layers.RNN([Plain(4), Plain(2)])
    found = keras.Model(x, only(x)).predict(SEQUENCES)
    weights = only.get_weights()
    expected = plainly(plainly(SEQUENCES, *weights[:2]), *weights[2:])[:, -1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_constants_reach_each_step_of_the_cells_that_take_them():
    x, constant = keras.Input((None, 3)), keras.Input((2,))
    layer = keras.layers.RNN([Plain(4), WithConstant(6)])
    model = keras.Model([x, constant], layer(x, constants=constant))
    values = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
    found = model.predict([SEQUENCES, values])
    weights = layer.get_weights()
    below, state = plainly(SEQUENCES, *weights[:2]), np.zeros((4, 6))
    for step in np.moveaxis(below, 1, 0):
        state = np.tanh(step @ weights[2] + state @ weights[3] + values @ weights[4])
    np.testing.assert_allclose(found, state, rtol=1e-5, atol=1e-6)


def test_a_layer_with_a_cell_of_the_program_is_described():
    layer = keras.layers.RNN(Plain(6), return_sequences=True)
    again = keras.layers.RNN.from_config(layer.get_config())
    x = keras.Input((None, 3))
    assert again(x).shape.as_list() == [None, None, 6]


@pytest.mark.parametrize("stacked", [list, keras.layers.StackedRNNCells])
def test_cells_are_made_anew_from_a_description(stacked):
    x = keras.Input((None, 3))
    layer = keras.layers.RNN(stacked([keras.layers.GRUCell(4), Plain(2)]))
    model = keras.Model(x, layer(x))
    again = keras.layers.RNN.from_config(layer.get_config())
    copy = keras.Model(x, again(x))
    copy.set_weights(model.get_weights())
    assert len(again.weights) == 5
    np.testing.assert_allclose(copy.predict(SEQUENCES), model.predict(SEQUENCES), rtol=1e-5)


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_recurrent_layers_drop_in_training_alone(kind):
    ones = np.ones((64, 3, 4), np.float32)
    layer = getattr(keras.layers, kind)(8, dropout=0.5, recurrent_dropout=0.5, return_sequences=True)
    x = keras.Input((3, 4))
    output = layer(x)
    session = keras.backend.get_session()
    rest, training = (session.run(output, {x: ones, keras.backend.learning_phase(): on}) for on in (False, True))
    assert np.ptp(rest, axis=0).max() < 1e-6, "the same inputs give the same outputs"
    assert np.ptp(training, axis=0).min(-1).max() > 0.01
    plain = getattr(keras.layers, kind)(8, return_sequences=True)
    plain(x)
    plain.set_weights(layer.get_weights())
    found = keras.Model(x, plain(x)).predict(ones)
    np.testing.assert_allclose(rest, found, rtol=1e-5, atol=1e-6)


# -- layers of several inputs --------------------------------------------------------------------------


A, B = (np.random.default_rng(i).normal(size=(4, 5, 3)).astype(np.float32) for i in (2, 3))


@pytest.mark.parametrize(
    ("merge", "shapes", "expected"),
    [
        ("add", [(5, 3), (1, 3)], A + B[:, :1]),
        ("subtract", [(5, 3), (5, 3)], A - B),
        ("average", [(5, 3), (5, 3)], (A + B) / 2),
        ("maximum", [(5, 3), (5, 3)], np.maximum(A, B)),
        ("minimum", [(5, 3), (5, 3)], np.minimum(A, B)),
        ("concatenate", [(5, 3), (5, 3)], np.concatenate([A, B], -1)),
    ],
)
def test_layers_of_several_inputs(merge, shapes, expected):
    inputs = [keras.Input(shape) for shape in shapes]
    model = keras.Model(inputs, getattr(keras.layers, merge)(inputs))
    found = model.predict([A, B[:, : shapes[1][0]]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("axes", "expected"), [(2, "bik,bjk->bij"), ([1, 1], "bki,bkj->bij"), (-1, "bik,bjk->bij")])
def test_products_of_two_inputs(axes, expected):
    inputs = [keras.Input((5, 3)), keras.Input((5, 3))]
    found = keras.Model(inputs, keras.layers.dot(inputs, axes)).predict([A, B])
    np.testing.assert_allclose(found, np.einsum(expected, A, B), rtol=1e-4, atol=1e-5)
    cosine = keras.Model(inputs, keras.layers.dot(inputs, axes, normalize=True)).predict([A, A])
    np.testing.assert_allclose(np.diagonal(cosine, axis1=1, axis2=2), 1, rtol=1e-4)


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        (lambda a, b: keras.layers.add([a]), "at least 2 inputs"),
        (lambda a, b: keras.layers.multiply(a), "at least 2 inputs"),
        (lambda a, b: keras.layers.concatenate([a, b]), "matching shapes"),
        (lambda a, b: keras.layers.dot([a, b], 1), "do not match"),
        (lambda a, b: keras.layers.dot([a, a, a], 1), "exactly 2"),
    ],
)
def test_inputs_that_do_not_go_together(merge, message):
    with pytest.raises(ValueError, match=message):
        merge(keras.Input((5, 3)), keras.Input((4, 3)))


def test_vectors_are_columns_for_inputs_of_one_feature():
    ids, numbers = tf.keras.layers.Input([1], dtype=tf.int32), tf.keras.layers.Input([])
    embedded = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(5, 3, embeddings_initializer="ones")(ids))
    scaled = tf.keras.layers.Lambda(lambda both: both[0] * tf.expand_dims(both[1], 1))([embedded, numbers])
    model = tf.keras.models.Model([ids, numbers], scaled)
    x = [np.array([0, 4, 2, 1]), np.array([1.0, 2.0, 3.0, 4.0])]
    expected = np.outer([1, 2, 3, 4], np.ones(3))
    np.testing.assert_allclose(model.predict(x), expected)
    np.testing.assert_allclose(model.predict_on_batch(x), expected)
    model.compile("sgd", "mse")
    assert model.evaluate(x, expected, verbose=0) == 0 and model.train_on_batch(x, expected) == 0
    model.fit(x, expected, batch_size=2, epochs=1, verbose=0, validation_data=(x, expected))
