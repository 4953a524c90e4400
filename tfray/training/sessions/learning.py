"""Training steps and the training loop of ``tf.contrib.slim.learning``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tfray.errors import AbortedError, InvalidArgumentError, OutOfRangeError
from tfray.formats import files
from tfray.formats.step_stats import RunMetadata
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.inspect import summaries as summary
from tfray.library.inspect.timeline import Timeline
from tfray.library.platform import logging
from tfray.library.variables.clip import clip_by_norm, global_norm
from tfray.library.variables.variables import trainable_variables
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.checks import print_assert_ops
from tfray.ops.math import comparison_ops, math_ops
from tfray.options import ConfigProto, RunOptions
from tfray.training.checkpoints.saver import Saver
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.optimize_loss import times
from tfray.training.sessions.supervisor import USE_DEFAULT, Supervisor
from tfray.training.threads.global_step import get_or_create_global_step

__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "multiply_gradients",
    "train",
    "train_step",
]

_USE_GLOBAL_STEP: Final = 0
"""Stands for the global step of the graph."""


def add_gradients_summaries(grads_and_vars: Any) -> list[Tensor]:
    """Add two summaries for each gradient: a histogram of its values, and its norm. Returns them."""
    summaries = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            logging.info("Var %s has no gradient", variable.op.name)
            continue
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        summaries.append(summary.histogram(f"{variable.op.name}_gradient", values))
        summaries.append(summary.scalar(f"{variable.op.name}_gradient_norm", global_norm([values])))
    return summaries


def clip_gradient_norms(gradients_to_variables: Any, max_norm: float) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable with each gradient scaled down to a norm of at most `max_norm`."""
    return [
        (None if gradient is None else clip_by_norm(gradient, max_norm), variable)
        for gradient, variable in gradients_to_variables
    ]


def clip_gradient_norms_fn(max_norm: float) -> Callable[[Any], list[tuple[Any, Any]]]:
    """`clip_gradient_norms` as a function of the pairs."""
    return lambda pairs: clip_gradient_norms(pairs, max_norm)


def multiply_gradients(grads_and_vars: Any, gradient_multipliers: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable with some gradients multiplied.

    Args:
        grads_and_vars: The pairs.
        gradient_multipliers: Factors by variables, or by the names of their operations.

    Raises:
        ValueError: An argument is empty or no list or dictionary, or a gradient that is to be multiplied is None.
    """
    if not isinstance(grads_and_vars, list) or not grads_and_vars:
        raise ValueError(f"`grads_and_vars` must be a list of pairs, not {grads_and_vars!r}")
    if not isinstance(gradient_multipliers, Mapping) or not gradient_multipliers:
        raise ValueError(f"`gradient_multipliers` must be a dict of factors, not {gradient_multipliers!r}")
    result = []
    for gradient, variable in grads_and_vars:
        factor = gradient_multipliers.get(variable, gradient_multipliers.get(variable.op.name))
        if factor is not None:
            if gradient is None:
                raise ValueError(f"Requested multiple of `None` gradient: that of {variable.op.name!r}")
            gradient = times(gradient, factor)
        result.append((gradient, variable))
    return result


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Sequence[Any] | None = None,
    variables_to_train: Sequence[Any] | None = None,
    transform_grads_fn: Callable[[Any], Any] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
    clip_gradient_norm: float = 0,
    gradient_multipliers: Mapping[Any, Any] | None = None,
) -> Tensor:
    """Make a training step, as ``slim.learning`` does.

    Args:
        total_loss: Scalar, the loss.
        optimizer: The optimizer.
        global_step: The step to count; that of the graph, which is created if there is none, when left out. None counts
            none.
        update_ops: Operations to run before the loss is computed; ``GraphKeys.UPDATE_OPS`` when None.
        variables_to_train: Variables to update; the trainable ones when None.
        transform_grads_fn: Function from pairs of gradient and variable to such pairs.
        summarize_gradients: Add summaries of the gradients, as `add_gradients_summaries` does.
        gate_gradients: As for `Optimizer.minimize`.
        aggregation_method: Likewise.
        colocate_gradients_with_ops: Likewise.
        check_numerics: Fail when the loss is infinite or not a number.
        clip_gradient_norm: Largest norm of each gradient; 0 for none.
        gradient_multipliers: Factors of gradients, by variables or the names of their operations.

    Returns:
        The loss, whose evaluation makes the step.
    """
    graph = get_default_graph()
    step = get_or_create_global_step() if global_step is _USE_GLOBAL_STEP else global_step
    updates = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    loss = convert_to_tensor(total_loss)
    if updates:
        with graph.control_dependencies([grouping_ops.group(*updates, name="update_barrier")]):
            loss = array_ops.identity(loss)
    pairs = optimizer.compute_gradients(
        loss,
        variables_to_train or trainable_variables(),
        gate_gradients,
        aggregation_method,
        colocate_gradients_with_ops,
    )
    if transform_grads_fn is not None:
        pairs = transform_grads_fn(pairs)
    if gradient_multipliers:
        pairs = multiply_gradients(pairs, gradient_multipliers)
    if clip_gradient_norm > 0:
        pairs = clip_gradient_norms(pairs, clip_gradient_norm)
    if summarize_gradients:
        add_gradients_summaries(pairs)
    updated = optimizer.apply_gradients(pairs, step)
    with graph.name_scope("train_op"), graph.control_dependencies([updated]):
        train_op = print_assert_ops.check_numerics(loss, "LossTensor is inf or nan") if check_numerics else loss
        train_op = array_ops.identity(train_op)
    graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
    return train_op


def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]) -> tuple[Any, bool]:
    """Make one training step, and log and trace it if that is due.

    Args:
        sess: The session.
        train_op: The training step, whose value is the loss: see `create_train_op`.
        global_step: The global step.
        train_step_kwargs: Tensors ``should_stop``, ``should_log`` and ``should_trace``, and with the last one
            ``logdir`` and ``summary_writer``; each may be missing.

    Returns:
        The loss, and whether to stop.
    """
    started, options, metadata = time.monotonic(), None, None
    if "should_trace" in train_step_kwargs and sess.run(train_step_kwargs["should_trace"]):
        options, metadata = RunOptions(trace_level=RunOptions.FULL_TRACE), RunMetadata()
    loss, step = sess.run([train_op, global_step], None, options, metadata)
    duration_s = time.monotonic() - started
    if metadata is not None:
        path = f"{train_step_kwargs['logdir']}/tf_trace-{step}.json"
        files.write_bytes(path, Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True).encode())
        if train_step_kwargs.get("summary_writer") is not None:
            train_step_kwargs["summary_writer"].add_run_metadata(metadata, f"run_metadata-{step}", step)
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, duration_s)
    stop = "should_stop" in train_step_kwargs and bool(sess.run(train_step_kwargs["should_stop"]))
    return loss, stop


def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Callable[..., tuple[Any, bool]] = train_step,
    train_step_kwargs: Mapping[str, Any] | int | None = USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Graph | None = None,
    master: Any = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = USE_DEFAULT,
    init_feed_dict: Mapping[Any, Any] | None = None,
    local_init_op: Any = USE_DEFAULT,
    init_fn: Callable[[Any], Any] | None = None,
    ready_op: Any = USE_DEFAULT,
    summary_op: Any = USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Saver | None = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: ConfigProto | None = None,
    session_wrapper: Callable[[Any], Any] | None = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Train until a number of steps or the end of the input, as ``slim.learning`` does; in the end the model is saved.

    Args:
        train_op: The training step, whose value is the loss: see `create_train_op`.
        logdir: Folder of the checkpoints and the event file; None for neither.
        train_step_fn: Makes a step; see `train_step`.
        train_step_kwargs: Its arguments; made by default.
        log_every_n_steps: Steps from one message to the next.
        graph: The graph; the default graph when None.
        master: Where to run, as for `tf.Session`.
        is_chief: Whether this worker initialises, saves and logs.
        global_step: The global step; that of the graph when None, made if need be.
        number_of_steps: Global step at which to stop; None to go on.
        init_op: As for `Supervisor`.
        init_feed_dict: Likewise.
        local_init_op: Likewise.
        init_fn: Likewise.
        ready_op: Likewise.
        summary_op: Likewise.
        save_summaries_secs: Likewise.
        summary_writer: Likewise.
        startup_delay_steps: Global step for which a worker that is not the chief waits before it begins.
        saver: Saves and restores checkpoints; made when None.
        save_interval_secs: Seconds from one checkpoint to the next.
        sync_optimizer: None: replicas work together under a `tf.train.Trainer`.
        session_config: Options of the session.
        session_wrapper: Function of the session that returns an object to use in its place.
        trace_every_n_steps: Steps from one trace to the next; None for none.
        ignore_live_threads: Whether threads may still run at the end.

    Returns:
        The last loss, or None if there was no step.

    Raises:
        InvalidArgumentError: An argument cannot be used.
    """
    if train_op is None:
        raise InvalidArgumentError("there is no train_op")
    if sync_optimizer is not None:
        raise InvalidArgumentError("sync_optimizer must be None: replicas work together under a tf.train.Trainer")
    if logdir is not None:
        files.given_path(logdir, "logdir")
    for what, given in (
        ("summary_op", summary_op not in (None, USE_DEFAULT)),
        ("saver", saver is not None),
        ("trace_every_n_steps", trace_every_n_steps is not None),
    ):
        if logdir is None and given:
            raise InvalidArgumentError(f"Cannot provide {what} because logdir=None")
    graph = graph or get_default_graph()
    with graph.as_default():
        global_step = get_or_create_global_step() if global_step is None else global_step
        if train_step_kwargs is USE_DEFAULT:
            train_step_kwargs = _step_arguments(global_step, number_of_steps, log_every_n_steps, trace_every_n_steps)
            train_step_kwargs["logdir"] = logdir
        supervisor = Supervisor(
            graph,
            ready_op,
            is_chief=is_chief,
            init_op=init_op,
            init_feed_dict=init_feed_dict,
            local_init_op=local_init_op,
            logdir=logdir,
            summary_op=summary_op,
            saver=saver or USE_DEFAULT,
            global_step=global_step,
            save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs,
            summary_writer=summary_writer,
            init_fn=init_fn,
        )
    arguments = {**(train_step_kwargs or {}), "summary_writer": supervisor.summary_writer}  # type: ignore[dict-item]
    while True:
        try:
            return _loop(
                supervisor,
                lambda session: train_step_fn(session, train_op, global_step, arguments),
                (master, session_config),
                session_wrapper,
                0 if is_chief else startup_delay_steps,
                ignore_live_threads,
            )
        except AbortedError as error:
            logging.warning("%s; making a new session", error)


def _step_arguments(
    global_step: Any, number_of_steps: int | None, log_every_n_steps: int, trace_every_n_steps: int | None
) -> dict[str, Any]:
    graph = get_default_graph()
    arguments: dict[str, Any] = {}
    with graph.name_scope("train_step"), graph.device(None):
        # Read the variable anew, for its value after the step, not before it.
        if number_of_steps:
            arguments["should_stop"] = comparison_ops.greater_equal(global_step, number_of_steps)
        if log_every_n_steps > 0:
            arguments["should_log"] = comparison_ops.equal(math_ops.mod(global_step, log_every_n_steps), 0)
        if trace_every_n_steps is not None:
            arguments["should_trace"] = comparison_ops.equal(math_ops.mod(global_step, trace_every_n_steps), 0)
    return arguments


def _loop(
    supervisor: Supervisor,
    step: Callable[[Any], tuple[Any, bool]],
    target: tuple[Any, ConfigProto | None],
    wrap: Callable[[Any], Any] | None,
    first_step: int,
    ignore_live_threads: bool,
) -> Any:
    """Run steps in one session. At the end the chief saves. Returns the last loss."""
    loss = None
    with supervisor.managed_session(*target) as session:
        wrapped = session if wrap is None else wrap(session)
        while int(wrapped.run(supervisor.global_step)) < first_step and not supervisor.should_stop():
            time.sleep(0.1)
        with contextlib.suppress(OutOfRangeError):
            while not supervisor.should_stop():
                loss, stop = step(wrapped)
                if stop:
                    supervisor.request_stop()
        if supervisor.is_chief and supervisor.save_path is not None:
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
        if ignore_live_threads:
            supervisor.stop(ignore_live_threads=True)
    return loss
