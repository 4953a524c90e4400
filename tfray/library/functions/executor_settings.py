"""``tf.experimental``: settings of TensorFlow's functions and control flow. They change no value, and nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["function_executor_type", "output_all_intermediates"]


@contextmanager
def function_executor_type(executor_type: str | None) -> Iterator[None]:
    """Context manager for what executes functions of `tf.function`: in a session, always the session.

    Args:
        executor_type: Name of what does in TensorFlow.
    """
    yield


def output_all_intermediates(state: bool | None) -> None:
    """Say whether branches and loops give out what gradients need; here they do when there are gradients.

    Args:
        state: Whether TensorFlow's do; None for its default.
    """
