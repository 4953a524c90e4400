"""Members of layers, models and metrics that programs look at; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf

K = tf.keras


def names(things):
    return [thing.name for thing in things]


def test_submodules():
    inner = K.Sequential(
        [K.layers.Dense(2, input_shape=(3,), name="a"), K.layers.Activation("relu", name="b")], name="inner"
    )
    outer = K.Sequential([inner, K.layers.Dense(1, name="c")])
    assert names(outer.submodules) == ["inner", "c", "a", "b"] and names(inner.submodules) == ["a", "b"]
    inputs = K.Input((3,))
    model = K.Model(inputs, K.layers.Dense(2)(inputs))
    assert [type(each).__name__ for each in model.submodules] == ["InputLayer", "Dense"]
    assert K.layers.Dense(2).submodules == () and K.metrics.Mean().submodules == ()
    both = K.layers.Bidirectional(K.layers.LSTM(2, name="l"))
    both.build((None, 3, 4))
    assert {"forward_l", "backward_l"} < set(names(both.submodules))


def test_states_of_recurrent_layers():
    for layer, sizes in (
        (K.layers.LSTM(2), [2, 2]),
        (K.layers.GRU(3), [3]),
        (K.layers.RNN([K.layers.LSTMCell(2), K.layers.GRUCell(3)]), [2, 2, 3]),
    ):
        assert layer.state_spec is None
        layer(tf.zeros([2, 5, 4]))
        assert [each.shape for each in layer.state_spec] == [[None, size] for size in sizes]
        assert [each.ndim for each in layer.state_spec] == [2] * len(sizes)


def test_models_do_not_run_eagerly():
    model = K.Sequential([K.layers.Dense(1)])
    model.run_eagerly = False
    assert model.run_eagerly is False
    with pytest.raises(ValueError, match="`run_eagerly=True` if eager execution is enabled"):
        model.run_eagerly = True


def test_metrics_have_members_of_layers():
    metric = K.metrics.Mean(name="m")
    assert metric.built and metric.trainable and not metric.dynamic and metric.stateful
    assert names(metric.variables) == names(metric.non_trainable_weights) == ["total:0", "count:0"]
    assert (
        metric.non_trainable_variables == metric.weights
        and metric.trainable_weights == metric.trainable_variables == []
    )
    for name in ("losses", "updates", "metrics", "inbound_nodes", "outbound_nodes"):
        assert getattr(metric, name) == []
    assert metric.activity_regularizer is metric.input_spec is metric.compute_mask(None) is None
    K.backend.get_session().run(tf.local_variables_initializer())
    assert metric.get_weights() == [0.0, 0.0] and metric.count_params() == 2
    metric.set_weights([np.float32(4), np.float32(2)])
    assert K.backend.get_value(metric.result()) == 2.0
    with pytest.raises(ValueError, match="m"):
        metric.set_weights([np.zeros(2)])
    result = metric.apply([1.0, 2.0, 6.0])
    assert K.backend.get_value(result) == pytest.approx(2.6) and len(metric.updates) == 1
    for name in ("input", "output", "input_shape", "output_shape"):
        with pytest.raises(AttributeError, match="Layer m is not connected"):
            getattr(metric, name)
    assert K.metrics.AUC(num_thresholds=3).count_params() == 12


def test_updates_of_metrics():
    class Total(K.metrics.Metric):
        def __init__(self):
            super().__init__(name="total")
            self.sum = self.add_variable("sum", initializer="zeros")

        def update_state(self, values):
            return self.sum.assign_add(tf.reduce_sum(values))

        def result(self):
            return self.sum * 2

    metric = Total()
    update = metric.update_state([1.0, 2.0])
    metric.add_update(tf.no_op())
    metric.add_update([tf.no_op(), tf.no_op()])
    assert len(metric.updates) == len(metric.get_updates_for(None)) == 4 and metric.get_losses_for(None) == []
    session = K.backend.get_session()
    session.run(metric.sum.initializer)
    session.run(update)
    assert K.backend.get_value(metric.result()) == 6.0
    metric.build(None)
    metric.trainable = False
    assert metric.trainable is False


def test_references():
    one, other, variable = tf.constant(1.0), tf.constant(1.0), tf.Variable(1.0)
    assert one.experimental_ref() == one.experimental_ref() != other.experimental_ref()
    assert one.experimental_ref() != one and len({one.experimental_ref(), one.experimental_ref()}) == 1
    assert one.experimental_ref().deref() is one and variable.experimental_ref().deref() is variable
    assert repr(one.experimental_ref()) == f"<Reference wrapping {one!r}>"


def test_where_functions_begin_that_made_operations():
    def made():
        return tf.constant(1.0)

    (frame,) = made().op.traceback_with_start_lines
    assert frame[:4] == made().op.traceback[0] and frame[2] == "made"
    assert frame[4] == made.__code__.co_firstlineno == frame[1] - 1
