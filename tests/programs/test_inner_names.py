"""Attributes and options that TensorFlow keeps to itself, or that change nothing here, and programs use."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tfray as tf
from tfray.contrib.quantize.input_to_ops import InputToOps
from tfray.framework.graph import Tensor
from tfray.library.functions.traced_function import Defun
from tfray.library.inspect.summaries import summary_scope
from tfray.library.metrics import mean_metrics
from tfray.library.variables import variable_scope
from tfray.programs import inplace_rows, internal_names, layer_internals, metric_internals
from tfray.training.checkpoints import meta_graph


@tf.RegisterGradient("TestInnerNamesTwice")
def _twice(op, gradient):
    return 2 * gradient


def test_attributes_of_an_operation_are_set():
    x = tf.constant([1.0, -2.0])
    y = tf.nn.relu(x)
    y.op._set_attr("_gradient_op_type", tf.AttrValue(s=b"TestInnerNamesTwice"))
    other = tf.nn.relu(x)
    other.op._set_attr("_mine", tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"a", b"b"])))
    with tf.Session() as session:
        assert session.run(tf.gradients(y, x)[0]).tolist() == [2, 2], "the registered function is its gradient"
        assert session.run(tf.gradients(other, x)[0]).tolist() == [1, 0], "and not that of others"
    assert other.op.get_attr("_mine") == [b"a", b"b"]
    for value, held in ((tf.AttrValue(i=3), 3), (tf.AttrValue(b=True), True), (tf.AttrValue(type=1), tf.float32)):
        other.op._set_attr("_mine", value)
        assert other.op.attrs["_mine"] == held


def test_control_inputs_and_devices_are_added():
    variable = tf.Variable(1.0)
    update, result = variable.assign(2.0), tf.identity(tf.constant(5.0))
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(result) == 5 and session.run(variable) == 1
        result.op._add_control_input(update.op)
        result.op._set_device("/cpu:0")
        assert session.run(result) == 5 and session.run(variable) == 2
    assert result.op.device == "/device:CPU:0" and update.op in result.op.control_inputs


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (
            lambda x, v: (x._op is x.op, x._dtype, x._shape_tuple(), x._shape_as_list(), isinstance(x._id, int)),
            (True, tf.float32, (None, 4), [None, 4], True),
        ),
        (lambda x, v: x.op._id == x.op.id and x.op._node_def.name, "x"),
        (lambda x, v: x.op._output_types, [1]),
        (lambda x, v: x.op._get_control_flow_context(), None),
        (lambda x, v: x.graph._get_control_flow_context(), None),
        (lambda x, v: x.graph.building_function, False),
        (lambda x, v: next(iter(x.graph._nodes_by_name)), "x"),
        (lambda x, v: x.graph._ops_by_name["x"].type, "Placeholder"),
        (lambda x, v: (v._shared_name, v._trainable, v._initializer_op.name), ("v", True, "v/Assign")),
        (lambda x, v: isinstance(v._variable, Tensor) and v._variable.op.name, "v"),
        (lambda x, v: (v._handle is v.handle, v._graph_element is v._as_graph_element()), (True, True)),
        (lambda x, v: (v._get_save_slice_info(), x.graph._container), (None, "")),
        (lambda x, v: (v.dtype._is_ref_dtype, v.dtype._as_ref), (False, tf.float32)),
    ],
)
def test_inner_names(read, expected):
    assert read(tf.placeholder(tf.float32, [None, 4], name="x"), tf.Variable(1.0, name="v")) == expected


def test_several_values_become_tensors():
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))
    first, second = internal_names.convert_n_to_tensor([1, [2.0, 3.0]], tf.float32, "values")
    assert (first.op.name, second.op.name, first.dtype) == ("values_0", "values_1", tf.float32)
    found = internal_names.convert_n_to_tensor_or_indexed_slices([rows, None, first])
    assert found[0] is rows and found[1] is None and found[2] is first


def test_what_a_session_tells():
    tf.constant(1, name="one")
    with tf.Session("", config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert [node.name for node in session.graph_def.node] == ["one"] and session.sess_str == ""
        first, second = [each for each in session.list_devices() if each.device_type == "CPU"]
    assert first == "/job:localhost/task:0/device:CPU:0" and second.endswith("CPU:1")
    assert first.name == "/job:localhost/replica:0/task:0/device:CPU:0"
    with tf.device(first.name), tf.Session() as session:
        assert session.run(tf.constant(1) + 1) == 2
    assert first.memory_limit_bytes > 0 and first.incarnation > 0


def test_devices_of_scopes_are_given_to_what_stands_for_an_operation():
    class Taker:
        device = None

        def _set_device(self, device):
            self.device = device

    class StringTaker(Taker):
        def _set_device_from_string(self, device):
            self.device = device

    graph = tf.get_default_graph()
    takers = Taker(), StringTaker()
    for taker in takers:
        graph._apply_device_functions(taker)
        assert taker.device is None, "no scope asks for a device"
    with tf.device("/job:ps"), tf.device("/gpu:1"):
        for taker in takers:
            graph._apply_device_functions(taker)
    assert (takers[0].device.job, takers[0].device.device_type) == ("ps", "GPU")
    assert takers[1].device == "/job:ps/device:GPU:1"


def test_inputs_are_changed():
    a, b = tf.constant(1.0), tf.constant(2.0)
    total = tf.add(a, a)
    total.op._update_input(1, b)
    assert total.op._inputs == [a, b] and total.op._outputs == [total] and a.consumers() == b.consumers() == [total.op]
    with tf.Session() as session:
        assert session.run(total) == 3
    with pytest.raises(TypeError, match="int32"):
        total.op._update_input(0, tf.constant(1))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="another graph"):
        total.op._update_input(0, tf.constant(1.0))


def test_what_values_are():
    tensor, variable = tf.constant(1.0), tf.Variable(1.0)
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    assert isinstance(tensor, internal_names.TensorLike) and isinstance(sparse, internal_names.TensorLike)
    assert not isinstance(variable, internal_names.TensorLike) and not isinstance(1.0, internal_names.TensorLike)
    dense = [internal_names.is_dense_tensor_like(each) for each in (tensor, variable, sparse, 1.0)]
    assert dense == [True, True, False, False]
    assert tensor.shape._dims == [] and tf.TensorShape(None)._dims is None
    assert variable.op.op_def.is_stateful and not tensor.op.op_def.is_stateful
    assert internal_names.ShardContext().number_of_shards is None


def test_shapes_as_tensors():
    fed = tf.placeholder(tf.float32, [None, 2])
    known = internal_names.shape_as_tensor(tf.TensorShape([2, 3]))
    with tf.Session() as session:
        found = session.run([known, internal_names.shape_internal(fed, out_type=tf.int64)], {fed: [[1.0, 2.0]]})
    assert found[0].tolist() == [2, 3] and found[1].tolist() == [1, 2] and known.dtype is tf.int32
    with pytest.raises(ValueError, match="partially known"):
        internal_names.shape_as_tensor(fed.shape)


def test_ranks_and_sizes_are_known_inside():
    known, fed = tf.zeros([1, 2, 3]), tf.placeholder(tf.float32)
    made = [internal_names.rank_internal(known, optimize=False), internal_names.size_internal(known)]
    assert [tf.contrib.util.constant_value(each).tolist() for each in made] == [3, 6]
    with tf.Session() as session:
        ask = [internal_names.rank_internal(fed), internal_names.size_internal(fed, out_type=tf.int64)]
        assert session.run(ask, {fed: [[1.0, 2.0]]}) == [2, 2] and ask[1].dtype is tf.int64


@pytest.mark.parametrize(
    ("function", "rows", "values", "expected"),
    [
        (inplace_rows.alias_inplace_update, 1, [7, 8], [[0, 1], [7, 8], [4, 5]]),
        (inplace_rows.inplace_add, [2, 0], [[1, 1], [2, 2]], [[2, 3], [2, 3], [5, 6]]),
        (inplace_rows.inplace_update, [-3, -1], [[7, 8], [9, 9]], [[7, 8], [2, 3], [9, 9]]),
        (inplace_rows.alias_inplace_sub, None, [[0, 1], [1, 1], [4, 0]], [[0, 0], [1, 2], [0, 5]]),
    ],
)
def test_rows_changed_in_place(function, rows, values, expected):
    x = tf.reshape(tf.range(6), [3, 2])
    with tf.Session() as session:
        assert session.run(function(x, rows, values)).tolist() == expected
        assert session.run(x)[1].tolist() == [2, 3]
        assert session.run(inplace_rows.empty_like(x) + inplace_rows.empty([3, 2], tf.int32)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize(
    ("rows", "values", "message"),
    [
        ([[0]], [[10.0]], "i must be a vector"),
        ([0], [10.0], "x and v shape doesn't match"),
        ([0, 1], [[10.0]], "i and x shape doesn't match"),
    ],
)
def test_rows_and_values_fit(rows, values, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        inplace_rows.inplace_update([[1.0]], rows, values)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (None, ""),
        ("/gpu:0/task:1/job:a", "/job:a/task:1/device:GPU:0"),
        (tf.DeviceSpec(job="a", device_type="CPU", device_index=2), "/job:a/device:CPU:2"),
    ],
)
def test_names_of_devices_have_one_form(device, expected):
    assert internal_names.canonical_device(device) == expected


def test_what_can_be_reached():
    a, v = tf.placeholder(tf.float32, []), tf.Variable(1.0)
    total = a + v
    result = total * 2.0
    found = layer_internals.get_reachable_from_inputs([a])
    assert {a, total, total.op, result, result.op} <= found and v.op not in found
    assert {v, v.op, result} <= layer_internals.get_reachable_from_inputs({"v": v})


def test_hints_of_functions():
    @Defun(tf.float32, compiled=True, separate_compiled_gradients=True, noinline=True)
    def doubled(x):
        return 2.0 * x

    with tf.Session() as session:
        assert session.run(doubled(tf.constant(3.0), compiled=True)) == 6


class Twice:
    """An object that stands for a tensor, and is shown as its double."""

    def __init__(self, tensor):
        self.tensor = tensor


def test_objects_that_stand_for_tensors_are_fetched_and_fed():
    internal_names.register_session_run_conversion_functions(
        Twice,
        lambda each: ([each.tensor], lambda values: 2 * values[0]),
        lambda each, value: [(each.tensor, value / 2)],
        lambda each: [each.tensor],
    )
    with pytest.raises(ValueError, match="already been registered"):
        internal_names.register_session_run_conversion_functions(Twice)
    twice = Twice(tf.placeholder_with_default(3.0, []))
    with tf.Session() as session:
        assert session.run([twice, twice.tensor]) == [6, 3]
        assert session.run({"a": twice}, {twice: 10.0}) == {"a": 10}


def test_operators_of_tensors_are_listed():
    assert {"__add__", "__radd__", "__getitem__", "__matmul__", "__neg__"} <= tf.Tensor.OVERLOADABLE_OPERATORS
    assert all(hasattr(tf.Tensor, name) for name in tf.Tensor.OVERLOADABLE_OPERATORS)
    assert isinstance(tf.Tensor.OVERLOADABLE_OPERATORS, set)


@pytest.mark.parametrize("kind", [tf.convert_to_tensor, tf.Variable], ids=["tensor", "variable"])
def test_python_2s_operators_have_their_methods(kind):
    five, half = kind([5, -5]), kind(0.5)
    results = [five.__div__(2), five.__rdiv__(7), half.__div__(2.0), half.__rdiv__(3)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(results)
    assert [value.tolist() for value in found] == [[2, -3], [1, -2], 0.25, 6.0]
    with pytest.raises(TypeError, match="not allowed"):
        tf.Tensor.__nonzero__(tf.constant(True))


def test_values_of_several_tensors_have_a_class():
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))
    is_composite = [isinstance(each, internal_names.CompositeTensor) for each in (rows, tf.sparse.eye(2), rows.values)]
    assert is_composite == [True, True, False]


def test_graphs_of_inputs():
    x, other = tf.constant(1), tf.Graph()
    assert internal_names.graph_of_inputs([x, 3]) is x.graph is internal_names.graph_of_inputs([])
    with pytest.raises(ValueError, match="not from the passed-in graph"):
        internal_names.graph_of_inputs([x], other)
    assert internal_names.uid() != internal_names.uid()


def test_collections_with_messages_of_their_own_are_written_and_read(tmp_path):
    class Length(str):
        """A text that a meta graph keeps as a `tf.Summary` of its length."""

    def to_proto(member, export_scope=None):
        return tf.Summary(value=[tf.Summary.Value(simple_value=len(member))]) if member else None

    register = meta_graph.register_proto_function
    register("lengths", tf.Summary, to_proto, lambda message, import_scope=None: int(message.value[0].simple_value))
    with pytest.raises(TypeError, match="to_proto must be callable"):
        register("lengths", tf.Summary, 3)
    for text in ("four", "", "sixsix"):
        tf.add_to_collection("lengths", Length(text))
    tf.constant(1)
    made = tf.train.export_meta_graph(str(tmp_path / "graph.meta"))
    with tf.Graph().as_default():
        tf.train.import_meta_graph(made)
        assert tf.get_collection("lengths") == [4, 6]


def test_scopes_of_variables_without_names_of_operations():
    with tf.variable_scope("outer") as outer:
        pass
    with variable_scope.pure_variable_scope(outer, reuse=tf.AUTO_REUSE) as scope:
        variable = tf.get_variable("a", [])
        assert scope.name == "outer" and variable.name == "outer/a:0"
        assert tf.constant(1).name == "Const:0"
        with variable_scope.pure_variable_scope("inner"):
            assert tf.get_variable("b", []).name == "outer/inner/b:0"


LABELS, SCORES = [[True], [False], [True]], [0.2, 0.6, 0.8]


@pytest.mark.parametrize(
    ("includes", "expected"),
    [(None, {"tp": 1, "fn": 1, "tn": 0, "fp": 1}), (("tp", "fp"), {"tp": 1, "fp": 1})],
)
def test_parts_of_metrics(includes, expected):
    values, updates = metric_internals.confusion_matrix_at_thresholds(LABELS, SCORES, [0.5], includes=includes)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert {key: value.tolist() for key, value in session.run(updates).items()} == {
            key: [value] for key, value in expected.items()
        }
        assert session.run(values).keys() == expected.keys()
    with pytest.raises(ValueError, match="Invalid key"):
        metric_internals.confusion_matrix_at_thresholds(LABELS, SCORES, [0.5], includes=["of"])


def test_confusion_so_far():
    matrix, update = mean_metrics.matrix_so_far([[0, 1], [2, 1]], [[0, 1], [1, 1]], 3, [[1.0], [0.5]])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        expected = np.array([[1, 0, 0], [0, 1.5, 0], [0, 0.5, 0]])
        np.testing.assert_array_equal(session.run(update), expected)
        np.testing.assert_array_equal(session.run(update), 2 * expected)
        np.testing.assert_array_equal(session.run(matrix), 2 * expected)


def test_weights_are_spread_over_values():
    values = tf.ones([2, 3], tf.int32)
    predictions, labels, weights = metric_internals.remove_squeezable_dimensions(SCORES, None, [[1.0]] * 3)
    assert labels is None and predictions.shape.as_list() == weights.shape.as_list() == [3]
    total = metric_internals.metric_variable([], tf.float64, name="total")
    metric_internals.aggregate_variable(total, "sums")
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        spread = metric_internals.broadcast_weights([[1], [2]], values)
        assert session.run(spread).tolist() == [[1] * 3, [2] * 3]
        assert session.run(tf.get_collection("sums")) == [0]
    for wrong in ([1, 2, 3], [[1, 2]]):
        with pytest.raises(ValueError, match="can not be broadcast to values"):
            metric_internals.assert_broadcastable(wrong, values)


@pytest.mark.parametrize("rank", [None, 2])
def test_weights_of_unknown_shape_are_checked_in_the_step(rank):
    weights, values = (tf.placeholder(tf.float32, None if rank is None else [None] * rank) for _ in range(2))
    spread = metric_internals.broadcast_weights(weights, values)
    with tf.Session() as session:
        found = session.run(spread, {weights: [[2.0], [3.0]], values: np.zeros((2, 3))})
        np.testing.assert_array_equal(found, [[2] * 3, [3] * 3])
        if rank is None:
            np.testing.assert_array_equal(session.run(spread, {weights: 2.0, values: np.zeros(2)}), [2, 2])
        for wrong in ([[1.0, 2.0]], np.ones((3, 3)), *([np.ones(3)] if rank is None else [])):
            with pytest.raises(tf.errors.InvalidArgumentError, match="can not be broadcast to values"):
                session.run(spread, {weights: wrong, values: np.zeros((2, 3))})


def test_a_module_is_imported_when_something_of_it_is_asked_for():
    names = {}
    module = names["statistics"] = internal_names.LazyLoader("statistics", names, "statistics")
    assert module.median([1, 2, 6]) == 2 and "mean" in dir(module)
    assert names["statistics"] is sys.modules["statistics"]


def test_names_of_the_metrics_of_ready_made_estimators():
    x = np.arange(4, dtype=np.float32)
    estimator = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")])
    inputs = tf.estimator.inputs.numpy_input_fn({"x": x}, 2 * x, batch_size=4, shuffle=False)
    keys = internal_names.MetricKeys
    expected = {keys.LOSS, keys.LOSS_MEAN, keys.LABEL_MEAN, keys.PREDICTION_MEAN, "global_step"}
    assert set(estimator.train(inputs, steps=1).evaluate(inputs)) == expected


def test_conversions_of_a_programs_own():
    class Held:
        def __init__(self, value):
            self.value = value

    def converted(held, dtype=None, name=None, as_ref=False):
        return internal_names.internal_convert_to_tensor(held.value, dtype=dtype, name=name, as_ref=as_ref)

    tf.register_tensor_conversion_function(Held, converted)
    with tf.Session() as session:
        assert session.run(tf.add(Held(1.5), 1.0)) == 2.5


def test_scope_of_a_summary_has_a_default_name():
    with tf.Graph().as_default():
        with summary_scope("a b", "family", values=[tf.constant(1)]) as found:
            assert found == ("family/family/a_b", "family/a_b/")
        with summary_scope("a", default_name="d") as found:
            assert found == ("a", "a/")
        with summary_scope(None, default_name="d") as found:
            assert found == ("d", "d/")
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not a name"), summary_scope(None):
            pass


def test_a_graph_is_no_body_of_a_function():
    with tf.Graph().as_default():
        assert internal_names.inside_function() is False


def test_small_functions_that_programs_import():
    names = {"a/b": "b", "^a/b": "^b", "loc:@a/b": "loc:@b", "ab/c": "ab/c", "a//b": "b"}
    assert {name: internal_names.strip_name_scope(name, "a/") for name in names} == names
    within = {"b": "a/b", "^b": "^a/b", "loc:@b/c": "loc:@a/b/c"}
    assert {name: internal_names.prepend_name_scope(name, "a/") for name in within} == within
    assert internal_names.prepend_name_scope("b", None) == "b"
    assert internal_names.is_resource_variable(tf.Variable(1.0))
    assert not internal_names.is_resource_variable(tf.constant(1.0))
    assert internal_names.strip_name_scope("a/b", None) == "a/b"
    look_up = internal_names.deprecated_argument_lookup
    assert look_up("axis", None, "dim", 3) == 3 and look_up("axis", 4, "dim", None) == 4
    with pytest.raises(ValueError, match="Cannot specify both 'dim' and 'axis'"):
        look_up("axis", 4, "dim", 3)
    assert "strip_name_scope" in internal_names.make_all("tfray.programs.internal_names")
    assert internal_names.remove_undocumented("tfray.programs.internal_names") is None
    assert not internal_names.executing_eagerly_outside_functions()
    with internal_names.nothing("anything"):
        pass


def test_operations_that_take_the_outputs_of_others():
    x = tf.zeros([2])
    first = tf.nn.relu6(x)
    second = x + first
    found = InputToOps(tf.get_default_graph())
    assert found.ConsumerOperations(x.op) == {first.op, second.op}
    assert found.ConsumerOperations(second.op) == set()
