"""Structures as messages, and the numbers that a process counts."""

from __future__ import annotations

import collections

import pytest

import tfray as tf
from tfray.formats.meta_graph_proto import StructuredValue
from tfray.programs.internals import monitoring
from tfray.programs.internals.nested_structure_coder import NotEncodableError, StructureCoder

Step = collections.namedtuple("Step", ["reward", "observation"])
CODER = StructureCoder()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        0.5,
        "text",
        [],
        (),
        {},
        [1, (2.0, [None])],
        {"a": {"b": (1,)}, "c": []},
        tf.TensorShape([None, 3]),
        tf.TensorShape(None),
        tf.float32,
        tf.TensorSpec([2, None], tf.int64, "x"),
        tf.TensorSpec([], tf.string),
        Step(tf.TensorSpec([], tf.float32), [tf.TensorSpec([4], tf.uint8)]),
    ],
    ids=repr,
)
def test_what_is_written_is_read(value):
    message = StructuredValue.FromString(CODER.encode_structure(value).SerializeToString())
    found = CODER.decode_proto(message)
    assert CODER.can_encode(value) and type(found).__name__ == type(value).__name__
    if isinstance(value, tf.TensorShape):
        assert repr(found) == repr(value)  # an unknown shape equals none
    else:
        assert found == value and getattr(found, "_fields", None) == getattr(value, "_fields", None)


@pytest.mark.parametrize("value", [1j, [object()], {"a": {2}}])
def test_what_cannot_be_written(value):
    assert not CODER.can_encode(value)
    with pytest.raises(NotEncodableError, match="No encoder for object"):
        CODER.encode_structure(value)
    with pytest.raises(NotEncodableError, match="No decoder for proto"):
        CODER.decode_proto(StructuredValue())


def test_what_a_process_counts():
    counter = monitoring.Counter("/steps", "Steps that were run.", "kind")
    counter.get_cell("train").increase_by(2)
    counter.get_cell("train").increase_by(3)
    assert (counter.get_cell("train").value(), counter.get_cell("test").value()) == (5, 0)
    with pytest.raises(ValueError, match="cannot be increased by -1"):
        counter.get_cell("train").increase_by(-1)
    with pytest.raises(ValueError, match="labels"):
        counter.get_cell()


@pytest.mark.parametrize(
    ("kind", "first", "value"),
    [(monitoring.BoolGauge, False, True), (monitoring.IntGauge, 0, 7), (monitoring.StringGauge, "", "text")],
)
def test_what_a_process_sets(kind, first, value):
    cell = kind("/name", "What it tells.").get_cell()
    assert cell.value() == first
    cell.set(value)
    assert cell.value() == value
