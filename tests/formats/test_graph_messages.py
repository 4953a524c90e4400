"""Messages of graphs, meta graphs and options beside TensorFlow's: their fields, and bytes and text that it wrote."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

import tfray as tf
from tfray.errors import DataLossError
from tfray.formats.graph_proto import AttrValue, GraphDef, NodeDef
from tfray.formats.message import message_of_text
from tfray.formats.meta_graph_proto import (
    CondContextDef,
    MetaGraphDef,
    QueueRunnerDef,
    SavedModel,
    SaveSliceInfoDef,
    VariableDef,
)
from tfray.formats.tensor_proto import TensorProto

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "messages"


def fields(message, seen):
    """The fields of a kind of message and of those within it, as scripts/golden_messages.py writes them."""
    if message.full_name in seen:
        return
    seen[message.full_name] = lines = []
    for field in message.fields:
        entry = field.message_type and field.message_type.GetOptions().map_entry
        inner = field.message_type.fields_by_name["value"] if entry else field
        kind = "enum" if inner.enum_type else "message" if inner.message_type else str(inner.type)
        form = ["map"] if entry else ["list"] if field.is_repeated else []
        group = [field.containing_oneof.name] if field.containing_oneof else []
        lines.append(" ".join([field.name, str(field.number), kind, *form, *group]))
        if inner.message_type:
            fields(inner.message_type, seen)


def test_fields_are_those_of_tensorflow():
    theirs: dict[str, list[str]] = {}
    for line in (GOLDEN / "fields.txt").read_text().splitlines():
        kind, rest = line.split(" ", 1)
        theirs.setdefault(kind, []).append(rest)
    ours: dict[str, list[str]] = {}
    for kind in (SavedModel, VariableDef, SaveSliceInfoDef, QueueRunnerDef, CondContextDef):
        fields(kind.DESCRIPTOR, ours)
    # Classes within classes have names of their own here: fields tell them apart.
    assert sorted(map(sorted, filter(None, ours.values()))) == sorted(map(sorted, theirs.values()))
    top = {kind.rpartition(".")[2]: sorted(lines) for kind, lines in theirs.items() if kind.count(".") == 1}
    assert {name: sorted(lines) for name, lines in top.items()}.items() <= {
        kind.rpartition(".")[2]: sorted(lines) for kind, lines in ours.items()
    }.items()


def test_fields_of_options_are_those_of_tensorflow():
    theirs: dict[str, set[str]] = {}
    for line in (GOLDEN.parent / "options" / "fields.txt").read_text().splitlines():
        kind, rest = line.split(" ", 1)
        theirs.setdefault(kind, set()).add(rest)
    ours: dict[str, list[str]] = {}
    for each in (tf.ConfigProto, tf.RunOptions, tf.RunMetadata):
        fields(each.DESCRIPTOR, ours)
    found = {kind.rpartition(".")[2]: set(lines) for kind, lines in ours.items()}
    found["ConfigProto"].remove("placement 50000 9")  # tfray's own
    for kind, lines in theirs.items():
        assert lines in ([found[kind.rpartition(".")[2]]] if kind.count(".") == 1 else found.values()), kind


@pytest.mark.parametrize(("name", "kind"), [("meta_graph", MetaGraphDef), ("saved_model", SavedModel)])
def test_messages_of_tensorflow_come_back(name, kind):
    data = (GOLDEN / f"{name}.pb").read_bytes()
    message = kind.FromString(data)
    assert message.SerializeToString() == data
    assert not unknown_fields(message)
    text = (GOLDEN / f"{name}.pbtxt").read_text()
    assert text_format.Parse(text, kind()) == message
    assert sorted(text_format.MessageToString(message).splitlines()) == sorted(
        text.splitlines()
    )  # entries of maps have no order
    assert pickle.loads(pickle.dumps(message)) == message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"a\n\x41\101\"\\ ", b'a\nAA"\\ '),
        (r"\377", b"\xff"),
        (r"\ ", None),
        (r"\q", None),
        (r"\\\8", None),
        (r"\777", None),
    ],
)
def test_an_escape_sequence_of_a_text_that_means_nothing_is_an_error(written, value):
    node = f'node {{  # "C:\\path\n  name: "n"  # no \\end\n  attr {{ key: "s" value {{ s: "{written}" }} }}\n}}\n'
    text = "# \\q in a comment\n" + node
    if value is None:
        with pytest.raises(DataLossError, match=r"no text of a GraphDef: line 4: .* stands for no character"):
            message_of_text(GraphDef, text)
    else:
        assert message_of_text(GraphDef, text).node[0].attr["s"].s == value


CONTENT = "tensor_shape { dim { size: 2 } }"

TENSORS = [
    # Values of TensorFlow 1.15.
    ((2**63 - 1,), {}, f"dtype: DT_INT64 tensor_shape {{ }} int64_val: {2**63 - 1}"),
    ((10.0,), {}, "dtype: DT_FLOAT tensor_shape { } float_val: 10"),
    ((np.float16(2),), {}, "dtype: DT_HALF tensor_shape { } half_val: 16384"),
    ((1 + 2j, "complex64"), {}, "dtype: DT_COMPLEX64 tensor_shape { } scomplex_val: 1 scomplex_val: 2"),
    (([True, False],), {}, f"dtype: DT_BOOL {CONTENT} bool_val: true bool_val: false"),
    (([1, 2], "int8"), {}, f'dtype: DT_INT8 {CONTENT} tensor_content: "\\001\\002"'),
    (([(21,), (22,)], "qint8"), {}, f'dtype: DT_QINT8 {CONTENT} tensor_content: "\\025\\026"'),
    (([7],), {"shape": [2]}, f"dtype: DT_INT32 {CONTENT} int_val: 7"),
    ((["f", "g"],), {}, f'dtype: DT_STRING {CONTENT} string_val: "f" string_val: "g"'),
    (([10, 11, 12],), {"shape": [2, 2]}, None),
    (([1j, 2], "complex128"), {"shape": [2, 2]}, None),
    ((["f", "g"],), {"shape": [3, 2]}, None),
]


@pytest.mark.parametrize(("args", "settings", "text"), TENSORS)
def test_tensors_are_written_as_tensorflow_writes_them(args, settings, text):
    made = tf.make_tensor_proto(*args, **settings)
    if text is not None:
        assert made == message_of_text(TensorProto, text)
        return
    values = np.asarray(args[0])
    last = np.full(np.prod(settings["shape"]) - values.size, values[-1])
    expected = np.concatenate([values, last]).reshape(settings["shape"])
    found = tf.make_ndarray(made)
    assert found.astype(expected.dtype).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"shape": [5], "verify_shape": True}, TypeError, r"Expected Tensor's shape: \(5,\), got \(3,\)."),
        ({"shape": [2]}, ValueError, "Too many elements provided. Needed at most 2, but received 3"),
        ({"shape": [None]}, ValueError, "needs a shape that is known"),
    ],
)
def test_tensors_that_do_not_fit_are_not_written(settings, error, said):
    with pytest.raises(error, match=said):
        tf.make_tensor_proto([1, 2, 3], **settings)


def unknown_fields(message):
    """Whether a message holds fields that its kind does not list."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            held = value.values() if field.message_type.GetOptions().map_entry else value
            for each in held if field.is_repeated else [value]:
                if hasattr(each, "ListFields") and unknown_fields(each):
                    return True
    return False


def test_messages_that_hold_their_own_kind_are_built_by_attributes():
    value = AttrValue()
    value.func.name = "body"
    value.func.attr["T"].list.func.add(name="inner").attr["x"].i = 3
    node = NodeDef(name="n", op="While", attr={"body": value})
    again = GraphDef.FromString(GraphDef(node=[node]).SerializeToString())
    assert again.node[0].attr["body"].func.attr["T"].list.func[0].attr["x"].i == 3
    assert AttrValue(type=1).type == 1 and "DT_FLOAT" in str(AttrValue(type=1)) and AttrValue(type=99).type == 99
    assert isinstance(AttrValue.ListValue(i=[1]), AttrValue.ListValue)
