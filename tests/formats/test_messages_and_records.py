"""Protocol-buffer messages, `tf.train.Example`, checksums and TFRecord files."""

from __future__ import annotations

import gzip
import pickle
import struct
import time
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfray as tf
from tests.support.traced_memory import at_most
from tests.support.wire_bytes import delimited, varint
from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError
from tfray.formats import crc32c, wire
from tfray.formats.message import Field, Message
from tfray.formats.tfrecord import masked_checksum

# -- numbers -------------------------------------------------------------------------------------------

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(INT64 | st.integers(-300, 300), max_size=60))
def test_varints_come_back(values):
    data = b"".join(map(varint, values))
    assert wire.decode_varints(data).tolist() == values
    assert tf.train.Int64List.FromString(delimited(1, data)).value == values


@pytest.mark.parametrize("given", [np.array([True, False]), [np.bool_(True), np.bool_(False)], [True, False]])
def test_truths_in_lists_of_integers_are_0_and_1(given):
    assert tf.train.Int64List(value=given).value == [1, 0]
    with pytest.raises(TypeError):
        tf.train.Int64List(value=[1.5])


@pytest.mark.parametrize("data", [b"\x80", b"\x80" * 11 + b"\x01", b"\xff" * 40, b"\x01" * 40 + b"\x80"])
def test_numbers_that_do_not_end_are_refused(data):
    with pytest.raises(DataLossError):
        wire.decode_varints(data)


# -- messages ------------------------------------------------------------------------------------------

# What TensorFlow 2.21 writes for `sample_example` and `sample_sequence`, map entries sorted.
EXAMPLE = bytes.fromhex(
    "0a5b0a070a016512021a000a110a05696d61676512080a060a04616200ff0a230a056c6162656c121a1a180a1603ffffffffffffffffff01ac"
    "028080808080808080400a050a016e12000a110a0178120c120a0a08cdcccc3d000020c0"
)
SEQUENCE = EXAMPLE + bytes.fromhex("121c0a1a0a017412150a051a030a01000a051a030a01010a051a030a0102")


def sample_example():
    def ints(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    features = {
        "e": ints(),
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"ab\x00\xff"])),
        "label": ints(3, -1, 300, 2**62),
        "n": tf.train.Feature(),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[0.1, -2.5])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def sample_sequence():
    steps = [tf.train.Feature(int64_list=tf.train.Int64List(value=[i])) for i in range(3)]
    lists = tf.train.FeatureLists(feature_list={"t": tf.train.FeatureList(feature=steps)})
    return tf.train.SequenceExample(context=sample_example().features, feature_lists=lists)


def test_examples_are_those_of_tensorflow():
    assert sample_example().SerializeToString() == EXAMPLE
    assert sample_sequence().SerializeToString() == SEQUENCE
    assert tf.train.Example.FromString(EXAMPLE) == sample_example()
    assert tf.train.SequenceExample.FromString(SEQUENCE) == sample_sequence()


def test_examples_are_read():
    example = tf.train.Example()
    example.ParseFromString(EXAMPLE)
    feature = example.features.feature
    assert sorted(feature) == ["e", "image", "label", "n", "x"]
    assert feature["label"].int64_list.value == [3, -1, 300, 2**62]
    assert feature["image"].bytes_list.value[0] == b"ab\x00\xff"
    assert np.array(feature["x"].float_list.value, np.float32).tolist() == np.float32([0.1, -2.5]).tolist()
    kinds = {name: value.WhichOneof("kind") for name, value in feature.items()}
    assert kinds == {"e": "int64_list", "image": "bytes_list", "label": "int64_list", "n": None, "x": "float_list"}
    assert feature["x"].HasField("float_list") and not feature["x"].HasField("bytes_list")


def test_examples_are_built_by_their_attributes():
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.append(1)
    example.features.feature["a"].int64_list.value.extend(np.array([2, 3]))
    example.features.feature["b"].float_list.value.extend(np.array([0.5], np.float64))
    example.features.feature["c"].bytes_list.value[:] = [b"x"]
    again = tf.train.Example.FromString(example.SerializeToString())
    assert again == example and again.features.feature["a"].int64_list.value == [1, 2, 3]
    assert pickle.loads(pickle.dumps(example)) == example
    copy = tf.train.Example()
    copy.CopyFrom(example)
    copy.features.feature["a"].int64_list.value[0] = 7
    assert example.features.feature["a"].int64_list.value[0] == 1 and copy != example
    copy.Clear()
    assert copy.ByteSize() == 0


@pytest.mark.parametrize("count", [3, 30])
def test_numbers_of_all_kinds_are_taken(count):
    for values in ([1] * count, np.ones(count, np.int32), [np.int8(1)] * count, range(1, 2)):
        assert set(tf.train.Int64List(value=values).value) == {1}
    for values in ([0.1] * count, [np.float32(0.1)] * count, np.full(count, 0.1), [np.float16(0.25)] * count):
        assert set(map(np.float32, tf.train.FloatList(value=values).value)) <= {np.float32(0.1), np.float32(0.25)}
    for values in ([1.0] * count, ["1"] * count, np.ones(count), [1 << 63] * count, [None] * count, [[1]] * count):
        with pytest.raises((TypeError, ValueError)):
            tf.train.Int64List(value=values)
    with pytest.raises(TypeError):
        tf.train.FloatList(value=["1"] * count)


def test_one_kind_of_a_feature_replaces_another():
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    feature.MergeFrom(tf.train.Feature(float_list=tf.train.FloatList(value=[2.0])))
    assert feature.WhichOneof("kind") == "float_list"
    assert "float_list {\n  value: 2" in str(feature)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: tf.train.BytesList(value=["text"]), TypeError),
        (lambda: tf.train.BytesList(value=b"ab"), TypeError),
        (lambda: tf.train.Int64List(value=[1.5]), TypeError),
        (lambda: tf.train.Int64List(value=[1 << 63]), ValueError),
        (lambda: tf.train.FloatList(value=["1"]), TypeError),
        (lambda: tf.train.Feature(int64_list=[1]), TypeError),
        (lambda: tf.train.Features(feature={"a": 1}), TypeError),
        (lambda: tf.train.Example(feature={}), ValueError),
        (lambda: tf.train.Example().nothing, AttributeError),
        (lambda: setattr(tf.train.Int64List(), "value", [1]), AttributeError),
        (lambda: tf.train.Feature().WhichOneof("sort"), ValueError),
    ],
)
def test_what_does_not_fit_a_message_is_refused(build, error):
    with pytest.raises(error):
        build()


@pytest.mark.parametrize(
    "data",
    [
        EXAMPLE[:-1],
        b"\x0a\xff\xff\xff\xff\x0f",  # 4 GB that are not there
        b"\x0b\x00",  # a wire type of other times
        b"\x00\x00",
        b"\x0a\x80",
        b"\x0a\x06\x0a\x04\x0a\x02\xff\xfe",  # a name that is no text
    ],
)
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(DataLossError, match="are no Example"):
        tf.train.Example.FromString(data)


@given(
    st.binary(max_size=200) | st.integers(0, len(SEQUENCE)).map(lambda n: SEQUENCE[:n] + b"\x12" + SEQUENCE[n + 1 :])
)
def test_any_bytes_are_a_message_or_refused(data):
    try:
        message = tf.train.SequenceExample.FromString(data)
    except DataLossError:
        return
    assert tf.train.SequenceExample.FromString(message.SerializeToString()) == message


def test_nesting_is_bounded():
    """A group is a message between two marks; nobody has declared this one."""
    with pytest.raises(DataLossError, match="are no Example"):
        tf.train.Example.FromString(b"\x4b" * 10_000 + b"\x4c" * 10_000)


def test_fields_of_later_versions_are_kept():
    example = tf.train.Example.FromString(EXAMPLE + delimited(9, b"new"))
    assert example.SerializeToString() == EXAMPLE + delimited(9, b"new")


def test_every_kind_of_field():
    kinds = ("bytes", "string", "float", "double", "int64", "int32", "uint64", "bool", "enum")
    values = (b"\xff", "ä", 0.5, 0.1, -5, -6, 1 << 63, True, 3)

    class Every(Message):
        FIELDS = tuple(Field(i + 1, f"a_{kind}", kind) for i, kind in enumerate(kinds)) + tuple(
            Field(i + 20, f"b_{kind}", kind, repeated=True) for i, kind in enumerate(kinds)
        )

    singles = {f"a_{kind}": value for kind, value in zip(kinds, values, strict=True)}
    message = Every(**singles, **{f"b_{kind}": [value] * 2 for kind, value in zip(kinds, values, strict=True)})
    again = Every.FromString(message.SerializeToString())
    assert again == message and {name: getattr(again, name) for name in singles} == singles
    empty = Every.FromString(b"")
    assert empty.a_string == "" and empty.a_int64 == 0 and not empty.a_bool
    empty.a_int32 = 4
    assert empty.SerializeToString() == b"\x30\x04"
    empty.ClearField("a_int32")
    assert not empty.ListFields()


# -- checksums -----------------------------------------------------------------------------------------


def bitwise_crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_checksums_are_those_of_the_standard():
    # RFC 3720, B.4
    assert crc32c.crc32c(b"\x00" * 32) == 0x8A9136AA
    assert crc32c.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c.crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
@pytest.mark.parametrize("length", [0, 1, 47, 1025])
def test_checksums_are_continued_by_bytes_that_follow(length, kind):
    data = np.random.default_rng(length).bytes(length)
    expected = bitwise_crc32c(data)
    for cut in {0, length // 3, length}:
        assert crc32c.crc32c(kind(data[cut:]), crc32c.crc32c(kind(data[:cut]))) == expected


@pytest.mark.parametrize("longest", [3, 100, 3000])
def test_checksums_of_several(longest):
    rng = np.random.default_rng(0)
    pieces = [rng.bytes(int(size)) for size in rng.integers(0, longest, 40)]
    assert crc32c.crc32c_of_each(pieces).tolist() == [bitwise_crc32c(piece) for piece in pieces]
    assert crc32c.crc32c_of_each([]).tolist() == []


@pytest.mark.parametrize("size", [1, 4, 8])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_checksums_of_short_rows(size, count):
    rows = np.random.default_rng(0).integers(0, 256, (count, size), np.uint8)
    assert crc32c.crc32c_of_rows(rows).tolist() == [bitwise_crc32c(row.tobytes()) for row in rows]


# -- TFRecord files ------------------------------------------------------------------------------------

RECORDS = [b"", b"a", b"hello" * 50, bytes(range(256)) * 20, b"end"]
# The first two records as TensorFlow 2.21 writes them.
HEAD = bytes.fromhex("000000000000000029039807d8ea82a201000000000000000175de4161786ee428")


def write(path, records=RECORDS, options=None):
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def read(path, options=None):
    return list(tf.python_io.tf_record_iterator(path, options))


OPTIONS = [
    None,
    "GZIP",
    "ZLIB",
    tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP),
    tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB, compression_level=1),
    tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.NONE),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_records_come_back(tmp_path, options):
    path = write(tmp_path / "records", RECORDS * 3 + [b"x" * 700_000], options)
    assert read(path, options) == RECORDS * 3 + [b"x" * 700_000]


def test_files_are_those_of_tensorflow(tmp_path):
    write(tmp_path / "records")
    content = (tmp_path / "records").read_bytes()
    assert content.startswith(HEAD)
    write(tmp_path / "gzip", options="GZIP")
    assert gzip.decompress((tmp_path / "gzip").read_bytes()) == content
    write(tmp_path / "zlib", options="ZLIB")
    assert zlib.decompress((tmp_path / "zlib").read_bytes()) == content
    assert read(write(tmp_path / "empty", [])) == []


def test_reading_starts_where_it_left_off(tmp_path):
    from tfray.formats.tfrecord import read_records

    path = write(tmp_path / "records")
    offset = list(read_records(path))[1][1]
    assert [record for record, _ in read_records(path, start=offset)] == RECORDS[2:]


@pytest.mark.fault(
    "Files",
    "A damaged TFRecord file.",
    happens="The records before the damage are read. Then `tf.errors.DataLossError` names file and place.",
    promise="Damaged records are never given out.",
)
@pytest.mark.parametrize(
    ("damage", "message", "good"),
    [
        (lambda data: data[:-1], "record at offset 5435: the file ends within it", 4),
        (lambda data: data[:5], "record at offset 0: the file ends within it", 0),
        (lambda data: b"", None, 0),
        (lambda data: b"\x01" + data[1:], "record at offset 0: the checksum of its length", 0),
        (lambda data: data[:28] + b"b" + data[29:], "record at offset 16: the checksum of its data", 1),
        (lambda data: data[:16] + b"\xff" * 8 + data[24:], "record at offset 16: the checksum of its length", 1),
        (lambda data: data[:-1] + b"\x00", "record at offset 5435: the checksum of its data", 4),
        (lambda data: data + b"\x00" * 11, "record at offset 5454: the file ends within it", 5),
    ],
)
def test_damage_is_found_behind_the_good_records(tmp_path, damage, message, good):
    path = tmp_path / "records"
    write(path)
    path.write_bytes(damage(path.read_bytes()))
    found = []
    if message is None:
        assert read(path) == []
        return
    with pytest.raises(DataLossError, match=message) as error:
        for record in tf.python_io.tf_record_iterator(path):
            found.append(record)
    assert found == RECORDS[:good] and str(path) in str(error.value)


@pytest.mark.parametrize("kept", [0, 5, 20, 40])
def test_an_iterator_goes_on_when_its_file_has_grown(tmp_path, kept):
    write(tmp_path / "whole")
    whole, path = (tmp_path / "whole").read_bytes(), tmp_path / "records"
    path.write_bytes(whole[:kept])
    records, found = tf.python_io.tf_record_iterator(path), []
    for _ in range(2):
        with pytest.raises(DataLossError if kept else StopIteration):
            while True:
                found.append(next(records))
    path.write_bytes(whole)
    assert found + list(records) == RECORDS
    with pytest.raises(StopIteration):
        next(records)
    path.write_bytes(whole + whole)
    assert list(records) == RECORDS


def test_a_length_that_is_too_long_takes_no_memory(tmp_path):
    from tfray.formats.tfrecord import masked_checksum

    length = struct.pack("<Q", 1 << 60)
    (tmp_path / "records").write_bytes(length + struct.pack("<I", masked_checksum(length)) + b"few")
    with pytest.raises(DataLossError, match="ends within"):
        read(tmp_path / "records")


@pytest.mark.fault(
    "Files",
    "A damaged TFRecord file.",
    happens="The records before the damage are read. Then `tf.errors.DataLossError` names file and place.",
    promise="Damaged records are never given out.",
)
@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_damaged_compression_is_found(tmp_path, kind):
    path = tmp_path / "records"
    write(path, options=kind)
    data = path.read_bytes()
    for damaged in (data[:-6], b"xx" + data[2:], data[:40] + b"\xff\x00\xff" + data[43:]):
        path.write_bytes(damaged)
        with pytest.raises(DataLossError, match="records"):
            read(path, kind)
    with pytest.raises(DataLossError):
        read(path)  # without saying that it is compressed


def test_misuse_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="nothing"):
        read(tmp_path / "nothing")
    with pytest.raises(InvalidArgumentError, match="LZ4"):
        write(tmp_path / "records", options="LZ4")
    with tf.python_io.TFRecordWriter(str(tmp_path / "records")) as writer, pytest.raises(InvalidArgumentError):
        writer.write("text")
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        writer.write(b"late")


def test_a_huge_record_is_read_in_linear_time(tmp_path, monkeypatch):
    """It comes in many reads; if each copied what was read before, this would take minutes."""
    monkeypatch.setattr("tfray.formats.tfrecord.MAX_READ_BYTES", 512)
    path = tmp_path / "records"
    with tf.python_io.TFRecordWriter(path) as writer:
        for size in (16 << 20, 3, 16 << 20):
            writer.write(bytes(size))
    started = time.process_time()
    assert [len(record) for record in tf.python_io.tf_record_iterator(path)] == [16 << 20, 3, 16 << 20]
    assert time.process_time() - started < 15


@pytest.mark.fault(
    "Files",
    "A file declares sizes that it does not have.",
    happens="`tf.errors.DataLossError`.",
    promise="Declared sizes are checked before memory is taken for them.",
)
def test_a_record_that_declares_more_than_there_is_takes_no_more_memory(tmp_path):
    header = struct.pack("<Q", 1 << 40)
    (tmp_path / "records").write_bytes(header + struct.pack("<I", masked_checksum(header)) + bytes(1000))
    with at_most(20), pytest.raises(DataLossError, match="ends within it: 1012 bytes"):
        list(tf.python_io.tf_record_iterator(tmp_path / "records"))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300), min_size=24, max_size=60))
def test_long_lists_of_numbers_are_decoded_as_short_ones(numbers):
    data = b"".join(varint(number % 2**64) for number in numbers)
    assert wire.decode_varints(data).tolist() == numbers
