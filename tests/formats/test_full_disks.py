"""Disks that are full, and disks that nobody may write to: one error that names the path, whatever is written."""

from __future__ import annotations

import errno
import shutil
import subprocess
from contextlib import contextmanager

import numpy as np
import pytest

import tfray as tf
from tfray.formats import files


def a_variable():
    variable = tf.Variable(np.arange(100_000, dtype=np.float32), name="v")
    session = tf.Session()
    session.run(variable.initializer)
    return session, variable


def checkpoint(folder):
    session, _ = a_variable()
    tf.train.Saver().save(session, f"{folder}/model", write_meta_graph=False)


def checkpoint_in_the_background(folder):
    session, _ = a_variable()
    saver = tf.train.Saver(asynchronous=True)
    saver.save(session, f"{folder}/model", write_meta_graph=False)
    saver.wait()


def saved_model(folder):
    session, variable = a_variable()
    x = tf.placeholder(tf.float32, [])
    tf.saved_model.simple_save(session, f"{folder}/exported", {"x": x}, {"y": x + variable})


def meta_graph(folder):
    a_variable()
    tf.train.export_meta_graph(f"{folder}/graph.meta")


def graph_text(folder):
    a_variable()
    tf.train.write_graph(tf.get_default_graph(), str(folder), "graph.txt")


def events(folder):
    writer = tf.summary.FileWriter(f"{folder}/log")
    value = tf.Summary.Value(tag="x" * 1000, simple_value=1.0)
    for step in range(100):
        writer.add_summary(tf.Summary(value=[value]), step)
    writer.close()


def written_by_an_operation(folder):
    with tf.Session() as session:
        session.run(tf.write_file(f"{folder}/file", "x" * 100_000))


def written_by_gfile(folder):
    with tf.gfile.GFile(f"{folder}/file", "w") as file:
        file.write("x" * 100_000)


def records(folder):
    with tf.python_io.TFRecordWriter(f"{folder}/records") as writer:
        for _ in range(100):
            writer.write(b"x" * 1000)


def dumped_tensors(folder):
    session, variable = a_variable()
    tf.debug.dump(session, variable + 1, {}, f"{folder}/dumped")


def timeline(folder):
    session, variable = a_variable()
    metadata = tf.RunMetadata()
    session.run(variable + 1, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    tf.timeline.Timeline(metadata.step_stats).save(f"{folder}/step.json")


def weights_of_keras(folder):
    tf.keras.Sequential([tf.keras.layers.Dense(100, input_shape=(100,))]).save_weights(f"{folder}/weights.npz")


def vocabulary(folder):
    processor = tf.contrib.learn.preprocessing.VocabularyProcessor(3)
    processor.fit([str(number) for number in range(10_000)])
    processor.save(f"{folder}/words")


WRITERS = [
    checkpoint,
    checkpoint_in_the_background,
    saved_model,
    meta_graph,
    graph_text,
    events,
    written_by_an_operation,
    written_by_gfile,
    records,
    dumped_tensors,
    timeline,
    weights_of_keras,
    vocabulary,
]


@contextmanager
def mounted(folder, *options):
    """A small disk of its own, where that is allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", ",".join(["size=8k", *options]), "none", str(folder)]
    if shutil.which("umount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.fault(
    "Files",
    "The disk is full.",
    happens="`tf.errors.ResourceExhaustedError` with the path.",
    promise="No failure to write passes in silence, whatever is written.",
)
@pytest.mark.parametrize("write", WRITERS)
def test_a_full_disk_is_an_error_that_names_the_path(tmp_path, write):
    with mounted(tmp_path / "full") as folder:
        (folder / "fill").write_bytes(bytes(8192))
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"{folder}/.*: No space left on device"):
            write(folder)


@pytest.mark.fault(
    "Files",
    "The disk is read-only.",
    happens="`tf.errors.PermissionDeniedError` with the path. `tfray run` says so before training.",
    promise="No failure to write passes in silence, whatever is written.",
)
@pytest.mark.parametrize("write", WRITERS)
def test_a_read_only_disk_is_an_error_that_names_the_path(tmp_path, write):
    refused = pytest.raises(tf.errors.PermissionDeniedError, match=f"{tmp_path}/kept/.*: Read-only file system")
    with mounted(tmp_path / "kept", "ro") as folder, refused:
        write(folder)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, tf.errors.ResourceExhaustedError),
        (errno.EDQUOT, tf.errors.ResourceExhaustedError),
        (errno.EFBIG, tf.errors.ResourceExhaustedError),
        (errno.EROFS, tf.errors.PermissionDeniedError),
        (errno.EACCES, tf.errors.PermissionDeniedError),
        (errno.EIO, tf.errors.UnknownError),
    ],
)
def test_what_the_system_says_of_a_path_is_one_of_the_errors(number, kind):
    with pytest.raises(kind, match="some/path: ") as caught, files.failures_of("some/path"):
        raise OSError(number, "as the system puts it")
    assert type(caught.value) is kind
