"""`tf.GradientTape` in a graph: gradients through those operations that were made while it was recording.

A graph keeps all that was made, so a tape notes only where it began and ended. Its gradients are those of
`tf.gradients`, which stop at what the tape has not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from tfray.errors import ArgumentError
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.region import Region
from tfray.framework.sparse_tensor import is_tensor
from tfray.gradients import UnconnectedGradients, gradients
from tfray.jacobians import batch_jacobian, jacobian
from tfray.library.variables.variables import Variable, variable_of
from tfray.ops.arrays import array_ops


@dataclass
class _Span:
    """The operations of a graph from the number `first` up to, and without, `end`."""

    graph: Graph
    first: int
    end: int | None = None

    def __contains__(self, op: Operation) -> bool:
        return op.graph is self.graph and self.first <= op.id and (self.end is None or op.id < self.end)


@dataclass
class _Trace:
    """What a target was computed from, as far as the tape has recorded it.

    Attributes:
        within: Results of recorded operations, each after those that it depends on.
        borders: What recorded operations took from elsewhere: tensors, and variables by their handles.
    """

    within: dict[Tensor, Sequence[Tensor]] = field(default_factory=dict)
    borders: set[Tensor] = field(default_factory=set)


class GradientTape:
    """Records which operations are made, for gradients of their results.

    Only what is made within ``with tape:`` counts. A source has a gradient if it is a trainable variable that was used
    there, or a tensor given to `watch`, or was computed from those. Branches, loops and functions are differentiated
    too, which TensorFlow 1 refuses. The gradients are operations of the graph, and run when a session runs them.

    Args:
        persistent: Allow more than one call of `gradient`, `jacobian` and `batch_jacobian`.
        watch_accessed_variables: Watch the trainable variables that are used, without being told.

    Example:
        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> session.run(tape.gradient(y, x))
        6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_accessed = watch_accessed_variables
        self._watched: dict[Tensor, Any] = {}
        self._spans: list[_Span] = []
        self._recording = False
        self._spent = False

    # -- recording -------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        """Begin to record. Raises `ValueError` while it is recording."""
        if self._recording:
            raise ValueError("Tape is already recording.")
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._recording:
            self._end()

    def _begin(self) -> None:
        graph = get_default_graph()
        self._spans.append(_Span(graph, len(graph.get_operations())))
        self._recording = True

    def _end(self) -> None:
        span = self._spans[-1]
        span.end = len(span.graph.get_operations())
        self._recording = False

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Do not record for a while. Raises `RuntimeError` when it is not recording."""
        if not self._recording:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._end()
        try:
            yield
        finally:
            self._begin()

    def reset(self) -> None:
        """Forget what was recorded and watched."""
        recording = self._recording
        self._watched.clear()
        self._spans.clear()
        if recording:
            self._begin()

    def watch(self, tensor: Any) -> None:
        """Let gradients be asked for with respect to a tensor.

        Args:
            tensor: A tensor or variable, or a nested structure of them.

        Raises:
            ValueError: Something else.
        """
        for each in nest.flatten(tensor):
            if not is_tensor(each):
                raise ValueError(f"Passed in object of type {type(each)}, not tf.Tensor")
            self._watched[_tensor_of(each)] = each

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that are watched, in the order of their first use."""
        found = {key: each for key, each in self._watched.items() if isinstance(each, Variable)}
        for span in self._spans if self._watches_accessed else ():
            for op in span.graph.get_operations()[span.first : span.end]:
                for handle in map(_handle_behind, op.inputs):
                    variable = None if handle is None else variable_of(handle)
                    if handle is not None and variable is not None and variable.trainable:
                        found.setdefault(handle, variable)
        return tuple(found.values())

    # -- gradients -------------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradients of the sum of `target` with respect to `sources`.

        Args:
            target: A tensor, or a nested structure of them.
            sources: A tensor or variable, or a nested structure of them.
            output_gradients: For each target the gradient of the final quantity; ones when None.
            unconnected_gradients: One of `tf.UnconnectedGradients`.

        Returns:
            In the structure of `sources`: a tensor, an `IndexedSlices`, or None where the tape has recorded nothing
            that leads from a watched source to the target.

        Raises:
            RuntimeError: It is not persistent, and was asked before.
            ArgumentError: A source is no tensor and no variable.
        """
        flat = self._sources(sources)
        targets = [convert_to_tensor(each) for each in nest.flatten(target)]
        d_targets = None if output_gradients is None else nest.flatten(output_gradients)
        if d_targets is not None and len(targets) == 1 and len(d_targets) > 1:
            d_targets = [convert_to_tensor(output_gradients, targets[0].dtype)]  # one, given as a list of numbers
        with self._asked("gradient"):
            stops, tracked = self._limits(targets, flat)
            found = gradients(
                targets, flat, d_targets, stop_gradients=stops, unconnected_gradients=unconnected_gradients
            )
        zero = unconnected_gradients == UnconnectedGradients.ZERO
        kept = [
            d if is_tracked else array_ops.zeros_like(x) if zero else None
            for x, d, is_tracked in zip(flat, found, tracked, strict=True)
        ]
        return nest.pack_sequence_as(sources, kept)

    def jacobian(
        self,
        target: Tensor,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivatives of each element of `target` with respect to each element of `sources`.

        Args:
            target: A tensor or variable.
            sources: As for `gradient`.
            unconnected_gradients: As for `gradient`.
            parallel_iterations: Accepted for TensorFlow 1's sake, as the next one.
            experimental_use_pfor: There is a backward pass for each element of `target`.

        Returns:
            In the structure of `sources` tensors of shape ``target.shape + source.shape``, or None.

        Raises:
            RuntimeError: As for `gradient`, like the next one.
            ArgumentError: A source is no tensor and no variable.
        """
        target, flat = convert_to_tensor(target), self._sources(sources)
        with self._asked("jacobian"):
            stops, tracked = self._limits([target], flat)
            found = jacobian(target, flat, stop_gradients=stops)
        kept = [
            _or_zeros(d if is_tracked else None, target, array_ops.shape(x), unconnected_gradients)
            for x, d, is_tracked in zip(flat, found, tracked, strict=True)
        ]
        return nest.pack_sequence_as(sources, kept)

    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor | None:
        """The derivatives of each ``target[i, ...]`` with respect to ``source[i, ...]``.

        Args:
            target: Shape ``[b, ...]``. ``target[i]`` depends on ``source[i]`` alone, and on no other example.
            source: A tensor, of shape ``[b, ...]``.
            unconnected_gradients: As for `gradient`.
            parallel_iterations: Accepted for TensorFlow 1's sake, as the next one.
            experimental_use_pfor: There is a backward pass for each element of ``target[0]``.

        Returns:
            A tensor of shape ``target.shape + source.shape[1:]``, or None.

        Raises:
            ValueError: The first sizes differ, or one of the two is a scalar.
            RuntimeError: As for `gradient`.
        """
        target = convert_to_tensor(target)
        with self._asked("batch_jacobian"):
            stops, (is_tracked,) = self._limits([target], [source])
            found = batch_jacobian(target, source, stop_gradients=stops)
        sizes = array_ops.shape(source)[1:]
        return _or_zeros(found if is_tracked else None, target, sizes, unconnected_gradients)

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        """Within, gradients are made. A tape that is not persistent does not record them, and ends with them."""
        if self._spent:
            raise RuntimeError(f"GradientTape.{what} can only be called once on non-persistent tapes.")
        if self._recording and not self._persistent:
            self._end()
        yield
        self._spent = not self._persistent

    def _sources(self, sources: Any) -> list[Any]:
        flat = nest.flatten(sources)
        for source in flat:
            if not is_tensor(source):
                raise ArgumentError(f"GradientTape: a source is {source!r}, expected a tensor or a variable")
        return flat

    # -- how far it has recorded -----------------------------------------------------------------

    def _limits(self, targets: Sequence[Tensor], sources: Sequence[Any]) -> tuple[list[Tensor], list[bool]]:
        """The tensors at which gradients stop, and for each source whether the tape knows of it."""
        trace = self._trace(targets)
        tracked = {tensor for tensor in trace.borders if self._is_watched(tensor)} | set(self._watched)
        for tensor, inputs in trace.within.items():
            if not tracked.isdisjoint(inputs):
                tracked.add(tensor)
        return list(trace.borders), [_tensor_of(source) in tracked for source in sources]

    def _is_watched(self, border: Tensor) -> bool:
        if border in self._watched:
            return True
        variable = variable_of(border) if self._watches_accessed else None
        return variable is not None and variable.trainable

    def _trace(self, targets: Sequence[Tensor]) -> _Trace:
        trace = _Trace()
        waiting = [_seen_from_within(target) for target in targets]
        found: dict[Tensor, Sequence[Tensor]] = {}
        while waiting:
            tensor = waiting.pop()
            if tensor in found or tensor in trace.borders:
                continue
            if any(tensor.op in span for span in self._spans) and _handle_behind(tensor) is None:
                found[tensor] = [_seen_from_within(each) for each in tensor.op.inputs]
                waiting += found[tensor]
            else:
                trace.borders.add(tensor)
        trace.within = dict(sorted(found.items(), key=lambda item: item[0].op.id))
        return trace


def _seen_from_within(tensor: Tensor) -> Tensor:
    """The tensor itself; of a tensor that a branch or a loop takes in, the one outside; of a variable, its handle."""
    tensor = tensor.graph.origin(tensor) if isinstance(tensor.graph, Region) else tensor
    handle = _handle_behind(tensor)
    return tensor if handle is None else handle


def _handle_behind(tensor: Tensor) -> Tensor | None:
    """The handle of the variable whose value `tensor` is, as it was read; None for anything else."""
    op = tensor.op
    if op.type == "Identity" and op.inputs[0].op.type == "ReadVariableOp":  # what a variable has cached on a device
        op = op.inputs[0].op
    if op.type == "ReadVariableOp":
        return _seen_from_within(op.inputs[0])
    return tensor if op.type == "Variable" else None


def _tensor_of(source: Any) -> Tensor:
    """The tensor that stands for a source: the handle of a variable."""
    handle = getattr(source, "handle", None)
    tensor: Tensor = handle if isinstance(handle, Tensor) else source
    return _seen_from_within(tensor)


def _or_zeros(found: Tensor | None, target: Tensor, sizes: Tensor, unconnected_gradients: Any) -> Tensor | None:
    if found is not None or unconnected_gradients != UnconnectedGradients.ZERO:
        return found
    return array_ops.zeros(array_ops.concat([array_ops.shape(target), sizes], 0), target.dtype)
