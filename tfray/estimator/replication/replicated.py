"""Training an estimator on replicas on Ray, by `tf.train.Trainer`: one model function, replicated."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tfray.errors import InvalidArgumentError, OutOfRangeError
from tfray.estimator.input_functions import call_input_fn, features_and_labels
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.estimator.training_loop import add_loss
from tfray.framework.graph import Graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.platform import logging
from tfray.ops.arrays import array_ops
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint
from tfray.training.input.inputs import Batch, InputContext
from tfray.training.sessions.monitored_session import SingularMonitoredSession
from tfray.training.trainer.model import ModelSpec
from tfray.training.trainer.run_config import RunConfig as TrainerRun
from tfray.training.trainer.run_result import Result
from tfray.training.trainer.step_history import StepRecord
from tfray.training.trainer.trainer import Trainer

_SPARSE: Final = ("indices", "values", "dense_shape")
_MARK: Final = "//"


class ReplicatedTraining:
    """The training of a model on replicas.

    Args:
        build: Function from features and labels to the model's spec.
        input_fn: The estimator's input function. Each replica calls it; ``config.task_id`` and
            ``config.num_worker_replicas`` tell it which part of the data is its own.
        params: Hyperparameters for it.
        config: The configuration.
        on_checkpoint: Called with the path of each new checkpoint.
    """

    def __init__(
        self,
        build: Callable[[Any, Any], EstimatorSpec],
        input_fn: Callable[..., Any],
        params: Any,
        config: RunConfig,
        on_checkpoint: Callable[[str], None] | None = None,
    ) -> None:
        self._build = build
        self._input_fn = input_fn
        self._params = params
        self._config = config
        self._on_checkpoint = on_checkpoint
        self._seen = latest_checkpoint(config.model_dir)

    def train(self, last_step: int | None) -> Result:
        """Train until a global step, or until the input of all replicas has ended when None.

        Raises:
            InvalidArgumentError: The model function uses what replicas do not have.
        """
        config = self._config
        run = TrainerRun(
            steps=sys.maxsize if last_step is None else last_step,
            seed=config.tf_random_seed,
            logdir=config.model_dir,
            checkpoint_dir=config.model_dir if config.save_checkpoints_secs or config.save_checkpoints_steps else None,
            save_every_steps=config.save_checkpoints_steps or None,
            save_every_s=config.save_checkpoints_secs or None,
            keep_checkpoints=config.keep_checkpoint_max or 0,
            summary_steps=config.save_summary_steps or None,
            on_step=None if self._on_checkpoint is None else self._look,
        )
        input_fn = _input_of_replicas(self._input_fn, self._params, config)
        result = Trainer(self._model, input_fn, config.trainer, run).fit()
        if self._on_checkpoint is not None:
            self._look(None)
        return result

    def _look(self, record: StepRecord | None) -> None:
        """Tell of a new checkpoint."""
        path = latest_checkpoint(self._config.model_dir)
        if path is not None and path != self._seen and self._on_checkpoint is not None:
            self._seen = path
            self._on_checkpoint(path)

    def _model(self, features: Any, labels: Any) -> ModelSpec:
        spec = self._build(_decoded(features), _decoded(labels))
        if spec.training_hooks or spec.training_chief_hooks:
            raise InvalidArgumentError(
                "the model function returns training hooks, which work in a session: replicas on Ray have none; leave "
                "them out when config.trainer is set"
            )
        if spec.scaffold.init_fn is not None or spec.scaffold.init_op is not None:
            raise InvalidArgumentError(
                "the model function returns a scaffold with its own initialisation: replicas on Ray begin with the "
                "variables' initializers; use tf.train.init_from_checkpoint, or warm_start_from"
            )
        add_loss(spec)
        return ModelSpec(spec.loss, spec.train_op)


def _input_of_replicas(
    input_fn: Callable[..., Any], params: Any, config: RunConfig
) -> Callable[[InputContext], Iterator[Batch]]:
    """An input function of a `Trainer` that calls that of an estimator. It goes to the replicas, and refers to no
    more than it needs.
    """

    def batches(context: InputContext) -> Iterator[Batch]:
        own = config.of_replica(context.index, context.replicas)
        graph = Graph()
        graph.seed = config.tf_random_seed
        with graph.as_default():
            features, labels, hooks = features_and_labels(call_input_fn(input_fn, ModeKeys.TRAIN, params, own))
            fetches = _encoded(features), _encoded(labels)
            session = SingularMonitoredSession(hooks)
        # Not under the graph: each batch may be asked for on another thread.
        with session:
            while not session.should_stop():
                try:
                    values = session.run(fetches)
                except OutOfRangeError:
                    logging.info("the input of replica %d has ended", context.index)
                    return
                yield values

    return batches


def _encoded(part: Any) -> Any:
    """Features or labels without sparse tensors: of one, its three arrays; no labels are an empty dictionary."""
    if part is None:
        return {}
    if isinstance(part, SparseTensor):
        part = {"": part}
    if not isinstance(part, Mapping):
        return part
    found: dict[str, Any] = {}
    for name, value in part.items():
        if isinstance(value, SparseTensor):
            found.update({f"{name}{_MARK}{each}": getattr(value, each) for each in _SPARSE})
        else:
            found[name] = value
    return found


def _decoded(part: Any) -> Any:
    """What `_encoded` was given, of placeholders."""
    if not isinstance(part, Mapping):
        return part
    if not part:
        return None
    found: dict[str, Any] = {}
    for key, value in part.items():
        name, mark, piece = key.rpartition(_MARK)
        if mark and piece in _SPARSE:
            if piece == "values":
                indices, values, size = (part[f"{name}{_MARK}{each}"] for each in _SPARSE)
                rank = indices.shape.as_list()[-1]  # which placeholders for batches of any size do not tell of `size`
                found[name] = SparseTensor(indices, values, array_ops.reshape(size, [rank]))
        else:
            found[key] = value
    return found[""] if set(found) == {""} else found
