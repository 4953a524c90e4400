"""Files by path, `tf.gfile`, and files beside a program."""

from __future__ import annotations

import json
import os
import uuid

import pytest

import tfray as tf
from tfray.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)


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
