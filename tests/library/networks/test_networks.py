"""Networks for images: what they are made of, against published numbers of parameters, and small ones at work."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import slim
from tfray.contrib.slim import nets

RESNET, INCEPTION = nets.resnet_v1.resnet_arg_scope, nets.inception.inception_v3_arg_scope


def _size(variables):
    return sum(math.prod(variable.shape.as_list()) for variable in variables)


@pytest.mark.rows(every=2)
@pytest.mark.parametrize(
    ("network", "scope", "parameters", "shape", "names"),
    [  # parameters: what the papers' authors, Caffe's and slim's models have
        (nets.vgg.vgg_a, nets.vgg.vgg_arg_scope, 132863336, [2, 1000], {"vgg_a/fc8", "vgg_a/conv3/conv3_2"}),
        (nets.vgg.vgg_d, nets.vgg.vgg_arg_scope, 138357544, [2, 1000], {"vgg_16/fc7", "vgg_16/conv5/conv5_3"}),
        (nets.vgg.vgg_e, nets.vgg.vgg_arg_scope, 143667240, [2, 1000], {"vgg_19/pool5", "vgg_19/conv5/conv5_4"}),
        (nets.alexnet.alexnet_v2, nets.alexnet.alexnet_v2_arg_scope, 50303912, [2, 1000], {"alexnet_v2/fc6"}),
        (nets.overfeat.overfeat, nets.overfeat.overfeat_arg_scope, 145704424, [2, 1000], {"overfeat/pool5"}),
        (
            nets.resnet_v1.resnet_v1_50,
            RESNET,
            25557032,
            [2, 1, 1, 1000],
            {"resnet_v1_50/block4", "resnet_v1_50/block1/unit_3/bottleneck_v1/conv2", "predictions"},
        ),
        (
            nets.resnet_v1.resnet_v1_101,
            RESNET,
            44549160,
            [2, 1, 1, 1000],
            {"resnet_v1_101/block3/unit_23/bottleneck_v1"},
        ),
        (nets.resnet_v2.resnet_v2_50, RESNET, 25568360, [2, 1, 1, 1000], {"resnet_v2_50/logits"}),
        # Without the 18112 scales of its normalization.
        (nets.inception.inception_v3, INCEPTION, 27161264 - 18112, [2, 1000], {"Mixed_7c", "AuxLogits", "PreLogits"}),
    ],
)
def test_parameters_and_results(network, scope, parameters, shape, names):
    images = tf.placeholder(tf.float32, [2, *[network.default_image_size] * 2, 3])
    with slim.arg_scope(scope()):
        logits, end_points = network(images, num_classes=1000, is_training=False)
    assert logits.shape.as_list() == shape and names <= set(end_points)
    assert _size(tf.trainable_variables()) == parameters


@pytest.mark.parametrize(
    ("network", "size", "parameters", "shape"),
    [
        (nets.inception.inception_v1_base, 224, 5607184, [5, 7, 7, 1024]),
        (nets.inception.inception_v3_base, 299, 21802784, [5, 8, 8, 2048]),
    ],
)
def test_bases_of_inception(network, size, parameters, shape):
    with slim.arg_scope(INCEPTION()):
        net, end_points = network(tf.placeholder(tf.float32, [5, size, size, 3]))
    assert _size(slim.get_model_variables()) == parameters and net.shape.as_list() == shape
    assert next(iter(end_points)).startswith("Conv2d_1a") and net is list(end_points.values())[-1]
    assert "moving_mean" in tf.get_collection("moving_vars")[0].op.name
    with pytest.raises(ValueError, match="Unknown final endpoint Mixed_9z"):
        network(tf.zeros([1, size, size, 3]), "Mixed_9z", scope="other")


def test_names_as_in_checkpoints():
    with slim.arg_scope(RESNET()):
        nets.resnet_v1.resnet_v1_50(tf.zeros([1, 64, 64, 3]), 7)
    with slim.arg_scope(INCEPTION()):
        nets.inception.inception_v3(tf.zeros([1, 299, 299, 3]), 7)
    names = {variable.op.name for variable in tf.global_variables()}
    unit = "resnet_v1_50/block2/unit_1/bottleneck_v1"
    expected = {f"{unit}/{layer}/weights" for layer in ("shortcut", "conv1", "conv2", "conv3")}
    expected |= {f"{unit}/conv1/BatchNorm/{each}" for each in ("beta", "gamma", "moving_mean", "moving_variance")}
    expected |= {"resnet_v1_50/conv1/weights", "resnet_v1_50/logits/weights", "resnet_v1_50/logits/biases"}
    expected |= {
        "InceptionV3/Mixed_5c/Branch_1/Conv_1_0c_5x5/weights",
        "InceptionV3/Mixed_7b/Branch_1/Conv2d_0b_3x1/BatchNorm/beta",
        "InceptionV3/AuxLogits/Conv2d_2a_5x5/weights",
        "InceptionV3/Logits/Conv2d_1c_1x1/biases",
    }
    assert expected <= names


def test_blocks_of_ones_own():
    """Tuples in place of dictionaries are what 1.0 has; an output stride turns strides into dilations."""
    utils, bottleneck = nets.resnet_utils, nets.resnet_v1.bottleneck
    blocks = [
        utils.Block("block1", bottleneck, [(8, 2, 1), (8, 2, 2)]),
        nets.resnet_v1.resnet_v1_block("block2", 3, 2, stride=2),
    ]
    images = np.random.default_rng(0).normal(size=(1, 33, 33, 3)).astype(np.float32)
    with slim.arg_scope(RESNET()):
        plain, end_points = nets.resnet_v1.resnet_v1(
            tf.constant(images), blocks, is_training=False, global_pool=False, scope="r"
        )
        with slim.arg_scope([slim.batch_norm], is_training=False):
            dense, _ = nets.resnet_v1.resnet_v1(
                tf.constant(images), blocks, None, None, global_pool=False, output_stride=8, reuse=True, scope="r"
            )
        with pytest.raises(ValueError, match="multiple of 4"):
            nets.resnet_v1.resnet_v1(tf.constant(images), blocks, output_stride=6)
        with pytest.raises(ValueError, match="cannot be reached"):
            nets.resnet_v1.resnet_v1(tf.constant(images), blocks, output_stride=32)
    assert plain.shape.as_list() == [1, 3, 3, 12] and dense.shape.as_list() == [1, 5, 5, 12]
    assert {"r/conv1", "r/block1", "r/block2/unit_2/bottleneck_v1"} <= set(end_points)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coarse, fine = session.run([plain, dense])
    np.testing.assert_allclose(fine[:, ::2, ::2], coarse, rtol=1e-3, atol=1e-4)


def test_a_convolution_that_keeps_its_places():
    images = tf.constant(np.arange(25.0, dtype=np.float32).reshape(1, 5, 5, 1))
    with slim.arg_scope([slim.conv2d], activation_fn=None, weights_initializer=tf.ones_initializer()):
        strided = nets.resnet_utils.conv2d_same(images, 1, 3, 2, scope="a")
        dense = nets.resnet_utils.subsample(nets.resnet_utils.conv2d_same(images, 1, 3, 1, scope="b"), 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([strided, dense]))


def test_training_a_small_one():
    images = tf.constant(np.random.default_rng(0).normal(size=(4, 32, 32, 3)).astype(np.float32))
    with slim.arg_scope(RESNET()):
        blocks = [nets.resnet_v2.resnet_v2_block("block1", 2, 2, 2)]
        net, _ = nets.resnet_v2.resnet_v2(images, blocks, num_classes=3)
    tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 0], tf.squeeze(net, [1, 2]))
    loss = tf.losses.get_total_loss()
    train = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(train)
        for _ in range(20):
            last = session.run(train)
    assert last < first
