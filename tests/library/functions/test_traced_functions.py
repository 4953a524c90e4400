"""`tf.function`, `tf.wrap_function` and `Defun`: traced once for each signature, called many times."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run
from tfray.library.functions.traced_function import Defun

X = np.float32([1, 2, 3])


def counted(function):
    """The function as one of `tf.function`, and a list that grows with each trace."""
    traces = []

    def traced(*args, **kwargs):
        traces.append(args)
        return function(*args, **kwargs)

    return tf.function(traced), traces


def test_a_function_is_traced_once_for_each_signature():
    scaled, traces = counted(lambda x, y=2.0: x * y)
    x = tf.constant(X)
    calls = [scaled(x), scaled(x + 1), scaled(X), scaled(x, 2.0), scaled(x, 3.0), scaled(tf.constant([1.0])), scaled(x)]
    found = run(calls)
    expected = [X * 2, X * 2 + 2, X * 2, X * 2, X * 3, [2], X * 2]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted)
    # float32 of shape [3] with y = 2 left out and y = 2 given, and with y = 3; then the shape [1].
    assert len(traces) == 4
    assert calls[0].shape == [3] and calls[5].shape == [1]


def test_arguments_and_results_are_nested():
    @tf.function
    def swap(pair, options=None):
        return {"sum": pair[0] + pair[1], "rest": [pair[1], None, options["x"] * 2]}

    result = swap((tf.constant(1.0), tf.constant(2.0)), options={"x": tf.constant(4)})
    assert result["rest"][1] is None
    assert run([result["sum"], result["rest"][0], result["rest"][2]]) == [3, 2, 8]


def test_gradients_flow_through_calls_and_captured_tensors():
    x, factor = tf.constant(X), tf.constant([1.0, 10, 100])
    f = tf.function(lambda z: tf.reduce_sum(z * z * factor))
    total = f(x) + f(2 * x)
    d_x, d_factor = run(tf.gradients(total, [x, factor]))
    np.testing.assert_allclose(d_x, 10 * X * [1, 10, 100])
    np.testing.assert_allclose(d_factor, 5 * X * X)
    second = tf.gradients(tf.gradients(f(x), x), x)[0]
    np.testing.assert_allclose(run(second), 2 * np.array([1, 10, 100]))


def test_loops_and_branches_within_functions_and_functions_within_them():
    x = tf.constant(X)

    @tf.function
    def doubled(count):
        return tf.while_loop(lambda i, _: i < count, lambda i, a: (i + 1, a * 2), [0, x])[1]

    result = doubled(tf.constant(3))
    np.testing.assert_allclose(run([result, tf.gradients(result, x)[0]]), [X * 8, [8, 8, 8]])
    square = tf.function(lambda z: z * z)
    chosen = tf.cond(tf.constant(True), lambda: square(x), lambda: x)
    looped = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, square(a)), [0, x])[1]
    np.testing.assert_allclose(run([chosen, looped]), [X**2, X**4])


def test_side_effects_happen_in_the_order_of_the_program():
    v = tf.Variable(1.0)

    @tf.function
    def step(amount):
        v.assign_add(amount)
        doubled = v * 2.0
        v.assign(doubled)
        v.assign_add(0.5)
        return doubled

    @tf.function
    def reset():
        v.assign(7.0)

    first = step(2.0)
    cleared = reset()
    assert isinstance(cleared, tf.Operation)
    with tf.Session() as session:
        session.run(v.initializer)
        assert [session.run(first), session.run(v)] == [6, 6.5]
        assert [session.run(first), session.run(v)] == [17, 17.5]
        session.run(cleared)
        assert session.run(v) == 7


def test_assertions_within_functions_hold():
    @tf.function
    def root(x):
        tf.Assert(x >= 0, ["a negative number"])
        return tf.sqrt(x)

    x = tf.placeholder(tf.float32, [])
    result = root(x)
    assert run(result, {x: 4}) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="a negative number"):
        run(result, {x: -4})


def test_variables_are_made_in_the_first_call_only():
    class Scale:
        factor = None

        @tf.function
        def __call__(self, x):
            if self.factor is None:
                self.factor = tf.Variable(3.0)
            return self.factor * x

    first, second = Scale(), Scale()
    results = [first(tf.constant(2.0)), first(tf.constant([1.0, 2.0])), second(tf.constant(5.0))]
    assert first.factor is not second.factor and len(tf.global_variables()) == 2
    slope = tf.gradients(results[1], first.factor)[0]
    assert [np.asarray(value).tolist() for value in run([*results, slope])] == [6, [3, 6], 15, 3]

    with pytest.raises(ValueError, match="tried to create variables"):
        tf.function(lambda: tf.Variable(1.0) + 1)()


class Spec:
    """A dtype and a shape."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tf.TensorShape(shape), tf.as_dtype(dtype)


def test_an_input_signature_holds_calls_to_it():
    traces = []

    @tf.function(input_signature=[Spec([None, 2], tf.float32)])
    def total(x):
        traces.append(x.shape.as_list())
        return tf.reduce_sum(x)

    assert run([total([[1.0, 2.0]]), total(tf.ones([3, 2])), total(np.ones((1, 2), np.float32))]) == [3, 6, 2]
    assert traces == [[None, 2]]
    for wrong in (tf.ones([2]), tf.ones([2, 3]), tf.ones([2, 2], tf.int32)):
        with pytest.raises(ValueError, match="incompatible with input_signature"):
            total(wrong)
    with pytest.raises(TypeError, match="input_signature"):
        tf.function(lambda x: x, input_signature=tf.float32)
    assert total.get_concrete_function().inputs[0].shape.as_list() == [None, 2]


def test_concrete_functions():
    scaled, traces = counted(lambda x, factor: {"y": x * factor})
    concrete = scaled.get_concrete_function(Spec([None], tf.float32), 3.0)
    np.testing.assert_allclose(run(concrete(tf.constant(X))["y"]), X * 3)
    assert len(traces) == 1 and concrete.output_dtypes == {"y": tf.float32}
    assert [tensor.dtype for tensor in concrete.outputs] == [tf.float32]
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        concrete(tf.constant(1.0))
    with pytest.raises(TypeError, match="takes 1 tensors, got 2"):
        concrete(tf.constant(X), tf.constant(X))


def test_random_numbers_of_two_calls_differ_and_py_func_is_called():
    calls = []

    @tf.function
    def draw():
        return tf.random_uniform([3]) + tf.py_func(lambda: calls.append(1) or np.float32(0), [], tf.float32)

    first, second = run([draw(), draw()])
    assert (first != second).all() and len(calls) == 2


def test_custom_gradients_within_functions():
    @tf.custom_gradient
    def exponential(a):
        value = tf.exp(a)
        return value, lambda dy: dy * value * 10.0

    x = tf.constant(X)
    both = tf.function(lambda z: exponential(z) + exponential(2 * z))
    np.testing.assert_allclose(run(tf.gradients(both(x), x)[0]), 10 * np.exp(X) + 20 * np.exp(2 * X), rtol=1e-5)


def test_functions_of_two_graphs_are_traced_in_each():
    square, traces = counted(lambda x: x * x)
    for value in (2.0, 3.0):
        with tf.Graph().as_default():
            assert run(square(tf.constant(value))) == value * value
    assert len(traces) == 2


def test_wrapped_functions():
    def model(x):
        hidden = tf.multiply(x, tf.get_variable("w", initializer=4.0), name="hidden")
        return hidden + 1.0

    wrapped = tf.wrap_function(model, [Spec([], tf.float32)])
    assert [variable.op.name for variable in wrapped.variables] == ["w"]
    hidden = next(op for op in wrapped.graph.get_operations() if op.name.endswith("hidden")).outputs[0]
    tail = wrapped.prune(feeds=hidden, fetches=wrapped.outputs[0])
    head = wrapped.prune(feeds=wrapped.inputs[0], fetches=hidden)
    assert run([wrapped(tf.constant(3.0)), wrapped(5.0), tail(tf.constant(1.0)), head(tf.constant(2.0))]) == [
        13,
        21,
        2,
        8,
    ]


# -- Defun ---------------------------------------------------------------------------------------------


def test_defined_functions():
    @Defun(tf.float32, tf.float32, func_name="Both")
    def both(a, b):
        return a + b, a * b

    assert both.name == "Both" and both.declared_input_types == [tf.float32, tf.float32]
    total, product = both(1.0, tf.constant(X))
    assert product.shape == [3] and product.name == "Both:1"
    np.testing.assert_allclose(run([total, product]), [1 + X, X])
    assert both(1.0, 2.0, name="named")[0].op.name == "named"
    square = Defun()(lambda x: x * x)
    assert square(tf.constant(3)).dtype is tf.int32 and run([square(tf.constant(3)), square(tf.constant(0.5))]) == [
        9,
        0.25,
    ]
    with pytest.raises(ValueError, match="expects 2 arguments, got 1"):
        both(1.0)
    with pytest.raises(ValueError, match="takes 1 arguments, but 2 types"):
        Defun(tf.float32, tf.float32)(lambda a: a)
    with pytest.raises(ValueError, match="not bogus"):
        Defun(tf.float32, bogus=1)
    with pytest.raises(ValueError, match="defaults"):
        Defun(tf.float32)(tf.exp)
    with pytest.raises(ValueError, match="can not return None"):
        Defun(tf.float32)(lambda a: (a, None))(1.0)
    with pytest.raises(ValueError, match="equal in size to outputs"):
        Defun(tf.float32, out_names=["a", "b"])(lambda a: a)(1.0)


def test_a_call_of_a_defined_function_has_its_name():
    tripled = Defun(tf.float32, func_name="tripled")(lambda a: 3 * a)
    nothing = Defun(func_name="nothing")(lambda: None)
    with tf.name_scope("scope"):
        named = tripled(1.0, name="named")
    assert [tripled(1.0).name, tripled(2.0).name, named.name] == ["tripled:0", "tripled_1:0", "scope/named:0"]
    assert nothing().name == "nothing"
    graph = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        assert run(tf.import_graph_def(graph, return_elements=["tripled_1:0"])) == [6]


def test_gradient_functions_of_defined_functions():
    x = tf.constant(X)

    @Defun(tf.float32, tf.float32)
    def slope(a, dy):
        return 100.0 * dy * a

    square = Defun(tf.float32, grad_func=slope)(lambda a: a * a)
    of_call = Defun(tf.float32, python_grad_func=lambda op, dy: dy * op.inputs[0] + op.outputs[0])
    exponential = of_call(lambda a: tf.exp(a))
    plain = Defun(tf.float32)(lambda a: a * a * a)
    found = run([tf.gradients(f(x), x)[0] for f in (square, exponential, plain)])
    for value, expected in zip(found, [100 * X, X + np.exp(X), 3 * X * X], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="Gradient defined twice"):
        Defun(tf.float32, grad_func=slope, python_grad_func=lambda op, dy: dy)


def test_a_gradient_function_may_wait_for_its_arguments():
    @Defun()
    def slope(a, dy):
        with tf.control_dependencies([dy]):
            return tf.gradients(a * a, a, dy)[0] * 2.0

    x = tf.constant(X)
    np.testing.assert_allclose(run(tf.gradients(Defun(grad_func=slope)(lambda a: a * a)(x), x)[0]), 4 * X)


def test_a_python_gradient_function_goes_back_from_what_was_given():
    """TensorFlow 1.15 gives 6 and 7: what the call was given leads on to `x`, and to the handle of the variable."""
    x, weight = tf.constant(3.0), tf.Variable(2.0, name="weight")
    product = x * weight
    types = []

    def gradient(op, dy):
        a, read, result = op.inputs
        types.append((read.op.type, read.op.inputs[0].name))
        return 3.0 * tf.gradients(result, a, dy)[0], tf.constant(7.0), None

    passed = Defun(tf.float32, tf.float32, tf.float32, python_grad_func=gradient)(lambda a, b, c: tf.identity(c))
    found = tf.gradients(passed(x, weight, product), [x, weight])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(found) == [6.0, 7.0]
    assert types == [("ReadVariableOp", "weight:0")]
