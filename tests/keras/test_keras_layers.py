"""Layers of `tf.keras` one by one, models of layers and operations, models with several named inputs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers
K = keras.backend

RANDOM = np.random.default_rng(3)
VOLUMES = RANDOM.normal(size=(2, 3, 4, 5, 2)).astype(np.float32)
IMAGES, SEQUENCES = VOLUMES[:, 0], VOLUMES[:, 0, 0]


def applied(layer, value):
    """What a model of this layer gives, with weights drawn at random; and the layer's shape for such inputs."""
    x = keras.Input(value.shape[1:], dtype=value.dtype)
    model = keras.Model(x, layer(x))
    model.set_weights([RANDOM.normal(size=weights.shape) for weights in model.get_weights()])
    return model.predict(value)


def relu(x, slope, highest, threshold):
    return np.where(x >= threshold, np.minimum(x, highest), slope * (x - threshold))


VALUES = [
    (layers.Cropping1D, {"cropping": (1, 2)}, SEQUENCES, lambda x: x[:, 1:-2]),
    (layers.Cropping3D, {"cropping": ((1, 0), (0, 2), (1, 1))}, VOLUMES, lambda x: x[:, 1:, :-2, 1:-1]),
    (
        layers.Cropping2D,
        {"cropping": 1, "data_format": "channels_first"},
        IMAGES.transpose(0, 3, 1, 2),
        lambda x: x[:, :, 1:-1, 1:-1],
    ),
    (layers.ZeroPadding1D, {"padding": (1, 2)}, SEQUENCES, lambda x: np.pad(x, [(0, 0), (1, 2), (0, 0)])),
    (
        layers.ZeroPadding2D,
        {"padding": ((1, 0), (2, 1)), "data_format": "channels_first"},
        IMAGES,
        lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)]),
    ),
    (
        layers.ZeroPadding3D,
        {"padding": (1, 0, 2)},
        VOLUMES,
        lambda x: np.pad(x, [(0, 0), (1, 1), (0, 0), (2, 2), (0, 0)]),
    ),
    (layers.UpSampling1D, {"size": 3}, SEQUENCES, lambda x: x.repeat(3, 1)),
    (layers.UpSampling3D, {"size": (1, 2, 3)}, VOLUMES, lambda x: x.repeat(2, 2).repeat(3, 3)),
    (layers.UpSampling2D, {"data_format": "channels_first"}, IMAGES, lambda x: x.repeat(2, 2).repeat(2, 3)),
    (layers.GlobalAveragePooling3D, {}, VOLUMES, lambda x: x.mean((1, 2, 3))),
    (layers.GlobalMaxPooling3D, {"data_format": "channels_first"}, VOLUMES, lambda x: x.max((2, 3, 4))),
    (layers.ELU, {"alpha": 0.5}, IMAGES, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    (layers.ThresholdedReLU, {"theta": 0.3}, IMAGES, lambda x: x * (x > 0.3)),
    (
        layers.ReLU,
        {"max_value": 1.0, "negative_slope": 0.2, "threshold": 0.1},
        IMAGES,
        lambda x: relu(x, 0.2, 1.0, 0.1),
    ),
    (layers.Softmax, {"axis": 1}, IMAGES, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    (layers.SpatialDropout2D, {"rate": 0.5}, IMAGES, lambda x: x),
    (layers.GlobalMaxPooling2D, {}, IMAGES, lambda x: x.max((1, 2))),
    (layers.GaussianDropout, {"rate": 0.5}, IMAGES, lambda x: x),
    (layers.AlphaDropout, {"rate": 0.5}, IMAGES, lambda x: x),
]


@pytest.mark.parametrize(("made", "settings", "value", "expected"), VALUES)
def test_values_and_shapes(made, settings, value, expected):
    layer = made(**settings)
    found = applied(layer, value)
    np.testing.assert_allclose(found, expected(value), rtol=1e-5, atol=1e-6)
    assert layer.compute_output_shape((None, *value.shape[1:])).as_list() == [None, *found.shape[1:]]
    again = layers.deserialize(layers.serialize(layer))
    np.testing.assert_allclose(applied(again, value), found)


RANKS = [
    *[(kind + f"{rank}D", rank + 2) for kind in ("Cropping", "UpSampling", "ZeroPadding") for rank in (1, 2, 3)],
    *[(f"Global{kind}Pooling{rank}D", rank + 2) for kind in ("Max", "Average") for rank in (1, 2, 3)],
    *[(f"SpatialDropout{rank}D", rank + 2) for rank in (1, 2, 3)],
]


@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_inputs_of_another_rank_are_refused(name, rank):
    layer = getattr(layers, name)(*[0.5] * name.startswith("Spatial"))
    with pytest.raises(ValueError, match=f"incompatible with the layer: expected ndim={rank}"):
        layer(tf.ones([2] * (rank - 1)))
    assert layer(tf.ones([3] * rank)).shape.rank is not None
    if not name.endswith("1D"):
        with pytest.raises(ValueError, match="`data_format` argument must be one of"):
            getattr(layers, name)(*[0.5] * name.startswith("Spatial"), data_format="NHWC")


@pytest.mark.parametrize("layer", [tf.layers.Conv1D, tf.layers.SeparableConv1D, layers.Conv1D, layers.SeparableConv1D])
@pytest.mark.parametrize(("steps", "gap", "data_format"), [(1, 2, "channels_last"), (2, 1, "channels_first")])
def test_causal_sequences_see_no_later_step(layer, steps, gap, data_format):
    made = layer(2, 3, steps, "causal", data_format, gap)
    values = np.random.default_rng(0).normal(size=(2, 8, 3)).astype(np.float32)
    later = np.where(np.arange(8)[:, None] > 4, 9.0, values).astype(np.float32)
    turned = (lambda x: x.transpose(0, 2, 1)) if data_format == "channels_first" else (lambda x: x)
    found = [made(tf.constant(turned(each))) for each in (values, later)]
    assert made.compute_output_shape(turned(values).shape) == found[0].shape
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, other = (turned(each) for each in session.run(found))
    assert one.shape == (2, 8 // steps, 2)
    np.testing.assert_array_equal(one[:, : 4 // steps + 1], other[:, : 4 // steps + 1])
    assert not np.allclose(one[:, 4 // steps + 1 :], other[:, 4 // steps + 1 :])
    with pytest.raises(ValueError, match="expected 'same' or 'valid'"):
        tf.layers.Conv2D(2, 3, padding="causal")


def test_descriptions_of_nothing_and_of_layers():
    utils = keras.utils
    assert utils.deserialize_keras_object(utils.serialize_keras_object(None)) is None

    class Own(layers.Layer):
        pass

    told = utils.serialize_keras_object(Own(name="mine"))
    with pytest.raises(ValueError, match="custom_objects"):
        utils.deserialize_keras_object(told)
    assert utils.deserialize_keras_object(told, custom_objects={"Own": Own}).name == "mine"


SHAPES = [
    (lambda: layers.Conv3D(2, 2, strides=(1, 2, 1), padding="same"), VOLUMES),
    (lambda: layers.Conv3DTranspose(2, 3, strides=2, padding="same", output_padding=1), VOLUMES),
    (lambda: layers.Conv2DTranspose(2, 3, strides=2, output_padding=(1, 0)), IMAGES),
    (lambda: layers.SeparableConv1D(3, 2), SEQUENCES),
    (lambda: layers.MaxPooling3D(2, padding="same"), VOLUMES),
    (lambda: layers.PReLU(shared_axes=[1, 2]), IMAGES),
    (lambda: layers.LayerNormalization(axis=[1, 2]), IMAGES),
    (lambda: layers.Reshape((5, -1)), IMAGES),
    (lambda: layers.Permute((3, 1, 2)), IMAGES),
    (lambda: layers.Lambda(lambda x: x[:, :, 0]), IMAGES),
    (lambda: layers.LSTM(3, return_sequences=True), SEQUENCES),
    (lambda: layers.RNN([layers.GRUCell(3), layers.SimpleRNNCell(4)]), SEQUENCES),
    (lambda: layers.Bidirectional(layers.GRU(3)), SEQUENCES),
    (lambda: keras.Sequential([layers.Conv1D(3, 2, input_shape=(5, 2)), layers.Flatten()]), SEQUENCES),
]


@pytest.mark.parametrize(("make", "value"), SHAPES)
def test_shapes_of_outputs_are_told(make, value):
    layer = make()
    found = applied(layer, value)
    assert tf.TensorShape(layer.compute_output_shape((None, *value.shape[1:]))).as_list() == [None, *found.shape[1:]]


def test_transposed_convolutions_with_gaps():
    kernel = np.ones((3, 3, 1, 3), np.float32)
    value = np.arange(48, dtype=np.float32).reshape(1, 4, 4, 3)
    layer = layers.Conv2DTranspose(1, 3, padding="same", dilation_rate=2, kernel_initializer="ones")
    x = keras.Input((4, 4, 3))
    found = keras.Model(x, layer(x)).predict(value)
    wide = np.pad(value.sum(-1), [(0, 0), (2, 2), (2, 2)])
    places = [(row, column) for row in (0, 2, 4) for column in (0, 2, 4)]
    wanted = sum(wide[:, row : row + 4, column : column + 4] for row, column in places)
    np.testing.assert_allclose(found[..., 0], wanted)
    assert kernel.shape == tuple(layer.kernel.shape.as_list())
    with pytest.raises(ValueError, match="greater than output padding"):
        layers.Conv2DTranspose(1, 3, strides=2, output_padding=2)


def test_a_gate_that_resets_after_the_product():
    layer = layers.GRU(3, reset_after=True)
    x = keras.Input((5, 2))
    model = keras.Model(x, layer(x))
    kernel, recurrent, bias = weights = [RANDOM.normal(size=(size, 9)) for size in (2, 3, 2)]
    model.set_weights(weights)
    state = np.zeros((2, 3))
    sigmoid = lambda value: np.clip(0.2 * value + 0.5, 0, 1)  # noqa: E731
    for time in range(5):
        own = np.split(SEQUENCES[:2, time] @ kernel + bias[0], 3, 1)
        other = np.split(state @ recurrent + bias[1], 3, 1)
        update, reset = sigmoid(own[0] + other[0]), sigmoid(own[1] + other[1])
        state = update * state + (1 - update) * np.tanh(own[2] + reset * other[2])
    np.testing.assert_allclose(model.predict(SEQUENCES), state, atol=1e-5)


class Pair(layers.Layer):
    """A cell that takes a pair of inputs, and keeps a vector and a matrix."""

    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        self.state_size = self.output_size = [size, tf.TensorShape([4, size])]

    def build(self, input_shape):
        (_, size), (_, rows, also) = input_shape
        assert (rows, also) == (1, size)
        self.matrix = self.add_weight("matrix", [size, self.state_size[0]], initializer="ones")
        self.built = True

    def call(self, inputs, states):
        one, other = inputs
        vector = states[0] + tf.matmul(one, self.matrix)
        matrix = states[1] + tf.expand_dims(tf.matmul(other[:, 0], self.matrix), 1)
        return (vector, matrix), [vector, matrix]


def test_cells_take_structures_and_keep_matrices():
    one, other = keras.Input((5, 2)), keras.Input((5, 1, 2))
    layer = layers.RNN(Pair(3), return_sequences=True, return_state=True)
    model = keras.Model([one, other], layer((one, other)))
    vectors, matrices, vector, matrix = model.predict([SEQUENCES, SEQUENCES[:, :, None]])
    wanted = (SEQUENCES @ np.ones((2, 3))).cumsum(1)
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)
    np.testing.assert_allclose(matrices, np.broadcast_to(wanted[:, :, None], (2, 5, 4, 3)), atol=1e-5)
    np.testing.assert_allclose(vector, wanted[:, -1], atol=1e-5)
    np.testing.assert_allclose(matrix, matrices[:, -1])
    assert model.output_shape == [(None, 5, 3), (None, 5, 4, 3), (None, 3), (None, 4, 3)]
    assert [layer.input_shape, model.input] == [((None, 5, 2), (None, 5, 1, 2)), [one, other]]
    shapes = layer.compute_output_shape(((None, 5, 2), (None, 5, 1, 2)))
    assert [tf.TensorShape(shape).as_list() for shape in tf.contrib.framework.nest.flatten(shapes)][-1] == [None, 4, 3]


@pytest.mark.parametrize(
    ("cell", "sizes"),
    [(lambda: layers.LSTMCell(3), [3, 3]), (lambda: [layers.GRUCell(3), layers.SimpleRNNCell(2)], [3, 2])],
)
def test_first_states_of_a_layer(cell, sizes):
    layer = layers.RNN(cell(), return_state=True)
    states = layer.get_initial_state(tf.constant(SEQUENCES))
    assert [K.get_value(state).tolist() for state in states] == [
        np.zeros((2, size)).tolist()
        for size in ([3, 3] if len(states) == 2 and not isinstance(cell(), list) else [3, 2])
    ]
    x, starts = keras.Input((5, 2)), [keras.Input(state.shape.as_list()[1:]) for state in states]
    model = keras.Model([x, *starts], layer([x, *starts]))
    zeros = [np.zeros(state.shape.as_list()) for state in states]
    outputs = model.predict([SEQUENCES, *zeros])
    np.testing.assert_allclose(outputs[0], keras.Model(x, layer(x)).predict(SEQUENCES)[0], atol=1e-6)
    with pytest.raises(ValueError, match="was passed 1 initial states"):
        layer(x, initial_state=starts[:1])
    with pytest.raises(ValueError, match=r"however `cell\.state_size` is"):
        layer(x, initial_state=[keras.Input((7,)) for _ in starts])


def test_regularizers_and_constraints_of_recurrent_layers():
    bounds = [keras.constraints.max_norm(0.01) for _ in range(3)]
    layer = layers.LSTM(
        5,
        kernel_regularizer=keras.regularizers.l1(0.01),
        recurrent_regularizer="l2",
        bias_regularizer="l2",
        activity_regularizer="l1",
        kernel_constraint=bounds[0],
        recurrent_constraint=bounds[1],
        bias_constraint=bounds[2],
    )
    layer.build((None, None, 2))
    assert len(layer.losses) == 3 and layer.units == 5
    cell = layer.cell
    assert [each.constraint for each in (cell.kernel, cell.recurrent_kernel, cell.bias)] == bounds
    x = tf.constant(SEQUENCES)
    layer(x)
    assert [len(layer.losses), len(layer.get_losses_for(x)), len(layer.get_losses_for(None))] == [4, 1, 3]


WEIGHTS = np.array([[3.0, -0.1, 0.0], [4.0, 0.2, -1.0]], np.float32)
NORMS = np.sqrt((WEIGHTS**2).sum(0))


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("max_norm", WEIGHTS * (np.minimum(NORMS, 2) / (NORMS + 1e-7))),
        ("non_neg", np.maximum(WEIGHTS, 0)),
        (keras.constraints.Constraint(), WEIGHTS),
        ("UnitNorm", WEIGHTS / (NORMS + 1e-7)),
        (keras.constraints.MinMaxNorm(0.5, 1.0, 0.5), WEIGHTS * (0.5 * np.clip(NORMS, 0.5, 1) / NORMS + 0.5)),
    ],
)
def test_constraints(constraint, expected):
    found = K.get_value(keras.constraints.get(constraint)(tf.constant(WEIGHTS)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_operations_between_layers_belong_to_a_model():
    x = keras.Input((3,))
    encoder = layers.Dense(3, use_bias=False)
    y = tf.matmul(tf.nn.relu(encoder(x)) + 1.0, encoder.kernel, transpose_b=True)[:, :2]
    model = keras.Model(x, y)
    value = RANDOM.normal(size=(4, 3)).astype(np.float32)
    (weights,) = model.get_weights()
    wanted = lambda given: ((np.maximum(given @ weights, 0) + 1) @ weights.T)[:, :2]  # noqa: E731
    np.testing.assert_allclose(model.predict(value), wanted(value), rtol=1e-4, atol=1e-5)
    z = keras.Input((3,))
    outer = keras.Model(z, model(2.0 * layers.Activation("linear")(z)))
    np.testing.assert_allclose(outer.predict(value), wanted(2 * value), rtol=1e-4, atol=1e-5)
    assert len(outer.trainable_weights) == 1


def test_layers_of_layers_are_one_layer():
    class Block(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.first, self.rest = layers.Dense(4), [layers.Dense(2, kernel_regularizer="l2")]

        def call(self, inputs):
            return self.rest[0](tf.nn.relu(self.first(inputs)))

    x = keras.Input((3,))
    block = Block()
    model = keras.Model(x, block(x))
    assert model.layers[1:] == [block]
    assert [len(model.trainable_weights), len(block.weights), len(model.losses)] == [4, 4, 1]
    block.trainable = False
    assert [len(model.trainable_weights), len(model.non_trainable_weights)] == [0, 4]


def two_outputs():
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    hidden = layers.Dense(4, name="hidden")(a)
    both = layers.Concatenate()([hidden, b])
    return keras.Model([a, b], [layers.Dense(2, name="one")(both), layers.Dense(1, name="other")(hidden)])


def test_inputs_and_outputs_by_name():
    model = two_outputs()
    losses, metrics = {"one": "mse", "other": "mae"}, {"one": "mae", "other": ["mse", "mae"]}
    model.compile(tf.train.GradientDescentOptimizer(0.0), losses, metrics, {"one": 1.0, "other": 0.25})
    x = {"b": RANDOM.normal(size=(4, 2)), "a": RANDOM.normal(size=(4, 3))}
    y = {"other": RANDOM.normal(size=(4, 1)), "one": RANDOM.normal(size=(4, 2))}
    one, other = (found - y[name] for found, name in zip(model.predict(x), ("one", "other"), strict=True))
    wanted = {
        "loss": (one**2).mean() + np.abs(other).mean() / 4,
        "one_loss": (one**2).mean(),
        "other_loss": np.abs(other).mean(),
        "one_mean_absolute_error": np.abs(one).mean(),
        "other_mean_squared_error": (other**2).mean(),
        "other_mean_absolute_error": np.abs(other).mean(),
    }
    found = model.evaluate(x, y, verbose=0)
    assert model.metrics_names == list(wanted) and [model.input_names, model.output_names] == [
        ["a", "b"],
        ["one", "other"],
    ]
    np.testing.assert_allclose(found, list(wanted.values()), rtol=1e-5)
    history = model.fit(x, y, verbose=0).history
    np.testing.assert_allclose([history[name][0] for name in wanted], found, rtol=1e-5)
    with pytest.raises(ValueError, match="No data provided for 'b'"):
        model.predict({"a": x["a"]})
    with pytest.raises(ValueError, match="Unknown entries"):
        model.compile("sgd", {"neither": "mse"})
        model.fit(x, y)


@pytest.mark.parametrize("as_dataset", [False, True])
def test_features_by_name(as_dataset):
    columns = [tf.feature_column.numeric_column(name) for name in ("height", "weight")]
    model = keras.Sequential([layers.DenseFeatures(columns), layers.Dense(1, use_bias=False)])
    model.compile(tf.train.GradientDescentOptimizer(0.0), "mse")
    x = {name: RANDOM.normal(size=(10, 1)).astype(np.float32) for name in ("weight", "height")}
    y = RANDOM.normal(size=(10, 1)).astype(np.float32)
    if as_dataset:
        model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(5), steps_per_epoch=2, verbose=0)
    else:
        model.fit(x, y, batch_size=5, verbose=0)
    (weights,) = model.get_weights()
    wanted = np.concatenate([x["height"], x["weight"]], 1) @ weights
    np.testing.assert_allclose(model.predict(x), wanted, rtol=1e-4, atol=1e-5)


def test_batches_have_a_size_of_their_own():
    def batches():
        while True:
            yield np.ones((4, 2)), np.ones((4, 1))

    model = keras.Sequential([layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    for call in (model.fit, model.evaluate, model.predict):
        with pytest.raises(ValueError, match="The `batch_size` argument must not be specified"):
            call(batches(), batch_size=2)
    with pytest.raises(ValueError, match="Output of generator should be a tuple of 1 or 2 or 3 elements"):
        model.fit_generator(iter([(1, 2, 3, 4)]), steps_per_epoch=1)


# -- layers of tf.layers, operations and variables in models ---------------------------------------------


class _Attributes(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.rest = tf.layers.Dense(4), [tf.layers.Dense(2)]
        self.scale = tf.Variable(2.0)

    def call(self, inputs):
        return self.rest[0](self.first(inputs)) * self.scale


class _Within(tf.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = {"first": tf.layers.Dense(4), "second": layers.Dense(2)}

    def call(self, inputs):
        return self.inner["second"](self.inner["first"](inputs))


def _functional(build):
    x = keras.Input([3])
    return keras.Model(x, build(x))


MIXED = {
    "objects": (lambda: _functional(lambda x: tf.layers.Dense(2)(layers.Dense(4)(x))), 4),
    "functions": (lambda: _functional(lambda x: tf.layers.dense(tf.layers.dense(x, 4, tf.nn.relu), 2)), 4),
    "operations between": (lambda: _functional(lambda x: tf.layers.dense(tf.nn.relu(layers.Dense(4)(x)) + 1.0, 2)), 4),
    "slim": (lambda: _functional(lambda x: layers.Dense(2)(tf.contrib.layers.fully_connected(x, 4))), 4),
    "sequential": (lambda: keras.Sequential([tf.layers.Dense(4), tf.layers.Dropout(0.5), tf.layers.Dense(2)]), 4),
    "with a shape": (lambda: keras.Sequential([tf.layers.Dense(4, input_shape=(3,)), tf.layers.Dense(2)]), 4),
    "attributes": (_Attributes, 5),
    "layers within one": (lambda: _functional(_Within()), 4),
}


@pytest.mark.parametrize("build", [row[0] for row in MIXED.values()], ids=list(MIXED))
def test_layers_of_tf_layers_are_trained_and_saved(build, request, tmp_path):
    count = MIXED[request.node.callspec.id][1]
    model = build()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x, y = np.ones([4, 3], np.float32), np.ones([4, 2], np.float32)
    model.train_on_batch(x, y)
    assert len(model.trainable_weights) == len(model.weights) == count
    before = model.get_weights()
    model.save_weights(str(tmp_path / "weights"))
    model.train_on_batch(x, y)
    assert any((old != new).any() for old, new in zip(before[-2:], model.get_weights()[-2:], strict=True))
    model.load_weights(str(tmp_path / "weights"))
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_layers_of_tf_layers_are_layers_of_keras():
    assert isinstance(tf.layers.Dense(2), layers.Layer)
    assert isinstance(layers.Dense(2), layers.Layer)
    assert issubclass(tf.nn.rnn_cell.LSTMCell, layers.Layer)
    assert not isinstance(layers.LayerNormalization(), tf.layers.Layer)


def test_what_goes_to_collections():
    x = keras.Input([3])
    y = layers.Dense(4, kernel_regularizer="l2", activity_regularizer=keras.regularizers.l2(0.1))(x)
    y = layers.BatchNormalization()(y)
    assert not tf.losses.get_regularization_losses()
    assert not tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    model = keras.Model(
        x, tf.layers.BatchNormalization()(tf.layers.dense(y, 2, kernel_regularizer="l1"), training=True)
    )
    assert len(model.losses) == 3
    assert len(model.updates) == 4
    assert len(tf.losses.get_regularization_losses()) == 1
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2


def test_models_of_layers_and_operations_are_described(tmp_path):
    x = keras.Input([3])
    factor = tf.constant([1.0, 2.0, 3.0, 4.0])
    y = tf.layers.dense(tf.split(layers.Dense(4)(x) * factor, 2, 1)[1], 2, name="last", kernel_initializer="ones")
    model = keras.Model(x, y)
    model.save(str(tmp_path / "model"))
    rows = RANDOM.normal(size=(2, 3)).astype(np.float32)
    expected = model.predict(rows)
    np.testing.assert_allclose(keras.models.load_model(str(tmp_path / "model")).predict(rows), expected, rtol=1e-6)
    K.clear_session()
    loaded = keras.models.load_model(str(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict(rows), expected, rtol=1e-6)
    assert [layer.name for layer in loaded.layers if layer.weights] == ["dense", "last"]


def test_a_variable_is_a_loss():
    class Layer(tf.layers.Layer):
        def build(self, input_shape):
            self.add_loss(self.add_weight("a", (), trainable=False))
            self.built = True

        def call(self, inputs):
            self.add_loss(inputs, inputs=True)
            return inputs + 1

    layer = Layer()
    inputs = tf.placeholder(tf.float32, [])
    outputs = layer(inputs)
    found = [layer.losses, *(layer.get_losses_for(each) for each in (None, [inputs], [outputs]))]
    assert [len(each) for each in found] == [2, 1, 1, 0]


def test_losses_and_updates_may_be_functions():
    class Shrinking(layers.Layer):
        def build(self, input_shape):
            self.count = self.add_weight("count", [], initializer="zeros", trainable=False)
            self.add_loss(lambda: 3.0 * self.factor)
            self.factor = self.add_weight("factor", [], initializer="ones")
            super().build(input_shape)

        def call(self, inputs):
            self.add_update(lambda: tf.assign_add(self.count, 1.0), inputs)
            return inputs * self.factor

    model = keras.Sequential([Shrinking(input_shape=(2,))])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.train_on_batch(np.zeros([4, 2]), np.zeros([4, 2]))
    np.testing.assert_allclose(model.get_weights(), [0.7, 1.0], rtol=1e-6)
    assert len(model.losses) == 1


def test_a_layer_is_told_that_it_does_not_run_eagerly():
    layer = keras.layers.Layer(dynamic=False, autocast=False)
    assert not layer.dynamic and not {"dynamic", "autocast"} & set(layer.get_config())
    with pytest.raises(ValueError, match="Layer: dynamic=True asks for a layer that runs eagerly"):
        keras.layers.Layer(dynamic=True)


def test_dense_layers_take_other_numbers_once_they_are_built():
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
    outputs = [model(tf.constant([[1.0, 2.0]], tf.float64)), model({"any": tf.constant([[1, 2]])})]
    assert [output.dtype for output in outputs] == [tf.float32, tf.float32]
    for found in keras.backend.get_session().run(outputs):
        np.testing.assert_allclose(found, [[3.0]])


@pytest.mark.parametrize(
    ("layer", "like"),
    [
        (lambda: layers.MaxPooling2D(2, 1, "same", "channels_last"), lambda: layers.MaxPooling2D(2, 1, "same")),
        (lambda: layers.AveragePooling2D(2, None, "valid", None), lambda: layers.AveragePooling2D()),
        (lambda: layers.MaxPooling1D(2, 1, "same", "channels_first"), None),
        (
            lambda: layers.Conv2D(2, 2, 1, "same", None, 1, "relu"),
            lambda: layers.Conv2D(2, 2, 1, "same", dilation_rate=1, activation="relu"),
        ),
        (
            lambda: layers.Conv2DTranspose(2, 3, 2, "same", 1, None, 1, "relu"),
            lambda: layers.Conv2DTranspose(
                2, 3, strides=2, padding="same", output_padding=1, dilation_rate=1, activation="relu"
            ),
        ),
        (
            lambda: layers.LSTM(3, "relu", "sigmoid", True, "ones", "zeros", "zeros", False),
            lambda: layers.LSTM(
                3, "relu", "sigmoid", kernel_initializer="ones", recurrent_initializer="zeros", unit_forget_bias=False
            ),
        ),
        (
            lambda: layers.CuDNNGRU(3, "ones", "zeros"),
            lambda: layers.CuDNNGRU(3, "ones", recurrent_initializer="zeros"),
        ),
    ],
)
def test_arguments_by_place(layer, like):
    def described(made):
        return {**layers.serialize(made)["config"], "name": None}

    found = described(layer())
    if like is None:
        assert found["data_format"] == "channels_first"
    else:
        assert found == described(like())
        assert described(type(layer()).from_config(layer().get_config())) == found


@pytest.mark.parametrize(
    ("kind", "implementation", "count"),
    [("SimpleRNNCell", 1, 1), ("GRUCell", 1, 3), ("GRUCell", 2, 1), ("LSTMCell", 1, 4), ("LSTMCell", 2, 1)],
)
def test_gates_drop_parts_of_their_own(kind, implementation, count):
    """What a cell gives is what weights of each gate give for inputs and states of which its mask leaves a part."""
    settings = {} if kind == "SimpleRNNCell" else {"recurrent_activation": None, "implementation": implementation}
    cell = getattr(tf.keras.layers, kind)(
        2, activation=None, dropout=0.5, recurrent_dropout=0.5, bias_initializer="random_normal", **settings
    )
    values = np.random.default_rng(3)
    x, before, memory = (values.normal(size=[3, size]).astype(np.float32) for size in (5, 2, 2))
    states = [before, memory] if kind == "LSTMCell" else [before]
    output, _ = cell(tf.constant(x), [tf.constant(state) for state in states], training=True)
    masks = [cell.get_dropout_mask_for_cell(x, True), cell.get_recurrent_dropout_mask_for_cell(before, True)]
    assert [len(mask) if isinstance(mask, list) else 1 for mask in masks] == [count, count]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, weights, masks = session.run([output, cell.weights, masks])
    kernel, recurrent, bias = weights
    gates = kernel.shape[1] // 2
    (of_inputs, of_state) = (mask if isinstance(mask, list) else [mask] * gates for mask in masks)
    columns = [slice(2 * gate, 2 * gate + 2) for gate in range(gates)]
    given = [x * mask @ kernel[:, part] + bias[part] for mask, part in zip(of_inputs, columns, strict=True)]
    kept = [before * mask for mask in of_state]
    own = [value + state @ recurrent[:, part] for value, state, part in zip(given, kept, columns, strict=True)]
    if kind == "SimpleRNNCell":
        expected = own[0]
    elif kind == "LSTMCell":
        expected = (own[1] * memory + own[0] * own[2]) * own[3]
    else:
        candidate = given[2] + (own[1] * kept[2]) @ recurrent[:, columns[2]]
        expected = own[0] * (before if implementation == 1 else kept[0]) + (1 - own[0]) * candidate
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if count > 1:
        assert len({mask.tobytes() for mask in of_inputs}) > 1


def test_a_cell_keeps_what_it_drops_until_it_is_reset():
    cell = tf.keras.layers.GRUCell(4, dropout=0.5)
    inputs = tf.ones([2, 3])
    first = cell.get_dropout_mask_for_cell(inputs, True)
    assert first.shape == [2, 3] and cell.get_dropout_mask_for_cell(inputs, True) is first
    cell.reset_dropout_mask()
    assert cell.get_dropout_mask_for_cell(inputs, True) is not first
    assert cell.get_recurrent_dropout_mask_for_cell(inputs, True) is None
    with tf.Graph().as_default():  # what was drawn belongs to another graph
        assert cell.get_dropout_mask_for_cell(tf.ones([2, 3]), False).graph is tf.get_default_graph()


def test_weights_of_a_model_with_weights_of_its_own():
    """The layers' come first, in the order of TensorFlow 1.15; those of a layer begin with its own."""

    class Made(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.own = self.add_weight("own", [3])
            self.dense, self.norm = tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()
            self.fixed = self.add_weight("fixed", [1], trainable=False)

        def call(self, inputs):
            return self.norm(self.dense(inputs))

    model = Made()
    model(tf.ones([2, 3]))

    def names(weights):
        return [weight.op.name.rpartition("/")[2] for weight in weights]

    changed, kept = ["kernel", "bias", "gamma", "beta", "own"], ["moving_mean", "moving_variance", "fixed"]
    assert names(model.trainable_weights) == changed and names(model.non_trainable_weights) == kept
    assert names(model.weights) == [*changed[:4], *kept[:2], "own", "fixed"]
    model.trainable = False
    assert names(model.non_trainable_weights) == ["own", *changed[:4], *kept]


def test_states_that_layers_made_are_inputs():
    """Descriptions are those that TensorFlow 1.15 gives, and make equal models."""
    layers = tf.keras.layers
    x, *states = (tf.keras.Input(shape, name=name) for name, shape in {"x": [4, 3], "h": [2], "c": [2]}.items())
    lstm = layers.LSTM(2, return_state=True, name="lstm")
    both = layers.Bidirectional(layers.GRU(2, return_sequences=True), name="both")
    model = tf.keras.Model([x, *states], [*lstm(x, initial_state=states), both([x, *states])])
    assert [tensor.op.name for tensor in lstm.input] == ["x", "h", "c"]
    nodes = {layer["name"]: layer["inbound_nodes"] for layer in model.get_config()["layers"]}
    assert nodes["lstm"] == [[["x", 0, 0, {}], ["h", 0, 0, {}], ["c", 0, 0, {}]]]
    unnamed = {"initial_state": None, "constants": None}
    assert nodes["both"] == [[[name, 0, 0, unnamed] for name in "xhc"]]
    again = tf.keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    values = [np.random.default_rng(4).normal(size=[5, *tensor.shape.as_list()[1:]]) for tensor in [x, *states]]
    for expected, found in zip(model.predict(values), again.predict(values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_states_that_are_no_outputs_of_layers_are_arguments():
    x = tf.keras.Input([4, 3], batch_size=5)
    layer = tf.keras.layers.GRU(2)
    model = tf.keras.Model(x, layer(x, initial_state=tf.ones([5, 2])))
    assert layer.input is x
    value = np.random.default_rng(5).normal(size=[5, 4, 3]).astype(np.float32)
    state = tf.constant(np.ones([5, 2], np.float32))
    for step in range(4):
        _, state = layer.cell(tf.constant(value[:, step]), state)
    np.testing.assert_allclose(model.predict(value), tf.keras.backend.get_value(state), rtol=1e-5)
