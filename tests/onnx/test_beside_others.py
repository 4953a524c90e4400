"""Beside ONNX Runtime, scikit-learn's converter, and the cases that ONNX itself has for its operators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tfray as tf
from tests.support.onnx_models import MODELS, assert_same, exported, floats
from tests.support.op_samples import OpSample, all_samples

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytestmark = pytest.mark.slow

# -- ONNX Runtime -------------------------------------------------------------------------------------------


def runtime_outputs(path, feeds):
    """What ONNX Runtime computes, by the names of the outputs."""
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("name", MODELS)
def test_exported_models_in_onnx_runtime(tmp_path, name, opset):
    model, path = MODELS[name], tmp_path / "model.onnx"
    expected = exported(model, path, max(opset, model.opset))
    onnx.checker.check_model(onnx.load(path), full_check=True)
    got = runtime_outputs(path, model.feeds)
    for key in expected:
        assert_same(got[key], expected[key], f"{name}: {key}")


SAMPLES: dict[str, list[OpSample]] = {}
for _sample in all_samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)

DIFFERENT = {
    ("ResizeBicubic", ""): "TensorFlow looks the weights up in a table",
    ("ArgMax", "nan"): "ONNX does not say what is greater than NaN",
    ("SaturateCast", "not finite"): "ONNX does not say what NaN is as a whole number",
}
"""Samples, by operation and label, of which ONNX says otherwise, or nothing."""


def sample_graph(sample, dtype, known):
    """The graph of a sample: inputs, outputs and feeds, by name."""
    arrays = [np.asarray(array) for array in sample.arrays(dtype)]
    inputs = {
        f"x{index}": tf.placeholder(tf.as_dtype(array.dtype), array.shape if known else [None] * array.ndim)
        for index, array in enumerate(arrays)
        if index not in sample.sizes
    }
    arguments = [inputs.get(f"x{index}", array) for index, array in enumerate(arrays)]
    made = sample.build(*arguments, **sample.kwargs)
    tensors = [each for each in (made if isinstance(made, (list, tuple)) else [made]) if isinstance(each, tf.Tensor)]
    return inputs, {f"y{i}": each for i, each in enumerate(tensors)}, {name: arrays[int(name[1:])] for name in inputs}


@pytest.mark.parametrize("op", SAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_samples_of_every_operation(tmp_path, op):
    """What is exported gives the same in ONNX Runtime, where that has the operator, and when it is loaded again."""
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    path, count = tmp_path / "model.onnx", 0
    for sample in SAMPLES[op]:
        is_text = any(np.asarray(value).dtype.kind in "OSU" for value in sample.inputs)
        if (op, sample.label) in DIFFERENT or (op, "") in DIFFERENT or is_text:
            continue
        for dtype in {None, tf.float32, tf.int32, tf.float64} & set(sample.swept_dtypes()):
            for known in (True, False) if "unknown sizes" in sample.modes else (True,):
                with tf.Graph().as_default(), tf.Session() as session:
                    inputs, outputs, feeds = sample_graph(sample, dtype, known)
                    if not outputs or any(tensor.dtype.kind in ("variant", "string") for tensor in outputs.values()):
                        continue
                    expected = session.run(outputs, {inputs[name]: value for name, value in feeds.items()})
                    try:
                        tf.onnx.export(session, path, inputs, outputs, opset=21)
                    except tf.errors.UnimplementedError:
                        continue
                model = tf.onnx.load(path)
                results = [model(**feeds)]
                model.close()
                try:
                    results.append(runtime_outputs(path, feeds))
                except runtime.capi.onnxruntime_pybind11_state.NotImplemented:
                    pass
                except RuntimeError as error:  # bfloat16 cannot be taken out
                    assert "No corresponding Numpy type" in str(error), error
                for result in results:
                    for name, value in expected.items():
                        assert_same(result[name], value, f"{op} {sample.label} {dtype}", 3e-5)
                count += 1
    if not count:
        pytest.skip("ONNX has no counterpart")


# -- scikit-learn -------------------------------------------------------------------------------------------

CLASSIC_MODELS = [
    "LogisticRegression()",
    "LogisticRegression() of strings",
    "LogisticRegression() of two",
    "LinearRegression() of numbers",
    "SGDClassifier(random_state=0)",
    "make_pipeline(StandardScaler(), PCA(2), LogisticRegression())",
    "make_pipeline(MinMaxScaler(), Normalizer(), Ridge()) of numbers",
    "make_pipeline(PolynomialFeatures(2), Ridge()) of numbers",
    "make_pipeline(KBinsDiscretizer(3, encode='onehot-dense', strategy='uniform'), Ridge()) of numbers",
    "MLPClassifier(max_iter=20, random_state=0)",
    "MLPRegressor(max_iter=20, random_state=0, activation='tanh') of numbers",
    "DecisionTreeClassifier(random_state=0)",
    "DecisionTreeRegressor(random_state=0) of numbers",
    "RandomForestClassifier(20, random_state=0) of strings",
    "RandomForestClassifier(20, random_state=0) of two",
    "RandomForestRegressor(20, random_state=0) of numbers",
    "ExtraTreesClassifier(20, random_state=0)",
    "GradientBoostingClassifier(n_estimators=20, random_state=0)",
    "GradientBoostingClassifier(n_estimators=20, random_state=0) of two",
    "GradientBoostingRegressor(n_estimators=20, random_state=0) of numbers",
    "AdaBoostClassifier(n_estimators=5, random_state=0)",
    "BaggingClassifier(n_estimators=5, random_state=0)",
    "OneVsRestClassifier(LogisticRegression())",
    "GaussianNB()",
    "KMeans(3, random_state=0)",
    "KNeighborsClassifier(3)",
]


@pytest.mark.parametrize("description", CLASSIC_MODELS)
def test_models_of_scikit_learn(tmp_path, description):
    convert = pytest.importorskip("skl2onnx", reason="needs skl2onnx").to_onnx
    for module in ("cluster", "decomposition", "ensemble", "linear_model", "multiclass", "naive_bayes", "neighbors",
                   "neural_network", "pipeline", "preprocessing", "tree"):  # fmt: skip
        exec(f"from sklearn.{module} import *", names := globals().setdefault("_SKLEARN", {}))
    from sklearn.datasets import load_iris

    x, classes = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    text, _, kind = description.partition(" of ")
    y = {"": classes, "strings": np.array(["a", "b", "c"])[classes], "two": classes > 0, "numbers": x @ [1, 2, 3, 4]}[
        kind
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = eval(text, names).fit(x, y.astype(int) if kind == "two" else y)
        (tmp_path / "model.onnx").write_bytes(convert(fitted, x[:1]).SerializeToString())
    model = tf.onnx.load(tmp_path / "model.onnx")
    (name,) = model.inputs
    got = model(x)
    for key, expected in runtime_outputs(tmp_path / "model.onnx", {name: x}).items():
        if isinstance(expected, list):  # of a ZipMap
            expected = np.array([list(each.values()) for each in expected], np.float32)
        if got[key].dtype == object:
            expected = np.array([text.encode() for text in expected], object)
        assert_same(got[key], expected, f"{description}: {key}")


# -- the cases of ONNX --------------------------------------------------------------------------------------


def node_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node

        return node.collect_testcases(None)


def as_array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def test_the_cases_of_onnx_itself(tmp_path):
    """Each case is refused as a whole, or gives what ONNX says: to 1e-3, or 1e-2 where numbers have 16 bits."""
    counts = {"same": 0, "refused": 0}
    for case in node_cases():
        if case.model is None:
            continue
        for each in case.model.opset_import:
            each.version = min(each.version, {"": 23, "ai.onnx.ml": 5}.get(each.domain, each.version))
        (tmp_path / "case.onnx").write_bytes(case.model.SerializeToString())
        try:
            model = tf.onnx.load(tmp_path / "case.onnx")
        except tf.errors.UnimplementedError:
            counts["refused"] += 1
            continue
        for inputs, outputs in case.data_sets:
            got = model(*map(as_array, inputs[: len(model.inputs)])).values()
            for result, expected in zip(got, map(as_array, outputs), strict=True):
                if expected.dtype.kind in "OU":
                    assert result.astype("U").tolist() == expected.astype("U").tolist(), case.name
                else:
                    is_half = expected.dtype.itemsize == 2
                    assert result.dtype == expected.dtype, case.name
                    assert_same(result, expected, case.name, 1e-2 if is_half else 1e-3)
        model.close()
        counts["same"] += 1
    assert counts["same"] >= 1300, counts


def test_floats_are_floats(tmp_path):
    """A file of another program that has no name for its nodes, and its weights as raw data, both ways."""
    exported(MODELS["autoencoder"], tmp_path / "model.onnx", 17)
    written = onnx.load(tmp_path / "model.onnx")
    for node in written.graph.node:
        node.name = ""
    onnx.save(written, tmp_path / "again.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    x = floats(3, 12)
    expected = runtime_outputs(tmp_path / "again.onnx", {"x": x})
    got = tf.onnx.load(tmp_path / "again.onnx")(x)
    for key in expected:
        assert_same(got[key], expected[key], key)
