"""Errors, by kind.

    OpError
    ├── CancelledError            the step was cancelled by its caller or by a closing session
    ├── UnknownError              a kernel raised something that is not one of these
    ├── InvalidArgumentError      a value, shape or dtype that cannot work
    │   └── ArgumentError         an argument that a function cannot work with; also a TypeError
    ├── DeadlineExceededError     a step or a wait ran past its timeout
    ├── NotFoundError             a name, file or device that does not exist
    ├── AlreadyExistsError        a name or resource that exists already
    ├── PermissionDeniedError     a file or link that may not be used
    ├── UnauthenticatedError      a peer that did not present the cluster's key
    ├── ResourceExhaustedError    memory, or room on the cluster, ran out
    ├── FailedPreconditionError   state is missing: an uninitialised variable, mostly
    ├── AbortedError              a step lost to another failure or a concurrent change
    ├── OutOfRangeError           reading past the end of input
    ├── UnimplementedError        no kernel for this device or dtype
    ├── InternalError             an invariant of tfray itself does not hold
    ├── UnavailableError          a device actor, or the cluster, is gone
    └── DataLossError             corrupt data

The kinds are those of TensorFlow 1 (`tf.errors`). Each error knows the operation, the device and the line
of the user's program that created the operation, and survives pickling.
"""

from __future__ import annotations

import threading
from typing import Any

# fmt: off
__all__ = [
    "AbortedError", "AlreadyExistsError", "ArgumentError", "CancelledError", "DataLossError", "DeadlineExceededError",
    "FailedPreconditionError", "InternalError", "InvalidArgumentError", "NotFoundError", "OpError", "OutOfRangeError",
    "PermissionDeniedError", "ResourceExhaustedError", "UnauthenticatedError", "UnavailableError", "UnimplementedError",
    "UnknownError",
]
# fmt: on


class NotAnError(BaseException):
    """Base of what leaves a kernel, or an iterator over a dataset, though nothing has gone wrong."""


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is the user's Ctrl-C, which goes through everything. Only the main thread is sent one.

    Whatever else a function of the program raises is an error of the step that calls it, `SystemExit` too: on a device
    actor it would otherwise end a thread, or the actor, and whoever waits for the answer would wait for ever.
    """
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


class OpError(Exception):
    """Base of every error that tfray raises while building, placing or running a graph.

    Args:
        message: What went wrong, what was expected, what to do.
        op_name: Name of the operation in the graph, if one is to blame.
        device: Full name of the device on which it ran.
        site: ``file:line, in function`` of the user's code that created the operation.
    """

    def __init__(
        self,
        message: str,
        *,
        op_name: str | None = None,
        device: str | None = None,
        site: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.op_name = op_name
        self.device = device
        self.site = site

    def __str__(self) -> str:
        lines = [self.message]
        if self.op_name:
            where = f" on {self.device}" if self.device else ""
            lines.append(f"  operation: {self.op_name}{where}")
        elif self.device:
            lines.append(f"  device: {self.device}")
        if self.site:
            lines.append(f"  created at: {self.site}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.op_name, self.device, self.site)


def _rebuild(kind: type[OpError], message: str, op_name: str | None, device: str | None, site: str | None) -> OpError:
    return kind(message, op_name=op_name, device=device, site=site)


class CancelledError(OpError):
    """The step was cancelled by its caller or by a closing session."""


class UnknownError(OpError):
    """A kernel raised something that is not one of the kinds here."""


class InvalidArgumentError(OpError, ValueError):
    """A value, shape or dtype that cannot work. Also a `ValueError`, which graph construction raises in TensorFlow."""


class ArgumentError(InvalidArgumentError, TypeError):
    """An argument that a function cannot work with: TensorFlow raises a `TypeError` or a `ValueError`, this is both."""


class DeadlineExceededError(OpError, TimeoutError):
    """A step or a wait ran past its timeout."""


class NotFoundError(OpError, KeyError):
    """A name, file or device that does not exist."""

    __str__ = OpError.__str__


class AlreadyExistsError(OpError):
    """A name or resource that exists already."""


class PermissionDeniedError(OpError):
    """A file or link that may not be used."""


class UnauthenticatedError(OpError):
    """A peer that did not present the cluster's key."""


class ResourceExhaustedError(OpError):
    """Memory, or room on the cluster, ran out."""


class FailedPreconditionError(OpError):
    """State is missing: an uninitialised variable, mostly."""


class AbortedError(OpError):
    """A step lost to another failure or a concurrent change."""


class OutOfRangeError(OpError):
    """Reading past the end of input."""


class UnimplementedError(OpError):
    """No kernel for this device or dtype."""


class InternalError(OpError):
    """An invariant of tfray itself does not hold."""


class UnavailableError(OpError):
    """A device actor, or the cluster, is gone."""


class DataLossError(OpError):
    """Corrupt data."""
