"""Programs of TensorFlow 1 with gradients of TensorArrays: in loops within loops, in branches, several of one array."""

from __future__ import annotations

import numpy as np

from tests.support.cases.control_flow_cases import Program, case, chosen, known_values, some, vector, with_variables


@case
def nested_map_fn_gradient(tf):
    x = tf.placeholder(tf.float32, [None, None], name="x")
    w = tf.constant(1.5)
    y = tf.map_fn(lambda row: tf.map_fn(lambda e: tf.sin(e) * w + tf.reduce_sum(row), row), x)
    return Program([y, *tf.gradients(y, [x, w])], [{x: some(2, 3)}, {x: some(4, 1)}])


@case
def arrays_of_turns_gradient(tf):
    x, steps = vector(tf)

    def body(i, total):
        array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x * total)
        squares = tf.TensorArray(tf.float32, size=3)

        def inner(j, squares, last):
            e = array.read(j)
            return j + 1, squares.write(j, e * e), last + e * tf.cast(i + 1, tf.float32)

        _, squares, last = tf.while_loop(lambda j, *_: j < 3, inner, [0, squares, 0.0])
        return i + 1, tf.reduce_mean(squares.stack()) + last

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(0.5)])
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def scan_in_map_fn_gradient(tf):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.map_fn(lambda row: tf.scan(lambda a, e: a * e + tf.cos(a), row), x)
    return Program([y, *tf.gradients(tf.reduce_sum(y * y), [x])], [{x: some(2, 3)}])


@case
def two_gradients_of_one_array(tf):
    x, steps = vector(tf)
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * array.read(i)), [0, 1.0])
    z = array.read(1) * array.stack()
    return Program([y, z, *tf.gradients(y, [x]), *tf.gradients(z, [x]), *tf.gradients([y, z], [x])], steps)


@case
def scatter_and_gather_gradient(tf):
    x = tf.placeholder(tf.float32, [3, 2], name="x")
    array = tf.TensorArray(tf.float32, size=5, clear_after_read=False).scatter([4, 0, 2], x)
    y = array.gather([2, 4, 2]) * tf.constant(some(3, 2, seed=5))
    return Program([y, *tf.gradients(y, [x])], [{x: some(3, 2)}])


@case
def elements_that_are_not_read_gradient(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    count = tf.shape(x)[0]
    array = tf.TensorArray(tf.float32, size=count, clear_after_read=False)
    _, array = tf.while_loop(lambda i, _: i < count, lambda i, a: (i + 1, a.write(i, tf.sin(x[i]))), [0, array])
    y = array.read(count - 1) * array.read(0)
    return Program([y, *tf.gradients(y, [x])], [{x: some(4, 2)}, {x: some(1, 2)}])


@case
def split_and_concat_gradient(tf):
    x, v = tf.placeholder(tf.float32, [6, 2], name="x"), tf.placeholder(tf.float32, [1, 2], name="v")
    parts = tf.TensorArray(tf.float32, size=3, clear_after_read=False, infer_shape=False).split(x, [1, 3, 2])
    joined = tf.TensorArray(tf.float32, size=3, infer_shape=False)
    joined = joined.write(0, parts.read(1) * 2.0).write(1, v).write(2, tf.sin(parts.read(2)))
    y = joined.concat() * tf.constant(some(6, 2, seed=3))
    return Program([y, *tf.gradients(y, [x, v])], [{x: some(6, 2), v: some(1, 2, seed=1)}])


@case
def concat_in_loop_gradient(tf):
    x = tf.placeholder(tf.float32, [4, 2], name="x")

    def body(i, total):
        parts = tf.TensorArray(tf.float32, size=2, infer_shape=False, clear_after_read=False).split(x * total, [3, 1])
        both = tf.TensorArray(tf.float32, size=2, infer_shape=False).write(0, parts.read(1)).write(1, parts.read(0))
        return i + 1, total + tf.reduce_sum(tf.square(both.concat()[1:]))

    _, y = tf.while_loop(lambda i, _: i < 2, body, [0, 0.5])
    return Program([y, *tf.gradients(y, [x])], [{x: some(4, 2) / 2}])


@case
def array_read_in_one_branch_gradient(tf):
    x, p, steps = chosen(tf)
    array = tf.TensorArray(tf.float32, size=2, clear_after_read=False).write(0, x * x).write(1, x)
    y = tf.cond(p, lambda: array.read(0) * 3.0, lambda: tf.sin(x))
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def array_read_in_some_turns_gradient(tf):
    x, steps = vector(tf)
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y + tf.exp(array.read(i)), lambda: y * 2.0)

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def array_written_in_some_turns_gradient(tf):
    x, steps = vector(tf)

    def body(i, a):
        return i + 1, tf.cond(x[0] > 0, lambda: a.write(i, x * x), lambda: a.write(i, tf.sin(x)))

    _, array = tf.while_loop(lambda i, _: i < 3, body, [0, tf.TensorArray(tf.float32, size=3)])
    y = array.stack()
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def map_fn_in_branch_gradient(tf):
    x, p, steps = chosen(tf)
    y = tf.cond(p, lambda: tf.map_fn(lambda e: e * e, x), lambda: tf.exp(x))
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def no_turns_gradient(tf):
    x = tf.placeholder(tf.float32, [3, 2], name="x")
    turns = tf.placeholder(tf.int32, [], name="turns")
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    _, y = tf.while_loop(lambda i, _: i < turns, lambda i, y: (i + 1, y + array.read(i) * y), [0, x[0]])
    return Program([y, *tf.gradients(y, [x])], [{x: some(3, 2), turns: 0}, {x: some(3, 2), turns: 2}])


@case
def growing_array_gradient(tf):
    x, steps = vector(tf)
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)

    def body(y, i, a):
        return y * 1.5, i + 1, a.write(i, x * y)

    _, count, array = tf.while_loop(lambda y, *_: y < 5.0, body, [1.0, 0, array])
    y = array.stack()
    return Program([y, count, array.size(), *tf.gradients(y * array.read(1), [x])], steps)


@case
def gradient_arrays_by_hand(tf):
    x, steps = vector(tf)
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    first, second = array.grad("mine"), array.grad("yours")
    first = first.write(0, 2.0).write(2, x[0]).write(0, x[1])
    second = second.scatter([0, 1], x[1:])
    third = array.grad("mine", flow=array.grad("others", flow=first.flow).write(0, x[2]).flow)
    return Program([third.stack(), second.read(2), second.size()], steps)


@case
def gradient_array_with_more_dimensions(tf):
    x = tf.placeholder(tf.float32, [3, 2], name="x")
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    prefix = tf.constant([4], tf.int32)
    handle, flow = tf.raw_ops.TensorArrayGradWithShape(
        handle=array.handle, flow_in=array.flow, shape_to_prepend=prefix, source="stacked"
    )
    value = tf.constant(some(4, 2, seed=2)) * x[0]
    for index in (1, 1):
        flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=index, value=value, flow_in=flow)
    rows = tf.raw_ops.TensorArrayGatherV3(handle=handle, indices=[0, 1, 2], flow_in=flow, dtype=tf.float32)
    return Program([rows], [{x: some(3, 2)}])


@with_variables
def lstm_training_by_adam(tf):
    x = tf.placeholder(tf.float32, [3, None, 4], name="x")
    lengths = tf.placeholder(tf.int32, [3], name="lengths")
    targets = tf.placeholder(tf.int32, [3], name="targets")
    cell = tf.nn.rnn_cell.LSTMCell(5, use_peepholes=True)
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32, swap_memory=True)
    weights = tf.get_variable("weights", [5, 4])
    logits = tf.matmul(state.h, weights) + tf.reduce_mean(outputs[:, :, :4], 1)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    feeds = [
        {x: some(3, 4 + step % 3, 4, seed=step), lengths: np.array([4, 1 + step % 4, 2]), targets: [0, 3, 1]}
        for step in range(20)
    ]
    return Program([loss, train], feeds, known_values(tf))


@with_variables
def rnn_in_loop_gradient(tf):
    x = tf.placeholder(tf.float32, [2, None, 3], name="x")
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    cell.build(tf.TensorShape([2, 3]))

    def body(i, y):
        outputs, _ = tf.nn.dynamic_rnn(cell, y, [3, 2], dtype=tf.float32)
        return i + 1, outputs + x

    invariants = [tf.TensorShape([]), tf.TensorShape([2, None, 3])]
    _, y = tf.while_loop(lambda i, _: i < 2, body, [0, x], shape_invariants=invariants)
    return Program([y, *tf.gradients(y * y, [x, *tf.trainable_variables()])], [{x: some(2, 3, 3)}], known_values(tf))
