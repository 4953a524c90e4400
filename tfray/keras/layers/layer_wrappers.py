"""Layers around other layers: over each step of sequences, and over sequences in both directions."""

from __future__ import annotations

import inspect
from typing import Any

from tfray.framework import nest
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.keras import tensor_functions
from tfray.keras.layers.recurrent_cells import TakesStates, build_cell
from tfray.library.layers.input_spec import InputSpec
from tfray.library.layers.keras_layer import Layer
from tfray.ops.arrays import array_ops


class Wrapper(Layer):
    """A layer around another one, whose variables are its own."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Please initialize `{type(self).__name__}` layer with a `Layer` instance. You passed: {layer}"
            )
        super().__init__(**kwargs)
        self.layer = layer

    @property
    def activity_regularizer(self) -> Any:
        """That of the layer within."""
        return getattr(self.layer, "activity_regularizer", None)

    @activity_regularizer.setter
    def activity_regularizer(self, regularizer: Any) -> None:
        self.layer.activity_regularizer = regularizer


class TimeDistributed(Wrapper):
    """A layer for each step of sequences, ``[batch, time, ...]``. Masks go to it step by step, too.

    Args:
        layer: The layer.
        **kwargs: As for `Layer`.

    Raises:
        ValueError: `layer` is none, or the inputs have fewer than three dimensions.
    """

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        shape = TensorShape(input_shape)
        if shape.rank is not None and shape.rank < 3:
            raise ValueError(
                "`TimeDistributed` Layer should be passed an `input_shape ` with at least 3 dimensions, received: "
                f"{shape}"
            )
        if shape.rank is not None:
            self.input_spec = InputSpec(shape=[None, None, *shape.as_list()[2:]])
            build_cell(self, self.layer, (shape.as_list()[0], *shape.as_list()[2:]), ())
        super().build(input_shape)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:  # type: ignore[override]
        names = inspect.signature(self.layer.call).parameters
        more: dict[str, Any] = {}
        if training is not None and "training" in names:
            more["training"] = training
        if mask is not None and "mask" in names:
            more["mask"] = _steps_as_examples(mask)
        outputs = self.layer(_steps_as_examples(inputs), **more)
        return nest.map_structure(lambda each: _examples_as_steps(each, inputs), outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Static shape of the outputs."""
        shape = TensorShape(input_shape)
        inner = self.layer.compute_output_shape(shape[:1].concatenate(shape[2:]))
        return nest.map_structure(lambda each: shape[:2].concatenate(TensorShape(each)[1:]), inner)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the layer's outputs, or that of the steps where it has none."""
        if inputs.shape.as_list()[0] is not None:
            return mask
        inner = None if mask is None else _steps_as_examples(mask)
        inner_layer: Any = self.layer
        found = inner_layer.compute_mask(_steps_as_examples(inputs), inner)
        if found is not None:
            return _examples_as_steps(found, inputs)
        if mask is None:
            return None
        return tensor_functions.any(mask, list(range(2, mask.shape.rank))) if mask.shape.rank > 2 else mask


def _steps_as_examples(tensor: Tensor) -> Tensor:
    sizes: Any = tensor.shape.as_list()[2:]
    if None not in sizes:
        return array_ops.reshape(tensor, [-1, *sizes])
    result = array_ops.reshape(tensor, array_ops.concat([[-1], array_ops.shape(tensor)[2:]], 0))
    result.set_shape([None, *sizes])
    return result


def _examples_as_steps(tensor: Tensor, like: Tensor) -> Tensor:
    batch, time = like.shape.as_list()[:2]
    sizes: Any = tensor.shape.as_list()[1:]
    if time is not None and None not in sizes:
        result = array_ops.reshape(tensor, [-1, time, *sizes])
    else:
        result = array_ops.reshape(
            tensor, array_ops.concat([array_ops.shape(like)[:2], array_ops.shape(tensor)[1:]], 0)
        )
    result.set_shape([batch, time, *sizes])
    return result


_MODES = ("sum", "mul", "ave", "concat", None)


class Bidirectional(TakesStates, Wrapper):
    """A recurrent layer over sequences, and one like it over the same sequences from their ends.

    Args:
        layer: The recurrent layer. Two are made like it.
        merge_mode: What becomes of the outputs of both: ``concat``, ``sum``, ``ave`` (the mean) or ``mul``; a list of
            both when None.
        weights: Arrays that the weights are at first.
        backward_layer: The layer that begins at the ends, in place of one like `layer`.
        **kwargs: As for `Layer`.

    Raises:
        ValueError: `layer` is none, or there is no such `merge_mode`.
    """

    supports_masking = True
    _names_both = True

    _unsaid = ("backward_layer",)

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        if merge_mode not in _MODES:
            raise ValueError(
                'Invalid merge mode. Merge mode should be one of {"sum", "mul", "ave", "concat", None}, '
                f"got {merge_mode!r}"
            )
        super().__init__(layer, weights=weights, **kwargs)
        self.merge_mode = merge_mode
        self.forward_layer = _like(layer, "forward_", layer.go_backwards)
        if backward_layer is None:
            self.backward_layer = _like(layer, "backward_", not layer.go_backwards)
        else:
            self.backward_layer = backward_layer
        del self.layer  # two like it stand in its place
        self.return_sequences, self.return_state = layer.return_sequences, layer.return_state
        self.stateful = layer.stateful
        if self.batch_input_shape is None:
            self.batch_input_shape = layer.batch_input_shape

    def call(  # type: ignore[override]
        self, inputs: Any, training: Any = None, mask: Any = None, initial_state: Any = None, constants: Any = None
    ) -> Any:
        mask = None if mask is None else nest.flatten(mask)[0]
        inputs, initial_state, constants = self._parted(inputs, initial_state, constants)
        own: list[dict[str, Any]] = [{"training": training, "mask": mask, "constants": constants} for _ in range(2)]
        if initial_state is not None:
            states = list(initial_state)
            if len(states) % 2:
                raise ValueError(
                    "When passing `initial_state` to a Bidirectional RNN, the state should be a list containing the "
                    f"states of the underlying RNNs. Found: {initial_state}"
                )
            own[0]["initial_state"], own[1]["initial_state"] = states[: len(states) // 2], states[len(states) // 2 :]
        forward, backward = self.forward_layer(inputs, **own[0]), self.backward_layer(inputs, **own[1])
        states = []
        if self.return_state:
            states = [*forward[1:], *backward[1:]]
            forward, backward = forward[0], backward[0]
        if self.return_sequences:
            backward = array_ops.reverse(backward, [0 if getattr(self.forward_layer, "time_major", False) else 1])
        merged = self._merged(forward, backward)
        if not self.return_state:
            return merged
        return [*merged, *states] if self.merge_mode is None else [merged, *states]

    def _merged(self, forward: Any, backward: Any) -> Any:
        if self.merge_mode == "concat":
            return array_ops.concat([forward, backward], -1)
        if self.merge_mode is None:
            return [forward, backward]
        if self.merge_mode == "mul":
            return forward * backward
        return forward + backward if self.merge_mode == "sum" else (forward + backward) / 2

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """That of the inputs for sequences, None for the last outputs and the states."""
        mask = None if mask is None else nest.flatten(mask)[0]
        own = mask if self.return_sequences else None
        states = [None] * 2 * len(self.forward_layer.states) if self.return_state else []
        if self.merge_mode is None:
            return [own, own, *states]
        return [own, *states] if self.return_state else own

    def reset_states(self) -> None:
        """Set the states of both layers to zeros."""
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()


def _like(layer: Any, prefix: str, go_backwards: bool) -> Any:
    return type(layer).from_config(
        {**layer.get_config(), "go_backwards": go_backwards, "name": f"{prefix}{layer.name}"}
    )
