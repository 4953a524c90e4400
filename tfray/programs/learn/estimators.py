"""The estimators of ``tf.contrib.learn``: those of ``tf.estimator`` with `fit`, which also take arrays."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.estimator import canned, dnn, dnn_linear_combined, estimator, extenders, linear
from tfray.estimator.estimator import InputFn
from tfray.estimator.input_functions import can_end
from tfray.estimator.inputs import numpy_input_fn
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import string
from tfray.framework.graph import Graph, Tensor
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.layers.feature_column_base import FeatureColumn
from tfray.library.layers.losses import Reduction
from tfray.library.layers.older_inputs import infer_real_valued_columns
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.ops.arrays.shape_ops import squeeze
from tfray.ops.nn.activation_ops import relu
from tfray.programs.learn.interfaces import Evaluable, Trainable
from tfray.programs.learn.learn_keys import MetricKey
from tfray.programs.learn.metrics import metric_ops
from tfray.programs.learn.model_fn_ops import ModelFnOps
from tfray.programs.learn.served_inputs import received, served_outputs
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.session_run_hook import SessionRunContext, SessionRunHook, SessionRunValues

Features = TensorLike | Mapping[str, TensorLike]
"""Features of examples: an array, or arrays by name."""

_WHOLE = ""
"""The name of features that are one tensor."""


class Learner(Evaluable, Trainable):
    """What all estimators here have: an estimator of ``tf.estimator``, and arrays for its input functions.

    Args:
        made: That estimator.
    """

    _last_input: tuple[Any, Any] | None = None
    """Features and labels as a model function of one's own got them last; None if they are those of the input."""

    def __init__(self, made: estimator.Estimator) -> None:
        self._estimator = made

    @property
    def model_dir(self) -> str:
        """Folder of the checkpoints."""
        return self._estimator.model_dir

    @property
    def config(self) -> Any:
        """Its configuration."""
        return self._estimator.config

    @property
    def params(self) -> Any:
        """The hyperparameters."""
        return self._estimator.params

    def fit(
        self,
        x: Features | None = None,
        y: TensorLike | None = None,
        input_fn: InputFn | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Sequence[SessionRunHook] | None = None,
        max_steps: int | None = None,
    ) -> Any:
        """Train.

        Args:
            x: Features, an array or arrays by name; else `input_fn`.
            y: Labels.
            input_fn: Makes features and labels.
            steps: How many steps; until the input ends when None.
            batch_size: Examples of a step; all of `x` when None.
            monitors: Hooks.
            max_steps: The last step.
        """
        batches = _by_name(input_fn) or _arrays(x, y, batch_size, None, shuffle=True)
        for monitor in monitors or ():
            if hasattr(monitor, "set_estimator"):
                monitor.set_estimator(self)
        self._estimator.train(batches, hooks=monitors, steps=steps, max_steps=max_steps)
        return self

    def partial_fit(
        self,
        x: Features | None = None,
        y: TensorLike | None = None,
        input_fn: InputFn | None = None,
        steps: int = 1,
        **more: Any,
    ) -> Any:
        """`fit` for one step, or for `steps`."""
        return self.fit(x, y, input_fn, steps=steps, **more)

    def evaluate(
        self,
        x: Features | None = None,
        y: TensorLike | None = None,
        input_fn: InputFn | None = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Evaluate.

        Args:
            x: As for `fit`.
            y: Likewise.
            input_fn: Likewise.
            feed_fn: Not used.
            batch_size: As for `fit`.
            steps: How many batches; until the input ends when None.
            metrics: Further `MetricSpec`, or functions of predictions and labels, by name.
            name: Name of the evaluation.
            checkpoint_path: The checkpoint; the newest when None.
            hooks: Hooks.
            log_progress: Not used.

        Returns:
            Values by the names of metrics, those of ``tf.estimator`` and the older ones, with ``global_step``. ``loss``
            is a mean over the examples by their weights.
        """
        batches = _by_name(input_fn) or _arrays(x, y, batch_size, 1, shuffle=False)
        judged = self._estimator
        if metrics:
            judged = extenders.add_metrics(
                judged,
                lambda features, labels, predictions: metric_ops(
                    metrics,
                    *(self._last_input or (features, labels)),
                    self._named_for_metrics(predictions, labels),
                ),
            )
        found = judged.evaluate(batches, steps, hooks, checkpoint_path, name)
        loss = found.pop(_LOSS, None)
        return _with_older_names(found) if loss is None else {**found, MetricKey.LOSS: loss}

    def predict(
        self,
        x: Features | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Predictions for each example.

        Args:
            x: As for `fit`.
            input_fn: Likewise.
            batch_size: Likewise.
            outputs: Names of the predictions; all when None.
            as_iterable: Return them one by one; otherwise as an array.
        """
        found = self._predictions(x, input_fn, batch_size, list(outputs) if outputs else None)
        return found if as_iterable else np.array(list(found))

    def _predictions(
        self, x: Features | None, input_fn: InputFn | None, batch_size: int | None, keys: list[str] | None
    ) -> Iterator[Any]:
        batches = _by_name(input_fn) or _arrays(x, None, batch_size, 1, shuffle=False)
        found = iter(self._estimator.predict(batches, keys, None if input_fn is None else [_OneBatch()]))
        return (each[_WHOLE] if set(each) == {_WHOLE} else each for each in found)

    def _of_each(
        self,
        key: str,
        take: Callable[[Any], Any],
        x: Features | None,
        input_fn: InputFn | None,
        batch_size: int | None,
        as_iterable: bool,
    ) -> Any:
        found: Iterable[Any] = (take(each[key]) for each in self._predictions(x, input_fn, batch_size, [key]))
        return found if as_iterable else np.array(list(found))

    def _named_for_metrics(self, predictions: Any, labels: Any) -> Any:
        """Predictions under the names, and of the shapes, that metrics of `evaluate` find."""
        return predictions

    def get_variable_names(self) -> list[str]:
        """Names of the variables."""
        return self._estimator.get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the newest checkpoint."""
        return self._estimator.get_variable_value(name)

    def export_savedmodel(self, export_dir_base: str, serving_input_fn: Any, **options: Any) -> Any:
        """Write a saved model; see `tf.estimator.Estimator.export_savedmodel`."""
        for name in ("default_output_alternative_key", "exports_to_keep"):
            options.pop(name, None)
        return self._estimator.export_savedmodel(export_dir_base, lambda: received(serving_input_fn()), **options)


_OLDER_NAMES: Final = {
    "loss": "average_loss",
    "labels/prediction_mean": "prediction/mean",
    "labels/actual_label_mean": "label/mean",
    "accuracy/baseline_label_mean": "label/mean",
    "accuracy/threshold_0.500000_mean": "accuracy",
    "precision/positive_threshold_0.500000_mean": "precision",
    "recall/positive_threshold_0.500000_mean": "recall",
}
"""Names of metrics in ``tf.contrib.learn``, with those in ``tf.estimator`` of the same values."""


_LOSS: Final = "contrib_learn_loss"
"""What the loss that a model function itself measures is called in between: ``tf.estimator`` has its own ``loss``."""


def _with_older_names(values: Mapping[str, Any]) -> dict[str, Any]:
    is_binary = "accuracy_baseline" in values
    found = {old: values[new] for old, new in _OLDER_NAMES.items() if new in values and (is_binary or old == "loss")}
    return {**values, **found}


class _OneBatch(SessionRunHook):
    """Stops after one batch where nothing in the input can end, such as with a constant."""

    def begin(self) -> None:
        self._is_all = not can_end()

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._is_all:
            run_context.request_stop()


def _by_name(input_fn: InputFn | None) -> InputFn | None:
    """The same input function, but that features that are one tensor are found by the columns of no name."""
    if input_fn is None:
        return None

    @functools.wraps(input_fn)
    def named(*args: Any, **kwargs: Any) -> Any:
        made = input_fn(*args, **kwargs)
        if isinstance(made, Tensor):
            return {_WHOLE: made}
        if isinstance(made, (tuple, list)) and made and isinstance(made[0], Tensor):
            return ({_WHOLE: made[0]}, *made[1:])
        return made

    return named


def _arrays(
    x: Features | None, y: TensorLike | None, batch_size: int | None, num_epochs: int | None, shuffle: bool
) -> Callable[..., Any]:
    if x is None:
        raise ValueError("Either x or input_fn must be provided.")
    named = {name: _as_numbers(each) for name, each in (x if isinstance(x, Mapping) else {_WHOLE: x}).items()}
    labels = None if y is None else _as_numbers(y)
    count = len(next(iter(named.values())))
    return numpy_input_fn(named, labels, batch_size or count, num_epochs, shuffle)


def _as_numbers(value: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


class Estimator(Learner):
    """Trains a model function of one's own.

    Args:
        model_fn: ``model_fn(features, labels, mode, params, config, model_dir)``, the last four if it takes them. It
            returns a `ModelFnOps`, ``(predictions, loss, train_op)``, or a `tf.estimator.EstimatorSpec`.
        model_dir: Folder of the checkpoints.
        config: Its configuration.
        params: Hyperparameters.
        feature_engineering_fn: Function of features and labels that comes first.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        feature_engineering_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
    ) -> None:
        taken = inspect.signature(model_fn).parameters

        def spec_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
            if isinstance(features, Mapping) and set(features) == {_WHOLE}:
                features = features[_WHOLE]
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            self._last_input = features, labels
            known = {"mode": mode, "params": params, "config": config, "model_dir": config.model_dir}
            made = model_fn(features, labels, **{name: known[name] for name in known if name in taken})
            return _as_spec(mode, made, self._serves)

        super().__init__(estimator.Estimator(spec_fn, model_dir, config, params if params is not None else {}))

    _serves: Callable[[ModelFnOps], Any] | None = None
    """While a saved model is written: makes of what the model function returned the outputs that the model offers."""

    def export_savedmodel(self, export_dir_base: str, serving_input_fn: Any, **options: Any) -> Any:
        """As of all estimators here; of several heads ``default_output_alternative_key`` names the default one."""
        default = options.get("default_output_alternative_key")
        self._serves = lambda ops: served_outputs(ops.output_alternatives, default) if ops.output_alternatives else None
        try:
            return super().export_savedmodel(export_dir_base, serving_input_fn, **options)
        finally:
            self._serves = None


def _as_spec(mode: str, made: Any, serves: Callable[[ModelFnOps], Any] | None = None) -> EstimatorSpec:
    if isinstance(made, EstimatorSpec):
        return made
    ops = made if isinstance(made, ModelFnOps) else ModelFnOps(mode, *made)
    predictions = {_WHOLE: ops.predictions} if isinstance(ops.predictions, Tensor) else ops.predictions
    metrics = {_LOSS if name == MetricKey.LOSS else name: each for name, each in (ops.eval_metric_ops or {}).items()}
    chosen = {
        "eval_metric_ops": metrics or None,
        "export_outputs": None if serves is None else serves(ops),
        "training_chief_hooks": ops.training_chief_hooks,
        "training_hooks": ops.training_hooks,
        "scaffold": ops.scaffold,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    return EstimatorSpec(mode, predictions, ops.loss, ops.train_op, **given)


_NEWER_CLASSES: Final = {"class_ids", "all_class_ids", "all_classes"}
"""Predictions of ``tf.estimator`` that ``tf.contrib.learn`` does not have."""


class Classifying(Learner):
    """An estimator of classes."""

    _label_keys: Sequence[str] | None = None
    """The words, if labels are words: classes are these, and not their numbers."""

    def _predictions(
        self, x: Features | None, input_fn: InputFn | None, batch_size: int | None, keys: list[str] | None
    ) -> Iterator[Any]:
        source = "classes" if self._label_keys else "class_ids"
        asked = None if keys is None else list(dict.fromkeys(source if key == "classes" else key for key in keys))
        for each in super()._predictions(x, input_fn, batch_size, asked):
            found = {**each, "classes": each[source][0]} if source in each else each
            yield {key: found[key] for key in keys or found if keys or key not in _NEWER_CLASSES}

    def _named_for_metrics(self, predictions: Any, labels: Any) -> Any:
        words = getattr(labels, "dtype", None) == string
        return {**predictions, "classes": squeeze(predictions["classes" if words else "class_ids"], [-1])}

    def predict_classes(
        self,
        x: Features | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The class of each example: its number, or its word where labels are words."""
        return self._of_each("classes", lambda each: each, x, input_fn, batch_size, as_iterable=as_iterable)

    def predict_proba(
        self,
        x: Features | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The probabilities of the classes, for each example."""
        return self._of_each("probabilities", lambda each: each, x, input_fn, batch_size, as_iterable=as_iterable)

    def predict(
        self,
        x: Features | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The class of each example, or the `outputs` that are named."""
        if outputs is None:
            return self.predict_classes(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable)


class Regressing(Learner):
    """An estimator of numbers."""

    def _predictions(
        self, x: Features | None, input_fn: InputFn | None, batch_size: int | None, keys: list[str] | None
    ) -> Iterator[Any]:
        asked = None if keys is None else list(dict.fromkeys("predictions" if key == "scores" else key for key in keys))
        for each in super()._predictions(x, input_fn, batch_size, asked):
            scores = each["predictions"]
            found = {**each, "scores": scores[0] if len(scores) == 1 else scores}
            yield {key: found[key] for key in keys or found if keys or key != "predictions"}

    def _named_for_metrics(self, predictions: Any, labels: Any) -> Any:
        scores = predictions["predictions"]
        return {"scores": squeeze(scores, [-1]) if scores.shape[-1] == 1 else scores}

    def predict_scores(
        self,
        x: Features | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The prediction for each example."""
        return self._of_each("scores", lambda each: each, x, input_fn, batch_size, as_iterable=as_iterable)

    def predict(
        self,
        x: Features | None = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The prediction for each example, or the `outputs` that are named."""
        if outputs is None:
            return self.predict_scores(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable)


_WITHOUT_EFFECT = frozenset({"fix_global_step_increment_bug", "input_layer_min_slice_size"})
"""Options that change nothing of what is learnt."""


def _optional(more: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    """What is given. The loss of a batch is a mean here, and a sum in ``tf.estimator``.

    Args:
        more: Options that the constructor does not name.
        given: Options of the estimator of ``tf.estimator``; those that are None are left out.

    Raises:
        InvalidArgumentError: One of `more` would change what is learnt, and is not taken.
    """
    options = {"loss_reduction": Reduction.SUM_OVER_BATCH_SIZE}
    for name, value in more.items():
        if name == "label_keys":
            options["label_vocabulary"] = value
        elif value is not None and name not in _WITHOUT_EFFECT:
            raise InvalidArgumentError(f"{name} is not taken: do it in the input function, or use tf.estimator")
    return {name: value for name, value in (options | given).items() if value is not None}


def _clipped(optimizer: Any, default: str, clip_norm: float | None) -> Any:
    return optimizer if clip_norm is None else canned.Clipped(optimizer or default, clip_norm)


_NEWER_NAMES: Final = re.compile(r"(.*\b(?:hiddenlayer_\d+|logits)/)(kernel|bias)")


def _with_older_variables(made: estimator.Estimator) -> estimator.Estimator:
    """Let an estimator's dense layers have ``weights`` and ``biases``, as checkpoints of these models have them."""
    model_fn = made._model_fn

    def older(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        found = _NEWER_NAMES.fullmatch(name)
        return getter(found[1] + {"kernel": "weights", "bias": "biases"}[found[2]] if found else name, *args, **kwargs)

    @functools.wraps(model_fn)
    def named(*args: Any, **kwargs: Any) -> EstimatorSpec:
        with variable_scope(get_variable_scope(), custom_getter=older):
            return model_fn(*args, **kwargs)

    made._model_fn = named
    return made


class DNNClassifier(Classifying):
    """`tf.estimator.DNNClassifier`. The bias of its logits does what `enable_centered_bias` asks for."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Optimizer | str | None = None,
        activation_fn: Activation = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        **_more: Any,
    ) -> None:
        given = _optional(_more, optimizer=_clipped(optimizer, "Adagrad", gradient_clip_norm), config=config)
        made = dnn.DNNClassifier(
            hidden_units,
            feature_columns,
            model_dir,
            n_classes,
            weight_column_name,
            activation_fn=activation_fn,
            dropout=dropout,
            **given,
        )
        super().__init__(_with_older_variables(made))
        self._label_keys = _more.get("label_keys")


class DNNRegressor(Regressing):
    """`tf.estimator.DNNRegressor`. The bias of its logits does what `enable_centered_bias` asks for."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Optimizer | str | None = None,
        activation_fn: Activation = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        label_dimension: int = 1,
        **_more: Any,
    ) -> None:
        _more["feature_engineering_fn"] = feature_engineering_fn
        given = _optional(_more, optimizer=_clipped(optimizer, "Adagrad", gradient_clip_norm), config=config)
        made = dnn.DNNRegressor(
            hidden_units,
            feature_columns,
            model_dir,
            label_dimension,
            weight_column_name,
            activation_fn=activation_fn,
            dropout=dropout,
            **given,
        )
        super().__init__(_with_older_variables(made))


class LinearClassifier(Classifying):
    """`tf.estimator.LinearClassifier`. The bias of its logits does what `enable_centered_bias` asks for."""

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Optimizer | str | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: RunConfig | None = None,
        **_more: Any,
    ) -> None:
        given = _optional(_more, optimizer=_clipped(optimizer, "Ftrl", gradient_clip_norm), config=config)
        super().__init__(linear.LinearClassifier(feature_columns, model_dir, n_classes, weight_column_name, **given))
        self._label_keys = _more.get("label_keys")


class LinearRegressor(Regressing):
    """`tf.estimator.LinearRegressor`. The bias of its logits does what `enable_centered_bias` asks for."""

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn],
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Optimizer | str | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: RunConfig | None = None,
        **_more: Any,
    ) -> None:
        given = _optional(_more, optimizer=_clipped(optimizer, "Ftrl", gradient_clip_norm), config=config)
        super().__init__(
            linear.LinearRegressor(feature_columns, model_dir, label_dimension, weight_column_name, **given)
        )


def _made(part: str, default: str, rate: float, given: Mapping[str, Any]) -> Any:
    """The optimizer of a part of a model; one that is named learns faster than in ``tf.estimator``."""
    optimizer = given[f"{part}_optimizer"] or default
    columns = given[f"{part}_feature_columns"]
    if not columns:
        return None
    if isinstance(optimizer, str):
        rate = min(rate, len(columns) ** -0.5) if part == "linear" else rate
        optimizer = functools.partial(canned.optimizer_of, optimizer, rate)
    return _clipped(optimizer, default, given["gradient_clip_norm"])


def _of_both(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a linear model beside a network, from the arguments of a constructor."""
    names = ("linear_feature_columns", "dnn_feature_columns", "dnn_hidden_units", "dnn_activation_fn", "dnn_dropout")
    return _optional(
        given["_more"],
        **{name: given[name] for name in (*names, "config")},
        linear_optimizer=_made("linear", "Ftrl", linear.LEARNING_RATE, given),
        dnn_optimizer=_made("dnn", "Adagrad", dnn.LEARNING_RATE, given),
        weight_column=given["weight_column_name"],
    )


class DNNLinearCombinedClassifier(Classifying):
    """`tf.estimator.DNNLinearCombinedClassifier`. The bias of its logits does what `enable_centered_bias` asks for."""

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Sequence[FeatureColumn] | None = None,
        linear_optimizer: Optimizer | str | None = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Sequence[FeatureColumn] | None = None,
        dnn_optimizer: Optimizer | str | None = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Activation = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        **_more: Any,
    ) -> None:
        given = _of_both(locals())
        made = dnn_linear_combined.DNNLinearCombinedClassifier(model_dir, n_classes=n_classes, **given)
        super().__init__(_with_older_variables(made))
        self._label_keys = _more.get("label_keys")


class DNNLinearCombinedRegressor(Regressing):
    """`tf.estimator.DNNLinearCombinedRegressor`. The bias of its logits does what `enable_centered_bias` asks for."""

    def __init__(
        self,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Sequence[FeatureColumn] | None = None,
        linear_optimizer: Optimizer | str | None = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Sequence[FeatureColumn] | None = None,
        dnn_optimizer: Optimizer | str | None = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Activation = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: RunConfig | None = None,
        **_more: Any,
    ) -> None:
        given = _of_both(locals())
        made = dnn_linear_combined.DNNLinearCombinedRegressor(model_dir, label_dimension=label_dimension, **given)
        super().__init__(_with_older_variables(made))


class SKCompat:
    """An estimator in the style of scikit-learn: arrays in, arrays out.

    Args:
        estimator: An estimator of this module.
    """

    def __init__(self, estimator: Learner) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Sequence[SessionRunHook] | None = None,
    ) -> SKCompat:
        """Train on arrays."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluate on arrays."""
        return self._estimator.evaluate(x, y, None, None, batch_size, steps, metrics, name)

    def predict(self, x: Any, batch_size: int = 128, outputs: Sequence[str] | None = None) -> Any:
        """Predictions as arrays, by their names where there are several."""
        found = list(self._estimator._predictions(x, None, batch_size, list(outputs) if outputs else None))
        if not found or not isinstance(found[0], Mapping):
            return np.array(found)
        return {name: np.array([each[name] for each in found]) for name in found[0]}


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Columns for arrays of numbers: one for an array ``[examples, numbers]``, or one for each by its name."""
    named = x if isinstance(x, Mapping) else {_WHOLE: x}
    with Graph().as_default():
        return infer_real_valued_columns({name: convert_to_tensor(_as_numbers(each)) for name, each in named.items()})


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Columns for the features that a function makes."""
    with Graph().as_default():
        features, _ = input_fn()
        return infer_real_valued_columns(features)
