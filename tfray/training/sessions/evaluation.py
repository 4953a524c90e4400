"""`tf.contrib.training`'s evaluation of checkpoints: once, or whenever there is a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tfray.formats.files import PathLike
from tfray.framework import dtypes
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import Structure
from tfray.library.inspect import summaries
from tfray.library.inspect.event_writer import FileWriterCache
from tfray.library.platform import logging
from tfray.library.variables.initializers import Zeros
from tfray.library.variables.variable_scope import get_variable
from tfray.ops.state.state_ops import assign_add
from tfray.options import ConfigProto
from tfray.training.checkpoints.checkpoint_management import checkpoints_iterator
from tfray.training.sessions.hooks import FinalOpsHook
from tfray.training.sessions.monitored_session import ChiefSessionCreator, MonitoredSession
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.threads.global_step import get_or_create_global_step

FeedDict = Mapping[Any, Any]
"""Values to feed, by tensor."""


def get_or_create_eval_step() -> Any:
    """The local variable ``eval_step``, an int64 scalar, that counts the evaluations of a session.

    Raises:
        ValueError: There are several.
    """
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError(f"the collection {GraphKeys.EVAL_STEP!r} has {len(found)} variables, expected one")
    if found:
        return found[0]
    return get_variable(
        "eval_step",
        shape=[],
        dtype=dtypes.int64,
        initializer=Zeros(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after a number of runs.

    Args:
        num_evals: The number; None to run until the input ends.
        log_progress: Whether to log how many there were.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._log_progress = log_progress
        self._every = 1 if num_evals is None or num_evals < 20 else num_evals // 10
        self._counted: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._counted = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._counted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        done = int(run_values.results)
        if self._log_progress and (done % self._every == 0 or done == self._num_evals):
            logging.info("Evaluation [%d%s]", done, "" if self._num_evals is None else f"/{self._num_evals}")
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


class SummaryAtEndHook(SessionRunHook):
    """Writes summaries at the end of an evaluation.

    Args:
        log_dir: Folder of the event file.
        summary_writer: A `tf.summary.FileWriter`, in place of the folder.
        summary_op: The summaries; all of the graph when None.
        feed_dict: What to feed to them.

    Raises:
        ValueError: There is neither a folder nor a writer.
    """

    def __init__(
        self,
        log_dir: PathLike | None = None,
        summary_writer: Any = None,
        summary_op: Any = None,
        feed_dict: FeedDict | None = None,
    ) -> None:
        if log_dir is None and summary_writer is None:
            raise ValueError("SummaryAtEndHook needs log_dir or summary_writer")
        self._log_dir = "" if log_dir is None else log_dir
        self._writer = summary_writer
        self._summary_op = summary_op
        self._feed_dict = feed_dict

    def begin(self) -> None:
        if self._summary_op is None:
            self._summary_op = summaries.merge_all()
        self._step = get_or_create_global_step()

    def end(self, session: Any) -> None:
        writer = self._writer or FileWriterCache.get(self._log_dir)
        if self._summary_op is not None:
            step = int(session.run(self._step))
            writer.add_summary(session.run(self._summary_op, self._feed_dict), step)
        writer.flush()


def evaluate_once(
    checkpoint_path: str | None,
    master: Any = "",
    scaffold: Scaffold | None = None,
    eval_ops: Structure = None,
    feed_dict: FeedDict | None = None,
    final_ops: Structure = None,
    final_ops_feed_dict: FeedDict | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
) -> Any:
    """Evaluate the model of the default graph with the variables of a checkpoint.

    Args:
        checkpoint_path: The checkpoint.
        master: Where to run, as for `tf.Session`.
        scaffold: How the model is made ready.
        eval_ops: What to run until the input or a hook, such as `StopAfterNEvalsHook`, ends it: a tensor, a list or a
            dictionary.
        feed_dict: What to feed to these.
        final_ops: What to run once after them.
        final_ops_feed_dict: What to feed to these.
        hooks: Hooks.
        config: Options of the session.

    Returns:
        What `final_ops` gave; None if there are none.
    """
    return _Evaluation(eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks).of(
        checkpoint_path, master, scaffold, config
    )


def evaluate_repeatedly(
    checkpoint_dir: PathLike,
    master: Any = "",
    scaffold: Scaffold | None = None,
    eval_ops: Structure = None,
    feed_dict: FeedDict | None = None,
    final_ops: Structure = None,
    final_ops_feed_dict: FeedDict | None = None,
    eval_interval_secs: float = 60,
    hooks: Iterable[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """Evaluate every new checkpoint of a folder, as `evaluate_once`.

    Args:
        checkpoint_dir: The folder.
        master: As for `evaluate_once`.
        scaffold: Likewise.
        eval_ops: Likewise.
        feed_dict: Likewise.
        final_ops: Likewise.
        final_ops_feed_dict: Likewise.
        eval_interval_secs: Least time between two evaluations, in seconds.
        hooks: As for `evaluate_once`.
        config: Likewise.
        max_number_of_evaluations: After how many to end; None for no end.
        timeout: Longest time to wait for a checkpoint, in seconds; None for ever.
        timeout_fn: Called after that time: whether to end. It ends when None.

    Returns:
        What `final_ops` gave for the last checkpoint.
    """
    evaluation = _Evaluation(eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks)
    result = None
    for number, path in enumerate(checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn), 1):
        result = evaluation.of(path, master, scaffold, config)
        if number == max_number_of_evaluations:
            break
    return result


class _Evaluation:
    """What is run with each checkpoint."""

    def __init__(
        self,
        eval_ops: Structure,
        feed_dict: FeedDict | None,
        final_ops: Structure,
        final_ops_feed_dict: FeedDict | None,
        hooks: Iterable[SessionRunHook] | None,
    ) -> None:
        self._fetches: Any = None
        self._feed_dict = feed_dict
        given = list(hooks or ())
        step = get_or_create_eval_step()
        if eval_ops is not None:
            counted = assign_add(step, 1)
            self._fetches = [eval_ops, counted]
            for hook in given:
                if isinstance(hook, StopAfterNEvalsHook):
                    hook._set_evals_completed_tensor(counted)
        self._final = FinalOpsHook(final_ops, final_ops_feed_dict)
        self._hooks = [*given, self._final]

    def of(self, path: str | None, master: Any, scaffold: Scaffold | None, config: ConfigProto | None) -> Any:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=path)
        with MonitoredSession(creator, self._hooks) as session:
            if self._fetches is not None:
                while not session.should_stop():
                    session.run(self._fetches, self._feed_dict)
        return self._final.final_ops_values
