"""Readers: records of files whose names a queue gives."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest

import tfray as tf
from tests.support.waiting import Task, timed_out, until_waiting, waiting
from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError


class Source:
    """A queue of file names, written into a folder."""

    def __init__(self, session, folder):
        self.session, self.folder = session, folder
        self.queue = tf.FIFOQueue(100, tf.string, [()], name="names")
        self._name = tf.placeholder(tf.string, [])
        self._add = self.queue.enqueue(self._name)
        self._close = self.queue.close()

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, contents):
        (self.folder / name).write_bytes(contents)
        self.add(self.path(name))

    def add(self, name):
        self.session.run(self._add, {self._name: name})

    def close(self):
        self.session.run(self._close)

    def all(self, tensors):
        """Every record until the queue is closed and empty, its keys without the folder."""
        records = []
        with pytest.raises(OutOfRangeError):
            while True:
                key, value = self.session.run(tensors)
                records.append((key.decode().removeprefix(f"{self.folder}/"), value))
        return records


@pytest.fixture
def source(session, tmp_path):
    return Source(session, tmp_path)


# -- kinds ---------------------------------------------------------------------------------------------


def test_lines_of_text_files(source):
    source.write("a.txt", b"one\ntwo\r\n\nfour")
    source.write("empty.txt", b"")
    source.write("b.txt", "fünf\n".encode())
    source.close()
    assert source.all(tf.TextLineReader().read(source.queue)) == [
        ("a.txt:1", b"one"),
        ("a.txt:2", b"two"),
        ("a.txt:3", b""),
        ("a.txt:4", b"four"),
        ("b.txt:1", "fünf".encode()),
    ]


def test_headers_of_text_files_are_left_out(source):
    source.write("a.csv", b"x,y\n1,2\n3,4\n")
    source.write("b.csv", b"x,y\n")
    source.write("c.csv", b"x,y\n5,6\n")
    source.close()
    _, line = tf.TextLineReader(skip_header_lines=1).read(source.queue)
    x, y = tf.decode_csv(line, [[0], [0]])
    rows = []
    with pytest.raises(OutOfRangeError):
        while True:
            rows.append(source.session.run([x, y]))
    assert rows == [[1, 2], [3, 4], [5, 6]]


COMPRESS = {None: bytes, "ZLIB": zlib.compress, "GZIP": gzip.compress}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"record_bytes": 3}, [b"HHa", b"abb", b"bcc", b"ddF"]),
        ({"record_bytes": 3, "header_bytes": 2, "footer_bytes": 1}, [b"aab", b"bbc", b"cdd"]),
        ({"record_bytes": 3, "header_bytes": 2, "footer_bytes": 2, "hop_bytes": 2}, [b"aab", b"bbb", b"bcc", b"cdd"]),
        ({"record_bytes": 13}, [b"HHaabbbccddFF"]),
        ({"record_bytes": 14}, []),
    ],
)
@pytest.mark.parametrize("encoding", COMPRESS)
def test_records_of_fixed_length(source, arguments, expected, encoding):
    contents = b"HHaabbbccddFF"
    source.write("a.bin", COMPRESS[encoding](contents))
    source.close()
    records = source.all(tf.FixedLengthRecordReader(**arguments, encoding=encoding).read(source.queue))
    assert records == [(f"a.bin:{i}", record) for i, record in enumerate(expected)]


def test_lengths_are_checked():
    with pytest.raises(InvalidArgumentError, match="positive"):
        tf.FixedLengthRecordReader(0)
    with pytest.raises(InvalidArgumentError, match="negative"):
        tf.FixedLengthRecordReader(1, header_bytes=-1)
    with pytest.raises(InvalidArgumentError, match="encoding"):
        tf.FixedLengthRecordReader(1, encoding="LZ4")


@pytest.mark.parametrize("compression", ["NONE", "GZIP", "ZLIB"])
def test_tf_records(source, compression):
    options = tf.python_io.TFRecordOptions(getattr(tf.python_io.TFRecordCompressionType, compression))
    for name in ("a", "b"):
        with tf.python_io.TFRecordWriter(source.path(name), options) as writer:
            for i in range(3):
                writer.write(f"{name}{i}".encode())
        source.add(source.path(name))
    source.close()
    records = source.all(tf.TFRecordReader(options=options).read(source.queue))
    assert records == [(f"{name}:{18 * i}", f"{name}{i}".encode()) for name in ("a", "b") for i in range(3)]


def test_whole_files_and_work_units_themselves(source):
    source.write("a", b"contents\n\0")
    source.write("b", b"")
    assert source.session.run(tf.IdentityReader().read(source.queue)) == (source.path("a").encode(),) * 2
    source.write("a", b"contents\n\0")
    source.close()
    assert source.all(tf.WholeFileReader().read(source.queue)) == [("b", b""), ("a", b"contents\n\0")]


# -- how they read -------------------------------------------------------------------------------------


def test_several_records_are_those_of_one_file(source):
    source.write("a.txt", b"1\n2\n3\n")
    source.write("none.txt", b"")
    source.write("b.txt", b"4\n5\n")
    source.close()
    reader = tf.TextLineReader()
    keys, values = reader.read_up_to(source.queue, 2)
    assert keys.shape.as_list() == [None]
    got = [source.session.run(values).tolist() for _ in range(3)]
    assert got == [[b"1", b"2"], [b"3"], [b"4", b"5"]]
    with pytest.raises(OutOfRangeError):
        source.session.run(values)
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        source.session.run(reader.read_up_to(source.queue, 0))


def test_counts(source):
    reader = tf.TextLineReader()
    value = reader.read(source.queue)
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    assert [count.dtype for count in counts] == [tf.int64] * 2
    source.write("a.txt", b"1\n2\n")
    source.write("b.txt", b"3\n")
    seen = [source.session.run(counts)]
    for _ in range(3):
        source.session.run(value)
        seen.append(source.session.run(counts))
    assert seen == [[0, 0], [1, 0], [2, 0], [3, 1]]
    source.session.run(reader.reset())
    assert source.session.run(counts) == [0, 0]


def test_a_reader_waits_for_a_name(source):
    value = tf.TextLineReader().read(source.queue)[1]
    reads = [Task(source.session.run, value) for _ in range(3)]
    until_waiting(source.session, "names", 1)
    source.write("a.txt", b"1\n2\n")
    source.write("b.txt", b"3\n")
    assert sorted(read.result() for read in reads) == [b"1", b"2", b"3"]


def test_a_read_that_times_out_takes_no_name(source):
    value = tf.TextLineReader(name="reader").read(source.queue)[1]
    timed_out(source.session, value, at="ReaderRead")
    assert waiting(source.session, "names") == [0, 0] and waiting(source.session, "reader") == [0]
    source.write("a.txt", b"1\n")
    assert source.session.run(source.queue.size()) == 1
    assert source.session.run(value) == b"1"


def test_every_read_that_waits_learns_that_there_is_nothing(source):
    value = tf.TextLineReader(name="reader").read(source.queue)[1]
    reads = [Task(source.session.run, value) for _ in range(3)]
    until_waiting(source.session, "reader", 0, 3)
    source.close()
    for read in reads:
        with pytest.raises(OutOfRangeError):
            read.result()


def test_after_a_file_that_cannot_be_read_comes_the_next(source):
    with tf.python_io.TFRecordWriter(source.path("good")) as writer:
        writer.write(b"record")
    source.add(source.path("missing"))
    source.write("bad", b"not a record file at all")
    source.add(source.path("good"))
    source.close()
    value = tf.TFRecordReader().read(source.queue)[1]
    with pytest.raises(NotFoundError, match="missing"):
        source.session.run(value)
    with pytest.raises(DataLossError, match="bad"):
        source.session.run(value)
    assert source.session.run(value) == b"record"


def test_state_can_be_kept_and_restored(source):
    source.write("a.txt", b"1\n2\n3\n")
    reader = tf.TextLineReader()
    value = reader.read(source.queue)[1]
    assert source.session.run(value) == b"1" and reader.supports_serialize
    state = source.session.run(reader.serialize_state())
    assert [source.session.run(value) for _ in range(2)] == [b"2", b"3"]
    source.session.run(reader.restore_state(state))
    assert [source.session.run(value) for _ in range(2)] == [b"2", b"3"]
    assert source.session.run(reader.num_records_produced()) == 3
    for wrong in ("", "[1]", "{}", '["a", "b", 1, 1]'):
        with pytest.raises(InvalidArgumentError, match="restored"):
            source.session.run(reader.restore_state(wrong))


def test_work_comes_from_queues_of_strings(source):
    numbers = tf.FIFOQueue(10, tf.int32, [()])
    with pytest.raises(InvalidArgumentError, match="strings"):
        source.session.run(tf.TextLineReader().read(numbers))


# -- with the rest -------------------------------------------------------------------------------------


def test_records_are_read_parsed_and_batched_by_several_threads(session, tmp_path):
    """The pipeline of most programs: names, a reader, parsing, shuffled batches."""
    for part in range(3):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"part{part}")) as writer:
            for i in range(10):
                feature = {
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[10 * part + i])),
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([part, i] * 4)])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    names = tf.train.string_input_producer([str(tmp_path / f"part{i}") for i in range(3)], num_epochs=2)
    _, serialized = tf.TFRecordReader().read(names)
    features = tf.parse_single_example(
        serialized, {"label": tf.FixedLenFeature([], tf.int64), "image": tf.FixedLenFeature([], tf.string)}
    )
    image = tf.reshape(tf.decode_raw(features["image"], tf.uint8), [8])
    images, labels = tf.train.shuffle_batch(
        [image, features["label"]], 7, 50, 5, num_threads=3, allow_smaller_final_batch=True
    )
    session.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    seen = []
    with pytest.raises(OutOfRangeError):
        while True:
            batch, numbers = session.run([images, labels])
            assert np.array_equal(batch[:, :2], np.stack([numbers // 10, numbers % 10], 1))
            seen += numbers.tolist()
    coord.request_stop()
    coord.join(threads)
    assert sorted(seen) == sorted([*range(30), *range(30)])


def test_compressed_text_is_not_text(source):
    source.write("a.gz", gzip.compress(b"text\n"))
    value = tf.TextLineReader().read(source.queue)[1]
    assert source.session.run(value) != b"text"


def test_what_is_no_state_of_a_reader():
    reader = tf.IdentityReader("of_mine")
    with pytest.raises(ValueError, match="rank"):
        reader.restore_state(["a", "b"])
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse state for Identity"),
    ):
        session.run(reader.restore_state(b"junk"))
