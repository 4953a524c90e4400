"""`SessionManager`: makes sessions in which a model is ready. It restores, initialises, or waits for the chief."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from tfray.errors import (
    AbortedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
    UnavailableError,
)
from tfray.formats.files import as_path
from tfray.framework.arguments import NonNegative, checked
from tfray.framework.graph import Graph, get_default_graph
from tfray.library.platform import logging
from tfray.options import ConfigProto, RunOptions
from tfray.session import Session
from tfray.training.checkpoints.checkpoint_management import checkpoint_exists, is_in, named_state, series_in

_SERIES: Final = "model.ckpt-"
"""The beginning of names of checkpoints, for monitored sessions and supervisors with the default base name."""

_FIRST_WAIT_S: Final = 0.05
"""Seconds of the first wait. Each further wait is twice as long, up to `recovery_wait_secs`."""


class SessionManager:
    """Makes sessions in which a model is ready to train.

    Args:
        local_init_op: Run in every new session, once the variables have values.
        ready_op: Names of the variables without a value; empty when the model is ready.
        ready_for_local_init_op: The same for `local_init_op`.
        graph: The graph; the default graph when None.
        recovery_wait_secs: Longest wait from one look for a checkpoint, or for the chief, to the next.
        local_init_run_options: Options of the step of `local_init_op`.
        local_init_feed_dict: Values for tensors while `local_init_op` runs.
    """

    @checked
    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: NonNegative = 30,
        local_init_run_options: RunOptions | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph or get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: Any,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """A session in which the model is ready: from a checkpoint if there is one, otherwise initialised.

        Args:
            master: Where to run, as for `tf.Session`.
            init_op: Gives the variables values.
            saver: Restores checkpoints.
            checkpoint_dir: Folder of the checkpoints, of which the newest is taken.
            checkpoint_filename_with_path: One checkpoint, in place of a folder.
            wait_for_checkpoint: Wait until there is a checkpoint.
            max_wait_secs: Seconds to wait for it.
            config: Options of the session.
            init_feed_dict: Values for tensors while `init_op` runs.
            init_fn: Function of the session, called after `init_op`.

        Raises:
            RuntimeError: The model is not ready then, or there is nothing that would initialise it.
            ValueError: Both a folder and one checkpoint are given.
            DataLossError: The newest checkpoint is damaged; the message says what else there is. A `tf.train.Trainer`
                goes back to the one before; here, as in TensorFlow, the program decides.
            FailedPreconditionError: There are checkpoints ``model.ckpt-STEP``, and no file ``checkpoint`` that names
                one. TensorFlow begins anew then, and writes over them.
        """
        session, loaded = self._restore(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            if not loaded:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
                if init_op is not None:
                    session.run(init_op, init_feed_dict)
                if init_fn is not None:
                    init_fn(session)
            missing = self._run_local_init_op(session)
            if missing:
                raise RuntimeError(
                    "Init operations did not make model ready for local_init.  "
                    f"Init op: {_named(init_op)}, init fn: {init_fn}, error: {missing}"
                )
            missing = self._missing(session, self._ready_op)
            if missing:
                raise RuntimeError(
                    f"{'The checkpoint' if loaded else 'Init operations'} did not make model ready.  Init op: "
                    f"{_named(init_op)}, init fn: {init_fn}, local_init_op: {_named(self._local_init_op)}, "
                    f"error: {missing}"
                )
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: Any,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
    ) -> tuple[Session, bool]:
        """A session in which the model is restored, if there is a checkpoint. Arguments as for `prepare_session`.

        Returns:
            The session, and whether the model is ready in it.
        """
        session, loaded = self._restore(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        missing = self._run_local_init_op(session)
        if not loaded:
            return session, False
        missing = missing or self._missing(session, self._ready_op)
        if missing:
            logging.info("the checkpoint did not make the model ready: %s", missing)
        return session, not missing

    def wait_for_session(
        self, master: Any, config: ConfigProto | None = None, max_wait_secs: float = float("inf")
    ) -> Session:
        """A session in which the model is ready because another worker, the chief, has initialised it.

        Args:
            master: Where to run, as for `tf.Session`: on a cluster that the chief uses too.
            config: Options of the session.
            max_wait_secs: Seconds to wait for the chief.

        Raises:
            DeadlineExceededError: The model did not become ready in time.
        """
        deadline, wait_s = time.monotonic() + max_wait_secs, _FIRST_WAIT_S
        while True:
            session = Session(master, self._graph, config)
            try:
                missing = self._run_local_init_op(session) or self._missing(session, self._ready_op)
            except (AbortedError, UnavailableError) as error:
                missing = error.message  # the chief may be about to replace the devices that are gone
            except BaseException:
                session.close()
                raise
            if not missing:
                return session
            session.close()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DeadlineExceededError(
                    f"Session was not ready after waiting {max_wait_secs:g} secs: {missing}; is there a chief on this "
                    "cluster?"
                )
            logging.info("waiting for the model to become ready: %s", missing)
            time.sleep(min(wait_s, left_s))
            wait_s = min(wait_s * 2, self._recovery_wait_secs)

    def _restore(
        self,
        master: Any,
        saver: Any,
        folder: str | None,
        path: str | None,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: ConfigProto | None,
    ) -> tuple[Session, bool]:
        """A new session, and whether a checkpoint has been restored in it."""
        if folder and path:
            raise ValueError("give checkpoint_dir or checkpoint_filename_with_path, not both")
        replace_dead = getattr(master, "replace_dead", None)
        if replace_dead is not None:
            replace_dead()
        session = Session(master, self._graph, config)
        try:
            if saver is None or not (folder or path):
                return session, False
            if path:
                saver.restore(session, path)
                return session, True
            assert folder is not None
            state = self._checkpoint_state(folder, max_wait_secs if wait_for_checkpoint else 0)
            if state is None:
                _refuse_to_begin_over(folder)
                return session, False
            with _told_what_else_there_is(folder, state.model_checkpoint_path):
                saver.restore(session, state.model_checkpoint_path)
            # The saver may delete only checkpoints of this folder. In a copied one, the file names the original's.
            saver.recover_last_checkpoints([each for each in state.all_model_checkpoint_paths if is_in(folder, each)])
            return session, True
        except BaseException:
            session.close()
            raise

    def _checkpoint_state(self, folder: Any, max_wait_secs: float) -> Any:
        """The checkpoints of a folder, waited for."""
        deadline, wait_s = time.monotonic() + max_wait_secs, _FIRST_WAIT_S
        while True:
            state = named_state(folder)
            left_s = deadline - time.monotonic()
            if (state is not None and state.model_checkpoint_path) or left_s <= 0:
                return state
            logging.info("waiting for a checkpoint in %s", folder)
            time.sleep(min(wait_s, left_s))
            wait_s = min(wait_s * 2, self._recovery_wait_secs)

    def _run_local_init_op(self, session: Session) -> str:
        """Run `local_init_op`, if there is one. Returns what it still waits for, in words."""
        if self._local_init_op is None:
            return ""
        missing = self._missing(session, self._ready_for_local_init_op)
        if not missing:
            session.run(self._local_init_op, self._local_init_feed_dict, self._local_init_run_options)
        return missing

    @staticmethod
    def _missing(session: Session, ready_op: Any) -> str:
        """What is not ready, in words; "" if everything is."""
        if ready_op is None:
            return ""
        try:
            found = session.run(ready_op)
        except FailedPreconditionError as error:
            return error.message
        if found is None or np.asarray(found).dtype.kind not in "OSU" or np.size(found) == 0:
            return ""
        names = ", ".join(name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(found))
        return f"Variables not initialized: {names}"


def _named(operations: Any) -> str:
    """The name of an operation, or what else was given, for messages."""
    return str(getattr(operations, "name", operations))


def _refuse_to_begin_over(folder: Any) -> None:
    found = series_in(as_path(folder), _SERIES)
    if found:
        raise FailedPreconditionError(
            f"{folder} has checkpoints, the newest of them {found[-1][0]}, but no file `checkpoint` that names one: to "
            f"go on from there call tf.train.update_checkpoint_state({as_path(folder)!r}, {found[-1][0]!r}); to begin "
            "anew take another folder"
        )


@contextmanager
def _told_what_else_there_is(folder: Any, path: str) -> Iterator[None]:
    """If a checkpoint is damaged or gone, add to the error which others there are."""
    try:
        yield
    except (DataLossError, NotFoundError) as error:
        others = [each for each, _ in series_in(as_path(folder), path.rpartition("/")[2].rstrip("0123456789"))]
        others = [each for each in others if each != path]
        if others and (isinstance(error, DataLossError) or not checkpoint_exists(path)):
            error.message += (
                f"; there are also {', '.join(others)}: to go on from one call "
                f"tf.train.update_checkpoint_state({as_path(folder)!r}, PATH)"
            )
        raise
