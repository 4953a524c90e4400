"""`basic_train_loop`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfray.errors import AbortedError
from tfray.training.supervisor import Supervisor


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: Any = "",
) -> None:
    """Call a function again and again until a supervisor stops; after an `AbortedError` with a new session.

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
