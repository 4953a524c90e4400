"""Names that operations have when the program gives none: those that TensorFlow 2.21's `compat.v1` gives them.

Programs find tensors by these names (``get_tensor_by_name("dense/BiasAdd:0")``), and moving averages of tensors are
variables that are named after them.
"""

from __future__ import annotations

import pytest

import tfray as tf


def x(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, list(shape) or [2, 3], name="x")


OPERATORS = {
    "add": lambda: x() + x(),
    "sub": lambda: 1 - x(),
    "mul": lambda: x() * 2,
    "truediv": lambda: x() / 2,
    "floordiv": lambda: x() // 2,
    "mod": lambda: x() % 2,
    "pow": lambda: x() ** 2,
    "matmul": lambda: x() @ x(3, 2),
    "Neg": lambda: -x(),
    "Abs": lambda: abs(x()),
    "Less": lambda: x() < 1,
    "strided_slice": lambda: x()[0],
    "and": lambda: x(dtype=tf.bool) & True,
    "or": lambda: x(dtype=tf.bool) | x(dtype=tf.bool),
    "xor": lambda: x(dtype=tf.bool) ^ x(dtype=tf.bool),
    "LogicalNot": lambda: ~x(dtype=tf.bool),
}

FUNCTIONS = {
    "Add": lambda: tf.add(x(), 1.0),
    "Sub": lambda: tf.subtract(x(), 1.0),
    "Mul": lambda: tf.multiply(x(), 1.0),
    "div": lambda: tf.div(x(), x()),
    "truediv": lambda: tf.truediv(x(), x()),
    "floordiv": lambda: tf.floordiv(x(), x()),
    "FloorMod": lambda: tf.mod(x(), x()),
    "clip_by_value": lambda: tf.clip_by_value(x(), 0.0, 1.0),
    "clip_by_norm": lambda: tf.clip_by_norm(x(), 1.0),
    "clip_by_global_norm/clip_by_global_norm/_0": lambda: tf.clip_by_global_norm([x()], 1.0)[0][0],
    "global_norm/global_norm": lambda: tf.global_norm([x()]),
    "one_hot": lambda: tf.one_hot([1], 3),
    "StaticRegexReplace": lambda: tf.regex_replace("a", "a", b"b"),
    "RegexReplace": lambda: tf.regex_replace("a", "a", tf.constant("b")),
    "StaticRegexFullMatch": lambda: tf.strings.regex_full_match("a", "a"),
    "RegexFullMatch": lambda: tf.strings.regex_full_match("a", tf.constant("a")),
    "Pad": lambda: tf.pad(x(), [[1, 1], [1, 1]]),
    "Trace": lambda: tf.trace(x(3, 3)),
    "count_nonzero/Sum": lambda: tf.count_nonzero(x()),
    "ReduceLogSumExp": lambda: tf.reduce_logsumexp(x()),
    "moments/Squeeze": lambda: tf.nn.moments(x(), [0])[0],
    "moments/Squeeze_1": lambda: tf.nn.moments(x(), [0])[1],
    "moments/variance": lambda: tf.nn.moments(x(), [0], keep_dims=True)[1],
    "batchnorm/add_1": lambda: tf.nn.batch_normalization(x(), x(3), x(3), x(3), x(3), 1e-3),
    "FusedBatchNormV3": lambda: tf.nn.fused_batch_norm(x(1, 2, 2, 3), x(3), x(3))[0],
    "l2_normalize": lambda: tf.nn.l2_normalize(x(), 1),
    "softmax_cross_entropy_with_logits_sg/Reshape_2": lambda: tf.nn.softmax_cross_entropy_with_logits(
        labels=x(), logits=x()
    ),
    "softmax_cross_entropy_with_logits/Reshape_2": lambda: tf.nn.softmax_cross_entropy_with_logits_v2(x(), x()),
    "embedding_lookup/Identity": lambda: tf.nn.embedding_lookup(x(), x(2, dtype=tf.int32)),
    "in_top_k/InTopKV2": lambda: tf.nn.in_top_k(x(), x(2, dtype=tf.int32), 1),
    "map/TensorArrayStack/TensorArrayGatherV3": lambda: tf.map_fn(lambda row: row * 2, x()),
    "resize/ResizeBilinear": lambda: tf.image.resize_images(x(1, 4, 4, 3), [2, 2]),
    "per_image_standardization": lambda: tf.image.per_image_standardization(x(4, 4, 3)),
    "ExponentialDecay": lambda: tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 10, 0.9),
    "PolynomialDecay": lambda: tf.train.polynomial_decay(0.1, tf.train.get_or_create_global_step(), 10),
    "dense/BiasAdd": lambda: tf.layers.dense(x(), 4),
    "Mean": lambda: tf.reduce_mean(x()),
    "ArgMax": lambda: tf.argmax(x(), 1),
    "Softmax": lambda: tf.nn.softmax(x()),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_name_their_operations(name):
    first, second = OPERATORS[name](), OPERATORS[name]()
    assert (first.name, second.name) == (f"{name}:0", f"{name}_1:0")
    assert tf.get_default_graph().get_tensor_by_name(f"{name}:0") is first


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_name_their_operations(name):
    assert FUNCTIONS[name]().name == f"{name}:0"


def test_constants_of_an_operation_are_named_under_it():
    (x() + 1, x() + 2, tf.stack([x(), 1.0 * x()]))
    names = {op.name for op in tf.get_default_graph().get_operations() if op.type == "Const"}
    assert names == {"add/y", "add_1/y", "mul/x"}


def test_moving_averages_of_moments_are_named_as_in_tensorflow():
    mean, _ = tf.nn.moments(x(), [0])
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([mean])
    assert average.average(mean).op.name == "moments/Squeeze/ExponentialMovingAverage"


# -- results of control flow -----------------------------------------------------------------------------


def _cond(results=1, **options):
    """`tf.cond` whose functions return a tensor, or a list of several."""
    one, two = tf.constant(1.0), tf.constant(2.0)
    pick = (lambda value: value) if results == 1 else (lambda value: [value] * results)
    return tf.cond(one < two, lambda: pick(one + 1), lambda: pick(two + 1), **options)


def _loop(**options):
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), [0, 1.0], **options)


def _nested(inner):
    made = []

    def body(i):
        made.append(inner(i))
        return i + 1

    return [tf.while_loop(lambda i: i < 3, body, [0]), *made]


def _state_of(cell):
    with tf.variable_scope("encoder"):
        return tf.nn.dynamic_rnn(cell, tf.zeros([2, 4, 3]), [1, 2], dtype=tf.float32)[1]


RESULTS = {  # as TensorFlow 1.15 and 2.15 name them without control flow v2
    "cond": (_cond, ["cond/Merge"]),
    "cond of two": (lambda: _cond(2), ["cond/Merge", "cond/Merge_1"]),
    "cond with a name": (lambda: _cond(name="choice"), ["choice/Merge"]),
    "two conds": (lambda: [_cond(), _cond()], ["cond/Merge", "cond_1/Merge"]),
    "case": (lambda: tf.case([(tf.constant(1) > 0, lambda: 1)], default=lambda: 2), ["case/cond/Merge"]),
    "while_loop": (_loop, ["while/Exit", "while/Exit_1"]),
    "while_loop with a limit": (lambda: _loop(maximum_iterations=2), ["while/Exit_1", "while/Exit_2"]),
    "while_loop with a name": (lambda: _loop(name="steps"), ["steps/Exit", "steps/Exit_1"]),
    "loops in loops": (lambda: _nested(lambda i: _loop()[0]), ["while/Exit", "while/while/Exit"]),
    "cond in a loop": (
        lambda: _nested(lambda i: tf.cond(i > 1, lambda: i, lambda: i + 1)),
        ["while/Exit", "while/cond/Merge"],
    ),
    "variables of a body": (lambda: _nested(tf.convert_to_tensor), ["while/Exit", "while/Identity"]),
    "foldl": (lambda: tf.foldl(lambda a, x: a + x, tf.ones([3])), ["foldl/while/Exit_2"]),
    "an LSTM's state": (
        lambda: _state_of(tf.nn.rnn_cell.LSTMCell(3)),
        ["encoder/rnn/while/Exit_3", "encoder/rnn/while/Exit_4"],
    ),
}


@pytest.mark.parametrize("scope", ["", "model/"])
@pytest.mark.parametrize("case", RESULTS)
def test_results_of_control_flow_are_named_as_in_tensorflow(case, scope):
    build, expected = RESULTS[case]
    with tf.name_scope(scope):
        results = build()
    names = [tensor.op.name.removeprefix(scope) for tensor in tf.nest.flatten(results)]
    assert names == expected


def test_control_flow_is_fetched_and_fed_by_name():
    chosen = _cond()
    steps = _loop()[1]
    names = ["cond/pred_id:0", "cond/Merge:0", "while/Enter_1:0", "while/Exit_1:0"]
    with tf.Session() as session:
        assert session.run(names) == [True, 2, 1, 8]
        assert session.run([chosen, steps], {"cond/pred_id:0": False, "while/Enter_1:0": 2.0}) == [3, 16]
