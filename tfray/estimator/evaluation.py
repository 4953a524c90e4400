"""Evaluating a model: the passes over the data, and the event file of their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.formats.events import Summary
from tfray.formats.tensor_proto import make_tensor_proto
from tfray.framework import dtypes
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.inspect.event_writer import FileWriterCache
from tfray.library.metrics.mean_metrics import mean
from tfray.library.platform import logging
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.state.state_ops import assign_add
from tfray.options import ConfigProto
from tfray.training.sessions.evaluation import get_or_create_eval_step
from tfray.training.sessions.hooks import FinalOpsHook
from tfray.training.sessions.monitored_session import ChiefSessionCreator, MonitoredSession
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.threads.global_step import get_global_step

LOSS: Final = "loss"
_EVAL_STEP: Final = "eval_step"


class StopAfterBatchesHook(SessionRunHook):
    """Stops an evaluation after a number of batches.

    Args:
        batches: The number.
    """

    def __init__(self, batches: int) -> None:
        self._batches = batches

    def begin(self) -> None:
        self._step = get_default_graph().extra(_EVAL_STEP, dict)[_EVAL_STEP]

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if int(run_values.results) >= self._batches:
            run_context.request_stop()


def add_evaluation(metrics: Mapping[str, Any], loss: Any) -> tuple[Any, dict[str, Any]]:
    """Add the operations of an evaluation to the graph.

    Args:
        metrics: Pairs (value, update operation), by name.
        loss: The loss of a batch.

    Returns:
        The operation that takes in a batch, and the values by name: those of the metrics, and ``loss``, the mean over
        the batches, and ``global_step``.

    Raises:
        ValueError: A metric is called ``loss``, ``global_step``, or the graph lacks a global step.
    """
    if LOSS in metrics:
        raise ValueError(f"a metric must not be called {LOSS!r}: the mean loss is given under that name")
    found = dict(metrics)
    found[LOSS] = mean(loss)
    updates = [update for _, update in found.values()]
    values = {name: value for name, (value, _) in found.items()}
    if GraphKeys.GLOBAL_STEP in values:
        raise ValueError(f"a metric must not be called {GraphKeys.GLOBAL_STEP!r}: the global step is given so")
    step = get_global_step()
    if step is None:
        raise ValueError("the graph has no global step: the model function must not begin a new graph")
    values[GraphKeys.GLOBAL_STEP] = step
    with variable_scope("", reuse=False), get_default_graph().name_scope(None):
        counter = get_or_create_eval_step()
    counted = assign_add(counter, 1)
    get_default_graph().extra(_EVAL_STEP, dict)[_EVAL_STEP] = counted
    return group(*updates, counted), values


class Evaluation(NamedTuple):
    """What an evaluation runs.

    Attributes:
        update_op: Takes in a batch.
        values: What to return, by name.
        scaffold: How the model is made ready.
        hooks: Hooks around each batch.
    """

    update_op: Any
    values: Mapping[str, Any]
    scaffold: Scaffold
    hooks: tuple[SessionRunHook, ...]

    def run(self, checkpoint_path: str | None, master: Any, config: ConfigProto | None) -> dict[str, Any]:
        """Restore a checkpoint, take in batches until the data or a hook ends, and return the values.

        Args:
            checkpoint_path: The checkpoint; None evaluates initial values.
            master: Where to run, as for `tf.Session`.
            config: Options of the session.
        """
        final = FinalOpsHook(dict(self.values))
        creator = ChiefSessionCreator(self.scaffold, master, config, checkpoint_filename_with_path=checkpoint_path)
        with MonitoredSession(creator, [*self.hooks, final]) as session:
            while not session.should_stop():
                session.run(self.update_op)
        found: dict[str, Any] = final.final_ops_values
        return found


def write_results(folder: str, results: Mapping[str, Any], checkpoint_path: str | None) -> None:
    """Write the results of an evaluation into the event file of a folder, for TensorBoard.

    Args:
        folder: The folder.
        results: Values by name; ``global_step`` is the step of the others.
        checkpoint_path: The checkpoint that was evaluated.
    """
    step = int(results[GraphKeys.GLOBAL_STEP])
    told = ", ".join(f"{name} = {value}" for name, value in sorted(results.items()))
    logging.info("Saving dict for global step %d: %s", step, told)
    values = []
    for name, value in results.items():
        if name != GraphKeys.GLOBAL_STEP and value is not None:
            values += _summary_values(name, value)
    writer = FileWriterCache.get(folder)
    writer.add_summary(Summary(value=values), step)
    if checkpoint_path:
        text = make_tensor_proto(np.array(checkpoint_path.encode(), object), dtypes.string)
        tag = f"{step}/checkpoint_path"
        writer.add_summary(Summary(value=[Summary.Value(tag=tag, tensor=text)]), step)
    writer.flush()


def _summary_values(name: str, value: Any) -> list[Any]:
    if isinstance(value, bytes):
        found: list[Any] = list(Summary.FromString(value).value)
        for position, each in enumerate(found):
            each.tag = f"{name}/{position}" if len(found) > 1 else name
        return found
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in "fiub":
        return [Summary.Value(tag=name, simple_value=float(array))]
    if array.dtype.kind in "fiub":
        return [Summary.Value(tag=name, tensor=make_tensor_proto(array))]
    logging.warning("%s is not written into the event file: it is %r", name, value)
    return []
