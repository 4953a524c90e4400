"""Files by path, `tf.gfile`, and files beside a program."""

from __future__ import annotations

import json
import os
import uuid
import zipfile
import zlib

import numpy as np
import pytest

import tfray as tf
from tests.support.traced_memory import at_most
from tfray import cli
from tfray.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from tfray.formats.npy import read_npy, read_npz
from tfray.library.inspect.timeline import Timeline
from tfray.programs import whole_files


@pytest.fixture(params=["local", "file", "arrow"])
def root(request, tmp_path):
    """A folder: of this machine, by its URL, and in pyarrow's store in memory."""
    if request.param == "local":
        return str(tmp_path)
    if request.param == "file":
        return f"file://{tmp_path}"
    pytest.importorskip("pyarrow")
    folder = f"mock://{uuid.uuid4().hex}/data"
    tf.gfile.MakeDirs(folder)
    return folder


def write(path, text="contents"):
    with tf.gfile.GFile(path, "w") as file:
        file.write(text)
    return path


def test_files_are_written_and_read(root):
    path = write(f"{root}/a.txt", "first\nsecond ä\n")
    assert tf.gfile.Exists(path) and not tf.gfile.IsDirectory(path)
    with tf.gfile.Open(path) as file:
        assert file.read() == "first\nsecond ä\n" and file.read() == ""
    with tf.gfile.FastGFile(path, "rb") as file:
        assert file.size() == 16 and file.readline() == b"first\n" and file.tell() == 6
        file.seek(0)
        assert list(file) == [b"first\n", "second ä\n".encode()]
    assert tf.gfile.Stat(path).length == 16 and not tf.gfile.Stat(path).is_directory
    assert tf.gfile.Open(path).readlines() == ["first\n", "second ä\n"]


def test_text_is_read_by_characters(root):
    path = write(f"{root}/a.txt", "aäß漢字z")
    with tf.gfile.GFile(path) as file:
        assert [file.read(2), file.read(3), file.read(5), file.read(1)] == ["aä", "ß漢字", "z", ""]


def test_writing_appends_or_replaces(root):
    path = write(f"{root}/a.txt", "one")
    write(path, "two")
    assert tf.gfile.GFile(path).read() == "two"
    if root.startswith("mock"):
        return
    with tf.gfile.GFile(path, "a") as file:
        file.write(b", three")
    assert tf.gfile.GFile(path).read() == "two, three"


def test_an_empty_file_is_made(root):
    tf.gfile.GFile(f"{root}/empty", "w").close()
    assert tf.gfile.Stat(f"{root}/empty").length == 0


def test_folders(root):
    tf.gfile.MakeDirs(f"{root}/a/b")
    tf.gfile.MakeDirs(f"{root}/a/b")
    tf.gfile.MkDir(f"{root}/c")
    with pytest.raises(AlreadyExistsError):
        tf.gfile.MkDir(f"{root}/c")
    write(f"{root}/a/x.txt")
    assert tf.gfile.ListDirectory(root) == ["a", "c"] and tf.gfile.IsDirectory(f"{root}/a")
    assert list(tf.gfile.Walk(root)) == [
        (root, ["a", "c"], []),
        (f"{root}/a", ["b"], ["x.txt"]),
        (f"{root}/a/b", [], []),
        (f"{root}/c", [], []),
    ]
    assert [path for path, _, _ in tf.gfile.Walk(root, in_order=False)][-1] == root
    tf.gfile.DeleteRecursively(f"{root}/a")
    assert not tf.gfile.Exists(f"{root}/a")


def test_patterns(root):
    tf.gfile.MakeDirs(f"{root}/sub")
    for name in ("b-1", "a-1", "a-2", ".a-3", "sub/a-4"):
        write(f"{root}/{name}")
    assert tf.gfile.Glob(f"{root}/a-*") == [f"{root}/a-1", f"{root}/a-2"]
    assert tf.gfile.Glob([f"{root}/*-1", f"{root}/a-?"]) == [f"{root}/{name}" for name in ("a-1", "a-2", "b-1")]
    assert tf.gfile.Glob(f"{root}/*/*") == [f"{root}/sub/a-4"]
    assert tf.gfile.Glob(f"{root}/a-1") == [f"{root}/a-1"]
    assert tf.gfile.Glob(f"{root}/none/*") == []


def test_copying_and_renaming(root):
    source, target = write(f"{root}/a"), f"{root}/b"
    tf.gfile.Copy(source, target)
    assert tf.gfile.GFile(target).read() == "contents"
    with pytest.raises(AlreadyExistsError, match="overwrite"):
        tf.gfile.Copy(source, target)
    tf.gfile.Copy(source, target, overwrite=True)
    with pytest.raises(AlreadyExistsError):
        tf.gfile.Rename(source, target)
    tf.gfile.Rename(source, f"{root}/c")
    assert tf.gfile.ListDirectory(root) == ["b", "c"]
    tf.gfile.Remove(target)
    assert tf.gfile.ListDirectory(root) == ["c"]


def test_copying_between_stores(tmp_path):
    pytest.importorskip("pyarrow")
    here, there = write(tmp_path / "a"), f"mock://{uuid.uuid4().hex}/a"
    tf.gfile.Copy(here, there)
    tf.gfile.Remove(here)
    tf.gfile.Rename(there, here)
    assert tf.gfile.GFile(here).read() == "contents" and not tf.gfile.Exists(there)


def test_what_is_missing_or_misused_is_refused(root):
    for call in (tf.gfile.Remove, tf.gfile.DeleteRecursively, tf.gfile.ListDirectory, tf.gfile.Stat):
        with pytest.raises(NotFoundError, match="nothing"):
            call(f"{root}/nothing")
    with pytest.raises(NotFoundError):
        tf.gfile.GFile(f"{root}/nothing").read()
    with pytest.raises(NotFoundError):
        tf.gfile.Rename(f"{root}/nothing", f"{root}/x")
    with pytest.raises(FailedPreconditionError):
        tf.gfile.Remove(root)
    with pytest.raises(FailedPreconditionError):
        tf.gfile.DeleteRecursively(write(f"{root}/file"))
    assert list(tf.gfile.Walk(f"{root}/nothing")) == []


def test_bad_modes_and_paths_are_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="mode"):
        tf.gfile.GFile("x", "q")
    with pytest.raises(InvalidArgumentError, match="not a path"):
        tf.gfile.Exists(3)
    with pytest.raises(InvalidArgumentError, match="no file system serves"):
        tf.gfile.Exists("nosuch://a/b")
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0)
        with pytest.raises(PermissionDeniedError):
            tf.gfile.ListDirectory(tmp_path / "locked")


def test_other_libraries_read_through_a_gfile(tmp_path):
    write(tmp_path / "a.json", '{"a": [1, 2]}')
    with tf.gfile.GFile(str(tmp_path / "a.json")) as file:
        assert json.load(file) == {"a": [1, 2]}


def test_resources_lie_beside_the_program():
    here = os.path.dirname(os.path.abspath(__file__))
    assert tf.resource_loader.get_data_files_path() == here
    assert tf.resource_loader.get_path_to_datafile("x") == os.path.join(here, "x")
    assert b"beside the program" in tf.resource_loader.load_resource(os.path.basename(__file__))


# -- empty paths ---------------------------------------------------------------------------------------


def small_graph():
    tf.reset_default_graph()
    tf.train.create_global_step()
    return tf.Variable(1.0, name="v")


def with_saver(use):
    def call(path):
        small_graph()
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return use(saver, session, path)

    return call


def of_session(use):
    def call(path):
        constant = tf.constant(1.0)
        with tf.Session() as session:
            return use(session, constant, path)

    return call


TAKES_A_PATH = {
    "checkpoint_dir": lambda path: tf.train.RunConfig(checkpoint_dir=path),
    "resume_from": lambda path: tf.train.RunConfig(checkpoint_dir="x", resume_from=path),
    "Saver.save": with_saver(lambda saver, session, path: saver.save(session, path, 3)),
    "Saver.restore": with_saver(lambda saver, session, path: saver.restore(session, path)),
    "Saver.export_meta_graph": with_saver(lambda saver, session, path: saver.export_meta_graph(path)),
    "get_checkpoint_state": tf.train.get_checkpoint_state,
    "latest_checkpoint": tf.train.latest_checkpoint,
    "update_checkpoint_state": lambda path: tf.train.update_checkpoint_state(path, "m-1"),
    "remove_checkpoint": tf.train.remove_checkpoint,
    "load_variable": lambda path: tf.train.load_variable(path, "v"),
    "NewCheckpointReader": tf.train.NewCheckpointReader,
    "CheckpointSaverHook": lambda path: tf.train.CheckpointSaverHook(path, save_steps=1),
    "FileWriter": tf.summary.FileWriter,
    "FileWriterCache": tf.summary.FileWriterCache.get,
    "write_graph": lambda path: tf.train.write_graph(tf.get_default_graph(), path, "g"),
    "name of write_graph": lambda path: tf.train.write_graph(tf.get_default_graph(), "there", path),
    "SavedModelBuilder": tf.saved_model.builder.SavedModelBuilder,
    "saved_model.load": of_session(lambda session, _, path: tf.saved_model.load(session, ["serve"], path)),
    "saved_model.export": of_session(lambda session, x, path: tf.saved_model.export(session, path, {}, {"x": x})),
    "load_model": tf.saved_model.load_model,
    "dump": of_session(lambda session, x, path: tf.debug.dump(session, x, None, path)),
    "DebugDump": tf.debug.DebugDump,
    "Timeline.save": lambda path: Timeline(tf.RunMetadata().step_stats).save(path),
    "slim.learning.train": lambda path: tf.contrib.slim.learning.train(tf.constant(1.0), path),
    "save_weights": lambda path: tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))]).save_weights(path),
    "ModelCheckpoint": tf.keras.callbacks.ModelCheckpoint,
    "TensorBoard": tf.keras.callbacks.TensorBoard,
}
NOT_FOUND = {
    "GFile for reading": lambda path: tf.gfile.GFile(path).read(),
    "GFile for writing": lambda path: tf.gfile.GFile(path, "w").write("x"),
    "ListDirectory": tf.gfile.ListDirectory,
    "MakeDirs": tf.gfile.MakeDirs,
    "Remove": tf.gfile.Remove,
    "DeleteRecursively": tf.gfile.DeleteRecursively,
    "Stat": tf.gfile.Stat,
    "Copy": lambda path: tf.gfile.Copy(path, "there"),
    "TFRecordWriter": tf.python_io.TFRecordWriter,
    "tf_record_iterator": lambda path: list(tf.python_io.tf_record_iterator(path)),
    "read_file": lambda path: tf.Session().run(tf.read_file(path)),
    "write_file": lambda path: tf.Session().run(tf.write_file(path, "x")),
    "TextLineDataset": lambda path: tf.Session().run(tf.data.TextLineDataset(path).make_one_shot_iterator().get_next()),
    "import_meta_graph": tf.train.import_meta_graph,
}
MEANS_NONE = {
    "RunConfig(logdir)": lambda path: tf.train.RunConfig(logdir=path),
    "Supervisor": lambda path: (small_graph(), tf.train.Supervisor(logdir=path)),
    "MonitoredTrainingSession": lambda path: (small_graph(), tf.train.MonitoredTrainingSession(checkpoint_dir=path)),
    "summary_dir": lambda path: (small_graph(), tf.train.MonitoredTrainingSession(summary_dir=path)),
}


@pytest.mark.fault(
    "Files",
    "A path is empty, as from a shell variable that is not set.",
    happens="An error that names the argument or the option.",
    promise="Nothing is written, least of all at the root of the file system.",
)
@pytest.mark.parametrize("path", ["", " ", "\t\n"], ids=repr)
@pytest.mark.parametrize("name", [*TAKES_A_PATH, *NOT_FOUND])
def test_empty_paths_are_refused(tmp_path, monkeypatch, name, path):
    """They come from variables that are not set, and what is joined to them would lie at the root."""
    monkeypatch.chdir(tmp_path)
    kind = InvalidArgumentError if name in TAKES_A_PATH else NotFoundError
    with pytest.raises(kind, match="empty"):
        (TAKES_A_PATH | NOT_FOUND)[name](path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MEANS_NONE)
def test_where_an_empty_path_means_none_a_blank_one_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="empty"):
        MEANS_NONE[name]("  ")
    MEANS_NONE[name]("")
    assert not list(tmp_path.iterdir())


def test_nothing_is_at_an_empty_path():
    for path in ("", " "):
        assert not tf.gfile.Exists(path) and not tf.gfile.IsDirectory(path) and tf.gfile.Glob(path) == []
        assert list(tf.gfile.Walk(path)) == [] and not tf.train.checkpoint_exists(path)
        assert not tf.saved_model.maybe_saved_model_directory(path)


@pytest.mark.fault(
    "Files",
    "A path is empty, as from a shell variable that is not set.",
    happens="An error that names the argument or the option.",
    promise="Nothing is written, least of all at the root of the file system.",
)
@pytest.mark.parametrize(
    "option",
    ["--checkpoint-dir", "--resume-from", "--logdir", "--json", "--plot", "--variables", "--timeline", "--working-dir"],
)
@pytest.mark.parametrize("path", ["", " "])
def test_the_command_line_refuses_empty_paths(capsys, option, path):
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "nothing.py:build", option, path])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert option in said and "empty path" in said and said.count("\n") == 1


@pytest.mark.parametrize("command", [["timeline", "nothing.py:build", "-o"], ["board"], ["checkpoint"], ["launch"]])
def test_commands_refuse_empty_paths(capsys, command):
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, ""])
    assert ended.value.code == 2 and "empty path" in capsys.readouterr().err


# -- NumPy's files -------------------------------------------------------------------------------------

ARRAYS = {
    "plain": np.arange(12.0).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "scalar": np.array(7, np.int8),
    "none": np.zeros((0, 5)),
    "text": np.array([b"ab", b"c"]),
}


def test_numpys_files_are_read(tmp_path):
    np.savez(tmp_path / "all.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "small.npz", **ARRAYS)
    for found in (read_npz(tmp_path / "all.npz"), read_npz(tmp_path / "small.npz")):
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            np.save(tmp_path / "one.npy", array)
            for each in (found[name], read_npy(tmp_path / "one.npy")):
                assert each.dtype == array.dtype and each.flags.writeable
                np.testing.assert_array_equal(each, array)


@pytest.mark.fault(
    "Files",
    "A file declares sizes that it does not have.",
    happens="`tf.errors.DataLossError`.",
    promise="Declared sizes are checked before memory is taken for them.",
)
@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 62, 0), (-1,), (1 << 70,)])
def test_a_file_of_numpy_that_declares_more_than_it_has(tmp_path, shape):
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode().ljust(118) + b"\n"
    contents = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    (tmp_path / "a.npy").write_bytes(contents)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", contents)
    for read, path in ((read_npy, tmp_path / "a.npy"), (read_npz, tmp_path / "a.npz")):
        with at_most(4), pytest.raises(DataLossError, match="is damaged"):
            read(path)


@pytest.mark.fault(
    "Strangers",
    "A file holds pickled objects.",
    happens="`tf.errors.DataLossError`.",
    promise="Nothing that is loaded is unpickled or run.",
)
def test_nothing_of_numpys_files_is_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]))
    with pytest.raises(DataLossError, match="Python objects"):
        read_npy(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", np.array([{}]))
    with pytest.raises(DataLossError, match="Python objects"):
        read_npz(tmp_path / "a.npz")


def test_whole_files_as_programs_read_and_write_them(root):
    path, other = f"{root}/a", f"{root}/b"
    whole_files.write_string_to_file(path, "tekst: \u0161")
    assert whole_files.read_file_to_string(path) == "tekst: \u0161"
    assert whole_files.read_file_to_string(path, binary_mode=True) == "tekst: \u0161".encode()
    whole_files.atomic_write_string_to_file(other, b"new")
    whole_files.atomic_write_string_to_file(other, "newer")
    with pytest.raises(AlreadyExistsError):
        whole_files.atomic_write_string_to_file(other, "newest", overwrite=False)
    assert whole_files.read_file_to_string(other) == "newer" and sorted(tf.gfile.ListDirectory(root)) == ["a", "b"]
    assert not whole_files.filecmp(path, other) and whole_files.filecmp(path, path)
    assert whole_files.file_crc32(other, block_size=2) == hex(zlib.crc32(b"newer"))


def test_files_are_read_and_written_only_as_their_mode_says(tmp_path):
    path = str(tmp_path / "a")
    with tf.gfile.GFile(path, "w") as file:
        file.write("text")
        for read in (file.read, file.readline):
            with pytest.raises(PermissionDeniedError, match="not open for reading"):
                read()
    with tf.gfile.GFile(path) as file, pytest.raises(PermissionDeniedError, match="not open for writing"):
        file.write("text")


@pytest.mark.parametrize("mode", ["w+", "a+"])
def test_what_is_written_is_read_from_the_beginning(tmp_path, mode):
    with tf.gfile.GFile(str(tmp_path / "file"), mode) as file:
        file.write("one\ntwo\n")
        assert file.readline() == "one\n"
        file.write("three\n")
        assert file.tell() == 4 and file.read() == "two\nthree\n"
        file.seek(0)
        assert file.read(3) == "one" and file.size() == 14
