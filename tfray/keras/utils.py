"""``tf.keras.utils``: one-hot vectors, normalised arrays, files, bars, and names of a program's own classes."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from tfray.errors import DataLossError, NotFoundError
from tfray.formats.files import failures_of
from tfray.framework import nest
from tfray.keras.batch_sources import Sequence
from tfray.keras.enqueuers import GeneratorEnqueuer as GeneratorEnqueuer
from tfray.keras.enqueuers import OrderedEnqueuer as OrderedEnqueuer
from tfray.keras.enqueuers import SequenceEnqueuer as SequenceEnqueuer
from tfray.keras.files.checksums import hash_file, kind_of
from tfray.keras.files.hdf5_matrix import HDF5Matrix as HDF5Matrix
from tfray.keras.files.model_drawing import model_to_dot as model_to_dot
from tfray.keras.files.model_drawing import plot_model as plot_model
from tfray.keras.progress_bar import Progbar as Progbar
from tfray.keras.towers import multi_gpu_model as multi_gpu_model
from tfray.library.layers.descriptions import CustomObjectScope as CustomObjectScope
from tfray.library.layers.descriptions import described, restored
from tfray.library.layers.descriptions import get_custom_objects as get_custom_objects
from tfray.library.layers.descriptions import get_registered_name as get_registered_name
from tfray.library.layers.descriptions import get_registered_object as get_registered_object
from tfray.library.layers.descriptions import register_keras_serializable as register_keras_serializable
from tfray.library.layers.layer_history import history

# fmt: off
__all__ = [
    "CustomObjectScope", "GeneratorEnqueuer", "HDF5Matrix", "OrderedEnqueuer", "Progbar", "Sequence",
    "SequenceEnqueuer", "convert_all_kernels_in_model", "custom_object_scope", "deserialize_keras_object",
    "get_custom_objects", "get_file", "get_registered_name", "get_registered_object", "get_source_inputs",
    "model_to_dot", "multi_gpu_model", "normalize", "plot_model", "register_keras_serializable",
    "serialize_keras_object", "to_categorical",
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


def get_source_inputs(tensor: Any, layer: Any = None, node_index: int | None = None) -> list[Any]:
    """The inputs of models that a tensor is made of.

    Args:
        tensor: The tensor, which layers have made.
        layer: Not used: the tensor tells it.
        node_index: Not used.
    """
    found: dict[Any, None] = {}

    def visit(each: Any) -> None:
        made = history().get(each)
        if made is not None and made[1] is None:
            found[each] = None
        for before in nest.flatten(made[1]) if made is not None and made[1] is not None else each.op.inputs:
            visit(before)

    visit(tensor)
    return list(found)


def convert_all_kernels_in_model(model: Any) -> None:
    """Turn the kernels of a model's convolutions around, as weights of Keras on Theano need it.

    Doing it twice changes nothing.

    Args:
        model: The model, whose weights are set.
    """
    for layer in model.layers:
        if type(layer).__name__ in ("Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D"):
            kernel, *rest = layer.get_weights()
            layer.set_weights([np.flip(kernel, tuple(range(kernel.ndim - 2))), *rest])


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
    """The path of a file that lies where Keras keeps what it has loaded, or is copied there. Nothing is downloaded.

    Args:
        fname: The file's name, or its absolute path.
        origin: The address that it comes from. One that begins with ``file://`` is copied; others stand in the error.
        untar: The path is that of the folder ``fname``, into which ``fname.tar.gz`` is unpacked.
        md5_hash: Checksum that the file has to have.
        file_hash: The same, by `hash_algorithm`.
        cache_subdir: Folder beneath `cache_dir`.
        hash_algorithm: ``md5``, ``sha256``, or ``auto``, which goes by the length of the checksum.
        extract: Unpack the file beside itself, if it is an archive.
        archive_format: ``tar``, ``zip``, ``auto`` for both, or None.
        cache_dir: ``~/.keras``, or what the environment variable KERAS_HOME names, when None.

    Raises:
        NotFoundError: It does not lie there.
        DataLossError: Its checksum is another one, or the archive is damaged.
    """
    home = cache_dir or os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    folder = os.path.join(home, cache_subdir)
    path = os.path.join(folder, fname)
    packed = f"{path}.tar.gz" if untar else path
    source = urlsplit(origin)
    if not os.path.exists(packed) and source.scheme == "file":
        with failures_of(origin):
            os.makedirs(os.path.dirname(packed), exist_ok=True)
            shutil.copyfile(url2pathname(source.path), packed)
    if not os.path.exists(path if not os.path.exists(packed) else packed):
        raise NotFoundError(f"there is no {path}, and tfray downloads nothing: put {origin} there")
    expected = file_hash or md5_hash
    if expected and os.path.exists(packed):
        name = kind_of(expected, hash_algorithm)
        found = hash_file(packed, name)
        if found != expected:
            raise DataLossError(f"{packed} has the {name} checksum {found}, expected {expected}")
    if untar and not os.path.exists(path):
        _unpack(packed, folder, ("tar",))
    elif extract and archive_format is not None:
        _unpack(packed, folder, ("tar", "zip") if archive_format == "auto" else (archive_format,))
    return path


def _unpack(path: str, folder: str, kinds: Iterable[str]) -> None:
    """Put what is in an archive into a folder, and nothing outside of it. Files of other kinds are left alone."""
    with failures_of(path):
        try:
            if "tar" in kinds and tarfile.is_tarfile(path):
                with tarfile.open(path) as tar:
                    _unpack_tar(tar, folder)
            elif "zip" in kinds and zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(folder)
        except (tarfile.TarError, zipfile.BadZipFile) as error:
            raise DataLossError(f"{path} cannot be unpacked: {error}") from error


def _unpack_tar(tar: tarfile.TarFile, folder: str) -> None:
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    # Python 3.11 has filters from 3.11.4 on. Without them links are refused: with none, names say where files go.
    root = os.path.realpath(folder)
    for member in tar:
        place = os.path.realpath(os.path.join(root, member.name))
        if not (member.isfile() or member.isdir()) or os.path.commonpath([root, place]) != root:
            raise tarfile.ExtractError(f"{member.name!r} is no file or folder within {folder}")
        tar.extract(member, root, set_attrs=False)
