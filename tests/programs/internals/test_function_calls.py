"""Branches, loops, calls and gradients of functions that `Defun` makes. Values are those of TensorFlow 1.15."""

import numpy as np
import pytest

import tfray as tf
from tfray.library.functions.traced_function import Defun
from tfray.programs.internals.function_calls import for_, gradient, if_, partitioned_call, remote_call, while_


@Defun(tf.float32)
def twice(x):
    return x * 2


@Defun(tf.float32)
def thrice_and_one(x):
    return x * 3 + 1


@Defun(tf.float32, tf.float32)
def is_positive(n, x):
    return n > 0


@Defun(tf.float32, tf.float32)
def add_and_count_down(n, x):
    return n - 1, x + n


@Defun(tf.int32, tf.float32)
def add_number(i, x):
    return x + tf.to_float(i)


@pytest.mark.parametrize(("fed", "expected"), [(9.0, 18.0), (-8.0, -23.0), (0.0, 1.0)])
def test_a_branch_is_chosen(session, fed, expected):
    x = tf.placeholder(tf.float32)
    (result,) = if_(tf.greater(x, 0), [x], twice, thrice_and_one)
    assert session.run(result, {x: fed}) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [(0.0, 7.0), (1.5, 4.0), (0, 7.0), (3, 4.0), ("", 7.0), ("a", 4.0), (np.zeros(2), 4.0), (np.zeros(0), 7.0)],
)
def test_a_condition_may_be_a_number_a_string_or_an_array(session, condition, expected):
    assert session.run(if_(condition, [2.0], twice, thrice_and_one)) == [expected]


@pytest.mark.parametrize(("n", "expected"), [(20.0, [0.0, 210.0]), (100.0, [0.0, 5050.0])])
def test_a_loop_runs_while_its_condition_holds(session, n, expected):
    assert session.run(while_([n, 0.0], is_positive, add_and_count_down)) == expected


def test_a_value_of_a_loop_may_change_its_shape(session):
    @Defun(tf.float32, tf.float32)
    def grow(n, x):
        return n - 1, tf.concat([x, [n]], 0)

    values = while_([3.0, np.zeros(1, np.float32)], is_positive, grow)
    np.testing.assert_array_equal(session.run(values[1]), [0, 3, 2, 1])


def test_a_body_may_read_what_is_around_it(session):
    v = tf.Variable(1.0)

    @Defun(tf.float32, tf.float32)
    def body(n, x):
        return n - 1, x + v

    session.run(v.initializer)
    assert session.run(while_([3.0, 0.0], is_positive, body)) == [0.0, 3.0]


@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize(
    ("bounds", "expected"), [((1, 21, 1), 210.0), ((100, 0, -1), 5050.0), ((0, 10, 3), 18.0), ((4, 4, 1), 0.0)]
)
def test_a_counted_loop_has_the_numbers_of_a_range(session, bounds, expected, rewritten):
    assert session.run(for_(*bounds, [0.0], add_number, rewrite_with_while=rewritten)) == [expected]


def test_a_counted_loop_without_values_runs_for_its_effects(session):
    v = tf.Variable(0, use_resource=True)

    @Defun(tf.int32)
    def body(i):
        v.assign_add(i)

    session.run(v.initializer)
    assert for_(0, 5, 1, [], body) == []
    session.run(tf.get_default_graph().get_operation_by_name("For"))
    assert session.run(v.value()) == 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: for_([0], 10, 1, [0.0], add_number), "must be a scalar"),
        (lambda: for_(0, 10, -1, [0.0], add_number), "Invalid start/limit/delta"),
        (lambda: for_(0, 10, 0, [0.0], add_number), "Invalid start/limit/delta"),
        (
            lambda: for_(0, 10, 1, [0.0], Defun(tf.int32, tf.float32)(lambda i, x: (x, x))),
            "For loop body returned 2 arguments. Expected: 1",
        ),
        (
            lambda: while_([1.0, 0.0], is_positive, Defun(tf.float32, tf.float32)(lambda n, x: (n, x, x))),
            "While loop body returned 3 arguments. Expected: 2",
        ),
        (
            lambda: while_([1.0, 0.0], Defun(tf.float32, tf.float32)(lambda n, x: (n > 0, x)), add_and_count_down),
            "Expected a single scalar.*got 2 tensors",
        ),
        (lambda: partitioned_call([1.0], twice, [tf.int32]), "twice returns .*float32.*, expected are .*int32"),
    ],
)
def test_what_does_not_fit_is_refused(session, make, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(make())


def test_the_condition_of_a_loop_takes_what_the_body_takes():
    with pytest.raises(ValueError, match="signatures do not match"):
        while_([1.0, 0.0], twice, add_and_count_down)
    v = tf.constant(1.0)
    with pytest.raises(ValueError, match="without implicitly captured inputs"):
        while_([1.0, 0.0], Defun(tf.float32, tf.float32)(lambda n, x: n > v), add_and_count_down)


def test_the_gradient_of_a_function(session):
    @Defun(tf.float32, tf.float32)
    def f(x, y):
        return 2 * x * x * x + 3 * x * x + 4 * x + 8

    assert session.run(gradient([1.0, 5.0, 1.0], f)) == [16.0, 0.0]


def test_a_function_is_called_on_another_device():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        a = tf.Variable(2.0)
        results = remote_call("/cpu:1", [a], [tf.float32], twice)
        session.run(a.initializer)
        assert session.run(results) == [4.0]
    assert any(op.type == "Mul" and "CPU:1" in op.device for op in tf.get_default_graph().get_operations())


def test_a_function_is_called_on_several_devices():
    @Defun(tf.float32, tf.float32)
    def f(x, y):
        with tf.device("/cpu:0"):
            a = x + x
        with tf.device("/cpu:1"):
            return a + y, a

    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run(partitioned_call([1.0, 2.0], f)) == [4.0, 2.0]
        assert session.run(partitioned_call(args=[1.0], f=twice, tout=[tf.float32])) == [2.0]


def test_a_function_without_results_gives_an_operation(session):
    v = tf.Variable(1.0, use_resource=True)

    @Defun()
    def f():
        v.assign_add(2.0)

    session.run(v.initializer)
    made = partitioned_call([], f)
    assert isinstance(made, tf.Operation)
    session.run(made)
    assert session.run(v.value()) == 3.0
