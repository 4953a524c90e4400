"""Checkpoints that TensorFlow 2.21 wrote (``scripts/golden_checkpoints.py``), and safetensors files."""

from __future__ import annotations

import json
import math
import shutil
import struct

import ml_dtypes
import numpy as np
import pytest
from pyarrow import fs

import tfray as tf
from tests.support import GOLDEN
from tests.support.cases.checkpointed_model import checkpointed_model
from tests.support.traced_memory import at_most
from tests.support.wire_bytes import varint
from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError
from tfray.formats.bundles.slice_keys import SliceExtent, TensorSlice, _ordered_signed, slice_of
from tfray.formats.bundles.sorted_table import MAGIC, read_table
from tfray.formats.bundles.tensor_bundle import BundleEntry, BundleHeader
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.safetensors import load_safetensors, save_safetensors
from tfray.formats.tensor_proto import TensorShapeDim, TensorShapeProto
from tfray.formats.tfrecord import masked_checksum

FOLDER = GOLDEN / "checkpoints"
PREFIX = str(FOLDER / "model-20")


@pytest.fixture
def expected():
    with np.load(FOLDER / "expected.npz") as arrays:
        return dict(arrays)


def test_a_trained_model_moves_over(expected):
    x, predictions, _, train = checkpointed_model()
    with tf.Session() as session:
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(FOLDER))
        found = session.run(predictions, {x: expected["x"]})
        np.testing.assert_allclose(found, expected["predictions"], rtol=2e-6)
        for variable in tf.global_variables():
            np.testing.assert_array_equal(session.run(variable), expected[variable.op.name])
        session.run(train, {x: expected["x"]})  # slots and step are there as well
        assert session.run(tf.train.get_global_step()) == 21


def test_every_dtype_is_read():
    reader = tf.train.load_checkpoint(FOLDER)
    assert reader.get_tensor("names").tolist() == [[b"", b"a\0b"], [b"longer " * 40, b"\xff\xfe"]]
    np.testing.assert_array_equal(reader.get_tensor("half"), np.array([1.5, -2.25], np.float16))
    np.testing.assert_array_equal(reader.get_tensor("brain"), np.array([1.5, -2.25], ml_dtypes.bfloat16))
    np.testing.assert_array_equal(reader.get_tensor("flags"), [True, False, True])
    np.testing.assert_array_equal(reader.get_tensor("complex"), np.array([1 + 2j], np.complex64))
    assert reader.get_tensor("empty").shape == (0, 3)
    assert reader.get_variable_to_shape_map()["out/kernel"] == [6, 4]
    assert reader.get_variable_to_dtype_map()["global_step"] == tf.int64


def test_keys_of_large_slices():
    for value, encoded in [
        (0, "80"),
        (63, "bf"),
        (64, "c040"),
        (-1, "7f"),
        (-65, "3fbf"),
        (333, "c14d"),
        (8192, "e02000"),
    ]:
        assert _ordered_signed(value).hex() == encoded


@pytest.fixture
def copied(tmp_path):
    for file in FOLDER.glob("model-20.*"):
        shutil.copy(file, tmp_path)
    return tmp_path / "model-20"


def read_all(prefix):
    checkpoint = open_checkpoint(str(prefix))
    return {name: checkpoint.read(name) for name in checkpoint.tensors}


def test_every_flipped_byte_of_the_data_is_noticed(copied):
    file = copied.with_name("model-20.data-00000-of-00001")
    data = file.read_bytes()
    for position in range(len(data)):
        file.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(DataLossError, match=r"data-00000-of-00001 is damaged in tensor '\w+"):
            read_all(copied)


def test_every_flipped_byte_of_the_index_is_noticed(copied):
    file = copied.with_name("model-20.index")
    data = file.read_bytes()
    for position in range(len(data)):
        file.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(DataLossError, match=r"model-20\.index is damaged"):
            read_all(copied)


# -- safetensors ---------------------------------------------------------------------------------------

TENSORS = {
    "a": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
    "half": np.array([1.5, -2], np.float16),
    "brain": np.array([1.5, -2], ml_dtypes.bfloat16),
    "scalar": np.array(7, np.int64),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 2)),
    "complex": np.array([1 + 2j], np.complex64),
}


def test_safetensors_come_back(tmp_path):
    path = tmp_path / "model.safetensors"
    save_safetensors(TENSORS, path, {"format": "np"})
    found = load_safetensors(path)
    assert found.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].dtype == value.dtype


def test_the_layout_of_safetensors(tmp_path):
    path = tmp_path / "model.safetensors"
    save_safetensors({"b": np.array([1, 2], np.int16), "a": np.array([1.0])}, path)
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    assert header == {
        "a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
        "b": {"dtype": "I16", "shape": [2], "data_offsets": [8, 12]},
    }
    assert data[8 + length :] == struct.pack("<dhh", 1.0, 1, 2)


def test_variables_start_from_safetensors(tmp_path):
    path = str(tmp_path / "model.safetensors")
    save_safetensors(TENSORS, path)
    with tf.Session() as session:
        variable = tf.Variable(np.zeros((2, 3), np.float32))
        tf.train.Saver({"a": variable}).restore(session, path)
        np.testing.assert_array_equal(session.run(variable), TENSORS["a"])
    assert ("scalar", []) in tf.train.list_variables(path)


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\xff" * 8,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 9) + b'{"a":{}}x',
        struct.pack("<Q", 62) + b'{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}'[:62],
        struct.pack("<Q", 54) + b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}' + b"1234",
    ],
)
def test_other_files_are_no_safetensors(tmp_path, contents):
    path = tmp_path / "model.safetensors"
    path.write_bytes(contents)
    with pytest.raises(DataLossError, match="no safetensors"):
        load_safetensors(path)


def test_what_safetensors_cannot_hold_is_said(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"'s'.*string"):
        save_safetensors({"s": np.array([b"x"], object)}, tmp_path / "f.safetensors")
    with pytest.raises(NotFoundError):
        load_safetensors(tmp_path / "f.safetensors")


# -- indices that were made to harm --------------------------------------------------------------------


def block(entries, restarts=1):
    """A block of a table, its trailer included; of entries ``(shared, rest of the key, value)``."""
    body = b"".join(varint(n) + varint(len(k)) + varint(len(v)) + k + v for n, k, v in entries)
    body += bytes(4 * restarts) + struct.pack("<I", restarts)
    return body + b"\0" + struct.pack("<I", masked_checksum(body + b"\0"))


def handle(offset, stored):
    return varint(offset) + varint(len(stored) - 5)


def table(data, handles):
    """A table of data blocks, and the handles of them that its index has."""
    nothing = block([])
    index = block([(0, b"%06d" % i, each) for i, each in enumerate(handles)])
    footer = handle(len(data), nothing) + handle(len(data) + len(nothing), index)
    return data + nothing + index + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def test_a_table_is_read_as_it_is_made():
    first, second = block([(0, b"", b"h"), (0, b"a", b"1")]), block([(0, b"bc", b"2"), (1, b"d", b"3")])
    found = read_table(table(first + second, [handle(0, first), handle(len(first), second)]))
    assert found == {b"": b"h", b"a": b"1", b"bc": b"2", b"bd": b"3"}


def test_keys_that_repeat_the_one_before_do_not_take_all_memory():
    """Half a megabyte in which every key has 100,000 bytes in common with the one before: 10 GB of keys."""
    data = block([(0, b"k" * 100_000, b""), *[(100_000, b"", b"")] * 100_000])
    with at_most(64), pytest.raises(DataLossError, match="keys of a block"):
        read_table(table(data, [handle(0, data)]))


def test_a_block_is_read_once():
    data = block([(0, b"%05d" % i, b"v") for i in range(1000)])
    with pytest.raises(DataLossError, match="overlaps the one before"):
        read_table(table(data, [handle(0, data)] * 1000))


def bundle(folder, entries):
    """A checkpoint of TensorFlow with an index of these entries, and 64 bytes of data."""
    (folder / "m.data-00000-of-00001").write_bytes(bytes(64))
    header = BundleHeader(num_shards=1).SerializeToString()
    data = block([(0, b"", header), *[(0, key, entry.SerializeToString()) for key, entry in sorted(entries.items())]])
    (folder / "m.index").write_bytes(table(data, [handle(0, data)]))
    return str(folder / "m")


def entry_of(shape, size, slices=(), offset=0):
    dims = TensorShapeProto(dim=[TensorShapeDim(size=each) for each in shape])
    return BundleEntry(dtype=1, shape=dims, size=size, offset=offset, slices=slices)


def slice_from(start, length):
    return TensorSlice(extent=[SliceExtent(start=start, length=length)])


@pytest.mark.fault(
    "Files",
    "A file declares sizes that it does not have.",
    happens="`tf.errors.DataLossError`.",
    promise="Declared sizes are checked before memory is taken for them.",
)
@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        ([0, 1 << 62], []),
        ([0] * 100, []),
        ([1 << 40], []),
        ([1 << 40], [(0, 1 << 39), (1 << 39, 1 << 39)]),
        ([32], [(0, 16), (16, 16)]),  # which take the 64 bytes twice
        ([16], [(0, 8), (4, 8)]),
    ],
)
def test_entries_that_declare_what_is_not_there(tmp_path, shape, parts):
    slices = [slice_from(*part) for part in parts]
    entries = {b"w": entry_of(shape, 0 if slices else 4 * math.prod(shape), slices)}
    for each, (_, length) in zip(slices, parts, strict=True):
        entries[slice_of(each, shape, "w")[2]] = entry_of([length], 4 * length)
    prefix = bundle(tmp_path, entries)
    tf.gfile.register_file_system("far", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    for path in (prefix, "far:///m"):
        with at_most(16), pytest.raises(DataLossError):
            open_checkpoint(path).read("w")
