"""The graph: names, scopes, collections, control dependencies, colocation, and what it refuses."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework import op_def, shape_functions, traversal
from tfray.framework.op_def import OpDef, on_cpu, on_every_device

# -- names ---------------------------------------------------------------------------------------------


def test_names_are_made_unique():
    names = [tf.constant(0, name=name).op.name for name in ("x", "x", "x_1", "X", "x", None)]
    assert names == ["x", "x_1", "x_1_1", "X_2", "x_3", "Const"]


def test_name_scopes_nest_repeat_and_are_entered_again():
    with tf.name_scope("outer") as outer:
        assert outer == "outer/"
        a = tf.constant(0, name="a")
        with tf.name_scope("inner") as inner:
            b = tf.constant(0, name="a")
        with tf.name_scope("inner"):
            c = tf.constant(0, name="a")
        with tf.name_scope(None):
            d = tf.constant(0, name="a")
    with tf.name_scope("outer"):
        e = tf.constant(0, name="a")
    with tf.name_scope(inner):
        f = tf.constant(0, name="z")
    assert [t.op.name for t in (a, b, c, d, e, f)] == [
        "outer/a",
        "outer/inner/a",
        "outer/inner_1/a",
        "a",
        "outer_1/a",
        "outer/inner/z",
    ]


def test_a_name_scope_knows_its_name_and_is_entered_more_than_once():
    scope = tf.name_scope(None, "outer")
    assert (scope.name, tf.name_scope("given", "outer").name, tf.name_scope(None).name) == ("outer", "given", None)
    with scope as first, scope as second, tf.name_scope(scope.name) as third:
        assert (first, second, third) == ("outer/", "outer/outer/", "outer/outer/outer/")
    with scope as again:
        assert (again, tf.get_default_graph().get_name_scope()) == ("outer_1/", "outer_1")
    with pytest.raises(TypeError, match="takes a name"), tf.name_scope(3):
        pass


def test_a_name_scope_takes_a_default_and_the_graph_of_its_values():
    other = tf.Graph()
    with other.as_default():
        value = tf.constant(1)
    with tf.name_scope(None, "fallback", [value]) as scope:
        assert scope == "fallback/"
        assert tf.get_default_graph() is other
    assert tf.get_default_graph() is not other


@pytest.mark.parametrize("open_scope", [tf.name_scope, tf.variable_scope])
def test_a_scope_takes_a_name(open_scope):
    with pytest.raises(TypeError, match=r"takes a name.*, not 3"), open_scope(3):
        pass


@pytest.mark.parametrize("name", ["a b", "ä", "a:0", "^a", "_a", "/a", "-a", "a\nb"])
def test_names_with_other_characters_are_refused(name):
    with pytest.raises(ValueError, match="name"), tf.name_scope(name):
        pass
    with pytest.raises(ValueError, match="name"):
        tf.constant(0, name=name)


def test_elements_are_found_by_name():
    graph = tf.get_default_graph()
    x = tf.constant(0, name="layer/x")
    assert graph.get_operation_by_name("layer/x") is x.op
    assert graph.get_tensor_by_name("layer/x:0") is x
    assert graph.as_graph_element("layer/x:0") is x
    assert graph.as_graph_element("layer/x") is x.op
    assert graph.as_graph_element(tf.Variable(1.0, name="v")) is graph.get_tensor_by_name("v/read:0")


@pytest.mark.parametrize(
    ("find", "error", "message"),
    [
        (lambda g: g.get_operation_by_name("leyer/x"), KeyError, "layer/x"),
        (lambda g: g.get_tensor_by_name("layer/x:1"), KeyError, "exists but only has 1 outputs"),
        (lambda g: g.get_tensor_by_name("layer/y:0"), KeyError, "refers to a Tensor which does not exist"),
        (lambda g: g.get_tensor_by_name("layer/x"), ValueError, "refers to an Operation, not a Tensor"),
        (lambda g: g.get_tensor_by_name("layer/y"), ValueError, "looks like an .invalid. Operation name"),
        (lambda g: g.get_tensor_by_name("layer/x:one"), ValueError, "Tensor names must be of the form"),
        (lambda g: g.get_operation_by_name("layer/y"), KeyError, "refers to an Operation not in the graph"),
        (lambda g: g.get_operation_by_name("layer/x:0"), ValueError, "appears to refer to a Tensor, not a Operation"),
        (lambda g: g.as_graph_element(3), TypeError, "int"),
        (lambda g: g.as_graph_element(np.zeros(2)), TypeError, "ndarray"),
        (lambda g: g.as_graph_element("layer/x", allow_tensor=False, allow_operation=False), ValueError, "both False"),
        (lambda g: g.control_dependencies([3]), TypeError, "int"),
        (lambda g: g.control_dependencies(["layer/y"]), KeyError, "layer/y"),
    ],
)
def test_what_is_not_in_the_graph(find, error, message):
    tf.constant(0, name="layer/x")
    with pytest.raises(error, match=message):
        find(tf.get_default_graph())


def test_elements_of_another_graph_are_refused():
    with tf.Graph().as_default():
        foreign = tf.constant(1.0, name="foreign")
    with pytest.raises(ValueError, match=r"foreign.*another graph"):
        tf.get_default_graph().as_graph_element(foreign)
    with pytest.raises(InvalidArgumentError, match=r"foreign.*another graph"):
        tf.add(foreign, 1.0)
    with (
        pytest.raises(ValueError, match=r"foreign.*another graph"),
        tf.name_scope("s", values=[tf.constant(1), foreign]),
    ):
        pass


# -- default graphs ------------------------------------------------------------------------------------


def testdefault_graphs_nest_and_are_per_thread():
    root, inner = tf.get_default_graph(), tf.Graph()
    seen = []
    with inner.as_default():
        thread = threading.Thread(target=lambda: seen.append(tf.get_default_graph()))
        thread.start()
        thread.join()
        assert tf.constant(1).graph is inner
        with pytest.raises(RuntimeError, match="reset_default_graph"):
            tf.reset_default_graph()
    assert seen == [root]
    assert tf.get_default_graph() is root
    tf.reset_default_graph()
    assert tf.get_default_graph() is not root


def test_scopes_left_in_the_wrong_order_are_noticed():
    first, second = tf.Graph().as_default(), tf.Graph().as_default()
    first.__enter__()
    second.__enter__()
    with pytest.raises(RuntimeError, match="reverse order"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    tf.get_default_graph()  # only the first is left
    from tfray.framework.default_stack import default_graphs

    default_graphs.items.clear()


def test_a_finalized_graph_refuses_operations():
    x = tf.constant(1.0)
    graph = tf.get_default_graph()
    assert not graph.finalized
    graph.finalize()
    assert graph.finalized
    for change in (
        lambda: tf.add(x, 1.0),
        lambda: graph.add_to_collection("c", x),
        lambda: graph.clear_collection("c"),
    ):
        with pytest.raises(RuntimeError, match="finalized"):
            change()
    with tf.Session() as session:
        assert session.run(x) == 1.0


# -- operations ----------------------------------------------------------------------------------------


def test_an_operation_knows_its_parts():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.matmul(x, tf.ones([3, 2]), name="y")
    op = y.op
    assert (op.name, op.type, op.graph, op.outputs[0], op.values()) == ("y", "MatMul", x.graph, y, (y,))
    assert op.inputs[0] is x
    assert x.consumers() == [op]
    assert y.name == "y:0" and y.value_index == 0
    assert y.shape == [None, 2] == y.get_shape()
    assert op.node_def.name == "y"
    assert op.get_attr("transpose_a") is False
    assert op in x.graph.get_operations()
    with pytest.raises(ValueError, match="nonsense"):
        op.get_attr("nonsense")
    assert [dim.size for dim in x.op.get_attr("shape").dim] == [-1, 3]
    image = tf.nn.conv2d(tf.ones([1, 2, 2, 1]), tf.ones([1, 1, 1, 1]), [1, 1, 1, 1], "SAME")
    assert image.op.get_attr("padding") == b"SAME"


def test_an_operation_knows_the_line_that_made_it():
    ((file, line, function, text),) = tf.no_op().traceback
    assert (file, function) == (__file__, "test_an_operation_knows_the_line_that_made_it")
    assert line and "tf.no_op().traceback" in text


def test_the_name_of_a_variable_stands_for_its_value():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
    named = tf.get_default_graph().get_tensor_by_name("v:0")
    assert named.shape == [2, 2] and named.dtype is tf.float32
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(2 * named[0]).tolist() == [2, 4]
        assert session.run(tf.gradients(v * v, named)[0]).tolist() == [[2, 4], [6, 8]]
        for key in (named, "v:0", v):
            assert session.run(v + 1.0, {key: np.zeros((2, 2))}).tolist() == [[1, 1], [1, 1]]
        session.run(tf.assign(named, np.ones((2, 2))))
        assert session.run(v).tolist() == [[1, 1], [1, 1]]


def test_what_may_not_be_fed_or_fetched():
    graph = tf.get_default_graph()
    x = tf.constant(1.0)
    y = x + 1.0
    graph.prevent_feeding(x)
    graph.prevent_fetching(y.op)
    assert not graph.is_feedable(x) and graph.is_fetchable(x) and not graph.is_fetchable(y)
    assert tf.Graph().is_feedable(x) and tf.Graph().is_fetchable(y), "each graph knows what it was told"
    with tf.Session() as session:
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(x, {x: 2.0})
        for each in (y, y.op):
            with pytest.raises(ValueError, match="may not be fetched"):
                session.run(each)
        assert session.run(y * 1.0) == 2


def test_what_takes_a_result_of_the_scope_has_waited():
    a, b = tf.constant(1.0), tf.constant(2.0)
    with tf.control_dependencies([a.op]):
        c = tf.negative(b)
        d = tf.negative(c)
        e = tf.negative(a)
        with tf.control_dependencies([b.op]):
            f = c + a
    waited_for = [each.op.control_inputs for each in (c, d, e, f)]
    assert waited_for == [[a.op], [], [], [b.op]]


def test_a_result_of_the_scope_waits_when_it_is_a_constant():
    v = tf.Variable(0.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0)]):
        result = tf.identity(tf.constant(3.0)) * 2.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(result) == 6 and session.run(v) == 1


def test_creation_sites_are_the_users_lines():
    x = tf.placeholder(tf.float32, name="x")
    line = inspect.currentframe().f_lineno + 1
    y = tf.reduce_mean(tf.square(x)) + 1.0
    ops = [y.op, y.op.inputs[0].op, y.op.inputs[0].op.inputs[0].op]
    for op in ops:
        assert op.site == f"{__file__}:{line}, in test_creation_sites_are_the_users_lines"


def test_set_shape_merges_and_refuses_contradictions():
    x = tf.placeholder(tf.float32, [None, 3])
    version = x.graph.version
    x.set_shape([2, None])
    assert x.shape == [2, 3]
    assert x.graph.version > version
    with pytest.raises(ValueError, match="incompatible"):
        x.set_shape([4, 3])


@pytest.mark.parametrize(
    "use", [bool, len, iter, np.asarray, lambda t: [1, 2, 3][t]], ids=["bool", "len", "iter", "array", "index"]
)
def test_a_tensor_is_not_its_value(use):
    x = tf.placeholder(tf.int32, name="culprit")
    with pytest.raises(TypeError):
        use(x)


def test_tensors_compare_by_identity_and_serve_as_keys():
    x, y = tf.constant(1), tf.constant(1)
    assert x == x and x != y
    assert {x: "x", y: "y"}[y] == "y"


def test_iterating_takes_rows_apart():
    rows = list(tf.constant([[1, 2], [3, 4]]))
    with tf.Session() as session:
        assert [row.tolist() for row in session.run(rows)] == [[1, 2], [3, 4]]


def test_control_dependencies_nest_and_are_dropped():
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    v = tf.Variable(0, name="v")
    with tf.control_dependencies([a]):
        with tf.control_dependencies([b.op, v]):
            c = tf.constant(3)
        with tf.control_dependencies(None):
            d = tf.constant(4)
        e = tf.constant(5)
    assert c.op.control_inputs == [a.op, b.op, v.value().op]
    assert d.op.control_inputs == []
    assert e.op.control_inputs == [a.op]


def test_a_function_knows_variables_by_their_nodes():
    def parameters_on_the_cpu(op):
        return "/cpu:0" if op.node_def.op in ("Variable", "VariableV2") else "/gpu:0"

    with tf.device(parameters_on_the_cpu):
        v = tf.Variable(tf.zeros([2], name="start"), name="v")
    start = v.graph.get_operation_by_name("start")
    assert (v.device, start.device) == ("/cpu:0", "/gpu:0"), "the function's words, as in TensorFlow"
    with tf.device("/job:ps"), tf.device(parameters_on_the_cpu):
        assert tf.constant(1).device == "/job:ps/device:GPU:0"
    with tf.device(lambda op: "nowhere"), pytest.raises(ValueError, match="'nowhere' is not a device name"):
        tf.constant(1)


def test_colocation_is_recorded_and_keeps_the_device():
    with tf.device("/job:ps/task:1"):
        a = tf.constant(1, name="a")
    b = tf.constant(2, name="b")
    with tf.device("/job:worker"), tf.colocate_with(a):
        c = tf.constant(3)
        with tf.colocate_with(b):
            d = tf.constant(4)
        with tf.colocate_with(b, ignore_existing=True):
            e = tf.constant(5)
    assert c.op.colocation_groups() == [b"loc:@a"] and c.device == "/job:ps/task:1"
    assert d.op.colocation_groups() == [b"loc:@a", b"loc:@b"]
    assert e.op.colocation_groups() == [b"loc:@b"] and e.device == ""
    with tf.colocate_with(d):
        f = tf.constant(6)
        with tf.colocate_with(None, ignore_existing=True):
            g = tf.constant(7, name="g")
    assert f.op.colocation_groups() == f.op.get_attr("_class") == [b"loc:@a", b"loc:@b"]
    assert g.op.colocation_groups() == [b"loc:@g"]


def test_extra_attributes_and_gradient_overrides_are_scoped():
    graph = tf.get_default_graph()
    with graph.attr_scope({"_tag": "x"}), graph.gradient_override_map({"Identity": "Mine"}):
        a = tf.identity(tf.constant(1.0))
    b = tf.identity(tf.constant(1.0))
    assert a.op.attrs["_tag"] == "x" and a.op.attrs["_gradient_overrides"] == {"Identity": "Mine"}
    assert "_tag" not in b.op.attrs and "_gradient_overrides" not in b.op.attrs


# -- collections ---------------------------------------------------------------------------------------


def test_collections():
    graph = tf.get_default_graph()
    with tf.name_scope("s"):
        x = tf.constant(1, name="x")
    y = tf.constant(2, name="y")
    tf.add_to_collection("c", x)
    tf.add_to_collections(["c", "d", "c"], y)
    assert tf.get_collection("c") == [x, y]
    assert tf.get_collection("c", scope="s/") == [x]
    tf.add_to_collection("d", 7)
    assert tf.get_collection("d", scope=".*") == [y]
    assert tf.get_collection("none") == []
    tf.get_collection("c").clear()
    assert tf.get_collection("c") == [x, y]
    tf.get_collection_ref("c").remove(x)
    assert tf.get_collection("c") == [y]
    tf.get_collection_ref("empty")
    assert sorted(graph.get_all_collection_keys()) == ["c", "d"]
    graph.clear_collection("c")
    assert tf.get_collection("c") == []


# -- what add_operation refuses -------------------------------------------------------------------------


def create(op_type, inputs, attrs=None):
    return tf.get_default_graph().add_operation(op_type, inputs, attrs or {}, "culprit")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, i: create("Add", [x]), "takes 2 inputs, got 1"),
        (lambda x, i: create("Add", [x, x, x]), "takes 2 inputs, got 3"),
        (
            lambda x, i: create("Add", [x, i]),
            "Input 'y' has type int32 that does not match type float32 of argument 'x'",
        ),
        (lambda x, i: create("Add", [x, x], {"nonsense": 1}), "no attribute nonsense"),
        (lambda x, i: create("Placeholder", [], {"dtype": tf.float32}), "shape is missing"),
        (lambda x, i: create("Placeholder", [], {"shape": None}), "'dtype' is needed"),
        (
            lambda x, i: create("LogicalAnd", [x, x]),
            "has type float32 that does not match expected type of bool",
        ),
        (
            lambda x, i: create("Exp", [i]),
            "parameter 'x' has DataType int32 not in list of allowed values: f",
        ),
        (lambda x, i: tf.matmul(x, tf.ones([4, 2]), name="culprit"), "3"),
        (lambda x, i: tf.add(x, tf.ones([5]), name="culprit"), r"\(2, 3\).*\(5,\)"),
    ],
)
def test_a_bad_operation_is_named_with_its_line(make, message):
    x, i = tf.ones([2, 3]), tf.constant([1, 2])
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        make(x, i)
    assert caught.value.op_name == "culprit"
    assert "created at" in str(caught.value) and __file__ in str(caught.value)


def test_an_unknown_type_suggests_close_names():
    with pytest.raises(KeyError, match="MatMul"):
        create("MatMull", [])


# -- definitions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Add"}, "registered already"),
        ({"kernels": {}}, "no kernel"),
        ({"access": "write"}, "access"),
        ({"inputs": ("x: T",)}, "undeclared type 'T'"),
        ({"inputs": ("x",)}, "not of the form"),
        ({"inputs": ("xs: any*", "y: any")}, "only the last"),
        ({"outputs": ("y: any*n",)}, "counted by no attribute"),
    ],
)
def test_definitions_are_checked(fields, message):
    good = {
        "name": "NeverRegistered",
        "inputs": (),
        "outputs": (),
        "shape": shape_functions.no_outputs,
        "kernels": on_every_device(lambda ctx: None),
    }
    with pytest.raises(ValueError, match=message):
        op_def.register(OpDef(**(good | fields)))
    assert "NeverRegistered" not in op_def.registered_ops()


def test_a_shape_function_must_give_one_shape_per_output(monkeypatch):
    monkeypatch.setattr(op_def, "_REGISTRY", dict(op_def._REGISTRY))
    op_def.register(
        OpDef("Wrong", (), ("y: int32",), shape=shape_functions.no_outputs, kernels=on_cpu(lambda ctx: np.int32(1)))
    )
    with pytest.raises(InvalidArgumentError, match="0 shapes for 1 outputs"):
        create("Wrong", [])


# -- walks ---------------------------------------------------------------------------------------------


def test_topological_order_respects_all_edges_and_creation():
    a = tf.constant(1, name="a")
    b = tf.constant(2, name="b")
    with tf.control_dependencies([b]):
        c = tf.identity(a, name="c")
    ops = [c.op, b.op, a.op]
    assert traversal.topological_order(ops) == [a.op, b.op, c.op]
    assert traversal.topological_order(ops, [(b.op, a.op)]) == [b.op, a.op, c.op]
    assert traversal.reachable_backward([c.op]) == {a.op, b.op, c.op}
    with pytest.raises(ValueError, match="cycle through a, b, c"):
        traversal.topological_order(ops, [(c.op, a.op), (c.op, b.op)])


def test_a_cycle_of_control_inputs_is_an_error_and_no_hang():
    a = tf.constant(1, name="a")
    b = tf.identity(a, name="b")
    a.op.add_control_inputs([b.op])
    with tf.Session() as session, pytest.raises(InvalidArgumentError, match="cycle"):
        session.run(b)


def test_a_shape_shows_its_dimensions_as_in_tensorflow_1():
    assert repr(tf.TensorShape([1, None])) == "TensorShape([Dimension(1), Dimension(None)])"
    assert repr(tf.TensorShape(None)) == "TensorShape(None)" and str(tf.TensorShape([1, None])) == "(1, ?)"


def test_a_dimension_may_be_compared_with_any_number_or_text():
    twelve, unknown = tf.Dimension(12), tf.Dimension(None)
    assert [twelve == "12", twelve == 24.0 / 2, twelve == "_", unknown == 12.99] == [True, True, False, False]
    assert [twelve == unknown, unknown == "13", unknown != None] == [None] * 3  # noqa: E711
    for wrong in (lambda: tf.Dimension(tf.string), lambda: unknown / unknown):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="unsupported operand type"):
        twelve / 2


def test_programs_give_tensors_attributes_of_their_own():
    tensor = tf.constant(1)
    tensor.mine = ["a"]
    assert tensor.mine == ["a"] and not hasattr(tensor, "other")


def test_containers():
    graph = tf.get_default_graph()
    with graph.container("outer"):
        a = tf.Variable(1)
        with tf.container("inner"):
            b = tf.Variable(1)
            queue = tf.FIFOQueue(1, tf.int32)
        c = tf.Variable(1)
    made = [each.op.get_attr("container") for each in (a, b, queue.queue_ref, c, tf.Variable(1))]
    assert made == [b"outer", b"inner", b"inner", b"outer", b""]
    with pytest.raises(ValueError, match="no attr named 'container'"):
        tf.constant(1).op.get_attr("container")


def test_every_thread_has_name_scopes_of_its_own():
    graph, entered, left = tf.get_default_graph(), threading.Event(), threading.Event()
    names = []

    def build():
        with graph.as_default(), tf.name_scope("other"):
            names.append(tf.constant(0, name="c").op.name)
            entered.set()
            left.wait(60)

    thread = threading.Thread(target=build)
    with tf.name_scope("scope"):
        thread.start()
        entered.wait(60)
        names.append(tf.constant(0, name="c").op.name)
    left.set()
    thread.join()
    names.append(tf.constant(0, name="c").op.name)
    assert names == ["other/c", "scope/c", "c"]


def test_control_dependencies_wait_for_the_values_of_slices():
    values = tf.constant([1.0])
    with tf.control_dependencies([tf.IndexedSlices(values, tf.constant([0]))]):
        assert tf.no_op().control_inputs == [values.op]


@pytest.mark.parametrize("method", ["get_tensor_by_name", "get_operation_by_name"])
def test_what_is_no_name_is_refused(method):
    with pytest.raises(TypeError, match="names of the graph are strings, not int: 3"):
        getattr(tf.get_default_graph(), method)(3)
