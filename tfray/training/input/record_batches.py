"""Batches of records from files, by queues: ``tf.contrib.learn`` has these functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.input.readers import ReaderBase, TFRecordReader
from tfray.library.platform import gfile
from tfray.ops.strings.parsing_ops import parse_example
from tfray.training.input.batching import batch_join, shuffle_batch_join
from tfray.training.input.input_producers import string_input_producer

FilePattern = str | list[str]
"""A pattern of names of files, or several."""


def read_batch_examples(
    file_pattern: FilePattern,
    batch_size: int | Tensor,
    reader: Callable[[], ReaderBase],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Tensor], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """`read_keyed_batch_examples` without the keys.

    Args:
        file_pattern: As there, like all arguments.
        batch_size: As there.
        reader: As there.
        randomize_input: As there.
        num_epochs: As there.
        queue_capacity: As there.
        num_threads: As there.
        read_batch_size: As there.
        parse_fn: As there.
        name: As there.
        seed: As there.

    Returns:
        Strings ``[batch_size]``, or batches of what `parse_fn` returns.

    Raises:
        ValueError: No files match, or a number cannot be.
    """
    return read_keyed_batch_examples(
        file_pattern,
        batch_size,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        num_threads,
        read_batch_size,
        parse_fn,
        name,
        seed,
    )[1]


def read_keyed_batch_examples(
    file_pattern: FilePattern,
    batch_size: int | Tensor,
    reader: Callable[[], ReaderBase],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Tensor], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
    *,
    is_shared: bool = False,
) -> Any:
    """Batches of what a reader reads from files, with keys; queue runners fill them.

    Args:
        file_pattern: A pattern of file names, or a list of them.
        batch_size: Examples in a batch, fewer than `queue_capacity`.
        reader: Function that returns a reader, such as `tf.TFRecordReader`.
        randomize_input: Shuffle the files and what is read.
        num_epochs: How often all files are read, counted in a local variable; without end when None. The last batch
            may then be smaller.
        queue_capacity: Examples in the queue.
        num_threads: How many readers there are.
        read_batch_size: How many examples a reader reads at a time.
        parse_fn: Function of what is read, a string scalar, or a vector with `read_batch_size` above 1.
        name: Name scope of the operations.
        seed: Seed of the order.
        is_shared: Sessions share the queue of file names. tfray's addition.

    Returns:
        The keys, strings ``[batch_size]``, and strings of that shape or batches of what `parse_fn` returns.

    Raises:
        ValueError: No files match, or a number cannot be.
    """
    patterns = file_pattern if isinstance(file_pattern, list) else [file_pattern]
    names = [file for pattern in patterns for file in gfile.Glob(pattern)]
    if not names:
        raise ValueError(f"No files match {file_pattern}." if patterns else "No files given to dequeue_examples.")
    numbers = {"queue_capacity": queue_capacity, "read_batch_size": read_batch_size, "num_threads": num_threads}
    for what, number in (numbers | {"num_epochs": 1 if num_epochs is None else num_epochs}).items():
        if not number or number <= 0:
            raise ValueError(f"Invalid {what} {number}.")
    known = batch_size if isinstance(batch_size, int) else None
    if known is not None and not 0 < known < queue_capacity:
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {queue_capacity}.")
    with get_default_graph().name_scope(name or "read_batch_examples") as scope:
        files = names if randomize_input else sorted(names)
        shared = f"{scope}file_name_queue" if is_shared else None
        queue = string_input_producer(
            files, num_epochs, randomize_input, seed, shared_name=shared, name="file_name_queue"
        )
        with get_default_graph().name_scope("read"):
            read = [_read(reader(), queue, read_batch_size, parse_fn) for _ in range(num_threads)]
        given: dict[str, Any] = {
            "capacity": queue_capacity,
            "enqueue_many": read_batch_size > 1,
            "allow_smaller_final_batch": num_epochs is not None,
            "name": scope,
        }
        if randomize_input:
            least = int(queue_capacity * 0.4) if known is None else max(queue_capacity - 3 * known, known)
            found = shuffle_batch_join(read, batch_size, min_after_dequeue=least, seed=seed, **given)
        else:
            found = batch_join(read, batch_size, **given)
    return (found.pop(KEY_FEATURE_NAME), found) if isinstance(found, dict) else found


def read_keyed_batch_examples_shared_queue(
    file_pattern: FilePattern, batch_size: int | Tensor, reader: Callable[[], ReaderBase], *args: Any, **kwargs: Any
) -> Any:
    """`read_keyed_batch_examples` of files that all workers share: each is read by one of them."""
    kwargs["is_shared"] = True
    return read_keyed_batch_examples(file_pattern, batch_size, reader, *args, **kwargs)


KEY_FEATURE_NAME: Final = "__key__"
"""What the keys are called among features that `parse_fn` returns by name."""


def _read(reader: ReaderBase, queue: Any, count: int, parse_fn: Callable[[Tensor], Any] | None) -> Any:
    keys, found = reader.read_up_to(queue, count) if count > 1 else reader.read(queue)
    parsed = found if parse_fn is None else parse_fn(found)
    return {**parsed, KEY_FEATURE_NAME: keys} if isinstance(parsed, dict) else (keys, parsed)


def read_batch_features(
    file_pattern: FilePattern,
    batch_size: int | Tensor,
    features: Mapping[str, Any],
    reader: Callable[[], ReaderBase],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[[Tensor], Any] | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> dict[str, Any]:
    """Batches of features, parsed from the examples that a reader reads from files.

    Args:
        file_pattern: As for `read_batch_examples`, like the arguments that are not named here.
        batch_size: As there.
        features: What to parse, as for `tf.parse_example`.
        reader: As there.
        randomize_input: As there.
        num_epochs: As there.
        queue_capacity: As there.
        feature_queue_capacity: Accepted for TensorFlow 1's sake: a batch is parsed when it is asked for.
        reader_num_threads: How many readers there are.
        num_enqueue_threads: Accepted for TensorFlow 1's sake.
        parse_fn: Function from what is read to serialized examples.
        name: Name scope of the operations.
        read_batch_size: As there; `batch_size` when None.

    Returns:
        Tensors and sparse tensors by name, as of `tf.parse_example`: their first size is `batch_size`.
    """
    return read_keyed_batch_features(
        file_pattern,
        batch_size,
        features,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        feature_queue_capacity,
        num_enqueue_threads,
        parse_fn,
        name,
        read_batch_size,
    )[1]


def read_keyed_batch_features(
    file_pattern: FilePattern,
    batch_size: int | Tensor,
    features: Mapping[str, Any],
    reader: Callable[[], ReaderBase],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[[Tensor], Any] | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
    *,
    is_shared: bool = False,
) -> tuple[Tensor, dict[str, Any]]:
    """`read_batch_features` with keys.

    The arguments are those of `read_batch_features` and `read_keyed_batch_examples`.

    Returns:
        The keys, strings ``[batch_size]``, and tensors and sparse tensors by name.
    """
    at_a_time = read_batch_size or (batch_size if isinstance(batch_size, int) else 1)
    with get_default_graph().name_scope(name or "read_batch_features"):
        keys, examples = read_keyed_batch_examples(
            file_pattern,
            batch_size,
            reader,
            randomize_input,
            num_epochs,
            queue_capacity,
            reader_num_threads,
            at_a_time,
            parse_fn,
            is_shared=is_shared,
        )
        return keys, parse_example(examples, dict(features))


def read_keyed_batch_features_shared_queue(
    file_pattern: FilePattern,
    batch_size: int | Tensor,
    features: Mapping[str, Any],
    reader: Callable[[], ReaderBase],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_queue_runners: int = 2,
    parse_fn: Callable[[Tensor], Any] | None = None,
    name: str | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """`read_keyed_batch_features` of files that all workers share: each is read by one of them."""
    return read_keyed_batch_features(
        file_pattern,
        batch_size,
        features,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        feature_queue_capacity,
        num_queue_runners,
        parse_fn,
        name,
        is_shared=True,
    )


def read_batch_record_features(
    file_pattern: FilePattern,
    batch_size: int | Tensor,
    features: Mapping[str, Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> dict[str, Any]:
    """`read_batch_features` of TFRecord files."""
    return read_batch_features(
        file_pattern,
        batch_size,
        features,
        TFRecordReader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads=reader_num_threads,
        name=name,
    )
