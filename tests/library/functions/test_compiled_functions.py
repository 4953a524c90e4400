"""Functions and scopes that TensorFlow compiles: `tf.xla`. Expected names and values are those of TensorFlow 1.15."""

from __future__ import annotations

import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run

compiled = tf.xla.experimental.compile


@pytest.mark.parametrize(
    ("computation", "inputs", "expected"),
    [
        (lambda x: x + 1, [1], [2]),
        (lambda x, y: (x + y, x * y), [2, 3], [5, 6]),
        (lambda x: [x], [1.0], [1.0]),
        (lambda x: {"a": x}, [4], {"a": 4}),
        (lambda inner: inner["a"] + inner["b"], [{"a": 1, "b": 2}], [3]),
        (lambda pair: pair[0] + pair[1], [[1, 2]], [3]),
        (lambda x: ((x, x + 1), x + 2), [1], ((1, 2), 3)),
        (lambda: 3, None, [3]),
    ],
)
def test_values_are_nested_as_the_function_returned_them(computation, inputs, expected):
    assert run(compiled(computation, inputs)) == expected


def test_operations_run_with_the_tensors():
    def computation(x):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        return x * 2, tf.assign_add(total, x).op

    (doubled,) = compiled(computation, [3.0])
    assert doubled.name == "output_0:0" and not tf.get_variable_scope().use_resource
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(doubled) == 6
        assert session.run(tf.global_variables()) == [3]


@pytest.mark.parametrize("computation", [lambda x: None, lambda x: tf.no_op()])
def test_without_a_tensor_there_is_an_operation(computation):
    operation = compiled(computation, [1])
    assert (operation.name, operation.type) == ("output_0", "NoOp")
    assert run(operation) is None


@pytest.mark.parametrize(
    ("computation", "inputs", "kind", "message"),
    [
        (lambda x: x, 3, TypeError, "inputs must be a list"),
        (lambda x: (tf.no_op(), x), [1], ValueError, "zero or more Tensor values followed by zero or more Operations"),
        (lambda x: {"a": tf.no_op()}, [1], ValueError, "does not support Operation as return value in non-flat"),
        (lambda x: object(), [1], ValueError, "must all either be Operations or convertible to Tensors"),
    ],
)
def test_what_is_refused(computation, inputs, kind, message):
    with pytest.raises(kind, match=message):
        compiled(computation, inputs)


def test_scopes_and_settings_change_no_value():
    with tf.xla.experimental.jit_scope(compile_ops=lambda node: True, separate_compiled_gradients=True) as scope:
        x = tf.constant(3.0)
        y = x * x
    with tf.experimental.function_executor_type("executor"):
        total = tf.function(lambda value: value + 1.0)(y)
    tf.experimental.output_all_intermediates(True)
    assert scope is None and run([total, tf.gradients(y, x)]) == [10, [6]]


def test_older_names():
    compiler = tf.contrib.compiler
    assert compiler.jit.experimental_jit_scope is tf.xla.experimental.jit_scope
    assert compiler.xla.compile is tf.xla.experimental.compile

    def model_fn(features):
        return features

    assert compiler.xla.estimator_model_fn(model_fn) is compiler.xla.estimator_model_fn()(model_fn) is model_fn


def test_a_fact():
    fact = tf.user_ops.my_fact()
    assert fact.name == "Fact:0" and run(fact) == b"0! == 1"
