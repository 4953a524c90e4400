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
    assert K.batch_get_value([count]) == [7] and K.batch_get_value([]) == []
    assert K.count_params(K.zeros((2, 5))) == 10 and K.ndim(x) == 2 and K.dtype(x) == "float32"


def test_a_function_takes_what_a_step_takes():
    count, last, x, y = K.variable(1.0), K.variable(0.0), K.placeholder(shape=()), K.placeholder(shape=())
    feeds, seen, metadata = {y: 3.0}, [], tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    call = K.function(
        [x],
        [count, count * x],
        updates=[(count, count + 1.0)],
        fetches=[K.update(last, y)],
        feed_dict=feeds,
        options=options,
        run_metadata=metadata,
    )
    assert call([2.0]) == [1, 2] and K.batch_get_value([count, last]) == [2, 3] and metadata.step_stats.dev_stats
    feeds[y], more = 7.0, x * 10.0
    call.fetches.append(more)
    call.fetch_callbacks[more] = seen.append
    assert call([tf.constant(4.0)]) == [2, 8] and K.batch_get_value([count, last]) == [3, 7] and seen == [40]
    with pytest.raises(ValueError, match='Invalid argument "other" passed to K'):
        K.function([x], [y], other=1)
    with pytest.raises(TypeError, match="`updates` in a Keras backend function should be a list or tuple"):
        K.function([x], [y], updates=call.updates_op)


def test_a_variational_autoencoder_as_programs_write_it():
    """Custom layers, a loss of their own, and numbers that are drawn in each step."""
    np.random.seed(0)
    tf.set_random_seed(0)  # six starts in 400 end with a code that tells nothing
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
    data = (np.random.default_rng(0).random((64, 1)) < 0.5).astype(np.float32) * np.ones((1, 8), np.float32)
    history = model.fit(data, data, batch_size=16, epochs=30, verbose=0)
    assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]
    (gradient,) = K.gradients(K.sum(output), [x])
    assert gradient.shape.as_list() == [None, 8] and K.is_keras_tensor(output) and not K.is_keras_tensor(gradient)


# -- images, volumes and batches -------------------------------------------------------------------------

IMAGES = RANDOM.normal(size=(2, 4, 5, 3)).astype(np.float32)
FIRST = IMAGES.transpose(0, 3, 1, 2)
KERNEL = RANDOM.normal(size=(2, 3, 3, 2)).astype(np.float32)
CUT = np.lib.stride_tricks.sliding_window_view(IMAGES, (2, 3), axis=(1, 2))
CONVOLVED = np.einsum("brcihw,hwif->brcf", CUT, KERNEL)
VOLUMES = RANDOM.normal(size=(1, 2, 2, 2, 2)).astype(np.float32)
MEAN, VARIANCE = IMAGES.mean((0, 1, 2)), IMAGES.var((0, 1, 2))
NORMAL = (IMAGES - MEAN) / np.sqrt(VARIANCE + 1e-3)
IMAGE_CASES = {
    "conv2d": (lambda: K.conv2d(IMAGES, tf.constant(KERNEL)), CONVOLVED),
    "conv2d, channels first": (
        lambda: K.conv2d(FIRST, tf.constant(KERNEL), data_format="channels_first"),
        CONVOLVED.transpose(0, 3, 1, 2),
    ),
    "conv1d": (
        lambda: K.conv1d(IMAGES[:, 0], tf.constant(KERNEL[0]), strides=2),
        np.einsum("bciw,wif->bcf", CUT[:, 0, :, :, 0], KERNEL[0])[:, ::2],
    ),
    "conv1d, causal": (
        lambda: K.conv1d(IMAGES[:, 0], tf.constant(KERNEL[0]), padding="causal")[:, 2:],
        np.einsum("bciw,wif->bcf", CUT[:, 0, :, :, 0], KERNEL[0]),
    ),
    "conv2d_transpose": (
        lambda: K.conv2d_transpose(CONVOLVED, tf.constant(KERNEL), (None, 4, 5, 3))[:, :1, :1],
        np.einsum("brcf,if->brci", CONVOLVED[:, :1, :1], KERNEL[0, 0]),
    ),
    "conv3d": (lambda: K.conv3d(VOLUMES, tf.ones([2, 2, 2, 2, 1])), VOLUMES.sum().reshape(1, 1, 1, 1, 1)),
    "depthwise_conv2d": (
        lambda: K.depthwise_conv2d(IMAGES, tf.constant(KERNEL)),
        np.einsum("brcihw,hwif->brcif", CUT, KERNEL).reshape(2, 3, 3, 6),
    ),
    "separable_conv2d": (
        lambda: K.separable_conv2d(IMAGES, tf.constant(KERNEL), tf.ones([1, 1, 6, 1])),
        np.einsum("brcihw,hwif->brc", CUT, KERNEL)[..., None],
    ),
    "separable_conv1d": (
        lambda: K.separable_conv1d(IMAGES[:, 0], tf.constant(KERNEL[0]), tf.ones([1, 6, 1])),
        np.einsum("bciw,wif->bc", CUT[:, 0, :, :, 0], KERNEL[0])[..., None],
    ),
    "pool2d": (lambda: K.pool2d(IMAGES, (2, 3)), CUT.max((4, 5))),
    "pool2d of means": (lambda: K.pool2d(IMAGES, (2, 3), pool_mode="avg"), CUT.mean((4, 5))),
    "pool3d": (lambda: K.pool3d(VOLUMES, (2, 2, 2)), VOLUMES.max((1, 2, 3), keepdims=True)),
    "resize_images": (lambda: K.resize_images(IMAGES, 2, 3, "channels_last"), IMAGES.repeat(2, 1).repeat(3, 2)),
    "resize_images, channels first": (
        lambda: K.resize_images(FIRST, 2, 1, "channels_first"),
        FIRST.repeat(2, 2),
    ),
    "resize_volumes": (
        lambda: K.resize_volumes(VOLUMES, 1, 2, 3, "channels_last"),
        VOLUMES.repeat(2, 2).repeat(3, 3),
    ),
    "spatial_2d_padding": (
        lambda: K.spatial_2d_padding(FIRST, ((1, 0), (0, 2)), "channels_first"),
        np.pad(FIRST, [(0, 0), (0, 0), (1, 0), (0, 2)]),
    ),
    "spatial_3d_padding": (
        lambda: K.spatial_3d_padding(VOLUMES),
        np.pad(VOLUMES, [(0, 0), (1, 1), (1, 1), (1, 1), (0, 0)]),
    ),
    "bias_add of places": (lambda: K.bias_add(IMAGES, tf.constant(IMAGES[0])), IMAGES + IMAGES[0]),
    "bias_add, channels first": (
        lambda: K.bias_add(FIRST, tf.constant(IMAGES[0]), "channels_first"),
        FIRST + FIRST[0],
    ),
    "batch_normalization": (lambda: K.batch_normalization(IMAGES, MEAN, VARIANCE, MEAN, MEAN), NORMAL * MEAN + MEAN),
    "normalize_batch_in_training": (
        lambda: K.normalize_batch_in_training(tf.constant(IMAGES), MEAN, MEAN, [0, 1, 2])[0],
        NORMAL * MEAN + MEAN,
    ),
    "normalize_batch_in_training, variance": (
        lambda: K.normalize_batch_in_training(tf.constant(IMAGES), MEAN, None, [0, 1, 2])[2],
        IMAGES.reshape(-1, IMAGES.shape[-1]).var(0, ddof=1),
    ),
    "all of numbers": (lambda: K.all(tf.constant([[1.0, 0.0], [2.0, 3.0]]), axis=1), [False, True]),
    "any of numbers": (lambda: K.any(tf.constant([[0, 0], [2, 0]]), axis=1), [False, True]),
    "elu": (lambda: K.elu(M, 0.5), np.where(M > 0, M, 0.5 * np.expm1(M))),
    "to_dense": (lambda: K.to_dense(tf.SparseTensor([[1, 0]], [3.0], [2, 2])), [[0, 0], [3, 0]]),
    "a normal variable": (lambda: K.random_normal_variable([2, 3], 5.0, 0.0), np.full([2, 3], 5)),
    "random_binomial": (lambda: K.random_binomial([3], 1.0), np.ones(3)),
}


@pytest.mark.parametrize("name", IMAGE_CASES)
def test_functions_of_images_and_batches(name):
    build, expected = IMAGE_CASES[name]
    np.testing.assert_allclose(K.get_value(build()), expected, rtol=1e-4, atol=1e-4)


def test_settings_hold_until_they_are_changed():
    try:
        K.set_floatx("float64")
        K.set_epsilon(0.5)
        K.set_image_data_format("channels_first")
        assert (K.floatx(), K.epsilon(), K.image_data_format()) == ("float64", 0.5, "channels_first")
        assert K.dtype(K.variable([1.0])) == K.dtype(tf.keras.Input([2])) == "float64"
        model = tf.keras.Sequential([tf.keras.layers.Conv2D(2, 1, input_shape=(3, 4, 5)), tf.keras.layers.Flatten()])
        assert model.get_weights()[0].shape == (1, 1, 3, 2)
        assert model.predict(np.ones([1, 3, 4, 5])).dtype == np.float64
    finally:
        K.set_floatx("float32")
        K.set_epsilon(1e-7)
        K.set_image_data_format("channels_last")
    for setting in (K.set_floatx, K.set_image_data_format):
        with pytest.raises(ValueError, match="Unknown"):
            setting("other")


def test_the_learning_phase_is_fixed_within_a_scope():
    before = K.learning_phase()
    with K.learning_phase_scope(1):
        assert K.learning_phase() is True
    assert K.learning_phase() is before
    for value in (2, "train"):
        with pytest.raises(ValueError, match="Expected learning phase to be 0 or 1"):
            K.set_learning_phase(value)


def test_printed_and_averaged(capfd):
    x = K.variable([1.0, 2.0])
    K.get_value(K.print_tensor(x, "x is"))
    assert capfd.readouterr().out == "x is [1 2]\n"
    assert K.backend() == "tensorflow"
    assert not K.is_sparse(x)
    average = K.zeros([2])
    update = K.moving_average_update(average, x, 0.9)
    K.get_value(update)
    np.testing.assert_allclose(K.get_value(average), [1.0, 2.0], rtol=1e-5)
    with K.name_scope("within"):
        assert K.identity(x).op.name == "within/Identity"


def test_functions_give_values_in_the_structure_of_their_outputs():
    """As TensorFlow 1.15 does: one tensor gives one array."""
    x, v = K.placeholder((2,)), K.variable([1.0, 2.0])
    total, wanted = x + v, [2.0, 3.0]
    assert K.function([x], total)([[1.0, 1.0]]).tolist() == wanted
    (alone,) = K.function([x], (total,))([np.ones(2)])
    assert alone.tolist() == wanted
    named = K.function({"x": x}, {"a": total, "b": [v]})({"x": np.ones(2)})
    assert named["a"].tolist() == wanted and named["b"][0].tolist() == [1.0, 2.0]
