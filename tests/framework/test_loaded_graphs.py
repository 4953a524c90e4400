"""What a graph from a file may use: its own operations, and nothing outside unless `allow` says so."""

from __future__ import annotations

import os
import types
from dataclasses import replace

import numpy as np
import pytest

import tfray as tf
from tfray.framework.op_def import registered_ops
from tfray.library.inspect import graph_util
from tfray.programs import graph_tools

# -- which operations reach outside --------------------------------------------------------------------

FILE_FUNCTIONS = ("tfray.formats.files", "tfray.formats.open_checkpoint", "tfray.formats.tfrecord")
"""Modules whose functions open what a path names."""

HARMLESS = {"as_path", "sibling"}
"""Functions on paths that open nothing."""

PYTHON_FUNCTION = "lookup_function"

OPENS_NO_FILE = {
    "tfray.ops.image.image_codec_ops",
    "tfray.ops.image.image_files",
    "tfray.ops.dataflow.dataset_ops",
    "tfray.ops.dataflow.dataset_result_ops",
}
"""Their ``open`` is Pillow's, of bytes in memory, or that of a dataset."""


def names_used(function, seen):
    """What a function, and all of tfray that it calls, takes from global names: ``(module, name)``."""
    code = getattr(function, "__code__", None)
    if code is None or function in seen:
        return
    seen.add(function)
    codes, scope = [code], function.__globals__
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, types.FunctionType):
            yield from names_used(cell.cell_contents, seen)
    for each in codes:  # grows by the functions within
        codes += [constant for constant in each.co_consts if isinstance(constant, types.CodeType)]
        for name in each.co_names:
            found = scope.get(name)
            members = [(name, found)]
            if isinstance(found, types.ModuleType) and found.__name__.startswith("tfray."):
                members = [(member, getattr(found, member)) for member in each.co_names if hasattr(found, member)]
            for member, value in members:
                module = getattr(value, "__module__", None) or ""
                yield module, member
                if isinstance(value, types.FunctionType) and module.startswith("tfray.ops."):
                    yield from names_used(value, seen)


def kinds_used(definition):
    """What the kernels of a type use: ``files``, ``python``."""
    functions = [kernel.function for kernel in definition.kernels.values()]
    seen = set()
    used = {each for function in functions for each in names_used(function, seen)}
    names = {name for _, name in used}
    opens = {name for module, name in used if module in FILE_FUNCTIONS and name not in HARMLESS and name[0].islower()}
    opens |= names & {
        "write_data",
        "complete_checkpoint",
        "dataset",
        "Popen",
        "CachedInFile",
        "TFRecordWriter",
        "connect",
    }
    opens |= names & {"listdir", "remove", "popen", "system"} if "os" in names else set()
    opens |= names & ({"open"} if all(function.__module__ not in OPENS_NO_FILE for function in functions) else set())
    return ({"files"} if opens else set()) | ({"python"} if PYTHON_FUNCTION in names else set())


@pytest.mark.parametrize("name", sorted(registered_ops()))
def test_every_operation_whose_kernel_opens_files_or_calls_python_says_so(name):
    definition = registered_ops()[name]
    assert kinds_used(definition) == ({definition.reach.kind} if definition.reach else set())


def test_the_walk_over_kernels_finds_files_however_deep():
    found = {name for name, definition in registered_ops().items() if kinds_used(definition)}
    assert {"ReadFile", "TextLineReader", "TFRecordDataset", "SaveShard", "PyFunc"} <= found


# -- what is refused -----------------------------------------------------------------------------------


def read_file(folder):
    return tf.read_file(str(folder / "secret"), name="peek")


def write_file(folder):
    with tf.control_dependencies([tf.write_file(str(folder / "written"), "x", name="scribble")]):
        return tf.constant("done")


def in_a_branch(folder):
    return tf.cond(tf.constant(True), lambda: tf.read_file(str(folder / "secret")), lambda: tf.constant("no"))


def in_a_dataset_function(folder):
    dataset = tf.data.Dataset.from_tensors(str(folder / "secret")).map(tf.read_file)
    return dataset.make_one_shot_iterator().get_next()


def lines_of_a_dataset(folder):
    return tf.data.TextLineDataset(str(folder / "secret")).make_one_shot_iterator().get_next()


def reader(folder):
    queue = tf.train.string_input_producer([str(folder / "secret")])
    return tf.TextLineReader().read(queue)[1]


def matching(folder):
    return tf.matching_files(str(folder / "*"))


def table_of_a_file(folder):
    initializer = tf.lookup.TextFileInitializer(str(folder / "secret"), tf.string, 0, tf.int64, -1)
    table = tf.lookup.StaticHashTable(initializer, -1)
    return table.lookup(tf.constant(["a"]))


def restored_from_a_path_of_its_own(folder):
    from tfray.ops.system import checkpoint_ops

    return checkpoint_ops.restore_tensor(str(folder / "secret"), "w", tf.float32, [])


def python(folder):
    return tf.py_func(lambda: np.float32(1), [], tf.float32, name="call")


ASKING = {
    read_file: ("files", r"ReadFile \(1, the first is 'peek'\)"),
    write_file: ("files", r"WriteFile \(1, the first is 'scribble'\)"),
    in_a_branch: ("files", r"ReadFile \(1"),
    in_a_dataset_function: ("files", r"ReadFile \(1"),
    lines_of_a_dataset: ("files", r"TextLineDataset \(1"),
    reader: ("files", r"TextLineReader \(1"),
    matching: ("files", r"MatchingFiles \(1"),
    table_of_a_file: ("files", r"InitializeTableFromTextFile \(1"),
    restored_from_a_path_of_its_own: ("files", r"RestoreTensor \(1"),
    python: ("python", r"PyFunc \(1, the first is 'call'\)"),
}


def imported(folder, build, **allow):
    """A graph from a file, put into a new one by `tf.import_graph_def`."""
    definition = tf.GraphDef()
    definition.ParseFromString((folder / "graph.pb").read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="", **allow)
    return graph


def of_a_meta_graph(folder, build, **allow):
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(str(folder / "graph.meta"), **allow)
    return graph


def of_a_saved_model(folder, build, **allow):
    return tf.saved_model.load_model(folder / "model", **allow)


def saved(folder, build):
    """Write the graph that `build` makes in every form there is."""
    (folder / "secret").write_text("a\n")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [], name="x")
        y = build(folder)
        session.run(tf.global_variables_initializer())
        tf.train.export_meta_graph(folder / "graph.meta")
        tf.saved_model.simple_save(session, folder / "model", {"x": x}, {"y": y})
        (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())


@pytest.mark.fault(
    "Strangers",
    "A loaded graph has operations that use files or call Python.",
    happens="`tf.errors.PermissionDeniedError` with a list of them.",
    promise="A graph from a file reaches nothing outside of itself, unless `allow=` says so.",
)
@pytest.mark.parametrize("load", [imported, of_a_meta_graph, of_a_saved_model])
@pytest.mark.parametrize("build", ASKING)
def test_a_graph_that_reaches_outside_is_refused_unless_it_is_allowed_to(tmp_path, build, load):
    kind, listed = ASKING[build]
    saved(tmp_path, build)
    with pytest.raises(tf.errors.PermissionDeniedError, match=listed) as refused:
        load(tmp_path, build)
    assert f"allow=['{kind}']" in str(refused.value)
    other = "python" if kind == "files" else "files"
    with pytest.raises(tf.errors.PermissionDeniedError, match=r"allow=\['files', 'python'\]"):
        load(tmp_path, build, allow=[other])
    load(tmp_path, build, allow=[kind])
    load(tmp_path, build, allow=kind)
    assert not (tmp_path / "written").exists()


def definition_of(folder):
    definition = tf.GraphDef()
    definition.ParseFromString((folder / "graph.pb").read_bytes())
    return definition


def of_a_predictor(folder, **allow):
    return tf.contrib.predictor.from_saved_model(str(folder / "model"), **allow)({"x": [2.0]})["y"]


def of_a_scoped_meta_graph(folder, **allow):
    with tf.Graph().as_default():
        graph_tools.import_scoped_meta_graph(str(folder / "graph.meta"), import_scope="in", **allow)


def of_a_model_to_freeze(folder, **allow):
    model = str(folder / "model")
    graph_tools.freeze_graph("", "", True, "", "y", None, None, "", False, "", input_saved_model_dir=model, **allow)


def of_a_meta_graph_to_freeze(folder, **allow):
    meta_graph, values = str(folder / "graph.meta"), str(folder / "model" / "variables" / "variables")
    graph_tools.freeze_graph("", "", True, values, "y", None, None, "", False, "", input_meta_graph=meta_graph, **allow)


def of_a_pruned_checkpoint(folder, **allow):
    tf.contrib.model_pruning.graph_def_from_checkpoint(str(folder / "saved"), ["y"], **allow)


def of_a_pruned_graph(folder, **allow):
    tf.contrib.model_pruning.strip_pruning_vars_fn(definition_of(folder), ["y"], **allow)


def of_a_classifier(folder, **allow):
    with tf.Graph().as_default():
        tf.contrib.gan.eval.run_image_classifier(tf.constant([1.0]), definition_of(folder), "x:0", "y:0", **allow)


def of_an_estimator(folder, **allow):
    estimator = tf.contrib.estimator.SavedModelEstimator(str(folder / "model"), str(folder / "run"), **allow)
    return next(estimator.predict(lambda: tf.data.Dataset.from_tensors({"x": [2.0]})))


def of_a_model_for_onnx(folder, **allow):
    pytest.importorskip("onnx")
    try:
        tf.onnx.export(folder / "model", folder / "model.onnx", **allow)
    except tf.errors.UnimplementedError as error:
        assert "ReadFile" in error.message  # it has been loaded


LOADERS = [
    of_a_predictor,
    of_a_scoped_meta_graph,
    of_a_model_to_freeze,
    of_a_meta_graph_to_freeze,
    of_a_pruned_checkpoint,
    of_a_pruned_graph,
    of_a_classifier,
    of_an_estimator,
    of_a_model_for_onnx,
]


@pytest.fixture(name="reading", scope="module")
def files_of_a_graph_that_reads_a_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    (folder / "secret").write_text("a\n")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        length = tf.strings.length(tf.read_file(str(folder / "secret")))
        y = tf.add(x * tf.get_variable("v", [], initializer=tf.ones_initializer()), tf.cast(length, tf.float32), "y")
        session.run(tf.global_variables_initializer())
        tf.train.export_meta_graph(folder / "graph.meta")
        tf.train.Saver().save(session, str(folder / "saved" / "model"))
        tf.saved_model.simple_save(session, folder / "model", {"x": x}, {"y": y})
        constant = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        (folder / "graph.pb").write_bytes(constant.SerializeToString())
    return folder


@pytest.mark.fault(
    "Strangers",
    "A loaded graph has operations that use files or call Python.",
    happens="`tf.errors.PermissionDeniedError` with a list of them.",
    promise="A graph from a file reaches nothing outside of itself, unless `allow=` says so.",
)
@pytest.mark.parametrize("load", LOADERS)
def test_whatever_loads_a_model_can_be_told_what_it_may_use(reading, load):
    with pytest.raises(tf.errors.PermissionDeniedError, match=r"ReadFile.*allow=\['files'\]"):
        load(reading)
    with pytest.raises(tf.errors.PermissionDeniedError):
        load(reading, allow=["python"])
    load(reading, allow=["files"])


def test_a_predictor_of_an_estimator_uses_what_the_program_does(tmp_path):
    """The graph goes through files, but this process has made it."""
    (tmp_path / "secret").write_text("a\n")

    def model(features, mode):
        tf.train.get_or_create_global_step()
        length = tf.strings.length(tf.read_file(str(tmp_path / "secret")))
        predictions = {"y": features["x"] + tf.cast(length, tf.float32)}
        step = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(
            mode,
            predictions,
            tf.constant(0.0),
            step,
            export_outputs={"serving_default": tf.estimator.export.PredictOutput(predictions)},
        )

    def receiver():
        x = tf.placeholder(tf.float32, [None], name="x")
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    estimator = tf.estimator.Estimator(model, str(tmp_path / "run"))
    estimator.train(lambda: tf.data.Dataset.from_tensors({"x": [1.0]}), steps=1)
    predict = tf.contrib.predictor.from_estimator(estimator, receiver)
    assert predict({"x": [3.0]})["y"].tolist() == [5.0]
    with pytest.raises(tf.errors.PermissionDeniedError, match="ReadFile"):
        tf.contrib.predictor.from_estimator(estimator, receiver, allow=())


def test_what_is_only_looked_at_may_have_any_operation(reading):
    with tf.Graph().as_default() as graph:
        image = tf.placeholder(tf.float32, [1, 8, 8, 1], name="image")
        seen = tf.nn.conv2d(image, tf.ones([3, 3, 1, 1]), 1, "SAME", name="seen")
        tf.read_file("elsewhere")
        octets = graph.as_graph_def().SerializeToString()
    assert seen.shape == [1, 8, 8, 1]
    definition = tf.GraphDef.FromString(octets)
    field = tf.contrib.receptive_field.compute_receptive_field_from_graph_def(definition, "image", "seen")
    assert field.size.tolist() == [3, 3]


def test_what_can_be_allowed_is_known(tmp_path):
    saved(tmp_path, read_file)
    with pytest.raises(tf.errors.InvalidArgumentError, match="what can be allowed is files, python"):
        tf.saved_model.load_model(tmp_path / "model", allow=["everything"])


def test_a_refused_graph_leaves_the_current_one_as_it_was(tmp_path):
    saved(tmp_path, read_file)
    with tf.Graph().as_default() as graph:
        with pytest.raises(tf.errors.PermissionDeniedError):
            tf.train.import_meta_graph(str(tmp_path / "graph.meta"))
        assert graph.get_operations() == [] and graph.get_all_collection_keys() == []


# -- what is not ---------------------------------------------------------------------------------------


def test_a_graph_of_this_process_may_be_copied_whatever_it_uses(tmp_path):
    (tmp_path / "secret").write_text("mine")
    with tf.Graph().as_default() as graph:
        read_file(tmp_path)
        python(tmp_path)
        definition, meta_graph = graph.as_graph_def(), tf.train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, name="copy")
        assert session.run("copy/peek:0") == b"mine"
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta_graph)


def test_a_part_of_a_loaded_graph_is_still_loaded(tmp_path):
    saved(tmp_path, read_file)
    definition = tf.GraphDef.FromString((tmp_path / "graph.pb").read_bytes())
    with tf.Graph().as_default():
        tf.import_graph_def(graph_util.extract_sub_graph(definition, ["x"]), name="harmless")
        with pytest.raises(tf.errors.PermissionDeniedError):
            tf.import_graph_def(graph_util.extract_sub_graph(definition, ["peek"]))


def test_a_path_that_the_importer_gives_is_the_importers(tmp_path):
    saved(tmp_path, read_file)
    (tmp_path / "own").write_text("own")
    definition = tf.GraphDef.FromString((tmp_path / "graph.pb").read_bytes())
    (path,) = next(node.input for node in definition.node if node.name == "peek")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, {path: tf.constant(str(tmp_path / "own"))}, name="")
        assert session.run("peek:0") == b"own"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_saver_saves_and_restores_where_it_is_told_and_nowhere_else(tmp_path, asynchronous):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(3.0, name="v")
        session.run(v.initializer)
        saver = tf.train.Saver(asynchronous=asynchronous)
        saver.save(session, str(tmp_path / "first"))
        saver.wait()
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(str(tmp_path / "first.meta"))
        saver.restore(session, str(tmp_path / "first"))
        session.run(tf.global_variables()[0].assign_add(1.0))
        saver.save(session, str(tmp_path / "second"))
        before = set(os.listdir(tmp_path))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"must feed a value for .* with dtype string"):
            session.run(saver.saver_def.save_tensor_name)  # the path in the file is nobody's wish
        assert set(os.listdir(tmp_path)) == before
    assert tf.train.load_variable(str(tmp_path / "second"), "v") == 4.0


def test_a_saver_whose_path_the_users_of_a_model_would_give_is_refused(tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tf.Variable(3.0, name="v")
        session.run(v.initializer)
        saver = tf.train.Saver()
        definition = saver.as_saver_def()
        path, done = (
            graph.get_tensor_by_name(name) for name in (definition.filename_tensor_name, definition.save_tensor_name)
        )
        tf.saved_model.simple_save(session, tmp_path / "model", {"path": path}, {"done": done})
    with pytest.raises(tf.errors.PermissionDeniedError, match="SaveShard"):
        tf.saved_model.load_model(tmp_path / "model")


def test_a_model_with_a_saver_is_loaded_as_any_other(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], name="x")
        v = tf.Variable(3.0, name="v")
        session.run(v.initializer)
        tf.train.Saver().build()
        tf.saved_model.simple_save(session, tmp_path / "model", {"x": x}, {"y": x * v})
    assert tf.saved_model.load_model(tmp_path / "model")(2.0)["y"] == 6.0


def model_with_a_vocabulary(folder):
    (folder / "words").write_text("ant\nbee\n")
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.placeholder(tf.string, [None])
        path = tf.constant(str(folder / "words"))
        table = tf.contrib.lookup.index_table_from_file(path)
        ids = table.lookup(words)
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"words": words}, {"ids": ids})
        builder = tf.saved_model.builder.SavedModelBuilder(folder / "model")
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, [path], main_op=tf.tables_initializer()
        )
        builder.save()
    return folder / "model"


def test_a_model_reads_its_own_assets(tmp_path):
    folder = model_with_a_vocabulary(tmp_path)
    assert tf.saved_model.load_model(folder)(["bee", "?"])["ids"].tolist() == [1, -1]


@pytest.mark.fault(
    "Strangers",
    "A loaded graph has operations that use files or call Python.",
    happens="`tf.errors.PermissionDeniedError` with a list of them.",
    promise="A graph from a file reaches nothing outside of itself, unless `allow=` says so.",
)
def test_an_asset_that_is_a_link_leads_nowhere(tmp_path):
    folder = model_with_a_vocabulary(tmp_path)
    (folder / "assets" / "words").unlink()
    (folder / "assets" / "words").symlink_to(tmp_path / "words")
    with pytest.raises(tf.errors.PermissionDeniedError, match="InitializeTableFromTextFile"):
        tf.saved_model.load_model(folder)
    assert tf.saved_model.load_model(folder, allow=["files"])(["bee"])["ids"].tolist() == [1]


# -- what a file might try -----------------------------------------------------------------------------


def changed(definition, name, input):
    """The graph with one operation changed, as if a file said so."""
    for node in definition.node:
        if node.name == name:
            node.input[:] = input
    return tf.GraphDef.FromString(definition.SerializeToString())


def test_control_inputs_before_the_path_hide_nothing(tmp_path):
    with tf.Graph().as_default() as graph:
        placeholder = tf.placeholder(tf.string, [], name="fed")
        tf.write_file(str(tmp_path / "written"), placeholder, name="scribble")
        definition = graph.as_graph_def()
    (written,) = [node for node in definition.node if node.name == "scribble"]
    tricked = changed(definition, "scribble", input=["^fed", *written.input])
    with tf.Graph().as_default(), pytest.raises(tf.errors.PermissionDeniedError, match="WriteFile"):
        tf.import_graph_def(tricked, {"fed:0": tf.constant("x")}, name="")


def test_a_saver_of_a_region_has_no_path_that_a_caller_gives(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.placeholder(tf.string, [], name="path")

        def restored():
            from tfray.ops.system import checkpoint_ops

            return checkpoint_ops.restore_tensor(tf.constant(str(tmp_path / "secret")), "w", tf.float32, [])

        tf.cond(tf.constant(True), restored, lambda: tf.constant(0.0))
        data = graph.as_graph_def().SerializeToString()
    with tf.Graph().as_default(), pytest.raises(tf.errors.PermissionDeniedError, match="RestoreTensor"):
        tf.import_graph_def(tf.GraphDef.FromString(data))


def test_a_mark_of_origin_is_not_part_of_the_graph():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
        (made,) = graph.as_plain().node
    assert replace(made, is_loaded=True) == made
    assert b"is_loaded" not in graph.as_plain().SerializeToString()
