"""What Keras layers add to those of ``tf.layers``: they remember the tensors that they were called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from tfray.framework import nest
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras import initializers
from tfray.keras.backend import get_session
from tfray.keras.descriptions import Described
from tfray.library.layers import base_layer


def history() -> dict[Tensor, tuple[Any, Any, dict[str, Any]]]:
    """For outputs of layers in the current graph: the layer, its inputs and its further arguments."""
    found: dict[Tensor, tuple[Any, Any, dict[str, Any]]] = get_default_graph().extra("keras_history", dict)
    return found


class Remembering(Described):
    """A mixin: what Keras layers add to the layers of ``tf.layers``.

    Args:
        *args: Arguments of the layer.
        input_shape: Shape of one example, for the first layer of a `Sequential` model.
        batch_input_shape: The same with the batch in front.
        input_dim: The same for examples that are vectors.
        **kwargs: Arguments of the layer; activations and initializers may be names.
    """

    _first_number = 0

    def __init__(
        self,
        *args: Any,
        input_shape: Sequence[int | None] | None = None,
        batch_input_shape: Sequence[int | None] | None = None,
        input_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        for key, value in kwargs.items():
            if key.endswith("initializer"):
                kwargs[key] = initializers.get(value)
        super().__init__(*args, **kwargs)
        if input_dim is not None:
            input_shape = (input_dim,)
        self.batch_input_shape = (None, *input_shape) if input_shape is not None else batch_input_shape

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs; the call is remembered."""
        outputs = super().__call__(inputs, *args, **kwargs)  # type: ignore[misc]
        for output in nest.flatten(outputs):
            history().setdefault(output, (self, inputs, kwargs))
        return outputs

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, with weights of its own."""
        own = {"name": self.name, "trainable": self.trainable}  # type: ignore[attr-defined]
        return {**super().get_config(), **{key: value for key, value in own.items() if self._takes(key)}}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """What `get_config` describes, made anew; layers within it, such as cells, are made anew too."""
        return super().from_config({name: _anew(value) for name, value in config.items()})

    def get_weights(self) -> list[Any]:
        """Values of all variables, the trainable ones first."""
        values: list[Any] = get_session().run(list(self.variables))  # type: ignore[attr-defined]
        return values

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables, in the order of `get_weights`."""
        for variable, value in zip(self.variables, weights, strict=True):  # type: ignore[attr-defined]
            variable.load(value, get_session())


def _anew(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_anew, value)) if isinstance(value, tuple) else [_anew(each) for each in value]
    return type(value).from_config(value.get_config()) if isinstance(value, Remembering) else value


class Layer(Remembering, base_layer.Layer):
    """A part of a model; see `tf.layers.Layer` for what to override.

    ``input_shape``, ``batch_input_shape`` and ``input_dim`` are for the first layer of a `Sequential` model.
    """

    def add_weight(
        self,
        name: str,
        shape: Any = None,
        dtype: DTypeLike | None = None,
        initializer: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """As `tf.layers.Layer.add_weight`; the initializer may be a name."""
        return super().add_weight(name, shape, dtype, initializer, *args, **kwargs)
