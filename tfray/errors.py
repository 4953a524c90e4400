"""Errors, by kind.

    OpError
    ├── CancelledError            the step was cancelled by its caller or by a closing session
    │   └── ClosedError           a session that has been closed was used; also a RuntimeError
    ├── UnknownError              a kernel raised something that is not one of these
    ├── InvalidArgumentError      a value, shape or dtype that cannot work
    │   └── ArgumentError         an argument that a function cannot work with; also a TypeError
    ├── DeadlineExceededError     a step or a wait ran past its timeout
    ├── NotFoundError             a name, file or device that does not exist
    │   ├── NoCheckpointError     there is no checkpoint of a path; also a ValueError
    │   └── NoFileError           there is no graph or model at a path; also an OSError
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
        └── UnreadableError       a file that holds no graph or model; also an OSError

The kinds are those of TensorFlow 1 (`tf.errors`), with its codes and its constructor, `(node_def, op, message)`. Each
error knows the operation, the device and the line of the user's program that created the operation, and survives
pickling (without `op` and `node_def`, which belong to a graph).
"""

from __future__ import annotations

import re
import threading
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final

# fmt: off
__all__ = [
    "ABORTED", "ALREADY_EXISTS", "CANCELLED", "DATA_LOSS", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION", "INTERNAL",
    "INVALID_ARGUMENT", "NOT_FOUND", "OK", "OUT_OF_RANGE", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED", "UNAVAILABLE", "UNIMPLEMENTED", "UNKNOWN", "AbortedError", "AlreadyExistsError",
    "ArgumentError", "CancelledError", "ClosedError", "DataLossError", "DeadlineExceededError",
    "FailedPreconditionError", "InternalError", "InvalidArgumentError", "NoCheckpointError", "NoFileError",
    "NotFoundError", "OpError", "OperatorNotAllowedInGraphError", "OutOfRangeError", "PermissionDeniedError",
    "ResourceExhaustedError", "UnauthenticatedError", "UnavailableError", "UnimplementedError", "UnknownError",
    "UnreadableError", "error_code_from_exception_type", "exception_type_from_error_code",
    "raise_exception_on_not_ok_status",
]
# fmt: on


# The codes are those of gRPC, as in TensorFlow.
OK: Final = 0
CANCELLED: Final = 1
UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
ALREADY_EXISTS: Final = 6
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
ABORTED: Final = 10
OUT_OF_RANGE: Final = 11
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
DATA_LOSS: Final = 15
UNAUTHENTICATED: Final = 16


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What a message shows escaped. It may quote a file, and a terminal would take such characters for commands."""


def _printable(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


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
        node_def: The operation's `NodeDef`, or None. The message may be given here alone: ``AbortedError("why")``.
        op: The operation, or None. What a step raises finds it in the session's graph.
        message: What went wrong, what was expected, what to do.
        error_code: Its code, where it is not that of the class.
        op_name: Name of the operation in the graph, if one is to blame; that of `op` when None.
        device: Full name of the device on which it ran.
        site: ``file:line, in function`` of the user's code that created the operation.
    """

    _CODE: ClassVar[int] = UNKNOWN

    def __init__(
        self,
        node_def: Any = None,
        op: Any = None,
        message: str | None = None,
        error_code: int | None = None,
        *,
        op_name: str | None = None,
        device: str | None = None,
        site: str | None = None,
    ) -> None:
        if message is None and isinstance(node_def, str):
            node_def, message = None, node_def
        message = None if message is None else _printable(message)
        super().__init__(message)
        self.message: str = "" if message is None else message
        self.op_name = op_name if op is None else op.name
        self.device = device
        self.site = site
        self.op = op
        """The operation of the user's graph that failed, or None."""
        self._node_def = node_def
        self._error_code = error_code

    @property
    def node_def(self) -> Any:
        """The `NodeDef` of the operation that failed, or None."""
        return self.op.node_def if self._node_def is None and self.op is not None else self._node_def

    @property
    def error_code(self) -> int:
        """The code of this kind of error, such as `tf.errors.ABORTED`."""
        return self._CODE if self._error_code is None else self._error_code

    def __str__(self) -> str:
        lines = [self.message]
        if self.op_name:
            where = f" on {self.device}" if self.device else ""
            lines.append(f"  operation: {self.op_name}{where}")
        elif self.device:
            lines.append(f"  device: {self.device}")
        if self.site:
            lines.append(f"  created at: {self.site}")
        return _printable("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self._error_code, self.op_name, self.device, self.site)


def _rebuild(
    kind: type[OpError], message: str, code: int | None, op_name: str | None, device: str | None, site: str | None
) -> OpError:
    return kind(None, None, message, code, op_name=op_name, device=device, site=site)


class CancelledError(OpError):
    """The step was cancelled by its caller or by a closing session."""

    _CODE = CANCELLED


class ClosedError(CancelledError, RuntimeError):
    """A session that has been closed was used. Also a `RuntimeError`, which TensorFlow raises."""


class UnknownError(OpError):
    """A kernel raised something that is not one of the kinds here."""

    _CODE = UNKNOWN


class InvalidArgumentError(OpError, ValueError):
    """A value, shape or dtype that cannot work. Also a `ValueError`, which graph construction raises in TensorFlow."""

    _CODE = INVALID_ARGUMENT


class ArgumentError(InvalidArgumentError, TypeError):
    """An argument that a function cannot work with: TensorFlow raises a `TypeError` or a `ValueError`, this is both."""


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor was used as a Python value, such as in ``if`` or ``for``; not an `OpError`: no operation failed."""


class DeadlineExceededError(OpError, TimeoutError):
    """A step or a wait ran past its timeout."""

    _CODE = DEADLINE_EXCEEDED


class NotFoundError(OpError, KeyError):
    """A name, file or device that does not exist."""

    _CODE = NOT_FOUND

    __str__ = OpError.__str__


class NoCheckpointError(NotFoundError, ValueError):
    """There is no checkpoint of a path. Also a `ValueError`, which TensorFlow raises."""


class NoFileError(NotFoundError, OSError):
    """There is no graph or model at a path. Also an `OSError`, which TensorFlow raises."""


class AlreadyExistsError(OpError):
    """A name or resource that exists already."""

    _CODE = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """A file or link that may not be used."""

    _CODE = PERMISSION_DENIED


class UnauthenticatedError(OpError):
    """A peer that did not present the cluster's key."""

    _CODE = UNAUTHENTICATED


class ResourceExhaustedError(OpError):
    """Memory, or room on the cluster, ran out."""

    _CODE = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """State is missing: an uninitialised variable, mostly."""

    _CODE = FAILED_PRECONDITION


class AbortedError(OpError):
    """A step lost to another failure or a concurrent change."""

    _CODE = ABORTED


class OutOfRangeError(OpError):
    """Reading past the end of input."""

    _CODE = OUT_OF_RANGE


class UnimplementedError(OpError):
    """No kernel for this device or dtype."""

    _CODE = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of tfray itself does not hold."""

    _CODE = INTERNAL


class UnavailableError(OpError):
    """A device actor, or the cluster, is gone."""

    _CODE = UNAVAILABLE


class DataLossError(OpError):
    """Corrupt data."""

    _CODE = DATA_LOSS


class UnreadableError(DataLossError, OSError):
    """A file that holds no graph or model. Also an `OSError`, which TensorFlow raises."""


_KINDS: Final = {
    kind._CODE: kind
    for kind in (
        CancelledError,
        UnknownError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
        UnauthenticatedError,
    )
}


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class of errors with a code. Raises `KeyError` if it is none of the codes of errors."""
    return _KINDS[error_code]


def error_code_from_exception_type(cls: type[BaseException]) -> Any:
    """The code of a class of errors; with a warning an `UnknownError`, as in TensorFlow, if it is none of these."""
    if isinstance(cls, type) and issubclass(cls, OpError) and cls is not OpError:
        return cls._CODE
    warnings.warn("Unknown class exception", stacklevel=2)
    return UnknownError(None, None, "Unknown class exception")


@dataclass
class Status:
    """What a call reports: its code, and a message."""

    code: int = OK
    message: str = ""


class raise_exception_on_not_ok_status:
    """Context manager that gives a `Status`, and raises its error at the end of the block if one was set."""

    def __enter__(self) -> Status:
        self.status = Status()
        return self.status

    def __exit__(self, *raised: object) -> None:
        if self.status.code != OK:
            kind = _KINDS.get(self.status.code, UnknownError)
            raise kind(None, None, self.status.message, self.status.code)
