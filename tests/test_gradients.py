"""Symbolic back-propagation."""

from __future__ import annotations

import gc
import time
import warnings

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.interpreter import interpret
from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.gradients import (
    _CUSTOM,
    AggregationMethod,
    NotDifferentiable,
    RegisterGradient,
    UnconnectedGradients,
    custom_gradient,
    gradients,
)
from tfray.jacobians import hessians
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops, partition_ops
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.math import linalg_ops, math_ops
from tfray.ops.nn import nn_ops
from tfray.ops.state import sparse_state_ops
from tfray.runtime.device import Device


def scalar(value=2.0):
    return constant(value, dtypes.float64)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


# -- values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: x * x * x, 12.0),
        (lambda x: x + x + x, 3.0),
        (lambda x: math_ops.exp(3.0 * x), 3 * np.exp(6.0)),
        (lambda x: 1.0 / x, -0.25),
        (lambda x: math_ops.log(x) * math_ops.sin(x), np.sin(2) / 2 + np.log(2) * np.cos(2)),
        (lambda x: array_ops.stop_gradient(x) * x, 2.0),
        (lambda x: x**x, 4 * (np.log(2) + 1)),
    ],
)
def test_closed_forms(function, slope):
    x = scalar()
    close(interpret(gradients(function(x), x)[0]), slope)


def test_targets_add_up_and_sources_keep_their_order():
    x, y = scalar(2.0), scalar(5.0)
    close(interpret(gradients([x * y, y * y], [y, x])), [2 + 10, 5])


def test_a_target_is_its_own_source():
    x = scalar()
    y = x * x
    close(interpret(gradients(y, [y, x])), [1, 4])
    close(interpret(gradients([y, y], y)[0]), 2)


def test_a_source_may_lie_between_another_source_and_the_target():
    x = scalar()
    h = x * x
    close(interpret(gradients(h * h + x, [h, x])), [2 * 4, 2 * 4 * 4 + 1])


def test_gradients_of_the_targets_may_be_given():
    x = constant([1.0, 2.0, 3.0])
    close(interpret(gradients([x * x, x], x, grad_ys=[[1.0, 10.0, 100.0], None])[0]), [3, 41, 601])


def test_stop_gradients_gives_partial_derivatives():
    # The example of TensorFlow's documentation.
    a = constant(0.0)
    b = 2 * a
    assert interpret(gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert interpret(gradients(a + b, [a, b])) == [3.0, 1.0]


def test_stop_gradients_blocks_what_lies_behind():
    x = scalar()
    h = x * x
    assert gradients(h * 3.0, x, stop_gradients=h) == [None]
    close(interpret(gradients(h * x, x, stop_gradients=[h])[0]), 4)


def test_unconnected_sources_give_none_or_zeros():
    x, v, other = constant([1.0, 2.0]), Variable([[1.0]]), constant([3.0])
    y = x * x
    assert gradients(y, [v, other])[:2] == [None, None]
    zeros = interpret(gradients(y, [v, other], unconnected_gradients=UnconnectedGradients.ZERO))
    assert [z.tolist() for z in zeros] == [[[0.0]], [0.0]]


def test_integers_and_choices_carry_no_gradient():
    x = constant([1.0, 5.0, 2.0])
    assert gradients(math_ops.multiply(array_ops.cast(array_ops.cast(x, "int32"), "float32"), 2.0), x) == [None]
    assert gradients(constant(2.0), [constant(1)]) == [None]


def test_complex_gradients_follow_the_conjugate():
    z = placeholder("complex128", [])
    close(interpret(gradients(z * z, z, grad_ys=constant(1 + 0j))[0], {z: 1 + 2j}), np.conj(2 * (1 + 2j)))


def test_a_network_against_finite_differences():
    def build(x, w1, b1, w2):
        hidden = math_ops.tanh(linalg_ops.matmul(x, w1) + b1)
        return math_ops.reduce_mean(math_ops.square(linalg_ops.matmul(hidden, w2))) + math_ops.reduce_sum(w1 * w1)

    random = np.random.default_rng(0)
    check_gradients(build, [random.normal(size=shape) for shape in ((5, 3), (3, 4), (4,), (4, 2))])


def test_unknown_shapes():
    x = placeholder("float32")
    y = math_ops.reduce_sum(x * constant([1.0, 2.0]))
    close(interpret(gradients(y, x)[0], {x: np.ones((3, 2), np.float32)}), [[1, 2]] * 3)


# -- sums ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [None, 0, AggregationMethod.EXPERIMENTAL_TREE, 2])
def test_partial_gradients_are_summed(graph, method):
    x = scalar()
    y = math_ops.add_n([x * float(i) for i in range(7)])
    close(interpret(gradients(y, x, aggregation_method=method)[0]), 21)
    sums = [op for op in graph.get_operations() if op.name.startswith("gradients") and op.type == "AddN"]
    assert len(sums) == (0 if method == AggregationMethod.EXPERIMENTAL_TREE else 1)


def test_work_is_linear_in_the_graph_not_in_its_paths(graph):
    x = scalar(1.0)
    y = x
    for _ in range(60):
        y = y + y  # 2 ** 60 paths
    before = len(graph.get_operations())
    (slope,) = gradients(y, x)
    assert interpret(slope) == 2.0**60
    assert len(graph.get_operations()) - before < 400


def test_long_chains_need_no_recursion(graph):
    x = scalar(1.0)
    y = x
    for _ in range(5000):
        y = -y
    start = time.process_time()
    (slope,) = gradients(y, x)
    assert time.process_time() - start < 20
    assert slope.op.type == "Neg"


def test_only_operations_between_source_and_target_are_differentiated(graph):
    x, unrelated = scalar(), scalar()
    y = x * 2.0 + math_ops.exp(unrelated)
    math_ops.sin(x)
    gradients(y, x)
    names = {op.name.split("/")[1] for op in graph.get_operations() if op.name.startswith("gradients/")}
    assert names == {"grad_ys_0", "mul_grad"}


# -- variables and sparse gradients ----------------------------------------------------------------------


@pytest.fixture
def table():
    device = Device("/job:localhost/task:0/device:CPU:0")
    v = Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3), name="table")
    interpret(v.initializer, device=device)
    return v, device


def test_a_variable_collects_the_gradients_of_all_its_reads(table):
    v, device = table
    y = math_ops.reduce_sum(v * 2.0) + math_ops.reduce_sum(v.read_value() * 3.0)
    (d_v,) = gradients(y, v)
    assert d_v.shape == [4, 3]
    close(interpret(d_v, device=device), np.full((4, 3), 5.0))
    assert gradients(y, v.handle)[0].shape.is_compatible_with([4, 3])


def test_gathered_rows_give_a_sparse_gradient(table):
    v, device = table
    y = math_ops.reduce_sum(sparse_state_ops.resource_gather(v, [2, 0, 2]) * 3.0)
    (d_v,) = gradients(y, v)
    assert isinstance(d_v, IndexedSlices)
    values, indices, dense = interpret([d_v.values, d_v.indices, convert_to_tensor(d_v)], device=device)
    close(values, np.full((3, 3), 3.0))
    assert indices.tolist() == [2, 0, 2]
    close(dense[:, 0], [3, 0, 6, 0])


def test_sparse_gradients_of_several_reads_are_concatenated(table):
    v, device = table
    rows = sparse_state_ops.resource_gather
    indices = constant([1], "int64")
    y = math_ops.reduce_sum(rows(v, [2, 0])) + math_ops.reduce_sum(5.0 * rows(v, indices))
    (d_v,) = gradients(y, v)
    assert isinstance(d_v, IndexedSlices)
    assert d_v.indices.dtype is dtypes.int64
    close(interpret(convert_to_tensor(d_v), device=device)[:, 1], [1, 5, 1, 0])


def test_sparse_and_dense_gradients_make_a_dense_one(table):
    v, device = table
    y = math_ops.reduce_sum(sparse_state_ops.resource_gather(v, [2, 2])) + math_ops.reduce_sum(v * v)
    (d_v,) = gradients(y, v)
    assert not isinstance(d_v, IndexedSlices)
    close(interpret(d_v, device=device)[:, 0], [0, 6, 12 + 2, 18])


def test_slices_stay_sparse_through_identities_and_become_dense_elsewhere(table):
    v, device = table
    y = array_ops.gather(array_ops.identity(v), [1, 1])
    assert isinstance(gradients(y, v)[0], IndexedSlices)
    y = array_ops.gather(v * 2.0, [1, 1])
    close(interpret(gradients(y, v)[0], device=device)[:, 0], [0, 4, 0, 0])


def test_a_sparse_gradient_of_the_target_may_be_given(table):
    v, device = table
    given = IndexedSlices(constant([[1.0, 2.0, 3.0]]), constant([1]), constant([4, 3]))
    assert isinstance(gradients(v.value(), v, grad_ys=given)[0], IndexedSlices)
    close(interpret(gradients(v * 2.0, v, grad_ys=given)[0], device=device)[1], [2, 4, 6])


# -- second derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows, warned", [(1_000_000, True), (999_999, False)])
def test_a_large_dense_gradient_is_warned_of(rows, warned):
    given = IndexedSlices(constant(np.ones((1, 100), np.float32)), constant([1]), constant([rows, 100]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        convert_to_tensor(given)
    assert [str(each.message)[:75] for each in told] == [
        "Converting sparse IndexedSlices to a dense Tensor with 100000000 elements. "
    ] * warned


def test_gradients_can_be_differentiated_again_and_again():
    x = scalar(3.0)
    y = x**5
    for expected in (5 * 81, 20 * 27, 60 * 9, 120 * 3, 120):
        (y,) = gradients(y, x)
        close(interpret(y), expected)


def test_hessian_of_a_quadratic_form():
    random = np.random.default_rng(1)
    a, x = random.normal(size=(4, 4)), constant(random.normal(size=4))
    y = math_ops.reduce_sum(x * array_ops.squeeze(linalg_ops.matmul(a, array_ops.expand_dims(x, 1)), 1))
    close(interpret(hessians(y, x)[0]), a + a.T)


def test_hessian_of_a_matrix_variable(table):
    v, device = table
    y = math_ops.reduce_sum(v * v * v)
    (hessian,) = hessians(y, v)
    assert hessian.shape == [4, 3, 4, 3]
    values = interpret(hessian, device=device).reshape(12, 12)
    close(values, np.diag(6 * np.arange(12.0)))


def test_hessian_of_a_linear_function_is_zero():
    x = constant([1.0, 2.0])
    close(interpret(hessians(math_ops.reduce_sum(x), x)[0]), np.zeros((2, 2)))


def test_hessian_vector_product():
    x, v = constant([1.0, 2.0, 3.0]), constant([1.0, 0.0, -1.0])
    y = math_ops.reduce_sum(x) ** 3
    (slope,) = gradients(y, x)
    close(interpret(gradients(math_ops.reduce_sum(slope * v), x)[0]), np.zeros(3))
    (product,) = gradients(math_ops.reduce_sum(slope * constant([1.0, 0.0, 0.0])), x)
    close(interpret(product), np.full(3, 36.0))


@pytest.mark.parametrize("sizes", [None, [None, 2]])
def test_hessian_of_an_unknown_shape(sizes):
    x = placeholder("float32", sizes)
    (hessian,) = hessians(math_ops.reduce_sum(x**3), x)
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    close(interpret(hessian, {x: values}).reshape(6, 6), np.diag(6 * values.ravel()))


def test_hessians_need_pairs():
    x = placeholder("float32")
    with pytest.raises(InvalidArgumentError, match="1 ys and 2 xs"):
        hessians(x, [x, x])


# -- gradient functions of one's own ---------------------------------------------------------------------


@RegisterGradient("TestTriple")
def _triple(op, d_output):
    return d_output * 3.0


@RegisterGradient("TestSumOfAll")
def _sum_of_all(op, *d_outputs):
    assert all(d is not None for d in d_outputs)
    return array_ops.concat([array_ops.reshape(d, [-1]) for d in d_outputs], 0)


@RegisterGradient("TestTooMany")
def _too_many(op, d_output):
    return [d_output, d_output]


@RegisterGradient("TestWrongShape")
def _wrong_shape(op, d_output):
    return array_ops.zeros([7])


@RegisterGradient("TestOtherDtype")
def _other_dtype(op, d_output):
    return constant([5.0], "float64")


NotDifferentiable("TestNothing")


def test_override_map(graph):
    x = scalar()
    with graph.gradient_override_map({"Sin": "TestTriple"}):
        y = math_ops.sin(x)
    close(interpret(gradients(y + math_ops.sin(x), x)[0]), 3 + np.cos(2))


def test_override_by_not_differentiable(graph):
    x = scalar()
    with graph.gradient_override_map({"Sin": "TestNothing"}):
        y = math_ops.sin(x)
    close(interpret(gradients(y + x, x)[0]), 1)


def test_registered_functions_get_zeros_where_no_gradient_flows(graph):
    x = constant([1.0, 2.0, 3.0])
    with graph.gradient_override_map({"Split": "TestSumOfAll", "SplitV": "TestSumOfAll", "Unpack": "TestSumOfAll"}):
        parts = array_ops.unstack(x)
    close(interpret(gradients(parts[1] * 4.0, x)[0]), [0, 4, 0])


def test_gradients_of_registered_functions_may_have_another_dtype(graph):
    x = constant([2.0])
    with graph.gradient_override_map({"Sin": "TestOtherDtype"}):
        y = math_ops.sin(x)
    d_x = gradients(y, x)[0]
    assert d_x.dtype == "float64"
    close(interpret(d_x), [5])
    with graph.gradient_override_map({"Sin": "TestOtherDtype"}):
        y = math_ops.sin(x * 2.0)
    with pytest.raises((TypeError, ValueError), match="float"):  # of the multiplication, which takes it
        gradients(y, x)


@pytest.mark.parametrize(("name", "message"), [("TestTooMany", "gave 2 gradients for 1"), ("TestWrongShape", "shape")])
def test_gradient_functions_are_checked(graph, name, message):
    x = constant([1.0, 2.0])
    with graph.gradient_override_map({"Sin": name}):
        y = math_ops.sin(x, name="wave")
    with pytest.raises(InvalidArgumentError, match=message) as error:
        gradients(y, x)
    assert "wave" in str(error.value)
    assert "test_gradients.py" in str(error.value)


def test_missing_gradients_name_operation_and_line(graph):
    x = constant([1.0, 2.0])
    with graph.gradient_override_map({"Sin": "TestNobodyRegisteredThis"}):
        y = math_ops.sin(x, name="wave")
    with pytest.raises(LookupError, match=r"'wave'.*test_gradients\.py"):
        gradients(y, x)


def test_operations_without_gradient_on_the_way_are_an_error():
    x = constant([1.0, 2.0])
    y = partition_ops.unique(x, name="distinct").y
    with pytest.raises(LookupError, match=r"No gradient defined for operation 'distinct'.*test_gradients\.py"):
        gradients(y, x)
    assert gradients(y * 2.0, constant(1.0)) == [None]


def test_a_name_is_registered_once():
    for name in ("TestTriple", "Sin"):
        with pytest.raises(KeyError, match="already"):
            RegisterGradient(name)(_triple)
    with pytest.raises(TypeError, match="name of an operation type"):
        NotDifferentiable(None)


def test_custom_gradient():
    # The example of TensorFlow's documentation: the slope at 100 is 1, not NaN.
    @custom_gradient
    def log1pexp(x):
        e = math_ops.exp(x)
        return math_ops.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x = constant(100.0)
    y = log1pexp(x)
    assert log1pexp.__name__ == "log1pexp"
    close(interpret(gradients(y, x)[0]), 1.0)


def test_custom_gradient_of_several_results_and_arguments():
    @custom_gradient
    def swap(x, y):
        return [y, x], lambda d_first, d_second: (d_first * 10.0, d_second * 100.0)

    x, y = scalar(1.0), scalar(2.0)
    first, second = swap(x, y)
    close(interpret([first, second, *gradients(first + 2.0 * second, [x, y])]), [2, 1, 10, 200])


def test_custom_gradient_can_be_differentiated_again():
    @custom_gradient
    def cube(x):
        return x * x * x, lambda dy: dy * 3.0 * x * x

    x = scalar(5.0)
    (slope,) = gradients(cube(x), x)
    close(interpret(gradients(slope, x)[0]), 30)


def test_custom_gradient_with_variables(table):
    v, device = table

    @custom_gradient
    def scaled(x):
        def grad(dy, variables):
            assert variables == [v]
            return dy * 7.0, [dy * 9.0]

        return x * v, grad

    x = constant(np.ones((4, 3), np.float32))
    d_x, d_v = gradients(scaled(x), [x, v])
    close(interpret([d_x, d_v], device=device), [np.full((4, 3), 7.0), np.full((4, 3), 9.0)])


@pytest.mark.parametrize("how", ["value", "handle"])
def test_custom_gradient_with_variables_around_a_loop(table, how):
    v, device = table

    @custom_gradient
    def scaled(x):
        def grad(dy, variables):
            return dy * 7.0, [dy * 9.0 for each in variables]

        return x * (read if how == "value" else v), grad

    read = v.value()
    x = constant(np.ones((4, 3), np.float32))
    _, made = while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, scaled(x)), [constant(0), x])
    d_x, d_v = gradients(made, [x, v])
    close(interpret([d_x, d_v], device=device), [np.full((4, 3), 49.0), np.full((4, 3), 7.0 * 9 + 9)])


def test_custom_gradient_must_account_for_its_variables(table):
    v, _ = table

    @custom_gradient
    def scaled(x):
        return x * v, lambda dy: dy

    with pytest.raises(TypeError, match=r"scaled uses the variables table.*'variables'"):
        scaled(constant(1.0))


def test_custom_gradients_go_with_their_graph():
    def build():
        with Graph().as_default():
            custom_gradient(lambda x: (x * 2.0, lambda dy: dy))(constant(1.0))

    gc.collect()
    before = len(_CUSTOM)
    build()
    gc.collect()
    assert len(_CUSTOM) == before


# -- how the graph looks ---------------------------------------------------------------------------------


def test_name_scopes():
    x = scalar()
    y = math_ops.sin(x, name="layer/wave")
    assert gradients(y, x)[0].name.startswith("gradients/layer/wave_grad/")
    assert gradients(y, x)[0].name.startswith("gradients_1/layer/wave_grad/")
    assert gradients(y, x, name="back")[0].name.startswith("back/")


def test_a_sum_is_where_the_first_of_its_terms_is(graph):
    w, x = constant([[1.0]], name="w"), constant([[1.0, 2.0]])
    first, second = (linalg_ops.matmul(w, x, name=name) for name in ("first", "second"))
    (total,) = gradients(first + second, w, colocate_gradients_with_ops=True)
    assert total.op.colocation_groups() == first.op.colocation_groups()


def test_colocation(graph):
    x = scalar()
    with graph.device("/job:ps/task:1"):
        y = math_ops.sin(x, name="wave")
    with graph.device("/job:worker"):
        (near,) = gradients(y, x, colocate_gradients_with_ops=True)
        (free,) = gradients(y, x)
    assert near.device == "/job:ps/task:1"
    assert near.op.colocation_groups() == [b"loc:@wave"]
    assert free.device == "/job:worker"


def test_gating_lets_all_gradients_of_an_operation_be_computed_first():
    x, y = scalar(3.0), scalar(4.0)
    d_x, d_y = gradients(x * y, [x, y], gate_gradients=True)
    waits = {op.name for gate in d_x.op.control_inputs for op in gate.control_inputs}
    assert {d_x.op.inputs[0].op.name, d_y.op.inputs[0].op.name} <= waits
    close(interpret([d_x, d_y]), [4, 3])


def test_static_shapes_of_gradients_are_those_of_the_sources():
    x = placeholder("float32", [None, 3])
    w = Variable(np.ones((3, 2), np.float32))
    d_x, d_w = gradients(nn_ops.relu(linalg_ops.matmul(x, w)), [x, w])
    assert d_x.shape.as_list() == [None, 3]
    assert d_w.shape == [3, 2]


# -- errors ----------------------------------------------------------------------------------------------


def test_nothing_flows_through_integers():
    x, y = constant(1), constant(2.0)
    assert gradients(x * 2, x) == [None]
    assert gradients(math_ops.square(array_ops.cast(x, dtypes.float32)), x) == [None]
    assert gradients(array_ops.cast(y, dtypes.int32) * 2, y) == [None]
    assert gradients([], x) == [None]
    assert gradients(y, 3.0) == [None]
    (d_x,) = gradients(x, x)  # what TensorFlow 2.21 gives too
    assert d_x.dtype is dtypes.int32 and interpret([d_x])[0] == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.argmax(x, 0),
        lambda x: tf.one_hot(tf.argmin(x, 0), 2),
        lambda x: x > 1.0,  # TensorFlow 1.15 raises a TypeError for flags, 2.21 gives None
        lambda x: tf.count_nonzero(x),
        tf.shape,
        tf.size,
        tf.rank,
        tf.where,
    ],
)
def test_integers_that_are_computed_of_numbers_have_no_gradient(call):
    """As in TensorFlow, which raises a `LookupError` only where numbers come out of an operation without a gradient."""
    x = tf.placeholder(tf.float32)
    assert tf.gradients(call(x), x) == [None]
    (d_x,) = tf.gradients([x * x, call(x)], x)
    with tf.Session() as session:
        assert session.run(d_x, {x: [1.0, 3.0]}).tolist() == [2, 6]
    with pytest.raises(LookupError, match="No gradient defined"):
        tf.gradients(tf.unique(x)[0], x)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (0, [[4, 0, 6], [1, 2, 3]]),
        (-1, [[6, 3, 2], [0, 24, 0]]),
        ([0, 1], [[0, 0, 0], [0, 144, 0]]),
        ([], np.ones([2, 3])),
    ],
)
def test_axes_of_a_product_of_which_not_even_the_rank_is_known(axis, expected):
    x, fed = tf.constant([[1.0, 2, 3], [4, 0, 6]]), tf.placeholder(tf.int32)
    (d_x,) = tf.gradients(tf.reduce_prod(x, fed), x)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(d_x, {fed: axis}), expected)


def test_complex_targets_need_their_gradients():
    z = constant(1 + 2j)
    with pytest.raises(TypeError, match="grad_ys"):
        gradients(z * z, z)
    (d_z,) = gradients(z * z, z, grad_ys=constant(1 + 0j))
    assert interpret([d_z])[0] == 2 - 4j
    with pytest.raises(TypeError, match="only numbers"):
        gradients(constant("text"), z)


def test_sources_must_be_of_the_graph():
    with Graph().as_default():
        elsewhere = constant(1.0)
    with pytest.raises(InvalidArgumentError, match="another graph"):
        gradients(constant(1.0), elsewhere)
    with pytest.raises(InvalidArgumentError, match="another graph"):
        gradients([constant(1.0), elsewhere], constant(1.0))


def test_given_gradients_must_fit():
    x = constant([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="1 ys and 2 grad_ys"):
        gradients(x, x, grad_ys=[x, x])
    with pytest.raises(InvalidArgumentError, match="another shape"):
        gradients(x, x, grad_ys=[[1.0, 2.0, 3.0]])
    with pytest.raises(InvalidArgumentError, match="float64"):
        gradients(x, x, grad_ys=constant([1.0, 1.0], "float64"))


@pytest.mark.parametrize("given", [[[[2.0, 3.0]]], [[2.0], [3.0]], 2.0, [2.0, 3.0], [[[2.0], [3.0]]]])
def test_given_gradients_of_fewer_or_empty_dimensions(given):
    x = constant([1.0, 2.0, 3.0, 4.0])
    y = array_ops.reshape(x, [2, 2])
    (found,) = gradients(math_ops.square(y), x, grad_ys=constant(given))
    expected = np.broadcast_to(np.squeeze(given, 0) if np.ndim(given) == 3 else given, [2, 2]) * [[2, 4], [6, 8]]
    np.testing.assert_array_equal(interpret([found])[0], expected.ravel())


def test_options_are_checked():
    x = constant(1.0)
    with pytest.raises(InvalidArgumentError, match="aggregation_method is 9"):
        gradients(x, x, aggregation_method=9)
    with pytest.raises(InvalidArgumentError, match="expected 'none' or 'zero'"):
        gradients(x, x, unconnected_gradients="one")


@pytest.mark.parametrize(
    ("function", "slope"),
    [(tf.sqrt, 0.25), (tf.rsqrt, -0.0625), (tf.reciprocal, -0.0625), (lambda x: tf.norm(x[:, None], axis=1), 1.0)],
)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_what_is_not_needed_has_no_slope_where_a_root_has_none(function, slope, dtype):
    x = tf.constant([0.0, 4.0], dtype)
    y = function(x)
    (chosen,) = tf.gradients(tf.where([False, True], y, tf.zeros_like(y)), x)
    (fed,) = tf.gradients(y, x, [tf.constant([0, 2], y.dtype)])
    with tf.Session() as session:
        assert session.run(chosen).tolist() == [0, slope]  # as in TensorFlow 2.21, and not NaN
        assert session.run(fed).tolist() == [0, 2 * slope]


def test_a_root_of_nothing_is_infinitely_steep():
    x = tf.constant([0.0])
    with tf.Session() as session:
        assert session.run(tf.gradients(tf.sqrt(x), x)[0]).tolist() == [np.inf]
