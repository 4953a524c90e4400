"""Which layers have made which tensors, and the masks that they gave them."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from tfray.framework import nest
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.traversal import reachable_backward
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers.input_spec import fitting_weights
from tfray.library.variables.kept_session import get_session


class Tracker:
    """Tells checkpoints of objects what it holds by names that a program gives."""

    _checkpoint_dependencies: Any

    def _layers_within(self) -> list[Any]:
        return []

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All layers within, and those within these: each once, what is nearer first."""
        found: dict[Any, None] = {}
        waiting = self._layers_within()
        while waiting:
            found.update(dict.fromkeys(waiting))
            inner = [each for layer in waiting for each in layer._layers_within()]
            waiting = [each for each in dict.fromkeys(inner) if each not in found and each is not self]
        return tuple(found)

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Let checkpoints have a layer, variable or other object under this name, whatever attribute holds it.

        Args:
            trackable: The object, which is returned.
            name: Its name in paths.
            overwrite: Whether another object may have had the name.

        Raises:
            ValueError: Another one has it.
        """
        known = dict(self.__dict__.get("_checkpoint_dependencies", ()))
        if not overwrite and known.get(name, trackable) is not trackable:
            raise ValueError(f"Called Trackable._track_trackable() with name='{name}', but a Trackable has that name.")
        self._checkpoint_dependencies = list({**known, name: trackable}.items())
        return trackable


class Unconnected(Tracker):
    """The members of a layer that has no inputs, outputs and losses: such are metrics in TensorFlow."""

    name: str
    updates: list[Any]
    built: bool = True
    trainable: bool = True
    dynamic: ClassVar[bool] = False
    activity_regularizer: Any = None
    input_spec: Any = None

    @property
    def variables(self) -> list[Any]:
        """The variables. Derived classes have some."""
        return []

    @property
    def trainable_variables(self) -> list[Any]:
        """None: no optimizer changes what a metric keeps."""
        return []

    @property
    def non_trainable_variables(self) -> list[Any]:
        """All variables."""
        return self.variables

    trainable_weights, non_trainable_weights = trainable_variables, non_trainable_variables

    @property
    def losses(self) -> list[Any]:
        """None."""
        return []

    metrics = inbound_nodes = outbound_nodes = losses

    @property
    def input(self) -> Any:
        """A metric has none: an AttributeError."""
        raise AttributeError(f"Layer {self.name} is not connected: a metric has no inputs and outputs of its own")

    output = input_shape = output_shape = input_mask = output_mask = input

    def add_update(self, updates: object, inputs: object = None) -> None:
        """Add an operation, or a list of them, to `updates`."""
        self.updates = [*self.updates, *(updates if isinstance(updates, (list, tuple)) else [updates])]

    def get_updates_for(self, inputs: object) -> list[Any]:
        """The operations in `updates`: they belong to no input."""
        return list(self.updates)

    def get_losses_for(self, inputs: object) -> list[Any]:
        """None."""
        return []

    def compute_mask(self, inputs: object, mask: object = None) -> Any:
        """The mask of the inputs."""
        return mask

    def build(self, input_shape: object) -> None:
        """Nothing: a metric makes its variables when it is made, or at its first update."""
        self.built = True

    def count_params(self) -> int:
        """How many numbers all variables have."""
        return sum(math.prod(variable.shape.as_list()) for variable in self.variables)

    def get_weights(self) -> list[Any]:
        """The values of all variables, arrays."""
        values: list[Any] = get_session().run(self.variables) if self.variables else []
        return values

    def set_weights(self, weights: Sequence[TensorLike]) -> None:
        """Set all variables, in the order of `get_weights`. Raises `ValueError` where arrays do not fit them."""
        for variable, value in fitting_weights(self.variables, weights, self.name):
            variable.load(value, get_session())


def history() -> dict[Tensor, tuple[Any, Any, dict[str, Any]]]:
    """For outputs of layers in the current graph: the layer, its inputs and its further arguments."""
    found: dict[Tensor, tuple[Any, Any, dict[str, Any]]] = get_default_graph().extra("keras_history", dict)
    return found


def mask_of(tensor: object) -> Any:
    """The mask that a layer has given to its output, or None."""
    return getattr(tensor, "_keras_mask", None)


def masks_of(inputs: object) -> Any:
    """The masks of inputs, in their structure; None if there are none."""
    if all(mask_of(each) is None for each in nest.flatten(inputs)):
        return None
    return nest.map_structure(mask_of, inputs)


def give_masks(inputs: object, masks: object) -> None:
    """Let inputs have these masks, in their structure; None leaves them as they are."""
    for tensor, mask in zip(nest.flatten(inputs), nest.flatten(masks), strict=False):
        if mask is not None:
            tensor._keras_mask = mask


def takes(name: str, parameters: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a function with these parameters can be given an argument by that name."""
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def takes_masks(parameters: Mapping[str, inspect.Parameter], call: object) -> bool:
    """Whether `call` is given masks: TensorFlow also gives them to a program's ``**kwargs``."""
    return "mask" in parameters or (takes("mask", parameters) and not str(call.__module__).startswith("tfray."))


def depends_on(thing: Any, inputs: Sequence[Any]) -> bool:
    """Whether a tensor, variable or operation depends on one of these inputs: tensors, sparse tensors, or values."""
    ops = reachable_backward([thing if isinstance(thing, Operation) else thing.op])
    return any(getattr(getattr(each, "values", each), "op", None) in ops for each in inputs)


_calls: Final = threading.local()


@contextmanager
def within_call(training: object) -> Iterator[None]:
    """The call of a layer that was told this of training, or nothing: layers within it are told the same."""
    before = told_of_training()
    _calls.training = before if training is None else training
    try:
        yield
    finally:
        _calls.training = before


def told_of_training() -> Any:
    """What the layer whose call this is was told of training; None if it was told nothing."""
    return getattr(_calls, "training", None)
