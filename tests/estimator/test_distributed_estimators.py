"""Estimators and Keras models under strategies of two replicas. Values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

CPUS = tf.ConfigProto(device_count={"CPU": 2})


def mirrored():
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


def numbers(rows):
    x = np.random.RandomState(0).rand(rows, 3).astype(np.float32)
    return x, x @ np.float32([[1], [2], [3]])


def input_fn(input_context=None):
    x, y = numbers(96)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(8)


def model_fn(features, labels, mode, params):
    rows = tf.constant_initializer([[0.1, 0.2, 0.3, 0.4]] * 3)
    hidden = tf.layers.dense(features["x"], 4, kernel_initializer=rows)
    hidden = tf.layers.batch_normalization(hidden, training=mode == tf.estimator.ModeKeys.TRAIN)
    column = tf.constant_initializer([[0.5], [0.4], [0.3], [0.2]])
    predictions = tf.layers.dense(hidden, 1, kernel_initializer=column)
    loss = tf.losses.mean_squared_error(labels, predictions, reduction=params["reduction"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, predictions)}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)


@pytest.mark.parametrize(
    ("strategy", "reduction", "steps", "bias", "moved", "loss", "error"),
    [
        (mirrored, tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS, 6, 0.98165, 0.94158, 2.47056, 1.32204),
        (mirrored, tf.losses.Reduction.SUM, 6, 5.07848, 0.94259, 40.41857, 2.05801),
        (
            lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
            tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
            *(12, 2.26338, 0.88672, 2.21933, 1.28808),
        ),
        (lambda: None, tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS, 12, 2.26338, 0.88672, 2.21933, 1.28808),
    ],
    ids=["two replicas", "two replicas, a sum", "one replica", "no strategy"],
)
def test_an_estimator_trains_and_evaluates_replicas(tmp_path, strategy, reduction, steps, bias, moved, loss, error):
    """A mean is averaged over the replicas, a sum is not; moving averages are shared."""
    chosen = strategy()
    config = tf.estimator.RunConfig(
        train_distribute=chosen, eval_distribute=chosen, tf_random_seed=1, session_config=CPUS
    )
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config, {"reduction": reduction})
    estimator.train(input_fn)
    assert estimator.get_variable_value("global_step") == steps
    np.testing.assert_allclose(estimator.get_variable_value("dense_1/bias"), [bias], rtol=1e-4)
    moving = estimator.get_variable_value("batch_normalization/moving_variance")
    np.testing.assert_allclose(moving[0], moved, rtol=1e-4)
    found = estimator.evaluate(input_fn)
    np.testing.assert_allclose([found["loss"], found["mae"]], [loss, error], rtol=1e-4)


def test_an_input_function_is_told_of_the_replicas(tmp_path):
    seen = []

    def told(input_context):
        seen.append(input_context.num_replicas_in_sync)
        return input_fn()

    config = tf.estimator.RunConfig(
        experimental_distribute=tf.contrib.distribute.DistributeConfig(train_distribute=mirrored()),
        session_config=CPUS,
    )
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config, {"reduction": tf.losses.Reduction.SUM})
    estimator.train(told, steps=1)
    assert seen == [2]


def test_replicas_need_a_dataset(tmp_path):
    x, y = numbers(8)
    config = tf.estimator.RunConfig(train_distribute=mirrored(), session_config=CPUS)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config, {"reduction": tf.losses.Reduction.SUM})
    with pytest.raises(ValueError, match=r"each of 2 replicas needs a batch of its own.*tf.data.Dataset"):
        estimator.train(lambda: ({"x": tf.constant(x)}, tf.constant(y)))


def keras_model():
    first = tf.keras.layers.Dense(
        4, activation="relu", input_shape=(3,), kernel_initializer=tf.keras.initializers.Constant(0.1)
    )
    second = tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.Constant(0.2))
    model = tf.keras.Sequential([first, second])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05, momentum=0.9), loss="mse", metrics=["mae"])
    return model


def test_a_keras_model_trains_in_the_scope_of_a_strategy():
    x, y = numbers(64)
    tf.keras.backend.set_session(tf.Session(config=CPUS))
    with mirrored().scope():
        model = keras_model()
        history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], [5.1861, 2.7768], rtol=1e-4)
    np.testing.assert_allclose(model.evaluate(x, y, batch_size=16, verbose=0), [1.6578, 1.0049], rtol=1e-4)
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat()
    history = model.fit(batches, epochs=1, steps_per_epoch=4, verbose=0).history
    np.testing.assert_allclose(history["mean_absolute_error"], [0.9424], rtol=1e-4)


def test_a_keras_model_becomes_an_estimator_of_replicas(tmp_path):
    x, y = numbers(64)
    config = tf.estimator.RunConfig(train_distribute=mirrored(), session_config=CPUS)
    estimator = tf.keras.estimator.model_to_estimator(keras_model(), model_dir=str(tmp_path), config=config)

    def batches():
        return tf.data.Dataset.from_tensor_slices(({"dense_input": x}, y)).batch(8).repeat(2)

    estimator.train(batches)
    assert estimator.get_variable_value("global_step") == 8
    np.testing.assert_allclose(estimator.get_variable_value("dense_1/bias"), [2.359], rtol=1e-4)
    np.testing.assert_allclose(estimator.get_variable_value("dense/kernel")[:, 0], [0.1733, 0.2236, 0.3141], rtol=1e-3)
    found = estimator.evaluate(batches)
    np.testing.assert_allclose([found["loss"], found["mean_absolute_error"]], [1.6578, 1.0049], rtol=1e-4)


def test_replicas_share_the_variables_of_keras_layers_and_the_averages_of_their_batches():
    # Values of TensorFlow 1.15: each replica sees half of the batches, and the averages are the mean of both.
    rows = np.random.RandomState(0).rand(64, 2).astype(np.float32)
    ones = {"kernel_initializer": "ones"}
    layers = [
        tf.keras.layers.Dense(3, input_shape=(2,), name="d", **ones),
        tf.keras.layers.BatchNormalization(name="b"),
        tf.keras.layers.Dense(1, name="o", **ones),
    ]
    model = tf.keras.Sequential(layers)
    metrics = {"o": ["mae", tf.keras.metrics.MeanAbsoluteError(name="object")]}
    model.compile(tf.keras.optimizers.SGD(0.01), {"o": "mse"}, metrics=metrics, loss_weights={"o": 2.0})

    def batches():
        sums = rows.sum(1, keepdims=True)
        return tf.data.Dataset.from_tensor_slices(({"d_input": rows}, sums)).batch(8).repeat(2)

    config = tf.estimator.RunConfig(train_distribute=mirrored(), session_config=CPUS)
    estimator = tf.keras.estimator.model_to_estimator(model, config=config).train(batches)
    wanted = {"b/moving_mean": 0.07694, "b/moving_variance": 0.93242, "o/kernel": 0.62966}
    for name, value in wanted.items():
        np.testing.assert_allclose(np.ravel(estimator.get_variable_value(name)), [value] * 3, rtol=1e-4)
    np.testing.assert_allclose(estimator.get_variable_value("d/kernel"), [[0.99835] * 3, [0.99886] * 3], rtol=1e-4)
    found = estimator.evaluate(batches)
    assert found["global_step"] == 8 and found["object"] == pytest.approx(found["mean_absolute_error"], rel=1e-5)
    np.testing.assert_allclose([found["mean_absolute_error"], found["loss"]], [0.64749, 0.84938], rtol=1e-4)


def test_a_model_function_of_keras_layers_on_replicas():
    def model_fn(features, labels, mode):
        hidden = tf.keras.layers.Dense(3, activation="relu", kernel_initializer="ones")(features)
        loss = tf.losses.mean_squared_error(labels, tf.keras.layers.Dense(1, kernel_initializer="ones")(hidden))
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    x, y = numbers(64)

    def batches(size):
        return tf.data.Dataset.from_tensor_slices((x, y)).batch(size)

    found = []
    for distribute, size in ((mirrored(), 8), (None, 16)):
        config = tf.estimator.RunConfig(train_distribute=distribute, session_config=CPUS)
        estimator = tf.estimator.Estimator(model_fn, config=config).train(lambda size=size: batches(size))
        found.append({name: estimator.get_variable_value(name) for name in estimator.get_variable_names()})
    assert set(found[0]) == {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias", "global_step"}
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-5)
