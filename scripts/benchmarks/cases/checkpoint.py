"""Saving and restoring a model of `mb` megabytes: sixteen large variables, and a hundred small ones.

Every save replaces the one before, every restore finds the variables initialised. What TensorFlow writes is not
compressed either; tfray's is on the disk when the save ends, TensorFlow's perhaps only in the system's cache.
``save_v2`` and ``restore_v2`` are tfray's with TensorFlow's format (V2): files that TensorFlow reads.
``snapshot`` is how long training pauses for an asynchronous save: the copy of all variables. The floors write a file
of that size, and read it into memory that is there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Options, Step

_LARGE: Final = 16
_SMALL: Final = 100


@contextmanager
def _folder(options: Options) -> Iterator[Path]:
    path = tempfile.mkdtemp(prefix="tfray-bench-", dir=options.get("folder"))
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path)


@contextmanager
def _session(tf: Any, options: Options) -> Iterator[Any]:
    rows = max(1, int(options["mb"] * 1e6) // 4 // _LARGE // 1024)
    with tf.Graph().as_default():
        for i in range(_LARGE):
            tf.get_variable(f"large_{i}", [rows, 1024], initializer=tf.random_uniform_initializer(seed=i))
        for i in range(_SMALL):
            tf.get_variable(f"small_{i}", [64], initializer=tf.ones_initializer())
        with tf.Session() as session:
            yield session


@contextmanager
def _save(backend: Backend, options: Options, **settings: Any) -> Iterator[Step]:
    tf = backend.tf
    with _folder(options) as folder, _session(tf, options) as session:
        saver = tf.train.Saver(**settings)
        session.run(tf.global_variables_initializer())
        yield lambda: saver.save(session, str(folder / "model"), write_meta_graph=False)


@contextmanager
def _restore(backend: Backend, options: Options, **settings: Any) -> Iterator[Step]:
    tf = backend.tf
    with _folder(options) as folder, _session(tf, options) as session:
        saver = tf.train.Saver(**settings)
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(folder / "model"), write_meta_graph=False)
        yield lambda: saver.restore(session, path)


@contextmanager
def _snapshot(backend: Backend, options: Options) -> Iterator[Step]:
    tf = backend.tf
    with _session(tf, options) as session:
        tf.train.Saver(asynchronous=True)
        copy = tf.get_default_graph().get_operation_by_name("save/copy_all")
        session.run(tf.global_variables_initializer())
        yield lambda: session.run(copy)


@contextmanager
def _write(backend: Any, options: Options) -> Iterator[Step]:
    source = memoryview(np.random.default_rng(0).bytes(int(options["mb"] * 1e6)))
    with _folder(options) as folder:

        def write() -> None:
            rest = source
            with open(folder / "new", "wb", buffering=0) as file:
                while rest:
                    rest = rest[file.write(rest) :]
            os.replace(folder / "new", folder / "data")

        yield write


@contextmanager
def _read(backend: Any, options: Options) -> Iterator[Step]:
    target = np.ones(int(options["mb"] * 1e6), np.uint8)
    with _folder(options) as folder:
        target.tofile(folder / "data")

        def read() -> None:
            with open(folder / "data", "rb", buffering=0) as file:
                rest = memoryview(target)  # type: ignore[arg-type]
                while rest:
                    rest = rest[file.readinto(rest) :]

        yield read


def _in_v2(case: Any) -> Any:
    return partial(case, write_format="tensorflow")


CASES: Final = {
    "save": Case(_save),
    "restore": Case(_restore),
    "save_v2": Case(_in_v2(_save), sides=("tfray",), note="in TensorFlow's format: compare with save"),
    "restore_v2": Case(_in_v2(_restore), sides=("tfray",), note="from TensorFlow's format: compare with restore"),
    "snapshot": Case(_snapshot, sides=("tfray",), note="the pause of an asynchronous save: compare with save"),
    "write": Case(_write, sides=("floor",)),
    "read": Case(_read, sides=("floor",)),
}
