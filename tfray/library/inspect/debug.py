"""`tf.debug`: look at every tensor of steps that run in this process, also inside loops and branches.

>>> tf.debug.watch(session, loss, feeds, "layer/.*")  # the values of what matches
>>> session = tf.debug.LocalDebugSession(session)  # then any run stops at the first tensor that is not a number
>>> session.add_tensor_filter("has_inf_or_nan", tf.debug.has_inf_or_nan)
>>> session.break_on("gradients/.*MatMul.*")
>>> tf.debug.dump(session, loss, feeds, "folder")  # every tensor as a file .npy
>>> tf.debug.show()  # the graph, as a tree on the terminal

Programs that say ``from tensorflow.python import debug as tf_debug`` say ``from tfray import debug as tf_debug``.
"""

from __future__ import annotations

import bdb
import json
import pdb
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np

from tfray.errors import CancelledError, DataLossError, InternalError, InvalidArgumentError, NotFoundError
from tfray.formats.files import failures_of, given_path
from tfray.formats.npy import read_npy
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, default_session_scope
from tfray.framework.op_def import Array
from tfray.framework.type_aliases import TensorLike
from tfray.library.inspect.graph_tree import graph_tree as graph_tree
from tfray.library.inspect.graph_tree import show as show
from tfray.runtime.compiled_body import SEGMENT
from tfray.runtime.traced_op import TracedOp
from tfray.session import Session

# fmt: off
__all__ = [
    "DebugDump", "DebugDumpDir", "DumpingDebugWrapperSession", "Filter", "LocalCLIDebugWrapperSession",
    "LocalDebugSession", "TensorDatum", "describe", "dump", "graph_tree", "has_inf_or_nan", "show", "watch",
]
# fmt: on

Filter = Callable[[Any, Any], bool]
"""``filter(datum, value)``: whether a tensor is remarkable. `datum` is a `TensorDatum`."""

_MANIFEST: Final = "tensors.json"
_SHOWN_ELEMENTS: Final = 6


@dataclass(frozen=True)
class TensorDatum:
    """A tensor that an operation has computed in a step.

    Attributes:
        name: Name of the tensor.
        op_type: Type of the operation.
        device: Name of the device that computed it.
        inputs: Names of the operation's inputs.
        site: Line of the program that made the operation, if it is known.
        occurrence: How many times the step had computed this tensor before: more than 0 only within loops.
    """

    name: str
    op_type: str
    device: str
    inputs: tuple[str, ...] = ()
    site: str = ""
    occurrence: int = 0

    @property
    def node_name(self) -> str:
        """Name of the operation."""
        return self.name.rpartition(":")[0]


def has_inf_or_nan(datum: Any, tensor: TensorLike | None = None) -> bool:
    """Whether a value contains an infinity or NaN. May also be called with the value alone."""
    value = np.asarray(datum if tensor is None else tensor)
    if value.dtype.kind in "biuOSU":
        return False
    finite = np.isfinite(value if value.dtype.kind in "fc" else value.astype(np.float32))
    return not bool(finite.all())


# -- observing -----------------------------------------------------------------------------------------


class _Observation:
    """Calls `visit` for every tensor of a step, with its `TensorDatum`."""

    def __init__(self, graph: Graph, visit: Callable[[TensorDatum, Any], None]) -> None:
        self._graph = graph
        self._visit = visit
        self._occurrences: dict[tuple[str, str], int] = {}

    def __call__(self, device: str, op: TracedOp, values: Sequence[Array]) -> None:
        if op.name.startswith("_") or op.type in ("Send", "Recv"):
            return
        for index, value in enumerate(values):
            if hasattr(value, "dtype"):
                name = f"{op.name}:{index}"
                before = self._occurrences.get((device, name), 0)
                self._occurrences[device, name] = before + 1
                inputs = tuple(filter(None, op.label.split(", ")))
                datum = TensorDatum(name, op.type, device, inputs, self._site(op.name), before)
                self._visit(datum, value.get() if hasattr(value, "get") else value)

    def _site(self, name: str) -> str:
        op = self._graph.find_operation(name)
        return op.site if op is not None else ""


def _matcher(chosen: Any) -> Callable[[TensorDatum], bool]:
    """Whether a tensor is among `chosen`: tensors, operations, or regular expressions of names; None for all."""
    if chosen is None:
        return lambda datum: True
    if callable(chosen) and not isinstance(chosen, (Tensor, Operation)):
        return chosen
    items = [chosen] if isinstance(chosen, (str, Tensor, Operation)) else list(chosen)
    names = {item.name for item in items if not isinstance(item, str)}
    patterns = [re.compile(item) for item in items if isinstance(item, str)]

    def matches(datum: TensorDatum) -> bool:
        texts = (datum.name, datum.node_name)
        return any(text in names for text in texts) or any(p.fullmatch(text) for p in patterns for text in texts)

    return matches


def watch(
    session: Session, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, tensors: Any = None
) -> tuple[Any, dict[str, list[Any]]]:
    """Run a step and keep the values of chosen tensors.

    Args:
        session: A session of this process.
        fetches: See `tf.Session.run`.
        feed_dict: See `tf.Session.run`.
        tensors: Tensors, operations, or regular expressions of whole names; None for all.

    Returns:
        The values of the fetches; and for each tensor, by name, a list of its values: several when a loop computes it.
    """
    matches, kept = _matcher(tensors), dict[str, list[Any]]()

    def keep(datum: TensorDatum, value: TensorLike) -> None:
        if matches(datum):
            kept.setdefault(datum.name, []).append(np.array(value))

    return session.run_observed(fetches, feed_dict, _Observation(session.graph, keep)), kept


# -- files ---------------------------------------------------------------------------------------------


def dump(
    session: Session,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None,
    folder: str | Path,
    tensors: Any = None,
) -> Any:
    """Run a step and write its tensors to files ``.npy``, with a list of them; `DebugDump` reads them.

    Args:
        session: A session of this process.
        fetches: See `tf.Session.run`.
        feed_dict: See `tf.Session.run`.
        folder: Where; it is made when it is not there.
        tensors: See `watch`.

    Returns:
        The values of the fetches.
    """
    folder, matches = Path(given_path(folder, "folder")), _matcher(tensors)
    with failures_of(folder):
        folder.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = []

    def write(datum: TensorDatum, value: TensorLike) -> None:
        if matches(datum):
            array = np.asarray(value)
            file = f"{len(entries):06d}_{re.sub('[^A-Za-z0-9_.-]', '_', datum.name)[:100]}.npy"
            with failures_of(folder / file):
                np.save(folder / file, _as_stored(array), allow_pickle=False)
            dtype = as_dtype(array.dtype).name
            entries.append({**vars(datum), "inputs": list(datum.inputs), "file": file, "dtype": dtype})

    try:
        return session.run_observed(fetches, feed_dict, _Observation(session.graph, write))
    finally:
        with failures_of(folder / _MANIFEST):
            (folder / _MANIFEST).write_text(json.dumps(entries, indent=1))


def _as_stored(array: Any) -> Any:
    """The array in a form that every NumPy reads without unpickling."""
    if array.dtype == object:
        return np.array([bytes(item) for item in array.reshape(-1)], dtype=bytes).reshape(array.shape)
    if array.dtype.kind == "V":  # bfloat16
        return array.view(f"u{array.dtype.itemsize}")
    return array


class DebugDump:
    """The tensors of a step, as `dump` has written them.

    Args:
        folder: The folder.

    Attributes:
        tensors: A `TensorDatum` for each saved tensor, in the order in which they were computed.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(given_path(folder, "folder"))
        try:
            plain = json.loads((self._folder / _MANIFEST).read_text())
            self._entries = [(TensorDatum(**_fields(entry)), entry["file"], entry["dtype"]) for entry in plain]
        except FileNotFoundError as error:
            raise NotFoundError(f"{folder} holds no dumped tensors: there is no {_MANIFEST}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataLossError(f"{self._folder / _MANIFEST} is damaged: {error}") from error
        self.tensors = [datum for datum, _, _ in self._entries]

    @property
    def dumped_tensor_data(self) -> list[TensorDatum]:
        """TensorFlow's name of `tensors`."""
        return self.tensors

    def get(self, name: str, occurrence: int = 0) -> Any:
        """The value of a tensor. Raises `NotFoundError`."""
        for datum, file, dtype in self._entries:
            if datum.name == name and datum.occurrence == occurrence:
                return self._read(file, dtype)
        raise NotFoundError(f"{self._folder} has no tensor {name!r} number {occurrence}")

    def find(self, predicate: Filter) -> list[TensorDatum]:
        """The tensors for which ``predicate(datum, value)`` is true, in order."""
        return [datum for datum, file, dtype in self._entries if predicate(datum, self._read(file, dtype))]

    def _read(self, file: str, dtype: str) -> Any:
        path = self._folder / Path(file).name
        array = read_npy(str(path))
        try:
            return array.view(as_dtype(dtype).numpy) if dtype in ("bfloat16",) else array
        except ValueError as error:
            raise DataLossError(f"{path} is damaged: {error}") from error


def _fields(entry: Any) -> dict[str, Any]:
    texts = {name: str(entry[name]) for name in ("name", "op_type", "device", "site")}
    return {**texts, "inputs": tuple(map(str, entry["inputs"])), "occurrence": int(entry["occurrence"])}


# -- sessions ------------------------------------------------------------------------------------------


class _WrapperSession:
    """Base of the sessions that watch the steps of another session."""

    def __init__(self, sess: Session) -> None:
        self.rebind(sess)

    def rebind(self, sess: Session) -> None:
        """Watch the steps of this session from now on.

        Args:
            sess: A session of this process. Anything else raises `InvalidArgumentError`.
        """
        if not isinstance(sess, Session):
            raise InvalidArgumentError(f"{sess!r} is not a tf.Session")
        self._session = sess

    @property
    def session(self) -> Session:
        """The session whose steps are watched."""
        return self._session

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._session.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run a step; see `tf.Session.run`."""
        raise AssertionError("a wrapper runs steps in its own way")

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def as_default(self) -> Any:
        """Context manager under which ``tensor.eval()`` uses this."""
        return default_session_scope(self)

    def __enter__(self) -> Any:
        self._scopes = [self.graph.as_default(), self.as_default()]
        for scope in self._scopes:
            scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for scope in reversed(self._scopes):
            scope.__exit__(None, None, None)
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class LocalDebugSession(_WrapperSession):
    """A session that stops where a filter finds something, or at chosen operations.

    Args:
        sess: A session of this process.
        on_hit: ``"break"`` opens Python's debugger in the generated code behind the operation, with all values;
            ``"raise"`` raises `InvalidArgumentError`; ``"print"`` goes on. A function is called with datum and value.
            Without it, the debugger is opened if a terminal is there, and otherwise the error is raised.
        **unused: Accepted for TensorFlow 1 programs.
    """

    def __init__(self, sess: Session, on_hit: str | Callable[[TensorDatum, Any], None] | None = None, **unused: object):
        super().__init__(sess)
        if isinstance(on_hit, str) and on_hit not in ("break", "raise", "print"):
            raise InvalidArgumentError(f"on_hit is 'break', 'raise', 'print' or a function, not {on_hit!r}")
        self._on_hit = on_hit or ("break" if sys.stdin is not None and sys.stdin.isatty() else "raise")
        self._filters: dict[str, Filter] = {}
        self._stops: list[Callable[[TensorDatum], bool]] = []

    def add_tensor_filter(self, filter_name: str, tensor_filter: Filter) -> None:
        """Stop at tensors for which ``tensor_filter(datum, value)`` is true."""
        self._filters[filter_name] = tensor_filter

    def break_on(self, *operations: Any) -> None:
        """Stop after these have run: operations, tensors, or regular expressions of whole names."""
        self._stops.append(_matcher(operations))

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run a step; see `tf.Session.run`."""
        try:
            return self._session.run_observed(fetches, feed_dict, _Observation(self.graph, self._visit))
        except InternalError as error:
            if isinstance(error.__cause__, bdb.BdbQuit):
                raise CancelledError("the debugger was left") from None
            raise

    def _visit(self, datum: TensorDatum, value: TensorLike) -> None:
        reasons = [name for name, function in self._filters.items() if function(datum, value)]
        if any(stop(datum) for stop in self._stops):
            reasons.append("chosen")
        if not reasons:
            return
        if callable(self._on_hit):
            self._on_hit(datum, value)
            return
        message = describe(datum, value, ", ".join(reasons))
        if self._on_hit == "raise":
            raise InvalidArgumentError(message, op_name=datum.node_name, device=datum.device, site=datum.site or None)
        print(message)
        if self._on_hit == "break":
            _break_at(_generated_frame())


def _break_at(frame: FrameType) -> None:
    """Open the debugger when `frame` continues, not in the functions that must return first."""
    debugger = pdb.Pdb()
    debugger.reset()
    outer: FrameType | None = frame
    while outer is not None:
        outer.f_trace = debugger.trace_dispatch
        debugger.botframe = outer
        outer = outer.f_back
    debugger.set_next(frame)
    sys.settrace(debugger.trace_dispatch)


def _generated_frame() -> FrameType:
    """The innermost frame of generated code, which holds the values of the step."""
    frame = sys._getframe()
    while frame.f_back is not None and not frame.f_code.co_filename.startswith(SEGMENT):
        frame = frame.f_back
    return frame


LocalCLIDebugWrapperSession = LocalDebugSession


class DumpingDebugWrapperSession(_WrapperSession):
    """A session that writes the tensors of every step to a folder of its own, ``run_1``, ``run_2`` and so on.

    Args:
        sess: A session of this process.
        session_root: Folder of these folders.
        watch_fn: Which tensors: what `watch` takes, or a function of the `TensorDatum`.
        **unused: Accepted for TensorFlow 1 programs.
    """

    def __init__(self, sess: Session, session_root: str | Path, watch_fn: Any = None, **unused: object) -> None:
        super().__init__(sess)
        self._root = Path(given_path(session_root, "session_root"))
        self._watched = watch_fn
        self._runs = 0

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run a step; see `tf.Session.run`."""
        self._runs += 1
        return dump(self._session, fetches, feed_dict, self._root / f"run_{self._runs}", self._watched)


DebugDumpDir = DebugDump


def describe(datum: TensorDatum, value: TensorLike, reason: str = "") -> str:
    """A tensor in words: where it comes from, and what it holds."""
    array = np.asarray(value)
    lines = [f"{datum.name} = {datum.op_type}({', '.join(datum.inputs)})" + (f" [{reason}]" if reason else "")]
    if datum.site:
        lines.append(f"  made at {datum.site}")
    kind = as_dtype(array.dtype).name
    lines.append(f"  {kind}{list(array.shape)} on {datum.device}, computed {datum.occurrence} times before")
    if array.dtype.kind == "f" and array.size:
        finite = array[np.isfinite(array)]
        bad = f"{int(np.isnan(array).sum())} NaN, {int(np.isinf(array).sum())} infinite"
        lines.append(f"  {bad}" + (f", others {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""))
    lines.append(f"  {_elements(array)}")
    return "\n".join(lines)


def _elements(array: Any) -> str:
    shown: Iterable[Any] = array.reshape(-1)[:_SHOWN_ELEMENTS].tolist()
    more = ", ..." if array.size > _SHOWN_ELEMENTS else ""
    return "[" + ", ".join(f"{item:.6g}" if isinstance(item, float) else str(item) for item in shown) + more + "]"
