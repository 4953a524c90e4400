"""``tf.keras.utils``: classes as one-hot vectors, normalised arrays, files, and names of a program's own classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfray.errors import DataLossError, NotFoundError
from tfray.formats.files import failures_of
from tfray.keras.batch_sources import Sequence
from tfray.keras.progress import Progbar as Progbar
from tfray.library.layers.descriptions import CustomObjectScope as CustomObjectScope
from tfray.library.layers.descriptions import described, restored
from tfray.library.layers.descriptions import get_custom_objects as get_custom_objects
from tfray.library.layers.descriptions import get_registered_name as get_registered_name
from tfray.library.layers.descriptions import get_registered_object as get_registered_object
from tfray.library.layers.descriptions import register_keras_serializable as register_keras_serializable

# fmt: off
__all__ = [
    "CustomObjectScope", "Progbar", "Sequence", "custom_object_scope", "deserialize_keras_object",
    "get_custom_objects", "get_file", "get_registered_name", "get_registered_object", "normalize",
    "register_keras_serializable", "serialize_keras_object", "to_categorical",
]
# fmt: on

custom_object_scope = CustomObjectScope


def serialize_keras_object(instance: Any) -> Any:
    """A layer, loss, optimizer or the like as plain data; None stays None."""
    return described(instance)


def deserialize_keras_object(
    identifier: Any,
    module_objects: Mapping[str, Any] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """What `serialize_keras_object` told of, made anew.

    Args:
        identifier: The description.
        module_objects: Classes and functions by name.
        custom_objects: Those of the program, which are taken first.
        printable_module_name: Accepted for TensorFlow 1's sake.

    Raises:
        InvalidArgumentError: It names what is not there.
    """
    return restored(identifier, {**(module_objects or {}), **(custom_objects or {})})


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """Classes as vectors with a single 1.

    Args:
        y: Integers, the classes; a last dimension of 1 is dropped.
        num_classes: Number of classes; one more than the largest when None.
        dtype: Dtype of the result.

    Returns:
        Shape ``[..., num_classes]``.
    """
    classes = np.asarray(y, np.int64)
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    count = int(classes.max()) + 1 if num_classes is None else num_classes
    return np.eye(count, dtype=dtype)[classes]


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """An array divided by its norms along an axis; zeros stay."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return np.asarray(x / np.expand_dims(norms, axis))


def get_file(
    fname: str,
    origin: str,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str = "auto",
    cache_dir: str | None = None,
) -> str:
    """The path of a file that lies where Keras keeps what it has loaded. Nothing is downloaded or unpacked.

    Args:
        fname: The file's name, or its absolute path.
        origin: The address that it has come from, for the error.
        untar: The path is that of the folder ``fname``, into which ``fname.tar.gz`` has been unpacked.
        md5_hash: Checksum that the file has to have.
        file_hash: The same, by `hash_algorithm`.
        cache_subdir: Folder beneath `cache_dir`.
        hash_algorithm: ``md5``, ``sha256``, or ``auto``, which goes by the length of the checksum.
        extract: Accepted: files beside this one have been unpacked already.
        archive_format: Accepted, likewise.
        cache_dir: ``~/.keras``, or what the environment variable KERAS_HOME names, when None.

    Raises:
        NotFoundError: It does not lie there.
        DataLossError: Its checksum is another one.
    """
    home = cache_dir or os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    path = os.path.join(home, cache_subdir, fname)
    if not os.path.exists(path):
        raise NotFoundError(f"there is no {path}, and tfray downloads nothing: put {origin} there")
    expected = file_hash or md5_hash
    if expected and not untar:
        name = hash_algorithm if hash_algorithm != "auto" else "sha256" if len(expected) == 64 else "md5"
        with failures_of(path), open(path, "rb") as file:
            found = hashlib.file_digest(file, name).hexdigest()
        if found != expected:
            raise DataLossError(f"{path} has the {name} checksum {found}, expected {expected}")
    return path
