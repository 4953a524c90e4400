"""`tf.onnx.export`: what is written computes what the session computes, by the evaluator that ONNX itself has."""

from __future__ import annotations

import tempfile
from collections import Counter

import numpy as np
import pytest

import tfray as tf
from tests.support.onnx_models import BEYOND_THE_EVALUATOR, MODELS, assert_same, exported, floats, images

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
reference = pytest.importorskip("onnx.reference")


def outputs_of(model, names, feeds):
    """What ONNX's own evaluator computes."""
    with np.errstate(all="ignore"):
        return reference.ReferenceEvaluator(model).run(list(names), feeds)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in BEYOND_THE_EVALUATOR])
def test_models_compute_the_same(tmp_path, name):
    model, path = MODELS[name], tmp_path / "model.onnx"
    expected = exported(model, path, max(17, model.opset))
    onnx.checker.check_model(onnx.load(path), full_check=True)
    for key, got in zip(expected, outputs_of(onnx.load(path), expected, model.feeds), strict=True):
        assert_same(got, expected[key], f"{name}: {key}")


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("name", ["of_any_size", "attention", "loops", "gathered", "numbers"])
def test_every_opset_has_its_own_form(tmp_path, name, opset):
    model, path = MODELS[name], tmp_path / "model.onnx"
    expected = exported(model, path, opset)
    written = onnx.load(path)
    onnx.checker.check_model(written, full_check=True)
    assert [(each.domain, each.version) for each in written.opset_import] == [("", opset)]
    for key, got in zip(expected, outputs_of(written, expected, model.feeds), strict=True):
        assert_same(got, expected[key], key)


UNARY = [
    "abs",
    "acosh",
    "asinh",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "log1p",
    "negative",
    "reciprocal",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "is_finite",
    "is_inf",
    "is_nan",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "pow",
    "squared_difference",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "floordiv",
    "floormod",
    "truncatemod",
    "div_no_nan",
]


def written(session, inputs, outputs, **options):
    """The message that is written."""
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        tf.onnx.export(session, file.name, inputs, outputs, **options)
        return onnx.load(file.name)


def evaluated(build, *values):
    """What a function gives in a session and in ONNX."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.placeholder(value.dtype, [None] * value.ndim, name=f"x{i}") for i, value in enumerate(values)]
        output = build(*inputs)
        expected = session.run(output, dict(zip(inputs, values, strict=True)))
        model = written(session, inputs, [output])
    (name,) = (each.name for each in model.graph.output)
    return outputs_of(model, [name], {f"x{i}": value for i, value in enumerate(values)})[0], expected


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name):
    function = getattr(tf, name, None) or getattr(tf.math, name)
    assert_same(*evaluated(function, np.abs(floats(2, 3)) / 4 + (1 if name == "acosh" else 0.1)), name)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_tensors_are_broadcast(name, dtype):
    if (name, dtype) in {("divide", np.int32), ("div_no_nan", np.int32)}:
        pytest.skip("there is none of integers in ONNX")
    x, y = np.array([[7, -7, 3], [0, 5, -2]], dtype), np.array([2, 3, 4], dtype)
    assert_same(*evaluated(getattr(tf, name, None) or getattr(tf.math, name), x, y), name)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "all", "any"])
@pytest.mark.parametrize(("axis", "keepdims"), [(None, False), (-1, True), ([0, 2], False)])
def test_reductions(name, axis, keepdims):
    values = floats(2, 3, 2) > 0 if name in ("all", "any") else floats(2, 3, 2)
    assert_same(*evaluated(lambda x: getattr(tf, f"reduce_{name}")(x, axis, keepdims=keepdims), values))


@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_batch_normalization_and_the_activation_after_it(activation):
    scale, offset, mean, variance = (np.linspace(low, 9, 5).astype(np.float32) for low in (-9, -3, 1, 2))

    def build(x):
        x = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]
        return getattr(tf.nn, activation)(x)

    found, expected = evaluated(build, floats(2, 3, 4, 5))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert expected.min() == 0 and (expected.max() == 6) == (activation == "relu6")


@pytest.mark.parametrize("turned", [False, True])
def test_the_only_used_part_of_a_product(turned):
    weights = floats(10, 4) if turned else floats(4, 10)

    def build(x):
        product = tf.matmul(tf.ensure_shape(x, [None, 4]), weights, transpose_b=turned)
        return tf.split(product, [3, 5, 2], 1)[1]

    found, expected = evaluated(build, floats(3, 4))
    assert expected.shape == (3, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_layers_beside_each_other_need_no_transpose_between_them(tmp_path):
    exported(MODELS["residual"], tmp_path / "model.onnx", 17)
    counts = Counter(node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node)
    assert counts["Transpose"] == 2  # of the images, and of the map
    assert counts["Conv"] == 2 and counts["BatchNormalization"] == 1


def test_transposes_of_the_program_that_undo_each_other_vanish():
    def build(x):
        return tf.transpose(tf.nn.relu(tf.transpose(x, [0, 2, 1])), [0, 2, 1])

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2, 3], name="x")
        model = written(session, [x], [build(x)])
    assert "Transpose" not in {node.op_type for node in model.graph.node}
    assert_same(*evaluated(build, floats(2, 2, 3)))


def test_unknown_sizes_have_names_and_variables_are_initializers():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w = tf.Variable(np.eye(4, dtype=np.float32), name="w")
        session.run(tf.global_variables_initializer())
        model = written(session, {"examples": x}, {"scores": tf.matmul(x, w)})
    (given,), (result,) = model.graph.input, model.graph.output
    assert (given.name, result.name) == ("examples", "scores")
    assert (
        given.type.tensor_type.shape.dim[0].dim_param == result.type.tensor_type.shape.dim[0].dim_param == "examples_0"
    )
    assert given.type.tensor_type.shape.dim[1].dim_value == result.type.tensor_type.shape.dim[1].dim_value == 4
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]


def test_a_part_of_the_graph_in_a_list():
    with tf.Graph().as_default(), tf.Session() as session:
        h = tf.nn.relu(tf.placeholder(tf.float32, [2], name="x"), name="h")
        y, z = tf.add(h, 1.0, name="y"), tf.multiply(h, 2.0, name="z")
        model = written(session, [h], [y, z])
    assert_same(outputs_of(model, ["y", "z"], {"h": np.array([-1, 2], np.float32)}), [[0.0, 3.0], [-2.0, 4.0]])


def test_names_and_variables_stand_for_tensors():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.Variable([3.0, 4.0])
        tf.multiply(x, w, name="y")
        session.run(tf.global_variables_initializer())
        model = written(session, ["x:0"], {"y": "y:0", "w": w, "x_again": x})
    y, weights, x_again = outputs_of(model, ["y", "w", "x_again"], {"x": np.ones(2, np.float32)})
    assert_same([y, weights, x_again], [[3.0, 4.0], [3.0, 4.0], [1.0, 1.0]])


def test_strings_and_half_precision():
    words = np.array([b"a", b"bc", b"d"], object)
    with tf.Graph().as_default(), tf.Session() as session:
        i, h = tf.placeholder(tf.int64, [None], name="i"), tf.placeholder(tf.float16, [2], name="h")
        model = written(session, [i, h], {"words": tf.gather(tf.constant(words), i), "double": h * 2})
    onnx.checker.check_model(model, full_check=True)
    texts, double = outputs_of(model, ["words", "double"], {"i": np.array([2, 0]), "h": np.ones(2, np.float16)})
    assert [t.decode() if isinstance(t, bytes) else t for t in texts.tolist()] == ["d", "a"]
    assert double.dtype == np.float16


def test_saved_models_are_exported_by_their_signature(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = x * tf.Variable([2.0, 3.0])
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, tmp_path / "saved", {"x": x}, {"y": y})
    loaded = tf.saved_model.load_model(tmp_path / "saved")
    for source in (tmp_path / "saved", loaded):
        tf.onnx.export(source, tmp_path / "model.onnx")
        (y,) = outputs_of(onnx.load(tmp_path / "model.onnx"), ["y"], {"x": np.ones((1, 2), np.float32)})
        assert_same(y, [[2.0, 3.0]])


def test_one_error_names_all_that_has_no_counterpart(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3, 3], name="x")
        y = tf.cond(x[0, 0] > 0, lambda: tf.linalg.inv(x), lambda: x)
        y = tf.lgamma(tf.lgamma(y, name="first")) + tf.pad(x, [[1, 1], [1, 1]], "SYMMETRIC")[:3, :3]
        with pytest.raises(tf.errors.UnimplementedError) as caught:
            tf.onnx.export(session, tmp_path / "model.onnx", [x], [y])
    lines = caught.value.message.split("\n")[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["Lgamma (2)", "MatrixInverse (1)", "MirrorPad (1)"]
    assert "'first'" in lines[0] and "test_export.py:" in lines[0] and "symmetric" in lines[2]
    assert not (tmp_path / "model.onnx").exists()


def test_what_an_output_needs_must_be_among_the_inputs(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = (tf.placeholder(tf.float32, [2], name=name) for name in "xy")
        with pytest.raises(tf.errors.InvalidArgumentError, match="not among the inputs") as caught:
            tf.onnx.export(session, tmp_path / "model.onnx", [x], [x + y])
        assert caught.value.op_name == "y"
        with pytest.raises(tf.errors.InvalidArgumentError, match="opset is 7"):
            tf.onnx.export(session, tmp_path / "model.onnx", [x], [x + x], opset=7)
        with pytest.raises(tf.errors.InvalidArgumentError, match="which tensors are inputs"):
            tf.onnx.export(session, tmp_path / "model.onnx")


def test_training_forms_of_layers_are_refused_with_the_remedy(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = images()
        y = tf.layers.batch_normalization(x, training=True)
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.UnimplementedError, match="training=False"):
            tf.onnx.export(session, tmp_path / "model.onnx", [x], [y])
