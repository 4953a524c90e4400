"""Parts of a graph that are copied into another one."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.contrib import copy_graph


@pytest.mark.parametrize("scope", ["", "copies"])
def test_a_network_is_copied(scope):
    first, second = tf.Graph(), tf.Graph()
    with first.as_default():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        weights = tf.Variable([[1.0], [2.0]], name="weights")
        counter = tf.Variable(3.0, trainable=False, name="counter", collections=["counters", "variables"])
        y = tf.matmul(x, weights, name="y") + counter
        tf.add_to_collection("ends", y)
    copies = [copy_graph.copy_variable_to_graph(each, second, scope) for each in (weights, counter)]
    end = copy_graph.copy_op_to_graph(y, second, copies, scope)
    begin = f"{scope}/" if scope else ""
    assert end is copy_graph.get_copied_op(y, second, scope) and end.name == begin + y.name and end.graph is second
    assert second.get_collection(f"{begin}ends") == [end]
    assert second.get_collection(f"{begin}counters") == [copies[1]]
    with tf.Session(graph=second) as session:
        assert tf.trainable_variables() == [copies[0]]
        session.run([each.initializer for each in copies])
        found = session.run(end, {copy_graph.get_copied_op(x, second, scope): [[1.0, 10.0]]})
    np.testing.assert_array_equal(found, [[24.0]])
    count = len(second.get_operations())
    assert copy_graph.copy_op_to_graph(y, second, copies, scope) is end and len(second.get_operations()) == count


def test_what_cannot_be_copied():
    weights = tf.Variable(1.0, name="weights")
    with pytest.raises(KeyError, match="weights"):
        copy_graph.copy_op_to_graph(weights * 2.0, tf.Graph(), [])
    with pytest.raises(TypeError, match="not a Variable"):
        copy_graph.copy_variable_to_graph(tf.constant(1.0), tf.Graph())
    with pytest.raises(TypeError, match="Could not copy"):
        copy_graph.copy_op_to_graph("weights", tf.Graph(), [])
