"""Elementwise operations on large arrays: computed together, part by part, they give what each alone would.

Compiled loops have functions of their own for `exp` and its kin, which differ in the last bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.interpreter import default_device, interpret
from tfray.ops.kernels import compiling, element_loops
from tfray.runtime.device import gpu_count

ROWS, COLUMNS = 411, 640  # more elements than the smallest fused array has, not divisible by the parts


def array(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape or (ROWS, COLUMNS)).astype(np.float32)


@pytest.fixture(autouse=True, params=["numpy", "compiled"])
def path(request, monkeypatch):
    """By the operations' kernels, and by compiled loops."""
    is_compiled = request.param == "compiled"
    if is_compiled and not compiling.can_compile():
        pytest.skip("numba is not installed")
    monkeypatch.setattr(element_loops, "can_compile", lambda: is_compiled)
    return request.param


def check(outputs, **feeds):
    """Run in a session, several times, and compare with the same operations one by one."""
    graph = tf.get_default_graph()
    fed = {graph.get_tensor_by_name(f"{name}:0"): value for name, value in feeds.items()}
    expected = interpret(outputs, fed, default_device())
    with tf.Session() as session:
        for _ in range(4):
            for found, wanted in zip(session.run(outputs, fed), expected, strict=True):
                assert found.dtype == wanted.dtype and found.shape == wanted.shape
                assert_same(found, wanted)


def assert_same(found, wanted):
    if found.dtype == np.float16 and gpu_count():  # a GPU rounds halves once, not after each operation
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)
    elif element_loops.can_compile():
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


def feed(name, dtype=tf.float32, shape=(ROWS, COLUMNS)):
    return tf.placeholder(dtype, shape, name=name)


def test_a_chain():
    x = feed("x")
    check([(x * 2 + 1) * tf.sigmoid(x)], x=array(0))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_sum_of_many(count):
    names = [f"x{i}" for i in range(count)]
    check([tf.add_n([feed(name) for name in names])], **{name: array(i) for i, name in enumerate(names)})


def test_results_that_others_need_too():
    x, y = feed("x"), feed("y")
    total = x + y
    root = tf.sqrt(tf.abs(total))
    scaled = root * tf.exp(-x)
    check([total, tf.reduce_sum(root, 1), scaled, tf.matmul(scaled, scaled, transpose_b=True)], x=array(0), y=array(1))


def test_inputs_that_are_broadcast():
    x, row, column, one = (
        feed("x"),
        feed("row", shape=[COLUMNS]),
        feed("column", shape=[ROWS, 1]),
        feed("one", shape=[1]),
    )
    wide = feed("wide", shape=[1, COLUMNS])
    normal = (x - column) * row + wide
    check([tf.nn.relu(normal) * one, normal], x=array(0), row=array(1, COLUMNS), column=array(2, ROWS, 1),
          one=array(3, 1), wide=array(4, 1, COLUMNS))  # fmt: skip


def test_rows_of_different_lengths_do_not_mix():
    x = feed("x", shape=[16, 32, 20, 30])
    planes, lines = feed("planes", shape=[20, 30]), feed("lines", shape=[30])
    first, second = feed("first", shape=[16, 32, 1, 1]), feed("second", shape=[16, 32, 20, 1])
    check([((x + planes) * lines - first) * second], x=array(0, 16, 32, 20, 30), planes=array(1, 20, 30),
          lines=array(2, 30), first=array(3, 16, 32, 1, 1), second=array(4, 16, 32, 20, 1))  # fmt: skip


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("axis", [0, 1, [0, 1], None])
@pytest.mark.parametrize("reduce", [tf.reduce_max, tf.reduce_mean, tf.reduce_sum, tf.reduce_prod])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_gradients_of_reductions_are_repeated(reduce, axis, dtype):
    x, y = feed("x", dtype), feed("y", dtype)
    (gradient,) = tf.gradients(reduce(tf.tanh(x), axis), x)
    check(
        [gradient * y + y, gradient], x=array(0).astype(dtype.as_numpy_dtype), y=array(1).astype(dtype.as_numpy_dtype)
    )


def test_gradients_of_reductions_over_the_middle_and_the_end():
    x = feed("x", shape=[16, 32, 20, 30])
    values = [tf.reduce_mean(tf.square(x), axis) for axis in ([1, 2], [2, 3], [0, 1], [0, 2], 3, -4)]
    gradients = [tf.gradients(value, x)[0] * x for value in values]
    check([tf.add_n(gradients), gradients[0] + gradients[1] * gradients[2]], x=array(0, 16, 32, 20, 30))


def test_other_dtypes_in_between():
    x, y = feed("x"), feed("y")
    positive = tf.logical_and(x > 0, tf.cast(y, tf.int32) > 0)
    wide = tf.cast(tf.where(positive, x, y), tf.float64) * 3
    check([wide, tf.cast(wide, tf.float32) + x, tf.cast(positive, tf.int64)], x=array(0), y=array(1))


def test_transposed_inputs():
    x, y = feed("x"), feed("y", shape=[COLUMNS, ROWS])
    check([tf.transpose(x) + y, tf.exp(tf.transpose(x)) * y], x=array(0), y=array(1, COLUMNS, ROWS))
    tf.reset_default_graph()
    x, y = feed("x", shape=[20, 40, 30, 16]), feed("y", shape=[16, 40, 20, 30])
    check([tf.transpose(x, [3, 1, 0, 2]) * y], x=array(0, 20, 40, 30, 16), y=array(1, 16, 40, 20, 30))


def test_gradients_of_activations():
    x = feed("x")
    activations = [tf.tanh, tf.sigmoid, tf.nn.relu, tf.nn.elu, tf.nn.softplus, tf.nn.selu, tf.nn.leaky_relu, tf.square]
    values = [activation(x) for activation in activations]
    check([*values, *tf.gradients([value * x for value in values], x)], x=array(0))


def test_sixteen_bit_floats():
    x, y = feed("x", tf.float16), feed("y", tf.float16)
    check([tf.sigmoid(x * y) + tf.tanh(y)], x=array(0).astype(np.float16), y=array(1).astype(np.float16))


def test_updates_see_the_values_from_before():
    start = array(0)
    variable = tf.Variable(start)
    step = variable.assign(tf.tanh(variable * 0.5 + 1) - variable)
    expected = start
    with tf.Session() as session:
        session.run(variable.initializer)
        for _ in range(4):
            session.run(step.op)
            expected = np.tanh(expected * np.float32(0.5) + np.float32(1)) - expected
        assert_same(session.run(variable), expected)


def test_within_loops():
    x = feed("x")
    _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y * 1.5) + x), [0, x])
    expected = value = array(0)
    for _ in range(5):
        expected = np.tanh(expected * np.float32(1.5)) + value
    with tf.Session() as session:
        for _ in range(3):
            assert_same(session.run(y, {x: value}), expected)


def test_an_error_names_the_operation():
    base, power = feed("base", tf.int32), feed("power", tf.int32)
    with tf.device("/cpu:0"):  # a GPU looks at no exponent, for which the step would wait
        result = tf.pow(base + 1, power, name="culprit") + 2
    negative = np.full((ROWS, COLUMNS), -1, np.int32)
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="integer powers") as caught,
    ):
        session.run(result, {base: negative, power: negative})
    assert caught.value.op_name == "culprit"


UNARY = (tf.tanh, tf.exp, tf.abs, tf.negative, tf.sigmoid, tf.nn.relu, tf.square)
BINARY = (tf.add, tf.subtract, tf.multiply, tf.maximum, tf.squared_difference)


@settings(max_examples=5, deadline=None)
@given(st.data())
def test_random_programs(data):
    with tf.Graph().as_default():
        shapes = [(ROWS, COLUMNS), (COLUMNS,), (ROWS, 1), ()]
        inputs = [feed(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
        values = list(inputs)
        for _ in range(data.draw(st.integers(2, 12))):
            first = data.draw(st.sampled_from(values))
            if data.draw(st.booleans()):
                made = data.draw(st.sampled_from(UNARY))(first)
            else:
                made = data.draw(st.sampled_from(BINARY))(first, data.draw(st.sampled_from(values)))
            values.append(tf.clip_by_value(made, -8.0, 8.0) if data.draw(st.booleans()) else tf.tanh(made))
        outputs = data.draw(st.lists(st.sampled_from(values[len(inputs) :]), min_size=1, unique=True))
        check(outputs, **{f"x{i}": array(i, *shape) if shape else array(i, 1)[0] for i, shape in enumerate(shapes)})
