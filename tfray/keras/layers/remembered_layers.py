"""What Keras layers add to those of ``tf.layers``: they remember the tensors that they were called with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.traversal import reachable_backward
from tfray.keras import constraints, initializers, regularizers
from tfray.keras.backend import get_session
from tfray.keras.descriptions import Described
from tfray.library.layers import base_layer
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import placeholder


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
        weights: Values of all variables, set when they are made.
        **kwargs: Arguments of the layer; activations, initializers, regularizers and constraints may be names.

    Attributes:
        supports_masking: Whether the mask of the inputs holds for the outputs too, unless `compute_mask` says
            otherwise.
        stateful: Whether the layer goes on from one batch to the next.
    """

    trainable: bool
    supports_masking: bool = False
    stateful: bool = False
    input: Any
    output: Any
    _recorded_calls: list[tuple[Any, Any]]
    _first_number = 0
    _masks_its_outputs: ClassVar[bool] = False  # the outputs already have the masks that they are to have

    def __init__(
        self,
        *args: Any,
        input_shape: Sequence[int | None] | None = None,
        batch_input_shape: Sequence[int | None] | None = None,
        input_dim: int | None = None,
        batch_size: int | None = None,
        weights: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for key, value in kwargs.items():
            for ending, module in _NAMED.items():
                if key.endswith(ending):
                    kwargs[key] = module.get(value)
        super().__init__(*args, **kwargs)
        if input_dim is not None:
            input_shape = (input_dim,)
        self.batch_input_shape = (batch_size, *input_shape) if input_shape is not None else batch_input_shape
        self.__first_weights = weights

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs; the call is remembered. Masks of the inputs go to `call`, if it takes a ``mask``."""
        names = inspect.signature(self.call).parameters  # type: ignore[attr-defined]
        given = dict(zip(list(names)[1:], args, strict=False)) | kwargs
        mask, passed = given.get("mask"), {}
        if mask is None:
            mask = _masks_of(inputs)
            if mask is not None and "mask" not in given and _takes_masks(names, self.call):  # type: ignore[attr-defined]
                passed["mask"] = mask
        outputs = super().__call__(inputs, *args, **kwargs, **passed)  # type: ignore[misc]
        own = set(map(id, nest.flatten(inputs)))
        outputs = nest.map_structure(lambda each: array_ops.identity(each) if id(each) in own else each, outputs)
        for output in nest.flatten(outputs):
            history()[output] = (self, inputs, kwargs)  # not layers within this one, which have made it before
        self.__mask_outputs(inputs, outputs, mask)
        if self.__first_weights is not None:
            values, self.__first_weights = self.__first_weights, None
            self.set_weights(values)
        return outputs

    # -- layers within this one ------------------------------------------------------------------

    def _layers_within(self) -> list[Any]:
        """Layers that are attributes of this one, or stand in lists that are."""
        found: dict[Any, None] = {}
        for value in vars(self).values():
            items = value.values() if isinstance(value, dict) else value
            for item in items if isinstance(value, (list, tuple, dict)) else [value]:
                if isinstance(item, base_layer.Layer):
                    found[item] = None
        return list(found)

    def __gathered(self, attribute: str) -> list[Any]:
        own = getattr(super(), attribute)
        return list(
            dict.fromkeys([*own, *(each for layer in self._layers_within() for each in getattr(layer, attribute))])
        )

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that optimizers change, those of layers within this one included."""
        return self.__gathered("trainable_variables") if self.trainable else []

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The other variables."""
        found = self.__gathered("non_trainable_variables")
        if self.trainable:
            return found
        inner = (each for layer in self._layers_within() for each in layer.trainable_variables)
        return list(dict.fromkeys([*inner, *found]))

    @property
    def variables(self) -> list[Any]:
        """All variables, the trainable ones first."""
        return [*self.trainable_variables, *self.non_trainable_variables]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    @property
    def losses(self) -> list[Tensor]:
        """Losses of regularizers and those that `add_loss` added, those of layers within this one included."""
        return self.__gathered("losses")

    @property
    def updates(self) -> list[Any]:
        """What `add_update` added, likewise."""
        return self.__gathered("updates")

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """Losses that depend on these inputs, or with None those that depend on none."""
        return self.__that_depend(self.losses, inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """Updates that depend on these inputs, or with None those that depend on none."""
        return self.__that_depend(self.updates, inputs)

    def __that_depend(self, things: Sequence[Any], inputs: Any) -> list[Any]:
        seen = nest.flatten([call[0] for call in self._recorded_calls] if inputs is None else inputs)
        seen = [convert_to_tensor(each) for each in seen]
        return [each for each in things if depends_on(each, seen) == (inputs is not None)]

    # -- masks -----------------------------------------------------------------------------------

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: a bool tensor that is False where they are to be left out, or None.

        Args:
            inputs: The inputs.
            mask: Their mask, or a structure of masks like them.

        Raises:
            TypeError: There is a mask, and the layer does not support masking.
        """
        if not self.supports_masking and any(each is not None for each in nest.flatten(mask)):
            raise TypeError(
                f"Layer {self.name} does not support masking, but was passed an input_mask: {mask}"  # type: ignore[attr-defined]
            )
        return mask if self.supports_masking else None

    def __mask_outputs(self, inputs: Any, outputs: Any, mask: Any) -> None:
        flat = [output for output in nest.flatten(outputs) if isinstance(output, Tensor)]
        if self._masks_its_outputs or (flat and all(mask_of(output) is not None for output in flat)):
            return
        masks = None
        if self.supports_masking or type(self).compute_mask is not Remembering.compute_mask:
            masks = self.compute_mask(inputs, mask)
        for output, own in zip(flat, [None] * len(flat) if masks is None else nest.flatten(masks), strict=False):
            output._keras_mask = own

    @property
    def input_shape(self) -> Any:
        """Static shape of the inputs of the only call, a tuple."""
        return nest.map_structure(_sizes, self.input)

    @property
    def output_shape(self) -> Any:
        """Static shape of the outputs of the only call, a tuple."""
        return nest.map_structure(_sizes, self.output)

    @property
    def input_mask(self) -> Any:
        """The mask of the inputs of the only call."""
        return nest.map_structure(mask_of, self.input)

    @property
    def output_mask(self) -> Any:
        """The mask of the outputs of the only call."""
        return nest.map_structure(mask_of, self.output)

    # -- shapes ----------------------------------------------------------------------------------

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Static shape of the outputs for inputs of that shape, or a structure of shapes for one of them.

        A layer like this one is called in a graph of its own.
        """
        inherited: Any = super()
        if type(self).__mro__[-1] is object and inherited.compute_output_shape.__func__ is not _SAME_SHAPE:
            return inherited.compute_output_shape(input_shape)
        args, kwargs = self._made_with
        with Graph().as_default():
            twin = type(self)(*map(_anew, args), **{name: _anew(value) for name, value in kwargs.items()})
            return nest.map_structure(lambda tensor: tensor.shape, twin(_placeholders(input_shape)))

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
        variables = list(self.variables)
        values: list[Any] = get_session().run(variables) if variables else []
        return values

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables, in the order of `get_weights`."""
        for variable, value in zip(self.variables, weights, strict=True):
            variable.load(value, get_session())


_NAMED = {"initializer": initializers, "regularizer": regularizers, "constraint": constraints}
"""What arguments may name, by how they end."""

_SAME_SHAPE: Any = base_layer.Layer.compute_output_shape


def mask_of(tensor: Any) -> Any:
    """The mask that a layer has given to its output, or None."""
    return getattr(tensor, "_keras_mask", None)


def depends_on(thing: Any, tensors: Sequence[Tensor]) -> bool:
    """Whether a tensor or an operation depends on one of these tensors."""
    ops = reachable_backward([getattr(thing, "op", thing)])
    return any(tensor.op in ops for tensor in tensors)


def _masks_of(inputs: Any) -> Any:
    """The masks of inputs, in their structure; None if there are none."""
    if all(mask_of(each) is None for each in nest.flatten(inputs)):
        return None
    return nest.map_structure(mask_of, inputs)


def _sizes(tensor: Tensor) -> Any:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


def _takes_masks(parameters: Mapping[str, inspect.Parameter], call: Any) -> bool:
    """Whether `call` is given masks: TensorFlow also gives them to a program's ``**kwargs``."""
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return "mask" in parameters or (takes_any and not str(call.__module__).startswith("tfray."))


def _placeholders(shape: Any) -> Any:
    """Placeholders of a shape, or of each in a structure of shapes."""
    if isinstance(shape, dict):
        return {name: _placeholders(each) for name, each in shape.items()}
    if isinstance(shape, (list, tuple)) and any(isinstance(each, (list, tuple, dict, TensorShape)) for each in shape):
        return type(shape)([_placeholders(each) for each in shape])
    return placeholder("float32", shape)


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
