"""Saved models: written, loaded with and without a session, frozen, and damaged."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfray as tf
from tfray.library.inspect import graph_util

SERVE = [tf.saved_model.tag_constants.SERVING]
KEY = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
IMAGES = np.random.default_rng(0).normal(size=(5, 8, 8, 1)).astype(np.float32)


def build_convnet(units=16):
    """A small convnet that is trained for a few steps: (session, images, scores, their values)."""
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    hidden = tf.layers.conv2d(images, 4, 3, activation=tf.nn.relu)
    hidden = tf.layers.flatten(tf.layers.max_pooling2d(hidden, 2, 2))
    hidden = tf.layers.dense(hidden, units, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.dropout(hidden, training=False), 3)
    scores = tf.nn.softmax(logits, name="scores")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(train, {images: IMAGES, labels: [0, 1, 2, 0, 1]})
    return session, images, scores, session.run(scores, {images: IMAGES})


# -- exporting and loading -----------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [True, False])
def test_an_exported_model_is_loaded_in_one_line(tmp_path, frozen):
    session, images, scores, expected = build_convnet(64)
    folder = tmp_path / "model"
    tf.saved_model.export(session, folder, {"images": images}, {"scores": scores}, frozen=frozen)
    model = tf.saved_model.load_model(folder)
    for result in (model(IMAGES), model(images=IMAGES)):
        assert np.array_equal(result["scores"], expected)
    assert tf.TensorShape(model.inputs["images"].tensor_shape).as_list() == [None, 8, 8, 1]
    assert tf.as_dtype(model.outputs["scores"].dtype) is tf.float32
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda i: model(IMAGES[i : i + 1])["scores"][0], range(5)))
    assert np.allclose(rows, expected, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="takes images"):
        model(IMAGES, IMAGES)
    with pytest.raises(tf.errors.NotFoundError, match="serving_default"):
        tf.saved_model.load_model(folder, signature="other")
    model.close()
    if frozen:
        (graph,) = tf.saved_model.read_saved_model(folder).meta_graphs
        kinds = {node.op for node in graph.graph_def.node}
        assert not kinds & {"VarHandleOp", "ReadVariableOp", "AssignVariableOp", "ResourceApplyAdam"}


def test_a_model_with_variables_goes_on_training(tmp_path):
    session, images, scores, expected = build_convnet()
    tf.saved_model.simple_save(session, tmp_path / "model", {"images": images}, {"scores": scores})
    with tf.Graph().as_default(), tf.Session() as again:
        loaded = tf.saved_model.loader.load(again, SERVE, str(tmp_path / "model"))
        signature = loaded.signature_def[KEY]
        assert signature.method_name == tf.saved_model.signature_constants.PREDICT_METHOD_NAME
        assert np.array_equal(again.run(signature.outputs["scores"].name, {"images:0": IMAGES}), expected)
        assert len(tf.trainable_variables()) == 6
        train = again.graph.get_collection("train_op")
        again.run(train, {"images:0": IMAGES, "labels:0": [0, 1, 2, 0, 1]})
        assert not np.array_equal(again.run("scores:0", {"images:0": IMAGES}), expected)


def test_the_builder_of_tensorflow_1(tmp_path):
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.Variable([2.0, 3.0], name="w")
    y = tf.multiply(x, w, name="y")
    builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
    info = tf.saved_model.utils.build_tensor_info
    signature = tf.saved_model.signature_def_utils.build_signature_def(
        inputs={"x": info(x)},
        outputs={"y": info(y)},
        method_name=tf.saved_model.signature_constants.PREDICT_METHOD_NAME,
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        builder.add_meta_graph_and_variables(session, SERVE, signature_def_map={KEY: signature, "again": signature})
        builder.add_meta_graph(["train"])
    path = builder.save(as_text=True)
    assert path.endswith("saved_model.pbtxt") and tf.saved_model.maybe_saved_model_directory(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, SERVE, tmp_path / "model", import_scope="old")
        assert session.run("old/y:0", {"old/x:0": [1, 1]}).tolist() == [2, 3]
    with pytest.raises(tf.errors.NotFoundError, match="train"):
        tf.saved_model.load_model(tmp_path / "model", tags=["gpu"])
    for kind in (tf.errors.InvalidArgumentError, AssertionError):
        with pytest.raises(kind, match="Export directory already exists"):
            tf.saved_model.builder.SavedModelBuilder(tmp_path / "model")
    for kind in (tf.errors.NotFoundError, OSError):
        with pytest.raises(kind, match="SavedModel file does not exist at"):
            tf.saved_model.load_model(tmp_path)
    with tf.Session() as session, pytest.raises(RuntimeError, match="has no graph with the tags"):
        tf.saved_model.loader.load(session, ["gpu"], tmp_path / "model")
    (tmp_path / "model" / "saved_model.pbtxt").write_text("nonsense")
    with tf.Session() as session, pytest.raises(OSError, match=r"Cannot parse file .*saved_model\.pbtxt"):
        tf.saved_model.loader.load(session, SERVE, tmp_path / "model")


def _named(**fields):
    return tf.saved_model.signature_def_utils.build_signature_def({"x": tf.TensorInfo(**fields)}, {}, "method")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"signature_def_map": {KEY: _named(dtype=1)}}, AssertionError),
        ({"signature_def_map": {KEY: _named(name="x:0")}}, AssertionError),
        ({"signature_def_map": {"__saved_model_init_op": _named(name="x:0", dtype=1)}}, KeyError),
        ({"main_op": "v"}, TypeError),
        ({"saver": 3}, TypeError),
    ],
)
def test_what_a_builder_refuses(tmp_path, given, kind):
    builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "model")
    tf.Variable(1.0, name="v")
    with pytest.raises(AssertionError, match="with its variables first"):
        builder.add_meta_graph(SERVE)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(kind):
            builder.add_meta_graph_and_variables(session, SERVE, **given)
        builder.add_meta_graph_and_variables(session, SERVE)
        with pytest.raises(AssertionError, match="added already"):
            builder.add_meta_graph_and_variables(session, ["again"])
        tf.add_to_collection("saved_model_main_op", tf.no_op())
        with pytest.raises(ValueError, match="to run after loading already"):
            builder.add_meta_graph(["again"], main_op=tf.no_op())


def test_a_later_graph_may_have_variables_that_nothing_was_saved_of(tmp_path):
    builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "model")
    for name, add in [("v", None), ("w", builder.add_meta_graph)]:
        with tf.Graph().as_default(), tf.Session() as session:
            session.run(tf.Variable(1.0, name=name).initializer)
            builder.add_meta_graph_and_variables(session, ["v"]) if add is None else add(["w"])
    builder.save()
    with (
        tf.Graph().as_default(),
        tf.Session() as session,
        pytest.raises(tf.errors.NotFoundError, match="Key w not found"),
    ):
        tf.saved_model.loader.load(session, ["w"], tmp_path / "model")


def test_a_model_with_a_saver_and_without_defaults(tmp_path):
    v = tf.Variable(2.0, name="v")
    tf.complex(v, 1.0, name="c")
    tf.add_to_collection("mine", v)
    builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "model")
    with tf.Session() as session:
        session.run(v.initializer)
        saver = tf.train.Saver({"other": v}, name="named")
        builder.add_meta_graph_and_variables(session, SERVE, saver=saver, strip_default_attrs=True)
        builder.add_meta_graph(["whole"], saver=saver)
    builder.save()
    stripped, whole = tf.saved_model.read_saved_model(tmp_path / "model").meta_graphs
    for graph, there in [(stripped, set()), (whole, {"T", "Tout"})]:
        (node,) = (node for node in graph.graph_def.node if node.name == "c")
        assert {"T", "Tout"} & set(node.attr) == there
        assert graph.meta_info_def.stripped_default_attrs is not bool(there) and graph.meta_info_def.tensorflow_version
    assert tf.train.list_variables(str(tmp_path / "model" / "variables" / "variables")) == [("other", [])]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, SERVE, tmp_path / "model", input_map={"v/read:0": tf.constant(5.0)})
        assert session.run(["c:0", tf.get_collection("mine")]) == [5 + 1j, [2.0]]


def test_assets_of_one_name_are_numbered(tmp_path):
    paths = [tmp_path / folder / "words.txt" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name)
    assets = [tf.constant(str(path), name=f"asset_{index}") for index, path in enumerate([*paths, paths[0]])]
    with tf.Session() as session:
        builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "model")
        builder.add_meta_graph_and_variables(session, SERVE, assets_collection=assets)
        builder.save()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, SERVE, tmp_path / "model")
        names = [os.path.basename(name) for name in session.run([f"asset_{index}:0" for index in range(3)])]
    assert names == [b"words.txt", b"words.txt_1", b"words.txt"]
    assert (tmp_path / "model" / "assets" / "words.txt_1").read_text() == "b"


def test_signatures_are_of_the_dtypes_that_servers_ask_for():
    text, number = tf.placeholder(tf.string, name="text"), tf.placeholder(tf.float32, name="number")
    of = tf.saved_model.signature_def_utils
    assert of.regression_signature_def(text, number).outputs["outputs"].name == "number:0"
    assert sorted(of.classification_signature_def(text, text, number).outputs) == ["classes", "scores"]
    for function, args in [
        (of.regression_signature_def, (None, number)),
        (of.regression_signature_def, (number, number)),
        (of.regression_signature_def, (text, text)),
        (of.classification_signature_def, (text, number, number)),
        (of.classification_signature_def, (text, None, None)),
        (of.classification_signature_def, (text, text, "scores")),
    ]:
        with pytest.raises(ValueError):
            function(*args)


def test_assets_and_what_runs_after_loading(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("ant\nbee\n")
    words = tf.placeholder(tf.string, [None], name="words")
    path = tf.constant(str(vocabulary), name="path")
    table = tf.contrib.lookup.index_table_from_file(path, default_value=-1)
    ids = table.lookup(words)
    with tf.Session() as session:
        builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "model")
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"words": words}, {"ids": ids})
        builder.add_meta_graph_and_variables(
            session, SERVE, {KEY: signature}, assets_collection=[path], main_op=tf.tables_initializer()
        )
        builder.save()
    vocabulary.unlink()
    assert tf.saved_model.load_model(tmp_path / "model")(["bee", "cat"])["ids"].tolist() == [1, -1]


# -- freezing ------------------------------------------------------------------------------------------


def frozen_values(outputs, feeds=None):
    """Values of tensors before and after freezing."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(outputs, feeds)
        names = [tensor.op.name for tensor in outputs]
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), names)
    assert not {node.op for node in frozen.node} & {
        "VarHandleOp",
        "ReadVariableOp",
        "ResourceGather",
        "AssignVariableOp",
    }
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.import_graph_def(frozen, return_elements=[tensor.name for tensor in outputs], name="")
        after = session.run(found, {tensor.name: value for tensor, value in (feeds or {}).items()})
    return before, after


def test_freezing_gathers_loops_and_branches():
    table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), name="table")
    x = tf.placeholder(tf.float32, [], name="x")
    rows = tf.nn.embedding_lookup(table, [2, 0])

    def turn(i, total):
        return i + 1, total + tf.reduce_sum(tf.gather(table, [i]))

    _, total = tf.while_loop(lambda i, _: i < 3, turn, [0, x])
    chosen = tf.cond(x > 0, lambda: tf.reduce_sum(tf.gather(table, [1])), lambda: tf.reduce_max(table))
    for value in (1.0, -1.0):
        before, after = frozen_values([rows, total, chosen], {x: value})
        for a, b in zip(before, after, strict=True):
            assert np.array_equal(a, b)


def test_some_variables_may_stay():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    tf.add(a, b, name="sum")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        definition = session.graph.as_graph_def()
        convert = tf.graph_util.convert_variables_to_constants
        for options in ({"variable_names_whitelist": ["a"]}, {"variable_names_blacklist": ["b"]}):
            kept = convert(session, definition, ["sum"], **options)
            assert [node.name for node in kept.node if node.op == "VarHandleOp"] == ["b"]
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be frozen"):
            convert(session, definition, ["a/Assign"])
        with pytest.raises(tf.errors.InvalidArgumentError, match="'nothing'"):
            convert(session, definition, ["nothing"])


def test_sub_graphs_and_nodes_of_training():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.identity(tf.check_numerics(tf.identity(x, name="one"), "bad", name="check"), name="two")
    with tf.control_dependencies([y]):
        tf.add(y, 1.0, name="z")
    tf.negative(x, name="other")
    definition = tf.get_default_graph().as_graph_def()
    cut = tf.graph_util.extract_sub_graph(definition, ["z"])
    assert "other" not in {node.name for node in cut.node} and len(definition.node) == len(cut.node) + 1
    slim = graph_util.remove_training_nodes(cut)
    assert {"one", "check"}.isdisjoint({node.name for node in slim.node})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(slim, name="")
        assert session.run("z:0", {"x:0": 2.0}) == 3.0


def test_a_part_of_a_graph_that_parses_examples():
    text = tf.placeholder(tf.string, [None], name="text")
    parsed = tf.parse_example(text, {"a": tf.FixedLenFeature([], tf.float32)})["a"]
    tf.negative(parsed, name="other")
    example = tf.train.Example()
    example.features.feature["a"].float_list.value.append(3.0)
    definition = tf.get_default_graph().as_graph_def()
    for _ in range(2):  # what has been cut and read once is cut again
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.import_graph_def(definition, name="")
            definition = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["ParseExample/ParseExample"])
            assert len(definition.node) == 5
            found = session.run("ParseExample/ParseExample:0", {"text:0": [example.SerializeToString()]})
            assert found.tolist() == [3.0]


def _node(op, name, *inputs, group=None):
    node = tf.NodeDef(op=op, name=name, input=inputs)
    if group is not None:
        node.attr["_class"].list.s.append(f"loc:@{group}".encode())
    return node


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        # However they are ordered, chains are passed through.
        (
            [("Ends", "a", "b"), ("Identity", "b", "c"), ("Identity", "c", "d:1"), ("Begins", "d")],
            {"a": ["d:1"], "d": []},
        ),
        # A check is no reason to wait, so that what waits for it alone passes its input on.
        (
            [("Begins", "a"), ("CheckNumerics", "b", "a"), ("Identity", "c", "a", "^b"), ("Ends", "d", "c")],
            {"a": [], "d": ["a"]},
        ),
        # What waits, or is waited for, stays.
        (
            [("Begins", "a"), ("Identity", "b", "a"), ("Identity", "c", "a", "^b"), ("Ends", "d", "c", "b")],
            {"a": [], "b": ["a"], "c": ["a", "^b"], "d": ["c", "b"]},
        ),
    ],
)
def test_what_only_passes_its_input_on_is_removed(nodes, left):
    made = tf.graph_util.remove_training_nodes(tf.GraphDef(node=[_node(*node) for node in nodes]))
    assert {node.name: list(node.input) for node in made.node} == left


def test_what_others_are_colocated_with_stays():
    nodes = [_node("Begins", "a"), _node("Identity", "b", "a"), _node("Ends", "c", "b", group="b")]
    made = tf.graph_util.remove_training_nodes(tf.GraphDef(node=nodes))
    assert [node.name for node in made.node] == ["a", "b", "c"]


def test_graphs_go_to_files_and_come_back(tmp_path):
    tf.add(tf.placeholder(tf.float32, [], name="x"), 1.0, name="y")
    path = tf.train.write_graph(tf.get_default_graph(), str(tmp_path), "graph.pb", as_text=False)
    definition = tf.GraphDef()
    with open(path, "rb") as file:
        definition.ParseFromString(file.read())
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(definition, return_elements=["y:0"])
        assert session.run(y, {"import/x:0": 1.0}) == 2.0


# -- damage --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A saved model."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.Variable(np.ones((3, 200), np.float32), name="w")
        big = tf.constant(np.arange(200 * 40, dtype=np.float32).reshape(200, 40))
        _, y = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a * 2.0), [0, tf.matmul(tf.matmul(x, w), big)])
        with tf.Session() as session:
            session.run(w.initializer)
            tf.saved_model.export(session, folder, {"x": x}, {"y": y}, frozen=False)
    return folder


@pytest.fixture
def of_old(tmp_path):
    """A saved model as tfray wrote them before: JSON."""
    shutil.copytree(Path(__file__).parents[2] / "golden" / "saved_models" / "json", tmp_path / "model")
    return tmp_path / "model"


def test_a_model_of_the_older_form_is_read(of_old):
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    wanted = x @ np.ones((3, 200), np.float32) @ np.arange(8000, dtype=np.float32).reshape(200, 40) * 4
    np.testing.assert_allclose(tf.saved_model.load_model(of_old)(x)["y"], wanted, 1e-4)
    assert tf.saved_model.load_model(of_old, "ids")(["bee", "cat"])["ids"].tolist() == [1, -1]
    assert tf.saved_model.contains_saved_model(of_old)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        loaded = tf.saved_model.load(session, SERVE, of_old)
        assert graph.get_collection("numbers") == [3] and graph.get_collection("text") == [b"note"]
        assert graph.get_collection("outputs")[0].name == loaded.signature_def[KEY].outputs["y"].name
        (runner,) = graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert runner.queue_closed_exception_types == (tf.errors.OutOfRangeError,)


def check_mutated(folder, name, mutated):
    """A mutated file is refused with one clear error, or is still a model; memory stays bounded either way."""
    path = folder / name
    original = path.read_bytes()
    path.write_bytes(mutated)
    tracemalloc.start()
    try:
        with tf.Graph().as_default():
            tf.saved_model.load_model(folder).close()
    except tf.errors.OpError as error:
        assert str(error)
    finally:
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
        tracemalloc.stop()
        path.write_bytes(original)


def mutate(data, edits):
    mutated = bytearray(data)
    for place, kind, value in edits:
        at = place % max(len(mutated), 1)
        if kind == "set" and mutated:
            mutated[at] = value
        elif kind == "cut":
            del mutated[at : at + value]
        elif kind == "repeat":
            mutated[at:at] = mutated[at : at + value]
        else:
            mutated[at:at] = b"9" * (value % 20)
    return bytes(mutated)


EDITS = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.sampled_from(["set", "cut", "repeat", "digits"]), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


def fuzz(folder, examples):
    names = [path.name for path in folder.glob("saved_model.*")] + ["variables/variables.index"]

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(names), EDITS)
    def check(name, edits):
        check_mutated(folder, name, mutate((folder / name).read_bytes(), edits))

    check()


def test_mutated_models_are_refused_or_load(exported, of_old):
    fuzz(exported, 60)
    fuzz(of_old, 30)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_mutated_models(exported, of_old):
    fuzz(exported, 10_000)
    fuzz(of_old, 10_000)


JSON_VALUES = st.one_of(
    st.none(), st.integers(-5, 1 << 70), st.text(max_size=5), st.just([]), st.just({}), st.just(1e99)
)


def fuzz_fields(folder, examples):
    """Replace single values of the JSON tree by others that JSON allows."""
    path = folder / "saved_model.json"

    def places(value, found):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            found.append((value, key))
            places(item, found)
        return found

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 20), JSON_VALUES)
    def check(index, replacement):
        plain = json.loads(path.read_text())
        found = places(plain, [])
        parent, key = found[index % len(found)]
        parent[key] = replacement
        check_mutated(folder, "saved_model.json", json.dumps(plain).encode())

    check()


def test_models_with_wrong_fields_are_refused_or_load(of_old):
    fuzz_fields(of_old, 60)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_models_with_wrong_fields(of_old):
    fuzz_fields(of_old, 10_000)


@pytest.mark.parametrize(("form", "named"), [("exported", "'w'"), ("of_old", "constants")])
def test_a_flipped_bit_in_the_values_is_found(form, named, request):
    exported = request.getfixturevalue(form)
    (data,) = (exported / "variables").glob("*.data-*")
    original = data.read_bytes()
    mutated = bytearray(original)
    mutated[len(mutated) // 2] ^= 1
    data.write_bytes(bytes(mutated))
    try:
        with pytest.raises(tf.errors.DataLossError, match=named):
            tf.saved_model.load_model(exported)
    finally:
        data.write_bytes(original)


# -- TensorFlow's names --------------------------------------------------------------------------------


def test_constants_stand_in_the_namespace_too():
    saved = tf.saved_model
    assert saved.SERVING == saved.tag_constants.SERVING == "serve"
    assert saved.MAIN_OP_KEY == saved.constants.MAIN_OP_KEY == "saved_model_main_op"
    assert saved.PREDICT_METHOD_NAME == saved.signature_constants.PREDICT_METHOD_NAME
    assert saved.Builder is saved.builder.SavedModelBuilder
    assert (saved.TRAINING, saved.GPU, saved.TPU) == ("train", "gpu", "tpu")
    assert (saved.ASSETS_DIRECTORY, saved.VARIABLES_DIRECTORY, saved.VARIABLES_FILENAME) == (
        "assets", "variables", "variables",
    )  # fmt: skip
    assert (saved.SAVED_MODEL_FILENAME_PB, saved.SAVED_MODEL_FILENAME_PBTXT) == ("saved_model.pb", "saved_model.pbtxt")
    assert saved.PREDICT_METHOD_NAME == "tensorflow/serving/predict"


def test_signatures_that_a_server_can_call_are_valid():
    saved, text, number = tf.saved_model, tf.placeholder(tf.string, []), tf.placeholder(tf.float32, [])
    valid = [
        saved.predict_signature_def({"x": number}, {"y": number}),
        saved.classification_signature_def(text, text, number),
        saved.regression_signature_def(text, number),
    ]
    assert all(map(saved.is_valid_signature, valid))
    info = {"x": saved.build_tensor_info(number)}
    outputs = {saved.REGRESS_OUTPUTS: saved.build_tensor_info(number)}
    assert not saved.is_valid_signature(saved.build_signature_def(info, info, "own"))
    assert not saved.is_valid_signature(saved.build_signature_def(info, {}, saved.PREDICT_METHOD_NAME))
    assert not saved.signature_def_utils.is_valid_signature(
        saved.build_signature_def(info, outputs, saved.REGRESS_METHOD_NAME)
    )


def test_the_main_operation_initialises_variables_and_tables():
    v = tf.get_variable("v", initializer=3.0)
    with tf.Session() as session:
        session.run(tf.saved_model.main_op.main_op())
        assert session.run(v) == 3.0
        restore = v.assign(5.0).op
        session.run(tf.saved_model.main_op_with_restore(restore.name))
        assert session.run(v) == 5.0


def test_whether_a_folder_has_a_model_is_told(tmp_path):
    x = tf.placeholder(tf.float32, [])
    assert not tf.saved_model.contains_saved_model(tmp_path / "model")
    with tf.Session() as session:
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": x + 1.0})
    assert tf.saved_model.contains_saved_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("build", "is_bound"),
    [
        (lambda: tf.constant(1), True),
        (lambda: tf.constant("a"), True),
        (lambda: tf.constant(1.0), False),
        (lambda: tf.cast(tf.placeholder(tf.int32), tf.float32), True),
        (lambda: tf.cast(tf.placeholder(tf.float32), tf.int32), False),
        (lambda: tf.dynamic_stitch([[0]], [tf.constant([1])]), True),
        (lambda: tf.add(1, 2), False),
    ],
)
def test_operations_that_tensorflow_runs_on_the_cpu(build, is_bound):
    with tf.Graph().as_default():
        op = build().op
        assert tf.graph_util.must_run_on_cpu(op) is tf.graph_util.must_run_on_cpu(op.node_def) is is_bound
        variable = tf.Variable(1.0).op
    assert tf.graph_util.must_run_on_cpu(variable, pin_variables_on_cpu=True)
    assert not tf.graph_util.must_run_on_cpu(variable)


def test_shapes_by_names_of_inputs():
    with tf.Graph().as_default() as graph:
        tf.split(tf.zeros([4, 3], name="a"), 2, name="b")
    assert tf.graph_util.tensor_shape_from_node_def_name(graph, "a").as_list() == [4, 3]
    assert tf.graph_util.tensor_shape_from_node_def_name(graph, "b:1").as_list() == [2, 3]
    with pytest.raises(KeyError):
        tf.graph_util.tensor_shape_from_node_def_name(graph, "c")
