"""Which variables objects hold, and the names that TensorFlow's object-based checkpoints give them.

A name is the path of attributes to a variable, such as ``model/kernel/.ATTRIBUTES/VARIABLE_VALUE``. Objects are walked
breadth first, so that an object which is reached in several ways has the shortest name. A slot of an optimizer is named
after its variable: ``model/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.saveable_resource import SaveableResource, saveable_of
from tfray.library.variables.variables import Variable
from tfray.training.optimizers.optimizer import Optimizer

VALUE: Final = ".ATTRIBUTES/VARIABLE_VALUE"
PYTHON_STATE: Final = ".ATTRIBUTES/PYTHON_STATE"

_LEAVES: Final = (Variable, PartitionedVariable, SaveableResource)

_HOLDERS: Final = ("weights", "variables", "save_counter")
"""Attributes of classes whose objects hold variables: layers and models, others, and checkpoints."""


class PythonState(ABC):
    """State of Python that a `Checkpoint` saves beside variables. Public as ``tf.train.experimental.PythonState``.

    An object of a derived class is tracked as a variable is. `serialize` is called by each save, and `deserialize` when
    a checkpoint is restored.
    """

    @abstractmethod
    def serialize(self) -> str | bytes:
        """The state as a string."""

    @abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Take the state over that `serialize` has given."""


def is_trackable(value: object) -> bool:
    """Whether an object is, or may hold, something to save."""
    if isinstance(saveable_of(value), (*_LEAVES, Optimizer, PythonState, list, tuple, Mapping)):
        return True
    return not isinstance(value, type) and any(hasattr(type(value), name) for name in _HOLDERS)


def names_of(root: object) -> tuple[dict[str, Any], dict[str, PythonState]]:
    """What is reached from an object, by its name: variables and other resources, and Python state."""
    paths: dict[int, str] = {id(root): ""}
    queue: list[tuple[str, Any]] = [("", root)]
    leaves: dict[str, Any] = {}
    states: dict[str, PythonState] = {}
    optimizers: list[tuple[str, Optimizer]] = []
    for path, found in queue:  # it grows while it is walked
        value = saveable_of(found)
        if isinstance(value, _LEAVES):
            leaves[path] = value
        elif isinstance(value, PythonState):
            states[f"{path}/{PYTHON_STATE}"] = value
        elif isinstance(value, Optimizer):
            optimizers.append((path, value))
        for name, child in _children(value):
            if id(child) not in paths:
                paths[id(child)] = f"{path}/{_escaped(name)}".lstrip("/")
                queue.append((paths[id(child)], child))
    named = {f"{path}/{VALUE}": leaf for path, leaf in leaves.items()}
    for path, optimizer in optimizers:
        for slot_name in optimizer.get_slot_names():
            for variable_path, variable in leaves.items():
                slot = optimizer.get_slot(variable, slot_name) if isinstance(variable, Variable) else None
                if slot is not None:
                    named[f"{variable_path}/.OPTIMIZER_SLOT/{path}/{_escaped(slot_name)}/{VALUE}"] = slot
    return named, states


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (*_LEAVES, PythonState)):
        return
    if isinstance(value, Optimizer):
        yield from value._parts.items()
        yield from ((name, variable) for (name, _), variable in sorted(value._non_slots.items(), key=_by_name))
        return
    if isinstance(value, Mapping):
        found = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        found = [(str(index), item) for index, item in enumerate(value)]
    else:
        declared = list(getattr(value, "_checkpoint_dependencies", ()))
        within = {id(each) for _, part in declared for each in getattr(part, "weights", ())}
        attributes = ((name, item) for name, item in _attributes(value) if id(item) not in within)
        found = [*declared, *_layers(value), *attributes]
    yield from ((name, child) for name, child in found if is_trackable(child))


def _by_name(item: tuple[tuple[str, Any], Any]) -> str:
    return item[0][0]


def _layers(value: Any) -> Iterator[tuple[str, Any]]:
    """The layers of a Keras model, under TensorFlow's names: those with weights are counted by themselves.

    A model of a class of the user's has its layers as attributes, which name them.
    """
    if not type(value).__module__.startswith("tfray."):
        return
    layers = [layer for layer in getattr(value, "layers", ()) if hasattr(layer, "weights")]
    yield from ((f"layer_with_weights-{i}", layer) for i, layer in enumerate(x for x in layers if x.weights))
    yield from ((f"layer-{index}", layer) for index, layer in enumerate(layers))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The public attributes of an object, then those of its variables that are none of them."""
    public = [(name, item) for name, item in getattr(value, "__dict__", {}).items() if not name.startswith("_")]
    yield from public
    if hasattr(value, "layers"):
        return
    weights = getattr(value, "weights", None)
    known = {id(item) for _, item in public}
    taken = {name for name, _ in public}
    scope = f"{getattr(getattr(value, '_scope', None), 'name', '')}/"
    for variable in weights if isinstance(weights, list) else ():
        if id(variable) not in known:
            whole = variable.op.name
            # A layer's own name of a variable may be of several parts, as "gates/kernel" is.
            name = whole[len(scope) :] if whole.startswith(scope) else whole.rpartition("/")[2]
            name = whole if name in taken else name
            taken.add(name)
            yield name, variable
