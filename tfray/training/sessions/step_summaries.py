"""``tf.contrib.summary``: summaries that steps write themselves, into event files that are resources.

A writer and a condition apply to what is made under them. Each summary is an operation that writes if the condition
holds; `all_summary_ops` gives them all, to be run with the training.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tfray.formats.events import PluginData, SummaryMetadata
from tfray.formats.files import PathLike, given_path
from tfray.formats.graph_proto import GraphDef
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph, get_default_session
from tfray.framework.scopes import control_dependencies, device
from tfray.framework.type_aliases import TensorLike
from tfray.library.inspect.summaries import summary_scope
from tfray.ops.arrays.grouping_ops import no_op
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.arrays.source_ops import constant
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.dataflow import summary_writer_ops
from tfray.ops.math.comparison_ops import equal
from tfray.ops.math.rounding_ops import floormod
from tfray.ops.system import summary_ops
from tfray.training.threads.global_step import get_or_create_global_step

SUMMARIES: Final = "_SUMMARY_V2"
"""The collection of a graph's summaries."""

INITIALIZERS: Final = "_SUMMARY_WRITER_V2"
"""The collection of the operations that make the files of its writers."""

_FLUSH_MILLIS: Final = 120_000

_writers: Final = itertools.count()


class _State(threading.local):
    """What applies to summaries that this thread makes."""

    def __init__(self) -> None:
        self.writer: SummaryWriter | None = None
        self.condition: Any = None
        self.step: Any = None


_state = _State()


class SummaryWriter:
    """A writer of an event file.

    Args:
        resource: Its handle; None for a writer that writes nothing.
        init: The operation that makes its file.
    """

    def __init__(self, resource: Tensor | None, init: Operation | None) -> None:
        self._resource = resource
        self._init = init

    @contextmanager
    def as_default(self) -> Iterator[SummaryWriter]:
        """A context in which summaries go to this writer. At its end the writer stays open: see `flush`, `close`."""
        before, _state.writer = _state.writer, self
        try:
            yield self
        finally:
            _state.writer = before

    def set_as_default(self) -> None:
        """Let the summaries that this thread makes from now on go to this writer."""
        _state.writer = self

    def init(self) -> Operation | None:
        """The operation that makes the file."""
        return self._init

    def flush(self) -> Operation | None:
        """An operation that hands what was written to the file system."""
        return None if self._resource is None else summary_writer_ops.flush_summary_writer(self._resource)

    def close(self) -> Operation | None:
        """An operation that finishes the file."""
        return None if self._resource is None else summary_writer_ops.close_summary_writer(self._resource)


def create_file_writer(
    logdir: PathLike | Tensor | None,
    max_queue: TensorLike | None = None,
    flush_millis: TensorLike | None = None,
    filename_suffix: TensorLike | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of an event file. `initialize` makes the file, or the operation `SummaryWriter.init`.

    Args:
        logdir: Folder of the file; None for a writer that writes nothing.
        max_queue: How many summaries may wait to be handed to the file system; 10 by default.
        flush_millis: Milliseconds after which they are; two minutes by default.
        filename_suffix: End of the file's name; ``.v2`` by default.
        name: Shared name of the writer. By default writers of one folder are one.
    """
    if logdir is None:
        return SummaryWriter(None, None)
    folder = logdir if isinstance(logdir, Tensor) else given_path(logdir, "logdir")
    with device("/device:CPU:0"):
        shared = f"logdir:{folder.name if isinstance(folder, Tensor) else folder}" if name is None else name
        handle = summary_writer_ops.summary_writer(shared)
        init = summary_writer_ops.create_summary_file_writer(
            handle,
            folder,
            10 if max_queue is None else max_queue,
            _FLUSH_MILLIS if flush_millis is None else flush_millis,
            ".v2" if filename_suffix is None else filename_suffix,
        )
    get_default_graph().add_to_collection(INITIALIZERS, init)
    return SummaryWriter(handle, init)


create_summary_file_writer = create_file_writer


def summary_writer_initializer_op() -> list[Operation]:
    """The operations that make the files of the graph's writers."""
    return get_default_graph().get_collection(INITIALIZERS)


def initialize(graph: Graph | GraphDef | None = None, session: Any = None) -> None:
    """Make the files of the default graph's writers.

    Args:
        graph: A `tf.Graph` or `tf.GraphDef`, for `tf.contrib.summary.graph`.
        session: The session; the default one when None.

    Raises:
        RuntimeError: There is no default writer, or it writes nothing.
        ValueError: There is no session.
    """
    handle = _handle()
    if handle is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = session or get_default_session()
    if session is None:
        raise ValueError("Argument `session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        drawn = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph
        session.run(summary_writer_ops.write_graph_summary(handle, 0, drawn.SerializeToString()))


# -- when to record --------------------------------------------------------------------------------------


def should_record_summaries() -> Any:
    """Whether summaries are recorded, a bool or a tensor. Without a context that says so, they are not."""
    return False if _state.condition is None else _state.condition() if callable(_state.condition) else _state.condition


@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """A context whose summaries are recorded if a bool, a bool tensor, or what a function gives, is true."""
    before, _state.condition = _state.condition, condition
    try:
        yield
    finally:
        _state.condition = before


def always_record_summaries() -> Any:
    """A context whose summaries are recorded."""
    return record_if(True)


def never_record_summaries() -> Any:
    """A context whose summaries are not recorded."""
    return record_if(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context whose summaries are recorded in one step of `n`.

    Args:
        n: How many steps.
        global_step: The step's variable or tensor; that of the graph when None.
    """
    step = get_or_create_global_step() if global_step is None else global_step
    with device("/device:CPU:0"):
        return record_if(equal(floormod(cast(step, dtypes.int64), constant(n, dtypes.int64)), 0))


# -- what to record --------------------------------------------------------------------------------------


def _step(step: Any) -> Tensor:
    return cast(get_or_create_global_step() if step is None else step, dtypes.int64)


def _handle() -> Tensor | None:
    return None if _state.writer is None else _state.writer._resource


def _recorded(name: str, family: str | None, step: Any, make: Callable[[str], Tensor]) -> Tensor | Operation:
    """An operation that writes a summary if it is to be recorded, and tells whether it was.

    Args:
        name: Name of the summary.
        family: First part of its tag.
        step: The step.
        make: Makes the serialised summary from the tag.
    """
    handle, condition = _handle(), should_record_summaries()
    if handle is None:
        return no_op()
    step = _step(step)
    scope = get_default_graph().get_name_scope()

    def written() -> Tensor:
        # The tag does not tell of the branch.
        with get_default_graph().name_scope(f"{scope}/" if scope else None), summary_scope(name, family) as (tag, _):
            done = summary_writer_ops.write_raw_proto_summary(handle, step, make(tag))
            with control_dependencies([done]):
                return constant(True)

    with device("/device:CPU:0"):
        operation: Tensor = smart_cond(condition, written, lambda: constant(False))
    get_default_graph().add_to_collection(SUMMARIES, operation)
    return operation


def all_summary_ops() -> list[Any]:
    """The operations of the graph that write summaries."""
    return get_default_graph().get_collection(SUMMARIES)


def scalar(name: str, tensor: TensorLike, family: str | None = None, step: TensorLike | None = None) -> Any:
    """Write a number.

    Args:
        name: Name of the summary.
        tensor: A scalar of real numbers.
        family: First part of its tag.
        step: Its step, a scalar; the global step when None.

    Returns:
        An operation, or a bool scalar: whether it was written.
    """
    value = cast(tensor, dtypes.float32)
    return _recorded(name, family, step, lambda tag: summary_ops.scalar_summary(tag, value))


def histogram(name: str, tensor: TensorLike, family: str | None = None, step: TensorLike | None = None) -> Any:
    """Write how values are distributed; `tensor` has any shape. For the rest see `scalar`."""
    values = convert_to_tensor(tensor)
    return _recorded(name, family, step, lambda tag: summary_ops.histogram_summary(tag, values))


def image(
    name: str,
    tensor: TensorLike,
    bad_color: Sequence[int] = summary_ops.BAD_COLOR,
    max_images: int = 3,
    family: str | None = None,
    step: TensorLike | None = None,
) -> Any:
    """Write images.

    Args:
        name: As of `scalar`.
        tensor: Shape ``[images, height, width, channels]``, as of `tf.summary.image`.
        bad_color: Colour of pixels that are not finite, a vector of uint8.
        max_images: How many of them at most.
        family: As of `scalar`.
        step: As of `scalar`.

    Returns:
        As of `scalar`.
    """
    images = convert_to_tensor(tensor)
    return _recorded(name, family, step, lambda tag: summary_ops.image_summary(tag, images, max_images, bad_color))


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int,
    family: str | None = None,
    step: TensorLike | None = None,
) -> Any:
    """Write sounds.

    Args:
        name: As of `scalar`.
        tensor: Shape ``[sounds, samples]`` or ``[sounds, samples, channels]``, from -1 to 1.
        sample_rate: Samples in a second, a float32 scalar.
        max_outputs: How many of them at most.
        family: As of `scalar`.
        step: As of `scalar`.

    Returns:
        As of `scalar`.
    """
    sounds = convert_to_tensor(tensor)
    return _recorded(name, family, step, lambda tag: summary_ops.audio_summary(tag, sounds, sample_rate, max_outputs))


def generic(
    name: str,
    tensor: TensorLike,
    metadata: SummaryMetadata | TensorLike | None = None,
    family: str | None = None,
    step: TensorLike | None = None,
) -> Any:
    """Write a tensor for a plugin of TensorBoard.

    Args:
        name: As of `scalar`.
        tensor: Any shape and dtype.
        metadata: Says whose it is: a `tf.SummaryMetadata`, or one serialised, a string scalar.
        family: As of `scalar`.
        step: As of `scalar`.

    Returns:
        As of `scalar`.
    """
    value = convert_to_tensor(tensor)
    given: TensorLike = b"" if metadata is None else metadata
    about = metadata.SerializeToString() if isinstance(metadata, SummaryMetadata) else given
    return _recorded(name, family, step, lambda tag: summary_ops.tensor_summary(tag, value, about))


def import_event(tensor: TensorLike, name: str | None = None) -> Operation:
    """Write a serialised `tf.Event`, a string scalar. Without a writer, an operation that does nothing."""
    handle = _handle()
    return no_op(name) if handle is None else summary_writer_ops.import_event(handle, tensor, name)


def graph(param: TensorLike, step: TensorLike | None = None, name: str | None = None) -> Operation:
    """Write a graph for TensorBoard.

    Args:
        param: A serialised `tf.GraphDef`, a string scalar.
        step: Its step, a scalar; the global step when None.
        name: Name of the operation.

    Raises:
        TypeError: `param` is a `tf.Graph` or `tf.GraphDef`. It would become a part of itself: see `initialize`.
    """
    if hasattr(param, "as_graph_def") or hasattr(param, "SerializeToString"):
        raise TypeError(
            "graph() needs a tf.Tensor (e.g. tf.placeholder) containing serialized tf.GraphDef, but received "
            f"param={type(param).__name__}: tf.contrib.summary.initialize(graph=...) takes a graph as it is"
        )
    handle = _handle()
    if handle is None:
        return no_op(name)
    return summary_writer_ops.write_graph_summary(handle, _step(step), param, name)


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> Operation:
    """Hand what a writer has written to the file system.

    Args:
        writer: The writer; that of the context when None. Without one, an operation that does nothing.
        name: Name of the operation.
    """
    handle = _handle() if writer is None else writer._resource
    return no_op(name) if handle is None else summary_writer_ops.flush_summary_writer(handle, name)


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder of an evaluation of that name, within a model's."""
    return os.path.join(model_dir, f"eval_{name}" if name else "eval")


# -- tf.compat.v2.summary --------------------------------------------------------------------------------


def create_file_writer_v2(
    logdir: PathLike | Tensor,
    max_queue: TensorLike | None = None,
    flush_millis: TensorLike | None = None,
    filename_suffix: TensorLike | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """As `create_file_writer`, but each call makes a writer of its own, and a context records unless it says not to."""
    number = next(_writers)
    return create_file_writer(logdir, max_queue, flush_millis, filename_suffix, name or f"writer {number}: {logdir!r}")


def write(
    tag: str, tensor: TensorLike, step: TensorLike | None = None, metadata: Any = None, name: str | None = None
) -> Any:
    """Write a tensor of any shape and dtype, as `generic`. Raises `ValueError` if no step is given, or `set_step`."""
    with _usually_recorded(step) as step:
        return generic(tag, tensor, metadata, step=step)


@contextmanager
def _usually_recorded(step: Any) -> Iterator[Any]:
    """The step of a summary, in a context that records unless one around it says not to."""
    step = _state.step if step is None else step
    if step is None:
        raise ValueError("No step set: pass step=, or call tf.summary.experimental.set_step")
    with record_if(True if _state.condition is None else _state.condition):
        yield step


def scalar_v2(name: str, data: TensorLike, step: TensorLike | None = None, description: str | None = None) -> Any:
    """Write a number, as `write`."""
    about = SummaryMetadata(plugin_data=PluginData(plugin_name="scalars"), summary_description=description or "")
    return write(name, cast(data, dtypes.float32), step, about)


def histogram_v2(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    buckets: int | None = None,
    description: str | None = None,
) -> Any:
    """Write how values are distributed, as `histogram`, which chooses the buckets; and as `write`."""
    with _usually_recorded(step) as step:
        return histogram(name, data, step=step)


def image_v2(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    max_outputs: int = 3,
    description: str | None = None,
) -> Any:
    """Write images, as `image` and as `write`."""
    with _usually_recorded(step) as step:
        return image(name, data, max_images=max_outputs, step=step)


def audio_v2(
    name: str,
    data: TensorLike,
    sample_rate: TensorLike,
    step: TensorLike | None = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Any:
    """Write sounds, as `audio` and as `write`."""
    with _usually_recorded(step) as step:
        return audio(name, data, sample_rate, max_outputs, step=step)


def set_step(step: Any) -> None:
    """Set the step of summaries that this thread makes without one."""
    _state.step = step


def get_step() -> Any:
    """What `set_step` was given."""
    return _state.step


# fmt: off
__all__ = [
    "all_summary_ops", "always_record_summaries", "audio", "create_file_writer", "create_summary_file_writer",
    "eval_dir", "flush", "generic", "graph", "histogram", "image", "import_event", "initialize",
    "never_record_summaries", "record_summaries_every_n_global_steps", "scalar", "should_record_summaries",
    "summary_writer_initializer_op",
]
# fmt: on
