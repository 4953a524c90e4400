"""Batches of examples: read in step, they give what they give one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tests.support.op_samples.parsing_samples import example, floats, ints, words
from tests.support.traced_memory import at_most
from tests.support.wire_bytes import delimited
from tfray.errors import DataLossError, InvalidArgumentError
from tfray.formats import tensor_proto
from tfray.framework import dtypes
from tfray.ops.kernels import example_parsing, fast_examples
from tfray.ops.kernels.example_parsing import Column

COLUMNS = [
    Column.of("label", dtypes.int64),
    Column.of("age", dtypes.float32),
    Column.of("many", dtypes.float32),
    Column.of("a_rather_long_name_of_a_feature", dtypes.int64),
    Column.of("text", dtypes.string),
    Column.of("tags", dtypes.string),
    Column.of("nothing", dtypes.int64),
]


@pytest.fixture(params=["compiled", "in step"])
def fast_reader(request, monkeypatch):
    """Read batches by compiled kernels, however small, or by NumPy, however large."""
    if request.param == "compiled" and not fast_examples.can_compile():
        pytest.skip("the extra `fast` is not installed")
    monkeypatch.setattr(fast_examples, "LEAST_BYTES", 0 if request.param == "compiled" else 1 << 60)


def random_example(rng, **others):
    return example(
        label=ints(int(rng.integers(-3, 300))),
        age=floats(rng.random()),
        many=floats(*rng.random(int(rng.integers(0, 90)))),
        a_rather_long_name_of_a_feature=ints(*rng.integers(-(2**62), 2**62, int(rng.integers(0, 5))).tolist()),
        a_rather_long_name_of_a_featurf=ints(1),
        text=words(rng.bytes(int(rng.integers(0, 300)))),
        tags=words(*[b"tag"] * int(rng.integers(0, 4))),
        **others,
    )


def one_by_one(serialized):
    rows = [example_parsing.read_columns([data], COLUMNS) for data in serialized]
    return [
        (np.concatenate([row[i].values for row in rows]), np.concatenate([row[i].lengths for row in rows]))
        for i in range(len(COLUMNS))
    ]


def assert_same(found, expected):
    for column, wanted, got in zip(COLUMNS, expected, found, strict=True):
        for part, wanted_part in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(part, wanted_part, err_msg=str(column))
            assert part.dtype == wanted_part.dtype


def batch(count, seed=0):
    rng = np.random.default_rng(seed)
    return [random_example(rng) for _ in range(count)]


@pytest.mark.usefixtures("fast_reader")
def test_a_usual_batch_is_read_fast(monkeypatch):
    serialized = [*batch(200), b"", example(), example(label=tf.train.Feature(), text=words(b"x"))]
    expected = one_by_one(serialized)
    monkeypatch.setattr(example_parsing, "_read_row", None)
    assert_same(example_parsing.read_columns(serialized, COLUMNS), expected)


@pytest.mark.usefixtures("fast_reader")
@pytest.mark.parametrize(
    "unusual",
    [
        example(tags=words(*[b"t"] * 200)),
        example(**{f"f{i}": ints(i) for i in range(200)}),
        delimited(1, b"") + example(label=ints(5)),  # features in two parts
        example(label=ints(1)) + example(label=ints(2), age=floats(3)),
        example(label=ints(7)) + b"\x48\x05",  # a field of a later version
        # Numbers that are not packed.
        delimited(
            1,
            delimited(1, delimited(1, b"age") + delimited(2, delimited(2, b"\x0d\0\0\x80\x3f\x0d\0\0\0\x40")))
            + delimited(1, delimited(1, b"label") + delimited(2, delimited(3, b"\x08\xac\x02\x08\x01"))),
        ),
        # The value before the key.
        delimited(
            1,
            delimited(1, delimited(2, delimited(3, delimited(1, b"\x04"))) + delimited(1, b"label")),
        ),
        delimited(1, delimited(1, delimited(1, b"label"))),  # no value at all
    ],
)
def test_unusual_examples_are_read_as_well(unusual):
    serialized = [*batch(20), unusual, *batch(20, 1)]
    assert_same(example_parsing.read_columns(serialized, COLUMNS), one_by_one(serialized))


@pytest.mark.usefixtures("fast_reader")
def test_damage_is_found_or_read_alike():
    rng = random.Random(0)
    good = batch(16)
    for _ in range(400):
        serialized = list(good)
        at = rng.randrange(len(serialized))
        data = bytearray(serialized[at])
        for _ in range(rng.randrange(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        serialized[at] = bytes(data[: rng.randrange(len(data)) + 1] if rng.random() < 0.3 else data)
        outcomes = []
        for read in (lambda data: example_parsing.read_columns(data, COLUMNS), one_by_one):
            try:
                outcomes.append(read(serialized))
            except InvalidArgumentError:
                outcomes.append(None)
        assert (outcomes[0] is None) == (outcomes[1] is None)
        if outcomes[0] is not None:
            assert_same(*outcomes)


@pytest.mark.usefixtures("fast_reader")
def test_the_bad_example_is_named():
    serialized = batch(30)
    serialized[17] = serialized[17][:-1]
    with pytest.raises(InvalidArgumentError, match="example 17 is malformed"):
        example_parsing.read_columns(serialized, COLUMNS)
    serialized[17] = example(label=floats(1))
    with pytest.raises(InvalidArgumentError, match=r"example 17: Key: label\.  Data types don't match"):
        example_parsing.read_columns(serialized, COLUMNS)


def test_features_become_tensors_of_known_shapes():
    serialized = tf.placeholder(tf.string, [None])
    parsed = tf.parse_example(
        serialized,
        {
            "label": tf.FixedLenFeature([], tf.int64),
            "age": tf.FixedLenFeature((1,), tf.float32, default_value=[0.5]),
            "tags": tf.VarLenFeature(tf.string),
            "many": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        },
    )
    assert parsed["label"].shape.as_list() == [None] and parsed["age"].shape.as_list() == [None, 1]
    assert parsed["many"].shape.as_list() == [None, None] and isinstance(parsed["tags"], tf.SparseTensor)
    with tf.Session() as session:
        found = session.run(parsed, {serialized: batch(20)})
    assert found["label"].shape == (20,) and found["tags"].dense_shape.tolist()[0] == 20


def test_features_that_cannot_be_asked_for():
    for features, match in [
        ({}, "empty"),
        ({"a": tf.float32}, "expected a FixedLenFeature"),
        ({"a": tf.FixedLenFeature([], tf.int32)}, "int32, expected float32, int64 or string"),
        ({"a": tf.FixedLenFeature(None, tf.int64)}, "Missing shape for feature a"),
        ({"a": tf.FixedLenFeature([None], tf.int64)}, "First dimension of shape for feature a unknown. Consider using"),
        (
            {"a": tf.FixedLenFeature([1, None], tf.int64)},
            r"All dimensions of shape for feature a need to be known but received \[1, None\]",
        ),
        ({"a": tf.FixedLenFeature([2], tf.int64, [1, 2, 3])}, "3 elements|elements"),
        ({"a": tf.FixedLenSequenceFeature([], tf.int64)}, "FixedLenSequenceFeature requires allow_missing to be True."),
        ({"a": tf.SparseFeature("i", "v", tf.float32, [2, 3])}, "1 index keys and 2 sizes"),
        ({"a": tf.SparseFeature(None, "v", tf.float32, 2)}, "Missing index_key for SparseFeature"),
        ({"a": tf.SparseFeature("i", None, tf.float32, 2)}, "Missing value_key for SparseFeature"),
        ({"a": tf.VarLenFeature(None)}, "Missing type for feature a"),
        (
            {"a": tf.SparseFeature("i", "v", tf.float32, 2), "i": tf.FixedLenFeature([], tf.int64)},
            r"Dense and sparse keys must not intersect; intersection: \['i'\]",
        ),
    ]:
        with pytest.raises(InvalidArgumentError, match=match):
            tf.parse_example([b""], features)


def test_sequences_without_features_are_refused():
    with pytest.raises(InvalidArgumentError, match="neither context_features nor sequence_features"):
        tf.parse_single_sequence_example(b"")


def test_positions_of_a_sparse_feature_may_lie_beyond_its_size():
    data = example(place=ints(5, 0), value=ints(7, 8))
    parsed = tf.parse_example([data], {"s": tf.SparseFeature("place", "value", tf.int64, 3)})
    with tf.Session() as session:
        found = session.run(parsed["s"])
    assert found.indices.tolist() == [[0, 0], [0, 5]] and found.dense_shape.tolist() == [1, 3]


def test_one_feature_in_two_dimensions():
    feature = tf.SparseFeature(["row", "column"], "value", tf.int64, [3, 4])
    data = example(row=ints(2, 0), column=ints(1, 3), value=ints(7, 8))
    with tf.Session() as session:
        batched = session.run(tf.parse_example([data, example()], {"x": feature})["x"])
        single = session.run(tf.parse_single_example(data, {"x": feature})["x"])
    assert batched.indices.tolist() == [[0, 0, 3], [0, 2, 1]] and batched.values.tolist() == [8, 7]
    assert batched.dense_shape.tolist() == [2, 3, 4]
    assert single.indices.tolist() == [[0, 3], [2, 1]] and single.dense_shape.tolist() == [3, 4]


def test_the_attribute_of_a_constant_is_an_array_already():
    assert tf.make_ndarray(tf.constant([1, 2]).op.get_attr("value")).tolist() == [1, 2]
    for held in (tf.make_tensor_proto([1.0, 2.0]), tf.make_tensor_proto(1.0, shape=[2]), tf.constant([1.0, 2.0])):
        message = held.op.get_attr("value") if isinstance(held, tf.Tensor) else held
        written = tf.make_ndarray(message)
        written[1] = 5.0
        assert written.tolist() == [1.0, 5.0] and 5.0 not in tf.make_ndarray(message)


@pytest.mark.parametrize("dtype", sorted(d.name for d in tensor_proto.DTYPE_NUMBERS if d.name != "resource"))
def test_tensors_come_back_from_messages(dtype):
    values = [b"a", b""] if dtype == "string" else [1, 0]
    array = np.array(values, object if dtype == "string" else dtypes.as_dtype(dtype).numpy)
    again = tensor_proto.make_ndarray(tensor_proto.make_tensor_proto(array, shape=[2, 1]))
    assert again.dtype == array.dtype and again.shape == (2, 1) and again.reshape(-1).tolist() == array.tolist()


def test_messages_of_huge_tensors_are_refused():
    shape = tensor_proto.TensorShapeProto(dim=[tensor_proto.TensorShapeDim(size=1 << 40)])
    with pytest.raises(tf.errors.DataLossError, match="declares shape"):
        tensor_proto.make_ndarray(tensor_proto.TensorProto(dtype=1, tensor_shape=shape))


def proto_of(*sizes, dtype=1, **values):
    shape = tensor_proto.TensorShapeProto(dim=[tensor_proto.TensorShapeDim(size=size) for size in sizes])
    return tensor_proto.TensorProto(dtype=dtype, tensor_shape=shape, **values)


@pytest.mark.parametrize(
    "proto",
    [
        proto_of(1 << 31),
        proto_of(1 << 31, float_val=[1.0]),
        proto_of(1 << 20, 1 << 20, 1 << 20, 1 << 20, dtype=3, int_val=[1]),
        proto_of(0, 1 << 62),
        proto_of(*[0] * 100),
        proto_of(1 << 30, dtype=7, string_val=[b"x"]),
        proto_of(1 << 40, dtype=10, bool_val=[True]),
    ],
)
def test_a_small_tensor_that_declares_a_huge_one_is_refused(proto):
    data = proto.SerializeToString()
    with at_most(16):
        with pytest.raises(DataLossError, match="shape"):
            tf.make_ndarray(tensor_proto.TensorProto.FromString(data))
        with pytest.raises(InvalidArgumentError, match="shape"), tf.Session() as session:
            session.run(tf.parse_tensor(data, tf.float32))


def test_one_element_may_stand_for_many():
    np.testing.assert_array_equal(tf.make_ndarray(proto_of(1000, 50, float_val=[2.0, 3.0]))[0, :3], [2, 3, 3])
    assert tf.make_ndarray(proto_of(0, 1 << 40)).shape == (0, 1 << 40)


DENSE = {
    Column.of("label", dtypes.int64): (),
    Column.of("age", dtypes.float32): (1,),
    Column.of("many", dtypes.float32): (2, 3),
    Column.of("text", dtypes.string): (),
    Column.of("tags", dtypes.string): (2,),
    Column.of("numbers", dtypes.int64): (3,),
    Column.of("none", dtypes.int64): (0,),
    Column.of("missing", dtypes.float32): (),
}


def dense_example(rng):
    return example(
        label=ints(int(rng.integers(-3, 300))),
        age=floats(rng.random()),
        many=floats(*rng.random(6)),
        other=words(rng.bytes(200)),
        text=words(rng.bytes(int(rng.integers(0, 300)))),
        tags=words(b"tag", b""),
        numbers=ints(*rng.integers(-(2**62), 2**62, 3).tolist()),
        none=ints(),
    )


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 5),
    changes=st.lists(st.tuples(st.integers(0, 800), st.integers(0, 255)), max_size=2),
    follows=st.booleans(),
)
def test_a_single_example_is_read_as_among_others(seed, changes, follows):
    data = bytearray(dense_example(np.random.default_rng(seed)))
    reader = example_parsing.DenseReader(list(DENSE), list(DENSE.values()))
    if follows:
        assert reader.read(bytes(data)) is not None
    for place, octet in changes:
        data[place % len(data)] = octet
    found = reader.read(bytes(data))
    assert found is not None or changes
    if found is None:
        return
    columns = example_parsing.read_columns([bytes(data)], list(DENSE))
    for value, column, shape in zip(found, columns, DENSE.values(), strict=True):
        assert (value is None) == (column.lengths[0] < 0)
        if value is not None:
            assert np.shape(value) == shape
            np.testing.assert_array_equal(np.ravel(np.asarray(value)), column.values)
            assert value.dtype == column.values.dtype


def test_single_examples_of_one_length_may_have_their_features_at_other_places():
    features = {"a": tf.FixedLenFeature([], tf.string), "b": tf.FixedLenFeature([2], tf.int64)}
    examples = [
        example(a=words(b"xyz"), b=ints(1, 300)),
        example(a=words(b"uv"), b=ints(300, 301)),
        example(b=ints(1, 300), a=words(b"rst")),
        example(a=words(b"xy"), b=ints(1 << 14, 1)),
        example(a=words(b"xyz"), b=ints(2, 400)),
    ]
    assert len({len(each) for each in examples}) == 1
    data = tf.placeholder(tf.string, [])
    parsed = tf.parse_single_example(data, features)
    with tf.Session() as session:
        for _ in range(2):
            found = [session.run(parsed, {data: each}) for each in examples]
            assert [each["a"] for each in found] == [b"xyz", b"uv", b"rst", b"xy", b"xyz"]
            assert [each["b"].tolist() for each in found] == [[1, 300], [300, 301], [1, 300], [1 << 14, 1], [2, 400]]


def test_a_feature_that_is_there_twice_counts_as_it_is_last():
    features = {"a": tf.FixedLenFeature([], tf.string)}
    for values in ((b"first", b"second"), (b"second", b"first"), (b"first",)):
        entries = b"".join(example(a=words(each))[2:] for each in values)
        data = bytes([0x0A, len(entries)]) + entries
        with tf.Graph().as_default(), tf.Session() as session:
            assert session.run(tf.parse_single_example(data, features))["a"] == values[-1]
            assert session.run(tf.parse_example([data], features))["a"].tolist() == [values[-1]]


def test_single_examples_that_are_cut_off_are_left_to_the_reader_that_explains():
    data = dense_example(np.random.default_rng(0))
    reader = example_parsing.DenseReader(list(DENSE), list(DENSE.values()))
    assert reader.read(b"") == [None] * len(DENSE)
    assert all(reader.read(data[:end]) is None for end in range(1, len(data)))


def test_defaults_of_a_single_example():
    features = {
        "label": tf.FixedLenFeature([], tf.int64, 7),
        "missing": tf.FixedLenFeature([2], tf.float32, [1.5, 2.5]),
        "name": tf.FixedLenFeature([], tf.string, "nobody"),
    }
    with tf.Graph().as_default(), tf.Session() as session:
        parsed = tf.parse_single_example(example(label=ints(3)), features)
        found = session.run(parsed)
        assert (found["label"], found["name"], found["missing"].tolist()) == (3, b"nobody", [1.5, 2.5])
        with pytest.raises(
            InvalidArgumentError, match=r"Feature: label \(data type: int64\) is required but could not"
        ):
            session.run(tf.parse_single_example(example(), {"label": tf.FixedLenFeature([], tf.int64)}))
