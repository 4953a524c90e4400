"""Graphs as plain data: what is written is read again, and what was not written by us is refused."""

from __future__ import annotations

import contextlib
import json
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.random_graphs import programs
from tfray.errors import DataLossError, InvalidArgumentError, OpError
from tfray.framework.importer import from_graph_def
from tfray.framework.plain_graph import PlainGraph, PlainNode
from tfray.framework.region import Region


def round_trip(graph):
    return from_graph_def(PlainGraph.FromString(graph.as_plain().SerializeToString()))


def example_graph():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        with tf.device("/job:ps/task:1"), tf.name_scope("layer"):
            w = tf.Variable(np.ones((3, 2), np.float32), name="w")
        with tf.control_dependencies([w.initializer]), tf.colocate_with(w):
            tf.matmul(x, w, name="y")
        tf.strided_slice(x, [0, 0], [2, 2], name="slice")
        tf.constant([b"\x00\xff", "text"], name="strings")
        tf.constant(np.ones((0, 2), ml_dtypes.bfloat16), name="empty")
        tf.split(x, 3, 1, name="split")
    graph.seed = 5
    return graph


# -- round trips ---------------------------------------------------------------------------------------


def test_everything_survives():
    graph = example_graph()
    again = round_trip(graph)
    assert again.as_plain().to_plain() == graph.as_plain().to_plain()
    assert again.as_plain() == graph.as_plain()
    assert again.seed == 5
    for op in graph.get_operations():
        copy = again.get_operation_by_name(op.name)
        assert (copy.type, copy.device, copy.site) == (op.type, op.device, op.site)
        assert [c.name for c in copy.control_inputs] == [c.name for c in op.control_inputs]
        assert [t.shape for t in copy.outputs] == [t.shape for t in op.outputs]
        assert [t.dtype for t in copy.outputs] == [t.dtype for t in op.outputs]


@settings(max_examples=15, deadline=None)
@given(programs(devices=3, stateful=True))
def test_random_graphs_survive(program):
    again = round_trip(program.graph)
    assert again.as_plain() == program.graph.as_plain()
    feeds = program.feeds(2, 0)
    values = program.initial_values()
    results = []
    for graph in (program.graph, again):
        named = {tensor.name: value for tensor, value in feeds.items()}
        with tf.Session(graph=graph, config=tf.ConfigProto(device_count={"CPU": 3})) as session:
            for state, value in zip(program.states, values, strict=True):
                initial = state.variable.initializer.inputs[1]
                session.run(state.variable.initializer.name, {initial.name: value})
            results.append(session.run([t.name for t in program.fetches], named))
    for first, second in zip(*results, strict=True):
        assert np.array_equal(first, second, equal_nan=True)


plain_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63),
        st.floats(),
        st.text(),
        st.binary(),
        st.sampled_from([tf.float32, tf.bfloat16, tf.string]),
        st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3).map(tf.TensorShape),
        st.just(tf.TensorShape(None)),
        st.builds(slice, st.integers(), st.none(), st.integers(1, 3)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(plain_values)
def test_attribute_values_survive(value):
    graph_def = PlainGraph([PlainNode("x", "NoOp", attr={"_value": value})])
    data = graph_def.SerializeToString()
    again = PlainGraph.FromString(data)
    assert again.SerializeToString() == data
    assert repr(again.node[0].attr["_value"]) == repr(value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint64", "complex64"])
def test_arrays_survive_bit_by_bit(dtype):
    array = np.arange(6).reshape(2, 3).astype(tf.as_dtype(dtype).numpy)
    node = PlainNode("x", "Const", attr={"value": array, "dtype": tf.as_dtype(dtype)})
    again = PlainGraph.FromString(PlainGraph([node]).SerializeToString()).node[0].attr["value"]
    assert again.dtype == array.dtype and again.tobytes() == array.tobytes() and again.shape == (2, 3)


def test_a_value_that_is_not_plain_is_refused():
    graph = tf.get_default_graph()
    with graph.attr_scope({"_value": object()}):
        tf.no_op(name="culprit")
    with pytest.raises(InvalidArgumentError, match="object"):
        graph.as_plain().SerializeToString()


def test_parse_replaces():
    graph_def = PlainGraph()
    graph_def.ParseFromString(example_graph().as_plain().SerializeToString())
    assert graph_def == example_graph().as_plain()


# -- importing -----------------------------------------------------------------------------------------


def test_import_prefixes_and_returns_elements():
    graph_def = example_graph().as_plain()
    first = tf.import_graph_def(graph_def, return_elements=["layer/w", "y:0", "split:2"])
    tf.import_graph_def(graph_def, name="again")
    tf.import_graph_def(graph_def)
    assert [element.name for element in first] == ["import/layer/w", "import/y:0", "import/split:2"]
    names = {op.name for op in tf.get_default_graph().get_operations()}
    assert {"again/y", "import_1/y"} <= names
    assert first[1].op.placed_with == ["import/layer/w/read"]


def test_import_replaces_inputs():
    graph_def = example_graph().as_plain()
    mine = tf.constant([[1.0, 2.0, 3.0]], name="mine")
    (y,) = tf.import_graph_def(graph_def, {"x": mine}, ["y:0"])
    assert y.op.inputs[0] is mine
    assert y.shape == [None, 2] or y.shape == [1, 2]
    w = tf.get_default_graph().get_operation_by_name("import/layer/w/Assign")
    session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    with session, pytest.raises(InvalidArgumentError, match="/job:ps"):
        session.run(y)  # it asks for a device that is not here
    assert w.type == "Assign"


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (PlainNode("culprit", "NoSuchOp"), "culprit.*NoSuchOp"),
        (PlainNode("culprit", "Identity", ["missing:0"]), "missing:0.*culprit"),
        (PlainNode("culprit", "Identity", ["x:1"]), "x:1.*culprit"),
        (PlainNode("culprit", "Identity", ["x:one"]), "x:one.*culprit"),
        (PlainNode("culprit", "Identity", ["x:-1"]), "x:-1.*culprit"),
        (PlainNode("culprit", "NoOp", ["^missing"]), "missing.*culprit"),
        (PlainNode("culprit", "NoOp", ["^culprit"]), "culprit"),
        (PlainNode("x", "NoOp"), "'x' already"),
        (PlainNode("", "NoOp"), "name"),
        (PlainNode("a:0", "NoOp"), "name"),
        (PlainNode("culprit", "Identity", ["x:0", "x:0"]), "takes 1 inputs"),
        (PlainNode("culprit", "Const"), "value is missing"),
        (PlainNode("culprit", "Const", attr={"value": "text", "dtype": tf.float32}), "culprit"),
        (PlainNode("culprit", "Const", attr={"value": np.ones(2), "dtype": 3}), "culprit"),
        (PlainNode("culprit", "Const", attr={"value": np.ones(2), "dtype": tf.int32}), "culprit"),
        (PlainNode("culprit", "Placeholder", attr={"shape": "text", "dtype": tf.float32}), "culprit"),
        (PlainNode("culprit", "NoOp", device="nonsense"), "nonsense"),
        (PlainNode("culprit", "Identity", ["x:0"], shapes=[tf.TensorShape([7])]), "culprit"),
    ],
    ids=lambda value: value.op if isinstance(value, PlainNode) else value,
)
def test_a_bad_operation_is_named(node, message):
    x = PlainNode("x", "Placeholder", attr={"shape": tf.TensorShape([2]), "dtype": tf.float32})
    with pytest.raises(InvalidArgumentError, match=message):
        from_graph_def(PlainGraph([x, node]))


@pytest.mark.parametrize("name", ["nope:0", "x:1"])
def test_a_tensor_to_replace_that_is_not_there_is_named(name):
    tf.placeholder(tf.float32, name="x")
    definition = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), pytest.raises(ValueError, match=name):
        tf.import_graph_def(definition, {name: tf.constant(1.0)})


def test_an_element_that_is_not_there_is_named():
    graph_def = example_graph().as_plain()
    for missing in ("nowhere", "y:3", "y:x"):
        with pytest.raises(InvalidArgumentError, match=missing):
            tf.import_graph_def(graph_def, return_elements=[missing])
        tf.reset_default_graph()


# -- malformed input -----------------------------------------------------------------------------------

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)


@given(st.binary())
def test_random_bytes_are_refused(data):
    with pytest.raises(DataLossError):
        PlainGraph.FromString(data)


@given(json_values)
def test_random_json_is_refused(plain):
    with pytest.raises(DataLossError):
        PlainGraph.FromString(json.dumps(plain).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"version":1,"node":' + b"[" * 100_000,
        pickle.dumps(PlainGraph()),
        b'{"version":2,"seed":null,"node":[]}',
        b'{"version":1,"seed":"x","node":[]}',
        b'{"version":1,"seed":null,"node":{}}',
        b'{"version":1,"seed":null,"node":[{}]}',
        b"\xff\xfe",
        b"",
    ],
    ids=range(9),
)
def test_other_data_is_refused(data):
    with pytest.raises(DataLossError, match=r"graph|no GraphDef"):
        PlainGraph.FromString(data)


def paths(plain, prefix=()):
    """Every place in nested lists and dictionaries."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, value in items:
        yield (*prefix, key)
        yield from paths(value, (*prefix, key))


def replaced(plain, path, value):
    if not path:
        return value
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[path[0]] = replaced(plain[path[0]], path[1:], value)
    return copy


EXAMPLE = json.loads(example_graph().as_plain().SerializeToString())
EXAMPLE_PATHS = list(paths(EXAMPLE))


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(EXAMPLE_PATHS),
    st.one_of(
        json_values,
        st.sampled_from([10**12, -1, "x", {"dtype": "nonsense"}, {"array": {}}, {"list": 3}, {"shape": [-5]}]),
        st.sampled_from(
            [{"tuple": []}, {"dict": [[{"list": []}, 1]]}, {"slice": [1, 2, 3, 4]}, {"bytes": "%"}, {"int": 10**12}]
        ),
    ),
)
def test_a_damaged_graph_is_refused_or_is_a_graph(path, value):
    """Whatever stands in place of some part, the outcome is a graph or one of our own errors."""
    damaged = json.dumps(replaced(EXAMPLE, path, value)).encode()
    with contextlib.suppress(OpError):
        from_graph_def(PlainGraph.FromString(damaged))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_flipped_byte_is_refused_or_is_a_graph(data):
    good = example_graph().as_plain().SerializeToString()
    index = data.draw(st.integers(0, len(good) - 1))
    damaged = good[:index] + bytes([data.draw(st.integers(0, 255))]) + good[index + 1 :]
    with contextlib.suppress(OpError):
        from_graph_def(PlainGraph.FromString(damaged))


def test_nothing_is_executed(tmp_path):
    """Names, attributes and tokens that look like code stay text."""
    witness = tmp_path / "witness"
    code = f"__import__('pathlib').Path({str(witness)!r}).touch()"
    x = PlainNode("x", "Placeholder", attr={"shape": tf.TensorShape([]), "dtype": tf.float32}, site=code)
    evil = [
        PlainNode("a", "Identity", ["x:0"], attr={"_code": code, "_class": [code]}, site=code),
        PlainNode("b", "PyFunc", ["a:0"], attr={"token": code, "Tout": [tf.float32]}),
    ]
    graph = from_graph_def(PlainGraph.FromString(PlainGraph([x, *evil]).SerializeToString()))
    with tf.Session(graph=graph) as session:
        assert session.run("a:0", {"x:0": 2.0}) == 2.0
        with pytest.raises(tf.errors.NotFoundError, match="not known"):
            session.run("b:0", {"x:0": 2.0})
    for name in (code, f"x\n{code}", "a;b", "a'b"):
        with pytest.raises(InvalidArgumentError, match="name"):
            from_graph_def(PlainGraph([PlainNode(name, "NoOp")]))
    assert not witness.exists()


SCOPES = {
    "a device": ("/job:worker/task:3", "/job:worker/task:3", "/job:worker/task:3"),
    "a function": (tf.train.replica_device_setter(ps_tasks=2), "/job:ps/task:0", "/job:worker"),
}


@pytest.mark.parametrize("case", SCOPES)
def test_device_scopes_apply_to_what_is_imported(case):
    """The expected devices are those of TensorFlow 2.21. What shares a device asks for that of the other operation."""
    scope, of_variable, of_others = SCOPES[case]
    with tf.Graph().as_default() as graph:
        v = tf.Variable([1.0, 2.0], name="v")
        with tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, [2], name="x")
            y = tf.cond(x[0] > 0, lambda: tf.multiply(x, v, name="product"), lambda: x, name="y")
        with graph.colocate_with(v.op):
            tf.negative(y, name="z")
    with tf.Graph().as_default() as imported, tf.device(scope):
        tf.import_graph_def(graph.as_graph_def(), name="")
    devices = {op.name: op.device for op in imported.get_operations()}
    assert devices["v"] == devices["z"] == of_variable
    assert devices["x"] == f"{of_others}/device:CPU:0"
    (branch,) = (op for op in imported.get_operations() if op.type in ("Cond", "If"))
    inner = [op for region in branch.attrs.values() if isinstance(region, Region) for op in region.get_operations()]
    assert [op.device for op in inner if op.type == "Mul"] == [f"{of_others}/device:CPU:0"]


# -- beside what is there already ----------------------------------------------------------------------


def test_names_that_the_graph_has_get_numbers():
    graph = _message(("A", "Placeholder", []), ("B", "Identity", ["A"]))
    made = [tf.import_graph_def(graph, return_elements=["A", "B"], name=name) for name in ("", "", "A", "A/", "A/")]
    names = [[op.name for op in ops] for ops in made]
    assert names == [["A", "B"], ["A_1", "B_1"], ["A_2/A", "A_2/B"], ["A/A", "A/B"], ["A/A_1", "A/B_1"]]
    assert all(b.inputs == (a.outputs[0],) for a, b in made)
    (op,) = tf.import_graph_def(_message(("A_1", "Placeholder", [])), return_elements=[b"A_1"], name="")
    assert op.name == "A_1_1" and tf.constant(0.0, name="A").op.name == "A_3"
    with tf.name_scope("outer"), tf.name_scope("inner"):
        tf.constant(0.0, name="c")
    names = ["outer", "inner", "outer/inner"]
    ops = tf.import_graph_def(_message(*((name, "Placeholder", []) for name in names)), return_elements=names, name="")
    assert [op.name for op in ops] == ["outer_1", "inner", "outer/inner_1"]


def test_an_import_waits_for_the_scope_around_it():
    before = tf.no_op()
    with tf.control_dependencies([before]):
        a, b = tf.import_graph_def(_message(("A", "NoOp", []), ("B", "NoOp", ["^A"])), return_elements=["A", "B"])
    assert a.control_inputs == [before] and b.control_inputs == [a, before]


def test_an_operation_goes_with_any_other_that_has_a_device():
    graph = _message(("A", "NoOp", []), ("B", "NoOp", []), ("C", "NoOp", []))
    graph.node[2].attr["_class"].list.s.extend([b"loc:@A", b"loc:@B"])
    with tf.device(lambda op: "/device:GPU:0" if op.name.endswith("B") else ""):
        ops = tf.import_graph_def(graph, return_elements=["A", "B", "C"])
    assert [op.device for op in ops] == ["", "/device:GPU:0", "/device:GPU:0"]


def test_former_names_of_operation_types_are_read():
    tf.identity(tf.Variable(2.0, name="v"), name="y")
    plain = tf.get_default_graph().as_plain().to_plain()
    read = next(node for node in plain["node"] if node["name"] == "v/read")
    assert read["op"] == "ReadVariableOp"
    read["op"] = "ReadVariable"
    assert PlainGraph.from_plain(plain) == tf.get_default_graph().as_plain()


def test_versions_of_graphs():
    graph = _message(("A", "NoOp", []))
    graph.versions.producer, graph.versions.min_consumer = 24, 12
    tf.import_graph_def(graph)
    found = tf.get_default_graph().graph_def_versions
    assert (found.producer, found.min_consumer) == (24, 12)
    assert tf.get_default_graph().as_graph_def().versions == graph.versions
    graph.versions.producer, graph.versions.min_consumer = 21, 0
    tf.import_graph_def(graph)
    found = tf.get_default_graph().graph_def_versions
    assert (found.producer, found.min_consumer) == (21, 12)
    for field, value, message in [("producer", -1, "below min producer"), ("min_consumer", 1 << 30, "above current")]:
        wrong = _message(("A", "NoOp", []))
        setattr(wrong.versions, field, value)
        with pytest.raises(ValueError, match=message):
            tf.import_graph_def(wrong)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("A", "Placeholder", []), ("B", "NoOp", ["A"])], "expected inputs '' do not match 1 inputs"),
        ([("A", "Placeholder", []), ("B", "Add", ["A"])], "expected inputs 'float, float' do not match 1 inputs"),
        (
            [("A", "Shape", ["X"]), ("X", "Placeholder", []), ("B", "Neg", ["A"])],
            r"passed int32 .* expected float\.",
        ),
    ],
)
def test_inputs_that_do_not_fit_the_type_are_refused(nodes, message):
    with pytest.raises(ValueError, match=message):
        tf.import_graph_def(_message(*nodes))


def test_shapes_that_a_graph_tells():
    graph = _message(("X", "Placeholder", []), ("Y", "Neg", ["X"]), ("Z", "L2Loss", ["X"]))
    dims = graph.node[1].attr["_output_shapes"].list.shape.add().dim
    dims.add(size=2), dims.add(size=-1)
    (y,) = tf.import_graph_def(graph, return_elements=["Y:0"])
    assert y.shape.as_list() == [2, None]
    graph.node[2].attr["_output_shapes"].list.shape.add().dim.add(size=43)
    with pytest.raises(ValueError, match=r"inconsistent .* output #0"):
        tf.import_graph_def(graph)


def test_a_value_to_replace_a_tensor_needs_a_scope():
    graph = _message(("X", "Placeholder", []))
    tf.import_graph_def(graph, {"X": tf.constant(1.0)}, name="")
    with pytest.raises(ValueError, match="non-empty `name`"):
        tf.import_graph_def(graph, {"X": 1.0}, name="")


def _message(*nodes):
    """The message of a graph of float32, of ``(name, type, inputs)``."""
    graph = tf.GraphDef()
    for name, op, inputs in nodes:
        node = graph.node.add(name=name, op=op, input=inputs)
        if op != "NoOp":
            node.attr["dtype" if op == "Placeholder" else "T"].type = 1
    return graph
