"""Writes the names of TensorFlow 1.15: its public functions with their parameters, and where its modules have them.

    python scripts/tensorflow_names.py FOLDER

FOLDER is `tensorflow_core` of the unpacked wheel of TensorFlow 1.15. Its sources are read, and not executed: what is
written are names. Two files come of it: `tests/golden/tensorflow_1_15.txt`, which has a line for each public name
outside of `tf.keras`, `tf.estimator` and `tf.raw_ops`, and `tfray/programs/module_paths.txt`, which has one for each of
TensorFlow's modules that programs import names from: names that are in TensorFlow's public interface, those of
`tf.contrib` that are here, and what `OWN_PATHS` adds.
"""

from __future__ import annotations

import argparse
import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SURFACE = ROOT / "tests" / "golden" / "tensorflow_1_15.txt"
PATHS = ROOT / "tfray" / "programs" / "module_paths.txt"
LEFT_OUT = ("keras", "estimator", "raw_ops", "compat")
"""Parts of the public interface that are not in the list of names."""

OWN_PATHS = """
contrib.gan.python.losses.python.losses_impl *=contrib.gan.losses.wargs
contrib.gan.python.losses.python.tuple_losses_impl *=contrib.gan.losses
contrib.gan.python.namedtuples *=contrib.gan.namedtuples
contrib.gan.python.train *=contrib.gan
contrib.integrate.python.ops.odes *=contrib.integrate
contrib.quantize.python.quantize_graph *=contrib.quantize
contrib.resampler.python.ops.resampler_ops *=contrib.resampler
contrib.learn.python.learn.datasets *=contrib.learn.datasets
contrib.learn.python.learn.datasets.base *=@tfray.programs.learn_datasets
contrib.learn.python.learn.datasets.mnist *=@tfray.programs.mnist_input
contrib.rnn.python.ops.core_rnn_cell _linear=@tfray.library.rnn.rnn_cell_wrappers.linear
contrib.rnn.python.ops.core_rnn_cell_impl *=contrib.rnn
contrib.slim.python.slim.learning *=contrib.slim.learning
contrib.tensor_forest.client.eval_metrics *=@tfray.estimator.canned_models.forest_metrics
contrib.tensor_forest.client.random_forest *=@tfray.estimator.canned_models.forest
contrib.tensor_forest.python.tensor_forest *=@tfray.library.forest.forest_graphs
contrib.tpu.python.tpu.bfloat16 contrib.tpu.bfloat16_scope
contrib.tpu.python.tpu.tpu_config contrib.tpu.InputPipelineConfig contrib.tpu.RunConfig contrib.tpu.TPUConfig
contrib.tpu.python.tpu.tpu_estimator contrib.tpu.TPUEstimator contrib.tpu.TPUEstimatorSpec
contrib.tpu.python.tpu.tpu_optimizer contrib.tpu.CrossShardOptimizer
core.example.example_pb2 train.Example train.SequenceExample
core.example.feature_pb2 train.BytesList train.Feature train.FeatureList train.FeatureLists train.Features
    train.FloatList train.Int64List
core.framework.attr_value_pb2 AttrValue NameAttrList=@tfray.formats.graph_proto.NameAttrList
core.framework.device_attributes_pb2 @tfray.programs.internal_names.DeviceAttributes
core.framework.graph_pb2 GraphDef
core.framework.node_def_pb2 NodeDef
core.framework.step_stats_pb2 @tfray.formats.step_stats.DeviceStepStats @tfray.formats.step_stats.NodeExecStats
    @tfray.formats.step_stats.StepStats
core.framework.summary_pb2 HistogramProto Summary SummaryMetadata
core.framework.tensor_pb2 @tfray.formats.tensor_proto.TensorProto
core.framework.tensor_shape_pb2 @tfray.formats.tensor_proto.TensorShapeProto
core.framework.types_pb2 *=@tfray.programs.type_numbers
core.framework.versions_pb2 @tfray.formats.graph_proto.VersionDef
core.protobuf.cluster_pb2 train.ClusterDef train.JobDef
core.protobuf.config_pb2 ConfigProto GPUOptions GraphOptions OptimizerOptions RunMetadata RunOptions
core.protobuf.meta_graph_pb2 MetaGraphDef TensorInfo
core.protobuf.saver_pb2 train.SaverDef
core.protobuf.tensorflow_server_pb2 train.ServerDef
core.util.event_pb2 Event LogMessage SessionLog
examples.tutorials.mnist *=@tfray.programs.mnist_model
examples.tutorials.mnist.input_data *=@tfray.programs.mnist_input
examples.tutorials.mnist.mnist *=@tfray.programs.mnist_model
python.client.device_lib @tfray.programs.internal_names.list_local_devices
python.client.session Session InteractiveSession
python.client.timeline *=timeline
python.debug *=debug
python.estimator *=estimator
python.estimator.canned.baseline estimator.BaselineClassifier estimator.BaselineEstimator estimator.BaselineRegressor
python.estimator.canned.dnn estimator.DNNClassifier estimator.DNNEstimator estimator.DNNRegressor
python.estimator.canned.dnn_linear_combined estimator.DNNLinearCombinedClassifier estimator.DNNLinearCombinedEstimator
    estimator.DNNLinearCombinedRegressor
python.estimator.canned.head
    _binary_logistic_head_with_sigmoid_cross_entropy_loss=contrib.estimator.binary_classification_head
    _multi_class_head_with_softmax_cross_entropy_loss=contrib.estimator.multi_class_head
    _regression_head=contrib.estimator.regression_head
    _regression_head_with_mean_squared_error_loss=contrib.estimator.regression_head
python.estimator.canned.linear estimator.LinearClassifier estimator.LinearEstimator estimator.LinearRegressor
python.estimator.canned.parsing_utils estimator.classifier_parse_example_spec estimator.regressor_parse_example_spec
python.estimator.early_stopping estimator.experimental.make_early_stopping_hook
    estimator.experimental.stop_if_higher_hook estimator.experimental.stop_if_lower_hook
    estimator.experimental.stop_if_no_decrease_hook estimator.experimental.stop_if_no_increase_hook
python.estimator.estimator estimator.Estimator estimator.VocabInfo estimator.WarmStartSettings
python.estimator.estimator_lib *=estimator
python.estimator.export.export build_all_signature_defs=@tfray.estimator.saved_models.build_all_signature_defs
    estimator.export.ServingInputReceiver estimator.export.TensorServingInputReceiver
    estimator.export.build_parsing_serving_input_receiver_fn estimator.export.build_raw_serving_input_receiver_fn
python.estimator.export.export_lib *=estimator.export
python.estimator.export.export_output estimator.export.ClassificationOutput estimator.export.ExportOutput
    estimator.export.PredictOutput estimator.export.RegressionOutput
python.estimator.exporter estimator.BestExporter estimator.Exporter estimator.FinalExporter estimator.LatestExporter
python.estimator.inputs.inputs estimator.inputs.numpy_input_fn estimator.inputs.pandas_input_fn
python.estimator.inputs.numpy_io estimator.inputs.numpy_input_fn
python.estimator.inputs.pandas_io estimator.inputs.pandas_input_fn
python.estimator.keras keras.estimator.model_to_estimator
python.estimator.mode_keys estimator.ModeKeys
python.estimator.model_fn estimator.EstimatorSpec estimator.ModeKeys
    LOSS_METRIC_KEY=@tfray.estimator.spec.LOSS_METRIC_KEY
python.estimator.run_config estimator.RunConfig TaskType=@tfray.estimator.run_config.TaskType
python.estimator.training estimator.EvalSpec estimator.TrainSpec estimator.train_and_evaluate
python.estimator.warm_start_util estimator.VocabInfo estimator.WarmStartSettings
python.framework.common_shapes broadcast_shape=broadcast_static_shape
python.framework.device @tfray.programs.internal_names.merge_device DeviceSpec
python.framework.function @tfray.library.functions.traced_function.Defun
python.framework.graph_io write_graph=train.write_graph
python.framework.load_library load_op_library
python.framework.ops get_collection_ref get_default_session
python.framework.smart_cond smart_cond=@tfray.ops.control.control_flow_ops.smart_cond
    smart_constant_value=get_static_value
python.data.ops.iterator_ops
    GET_NEXT_CALL_WARNING_MESSAGE=@tfray.library.input.dataset_iterators.GET_NEXT_CALL_WARNING_MESSAGE
    GET_NEXT_CALL_WARNING_THRESHOLD=@tfray.library.input.dataset_iterators.GET_NEXT_CALL_WARNING_THRESHOLD
python.framework.sparse_tensor is_sparse=@tfray.programs.internal_names.is_sparse
python.ops.data_flow_ops Barrier=@tfray.library.input.barrier.Barrier
    MapStagingArea=@tfray.library.input.staging.MapStagingArea
    StagingArea=@tfray.library.input.staging.StagingArea
python.framework.tensor_shape as_shape=@tfray.framework.tensor_shape.as_shape @tfray.programs.internal_names.matrix
    @tfray.programs.internal_names.scalar @tfray.programs.internal_names.unknown_shape
    @tfray.programs.internal_names.vector
python.framework.tensor_util constant_value=contrib.util.constant_value
python.framework.test_util *=@tfray.programs.graph_mode_tests
python.keras *=keras
python.layers *=layers
python.layers.utils smart_cond=@tfray.ops.control.control_flow_ops.smart_cond
python.lib.io.file_io FileIO=gfile.GFile
python.ops.control_flow_ops with_dependencies=@tfray.programs.internal_names.with_dependencies
python.ops.gen_string_ops regex_replace static_regex_full_match=strings.regex_full_match
    static_regex_replace=regex_replace strings.regex_full_match
python.ops.distributions.beta contrib.distributions.BetaWithSoftplusConcentration
python.ops.distributions.exponential contrib.distributions.ExponentialWithSoftplusRate
python.ops.distributions.gamma contrib.distributions.GammaWithSoftplusConcentrationRate
python.ops.distributions.laplace contrib.distributions.LaplaceWithSoftplusScale
python.ops.distributions.normal contrib.distributions.NormalWithSoftplusScale
python.ops.distributions.student_t contrib.distributions.StudentTWithAbsDfSoftplusScale
python.ops.gradient_checker_v2 @tfray.library.platform.testing.max_error
    compute_gradient=@tfray.library.platform.testing.compute_gradient_of
python.ops.init_ops @tfray.library.variables.initializers.Initializer
python.ops.lookup_ops @tfray.library.input.lookup.FastHashSpec @tfray.library.input.lookup.HasherSpec
    @tfray.library.input.lookup.IdTableWithHashBuckets @tfray.library.input.lookup.InitializableLookupTableBase
    @tfray.library.input.lookup.LookupInterface @tfray.library.input.lookup.MutableHashTable
    @tfray.library.input.lookup.StrongHashSpec @tfray.library.input.lookup.TableInitializerBase
    @tfray.library.input.lookup.TextFileIdTableInitializer
    @tfray.library.input.lookup.TextFileStringTableInitializer @tfray.library.input.lookup.index_table_from_file
    @tfray.library.input.lookup.index_table_from_tensor @tfray.library.input.lookup.index_to_string_table_from_file
    @tfray.library.input.lookup.index_to_string_table_from_tensor
python.ops.losses.losses *=losses
python.ops.metrics *=metrics
python.ops.nn *=nn
python.ops.resource_variable_ops ResourceVariable=Variable
    is_resource_variable=@tfray.programs.internal_names.is_resource_variable
python.ops.resources *=@tfray.library.variables.registered_resources
python.ops.rnn_cell _linear=@tfray.library.rnn.rnn_cell_wrappers.linear
    linear=@tfray.library.rnn.rnn_cell_wrappers.linear
python.ops.rnn_cell_impl _linear=@tfray.library.rnn.rnn_cell_wrappers.linear LayerRNNCell=contrib.rnn.LayerRNNCell
python.ops.seq2seq *=contrib.legacy_seq2seq
python.ops.string_ops string_split string_split_v2=strings.split
python.ops.variables RefVariable=Variable
python.platform.app *=app
python.platform.flags *=flags
python.platform.gfile *=gfile
python.platform.test *=test
python.platform.tf_logging *=logging
python.summary.summary *=summary
python.tpu.bfloat16 tpu.bfloat16_scope
python.tpu.tpu_optimizer tpu.CrossShardOptimizer
python.training.moving_averages @tfray.library.variables.moving_average.assign_moving_average
python.training.server_lib Server=train.Server
python.training.session_run_hook train.SessionRunArgs train.SessionRunContext train.SessionRunHook
    train.SessionRunValues
python.training.slot_creator *=@tfray.training.optimizers.slot_creator
python.util.compat *=compat
python.util.deprecation deprecated=@tfray.programs.internal_names.unchanged
    deprecated_arg_values=@tfray.programs.internal_names.unchanged
    deprecated_args=@tfray.programs.internal_names.unchanged
python.util.nest *=contrib.framework.nest
python.util.tf_export keras_export=@tfray.programs.internal_names.unchanged
    tf_export=@tfray.programs.internal_names.unchanged
python.util.tf_inspect *=@inspect
"""
"""Lines of `module_paths.txt` that do not follow from TensorFlow's sources; those that are indented go on."""

SKIPPED = {
    "api", "autograph", "boosted_trees", "distribute", "eager", "estimator", "keras", "kernel_tests", "model_pruning",
    "nets", "ragged", "receptive_field", "tensorrt", "tpu", "xla",
}  # fmt: skip
"""Folders of modules that are not read."""

Definition = tuple[str, str]
"""A module, and the name that something has where it is defined."""


class Sources:
    """What the modules of an unpacked wheel define and import.

    Args:
        folder: `tensorflow_core`, which stands for the package `tensorflow`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @functools.cache  # noqa: B019
    def file(self, module: str) -> Path | None:
        """The file of a module such as ``tensorflow.python.ops.array_ops``; None if there is none."""
        parts = module.split(".")[1:]
        path = self.folder.joinpath(*parts)
        if module == "tensorflow":
            return None
        for found in (path.with_suffix(".py"), path / "__init__.py"):
            if found.is_file():
                return found
        return None

    @functools.cache  # noqa: B019 -- the object lives as long as the program
    def bound(self, module: str) -> tuple[dict[str, Any], list[str]]:
        """Names that a module binds, to nodes or to the module and name that they come from; and star imports."""
        path = self.file(module)
        names: dict[str, Any] = {}
        stars: list[str] = []
        if path is not None:
            for node in self._statements(ast.parse(path.read_text()).body):
                self._bind(node, names, stars)
        return names, stars

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            yield node
            if isinstance(node, ast.If):
                yield from self._statements([*node.orelse, *node.body])
            elif isinstance(node, ast.Try):
                yield from self._statements(node.body)

    def _bind(self, node: ast.stmt, names: dict[str, Any], stars: list[str]) -> None:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    stars.append(node.module or "")
                else:
                    names[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    names[target.id] = node.value

    @functools.cache  # noqa: B019
    def definition(self, module: str, name: str, depth: int = 0) -> Definition | None:
        """Where a name of a module is defined; None for modules, and for what is not found."""
        names, stars = self.bound(module)
        found = names.get(name)
        if isinstance(found, tuple) and depth < 20:
            source, original = found
            if not source or not source.startswith("tensorflow") or self.file(f"{source}.{original}"):
                return None
            return self.definition(source, original, depth + 1)
        if isinstance(found, ast.Name) and found.id in names and depth < 20:
            return self.definition(module, found.id, depth + 1)
        if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name) and depth < 20:
            inner = names.get(found.value.id)
            if isinstance(inner, tuple) and self.file(".".join(inner)):
                return self.definition(".".join(inner), found.attr, depth + 1)
        if found is not None:
            return (module, name)
        for star in stars:
            if star.startswith("tensorflow") and depth < 20 and (there := self.definition(star, name, depth + 1)):
                return there
        return None

    @functools.cache  # noqa: B019
    def visible(self, module: str) -> frozenset[str]:
        """All public names of a module, those of star imports included."""
        waiting, seen, found = [module], {module}, set()
        while waiting:
            names, stars = self.bound(waiting.pop())
            found |= {name for name in names if not name.startswith("_")}
            new = [star for star in stars if star.startswith("tensorflow") and star not in seen]
            waiting += new
            seen.update(new)
        return frozenset(found)

    def parameters(self, module: str, name: str, depth: int = 0) -> list[str] | None:
        """The parameters of a function, or of the constructor of a class; None for what is neither."""
        names, _ = self.bound(module)
        node = names.get(name)
        if isinstance(node, ast.FunctionDef):
            return _listed(node)
        if isinstance(node, ast.ClassDef) and depth < 10:
            return self._of_class(module, node, depth)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple") and len(node.args) > 1:
            return _fields(node.args[1])
        return None

    def _of_class(self, module: str, node: ast.ClassDef, depth: int) -> list[str] | None:
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        for method in ("__new__", "__init__"):
            if method in methods:
                return _listed(methods[method])[1:]
        for base in node.bases:
            if isinstance(base, ast.Call):
                if "namedtuple" in ast.unparse(base.func) and len(base.args) > 1:
                    return _fields(base.args[1])
                continue
            there = self._named(module, base)
            if there and (found := self.parameters(*there, depth + 1)) is not None:
                return found
        return None

    def _named(self, module: str, node: ast.expr) -> Definition | None:
        if isinstance(node, ast.Name):
            return self.definition(module, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            inner = self.bound(module)[0].get(node.value.id)
            if isinstance(inner, tuple):
                return self.definition(".".join(inner), node.attr)
        return None


def _listed(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [each.arg for each in arguments.kwonlyargs]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def _fields(node: ast.expr) -> list[str] | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value.replace(",", " ").split() if isinstance(value, str) else list(value)


def public_names(sources: Sources) -> dict[str, Definition | None]:
    """Every public name without ``tf.``, and where it is defined; None for namespaces."""
    found: dict[str, Definition | None] = {}
    root = sources.folder / "_api" / "v1"
    for path in sorted(root.rglob("__init__.py")):
        parts = path.relative_to(root).parts[:-1]
        if not set(parts) & set(LEFT_OUT):
            _read_api(sources, path, ".".join(parts), found)
    _read_api(sources, root / "v1.py", "", found)
    return found


def _read_api(sources: Sources, path: Path, prefix: str, found: dict[str, Definition | None]) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = alias.asname or alias.name
                if name.startswith("_") or node.module == "__future__" or (not prefix and name in LEFT_OUT):
                    continue
                is_module = node.module.startswith("tensorflow._api")
                here = None if is_module else (sources.definition(node.module, alias.name) or (node.module, alias.name))
                found[f"{prefix}.{name}".lstrip(".")] = here


def surface(sources: Sources, names: dict[str, Definition | None]) -> list[str]:
    """A line for each public name: with parameters in parentheses for what can be called."""
    lines = []
    for name, definition in sorted(names.items()):
        parameters = sources.parameters(*definition) if definition else None
        lines.append(f"tf.{name}" if parameters is None else f"tf.{name}({', '.join(parameters)})")
    return lines


def module_paths(sources: Sources, names: dict[str, Definition | None], tf: ModuleType) -> list[str]:
    """A line for each module: its path, and the public names of what it has; ``name=public.name`` where they differ."""
    by_definition: dict[Definition, list[str]] = {}
    for name, definition in names.items():
        if definition:
            by_definition.setdefault(definition, []).append(name)
    by_definition_of_contrib = _contrib_names(sources, tf)
    found = {line.split()[0]: set(line.split()[1:]) for line in OWN_PATHS.replace("\n    ", " ").strip().split("\n")}
    for path in sorted((*sources.folder.glob("python/**/*.py"), *sources.folder.glob("contrib/*/python/**/*.py"))):
        parts = path.relative_to(sources.folder).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        module = ".".join(parts)
        is_whole = any(entry.startswith("*=") for entry in found.get(module, ()))
        if set(parts) & SKIPPED or is_whole:
            continue
        known = by_definition if parts[0] == "python" else by_definition_of_contrib
        if entries := set(_entries(sources, f"tensorflow.{module}", known)):
            own = {entry.partition("=")[0] for entry in found.get(module, ()) if "=" in entry}
            entries = {each for each in entries if each.partition("=")[0].rpartition(".")[2] not in own}
            found.setdefault(module, set()).update(entries)
    return [f"{module} {' '.join(sorted(entries))}" for module, entries in sorted(found.items())]


def _entries(sources: Sources, module: str, known: dict[Definition, list[str]]) -> Iterator[str]:
    names = sources.visible(module)
    for name in names:
        definition = sources.definition(module, name)
        if definition not in known:
            # What 1.x exports under a name may be called `name_v1` where it is defined, beside TensorFlow 2's.
            both = [f"{name}_v1", f"{name}V1"]
            older = [sources.definition(module, each) for each in both if each in names]
            yield from (f"{name}={min(known[each])}" for each in older if each in known)
        elif definition in known and "LazyLoader" not in known[definition]:
            same = [public for public in known[definition] if public.split(".")[-1] == name]
            public = min(same or known[definition], key=lambda each: (each.count("."), each))
            yield public if same else f"{name}={public}"


def _contrib_names(sources: Sources, tf: ModuleType) -> dict[Definition, list[str]]:
    """The names of `tf.contrib` that are there, by their definitions."""
    found: dict[Definition, list[str]] = {}
    for module in tf.contrib.__all__:
        for name in getattr(tf.contrib, module).__all__:
            definition = sources.definition(f"tensorflow.contrib.{module}", name)
            if definition:
                found.setdefault(definition, []).append(f"contrib.{module}.{name}")
    return found


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    sys.path.insert(0, str(ROOT))
    import tfray

    sources = Sources(parser.parse_args().folder)
    names = public_names(sources)
    SURFACE.write_text("\n".join(surface(sources, names)) + "\n")
    PATHS.write_text("\n".join(module_paths(sources, names, tfray)) + "\n")


if __name__ == "__main__":
    main()
