"""tf.Variable, its initialisation, and the lists of variables."""

from __future__ import annotations

import inspect
import re
import time

import numpy as np
import pytest

import tfray as tf
from tfray.errors import FailedPreconditionError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import import_graph_def
from tfray.library.variables import variables
from tfray.library.variables.variables import (
    Variable,
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
    trainable_variables,
    variables_initializer,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.math import math_ops
from tfray.ops.random import random_ops
from tfray.ops.state import state_ops
from tfray.session import Session

# -- making ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initial_value", "dtype", "expected"),
    [
        ([[1.0, 2.0]], None, dtypes.float32),
        (3, None, dtypes.int32),
        (np.ones(2), None, dtypes.float64),
        (np.ones(2), dtypes.float32, dtypes.float32),
        (True, None, dtypes.bool_),
        (lambda: constant([1.0, 2.0]), None, dtypes.float32),
        (lambda: [1, 2], dtypes.float16, dtypes.float16),
        ("text", None, dtypes.string),
    ],
)
def test_initial_values(initial_value, dtype, expected, session):
    v = Variable(initial_value, dtype=dtype)
    session.run(v.initializer)
    value = session.run(v)
    assert v.dtype is expected
    assert np.shape(value) == tuple(v.shape.as_list())
    assert np.array_equal(value, session.run(v.initial_value))


def test_names_of_the_operations():
    v = Variable(lambda: constant([1, 2], name="c"), name="v")
    assert (v.name, v.op.name) == ("v:0", "v")
    assert v.initializer.name == "v/Assign"
    assert v.value().name == "v/read:0"
    assert v.initial_value.name == "v/Initializer/c:0"
    assert Variable([1, 2], name="w").initial_value.name == "w/initial_value:0"
    assert Variable(1, name="v").op.name == "v_1"
    assert Variable(1).op.name == "Variable"


def test_an_initial_value_is_needed():
    with pytest.raises(ValueError, match="initial_value is a required"):
        Variable()
    with pytest.raises(ValueError, match="validate_shape=False"):
        Variable(placeholder(dtypes.float32))
    with pytest.raises(ValueError, match="must be a function"):
        Variable(1.0, constraint=3)


def test_initial_values_ignore_control_dependencies(graph):
    v = Variable(1.0)
    with graph.control_dependencies([v.assign(2.0)]):
        w = Variable(lambda: constant(3.0))
    assert w.initializer.control_inputs == w.initial_value.op.control_inputs == []


def test_device_and_colocation(graph):
    with graph.device("/job:ps/task:1"):
        v = Variable(lambda: array_ops.zeros([2000]), name="v")
    with graph.device("/job:worker"):
        update = v.assign_add(np.ones(2000, np.float32))
    assert v.device == v.initializer.device == v.value().device == update.device == "/job:ps/task:1"
    assert v.initial_value.op.colocation_groups() == [b"loc:@v"]


def test_a_random_initial_value_is_drawn_once_per_initialisation(session):
    v = Variable(random_ops.random_normal([4]))
    assert (session.run([v.initializer, v.initial_value])[1] == session.run(v)).all()


# -- reading ---------------------------------------------------------------------------------------------


def test_reading_before_initialisation_names_the_variable(session):
    v = Variable(1.0, name="weights")
    with pytest.raises(FailedPreconditionError, match="uninitialized value weights"):
        session.run(v)


def test_uses_share_one_cached_read():
    v = Variable(1.0)
    assert convert_to_tensor(v) is v.value()
    assert v.read_value() is not v.value()


def test_read_under_control_dependencies_sees_the_update(graph, session):
    v = Variable(1.0)
    session.run(v.initializer)
    with graph.control_dependencies([v.assign(2.0)]):
        assert session.run(v + 1.0) == 3.0


def test_sessions_do_not_share_values(graph):
    v = Variable(1.0)
    with Session() as first, Session() as second:
        first.run(v.assign(5.0))
        second.run(v.initializer)
        assert (first.run(v), second.run(v)) == (5.0, 1.0)


def test_eval_load_and_names_in_a_session(session):
    v = Variable([1.0, 2.0], name="v")
    session.run(v.initializer)
    v.load([3.0, 4.0], session)
    assert v.eval(session).tolist() == v.eval().tolist() == [3, 4]
    assert session.run("v:0").tolist() == [3, 4]
    assert session.run(v * 2.0, {v: [7.0, 8.0]}).tolist() == [14, 16]


def test_feeding_the_initial_value(session):
    v = Variable([1.0, 2.0])
    session.run(v.initializer, {v.initial_value: [5.0, 6.0]})
    assert session.run(v).tolist() == [5, 6]


@pytest.mark.parametrize(
    ("operate", "expected"),
    [
        (lambda v: v + 1, 7),
        (lambda v: 1 + v, 7),
        (lambda v: v - 1, 5),
        (lambda v: 1 - v, -5),
        (lambda v: v * v, 36),
        (lambda v: 2 * v, 12),
        (lambda v: v / 4, 1.5),
        (lambda v: 3 / v, 0.5),
        (lambda v: v // 4, 1),
        (lambda v: 13 // v, 2),
        (lambda v: v % 4, 2),
        (lambda v: 8 % v, 2),
        (lambda v: v**2, 36),
        (lambda v: 2**v, 64),
        (lambda v: -v, -6),
        (lambda v: abs(-v), 6),
        (lambda v: v < 7, True),
        (lambda v: v <= 6, True),
        (lambda v: v > 6, False),
        (lambda v: v >= 7, False),
        (lambda v: np.float32(2) * v, 12),
    ],
)
def test_operators(operate, expected, session):
    v = Variable(6.0)
    session.run(v.initializer)
    assert session.run(operate(v)) == expected


def test_indexing_products_and_logic(session):
    m, b = Variable([[1.0, 2.0], [3.0, 4.0]]), Variable([True, False])
    session.run(global_variables_initializer())
    assert session.run(m[1, ::-1]).tolist() == [4, 3]
    assert session.run(m @ m).tolist() == [[7, 10], [15, 22]]
    assert session.run([~b, b & True, b | True, b ^ True])[3].tolist() == [False, True]
    with pytest.raises(TypeError, match="unstack"):
        iter(m)
    assert b and m, "a variable is there, whatever its value, as in TensorFlow 1"


def test_variables_are_keys_by_identity():
    v, w = Variable(1.0), Variable(1.0)
    assert {v: 1, w: 2}[v] == 1
    assert v != w
    assert v in [w, v]


# -- updating --------------------------------------------------------------------------------------------


def test_updates_return_the_new_value_or_the_operation(session):
    v = Variable([1, 2])
    session.run(v.initializer)
    assert session.run(v.assign_add([10, 20])).tolist() == [11, 22]
    assert session.run(v.assign_sub([1, 1])).tolist() == [10, 21]
    assert session.run(v.assign([5, 6], read_value=False)) is None
    assert session.run(v).tolist() == [5, 6]


def test_assign_of_another_shape_or_dtype_is_refused():
    v = Variable([1, 2])
    with pytest.raises(InvalidArgumentError, match="incompatible"):
        v.assign([1, 2, 3])
    with pytest.raises(InvalidArgumentError, match="expected int32"):
        v.assign([1.5, 2.5])


def test_shape_may_change_when_not_validated(session):
    v = Variable([1, 2], validate_shape=False)
    assert v.shape.rank is None
    session.run(v.initializer)
    assert session.run(v.assign([[1]])).tolist() == [[1]]
    w = Variable([1, 2])
    session.run(state_ops.assign(w, [1, 2, 3], validate_shape=False))
    assert session.run(w.read_value()).tolist() == [1, 2, 3]


def test_storage_is_owned_by_the_variable(session):
    v = Variable(constant(np.ones(3, np.float32)))
    session.run(v.initializer)
    session.run(v.assign_add(np.ones(3)))
    assert session.run(v.initial_value).tolist() == [1, 1, 1]
    assert session.run(v).tolist() == [2, 2, 2]


def test_swapping_two_variables_in_one_step(session):
    a, b = Variable([1.0]), Variable([2.0])
    session.run(global_variables_initializer())
    session.run([a.assign(b), b.assign(a)])
    assert session.run([a, b]) == [2, 1]


# -- initialisation --------------------------------------------------------------------------------------


def test_initial_values_from_other_variables(session):
    a = Variable(random_ops.random_normal([3]), name="a")
    b = Variable(a.initialized_value() * 2.0)
    c = Variable(math_ops.reduce_sum(b + a))  # guarded without being asked
    session.run(global_variables_initializer())
    a_value, b_value, c_value = session.run([a, b, c])
    np.testing.assert_allclose(b_value, 2 * a_value)
    np.testing.assert_allclose(c_value, (a_value + b_value).sum(), rtol=1e-6)


def test_guarded_initial_values_take_what_is_there(session):
    a = Variable(1.0)
    b = Variable(a + 1.0)
    session.run(a.assign(10.0))
    session.run(b.initializer)
    assert session.run(b) == 11


def test_initializers_of_lists(session):
    a, b = Variable(1), Variable(2, collections=[GraphKeys.LOCAL_VARIABLES], trainable=False)
    session.run(variables.local_variables_initializer())
    assert session.run(report_uninitialized_variables()).tolist() == [b"Variable"]
    session.run(variables_initializer([a]))
    assert session.run(report_uninitialized_variables()).tolist() == []
    assert session.run(variables.assert_variables_initialized()).tolist() == [0, 0]
    assert session.run([a, b]) == [1, 2]


@pytest.mark.parametrize(
    "initialize", [variables.initialize_all_variables, lambda: variables.initialize_variables(global_variables())]
)
def test_older_names_of_initializers(initialize, session):
    v = Variable(1)
    session.run([initialize(), variables.initialize_local_variables()])
    assert session.run(v) == 1
    assert variables.all_variables() == [v]


def test_without_variables_there_is_nothing_to_report(session):
    assert variables.assert_variables_initialized() is None
    assert session.run(report_uninitialized_variables([])).tolist() == []
    session.run(global_variables_initializer())


def test_assertion_fails_before_initialisation(session):
    Variable(1.0)
    with pytest.raises(FailedPreconditionError):
        session.run(variables.assert_variables_initialized().op)


# -- collections and descriptions ------------------------------------------------------------------------


def test_collections(graph):
    v, w = Variable(1, name="a/v"), Variable(2, trainable=False, name="b/w")
    u = Variable(3, collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES], trainable=False)
    graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, v)
    assert global_variables() == [v, w]
    assert global_variables("b/") == [w]
    assert trainable_variables() == variables.moving_average_variables() == [v]
    assert variables.local_variables() == variables.model_variables() == [u]


def test_standard_collection_names_are_distinct():
    names = [value for key, value in vars(GraphKeys).items() if key.isupper() and key != "VARIABLES"]
    assert len(set(names)) == len(names)
    assert GraphKeys.VARIABLES == GraphKeys.GLOBAL_VARIABLES


def test_a_variable_is_found_again_in_a_graph_that_was_loaded(graph):
    v = Variable([1.0, 2.0], name="v", trainable=False)
    description = v.to_proto()
    with Graph().as_default():
        import_graph_def(graph.as_plain(), name="loaded")
        again = Variable.from_proto(description, import_scope="loaded")
        with Session() as session:
            session.run(again.initializer)
            assert session.run(again).tolist() == [1, 2]
        assert (again.name, again.shape, again.dtype, again.trainable) == ("loaded/v:0", [2], dtypes.float32, False)
        assert again.to_proto("loaded") == description


def test_representation_names_shape_and_dtype():
    assert re.fullmatch(r"<tf.Variable 'v:0' shape=\(2,\) dtype=float32>", repr(Variable([1.0, 2.0], name="v")))


# -- who makes variables ---------------------------------------------------------------------------------


def test_creators_make_variables_the_innermost_first():
    seen = []

    def creator(text):
        def create(next_creator, **kwargs):
            seen.append((text, kwargs["name"]))
            return next_creator(**{**kwargs, "trainable": False, "name": f"{kwargs['name']}_{text}"})

        return create

    with tf.Graph().as_default():
        with tf.variable_creator_scope(creator("outer")), tf.variable_creator_scope(creator("inner")):
            v, w = tf.Variable(1.0, name="a"), tf.get_variable("b", [2])
        later = tf.Variable(1.0, name="c")
        assert seen == [("inner", "a"), ("outer", "a_inner"), ("inner", "b"), ("outer", "b_inner")]
        assert [each.op.name for each in (v, w, later)] == ["a_inner_outer", "b_inner_outer", "c"]
        assert tf.trainable_variables() == [later]


def test_what_a_variable_refers_to_can_be_read_and_updated():
    v = Variable([1.0, 2.0])
    read = tf.identity(v._ref())
    updated = tf.assign_add(v._ref(), [1.0, 1.0])
    assert read.dtype is tf.float32 and read.shape == (2,)
    with tf.Session() as session:
        session.run(global_variables_initializer())
        assert session.run(read).tolist() == [1, 2]
        assert session.run(updated).tolist() == session.run(v).tolist() == [2, 3]


def test_a_resource_begins_with_a_value_of_unknown_shape():
    unknown = tf.placeholder_with_default(tf.zeros([2, 3]), None)
    rows = tf.placeholder_with_default(tf.ones([2, 3]), [None, 3])
    v = Variable(unknown, use_resource=True)
    w = Variable(rows, use_resource=True)
    assert v.shape.ndims is None and w.shape.as_list() == [None, 3]
    with tf.Session() as session:
        session.run(global_variables_initializer())
        doubled = tf.assign(v, tf.concat([v, v + 1], 0), validate_shape=False)
        np.testing.assert_array_equal(session.run(doubled), np.repeat([[0.0] * 3, [1.0] * 3], 2, axis=0))
        session.run(w.initializer, {rows: np.full([5, 3], 7)})
        np.testing.assert_array_equal(session.run(w), np.full([5, 3], 7))
    with pytest.raises(ValueError, match="shape"):
        tf.assign(w, tf.ones([4, 2]))


def test_the_shape_of_a_variable_may_be_given():
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0], shape=[None])
        assert v.shape.as_list() == [None]
        session.run(v.initializer)
        assert session.run(tf.assign(v, [1.0, 2.0, 3.0], validate_shape=False)).tolist() == [1, 2, 3]
        with pytest.raises(ValueError, match="not"):
            tf.Variable([1.0, 2.0], shape=[3])


@pytest.mark.parametrize(
    ("slicing", "shapes"), [([2, 1], [[2, 2], [2, 2]]), ([1, 2], [[4, 1], [4, 1]]), ([1, 1], [[4, 2]])]
)
def test_variables_are_made_in_parts(slicing, shapes):
    with tf.Graph().as_default():
        parts = tf.create_partitioned_variables([4, 2], slicing, tf.zeros_initializer())
        others = tf.create_partitioned_variables([4, 2], slicing, tf.zeros_initializer(), name="own")
        assert [part.shape.as_list() for part in parts] == shapes
        assert [part.op.name for part in parts] == [f"PartitionedVariable/part_{i}" for i in range(len(shapes))]
        assert others[0].op.name == "own/part_0"
        for wrong in ([2], [2, 2], [5, 1]):
            with pytest.raises(ValueError, match="slicing"):
                tf.create_partitioned_variables([4, 2], wrong, tf.zeros_initializer())


def test_parts_of_a_tensor_have_its_dtype():
    with tf.Graph().as_default(), tf.Session() as session:
        parts = tf.create_partitioned_variables([5], [2], tf.constant([1, 2, 3, 4, 5]))
        session.run(tf.global_variables_initializer())
        assert [part.dtype.base_dtype for part in parts] == [tf.int32] * 2
        assert [value.tolist() for value in session.run(parts)] == [[1, 2, 3], [4, 5]]


def test_init_scope_leaves_branches_and_control_dependencies():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        wanted = tf.placeholder(tf.bool, [])
        found = []

        def branch():
            with tf.control_dependencies([tf.constant(1.0)]), tf.init_scope():
                found.append(tf.constant(2.0) + 1)
            return tf.constant(0.0)

        tf.cond(wanted, branch, branch)
        assert all(tensor.graph is graph and not tensor.op.control_inputs for tensor in found)
        assert session.run(found) == [3.0, 3.0]


@pytest.mark.parametrize("step", [tf.Dimension(1), [1], 1.0])
def test_a_global_step_is_an_integer_scalar(step):
    with tf.Graph().as_default():
        tf.train.assert_global_step(tf.constant(1))
        for wrong in (step, tf.constant(1.0), tf.constant([1])):
            with pytest.raises(TypeError, match="expected an integer scalar"):
                tf.train.assert_global_step(wrong)


def test_the_time_is_that_of_the_step():
    with tf.Graph().as_default(), tf.Session() as session:
        now = tf.timestamp()
        first, second = session.run(now), session.run(now)
        assert now.dtype is tf.float64 and time.time() - 60 < first <= second <= time.time()


@pytest.mark.parametrize("make", [tf.Variable, lambda value, **given: tf.get_variable("v", initializer=value, **given)])
def test_synchronization_and_aggregation_are_told(make):
    """As in TensorFlow 1.15: read-only copies are not trainable unless the program says so."""
    on_read = make([1.0], synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
    assert on_read.synchronization is tf.VariableSynchronization.ON_READ and not on_read.trainable
    assert on_read.aggregation is tf.VariableAggregation.SUM and tf.trainable_variables() == []
    with tf.Graph().as_default():
        plain = make([1.0], synchronization=None, aggregation=None)
    assert plain.synchronization is tf.VariableSynchronization.AUTO and plain.trainable
    assert plain.aggregation is tf.VariableAggregation.NONE
    with tf.Graph().as_default():
        assert make([1.0], synchronization=tf.VariableSynchronization.ON_READ, trainable=True).trainable
    for refused in ({"synchronization": "AUTO"}, {"aggregation": "SUM"}):
        with tf.Graph().as_default(), pytest.raises(ValueError, match=r"is no tf\.Variable"):
            make([2.0], **refused)


def test_the_arguments_of_a_variable_can_be_inspected():
    assert list(inspect.signature(tf.Variable).parameters)[:3] == ["initial_value", "trainable", "collections"]
