"""Fields of protocol buffers as tensors; the values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

import tfray as tf

FIELD = descriptor_pb2.FieldDescriptorProto
KINDS = [
    ("i32", FIELD.TYPE_INT32, False),
    ("u64", FIELD.TYPE_UINT64, False),
    ("d", FIELD.TYPE_DOUBLE, True),
    ("f", FIELD.TYPE_FLOAT, False),
    ("b", FIELD.TYPE_BOOL, False),
    ("st", FIELD.TYPE_STRING, True),
    ("by", FIELD.TYPE_BYTES, False),
    ("u32", FIELD.TYPE_UINT32, False),
    ("s64", FIELD.TYPE_SINT64, True),
    ("en", FIELD.TYPE_ENUM, False),
    ("sub", FIELD.TYPE_MESSAGE, True),
    ("df", FIELD.TYPE_INT32, False),
]
TYPES = [
    tf.int32,
    tf.uint64,
    tf.float64,
    tf.float32,
    tf.bool,
    tf.string,
    tf.string,
    tf.uint32,
    tf.int64,
    tf.int32,
    tf.string,
    tf.int32,
]
NAMES = [name for name, _, _ in KINDS]


def described():
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="p", syntax="proto2")
    choice = file.enum_type.add(name="E")
    choice.value.add(name="A", number=0)
    choice.value.add(name="B", number=3)
    file.message_type.add(name="Sub").field.add(name="s", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    message = file.message_type.add(name="M")
    for number, (name, kind, is_repeated) in enumerate(KINDS, 1):
        label = FIELD.LABEL_REPEATED if is_repeated else FIELD.LABEL_OPTIONAL
        field = message.field.add(name=name, number=number, type=kind, label=label)
        if name in ("en", "sub"):
            field.type_name = {"en": ".p.E", "sub": ".p.Sub"}[name]
        if name == "df":
            field.default_value = "7"
    message.extension_range.add(start=100, end=200)
    file.extension.add(name="ext", number=100, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL, extendee=".p.M")
    return file


FILE = described()
SOURCE = b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[FILE]).SerializeToString()
POOL = DescriptorPool()
POOL.AddSerializedFile(FILE.SerializeToString())
M = GetMessageClass(POOL.FindMessageTypeByName("p.M"))


def messages():
    full = M(i32=-5, u64=2**64 - 1, d=[1.5, 2.5], f=0.25, b=True, st=["é", "x", "y"], by=b"\xff", u32=2**32 - 1)
    full.s64.append(-7)
    full.en = 3
    full.sub.add(s="q")
    return [full.SerializeToString(), M(i32=4, d=[3.5]).SerializeToString()]


def decoded(data, names, types, source=SOURCE, kind="p.M", **options):
    found = tf.io.decode_proto(data, kind, names, types, source, **options)
    with tf.Session() as session:
        return session.run(found)


def test_fields_become_tensors_and_messages_again():
    sizes, values = decoded(messages(), NAMES, TYPES)
    assert sizes.tolist() == [[1, 1, 2, 1, 1, 3, 1, 1, 1, 1, 1, 0], [1, 0, 1, *[0] * 9]]
    assert [each.tolist() for each in values] == [
        [[-5], [4]],
        [[2**64 - 1], [0]],
        [[1.5, 2.5], [3.5, 0]],
        [[0.25], [0]],
        [[True], [False]],
        [[b"\xc3\xa9", b"x", b"y"], [b""] * 3],
        [[b"\xff"], [b""]],
        [[2**32 - 1], [0]],
        [[-7], [0]],
        [[3], [0]],
        [[b"\n\x01q"], [b""]],
        [[7], [7]],
    ]
    assert [each.dtype for each in values if each.dtype != object] == [
        each.as_numpy_dtype for each in TYPES if each != tf.string
    ]
    again = tf.io.encode_proto(sizes, values, NAMES, "p.M", SOURCE)
    with tf.Session() as session:
        assert session.run(again).tolist() == messages()


def test_shapes_and_sources(tmp_path):
    path = tmp_path / "described"
    path.write_bytes(SOURCE.removeprefix(b"bytes://"))
    found = tf.io.decode_proto(messages(), "p.M", NAMES, TYPES, str(path))
    assert found._fields == ("sizes", "values") and found.sizes.shape == [2, 12]
    assert found.values[0].shape.as_list() == [2, None]
    sizes, (numbers,) = decoded([messages()], ["d"], [tf.float64], str(path))
    assert sizes.tolist() == [[[2], [1]]] and numbers.tolist() == [[[1.5, 2.5], [3.5, 0]]]
    sizes, (numbers,) = decoded(messages()[0], ["d"], [tf.float64], str(path))
    assert sizes.tolist() == [2] and numbers.tolist() == [1.5, 2.5]
    sizes, (number, numbers) = decoded(
        ["i32: 3 d: 1 d: 2"], ["i32", "d"], [tf.int64, tf.float64], message_format="text"
    )
    assert sizes.tolist() == [[1, 2]] and number.tolist() == [[3]] and numbers.tolist() == [[1, 2]]


def test_messages_of_tensorflow():
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    example = tf.train.Example(features=tf.train.Features(feature={"v": feature})).SerializeToString()
    sizes, (features,) = decoded([example], ["features"], [tf.string], "local://", "tensorflow.Example")
    assert sizes.tolist() == [[1]] and features.tolist() == [[b"\n\n\n\x01v\x12\x05\x1a\x03\n\x01\x01"]]


def test_extensions():
    message = M()
    message.Extensions[POOL.FindExtensionByName("p.ext")] = 5
    sizes, (numbers,) = decoded([message.SerializeToString()], ["p.ext"], [tf.int32])
    assert sizes.tolist() == [[1]] and numbers.tolist() == [[5]]
    with tf.Session() as session:
        made = session.run(tf.io.encode_proto(sizes, [numbers], ["p.ext"], "p.M", SOURCE))
    assert made.tolist() == [message.SerializeToString()]


D = (["d"], [tf.float64])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: decoded(messages(), ["nope"], [tf.int32]), "Unknown field: nope in message type p.M"),
        (lambda: decoded(messages(), *D, kind="p.N"), "No descriptor found for message type p.N"),
        (lambda: decoded(messages(), *D, source="local://"), "No descriptor found for message type p.M"),
        (lambda: decoded(messages(), ["st"], [tf.int32]), "Unexpected output type for p.M.st"),
        (lambda: decoded(messages(), ["d"], [tf.float32]), "Unexpected output type for p.M.d"),
        (lambda: decoded(messages(), ["d"], [tf.float64, tf.int32]), "must have the same length"),
        (lambda: decoded(messages(), *D, source="/nope/x"), "Source does not represent serialized file"),
        (lambda: decoded(messages(), *D, source="bytes://\x05"), "Source does not represent serialized file"),
        (lambda: decoded(messages(), *D, message_format="q"), "format must be one of binary or text"),
        (lambda: encoded([[2]], [[[0.5]]]), "Size to write must not be larger than value tensor; but saw: 2 > 1"),
        (lambda: encoded([[1]], [[["a"]]]), "Incompatible type for field"),
        (lambda: encoded([[1]], [[[1.0]]], ["zz"]), "Unknown field: zz"),
        (lambda: encoded([1], [[1.0]]), "Shape must be at least rank 2"),
        (lambda: encoded([[1, 1]], [[[1.0]]]), "sizes should be batch_size"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        make()


def encoded(sizes, values, names=("d",)):
    columns = [np.array(each) for each in values]
    with tf.Session() as session:
        return session.run(tf.io.encode_proto(sizes, columns, list(names), "p.M", SOURCE))


def test_bytes_that_are_no_message():
    with pytest.raises(tf.errors.DataLossError, match=r"2 bytes are no p\.M"):
        decoded([b"\xff\xff"], *D)
