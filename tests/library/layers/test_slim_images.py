"""Layers of `tf.contrib.layers` that few networks have: values that TensorFlow 1.15 gives, or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run
from tests.support.sessions import variable_names as names

layers = tf.contrib.layers
IMAGE = np.arange(48, dtype=np.float32).reshape(1, 4, 4, 3) / 10


def test_spatial_softmax():
    found = layers.spatial_softmax(IMAGE, temperature=2.0)
    assert names() == ["spatial_softmax/temperature"] and found.shape.as_list() == [1, 6]
    assert run(found) == pytest.approx(np.array([[0.455137, 0.12421] * 3]), abs=1e-5)
    first = layers.spatial_softmax(
        tf.placeholder_with_default(IMAGE.transpose(0, 3, 1, 2), [None, 3, None, None]),
        temperature=2.0,
        data_format="NCHW",
        trainable=False,
    )
    assert len(tf.trainable_variables()) == 1
    assert run(first) == pytest.approx(np.array([[0.455137, 0.12421] * 3]), abs=1e-5)
    with pytest.raises(ValueError, match="num_channels"):
        layers.spatial_softmax(tf.placeholder(tf.float32, [1, 4, 4, None]))
    with pytest.raises(ValueError, match="NCHW or NHWC"):
        layers.spatial_softmax(IMAGE, data_format="CHWN")


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 4, 5, 3), (2, 2, 3, 4, 3)])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_divisive_normalization(shape, inverse, data_format):
    x = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    given = np.moveaxis(x, -1, 1) if data_format == "channels_first" else x
    y = layers.gdn(tf.constant(given), inverse=inverse, data_format=data_format, gamma_init=0.1)
    assert names() == ["gdn/reparam_beta", "gdn/reparam_gamma"] and y.shape == given.shape
    # The expression of TensorFlow's own tests.
    expected = given * np.sqrt(1 + 0.1 * given**2) if inverse else given / np.sqrt(1 + 0.1 * given**2)
    assert run(y) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_gradients_of_divisive_normalization():
    x = tf.constant([[[-1.0, 2.0, 0.5]]])
    d_x, d_beta = run(tf.gradients(layers.gdn(x), [x, tf.trainable_variables()[0]]))
    assert d_x == pytest.approx(np.array([[[0.866784, 0.603682, 0.963639]]]), abs=1e-5)
    assert d_beta == pytest.approx(np.array([0.866784, -1.207363, -0.481819]), abs=1e-5)

    # A value below its bound stays, and only moves up.
    layer = layers.GDN(beta_min=4.0)
    outputs = layer(x)
    sums = [tf.gradients(outputs, layer.weights[0])[0], tf.gradients(-outputs, layer.weights[0])[0]]
    down, up = run(sums)
    assert down[0] == 0 and up[0] < 0 and down[1] < 0 and up[1] == 0
    assert run(layer.beta) == pytest.approx(np.full(3, 4.0), rel=1e-5)
    with pytest.raises(ValueError, match="channels_middle"):
        layers.GDN(data_format="channels_middle")


def test_one_filter_for_all_channels():
    edges = layers.conv2d_in_plane(
        IMAGE, [1, 2], padding="VALID", activation_fn=None, weights_initializer=tf.constant_initializer([1.0, -1.0])
    )
    assert {v.op.name: v.shape.as_list() for v in tf.global_variables()} == {
        "ConvInPlane/weights": [1, 2, 1, 1],
        "ConvInPlane/biases": [3],
    }
    assert run(edges) == pytest.approx(IMAGE[:, :, :-1] - IMAGE[:, :, 1:], abs=1e-5)


def test_convolutions_by_rank():
    ones = {"weights_initializer": tf.ones_initializer(), "activation_fn": None}
    for shape, dims in (([1, 5, 2], 1), ([1, 5, 5, 2], 2), ([1, 5, 5, 5, 2], 3)):
        y = layers.convolution(tf.ones(shape), 4, 3, padding="VALID", conv_dims=dims, **ones)
        assert run(y) == pytest.approx(np.full([1, *[3] * dims, 4], 2 * 3.0**dims))
    assert names()[:2] == ["Conv/weights", "Conv/biases"]
    with pytest.raises(ValueError, match="expects input with rank 5, got 4"):
        layers.convolution(IMAGE, 4, 3, conv_dims=3)
    with pytest.raises(ValueError, match="rank 2"):
        layers.convolution(tf.ones([3, 2]), 4, 3)
    with pytest.raises(ValueError, match="Invalid data_format"):
        layers.convolution(IMAGE, 4, 3, data_format="CHWN")

    larger = layers.conv3d_transpose(tf.ones([1, 2, 2, 2, 1]), 2, 3, stride=2, **ones)
    assert names()[-2:] == ["Conv3d_transpose/weights", "Conv3d_transpose/biases"]
    rows = np.array([1.0, 1.0, 2.0, 1.0])
    expected = rows[:, None, None] * rows[:, None] * rows
    assert run(larger)[0, ..., 1] == pytest.approx(expected)
    with pytest.raises(ValueError, match="NCDHW or NDHWC"):
        layers.conv3d_transpose(tf.ones([1, 2, 2, 2, 1]), 2, 3, data_format="NHWC")


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_bags_of_words(dtype):
    ids, table = tf.constant([[1, 2, 0], [0, 0, 0], [1, 1, 3]], dtype), np.arange(8.0).reshape(4, 2)
    settings = {"initializer": tf.constant_initializer(table)}
    present = layers.bow_encoder(ids, 4, 2, **settings)
    sparse = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], tf.constant([1, 2, 1, 1, 3], dtype), [3, 3])
    given = layers.bow_encoder(sparse, 4, 2, scope="given", **settings)
    again = layers.bow_encoder(ids, 4, 2, sparse_lookup=False, scope="given", reuse=True)
    assert names() == ["bow_encoder/embeddings", "given/embeddings"] and present.shape.as_list() == [3, 2]
    values = run([present, given, again])
    assert values[0] == pytest.approx(np.array([table[1:3].mean(0), table[0], table[[1, 1, 3]].mean(0)]))
    assert values[1] == pytest.approx(values[0])
    assert values[2] == pytest.approx(np.array([table[:3].mean(0), table[0], table[[1, 1, 3]].mean(0)]))
    with pytest.raises(ValueError, match="vocab size"):
        layers.bow_encoder(ids, 4, None)
    with pytest.raises(TypeError, match="dense"):
        layers.bow_encoder(sparse, 4, 2, sparse_lookup=False)


def test_layers_that_are_computed_again():
    passes = []

    @layers.recompute_grad(use_data_dep=True)
    def scaled(x, is_recomputing=False):
        passes.append(is_recomputing)
        return x * x * tf.get_variable("scale", initializer=[1.0, 2.0, 3.0])

    x = tf.constant([2.0, 3.0, 4.0])
    with tf.variable_scope("outer"):
        y = scaled(x)
    values = run([y, *tf.gradients(y, [x, *tf.trainable_variables()])])
    assert passes == [False, True] and names() == ["outer/scale"]
    assert [list(value) for value in values] == [[4, 18, 48], [4, 12, 24], [4, 9, 16]]
    with tf.contrib.framework.arg_scope([layers.fully_connected], num_outputs=2):
        deep = layers.recompute_grad(lambda rows: layers.fully_connected(rows, scope="deep"))(tf.ones([1, 4]))
    assert len(tf.gradients(deep, tf.trainable_variables()[1:])) == 2 and len(tf.trainable_variables()) == 3


def test_columns_with_other_names():
    words = layers.sparse_column_with_keys("a", ["x", "y"])
    numbers = layers.real_valued_column("r", dimension=3, default_value=[1, 2, 3])
    weighted = layers.weighted_sparse_column(words, "w")
    spec = layers.create_feature_spec_for_parsing({"n": numbers, "w": weighted, "e": layers.embedding_column(words, 2)})
    assert set(spec) == {"r", "a", "w"} and spec["w"] == tf.VarLenFeature(tf.float32)
    assert list(spec["r"].shape) == [3] and list(spec["r"].default_value) == [1, 2, 3]
    other = layers.sparse_column_with_keys("b", ["x", "y"])
    shared = layers.shared_embedding_columns([words, other], 2, "sum", "table", tf.ones_initializer())
    rows = layers.input_from_feature_columns({"a": [["x", "y"]], "b": [["y", "z"]]}, shared)
    assert len(tf.global_variables()) == 1
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert session.run(rows).tolist() == [[2, 2, 1, 1]]
