"""Which variables objects hold, and the names that TensorFlow's object-based checkpoints give them.

A name is the path of attributes to a variable, such as ``model/kernel/.ATTRIBUTES/VARIABLE_VALUE``. Objects are walked
breadth first, so that an object which is reached in several ways has the shortest name. A slot of an optimizer is named
after its variable: ``model/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.formats.meta_graph_proto import TrackableObjectGraph
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.saveable_resource import SaveableResource, saveable_of
from tfray.library.variables.variables import Variable

OBJECT_GRAPH: Final = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""What a checkpoint of TensorFlow holds beside the values: a description of the objects."""

VALUE: Final = ".ATTRIBUTES/VARIABLE_VALUE"
PYTHON_STATE: Final = ".ATTRIBUTES/PYTHON_STATE"

_LEAVES: Final = (Variable, PartitionedVariable, SaveableResource)

_HOLDERS: Final = ("weights", "variables", "save_counter", "get_slot_names")
"""Attributes of classes whose objects hold variables: layers and models, others, checkpoints, and optimizers."""


_OWN: Final = frozenset(
    {
        *("_losses", "_metric_records", "_named_weights", "_non_trainable_weights", "_recorded_calls"),
        *("_trainable_weights", "_updates"),
    }
)
"""Private attributes of layers that hold what other names lead to."""


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


class AutoTrackable:
    """An object that holds what is saved by its attributes. Public as ``tf.contrib.checkpoint.Checkpointable``.

    Attributes are looked at when a `Checkpoint` saves or restores. So a list may change in any way before; TensorFlow
    refuses to save one whose elements were replaced.
    """

    def _no_dependency(self, value: Any) -> Any:
        """The value itself, as of `tf.contrib.checkpoint.NoDependency`."""
        return value


def is_trackable(value: object) -> bool:
    """Whether an object is, or may hold, something to save."""
    if isinstance(saveable_of(value), (*_LEAVES, PythonState, AutoTrackable, list, tuple, Mapping)):
        return True
    return not isinstance(value, type) and any(hasattr(type(value), name) for name in _HOLDERS)


class ObjectGraph:
    """What is reached from an object, breadth first.

    Args:
        root: The object.
        more: What it holds besides its attributes, by name.
    """

    def __init__(self, root: object, more: Mapping[str, Any]) -> None:
        self._values = [saveable_of(root)]
        self._paths = [""]
        self._links: list[list[tuple[int, str]]] = []
        numbers = {id(root): 0}
        kept = [root]
        for index, value in enumerate(self._values):  # it grows while it is walked
            self._links.append([])
            for name, child in [*_children(value), *(() if index else more.items())]:
                if id(child) not in numbers:
                    numbers[id(child)] = len(kept)
                    kept.append(child)
                    self._values.append(saveable_of(child))
                    self._paths.append(f"{self._paths[index]}/{_escaped(name)}".lstrip("/"))
                self._links[index].append((numbers[id(child)], name))

    def _leaves(self) -> Iterator[tuple[int, Any]]:
        return ((index, value) for index, value in enumerate(self._values) if isinstance(value, _LEAVES))

    def _slots(self) -> Iterator[tuple[int, int, str, str, Any]]:
        """The slots: numbers of optimizer and variable, name of the slot, where the checkpoint has it, and itself.

        Those that an optimizer has from one within it are that one's.
        """
        for number, optimizer in enumerate(self._values):
            inner = [self._values[child] for child, _ in self._links[number] if _has_slots(self._values[child])]
            for name in optimizer.get_slot_names() if _has_slots(optimizer) else ():
                for index, variable in self._leaves():
                    slot = optimizer.get_slot(variable, name) if isinstance(variable, Variable) else None
                    if slot is not None and not any(each.get_slot(variable, name) is slot for each in inner):
                        path = f"{self._paths[index]}/.OPTIMIZER_SLOT/{self._paths[number]}/{_escaped(name)}/{VALUE}"
                        yield number, index, name, path, slot

    def variables(self) -> dict[str, Any]:
        """Variables and other resources by their names."""
        named = {f"{self._paths[index]}/{VALUE}": leaf for index, leaf in self._leaves()}
        return named | {path: slot for _, _, _, path, slot in self._slots()}

    def states(self) -> dict[str, PythonState]:
        """Python state by its names."""
        found = zip(self._paths, self._values, strict=True)
        return {f"{path}/{PYTHON_STATE}": value for path, value in found if isinstance(value, PythonState)}

    def texts(self) -> dict[str, np.ndarray]:
        """What a checkpoint has beside variables, by name: Python state, and the description of the objects."""
        texts = {name: _as_bytes(state.serialize()) for name, state in self.states().items()}
        texts[OBJECT_GRAPH] = self.description()
        return {name: np.array(text, object) for name, text in texts.items()}

    def description(self) -> bytes:
        """The message by which TensorFlow finds the values of its own objects in a checkpoint."""
        made = TrackableObjectGraph()
        nodes = {index: made.nodes.add() for index in sorted(self._holders())}
        numbers = {index: number for number, index in enumerate(nodes)}
        for index, node in nodes.items():
            value, path = self._values[index], self._paths[index]
            for child, name in self._links[index]:
                if child in nodes:
                    node.children.add(node_id=numbers[child], local_name=name)
            if isinstance(value, (Variable, PartitionedVariable)):
                _add_value(node, VALUE, path, value)
            elif isinstance(value, PythonState):
                _add_value(node, PYTHON_STATE, path, value)
        for optimizer, index, name, path, slot in self._slots():
            nodes[optimizer].slot_variables.add(
                original_variable_node_id=numbers[index], slot_name=name, slot_variable_node_id=len(made.nodes)
            )
            _add_value(made.nodes.add(), VALUE, path.removesuffix(f"/{VALUE}"), slot)
        return made.SerializeToString()

    def _holders(self) -> set[int]:
        """The numbers of the root and of objects that have a value or lead to one."""
        kinds = (*_LEAVES, PythonState)
        found = enumerate(self._values)
        holders = {0} | {index for index, value in found if isinstance(value, kinds) or _has_slots(value)}
        count = 0
        while count < len(holders):
            count = len(holders)
            holders |= {index for index, links in enumerate(self._links) if any(child in holders for child, _ in links)}
        return holders


def _add_value(node: Any, kind: str, path: str, value: Any) -> None:
    name = getattr(getattr(value, "op", value), "name", "")
    node.attributes.add(name=kind.rpartition("/")[2], full_name=name, checkpoint_key=f"{path}/{kind}")


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (*_LEAVES, PythonState)):
        return
    if _has_slots(value):
        yield from getattr(value, "_checkpoint_dependencies", ())
        return
    if isinstance(value, Mapping):
        found = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        found = [(str(index), item) for index, item in enumerate(value)]
    else:
        declared = list(getattr(value, "_checkpoint_dependencies", ()))
        within = {id(each) for _, part in declared for each in getattr(part, "weights", ())}
        attributes = ((name, item) for name, item in _attributes(value) if id(item) not in within)
        found = [*_layers(value), *attributes, *declared]
    yield from ((name, child) for name, child in found if is_trackable(child))


def _has_slots(value: Any) -> bool:
    """Whether it is an optimizer, which keeps variables for others."""
    return hasattr(type(value), "get_slot_names")


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
    """The variables that a layer has named, then public attributes, then further variables, then private attributes.

    Private attributes count in classes of programs, but for those that tfray's classes set.
    """
    held: dict[str, Any] = getattr(value, "__dict__", {})
    public = [(name, item) for name, item in held.items() if not name.startswith("_")]
    yield from held.get("_named_weights", {}).items()
    yield from public
    kind = type(value)
    library = [each.__name__ for each in kind.__mro__ if each.__module__.startswith("tfray.")]
    is_of_program = isinstance(value, AutoTrackable) or kind.__name__ not in library
    if not hasattr(value, "layers"):
        weights = getattr(value, "weights", None)
        if is_of_program and "_trainable_weights" in held:  # those of layers within have the names of these
            weights = [*held["_trainable_weights"], *held["_non_trainable_weights"]]
        yield from _named(value, weights if isinstance(weights, list) else [], dict(public))
    if is_of_program:
        of_library = tuple(f"_{name.lstrip('_')}__" for name in library if name != "AutoTrackable")
        for name, item in held.items():
            if name.startswith("_") and name not in _OWN and not name.startswith(of_library):
                yield name, item


def _named(value: Any, weights: Sequence[Any], public: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables of a layer or cell that are no public attributes, by names of which each is another's."""
    known, taken = {id(item) for item in public.values()}, set(public)
    for item in public.values():  # a layer within, or one of a list, has names for its own
        for part in item if isinstance(item, (list, tuple)) else [item]:
            held = getattr(part, "weights", None)
            known |= {id(each) for each in held} if isinstance(held, list) else set()
    scope = f"{getattr(getattr(value, '_scope', None), 'name', '')}/"
    for variable in weights:
        if id(variable) not in known:
            whole = variable.op.name
            # A layer's own name of a variable may be of several parts, as "gates/kernel" is.
            name = whole[len(scope) :] if whole.startswith(scope) else whole.rpartition("/")[2]
            name = whole if name in taken else name
            taken.add(name)
            yield name, variable
