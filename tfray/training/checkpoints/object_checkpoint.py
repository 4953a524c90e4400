"""`tf.train.Checkpoint`: saves and restores the variables that objects hold, by the paths of attributes to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tfray.errors import ArgumentError, NotFoundError
from tfray.formats.files import PathLike, given_path
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.framework import dtypes
from tfray.framework.graph import Tensor, get_default_graph, get_default_session
from tfray.library.variables.kept_session import kept_session
from tfray.library.variables.variables import Variable
from tfray.ops.state.state_ops import assign_add, is_variable_initialized
from tfray.ops.system.checkpoint_ops import STATE_MARK
from tfray.training.checkpoints import checkpoint_management
from tfray.training.checkpoints.checkpoint_utils import load_checkpoint
from tfray.training.checkpoints.object_graph import OBJECT_GRAPH, VALUE, ObjectGraph, is_trackable
from tfray.training.checkpoints.saver import Saver

_COUNTER: Final = f"save_counter/{VALUE}"


def session_for(session: Any) -> Any:
    """A session that was given, the default one, or that of Keras. Raises `ValueError` where there is none."""
    found = session if session is not None else get_default_session() or kept_session()
    if found is None:
        raise ValueError("there is no session: pass session=, or enter `with session.as_default():`")
    return found


def write_state(path: str) -> None:
    """Let the file ``checkpoint`` of a checkpoint's folder name it, as the newest and only one."""
    folder = path.rpartition("/")[0]
    checkpoint_management.write_checkpoint_state(folder, path, [path], relative_paths=True)


class Checkpoint:
    """Saves and restores the variables of objects, by the names of the attributes that lead to them.

    Objects are given by keyword, or set as attributes later: variables, optimizers (with their slots), Keras models and
    layers, mutable tables, other `Checkpoint` objects, `PythonState`, and lists, tuples and dictionaries of these.
    Files are those of `Saver`; their tensors have TensorFlow's names, such as
    ``model/kernel/.ATTRIBUTES/VARIABLE_VALUE``, beside a description of the objects, as TensorFlow writes one. So a
    checkpoint of TensorFlow with the same objects can be restored, and TensorFlow restores one of tfray that has its
    format. What is found under no such name is looked for under the variable's own name, as `Saver` saves it.

    Variables are restored when `run_restore_ops` or `initialize_or_restore` of the result of `restore` is called; those
    that are made later are restored by calling it again. TensorFlow restores them when they are made.

    Args:
        **kwargs: The objects, by the names of their attributes.

    Raises:
        ArgumentError: An argument is nothing that can be saved.
    """

    def __init__(self, **kwargs: Any) -> None:
        for name, value in sorted(kwargs.items()):
            if not is_trackable(value):
                raise ArgumentError(
                    f"Checkpoint was expecting a trackable object for {name}, such as a variable, an optimizer or a "
                    f"layer, and got {value!r}"
                )
            setattr(self, name, value)
        self._counting: tuple[Variable, Tensor, Tensor] | None = None
        self._savers: dict[frozenset[tuple[str, Any]], Saver] = {}

    @property
    def save_counter(self) -> Variable:
        """How often `save` has saved, an int64 variable. It is made when it is first needed."""
        return self._count_ops()[0]

    def _count_ops(self) -> tuple[Variable, Tensor, Tensor]:
        """The counter, whether it is initialised, and its value after one more."""
        if self._counting is None:
            with get_default_graph().control_dependencies(None):
                counter = Variable(0, dtype=dtypes.int64, trainable=False, name="save_counter")
                self._counting = counter, is_variable_initialized(counter), assign_add(counter, 1)
        return self._counting

    def _objects(self) -> ObjectGraph:
        """What is saved and restored; the counter only if it has been made."""
        return ObjectGraph(self, {} if self._counting is None else {"save_counter": self.save_counter})

    def write(self, file_prefix: PathLike, session: Any = None) -> str:
        """Save to a path as it is, without counting.

        Args:
            file_prefix: The path.
            session: The session; the default one when None.

        Returns:
            The path.
        """
        session = session_for(session)
        if self._counting is not None:
            self._initialize_counter(session)
        objects = self._objects()
        saver = self._saver_of(objects.variables())
        texts = objects.texts()
        path = saver.save(session, file_prefix, write_meta_graph=False, write_state=False, arrays=texts)
        assert path is not None
        return path

    def _saver_of(self, named: dict[str, Any]) -> Saver:
        """What saves and restores these variables. It is made once: its operations stay in the graph."""
        key = frozenset(named.items())
        if key not in self._savers:
            self._savers[key] = Saver(named, max_to_keep=None, takes_arrays=True)
        return self._savers[key]

    def save(self, file_prefix: PathLike, session: Any = None) -> str:
        """Save to a path to which a number is added, and let the file ``checkpoint`` of the folder name it.

        Args:
            file_prefix: Beginning of the path.
            session: The session; the default one when None.

        Returns:
            The path: ``PREFIX-1`` for the first save, ``PREFIX-2`` for the next one.
        """
        prefix = given_path(file_prefix, "file_prefix")
        path = self.write(f"{prefix}-{self.count_save(session)}", session)
        write_state(path)
        return path

    def count_save(self, session: Any = None) -> int:
        """Count a save by `save_counter`, which need not be initialised. Returns the new number."""
        session = session_for(session)
        self._initialize_counter(session)
        return int(session.run(self._count_ops()[2]))

    def _initialize_counter(self, session: Any) -> None:
        counter, is_initialized, _ = self._count_ops()
        if not session.run(is_initialized):
            session.run(counter.initializer)

    def restore(self, save_path: PathLike | None) -> CheckpointLoadStatus:
        """Prepare to restore a checkpoint.

        Args:
            save_path: Path of a checkpoint; None for none, as `tf.train.latest_checkpoint` gives it.

        Returns:
            An object whose `run_restore_ops` or `initialize_or_restore` gives the variables their values, and which can
            check before whether everything has one.

        Raises:
            NotFoundError: There is no such checkpoint.
        """
        return CheckpointLoadStatus(self, None if save_path is None else given_path(save_path, "save_path"))


class CheckpointLoadStatus:
    """A checkpoint that a `Checkpoint` is to take its values from; what `Checkpoint.restore` gives.

    Args:
        checkpoint: The objects.
        path: Path of the checkpoint, or None.
    """

    def __init__(self, checkpoint: Checkpoint, path: str | None) -> None:
        self._checkpoint = checkpoint
        self._path = path
        self._tensors = frozenset[str]()
        if path is not None:
            if not checkpoint_management.checkpoint_exists(path):
                raise NotFoundError(f"there is no checkpoint {path!r}")
            # A resource that is no variable, such as an iterator, is saved as several tensors.
            names = (name.partition(STATE_MARK)[0] for name in open_checkpoint(path).tensors)
            self._tensors = frozenset(names) - {OBJECT_GRAPH}
            if _COUNTER in self._tensors:
                checkpoint._count_ops()  # the number of saves is restored as well
            self._restore_states()

    def _restore_states(self) -> None:
        reader = load_checkpoint(str(self._path))
        for name, state in self._checkpoint._objects().states().items():
            if name in self._tensors:
                state.deserialize(reader.get_tensor(name))

    def _found(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is restored, by the names in the checkpoint, and what has no value there, by its own name."""
        objects = self._checkpoint._objects()
        named, states = objects.variables(), objects.states()
        found: dict[str, Any] = {}
        missing: dict[str, Any] = {}
        for name, value in named.items():
            own = getattr(getattr(value, "op", value), "name", "")
            if name in self._tensors:
                found[name] = value
            elif own in self._tensors:
                found[own] = value
            else:
                missing[name] = value
        missing.update((name, state) for name, state in states.items() if name not in self._tensors)
        return found, missing

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Check that every value of the checkpoint has an object, and every object a value.

        Returns:
            This object.

        Raises:
            AssertionError: Something has no counterpart; the message names it.
        """
        self.assert_existing_objects_matched()
        found, _ = self._found()
        unused = self._tensors - found.keys() - self._checkpoint._objects().states().keys()
        if unused:
            raise AssertionError(f"checkpoint {self._path} has values for which there is no object: {_some(unused)}")
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Check that every object has a value in the checkpoint, which may have more.

        Returns:
            This object.

        Raises:
            AssertionError: An object has none; the message names it.
        """
        self._assert_path()
        _, missing = self._found()
        missing.pop(_COUNTER, None)
        if missing:
            raise AssertionError(f"checkpoint {self._path} has no value of these objects: {_some(missing)}")
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Check that at least one object has a value in the checkpoint, `save_counter` apart. Returns this object."""
        self._assert_path()
        if not self._found()[0].keys() - {_COUNTER}:
            raise AssertionError(f"checkpoint {self._path} has no value of any object")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Say that a part of the checkpoint may stay unused, which nothing complains of here. Returns this object."""
        return self

    def _assert_path(self) -> None:
        if self._path is None:
            raise AssertionError("no checkpoint was given (save_path is None): nothing is restored")

    def run_restore_ops(self, session: Any = None) -> None:
        """Give the variables that have one their values of the checkpoint; others stay as they are.

        Args:
            session: The session; the default one when None.

        Raises:
            AssertionError: No checkpoint was given.
            InvalidArgumentError: A value has another dtype or shape than its variable.
        """
        self._assert_path()
        found, _ = self._found()
        if found:
            self._checkpoint._saver_of(found).restore(session_for(session), self._path or "")

    def initialize_or_restore(self, session: Any = None) -> None:
        """Give the variables their values of the checkpoint, and initialise those that have none there.

        Args:
            session: The session; the default one when None.
        """
        session = session_for(session)
        found, missing = self._found()
        session.run(list(_initializers(missing.values())))
        if found:
            self.run_restore_ops(session)


def _initializers(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        with contextlib.suppress(AttributeError, ValueError):  # an iterator that begins by itself has none
            yield value.initializer


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:10]) + (f" and {len(ordered) - 10} more" if len(ordered) > 10 else "")
