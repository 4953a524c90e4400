"""Masks of `tf.keras`: where they come from, how layers hand them on, what recurrent layers and losses make of them."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers
K = keras.backend

RANDOM = np.random.default_rng(7)
SHOWN = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 1]], bool)
X = np.where(SHOWN[..., None], RANDOM.normal(size=(4, 5, 3)), 0).astype(np.float32)
Y = RANDOM.normal(size=(4, 5, 2)).astype(np.float32)
WORDS = np.where(SHOWN, RANDOM.integers(1, 9, size=(4, 5)), 0)


def with_weights(model):
    """The model, with weights that are always the same."""
    random = np.random.default_rng(1)
    model.set_weights([random.normal(scale=0.5, size=value.shape).astype(np.float32) for value in model.get_weights()])
    return model


def mask_after(*stack, source=(5, 3), value=X):
    """The value of the mask that a stack of layers gives to its output for masked inputs; None if it gives none."""
    x = keras.Input(source)
    outputs = layers.Masking()(x)
    for layer in stack:
        outputs = layer(outputs)
    mask = outputs._keras_mask
    return None if mask is None else K.get_session().run(mask, {x: value})


def recurrence(kind, weights, inputs, shown, backwards=False, zeros=False):
    """Outputs of all steps in NumPy: masked steps keep the state, and repeat the output."""
    kernel, recurrent, bias = weights
    units = recurrent.shape[0]
    state, memory, output = (np.zeros((len(inputs), units)) for _ in range(3))
    found = []
    order = range(inputs.shape[1])
    for time in reversed(order) if backwards else order:
        product = inputs[:, time] @ kernel + bias + state @ recurrent
        if kind == "SimpleRNN":
            new, new_memory = np.tanh(product), memory
        else:
            enter, forget, candidate, leave = np.split(product, 4, axis=1)
            enter, forget, leave = (np.clip(0.2 * gate + 0.5, 0, 1) for gate in (enter, forget, leave))
            new_memory = forget * memory + enter * np.tanh(candidate)
            new = leave * np.tanh(new_memory)
        now = shown[:, time, None]
        output = np.where(now, new, 0 if zeros else output)
        state, memory = np.where(now, new, state), np.where(now, new_memory, memory)
        found.append(output)
    return np.stack(found, 1), state, memory


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM"])
@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("settings", [{}, {"go_backwards": True}, {"zero_output_for_mask": True}])
def test_recurrent_layers_leave_masked_steps_out(kind, unroll, settings):
    layer = getattr(layers, kind)(2, return_sequences=True, return_state=True, unroll=unroll, **settings)
    x = keras.Input((5, 3))
    outputs = layer(layers.Masking()(x))
    model = with_weights(keras.Model(x, outputs))
    sequences, *states = model.predict(X)
    zeros = settings.get("zero_output_for_mask", False)
    wanted = recurrence(kind, model.get_weights(), X, SHOWN, settings.get("go_backwards", False), zeros)
    np.testing.assert_allclose(sequences, wanted[0], atol=1e-5)
    for found, expected in zip(states, wanted[1:], strict=False):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert outputs[0]._keras_mask is not None and all(state._keras_mask is None for state in outputs[1:])


def test_the_last_output_is_that_of_the_last_shown_step():
    model = with_weights(keras.Sequential([layers.Masking(input_shape=(5, 3)), layers.GRU(4)]))
    found = model.predict(X)
    for row, length in ((0, 3), (1, 1), (3, 5)):
        alone = with_weights(keras.Sequential([layers.GRU(4, input_shape=(length, 3))]))
        np.testing.assert_allclose(found[row], alone.predict(X[row : row + 1, :length])[0], atol=1e-5)


def masked_mse(predictions, weights=1.0):
    """The loss: masked elements are zeros, and are counted."""
    return (((predictions - Y) ** 2).mean(-1) * SHOWN * weights).mean()


@pytest.mark.parametrize("batch_size", [4, 3])
def test_losses_and_metrics_leave_masked_steps_out(batch_size):
    stack = [layers.Embedding(10, 3, mask_zero=True, input_length=5), layers.LSTM(2, return_sequences=True)]
    model = with_weights(keras.Sequential([*stack, layers.Dense(2), layers.Activation("tanh")]))
    model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mse"])
    predictions = model.predict(WORDS)
    weights = np.array([1.0, 0.0, 2.0, 0.5])
    loss, mae, mse = model.evaluate(WORDS, Y, batch_size=batch_size, verbose=0, sample_weight=weights)
    assert loss == pytest.approx(masked_mse(predictions, weights[:, None]), rel=1e-5)
    assert mae == pytest.approx(np.abs(predictions - Y).mean(-1)[SHOWN].mean(), rel=1e-5)
    counts = SHOWN * weights[:, None]
    assert mse == pytest.approx((((predictions - Y) ** 2).mean(-1) * counts).sum() / counts.sum(), rel=1e-5)


def test_weights_of_steps_multiply_with_the_mask():
    model = with_weights(keras.Sequential([layers.Masking(input_shape=(5, 3)), layers.Dense(2)]))
    model.compile("sgd", "mse", sample_weight_mode="temporal")
    weights = RANDOM.uniform(size=(4, 5))
    loss = model.test_on_batch(X, Y, sample_weight=weights)
    assert loss == pytest.approx(masked_mse(model.predict(X), weights), rel=1e-5)


def test_masked_steps_have_no_gradients():
    model = with_weights(keras.Sequential([layers.Masking(input_shape=(5, 3)), layers.Dense(2, use_bias=False)]))
    model.compile(tf.train.GradientDescentOptimizer(1.0), "mse")
    (before,) = model.get_weights()
    model.train_on_batch(X + 0, Y)
    slope = 2 * ((X @ before - Y) * SHOWN[..., None] / Y.size)
    np.testing.assert_allclose(model.get_weights()[0], before - np.einsum("bti,bto->io", X, slope), atol=1e-5)


PASSED_ON = {
    "Activation": lambda: layers.Activation("relu"),
    "BatchNormalization": lambda: layers.BatchNormalization(),
    "Dense": lambda: layers.Dense(4),
    "Dropout": lambda: layers.Dropout(0.5),
    "ELU": lambda: layers.ELU(),
    "GaussianNoise": lambda: layers.GaussianNoise(0.1),
    "Lambda with a mask": lambda: layers.Lambda(lambda x: 2 * x, mask=lambda x, mask: mask),
    "LSTM with sequences": lambda: layers.LSTM(2, return_sequences=True),
    "LayerNormalization": lambda: layers.LayerNormalization(),
    "PReLU": lambda: layers.PReLU(),
    "Softmax": lambda: layers.Softmax(),
    "SpatialDropout1D": lambda: layers.SpatialDropout1D(0.5),
    "TimeDistributed": lambda: layers.TimeDistributed(layers.Dense(2)),
    "Bidirectional": lambda: layers.Bidirectional(layers.GRU(2, return_sequences=True)),
    "a model": lambda: keras.Sequential([layers.Dense(2, input_shape=(5, 3)), layers.ReLU()]),
}


@pytest.mark.parametrize("name", PASSED_ON)
def test_layers_that_hand_a_mask_on(name):
    np.testing.assert_array_equal(mask_after(PASSED_ON[name]()), SHOWN)


DROPPED = {
    "Conv1D": lambda: layers.Conv1D(2, 2),
    "Flatten": lambda: layers.Flatten(),
    "GlobalAveragePooling1D": lambda: layers.GlobalAveragePooling1D(),
    "Lambda": lambda: layers.Lambda(lambda x: 2 * x),
    "LSTM": lambda: layers.LSTM(2),
    "Permute": lambda: layers.Permute([2, 1]),
    "Reshape": lambda: layers.Reshape((15,)),
    "Bidirectional": lambda: layers.Bidirectional(layers.GRU(2)),
}


@pytest.mark.parametrize("name", DROPPED)
def test_layers_that_drop_a_mask(name):
    assert mask_after(DROPPED[name]()) is None


def test_means_are_of_the_shown_steps():
    model = keras.Sequential([layers.Masking(input_shape=(5, 3)), layers.GlobalAveragePooling1D()])
    np.testing.assert_allclose(model.predict(X), X.sum(1) / SHOWN.sum(1, keepdims=True), rtol=1e-5)


def test_masks_of_several_inputs():
    one, other = keras.Input((5, 3)), keras.Input((5, 3))
    first, second = layers.Masking()(one), layers.Masking(1.0)(other)
    also = np.where(np.arange(5)[None, :, None] == 0, 1.0, X + 3)
    shown = np.broadcast_to(np.arange(5) > 0, (4, 5))
    found = {
        "both": layers.Add()([first, second]),
        "one": layers.Average()([first, other]),
        "joined": layers.Concatenate()([first, second]),
        "one after the other": layers.Concatenate(1)([first, second]),
        "none": layers.Add()([one, other]),
        "products": layers.Dot(2)([first, second]),
    }
    assert found["none"]._keras_mask is None and found["products"]._keras_mask is None
    masks = [found[name]._keras_mask for name in ("both", "one", "joined", "one after the other")]
    both, single, joined, long = K.get_session().run(masks, {one: X, other: also})
    np.testing.assert_array_equal(both, SHOWN & shown)
    np.testing.assert_array_equal(single, SHOWN)
    np.testing.assert_array_equal(joined, SHOWN & shown)
    np.testing.assert_array_equal(long, np.concatenate([SHOWN, shown], 1))


def test_layers_of_programs_take_and_make_masks():
    class Sum(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.supports_masking = True

        def call(self, inputs, mask=None):
            return tf.reduce_sum(inputs * tf.cast(mask, tf.float32)[..., None], 1)

        def compute_mask(self, inputs, mask=None):
            return None

    class First(layers.Layer):
        def call(self, inputs):
            return inputs[:, :2]

        def compute_mask(self, inputs, mask=None):
            return mask[:, :2]

    model = keras.Sequential([layers.Embedding(10, 3, mask_zero=True, input_length=5), Sum()])
    (table,) = with_weights(model).get_weights()
    np.testing.assert_allclose(model.predict(WORDS), (table[WORDS] * SHOWN[..., None]).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(mask_after(First()), SHOWN[:, :2])
    with pytest.raises(TypeError, match="does not support masking"):
        layers.Flatten().compute_mask(X, tf.constant(SHOWN))


def test_a_mask_may_be_given_by_name():
    x, mask = tf.constant(X), tf.constant(SHOWN)
    layer = layers.SimpleRNN(2, return_sequences=True)
    outputs = layer(x, mask=mask)
    layer.set_weights([RANDOM.normal(size=value.shape) for value in layer.get_weights()])
    wanted, *_ = recurrence("SimpleRNN", layer.get_weights(), X, SHOWN)
    np.testing.assert_allclose(K.get_value(outputs), wanted, atol=1e-5)


@pytest.mark.rows(every=2)
@pytest.mark.parametrize("mode", ["concat", "sum", "ave", "mul", None])
@pytest.mark.parametrize("sequences", [False, True])
def test_both_directions(mode, sequences):
    wrapped = layers.Bidirectional(layers.LSTM(2, return_sequences=sequences), merge_mode=mode)
    x = keras.Input((5, 3))
    model = with_weights(keras.Model(x, wrapped(layers.Masking()(x))))
    weights = model.get_weights()
    forward, *_ = recurrence("LSTM", weights[:3], X, SHOWN)
    backward, *_ = recurrence("LSTM", weights[3:], X, SHOWN, backwards=True)
    both = (forward, backward[:, ::-1]) if sequences else (forward[:, -1], backward[:, -1])
    merge = {
        "concat": lambda one, other: np.concatenate([one, other], -1),
        "sum": np.add,
        "ave": lambda one, other: (one + other) / 2,
        "mul": np.multiply,
        None: lambda one, other: [one, other],
    }
    found = model.predict(X)
    for value, wanted in zip([found] if mode else found, [merge[mode](*both)] if mode else both, strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-5)
    assert wrapped.output_mask is None if mode and not sequences else True
    again = keras.Model.from_config(model.get_config())
    again.set_weights(weights)
    np.testing.assert_allclose(np.array(again.predict(X)), np.array(found), atol=1e-6)


def test_a_layer_for_each_step():
    masked = layers.TimeDistributed(layers.Embedding(10, 3, mask_zero=True))
    words = keras.Input((2, 5), dtype="int64")
    outputs = masked(words)
    value = np.stack([WORDS, WORDS[::-1]], 1)
    found, mask = K.get_session().run([outputs, outputs._keras_mask], {words: value})
    (table,) = masked.get_weights()
    np.testing.assert_allclose(found, table[value])
    np.testing.assert_array_equal(mask, value != 0)
    assert masked.compute_output_shape((None, 2, 5)).as_list() == [None, 2, 5, 3]
    with pytest.raises(ValueError, match="at least 3 dimensions"):
        layers.TimeDistributed(layers.Dense(2))(tf.ones([2, 3]))
    with pytest.raises(ValueError, match="Invalid merge mode"):
        layers.Bidirectional(layers.LSTM(2), merge_mode="max")


def test_states_stay_until_they_are_reset():
    layer = layers.LSTM(2, stateful=True)
    model = with_weights(keras.Sequential([layers.Masking(batch_input_shape=(4, 5, 3)), layer]))
    twice = np.concatenate([X, X], 1), np.concatenate([SHOWN, SHOWN], 1)
    wanted, *_ = recurrence("LSTM", model.get_weights(), *twice)
    for step in (4, 9):
        np.testing.assert_allclose(model.predict(X, batch_size=4), wanted[:, step], atol=1e-5)
    model.reset_states()
    np.testing.assert_allclose(model.predict(X, batch_size=4), wanted[:, 4], atol=1e-5)
    layer.reset_states([np.ones((4, 2)), np.zeros((4, 2))])
    assert K.get_value(layer.states[0]).tolist() == np.ones((4, 2)).tolist()
    with pytest.raises(ValueError, match="expects states of shapes"):
        layer.reset_states([np.ones((3, 2)), np.zeros((4, 2))])
    with pytest.raises(AttributeError, match="must be stateful"):
        layers.LSTM(2).reset_states()
    with pytest.raises(ValueError, match="needs to know its batch size"):
        layers.LSTM(2, stateful=True)(keras.Input((5, 3)))


def test_the_estimator_of_a_model_leaves_masked_steps_out(tmp_path):
    model = with_weights(keras.Sequential([layers.Masking(input_shape=(5, 3)), layers.Dense(2)]))
    model.compile("sgd", "mse", metrics=["mae"])
    predictions = model.predict(X)
    estimator = keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    name = model.input_names[0] if hasattr(model, "input_names") else model.inputs[0].op.name
    inputs = tf.estimator.inputs.numpy_input_fn({name: X}, Y, batch_size=4, shuffle=False)
    found = estimator.evaluate(inputs, steps=1)
    assert found["loss"] == pytest.approx(masked_mse(predictions), rel=1e-5)
    assert found["mean_absolute_error"] == pytest.approx(np.abs(predictions - Y).mean(-1)[SHOWN].mean(), rel=1e-5)


def test_a_function_of_one_step_over_sequences():
    def step(inputs, states):
        return inputs + states[0], [inputs + states[0] * states[1]]

    last, outputs, (state,) = K.rnn(
        step, tf.constant(X), [tf.zeros([4, 3])], mask=tf.constant(SHOWN), constants=[tf.constant(2.0)]
    )
    kept, shown, wanted = np.zeros((4, 3)), np.zeros((4, 3)), []
    for time in range(5):
        now = SHOWN[:, time, None]
        shown = np.where(now, X[:, time] + kept, shown)
        kept = np.where(now, X[:, time] + 2 * kept, kept)
        wanted.append(shown)
    found = K.get_session().run([last, outputs, state])
    for value, expected in zip(found, [wanted[-1], np.stack(wanted, 1), kept], strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-5)
    with pytest.raises(ValueError, match="fixed number of timesteps"):
        K.rnn(step, tf.placeholder(tf.float32, [None, None, 3]), [tf.zeros([4, 3])], unroll=True)
