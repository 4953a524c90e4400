"""tf.variable_scope and tf.get_variable: names, sharing, inherited settings, partitions."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized
from tfray.framework import dtypes
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables import initializers
from tfray.library.variables.partitioned_variables import (
    PartitionedVariable,
    fixed_size_partitioner,
    min_max_variable_partitioner,
    slices_of,
    variable_axis_size_partitioner,
)
from tfray.library.variables.variable_scope import (
    AUTO_REUSE,
    get_local_variable,
    get_variable,
    get_variable_scope,
    no_regularizer,
    variable_op_scope,
    variable_scope,
)
from tfray.library.variables.variables import (
    Variable,
    global_variables,
    global_variables_initializer,
    trainable_variables,
)
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import math_ops
from tfray.session import Session


def op_name():
    return array_ops.identity(constant(1.0), name="op").op.name


# -- names -----------------------------------------------------------------------------------------------


def test_scopes_prefix_variables_and_operations():
    with variable_scope("a") as a:
        assert get_variable("v", [2]).name == "a/v:0"
        assert op_name() == "a/op"
        with variable_scope("b"):
            assert get_variable("v", [3]).name == "a/b/v:0"
    assert (a.name, a.original_name_scope) == ("a", "a/")


def test_entering_again_opens_a_new_name_scope():
    with variable_scope("a") as a:
        v = get_variable("v", [2])
    with variable_scope("a", reuse=True) as again:
        assert get_variable("v", [2]) is v
        assert op_name() == "a_1/op"
        assert again.original_name_scope == "a_1/"
    with variable_scope(a, reuse=True) as object_again:
        assert get_variable("v") is v
        assert op_name() == "a_2/op"
        assert object_again.original_name_scope == "a/"


def test_variable_names_do_not_follow_name_scopes(graph):
    with graph.name_scope("n"):
        assert get_variable("v", [1]).name == "v:0"
        assert Variable(1.0, name="w").name == "n/w:0"
        with variable_scope("m"):
            assert get_variable("v", [1]).name == "m/v:0"
            assert Variable(1.0, name="w").name == "n/m/w:0"


def test_default_names_are_unique_and_repeat_when_the_parent_is_entered_again():
    def build():
        with variable_scope("a", reuse=AUTO_REUSE):
            names = []
            for _ in range(2):
                with variable_scope(None, "layer") as scope:
                    names.append(scope.name)
            return names

    assert build() == build() == ["a/layer", "a/layer_1"]


def test_jumping_into_a_scope_leaves_no_trace_in_default_names():
    with variable_scope("a") as a:
        pass
    with variable_scope("c"), variable_scope(a), variable_scope(None, "d") as inner:
        assert inner.name == "a/d"
    with variable_scope("c"):
        with variable_scope(a), variable_scope(None, "d") as inner:
            assert inner.name == "a/d"
        with variable_scope(None, "d") as outer:
            assert outer.name == "c/d"


def test_without_auxiliary_name_scope():
    with variable_scope("a") as a:
        pass
    with variable_scope("a", auxiliary_name_scope=False):
        assert op_name() == "op"
    with variable_scope(a, auxiliary_name_scope=False) as scope:
        assert op_name() == "op_1"
        assert scope.original_name_scope == "a/"


def test_root_scope_can_be_entered_by_object_or_empty_name():
    for target in (get_variable_scope(), ""):
        with variable_scope(target) as root:
            assert root.name == ""
    with variable_scope("x/y") as scope:
        assert get_variable("w", [1]).name == "x/y/w:0"
        assert scope.name == "x/y"


def test_a_scope_needs_a_name():
    with pytest.raises(TypeError, match="needs a name"), variable_scope(None):
        pass
    with pytest.raises(ValueError, match="always a new one"), variable_scope(None, "d", reuse=True):
        pass
    with pytest.raises(TypeError, match="takes a name or a scope"), variable_scope(3):
        pass


def test_older_form():
    with variable_op_scope([], None, "layer") as scope:
        assert scope.name == "layer"


# -- sharing ---------------------------------------------------------------------------------------------


def test_making_a_variable_twice_says_where_it_was_made():
    get_variable("v", [1])
    with pytest.raises(
        ValueError,
        match=r"Variable v already exists, disallowed. It was made at .*test_variable_scope.py:\d+.* reuse=True",
    ):
        get_variable("v", [1])


def test_finding_a_variable_that_does_not_exist_says_what_to_do():
    with variable_scope("a", reuse=True), pytest.raises(ValueError, match=r"a/v does not exist.*AUTO_REUSE"):
        get_variable("v", [1])


def test_auto_reuse_makes_then_finds():
    for _ in range(2):
        with variable_scope("a", reuse=AUTO_REUSE) as scope:
            v = get_variable("v", [1])
            assert scope.reuse is AUTO_REUSE
    assert global_variables() == [v]


def test_reuse_is_inherited_and_cannot_be_taken_back():
    with variable_scope("a", reuse=AUTO_REUSE):
        with variable_scope("b", reuse=False) as b:
            assert b.reuse is AUTO_REUSE
        with variable_scope("b", reuse=True) as b:
            assert b.reuse is True


def test_reuse_variables_holds_until_the_scope_is_left():
    with variable_scope("a"):
        v = get_variable("v", [1])
        get_variable_scope().reuse_variables()
        assert get_variable("v", [1]) is v
    with variable_scope("a") as again:
        assert not again.reuse


@pytest.mark.parametrize(("shape", "dtype"), [([2], dtypes.float32), ([1], dtypes.float64)])
def test_shared_variables_must_have_the_same_form(shape, dtype):
    get_variable("v", [1])
    with variable_scope("", reuse=True), pytest.raises(ValueError, match="Trying to share variable"):
        get_variable("v", shape, dtype)


# -- initial values --------------------------------------------------------------------------------------


def test_default_initializers():
    weights = get_variable("w", [100, 100])
    others = [get_variable(dtype.name, [2], dtype) for dtype in (dtypes.int32, dtypes.bool_, dtypes.string)]
    values = run_initialized([weights, *others])
    limit = np.sqrt(6 / 200)
    assert 0.9 * limit < np.abs(values[0]).max() <= limit
    assert [value.tolist() for value in values[1:]] == [[0, 0], [False, False], [b"", b""]]
    with pytest.raises(ValueError, match="no default for complex64"):
        get_variable("c", [2], dtypes.complex64)


def test_initializer_may_be_a_value_a_class_or_a_function():
    made = [
        get_variable("value", initializer=constant([1.0, 2.0])),
        get_variable("array", initializer=np.array([1.0, 2.0])),
        get_variable("class", [2], initializer=initializers.ones_initializer),
        get_variable("function", [2], initializer=lambda shape, dtype: array_ops.ones(shape, dtype)),
        get_variable("old_function", [2], initializer=lambda shape, dtype, partition_info: array_ops.ones(shape)),
        get_variable("no_arguments", initializer=lambda: constant([1.0, 2.0])),
    ]
    assert [v.shape for v in made] == [[2]] * 6
    assert made[1].dtype is dtypes.float64
    assert [value.tolist() for value in run_initialized(made)] == [[1, 2], [1, 2], [1, 1], [1, 1], [1, 1], [1, 2]]


def test_what_computes_the_initial_value_is_tied_to_the_variable():
    v = get_variable("v", [2, 3])
    assert v.initial_value.name.startswith("v/Initializer/")
    assert v.initial_value.op.colocation_groups() == [b"loc:@v"]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({}, "initializer passed is not valid"),
        ({"shape": [None, 3]}, "initializer passed is not valid"),
        ({"shape": [3], "initializer": np.ones(3)}, "give no shape"),
        ({"dtype": dtypes.float64, "initializer": np.ones(3, np.float32)}, "don't match"),
    ],
)
def test_refused_initial_values(kwargs, message):
    with pytest.raises(ValueError, match=message):
        get_variable("v", **kwargs)


# -- settings of scopes ----------------------------------------------------------------------------------


def test_settings_are_inherited_and_overridden():
    with variable_scope("a", initializer=initializers.constant_initializer(3), dtype=dtypes.float64):
        with variable_scope("b", initializer=initializers.ones_initializer()):
            inner = get_variable("v", [1])
        outer = get_variable("v", [1])
    assert inner.dtype is dtypes.float64
    assert [value.tolist() for value in run_initialized([inner, outer])] == [[1], [3]]


def test_settings_can_be_changed_in_place():
    with variable_scope("a") as scope:
        scope.set_initializer(initializers.ones_initializer())
        scope.set_dtype(dtypes.float16)
        scope.set_regularizer(no_regularizer)
        scope.set_partitioner(fixed_size_partitioner(2))
        scope.set_custom_getter(None)
        scope.set_caching_device("/device:CPU:0")
        v = get_variable("v", [2])
    assert isinstance(v, PartitionedVariable)
    assert v.dtype is dtypes.float16


def test_getters_are_told_whether_resources_are_asked_for():
    told = {}

    def getter(getter, name, *args, **kwargs):
        told[name] = kwargs["use_resource"]
        return getter(name, *args, **kwargs)

    with variable_scope("a", use_resource=True, custom_getter=getter) as outer:
        get_variable("v", [])
        with variable_scope("b") as inner:
            get_variable("v", [], use_resource=False)
            inner.set_use_resource(False)
            get_variable("w", [])
            with variable_scope(outer):
                get_variable("x", [])
    assert told == {"a/v": True, "a/b/v": False, "a/b/w": False, "a/x": True}  # as TensorFlow 1.15 tells them


def test_an_empty_regularizer_is_none(graph):
    with variable_scope("s", regularizer=math_ops.reduce_sum):
        get_variable("v", [2], regularizer={})
    assert graph.get_collection(GraphKeys.REGULARIZATION_LOSSES) == []


def test_regularizer_losses_are_collected(graph):
    with variable_scope("a", regularizer=lambda v: math_ops.reduce_sum(v * v, name="loss")):
        get_variable("v", [2], initializer=initializers.constant_initializer(3.0))
        get_variable("w", [2], regularizer=no_regularizer)
    (loss,) = graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name == "a/v/Regularizer/loss:0"
    assert run_initialized(loss) == 18


def test_constraint_and_collections():
    def positive(value):
        return math_ops.maximum(value, 0.0)

    with variable_scope("a", constraint=positive):
        v = get_variable("v", [1], trainable=False, collections=[GraphKeys.MODEL_VARIABLES])
    assert v.constraint is positive
    assert global_variables() == trainable_variables() == []


def test_variables_of_a_scope(graph):
    with variable_scope("a") as scope:
        v = get_variable("v", [1])
        w = get_variable("w", [1], trainable=False)
        u = get_local_variable("u", [1])
    get_variable("v", [1])
    assert scope.global_variables() == [v, w]
    assert scope.trainable_variables() == [v]
    assert scope.local_variables() == [u]


def test_custom_getters_wrap_each_other():
    calls = []

    def outer(getter, name, *args, **kwargs):
        calls.append(("outer", name))
        return getter(name, *args, **kwargs)

    def inner(getter, name, shape=None, dtype=None, initializer=None):
        calls.append(("inner", name))
        return getter(name + "_x", shape, dtype, initializer)

    with variable_scope("a", custom_getter=outer), variable_scope("b", custom_getter=inner):
        v = get_variable("v", [2], trainable=False)
    assert calls == [("inner", "a/b/v"), ("outer", "a/b/v_x")]
    assert v.name == "a/b/v_x:0"


def test_caching_device_holds_the_read():
    v = get_variable("v", [2], caching_device="/job:worker/task:1")
    assert v.value().device == "/job:worker/task:1"
    assert v.value().name == "v/read:0"


# -- partitions ------------------------------------------------------------------------------------------


def test_partitioned_variable_is_the_concatenation_of_its_parts():
    whole = get_variable(
        "v", [7, 2], partitioner=fixed_size_partitioner(3), initializer=initializers.glorot_normal_initializer()
    )
    parts = list(whole)
    assert [part.name for part in parts] == ["v/part_0:0", "v/part_1:0", "v/part_2:0"]
    assert [part.shape.as_list() for part in parts] == [[3, 2], [2, 2], [2, 2]]
    assert [part._save_slice_info.spec for part in parts] == ["7 2 0,3:0,2", "7 2 3,2:0,2", "7 2 5,2:0,2"]
    assert global_variables() == parts
    value, *values = run_initialized([array_ops.identity(whole), *parts])
    assert (value == np.concatenate(values)).all()


def test_partitioned_variable_from_a_value_and_its_updates():
    whole = get_variable("v", initializer=np.arange(10.0).reshape(2, 5), partitioner=fixed_size_partitioner(2, axis=1))
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run(whole.as_tensor()).tolist() == np.arange(10.0).reshape(2, 5).tolist()
        session.run(whole.assign_add(np.ones((2, 5)), read_value=False))
        session.run(whole.assign_sub(np.full((2, 5), 3.0)))
        assert session.run(whole.as_tensor()).tolist() == (np.arange(10.0) - 2).reshape(2, 5).tolist()


def _part(offset, whole=(2,), value=0.0):
    variable = tf.Variable([value])
    variable._set_save_slice_info(tf.Variable.SaveSliceInfo("v", list(whole), [offset], [1]))
    return variable


def test_parts_stand_where_their_slices_say():
    second, first = _part(1, value=5.0), _part(0, value=4.0)
    whole = PartitionedVariable("v", [2], tf.float32, [second, first], [2])
    assert list(whole) == [first, second] and whole.trainable
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run(whole.as_tensor()).tolist() == [4, 5]
        session.run(whole.assign_add([[1.0], [2.0]]))
        assert session.run(whole.as_tensor()).tolist() == [5, 7]
        session.run(whole.assign([1.0, 2.0]))
        assert session.run(whole.as_tensor()).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("parts", "partitions", "said"),
    [
        (list, [], "empty"),
        (lambda: [tf.Variable([0.0])], [1], "must have a save_slice_info"),
        (lambda: [_part(0), _part(1, [3])], [2], "full shapes must match"),
        (lambda: [_part(0)], [0], "must be positive"),
        (lambda: [_part(0)], [2], "other than 1 parts"),
    ],
)
def test_parts_that_make_no_whole(parts, partitions, said):
    with pytest.raises(ValueError, match=said):
        PartitionedVariable("v", [2], tf.float32, parts(), partitions)


def test_a_scope_without_a_name_adds_a_slash():
    with variable_scope("outer"), variable_scope(""):
        assert get_variable("v", []).name == "outer//v:0"


def test_what_scopes_refuse():
    with (
        pytest.raises(TypeError, match="auxiliary_name_scope must be True or False"),
        variable_scope("scope", auxiliary_name_scope="no"),
    ):
        pass
    with pytest.raises(ValueError, match="'_' is not a valid scope name"), variable_scope("_"):
        pass
    with pytest.raises(ValueError, match="custom_getter passed to get_variable is not callable: 3"):
        get_variable("v", [], custom_getter=3)


def test_partitioned_variables_are_shared():
    partitioner = fixed_size_partitioner(2)
    whole = get_variable("v", [4], partitioner=partitioner)
    with variable_scope("", reuse=True):
        assert get_variable("v", [4], partitioner=partitioner) is whole
        assert get_variable("v", [4]) is whole
        with pytest.raises(ValueError, match="Trying to share variable"):
            get_variable("v", [5])
        with pytest.raises(ValueError, match=r"partitions \[1\] and found partitions \[2\]"):
            get_variable("v", [4], partitioner=fixed_size_partitioner(1))
    assert whole.as_tensor().name == "v:0"
    with pytest.raises(ValueError, match="was made in parts"):
        get_variable("v", [4])
    with pytest.raises(ValueError, match="already exists, disallowed"):
        get_variable("v", [4], partitioner=partitioner)
    get_variable("w", [4])
    with variable_scope("", reuse=AUTO_REUSE), pytest.raises(ValueError, match="made without a partitioner"):
        get_variable("w", [4], partitioner=partitioner)


def test_scalars_are_not_partitioned():
    with variable_scope("a", partitioner=fixed_size_partitioner(3)):
        assert isinstance(get_variable("v", []), Variable)


def test_fewer_rows_than_shards():
    assert len(list(get_variable("v", [2, 5], partitioner=fixed_size_partitioner(3)))) == 2


@pytest.mark.parametrize(
    ("partitioner", "shape", "expected"),
    [
        (fixed_size_partitioner(4, axis=1), [10, 20], [1, 4]),
        (variable_axis_size_partitioner(65536), [1000, 300], [19, 1]),
        (variable_axis_size_partitioner(65536, max_shards=5), [1000, 300], [5, 1]),
        (variable_axis_size_partitioner(65536), [5], [1]),
        (variable_axis_size_partitioner(4), [3, 300], [3, 1]),
        (min_max_variable_partitioner(4, 0, 1000), [1000, 300], [4, 1]),
        (min_max_variable_partitioner(4, 0, 1000), [10, 60], [3, 1]),
        (min_max_variable_partitioner(4, 0, 10), [2, 60], [2, 1]),
    ],
)
def test_partitioners(partitioner, shape, expected):
    assert partitioner(shape=shape, dtype=dtypes.float32) == expected


@pytest.mark.parametrize(
    ("shape", "partitions", "message"),
    [([4, 4], [2, 2], "several dimensions"), ([2], [3], "cannot cut"), ([2, 2], [2], "do not fit"), ([2], [0], "fit")],
)
def test_impossible_partitions(shape, partitions, message):
    with pytest.raises(ValueError, match=message):
        slices_of(shape, partitions)


def test_local_variables_take_the_arguments_of_others():
    with tf.variable_scope("scope"):
        values = tf.get_local_variable(
            "values",
            [4, 2],
            tf.float64,
            tf.ones_initializer(),
            lambda part: tf.reduce_sum(part),
            True,
            ["mine"],
            None,
            tf.fixed_size_partitioner(2),
        )
    parts = list(values)
    assert [part.name for part in parts] == ["scope/values/part_0:0", "scope/values/part_1:0"]
    assert tf.local_variables() == parts == tf.get_collection("mine")
    assert tf.global_variables() == tf.trainable_variables() == []
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    assert parts[0].dtype is tf.float64


def test_custom_getters_are_told_how_copies_are_combined():
    told = {}

    def getter(true_getter, name, **arguments):
        told.update(arguments)
        return true_getter(name, **{**arguments, "aggregation": tf.VariableAggregation.MEAN})

    v = tf.get_variable("v", [2], custom_getter=getter, aggregation=tf.VariableAggregation.SUM)
    assert told["aggregation"] is tf.VariableAggregation.SUM and v.aggregation is tf.VariableAggregation.MEAN


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, True),
        ({"trainable": True}, True),
        ({"trainable": False}, False),
        ({"synchronization": tf.VariableSynchronization.ON_READ}, False),
    ],
)
def test_custom_getters_are_told_whether_a_variable_is_trainable(arguments, expected):
    def getter(true_getter, name, trainable, *others, **rest):
        told.append(trainable)
        return true_getter(name, *others, trainable=trainable, **rest)

    told = []
    with tf.variable_scope("scope", custom_getter=getter):
        v = tf.get_variable("v", [2], **arguments)
    assert told == [expected] and v.trainable is expected


def test_older_forms_of_scopes_take_values_first():
    values = [tf.constant(1.0)]
    with tf.variable_op_scope(values, None, "default", tf.ones_initializer(), dtype=tf.float64) as scope:
        v = tf.get_variable("v", [2])
    with tf.variable_op_scope(values, scope, reuse=True):
        assert tf.get_variable("v", [2]) is v
    assert (v.name, v.dtype) == ("default/v:0", tf.float64)
    with tf.op_scope(values, None, "other") as name:
        assert (name, tf.constant(1).name) == ("other/", "other/Const:0")
    with pytest.raises(ValueError, match="default_name"), tf.op_scope(values, None):
        pass


def test_every_thread_has_variable_scopes_of_its_own():
    graph, names = tf.get_default_graph(), []

    def build():
        with graph.as_default():
            names.append(tf.get_variable_scope().name)
            with tf.variable_scope("bar"):
                names.append(tf.get_variable("v", []).name)
            with tf.variable_scope("foo", reuse=tf.AUTO_REUSE):
                names.append(tf.get_variable("v", []) is v)

    with tf.variable_scope("foo"):
        v = tf.get_variable("v", [])
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
        names.append(tf.get_variable("w", []).name)
    assert names == ["", "bar/v:0", True, "foo/w:0"]  # as in TensorFlow 1.15: the variables are the graph's


def test_a_variable_has_a_name():
    with pytest.raises(ValueError, match="cannot have the name ''"):
        tf.get_variable("", [2])
