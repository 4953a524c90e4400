"""Files that steps read and write."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.formats import files


def test_files_are_written_and_read(session, tmp_path):
    path = tf.placeholder(tf.string, [])
    contents = tf.read_file(path)
    write = tf.write_file(path, tf.string_join(["a", "\x00", "ä"]))
    name = str(tmp_path / "new" / "folder" / "file")
    session.run(write, {path: name})
    assert session.run(contents, {path: name}) == "a\x00ä".encode()
    (tmp_path / "new" / "folder" / "file").write_bytes(b"other")
    assert session.run(contents, {path: name}) == b"other"
    with pytest.raises(NotFoundError, match="nothing"):
        session.run(contents, {path: str(tmp_path / "nothing")})
    assert contents.shape.as_list() == []


def test_whatever_can_be_read_is_read_whole(session, tmp_path, monkeypatch):
    path = tf.placeholder(tf.string, [])
    contents = tf.read_file(path)
    (tmp_path / "empty").touch()
    assert session.run(contents, {path: str(tmp_path / "empty")}) == b""
    assert session.run(contents, {path: "/proc/version"}) == Path("/proc/version").read_bytes()  # of no size, it says
    os.mkfifo(tmp_path / "pipe")
    written = b"0123456789" * 20_000  # more than a pipe holds
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[written])
    writer.start()
    assert session.run(contents, {path: str(tmp_path / "pipe")}) == written
    writer.join()
    with pytest.raises(tf.errors.FailedPreconditionError, match="directory"):
        session.run(contents, {path: str(tmp_path)})
    monkeypatch.setattr(files, "_AT_ONCE", 100)
    (tmp_path / "large").write_bytes(written)
    assert session.run(contents, {path: str(tmp_path / "large")}) == written


def test_files_that_match_are_listed(session, tmp_path):
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).touch()
    one = tf.matching_files(f"{tmp_path}/*.txt")
    many = tf.io.matching_files([f"{tmp_path}/c*", f"{tmp_path}/[ac].*", f"{tmp_path}/nothing*"])
    assert session.run(one).tolist() == [f"{tmp_path}/{name}".encode() for name in ("a.txt", "b.txt")]
    assert session.run(many).tolist() == [f"{tmp_path}/{name}".encode() for name in ("a.txt", "c.csv")]
    assert one.shape.as_list() == [None]


def test_files_are_listed_once(session, tmp_path):
    (tmp_path / "a").touch()
    names = tf.train.match_filenames_once(f"{tmp_path}/*")
    assert names in tf.local_variables() and names not in tf.trainable_variables()
    session.run(tf.local_variables_initializer())
    (tmp_path / "b").touch()
    assert session.run(names).tolist() == [f"{tmp_path}/a".encode()]


def test_paths_are_single_strings():
    for build in (lambda: tf.read_file(["a"]), lambda: tf.write_file("a", ["b"]), lambda: tf.matching_files([["a"]])):
        with pytest.raises(InvalidArgumentError):
            build()
