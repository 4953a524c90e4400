"""``tf.contrib.learn``'s functions that train, evaluate and run graphs of one's own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfray.errors import AbortedError, CancelledError, NotFoundError, OutOfRangeError
from tfray.formats.events import Summary
from tfray.framework.graph import Graph, Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.library.input.lookup import tables_initializer
from tfray.library.inspect.event_writer import FileWriterCache
from tfray.library.inspect.summaries import merge_all
from tfray.library.platform import logging
from tfray.library.variables.variables import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
)
from tfray.session import Session
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint
from tfray.training.checkpoints.checkpoint_utils import load_variable
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions.hooks import NanLossDuringTrainingError
from tfray.training.sessions.supervisor import Supervisor
from tfray.training.threads.coordinator import Coordinator
from tfray.training.threads.global_step import get_global_step
from tfray.training.threads.queue_runner import start_queue_runners

__all__ = ["evaluate", "infer", "run_feeds", "run_feeds_iter", "run_n", "train"]

_GRACE_S = 120

Feeds = Mapping[Any, Any] | None


def run_feeds_iter(
    output_dict: Mapping[str, Any], feed_dicts: Iterable[Feeds], restore_checkpoint_path: str | None = None
) -> Iterator[dict[str, Any]]:
    """Run tensors with each of several feeds, in a session of their own, with queues filled by their runners.

    Args:
        output_dict: The tensors, of one graph, by names of one's own.
        feed_dicts: What is fed, run by run.
        restore_checkpoint_path: Take the variables from there; they are initialized when None.

    Returns:
        The values, by the same names, of each run, as they come.

    Raises:
        ValueError: There are no tensors or no feeds.
    """
    if not output_dict:
        raise ValueError(f"output_dict is invalid: {output_dict}.")
    if not feed_dicts:
        raise ValueError(f"feed_dicts is invalid: {feed_dicts}.")
    graph = next(iter(output_dict.values())).graph
    with graph.as_default(), Session(graph=graph) as session:
        if restore_checkpoint_path:
            saver = _saver()
            if saver is not None:
                saver.restore(session, restore_checkpoint_path)
        else:
            session.run(global_variables_initializer())
        session.run(local_variables_initializer())
        session.run(tables_initializer())
        coordinator = Coordinator()
        threads = start_queue_runners(session, coordinator)
        try:
            for feeds in feed_dicts:
                yield session.run(dict(output_dict), feeds)
        finally:
            coordinator.request_stop()
            session.close()
            coordinator.join(threads, stop_grace_period_secs=_GRACE_S)


def run_feeds(*args: Any, **kwargs: Any) -> list[dict[str, Any]]:
    """`run_feeds_iter`, with the values of all runs in a list."""
    return list(run_feeds_iter(*args, **kwargs))


def run_n(
    output_dict: Mapping[str, Any],
    feed_dict: Feeds = None,
    restore_checkpoint_path: str | None = None,
    n: int = 1,
) -> list[dict[str, Any]]:
    """`run_feeds` with the same feed `n` times."""
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)


def infer(
    restore_checkpoint_path: str | None, output_dict: Mapping[str, Any], feed_dict: Feeds = None
) -> dict[str, Any]:
    """`run_feeds` once. Returns the values by name."""
    return run_feeds(output_dict, [feed_dict], restore_checkpoint_path)[0]


def _saver(keep_checkpoint_max: int | None = 5) -> Saver | None:
    """A saver of all that is saved; None if there is nothing."""
    return Saver(sharded=True, max_to_keep=keep_checkpoint_max) if global_variables() else None


def evaluate(
    graph: Graph,
    output_dir: str,
    checkpoint_path: str | None,
    eval_dict: Mapping[str, Any],
    update_op: Any = None,
    global_step_tensor: Any = None,
    supervisor_master: str = "",
    log_every_steps: int = 10,
    feed_fn: Callable[[], Feeds] | None = None,
    max_steps: int | None = None,
) -> tuple[dict[str, Any] | None, Any]:
    """Evaluate a graph of one's own until its input ends, and write the values to an event file.

    Args:
        graph: The graph.
        output_dir: Folder of the event file.
        checkpoint_path: The checkpoint, or a folder of them; variables are initialized when None.
        eval_dict: Tensors by name.
        update_op: What each step runs; the tensors when None.
        global_step_tensor: The global step; that of the graph when None.
        supervisor_master: Address of the session.
        log_every_steps: Steps from one line of the log to the next.
        feed_fn: Function that returns the feed of a step.
        max_steps: The number of steps; until the input ends when None.

    Returns:
        The values of the last step by name, and the global step.

    Raises:
        ValueError: There is no folder, or no global step.
    """
    if not output_dir:
        raise ValueError(f"Output directory should be non-empty {output_dir}.")
    with graph.as_default():
        step_tensor = _global_step(graph, global_step_tensor)
        saver = _saver() if checkpoint_path else None
        first_op = next(iter(graph.get_collection(GraphKeys.LOCAL_INIT_OP)), None)
        local = [first_op] if first_op is not None else [local_variables_initializer(), tables_initializer()]
        initialize = global_variables_initializer()
    with graph.as_default(), Session(supervisor_master, graph) as session:
        if saver is None or checkpoint_path is None:
            session.run(initialize)
        else:
            saver.restore(session, latest_checkpoint(checkpoint_path) or checkpoint_path)
        session.run(local)
        coordinator = Coordinator()
        threads = start_queue_runners(session, coordinator)
        current = session.run(step_tensor)
        values: dict[str, Any] | None = None
        try:
            values = _evaluated(session, dict(eval_dict), update_op, log_every_steps, feed_fn, max_steps)
        finally:
            coordinator.request_stop()
            session.close()
            _join(coordinator, threads)
    _write_values(output_dir, values or {}, int(current))
    return values, current


def _join(coordinator: Coordinator, threads: Any) -> None:
    try:
        coordinator.join(threads, stop_grace_period_secs=_GRACE_S)
    except (RuntimeError, CancelledError) as error:
        logging.warning("the threads of the queues did not stop cleanly: %s", error)


def _evaluated(
    session: Session,
    eval_dict: dict[str, Any],
    update_op: Any,
    log_every_steps: int,
    feed_fn: Callable[[], Feeds] | None,
    max_steps: int | None,
) -> dict[str, Any] | None:
    """The values after the last step."""
    values, at, step, feeds = None, None, 0, None
    try:
        try:
            while max_steps is None or step < max_steps:
                step += 1
                feeds = feed_fn() if feed_fn is not None else None
                if update_op is not None:
                    session.run(update_op, feeds)
                if update_op is None or step % log_every_steps == 0:
                    values, at = session.run(eval_dict, feeds), step
                if step % log_every_steps == 0:
                    logging.info("values after %d steps: %s", step, values)
        finally:
            if values is None or step != at:
                values = session.run(eval_dict, feeds)
    except (OutOfRangeError, StopIteration) as error:
        logging.info("the input ended: %s", error)
    return values


def _write_values(folder: str, values: Mapping[str, Any], step: int) -> None:
    summary = Summary()
    for name, value in values.items():
        if isinstance(value, (np.float32, float)):
            summary.value.add(tag=name, simple_value=float(value))
        elif value is not None:
            logging.warning("no summary of %s: it is not a float", name)
    writer = FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()


def _global_step(graph: Graph, given: Any) -> Any:
    step = get_global_step(graph) if given is None else given
    if step is None:
        raise ValueError('No "global_step" was provided or found in the graph.')
    return step


def train(
    graph: Graph,
    output_dir: str,
    train_op: Any,
    loss_op: Tensor,
    global_step_tensor: Any = None,
    init_op: Any = None,
    init_feed_dict: Feeds = None,
    init_fn: Callable[[Any], Any] | None = None,
    log_every_steps: int = 10,
    supervisor_is_chief: bool = True,
    supervisor_master: str = "",
    supervisor_save_model_secs: float = 600,
    keep_checkpoint_max: int | None = 5,
    supervisor_save_summaries_steps: int = 100,
    feed_fn: Callable[[], Feeds] | None = None,
    steps: int | None = None,
    fail_on_nan_loss: bool = True,
    monitors: Sequence[Any] | None = None,
    max_steps: int | None = None,
) -> Any:
    """Train a graph of one's own, with a `tf.train.Supervisor`, until its input ends.

    Args:
        graph: The graph.
        output_dir: Folder of the checkpoints and the event file.
        train_op: The training step, which adds to the global step.
        loss_op: The loss, a scalar.
        global_step_tensor: The global step; that of the graph when None.
        init_op: As of `tf.train.Supervisor`.
        init_feed_dict: Likewise.
        init_fn: Likewise.
        log_every_steps: Steps from one line of the log to the next.
        supervisor_is_chief: Whether this process initializes, saves and logs.
        supervisor_master: Address of the session.
        supervisor_save_model_secs: Seconds from one checkpoint to the next.
        keep_checkpoint_max: How many checkpoints are kept; all when None or 0.
        supervisor_save_summaries_steps: Steps from one summary to the next, without `monitors`.
        feed_fn: Function that returns the feed of a step.
        steps: How many steps to do.
        fail_on_nan_loss: Raise an error when the loss is not a number.
        monitors: Objects with ``begin(max_steps)``, ``step_begin(step)``, which returns further tensors to run,
            ``step_end(step, values by name)``, which returns whether to stop, and ``end()``.
        max_steps: The last step.

    Returns:
        The loss of the last step.

    Raises:
        ValueError: An argument is missing, or both numbers of steps are given.
        NanLossDuringTrainingError: The loss is not a number.
    """
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    for what, given in {"train_op": train_op, "loss_op": loss_op}.items():
        if given is None:
            raise ValueError(f"Missing {what}.")
    if not output_dir:
        raise ValueError(f"Output directory should be non-empty {output_dir}.")
    with graph.as_default():
        step_tensor = _global_step(graph, global_step_tensor)
        if max_steps is None and steps:
            max_steps = _saved_step(output_dir, step_tensor) + steps
        writer = FileWriterCache.get(output_dir) if supervisor_is_chief else None
        watching = list(monitors or [])
        if not watching and supervisor_is_chief:
            watching = [_Summaries(writer, supervisor_save_summaries_steps)]
        if not supervisor_is_chief:
            watching = [each for each in watching if each.run_on_all_workers]
        for monitor in watching:
            monitor.begin(max_steps=max_steps)
        saver = _saver(keep_checkpoint_max)
    while True:
        supervisor = Supervisor(
            graph,
            init_op=init_op if init_op is not None else Supervisor.USE_DEFAULT,
            init_feed_dict=init_feed_dict,
            is_chief=supervisor_is_chief,
            logdir=output_dir,
            saver=saver,
            global_step=step_tensor,
            summary_op=None,
            summary_writer=writer,
            save_model_secs=supervisor_save_model_secs,
            init_fn=init_fn,
        )
        loop = _Loop(step_tensor, train_op, loss_op, feed_fn, watching, log_every_steps, fail_on_nan_loss)
        try:
            return loop.run(supervisor, supervisor_master, max_steps)
        except AbortedError as error:
            logging.warning("training goes on after an error: %s", error)


def _saved_step(folder: str, step: Any) -> int:
    try:
        return int(load_variable(folder, step.name))
    except (NotFoundError, ValueError):
        return 0


class _Summaries:
    """The monitor that is there without any: it writes all summaries every so many steps."""

    run_on_all_workers = False

    def __init__(self, writer: Any, every_n_steps: int) -> None:
        self._writer, self._every_n_steps = writer, every_n_steps
        self._last: int | None = None

    def begin(self, max_steps: int | None = None) -> None:
        self._summary = merge_all()

    def step_begin(self, step: int) -> list[Any]:
        self._is_due = self._last is None or step >= self._last + self._every_n_steps
        return [self._summary] if self._is_due and self._summary is not None else []

    def step_end(self, step: int, values: Mapping[Any, Any]) -> bool:
        if self._is_due and self._summary is not None:
            self._last = step
            self._writer.add_summary(values[self._summary.name], step)
        return False

    def end(self) -> None:
        self._writer.flush()


class _Loop:
    """The steps of `train`, whose arguments these are."""

    def __init__(
        self,
        step_tensor: Any,
        train_op: Any,
        loss_op: Tensor,
        feed_fn: Callable[[], Feeds] | None,
        monitors: Sequence[Any],
        log_every_steps: int,
        fail_on_nan_loss: bool,
    ) -> None:
        self._step_tensor, self._train_op, self._loss_op = step_tensor, train_op, loss_op
        self._feed_fn, self._monitors, self._log_every_steps = feed_fn, monitors, log_every_steps
        self._fail_on_nan_loss = fail_on_nan_loss
        self._loss: Any = None

    def run(self, supervisor: Supervisor, master: str, max_steps: int | None) -> Any:
        """Train; return the last loss. A last checkpoint is written also after an error."""
        session = supervisor.prepare_or_wait_for_session(master=master, start_standard_services=True)
        supervisor.start_queue_runners(session)
        with session:
            try:
                self._steps(supervisor, session, max_steps)
            except (OutOfRangeError, StopIteration) as error:
                logging.info("the input ended: %s", error)
            finally:
                try:
                    supervisor.stop(close_summary_writer=False)
                finally:
                    self._save(supervisor, session)
        return self._loss

    def _save(self, supervisor: Supervisor, session: Any) -> None:
        if supervisor.is_chief and supervisor.saver is not None:
            supervisor.saver.save(session, supervisor.save_path, global_step=session.run(self._step_tensor))
            for monitor in self._monitors:
                monitor.end()

    def _steps(self, supervisor: Supervisor, session: Any, max_steps: int | None) -> None:
        last = logged = int(session.run(self._step_tensor))
        while not supervisor.should_stop() and (max_steps is None or last < max_steps):
            began = time.monotonic()
            ends = self._step(session, last + 1)
            if np.isnan(self._loss):
                if self._fail_on_nan_loss:
                    raise NanLossDuringTrainingError
                logging.warning("the loss is not a number")
            if ends:
                return
            now = int(session.run(self._step_tensor))
            if now <= last:
                logging.error("the training step did not add to the global step: %d after %d", now, last)
            last = now
            if last == max_steps or last - logged >= self._log_every_steps:
                logging.info("step %d, loss %.5f (%.3f s)", last, self._loss, time.monotonic() - began)
                logged = last

    def _step(self, session: Any, step: int) -> bool:
        """One step; returns whether a monitor wants it to be the last."""
        wanted = [self._train_op, self._loss_op]
        for monitor in self._monitors:
            wanted += monitor.step_begin(step)
        feeds = self._feed_fn() if self._feed_fn is not None else None
        fetched = list(dict.fromkeys(wanted))
        values = dict(zip(fetched, session.run(fetched, feeds), strict=True))
        self._loss = values[self._loss_op]
        named = {each.name if isinstance(each, Tensor) else each: value for each, value in values.items()}
        # All monitors see the step, also after one that wants to stop.
        return True in [bool(monitor.step_end(step, named)) for monitor in self._monitors]
