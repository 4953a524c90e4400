"""Looking into checkpoints, and starting variables from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tfray.errors import InvalidArgumentError, NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint import CheckpointFiles
from tfray.formats.files import PathLike, given_path
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.formats.tensor_proto import type_name
from tfray.framework.dtypes import DType
from tfray.framework.tensor_shape import TensorShape
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.variables import Variable, global_variables
from tfray.ops.state.state_ops import assign, colocated_with
from tfray.ops.system.checkpoint_ops import restore_tensor
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint


class CheckpointReader:
    """Tensors of a checkpoint by name. Nothing is read before it is asked for.

    Args:
        filepattern: Path of a checkpoint of tfray or TensorFlow, or of a ``.safetensors`` file.

    Raises:
        NotFoundError: There is none.
        DataLossError: It is damaged.
    """

    def __init__(self, filepattern: PathLike) -> None:
        self._checkpoint: CheckpointFiles = open_checkpoint(given_path(filepattern, "filepattern"))

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of that name."""
        return tensor_str in self._checkpoint.tensors

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of a tensor: an array, read-only where it is a view of the file; a number or bytes for a scalar.

        Raises:
            NotFoundError: There is no such tensor.
            DataLossError: Its file is damaged.
        """
        array = self._checkpoint.read(tensor_str)
        return array if array.ndim else array[()]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of every tensor."""
        return {name: list(entry.shape) for name, entry in self._checkpoint.tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of every tensor."""
        return {name: entry.dtype for name, entry in self._checkpoint.tensors.items()}

    def debug_string(self) -> bytes:
        """A line for every tensor, such as ``weights (DT_FLOAT) [2,3]``."""
        lines = [
            f"{entry.name} ({type_name(entry.dtype.as_datatype_enum)}) [{','.join(map(str, entry.shape))}]"
            for entry in self._checkpoint.tensors.values()
        ]
        return "\n".join(lines).encode()


NewCheckpointReader = CheckpointReader


def load_checkpoint(ckpt_dir_or_file: PathLike) -> CheckpointReader:
    """A reader of a checkpoint.

    Args:
        ckpt_dir_or_file: Path of a checkpoint, or a folder: its newest checkpoint.

    Raises:
        NotFoundError: There is none.
    """
    return CheckpointReader(checkpoint_path(ckpt_dir_or_file))


def checkpoint_path(ckpt_dir_or_file: PathLike) -> str:
    """The path of a checkpoint, given that or its folder. Raises `NotFoundError` when the folder has none."""
    path = given_path(ckpt_dir_or_file, "ckpt_dir_or_file")
    if not files.is_folder(path):
        return path
    found = latest_checkpoint(path)
    if found is None:
        raise NotFoundError(f"there is no checkpoint in {path}")
    return found


def load_variable(ckpt_dir_or_file: PathLike, name: str) -> Any:
    """The value of one tensor of a checkpoint, or of the newest one of a folder.

    Args:
        ckpt_dir_or_file: As for `load_checkpoint`.
        name: Name of the tensor; ``:0`` at its end is left out.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: PathLike) -> list[tuple[str, list[int]]]:
    """Name and shape of every tensor of a checkpoint, sorted by name; argument as of `load_checkpoint`."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


# -- starting from a checkpoint ------------------------------------------------------------------------


def init_from_checkpoint(ckpt_dir_or_file: PathLike, assignment_map: Mapping[str, Any]) -> None:
    """Let initializers take values from a checkpoint. Call it before `tf.global_variables_initializer`.

    Args:
        ckpt_dir_or_file: As for `load_checkpoint`.
        assignment_map: From names in the checkpoint to names of variables, variables, partitioned variables, or lists
            of the parts of one. A name that ends in ``/`` stands for all that begins so, and maps to another such
            name; ``/`` stands for everything.

    Raises:
        InvalidArgumentError: The checkpoint lacks a tensor, it has another shape than the variable, or there is no
            variable of a name.
    """
    path = checkpoint_path(ckpt_dir_or_file)
    entries = open_checkpoint(path).tensors
    for tensor_name, target in sorted(assignment_map.items(), key=lambda item: item[0]):
        for name, variable in _assignments(tensor_name, target):
            info = variable._save_slice_info
            whole = variable.shape if info is None else TensorShape(info.full_shape)
            if name not in entries:
                raise InvalidArgumentError(
                    f"Tensor {name} is not found in checkpoint {path}: it is for variable {variable.op.name!r}"
                )
            if not whole.is_compatible_with(entries[name].shape):
                raise InvalidArgumentError(
                    f"Shape of variable {variable.op.name} ({whole}) doesn't match with shape of tensor {name} "
                    f"({list(entries[name].shape)}) of checkpoint {path}"
                )
            _set_initializer(variable, path, name)


def _set_initializer(variable: Variable, path: str, name: str) -> None:
    info = variable._save_slice_info
    part = None if info is None else (list(info.full_shape), list(info.var_offset))
    graph = variable.graph
    with graph.as_default(), graph.control_dependencies(None), colocated_with(variable.handle):
        value = restore_tensor(path, name, variable.dtype, variable.shape, part, name="checkpoint_initializer")
        variable._initial_value = value
        variable.initializer = assign(variable, value, name="Assign").op


def _assignments(tensor_name: str, target: Any) -> Iterator[tuple[str, Variable]]:
    """Which tensor goes to which variable."""
    if isinstance(target, Variable):
        yield tensor_name, target
    elif isinstance(target, (PartitionedVariable, list, tuple)):
        yield from ((tensor_name, part) for part in target)
    elif target.endswith("/") or not target:
        if not tensor_name.endswith("/"):
            raise InvalidArgumentError(
                f"{target!r} is a scope, and {tensor_name!r} is none: write {tensor_name + '/'!r}"
            )
        start, scope = tensor_name.removesuffix("/"), target.removesuffix("/")
        for name, variable in _variables_by_name():
            if not scope or name.startswith(scope + "/"):
                yield "/".join(filter(None, (start, name.removeprefix(scope + "/" if scope else "")))), variable
    else:
        found = [variable for name, variable in _variables_by_name() if name == target]
        if not found:
            raise InvalidArgumentError(f"there is no variable {target!r} to start from tensor {tensor_name!r}")
        yield from ((tensor_name, variable) for variable in found)


def _variables_by_name() -> Iterator[tuple[str, Variable]]:
    for variable in global_variables():
        info = variable._save_slice_info
        yield variable.op.name if info is None else info.full_name, variable
