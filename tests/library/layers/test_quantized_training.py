"""Graphs that are rewritten for quantization: without rounding they compute what they did, with it what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import quantize, slim

IMAGES = np.random.default_rng(0).normal(size=(4, 8, 8, 3)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)


def rounded(values, low, high, bits=8, narrow=False):
    """Values as whole numbers of steps between two ends, of which one step falls on 0."""
    first, last = int(narrow), 2**bits - 1
    step = (high - low) / (last - first)
    zero = np.clip(np.round(first - low / step), first, last)
    low, high = (first - zero) * step, (last - zero) * step
    return np.round((np.clip(values, low, high) - low) / step) * step + low


def network(images, is_training):
    with slim.arg_scope([slim.batch_norm], is_training=is_training, decay=0.9, scale=True):
        net = slim.conv2d(images, 4, 3, normalizer_fn=slim.batch_norm, activation_fn=tf.nn.relu6, scope="first")
        net = slim.separable_conv2d(net, 4, 3, 1, normalizer_fn=slim.batch_norm, scope="second")
        net = slim.separable_conv2d(net, None, 3, 2, normalizer_fn=slim.batch_norm, scope="channels")
    net = tf.layers.conv2d(net, 4, 3, activation=tf.nn.relu, name="third")
    return slim.fully_connected(tf.layers.flatten(net), 5, activation_fn=None, scope="logits")


def network_of_rows(images, is_training):
    with slim.arg_scope([slim.batch_norm], is_training=is_training, decay=0.9, scale=True):
        net = slim.fully_connected(tf.layers.flatten(images), 6, normalizer_fn=slim.batch_norm, scope="rows")
    return slim.fully_connected(net, 5, activation_fn=None, scope="logits")


def outcome(is_training, rewrite, network=network):
    """Output, gradients, and averages after an update, of a network with given values of its variables."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        logits = tf.identity(network(tf.constant(IMAGES), is_training), name="logits_out")
        rewrite(graph)
        variables = tf.trainable_variables()
        gradients = tf.gradients(tf.reduce_sum(tf.square(logits)), variables)
        session.run(tf.global_variables_initializer())
        random = np.random.default_rng(5)
        for variable in variables:
            variable.load(random.normal(size=variable.shape.as_list()).astype(np.float32), session)
        values = session.run([logits, *gradients])
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        return values + session.run([each for each in slim.get_model_variables() if "moving" in each.op.name])


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize(("network", "values"), [(network, 10), (network_of_rows, 7)])
def test_folded_layers_compute_what_they_did(network, values, is_training):
    name = f"experimental_create_{'training' if is_training else 'eval'}_graph"
    plain = outcome(is_training, lambda graph: None, network)
    folded = outcome(is_training, lambda graph: getattr(quantize, name)(graph, quant_delay=1000), network)
    assert len(plain) == len(folded) > values
    for before, after in zip(plain, folded, strict=True):
        np.testing.assert_allclose(after, before, atol=2e-5 * np.abs(before).max())


def test_rows_that_are_normalized_are_folded():
    slim.fully_connected(ROWS, 3, normalizer_fn=slim.batch_norm, scope="rows")
    quantize.create_training_graph()
    names = {name.rpartition("/")[0] for name in ranges_there() if name.endswith("quant/min")}
    assert names == {"rows/weights_quant", "rows/act_quant"}
    assert [op.name for op in tf.get_default_graph().get_operations() if op.name.endswith("_Fold")] == [
        "rows/MatMul_Fold"
    ]


def test_rounding_changes_little():
    plain = outcome(True, lambda graph: None)[0]
    found = outcome(True, quantize.create_training_graph)[0]
    assert 1e-4 < np.abs(found - plain).max() / np.abs(plain).max() < 0.1


def dense(rows):
    kernel = tf.constant_initializer(np.random.default_rng(2).normal(size=(4, 3)))
    with tf.variable_scope("layer"):
        return tf.layers.dense(rows, 3, tf.nn.relu, kernel_initializer=kernel, name="dense")


def ranges_there():
    return {each.op.name: each for each in tf.global_variables() if "quant" in each.op.name}


@pytest.mark.parametrize(("bits", "symmetric"), [(8, False), (4, False), (8, True), (4, True)])
def test_weights_and_activations_are_rounded(session, bits, symmetric):
    end = tf.identity(dense(tf.constant(ROWS)))
    quantize.experimental_create_training_graph(weight_bits=bits, activation_bits=bits, symmetric=symmetric)
    kernel = tf.trainable_variables()[0]
    session.run(tf.global_variables_initializer())
    found, kernel = session.run([end, kernel])
    size = np.abs(kernel).max()
    ends = (-size, size) if symmetric else (min(kernel.min(), 0), max(kernel.max(), 0))
    hidden = np.maximum(ROWS @ rounded(kernel, *ends, bits, narrow=True), 0)
    low = -hidden.max() * 2**bits / (2**bits - 2) if symmetric else 0.0
    np.testing.assert_allclose(found, rounded(hidden, low, hidden.max(), bits), atol=1e-5)


def test_ranges_follow_what_is_seen(session):
    rows = tf.placeholder(tf.float32, [None, 4])
    end = tf.identity(dense(rows))
    quantize.create_training_graph()
    ranges = ranges_there()
    assert {"layer/dense/weights_quant/min", "layer/dense/act_quant/max"} <= set(ranges)
    assert not [each for each in tf.trainable_variables() if "quant" in each.op.name]
    assert {name for name in ranges if "biased" not in name and "local_step" not in name} == {
        each.op.name for each in tf.model_variables()
    }
    session.run(tf.global_variables_initializer())
    assert session.run(ranges["layer/dense/act_quant/max"]) == 6
    kernel = session.run(tf.trainable_variables()[0])
    seen = []
    for factor in (1.0, 3.0):
        session.run(end, {rows: factor * ROWS})
        weights = rounded(kernel, kernel.min(), kernel.max(), narrow=True)
        seen.append(np.maximum(factor * ROWS @ weights, 0).max())
    assert session.run(ranges["layer/dense/weights_quant/min"]) == pytest.approx(kernel.min())
    # A moving average without its bias towards the beginning.
    mean = (0.999 * seen[0] + seen[1]) / 1.999
    assert session.run(ranges["layer/dense/act_quant/max"]) == pytest.approx(mean, rel=1e-3)


def test_inference_restores_what_training_has_learned(tmp_path):
    results = []
    for rewrite in (quantize.create_training_graph, quantize.create_eval_graph):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            end = tf.identity(dense(tf.constant(ROWS)))
            rewrite(graph)
            saver = tf.train.Saver([each for each in tf.global_variables() if "act_quant/layer" not in each.op.name])
            if rewrite is quantize.create_training_graph:
                session.run(tf.global_variables_initializer())
                results.append(session.run(end))
                saver.save(session, str(tmp_path / "model"))
            else:
                saver.restore(session, str(tmp_path / "model"))
                assert "fake_quantization_step" not in ranges_there()
                results.append(session.run(end))
    np.testing.assert_allclose(results[1], results[0], atol=1e-6)


def test_a_rewritten_graph_is_frozen(session):
    rows = tf.placeholder(tf.float32, [None, 4], name="rows")
    end = tf.identity(dense(rows), name="end")
    quantize.create_eval_graph()
    session.run(tf.global_variables_initializer())
    expected = session.run(end, {rows: ROWS})
    frozen = tf.graph_util.convert_variables_to_constants(session, tf.get_default_graph().as_graph_def(), ["end"])
    with tf.Graph().as_default(), tf.Session() as other:
        tf.import_graph_def(frozen, name="")
        np.testing.assert_allclose(other.run("end:0", {"rows:0": ROWS}), expected, atol=1e-6)
    assert [node.op for node in frozen.node].count("FakeQuantWithMinMaxVars") == 2


def test_rounding_begins_after_a_delay(session):
    end = tf.identity(dense(tf.constant(ROWS)))
    quantize.create_training_graph(quant_delay=3)
    session.run(tf.global_variables_initializer())
    exact = np.maximum(ROWS @ session.run(tf.trainable_variables()[0]), 0)
    differences = [np.abs(session.run(end) - exact).max() for _ in range(4)]
    assert max(differences[:2]) < 1e-5 and min(differences[2:]) > 1e-4


def test_averages_are_frozen_after_a_delay(session):
    with slim.arg_scope([slim.batch_norm], is_training=True, decay=0.5):
        end = tf.identity(slim.conv2d(IMAGES, 2, 3, normalizer_fn=slim.batch_norm, activation_fn=None))
    quantize.experimental_create_training_graph(quant_delay=1000, freeze_bn_delay=3)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    moving = next(each for each in tf.global_variables() if each.op.name.endswith("moving_mean"))
    session.run(tf.global_variables_initializer())
    seen = []
    for _ in range(5):
        output = session.run([end, *updates])[0]
        seen.append(session.run(moving))
    assert not np.allclose(seen[0], seen[1], rtol=1e-3, atol=0) and (seen[2] == seen[4]).all()
    # The output is no longer normalized by the batch's own moments.
    assert np.abs(output.mean((0, 1, 2))).max() > 1e-3


def test_sums_of_layers(session):
    x = tf.constant(IMAGES)
    first = tf.layers.conv2d(x, 3, 3, padding="same", activation=tf.nn.relu, name="a/conv")
    second = tf.layers.conv2d(first, 3, 3, padding="same", name="b/conv")
    end = tf.nn.relu(second + first, name="sum")
    after = tf.layers.conv2d(end, 3, 3, padding="same", activation=tf.nn.relu, name="c/conv")
    last = tf.identity(after + end, name="last") * 2.0
    quantize.create_training_graph()
    names = {name.rpartition("/")[0] for name in ranges_there() if name.endswith("quant/min")}
    assert {"a/conv/act_quant", "b/conv/conv_quant", "b/act_quant", "c/conv/act_quant"} <= names
    assert "post_activation_bypass_quant" in names and {f"{each}/conv/weights_quant" for each in "abc"} <= names
    session.run(tf.global_variables_initializer())
    assert np.isfinite(session.run(last)).all()


def test_a_scope_is_rewritten_alone(session):
    tf.identity(dense(tf.constant(ROWS)))
    with tf.variable_scope("other"):
        tf.identity(dense(tf.constant(ROWS)))
    quantize.experimental_create_training_graph(scope="other")
    names = ranges_there()
    assert names and all(name.startswith("other/") for name in names)


def test_it_learns_with_rounding(session):
    target = np.tanh(ROWS @ np.random.default_rng(3).normal(size=(4, 1))).astype(np.float32)
    hidden = tf.layers.dense(ROWS, 16, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
    output = tf.layers.dense(hidden, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    loss = tf.losses.mean_squared_error(target, output)
    quantize.create_training_graph()
    step = tf.train.AdamOptimizer(0.02).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = [session.run([loss, step])[0] for _ in range(300)]
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("kind", [tf.train.GradientDescentOptimizer, tf.contrib.opt.AddSignOptimizer])
def test_an_optimizer_is_refused(kind):
    loss = tf.reduce_sum(dense(tf.constant(ROWS)))
    kind(0.1).minimize(loss)
    with pytest.raises(ValueError, match="Training op found in graph"):
        quantize.create_training_graph()
