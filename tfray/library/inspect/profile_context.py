"""``tf.contrib.tfprof.ProfileContext``: records and profiles some of the steps that sessions run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from tfray.formats import files
from tfray.formats.files import PathLike, as_path
from tfray.formats.step_stats import RunMetadata
from tfray.library.inspect.profiler import ProfileNode, ProfileOptionBuilder, Profiler
from tfray.options import RunOptions
from tfray.session import Session

__all__ = ["ProfileContext"]

_WARMUP_STEPS: Final = 10
_MOST_STEPS: Final = 100
_VIEWS: Final[Mapping[str, Callable[[Profiler, Any], ProfileNode]]] = {
    "code": Profiler.profile_python,
    "graph": Profiler.profile_graph,
    "op": Profiler.profile_operations,
    "scope": Profiler.profile_name_scope,
}

_current: list[ProfileContext] = []


class ProfileContext:
    """Within this, steps of all sessions are counted, and some are recorded for a `Profiler`.

    A step is a call of `Session.run`, the first is number 0. At most 101 are recorded.

    Args:
        profile_dir: Folder for profiles.
        trace_steps: Steps to record. When None, after ten steps each first one of what is fetched.
        dump_steps: Steps after which the profile so far is written, as text, by name scope: ``profile_STEP``; 100 when
            None.
        enabled: Whether to do anything.
        debug: Write what is recorded of each step, too, as text: ``run_meta_STEP``.

    Raises:
        ValueError: There is no folder, or there are more than 100 steps to record.
        RuntimeError: When entered: another is active.
    """

    def __init__(
        self,
        profile_dir: PathLike | None,
        trace_steps: Collection[int] | None = None,
        dump_steps: Collection[int] | None = None,
        enabled: bool = True,
        debug: bool = False,
    ) -> None:
        self._is_enabled, self._debug = enabled, debug
        if enabled and not profile_dir:
            raise ValueError("Must have a directory for profile.")
        if enabled and trace_steps is not None and len(trace_steps) > _MOST_STEPS:
            raise ValueError(f"Only support tracing up to {_MOST_STEPS} steps.")
        self._folder = as_path(profile_dir or "")
        self._chooses = trace_steps is None
        self._traced = set(trace_steps or ())
        self._dumped = {_MOST_STEPS} if dump_steps is None else set(dump_steps)
        self._seen: set[str] = set()
        self._step = self._count = 0
        self._traces_next = self._dumps_next = False
        self._automatic: list[tuple[str, Any, Collection[int]]] = []
        self._found: dict[str, dict[int, ProfileNode]] = {}
        self._profiler: Profiler | None = None
        self._lock = threading.Lock()

    @property
    def profiler(self) -> Any:
        """The `Profiler` of the steps so far; None where nothing is enabled."""
        if not self._is_enabled:
            return None
        self._profiler = self._profiler or Profiler()
        return self._profiler

    def add_auto_profiling(self, cmd: str, options: Mapping[str, Any], profile_steps: Collection[int]) -> None:
        """Record some steps, and profile after each of them.

        Args:
            cmd: View: ``scope``, ``graph``, ``op`` or ``code``.
            options: What `ProfileOptionBuilder` builds.
            profile_steps: The steps.

        Raises:
            ValueError: There is no such view.
        """
        if cmd not in _VIEWS:
            raise ValueError(f"Unknown cmd: {cmd}; there are {', '.join(_VIEWS)}")
        self._automatic.append((cmd, options, profile_steps))
        self._traced.update(profile_steps)

    def get_profiles(self, cmd: str) -> dict[int, ProfileNode]:
        """What `add_auto_profiling` has made for a view, by step. Raises `ValueError` when there is nothing."""
        if cmd not in self._found:
            raise ValueError(f"No autoprofiler for command: {cmd}, was run")
        return self._found[cmd]

    def trace_next_step(self) -> None:
        """Record the next step."""
        self._traces_next = True

    def dump_next_step(self) -> None:
        """Write the profile after the next step."""
        self._dumps_next = True

    def __enter__(self) -> ProfileContext:
        if self._is_enabled:
            if _current:
                raise RuntimeError("Already in context or context not cleaned.")
            _current.append(self)
            self._run = Session.run
            Session.run = _run  # type: ignore[assignment,method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_enabled:
            Session.run = self._run  # type: ignore[method-assign]
            _current.remove(self)

    def _run_step(
        self,
        session: Session,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None,
        options: RunOptions | None,
        run_metadata: RunMetadata | None,
    ) -> Any:
        step = self._step
        self._step += 1
        traces, dumps = self._should_trace(step, fetches), self._dumps_next or step in self._dumped
        self._traces_next = self._dumps_next = False
        if traces:
            run_metadata = RunMetadata() if run_metadata is None else run_metadata
            timeout_in_ms = 0 if options is None else options.timeout_in_ms
            options = RunOptions(trace_level=RunOptions.FULL_TRACE, timeout_in_ms=timeout_in_ms)
        values = self._run(session, fetches, feed_dict, options, run_metadata)
        if traces:
            self.profiler._graph = session.graph
            self.profiler.add_step(step, run_metadata)
            if self._debug:
                self._write(f"run_meta_{step}", str(run_metadata))
        if dumps:
            files.make_folders(self._folder)
            path = f"{self._folder.rstrip('/')}/profile_{step}"
            shown = ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory()).with_file_output(path).build()
            self.profiler.profile_name_scope(shown)
        for cmd, chosen, steps in self._automatic:
            if step in steps:
                self._found.setdefault(cmd, {})[step] = _VIEWS[cmd](self.profiler, chosen)
        return values

    def _should_trace(self, step: int, fetches: Any) -> bool:
        chosen = self._traces_next or step in self._traced
        if self._chooses and step > _WARMUP_STEPS and not chosen:
            chosen = str(fetches) not in self._seen
            self._seen.add(str(fetches))
        if not chosen or self._count > _MOST_STEPS:
            return False
        self._count += 1
        return True

    def _write(self, name: str, text: str) -> None:
        files.make_folders(self._folder)
        files.write_bytes(f"{self._folder.rstrip('/')}/{name}", text.encode())


def _run(
    session: Session,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    options: RunOptions | None = None,
    run_metadata: RunMetadata | None = None,
) -> Any:
    """`Session.run` within a context; of steps at the same time one is counted."""
    context = _current[-1]
    if not context._lock.acquire(blocking=False):
        return context._run(session, fetches, feed_dict, options, run_metadata)
    try:
        return context._run_step(session, fetches, feed_dict, options, run_metadata)
    finally:
        context._lock.release()
