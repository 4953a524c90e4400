"""Programs of TensorFlow 1's control flow with arrays, variables and effects; and graphs made by hand."""

from __future__ import annotations

from typing import Any

from tests.support.cases.control_flow_cases import (
    Program,
    case,
    chosen,
    chosen_twice,
    initialized,
    known_values,
    some,
    vector,
    with_variables,
)

# -- arrays of tensors, functions of elements, recurrent networks --------------------------------------


@case
def tensor_array(tf):
    x, steps = vector(tf)
    array = tf.TensorArray(tf.float32, size=4, clear_after_read=False)
    array = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))), [0, array])[
        1
    ]
    return Program([array.stack(), array.read(2)], steps)


@case
def tensor_array_gradient(tf):
    x, steps = vector(tf)
    read = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    written = tf.TensorArray(tf.float32, size=3)

    def body(i, y, a):
        return i + 1, y * read.read(i), a.write(i, tf.sin(y))

    _, y, written = tf.while_loop(lambda i, y, a: i < 3, body, [0, 1.0, written])
    return Program([y, *tf.gradients([y, written.stack()], [x])], steps)


@case
def tensor_array_in_branch(tf):
    x, p, steps = chosen(tf)

    def filled():
        array = tf.TensorArray(tf.float32, size=2)
        return array.write(0, x).write(1, x * 2).stack()

    y = tf.cond(p, filled, lambda: tf.zeros([2, 3]))
    return Program([y, *tf.gradients(y * y, [x])], steps)


@case
def map_fn(tf):
    x, steps = vector(tf)
    return Program([tf.map_fn(lambda e: e * e + 1, x)], steps)


@case
def map_fn_gradient(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.constant(some(2, seed=4))
    y = tf.map_fn(lambda row: tf.reduce_sum(row * w) * row, x)
    return Program([y, *tf.gradients(y, [x, w])], [{x: some(3, 2)}, {x: some(5, 2)}])


@case
def map_fn_with_branches_gradient(tf):
    x, steps = vector(tf)
    y = tf.map_fn(lambda e: tf.cond(e > 0, lambda: tf.exp(e), lambda: e * e), x)
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def scan_gradient(tf):
    x, steps = vector(tf)
    y = tf.scan(lambda total, e: tf.sin(total) * e + e, x)
    return Program([y, *tf.gradients(y, [x])], steps)


@case
def folds(tf):
    x, steps = vector(tf)
    y, z = tf.foldl(lambda a, e: a * e + 1, x), tf.foldr(lambda a, e: a - e * a, x)
    return Program([y, z, *tf.gradients(y + z, [x])], steps)


@with_variables
def dynamic_rnn(tf):
    x = tf.placeholder(tf.float32, [2, None, 3], name="x")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), x, dtype=tf.float32)
    return Program([outputs, *state], [{x: some(2, 3, 3)}, {x: some(2, 5, 3)}], known_values(tf))


@with_variables
def dynamic_rnn_gradient(tf):
    x = tf.placeholder(tf.float32, [2, None, 3], name="x")
    lengths = tf.placeholder(tf.int32, [2], name="lengths")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), x, lengths, dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(state[0])
    gradients = tf.gradients(loss, [x, *tf.trainable_variables()])
    return Program([outputs, *gradients], [{x: some(2, 4, 3), lengths: [4, 2]}], known_values(tf))


@with_variables
def bidirectional_rnn_training(tf):
    x = tf.placeholder(tf.float32, [2, 4, 3], name="x")
    cells = [tf.nn.rnn_cell.GRUCell(3) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, sequence_length=[4, 3], dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.concat(outputs, 2) - tf.concat([x, x], 2)))
    train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
    with tf.control_dependencies([train]):
        variables = [tf.identity(each.read_value()) for each in tf.trainable_variables()]
    return Program([loss, *variables], [{x: some(2, 4, 3)}] * 3, known_values(tf))


@with_variables
def lstm_training(tf):
    x = tf.placeholder(tf.float32, [2, None, 3], name="x")
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - x))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return Program([loss, train], [{x: some(2, 4, 3)}] * 3, known_values(tf))


@with_variables
def raw_rnn(tf):
    x = tf.placeholder(tf.float32, [4, 2, 3], name="x")
    inputs = tf.TensorArray(tf.float32, size=4).unstack(x)
    cell = tf.nn.rnn_cell.BasicRNNCell(3)

    def loop_fn(time, output, state, _):
        ended = time >= tf.constant([4, 2])
        following = tf.cond(tf.reduce_all(ended), lambda: tf.zeros([2, 3]), lambda: inputs.read(time))
        return ended, following, tf.zeros([2, 3]) if output is None else state, output, None

    outputs, state, _ = tf.nn.raw_rnn(cell, loop_fn)
    outputs = outputs.stack()
    gradients = tf.gradients(tf.reduce_sum(tf.square(outputs)), tf.trainable_variables())
    return Program([outputs, state, *gradients], [{x: some(4, 2, 3)}], known_values(tf))


# -- variables and effects -----------------------------------------------------------------------------


def counter(tf: Any, name: str = "counter", value: Any = 1.0) -> Any:
    """A variable."""
    return tf.get_variable(name, initializer=tf.constant(value))


@with_variables
def variable_in_branches(tf):
    x, p, steps = chosen(tf)
    v = counter(tf, value=[1.0, 2.0, 3.0])
    y = tf.cond(p, lambda: v * x, lambda: v + x)
    return Program([y, *tf.gradients(y, [v])], steps, initialized(tf))


@with_variables
def assignment_in_branch(tf):
    x, p, steps = chosen(tf)
    v = counter(tf)
    y = tf.cond(p, lambda: tf.assign_add(v, 2.0) + x, lambda: tf.assign(v, 10.0) - x)
    with tf.control_dependencies([y]):
        return Program([y, tf.identity(v.read_value())], [*steps, steps[0]], initialized(tf))


@with_variables
def assignments_returned_from_branches(tf):
    _, p, steps = chosen(tf)
    v, w = counter(tf), counter(tf, "other", 5.0)
    y = tf.cond(p, lambda: tf.assign_add(v, 2.0), lambda: tf.assign_sub(w, 1.0))
    with tf.control_dependencies([y]):
        return Program([y, tf.identity(v.read_value()), tf.identity(w.read_value())], steps, initialized(tf))


@with_variables
def operations_in_branches(tf):
    _, p, steps = chosen(tf)
    v = counter(tf)
    done = tf.cond(p, lambda: tf.group(tf.assign_add(v, 2.0)), lambda: tf.no_op())
    with tf.control_dependencies([done]):
        return Program([tf.identity(v.read_value())], [*steps, *steps], initialized(tf))


@with_variables
def order_of_effects_in_branch(tf):
    x, p, steps = chosen(tf)
    v = counter(tf)

    def effects():
        with tf.control_dependencies([tf.assign(v, v.read_value() * 2)]):
            first = tf.identity(v.read_value())
        with tf.control_dependencies([first]):
            second = tf.assign_add(v, 3.0)
        with tf.control_dependencies([second]):
            return first, tf.identity(v.read_value())

    return Program(list(tf.cond(p, effects, lambda: (tf.constant(0.0), x[0]))), [*steps, steps[0]], initialized(tf))


@with_variables
def value_before_initialization(tf):
    v = counter(tf)
    y = tf.cond(tf.is_variable_initialized(v), v.read_value, lambda: tf.constant(4.0))
    with tf.control_dependencies([y]):
        return Program([y, tf.assign(v, 3.0).op], [{}, {}])


@with_variables
def assignment_in_loop(tf):
    x, steps = vector(tf)
    v = counter(tf)

    def body(i, y):
        with tf.control_dependencies([tf.assign_add(v, tf.cast(i, tf.float32))]):
            return i + 1, y + v.read_value()

    i, y = tf.while_loop(lambda i, y: i < 4, body, [0, x], parallel_iterations=1)
    with tf.control_dependencies([y]):
        return Program([i, y, tf.identity(v.read_value())], steps, initialized(tf))


@with_variables
def assignment_in_branch_in_loop(tf):
    x, steps = vector(tf)
    v = counter(tf)

    def body(i, y):
        added = tf.cond(tf.equal(i % 2, 0), lambda: tf.identity(tf.assign_add(v, 1.0)), lambda: v.read_value() * 10)
        return i + 1, y + added

    _, y = tf.while_loop(lambda i, y: i < 4, body, [0, x], parallel_iterations=1)
    with tf.control_dependencies([y]):
        return Program([y, tf.identity(v.read_value())], steps, initialized(tf))


@with_variables
def variable_in_condition(tf):
    v = counter(tf)

    def body(i):
        with tf.control_dependencies([tf.assign_add(v, 1.5)]):
            return i + 1

    i = tf.while_loop(lambda i: v.read_value() < 7, body, [0], parallel_iterations=1)
    return Program([i], [{}, {}], initialized(tf))


@with_variables
def loop_training(tf):
    x, steps = vector(tf)
    w = counter(tf, value=[0.5, 0.4, 0.3])
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.sin(y * w) + x), [0, x])[1]
    loss = tf.reduce_sum(tf.square(y))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    return Program([loss, train], [steps[0]] * 4, initialized(tf))


@with_variables
def normalization_in_training_and_after(tf):
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    mean, variance = counter(tf, "mean", [0.0] * 3), counter(tf, "variance", [1.0] * 3)

    def updated():
        batch_mean, batch_variance = tf.nn.moments(x, [0])
        with tf.control_dependencies(
            [tf.assign(mean, mean * 0.9 + batch_mean * 0.1), tf.assign(variance, variance * 0.9 + batch_variance * 0.1)]
        ):
            return tf.identity(batch_mean), tf.identity(batch_variance)

    used_mean, used_variance = tf.cond(p, updated, lambda: (mean.read_value(), variance.read_value()))
    y = tf.nn.batch_normalization(x, used_mean, used_variance, None, None, 1e-3)
    steps = [{x: some(4, 3, seed=k), p: k < 2} for k in range(3)]
    return Program([y, *tf.gradients(y * y, [x])], steps, initialized(tf))


@with_variables
def embedding_in_branch_training(tf):
    _, p, _ = chosen(tf)
    ids = tf.placeholder(tf.int32, [3], name="ids")
    table = counter(tf, "table", some(5, 2).tolist())
    y = tf.cond(p, lambda: tf.nn.embedding_lookup(table, ids), lambda: tf.nn.embedding_lookup(table, ids + 1) * 2)
    loss = tf.reduce_sum(tf.square(y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    steps = [{p: True, ids: [0, 1, 0]}, {p: False, ids: [0, 2, 3]}, {p: True, ids: [4, 1, 2]}]
    return Program([loss, train], steps, initialized(tf))


# -- what no function of the interface builds ----------------------------------------------------------


@with_variables
def effect_without_merge(tf):
    _, p, steps = chosen(tf)
    v = counter(tf)
    _, taken = tf.raw_ops.Switch(data=tf.constant(2.0), pred=p)
    done = tf.assign_add(v, taken).op
    return Program([done, p], steps, initialized(tf))


@case
def merge_of_four(tf):
    x, p, q, steps = chosen_twice(tf)
    first = tf.raw_ops.Switch(data=x, pred=p)
    inner = [tf.raw_ops.Switch(data=each, pred=q) for each in first]
    values = [inner[0][1] * 2, inner[1][0] * 3, inner[0][0] * 5, inner[1][1] * 7]
    merged = tf.raw_ops.Merge(inputs=values)
    return Program([merged.output, merged.value_index], steps)


@case
def merge_that_tells_its_input(tf):
    x, p, steps = chosen(tf)
    no, yes = tf.raw_ops.Switch(data=x, pred=p)
    merged = tf.raw_ops.Merge(inputs=[yes * 2, no])
    return Program([merged.output + tf.cast(merged.value_index, tf.float32)], steps)


@case
def switch_for_merge_and_switch(tf):
    x, p, q, steps = chosen_twice(tf)
    no, yes = tf.raw_ops.Switch(data=x, pred=p)
    inner_no, inner_yes = tf.raw_ops.Switch(data=yes, pred=q)
    inner = tf.raw_ops.Merge(inputs=[inner_no + 1, inner_yes * 2]).output
    plain = tf.raw_ops.Merge(inputs=[no, yes]).output
    return Program([tf.raw_ops.Merge(inputs=[no * 3, inner + yes]).output, plain], steps)


@case
def dead_control_input(tf):
    x, p, steps = chosen(tf)
    no, yes = tf.raw_ops.Switch(data=x, pred=p)
    with tf.control_dependencies([tf.identity(no)]):
        first = tf.constant([1.0, 2.0, 3.0])
    with tf.control_dependencies([tf.identity(yes)]):
        second = tf.constant([4.0, 5.0, 6.0])
    return Program([tf.raw_ops.Merge(inputs=[first, second]).output], steps)


@with_variables
def trigger_after_branch(tf):
    _, p, steps = chosen(tf)
    v = counter(tf)
    no, yes = tf.raw_ops.Switch(data=tf.constant(2.0), pred=p)
    effects = [tf.assign_add(v, yes), tf.assign_sub(v, no * 3)]
    with tf.control_dependencies(effects):
        trigger = tf.raw_ops.ControlTrigger()
    with tf.control_dependencies([trigger]):
        return Program([tf.identity(v.read_value())], steps, initialized(tf))


@case
def two_predicates_for_one_value(tf):
    x, p, q, steps = chosen_twice(tf)
    first = tf.raw_ops.Switch(data=x, pred=p)
    second = tf.raw_ops.Switch(data=x * 2, pred=q)
    both = [[a + b for b in second] for a in first]
    by_second = [tf.raw_ops.Merge(inputs=row).output for row in both]
    return Program([tf.raw_ops.Merge(inputs=by_second).output], steps)
