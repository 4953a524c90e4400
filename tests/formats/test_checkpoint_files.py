"""Checkpoint files: what they hold, that damage is noticed, and that nothing is left half done."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.damaged.kinds import ARRAYS, signed
from tests.support.damaged.kinds import write_arrow as write
from tests.support.traced_memory import at_most
from tfray.errors import AbortedError, DataLossError, InvalidArgumentError, UnavailableError
from tfray.formats import files
from tfray.formats.checkpoint import Manifest
from tfray.formats.checkpoint_folder import clear_away, saving, stray_files
from tfray.formats.checkpoint_shard import Piece, write_shard
from tfray.formats.holder import Holder
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint
from tfray.formats.safetensors import load_safetensors
from tfray.formats.write_formats import TENSORFLOW, TFRAY, complete_checkpoint, write_data


def data_files(folder):
    return sorted(path for path in Path(folder).iterdir() if ".data-" in path.name)


def test_arrays_are_views_of_the_mapped_file(tmp_path):
    checkpoint = open_checkpoint(write(tmp_path))
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(checkpoint.read(name), array)
    weights = checkpoint.read("weights")
    assert not weights.flags.owndata and not weights.flags.writeable and weights.ctypes.data % 64 == 0
    np.testing.assert_array_equal(checkpoint.read("parts"), np.arange(12.0).reshape(6, 2))
    np.testing.assert_array_equal(checkpoint.read("parts", [3, 1], [2, 1]), [[7], [9]])
    with pytest.raises(InvalidArgumentError, match="no part"):
        checkpoint.read("parts", [5, 0], [2, 2])


def test_shards_are_arrow_files(tmp_path):
    write(tmp_path)
    rows = [row for path in data_files(tmp_path) for row in pa.ipc.open_file(path).read_all().to_pylist()]
    by_name = {row["name"]: row for row in rows}
    assert by_name["weights"]["shape"] == [20, 15] and by_name["weights"]["dtype"] == "float32"
    assert by_name["weights"]["data"] == ARRAYS["weights"].tobytes()
    assert [row["offset"] for row in rows if row["name"] == "parts"] == [[0, 0], [4, 0]]


@pytest.mark.parametrize("folder", ["disk", "/dev/shm"])
@pytest.mark.parametrize("extra", [0, 1, 4095])
def test_large_arrays_are_written_past_the_cache_where_that_can_be(tmp_path, folder, extra):
    large = np.random.default_rng(extra).integers(0, 255, (9 << 20) + extra, dtype=np.uint8)
    arrays = {"a": large[:7], "large": large, "b": large[:100], "again": large[1:-3], "c": np.array(5)}
    with tempfile.TemporaryDirectory(dir=tmp_path if folder == "disk" else folder) as where:
        checkpoint = open_checkpoint(write(where, arrays))
        verify_checkpoint(checkpoint)
        for name, array in arrays.items():
            np.testing.assert_array_equal(checkpoint.read(name), array)
        assert checkpoint.tensors["large"].slices[0].position % 4096 == 0
        rows = pa.ipc.open_file(data_files(where)[0]).read_all().to_pylist()
        assert rows[1]["data"] == large.tobytes()


def test_files_are_on_the_disk_before_the_manifest_is_in_place(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace

    def syncing(descriptor):
        events.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))))
        sync(descriptor)

    def replacing(source, target):
        events.append(("replace", os.path.basename(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", replacing)
    write(tmp_path)
    *data, manifest, placed, folder = events
    assert {name for _, name in data} == {path.name for path in data_files(tmp_path)}
    assert manifest[0] == "sync" and manifest[1].startswith("model.index.tfray-tmp-")
    assert placed == ("replace", "model.index") and folder == ("sync", tmp_path.name)


def test_an_older_save_of_the_same_name_is_replaced(tmp_path):
    write(tmp_path)
    before = data_files(tmp_path)
    opened = open_checkpoint(f"{tmp_path}/model")
    mapped = opened.read("weights")
    write(tmp_path, {**ARRAYS, "step": np.array(8, np.int64)})
    assert not set(before) & set(data_files(tmp_path))
    assert open_checkpoint(f"{tmp_path}/model").read("step") == 8
    np.testing.assert_array_equal(mapped, ARRAYS["weights"])  # what was mapped stays


def test_parts_that_do_not_make_a_whole_are_refused(tmp_path):
    piece = Piece("w", np.zeros(2), [5], [0])
    with pytest.raises(InvalidArgumentError, match=r"'w' have 2 elements"):
        Manifest.of_shards([write_shard(f"{tmp_path}/a", [piece])])
    twice = [write_shard(f"{tmp_path}/{name}", [Piece.whole("w", np.zeros(2, dtype))]) for name, dtype in ("bf", "cd")]
    with pytest.raises(InvalidArgumentError, match="different names"):
        Manifest.of_shards(twice)


@pytest.mark.fault(
    "Drivers and checkpoints",
    "The newest checkpoint is damaged.",
    happens="A `Trainer` goes back to the one before and says so. Other sessions raise `tf.errors.DataLossError`.",
    promise="Every changed byte is noticed, and damaged values are never used.",
)
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("where", ["data", "index"])
def test_every_flipped_byte_is_noticed(tmp_path, where, stride):
    prefix = write(tmp_path)
    path = Path(f"{prefix}.index") if where == "index" else data_files(tmp_path)[0]
    names = set()
    contents = path.read_bytes()
    for position in range(0, len(contents), stride):
        path.write_bytes(
            contents[:position] + bytes([contents[position] ^ (1 << position % 8)]) + contents[position + 1 :]
        )
        with pytest.raises(DataLossError, match="damaged") as caught:
            verify_checkpoint(open_checkpoint(prefix))
        assert path.name in str(caught.value)
        names.update(name for name in [*ARRAYS, "parts"] if f"tensor {name!r}" in str(caught.value))
    if where == "data":
        assert names == {*ARRAYS, "parts"} - {"empty"}


def test_missing_and_cut_files_are_noticed(tmp_path):
    prefix = write(tmp_path)
    first, _ = data_files(tmp_path)
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(DataLossError, match=first.name):
        verify_checkpoint(open_checkpoint(prefix))
    prefix = write(tmp_path)
    data_files(tmp_path)[1].unlink()
    with pytest.raises(DataLossError, match="is missing"):
        open_checkpoint(prefix).read("parts")


# -- several saves at once -----------------------------------------------------------------------------


def begun(folder, value, write_format=TFRAY):
    """A save whose shards are written, and whose manifest is not; returns what puts that in place."""
    prefix = f"{folder}/m-1"
    under_way = saving(prefix)
    under_way.__enter__()
    record = write_data(prefix, [Piece.whole("w", np.full(9, value))], 0, 1, write_format)

    def finish():
        complete_checkpoint(prefix, Manifest.of_shards([record]), write_format)
        under_way.__exit__(None, None, None)

    return finish


def overlaps():
    """Formats of three saves, and the orders in which these may begin and end.

    An order that is another one with its saves renamed is slow, provided that those have the same format.
    """
    for formats in ({}, dict.fromkeys("abc", TENSORFLOW), {"b": TENSORFLOW}):
        alike = "ac" if len(formats) == 1 else "abc"
        for order in sorted(set(itertools.permutations("aabbcc"))):
            begin = [letter for letter in dict.fromkeys(order) if letter in alike]
            marks = () if begin == sorted(begin) else pytest.mark.slow
            yield pytest.param(formats, order, marks=marks, id=f"{len(formats)}-{''.join(order)}")


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Two saves to one path overlap, in one process or in two.",
    happens="Both end.",
    promise="The one that ends last can be restored.",
)
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("formats", "order"), list(overlaps()))
def test_overlapping_saves_of_one_path_leave_the_last_one(tmp_path, order, before, formats):
    """Each letter is a save: it begins, and ends; between any two others tidy up, as new runs do."""
    if before:
        begun(tmp_path, 0, formats.get("a", TFRAY))()
    under_way = {}
    for letter in order:
        if letter in under_way:
            under_way.pop(letter)()
            np.testing.assert_array_equal(open_checkpoint(f"{tmp_path}/m-1").read("w"), np.full(9, ord(letter)))
        else:
            under_way[letter] = begun(tmp_path, ord(letter), formats.get(letter, TFRAY))
        clear_away(f"{tmp_path}/m-2", series=True)
        clear_away(f"{tmp_path}/m-1")
    assert len(list(tmp_path.iterdir())) == 2, "a manifest and its data"


def test_files_of_a_save_that_is_under_way_elsewhere_are_left_alone(tmp_path):
    """Another process saves; when it is killed, what it has left goes."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tests.formats import test_checkpoint_files as tests\n"
        "finish = tests.begun(sys.argv[2], 5); print('begun', flush=True); sys.stdin.readline(); finish()\n"
        "finish = tests.begun(sys.argv[2], 6); print('begun', flush=True); sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", program, str(ROOT), str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        process.stdout.readline()
        clear_away(f"{tmp_path}/m-2", series=True)
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        clear_away(f"{tmp_path}/m-2", series=True)
        assert open_checkpoint(f"{tmp_path}/m-1").read("w")[0] == 5
        assert len(list(tmp_path.iterdir())) == 4, "manifest, data, and what the second save has"
        process.kill()
    clear_away(f"{tmp_path}/m-2", series=True)
    assert open_checkpoint(f"{tmp_path}/m-1").read("w")[0] == 5
    assert len(list(tmp_path.iterdir())) == 2


def test_a_save_of_another_machine_counts_as_under_way_for_a_while(tmp_path):
    finish = begun(tmp_path, 1)
    (mark,) = tmp_path.glob("*.tfray-saving-*")
    holder = Holder.from_bytes(mark.read_bytes())
    mark.write_bytes(dataclasses.replace(holder, space="elsewhere").to_bytes())
    clear_away(f"{tmp_path}/m-1")
    assert len(list(tmp_path.iterdir())) == 2
    os.utime(mark, (0, 0))
    clear_away(f"{tmp_path}/m-1")
    assert not list(tmp_path.iterdir())
    with pytest.raises(AbortedError, match="is gone"):
        finish()


class GivenUpError(Exception):
    """What ends a save while a device still completes it."""


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A save is taken for failed while another device completes it.",
    happens="The checkpoint before stays, or the new one is there.",
    promise="What is there under the name of a checkpoint is complete.",
)
@pytest.mark.parametrize("write_format", [TFRAY, TENSORFLOW])
def test_a_save_may_fail_while_a_device_completes_it(tmp_path, write_format):
    prefix, rng = f"{tmp_path}/m-1", random.Random(7)
    begun(tmp_path, 0, write_format)()
    value, ends = 0, set()
    for number in range(1, 301):
        failed = threading.Event()

        def complete(manifest, moment, failed=failed):
            failed.wait(moment)
            try:
                complete_checkpoint(prefix, manifest, write_format, is_announced=True)
            except AbortedError as error:
                ends.add(str(error).partition(": ")[0].partition(" of ")[0])

        with pytest.raises(GivenUpError), saving(prefix):
            record = write_data(prefix, [Piece.whole("w", np.full(9, number))], 0, 1, write_format)
            device = threading.Thread(target=complete, args=[Manifest.of_shards([record]), rng.uniform(0, 0.002)])
            device.start()
            failed.wait(rng.uniform(0, 0.002))
            raise GivenUpError
        failed.set()
        device.join(60)
        verify_checkpoint(open_checkpoint(prefix))
        now = open_checkpoint(prefix).read("w")[0]
        assert now in (value, number)
        ends.add(bool(now == number))
        value = now
    assert {True, False} <= ends, ends


@pytest.mark.parametrize("write_format", [TFRAY, TENSORFLOW])
def test_a_save_that_has_failed_is_not_completed(tmp_path, write_format):
    """The process that saves runs on, so only its file can tell a device that the save is over."""
    prefix = f"{tmp_path}/m-1"
    begun(tmp_path, 1, write_format)()
    with pytest.raises(GivenUpError), saving(prefix):
        record = write_data(prefix, [Piece.whole("w", np.zeros(9))], 0, 1, write_format)
        (mark,) = tmp_path.glob("*.tfray-saving-*")
        raise GivenUpError
    record = write_data(prefix, [Piece.whole("w", np.zeros(9))], 0, 1, write_format)  # a device that came late
    other = dataclasses.replace(Holder.new(), process=os.getppid(), started=0)
    for is_over, message in [(False, None), (True, "was given up")]:
        mark.write_bytes(dataclasses.replace(other, is_over=is_over).to_bytes())
        with pytest.raises(AbortedError, match=message) if message else contextlib.nullcontext():
            complete_checkpoint(prefix, Manifest.of_shards([record]), write_format, is_announced=True)
        assert open_checkpoint(prefix).read("w")[0] == 0
        record = write_data(prefix, [Piece.whole("w", np.ones(9))], 0, 1, write_format)


def test_no_manifest_is_put_over_files_that_are_gone(tmp_path):
    begun(tmp_path, 1)()
    finish = begun(tmp_path, 2)
    _, new = sorted(data_files(tmp_path), key=lambda path: path.stat().st_mtime_ns)
    new.unlink()
    with pytest.raises(AbortedError, match="is gone"):
        finish()
    assert open_checkpoint(f"{tmp_path}/m-1").read("w")[0] == 1


@pytest.fixture(params=["part of another", "in memory"])
def store(request, tmp_path):
    """The scheme of a file system of pyarrow that is not local, and what lists its folder."""
    from pyarrow import fs

    if request.param == "in memory":
        system = fs._MockFileSystem()
    else:
        system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    tf.gfile.register_file_system("store+test", system)
    yield "store+test", lambda folder: {found.base_name for found in system.get_file_info(fs.FileSelector(folder))}
    files._REGISTERED.clear()


def test_other_file_systems(store):
    """What is not local is not mapped; pyarrow reads and writes it."""
    scheme, names_in = store
    folder = f"{scheme}://bucket/folder"
    variable = tf.Variable(np.arange(5.0), name="v")
    saver = tf.train.Saver(max_to_keep=1)
    with tf.Session() as session:
        session.run(variable.initializer)
        for step in range(3):
            path = saver.save(session, f"{folder}/m", step)
        session.run(variable.assign(np.zeros(5)))
        assert tf.train.latest_checkpoint(folder) == path == f"{folder}/m-2"
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(variable), np.arange(5.0))
        again = tf.train.Saver(max_to_keep=1)
        again.recover_last_checkpoints([path])
        again.save(session, f"{folder}/m", 3, write_meta_graph=False)
    assert {name.partition(".")[0] for name in names_in("bucket/folder")} == {"checkpoint", "m-3"}
    with tf.gfile.GFile(f"{folder}/note", "w") as note:
        note.write("text")
    assert tf.gfile.Exists(f"{folder}/note") and "note" in tf.gfile.ListDirectory(folder)


def test_schemes_that_cannot_be():
    for scheme in ("file", "a b", "", "x://"):
        with pytest.raises(InvalidArgumentError, match="cannot be a scheme"):
            tf.gfile.register_file_system(scheme, None)


# -- sizes that are declared ---------------------------------------------------------------------------


def plain_manifest(prefix):
    contents = Path(f"{prefix}.index").read_bytes()
    return json.loads(contents[contents.index(b'"manifest":') + len(b'"manifest":') : -2])


def two_huge_slices(plain):
    """Of a tensor of 2**60 bytes, in a file that is said to have them."""
    (name, entry), *_ = plain["files"].items()
    entry["size"] = 1 << 61
    part = plain["tensors"]["weights"]["slices"][0]
    halves = [
        {**part, "file": name, "offset": [start], "shape": [1 << 57], "length": 1 << 59, "position": 4096 + start}
        for start in (0, 1 << 57)
    ]
    plain["tensors"] = {"weights": {"dtype": "float32", "shape": [1 << 58], "slices": halves}}


def slices_that_share_bytes(plain):
    part = plain["tensors"]["weights"]["slices"][0]
    parts = [{**part, "offset": [20 * i, 0]} for i in range(1000)]
    plain["tensors"] = {"weights": {"dtype": "float32", "shape": [20000, 15], "slices": parts}}


def a_part_twice(plain):
    """And the other one not at all: what is between would be whatever memory held."""
    first, second = plain["tensors"]["parts"]["slices"]
    plain["tensors"]["parts"]["slices"] = [first, {**second, "offset": [2, 0]}]


def no_elements_of_many(plain):
    part = {**plain["tensors"]["empty"]["slices"][0], "shape": [0, 1 << 62], "offset": [0, 0]}
    plain["tensors"] = {"weights": {"dtype": "float64", "shape": [0, 1 << 62], "slices": [part]}}


def of_a_hundred_dimensions(plain):
    plain["tensors"]["step"] = {"dtype": "int64", "shape": [0] * 100, "slices": []}


def another_key(key):
    def change(plain):
        name = next(iter(plain["files"]))
        plain["files"] = {key if each == name else each: entry for each, entry in plain["files"].items()}
        for tensor in plain["tensors"].values():
            for part in tensor["slices"]:
                part["file"] = key if part["file"] == name else part["file"]

    return change


def another_name(name):
    def change(plain):
        key = next(iter(plain["files"]))
        plain["files"][key]["name"] = name
        another_key(name)(plain)

    return change


ESCAPES = ("../../etc/passwd", "/etc/passwd", "..", ".", "", "a/b", "..\\b", "nul\0")


@pytest.mark.fault(
    "Files",
    "A file declares sizes that it does not have.",
    happens="`tf.errors.DataLossError`.",
    promise="Declared sizes are checked before memory is taken for them.",
)
@pytest.mark.parametrize(
    "change",
    [
        two_huge_slices,
        slices_that_share_bytes,
        a_part_twice,
        no_elements_of_many,
        of_a_hundred_dimensions,
        *map(another_key, [*ESCAPES, "other"]),
        *map(another_name, ESCAPES),
    ],
)
def test_a_manifest_that_was_made_to_harm_is_refused(tmp_path, change):
    prefix = write(tmp_path)
    plain = plain_manifest(prefix)
    change(plain)
    Path(f"{prefix}.index").write_bytes(signed(plain))
    with at_most(16), pytest.raises(DataLossError):
        opened = open_checkpoint(prefix)
        for name in plain["tensors"]:
            opened.read(name)


@pytest.mark.fault(
    "Drivers and checkpoints",
    "Files of yours lie in the checkpoint folder.",
    happens="They stay, whatever their names.",
    promise="A run deletes only what it has made.",
)
def test_a_manifest_does_not_have_files_deleted_that_are_none_of_a_checkpoint(tmp_path):
    prefix = write(tmp_path)
    (tmp_path / "thesis.docx").write_bytes(b"x" * 10)
    plain = plain_manifest(prefix)
    plain["files"]["thesis.docx"] = {"name": "thesis.docx", "size": 10, "end": 0, "end_checksum": 0}
    Path(f"{prefix}.index").write_bytes(signed(plain))
    write(tmp_path)
    Path(f"{prefix}.index").write_bytes(signed(plain))
    tf.train.remove_checkpoint(prefix)
    assert (tmp_path / "thesis.docx").exists()


def safetensors(shape, dtype="F64", offsets=(0, 0), data=b"", names="a"):
    header = {name: {"dtype": dtype, "shape": shape, "data_offsets": offsets} for name in names}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "contents",
    [
        safetensors([0, 1 << 62]),
        safetensors([1 << 61, 0, 1 << 61]),
        safetensors([0] * 100),
        safetensors([1 << 60], offsets=(0, 1 << 63)),
        safetensors([True, 8], "U8", (0, 8), bytes(8)),
        safetensors([100], "U8", (0, 100), bytes(100), names="abcdefgh"),
    ],
)
def test_safetensors_that_declare_what_cannot_be(tmp_path, contents):
    (tmp_path / "a.safetensors").write_bytes(contents)
    with pytest.raises(DataLossError, match="no safetensors file"):
        load_safetensors(tmp_path / "a.safetensors")


# -- kill -9 -------------------------------------------------------------------------------------------

SAVING = """
import sys
import numpy as np
import tfray as tf
folder, asynchronous, write_format = sys.argv[1], sys.argv[2] == "True", sys.argv[3]
step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer())
variables = [tf.get_variable(f"v{i}", [20000 + i], tf.int64, initializer=tf.zeros_initializer()) for i in range(4)]
bump = [variable.assign_add(tf.ones_like(variable)) for variable in [step, *variables]]
saver = tf.train.Saver(max_to_keep=2, asynchronous=asynchronous, write_format=write_format)
with tf.Session() as session:
    newest = tf.train.latest_checkpoint(folder)
    if newest is None:
        session.run(tf.global_variables_initializer())
    else:
        saver.restore(session, newest)
        saver.recover_last_checkpoints(tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths)
    while True:
        session.run(bump)
        number = int(session.run(step))
        # Every other save has the name of the one before: it is replaced, not added.
        saver.save(session, folder + "/m", number // 2, write_meta_graph=False)
        print(number, flush=True)
"""


def newest_step(folder):
    """The step of the newest checkpoint, which must be complete; 0 when there is none."""
    path = tf.train.latest_checkpoint(folder)
    if path is None:
        return 0
    checkpoint = open_checkpoint(path)
    verify_checkpoint(checkpoint)
    step = int(checkpoint.read("step"))
    for name in checkpoint.tensors:
        assert np.unique(checkpoint.read(name)).tolist() == [step], f"{name} is not of step {step}"
    return step


def kill_while_saving(folder, rng, asynchronous, write_format=TFRAY):
    """Let a process save a few times, and kill it, or its group, at a random moment of a further save."""
    command = [sys.executable, "-c", SAVING, str(folder), str(asynchronous), write_format]
    environment = os.environ | {"PYTHONPATH": str(Path(tf.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    done = [int(process.stdout.readline()) for _ in range(rng.randint(1, 3))]
    time.sleep(rng.uniform(0, 0.05))
    if rng.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    done += [int(line) for line in process.stdout.read().split()]
    process.wait()
    found = newest_step(folder)
    # An asynchronous save is complete before the next one begins.
    assert done[-1] - asynchronous <= found <= done[-1] + 1
    return found


@pytest.mark.fault(
    "Drivers and checkpoints",
    "A process is killed while it saves.",
    happens="The checkpoint before is the newest one.",
    promise="What is there under the name of a checkpoint is complete, and what is left of the save is cleared away.",
)
@pytest.mark.parametrize(("asynchronous", "write_format"), [(False, TFRAY), (True, TFRAY), (False, TENSORFLOW)])
def test_killed_while_saving(tmp_path, asynchronous, write_format):
    rng = random.Random(4)
    steps = [kill_while_saving(tmp_path, rng, asynchronous, write_format) for _ in range(2)]
    assert steps == sorted(steps)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("write_format", [TFRAY, TENSORFLOW])
def test_killed_while_saving_200_times(tmp_path, write_format):
    rng = random.Random(5)
    steps = []
    for number in range(200):
        steps.append(kill_while_saving(tmp_path, rng, bool(number % 2), write_format))
        # An interrupted save leaves at most what tells that it was under way, a data file, and one that it was writing.
        left = [os.path.basename(path).partition("-")[2] for path in stray_files(f"{tmp_path}/m-", series=True)]
        kinds = [re.sub(r"^\d+\.|-?[0-9a-f]{12}|\d{5}-of-\d{5}", "", name) for name in left]
        assert len(kinds) == len(set(kinds)) and len([each for each in kinds if "saving" not in each]) <= 2, left
    assert steps == sorted(steps) and steps[-1] > 200


def kill_shards(ray, folder, kills, write_format):
    """Save on two shards in a loop, and kill one of them at random moments."""
    rng = random.Random(6)
    jobs = {"ps": tf.JobSpec(2, num_cpus=0.1)}
    step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer())
    variables = [step]
    for task in range(2):
        with tf.device(f"/job:ps/task:{task}"):
            variables.append(tf.get_variable(f"v{task}", [400000], tf.int64, initializer=tf.zeros_initializer()))
    bump = [variable.assign_add(tf.ones_like(variable)) for variable in variables]
    init, saver = tf.global_variables_initializer(), tf.train.Saver(max_to_keep=2, write_format=write_format)
    with tf.Cluster(jobs) as cluster:
        for _ in range(kills):
            with tf.Session(cluster) as session:
                newest = tf.train.latest_checkpoint(folder)
                if newest is None:
                    session.run(init)
                else:
                    saver.restore(session, newest)
                done = killed = newest_step(folder)
                try:
                    while True:
                        session.run(bump)
                        saver.save(session, f"{folder}/m", done // 2, write_meta_graph=False)
                        done += 1
                        if killed is not None and rng.random() < 0.3:
                            killed = None
                            device = cluster.devices[rng.randrange(2)]
                            pid = ray.get(cluster.actor(device).ready.remote()).pid
                            delay = f"sleep {rng.uniform(0, 0.05)}; kill -9 {pid}"
                            subprocess.Popen(["sh", "-c", delay])
                except UnavailableError:
                    assert newest_step(folder) in (done, done + 1)
            cluster.replace_dead()


@pytest.mark.slow
@pytest.mark.fault(
    "Drivers and checkpoints",
    "A process is killed while it saves.",
    happens="The checkpoint before is the newest one.",
    promise="What is there under the name of a checkpoint is complete, and what is left of the save is cleared away.",
)
@pytest.mark.ray
@pytest.mark.parametrize("write_format", [TFRAY, pytest.param(TENSORFLOW, marks=pytest.mark.slow)])
def test_shards_killed_while_saving(ray_local, tmp_path, write_format):
    kill_shards(ray_local, tmp_path, 2, write_format)
    if write_format == TENSORFLOW:  # a file for each shard, and one index
        newest = tf.train.latest_checkpoint(tmp_path)
        assert len(list(tmp_path.glob(f"{os.path.basename(newest)}.data-0000[01]-of-?????"))) == 2


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("write_format", [TFRAY, TENSORFLOW])
def test_shards_killed_while_saving_40_times(ray_local, tmp_path, write_format):
    kill_shards(ray_local, tmp_path, 40, write_format)
