"""`tf.layers.batch_normalization`: averages, gradients, renormalization, virtual batches, adjustment."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run
from tests.support.sessions import variable_names as names
from tfray.errors import InvalidArgumentError

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(2, 6, 7, 3)).astype(np.float32)
ROWS = RANDOM.normal(size=(5, 4)).astype(np.float32)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("how", ["python", "fed"])
def test_batch_normalization(fused, axis, how):
    training = True if how == "python" else tf.placeholder(tf.bool, [])
    layer = tf.layers.BatchNormalization(axis, momentum=0.75, epsilon=0.01, fused=fused)
    outputs = layer(tf.constant(IMAGES), training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2 == len(layer.updates)
    others = (0, 1, 2) if axis == -1 else (0, 2, 3)
    keep = {"axis": others, "keepdims": True}
    expected = (IMAGES - IMAGES.mean(**keep)) / np.sqrt(IMAGES.var(**keep) + 0.01)
    unbiased = IMAGES.var(others, ddof=0 if fused is False else 1)
    feeds = {} if how == "python" else {training: True}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(outputs, feeds), expected, rtol=1e-3, atol=1e-4)
        session.run(updates, feeds)
        mean, variance = session.run([layer.moving_mean, layer.moving_variance])
        np.testing.assert_allclose(mean, 0.25 * IMAGES.mean(others), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(variance, 0.75 + 0.25 * unbiased, rtol=1e-4)
        if how == "fed":
            shape = [1, 1, 1, -1] if axis == -1 else [1, -1, 1, 1]
            moved = (IMAGES - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 0.01)
            np.testing.assert_allclose(session.run(outputs, {training: False}), moved, rtol=1e-3, atol=1e-4)
            session.run(updates, {training: False})
            np.testing.assert_array_equal(session.run(layer.moving_mean), mean)


def test_batch_normalization_for_inference_updates_nothing():
    outputs = tf.layers.batch_normalization(ROWS, epsilon=0.0, training=False)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    np.testing.assert_allclose(run(outputs), ROWS, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_batch_normalization(training):
    x = tf.Variable(ROWS, name="x")
    condition = tf.placeholder(tf.bool, [])
    weights = tf.constant(RANDOM.normal(size=ROWS.shape).astype(np.float32))
    plain = tf.layers.batch_normalization(x, name="n", training=training)
    chosen = tf.layers.batch_normalization(x, name="n", reuse=True, training=condition)
    (one,), (two,) = (tf.gradients(tf.reduce_sum(y * weights), x) for y in (plain, chosen))
    np.testing.assert_allclose(*run([one, two], {condition: training}), rtol=1e-4, atol=1e-5)


def test_half_precision_normalization():
    layer = tf.layers.BatchNormalization(dtype=tf.float16)
    outputs = layer(tf.constant(ROWS.astype(np.float16)), training=True)
    assert outputs.dtype is tf.float16
    assert layer.gamma.dtype is tf.float32
    np.testing.assert_allclose(run(outputs).mean(0), 0, atol=1e-2)


def test_halves_are_normalized_by_scales_in_single_precision():
    # What TensorFlow 1.15 gives, whose `batch_normalization` has the dtype of `x` too.
    x = np.random.RandomState(0).rand(2, 2, 2, 3).astype(np.float16)
    fused, mean, variance = tf.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3]))
    plain = tf.nn.batch_normalization(x, tf.zeros([3]), tf.ones([3]), tf.zeros([3]), tf.ones([3]), 1e-3)
    assert (fused.dtype, mean.dtype, variance.dtype, plain.dtype) == (tf.float16, tf.float32, tf.float32, tf.float16)
    with pytest.raises(TypeError, match="scale"):
        tf.nn.fused_batch_norm(x, tf.ones([3], tf.float16), tf.zeros([3], tf.float16))
    found = run([fused[0, 0, 0], mean, variance, plain[0, 0, 0]])
    golden = [
        [0.14148, 0.26392, -0.26392],
        [0.51843, 0.63745, 0.67551],
        [0.051607, 0.09848, 0.086255],
        [0.54834, 0.71484, 0.60205],
    ]
    for value, wanted in zip(found, golden, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-3)


def test_without_scale_and_shift():
    tf.layers.batch_normalization(IMAGES, center=False, scale=False)
    assert names() == [
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
    ]
    assert tf.trainable_variables() == []


def _batches(count: int, *shape: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).normal(1.0, 2.0, shape).astype(np.float32) for seed in range(count)]


def _normalized(batches: list[np.ndarray], **settings: object) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """What a layer makes of batches in training, its updates run after each; and its variables in the end."""
    x = tf.placeholder(tf.float32, [None, *batches[0].shape[1:]])
    y = tf.layers.batch_normalization(x, training=True, **settings)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    outputs = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for batch in batches:
            outputs.append(session.run(y, {x: batch}))
            session.run(updates, {x: batch})
        return outputs, {v.op.name.split("/")[-1]: session.run(v) for v in tf.global_variables()}


@pytest.mark.parametrize("clipping", [None, {"rmin": 0.9, "rmax": 1.1, "dmax": 0.2}])
def test_batch_renormalization(clipping):
    """As the paper has it: x * r + d, by averages from before the step; here without scale and offset."""
    batches = _batches(3, 6, 3)
    outputs, variables = _normalized(batches, renorm=True, renorm_clipping=clipping, renorm_momentum=0.5)
    mean, deviation, moving = np.zeros(3), np.ones(3), np.ones(3)  # moving: deviation, which TensorFlow averages here
    for batch, output in zip(batches, outputs, strict=True):
        of_batch = np.sqrt(batch.var(0) + 1e-3)
        r, d = of_batch / deviation, (batch.mean(0) - mean) / deviation
        if clipping:
            r, d = np.clip(r, 0.9, 1.1), np.clip(d, -0.2, 0.2)
        np.testing.assert_allclose(output, (batch - batch.mean(0)) / of_batch * r + d, rtol=1e-4, atol=1e-5)
        mean, deviation = (mean + batch.mean(0)) / 2, (deviation + of_batch) / 2
        moving = 0.99 * moving + 0.01 * of_batch
    np.testing.assert_allclose(variables["renorm_mean"], mean, rtol=1e-4)
    np.testing.assert_allclose(variables["renorm_stddev"], deviation, rtol=1e-4)
    np.testing.assert_allclose(variables["moving_stddev"], moving, rtol=1e-4)
    np.testing.assert_allclose(variables["moving_variance"], moving**2 - 1e-3, rtol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"fused": False}, {"renorm": True}])
def test_a_partitioner_leaves_moving_averages_whole(settings):
    plain = tf.layers.batch_normalization(IMAGES, training=True, name="plain", **settings)
    with tf.variable_scope("cut", partitioner=tf.fixed_size_partitioner(3)):
        cut = tf.layers.batch_normalization(IMAGES, training=True, name="bn", **settings)
    kept = ["moving_mean", "moving_variance"]
    kept += ["moving_stddev", "renorm_mean", "renorm_stddev"] if settings.get("renorm") else []
    parts = [f"{name}/part_{index}" for name in ("gamma", "beta") for index in range(3)]
    assert names(tf.global_variables("cut")) == [f"cut/bn/{name}" for name in [*parts, *kept]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([plain, cut]))
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        for name in kept:
            np.testing.assert_array_equal(*session.run([f"plain/{name}:0", f"cut/bn/{name}:0"]))


def test_virtual_batches_are_normalized_by_themselves():
    (batch,) = _batches(1, 6, 2, 3)
    (output,), variables = _normalized([batch], virtual_batch_size=3)
    parts = batch.reshape(3, 2, 2, 3)  # dimension 1 tells the parts apart
    mean, variance = parts.mean((0, 2), keepdims=True), parts.var((0, 2), keepdims=True)
    expected = (parts - mean) / np.sqrt(variance + 1e-3)
    np.testing.assert_allclose(output, expected.reshape(batch.shape), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variables["moving_mean"], 0.01 * mean.mean(1).reshape(-1), rtol=1e-4)


def test_adjustment_comes_in_training_only():
    (batch,) = _batches(1, 6, 3)

    def adjustment(shape):
        return tf.fill([1, shape[1]], 2.0), tf.ones([1, shape[1]])

    training = tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(batch, training=training, adjustment=adjustment)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        trained, otherwise = (session.run(y, {training: value}) for value in (True, False))
    expected = (batch - batch.mean(0)) / np.sqrt(batch.var(0) + 1e-3) * 2 + 1
    np.testing.assert_allclose(trained, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(otherwise, batch / np.sqrt(1.001), rtol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"renorm": True, "renorm_clipping": {"rmean": 1.0}},
        {"virtual_batch_size": 0},
        {"virtual_batch_size": 2, "adjustment": lambda shape: (1.0, 0.0)},
    ],
)
def test_malformed_corrections_are_refused(settings):
    with pytest.raises(InvalidArgumentError, match=r"batch.normalization"):
        tf.layers.batch_normalization(tf.ones([4, 2, 2, 3]), training=True, **settings)


SAMPLE = np.random.RandomState(0).rand(4, 3, 3, 2).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "settings", "golden"),
    [
        ([4, 3, 3, 2], {}, [0.1185, 0.8299, 0.3028]),
        ([36, 2], {}, [0.1185, 0.8299, 0.3028]),
        ([4, 9, 2], {}, [0.1185, 0.8299, 0.3028]),
        ([2, 2, 3, 3, 2], {}, [0.1185, 0.8299, 0.3028]),
        ([4, 3, 3, 2], {"renorm": True}, [0.5488, 0.7152, 0.6028]),
        ([4, 3, 3, 2], {"virtual_batch_size": 2}, [0.0174, 0.7865, 0.2121]),
        (
            [4, 3, 3, 2],
            {"adjustment": lambda size: (tf.ones(size[-1:]), tf.zeros(size[-1:]))},
            [0.1185, 0.8299, 0.3028],
        ),
        ([4, 3, 3, 2], {"axis": 2}, [0.206, 0.787, 0.1887]),
    ],
)
def test_fused_is_a_wish(shape, settings, golden):
    """Where one operation cannot do it, TensorFlow 1.15 takes several without a word; the values are its own."""
    y = tf.layers.batch_normalization(SAMPLE.reshape(shape), training=True, fused=True, **settings)
    fused = [op for op in tf.get_default_graph().get_operations() if op.type == "FusedBatchNorm"]
    assert len(fused) == (shape == [4, 3, 3, 2] and not settings)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(y).ravel()[:3], golden, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "layout"), [((4, 2), "NHWC"), ((4, 3, 3, 2), "NHWC"), ((4, 3, 2), "NHWC"), ((4, 2, 3), "NCHW")]
)
def test_the_average_of_means_can_be_corrected_for_its_start(shape, layout):
    values = np.random.RandomState(0).rand(*shape).astype(np.float32)
    training = tf.placeholder(tf.bool, [])
    y = tf.contrib.layers.batch_norm(
        values, decay=0.9, is_training=training, zero_debias_moving_mean=True, data_format=layout
    )
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    mean = values.mean(axis=tuple(axis for axis, size in enumerate(shape) if size != 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for is_training in (True, False, True):
            session.run([y, *updates], {training: is_training})
        found = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
    np.testing.assert_allclose(found["BatchNorm/moving_mean"], mean, rtol=1e-5)
    # The names are those of TensorFlow 1.15.
    assert found["BatchNorm/BatchNorm/moving_mean/local_step"] == 2
    np.testing.assert_allclose(found["BatchNorm/BatchNorm/moving_mean/biased"], 0.19 * mean, rtol=1e-5)


@pytest.mark.parametrize("fused", [None, True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_examples_count_by_their_weights_in_statistics_of_batches(fused, layout):
    values = np.random.RandomState(0).rand(3, 4, 4, 2).astype(np.float32)
    given = values if layout == "NHWC" else values.transpose(0, 3, 1, 2)
    settings = {"decay": 0.9, "fused": fused, "data_format": layout, "updates_collections": None}
    y = tf.contrib.layers.batch_norm(given, batch_weights=[1.0, 2.0, 0.0], **settings)
    counted = values[[0, 1, 1]]  # each as often as its weight says
    mean, variance = counted.mean((0, 1, 2)), counted.var((0, 1, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(y)
        averages = [session.run(variable) for variable in tf.global_variables("BatchNorm/moving")]
    found = found if layout == "NHWC" else found.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, (values - mean) / np.sqrt(variance + 0.001), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(averages, [0.1 * mean, 0.9 + 0.1 * variance], rtol=1e-4)


@pytest.mark.parametrize("settings", [{"batch_weights": [1.0] * 3}, {"zero_debias_moving_mean": True}])
def test_corrected_statistics_with_neither_weights_nor_corrected_averages(settings):
    with pytest.raises(ValueError, match="renorm is not supported with batch_weights"):
        tf.contrib.layers.batch_norm(tf.ones([3, 2]), renorm=True, **settings)
