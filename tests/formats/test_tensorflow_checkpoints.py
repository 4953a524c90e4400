"""Checkpoints in TensorFlow's formats: V2 as `tf.train.Saver` writes it, and V1 as TensorFlow 2.21 wrote it.

The files of format V1 are made by ``scripts/golden_checkpoints.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import tracemalloc

import numpy as np
import pytest
from pyarrow import fs

import tfray as tf
from tests.support import GOLDEN
from tests.support.cases.checkpoint_values import VALUES_OF_DTYPES
from tests.support.cases.checkpointed_model import checkpointed_model
from tests.support.traced_memory import at_most
from tests.support.wire_bytes import delimited, varint
from tfray.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from tfray.formats.bundles.saved_slices import SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices
from tfray.formats.bundles.slice_keys import slice_of, tensor_slice
from tfray.formats.bundles.sorted_table import BLOCK_BYTES, read_table, table_bytes
from tfray.formats.bundles.tensor_bundle import BundleEntry, BundleHeader
from tfray.formats.checkpoint import Manifest
from tfray.formats.checkpoint_folder import stray_files
from tfray.formats.checkpoint_shard import Piece
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint
from tfray.formats.safetensors import save_safetensors
from tfray.formats.tensor_proto import TensorShapeDim, TensorShapeProto
from tfray.formats.write_formats import TENSORFLOW, TFRAY, complete_checkpoint, write_data

V1 = GOLDEN / "checkpoints" / "v1"
SHARDS = "shards-?????-of-00002"


def write(prefix, values, parts=(), write_format=TENSORFLOW):
    """A checkpoint of two data files: values, and the rows of an array in parts."""
    whole = [Piece.whole(name, value) for name, value in values.items()]
    halves = [Piece(name, array, shape, offset) for name, array, shape, offset in parts]
    groups = [whole + halves[::2], halves[1::2]]
    records = [write_data(prefix, group, index, 2, write_format) for index, group in enumerate(groups)]
    complete_checkpoint(prefix, Manifest.of_shards(records), write_format)
    return prefix


def read_all(prefix):
    opened = open_checkpoint(str(prefix))
    return {name: opened.read(name) for name in opened.tensors}


# -- writing V2 ----------------------------------------------------------------------------------------


def test_every_dtype_comes_back(tmp_path):
    found = read_all(write(f"{tmp_path}/m", VALUES_OF_DTYPES))
    assert found.keys() == VALUES_OF_DTYPES.keys()
    for name, value in VALUES_OF_DTYPES.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].dtype == value.dtype and found[name].shape == value.shape


def test_entries_of_the_index(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    write(
        f"{tmp_path}/m",
        {"b": np.array([1, 2], np.int16)},
        [("a", rows[:4], [6, 2], [0, 0]), ("a", rows[4:], [6, 2], [4, 0])],
    )
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    table = read_table((tmp_path / "m.index").read_bytes())
    keys = list(table)
    assert keys == sorted(keys) and keys[0] == b"" and keys[3:] == [b"a", b"b"]
    header = BundleHeader.FromString(table[b""])
    assert (header.num_shards, header.endianness, header.version.producer) == (2, 0, 1)
    whole = BundleEntry.FromString(table[b"a"])
    assert [[(each.start, each.length) for each in part.extent] for part in whole.slices] == [
        [(0, 4), (0, 2)],
        [(4, 2), (0, 2)],
    ]
    assert whole.size == 0 and [dim.size for dim in whole.shape.dim] == [6, 2]
    first, second = (BundleEntry.FromString(table[key]) for key in keys[1:3])
    assert (first.shard_id, first.size, second.shard_id, second.size) == (0, 32, 1, 16)
    data = (tmp_path / "m.data-00001-of-00002").read_bytes()
    assert data[second.offset : second.offset + second.size] == rows[4:].tobytes()


def test_parts_of_which_some_are_empty(tmp_path):
    rows = np.arange(4.0)
    parts = [("a", rows[:0], [4], [0]), ("a", rows, [4], [0]), ("a", rows[:0], [4], [4])]
    nothing = [("none", np.zeros((0, 3)), [0, 3], [0, 0]), ("none", np.zeros((0, 3)), [0, 3], [0, 0])]
    found = read_all(write(f"{tmp_path}/m", {}, [*parts, *nothing]))
    np.testing.assert_array_equal(found["a"], rows)
    assert found["none"].shape == (0, 3)


def test_large_data_begins_at_pages_and_is_read_in_place(tmp_path):
    values = {"small": np.ones(3, np.int8), "large": np.arange(2_000_000, dtype=np.float32)}
    opened = open_checkpoint(write(f"{tmp_path}/m", values))
    for name, alignment in (("small", 64), ("large", 4096)):
        (part,) = opened.tensors[name].slices
        assert part.position % alignment == 0
    large = opened.read("large")
    assert not large.flags.owndata and not large.flags.writeable
    np.testing.assert_array_equal(large, values["large"])


def test_tables_of_many_blocks_come_back():
    entries = [(b"%08d" % i + b"k" * (i % 7), bytes([i % 256]) * (i % 90)) for i in range(20_000)]
    written = table_bytes(entries)
    assert len(written) > 2 * BLOCK_BYTES
    assert list(read_table(written).items()) == entries
    assert read_table(table_bytes([])) == {}


def test_names_that_cannot_be(tmp_path):
    for name in ("", "\0x"):
        with pytest.raises(InvalidArgumentError, match="cannot be the name"):
            write(f"{tmp_path}/m", {name: np.ones(1)})
    assert not (tmp_path / "m.index").exists()


# -- Saver ---------------------------------------------------------------------------------------------


def losses(path, steps, saved_as=None, write_format=TFRAY, **options):
    """Train from a checkpoint, or from the beginning, and save. Returns the losses and the path of what was saved."""
    batch = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x, _, loss, train = checkpointed_model()
        saver = tf.train.Saver(write_format=write_format, **options)
        if path is None:
            session.run(tf.global_variables_initializer())
        else:
            saver.restore(session, path)
        found = [session.run([loss, train], {x: batch})[0] for _ in range(steps)]
        saved = saved_as and saver.save(session, saved_as, tf.train.get_global_step())
        saver.wait()
    return found, saved


@pytest.mark.parametrize("options", [{}, {"asynchronous": True}, {"sharded": True}], ids=str)
def test_training_goes_over_to_tensorflows_format_and_back(tmp_path, options):
    expected, _ = losses(None, 9)
    first, there = losses(None, 3, f"{tmp_path}/there/m", TENSORFLOW, **options)
    second, back = losses(there, 3, f"{tmp_path}/back/m")
    third, _ = losses(back, 3)
    assert first + second + third == expected
    assert (tmp_path / "there" / "m-3.data-00000-of-00001").exists()
    assert tf.train.latest_checkpoint(tmp_path / "there") == there == f"{tmp_path}/there/m-3"


def test_a_saver_keeps_and_deletes_checkpoints_of_this_format(tmp_path):
    (tmp_path / "m-1.data-00000-of-00009").write_bytes(b"another program's")
    variable = tf.Variable(np.zeros(4))
    saver = tf.train.Saver(max_to_keep=2, write_format="tensorflow")
    with tf.Session() as session:
        session.run(variable.initializer)
        for step in (1, 2, 2, 3):
            saver.save(session, f"{tmp_path}/m", step, write_meta_graph=False)
    names = {re.sub(r"-of-\d{5}$", "", path.name) for path in tmp_path.iterdir()}
    kept = {f"m-{step}.{kind}" for step in (2, 3) for kind in ("index", "data-00000")}
    assert names == {"checkpoint", "m-1.data-00000", *kept}
    assert [os.path.basename(path) for path in saver.last_checkpoints] == ["m-2", "m-3"]
    tf.train.remove_checkpoint(f"{tmp_path}/m-2")
    assert not list(tmp_path.glob("m-2*"))


def test_an_older_checkpoint_stays_until_the_index_is_there(tmp_path, monkeypatch):
    """Also where both would have files of the same names."""
    write(f"{tmp_path}/m", {"w": np.full(9, 1)})
    record = write_data(f"{tmp_path}/m", [Piece.whole("w", np.full(9, 2))], 0, 2, TENSORFLOW)
    other = write_data(f"{tmp_path}/m", [Piece.whole("v", np.full(9, 2))], 1, 2, TENSORFLOW)

    def fails(*args):
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(OpError):
            complete_checkpoint(f"{tmp_path}/m", Manifest.of_shards([record, other]), TENSORFLOW)
    np.testing.assert_array_equal(open_checkpoint(f"{tmp_path}/m").read("w"), np.full(9, 1))
    write(f"{tmp_path}/m", {"w": np.full(9, 3)})
    np.testing.assert_array_equal(open_checkpoint(f"{tmp_path}/m").read("w"), np.full(9, 3))


def test_formats_that_are_none():
    tf.Variable(1.0)
    with pytest.raises(InvalidArgumentError, match="'tfray' or 'tensorflow', not 'onnx'"):
        tf.train.Saver(write_format="onnx")
    with pytest.raises(ValueError, match="version 1 is read"):
        tf.train.Saver(write_format="tensorflow", write_version=tf.train.SaverDef.V1)


def test_a_graph_keeps_its_savers_format(tmp_path):
    tf.Variable(np.arange(3.0), name="w")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver(write_format="tensorflow").save(session, f"{tmp_path}/m")
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{tmp_path}/m.meta")
        saver.restore(session, f"{tmp_path}/m")
        saver.save(session, f"{tmp_path}/again", write_meta_graph=False)
    assert (tmp_path / "again.data-00000-of-00001").exists()
    np.testing.assert_array_equal(tf.train.load_variable(f"{tmp_path}/again", "w"), np.arange(3.0))


def test_graphs_from_before_there_was_a_choice_save_as_they_did(tmp_path):
    tf.Variable(np.arange(3.0), name="w")
    saver = tf.train.Saver()
    graph = tf.get_default_graph().as_graph_def()
    for node in graph.node:
        node.attr.pop("write_format", None)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph, name="")
        again = tf.train.Saver(saver_def=saver.saver_def)
        session.run("w/Assign")
        again.save(session, f"{tmp_path}/m", write_meta_graph=False)
    assert list(tmp_path.glob("m.data-*.arrow"))


def test_in_a_store(tmp_path):
    tf.gfile.register_file_system("afar", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    variable = tf.Variable(np.arange(5.0))
    saver = tf.train.Saver(max_to_keep=1, write_format="tensorflow")
    with tf.Session() as session:
        session.run(variable.initializer)
        for step in (1, 1, 2):
            path = saver.save(session, "afar://runs/m", step, write_meta_graph=False)
        saver.restore(session, path)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "checkpoint",
        "m-2.data-00000-of-00001",
        "m-2.index",
    ]


# -- reading V1 ----------------------------------------------------------------------------------------


@pytest.fixture
def expected():
    with np.load(V1 / "expected.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", ["whole", SHARDS])
def test_version_1_is_read(name, expected):
    reader = tf.train.NewCheckpointReader(V1 / name)
    found = {each: reader.get_tensor(each) for each in reader.get_variable_to_shape_map()}
    strings = found.pop("string")
    assert strings.tolist() == [[b"", b"a\0b"], [b"longer " * 40, b"\xff\xfe"]]
    assert found.keys() == expected.keys()
    for each, value in expected.items():
        np.testing.assert_array_equal(found[each], value)
        assert found[each].dtype == value.dtype and reader.get_variable_to_dtype_map()[each] == value.dtype


def test_the_tools_of_checkpoints_know_version_1(expected):
    path = tf.train.latest_checkpoint(V1)
    assert path == f"{V1}/{SHARDS}"
    assert tf.train.checkpoint_exists(path) and tf.train.checkpoint_exists(V1 / "whole")
    assert not tf.train.checkpoint_exists(V1 / "whol") and not tf.train.checkpoint_exists(V1)
    assert len(tf.train.get_checkpoint_mtimes([path, V1 / "whole", V1 / "whol"])) == 2
    assert ("table", [7, 4]) in tf.train.list_variables(V1)
    np.testing.assert_array_equal(tf.train.load_variable(V1, "float64:0"), expected["float64"])
    with pytest.raises(NotFoundError, match="does not exist"):
        tf.train.load_checkpoint(V1 / "other-?????-of-00002")


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_variables_in_other_parts_are_restored_from_version_1(parts, expected):
    table = tf.get_variable("table", [7, 4], partitioner=tf.fixed_size_partitioner(parts))
    with tf.Session() as session:
        tf.train.Saver().restore(session, f"{V1}/{SHARDS}")
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(table)), expected["table"])


def test_other_files_are_no_checkpoints(tmp_path):
    (tmp_path / "notes").write_text("not a checkpoint, but long enough to have a footer of a table at its end")
    with pytest.raises(DataLossError, match="no checkpoint"):
        tf.train.load_checkpoint(tmp_path / "notes")


def saved_slice(values, number=5):
    """An entry of format V1 with values in a field of a `TensorProto`."""
    return delimited(2, delimited(1, b"w") + delimited(3, delimited(number, values)))


def one_tensor(folder, shape, kind, entries, parts=None):
    """A file of format V1 with one tensor, which has entries for its slices."""
    dims = TensorShapeProto(dim=[TensorShapeDim(size=size) for size in shape])
    parts = [[(0, size) for size in shape]] if parts is None else parts
    slices = [tensor_slice(*zip(*part, strict=True)) for part in parts]
    meta = SavedSliceMeta(name="w", shape=dims, type=kind, slice=slices)
    first = SavedTensorSlices(meta=SavedTensorSliceMeta(tensor=[meta])).SerializeToString()
    keys = [slice_of(each, shape, "w")[2] for each in slices]
    (folder / "v1").write_bytes(table_bytes(sorted([(b"", first), *zip(keys, entries, strict=False)])))
    return folder / "v1"


def test_numbers_of_version_1_that_are_not_packed(tmp_path):
    separate = b"".join(varint(7 << 3) + varint(each) for each in (5, 2**64 - 3))
    path = one_tensor(tmp_path, [2], 3, [delimited(2, delimited(3, separate))])
    np.testing.assert_array_equal(tf.train.load_variable(path, "w"), np.array([5, -3], np.int32))


def test_many_numbers_of_version_1(tmp_path):
    numbers = np.random.default_rng(0).integers(-(2**40), 2**40, 30_000) >> np.arange(30_000) % 40
    packed = b"".join(varint(number % 2**64) for number in numbers.tolist())
    path = one_tensor(tmp_path, [300, 100], 9, [saved_slice(packed, 10)])
    np.testing.assert_array_equal(tf.train.load_variable(path, "w"), numbers.reshape(300, 100))


@pytest.mark.fault(
    "Files",
    "A file declares sizes that it does not have.",
    happens="`tf.errors.DataLossError`.",
    promise="Declared sizes are checked before memory is taken for them.",
)
@pytest.mark.parametrize(
    ("shape", "kind", "entries", "parts"),
    [
        ([1 << 40], 1, [saved_slice(b"\0" * 8)], None),
        ([1 << 40], 9, [saved_slice(b"\0" * 8, 10)], None),
        ([1 << 40], 7, [saved_slice(b"\0" * 8, 8)], None),
        ([0, 1 << 62], 1, [], None),
        ([0] * 100, 1, [], None),
        ([1 << 40], 9, [saved_slice(b"\0", 10)] * 2, [[(0, 1 << 39)], [(1 << 39, 1 << 39)]]),
        ([16], 1, [saved_slice(b"\0" * 32)] * 2, [[(0, 8)], [(4, 8)]]),
        ([2], 1, [saved_slice(b"\0" * 7)], None),
        ([2], 9, [saved_slice(b"\x80\x80\x80", 10)], None),
        ([2], 9, [saved_slice(b"\1\2\3", 10)], None),
        ([2], 1, [b"\xff" * 20], None),
        ([2], 1, [], None),
    ],
)
def test_version_1_that_declares_what_is_not_there(tmp_path, shape, kind, entries, parts):
    path = one_tensor(tmp_path, shape, kind, entries, parts)
    with at_most(16), pytest.raises(DataLossError, match=r"v1 is damaged|'w'"):
        tf.train.load_variable(path, "w")


# -- changed files -------------------------------------------------------------------------------------

KINDS = ("tensorflow", "tfray", "safetensors", "v1")


def made(kind, folder):
    """A checkpoint of 200 KB, of which most is one tensor. Returns its path."""
    rng = np.random.default_rng(1)
    values = {
        "weights": rng.normal(size=(200, 200)).astype(np.float32),
        "steps": np.arange(5000),
        "names": np.array([b"%d" % i * (i % 9) for i in range(300)], object),
    }
    if kind == "v1":
        for path in V1.glob("shards-*"):
            shutil.copy(path, folder)
        return f"{folder}/{SHARDS}"
    if kind == "safetensors":
        del values["names"]
        save_safetensors(values, folder / "m.safetensors")
        return f"{folder}/m.safetensors"
    rows = np.arange(300.0).reshape(30, 10)
    parts = [("table", rows[:20], [30, 10], [0, 0]), ("table", rows[20:], [30, 10], [20, 0])]
    return write(f"{folder}/m", values, parts, kind)


def changed(rng, contents):
    """Bytes of which a few are changed, cut out, doubled or cut off."""
    contents = bytearray(contents)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(contents))) if contents else 0
        if rng.random() < 0.3:  # near an end, where what says how to read the rest is
            at = at % 64 if rng.random() < 0.5 else max(0, len(contents) - 1 - at % 64)
        match rng.integers(6):
            case 0 if contents:
                contents[at] ^= 1 << int(rng.integers(8))
            case 1:
                contents[at : at + 4] = [b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"9999"][rng.integers(4)]
            case 2:
                del contents[at:]
            case 3:
                del contents[at : at + int(rng.integers(1, 10))]
            case 4:
                contents[at:at] = contents[at : at + int(rng.integers(1, 40))]
            case _:
                contents[at:at] = rng.bytes(int(rng.integers(1, 9)))
    return bytes(contents)


def check_changed_files(kind, folder, count):
    """Each gives the values from before or one clear error, and takes at most twice the memory of the files."""
    prefix = made(kind, folder)
    victims = sorted(path for path in folder.iterdir() if path.name != "checkpoint")
    originals = [path.read_bytes() for path in victims]
    most = 2 * sum(map(len, originals)) + (1 << 20)
    before = read_all(prefix)
    rng = np.random.default_rng(2)
    for number in range(count):
        which = number % len(victims)
        victims[which].write_bytes(changed(rng, originals[which]))
        tracemalloc.start()
        try:
            verify_checkpoint(open_checkpoint(prefix))
            found = read_all(prefix)
        except OpError as error:
            found = None
            assert str(error)
        finally:
            assert tracemalloc.get_traced_memory()[1] < most
            tracemalloc.stop()
        if found is not None and kind != "safetensors":  # which has no checksums
            assert found.keys() == before.keys()
            assert all(np.array_equal(found[name], before[name]) for name in before)
        victims[which].write_bytes(originals[which])


@pytest.mark.fault(
    "Files",
    "A checkpoint of TensorFlow is damaged in any way.",
    happens="`tf.errors.DataLossError` or the values that were saved.",
    promise="Reading it takes at most twice the memory of its files, and does not hang.",
)
@pytest.mark.parametrize("kind", KINDS)
def test_changed_files_are_a_clear_error(tmp_path, kind):
    check_changed_files(kind, tmp_path, 300)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_changed_files_are_a_clear_error(tmp_path, kind):
    check_changed_files(kind, tmp_path, 10_000)


def test_what_an_interrupted_save_of_this_format_leaves_is_found(tmp_path):
    write(f"{tmp_path}/m-1", {"w": np.ones(3)})
    (tmp_path / "m-1.data-00000-of-54321").write_bytes(b"half")
    (tmp_path / "m-1.data-00001-of-00002-0123456789ab.part").write_bytes(b"half")
    found = [os.path.basename(path) for path in stray_files(f"{tmp_path}/m-", series=True)]
    assert found == ["m-1.data-00001-of-00002-0123456789ab.part"]  # the other may be of any program
    (tmp_path / "m-1.tfray-saving-0123456789ab").write_bytes(b"{}")
    os.utime(tmp_path / "m-1.tfray-saving-0123456789ab", (0, 0))
    found = {os.path.basename(path) for path in stray_files(f"{tmp_path}/m-", series=True)}
    assert found == {
        "m-1.data-00000-of-54321",
        "m-1.data-00001-of-00002-0123456789ab.part",
        "m-1.tfray-saving-0123456789ab",
    }
