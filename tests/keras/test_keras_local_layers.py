"""Layers of `tf.keras` with a kernel for each place, attention, and recurrent layers over images, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers

RANDOM = np.random.default_rng(7)
IMAGES = RANDOM.normal(size=(2, 6, 5, 3)).astype(np.float32)
SEQUENCES = RANDOM.normal(size=(2, 7, 3)).astype(np.float32)


def of_model(layer, *values, masks=None):
    """What a layer makes of arrays, with weights drawn at random, and these weights."""
    inputs = [keras.Input(value.shape[1:]) for value in values]
    if masks is not None:
        inputs_of_masks = [keras.Input(mask.shape[1:], dtype="bool") for mask in masks]
        outputs = layer(inputs, mask=inputs_of_masks)
        model = keras.Model([*inputs, *inputs_of_masks], outputs)
        return model.predict([*values, *masks]), model.get_weights()
    model = keras.Model(inputs, layer(inputs[0] if len(inputs) == 1 else inputs))
    model.set_weights([RANDOM.normal(size=weights.shape) for weights in model.get_weights()])
    made = model.predict(list(values))
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone.predict(list(values)), made, rtol=1e-5)
    return made, model.get_weights()


# -- a kernel for each place -----------------------------------------------------------------------------


def windows(images, size, strides, padding):
    """The windows of images, ``[batch, rows, columns, height, width, size]``."""
    sizes, same = images.shape[1:3], padding == "same"
    counts = [-(-(n - (0 if same else k - 1)) // s) for n, k, s in zip(sizes, size, strides, strict=True)]
    pads = []
    for n, k, s, count in zip(sizes, size, strides, counts, strict=True):
        missing = max((count - 1) * s + k - n, 0) if same else 0
        pads.append((missing // 2, missing - missing // 2))
    padded = np.pad(images, [(0, 0), *pads, (0, 0)])
    found = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
    return found[:, :: strides[0], :: strides[1]][:, : counts[0], : counts[1]]


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize(("size", "strides"), [((2, 3), (1, 1)), ((3, 2), (2, 1))])
def test_images_with_a_kernel_for_each_place(size, strides, data_format):
    given = IMAGES if data_format == "channels_last" else IMAGES.transpose(0, 3, 1, 2)
    layer = layers.LocallyConnected2D(4, size, strides, data_format=data_format, bias_initializer="ones")
    made, (kernel, bias) = of_model(layer, given)
    cut = windows(IMAGES, size, strides, "valid")
    order = (0, 1, 2, 3, 4, 5) if data_format == "channels_last" else (0, 1, 2, 5, 3, 4)
    cut = cut.transpose(order).reshape(2, *cut.shape[1:3], -1)
    expected = np.einsum("brcl,rclf->brcf", cut, kernel.reshape(*cut.shape[1:], 4)) + bias
    made = made if data_format == "channels_last" else made.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)
    assert layer.kernel.shape.as_list() == [int(np.prod(cut.shape[1:3])), cut.shape[-1], 4]


@pytest.mark.parametrize("strides", [1, 2])
def test_sequences_with_a_kernel_for_each_place(strides):
    made, (kernel, bias) = of_model(layers.LocallyConnected1D(4, 3, strides, activation="tanh"), SEQUENCES)
    cut = windows(SEQUENCES[:, None], (1, 3), (1, strides), "valid")[:, 0].reshape(2, -1, 9)
    np.testing.assert_allclose(made, np.tanh(np.einsum("bpl,plf->bpf", cut, kernel) + bias), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_other_forms_of_kernels_give_the_same(padding, data_format):
    arguments = {"padding": padding, "data_format": data_format, "use_bias": False}
    whole = layers.LocallyConnected2D(2, (3, 2), (2, 1), implementation=2, **arguments)
    parts = layers.LocallyConnected2D(2, (3, 2), (2, 1), implementation=3, **arguments)
    given = IMAGES if data_format == "channels_last" else IMAGES.transpose(0, 3, 1, 2)
    x = keras.Input(given.shape[1:])
    model = keras.Model(x, [whole(x), parts(x)])
    kernel = RANDOM.normal(size=whole.kernel.shape.as_list()).astype(np.float32)
    met = whole._met
    model.set_weights([kernel, kernel.reshape(met.shape).T[met.T]])
    first, second = model.predict(given)
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)
    ones = np.ones_like(kernel)
    model.set_weights([ones, np.ones(int(met.sum()))])
    cut = windows(IMAGES, (3, 2), (2, 1), padding)
    sums = model.predict(given)[0]
    sums = sums[..., 0] if data_format == "channels_last" else sums[:, 0]
    np.testing.assert_allclose(sums, cut.sum((3, 4, 5)), rtol=1e-4, atol=1e-5)


def test_depthwise_convolution():
    made, (kernel, bias) = of_model(layers.DepthwiseConv2D((2, 3), depth_multiplier=2, strides=(1, 1)), IMAGES)
    cut = windows(IMAGES, (2, 3), (1, 1), "valid")
    expected = np.einsum("brchwi,hwim->brcim", cut, kernel).reshape(*cut.shape[:3], 6) + bias
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: layers.LocallyConnected1D(2, 3, padding="same"), 'only "valid" is supported'),
        (lambda: layers.LocallyConnected1D(2, 3, implementation=4), "Unrecognized implementation mode: 4"),
        (lambda: layers.LocallyConnected2D(2, 3)(keras.Input([None, 5, 3])), "should be fully-defined"),
        (lambda: layers.DepthwiseConv2D(3)(keras.Input([4, 4, None])), "should be fully-defined"),
        (lambda: layers.Attention()(keras.Input([4, 4])), "must be called on a list of inputs"),
        (lambda: layers.Attention()([keras.Input([4, 4])] * 4), "list of length 2 or 3"),
    ],
)
def test_what_these_layers_refuse(build, words):
    with pytest.raises(ValueError, match=words):
        build()


# -- attention -------------------------------------------------------------------------------------------


def softmax(scores):
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


QUERY, VALUE, KEY = (RANDOM.normal(size=(2, n, 3)).astype(np.float32) for n in (4, 5, 5))
SHOWN = np.array([[True, True, False, True, False], [True] * 5])


@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize("additive", [False, True])
def test_attention(additive, has_key):
    values = [QUERY, VALUE, KEY] if has_key else [QUERY, VALUE]
    kind = layers.AdditiveAttention if additive else layers.Attention
    made, (scale,) = of_model(kind(use_scale=True), *values)
    key = values[-1]
    if additive:
        scores = (scale * np.tanh(QUERY[:, :, None] + key[:, None])).sum(-1)
    else:
        scores = scale * (QUERY @ key.transpose(0, 2, 1))
    np.testing.assert_allclose(made, softmax(scores) @ VALUE, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_sees_what_the_masks_show(causal):
    asked = np.array([[True, True, False, True], [True, False, True, True]])
    made, _ = of_model(layers.Attention(causal=causal), QUERY, VALUE, masks=[asked, SHOWN])
    shown = np.broadcast_to(SHOWN[:, None], (2, 4, 5))
    shown = shown & np.tri(4, 5, dtype=bool) if causal else shown
    expected = softmax(np.where(shown, QUERY @ VALUE.transpose(0, 2, 1), -1e9)) @ VALUE * asked[..., None]
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


# -- recurrent layers ------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def hard_sigmoid(x):
    return np.clip(0.2 * x + 0.5, 0, 1)


def convolved(images, kernel, padding):
    return np.einsum("brchwi,hwif->brcf", windows(images, kernel.shape[:2], (1, 1), padding), kernel)


@pytest.mark.parametrize("sequences", [False, True])
def test_a_convolutional_lstm(sequences):
    films = RANDOM.normal(size=(2, 3, 5, 4, 2)).astype(np.float32)
    layer = layers.ConvLSTM2D(2, (3, 2), return_sequences=sequences)
    made, (kernel, recurrent, bias) = of_model(layer, films)
    output = memory = np.zeros((2, 3, 3, 2))
    expected = []
    for step in range(3):
        gates = convolved(films[:, step], kernel, "valid") + bias + convolved(output, recurrent, "same")
        enter, forget, new, leave = np.split(gates, 4, -1)
        memory = hard_sigmoid(forget) * memory + hard_sigmoid(enter) * np.tanh(new)
        output = hard_sigmoid(leave) * np.tanh(memory)
        expected.append(output)
    np.testing.assert_allclose(made, np.stack(expected, 1) if sequences else output, rtol=1e-3, atol=1e-4)
    assert tuple(layer.compute_output_shape((None, 3, 5, 4, 2)).as_list())[-3:] == (3, 3, 2)


def test_a_convolutional_lstm_trains_with_states_that_stay():
    films = RANDOM.normal(size=(2, 3, 4, 4, 1)).astype(np.float32)
    model = keras.Sequential(
        [
            layers.ConvLSTM2D(
                2, 2, padding="same", stateful=True, dropout=0.2, recurrent_dropout=0.2, batch_input_shape=films.shape
            ),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    model.train_on_batch(films, np.ones([2, 1]))
    first, second = model.predict(films, batch_size=2), model.predict(films, batch_size=2)
    assert np.abs(first - second).max() > 1e-6
    model.reset_states()
    assert len(model.get_weights()) == 5


def test_layers_with_the_weights_of_cudnn():
    made, (kernel, recurrent, bias) = of_model(layers.CuDNNLSTM(4, return_sequences=True), SEQUENCES)
    output = memory = np.zeros((2, 4))
    for step in range(7):
        gates = SEQUENCES[:, step] @ kernel + output @ recurrent + bias[:16] + bias[16:]
        enter, forget, new, leave = np.split(gates, 4, -1)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(new)
        output = sigmoid(leave) * np.tanh(memory)
        np.testing.assert_allclose(made[:, step], output, rtol=1e-3, atol=1e-5)
    made, (kernel, recurrent, bias) = of_model(layers.CuDNNGRU(4), SEQUENCES)
    state = np.zeros((2, 4))
    for step in range(7):
        own, other = SEQUENCES[:, step] @ kernel + bias[:12], state @ recurrent + bias[12:]
        update, reset = sigmoid(own[:, :4] + other[:, :4]), sigmoid(own[:, 4:8] + other[:, 4:8])
        state = update * state + (1 - update) * np.tanh(own[:, 8:] + reset * other[:, 8:])
    np.testing.assert_allclose(made, state, rtol=1e-3, atol=1e-5)
    fresh = layers.CuDNNLSTM(2)
    fresh(keras.Input([4, 3]))
    assert fresh.get_weights()[2].tolist() == [0.0] * 10 + [1.0] * 2 + [0.0] * 4


def test_a_cell_with_peepholes():
    made, (kernel, recurrent, bias, enter_w, forget_w, leave_w) = of_model(
        layers.RNN(keras.experimental.PeepholeLSTMCell(4), return_sequences=True), SEQUENCES
    )
    output = memory = np.zeros((2, 4))
    for step in range(7):
        enter, forget, new, leave = np.split(SEQUENCES[:, step] @ kernel + output @ recurrent + bias, 4, -1)
        after = hard_sigmoid(forget + memory * forget_w) * memory
        memory = after + hard_sigmoid(enter + memory * enter_w) * np.tanh(new)
        output = hard_sigmoid(leave + memory * leave_w) * np.tanh(memory)
        np.testing.assert_allclose(made[:, step], output, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("settings", [{}, {"dilation_rate": 2}, {"strides": 2}])
def test_causal_convolutions(settings, data_format):
    layer = layers.Conv1D(4, 3, padding="causal", data_format=data_format, **settings)
    made, (kernel, bias) = of_model(
        layer, SEQUENCES if data_format == "channels_last" else SEQUENCES.transpose(0, 2, 1)
    )
    distance = settings.get("dilation_rate", 1)
    padded = np.pad(SEQUENCES, [(0, 0), (2 * distance, 0), (0, 0)])
    expected = bias + sum(padded[:, k * distance : k * distance + 7] @ kernel[k] for k in range(3))
    expected = expected[:, :: settings.get("strides", 1)]
    found = made if data_format == "channels_last" else made.transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    shape = (None, 7, 3) if data_format == "channels_last" else (None, 3, 7)
    assert layer.compute_output_shape(shape).as_list() == [None, *made.shape[1:]]


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda: layers.LayerNormalization(axis="x"), TypeError, "Expected an int or a list"),
        (lambda: layers.LayerNormalization(axis=3)(keras.Input([2, 2])), ValueError, "Invalid axis: 3"),
        (lambda: layers.Dot(axes="x"), TypeError, "should be a list or an int"),
        (lambda: layers.Dot(axes=(1, 2, 3)), ValueError, "should be two integers"),
    ],
)
def test_axes_that_are_none(build, kind, words):
    with pytest.raises(kind, match=words):
        build()
