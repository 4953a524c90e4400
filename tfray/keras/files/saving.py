"""Whole Keras models in files: what they are made of, their weights, and how far training has come.

A file is one of HDF5, as TensorFlow writes it (see `hdf5_models`). Where h5py is not installed, and for models of
derived classes, it is one of NumPy's, ``npz``: the weights by number, those of the optimizer likewise, and the
description of the model as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import AlreadyExistsError, InvalidArgumentError
from tfray.formats.files import failures_of, given_path
from tfray.formats.npy import read_npz
from tfray.framework.call_errors import damage_reported
from tfray.keras.files import hdf5_models, hdf5_weights
from tfray.keras.optimizers import of_train
from tfray.library.layers.descriptions import described, restored
from tfray.library.platform import logging
from tfray.library.variables.kept_session import get_session
from tfray.library.variables.saveable_resource import saveable_of
from tfray.training.checkpoints.checkpoint_utils import load_checkpoint
from tfray.training.checkpoints.object_checkpoint import Checkpoint, CheckpointLoadStatus, write_state
from tfray.training.checkpoints.object_graph import ObjectGraph

_DESCRIPTION: Final = "model"
_OPTIMIZER: Final = "optimizer_"


def save_model(
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    include_optimizer: bool = True,
    save_format: str | None = None,
    signatures: Any = None,
) -> None:
    """Write a model to a file, for `load_model`: what it is made of, its weights, and the optimizer with its own.

    Args:
        model: The model.
        filepath: The file, under any name, or one that h5py has open. It is one of HDF5, as TensorFlow has it, if h5py
            is installed (the extra ``hdf5``), and the model is made of layers; otherwise of a format of tfray's own.
        overwrite: Whether the file may exist.
        include_optimizer: Whether what `compile` was given, and the optimizer's variables, are written too. An
            optimizer of ``tf.train`` is not: such a model has to be compiled again.
        save_format: None or ``h5``. For TensorFlow's format of saved models, see ``tf.saved_model``.
        signatures: None. Files have none; saved models do.

    Raises:
        InvalidArgumentError: A part cannot be described, such as a `Lambda` layer with a function without a name; or
            there is no such `save_format`, or there are signatures.
        NotImplementedError: `save_format` is ``h5``, and the model has a method `call` of its own.
    """
    if signatures is not None:
        raise InvalidArgumentError("files of models have no signatures: tf.saved_model exports models with these")
    if save_format not in (None, "h5"):
        raise InvalidArgumentError(
            f"save_format is {save_format!r}: this writes files of HDF5; tf.saved_model exports models"
        )
    if save_format == "h5" and model._is_subclassed():
        raise NotImplementedError(
            "Saving the model to HDF5 format requires the model to be a Functional model or a Sequential model: leave "
            "save_format out, for a format that takes this one too, or use save_weights"
        )
    if hdf5_weights.can_write() and model._can_be_cloned():
        path = filepath if hdf5_weights.is_open(filepath) else given_path(filepath, "filepath")
        hdf5_models.write_model(model, path, overwrite, include_optimizer)
        return
    told = {
        "model": described(model),
        "inputs": [[tensor.shape.as_list()[1:], tensor.dtype.name] for tensor in model.inputs],
    }
    arrays = numbered(model.get_weights())
    if include_optimizer and model.optimizer is not None:
        if of_train(model.optimizer):
            logging.warning(
                "the optimizer of %r is one of tf.train, and not saved: compile the loaded model", model.name
            )
        else:
            told["training"] = described(model._training_settings())
            targets = model._training_targets()
            told["targets"] = [[tensor.shape.as_list()[1:], tensor.dtype.name] for tensor in targets]
            arrays |= numbered(model.optimizer.get_weights() if targets else [], _OPTIMIZER)
    arrays[_DESCRIPTION] = np.frombuffer(json.dumps(told).encode(), np.uint8)
    write_arrays(filepath, arrays, overwrite)


def write_arrays(filepath: str, arrays: Mapping[str, Any], overwrite: bool) -> None:
    """Write a file ``npz`` under exactly this name. Raises `AlreadyExistsError` where it must not exist, and does."""
    with failures_of(given_path(filepath, "filepath")), open(filepath, "wb" if overwrite else "xb") as file:
        np.savez(file, **arrays)


def is_checkpoint(path: str) -> bool:
    """Whether a path is that of a checkpoint."""
    return os.path.exists(f"{path}.index")


class WeightsCheckpoint(Checkpoint):
    """The weights of a model and the variables of its optimizer, as `tf.train.Checkpoint` saves what an object holds.

    Args:
        model: The model.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def _objects(self) -> ObjectGraph:
        return ObjectGraph(self._model, {})

    def write_weights(self, path: str, overwrite: bool) -> None:
        """Write a checkpoint. Raises `AlreadyExistsError` where it must not exist, and does."""
        path = given_path(path, "filepath")
        if is_checkpoint(path) and not overwrite:
            raise AlreadyExistsError(f"there is a checkpoint {path!r} already")
        write_state(self.write(path, get_session()))

    def read_weights(self, path: str) -> WeightsStatus:
        """Restore what a checkpoint has of the model.

        Raises:
            AssertionError: It has nothing of it.
            InvalidArgumentError: A value has another dtype or shape than its variable.
        """
        status = WeightsStatus(self, path)
        if self._model.variables:
            status.assert_nontrivial_match()
        status.take_new()
        return status


class WeightsStatus(CheckpointLoadStatus):
    """What `Model.load_weights` gives for a checkpoint: checks of what was restored.

    Variables that are made later, as those of an optimizer are by the first step, get their values then.
    """

    _checkpoint: WeightsCheckpoint

    def __init__(self, checkpoint: WeightsCheckpoint, path: str) -> None:
        super().__init__(checkpoint, path)
        self._restored: set[str] = set()

    def take_new(self) -> bool:
        """Restore what has become known since. Returns whether the checkpoint has further values."""
        found, missing = self._found()
        if new := {name: value for name, value in found.items() if name not in self._restored}:
            self._check_shapes(new)
            self._checkpoint._saver_of(new).restore(get_session(), str(self._path))
            own = {saveable_of(variable) for variable in self._checkpoint._model.variables}
            left = sorted(name for name, value in missing.items() if value in own)
            if left and not self._restored:  # it is said once
                logging.warning("checkpoint %r has no value of %s, which stay as they are", self._path, ", ".join(left))
        self._restored |= new.keys()
        return bool(self._tensors - self._restored)

    def _check_shapes(self, found: Mapping[str, Any]) -> None:
        """Check all values before the first is restored: the weights of another model change nothing."""
        stored = load_checkpoint(str(self._path)).get_variable_to_shape_map()
        for name, variable in sorted(found.items()):
            shape = getattr(variable, "shape", None)
            if shape is not None and not shape.is_compatible_with(stored[name]):
                raise InvalidArgumentError(
                    f"{self._path!r} holds weights of another model: {name} has the shape {stored[name]}, and "
                    f"{variable.op.name} of the model {shape.as_list()}"
                )

    def assert_nontrivial_match(self) -> WeightsStatus:
        """Check that the model has weights of the checkpoint. Returns this object."""
        if not self._checkpoint._model.variables:
            raise AssertionError(f"the model has no weights yet: none of {self._path!r} is restored")
        super().assert_nontrivial_match()
        return self


def numbered(values: Sequence[Any], prefix: str = "") -> dict[str, Any]:
    """Arrays by number, after `prefix`."""
    return {f"{prefix}{number:04d}": value for number, value in enumerate(values)}


def in_order(found: Mapping[str, Any], prefix: str = "") -> list[Any]:
    """The arrays whose names are numbers after `prefix`, in their order."""
    names = (name for name in found if name.startswith(prefix) and name.removeprefix(prefix).isdecimal())
    return [found[name] for name in sorted(names, key=lambda name: int(name.removeprefix(prefix)))]


def load_model(filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True) -> Any:
    """Read a model that `save_model`, or a model's `save`, wrote, or TensorFlow or Keras to a file of HDF5.

    Args:
        filepath: The file.
        custom_objects: Classes and functions of the program that the model has, by name: layers, losses, metrics.
        compile: Whether to compile it as it was, and go on with the optimizer's variables.

    Returns:
        The model. Training goes on where it was when it was saved.

    Raises:
        InvalidArgumentError: It holds weights alone, is a folder, or names what is not in `custom_objects`. A layer
            is made of code of Python that stands in the file, which is never executed.
        DataLossError: It is damaged.
        NotFoundError: It is a file of HDF5, and h5py is not installed.
    """
    if hdf5_weights.is_open(filepath):
        return hdf5_models.read_model(filepath, custom_objects, compile)
    filepath = given_path(filepath, "filepath")
    if is_checkpoint(filepath):
        raise InvalidArgumentError(f"{filepath!r} holds weights alone: make the model, and use its load_weights")
    with failures_of(filepath):
        if os.path.isdir(filepath):
            raise InvalidArgumentError(f"{filepath!r} is a folder: tf.saved_model.load reads saved models")
        if hdf5_weights.is_hdf5(filepath):
            return hdf5_models.read_model(filepath, custom_objects, compile)
        found = read_npz(filepath)
    if _DESCRIPTION not in found:
        raise InvalidArgumentError(f"{filepath!r} holds weights alone: make the model, and use its load_weights")
    with damage_reported(f"{filepath!r}"):
        told = json.loads(found[_DESCRIPTION].tobytes())
        description, inputs = told["model"], [_example(*each) for each in told["inputs"]]
        training, targets = told.get("training"), [_example(*each) for each in told.get("targets", ())]
    model = restored(description, custom_objects)
    if not hasattr(model, "inputs"):
        raise InvalidArgumentError(f"{filepath!r} describes a {type(model).__name__}, which is no model")
    if not model.inputs and inputs:
        model._build_for(inputs)
    model._set_checked_weights(in_order(found), filepath)
    if compile and training is not None:
        model.compile(**restored(training, custom_objects))
        if targets:
            model._prepare_training(targets)
            model.optimizer.set_weights(in_order(found, _OPTIMIZER))
    return model


def _example(shape: list[int | None], dtype: str) -> np.ndarray:
    """An array of one example of these sizes."""
    return np.zeros([1, *(1 if size is None else size for size in shape)], dtype)


def model_from_config(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A new model of the kind that a description, such as `to_json` writes, tells of; its weights are new too.

    Args:
        config: The description.
        custom_objects: As for `load_model`.

    Raises:
        InvalidArgumentError: It describes no model.
    """
    is_told = {"class_name", "config"} <= config.keys()  # and perhaps, by TensorFlow, by which versions it was written
    model = restored({key: config[key] for key in ("class_name", "config")} if is_told else config, custom_objects)
    if not hasattr(model, "_training_settings"):
        raise InvalidArgumentError(f"{config!r} describes no model")
    return model


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """As `model_from_config`, from text. Raises `DataLossError` for what is no JSON."""
    with damage_reported("the description of a model"):
        config = json.loads(json_string)
    return model_from_config(config, custom_objects)


NO_YAML: Final = (
    "models are not written as YAML or read from it, because that may hold code which is executed: use `to_json` and "
    "`model_from_json`"
)


def model_from_yaml(yaml_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Raises `RuntimeError`, as in later versions of TensorFlow: YAML may hold code."""
    raise RuntimeError(NO_YAML)


def clone_model(model: Any, input_tensors: Any = None, clone_function: Callable[[Any], Any] | None = None) -> Any:
    """A new model like `model`, with weights of its own.

    Args:
        model: The model.
        input_tensors: Tensors that are its inputs, one or a list; placeholders when None.
        clone_function: From each layer to the one that stands in its place; by default one like it.

    Raises:
        ValueError: It is of a derived class, and there are inputs or a function.
    """
    if not model._can_be_cloned():
        if input_tensors is not None or clone_function is not None:
            raise ValueError(f"model {model.name!r} has no graph of layers to be cloned")
        return type(model).from_config(model.get_config())
    made: dict[Any, Any] = {}

    def kept(layer: Any) -> Any:
        if layer not in made:
            made[layer] = (clone_function or layer_like)(layer)
        return made[layer]

    return model._cloned(input_tensors, kept)


def layer_like(layer: Any) -> Any:
    """A layer, or a model, with the same settings, and weights of its own."""
    is_model = hasattr(layer, "_can_be_cloned")
    made = clone_model(layer) if is_model else type(layer).from_config(layer.get_config())
    return made
