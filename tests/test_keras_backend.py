"""`tf.keras.backend`'s functions of tensors, against NumPy written plainly."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

K = tf.keras.backend
RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0.1, 1, (2, 3, 4)).astype(np.float32)
Y = RANDOM.uniform(0.1, 1, (2, 4, 5)).astype(np.float32)
M = RANDOM.uniform(-1, 1, (3, 4)).astype(np.float32)
SHARES = X / X.sum(-1, keepdims=True)
CLASSES = RANDOM.integers(4, size=(2, 3))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


CASES = {
    "sum": (lambda: K.sum(X, axis=[0, 2]), X.sum((0, 2))),
    "mean of booleans": (lambda: K.mean(tf.constant(X > 0.5), axis=1, keepdims=True), (X > 0.5).mean(1, keepdims=True)),
    "std": (lambda: K.std(X, axis=-1), X.std(-1)),
    "logsumexp": (lambda: K.logsumexp(X, 1), np.log(np.exp(X).sum(1))),
    "argmax": (lambda: K.argmax(X), X.argmax(-1)),
    "sqrt": (lambda: K.sqrt(M), np.sqrt(np.maximum(M, 0))),
    "clip": (lambda: K.clip(M, -0.5, None), np.maximum(M, -0.5)),
    "relu": (lambda: K.relu(M, 0.1, 0.5, 0.2), np.where(M >= 0.2, np.minimum(M, 0.5), 0.1 * (M - 0.2))),
    "hard_sigmoid": (lambda: K.hard_sigmoid(4 * M), np.clip(0.8 * M + 0.5, 0, 1)),
    "l2_normalize": (lambda: K.l2_normalize(M, 1), M / np.linalg.norm(M, axis=1, keepdims=True)),
    "dot of matrices": (lambda: K.dot(M, M.T), M @ M.T),
    "dot of more axes": (lambda: K.dot(X, Y), np.tensordot(X, Y, [[2], [1]])),
    "batch_dot": (lambda: K.batch_dot(X, Y), X @ Y),
    "batch_dot over axes": (lambda: K.batch_dot(X, X, axes=[1, 1]), np.einsum("bzi,bzj->bij", X, X)),
    "batch_dot of vectors": (lambda: K.batch_dot(M, M, axes=1), (M * M).sum(1, keepdims=True)),
    "batch_flatten": (lambda: K.batch_flatten(X), X.reshape(2, 12)),
    "concatenate": (lambda: K.concatenate([X, X]), np.concatenate([X, X], -1)),
    "expand_dims": (lambda: K.expand_dims(M), M[..., None]),
    "permute_dimensions": (lambda: K.permute_dimensions(X, (2, 0, 1)), X.transpose(2, 0, 1)),
    "repeat": (lambda: K.repeat(M, 2), np.stack([M, M], 1)),
    "repeat_elements": (lambda: K.repeat_elements(X, 3, 1), X.repeat(3, 1)),
    "reverse": (lambda: K.reverse(X, 1), X[:, ::-1]),
    "temporal_padding": (lambda: K.temporal_padding(X, (2, 1)), np.pad(X, [(0, 0), (2, 1), (0, 0)])),
    "arange": (lambda: K.arange(1, 7, 2), np.arange(1, 7, 2)),
    "one_hot": (lambda: K.one_hot(CLASSES, 4), np.eye(4)[CLASSES]),
    "categorical_crossentropy": (lambda: K.categorical_crossentropy(SHARES, 2 * X), -(SHARES * np.log(SHARES)).sum(-1)),
    "of logits": (lambda: K.categorical_crossentropy(SHARES, X, True), -(SHARES * log_softmax(X)).sum(-1)),
    "sparse": (
        lambda: K.sparse_categorical_crossentropy(CLASSES, SHARES),
        -np.log(np.take_along_axis(SHARES, CLASSES[..., None], -1)[..., 0]),
    ),
    "binary": (
        lambda: K.binary_crossentropy(tf.constant(SHARES), tf.constant(X)),
        -(SHARES * np.log(X) + (1 - SHARES) * np.log(np.maximum(1 - X, 1e-7))),
    ),
    "switch by a scalar": (lambda: K.switch(tf.constant(True), lambda: tf.constant(M), lambda: tf.constant(-M)), M),
    "switch by rows": (lambda: K.switch(tf.constant([True, False, True]), M, -M), M * np.array([[1], [-1], [1]])),
    "in_train_phase": (lambda: K.in_train_phase(tf.constant(M), tf.constant(-M), training=False), -M),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_tensors(name):
    build, expected = CASES[name]
    found = K.eval(build())
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def test_numbers_of_names():
    assert [K.get_uid("a"), K.get_uid("a"), K.get_uid("b")] == [1, 2, 1]
    assert tf.keras.Input([1]).name == "input_1:0"
    assert tf.keras.Input([1]).name == "input_2:0"
    with tf.Graph().as_default():
        assert K.get_uid("a") == 1


def test_a_function_updates_variables():
    count, x = K.variable(1.0), K.placeholder((None, 2))
    call = K.function([x], [K.sum(x), count * 2.0], updates=[(count, count + 1.0)])
    values = [call([np.ones((3, 2), np.float32)]) for _ in range(2)]
    assert [each[0] for each in values] == [6, 6] and K.get_value(count) == 3
    K.batch_set_value([(count, 7.0)])
    assert K.batch_get_value([count]) == [7]
    assert K.count_params(K.zeros((2, 5))) == 10 and K.ndim(x) == 2 and K.dtype(x) == "float32"


def test_a_variational_autoencoder_as_programs_write_it():
    """Custom layers, a loss of their own, and numbers that are drawn in each step."""
    x = tf.keras.Input((8,))
    hidden = tf.keras.layers.Dense(16, activation="relu")(x)
    mean, log_variance = tf.keras.layers.Dense(2)(hidden), tf.keras.layers.Dense(2)(hidden)

    def drawn(parts):
        return parts[0] + K.exp(0.5 * parts[1]) * K.random_normal(K.shape(parts[0]))

    code = tf.keras.layers.Lambda(drawn)([mean, log_variance])
    output = tf.keras.layers.Dense(8, activation="sigmoid")(code)
    model = tf.keras.Model(x, output)

    def loss(target, given):
        apart = K.sum(1 + log_variance - K.square(mean) - K.exp(log_variance), axis=-1)
        return K.sum(K.binary_crossentropy(target, given), axis=-1) - 0.5 * apart

    model.compile(tf.keras.optimizers.Adam(0.02), loss)
    data = (RANDOM.random((64, 1)) < 0.5).astype(np.float32) * np.ones((1, 8), np.float32)
    history = model.fit(data, data, batch_size=16, epochs=30, verbose=0)
    assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]
    (gradient,) = K.gradients(K.sum(output), [x])
    assert gradient.shape.as_list() == [None, 8] and K.is_keras_tensor(output) and not K.is_keras_tensor(gradient)
