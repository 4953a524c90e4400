"""Operations that only tfray has, written as operations of TensorFlow's: these compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.exchange.compositions import COMPOSED
from tfray.exchange.op_table import OWN_ATTRS, OWN_PART
from tfray.exchange.to_tensorflow import check_for_tensorflow
from tfray.formats.graph_proto import GraphDef
from tfray.ops.nn.shard_product_ops import shard_products
from tfray.ops.sparse.sparse_ops import distinct_coordinates as distinct

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def gradient_of(function, *inputs):
    return tf.gradients(function(*inputs), list(inputs))


def gradients_of_gathers(x):
    return [*gradient_of(lambda x: tf.gather(x, [[2, 0], [2, 1]], axis=1), x), *gradient_of(tf.identity, x)]


def lstm(x):
    cell = tf.nn.rnn_cell.BasicLSTMCell(2)
    outputs, state = tf.nn.static_rnn(cell, [x, x * 2], dtype=tf.float32)
    return [outputs[-1], state.c, *tf.gradients(outputs[-1], [x, *cell.trainable_weights])]


def sigmoid_cross_entropy(x):
    return [tf.nn.sigmoid_cross_entropy_with_logits(logits=x * 20, labels=tf.sigmoid(x))]


def distinct_coordinates(x):
    places = tf.cast(tf.abs(x[:, :2]) * 2, tf.int64) % 2
    found = distinct(places, [2, 2])
    return [found.distinct, found.group]


def products(x):
    return list(shard_products(x[:2], [1, 0], tf.concat([x, x * 2], 0)))


PROGRAMS = {
    "DistinctCoordinates": distinct_coordinates,
    "ShardProducts": products,
    "ReversedAxes": lambda x: [tf.transpose(x)],
    "SwappedAxes": lambda x: [tf.matrix_transpose(x)],
    "SequenceMask": lambda x: [
        tf.sequence_mask(tf.cast(tf.abs(x) * 3, tf.int32), longest, tf.float32) for longest in (4, None)
    ],
    "ExpandReduced": lambda x: gradient_of(lambda x: tf.reduce_sum(tf.reduce_sum(x * x, [-1]) ** 2), x),
    "SumToShape": lambda x: gradient_of(lambda x, y: x * y * y, x, x[:1, :]),
    "SliceGrad": lambda x: gradient_of(lambda x: tf.slice(x, [1, 0], [2, 3]) ** 2, x),
    "TileGrad": lambda x: gradient_of(lambda x: tf.tile(x, [2, 3]) * tf.ones([12]) * 2, x),
    "GatherGrad": gradients_of_gathers,
    "SpreadSegments": lambda x: gradient_of(lambda x: tf.unsorted_segment_sum(x, [1, 0, 1], 2) ** 2, x),
    "DynamicPartitionGrad": lambda x: gradient_of(lambda x: tf.dynamic_partition(x * x, [1, 0, 1], 2), x),
    "SoftmaxGrad": lambda x: gradient_of(lambda x: tf.nn.softmax(x) ** 2, x),
    "LogSoftmaxGrad": lambda x: gradient_of(lambda x: tf.nn.log_softmax(x) ** 2, x),
    "SigmoidCrossEntropyWithLogits": sigmoid_cross_entropy,
    "SaturateCast": lambda x: [tf.saturate_cast(x * 300, tf.int8)],
    "Sort": lambda x: [tf.sort(x), tf.sort(x, direction="DESCENDING")],
    "ArgSort": lambda x: [tf.argsort(x), tf.argsort(tf.round(x), direction="DESCENDING")],
    "TakeAlongLast": lambda x: gradient_of(lambda x: tf.gradients(tf.nn.top_k(x, 2)[0] ** 2, x)[0] ** 2, x),
    "PutAlongLast": lambda x: gradient_of(lambda x: tf.nn.top_k(x, 2)[0] ** 2, x),
    "KeepWhere": lambda x: gradient_of(lambda x: tf.where(x > 0, x * 2, x * x), x),
    "IsJpeg": lambda x: [tf.image.is_jpeg([b"\xff\xd8\xff\xe0", b"\xff\xd8", b"", b"GIF89a"])],
    "LSTMGates": lstm,
    "LSTMGatesGrad": lstm,
    "AllFinite": None,
}
"""Programs of one placeholder that have operations of each type. Replicas alone have the last."""


def test_each_type_is_tried():
    assert PROGRAMS.keys() == COMPOSED


CASES = [
    (kind, shape)
    for kind in PROGRAMS
    if kind != "AllFinite"
    for shape in ([None] if kind.endswith("Axes") else [[3, 4], [None, 4]])  # a known rank tells the axes
    if shape != [3, 4] or kind not in ("ExpandReduced", "SumToShape", "SliceGrad", "TileGrad")  # these have no types
]


@pytest.mark.rows(every=2)
@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_what_is_written_for_tensorflow_computes_the_same(kind, shape):
    x = tf.placeholder(tf.float32, shape, name="x")
    results = PROGRAMS[kind](x)
    graph = tf.get_default_graph()
    assert kind in {op.type for op in graph.get_operations()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        wanted = session.run(results, {x: X})
        state = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
    definition = graph.as_graph_def()
    check_for_tensorflow(definition)
    as_tensorflow_reads_it = GraphDef.FromString(definition.SerializeToString())
    for node in as_tensorflow_reads_it.node:
        for mark in (OWN_ATTRS, OWN_PART):
            node.attr.pop(mark, None)
    for kept, message in ((True, definition), (False, as_tensorflow_reads_it)):
        with tf.Graph().as_default() as again, tf.Session() as session:
            tf.import_graph_def(message, name="")
            assert (kind in {op.type for op in again.get_operations()}) is kept
            for name, value in state.items():
                session.run(f"{name}/Assign", {again.get_operation_by_name(f"{name}/Assign").inputs[1]: value})
            found = session.run([tensor.name for tensor in results], {"x:0": X})
        for result, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(result, expected, 1e-5, 1e-6)
            assert not kept or np.array_equal(result, expected)
