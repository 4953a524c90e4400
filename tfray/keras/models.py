"""Keras models: layers between inputs and outputs, and `fit`, `evaluate` and `predict` over a session.

A model adds operations to the default graph. Its training step, loss and metrics are added when they are first needed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.files import given_path
from tfray.formats.npy import read_npz
from tfray.framework import nest
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import predecessors, reachable_backward
from tfray.keras import layers as keras_layers
from tfray.keras.backend import learning_phase
from tfray.keras.files import hdf5_weights, saving
from tfray.keras.files.networks import (
    Call,
    calls_between,
    described_network,
    exchanged,
    restored_input,
    restored_network,
)
from tfray.keras.files.saving import (
    clone_model,
    load_model,
    model_from_config,
    model_from_json,
    model_from_yaml,
    save_model,
)
from tfray.keras.layers import Input, InputLayer, Layer
from tfray.keras.layers.operation_layers import AddLoss, AddMetric
from tfray.keras.model_summary import print_summary
from tfray.keras.settings import floatx
from tfray.keras.training import Trainable, unique_names
from tfray.library.layers.descriptions import described, restored
from tfray.library.layers.layer_history import depends_on, give_masks, history, mask_of
from tfray.library.platform import logging
from tfray.ops.arrays import array_ops

# fmt: off
__all__ = [
    "Model", "Sequential", "clone_model", "load_model", "model_from_config", "model_from_json",
    "model_from_yaml", "save_model",
]
# fmt: on


class Model(Trainable, Layer):
    """A model. Make it from inputs and outputs, or derive a class from it and define `call`.

        x = tf.keras.Input([784])
        y = tf.keras.layers.Dense(10, activation="softmax")(tf.keras.layers.Dense(64, activation="relu")(x))
        model = tf.keras.Model(x, y)
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(images, labels, epochs=5)

    Args:
        inputs: Tensors that `tf.keras.Input` made: one, or a list.
        outputs: Tensors that layers made of them: one, or a list.
        name: Name of the model.

    Raises:
        InvalidArgumentError: The outputs depend on inputs that are not given, or were not made by layers.
    """

    supports_masking = True
    _has_own_weights_last = True
    _masks_its_outputs = True
    _parameters_end_here = True

    def __init__(self, inputs: Any = None, outputs: Any = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **{"autocast": False, **kwargs})  # its layers cast what they take
        self._init_training()
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.__calls: list[Call] = []
        self.__order: list[Any] = []
        self.__branches: list[Tensor] = []
        self.__single, self.__made_first = True, False
        self.__checkpoint = saving.WeightsCheckpoint(self)
        self.__awaited: saving.WeightsStatus | None = None
        if inputs is not None:
            self._connect_tensors(inputs, outputs)

    def _connect_tensors(self, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = nest.flatten(inputs), nest.flatten(outputs)
        if len(set(self.inputs)) != len(self.inputs):
            raise ValueError(
                "The list of inputs passed to the model is redundant. All inputs should only appear once. Found: "
                f"{self.inputs}"
            )
        self.__single = not isinstance(outputs, (list, tuple, dict)) or len(self.outputs) == 1
        self.__calls, self.__order = calls_between(self.inputs, self.outputs)
        self.built = True
        # As in TensorFlow, node 0 of a model is itself, and its calls on other inputs follow.
        calls = self._recorded_calls[1:] if self.__made_first else self._recorded_calls
        self._recorded_calls, self.__made_first = [(inputs, outputs), *calls], True
        self._take_awaited_weights()

    def add_loss(self, losses: object, inputs: Any = None) -> None:
        """Add losses, as for `Layer.add_loss`. One of the model's inputs is a layer of it, and in its description."""
        for loss in nest.flatten(losses):
            if self._is_of_inputs(loss):
                self._keep_branch(AddLoss(dtype=loss.dtype)(loss))
            else:
                super().add_loss(loss, inputs)

    def add_metric(self, value: Tensor, aggregation: str | None = None, name: str | None = None) -> None:
        """Add a metric, as for `Layer.add_metric`. One of the model's inputs is a layer of it, and in descriptions."""
        if self._is_of_inputs(value) and aggregation == "mean" and name is not None:
            self._keep_branch(AddMetric(aggregation, name, dtype=value.dtype)(value))
        else:
            super().add_metric(value, aggregation, name)

    def _is_of_inputs(self, tensor: object) -> bool:
        """Whether this is a model of layers, and the tensor made of its inputs alone, and not of other placeholders."""
        if not isinstance(tensor, Tensor) or isinstance(self, Sequential) or not self.__calls:
            return False
        own = {each.op for each in self.inputs}
        sources = reachable_backward([tensor.op], lambda op: () if op in own else predecessors(op))
        return not own.isdisjoint(sources) and all(op.type != "Placeholder" for op in sources - own)

    def _keep_branch(self, end: Tensor) -> None:
        """Take in the calls and layers that lead to a tensor that is no output."""
        calls, order = calls_between(self.inputs, [end])
        made = {call.outputs[0] for call in self.__calls}
        self.__calls += [call for call in calls if call.outputs[0] not in made]
        self.__order += [layer for layer in order if layer not in self.__order]
        self.__branches.append(end)

    def _metrics_of_inputs(self) -> list[tuple[str, Any, Tensor]]:
        """Name, metric and result of what `add_metric` has added, but results of other inputs; each metric's last."""
        seen, added = self._seen(), self._added_metrics()
        own = [each for each in added if depends_on(each[2], self.inputs) or not depends_on(each[2], seen)]
        return list({id(metric): (name, metric, result) for name, metric, result in own}.values())

    # -- layers and weights ----------------------------------------------------------------------

    @property
    def run_eagerly(self) -> bool:
        """False: a session runs the graph.

        Raises:
            ValueError: It is set to True.
        """
        return False

    @run_eagerly.setter
    def run_eagerly(self, value: Any) -> None:
        if value:
            raise ValueError(
                "You can only set `run_eagerly=True` if eager execution is enabled: tfray has none, look at values "
                "with tf.print or Model.predict"
            )

    @property
    def layers(self) -> list[Any]:
        """The layers, farthest from the outputs first."""
        if self.inputs and self.__calls:
            return list(self.__order)
        return super()._layers_within()

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """A layer by its name or its place.

        Raises:
            InvalidArgumentError: There is none, or neither is given. It is also a `ValueError`.
        """
        layers = self.layers
        if index is not None:
            if index >= len(layers):
                raise InvalidArgumentError(
                    f"Was asked to retrieve layer at index {index} but model only has {len(layers)} layers."
                )
            return layers[index]
        if not name:
            raise InvalidArgumentError("Provide either a layer name or layer index.")
        for layer in layers:
            if layer.name == name:
                return layer
        raise InvalidArgumentError(f"No such layer: {name}; there are {[layer.name for layer in layers]}")

    def _layers_within(self) -> list[Any]:
        return self.layers

    @property
    def variables(self) -> list[Any]:
        """The variables of all layers, in the order of the layers, and then the model's own."""
        own: list[Any] = super().variables
        in_order = dict.fromkeys(variable for layer in self.layers for variable in layer.variables)
        return [*in_order, *(variable for variable in own if variable not in in_order)]

    weights = variables

    @property
    def input(self) -> Any:
        """The input of a model that has one, or a list."""
        return self.inputs[0] if len(self.inputs) == 1 else self.inputs

    @property
    def output(self) -> Any:
        """The output of a model that has one, or a list."""
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    @property
    def input_shape(self) -> Any:
        """Static shape of the input, a tuple, or a list of shapes."""
        shapes = [tuple(tensor.shape.as_list()) for tensor in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self) -> Any:
        """Static shape of the output, a tuple, or a list of shapes."""
        shapes = [tuple(tensor.shape.as_list()) for tensor in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    def _seen(self) -> list[Any]:
        return [*self.inputs, *super()._seen()]

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs: by these the estimator of `tf.keras.estimator.model_to_estimator` takes features.

        Those of a model that was built for data are the keys of that, or ``input_1`` and so on.
        """
        if self._built_for_data:
            return self._input_keys or [f"input_{place}" for place, _ in enumerate(self.inputs, 1)]
        return [_layer_name(tensor) for tensor in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """Names of the layers of the outputs, which predictions of its estimator have: ``NAME_1`` for a second one.

        Those of a model that was built for data are ``output_1`` and so on.
        """
        if self._built_for_data:
            return [f"output_{place}" for place, _ in enumerate(self.outputs, 1)]
        return unique_names([_layer_name(tensor) for tensor in self.outputs])

    @property
    def state_updates(self) -> list[Any]:
        """The updates of stateful layers, which run with each batch, whether it trains or not."""
        return [
            update
            for layer in self.layers
            if _is_stateful(layer)
            for update in getattr(layer, "state_updates", layer.updates)
        ]

    def reset_states(self) -> None:
        """Set the states of stateful layers to zeros."""
        for layer in self.layers:
            if _is_stateful(layer):
                layer.reset_states()

    # -- running ---------------------------------------------------------------------------------

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:  # type: ignore[override]
        """Run the layers on other inputs. A derived class defines this.

        Args:
            inputs: The inputs.
            training: Whether the layers train, as the call of the model has told them already.
            mask: The mask of the inputs, or a list of one for each.
        """
        give_masks(inputs, mask)
        if not self.__calls and not self.inputs:
            raise InvalidArgumentError(f"model {self.name!r} has no layers: give inputs and outputs, or define call")
        known = dict(zip(self.inputs, nest.flatten(inputs), strict=True))
        results = self._rerun(known, lambda layer: layer)
        return results[0] if self.__single else results

    def _can_be_cloned(self) -> bool:
        """Whether the model is its layers, and how they are called."""
        return type(self) is Sequential or (type(self) is Model and bool(self.inputs))

    def _is_subclassed(self) -> bool:
        """Whether a method of the program says what the model computes."""
        return type(self).call not in (Model.call, Sequential.call)

    def _cloned(self, input_tensors: Any, layer_like: Callable[[Any], Any]) -> Any:
        """A model of other layers, which are called as those of this one are; see `clone_model`."""
        given = nest.flatten(input_tensors) if input_tensors is not None else [None] * len(self.inputs)
        inputs = [
            Input(**_described_input(own))
            if tensor is None
            else tensor
            if tensor in history()
            else Input(tensor=tensor)
            for own, tensor in zip(self.inputs, given, strict=True)
        ]
        known = dict(zip(self.inputs, inputs, strict=True))
        results = self._rerun(known, layer_like)
        model = Model(inputs, results[0] if self.__single else results, name=self.name)
        for end in self.__branches:
            model._keep_branch(known[end])
        vars(model)["_trainable"] = self.trainable  # that of layers is their own
        return model

    def _rerun(self, known: dict[Tensor, Any], layer_like: Callable[[Any], Any]) -> list[Any]:
        """The outputs for other tensors, which `known` has for those of this model."""
        for layer, arguments, settings, made in self.__calls:
            if any(output not in known for output in made):
                inner = nest.map_structure(lambda tensor: known.get(tensor, tensor), arguments)
                results = layer_like(layer)(inner, **exchanged(settings, known))
                known.update(zip(made, nest.flatten(results), strict=False))
        return [known[output] for output in self.outputs]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks of the outputs for inputs with these masks; None for a model of a derived class."""
        if not self.inputs or type(self).call not in (Model.call, Sequential.call):
            return None
        tensors = [array_ops.identity(each) for each in nest.flatten(inputs)]
        outputs = self.call(tensors if isinstance(inputs, (list, tuple)) else tensors[0], mask=mask)
        return nest.map_structure(mask_of, outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Static shape of the outputs for inputs of that shape, or a list of shapes."""
        shapes = input_shape if isinstance(input_shape, list) else [input_shape]
        if not self.inputs or len(shapes) != len(self.inputs):
            return super().compute_output_shape(input_shape)
        known = dict(zip(self.inputs, map(TensorShape, shapes), strict=True))
        for layer, arguments, _, made in self.__calls:
            if any(output not in known for output in made):
                found = layer.compute_output_shape(nest.map_structure(known.__getitem__, arguments))
                known.update(zip(made, nest.flatten(found), strict=False))
        results = [known[output] for output in self.outputs]
        return results[0] if self.__single else results

    def _build_for(self, x: Sequence[np.ndarray]) -> None:
        """Build a model of a derived class for inputs like the arrays `x`."""
        if self.inputs:
            return
        self._build_on(*self._sources_for(x))

    def _build_on(self, inputs: list[Tensor], given: Any) -> None:
        """Make outputs of a model of a derived class for these inputs, with which it is called as `given` says."""
        self._built_for_data, self.inputs = True, inputs
        more = {"training": learning_phase()} if "training" in inspect.signature(self.call).parameters else {}
        outputs = self(given, **more)
        self.__single = not isinstance(outputs, (list, tuple))
        self.outputs = nest.flatten(outputs)

    def _built_on(self, tensors: Sequence[Tensor]) -> Any:
        """A model like this one, of layers like its own, whose inputs are these tensors."""
        if self._can_be_cloned():
            return saving.clone_model(self, list(tensors))
        made = self._unbuilt()
        made._input_keys = self._input_keys
        made._build_on(list(tensors), self._as_called(tensors))
        return made

    def _unbuilt(self) -> Any:
        """A model of the same derived class, which has not been called, of layers like those of this one."""
        made: Any = object.__new__(type(self))
        Model.__init__(made, name=self.name)
        found: dict[Any, Any] = {}

        def like(value: Any) -> Any:
            if isinstance(value, Layer) and value not in found:
                if isinstance(value, Model) and not value._can_be_cloned():
                    found[value] = value._unbuilt()
                else:
                    found[value] = saving.layer_like(value)
            return found[value] if isinstance(value, Layer) else value

        for name, value in vars(self).items():
            if name not in vars(made):  # one of the derived class
                setattr(made, name, nest.map_structure(like, value))
        return made

    def _set_inputs(self, inputs: Any) -> None:
        """Build a model of a derived class for inputs like arrays or tensors: one, or a list or dictionary of them."""
        self._input_keys = sorted(inputs) if isinstance(inputs, Mapping) else None
        given = [inputs[key] for key in self._input_keys] if self._input_keys else nest.flatten(inputs)
        shapes = [TensorShape(each.shape).as_list() for each in given]
        kinds = [as_dtype(each.dtype).as_numpy_dtype for each in given]
        rows = zip(shapes, kinds, strict=True)
        self._build_for([np.zeros([1 if size is None else size for size in shape], kind) for shape, kind in rows])

    def build(self, input_shape: Any = None) -> None:
        """Make inputs and outputs of a model that has none yet, for inputs of a shape, or of each in a list of them.

        Args:
            input_shape: The shape, with the batch in front.

        Raises:
            ValueError: It is None, and the model has no inputs.
        """
        if input_shape is None and not self.inputs:
            raise ValueError("Input shape must be defined when calling `build()` on a model without inputs.")
        several = isinstance(input_shape, list) and isinstance(input_shape[0], (list, tuple, TensorShape))
        if not self.inputs:
            shapes = [TensorShape(shape).as_list() for shape in (input_shape if several else [input_shape])]
            self._build_for([np.zeros([1 if size is None else size for size in shape], floatx()) for shape in shapes])
        self.built = True

    def _build_in_call(self, input_shape: Any) -> None:
        if type(self).build is not Model.build:
            self.build(input_shape)

    def _sources_for(self, x: Sequence[np.ndarray]) -> tuple[list[Tensor], Any]:
        """Inputs for arrays like these, and how a layer is called with them."""
        names = self._input_keys or [f"{self.name}_input"] * len(x)
        kinds = [floatx() if np.issubdtype(value.dtype, np.floating) else value.dtype for value in x]
        sources = [
            Input(value.shape[1:], dtype=kind, name=name) for value, kind, name in zip(x, kinds, names, strict=True)
        ]
        return sources, self._as_called(sources)

    def _as_called(self, inputs: Sequence[Tensor]) -> Any:
        """Inputs as a layer is called with them: by name, if there are names."""
        if self._input_keys:
            return dict(zip(self._input_keys, inputs, strict=True))
        return inputs[0] if len(inputs) == 1 else list(inputs)

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], object] | None = None,
    ) -> None:
        """Print the layers, the shapes of their outputs, how many weights they have, and what they are connected to.

        Args:
            line_length: Characters a line; 65, or 98 where layers branch.
            positions: Where each column ends, in parts of a line or in characters.
            print_fn: What each line is given to; `print` when None.

        Raises:
            ValueError: The model has no inputs yet.
        """
        if not self.built and not self.inputs:
            raise ValueError(
                "This model has not yet been built. Build the model first by calling `build()` or calling `fit()` with "
                "some data, or specify an `input_shape` argument in the first layer(s) for automatic build."
            )
        print_summary(self, line_length, positions, print_fn or print)

    def save_weights(self, filepath: str, overwrite: bool = True, save_format: str | None = None) -> None:
        """Write the weights, and the optimizer's variables, as a checkpoint, or the weights to a file.

        `tf.train.latest_checkpoint` finds the checkpoint, and TensorFlow reads it.

        Args:
            filepath: The path.
            overwrite: Whether it may exist.
            save_format: ``tf`` for a checkpoint, ``h5`` for a file: of HDF5, as Keras has it, where h5py is installed
                (the extra ``hdf5``), else of NumPy's format ``npz``. When None, it is a file if the path ends in
                ``.h5``, ``.hdf5``, ``.keras`` or ``.npz``; the last is NumPy's.

        Raises:
            ValueError: There is no such format.
        """
        if save_format not in (None, "tf", "tensorflow", "h5", "hdf5", "keras"):
            raise ValueError(f"Unknown format {save_format!r}. Was expecting one of {{'tf', 'h5'}}.")
        path = given_path(filepath, "filepath")
        is_file = path.endswith((".h5", ".hdf5", ".keras", ".npz")) if save_format is None else "tf" not in save_format
        if is_file and hdf5_weights.can_write() and not path.endswith(".npz"):
            hdf5_weights.write_weights(self, path, overwrite)
        elif is_file:
            saving.write_arrays(filepath, saving.numbered(self.get_weights()), overwrite)
        else:
            self.__checkpoint.write_weights(filepath, overwrite)

    # -- steps as functions ----------------------------------------------------------------------

    def _make_train_function(self) -> None:
        """Make the training step before there is data, and so the optimizer's variables; `train_function` runs it.

        Such functions take lists, as in TensorFlow 1.15: arrays for the inputs, then for the targets, and last, if it
        is given, the learning phase, which each knows by itself. They return lists: the loss, and the metrics.
        """
        targets = self._feed_targets  # which makes the loss
        self._prepare_training([])
        self.train_function = self.__function_of(self.train_on_batch, len(targets))

    def _make_test_function(self) -> None:
        """Make `test_function`, which gives loss and metrics for one batch."""
        self.test_function = self.__function_of(self.test_on_batch, len(self._feed_targets))

    def _make_predict_function(self) -> None:
        """Make `predict_function`, which gives a list of the outputs: programs ask for it before threads predict."""
        self.predict_function = self.__function_of(self.predict_on_batch, 0)

    def __function_of(self, step: Callable[..., Any], targets: int) -> Callable[[Sequence[Any]], list[Any]]:
        inputs = len(self._feed_inputs)

        def call(values: Sequence[Any]) -> list[Any]:
            parts = [list(values[:inputs]), list(values[inputs : inputs + targets])]
            found = step(*parts[: 2 if targets else 1])
            return found if isinstance(found, list) else [found]

        return call

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs; see `tf.keras.layers.Layer`. Weights that are made now take the values that wait for them."""
        outputs = super().__call__(inputs, *args, **kwargs)
        self._take_awaited_weights()
        return outputs

    def _take_awaited_weights(self) -> None:
        if self.__awaited is not None and not self.__awaited.take_new():
            self.__awaited = None

    def load_weights(self, filepath: str, by_name: bool = False) -> Any:
        """Read the weights that `save_weights` or `save` wrote, or Keras or TensorFlow to a file of HDF5.

        A checkpoint may also have the variables of the optimizer. What the model has not made yet, as all weights of a
        derived class before its first call, and the optimizer's variables before the first step, gets its value then.
        Weights that the checkpoint does not have stay as they are, with a warning.

        Args:
            filepath: The file, or the path of a checkpoint.
            by_name: Whether layers are found by their names, in a file of HDF5: those that it does not have keep their
                weights.

        Returns:
            For a checkpoint an object whose methods check what was restored; else None.

        Raises:
            ValueError: The file of HDF5 holds the weights of another model, or the model has no weights yet.
            InvalidArgumentError: So does another file; or a value of a checkpoint has another shape than its weight.
            AssertionError: A checkpoint has nothing of this model.
            DataLossError: It is damaged.
            NotImplementedError: `by_name`, with a checkpoint or a file of NumPy's, in which layers have no names.
        """
        path = given_path(filepath, "filepath")
        is_checkpoint = saving.is_checkpoint(path)
        is_unmade = not self.inputs and not self.variables
        if not is_checkpoint and hdf5_weights.is_hdf5(path):
            if is_unmade:
                raise ValueError(
                    "Unable to load weights saved in HDF5 format into a subclassed Model which has not created its "
                    "variables yet. Call the Model first, then load the weights."
                )
            hdf5_weights.read_weights(self, path, by_name)
            return None
        if by_name:
            raise NotImplementedError(
                "Weights may only be loaded based on topology into Models when loading TensorFlow-formatted weights: "
                f"loading by name is only supported for HDF5, and {filepath!r} is no file of HDF5"
            )
        if is_checkpoint:
            self.__awaited = self.__checkpoint.read_weights(path)
            return self.__awaited
        self._set_checked_weights(saving.in_order(read_npz(path)), filepath)
        return None

    def _set_checked_weights(self, values: Sequence[Any], filepath: str) -> None:
        """Set all weights to those of a file. Raises `InvalidArgumentError` where they are of another model."""
        shapes = [value.shape for value in values]
        wanted = [tuple(variable.shape.as_list()) for variable in self.variables]
        if shapes != wanted:
            raise InvalidArgumentError(f"{filepath!r} holds weights of shapes {shapes}, the model has {wanted}")
        self.set_weights(values)

    def save(
        self,
        filepath: Any,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: str | None = None,
        signatures: Any = None,
    ) -> None:
        """Write the whole model to a file; see `tf.keras.models.save_model`."""
        save_model(self, filepath, overwrite, include_optimizer, save_format, signatures)

    # -- descriptions ----------------------------------------------------------------------------

    @property
    def _own_calls(self) -> Sequence[Call]:
        """The calls of layers that lead from the model's inputs to its outputs."""
        return self.__calls

    def _connections(self) -> list[tuple[Any, Any]]:
        """Pairs of layers, the second of which takes what the first has made."""
        if not self.__calls:
            return list(zip(self.layers, self.layers[1:], strict=False))
        known = history()
        made_by = {tensor: known[tensor][0] for tensor in self.inputs if tensor in known}
        made_by.update((tensor, call.layer) for call in self.__calls for tensor in call.outputs)
        pairs = [(made_by.get(source), call.layer) for call in self.__calls for source in call.sources()]
        return [pair for pair in dict.fromkeys(pairs) if pair[0] is not None]

    def get_config(self) -> dict[str, Any]:
        """What makes an equal model, with weights of its own: the layers, and how they were called.

        For a derived class, these are the arguments with which the model was made.
        """
        if type(self) is not Model:
            return super().get_config()
        self._warn_of_additions()
        network = described_network(self.inputs, self.outputs, self.__calls, self.layers)
        return {"name": self.name, "trainable": self.trainable, **network}

    def _warn_of_additions(self) -> None:
        """Say what a description of the model lacks: losses and metrics that are no layers of it."""
        if self._losses or self._metric_records:
            logging.warning(
                "model %r: %d losses and %d metrics that add_loss and add_metric added are not in its description, "
                "as they are not made of the inputs of a tf.keras.Model: add them again to what is made of it",
                self.name,
                len(self._losses),
                len(self._metric_records),
            )

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """The model that `get_config` describes."""
        if cls is not Model:
            return super().from_config(config)
        inputs, outputs, branches = restored_network(config, custom_objects)
        model = cls(inputs, outputs, name=config.get("name"))
        for end in branches:
            model._keep_branch(end)
        if config.get("trainable") is False:
            model.trainable = False
        return model

    def to_json(self, **kwargs: Any) -> str:
        """The description of the model as text, for `tf.keras.models.model_from_json`; `kwargs` go to `json.dumps`."""
        return json.dumps({**described(self), "keras_version": "2.2.4-tf", "backend": "tensorflow"}, **kwargs)

    def to_yaml(self, **kwargs: Any) -> str:
        """Raises `RuntimeError`, as in later versions of TensorFlow: YAML may hold code."""
        raise RuntimeError(saving.NO_YAML)


class Sequential(Model):
    """Layers one after the other.

        model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu", input_shape=(784,)),
                                     tf.keras.layers.Dense(10, activation="softmax")])

    Without an ``input_shape`` the model is built when it first sees data.

    Args:
        layers: The layers.
        name: Name of the model.
    """

    def __init__(self, layers: Sequence[Any] | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._stack: list[Any] = []
        for layer in layers or ():
            self.add(layer)

    @property
    def layers(self) -> list[Any]:
        """The layers, in order."""
        return [layer for layer in self._stack if not isinstance(layer, InputLayer)]

    def add(self, layer: Any) -> None:
        """Put a layer, or the input that `tf.keras.Input` made, at the end."""
        if isinstance(layer, Tensor):
            self._connect_tensors(layer, layer)
            return
        if not isinstance(layer, Layer):
            raise TypeError(
                f"The added layer must be an instance of class Layer. Sequential.add takes a layer, not {layer}"
            )
        if not self._stack and not self.inputs:
            source = _source_of(layer)
            if source is not None:
                self._connect_tensors(source, source)
            if isinstance(layer, InputLayer):
                return
        self._stack.append(layer)
        if self.outputs:
            self._connect_tensors(self.inputs[0], layer(self.outputs[0]))

    def pop(self) -> None:
        """Take the last layer away. Raises `TypeError` where there is none."""
        if not self._stack:
            raise TypeError("There are no layers in the model.")
        self._stack.pop()
        if self.inputs:
            source = outputs = self.inputs[0]
            for layer in self._stack:
                outputs = layer(outputs)
            self._connect_tensors(source, outputs)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:  # type: ignore[override]
        """Run the layers on other inputs, given as they are or in a list or dictionary of one."""
        give_masks(inputs, mask)
        (outputs,) = nest.flatten(inputs) if self.inputs else (inputs,)
        for layer in self._stack:
            outputs = layer(outputs)
        return outputs

    def _build_for(self, x: Sequence[np.ndarray]) -> None:
        if not self.inputs:
            self._built_for_data = True
            sources, given = self._sources_for(x)
            self._connect_tensors(sources, self.call(given))

    def get_config(self) -> dict[str, Any]:
        """What makes an equal model, with weights of its own: the layers, and the input, if there is one.

        For a derived class, these are the arguments with which the model was made.
        """
        if type(self) is not Sequential:
            return super().get_config()
        self._warn_of_additions()
        layers = described(self._stack)
        if self.inputs and getattr(self._stack[0] if self._stack else None, "batch_input_shape", None) is None:
            layers.insert(0, described(history()[self.inputs[0]][0]))
        return {"name": self.name, "trainable": self.trainable, "layers": layers}

    @classmethod
    def from_config(cls, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Self:
        """The model that `get_config` describes."""
        if cls is not Sequential:
            return super().from_config(config, custom_objects)
        told: dict[str, Any] = {"layers": config} if isinstance(config, list) else dict(config)
        model = cls(name=told.get("name"))
        for each in told["layers"]:
            is_input = each["class_name"] == "InputLayer"
            model.add(restored_input(each["config"]) if is_input else restored(each, custom_objects))
        if not model.inputs and told.get("build_input_shape") is not None:
            model.build(told["build_input_shape"])
        if told.get("trainable") is False:
            model.trainable = False
        return model

    def _cloned(self, input_tensors: Any, layer_like: Callable[[Any], Any]) -> Any:
        """A model of other layers; see `clone_model`."""
        given = nest.flatten(input_tensors) if input_tensors is not None else []
        sources = [each if each in history() else Input(tensor=each) for each in given]
        if not sources and self.inputs:
            sources = [Input(**_described_input(self.inputs[0]))]
        model = Sequential([*sources, *map(layer_like, self._stack)], name=self.name)
        vars(model)["_trainable"] = self.trainable
        return model

    def predict_proba(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The predictions, which are probabilities where the model makes these."""
        return self.predict(x, batch_size, verbose)

    def predict_classes(self, x: Any, batch_size: int = 32, verbose: int = 0) -> np.ndarray:
        """The class with the highest prediction of each example."""
        predictions: np.ndarray = self.predict(x, batch_size)
        return predictions.argmax(-1) if predictions.shape[-1] > 1 else (predictions > 0.5).astype(np.int32)


def _source_of(layer: Any) -> Tensor | None:
    """The input of a `Sequential` whose first layer this is; None where its shape is not known yet."""
    if isinstance(layer, InputLayer):
        return layer.tensor()
    shape, dtype = getattr(layer, "batch_input_shape", None), layer.dtype
    if isinstance(layer, keras_layers.Embedding):
        dtype = "int64"
    elif isinstance(layer, Model) and layer.inputs:
        shape, dtype = layer.inputs[0].shape.as_list(), layer.inputs[0].dtype
    return None if shape is None else Input(batch_shape=shape, name=f"{layer.name}_input", dtype=dtype)


def _layer_name(tensor: Tensor) -> str:
    with tensor.graph.as_default():
        found = history().get(tensor)
    return str(found[0].name if found is not None else tensor.op.name)


def _is_stateful(layer: Any) -> bool:
    inner = layer.layers if isinstance(layer, Model) else ()
    return bool(getattr(layer, "stateful", False)) or any(map(_is_stateful, inner))


def _described_input(tensor: Tensor) -> dict[str, Any]:
    name = tensor.op.name.rpartition("/")[2]
    return {"batch_shape": tensor.shape.as_list(), "dtype": tensor.dtype.name, "name": name}
