"""The training of an estimator in a session of this process: its hooks, and the loop over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.estimator.run_config import RunConfig, TaskType
from tfray.estimator.spec import EstimatorSpec
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.inspect import summaries
from tfray.library.platform import logging
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions.hooks import LoggingTensorHook, NanTensorHook, StepCounterHook
from tfray.training.sessions.hooks_saving import CheckpointSaverHook, CheckpointSaverListener, SummarySaverHook
from tfray.training.sessions.monitored_session import MonitoredTrainingSession
from tfray.training.sessions.session_run_hook import SessionRunHook


def train_locally(
    spec: EstimatorSpec,
    config: RunConfig,
    global_step: Any,
    hooks: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
) -> Any:
    """Train a model of the default graph until the input ends or a hook asks to stop.

    Args:
        spec: What the model function returned.
        config: The configuration, with a folder.
        global_step: The global step.
        hooks: Hooks around the steps.
        listeners: Called around each save of a checkpoint.

    Returns:
        The last step's loss, or None if there was no step.

    Raises:
        ValueError: There are listeners, and nothing saves checkpoints.
    """
    add_loss(spec)
    worker_hooks: list[SessionRunHook] = [*hooks, NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
        shown = {"loss": spec.loss, "step": global_step}
        worker_hooks.append(LoggingTensorHook(shown, every_n_iter=config.log_step_count_steps))
    worker_hooks += spec.training_hooks
    graph = get_default_graph()
    if spec.scaffold.saver is None and not graph.get_collection(GraphKeys.SAVERS):
        graph.add_to_collection(
            GraphKeys.SAVERS,
            Saver(
                sharded=True,
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours or 10000.0,
                defer_build=True,
                allow_empty=True,
                save_relative_paths=True,
            ),
        )
    chief_hooks = _saving_hooks(spec, config, [*worker_hooks, *spec.training_chief_hooks], listeners)
    summary_steps, count_steps = config.save_summary_steps, config.log_step_count_steps
    jobs = config.cluster_spec.jobs
    if TaskType.MASTER in jobs and TaskType.WORKER in jobs:
        # The master also evaluates; the first worker writes the summaries, so that none is late.
        if (config.task_type, config.task_id) == (TaskType.WORKER, 0):
            worker_hooks += _summary_hooks(spec, config)
        summary_steps, count_steps = 0, None
    loss, stepped = None, False
    with MonitoredTrainingSession(
        master=config.master,
        is_chief=config.is_chief,
        checkpoint_dir=config.model_dir,
        scaffold=spec.scaffold,
        hooks=worker_hooks,
        chief_only_hooks=[*chief_hooks, *spec.training_chief_hooks],
        save_checkpoint_secs=None,  # a hook saves
        save_summaries_steps=summary_steps or None,
        config=config.session_config,
        max_wait_secs=config.session_creation_timeout_secs,
        log_step_count_steps=count_steps,
    ) as session:
        while not session.should_stop():
            _, loss = session.run([spec.train_op, spec.loss])
            stepped = True
    if not stepped:
        logging.warning("not one step was trained: is the input empty?")
    return loss


def add_loss(spec: EstimatorSpec) -> None:
    """Let summaries show the loss under ``loss``, and put it into ``GraphKeys.LOSSES``."""
    graph = get_default_graph()
    names = [summary.op.name for summary in graph.get_collection(GraphKeys.SUMMARIES)]
    if "loss" not in names:
        with graph.name_scope(None):
            summaries.scalar("loss", spec.loss)
    graph.add_to_collection(GraphKeys.LOSSES, spec.loss)


def _saving_hooks(
    spec: EstimatorSpec,
    config: RunConfig,
    given: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
) -> list[SessionRunHook]:
    """The hook that saves checkpoints, unless there is one already; the first one gets the listeners."""
    savers = [hook for hook in given if isinstance(hook, CheckpointSaverHook)]
    added: list[SessionRunHook] = []
    if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        savers.append(
            CheckpointSaverHook(
                config.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold,
            )
        )
        added.append(savers[0])
    if listeners and not savers:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners: "
            "saving_listeners are called when checkpoints are saved, and none are: set save_checkpoints_steps or "
            "save_checkpoints_secs of RunConfig"
        )
    for listener in listeners:
        if listener not in savers[0]._listeners:
            savers[0]._listeners.append(listener)
    return added


def _summary_hooks(spec: EstimatorSpec, config: RunConfig) -> list[SessionRunHook]:
    found: list[SessionRunHook] = []
    if config.save_summary_steps:
        found.append(SummarySaverHook(config.save_summary_steps, output_dir=config.model_dir, scaffold=spec.scaffold))
    if config.log_step_count_steps:
        found.append(StepCounterHook(config.log_step_count_steps, output_dir=config.model_dir))
    return found
