"""``tf.keras.estimator``: estimators from Keras models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.estimator.estimator import Estimator
from tfray.estimator.export_outputs import PredictOutput
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.estimator.warm_start import WarmStartSettings
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.formats.meta_graph_proto import VariableDef
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.importer import import_graph_def
from tfray.framework.plain_graph import PlainGraph, PlainNode
from tfray.framework.scopes import current_mode
from tfray.keras import losses as keras_losses
from tfray.keras import metrics as keras_metrics
from tfray.keras.backend import get_session
from tfray.keras.files.saving import load_model
from tfray.keras.step_values import importance, mean_loss, values_of
from tfray.library.inspect.graph_util import extract_sub_graph
from tfray.library.layers.layer_history import mask_of
from tfray.library.layers.losses import share_of_replica
from tfray.library.metrics.mean_metrics import mean
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import math_ops
from tfray.ops.state.state_ops import assign_add
from tfray.training.checkpoints.saver import Saver
from tfray.training.threads.global_step import get_or_create_global_step

__all__ = ["model_to_estimator"]

_WEIGHTS: Final = "keras/keras_model.ckpt"
"""The checkpoint, in the estimator's folder, of the weights that the model has when it is converted."""


_SCOPE: Final = "keras_model"
"""Where the operations of the model are in the graphs of the estimator."""


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: PathLike | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: PathLike | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str | None = None,
) -> Estimator:
    """An estimator that trains, evaluates and uses a compiled Keras model, and begins with its weights.

    Features are a dictionary by the names of the model's inputs (``INPUT`` or ``LAYER_input``), or one tensor for a
    model with one input. Labels are a tensor, or for several outputs a dictionary by the names of their layers, which
    are also those of the predictions. A metric is called as in the model's logs.

    Under ``RunConfig(train_distribute=...)`` moving averages, such as those of batch normalization, follow the first
    replica: TensorFlow takes the mean over the replicas.

    Args:
        keras_model: The model.
        keras_model_path: In its place, the file that its `save` wrote.
        custom_objects: As for `tf.keras.models.load_model`.
        model_dir: As of `tf.estimator.Estimator`.
        config: Likewise.
        checkpoint_format: ``"saver"``, ``"checkpoint"``, or None; all mean checkpoints of `tf.train.Saver`.

    Raises:
        ValueError: There is no model, or both a model and a file; it is not compiled or not built yet.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError("model_to_estimator needs keras_model or keras_model_path, one of the two")
    if keras_model is None:
        with Graph().as_default():
            keras_model = load_model(str(keras_model_path), custom_objects)
    if keras_model.optimizer is None or keras_model._compiled_loss is None:
        raise ValueError(f"model {keras_model.name!r} must be compiled, with an optimizer and a loss, to be converted")
    if not keras_model.inputs:
        raise ValueError(f"model {keras_model.name!r} has no inputs yet: give its first layer an input_shape")
    if checkpoint_format not in (None, "saver", "checkpoint"):
        raise ValueError(f"checkpoint_format is {checkpoint_format!r}, expected saver or checkpoint")
    recorded = _Recorded(keras_model)
    made = Estimator(recorded.model_fn, model_dir, config)
    path = f"{made.model_dir}/{_WEIGHTS}"
    files.make_folders(path.rpartition("/")[0])
    with keras_model.inputs[0].graph.as_default():
        Saver(list(keras_model.variables), save_relative_paths=True).save(
            get_session(), path, latest_filename="checkpoint", write_meta_graph=False
        )
    names = [f"{re.escape(variable.op.name)}(:0)?$" for variable in keras_model.variables]
    return Estimator(recorded.model_fn, made.model_dir, made.config, warm_start_from=WarmStartSettings(path, names))


class _Recorded:
    """A model as data, from which it can be built in other graphs."""

    def __init__(self, model: Any) -> None:
        graph = model.inputs[0].graph
        with graph.as_default():
            phase = graph.extra("keras_learning_phase", dict).get("phase")
        variables = [variable.to_proto() for variable in model.variables]
        self._own_names = frozenset(definition.variable_name.partition(":")[0] for definition in variables)
        inputs = [self._renamed(tensor.name) for tensor in model.inputs]
        self._inputs = dict(zip(model.input_names, inputs, strict=True))
        self._outputs = dict(
            zip(model.output_names, [self._renamed(tensor.name) for tensor in model.outputs], strict=True)
        )
        penalties = model._losses_of_inputs()
        self._penalties = [self._renamed(tensor.name) for tensor in penalties]
        updates = [getattr(update, "op", update).name for update in model._updates_of_inputs()]
        self._updates = [self._renamed(name) for name in updates]
        masks = [mask_of(output) for output in model.outputs]
        self._masks = [None if mask is None else self._renamed(mask.name) for mask in masks]
        kept = (*model.outputs, *penalties, *(mask for mask in masks if mask is not None))
        wanted = [tensor.op.name for tensor in kept] + updates
        for variable in model.variables:
            wanted += [variable.op.name, variable.initializer.name]
            wanted += [variable._snapshot.op.name, variable._initial_value.op.name]
        part = extract_sub_graph(graph.as_plain(), wanted)
        is_used = isinstance(phase, Tensor) and any(node.name == phase.op.name for node in part.node)
        self._phase = self._renamed(phase.name) if is_used else None
        self._graph_def = PlainGraph([self._renamed_node(node) for node in part.node])
        self._variables = [self._renamed_definition(definition) for definition in variables]
        self._name = model.name
        self._loss, self._loss_weights = model._compiled_loss, model._compiled_loss_weights
        self._metrics = list(model._compiled_metrics)
        self._optimizer = model.optimizer.fresh()

    def _renamed(self, name: str) -> str:
        """A name in the new graphs, where input functions have operations too. Variables keep theirs."""
        control = "^" if name.startswith("^") else ""
        bare = name.removeprefix("^")
        is_own = bare.partition(":")[0] in self._own_names
        return name if is_own else f"{control}{_SCOPE}/{bare}"

    def _renamed_node(self, node: PlainNode) -> PlainNode:
        attributes = dict(node.attr)
        if "_class" in attributes:
            attributes["_class"] = [self._renamed(name) for name in attributes["_class"]]
        inputs = [self._renamed(name) for name in node.input]
        return replace(node, name=self._renamed(node.name), input=inputs, attr=attributes)

    def _renamed_definition(self, definition: VariableDef) -> VariableDef:
        renamed = VariableDef()
        renamed.CopyFrom(definition)
        for field in ("initializer_name", "snapshot_name", "initial_value_name"):
            setattr(renamed, field, self._renamed(getattr(definition, field)))
        return renamed

    def model_fn(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """The model function of the estimator."""
        training = mode == ModeKeys.TRAIN
        outputs, penalties, updates, variables = self._build(features, training)
        predictions = dict(zip(self._outputs, outputs, strict=True))
        if mode == ModeKeys.PREDICT:
            served = {"serving_default": PredictOutput(predictions)}
            return EstimatorSpec(mode, predictions=predictions, export_outputs=served)
        targets = self._targets(labels, outputs)
        chosen = self._loss if isinstance(self._loss, (list, tuple)) else [self._loss] * len(outputs)
        found = [keras_losses.get(loss) for loss in chosen]
        factors = self._loss_weights or [1.0] * len(found)
        parts = [
            factor * mean_loss(loss, target, output)
            for factor, loss, target, output in zip(factors, found, targets, outputs, strict=True)
        ]
        loss = math_ops.add_n([*parts, *(array_ops.to_float(penalty) for penalty in penalties)])
        if mode == ModeKeys.EVAL:
            metrics = {}
            for metric in self._metrics:
                name = keras_metrics.name_of(metric)
                for place, (target, output, own) in enumerate(zip(targets, outputs, found, strict=True)):
                    values = values_of(keras_metrics.get(metric, own, output), target, output)
                    counts = array_ops.ones_like(values) * importance(values, output)
                    metrics[name if place == 0 else f"{name}_{place}"] = mean(values, counts)
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
        trained = [variable for variable in variables if variable.trainable]
        step = group(self._optimizer.fresh().minimize(share_of_replica(loss), trained), *updates)
        with get_default_graph().control_dependencies([step]):
            train_op = assign_add(get_or_create_global_step(), 1).op
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _build(self, features: Any, training: bool) -> tuple[list[Any], list[Any], list[Any], list[Variable]]:
        """The model in the current graph: outputs, penalties, updates and variables."""
        replaced = {}
        for name, tensor_name in self._inputs.items():
            replaced[tensor_name] = self._cast_like(tensor_name, self._feature(features, name))
        if self._phase is not None:
            replaced[self._phase] = constant(training)
        mode = current_mode()
        first = mode is None or mode.replica is None or mode.replica.number == 0
        graph, graph_def, variables = get_default_graph(), self._graph_def, []
        if not first:  # another replica: it has the variables of the first one, whose updates count
            made = {variable.op.name: variable for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
            variables = [made[definition.variable_name.partition(":")[0]] for definition in self._variables]
            replaced |= {variable.handle.name: variable.handle for variable in variables}
            graph_def = PlainGraph([node for node in graph_def.node if node.name not in self._own_names])
        names = [name for name in self._masks if name is not None]
        wanted = [*self._outputs.values(), *self._penalties, *self._updates, *names]
        found = import_graph_def(graph_def, replaced, wanted, name="" if first else "model") or []
        found, masks = found[: len(found) - len(names)], found[len(found) - len(names) :]
        count, extra = len(self._outputs), len(self._penalties)
        masked = (output for output, name in zip(found[:count], self._masks, strict=True) if name is not None)
        for output, mask in zip(masked, masks, strict=True):
            output._keras_mask = mask  # type: ignore[union-attr]
        outputs, penalties, updates = found[:count], found[count : count + extra], found[count + extra :]
        if not first:
            return list(outputs), list(penalties), [], variables
        for definition in self._variables:
            variable = Variable.from_proto(definition)
            variables.append(variable)
            graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, variable)
            if variable.trainable:
                graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, variable)
        return list(outputs), list(penalties), list(updates), variables

    def _cast_like(self, tensor_name: str, value: Any) -> Tensor:
        (node,) = [node for node in self._graph_def.node if node.name == tensor_name.partition(":")[0]]
        return array_ops.cast(convert_to_tensor(value), node.attr["dtype"])

    def _feature(self, features: Any, name: str) -> Any:
        if not isinstance(features, Mapping):
            if len(self._inputs) != 1:
                raise InvalidArgumentError(
                    f"model {self._name!r} has inputs {', '.join(self._inputs)}: give a dictionary"
                )
            return features
        for key in (name, name.removesuffix("_input")):
            if key in features:
                return features[key]
        raise InvalidArgumentError(
            f"model {self._name!r} has inputs {', '.join(self._inputs)}, and there are features {', '.join(features)}"
        )

    def _targets(self, labels: Any, outputs: list[Any]) -> list[Tensor]:
        if isinstance(labels, Mapping):
            missing = [name for name in self._outputs if name not in labels]
            if missing:
                raise InvalidArgumentError(f"there are labels {', '.join(labels)}, and none for {', '.join(missing)}")
            given = [labels[name] for name in self._outputs]
        else:
            given = list(labels) if isinstance(labels, (list, tuple)) else [labels]
        if len(given) != len(outputs):
            raise InvalidArgumentError(
                f"model {self._name!r} has {len(outputs)} outputs, and there are {len(given)} labels"
            )
        tensors = [convert_to_tensor(label) for label in given]
        return [array_ops.expand_dims(each, -1) if each.shape.rank == 1 else each for each in tensors]
