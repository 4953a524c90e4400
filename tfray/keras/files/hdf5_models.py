"""Whole models in files of HDF5, as TensorFlow 1.15 writes them; those of later versions of Keras are read too.

An attribute describes the model and another its training, as JSON; groups hold the weights, and those of the optimizer.
Nothing in a file is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.call_errors import damage_reported
from tfray.keras.files.hdf5_weights import (
    new_file,
    opened,
    put_values,
    put_weights,
    read_values,
    set_weights,
    stored_weights,
)
from tfray.keras.optimizers import of_train
from tfray.library.layers.descriptions import described, get_custom_objects, restored, without_modules
from tfray.library.platform import logging

_SETTINGS: Final = ("loss", "metrics", "weighted_metrics", "sample_weight_mode", "loss_weights")
_ONE_OR_NO_SLOT_EACH: Final = ("SGD", "Adagrad")
_TWO_SLOTS_EACH: Final = ("Adam", "Adamax")


def write_model(model: Any, path: Any, overwrite: bool, include_optimizer: bool) -> None:
    """Write a model that is made of layers to a file, which h5py may have open.

    An optimizer of ``tf.train`` is left out, with a warning.

    Raises:
        InvalidArgumentError: A part cannot be described.
        AlreadyExistsError: The file must not exist, and does.
    """
    # All that may fail comes before the file is touched.
    told, training = json.dumps(described(model)), None
    weights, of_optimizer = stored_weights(model), {}
    if include_optimizer and model.optimizer is not None:
        if of_train(model.optimizer):
            logging.warning(
                "the optimizer of %r is one of tf.train, and not saved: compile the loaded model", model.name
            )
        else:
            settings = described(model._training_settings())
            optimizer = settings.pop("optimizer")
            training = json.dumps({**without_modules(settings), "optimizer_config": optimizer})
            of_optimizer = _named_values(model.optimizer)
    with new_file(path, overwrite) as file:
        file.attrs["backend"], file.attrs["keras_version"] = b"tensorflow", b"2.2.4-tf"
        file.attrs["model_config"] = told.encode()
        put_weights(file.create_group("model_weights"), weights)
        if training is not None:
            file.attrs["training_config"] = training.encode()
        if of_optimizer:
            put_values(file.create_group("optimizer_weights"), of_optimizer)


def _named_values(optimizer: Any) -> dict[str, Any]:
    """The values of an optimizer's variables by their names, which are made unique."""
    names: dict[str, None] = {}
    for variable in optimizer.weights:
        name, number = str(variable.name), 0
        while name in names:
            number += 1
            name = f"{variable.name.removesuffix(':0')}_{number}:0"
        names[name] = None
    return dict(zip(names, optimizer.get_weights(), strict=True)) if names else {}


def read_model(path: Any, custom_objects: Mapping[str, Any] | None, compile: bool) -> Any:
    """Read a model.

    Args:
        path: The file.
        custom_objects: Classes and functions of the program that the model has, by name.
        compile: Whether to compile it as it was, and go on with the optimizer's variables.

    Raises:
        InvalidArgumentError: It holds weights alone, or names what is not in `custom_objects`; a layer has code of
            Python in the file.
        DataLossError: It is damaged.
        NotFoundError: h5py is not installed.
    """
    with opened(path) as file:
        if "model_config" not in file.attrs:
            raise InvalidArgumentError(f"{path!r} holds weights alone: make the model, and use its load_weights")
        with damage_reported(f"{path!r}"):
            config = json.loads(file.attrs["model_config"])
            training = json.loads(file.attrs["training_config"]) if "training_config" in file.attrs else None
        model = restored(config, custom_objects)
        if not hasattr(model, "_training_settings"):
            raise InvalidArgumentError(f"{path!r} describes no model")
        set_weights(model, file, by_name=False)
        if compile and training is not None:
            _compile(model, training, custom_objects)
            if "optimizer_weights" in file:
                _restore_optimizer(model.optimizer, read_values(file["optimizer_weights"]))
    return model


def _compile(model: Any, training: dict[str, Any], custom_objects: Mapping[str, Any] | None) -> None:
    own = {**get_custom_objects(), **(custom_objects or {})}
    settings: dict[str, Any] = {}
    for name in _SETTINGS:
        first = "metrics" if "metrics" in name else "losses"
        told = restored(_unwrapped(training.get(name)), custom_objects, first)
        # Names are looked up when training begins, where nobody gives the program's own again.
        settings[name] = nest.map_structure(lambda each: own.get(each, each) if isinstance(each, str) else each, told)
    if len(model.outputs) == 1 and isinstance(settings["metrics"], list):
        settings["metrics"] = [each for item in settings["metrics"] for each in _as_list(item)]
    model.compile(restored(training["optimizer_config"], custom_objects, "optimizers"), **settings)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _unwrapped(value: Any) -> Any:
    """Functions by name where Keras has put them into objects."""
    if isinstance(value, list):
        return [_unwrapped(each) for each in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("class_name")) in ("MeanMetricWrapper", "LossFunctionWrapper"):
        return value["config"]["fn"]
    return {key: _unwrapped(each) for key, each in value.items()} if "class_name" not in value else value


def _restore_optimizer(optimizer: Any, stored: Mapping[str, Any]) -> None:
    """Give an optimizer the values of its variables.

    Later versions of Keras have them in another order, variable by variable, and a learning rate among them.
    """
    values = [np.asarray(value[()]) for value in stored.values()]
    if next(iter(stored), "").rpartition("/")[2].removesuffix(":0") == "iteration":
        kind = type(optimizer).__name__
        rest = [value for name, value in zip(stored, values, strict=True) if not _is_setting(name)]
        if kind not in (*_ONE_OR_NO_SLOT_EACH, *_TWO_SLOTS_EACH):
            logging.warning("the variables of %s are in the order of another version: it begins anew", kind)
            rest = []
        values = [values[0], *(rest[0::2] + rest[1::2] if kind in _TWO_SLOTS_EACH else rest)]
    optimizer.restore_weights(values)


def _is_setting(name: str) -> bool:
    return name.rpartition("/")[2].removesuffix(":0") in ("iteration", "learning_rate")
