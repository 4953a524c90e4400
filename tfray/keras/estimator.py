"""``tf.keras.estimator``: estimators from Keras models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.estimator.estimator import Estimator
from tfray.estimator.export_outputs import PredictOutput
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.estimator.warm_start import WarmStartSettings
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor
from tfray.keras import metrics as keras_metrics
from tfray.keras.backend import get_session, set_learning_phase
from tfray.keras.files.saving import load_model
from tfray.keras.settings import floatx
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import placeholder
from tfray.training.checkpoints.saver import Saver
from tfray.training.threads.global_step import get_or_create_global_step

__all__ = ["model_to_estimator"]

_WEIGHTS: Final = "keras/keras_model.ckpt"
"""The checkpoint, in the estimator's folder, of the weights that the model has when it is converted."""


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
    are also those of the predictions. A metric is called as in the model's logs. Features may be a dictionary of
    ``"features"`` and ``"sample_weights"``: what each example counts in the loss.

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
    if keras_model.optimizer is None or (keras_model._compiled_loss is None and not keras_model.losses):
        raise ValueError(f"model {keras_model.name!r} must be compiled, with an optimizer and a loss, to be converted")
    if not keras_model.inputs:
        raise ValueError(f"model {keras_model.name!r} has no inputs yet: give its first layer an input_shape")
    if checkpoint_format not in (None, "saver", "checkpoint"):
        raise ValueError(f"checkpoint_format is {checkpoint_format!r}, expected saver or checkpoint")
    converted = _Converted(keras_model)
    made = Estimator(converted.model_fn, model_dir, config)
    path = f"{made.model_dir}/{_WEIGHTS}"
    files.make_folders(path.rpartition("/")[0])
    names = converted.save_weights(path)
    return Estimator(converted.model_fn, made.model_dir, made.config, warm_start_from=WarmStartSettings(path, names))


class _Converted:
    """A compiled model, which is built anew in each graph of an estimator."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._settings = model._training_settings()
        self._optimizer = model.optimizer.fresh()  # while the session of the model has its settings

    def save_weights(self, path: str) -> list[str]:
        """Write the weights of the model under the names that they have in an estimator; returns patterns of these."""
        graph = self._model.inputs[0].graph
        with graph.as_default():
            weights = self._model.get_weights()
        with Graph().as_default():
            made = self._model._built_on([placeholder(each.dtype, each.shape) for each in self._model.inputs])
            variables = made.weights
            made.set_weights(weights)
            with get_session() as session:
                Saver(list(variables), save_relative_paths=True).save(
                    session, path, latest_filename="checkpoint", write_meta_graph=False
                )
        return [f"{re.escape(variable.op.name)}(:0)?$" for variable in variables]

    def model_fn(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """The model function of the estimator."""
        training = mode == ModeKeys.TRAIN
        set_learning_phase(training)
        features, weights = _without_weights(features)
        model = self._model._built_on(self._inputs(features))
        predictions = dict(zip(model.output_names, model.outputs, strict=True))
        if mode == ModeKeys.PREDICT:
            served = {"serving_default": PredictOutput(predictions)}
            return EstimatorSpec(mode, predictions=predictions, export_outputs=served)
        optimizer = self._optimizer.fresh()
        optimizer.iterations = get_or_create_global_step()
        settings = {**self._settings, "optimizer": optimizer}
        for key in ("metrics", "weighted_metrics"):
            settings[key] = nest.map_structure(_fresh_metric, settings[key])
        model._weight_tensors = weights
        model.compile(**settings, target_tensors=self._targets(labels, model))
        if not training:
            metrics = model._evaluated_metrics()
            return EstimatorSpec(mode, predictions=predictions, loss=model.total_loss, eval_metric_ops=metrics)
        train_op = model._prepare_training(())
        return EstimatorSpec(mode, predictions=predictions, loss=model.total_loss, train_op=train_op)

    def _inputs(self, features: Any) -> list[Tensor]:
        """The features, in the order of the inputs and with their dtypes."""
        names, model = self._model.input_names, self._model
        said = f"model {model.name!r} has inputs {', '.join(names)}"
        if isinstance(features, Mapping):
            keys = [name if name in features else name.removesuffix("_input") for name in names]
            if any(key not in features for key in keys):
                raise InvalidArgumentError(f"{said}, and there are features {', '.join(features)}")
            given = [features[key] for key in keys]
        else:
            given = list(features) if isinstance(features, (list, tuple)) else [features]
            if len(given) != len(names):
                raise InvalidArgumentError(f"{said}: give a dictionary")
        pairs = zip(given, model.inputs, strict=True)
        return [array_ops.cast(convert_to_tensor(value), own.dtype) for value, own in pairs]

    def _targets(self, labels: Any, model: Any) -> list[Tensor] | None:
        """The labels, in the order of the outputs, as targets of the model; None for one that needs none."""
        names, outputs = model.output_names, model.outputs
        if labels is None:
            if self._settings["loss"] is None:
                return None
            raise InvalidArgumentError(f"model {model.name!r} needs labels, and the input function gives none")
        if isinstance(labels, Mapping):
            missing = [name for name in names if name not in labels]
            if missing:
                raise InvalidArgumentError(f"there are labels {', '.join(labels)}, and none for {', '.join(missing)}")
            given = [labels[name] for name in names]
        else:
            given = list(labels) if isinstance(labels, (list, tuple)) else [labels]
        if len(given) != len(outputs):
            raise InvalidArgumentError(
                f"model {model.name!r} has {len(outputs)} outputs, and there are {len(given)} labels"
            )
        targets = []
        for label, output in zip(map(convert_to_tensor, given), outputs, strict=True):
            dtype = output.dtype if output.dtype.is_floating else floatx()
            targets.append(array_ops.cast(array_ops.expand_dims(label, -1) if label.shape.rank == 1 else label, dtype))
        return targets


def _without_weights(features: Any) -> tuple[Any, Any]:
    """Features, and the weights of examples that may come with them; see `model_to_estimator`."""
    if isinstance(features, Mapping) and set(features) == {"features", "sample_weights"}:
        return features["features"], features["sample_weights"]
    return features, None


def _fresh_metric(metric: Any) -> Any:
    """A metric for another graph."""
    return metric.fresh() if isinstance(metric, keras_metrics.Metric) else metric
