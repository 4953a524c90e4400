"""A hook that saves how far the input of an estimator has come."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import get_default_graph
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.ops.dataflow import iterator_ops
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions.hooks_saving import CheckpointSaverHook
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves the positions of all iterators as often as the estimator saves its model, beside the model's checkpoints.

    The files are called ``input.ckpt``, with the task where there are several workers, and are listed in a file of
    their own. Training that goes on begins where these say, once all iterators are initialised. See
    `tf.data.experimental.make_saveable_from_iterator` for what datasets can be restored.

    Args:
        estimator: A `tf.estimator.Estimator`.
    """

    def __init__(self, estimator: Any) -> None:
        config = estimator.config
        name = "input"
        if config.num_worker_replicas > 1:
            name = f"input_{config.task_type}_{config.task_id}"
        self._folder, self._latest = estimator.model_dir, f"checkpoint_{name}"
        self._saving = _Saving(
            estimator.model_dir,
            config.save_checkpoints_secs,
            config.save_checkpoints_steps,
            checkpoint_basename=f"{name}.ckpt",
        )

    def begin(self) -> None:
        operations = get_default_graph().get_operations()
        handles = [op.outputs[0] for op in operations if op.type == iterator_ops.ITERATOR.name]
        self._is_first = True
        self._saver = _InputSaver(self._latest, [SaveableResource(each.op.name, each) for each in handles])
        self._saving.use(self._saver)
        self._saving.begin()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        # Hooks initialise iterators when the session has been made, in any order: so this waits for the first step.
        if self._is_first:
            self._is_first = False
            saved = latest_checkpoint(self._folder, self._latest)
            if saved:
                self._saver.restore(run_context.session, saved)
            else:
                self._saving.after_create_session(run_context.session, None)
        return self._saving.before_run(run_context)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._saving.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self._saving.end(session)


class _InputSaver(Saver):
    """A saver that lists its checkpoints in a file of its own."""

    def __init__(self, latest_filename: str, var_list: list[Any]) -> None:
        super().__init__(var_list)
        self._latest_filename = latest_filename

    def save(self, *args: Any, **options: Any) -> str | None:
        return super().save(*args, **{"latest_filename": self._latest_filename, **options})


class _Saving(CheckpointSaverHook):
    """`CheckpointSaverHook` without graphs, whose saver is told when the graph is there."""

    def use(self, saver: Saver) -> None:
        """Save by `saver`."""
        self._saver = saver

    def _write_graph(self) -> None:
        return
