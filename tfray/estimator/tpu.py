"""``tf.estimator.tpu``: estimators of programs for TPUs, which run as such programs do with ``use_tpu=False``."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.estimator import run_config
from tfray.estimator.estimator import Estimator, InputFn
from tfray.estimator.export_outputs import ExportOutput
from tfray.estimator.input_functions import parameters_of
from tfray.estimator.spec import EstimatorSpec, ModeKeys, checked_hooks
from tfray.formats.files import PathLike
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec"]

_BATCH_SIZE: Final = "batch_size"
_USE_TPU: Final = "use_tpu"
_RESERVED: Final = (_BATCH_SIZE, "context")
_CORES: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class InputPipelineConfig:
    """Where the input of a TPU comes from, and how it is shared out. Without TPUs, none of it matters."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _Config(NamedTuple):
    iterations_per_loop: Any
    num_shards: Any
    num_cores_per_replica: Any
    per_host_input_for_training: Any
    tpu_job_name: Any
    initial_infeed_sleep_secs: Any
    input_partition_dims: Any
    eval_training_input_configuration: Any
    experimental_host_call_every_n_steps: Any


class TPUConfig(_Config):
    """Options of TPUs. They are checked and kept; without TPUs, none of them matters.

    Attributes:
        iterations_per_loop: Steps in one run of a session, 1 or more, or a time such as ``"30s"``, ``"5m"``, ``"1h"``.
        num_shards: Number of copies of the model, or None.
        num_cores_per_replica: Number of cores of a copy, a power of two up to 128, or None.
        per_host_input_for_training: One of `InputPipelineConfig`, or whether each host calls the input function.
        tpu_job_name: Name of the job.
        initial_infeed_sleep_secs: Seconds before the first batch.
        input_partition_dims: Into how many parts dimensions of the input are cut.
        eval_training_input_configuration: ``PER_HOST_V1`` or ``SLICED`` of `InputPipelineConfig`.
        experimental_host_call_every_n_steps: Steps from one call on the host to the next.

    Raises:
        ValueError: A value does not make sense.
    """

    __slots__ = ()

    def __new__(
        cls,
        iterations_per_loop: Any = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: Any = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Sequence[Any] | None = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
    ) -> TPUConfig:
        is_time = isinstance(iterations_per_loop, str) and re.fullmatch(r"0*[1-9]\d*[smh]", iterations_per_loop)
        if not is_time:
            _check_positive("iterations_per_loop", iterations_per_loop)
        if num_shards is not None:
            _check_positive("num_shards", num_shards)
        if initial_infeed_sleep_secs:
            _check_positive("initial_infeed_sleep_secs", initial_infeed_sleep_secs)
        if num_cores_per_replica is not None and num_cores_per_replica not in _CORES:
            raise ValueError(f"num_cores_per_replica is {num_cores_per_replica!r}, expected one of {_CORES}")
        if isinstance(per_host_input_for_training, bool):
            choices = InputPipelineConfig.PER_SHARD_V1, InputPipelineConfig.PER_HOST_V1
            per_host_input_for_training = choices[per_host_input_for_training]
        if input_partition_dims is not None:
            if len(input_partition_dims) not in (1, 2):
                raise ValueError(f"input_partition_dims has {len(input_partition_dims)} members, expected 1 or 2")
            if per_host_input_for_training != InputPipelineConfig.PER_HOST_V2 or num_cores_per_replica is None:
                raise ValueError("input_partition_dims needs num_cores_per_replica, and input by PER_HOST_V2")
        if eval_training_input_configuration not in (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.SLICED):
            raise ValueError(
                f"eval_training_input_configuration is {eval_training_input_configuration!r}, expected PER_HOST_V1 or "
                "SLICED of InputPipelineConfig"
            )
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            per_host_input_for_training,
            tpu_job_name,
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
        )


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} is {value!r}, expected an integer above 0")


class RunConfig(run_config.RunConfig):
    """`tf.estimator.RunConfig` with options of TPUs.

    Args:
        tpu_config: The options; the default ones when None.
        evaluation_master: Where evaluations run, as for `tf.Session`; where training runs when None.
        master: Where training runs, as for `tf.Session`; what ``TF_CONFIG`` says when None.
        cluster: Must be None: ``TF_CONFIG`` describes a cluster.
        **kwargs: The arguments of `tf.estimator.RunConfig`.

    Raises:
        InvalidArgumentError: A cluster is given.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        if cluster is not None:
            raise InvalidArgumentError(
                f"RunConfig: cluster is {cluster!r}, expected None: there are no TPUs; the environment variable "
                "TF_CONFIG, which `tfray launch` sets, describes a cluster of CPUs and GPUs"
            )
        super().__init__(**kwargs)
        self._tpu_config = tpu_config or TPUConfig()
        if master is not None:
            self._master = master
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        elif not self._evaluation_master and self.task_type != run_config.TaskType.EVALUATOR:
            self._evaluation_master = self._master

    @property
    def tpu_config(self) -> TPUConfig:
        """The options of TPUs."""
        return self._tpu_config

    @property
    def cluster(self) -> None:
        """None: there are no TPUs."""
        return None

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values.

        Args:
            **kwargs: ``tpu_config``, and arguments of `tf.estimator.RunConfig`.

        Raises:
            ValueError: One of them does not exist, or makes no sense.
        """
        tpu_config = kwargs.pop("tpu_config", self._tpu_config)
        made: Any = super().replace(**kwargs)
        made._tpu_config = tpu_config
        return made


class _HostCallHook(SessionRunHook):
    """Runs with each step what a model has for the host."""

    def __init__(self, fetches: Any) -> None:
        self._fetches = fetches

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._fetches)


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: Any
    export_outputs: Any
    scaffold_fn: Any
    host_call: Any
    training_hooks: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class TPUEstimatorSpec(_Fields):
    """What a model function returns to a `TPUEstimator`. An `EstimatorSpec` does as well.

    Attributes:
        mode: One of `ModeKeys`.
        predictions: As of `EstimatorSpec`.
        loss: As of `EstimatorSpec`.
        train_op: As of `EstimatorSpec`.
        eval_metrics: A pair: a function to metrics by name, as ``eval_metric_ops`` of `EstimatorSpec`, and the tensors
            that it takes, as a list or as a dictionary of its arguments.
        export_outputs: As of `EstimatorSpec`.
        scaffold_fn: Function without arguments that makes a `tf.train.Scaffold`.
        host_call: A pair of the same kind, whose function makes what runs with each step, such as summaries.
        training_hooks: As of `EstimatorSpec`.
        evaluation_hooks: As of `EstimatorSpec`.
        prediction_hooks: As of `EstimatorSpec`.

    Raises:
        ValueError: `eval_metrics` or `host_call` is no such pair.
        TypeError: Its function is none, or hooks are none.
        RuntimeError: Its function takes another number of tensors.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: Any = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        scaffold_fn: Callable[[], Scaffold] | None = None,
        host_call: Any = None,
        training_hooks: Sequence[SessionRunHook] | None = None,
        evaluation_hooks: Sequence[SessionRunHook] | None = None,
        prediction_hooks: Sequence[SessionRunHook] | None = None,
    ) -> TPUEstimatorSpec:
        for name, call in (("eval_metrics", eval_metrics), ("host_call", host_call)):
            if call is not None:
                _check_call(name, call)
        return super().__new__(
            cls,
            mode,
            predictions,
            loss,
            train_op,
            eval_metrics,
            export_outputs,
            scaffold_fn,
            host_call,
            checked_hooks(training_hooks, "TPUEstimatorSpec: training_hooks"),
            checked_hooks(evaluation_hooks, "TPUEstimatorSpec: evaluation_hooks"),
            checked_hooks(prediction_hooks, "TPUEstimatorSpec: prediction_hooks"),
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same as an `EstimatorSpec`: the functions are called, and what `host_call` makes runs with each step."""
        metrics = None if self.eval_metrics is None else _called(self.eval_metrics)
        hooks = () if self.host_call is None else (_HostCallHook(_called(self.host_call)),)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metrics,
            export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=(*self.training_hooks, *hooks),
            evaluation_hooks=(*self.evaluation_hooks, *hooks),
            prediction_hooks=(*self.prediction_hooks, *hooks),
        )


def _check_call(name: str, call: Any) -> None:
    if not isinstance(call, (tuple, list)) or len(call) != 2:
        raise ValueError(f"TPUEstimatorSpec: {name} is {call!r}, expected a function and its tensors")
    function, tensors = call
    if not callable(function):
        raise TypeError(f"TPUEstimatorSpec: {name} begins with {function!r}, expected a function")
    if not isinstance(tensors, (tuple, list, dict)):
        raise ValueError(f"TPUEstimatorSpec: {name} ends with {tensors!r}, expected a list or dictionary of tensors")
    parameters = inspect.signature(function).parameters
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters.values())
    if not isinstance(tensors, dict) and not takes_any and len(parameters) != len(tensors):
        taken = ", ".join(parameters) or "none"
        raise RuntimeError(f"TPUEstimatorSpec: {name} has {len(tensors)} tensors, and its function takes {taken}")


def _called(call: Any) -> Any:
    function, tensors = call
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class TPUEstimator(Estimator):
    """An estimator of a program for TPUs, which runs on CPUs and GPUs, as such programs do with ``use_tpu=False``.

    Input and model functions must take ``params``, and find the batch size of the mode in ``params["batch_size"]``,
    where it is given. A model function also finds False in ``params["use_tpu"]``. Where a model is exported it finds no
    batch size.

    Args:
        model_fn: As of `Estimator`; it returns a `TPUEstimatorSpec` or an `EstimatorSpec`.
        model_dir: As of `Estimator`.
        config: A `tf.estimator.tpu.RunConfig`.
        params: As of `Estimator`, without ``batch_size`` and ``context``.
        use_tpu: Must be False.
        train_batch_size: The batch size of training.
        eval_batch_size: The batch size of evaluation.
        predict_batch_size: The batch size of prediction.
        batch_axis: Accepted for TensorFlow's sake, as are the next three.
        eval_on_tpu: See `batch_axis`.
        export_to_tpu: See `batch_axis`.
        export_to_cpu: See `batch_axis`.
        warm_start_from: As of `Estimator`.
        embedding_config_spec: Must be None: it describes tables on TPUs.
        export_saved_model_api_version: Accepted for TensorFlow's sake.

    Raises:
        UnimplementedError: `use_tpu` is True, or tables on TPUs are described.
        ValueError: `config` is of another kind, `params` has a reserved name, or `model_fn` takes no ``params``.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: PathLike | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Sequence[int] | None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: None = None,
        export_saved_model_api_version: Any = 1,
    ) -> None:
        if use_tpu or embedding_config_spec is not None:
            raise UnimplementedError(
                "TPUEstimator: there are no TPUs; with use_tpu=False, and without embedding_config_spec, the same "
                "program runs on CPUs and GPUs, and under `tfray launch` on several machines"
            )
        if not isinstance(config, RunConfig):
            raise ValueError(f"TPUEstimator: config is {config!r}, expected a tf.estimator.tpu.RunConfig")
        if params is not None and any(name in params for name in _RESERVED):
            raise ValueError(f"TPUEstimator: params has one of {', '.join(_RESERVED)}, which it sets itself")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        super().__init__(_converting(model_fn), model_dir, config, params, warm_start_from)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function with the hyperparameters in place, as exporting calls it: without a batch size."""

        def bound(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            params = _with(self.params, _USE_TPU, False)
            return super(TPUEstimator, self)._call_model_fn(features, labels, mode, config, params)

        return bound

    def _params_of(self, input_fn: InputFn, mode: str) -> Any:
        _check_takes_params("input", input_fn)
        return _with(self.params, _BATCH_SIZE, self._batch_sizes[mode])

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any, params: Any = None) -> EstimatorSpec:
        params = _with(_with(self.params, _BATCH_SIZE, self._batch_sizes[mode]), _USE_TPU, False)
        return super()._call_model_fn(features, labels, mode, config, params)


def _converting(model_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A model function that returns an `EstimatorSpec`."""
    if model_fn is None:
        raise ValueError("an estimator needs a model function: model_fn is None")
    _check_takes_params("model", model_fn)

    @functools.wraps(model_fn)
    def converting(*args: Any, **kwargs: Any) -> Any:
        spec = model_fn(*args, **kwargs)
        return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

    return converting


def _check_takes_params(what: str, function: Callable[..., Any]) -> None:
    if "params" not in parameters_of(function):
        raise ValueError(
            f"TPUEstimator: the {what} function takes {', '.join(parameters_of(function))}, and not params, in which "
            "it finds the batch size"
        )


def _with(params: Any, name: str, value: Any) -> Any:
    """Hyperparameters, a dictionary or `HParams`, with one more, unless it is None."""
    if value is None:
        return params
    if not hasattr(params, "set_hparam"):
        params[name] = value
    elif name in params:
        params.set_hparam(name, value)
    else:
        params.add_hparam(name, value)
    return params
