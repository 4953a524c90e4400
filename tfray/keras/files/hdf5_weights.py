"""Weights of models in files of HDF5, laid out as Keras does: a group for each layer, a dataset for each weight.

Files of Keras and TensorFlow are read, those of whole models for their weights. Needs h5py: the extra ``hdf5``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import util
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError, NotFoundError
from tfray.formats.files import failures_of
from tfray.keras.backend import batch_get_value, batch_set_value

_BEGIN: Final = b"\x89HDF\r\n\x1a\n"
_MOST_BYTES: Final = 64_000
"""Bytes of names in one attribute: HDF5 takes 64 KiB. Keras numbers the attributes when there are more."""


def is_open(file: object) -> bool:
    """Whether it is an open file of h5py."""
    return hasattr(file, "attrs") and hasattr(file, "create_group")


def can_write() -> bool:
    """Whether h5py is installed."""
    return util.find_spec("h5py") is not None


def is_hdf5(path: str) -> bool:
    """Whether a file begins as those of HDF5 do."""
    with failures_of(path), open(path, "rb") as file:
        return file.read(len(_BEGIN)) == _BEGIN


def write_weights(model: Any, path: str, overwrite: bool) -> None:
    """Write the weights of a model. Raises `AlreadyExistsError` where the file must not exist, and does."""
    stored = stored_weights(model)  # before the file is touched
    with new_file(path, overwrite) as file:
        put_weights(file, stored)


def stored_weights(model: Any) -> dict[str, dict[str, Any]]:
    """The values of weights by their names, for the name of each layer."""
    return {
        layer.name: {
            variable.name: value
            for variable, value in zip(_weights_of(layer), batch_get_value(_weights_of(layer)), strict=True)
        }
        for layer in model.layers
    }


@contextmanager
def new_file(path: Any, overwrite: bool) -> Iterator[Any]:
    """A file to write to; one that is open, as it is. Raises `AlreadyExistsError` where it must not exist, and does."""
    import h5py

    if is_open(path):
        yield path
        return
    with failures_of(path):
        # Without `overwrite` the file is made here, so that no other is written to.
        with open(path, "wb" if overwrite else "xb"):
            pass
        with h5py.File(path, "w") as file:
            yield file


def put_weights(root: Any, stored: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what `stored_weights` gave into a group."""
    _put_names(root, "layer_names", list(stored))
    root.attrs["backend"] = b"tensorflow"
    root.attrs["keras_version"] = b"2.2.4-tf"
    for name, values in stored.items():
        put_values(root.require_group(name), values)  # one name may be the begin of another


def put_values(group: Any, values: Mapping[str, Any]) -> None:
    """Write arrays into a group, and their names in order."""
    _put_names(group, "weight_names", list(values))
    for name, value in values.items():
        group.create_dataset(name, data=value)


def read_values(group: Any) -> dict[str, Any]:
    """What `put_values` has written: datasets by their names."""
    return {name: group[name] for name in _names(group, "weight_names")}


def read_weights(model: Any, path: str, by_name: bool) -> None:
    """Set the weights of a model to those of a file.

    Args:
        model: The model.
        path: The file.
        by_name: Whether layers are found by their names: those that are missing on either side stay as they are.
            Otherwise layers with weights follow each other in both.

    Raises:
        NotFoundError: There is no such file, or h5py is not installed.
        ValueError: The file holds the weights of another model. None is changed.
        DataLossError: It is damaged.
    """
    with opened(path) as file:
        set_weights(model, file, by_name)


def set_weights(model: Any, file: Any, by_name: bool) -> None:
    """Set the weights of a model to those of an open file."""
    root = file["model_weights"] if "layer_names" not in file.attrs and "model_weights" in file else file
    stored = {name: list(read_values(root[name]).values()) for name in _names(root, "layer_names")}
    pairs = _by_name(model, stored) if by_name else _in_order(model, stored)
    batch_set_value([(variable, np.asarray(values[()])) for variable, values in pairs])


def save_weights_to_hdf5_group(f: Any, layers: Sequence[Any]) -> None:
    """Write the weights of layers into an open file, or into a group of one."""
    put_weights(f, stored_weights(SimpleNamespace(layers=layers)))


def load_weights_from_hdf5_group(f: Any, layers: Sequence[Any]) -> None:
    """Set the weights of layers to those of an open file, one layer after the other.

    Raises:
        ValueError: The file holds the weights of other layers. None is changed.
    """
    set_weights(SimpleNamespace(layers=layers), f, by_name=False)


def load_weights_from_hdf5_group_by_name(f: Any, layers: Sequence[Any]) -> None:
    """Set the weights of the layers whose names an open file has.

    Raises:
        ValueError: A layer has other weights there. None is changed.
    """
    set_weights(SimpleNamespace(layers=layers), f, by_name=True)


def _by_name(model: Any, stored: Mapping[str, list[Any]]) -> list[tuple[Any, Any]]:
    pairs = []
    for layer in model.layers:
        if layer.name in stored:
            pairs += _pairs(layer, layer.name, stored[layer.name])
    return pairs


def _in_order(model: Any, stored: Mapping[str, list[Any]]) -> list[tuple[Any, Any]]:
    layers = [layer for layer in model.layers if _weights_of(layer)]
    filled = {name: values for name, values in stored.items() if values}
    if len(layers) != len(filled):
        raise ValueError(
            f"You are trying to load a weight file containing {len(filled)} layers into a model with "
            f"{len(layers)} layers."
        )
    pairs = []
    for layer, (name, values) in zip(layers, filled.items(), strict=True):
        pairs += _pairs(layer, name, values)
    return pairs


def _pairs(layer: Any, name: str, values: list[Any]) -> list[tuple[Any, Any]]:
    """The variables of a layer, and what is stored for each."""
    variables = _weights_of(layer)
    if len(variables) != len(values):
        raise ValueError(
            f"layer {layer.name!r} expects {len(variables)} weights, but {name!r} in the file has {len(values)}"
        )
    for variable, value in zip(variables, values, strict=True):
        if tuple(variable.shape.as_list()) != value.shape:
            raise ValueError(
                f"layer {layer.name!r}: weight {variable.name!r} has shape {variable.shape}, but {name!r} in the file "
                f"has shape {value.shape}"
            )
    return list(zip(variables, values, strict=True))


def _weights_of(layer: Any) -> list[Any]:
    """Those that are trained first, as Keras has them."""
    trained = list(layer.trainable_variables)
    return trained + [each for each in layer.variables if not any(each is known for known in trained)]


@contextmanager
def opened(path: Any) -> Iterator[Any]:
    """A file of HDF5 to read. Raises `NotFoundError` without h5py, `DataLossError` where it is damaged."""
    try:
        import h5py
    except ImportError as error:
        raise NotFoundError(
            f"{path!r} is a file of HDF5, which h5py reads; it is not installed: pip install 'tfray[hdf5]'"
        ) from error
    if is_open(path):
        yield path
        return
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, RuntimeError) as error:  # `is_hdf5` has read its begin
        raise DataLossError(f"{path!r} is damaged, or no file of Keras's weights: {error}") from error


def _names(group: Any, attribute: str) -> list[str]:
    """The names in an attribute, or in several that are numbered."""
    if attribute in group.attrs:
        found = list(group.attrs[attribute])
    else:
        numbered = sorted(
            (name for name in group.attrs if name.startswith(attribute)), key=lambda name: (len(name), name)
        )
        if not numbered:
            raise KeyError(f"{group.name} has no {attribute}")
        found = [each for name in numbered for each in group.attrs[name]]
    return [each.decode() if isinstance(each, bytes) else str(each) for each in found]


def _put_names(group: Any, attribute: str, names: list[str]) -> None:
    encoded = np.array([name.encode() for name in names] or [], "S")
    parts, count = [encoded], 1
    while count < len(names) and any(part.nbytes > _MOST_BYTES for part in parts):
        count += 1
        parts = np.array_split(encoded, count)
    for number, part in enumerate(parts):
        group.attrs[attribute if len(parts) == 1 else f"{attribute}{number}"] = part
