"""`tf.contrib.slim.evaluation`: a number of runs for a checkpoint, then summaries; once, or for each new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from tfray.formats.files import PathLike
from tfray.framework.type_aliases import Structure
from tfray.library.inspect import summaries
from tfray.options import ConfigProto
from tfray.training.checkpoints.checkpoint_management import checkpoints_iterator, wait_for_new_checkpoint
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions import evaluation
from tfray.training.sessions.evaluation import FeedDict
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunHook

__all__ = ["checkpoints_iterator", "evaluate_once", "evaluation_loop", "wait_for_new_checkpoint"]

_ALL_SUMMARIES: Final = 0
"""Stands for the summaries of the graph, in place of an operation."""


def evaluate_once(
    master: Any,
    checkpoint_path: str | None,
    logdir: PathLike,
    num_evals: int | None = 1,
    initial_op: Any = None,
    initial_op_feed_dict: FeedDict | None = None,
    eval_op: Structure = None,
    eval_op_feed_dict: FeedDict | None = None,
    final_op: Structure = None,
    final_op_feed_dict: FeedDict | None = None,
    summary_op: Any = _ALL_SUMMARIES,
    summary_op_feed_dict: FeedDict | None = None,
    variables_to_restore: Any = None,
    session_config: ConfigProto | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
) -> Any:
    """Evaluate the model of the default graph with the variables of a checkpoint, and write summaries.

    Args:
        master: Where to run, as for `tf.Session`.
        checkpoint_path: The checkpoint.
        logdir: Folder of the event file.
        num_evals: How often to run `eval_op`.
        initial_op: What initialises the variables before; as for `tf.train.Scaffold` when None.
        initial_op_feed_dict: What to feed to it.
        eval_op: What to run.
        eval_op_feed_dict: What to feed to it.
        final_op: What to run once after it.
        final_op_feed_dict: What to feed to it.
        summary_op: The summaries to write at the end; None for none, and those of the graph by default.
        summary_op_feed_dict: What to feed to them.
        variables_to_restore: The variables to restore; all when None.
        session_config: Options of the session.
        hooks: Further hooks.

    Returns:
        What `final_op` gave; None if there is none.
    """
    return evaluation.evaluate_once(
        checkpoint_path,
        master,
        _scaffold(initial_op, initial_op_feed_dict, None, variables_to_restore),
        eval_op,
        eval_op_feed_dict,
        final_op,
        final_op_feed_dict,
        _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks),
        session_config,
    )


def evaluation_loop(
    master: Any,
    checkpoint_dir: PathLike,
    logdir: PathLike,
    num_evals: int | None = 1,
    initial_op: Any = None,
    initial_op_feed_dict: FeedDict | None = None,
    init_fn: Callable[[Any], None] | None = None,
    eval_op: Structure = None,
    eval_op_feed_dict: FeedDict | None = None,
    final_op: Structure = None,
    final_op_feed_dict: FeedDict | None = None,
    summary_op: Any = _ALL_SUMMARIES,
    summary_op_feed_dict: FeedDict | None = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: ConfigProto | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
) -> Any:
    """Evaluate every new checkpoint of a folder, as `evaluate_once`.

    Args:
        master: As for `evaluate_once`, as are those that are not told of here.
        checkpoint_dir: The folder.
        logdir: See there.
        num_evals: See there.
        initial_op: See there.
        initial_op_feed_dict: See there.
        init_fn: Function of the session, called after `initial_op`.
        eval_op: See there.
        eval_op_feed_dict: See there.
        final_op: See there.
        final_op_feed_dict: See there.
        summary_op: See there.
        summary_op_feed_dict: See there.
        variables_to_restore: See there.
        eval_interval_secs: Least time between two evaluations, in seconds.
        max_number_of_evaluations: After how many to end; None for no end.
        session_config: See there.
        timeout: Longest time to wait for a checkpoint, in seconds; None for ever.
        timeout_fn: Called after that time: whether to end. It ends when None.
        hooks: See there.

    Returns:
        What `final_op` gave for the last checkpoint.
    """
    return evaluation.evaluate_repeatedly(
        checkpoint_dir,
        master,
        _scaffold(initial_op, initial_op_feed_dict, init_fn, variables_to_restore),
        eval_op,
        eval_op_feed_dict,
        final_op,
        final_op_feed_dict,
        eval_interval_secs,
        _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks),
        session_config,
        max_number_of_evaluations,
        timeout,
        timeout_fn,
    )


def _scaffold(initial_op: Any, feeds: FeedDict | None, init_fn: Any, variables: Any) -> Scaffold:
    calls = None if init_fn is None else (lambda scaffold, session: init_fn(session))
    saver = None if variables is None else Saver(variables)
    return Scaffold(init_op=initial_op, init_feed_dict=feeds, init_fn=calls, saver=saver)


def _hooks(
    num_evals: int | None,
    logdir: PathLike,
    summary_op: Any,
    feeds: FeedDict | None,
    hooks: Iterable[SessionRunHook] | None,
) -> list[SessionRunHook]:
    merged = summaries.merge_all() if isinstance(summary_op, int) else summary_op
    found: list[SessionRunHook] = [evaluation.StopAfterNEvalsHook(num_evals)]
    if merged is not None:
        found.append(evaluation.SummaryAtEndHook(logdir, summary_op=merged, feed_dict=feeds))
    return [*found, *(hooks or ())]
