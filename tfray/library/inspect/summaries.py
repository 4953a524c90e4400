"""Operations that make summaries for TensorBoard, named and collected as in TensorFlow 1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tfray.errors import InvalidArgumentError
from tfray.formats.events import PluginData, SummaryDescription, SummaryMetadata
from tfray.formats.graph_proto import NodeDef
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.platform import logging
from tfray.ops.system import summary_ops

_UNFIT: Final = r"(?a)[^-/\w.]"


@contextmanager
def summary_scope(
    name: str | None, family: str | None = None, default_name: str | None = None, values: object = None
) -> Iterator[tuple[str, str]]:
    """The scope of a summary operation.

    Args:
        name: The summary's name. Characters that names may not have become underscores.
        family: First part of the tag, by which TensorBoard groups.
        default_name: The name where `name` is None.
        values: Accepted as TensorFlow takes it: the tensors of the summary, whose graph is the current one anyway.

    Yields:
        The tag, unique in the graph, and the name of the operation.
    """
    name = _clean((default_name or "") if name is None else name)
    family = None if family is None else _clean(family)
    with get_default_graph().name_scope(name if family is None else f"{family}/{name}") as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def _clean(name: str) -> str:
    clean = re.sub(_UNFIT, "_", str(name)).lstrip("/")
    if not clean:
        raise InvalidArgumentError(f"{name!r} is not a name of a summary")
    if clean != name:
        logging.info("summary name %r is not one that operations may have: using %r", name, clean)
    return clean


def _collect(summary: Tensor, collections: Sequence[str] | None) -> Tensor:
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        get_default_graph().add_to_collection(key, summary)
    return summary


def scalar(
    name: str, tensor: TensorLike, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A number for TensorBoard's charts.

    Args:
        name: Its name there, under the current name scope.
        tensor: A scalar of a real dtype.
        collections: Collections to which to add the operation; ``GraphKeys.SUMMARIES`` when None.
        family: Chart group; the first part of the name when None.

    Returns:
        A string scalar, a serialised `tf.Summary`.
    """
    with summary_scope(name, family) as (tag, scope):
        return _collect(summary_ops.scalar_summary(_constant(tag, "tags"), _as_number(tensor), scope), collections)


def _constant(text: str | bytes, name: str = "tag") -> Tensor:
    return convert_to_tensor(text, dtypes.string, name=name)


def _as_number(values: TensorLike) -> Tensor:
    tensor = convert_to_tensor(values)
    if tensor.dtype is dtypes.bool_:
        raise InvalidArgumentError(f"{tensor!r} is not a number: use tf.cast", op_name=tensor.op.name)
    return tensor


def histogram(
    name: str, values: TensorLike, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """How values are distributed, for TensorBoard's histograms and distributions.

    Args:
        name: Its name there, under the current name scope.
        values: Any shape, a real dtype.
        collections: As for `scalar`.
        family: As for `scalar`.

    Returns:
        A string scalar.

    Raises:
        InvalidArgumentError: At run time: a value is infinite or not a number.
    """
    with summary_scope(name, family) as (tag, scope):
        return _collect(summary_ops.histogram_summary(_constant(tag), values, scope), collections)


def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Images.

    Args:
        name: Their name in TensorBoard; they are numbered when there may be several.
        tensor: ``[batch, height, width, channels]``, uint8 or floats, with 1, 3 or 4 channels. Floats are scaled: see
            `summary_ops.image_summary`.
        max_outputs: How many of the batch to show.
        collections: As for `scalar`.
        family: As for `scalar`.

    Returns:
        A string scalar.
    """
    with summary_scope(name, family) as (tag, scope):
        return _collect(summary_ops.image_summary(_constant(tag), tensor, max_outputs, name=scope), collections)


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Sounds.

    Args:
        name: Their name in TensorBoard; they are numbered when there may be several.
        tensor: float32 ``[batch, frames]`` or ``[batch, frames, channels]``, between -1 and 1.
        sample_rate: Frames a second, a number or float32 scalar.
        max_outputs: How many of the batch to play.
        collections: As for `scalar`.
        family: As for `scalar`.

    Returns:
        A string scalar.
    """
    with summary_scope(name, family) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        summary = summary_ops.audio_summary(_constant(tag), tensor, rate, max_outputs, scope)
        return _collect(summary, collections)


def text(name: str, tensor: TensorLike, collections: Sequence[str] | None = None) -> Tensor:
    """Text, shown as Markdown; vectors and matrices of strings as tables.

    Args:
        name: Its name in TensorBoard.
        tensor: Strings of any shape.
        collections: As for `scalar`.

    Returns:
        A string scalar.

    Raises:
        ValueError: The tensor is not one of strings.
    """
    tensor = convert_to_tensor(tensor)
    if tensor.dtype is not dtypes.string:
        raise ValueError(f"summary {name!r}: {tensor!r} is not a tensor of strings")
    metadata = SummaryMetadata(plugin_data=PluginData(plugin_name="text"))
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def tensor_summary(
    name: str,
    tensor: TensorLike,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: SummaryMetadata | None = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A whole tensor, for a plugin of TensorBoard.

    Args:
        name: Its name in TensorBoard.
        tensor: Any shape and dtype.
        summary_description: What it is, in Markdown.
        collections: As for `scalar`.
        summary_metadata: Which plugin shows it, and how.
        family: As for `scalar`.
        display_name: A name to show in place of the tag.

    Returns:
        A string scalar.
    """
    metadata = SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    description = metadata.summary_description
    with summary_scope(name, family) as (tag, scope):
        serialized = _constant(metadata.SerializeToString(), "serialized_summary_metadata")
        summary = summary_ops.tensor_summary(_constant(tag), tensor, serialized, scope, description)
        return _collect(summary, collections)


def merge(inputs: Sequence[TensorLike], collections: Sequence[str] | None = None, name: str | None = None) -> Tensor:
    """Several summaries in one.

    Args:
        inputs: String tensors, as the functions of this module return them.
        collections: Collections to which to add the operation; none when None.
        name: Name of the operation, and of its scope: ``NAME/NAME``; without one ``Merge/MergeSummary``.

    Returns:
        A string scalar.

    Raises:
        InvalidArgumentError: There are none; or at run time: a tag occurs twice.
    """
    return _merged(inputs, collections, name, "Merge")


def _merged(inputs: Iterable[TensorLike], collections: Sequence[str] | None, name: str | None, scope: str) -> Tensor:
    inputs = list(inputs)
    if not inputs:
        raise InvalidArgumentError("there are no summaries to merge")
    name = _clean(name) if name else None
    with get_default_graph().name_scope(name or scope):
        return _collect(summary_ops.merge_summary(inputs, name), collections or [])


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """All summaries of the graph in one.

    Args:
        key: The collection of summaries.
        scope: Take only those whose names match this regular expression.
        name: Name of the operation.

    Returns:
        A string scalar, or None if there are no summaries.
    """
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


def get_summary_description(node_def: NodeDef) -> SummaryDescription:
    """What a `tensor_summary` operation says of its tensor, in ``type_hint``.

    Args:
        node_def: The operation as a message: ``summary.op.node_def``.

    Raises:
        ValueError: The operation is none of `tensor_summary`.
    """
    attribute = {"TensorSummary": "description", "TensorSummaryV2": "_description"}.get(node_def.op)
    if attribute is None:
        raise ValueError(f"operation {node_def.name!r} is a {node_def.op}, expected a TensorSummary")
    return SummaryDescription(type_hint=node_def.attr[attribute].s.decode())


# -- TensorFlow before 1.0 -----------------------------------------------------------------------------


def scalar_summary(
    tags: TensorLike, values: TensorLike, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Numbers under tags that are given; the form before `tf.summary.scalar`.

    Args:
        tags: A string, or strings of the shape of `values`.
        values: The numbers.
        collections: As for `scalar`.
        name: Name of the operation.
    """
    summary = summary_ops.scalar_summary(tags, _as_number(values), name or "ScalarSummary")
    return _collect(summary, collections)


def histogram_summary(
    tag: TensorLike, values: TensorLike, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """A distribution under a tag that is given; the form before `tf.summary.histogram`."""
    return _collect(summary_ops.histogram_summary(tag, values, name or "HistogramSummary"), collections)


def image_summary(
    tag: TensorLike,
    tensor: TensorLike,
    max_images: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """Images under a tag that is given; the form before `tf.summary.image`."""
    return _collect(summary_ops.image_summary(tag, tensor, max_images, name=name or "ImageSummary"), collections)


def audio_summary(
    tag: TensorLike,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """Sounds under a tag that is given; the form before `tf.summary.audio`."""
    rate = convert_to_tensor(sample_rate, dtypes.float32)
    summary = summary_ops.audio_summary(tag, tensor, rate, max_outputs, name or "AudioSummary")
    return _collect(summary, collections)


def merge_summary(
    inputs: Sequence[TensorLike], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Several summaries in one; the form before `tf.summary.merge`."""
    return _merged(inputs, collections, name, "MergeSummary")


def merge_all_summaries(key: str = GraphKeys.SUMMARIES) -> Tensor | None:
    """All summaries of the graph in one; the form before `tf.summary.merge_all`."""
    return merge_all(key)
