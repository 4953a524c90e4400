"""Training loops over sessions that save and recover: `basic_train_loop`, and ``tf.contrib.training.train``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.errors import AbortedError
from tfray.options import ConfigProto
from tfray.training.sessions.monitored_session import MonitoredTrainingSession
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunHook
from tfray.training.sessions.supervisor import Supervisor


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: Any = "",
) -> None:
    """Call a function again and again until a supervisor stops. After an `AbortedError` it makes a new session.

    Args:
        supervisor: The supervisor.
        train_step_fn: Function of the session, `args` and `kwargs` that makes one step.
        args: Its further arguments.
        kwargs: Its arguments by name.
        master: Where to run, as for `tf.Session`.
    """
    finished = False
    while not finished:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
            finished = True
        except AbortedError:
            continue


def train(
    train_op: Any,
    logdir: str | None,
    master: Any = "",
    is_chief: bool = True,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: ConfigProto | None = None,
    max_wait_secs: float = 7200,
    run_metadata: Any = None,
) -> Any:
    """Run a training step in a `MonitoredTrainingSession` until a hook, or the end of the input, stops it.

    Args:
        train_op: The training step, whose value is the loss.
        logdir: Folder of the checkpoints and the event file.
        master: As for `MonitoredTrainingSession`.
        is_chief: Likewise.
        scaffold: Likewise.
        hooks: Likewise; without a hook that stops, training does not end.
        chief_only_hooks: Likewise.
        save_checkpoint_secs: Likewise.
        save_summaries_steps: Likewise.
        config: Likewise.
        max_wait_secs: Likewise.
        run_metadata: Takes the record of each step.

    Returns:
        The last loss, or None if there was no step.

    Raises:
        ValueError: Nothing would be saved, and no hook is given: training would have no end and no result.
    """
    if logdir is None and not hooks and not chief_only_hooks:
        raise ValueError("give a logdir, or hooks: nothing would be left of this training, which has no end")
    loss = None
    with MonitoredTrainingSession(
        master,
        is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
