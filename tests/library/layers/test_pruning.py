"""Masks that set the smallest weights to 0."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import model_pruning as pruning
from tfray.contrib import slim

WEIGHTS = np.array([[0.5, -2.0, 0.1, 1.0], [-0.3, 0.2, -1.5, 0.7]], np.float32)


def spec(**settings):
    found = pruning.get_pruning_hparams()
    for name, value in settings.items():
        found.set_hparam(name, value)
    return found


def masked_weights():
    return pruning.apply_mask(tf.get_variable("weights", initializer=WEIGHTS), "layer")


@pytest.mark.parametrize("sparsity", [0.0, 0.25, 0.5, 0.75])
def test_the_smallest_weights_are_masked(session, sparsity):
    product = masked_weights()
    update = pruning.Pruning(sparsity=tf.constant(sparsity)).mask_update_op()
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(product), WEIGHTS)
    session.run(update)
    limit = np.sort(np.abs(WEIGHTS), axis=None)[int(8 * sparsity)]
    expected = np.where(np.abs(WEIGHTS) >= limit, WEIGHTS, 0)
    np.testing.assert_array_equal(session.run(product), expected)
    found = session.run([pruning.get_weight_sparsity()[0], pruning.get_thresholds()[0]])
    np.testing.assert_allclose(found, [sparsity, limit])
    assert [each.op.name for each in pruning.get_masks()] == ["layer/mask"]
    assert [each.op.name for each in tf.trainable_variables()] == ["weights"]


def test_how_much_is_masked_when(session):
    masked_weights()
    step = tf.train.get_or_create_global_step()
    settings = {"target_sparsity": 0.75, "sparsity_function_end_step": 8, "pruning_frequency": 2}
    pruner = pruning.Pruning(spec(begin_pruning_step=2, end_pruning_step=6, **settings))
    update = pruner.conditional_mask_update_op()
    pruner.add_pruning_summaries()
    pruner.print_hparams()
    session.run(tf.global_variables_initializer())
    found = []
    for _ in range(10):
        session.run(update)
        found.append(session.run(pruning.get_weight_sparsity()[0]))
        session.run(step.assign_add(1))
    planned = 0.75 - 0.75 * (1 - np.arange(10) / 8).clip(0) ** 3
    kept = [np.round(8 * (1 - planned[each])) for each in (2, 4, 6)]
    np.testing.assert_allclose(found, 1 - np.repeat([8, *kept], [2, 2, 2, 4]) / 8)
    tags = {value.tag for value in tf.Summary.FromString(session.run(tf.summary.merge_all())).value}
    assert "model_pruning_summaries/layer/mask/sparsity" in tags


@pytest.mark.parametrize(("kind", "measure"), [("AVG", np.mean), ("MAX", np.max)])
def test_blocks_are_masked_as_a_whole(session, kind, measure):
    values = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    product = pruning.apply_mask(tf.get_variable("dense", initializer=values))
    settings = spec(block_dims_map=["dense:2x3"], block_pooling_function=kind)
    update = pruning.Pruning(settings, sparsity=tf.constant(0.5)).mask_update_op()
    session.run(tf.global_variables_initializer())
    session.run(update)
    blocks = measure(np.abs(values).reshape(2, 2, 2, 3), axis=(1, 3))
    mask = np.kron(blocks >= np.sort(blocks, axis=None)[2], np.ones((2, 3)))
    np.testing.assert_array_equal(session.run(product), values * mask)


def test_weights_have_targets_of_their_own(session):
    for name in ("first", "second"):
        with tf.variable_scope(name):
            pruning.apply_mask(tf.get_variable("weights", initializer=WEIGHTS), tf.get_variable_scope())
    settings = spec(target_sparsity=0.5, weight_sparsity_map=["second:0.75"])
    update = pruning.Pruning(settings, global_step=tf.constant(1000)).mask_update_op()
    session.run(tf.global_variables_initializer())
    session.run(update)
    np.testing.assert_allclose(session.run(pruning.get_weight_sparsity()), [0.5, 0.75])
    with pytest.raises(ValueError, match="Multiple matches"):
        pruning.Pruning(spec(weight_sparsity_map=["first:0.1", "weights:0.2"])).mask_update_op()


def test_the_largest_weight_stays(session):
    product = pruning.apply_mask(tf.get_variable("weights", initializer=[[0.5, -2.0]]))
    update = pruning.Pruning(sparsity=tf.constant(0.9)).mask_update_op()
    session.run(tf.global_variables_initializer())
    session.run(update)
    assert session.run(product).tolist() == [[0, -2]]


@pytest.mark.parametrize("parts", [1, 2])
def test_weights_in_parts(session, parts):
    with tf.variable_scope("cut", partitioner=tf.fixed_size_partitioner(parts)) as scope:
        product = pruning.apply_mask(tf.get_variable("weights", initializer=WEIGHTS), scope)
    pruner = pruning.Pruning(spec(weight_sparsity_map=["cut/weights:0.25"]), sparsity=tf.constant(0.5))
    update = pruner.mask_update_op()
    pruner.add_pruning_summaries()
    session.run(tf.global_variables_initializer())
    session.run(update)
    # A quarter of eight: 0.1 and 0.2.
    np.testing.assert_array_equal(session.run(product), np.where(np.abs(WEIGHTS) > 0.25, WEIGHTS, 0))
    tags = {value.tag for value in tf.Summary.FromString(session.run(tf.summary.merge_all())).value}
    assert "model_pruning_summaries/cut/mask/sparsity" in tags


@pytest.mark.parametrize(
    "settings",
    [
        {"weight_sparsity_map": ["weights:1.0"]},
        {"block_dims_map": ["weights:4"]},
        {"begin_pruning_step": -1},
        {"begin_pruning_step": 5, "end_pruning_step": 4},
        {"sparsity_function_end_step": 0},
        {"threshold_decay": 1.0},
        {"target_sparsity": 1.5},
    ],
)
def test_settings_out_of_range(settings):
    with pytest.raises(ValueError, match=r"must|requires|Expected 2 values"):
        pruning.Pruning(spec(**settings))


def test_layers(session):
    images = np.random.default_rng(1).normal(size=(2, 6, 6, 3)).astype(np.float32)
    net = pruning.masked_conv2d(images, 4, 3, scope="conv")
    net = pruning.masked_fully_connected(tf.layers.flatten(net), 5, activation_fn=None, scope="full")
    expected = {f"{layer}/{name}" for layer in ("conv", "full") for name in ("weights", "biases", "mask", "threshold")}
    assert {each.op.name for each in tf.global_variables()} == expected
    assert [each.op.name for each in pruning.get_weights()] == ["conv/weights", "full/weights"]
    update = pruning.Pruning(sparsity=tf.constant(0.5)).mask_update_op()
    session.run(tf.global_variables_initializer())
    session.run(update)
    values = session.run({each.op.name: each for each in tf.global_variables()})
    kernel = tf.nn.relu(tf.nn.conv2d(images, values["conv/weights"] * values["conv/mask"], 1, "SAME"))
    plain = tf.layers.flatten(kernel) @ (values["full/weights"] * values["full/mask"])
    np.testing.assert_allclose(*session.run([net, plain]), atol=1e-5)
    assert np.mean(values["conv/mask"]) == pytest.approx(0.5, abs=0.01)


def test_arguments_of_layers():
    arguments = inspect.signature(pruning.masked_conv2d), inspect.signature(pruning.masked_fully_connected)
    assert arguments == (inspect.signature(slim.conv2d), inspect.signature(slim.fully_connected))
    with slim.arg_scope([pruning.masked_conv2d], activation_fn=None, scope="named"):
        made = pruning.masked_conv2d(tf.ones([1, 4, 4, 2]), 3, 2, padding="VALID")
    assert made.op.type == "BiasAdd" and made.shape.as_list() == [1, 3, 3, 3]
    assert pruning.get_masks()[0].op.name == "named/mask"
    with slim.arg_scope([slim.conv2d], padding="VALID"):
        assert pruning.masked_conv2d(tf.ones([1, 4, 4, 2]), 3, 2).shape.as_list() == [1, 4, 4, 3]
    with pytest.raises(ValueError, match="rank"):
        pruning.masked_conv2d(tf.ones([1, 4, 2]), 3, 2)


def test_masks_are_stripped_from_a_trained_graph(tmp_path):
    rows = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)
    x = tf.placeholder_with_default(rows, [None, 4], name="rows")
    output = tf.identity(pruning.masked_fully_connected(x, 3, None, biases_initializer=None), name="output")
    loss = tf.losses.mean_squared_error(tf.zeros_like(output), output)
    train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.01))
    settings = {"target_sparsity": 0.5, "sparsity_function_end_step": 1, "pruning_frequency": 1}
    update = pruning.Pruning(spec(**settings)).conditional_mask_update_op()
    saver = tf.train.Saver()
    last = pruning.train(train_op, str(tmp_path), update, number_of_steps=3, saver=saver)
    assert np.isfinite(last)
    whole = pruning.graph_def_from_checkpoint(tmp_path, ["output"])
    stripped = pruning.strip_pruning_vars_fn(whole, ["output"])
    results = []
    for graph_def in (whole, stripped):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(graph_def, name="")
            results.append(session.run("output:0"))
            values = session.run("fully_connected/weights/masked_weight:0")
    np.testing.assert_array_equal(*results)
    # Half of the twelve weights, and their product with the rows by hand.
    assert np.count_nonzero(values) == 6
    np.testing.assert_allclose(results[1], rows @ values, atol=1e-6)
    assert [node.name for node in whole.node if "mask" in node.name.split("/")]
    assert not [node.name for node in stripped.node if "mask" in node.name.split("/")]
    with pytest.raises(ValueError, match="Could not find a checkpoint"):
        pruning.graph_def_from_checkpoint(tmp_path / "nowhere", ["output"])


@pytest.mark.parametrize("kind", [pruning.MaskedBasicLSTMCell, pruning.MaskedLSTMCell])
def test_cells(session, kind):
    rows = np.random.default_rng(2).normal(size=(3, 4, 5)).astype(np.float32)
    outputs, _ = tf.nn.dynamic_rnn(kind(6), rows, dtype=tf.float32)
    assert [mask.shape.as_list() for mask in pruning.get_masks()] == [[11, 24]]
    session.run(tf.global_variables_initializer())
    before = session.run(outputs)
    session.run(pruning.get_masks()[0].assign(tf.zeros([11, 24])))
    assert (before != 0).any() and (session.run(outputs) == 0).all()


def test_masked_weights_do_not_learn(session):
    loss = tf.reduce_sum(masked_weights() * 3.0)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    update = pruning.Pruning(sparsity=tf.constant(0.5)).mask_update_op()
    session.run(tf.global_variables_initializer())
    session.run(update)
    session.run(step)
    mask, weights = session.run([pruning.get_masks()[0], pruning.get_weights()[0]])
    np.testing.assert_allclose(weights, WEIGHTS - 3 * mask)
