"""`Estimator`: a model function with a folder, which trains, evaluates, predicts and exports."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tfray.distribute.strategy import Strategy
from tfray.estimator import evaluation, saved_models
from tfray.estimator.input_functions import call_input_fn, features_and_labels, only_features, parameters_of
from tfray.estimator.replication.distributed import distributed_spec
from tfray.estimator.replication.replicated import ReplicatedTraining
from tfray.estimator.run_config import RunConfig, TaskType
from tfray.estimator.spec import EstimatorSpec, ModeKeys, check_positive, checked_hooks
from tfray.estimator.training_loop import train_locally
from tfray.estimator.warm_start import settings_of, warm_start
from tfray.formats.files import PathLike, as_path
from tfray.framework.arguments import checked
from tfray.framework.graph import DeviceFunction, Graph, get_default_graph
from tfray.library.platform import logging
from tfray.library.variables.variables import local_variables_initializer
from tfray.ops.arrays.grouping_ops import group
from tfray.options import ConfigProto
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint
from tfray.training.checkpoints.checkpoint_utils import list_variables, load_variable
from tfray.training.sessions.hooks import StopAtStepHook
from tfray.training.sessions.hooks_saving import CheckpointSaverListener
from tfray.training.sessions.monitored_session import ChiefSessionCreator, MonitoredSession
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunHook
from tfray.training.threads.device_setter import replica_device_setter
from tfray.training.threads.global_step import assert_global_step, create_global_step, get_global_step

InputFn = Callable[..., Any]
"""A function that makes the input: of those of ``mode``, ``params`` and ``config`` that it wants. It returns a
`tf.data.Dataset` of pairs (features, labels), or such a pair of tensors, or dictionaries of tensors."""

_MODEL_FN_ARGUMENTS = frozenset({"features", "labels", "mode", "params", "config", "self"})
_OVERRIDABLE = frozenset({"model_fn"})


class Estimator:
    """Trains, evaluates, uses and exports the model that a function describes.

    Everything is kept in `model_dir`: checkpoints ``model.ckpt-STEP``, and event files for TensorBoard, those of
    evaluations in ``eval`` (or ``eval_NAME``). A call goes on from the newest checkpoint there.

    Args:
        model_fn: ``model_fn(features, labels, mode, params, config)``, of which it takes as many as it wants, and
            `features` in any case: builds the model in the default graph and returns an `EstimatorSpec`. `labels` are
            None in mode ``PREDICT``.
        model_dir: The folder; that of `config`, or else a new one for temporary files, when None.
        config: A `RunConfig`.
        params: Hyperparameters, for `model_fn` and input functions.
        warm_start_from: A checkpoint or folder, or `WarmStartSettings`: values with which a first training begins.

    Raises:
        ValueError: `model_fn` takes other arguments, two folders are given, or a derived class overrides a method.
    """

    @checked
    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec] | None,
        model_dir: PathLike | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        Estimator._assert_members_are_not_overridden(self)
        self._config = _with_folder(config, model_dir)
        self._model_dir: str = self._config.model_dir
        self._session_config = self._config.session_config
        self._device_fn = self._config.device_fn or _device_setter(self._config)
        if model_fn is None:
            raise ValueError("an estimator needs a model function: model_fn is None")
        _check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start = settings_of(warm_start_from)
        logging.info("Using config: %r", self._config)

    @staticmethod
    def _assert_members_are_not_overridden(estimator: Estimator) -> None:
        """Raise `ValueError` if a derived class overrides methods. Programs that do so set this to something else."""
        own = {name for name in vars(Estimator) if not name.startswith("_")} - _OVERRIDABLE
        for kind in type(estimator).__mro__:
            if kind is Estimator:
                return
            changed = own & set(vars(kind))
            if changed:
                raise ValueError(
                    f"{kind.__name__} overrides {', '.join(sorted(changed))}: a class derived from Estimator gives it "
                    "another model_fn, and leaves its methods as they are"
                )

    # -- what it is ------------------------------------------------------------------------------

    @property
    def model_dir(self) -> str:
        """Folder of checkpoints and event files."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """The configuration."""
        return copy.copy(self._config)

    @property
    def params(self) -> Any:
        """A copy of the hyperparameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function with the hyperparameters in place: ``model_fn(features, labels, mode, config)``."""

        def bound(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return bound

    def eval_dir(self, name: str | None = None) -> str:
        """Folder of the event file of evaluations.

        Args:
            name: Name of the evaluation, if there are several.
        """
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    def latest_checkpoint(self) -> str | None:
        """Path of the newest checkpoint, or None."""
        return latest_checkpoint(self._model_dir)

    def get_variable_names(self) -> list[str]:
        """Names of the variables in the newest checkpoint.

        Raises:
            ValueError: There is no checkpoint.
        """
        self._check_trained()
        return [name for name, _ in list_variables(self._model_dir)]

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the newest checkpoint, an array.

        Args:
            name: Its name.

        Raises:
            ValueError: There is no checkpoint.
            NotFoundError: There is no such variable.
        """
        self._check_trained()
        return load_variable(self._model_dir, name)

    def _check_trained(self) -> None:
        if self.latest_checkpoint() is None:
            raise ValueError(f"there is no checkpoint in {self._model_dir}: train the model first")

    # -- training --------------------------------------------------------------------------------

    def train(
        self,
        input_fn: InputFn,
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Train.

        Args:
            input_fn: Makes the input; see `InputFn`.
            hooks: Hooks around the steps.
            steps: How many steps to make; until the input ends when None.
            max_steps: The global step at which to stop, in place of `steps`. If a checkpoint is as far, nothing is
                done.
            saving_listeners: Called around each save of a checkpoint.

        Returns:
            The estimator.

        Raises:
            ValueError: Both `steps` and `max_steps` are given, one is not positive, or this task does not train.
        """
        if self._config.task_type in (TaskType.EVALUATOR, TaskType.PS):
            raise ValueError(
                f"a task {self._config.task_type!r} does not train: call tf.estimator.train_and_evaluate, which does "
                "what the task is for"
            )
        if steps is not None and max_steps is not None:
            raise ValueError("train takes either steps or max_steps, not both")
        check_positive("train", "steps", steps)
        check_positive("train", "max_steps", max_steps)
        if max_steps is not None and max_steps <= self._saved_step():
            logging.info("nothing is trained: a checkpoint has reached global step %d already", max_steps)
            return self
        all_hooks = list(checked_hooks(hooks, "hooks"))
        listeners = list(saving_listeners or ())
        for listener in listeners:
            if not isinstance(listener, CheckpointSaverListener):
                raise TypeError(
                    "saving_listeners must be a list of CheckpointSaverListener: "
                    f"it holds {listener!r}, expected tf.train.CheckpointSaverListener"
                )
        if self._config.trainer is not None:
            if all_hooks or listeners:
                raise ValueError(
                    "hooks and saving_listeners work in a session of this process: with RunConfig(trainer=...) "
                    "replicas on Ray train, and there is none"
                )
            self._replicated(input_fn, None).train(self._last_step(steps, max_steps))
            return self
        if steps is not None or max_steps is not None:
            all_hooks.append(StopAtStepHook(steps, max_steps))
        loss = self._train_in_session(input_fn, all_hooks, listeners)
        logging.info("Loss for final step: %s.", loss)
        return self

    def _saved_step(self) -> int:
        """The global step of the newest checkpoint, 0 without one."""
        if self.latest_checkpoint() is None:
            return 0
        try:
            return int(load_variable(self._model_dir, "global_step"))
        except KeyError:
            return 0

    def _last_step(self, steps: int | None, max_steps: int | None) -> int | None:
        last = max_steps if steps is None else self._saved_step() + steps
        return None if last is None else math.ceil(last)

    def _train_in_session(
        self, input_fn: InputFn, hooks: list[SessionRunHook], listeners: list[CheckpointSaverListener]
    ) -> Any:
        graph = Graph()
        graph.seed = self._config.tf_random_seed
        with graph.as_default(), graph.device(self._device_fn), _scope_of(self._config.train_distribute):
            global_step = self._create_and_assert_global_step(graph)
            spec, input_hooks = self._build(self._config.train_distribute, input_fn, ModeKeys.TRAIN)
            if self._warm_start is not None:
                warm_start(self._warm_start)
            step = global_step or get_global_step(graph)
            return train_locally(spec, self._config, step, [*input_hooks, *hooks], listeners)

    def _build(
        self, strategy: Strategy | None, input_fn: InputFn, mode: str
    ) -> tuple[EstimatorSpec, list[SessionRunHook]]:
        """Build input and model, for each replica of a strategy if there is one; returns the spec and input hooks."""
        params = self._params_of(input_fn, mode)
        if strategy is not None:
            return distributed_spec(strategy, self._call_model_fn, input_fn, mode, params, self.config)
        features, labels, hooks = features_and_labels(call_input_fn(input_fn, mode, params, self.config))
        return self._call_model_fn(features, labels, mode, self.config), hooks

    def _replicated(self, input_fn: InputFn, on_checkpoint: Callable[[str], None] | None) -> ReplicatedTraining:
        """Training by replicas on Ray."""

        def build(features: Any, labels: Any) -> EstimatorSpec:
            self._create_and_assert_global_step(get_default_graph())
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN, self.config)
            if self._warm_start is not None:
                warm_start(self._warm_start)
            return spec

        params = self._params_of(input_fn, ModeKeys.TRAIN)
        return ReplicatedTraining(build, input_fn, params, self._config, on_checkpoint)

    def _create_global_step(self, graph: Graph) -> Any:
        """Make the global step of a graph. Programs override this."""
        return create_global_step(graph)

    def _create_and_assert_global_step(self, graph: Graph) -> Any:
        """The global step of a graph. Raises `ValueError` if a derived class has made another variable than that."""
        step = self._create_global_step(graph)
        assert_global_step(step)
        if step is not get_global_step(graph):
            raise ValueError(f"the estimator's global step is {step!r}, the graph's {get_global_step(graph)!r}")
        return step

    def _params_of(self, input_fn: InputFn, mode: str) -> Any:
        """The hyperparameters that an input function gets."""
        return self.params

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, config: RunConfig, params: Any = None
    ) -> EstimatorSpec:
        names = parameters_of(self._model_fn)
        given: dict[str, Any] = {"mode": mode, "params": self.params if params is None else params, "config": config}
        arguments = {name: value for name, value in given.items() if name in names}
        if "labels" in names:
            arguments["labels"] = labels
        elif labels is not None:
            raise ValueError(
                "model_fn does not take labels: the input function gives labels, and the model function takes none"
            )
        spec = self._model_fn(features=features, **arguments)
        if not isinstance(spec, EstimatorSpec):
            raise ValueError(f"the model function returned {spec!r}, expected a tf.estimator.EstimatorSpec")
        return spec

    # -- evaluation ------------------------------------------------------------------------------

    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: PathLike | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluate.

        Args:
            input_fn: Makes the input; see `InputFn`.
            steps: How many batches to take in; until the input ends when None.
            hooks: Hooks around the batches.
            checkpoint_path: The checkpoint; the newest when None. Without one, initial values are evaluated.
            name: Name of the evaluation, if there are several: its results are written into ``eval_NAME``.

        Returns:
            The model's metrics by name, ``loss``, the mean of the batches' losses, and ``global_step``.

        Raises:
            ValueError: `steps` is not positive.
        """
        check_positive("evaluate", "steps", steps)
        all_hooks = list(checked_hooks(hooks, "hooks"))
        if steps is not None:
            all_hooks.append(evaluation.StopAfterBatchesHook(steps))
        path = self._path_or_newest(checkpoint_path, "evaluated")
        with Graph().as_default(), _scope_of(self._config.eval_distribute):
            made = self._add_evaluation(input_fn, all_hooks)
            self._warm_start_without(path)
            results = made.run(path, self._config.evaluation_master, self._session_config)
        evaluation.write_results(self.eval_dir(name), results, path)
        return results

    def _add_evaluation(self, input_fn: InputFn, hooks: Sequence[SessionRunHook]) -> evaluation.Evaluation:
        """Add input, model and metrics to the default graph."""
        get_default_graph().seed = self._config.tf_random_seed
        self._create_and_assert_global_step(get_default_graph())
        spec, input_hooks = self._build(self._config.eval_distribute, input_fn, ModeKeys.EVAL)
        update_op, values = evaluation.add_evaluation(spec.eval_metric_ops, spec.loss)
        all_hooks = (*input_hooks, *hooks, *spec.evaluation_hooks)
        scaffold = spec.scaffold
        if scaffold.local_init_op is not None:  # the model's own does not know of the variables that are added here
            local_init_op = group(scaffold.local_init_op, local_variables_initializer())
            scaffold = Scaffold(local_init_op=local_init_op, copy_from_scaffold=scaffold)
        return evaluation.Evaluation(update_op, values, scaffold, all_hooks)

    def _path_or_newest(self, path: PathLike | None, what: str) -> str | None:
        found = self.latest_checkpoint() if path is None else as_path(path)
        if not found:
            logging.info("there is no checkpoint in %s: initial values are %s", self._model_dir, what)
        return found or None

    def _warm_start_without(self, path: str | None) -> None:
        if path is None and self._warm_start is not None:
            warm_start(self._warm_start)

    # -- prediction ------------------------------------------------------------------------------

    def predict(
        self,
        input_fn: InputFn,
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: PathLike | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Predict, example by example, until the input ends.

        Args:
            input_fn: Makes the input: features, or pairs of which the labels are left out.
            predict_keys: Names of the predictions to give, if these are a dictionary; all when None.
            hooks: Hooks around the batches.
            checkpoint_path: The checkpoint; the newest when None. Without one, initial values predict.
            yield_single_examples: Give the predictions of each example; otherwise those of each batch.

        Yields:
            Predictions: arrays, or dictionaries of arrays by name.

        Raises:
            ValueError: There are no predictions of these names, or predictions differ in their number of examples.
        """
        all_hooks = checked_hooks(hooks, "hooks")
        path = self._path_or_newest(checkpoint_path, "used")
        graph = Graph()
        graph.seed = self._config.tf_random_seed
        with graph.as_default():
            self._create_and_assert_global_step(get_default_graph())
            result = call_input_fn(input_fn, ModeKeys.PREDICT, self._params_of(input_fn, ModeKeys.PREDICT), self.config)
            features, input_hooks = only_features(result, bool(all_hooks))
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
            self._warm_start_without(path)
            predictions = _chosen(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                spec.scaffold, self._config.master, self._session_config, checkpoint_filename_with_path=path
            )
            session = MonitoredSession(creator, [*input_hooks, *all_hooks, *spec.prediction_hooks])
        # Not under the graph: between two examples the caller's graph is the default.
        with session:
            while not session.should_stop():
                values = session.run(predictions)
                if not yield_single_examples:
                    yield values
                elif not isinstance(predictions, Mapping):
                    yield from values
                else:
                    for index in range(_batch_size(values)):
                        yield {name: value[index] for name, value in values.items()}

    # -- export ----------------------------------------------------------------------------------

    def export_saved_model(
        self,
        export_dir_base: PathLike,
        serving_input_receiver_fn: Any,
        assets_extra: Mapping[str, PathLike] | None = None,
        as_text: bool = False,
        checkpoint_path: PathLike | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Write the model, with its variables, as a saved model in a new folder, named by the time in seconds.

        Args:
            export_dir_base: Folder in which the new one is made.
            serving_input_receiver_fn: Function without arguments: makes placeholders, and features from them, and
                returns a `tf.estimator.export.ServingInputReceiver`.
            assets_extra: Files to copy, by their paths in the model's folder ``assets.extra``.
            as_text: Write the graph with line breaks.
            checkpoint_path: The checkpoint; the newest when None.
            experimental_mode: The mode for which the graph is built.

        Returns:
            The path of the new folder, as bytes.

        Raises:
            ValueError: There is no function, nothing that could be exported, or no checkpoint.
        """
        if not serving_input_receiver_fn:
            raise ValueError("export_saved_model needs serving_input_receiver_fn")
        receivers = {experimental_mode: serving_input_receiver_fn}
        return self.experimental_export_all_saved_models(
            export_dir_base, receivers, assets_extra, as_text, checkpoint_path
        )

    def export_savedmodel(
        self,
        export_dir_base: PathLike,
        serving_input_receiver_fn: Any,
        assets_extra: Mapping[str, PathLike] | None = None,
        as_text: bool = False,
        checkpoint_path: PathLike | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """The older name of `export_saved_model`. `strip_default_attrs` is accepted for TensorFlow 1's sake."""
        if not serving_input_receiver_fn:
            raise ValueError("export_savedmodel needs serving_input_receiver_fn")
        receivers = {ModeKeys.PREDICT: serving_input_receiver_fn}
        return self.experimental_export_all_saved_models(
            export_dir_base, receivers, assets_extra, as_text, checkpoint_path
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: PathLike,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, PathLike] | None = None,
        as_text: bool = False,
        checkpoint_path: PathLike | None = None,
    ) -> bytes:
        """Write graphs for several modes, with one set of variables, as a saved model.

        Args:
            export_dir_base: As of `export_saved_model`.
            input_receiver_fn_map: Functions by mode, as `serving_input_receiver_fn` there; those for training and
                evaluation return what `tf.estimator.experimental.build_raw_supervised_input_receiver_fn` makes.
            assets_extra: As of `export_saved_model`.
            as_text: As of `export_saved_model`.
            checkpoint_path: As of `export_saved_model`.

        Returns:
            The path of the new folder, as bytes.

        Raises:
            ValueError: There is nothing that could be exported, or no checkpoint.
        """
        path = self.latest_checkpoint() if checkpoint_path is None else as_path(checkpoint_path)
        if not path and self._warm_start is None:
            raise ValueError(f"there is no checkpoint in {self._model_dir}: train the model before it is exported")
        return saved_models.write(
            self, as_path(export_dir_base), input_receiver_fn_map, assets_extra or {}, as_text, path
        )


def _chosen(predictions: Any, names: Sequence[str] | str | None) -> Any:
    """The predictions of some names."""
    if not names:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError(f"predict_keys is {names!r}, and the model's predictions are no dictionary")
    wanted = [names] if isinstance(names, str) else list(names)
    found = {name: value for name, value in predictions.items() if name in wanted}
    if not found:
        raise ValueError(f"there are predictions {', '.join(predictions)}, and none of predict_keys {wanted}")
    return found


def _batch_size(values: Mapping[str, Any]) -> int:
    sizes = {name: value.shape[0] for name, value in values.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(f"predictions must be of equally many examples, or yield_single_examples=False: {sizes}")
    return next(iter(sizes.values()))


def _with_folder(config: RunConfig | None, model_dir: PathLike | None) -> RunConfig:
    """The configuration, with a folder and options of sessions."""
    if config is None:
        config = RunConfig()
    folder = None if model_dir is None else as_path(model_dir)
    if folder == "":
        raise ValueError("model_dir is empty, expected a folder, or None")
    if folder and config.model_dir and folder != config.model_dir:
        raise ValueError(f"model_dir is {folder!r}, and that of config {config.model_dir!r}: give one of them")
    folder = folder or config.model_dir
    if not folder:
        folder = tempfile.mkdtemp()
        logging.warning("the estimator has no model_dir: it uses the temporary folder %s", folder)
    config = config.replace(model_dir=folder)
    if config.session_config is None:
        config = config.replace(session_config=ConfigProto(allow_soft_placement=True))
    return config


def _scope_of(strategy: Strategy | None) -> AbstractContextManager[Any]:
    return nullcontext() if strategy is None else strategy.scope()


def _device_setter(config: RunConfig) -> DeviceFunction | None:
    """Puts variables on the parameter servers, and all else on this worker."""
    if not config.num_ps_replicas:
        return None
    return replica_device_setter(
        config.num_ps_replicas,
        worker_device=f"/job:{config.task_type or TaskType.WORKER}/task:{config.task_id}",
        merge_devices=True,
        cluster=config.cluster_spec,
    )


def _check_model_fn(model_fn: Callable[..., Any], params: Any) -> None:
    names = set(parameters_of(model_fn))
    if "features" not in names:
        raise ValueError(f"the model function takes {', '.join(sorted(names)) or 'nothing'}, expected features first")
    if params is not None and "params" not in names:
        raise ValueError("there are params, and the model function does not take them: add the argument params to it")
    if params is None and "params" in names:
        logging.warning("the model function takes params, and the estimator is given none")
    unknown = names - _MODEL_FN_ARGUMENTS
    if unknown:
        raise ValueError(
            f"the model function takes {', '.join(sorted(unknown))}; it can take features, labels, mode, params, config"
        )
