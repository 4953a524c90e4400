"""`tf.train.Saver`: saves variables to files, and restores them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError, NoCheckpointError, NotFoundError, OpError
from tfray.formats import checkpoint_folder, files
from tfray.formats.checkpoint_shard import Piece
from tfray.formats.checkpoint_state import SaverDef
from tfray.formats.files import PathLike, absolute, as_path, given_path
from tfray.formats.write_formats import TENSORFLOW, TFRAY, check_write_format, default_write_format
from tfray.framework.arguments import Count, NonNegative, checked
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.library.platform import logging
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import source_ops
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.shape_ops import identity, shape
from tfray.ops.state.state_ops import colocated_with
from tfray.ops.system import checkpoint_ops
from tfray.training.checkpoints import checkpoint_management
from tfray.training.checkpoints.meta_graph import export_meta_graph, meta_graph_bytes
from tfray.training.checkpoints.retention import Kept, Retention
from tfray.training.checkpoints.saveable_objects import SaveableObject
from tfray.training.checkpoints.saveables import Saveable, by_device, default_saveables, saveables_of

SCOPE: Final = "save"
"""Name scope of the operations."""

_NO_RECORDS: Final = b"[]"

_LACKS_NAME: Final = (
    "Restoring from checkpoint failed. This is most likely due to a Variable name or other graph key that is missing "
    "from the checkpoint. "
)
_OTHER_GRAPH: Final = (
    "Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph and the graph "
    "from the checkpoint. "
)


class Saver:
    """Saves variables to checkpoints and restores them.

    All devices write at the same time, each its own variables, and read only what they need. Even if a save is
    interrupted, a checkpoint is either complete or does not exist. Damage to its files is noticed when they are read.
    Parts of a partitioned variable are saved as one tensor, so that any other partitioning can restore it.

    Args:
        var_list: Variables, partitioned variables and other state (see `SaveableResource`, `SaveableObject`): a list,
            or a dictionary from their names in the checkpoint. By default all global variables and the collection
            ``saveable_objects``.
        reshape: Let variables take values of another shape with as many elements.
        sharded: Accepted for TensorFlow 1's sake: every device writes files of its own.
        max_to_keep: How many of the newest checkpoints to keep; None or 0 for all.
        keep_checkpoint_every_n_hours: Of those that would be deleted, keep one for every so many hours.
        name: Name scope of the operations.
        restore_sequentially: Accepted for TensorFlow 1's sake.
        saver_def: Instead of making operations, use those that it names in the current graph.
        builder: Accepted for TensorFlow 1's sake.
        defer_build: Make the operations with `build`, before anything is saved.
        allow_empty: Accept that there is nothing to save.
        write_version: Accepted for TensorFlow 1's sake: version 1, which it calls deprecated, is read but not written.
        pad_step_number: Write the global step in names of files with eight digits.
        save_relative_paths: Give paths in the file ``checkpoint`` relative to its folder, which can then be moved.
        filename: Path to save to when none is given.
        asynchronous: Whether `save` only copies the state, and a thread writes it while training goes on. The copies
            take as much memory as the variables. Saves do not overlap; `wait` waits for the last one.
        best_to_keep: How many of the checkpoints with the best `metric` to keep besides the newest.
        best_mode: ``"min"`` when smaller metrics are better, or ``"max"``.
        takes_arrays: Let `save` take further arrays, which this process writes.
        write_format: ``"tfray"``, or ``"tensorflow"`` for checkpoints that TensorFlow reads (its format V2). What saves
            promise is the same for both. Checkpoints of either format are restored. None is ``"tfray"``, but
            ``"tensorflow"`` in programs that `tfray run-program` runs: they may know the names of its files. A saver
            that is made of a `saver_def` has the format of its operations.

    Attributes:
        saver_def: The names of the operations, once they are made.
        names: Names of what is saved of the graph.
        last_duration_s: Seconds that the last save took until it was complete.

    Raises:
        ValueError: There is nothing to save, or two variables have the same name.
        TypeError: Something in `var_list` cannot be saved.
    """

    @checked
    def __init__(
        self,
        var_list: Mapping[str, Any] | Iterable[Any] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: Count | None = 5,
        keep_checkpoint_every_n_hours: NonNegative = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
        *,
        asynchronous: bool = False,
        best_to_keep: Count = 0,
        best_mode: str = "min",
        takes_arrays: bool = False,
        write_format: str | None = None,
    ) -> None:
        if write_format is None:
            write_format = TFRAY if write_version == SaverDef.V1 else default_write_format()
        if check_write_format(write_format) == TENSORFLOW and write_version == SaverDef.V1:
            raise ValueError('write_format="tensorflow" is version 2: version 1 is read, but not written')
        if defer_build and var_list is not None:
            raise ValueError("with defer_build, what to save is decided later: var_list must be None")
        if saver_def is not None:
            max_to_keep, keep_checkpoint_every_n_hours = saver_def.max_to_keep, saver_def.keep_checkpoint_every_n_hours
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._name = name
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._retention = Retention(max_to_keep, keep_checkpoint_every_n_hours, best_to_keep, best_mode)
        self._asynchronous = asynchronous
        self._takes_arrays = takes_arrays
        self._write_format = write_format
        self._records_name: str | None = None
        self._background = _Background()
        self._one_at_a_time = threading.RLock()
        self.names: frozenset[str] = frozenset()
        self.last_duration_s = 0.0
        self._snapshot_names: tuple[str, str] | None = None
        self._snapshots: str | None = None
        """Beginning of the names of the memory for snapshots on devices."""
        self._meta_graph: tuple[tuple[Graph, int, bool], bytes] | None = None
        self.saver_def: SaverDef | None = saver_def
        self._is_empty = False
        if saver_def is None and not defer_build:
            self.build()
        elif saver_def is not None:
            self._is_empty = not saver_def.save_tensor_name
            self._snapshot_names = None

    # -- operations ------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the operations, if that was deferred."""
        if self.saver_def is not None:
            return
        var_list = default_saveables() if self._var_list is None else self._var_list
        saveables = saveables_of(var_list)
        if not saveables and not self._allow_empty:
            raise ValueError("No variables to save: make them first, or pass allow_empty=True")
        self._is_empty = not saveables and not self._takes_arrays
        self.names = frozenset(saveable.name for saveable in saveables)
        keep = self._retention
        self.saver_def = SaverDef(
            max_to_keep=keep.max_to_keep or 0,
            keep_checkpoint_every_n_hours=keep.every_n_hours,
            sharded=self._sharded,
            version=SaverDef.V2,
        )
        if not self._is_empty:
            self._add_operations(saveables)

    def rebuild(self) -> None:
        """Make the operations anew, because what is saved has moved to other devices. No save may be under way."""
        self.saver_def = None
        self.build()

    def _add_operations(self, saveables: Sequence[Saveable]) -> None:
        graph = saveables[0].handle.graph if saveables else get_default_graph()
        assert self.saver_def is not None
        scopes = graph.device(None), graph.control_dependencies(None), graph.name_scope(self._name or SCOPE)
        with graph.as_default(), scopes[0], scopes[1], scopes[2] as scope:
            default = source_ops.constant(self._filename or "model", name="filename/default")
            filename = source_ops.placeholder_with_default(default, [], name="Const")
            groups = by_device(saveables)
            also = []
            if self._takes_arrays:
                also = [source_ops.placeholder_with_default(_NO_RECORDS, [], name="records")]
                self._records_name = also[0].name
            self.saver_def.filename_tensor_name = filename.name
            self.saver_def.save_tensor_name = _add_save(filename, groups, also, self._write_format).name
            self.saver_def.restore_op_name = _add_restore(filename, groups, self._reshape).name
            if self._asynchronous:
                self._snapshots = self._snapshots or scope.rstrip("/")
                copy, write = _add_snapshot(filename, groups, also, self._snapshots, self._write_format)
                self._snapshot_names = copy.name, write.name

    def as_saver_def(self) -> SaverDef:
        """The names of the operations, and settings."""
        self.build()
        assert self.saver_def is not None
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> SaverDef | None:
        """`as_saver_def` with names relative to a scope; None when they are outside of it."""
        definition = self.as_saver_def()
        if not export_scope:
            return definition
        prefix = export_scope.rstrip("/") + "/"
        if not definition.save_tensor_name.startswith(prefix):
            return None
        return _renamed(definition, lambda name: name.removeprefix(prefix))

    @staticmethod
    def from_proto(saver_def: SaverDef, import_scope: str | None = None) -> Saver:
        """The saver of the current graph that `saver_def` describes."""
        prefix = import_scope.rstrip("/") + "/" if import_scope else ""
        return Saver(saver_def=_renamed(saver_def, lambda name: prefix + name))

    # -- saving ----------------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: PathLike,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str | None = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
        *,
        metric: float | None = None,
        arrays: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Save a checkpoint, and delete those that need not be kept.

        Args:
            sess: The session.
            save_path: Path of the checkpoint.
            global_step: A number to add to the path, or the variable that holds it.
            latest_filename: Name of the file that names the newest checkpoint; ``checkpoint`` when None.
            meta_graph_suffix: Suffix of the file of the graph; None when there is none, to be written or deleted.
            write_meta_graph: Whether to write the graph as well.
            write_state: Whether to update the file that names the newest checkpoint.
            strip_default_attrs: Leave attributes that have their defaults out of the file of the graph.
            save_debug_info: Accepted for TensorFlow 1's sake.
            metric: How good the model is, for ``best_to_keep``.
            arrays: Further arrays to save by name, for a saver that ``takes_arrays``.

        Returns:
            The path of the checkpoint; None when the saver is empty.

        Raises:
            NotFoundError: The folder does not exist and cannot be made.
            FailedPreconditionError: A variable is not initialised.
            OpError: An earlier save in the background has failed.
            RuntimeError: `build` has not been called on a saver that was made with ``defer_build``.
            ValueError: `latest_filename` has folders, or is that of the checkpoint.
        """
        if self.saver_def is None:
            raise RuntimeError("call build() before save(): the saver was made with defer_build=True")
        if self._is_empty:
            return None
        latest_filename = latest_filename or checkpoint_management.STATE_FILE
        if os.path.basename(latest_filename) != latest_filename:
            raise ValueError(f"latest_filename is a name without folders, not {latest_filename!r}")
        path = self._path_for(sess, save_path, global_step)
        folder = os.path.dirname(path)
        if write_state and not self._sharded and os.path.basename(path) == latest_filename:
            raise ValueError(f"'latest_filename' collides with 'save_path': {latest_filename!r} and {path!r}")

        def finish() -> None:
            if write_state:
                removed = self._retention.add(path, metric)
                self._write_state(folder, path, latest_filename, removed)
                for old in removed:
                    checkpoint_management.remove_checkpoint(old.path, meta_graph_suffix=meta_graph_suffix)
                if removed:  # they were listed until now, so that after a crash the next saver removes them
                    self._write_state(folder, path, latest_filename)

        with self._one_at_a_time:
            self.wait()
            begin = None
            if write_meta_graph and meta_graph_suffix is not None:
                meta = checkpoint_management.meta_graph_filename(path, meta_graph_suffix)
                begin = partial(files.write_bytes, meta, self._graph_bytes(sess, strip_default_attrs))
            self._run_save(sess, path, arrays, begin, finish)
        return path

    def _path_for(self, sess: Any, save_path: PathLike, global_step: Any) -> str:
        path = given_path(save_path, "save_path")
        if global_step is None:
            return path
        step = int(global_step) if _is_number(global_step) else int(sess.run(global_step))
        return f"{path}-{step:08d}" if self._pad_step_number else f"{path}-{step}"

    def _run_save(
        self,
        sess: Any,
        path: str,
        arrays: Mapping[str, Any] | None,
        begin: Callable[[], None] | None,
        finish: Callable[[], None],
    ) -> None:
        definition, started = self.as_saver_def(), time.perf_counter()
        copy, write = self._snapshot_names or (None, definition.save_tensor_name)
        pieces = self._pieces(arrays)
        if copy is not None:
            sess.run(sess.graph.get_operation_by_name(copy))

        def complete() -> None:
            place = absolute(path)  # devices may be processes with another current folder
            feeds: dict[Any, Any] = {definition.filename_tensor_name: place}
            with checkpoint_folder.saving(path):
                if begin is not None:
                    begin()
                if pieces:
                    feeds[self._records_name] = checkpoint_ops.write_pieces(
                        place, [pieces], write_format=self._write_format
                    )
                sess.run(write, feeds)
                finish()
            self.last_duration_s = time.perf_counter() - started

        if copy is None:
            complete()
        else:
            self._background.start(complete)

    def _pieces(self, arrays: Mapping[str, Any] | None) -> list[Piece]:
        if arrays and self._records_name is None:
            raise ValueError("this saver takes no further arrays: make it with takes_arrays=True")
        return [Piece.whole(name, np.array(array)) for name, array in (arrays or {}).items()]

    @property
    def is_saving(self) -> bool:
        """Whether a save is under way in the background."""
        return self._background.is_at_work

    def wait(self) -> None:
        """Wait for a save in the background. Raises its error if it has failed."""
        self._background.wait()

    def _write_state(self, folder: str, path: str, latest_filename: str, also: Sequence[Kept] = ()) -> None:
        kept = [*also, *self._retention.kept]
        checkpoint_management.write_checkpoint_state(
            folder,
            path,
            [each.path for each in kept],
            latest_filename,
            [each.time for each in kept],
            self._retention.last_preserved,
            self._save_relative_paths,
        )
        self._retention.write_metrics(folder)

    def _graph_bytes(self, sess: Any, strip_default_attrs: bool) -> bytes:
        wanted = sess.graph, sess.graph.version, strip_default_attrs
        if self._meta_graph is None or self._meta_graph[0] != wanted:
            self._meta_graph = wanted, meta_graph_bytes(sess.graph, self.as_saver_def(), strip_default_attrs)
        return self._meta_graph[1]

    def export_meta_graph(
        self,
        filename: PathLike | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The current graph with this saver; arguments as of `tf.train.export_meta_graph`."""
        return export_meta_graph(
            filename,
            saver_def=self.as_saver_def(),
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )

    def variables(self) -> dict[str, Variable] | None:
        """The variables that it saves, by their names in checkpoints; None where that is all of the graph."""
        if self._var_list is None:
            return None
        listed = self._var_list.items() if isinstance(self._var_list, Mapping) else ((None, v) for v in self._var_list)
        return {name or each.op.name: each for name, each in listed if isinstance(each, Variable)}

    # -- restoring -------------------------------------------------------------------------------

    def restore(self, sess: Any, save_path: PathLike) -> None:
        """Give the variables the values of a checkpoint. They need not be initialised.

        Args:
            sess: The session.
            save_path: Path of a checkpoint of tfray or TensorFlow, or of a ``.safetensors`` file.

        Raises:
            ValueError: `save_path` is None or empty, or there is no such checkpoint: then it is a `NotFoundError` too.
            NotFoundError: The checkpoint lacks a variable.
            InvalidArgumentError: A variable has another dtype or shape than in the checkpoint.
            DataLossError: A file is damaged; the message names it and the tensor.
        """
        self.build()
        self.wait()
        if save_path is None:
            raise ValueError(
                "Can't load save_path when it is None: tf.train.latest_checkpoint gives None where there is no "
                "checkpoint"
            )
        if self._is_empty:
            return
        definition = self.as_saver_def()
        restore = sess.graph.get_operation_by_name(definition.restore_op_name)
        path = absolute(given_path(save_path, "save_path"))
        logging.info("Restoring parameters from %s", save_path)
        try:
            sess.run(restore, {definition.filename_tensor_name: path})
        except NotFoundError as error:
            is_there = checkpoint_management.checkpoint_exists(path)
            why = _LACKS_NAME if is_there else f"The passed save_path is not a valid checkpoint: {save_path!r}: "
            raise _explained(error, type(error) if is_there else NoCheckpointError, why) from error
        except InvalidArgumentError as error:
            raise _explained(error, type(error), _OTHER_GRAPH) from error

    # -- what is kept ----------------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the checkpoints that are not yet deleted, oldest first; none where all are kept."""
        return [each.path for each in self._retention.kept] if self._retention.max_to_keep else []

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Say which checkpoints there are, oldest first, all as old as can be. `AssertionError` unless it is a list."""
        if not isinstance(last_checkpoints, list):
            raise AssertionError(f"last_checkpoints is to be a list, not {last_checkpoints!r}")
        self._retention.replace([(path, float("inf")) for path in last_checkpoints])

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Say which checkpoints there are, oldest first, and when each was saved."""
        self._retention.replace(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[PathLike]) -> None:
        """After a restart, add the checkpoints of an earlier saver to those that this one will delete in time.

        Files that interrupted saves of the same name have left beside them are deleted at once. A checkpoint that is
        complete, but was not yet named by the file ``checkpoint``, is added as well.

        Args:
            checkpoint_paths: Their paths, oldest first. Those that are gone are left out.
        """
        found = []
        for path in map(as_path, checkpoint_paths):
            times = checkpoint_management.get_checkpoint_mtimes([path])
            found += [(path, times[0])] if times else []
        if found:
            found += checkpoint_management.unlisted_since(checkpoint_paths, found[-1][1])
        self._retention.replace(found)
        if found:
            self._retention.read_metrics(os.path.dirname(found[-1][0]))
            checkpoint_folder.clear_away(found[-1][0], series=True, also=checkpoint_management.OWN_FILES)


def _explained(error: OpError, kind: type[OpError], why: str) -> OpError:
    """An error of restoring, with what is likely to be the reason."""
    return kind(None, error.op, why + error.message, op_name=error.op_name, device=error.device, site=error.site)


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor) and not hasattr(value, "handle") and hasattr(value, "__index__")


def _renamed(definition: SaverDef, rename: Any) -> SaverDef:
    copy = SaverDef()
    copy.CopyFrom(definition)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        name = getattr(definition, field)
        setattr(copy, field, rename(name) if name else "")
    return copy


def _columns(saveables: Sequence[Saveable]) -> tuple[list[Tensor], list[str], list[Any]]:
    return [each.handle for each in saveables], [each.name for each in saveables], [each.part for each in saveables]


def _add_save(
    filename: Tensor, groups: Sequence[Sequence[Saveable]], also: Sequence[Tensor], write_format: str
) -> Tensor:
    records = [*also]
    for shard, saveables in enumerate(groups):
        place = shard, len(groups)
        with colocated_with(saveables[0].handle):
            records.append(checkpoint_ops.save_shard(filename, *_columns(saveables), *place, write_format=write_format))
    merged = checkpoint_ops.merge_checkpoint(filename, records, write_format=write_format)
    return identity(merged, name="control_dependency")


def _add_restore(filename: Tensor, groups: Sequence[Sequence[Saveable]], reshape: bool) -> Operation:
    restored: list[Any] = []
    sources: dict[SaveableObject, list[Saveable]] = {}
    for saveables in groups:
        resources = [each for each in saveables if each.source is None]
        for each in saveables:
            if each.source is not None:
                sources.setdefault(each.source, []).append(each)
        if resources:
            expected = [each.expected for each in resources]
            with colocated_with(resources[0].handle):
                restored.append(checkpoint_ops.restore_shard(filename, *_columns(resources), expected, reshape))
    restored += [_restore_object(filename, source, tensors, reshape) for source, tensors in sources.items()]
    return group(*restored, name="restore_all")


def _restore_object(filename: Tensor, source: SaveableObject, saved: Sequence[Saveable], reshape: bool) -> Any:
    """What restores a `SaveableObject` from the tensors that a checkpoint has of it."""
    by_name = {(each.name, str(each.part)): each.handle for each in saved}
    handles = [by_name[spec.name, str(spec.part)] for spec in source.specs]
    tensors = [
        checkpoint_ops.restore_tensor(filename, spec.name, handle.dtype, spec.saved_shape(handle), spec.part)
        for spec, handle in zip(source.specs, handles, strict=True)
    ]
    shapes = [each.shape if each.shape.is_fully_defined() else shape(each) for each in handles] if reshape else None
    return source.restore(tensors, shapes)


def _add_snapshot(
    filename: Tensor, groups: Sequence[Sequence[Saveable]], also: Sequence[Tensor], name: str, write_format: str
) -> tuple[Operation, Tensor]:
    copies, records = [], [*also]
    for shard, saveables in enumerate(groups):
        with colocated_with(saveables[0].handle):
            handle = checkpoint_ops.snapshot_handle(f"{name}/{shard}")
            copies.append(checkpoint_ops.take_snapshot(handle, *_columns(saveables)))
            records.append(
                checkpoint_ops.write_snapshot(filename, handle, shard, len(groups), write_format=write_format)
            )
    merged = checkpoint_ops.merge_checkpoint(filename, records, write_format=write_format)
    return group(*copies, name="copy_all"), identity(merged, name="snapshot_written")


class _Background:
    """One piece of work at a time, on a thread of its own."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether it is not done."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Any) -> None:
        """Begin. There must be none under way."""

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (`wait` raises it)
                self._error = error

        # Not a daemon thread: at its end the program waits until the last checkpoint is written.
        self._thread = threading.Thread(target=run, name="tfray-saver", daemon=False)
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is done. Raises what it raised, once."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
