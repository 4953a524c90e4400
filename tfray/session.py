"""Sessions: run parts of a graph, compiling each combination of fetches and feeds once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tfray.errors import ArgumentError, ClosedError, InvalidArgumentError, OpError
from tfray.formats.step_stats import RunMetadata
from tfray.formats.tensorboard_graph import to_graph_proto
from tfray.framework import dtypes
from tfray.framework.arguments import checked, expectation
from tfray.framework.device_spec import DeviceName
from tfray.framework.dtypes import DType
from tfray.framework.feed import Feed
from tfray.framework.graph import (
    Graph,
    Operation,
    Tensor,
    default_session_scope,
    get_default_graph,
)
from tfray.ops.state import session_ops
from tfray.options import ConfigProto, OptimizerOptions, RunOptions, get_log_device_placement, session_config
from tfray.placement.pipeline import CompiledStep, compile_step
from tfray.placement.prune import prune
from tfray.placement.resource_homes import ResourceHomes
from tfray.placement.several import several_at_once
from tfray.runtime.local_runner import LocalRunner, LocalStep
from tfray.runtime.plan import Partition
from tfray.runtime.runner import RegisteredStep, Runner
from tfray.runtime.step_report import step_stats
from tfray.runtime.tracing import Observer
from tfray.session_target import placer_for, reset_target, runner_for

if TYPE_CHECKING:
    from tfray.placement.cost_placer import CostPlacer

_CALLABLE: Final = object()
"""Begins the keys of steps that `Session.make_callable` compiles. They stay valid when the graph changes."""

_OBSERVED: Final = object()
"""Begins the keys of steps that `Session.run_observed` compiles. They are not optimised."""

_MOST_ADAPTATIONS: Final = 3
"""How often a step is placed anew by measured times. Each time costs a recorded run and a compilation."""

_RUN_OPTIONS: Final = expectation(RunOptions | None)

_partial_runs: Final = itertools.count()


class Session:
    """Runs operations of a graph and evaluates tensors.

    Args:
        target: Where to run. ``""`` runs in this process, without Ray; a `tfray.Cluster` runs on its devices; the
            target of a `tf.train.Server` on those of its cluster.
        graph: The graph to run; the default graph when None.
        config: Options; those of `tf.config` when None.

    A session may be used from several threads at once. Local sessions own their variables; sessions on one
    cluster share the variables that live on its devices, as in TensorFlow. Leaving a ``with`` block, or `close`,
    cancels what still runs and releases everything.
    """

    @checked
    def __init__(self, target: Any = "", graph: Graph | None = None, config: ConfigProto | None = None) -> None:
        self._graph = graph or get_default_graph()
        self._target = target if isinstance(target, str) else ""
        self._config = session_config(config)
        self._placer = placer_for(target, self._config)
        self._runner: Runner = runner_for(target, self._config)
        self._steps: dict[tuple[Any, ...], _PreparedStep | _AdaptingStep] = {}
        self._partial_steps: dict[str, _PartialStep] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._entered: list[Any] = []

    @staticmethod
    @checked
    def reset(target: Any, containers: Sequence[str] | None = None, config: ConfigProto | None = None) -> None:
        """Drop the variables and other resources in containers, and end all sessions of a target.

        Steps of sessions that have been ended raise `AbortedError`; in this process, `CancelledError`.

        Args:
            target: As of `Session`. ``""`` stands for this process, whose sessions keep nothing.
            containers: Names that the program gives by `tf.container`; the name of a job stands for what its devices
                have in no container. All containers when None or empty.
            config: Options, of which only ``device_filters`` count.

        Raises:
            UnavailableError: A server does not answer.
        """
        reset_target(target, containers or (), config or ConfigProto())

    @property
    def graph(self) -> Graph:
        """The graph that this session runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a message, a `tf.GraphDef`."""
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> str:
        """The target of this session."""
        return self._target

    def list_devices(self) -> list[DeviceName]:
        """Full names of the devices of this session, which tell more of them as attributes."""
        return [DeviceName(name) for name in self._runner.devices]

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run what `fetches` need and return their values.

        Args:
            fetches: A tensor, operation, variable, `IndexedSlices` or name, or lists, tuples, named tuples and
                dictionaries of these, nested at will.
            feed_dict: Values for any tensors, by tensor or name, or tuples of values by tuples of these. A value is
                cast to the tensor's dtype as `numpy.asarray` does. What is fed is not computed.
            options: Timeout of this step, and what to record of it.
            run_metadata: Takes what is recorded, in place of what it holds.

        Returns:
            The same structure with NumPy values; None for operations.

        Raises:
            InvalidArgumentError: A fetch or feed is not in the graph, a value does not fit, a placeholder lacks one.
            OpError: What an operation raised.
            RuntimeError: The graph is empty.
            CancelledError: The session was closed, now or (a `ClosedError`, which is also a `RuntimeError`) before.
            ArgumentError: Which is a `TypeError` and a `ValueError`: a fetch or feed cannot be one, or does not fit.
        """
        if self._closed:
            raise ClosedError("Attempted to use a closed Session.")
        key = (_key(fetches), tuple(feed_dict) if feed_dict else (), self._graph.version)
        try:
            step = self._steps.get(key)
        except TypeError:  # something that cannot be hashed cannot be fetched either: `_Structure` raises a clear error
            _Structure(self, fetches)
            raise
        if step is None:
            step = self._prepare(key, fetches, list(_checked_feeds(feed_dict or {})))
        values = list(feed_dict.values()) if feed_dict else ()
        try:
            if options is None:
                return step.run(values, self._timeout_s())
            timeout_s = self._timeout_s(_RUN_OPTIONS.take("Session.run: options", options).timeout_in_ms)
            if run_metadata is None:
                return step.run(values, timeout_s)
            return step.run_recorded(values, timeout_s, options, run_metadata)
        except OpError as error:
            _find_operation(error, self._graph)
            raise

    def run_observed(self, fetches: Any, feed_dict: Mapping[Any, Any] | None, observer: Observer) -> Any:
        """Run every operation as written, in this process, and show what each returns, for debuggers.

        Args:
            fetches: See `run`.
            feed_dict: See `run`.
            observer: Called after each operation, on the thread that ran it, with the device's name, the operation and
                its values, which it must not change or keep. What it raises ends the step.
        """
        if not isinstance(self._runner, LocalRunner):
            raise InvalidArgumentError("steps on a cluster cannot be observed: use a session of this process")
        feeds = dict(feed_dict or {})
        key = (_OBSERVED, _key(fetches), tuple(feeds), self._graph.version)
        step = self._steps.get(key) or self._prepare(key, fetches, list(feeds))
        return step.run_observed(list(feeds.values()), self._timeout_s(), observer)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the values of `feed_list`, in order, that returns the values of `fetches`.

        It saves the time that `run` takes to recognise its arguments.

        Args:
            fetches: As for `run`.
            feed_list: The tensors to feed.
            accept_options: Whether the function takes ``options=`` and ``run_metadata=``, as `run` does.
        """
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise ArgumentError(f"feed_list is {feed_list!r}, expected a list of tensors")
        feeds = list(feed_list or ())
        step = self._prepare((_CALLABLE, _key(fetches), tuple(feeds), self._graph.version), fetches, feeds)

        def call(*values: Any, options: RunOptions | None = None, run_metadata: RunMetadata | None = None) -> Any:
            if len(values) != len(feeds):
                raise InvalidArgumentError(f"the callable takes {len(feeds)} values, got {len(values)}")
            if not accept_options and (options is not None or run_metadata is not None):
                raise ArgumentError("this callable takes no options: make it with accept_options=True")
            if self._closed:
                raise ClosedError("Attempted to use a closed Session.")
            if options is not None:
                options = _RUN_OPTIONS.take("options", options)
            timeout_s = self._timeout_s(options.timeout_in_ms if options else 0)
            try:
                if run_metadata is None:
                    return step.run(values, timeout_s)
                return step.run_recorded(values, timeout_s, options or RunOptions(), run_metadata)
            except OpError as error:
                _find_operation(error, self._graph)
                raise

        return call

    def make_several(self, operation: Operation) -> Callable[[], Any] | None:
        """A function that does at once what several steps of an operation of a queue runner do that need not wait.

        None if there is no such function. When it fails, what it has not added is back: `make_callable` tells why.
        """
        found = several_at_once(operation) if isinstance(self._runner, LocalRunner) and not self._timeout_s() else None
        if found is None:
            return None
        try:
            compiled = _compile(self._graph, self._runner, self._config, ([], [found], []), self._placer)
        except OpError:  # what it says of the operation itself, `make_callable` says better
            return None
        step = self._runner.register(compiled.partitions, self._graph.functions)
        feeds: list[list[Any]] = [[] for _ in compiled.partitions]
        return lambda: step.run(feeds)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Begin a step that is run piece by piece, by `partial_run`: each operation runs once in all pieces together.

        Args:
            fetches: All that will be fetched, as for `run`.
            feeds: All that will be fed: a tensor, a name, or a list of them.

        Returns:
            A handle for `partial_run`.

        Raises:
            InvalidArgumentError: There are no fetches, or one is not in the graph.
            CancelledError: The session was closed.
        """
        if self._closed:
            raise ClosedError("Attempted to use a closed Session.")
        listed = tuple(feeds) if isinstance(feeds, (list, tuple)) else () if feeds is None else (feeds,)
        step = _PartialStep(self, fetches, [_fed_tensor(self._graph, part) for part in _parts_of_feed(listed)])
        handle = f"partial_run_{next(_partial_runs)}"
        self._partial_steps[handle] = step
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Go on with a step that `partial_run_setup` has begun: feed more, and fetch more.

        Args:
            handle: What `partial_run_setup` returned.
            fetches: As for `run`; each was announced, and has not been fetched yet.
            feed_dict: As for `run`; each was announced, and has not been fed yet.

        Returns:
            As `run`.

        Raises:
            InvalidArgumentError: What is fetched or fed was not announced, or was before, or a value is missing.
        """
        if self._closed:
            raise ClosedError("Attempted to use a closed Session.")
        if handle not in self._partial_steps:
            raise InvalidArgumentError(f"{handle!r} is not the handle of a partial run: it has ended, or never began")
        step = self._partial_steps[handle]
        result = step.run(fetches, _checked_feeds(feed_dict or {}), self._timeout_s())
        if not step.open_fetches:
            del self._partial_steps[handle]
        return result

    def _timeout_s(self, timeout_ms: int = 0) -> float | None:
        timeout_ms = timeout_ms or self._config.operation_timeout_in_ms
        return timeout_ms / 1000 if timeout_ms else None

    def _prepare(self, key: tuple[Any, ...], fetches: Any, feeds: Sequence[Any]) -> _PreparedStep | _AdaptingStep:
        if not self._graph.op_count:
            raise RuntimeError("The Session graph is empty. Build the graph first, or pass tf.Session its graph")
        with self._lock:
            if key not in self._steps:
                # Steps compiled for earlier versions of the graph may still run, but are not used for new runs.
                version = self._graph.version
                for stale in [other for other in self._steps if other[-1] != version and other[0] is not _CALLABLE]:
                    self._steps.pop(stale).close()
                config = self._config
                if key[0] is _OBSERVED:
                    config = ConfigProto()
                    config.CopyFrom(self._config)
                    config.graph_options.optimizer_options.opt_level = OptimizerOptions.L0
                runner, placer = self._runner, self._placer
                if config.placement == "cost" and config.placement_period > 0 and key[0] is not _OBSERVED:
                    placer = cast("CostPlacer", placer)
                    self._steps[key] = _AdaptingStep(self, runner, config, fetches, feeds, placer)
                else:
                    self._steps[key] = _PreparedStep(self, runner, config, fetches, feeds, placer)
            return self._steps[key]

    def _forget_homes(self) -> None:
        """Place resources anew from now on: they have moved. Steps are compiled anew when the graph says so."""
        self._placer.homes.clear()

    def close(self) -> None:
        """Cancel what runs and release all resources. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._runner.close()
            self._steps.clear()

    def as_default(self) -> Any:
        """Context manager under which ``tensor.eval()`` and ``operation.run()`` use this session."""
        return default_session_scope(self)

    def __enter__(self) -> Session:
        scopes = [self._graph.as_default(), self.as_default()]
        for scope in scopes:
            scope.__enter__()
        self._entered.append(scopes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for scope in reversed(self._entered.pop()):
            scope.__exit__(None, None, None)
        self.close()


class InteractiveSession(Session):
    """A session that is the default session from its creation until it is closed, for notebooks and shells."""

    @checked
    def __init__(self, target: Any = "", graph: Graph | None = None, config: ConfigProto | None = None) -> None:
        super().__init__(target, graph, config)
        self._scope = self.as_default()
        self._scope.__enter__()

    def close(self) -> None:
        """Stop being the default session, and release all resources."""
        if not self._closed:
            self._scope.__exit__(None, None, None)
        super().close()


class TensorHandle:
    """A value that stays on its device: what `Session.run` returns for `tf.get_session_handle`.

    It can be fed in place of a value, to the session that made it.
    """

    def __init__(self, handle: Any, dtype: DType, session: Session) -> None:
        self._handle = handle.decode() if isinstance(handle, bytes) else str(handle)
        self._dtype = dtype
        self._session = session

    @property
    def handle(self) -> str:
        """The text that `tf.get_session_tensor` and `tf.delete_session_tensor` take."""
        return self._handle

    def eval(self) -> Any:
        """The value, as an array."""
        holder, value = self._built("value", lambda: session_ops.get_session_tensor(self._handle, self._dtype))
        return self._session.run(value, {holder: self._handle})

    _fed_value = eval

    def delete(self) -> None:
        """Forget the value."""
        holder, deleter = self._built("deleter", lambda: session_ops.delete_session_tensor(self._handle))
        self._session.run(deleter, {holder: self._handle})

    def get_raw_handle(self) -> str:
        """The text of the handle, which the program itself has to delete then."""
        return self._handle

    def _built(self, what: str, build: Callable[[], Any]) -> Any:
        """Operations that are the same for all handles of a device and dtype: they are added to the graph once."""
        graph = self._session.graph
        known: dict[Any, Any] = graph.extra("session_tensors", dict)
        key = what, self._dtype, self._handle.rpartition(";")[2]
        if key not in known:
            with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
                known[key] = build()
        return known[key]

    def __str__(self) -> str:
        return self._handle


# -- one combination of fetches and feeds --------------------------------------------------------------


def _compile(
    graph: Graph,
    runner: Runner,
    config: ConfigProto,
    wanted: tuple[list[Tensor], list[Operation], list[Tensor]],
    placer: ResourceHomes,
    finished: Collection[Operation] = (),
) -> CompiledStep:
    """The partitions to register for `wanted`: tensors, further operations, and fed tensors."""
    placer.settle(graph, runner.devices, config.allow_soft_placement)
    compiled = compile_step(
        *wanted,
        runner.devices,
        allow_soft_placement=config.allow_soft_placement,
        optimize=config.graph_options.optimizer_options.opt_level != OptimizerOptions.L0,
        joint_policy=placer,
        sent_dtype=dtypes.bfloat16 if config.graph_options.enable_bfloat16_sendrecv else None,
        finished=finished,
    )
    if config.log_device_placement or get_log_device_placement():
        for part in compiled.partitions:
            for op in part.graph.get_operations():
                print(f"{op.name}: ({op.type}) {part.device}")
    return compiled


class _PreparedStep:
    """A compiled step with the conversions around it."""

    def __init__(
        self,
        session: Session,
        runner: Runner,
        config: ConfigProto,
        fetches: Any,
        feeds: Sequence[Any],
        placer: ResourceHomes,
        finished: Collection[Operation] = (),
    ) -> None:
        graph = session.graph
        # A sparse tensor, or a tuple, is fed as the tensors that it consists of.
        self._composites = list(feeds) if any(map(_is_composite_feed, feeds)) else None
        tensors = [_fed_tensor(graph, part) for feed in feeds for part in _parts_of_feed(feed)]
        self._feeds = [Feed(tensor) for tensor in tensors]
        fed = {tensor: i for i, tensor in enumerate(tensors)}
        if len(fed) < len(self._feeds):
            raise InvalidArgumentError("the same tensor is fed twice, under two names")
        structure = _Structure(session, fetches)
        self._rebuild = structure.rebuild
        computed = list(dict.fromkeys(t for t in structure.tensors if t not in fed))
        wanted = computed, structure.operations, list(fed)
        self._partition_feeds: list[list[int]] = []
        self._registered: RegisteredStep | None = None
        self._partitions: list[Partition] = []
        places: dict[Tensor, tuple[int, int]] = {}
        if computed or structure.operations:
            compiled = _compile(graph, runner, config, wanted, placer, finished)
            self._partition_feeds = compiled.feeds
            self._partitions = list(compiled.partitions)
            self._registered = runner.register(compiled.partitions, graph.functions)
            places = dict(zip(computed, compiled.fetches, strict=True))
        self._nothing_fed: list[list[Any]] = [[] for _ in self._partition_feeds]
        # Where each fetched tensor's value is: (partition, index of the fetch), or (-1, index of the feed).
        self._sources = [(-1, fed[t]) if t in fed else places[t] for t in structure.tensors]

    def run(self, values: Sequence[Any], timeout_s: float | None) -> Any:
        fed: list[Any] = []
        feeds = self._nothing_fed
        if self._feeds:
            values = self._parts(values)
            fed = [feed.convert(value) for feed, value in zip(self._feeds, values, strict=True)]
            feeds = [[fed[i] for i in indices] for indices in self._partition_feeds]
        outputs = [] if self._registered is None else self._registered.run(feeds, timeout_s)
        return self._result(values, fed, outputs)

    def run_recorded(
        self, values: Sequence[Any], timeout_s: float | None, options: RunOptions, run_metadata: RunMetadata
    ) -> Any:
        """Run, and put what `options` ask for into `run_metadata`, in place of what it holds."""
        values = self._parts(values)
        fed = [feed.convert(value) for feed, value in zip(self._feeds, values, strict=True)]
        feeds = [[fed[i] for i in indices] for indices in self._partition_feeds]
        run_metadata.Clear()
        outputs: list[list[Any]] = []
        if self._registered is not None and options.trace_level > RunOptions.NO_TRACE:
            outputs, records = self._registered.run_traced(feeds, timeout_s, options.trace_level)
            run_metadata.step_stats.CopyFrom(step_stats(records))
        elif self._registered is not None:
            outputs = self._registered.run(feeds, timeout_s)
        if options.output_partition_graphs:
            for partition in self._partitions:
                run_metadata.partition_graphs.add().CopyFrom(to_graph_proto(partition.graph.as_plain()))
        return self._result(values, fed, outputs)

    def run_observed(self, values: Sequence[Any], timeout_s: float | None, observer: Observer) -> Any:
        """Run, and show every value to `observer`."""
        values = self._parts(values)
        fed = [feed.convert(value) for feed, value in zip(self._feeds, values, strict=True)]
        outputs: list[list[Any]] = []
        if isinstance(self._registered, LocalStep):
            feeds = [[fed[i] for i in indices] for indices in self._partition_feeds]
            outputs, _ = self._registered.run_traced(feeds, timeout_s, observer=observer)
        return self._result(values, fed, outputs)

    def _parts(self, values: Sequence[Any]) -> Sequence[Any]:
        """The fed values, one for each fed tensor."""
        if self._composites is None:
            return values
        pairs = zip(self._composites, values, strict=True)
        return [part for feed, value in pairs for part in _parts_of_value(feed, value)]

    def _result(self, values: Sequence[Any], fed: Sequence[Any], outputs: Sequence[Sequence[Any]]) -> Any:
        """What was asked for: results of the step, and what was fed."""
        feeds = self._feeds
        return self._rebuild(
            [_plain(outputs[p][i]) if p >= 0 else feeds[i].echo(values[i], fed[i]) for p, i in self._sources]
        )

    @property
    def devices(self) -> dict[str, str]:
        """The device of each operation."""
        return {op.name: part.device for part in self._partitions for op in part.graph.get_operations()}

    def close(self) -> None:
        if self._registered is not None:
            self._registered.close()


class _AdaptingStep:
    """A step that is placed anew a few times, by the times that its operations were measured to take."""

    def __init__(
        self,
        session: Session,
        runner: Runner,
        config: ConfigProto,
        fetches: Any,
        feeds: Sequence[Any],
        placer: CostPlacer,
    ) -> None:
        self._place = partial(_PreparedStep, session, runner, config, fetches, feeds, placer)
        self._step = self._place()
        self._former: list[_PreparedStep] = []
        self._placer = placer
        self._period = config.placement_period
        self._left = self._period * _MOST_ADAPTATIONS
        self._lock = threading.Lock()

    def run(self, values: Sequence[Any], timeout_s: float | None) -> Any:
        if not self._left:
            return self._step.run(values, timeout_s)
        with self._lock:
            self._left = max(0, self._left - 1)
            is_due = self._left % self._period == 0
        if not is_due:
            return self._step.run(values, timeout_s)
        metadata = RunMetadata()
        result = self._step.run_recorded(values, timeout_s, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
        with self._lock:
            self._placer.cost.measured.add(metadata)
            placed = self._place()
            if placed.devices == self._step.devices:
                placed.close()
            else:  # steps that run now go on as they began
                self._former.append(self._step)
                self._step = placed
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    def close(self) -> None:
        for step in (*self._former, self._step):
            step.close()


def _find_operation(error: OpError, graph: Graph) -> None:
    """Set `error.op` to the operation of the user's graph that has the name of the one that failed, if there is one."""
    if error.op is None and error.op_name is not None:
        error.op = graph.find_operation(error.op_name)


class _PartialStep:
    """A step that is run piece by piece. A piece keeps the values that later ones need of its operations."""

    def __init__(self, session: Session, fetches: Any, feeds: Sequence[Tensor]) -> None:
        structure = _Structure(session, fetches)
        self._session = session
        self.open_fetches: set[Tensor | Operation] = {*structure.tensors, *structure.operations}
        if not self.open_fetches:
            raise InvalidArgumentError("partial_run_setup: specify at least one target to fetch or execute.")
        self._fetches = frozenset(self.open_fetches)
        self._feeds = frozenset(feeds)
        self._open_feeds = set(feeds)
        self._values: dict[Tensor, Any] = {}
        self._finished: set[Operation] = set()
        self._ops = set(prune(_operations(self.open_fetches), feeds))
        self._lock = threading.Lock()

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any], timeout_s: float | None) -> Any:
        with self._lock:
            return self._run(fetches, feed_dict, timeout_s)

    def _run(self, fetches: Any, feed_dict: Mapping[Any, Any], timeout_s: float | None) -> Any:
        session = self._session
        structure = _Structure(session, fetches)
        wanted: set[Tensor | Operation] = {*structure.tensors, *structure.operations}
        if unknown := wanted - self.open_fetches:
            raise _refused(unknown.pop(), self._fetches, "fetched")
        given: dict[Tensor, Any] = {}
        for feed, value in feed_dict.items():
            parts = zip(_parts_of_feed(feed), _parts_of_value(feed, value), strict=True)
            given.update((_fed_tensor(session.graph, part), held) for part, held in parts)
        if strangers := given.keys() - self._open_feeds:
            raise _refused(strangers.pop(), self._feeds, "fed")
        fed = self._values | given
        ops = {op for op in prune(_operations(wanted), fed, self._finished) if op in self._ops}
        needed = {tensor for op in ops for tensor in op.inputs} | set(structure.tensors)
        if missing := needed & (self._open_feeds - given.keys()):
            raise InvalidArgumentError(f"partial_run: {missing.pop()!r} was announced as a feed, and has no value yet")
        waiting = [tensor for op in self._ops - self._finished - ops for tensor in op.inputs]
        waiting += [element for element in self.open_fetches - wanted if isinstance(element, Tensor)]
        kept = [
            tensor
            for tensor in dict.fromkeys(waiting)
            if tensor.op in ops and tensor not in fed and session.graph.is_feedable(tensor)
        ]
        config = session._config
        step = _PreparedStep(
            session, session._runner, config, (fetches, kept), list(fed), session._placer, self._finished
        )
        try:
            result, held = step.run(list(fed.values()), timeout_s)
        finally:
            step.close()
        self._values = {**fed, **dict(zip(kept, held, strict=True))}
        # What makes a handle, which cannot be fed, is run again where a later piece needs it, which changes nothing.
        self._finished.update(op for op in ops if all(map(session.graph.is_feedable, op.outputs)))
        self._open_feeds -= given.keys()
        self.open_fetches -= wanted
        return result


def _operations(elements: Collection[Tensor | Operation]) -> list[Operation]:
    return [element.op if isinstance(element, Tensor) else element for element in elements]


def _plain(value: Any) -> Any:
    """A scalar for an array of rank 0: a number of NumPy, or bytes."""
    return value[()] if type(value) is np.ndarray and value.ndim == 0 else value


def _is_composite_feed(feed: Any) -> bool:
    return isinstance(feed, tuple) or hasattr(feed, "_feed_parts")


def _parts_of_feed(feed: Any) -> Sequence[Any]:
    """What the key of a `feed_dict` consists of: tensors or names."""
    if isinstance(feed, tuple):
        return [part for item in feed for part in _parts_of_feed(item)]
    parts: Sequence[Any] = feed._feed_parts() if hasattr(feed, "_feed_parts") else [feed]
    return parts


def _parts_of_value(feed: Any, value: Any) -> Sequence[Any]:
    """The values of the tensors that `feed` consists of, given its own."""
    if not _is_composite_feed(feed):
        return [value]
    if pairs := getattr(feed, "_feed_pairs", None):
        return [part for _, part in pairs(value)]
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    if isinstance(feed, tuple):
        if len(parts) != len(feed):
            raise InvalidArgumentError(f"{feed!r} is fed with a tuple of {len(feed)} values, got {value!r}")
        return [part for item, held in zip(feed, parts, strict=True) for part in _parts_of_value(item, held)]
    parts = [part for part in parts if part is not None]
    wanted = len(feed._feed_parts())
    if len(parts) == 2 < wanted and feed.shape.is_fully_defined():
        parts.append(feed.shape.as_list())  # the graph knows it
    if len(parts) != wanted:
        raise InvalidArgumentError(
            "a sparse tensor is fed with a tf.SparseTensorValue, or indices, values and shape; "
            f"tf.IndexedSlices with values, indices and shape; got {value!r}"
        )
    return parts


def _checked_feeds(feed_dict: Any) -> Mapping[Any, Any]:
    if not isinstance(feed_dict, Mapping):
        raise ArgumentError(f"feed_dict is {feed_dict!r}, expected a dictionary from tensors to values")
    return feed_dict


def _refused(element: Any, announced: Collection[Any], done: str) -> InvalidArgumentError:
    why = f"has already been {done}." if element in announced else "was not specified in partial_run_setup."
    return InvalidArgumentError(f"partial_run: {element.name} {why}")


def _fed_tensor(graph: Graph, feed: Any) -> Tensor:
    """The tensor that a key of `feed_dict` names."""
    try:
        tensor = graph.as_graph_element(feed, allow_operation=False)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from error
    assert isinstance(tensor, Tensor)
    tensor = graph.value_of(tensor)
    if not graph.is_feedable(tensor):
        is_handle = tensor.dtype in (dtypes.resource, dtypes.variant)
        why = "it is a handle; feed the variable's value" if is_handle else "prevent_feeding was called on it"
        raise InvalidArgumentError(f"{tensor!r} may not be fed: {why}")
    return tensor


class _Structure:
    """Nested fetches, flattened into tensors and operations, and the way back."""

    def __init__(self, session: Session, fetches: Any) -> None:
        self._session = session
        self._graph = session.graph
        self.tensors: list[Tensor] = []
        self.operations: list[Operation] = []
        self.rebuild = self._visit(fetches)

    def _visit(self, fetch: Any) -> Callable[[list[Any]], Any]:
        """Record what `fetch` names, and return the function from all tensor values to its value."""
        if isinstance(fetch, dict):
            parts = [(key, self._visit(item)) for key, item in fetch.items()]
            return lambda values: _as_mapping(type(fetch), [(key, part(values)) for key, part in parts])
        if isinstance(fetch, (list, tuple)):
            return self._visit_sequence(fetch)
        expand = getattr(fetch, "_fetch_parts", None)
        if expand is not None:
            parts_of, assemble = expand()
            inner = self._visit(list(parts_of))
            return lambda values: assemble(inner(values))
        return self._visit_element(fetch)

    def _visit_sequence(self, fetch: Any) -> Callable[[list[Any]], Any]:
        items = [self._visit(item) for item in fetch]
        if hasattr(fetch, "_fields"):
            named = type(fetch)
            return lambda values: named(*[item(values) for item in items])
        if isinstance(fetch, tuple):
            return lambda values: tuple([item(values) for item in items])
        return lambda values: [item(values) for item in items]

    def _visit_element(self, fetch: Any) -> Callable[[list[Any]], Any]:
        try:
            element = self._graph.as_graph_element(fetch)
        except TypeError as error:
            what = f"has invalid type {type(fetch)}, must be a string or Tensor"
            raise ArgumentError(f"Fetch argument {fetch!r} {what}. ({error.args[0]})") from error
        except (KeyError, ValueError) as error:
            what = "cannot be interpreted as a Tensor"
            raise ArgumentError(f"Fetch argument {fetch!r} {what}. ({error.args[0]})") from error
        if not self._graph.is_fetchable(element):
            raise InvalidArgumentError(f"{element!r} may not be fetched: prevent_fetching was called on it")
        if isinstance(element, Operation):
            self.operations.append(element)
            return lambda values: None
        is_handle = element.dtype is dtypes.resource
        if is_handle and (element := self._graph.value_of(element)).dtype is dtypes.resource:  # nothing reads its value
            self.operations.append(element.op)
            return lambda values: np.frombuffer(element.name.encode(), [("resource", "u1", (1,))])
        self.tensors.append(element)
        index = len(self.tensors) - 1
        if element.op.type == "GetSessionHandle":
            session, dtype = self._session, element.op.inputs[0].dtype
            return lambda values: TensorHandle(values[index], dtype, session)
        return lambda values: values[index]


def _as_mapping(kind: type[dict[Any, Any]], items: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    mapping = kind()  # not ``kind(items)``, which means something else to a defaultdict
    mapping.update(items)
    return mapping


def _key(fetches: Any) -> Hashable:
    """A hashable that is equal for fetches of equal structure and elements."""
    kind = type(fetches)
    if kind is list or kind is tuple:
        return (kind, *[_key(item) for item in fetches])
    if isinstance(fetches, dict):
        return (kind, *[(key, _key(item)) for key, item in fetches.items()])
    if isinstance(fetches, (list, tuple)):
        return (kind, *map(_key, fetches))
    return fetches
