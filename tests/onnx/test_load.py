"""`tf.onnx.load`: nodes written by hand compute what ONNX's own evaluator computes; what was exported comes back."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.onnx_models import MODELS, assert_same, exported, floats

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
reference = pytest.importorskip("onnx.reference")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

CLASSIC = "ai.onnx.ml"


def saved(path, nodes, inputs, outputs=("y",), opset=17, constants=()):
    """A model of nodes in a file. Returns the message."""
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), ["n", *value.shape[1:]] if value.ndim else []
        )
        for name, value in inputs.items()
    ]
    results = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", declared, results, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(CLASSIC, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return model


def evaluated(model, inputs):
    with np.errstate(all="ignore"):
        return reference.ReferenceEvaluator(model).run(None, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_what_was_exported_computes_the_same(tmp_path, name):
    expected = exported(MODELS[name], tmp_path / "model.onnx", 17)
    got = tf.onnx.load(tmp_path / "model.onnx")(**MODELS[name].feeds)
    for key in expected:
        assert_same(got[key], expected[key], key)


X = floats(2, 3, 4)
IMAGES = floats(2, 4, 7, 6)
PLACES = np.array([[0, 2], [-1, 1]])
NODES = [
    ("Gemm", [X[0], X[1]], {"transB": 1, "alpha": 0.5, "beta": 2.0}, 17),
    ("Gemm", [X[0], X[1], X[0, :1, :3]], {"transB": 1, "beta": 2.0}, 9),
    ("MatMul", [X, floats(4)], {}, 17),
    ("Softmax", [X], {"axis": 1}, 13),
    ("LogSoftmax", [X], {}, 13),
    ("Clip", [X], {"min": -0.5, "max": 0.5}, 9),
    ("Clip", [X, np.float32(-0.5)], {}, 17),
    ("Pad", [X], {"pads": [0, 1, 0, 0, 0, 2], "value": 2.0}, 9),
    ("Pad", [X, np.array([0, 1, 0, 0, 0, 2]), np.float32(3)], {"mode": "constant"}, 17),
    ("Pad", [X, np.array([0, 1, 0, 0, 1, 2])], {"mode": "edge"}, 17),
    ("Pad", [X, np.array([1, 2]), np.float32(1), np.array([-1])], {}, 18),
    ("Slice", [X], {"starts": [0, -2], "ends": [9, -1], "axes": [0, 2]}, 9),
    ("Slice", [X, np.array([-1]), np.array([-(1 << 62)]), np.array([1]), np.array([-2])], {}, 17),
    ("Squeeze", [X[:1]], {"axes": [0]}, 11),
    ("Unsqueeze", [X, np.array([0, -1])], {}, 13),
    ("ReduceSum", [X, np.array([-1])], {"keepdims": 0}, 13),
    ("ReduceMean", [X], {"axes": [0, 2]}, 17),
    ("ReduceL2", [X, np.array([1])], {}, 18),
    ("ReduceLogSumExp", [X], {"keepdims": 0}, 17),
    ("Reshape", [X, np.array([0, -1])], {}, 17),
    ("Flatten", [X], {"axis": 2}, 17),
    ("Expand", [X[:, :1], np.array([3, 1])], {}, 17),
    ("Transpose", [X], {}, 17),
    ("Gather", [X, PLACES], {"axis": 1}, 17),
    ("GatherElements", [X[0], np.array([[0, 1, 2, -1], [1, 1, 0, 0]])], {"axis": 0}, 17),
    ("GatherND", [X, PLACES[:, :1]], {"batch_dims": 1}, 17),
    ("ScatterElements", [X[0], PLACES, floats(2, 2)], {"axis": 1}, 17),
    ("ScatterND", [X[0], PLACES[:, :1], floats(2, 4)], {"reduction": "add"}, 18),
    ("OneHot", [PLACES, np.array(3), np.array([0.0, 5.0], np.float32)], {"axis": 0}, 17),
    ("Trilu", [X, np.array(1)], {"upper": 0}, 17),
    ("CumSum", [X, np.array(1)], {"reverse": 1, "exclusive": 1}, 17),
    ("ArgMax", [X], {"axis": 1, "keepdims": 0}, 17),
    ("Mod", [np.array([-7, 7]), np.array([3, -3])], {}, 17),
    ("Mod", [np.array([-7, 7]), np.array([3, -3])], {"fmod": 1}, 17),
    ("Pow", [np.array([4, 9]), np.array([0.5, 1.5], np.float32)], {}, 17),
    ("Pow", [X, np.array(2)], {}, 17),
    ("Div", [np.array([-7, 7]), np.array([2, 2])], {}, 17),
    ("Where", [X > 0, X, np.float32(0)], {}, 17),
    ("HardSigmoid", [X], {"alpha": 0.3}, 17),
    ("PRelu", [X, floats(4)], {}, 17),
    ("Celu", [X], {"alpha": 2.0}, 17),
    ("Elu", [X], {"alpha": 2.0}, 17),
    ("HardSwish", [X], {}, 17),
    ("GroupNormalization", [IMAGES, floats(4), floats(4, seed=1)], {"num_groups": 2}, 21),
    ("Max", [X, X[0], X[1]], {}, 17),
    ("Sum", [X, X[0]], {}, 17),
    ("Einsum", [X, floats(2, 3, 4, seed=1)], {"equation": "abc,dbc->ad"}, 17),
    ("Conv", [IMAGES, floats(6, 2, 3, 3), floats(6)], {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]}, 17),
    ("Conv", [IMAGES, floats(8, 1, 3, 3)], {"group": 4, "auto_pad": "SAME_UPPER"}, 17),
    ("Conv", [IMAGES, floats(8, 1, 2, 2)], {"group": 4, "dilations": [2, 2]}, 17),
    ("Conv", [IMAGES[:, :, 0], floats(5, 4, 3)], {"dilations": [2], "pads": [2, 2]}, 17),
    ("ConvTranspose", [IMAGES, floats(4, 3, 3, 2)], {"strides": [2, 2], "output_padding": [1, 0]}, 17),
    ("ConvTranspose", [IMAGES, floats(4, 3, 3, 2)], {"pads": [1, 0, 0, 1], "dilations": [1, 2]}, 17),
    ("MaxPool", [IMAGES], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, 17),
    ("MaxPool", [IMAGES[:, :, 0]], {"kernel_shape": [3], "ceil_mode": 1, "strides": [2]}, 17),
    ("AveragePool", [IMAGES], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 17),
    ("AveragePool", [IMAGES], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, 17),
    ("GlobalAveragePool", [IMAGES], {}, 17),
    ("BatchNormalization", [IMAGES, *(np.abs(floats(4, seed=i)) for i in range(4))], {"epsilon": 0.1}, 17),
    ("InstanceNormalization", [IMAGES, floats(4), floats(4, seed=1)], {}, 17),
    ("LayerNormalization", [X, floats(4), floats(4, seed=1)], {}, 17),
    ("DepthToSpace", [IMAGES], {"blocksize": 2, "mode": "CRD"}, 17),
    ("SpaceToDepth", [IMAGES[:, :, :4]], {"blocksize": 2}, 17),
    ("Resize", [IMAGES, np.zeros(0, np.float32), np.array([1, 1, 2, 1.5], np.float32)], {"mode": "linear"}, 17),
    ("Resize", [IMAGES, np.zeros(0, np.float32), np.array([1, 1, 0.6, 2], np.float32)], {"mode": "nearest"}, 17),
    ("Resize", [IMAGES, np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)], {"mode": "cubic"}, 17),
    ("RNN", [floats(5, 2, 3), floats(1, 4, 3), floats(1, 4, 4), floats(1, 8)], {"hidden_size": 4}, 17),
    ("GRU", [floats(5, 2, 3), floats(1, 12, 3), floats(1, 12, 4), floats(1, 24)], {"hidden_size": 4}, 17),
    ("LSTM", [floats(5, 2, 3), floats(1, 16, 3), floats(1, 16, 4), floats(1, 32)], {"hidden_size": 4}, 17),
    ("DequantizeLinear", [np.array([[3, 200]], np.uint8), np.float32(0.5), np.uint8(128)], {}, 19),
    ("QuantizeLinear", [X[0], np.float32(0.02), np.int8(3)], {}, 19),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "values", "attributes", "opset"), NODES)
def test_nodes(tmp_path, operator, values, attributes, opset):
    """The first input is fed. The others are constants, as in files they mostly are."""
    values = [np.asarray(value) for value in values]
    names = [f"x{index}" for index in range(len(values))]
    inputs, constants = {"x0": values[0]}, dict(zip(names[1:], values[1:], strict=True))
    node = helper.make_node(operator, names, ["y"], **attributes)
    model = saved(tmp_path / "model.onnx", [node], inputs, opset=opset, constants=constants)
    got = tf.onnx.load(tmp_path / "model.onnx")(values[0])["y"]
    assert_same(got, evaluated(model, inputs)[0], operator)


def test_softmax_once_ran_over_all_axes_behind(tmp_path):
    saved(tmp_path / "model.onnx", [helper.make_node("Softmax", ["x"], ["y"], axis=1)], {"x": X}, opset=11)
    raised = np.exp(X)
    expected = raised / raised.sum((1, 2), keepdims=True)
    assert_same(tf.onnx.load(tmp_path / "model.onnx")(X)["y"], expected)


@pytest.mark.parametrize("operator", ["Scaler", "Normalizer", "Binarizer", "LabelEncoder", "LinearRegressor"])
def test_classic_operators(tmp_path, operator):
    x = floats(3, 4)
    attributes = {
        "Scaler": {"offset": [1.0, 2.0, 3.0, 4.0], "scale": [0.5]},
        "Normalizer": {"norm": "L1"},
        "Binarizer": {"threshold": 0.2},
        "LabelEncoder": {"keys_floats": [1.0, 2.0], "values_int64s": [7, 8], "default_int64": 9},
        "LinearRegressor": {"coefficients": floats(8).tolist(), "intercepts": [1.0, 2.0], "targets": 2},
    }[operator]
    x = np.array([[1.0, 2.0], [3.0, 1.0]], np.float32) if operator == "LabelEncoder" else x
    node = helper.make_node(operator, ["x"], ["y"], domain=CLASSIC, **attributes)
    model = saved(tmp_path / "model.onnx", [node], {"x": x})
    assert_same(tf.onnx.load(tmp_path / "model.onnx")(x)["y"], evaluated(model, {"x": x})[0], operator)


TREES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_values": [0.1, -0.3, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0],
    "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
}


def tree_node(**changes):
    weights = {"target_treeids": [0, 0, 0, 1, 1], "target_nodeids": [2, 3, 4, 1, 2], "target_ids": [0, 1, 0, 1, 0],
               "target_weights": [1.0, 2.0, 3.0, 4.0, 5.0], "n_targets": 2}  # fmt: skip
    attributes = {**TREES, **weights, **changes}
    return helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], name="trees", domain=CLASSIC, **attributes)


def test_trees_follow_every_kind_of_decision(tmp_path):
    x = floats(40, 3)
    saved(tmp_path / "model.onnx", [tree_node(base_values=[10.0, 20.0])], {"x": x})
    first = np.where(x[:, 0] <= np.float32(0.1), np.where(x[:, 1] > np.float32(-0.3), 2, 3), 4)
    second = np.where(x[:, 2] < np.float32(0.2), 1, 2)
    expected = np.array([[10.0, 20.0]]) + np.stack(
        [(first == 2) * 1.0 + (first == 4) * 3.0 + (second == 2) * 5.0, (first == 3) * 2.0 + (second == 1) * 4.0], 1
    )
    assert_same(tf.onnx.load(tmp_path / "model.onnx")(x)["y"], expected)


def test_loops_carry_values_that_grow_and_stack_what_they_give(tmp_path):
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["v", "x"], ["w"], axis=0),
            helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0),
            helper.make_node("Less", ["s", "limit"], ["more"]),
        ],
        "body",
        [helper.make_value_info(name, onnx.TypeProto()) for name in ("i", "go", "v")],
        [helper.make_value_info(name, onnx.TypeProto()) for name in ("more", "w", "s")],
    )
    x = np.array([1.0, 2.0], np.float32)
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["y", "sums"], body=body)]
    constants = {"count": np.array(9), "limit": np.float32(11)}
    saved(tmp_path / "model.onnx", nodes, {"x": x}, ("y", "sums"), constants=constants)
    loaded = tf.onnx.load(tmp_path / "model.onnx")
    assert_same(loaded(x)["y"], np.tile(x, 4))
    assert_same(loaded(x)["sums"], np.array([6.0, 9.0, 12.0]))
    assert tf.TensorShape(loaded.outputs["y"].tensor_shape).as_list() == [None]


def test_a_model_is_a_function_and_a_graph(tmp_path):
    nodes = [helper.make_node("Add", ["a", "b:0"], ["sum of both"]), helper.make_node("Neg", ["a"], ["y"])]
    a, b = floats(2, 3), floats(2, 3, seed=1)
    saved(tmp_path / "model.onnx", nodes, {"a": a, "b:0": b}, ("sum of both", "y"))
    model = tf.onnx.load(tmp_path / "model.onnx")
    assert list(model.inputs) == ["a", "b:0"] and list(model.outputs) == ["sum of both", "y"]
    assert tf.as_dtype(model.inputs["a"].dtype) is tf.float32
    assert tf.TensorShape(model.inputs["a"].tensor_shape).as_list() == [None, 3]
    assert_same(model(a, b)["sum of both"], a + b)
    assert_same(model(**{"b:0": b, "a": a})["y"], -a)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the model takes a, b:0"):
        model(a)
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(model.graph.as_graph_def(), return_elements=[model.outputs["y"].name])
        assert_same(session.run(y * 2, {f"import/{model.inputs['a'].name}": a}), -2 * a)


def test_results_have_the_order_of_the_file(tmp_path):
    names = [f"y{number}" for number in (7, 2, 9, 4, 1, 8)]
    nodes = [helper.make_node("Mul", ["x", f"c{name}"], [name]) for name in names]
    constants = {f"c{name}": np.float32(name[1:]) for name in names}
    x = floats(2, 3)
    saved(tmp_path / "model.onnx", nodes, {"x": x}, tuple(names), constants=constants)
    model = tf.onnx.load(tmp_path / "model.onnx")
    assert list(model.outputs) == list(model(x)) == names
    assert_same(next(iter(model(x).values())), 7 * x)


def test_scores_of_a_zip_map_are_plain(tmp_path):
    x = floats(2, 2)
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=CLASSIC, classlabels_int64s=[0, 1])
    saved(tmp_path / "model.onnx", [node], {"x": x})
    assert_same(tf.onnx.load(tmp_path / "model.onnx")(x)["y"], x)


def test_strings(tmp_path):
    words = np.array([b"one", b"two"], object)
    node = helper.make_node("Gather", ["words", "i"], ["y"])
    saved(tmp_path / "model.onnx", [node], {"i": np.array([1])}, constants={"words": words.astype(str)})
    assert tf.onnx.load(tmp_path / "model.onnx")([1, 0])["y"].tolist() == [b"two", b"one"]


def test_one_error_names_all_operators_without_counterpart(tmp_path):
    nodes = [
        helper.make_node("DFT", ["x"], ["a"], name="first"),
        helper.make_node("DFT", ["a"], ["b"]),
        helper.make_node("SVMRegressor", ["b"], ["c"], name="svm", domain=CLASSIC),
        helper.make_node("Special", ["c"], ["y"], name="own", domain="of.mine"),
    ]
    saved(tmp_path / "model.onnx", nodes, {"x": X})
    with pytest.raises(tf.errors.UnimplementedError) as caught:
        tf.onnx.load(tmp_path / "model.onnx")
    assert [line.strip() for line in caught.value.message.split("\n")[1:]] == [
        "DFT (2): the first is 'first'",
        "ai.onnx.ml.SVMRegressor (1): the first is 'svm'",
        "of.mine.Special (1): the first is 'own'",
    ]


@pytest.mark.parametrize(
    ("node", "opset", "reason"),
    [
        (helper.make_node("MaxPool", ["x"], ["y", "i"], name="pool", kernel_shape=[1]), 17, "output 1"),
        (helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[2], dilations=[2]), 17, "dilations"),
        (helper.make_node("Unique", ["x"], ["y"], name="u", axis=0), 17, "axis"),
        (helper.make_node("Relu", ["x"], ["y"], slope=2), 17, "slope"),
        (helper.make_node("Relu", ["x"], ["y"]), 8, "version 8"),
    ],
)
def test_what_tfray_cannot_do_is_said(tmp_path, node, opset, reason):
    saved(tmp_path / "model.onnx", [node], {"x": X}, opset=opset)
    with pytest.raises(tf.errors.UnimplementedError, match=reason):
        tf.onnx.load(tmp_path / "model.onnx")


# -- damaged files ------------------------------------------------------------------------------------------


def refused(path, reason):
    with pytest.raises(tf.errors.DataLossError, match=reason) as caught:
        tf.onnx.load(path)
    assert str(path) in caught.value.message


def relu(tensor, path):
    """A model that adds a constant, whose message is given."""
    node = helper.make_node("Add", ["x", tensor.name], ["y"], name="add")
    model = saved(path, [node], {"x": floats(2)})
    model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())


def test_no_file_and_no_model(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        tf.onnx.load(tmp_path / "nothing.onnx")
    for contents in (b"", b"\xff" * 40, b"no model"):
        (tmp_path / "model.onnx").write_bytes(contents)
        refused(tmp_path / "model.onnx", "no file of ONNX")


@pytest.mark.parametrize(
    "tensor",
    [
        TensorProto(name="c", data_type=1, dims=[1 << 40], raw_data=b"\0" * 8),
        TensorProto(name="c", data_type=1, dims=[1 << 40, 1 << 40], raw_data=b"\0" * 8),
        TensorProto(name="c", data_type=1, dims=[-2], raw_data=b"\0" * 8),
        TensorProto(name="c", data_type=1, dims=[3], raw_data=b"\0" * 8),
        TensorProto(name="c", data_type=1, dims=[3], float_data=[1.0]),
        TensorProto(name="c", data_type=8, dims=[3], string_data=[b"a"]),
    ],
)
def test_constants_whose_data_are_not_those_of_their_shape(tmp_path, tensor):
    relu(tensor, tmp_path / "model.onnx")
    refused(tmp_path / "model.onnx", "shape")


def test_graphs_that_are_none(tmp_path):
    path = tmp_path / "model.onnx"
    saved(path, [helper.make_node("Relu", ["missing"], ["y"], name="r")], {"x": X})
    refused(path, "Relu 'r'.*no earlier node gives 'missing'")
    saved(path, [helper.make_node("Relu", ["x"], ["y"])], {"x": X}, outputs=())
    refused(path, "its graph gives nothing")
    saved(path, [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])], {"x": X})
    refused(path, "two nodes give 'y'")
    saved(path, [helper.make_node("MatMul", ["x", "w"], ["y"], name="m")], {"x": X}, constants={"w": floats(5, 6)})
    refused(path, "MatMul 'm'")
    saved(path, [helper.make_node("Concat", ["x", "x"], ["y"], name="c", axis=7)], {"x": X})
    refused(path, "Concat 'c'")
    saved(path, [tree_node(nodes_truenodeids=[1, 0, 0, 0, 0, 1, 0, 0])], {"x": floats(2, 3)})
    refused(path, "TreeEnsembleRegressor 'trees'")
    saved(path, [tree_node(target_ids=[0, 1, 0, 1, 9])], {"x": floats(2, 3)})
    refused(path, "a score that is not there")


def test_scores_that_would_fill_the_memory_are_refused(tmp_path):
    saved(tmp_path / "model.onnx", [tree_node(n_targets=1 << 40)], {"x": floats(2, 3)})
    with pytest.raises(tf.errors.UnimplementedError, match="1099511627776 scores"):
        tf.onnx.load(tmp_path / "model.onnx")


def test_loops_within_loops_are_limited(tmp_path):
    infos = [helper.make_value_info(name, onnx.TypeProto()) for name in ("i", "go", "v")]
    outs = [helper.make_value_info(name, onnx.TypeProto()) for name in ("more", "w")]
    nodes = [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Neg", ["v"], ["w"])]
    for _ in range(9):
        body = helper.make_graph(nodes, "body", infos, outs)
        inner = helper.make_node("Loop", ["i", "go", "v"], ["w"], body=body)
        nodes = [helper.make_node("Identity", ["go"], ["more"]), inner]
    body = helper.make_graph(nodes, "body", infos, outs)
    saved(tmp_path / "model.onnx", [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": X},
          constants={"n": np.array(2)})  # fmt: skip
    with pytest.raises(tf.errors.UnimplementedError, match="loops within each other"):
        tf.onnx.load(tmp_path / "model.onnx")


def test_changed_bytes_never_do_more_than_raise(tmp_path):
    """Whatever a byte becomes, loading ends, with a model or with one of the errors that it says."""
    allowed = tf.errors.DataLossError, tf.errors.UnimplementedError, tf.errors.PermissionDeniedError
    random, path = np.random.default_rng(5), tmp_path / "model.onnx"
    for name in ("branches", "loops", "autoencoder"):
        exported(MODELS[name], path, 17)
        whole = path.read_bytes()
        for _ in range(25):
            contents = bytearray(whole)
            for place in random.integers(0, len(contents), 3):
                contents[place] = random.integers(0, 256)
            path.write_bytes(
                bytes(contents[: random.integers(1, len(contents))]) if random.random() < 0.2 else contents
            )
            try:
                tf.onnx.load(path).close()
            except allowed as error:
                assert error.message


# -- data beside the file -----------------------------------------------------------------------------------


def beside(path, location, values, **entries):
    tensor = TensorProto(name="c", data_type=1, dims=values.shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    relu(tensor, path)


def test_weights_beside_the_file(tmp_path):
    values, x = floats(2), floats(2, seed=1)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(b"\0" * 5 + values.tobytes())
    beside(tmp_path / "model.onnx", "weights/w.bin", values, offset=5, length=8)
    assert_same(tf.onnx.load(tmp_path / "model.onnx")(x)["y"], x + values)
    for entries in ({"offset": 6}, {"offset": 1 << 50}):
        beside(tmp_path / "model.onnx", "weights/w.bin", values, **entries)
        refused(tmp_path / "model.onnx", "ends before")
    for entries in ({"length": 7}, {"offset": -5}, {"length": 1 << 50}):
        beside(tmp_path / "model.onnx", "weights/w.bin", values, **entries)
        refused(tmp_path / "model.onnx", "of its shape")
    beside(tmp_path / "model.onnx", "weights/none.bin", values)
    refused(tmp_path / "model.onnx", "missing")


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/hostname", "a/../../secret", "link", "linked/secret", "..\\secret"]
)
def test_weights_from_elsewhere_are_refused(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"\0" * 8)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "linked").symlink_to(tmp_path)
    beside(folder / "model.onnx", location, floats(2))
    with pytest.raises(tf.errors.PermissionDeniedError, match="folder"):
        tf.onnx.load(folder / "model.onnx")
