"""Ten batches of an input pipeline, as fast as they come: what training waits for when its steps compute nothing.

The data are drawn and written into a temporary folder when a case is opened, by NumPy and the side's own writers.
Pipelines are repeated without end. Fetching the batch counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_STRETCH: Final = 10
"""Batches in a step: more than pipelines prefetch."""
_BATCH: Final = 128
_EXAMPLES: Final = 10_000
_PIXELS: Final = 784
_FEATURES: Final = 32
"""Numbers of each record's list; it has a label and a name beside them."""

_IMAGES: Final = 64
_IMAGE_BATCH: Final = 32
_IMAGE_SIZE: Final = 256
_RESIZED: Final = 224

_LINES: Final = 10_000
_LINE_BATCH: Final = 64
_WORDS: Final = 5000


def _records(tf: Any, folder: Path) -> list[str]:
    """Two files of examples."""
    random = np.random.default_rng(0)
    paths = [str(folder / f"records-{i}") for i in range(2)]
    for path in paths:
        with tf.python_io.TFRecordWriter(path) as writer:
            for number in range(_EXAMPLES // len(paths)):
                numbers = random.standard_normal(_FEATURES, np.float32).tolist()
                features = {
                    "numbers": tf.train.Feature(float_list=tf.train.FloatList(value=numbers)),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 10])),
                    "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"example %d" % number])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
    return paths


def _features(tf: Any) -> dict[str, Any]:
    return {
        "numbers": tf.FixedLenFeature([_FEATURES], tf.float32),
        "label": tf.FixedLenFeature([], tf.int64),
        "name": tf.FixedLenFeature([], tf.string, default_value=""),
    }


def _photographs(tf: Any, folder: Path) -> list[str]:
    """JPEGs with something to compress: smooth colours, and noise on them."""
    random = np.random.default_rng(0)
    places = np.linspace(0, 6, _IMAGE_SIZE)
    paths = [str(folder / f"{i}.jpeg") for i in range(_IMAGES)]
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = tf.placeholder(tf.uint8, [_IMAGE_SIZE, _IMAGE_SIZE, 3])
        encoded = tf.image.encode_jpeg(pixels, quality=90)
        for path in paths:
            waves = [np.sin(random.uniform(0.5, 3) * places + random.uniform(0, 6)) for _ in range(6)]
            colours = np.stack([waves[i][:, None] * waves[i + 3] for i in range(3)], 2)
            noisy = 127 + 90 * colours + random.normal(0, 8, colours.shape)
            Path(path).write_bytes(session.run(encoded, {pixels: noisy.clip(0, 255).astype(np.uint8)}))
    return paths


def _text(folder: Path) -> tuple[str, str]:
    """A file of lines of 5 to 40 words, of which few are frequent, and one with the vocabulary."""
    random = np.random.default_rng(0)
    words = [f"word{number}" for number in range(_WORDS)]
    lines = folder / "lines.txt"
    with open(lines, "w") as file:
        for _ in range(_LINES):
            drawn = np.minimum(random.zipf(1.3, random.integers(5, 40)), _WORDS) - 1
            file.write(" ".join(words[number] for number in drawn) + "\n")
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("\n".join(words) + "\n")
    return str(lines), str(vocabulary)


def _slices(tf: Any, folder: Path) -> Any:
    random = np.random.default_rng(0)
    images = random.random((_EXAMPLES, _PIXELS), np.float32)
    labels = random.integers(10, size=_EXAMPLES, dtype=np.int32)
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    return data.shuffle(_EXAMPLES).repeat().batch(_BATCH).prefetch(1)


def _records_one_by_one(tf: Any, folder: Path) -> Any:
    data = tf.data.TFRecordDataset(_records(tf, folder)).repeat()
    return data.map(lambda record: tf.parse_single_example(record, _features(tf))).batch(_BATCH).prefetch(1)


def _records_in_batches(tf: Any, folder: Path) -> Any:
    data = tf.data.TFRecordDataset(_records(tf, folder)).repeat().batch(_BATCH)
    return data.map(lambda records: tf.parse_example(records, _features(tf))).prefetch(1)


def _images(tf: Any, folder: Path) -> Any:
    def read(path: Any) -> Any:
        image = tf.image.decode_jpeg(tf.read_file(path), channels=3)
        image = tf.image.resize_images(image, [_RESIZED, _RESIZED])
        return tf.image.random_flip_left_right(image) / 255.0

    data = tf.data.Dataset.from_tensor_slices(_photographs(tf, folder)).repeat()
    return data.map(read, num_parallel_calls=tf.data.experimental.AUTOTUNE).batch(_IMAGE_BATCH).prefetch(1)


def _lines(tf: Any, folder: Path) -> Any:
    lines, vocabulary = _text(folder)
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        ),
        -1,
    )
    data = tf.data.TextLineDataset(lines).repeat()
    data = data.map(lambda line: table.lookup(tf.string_split([line]).values))
    return data.padded_batch(_LINE_BATCH, padded_shapes=[None]).prefetch(1)


def _stretch(session: Any, batch: Any) -> None:
    for _ in range(_STRETCH):
        session.run(batch)


def _dataset(build: Callable[[Any, Path], Any]) -> Case:
    """A step fetches the next batches of a dataset."""

    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        with tempfile.TemporaryDirectory(prefix="bench-") as folder, tf.Graph().as_default():
            iterator = build(tf, Path(folder)).make_initializable_iterator()
            batch = iterator.get_next()
            with tf.Session() as session:
                session.run([tf.tables_initializer(), iterator.initializer])
                yield lambda: _stretch(session, batch)

    return Case(opened, works_ahead=True)


def _queued_records(tf: Any, folder: Path) -> Any:
    """TensorFlow 1's first way: a queue of file names, a reader, and a queue that shuffles examples."""
    names = tf.train.string_input_producer(_records(tf, folder))
    _, record = tf.TFRecordReader().read(names)
    example = tf.parse_single_example(record, _features(tf))
    return tf.train.shuffle_batch(example, _BATCH, capacity=1000 + 3 * _BATCH, min_after_dequeue=1000)


def _queued_slices(tf: Any, folder: Path) -> Any:
    """Slices of arrays in a random order, gathered by a queue."""
    random = np.random.default_rng(0)
    images = tf.constant(random.random((_EXAMPLES, _PIXELS), np.float32))
    labels = tf.constant(random.integers(10, size=_EXAMPLES, dtype=np.int32))
    return tf.train.batch(tf.train.slice_input_producer([images, labels]), _BATCH, capacity=4 * _BATCH)


def _queued(build: Callable[[Any, Path], Any]) -> Case:
    """A step fetches the next batches of a queue that queue runners fill."""

    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        with tempfile.TemporaryDirectory(prefix="bench-") as folder, tf.Graph().as_default():
            batch = build(tf, Path(folder))
            with tf.Session() as session:
                session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                coordinator = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(session, coordinator)
                try:
                    yield lambda: _stretch(session, batch)
                finally:
                    coordinator.request_stop()
                    coordinator.join(threads)

    return Case(opened, works_ahead=True)


CASES: Final = {
    "slices": _dataset(_slices),
    "records_one_by_one": _dataset(_records_one_by_one),
    "records_in_batches": _dataset(_records_in_batches),
    "images": _dataset(_images),
    "lines": _dataset(_lines),
    "queued_records": _queued(_queued_records),
    "queued_slices": _queued(_queued_slices),
}
